"""A command run in this process, as the console script runs it."""

from smalldb.cli import main


def called(capfd, *arguments):
    """The exit code of a command, and what it wrote on stdout and stderr."""
    try:
        code = main([*map(str, arguments)])
    except SystemExit as stopped:
        code = stopped.code
    return code, *capfd.readouterr()
