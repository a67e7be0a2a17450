"""Tables of pandas and its kin, and the universe and rows that they stand for."""

import pandas as pd

from queries.domain import Domain
from queries.rows import Rows


def as_frame(table: object) -> pd.DataFrame:
    """Return a table of pandas as it is, another library's by its ``to_pandas()``."""
    found = table if isinstance(table, pd.DataFrame) or not hasattr(table, "to_pandas") else table.to_pandas()
    if not isinstance(found, pd.DataFrame):
        expected = "a pandas DataFrame, a table with to_pandas(), or queries.Rows"
        raise TypeError(f"expected {expected}, not {type(table).__name__}")
    return found


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
    return data if isinstance(data, Rows) else Rows.from_frame(domain, data)
