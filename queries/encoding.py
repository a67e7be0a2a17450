"""A column of a data frame as codes, and back; rows of codes packed into words."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from queries.arrays import Codes, Integers, Words, pd
from queries.columns import Bits, Column
from queries.expressions import suggestion


def codes_dtype(sizes: Sequence[int]) -> np.dtype[np.unsignedinteger]:
    """Return the narrowest unsigned integers that hold every code: uint8 for up to 256."""
    return np.min_scalar_type(max(sizes) - 1)


def pack(bits: Bits) -> Words:
    """Pack 0/1 rows (r, d) into words (r, ceil(d / 64)): the row as a big-endian integer."""
    rows, d = bits.shape
    words = -(-d // 64)
    padded = np.zeros((rows, 64 * words), dtype=np.uint8)
    padded[:, 64 * words - d :] = bits
    return np.packbits(padded, axis=1).view(">u8").astype(np.uint64)


def unpack(words: Words, d: int) -> Bits:
    """Undo `pack`."""
    bytes_ = np.ascontiguousarray(words.astype(">u8")).view(np.uint8)
    return np.unpackbits(bytes_, axis=1)[:, bytes_.shape[1] * 8 - d :]


def width(sizes: Sequence[int]) -> int:
    """Return the words of a row: each column takes the bits of its largest code."""
    return -(-sum((k - 1).bit_length() for k in sizes) // 64)


def pack_codes(codes: Codes, sizes: Sequence[int]) -> Words:
    """Pack rows of codes (r, C) into words: big-endian, the first column first, so words are in row order."""
    if max(sizes) == 2:
        return pack(codes.astype(np.uint8, copy=False))
    words = np.zeros((len(codes), width(sizes)), dtype=np.uint64)
    for c, (word, shift, bits) in enumerate(_fields(sizes)):
        values = codes[:, c].astype(np.uint64)
        words[:, word] |= values << np.uint64(shift)
        if shift + bits > 64:
            words[:, word - 1] |= values >> np.uint64(64 - shift)
    return words


def unpack_codes(words: Words, sizes: Sequence[int]) -> Codes:
    """Undo `pack_codes`."""
    if max(sizes) == 2:
        return unpack(words, len(sizes))
    codes = np.empty((len(words), len(sizes)), dtype=codes_dtype(sizes))
    for c, (word, shift, bits) in enumerate(_fields(sizes)):
        values = words[:, word] >> np.uint64(shift)
        if shift + bits > 64:
            values = values | words[:, word - 1] << np.uint64(64 - shift)
        codes[:, c] = values & np.uint64((1 << bits) - 1)
    return codes


def _fields(sizes: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return the word of each column's lowest bit, the shift in it, and the bits."""
    at, fields = 0, []
    words = width(sizes)
    for k in reversed(sizes):
        bits = (k - 1).bit_length()
        fields.append((words - 1 - at // 64, at % 64, bits))
        at += bits
    return fields[::-1]


def merge(words: Words, counts: Integers | None = None) -> tuple[Words, Integers]:
    """Bring equal rows together, in ascending order; without counts each row occurs once."""
    if words.shape[1] == 1:
        if counts is None:
            distinct, times = np.unique(words[:, 0], return_counts=True)
            return distinct[:, None], times.astype(np.int64)
        order = np.argsort(words[:, 0], kind="stable")
    else:
        order = np.lexsort(words.T[::-1])
    ordered, taken = words[order], None if counts is None else counts[order]
    del words, counts, order  # of tens of millions of rows: what no caller holds is free from here on
    new = np.ones(len(ordered), dtype=bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    starts = np.flatnonzero(new)
    if taken is None:
        merged = np.diff(starts, append=len(ordered))
    else:
        merged = np.add.reduceat(taken, starts) if len(starts) else taken
    del new, taken
    return ordered[starts], merged.astype(np.int64, copy=False)


def merge_runs(words: Words, counts: Integers, others: Words, times: Integers) -> tuple[Words, Integers]:
    """Bring equal rows of two tables together, whose rows are distinct and ascend."""
    if words.shape[1] > 1:
        return merge(np.concatenate([words, others]), np.concatenate([counts, times]))
    if len(words) < len(others):
        words, counts, others, times = others, times, words, counts
    long, short = words[:, 0], others[:, 0]
    at = np.searchsorted(long, short)
    known = at < len(long)
    known[known] = long[at[known]] == short[known]
    counts = counts.copy()
    counts[at[known]] += times[known]
    new = np.flatnonzero(~known)
    places = at[new] + np.arange(len(new))
    kept = np.ones(len(long) + len(new), dtype=bool)
    kept[places] = False
    distinct, merged = np.empty(len(kept), dtype=np.uint64), np.empty(len(kept), dtype=np.int64)
    distinct[places], merged[places] = short[new], times[new]
    distinct[kept], merged[kept] = long, counts
    return distinct[:, None], merged


_OTHERS = " (others: schema=..., or domain=Domain([Column(name, categories), ...]))"


class DataError(ValueError):
    """The table has a value outside the declared universe.

    Its text names a column, never a value. That it was raised at all depends on the data, so it is
    for the curator, and it says so.
    """

    def __init__(self, message: str) -> None:
        super().__init__(f"{message} (this looked at the data: for the curator only)")


def check_columns(frame: pd.DataFrame, names: tuple[str, ...], word: str) -> None:
    """Refuse a table that has not these columns, and no others."""
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"expected a pandas DataFrame, not {type(frame).__name__}")
    if not frame.columns.is_unique:
        raise ValueError("the table has two columns of one name")
    present, known = list(frame.columns), set(names)
    for name in names:
        if name not in present:
            raise ValueError(f"the table has no column {name!r}{suggestion(name, map(str, present))}")
    for column in present:
        if column not in known:
            raise ValueError(f"column {column!r} is not {word} of the domain: select the columns to release")


def read_column(series: pd.Series, column: Column) -> npt.NDArray[np.integer]:
    """Return the code of each value, shape (n,), by the kind of the column: see `Column`."""
    dtype, name = series.dtype, column.name
    plain = dtype.kind if isinstance(dtype, np.dtype) else ""
    whole = plain in ("b", "i", "u") or _is_nullable(dtype)
    number = whole or plain == "f" or isinstance(dtype, pd.Float32Dtype | pd.Float64Dtype)
    # a list of what is allowed: categories, for one, hold the values that occur
    text = plain == "O" or isinstance(dtype, pd.StringDtype | pd.CategoricalDtype)
    expected, fits = {
        "yes/no": (f"bool or 0/1 integers{_OTHERS}", whole),
        "labels": ("the labels of its categories", text or whole),
        "integers": (f"integers from 0 to {column.size - 1}", whole and plain != "b"),
        "cuts": ("numbers, or the labels of its bins", text or number),
    }[column.kind]
    if not fits:
        kind = dtype if isinstance(dtype, np.dtype) else type(dtype).__name__  # whose text may hold values
        raise TypeError(f"column {name!r} has dtype {kind}: expected {expected}")
    if series.isna().any():
        raise DataError(f"column {name!r} has missing values: expected {expected}")
    if column.kind in ("yes/no", "integers"):
        values = _plain(series)
        codes = np.where((values >= 0) & (values < column.size), values.astype(np.int64), -1)
    elif column.kind == "cuts" and number:
        codes = _bins(_plain(series), column)
    else:
        codes = _labelled(series, column)
    if (codes < 0).any():
        raise DataError(f"column {name!r} has values that are none of its categories: expected {expected}")
    return codes


def write_column(codes: npt.NDArray[np.integer], column: Column, like: pd.Series | None) -> pd.Series:
    """Write codes as 0/1, integers or labels (of bins, too)."""
    if column.yes_no or column.kind == "integers":
        values = pd.Series(codes.astype(np.int64))
    else:
        values = pd.Series(np.array(column.labels, dtype=object)[codes], dtype="str")
    if like is None or (
        column.kind == "cuts" and not isinstance(like.dtype, pd.StringDtype | pd.CategoricalDtype)
    ):
        return values
    if isinstance(like.dtype, pd.CategoricalDtype):  # the categories of the data may be those that occur
        return values.astype(pd.CategoricalDtype(list(column.labels), ordered=column.ordered))
    if not column.yes_no and not _holds(like.dtype, column):
        return values
    if like.dtype.kind == "b" and not column.yes_no:
        return (values == "True").astype(like.dtype)
    return values.astype(like.dtype)


def _holds(dtype: Any, column: Column) -> bool:
    """Tell whether a dtype can hold every category of a column, by its label."""
    if dtype.kind == "O" or isinstance(dtype, pd.StringDtype):
        return True
    if dtype.kind == "b":
        return {*column.labels} <= {"True", "False"}
    try:
        every = pd.Series([*map(int, column.labels)]).astype(dtype).tolist()
    except (ValueError, TypeError, OverflowError):
        return False
    return [*map(str, every)] == [*column.labels]  # integers that are too large may wrap around


def _labelled(series: pd.Series, column: Column) -> npt.NDArray[np.integer]:
    labels = pd.Index(column.labels, dtype=object)
    if isinstance(series.dtype, pd.CategoricalDtype):
        spelled = pd.Index([spell(value) for value in series.cat.categories], dtype=object)
        codes: npt.NDArray[np.integer] = labels.get_indexer(spelled)
        return codes[series.cat.codes.to_numpy()]
    values = series
    if series.dtype == object and {*map(type, series.tolist())} != {str}:
        # equal objects of several types, such as True and 1, are spelled apart: each by itself
        values = pd.Series([spell(value) for value in series.tolist()], dtype=object)
    inverse, distinct = pd.factorize(values)
    spelled = pd.Index([spell(value) for value in distinct], dtype=object)
    codes = labels.get_indexer(spelled)
    return codes[inverse] if len(codes) else np.zeros(0, dtype=np.int64)


def spell(value: object) -> str:
    """Spell a value as a CSV file does; a whole float, which may stand beside gaps, as an integer."""
    if isinstance(value, float | np.floating) and float(value).is_integer() and abs(float(value)) < 1 << 53:
        return str(int(value))
    return str(value)


def _bins(values: npt.NDArray[Any], column: Column) -> npt.NDArray[np.integer]:
    """Return the bin of each number, compared exactly: beyond 2^53 no double may stand for an integer."""
    if values.dtype.kind == "f":
        edges = np.array([float(cut) for cut in column.cuts])
        short = [Fraction(edge) < cut for edge, cut in zip(edges.tolist(), column.cuts, strict=True)]
        return np.searchsorted(np.where(short, np.nextafter(edges, np.inf), edges), values, side="right")
    values = values.astype(np.int64) if values.dtype.kind == "b" else values
    limits, least = np.iinfo(values.dtype), [ceil(cut) for cut in column.cuts]
    reached = sum(edge <= limits.min for edge in least)
    inside = [edge for edge in least if limits.min < edge <= limits.max]
    return reached + np.searchsorted(np.array(inside, dtype=values.dtype), values, side="right")


def _is_nullable(dtype: object) -> bool:
    """Tell whether a dtype is one of pandas' own for truth and whole numbers."""
    whole = (pd.Int8Dtype, pd.Int16Dtype, pd.Int32Dtype, pd.Int64Dtype)
    positive = (pd.UInt8Dtype, pd.UInt16Dtype, pd.UInt32Dtype, pd.UInt64Dtype)
    return isinstance(dtype, (pd.BooleanDtype, *whole, *positive))


def _plain(series: pd.Series) -> npt.NDArray[np.integer]:
    dtype = series.dtype
    plain: npt.NDArray[np.integer] = series.to_numpy(dtype if isinstance(dtype, np.dtype) else dtype.type)  # type: ignore[arg-type]
    return plain
