"""Tables of pandas and its kin, and the universe and rows that they stand for."""

from typing import Any

import pandas as pd

from queries.domain import Domain
from queries.rows import Rows


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


def universe_of(data: pd.DataFrame | Rows, domain: Domain | None) -> Domain:
    """Return the universe of a table: the given one, or all its columns, each 0 or 1."""
    if domain is not None and not isinstance(domain, Domain):
        raise TypeError(f"domain must be a queries.Domain, not {type(domain).__name__}")
    if isinstance(data, Rows):
        if domain not in (None, data.domain):
            raise ValueError("domain is not the domain of the given rows")
        return data.domain
    return Domain(data.columns) if domain is None else domain


def rows_of(data: pd.DataFrame | Rows, domain: Domain) -> Rows:
    """Bring a table into the form in which data travels."""
    return data.checked() if isinstance(data, Rows) else Rows.from_frame(domain, data)
