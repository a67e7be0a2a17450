"""Reading what a user gives: numbers, exact, in range, refused by name; and tables."""

from fractions import Fraction

import numpy as np
import pandas as pd

from smalldb.exact import as_fraction


def positive(value: object, name: str) -> Fraction:
    """Read an exact number above 0."""
    number = as_fraction(value, name)
    if number <= 0:
        raise ValueError(f"{name} must be above 0")
    return number


def between_0_and_1(value: object, name: str) -> Fraction:
    """Read an exact number strictly between 0 and 1."""
    number = as_fraction(value, name)
    if not 0 < number < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1")
    return number


def whole(value: object, name: str, least: int = 1) -> int:
    """Read a whole number of at least `least`."""
    expected = f"{name} must be a whole number of at least {least}"
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{expected}, not {type(value).__name__}")
    if value < least:
        raise ValueError(expected)
    return int(value)


def as_frame(table: object) -> pd.DataFrame:
    """Return a table of pandas as it is, another library's by its ``to_pandas()``."""
    found = table if isinstance(table, pd.DataFrame) or not hasattr(table, "to_pandas") else table.to_pandas()
    if not isinstance(found, pd.DataFrame):
        expected = "a pandas DataFrame, a table with to_pandas(), or queries.Rows"
        raise TypeError(f"expected {expected}, not {type(table).__name__}")
    return found
