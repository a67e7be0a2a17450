"""The commands: each file adds one to the parser, and runs it with one library call."""

REFUSED, FAILED = 2, 3  # exit codes: what was asked for, or this machine (memory, a library)
