"""The commands: each file adds one to the parser, and runs it with one library call."""

REFUSED = 2  # exit code
