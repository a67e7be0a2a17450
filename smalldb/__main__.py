"""``python -m smalldb``, and the console script."""

from smalldb import signals


def run() -> None:
    """Run the command line; signals are taken care of while it is imported, too."""
    signals.take()
    from smalldb.cli import run as run_command

    run_command()


if __name__ == "__main__":
    run()
