"""The public universe: which yes/no attributes a row has, and which rows can exist."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pandas as pd

from queries.expressions import Booleans, parse, shorten, suggestion

Bits = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]

MAX_TABLE_ATTRIBUTES = 20  # a table of all cells is made up to 2^20
MAX_CODE_ATTRIBUTES = 62  # cell codes are int64

_NULLABLE = (
    *(pd.BooleanDtype, pd.Int8Dtype, pd.Int16Dtype, pd.Int32Dtype, pd.Int64Dtype),
    *(pd.UInt8Dtype, pd.UInt16Dtype, pd.UInt32Dtype, pd.UInt64Dtype),
)


class DataError(ValueError):
    """The table is outside the declared universe.

    Its text names a column, never a value. That it was raised at all depends on the data, so it is
    for the curator, and it says so.
    """

    def __init__(self, message: str) -> None:
        super().__init__(f"{message} (this looked at the data: for the curator only)")


@dataclass(frozen=True, slots=True)
class Domain:
    """The universe {0,1}^d of rows, or the part of it that can exist.

    Cells are numbered in the order of ``itertools.product((0, 1), repeat=d)``: the first attribute is
    the most significant bit.

    Parameters
    ----------
    attributes
        Names of the yes/no attributes, distinct and not empty.
    valid
        Which cells can exist (structural zeros are the others): a predicate text such as
        ``"~(child & married)"``, or the allowed cells as integer codes; None: all 2^d.

    Examples
    --------
    >>> Domain(["a", "b"]).table().tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> Domain(["a", "b"], valid="a | ~b").cells().tolist()
    [0, 2, 3]
    """

    attributes: tuple[str, ...]
    valid: str | tuple[int, ...] | None = None

    def __init__(self, attributes: Iterable[str], valid: str | Iterable[int] | None = None) -> None:
        if isinstance(attributes, str):
            raise TypeError("attributes must be a list of names, not one text")
        names = tuple(attributes)
        _check_names(names)
        object.__setattr__(self, "attributes", names)
        if valid is not None:
            valid = _checked_predicate(valid, names) if isinstance(valid, str) else _codes(valid, len(names))
        object.__setattr__(self, "valid", valid)
        if valid is not None and self.size == 0:
            raise ValueError("valid leaves no cell: no row could exist")

    @property
    def size(self) -> int:
        """N, the number of cells that can exist."""
        if self.valid is None:
            return 1 << len(self.attributes)
        return len(self.valid) if isinstance(self.valid, tuple) else len(self.cells())

    def cells(self) -> Integers:
        """Return the codes of the cells that can exist, ascending, shape (N,), int64 (read-only).

        ValueError beyond 20 attributes: there is no table of 2^d cells then.
        """
        return _cells(self)

    def table(self) -> Bits:
        """Return the cells that can exist as 0/1 rows, shape (N, d), uint8."""
        shifts = np.arange(len(self.attributes) - 1, -1, -1, dtype=np.int64)
        return ((self.cells()[:, None] >> shifts) & 1).astype(np.uint8)

    def contains(self, bits: Bits) -> Booleans:
        """Tell which 0/1 rows (shape (r, d)) are cells that can exist."""
        if self.valid is None:
            return np.ones(len(bits), dtype=bool)
        if isinstance(self.valid, str):
            columns = dict(zip(self.attributes, bits.astype(bool).T, strict=True))
            return parse(self.valid).evaluate(columns.__getitem__)
        weights = np.int64(1) << np.arange(len(self.attributes) - 1, -1, -1, dtype=np.int64)
        return np.isin(bits.astype(np.int64) @ weights, np.array(self.valid, dtype=np.int64))

    def encode(self, frame: pd.DataFrame) -> Bits:
        """Read a table of bool or 0/1 integer columns as 0/1 rows, shape (n, d), columns as here.

        The frame's columns may stand in any order but must be the attributes, no more and no less.

        Raises
        ------
        ValueError, TypeError
            Wrong columns or dtypes (seen without looking at a value).
        DataError
            A value that is neither 0 nor 1, a gap, or a row that `valid` rules out.
        """
        _check_columns(frame, self.attributes)
        bits = np.empty((len(frame), len(self.attributes)), dtype=np.uint8)
        for i, name in enumerate(self.attributes):
            bits[:, i] = _zero_one(frame[name], name)
        if not self.contains(bits).all():
            raise DataError("a row is outside the domain's valid cells")
        return bits

    def decode(self, bits: Bits, like: pd.DataFrame | None = None) -> pd.DataFrame:
        """Write 0/1 rows as a table: int64 columns, or the columns, order and dtypes of `like`."""
        columns = {name: bits[:, i].astype(np.int64) for i, name in enumerate(self.attributes)}
        frame = pd.DataFrame(columns, columns=list(self.attributes))
        if like is None:
            return frame
        return frame[list(like.columns)].astype({name: like[name].dtype for name in like.columns})


@lru_cache(maxsize=32)
def _cells(domain: Domain) -> Integers:
    d = len(domain.attributes)
    if isinstance(domain.valid, tuple):
        cells = np.array(domain.valid, dtype=np.int64)
    elif d > MAX_TABLE_ATTRIBUTES:
        raise ValueError(
            f"a table of all cells is made for at most {MAX_TABLE_ATTRIBUTES} attributes, not {d}"
        )
    else:
        cells = np.arange(1 << d, dtype=np.int64)
        if domain.valid is not None:
            held = parse(domain.valid).evaluate(
                lambda name: (cells >> (d - 1 - domain.attributes.index(name)) & 1).astype(bool)
            )
            cells = cells[held]
    cells.setflags(write=False)
    return cells


def _check_names(names: tuple[str, ...]) -> None:
    if not names:
        raise ValueError("a domain needs at least one attribute")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"attribute names must be text, not {type(name).__name__}")
        if not name.strip() or "`" in name:
            raise ValueError(f"attribute name {name!r}: expected a text that is not empty, without backticks")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"attribute name {repeated[0]!r} stands more than once")


def _checked_predicate(text: str, names: tuple[str, ...]) -> str:
    for name in parse(text).names:
        if name not in names:
            raise ValueError(f"valid names an unknown attribute {shorten(name)!r}{suggestion(name, names)}")
    return text


def _codes(cells: Iterable[int], d: int) -> tuple[int, ...]:
    if d > MAX_CODE_ATTRIBUTES:
        raise ValueError(f"valid as a list of cells needs at most {MAX_CODE_ATTRIBUTES} attributes")
    given = list(cells)
    if any(isinstance(c, bool | np.bool_) or not isinstance(c, int | np.integer) for c in given):
        raise TypeError("valid must be a predicate text or a list of integer cell codes")
    codes = tuple(sorted({int(c) for c in given}))
    if codes and not 0 <= codes[0] <= codes[-1] < 1 << d:
        raise ValueError(f"valid: cell codes must lie in 0 .. 2^{d} - 1")
    return codes


def _check_columns(frame: pd.DataFrame, attributes: tuple[str, ...]) -> None:
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"expected a pandas DataFrame, not {type(frame).__name__}")
    if not frame.columns.is_unique:
        raise ValueError("the table has two columns of one name")
    given = list(frame.columns)
    for name in attributes:
        if name not in given:
            raise ValueError(f"the table has no column {name!r}{suggestion(name, map(str, given))}")
    for column in given:
        if column not in attributes:
            raise ValueError(
                f"column {column!r} is not an attribute of the domain: select the columns to release"
            )


def _zero_one(column: pd.Series, name: str) -> Bits:
    dtype = column.dtype
    plain = isinstance(dtype, np.dtype) and dtype.kind in "biu"
    # a list of what is allowed: categories, for one, hold the values that occur
    if not plain and not isinstance(dtype, _NULLABLE):
        kind = dtype if isinstance(dtype, np.dtype) else type(dtype).__name__  # whose text may hold values
        raise TypeError(f"column {name!r} has dtype {kind}: expected bool or 0/1 integers")
    if column.isna().any():
        raise DataError(f"column {name!r} has missing values: expected bool or 0/1 throughout")
    values = column.to_numpy(dtype=dtype if isinstance(dtype, np.dtype) else dtype.type)
    if not ((values == 0) | (values == 1)).all():
        raise DataError(f"column {name!r} has values other than 0 and 1")
    return values.astype(np.uint8)
