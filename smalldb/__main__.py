"""``python -m smalldb``."""

from smalldb.cli import run

run()
