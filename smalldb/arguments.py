"""Reading what a user gives: numbers, exact, in range, refused by name; and tables."""

from fractions import Fraction
from typing import Any

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
    found = table
    if not isinstance(table, pd.DataFrame) and hasattr(table, "to_pandas"):
        match type(table).__module__.partition(".")[0]:
            case "pyarrow":
                found = from_arrow(table)
            case "polars":
                found = table.to_pandas(integer_object_nulls=True)
            case _:
                found = table.to_pandas()
    if not isinstance(found, pd.DataFrame):
        expected = "a pandas DataFrame, a table with to_pandas(), or queries.Rows"
        raise TypeError(f"expected {expected}, not {type(table).__name__}")
    return found


def from_arrow(table: Any, **options: bool) -> pd.DataFrame:
    """Return a table of Arrow as a frame in which a value does not depend on the others of its column.

    Integers beside a gap stay integers: as floats large ones would lose digits. A dictionary becomes its
    values: pandas would refuse one with a gap in it, or with both 0.0 and -0.0.
    """
    from pyarrow import types

    for i, field in enumerate(table.schema):
        if types.is_dictionary(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(field.type.value_type))
    frame: pd.DataFrame = table.to_pandas(integer_object_nulls=True, **options)
    return frame
