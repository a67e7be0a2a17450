"""Texts that a spreadsheet would run as formulas when it opens a CSV file."""

import re

_RUN = re.compile(r"[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?[0-9][0-9.,eE+-]*")


def guarded(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would run; numbers stay as they are.

    >>> guarded("=1+1"), guarded("-5"), guarded("-x"), guarded("a=b")
    ("'=1+1", '-5', "'-x", 'a=b')
    """
    return f"'{text}" if _RUN.match(text) and not _NUMBER.fullmatch(text) else text
