"""Texts that a spreadsheet would run as formulas when it opens a CSV file."""

import re

import numpy as np
import pandas as pd

_RUN = re.compile(r"[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?[0-9][0-9.,eE+-]*")


def guarded(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would run; numbers stay as they are.

    >>> guarded("=1+1"), guarded("-5"), guarded("-x"), guarded("a=b")
    ("'=1+1", '-5', "'-x", 'a=b')
    """
    return f"'{text}" if _RUN.match(text) and not _NUMBER.fullmatch(text) else text


def guarded_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose texts and column names no spreadsheet runs, as `guarded` writes them.

    It does not read back as the schema's table where something was guarded: that is for people to open.
    """
    made = frame.copy()
    for place, dtype in enumerate(frame.dtypes):
        if isinstance(dtype, pd.StringDtype | pd.CategoricalDtype | np.dtypes.ObjectDType):
            fields = frame.iloc[:, place].astype(object).tolist()
            safe = [guarded(field) if isinstance(field, str) else field for field in fields]
            made.isetitem(place, pd.array(safe, dtype=object))
    return made.set_axis([guarded(str(name)) for name in frame.columns], axis=1)
