"""Reading tables of yes/no columns, and writing them."""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from queries import DataError, Domain, Rows
from queries.expressions import suggestion

# what a field can hold, and the spelling that it belongs to; a column keeps to one spelling
_FIELDS = {"0": (0, "0/1"), "1": (1, "0/1"), "false": (0, "true/false"), "true": (1, "true/false")}


@dataclass(frozen=True, slots=True)
class Table:
    """A table read from a file.

    Attributes
    ----------
    rows
        Its distinct rows with counts (private).
    booleans
        The columns that are spelled true/false; the others are spelled 0/1.
    """

    rows: Rows
    booleans: tuple[str, ...]

    def spelled(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Give a released table the spelling of this one."""
        return frame.astype(dict.fromkeys(self.booleans, bool))


def read_csv(path: str, columns: Sequence[str] | None = None, valid: str | None = None) -> Table:
    """Count the rows of a CSV file of 0/1 or true/false columns.

    The first line holds the column names. Memory grows with the distinct rows, not with the file.

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
        Not a CSV file, bad column names, an unknown column (seen in the first line).
    DataError
        A field that is not 0/1 or true/false throughout its column: names the column only.
    """
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        lines = _lines(file, path)
        header = next(lines, None)
        if header is None:
            raise ValueError(f"{path} is empty: expected a first line with column names")
        places = _places(header, columns, path)
        domain = Domain([header[i] for i in places], valid)
        counted = Counter(map(tuple, _fields(lines, len(header), path)))
    bits = np.zeros((len(counted), len(places)), dtype=np.uint8)
    booleans = []
    for j, i in enumerate(places):
        fields = [row[i].strip().lower() for row in counted]
        spellings = {_FIELDS[field][1] for field in fields if field in _FIELDS}
        if "" in fields:
            raise DataError(f"column {header[i]!r} has missing values: expected 0/1 or true/false throughout")
        if len(spellings) > 1 or not _FIELDS.keys() >= set(fields):
            raise DataError(f"column {header[i]!r} is not spelled 0/1 or true/false throughout")
        bits[:, j] = [_FIELDS[field][0] for field in fields]
        booleans += [header[i]] if spellings == {"true/false"} else []
    rows = Rows.from_counts(domain, domain.decode(bits), counted.values())
    return Table(rows, tuple(booleans))


def to_csv(frame: pd.DataFrame) -> str:
    """Write a table as CSV text; booleans as true/false."""
    spelled = frame.copy()
    for name in frame.columns:
        if pd.api.types.is_bool_dtype(frame[name].dtype):
            spelled[name] = frame[name].map({True: "true", False: "false"})
    buffer = io.StringIO()
    spelled.to_csv(buffer, index=False, lineterminator="\n")
    return buffer.getvalue()


def _lines(file: io.TextIOBase, path: str) -> Iterator[list[str]]:
    """Yield the records that are not blank; whatever a reader trips over is "not a CSV file"."""
    try:
        for line in csv.reader(file, strict=True):
            if line:
                yield line
    except (csv.Error, UnicodeDecodeError):
        raise ValueError(f"{path} is not a CSV file in UTF-8") from None


def _fields(lines: Iterator[list[str]], width: int, path: str) -> Iterator[list[str]]:
    for line in lines:
        if len(line) != width:
            raise DataError(f"{path} is not a CSV file: a line has another number of fields than the first")
        yield line


def _places(header: list[str], columns: Sequence[str] | None, path: str) -> list[int]:
    if any(not name.strip() for name in header):
        raise ValueError(f"{path}: a column name in the first line is empty")
    repeated = [name for name, times in Counter(header).items() if times > 1]
    if repeated:
        raise ValueError(f"{path}: column name {repeated[0]!r} stands more than once")
    for name in columns or ():
        if name not in header:
            raise ValueError(f"{path} has no column {name!r}{suggestion(name, header)}")
    return [header.index(name) for name in (header if columns is None else columns)]
