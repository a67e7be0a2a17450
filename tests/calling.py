"""A command run in this process, as the console script runs it; and what names a mechanism."""

from smalldb.cli import main
from smalldb.marginals.mechanism import STRATEGIES

FOR_FLAGS = ("cells", "contrasts", "adaptive")  # strategies for yes/no columns


def called(capfd, *arguments):
    """The exit code of a command, and what it wrote on stdout and stderr."""
    try:
        code = main([*map(str, arguments)])
    except SystemExit as stopped:
        code = stopped.code
    return code, *capfd.readouterr()


def way(name):
    """The arguments of `plan` for a mechanism of this name, or for a strategy of marginals."""
    return {"mechanism": "marginals", "strategy": name} if name in STRATEGIES else {"mechanism": name}
