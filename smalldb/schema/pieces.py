"""Tables that come in pieces, and their sum."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from queries import DataError, Domain, Rows
from queries.arrays import Codes, Integers
from queries.broken import RuledOut, told
from queries.late import pd
from queries.packing import merge, pack_codes, unpack_codes
from queries.rows import MAX_TOTAL

Fields: TypeAlias = "pd.Series[Any] | npt.NDArray[Any]"
Piece: TypeAlias = tuple[Sequence[Fields], Sequence[int] | None]
"""Columns of equal length, and how often each of their rows occurs (None: once)."""

CHUNK = 1 << 16  # rows of a piece

_COUNT = re.compile("[0-9]{1,19}")


class Memo(dict[str, int]):
    """The numbers of texts, each computed once; by itself, the order in which they come."""

    def __init__(self, number: Callable[[str], int] | None = None) -> None:
        self._number = number

    def __missing__(self, text: str) -> int:
        found = self[text] = len(self) if self._number is None else self._number(text)
        return found

    def of(self, texts: Collection[str]) -> npt.NDArray[np.int32]:
        """Return the number of each text."""
        return np.fromiter(map(self.__getitem__, texts), dtype=np.int32, count=len(texts))


def tally(
    domain: Domain,
    pieces: Iterable[tuple[Codes, Sequence[int] | Integers]],
    step: str = "",
    outside: set[int] | None = None,
) -> Rows:
    """Add up rows of codes; memory grows with the distinct rows."""
    outside, refused = set() if outside is None else outside, False  # those of all pieces are told
    runs = [Rows.from_codes(domain, np.zeros((0, len(domain.sizes)), dtype=np.uint8))]
    n = 0
    for codes, counts in pieces:
        n += int(counts.sum()) if isinstance(counts, np.ndarray) else sum(counts)
        if n >= MAX_TOTAL:
            raise DataError("counts add up to 2^62 or more")
        try:
            runs.append(Rows.from_codes(domain, codes, np.asarray(counts, dtype=np.int64)))
        except RuledOut as error:
            outside |= error.numbers
            refused = True
            continue
        # a run is merged with those that are no longer, so each row is moved a few times, not once a piece
        while len(runs) > 1 and len(runs[-2].counts) <= 2 * len(runs[-1].counts):
            runs.append(runs.pop().plus(runs.pop()))
    if refused or outside:
        raise RuledOut(told(domain.valid, outside) + step, outside)
    while len(runs) > 1:
        runs.append(runs.pop().plus(runs.pop()))
    return runs[0]


def distinct(codes: Codes, sizes: Sequence[int]) -> tuple[Codes, Integers]:
    """Return the distinct rows of rows of codes, shape (r, C), ascending, and how often each occurs."""
    words, times = merge(pack_codes(codes, sizes))
    return unpack_codes(words, sizes), times


def objects(values: Sequence[object]) -> npt.NDArray[Any]:
    """Return values of any types as a column, shape (r,): each by itself, also a list."""
    return np.fromiter(values, dtype=object, count=len(values))


def occurrences(
    fields: Sequence[Fields], times: Sequence[int] | None, counts: str | None
) -> Sequence[int] | None:
    """Return how often each row of a piece occurs; None: once."""
    if counts is None:
        return times
    stated = read_counts(fields[-1], counts)
    return stated if times is None else [a * b for a, b in zip(stated, times, strict=True)]


def read_counts(fields: Fields, name: str) -> list[int]:
    """Read a column that says how often each row occurs."""
    spelled = [str(value).strip() for value in np.asarray(fields)]
    if not all(map(_COUNT.fullmatch, spelled)):
        raise DataError(f"column {name!r} must hold counts: whole numbers, none negative")
    return [int(text) for text in spelled]
