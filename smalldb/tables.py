"""Reading tables of yes/no columns, and writing them."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

import numpy as np
import pandas as pd

from queries import DataError, Domain, Rows
from queries.expressions import suggestion

# what a field can hold, and the spelling that it belongs to
_FIELDS = {"0": (0, "0/1"), "1": (1, "0/1"), "false": (0, "true/false"), "true": (1, "true/false")}


def read_domain(path: str, columns: Sequence[str] | None = None, valid: str | None = None) -> Domain:
    """Read the universe from the first line of a CSV file, which holds the column names; no data.

    Parameters
    ----------
    path
        The file, UTF-8.
    columns
        Which columns to take, in this order; by default all.
    valid
        Predicate for the cells that can exist (see `queries.Domain`).

    Raises
    ------
    OSError
        The file cannot be read.
    ValueError
        Empty, no CSV in UTF-8, bad column names, an unknown column.
    """
    with _open(path) as file:
        header = _header(_records(file), path)
    if columns is None:
        if any(not name.strip() for name in header):
            raise ValueError(
                f"{path}: a column name in the first line is empty (an index? choose the columns)"
            )
        return Domain(header, valid)
    chosen = [name for name in header if name.strip() in columns]
    known = {name.strip(): name for name in chosen}
    for name in columns:
        if name not in known:
            raise ValueError(f"{path} has no column {name!r}{suggestion(name, header)}")
    return Domain([known[name] for name in columns], valid)


def read_csv(path: str, domain: Domain) -> Rows:
    """Count the rows of a CSV file of 0/1 or true/false columns.

    Columns that the domain lacks are passed over.
    A column is spelled 0/1 or true/false (in any case) throughout. Memory grows with the distinct rows.

    Raises
    ------
    OSError, ValueError
        As `read_domain`.
    DataError
        A line that is no CSV or of another length; a field that its column cannot hold: names the column.
    """
    with _open(path) as file:
        records = _records(file)
        header = _header(records, path)
        places = [header.index(name) for name in domain.attributes]
        width, counted = len(header), Counter[tuple[str, ...]]()
        for record in records:
            if record is None or len(record) != width:
                raise DataError(f"{path} is not a CSV file with as many fields in every line")
            counted[tuple([record[i] for i in places])] += 1
    bits = np.zeros((len(counted), len(places)), dtype=np.uint8)
    for j, name in enumerate(domain.attributes):
        bits[:, j] = _column([row[j].strip().lower() for row in counted], name)
    return Rows.from_counts(domain, domain.decode(bits), counted.values())


def to_csv(frame: pd.DataFrame, spelling: str = "0/1") -> str:
    """Write a table as CSV text, its fields spelled "0/1" or "true/false"."""
    spelled = frame.astype(int) if spelling == "0/1" else frame.replace({0: "false", 1: "true"})
    buffer = io.StringIO()
    spelled.to_csv(buffer, index=False, lineterminator="\n")
    return buffer.getvalue()


def _open(path: str) -> TextIO:
    """Open a CSV file; bytes that are not UTF-8 become surrogates, which no name and no field may hold."""
    return Path(path).open(encoding="utf-8-sig", errors="surrogateescape", newline="")


def _records(file: TextIO) -> Iterator[list[str] | None]:
    """Yield the records that are not blank; None for what is no CSV, and then no more."""
    reader = csv.reader(file, strict=True)
    while True:
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error:  # not chained: nothing of the data may travel in an error
            record = None
        if record is None or record:
            yield record
        if record is None:
            return


def _header(records: Iterator[list[str] | None], path: str) -> list[str]:
    header = next(records, [])
    if header is None or re.search("[\udc80-\udcff\\x00-\\x08]", "".join(header)):
        raise ValueError(f"{path} is not a CSV file in UTF-8")
    if not header:
        raise ValueError(f"{path} is empty: expected a first line with column names")
    if all(name.strip().lower() in _FIELDS for name in header):
        raise ValueError(f"{path}: the first line must hold column names, not data")
    if len(header) == 1 and any(sign in header[0] for sign in ";\t"):
        raise ValueError(f"{path}: the columns must be separated by commas")
    repeated = [
        name for name, times in Counter(name.strip() for name in header).items() if times > 1 and name
    ]
    if repeated:
        raise ValueError(f"{path}: column name {repeated[0]!r} stands more than once")
    return header


def _column(fields: list[str], name: str) -> list[int]:
    if "" in fields:
        raise DataError(f"column {name!r} has missing values: expected 0/1 or true/false throughout")
    if not _FIELDS.keys() >= set(fields) or len({_FIELDS[field][1] for field in fields}) > 1:
        raise DataError(f"column {name!r} is not spelled 0/1 or true/false throughout")
    return [_FIELDS[field][0] for field in fields]
