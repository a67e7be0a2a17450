"""Tables that come in pieces, and their sum."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from queries import DataError, Domain, Rows
from queries.domain import Bits
from queries.rows import pack

Fields: TypeAlias = "pd.Series[Any] | npt.NDArray[Any]"
Piece: TypeAlias = tuple[Sequence[Fields], Sequence[int] | None]
"""Columns of equal length, and how often each of their rows occurs (None: once)."""

CHUNK = 1 << 16  # rows of a piece

_COUNT = re.compile("[0-9]{1,19}")


def tally(domain: Domain, pieces: Iterable[tuple[Bits, Sequence[int]]]) -> Rows:
    """Add up 0/1 rows, shape (r, d), with how often each occurs; memory grows with the distinct rows only.

    Raises
    ------
    DataError
        A row outside the domain's valid cells, or counts that add up to 2^62 or more.
    """
    total = Rows.from_counts(domain, domain.decode(np.zeros((0, len(domain.attributes)), dtype=np.uint8)), [])
    waiting: list[Bits] = []
    times: list[int] = []

    def added() -> Rows:
        bits = np.vstack([total.bits(), *waiting])
        return Rows.from_counts(domain, domain.decode(bits), [*total.counts.tolist(), *times])

    for bits, counts in pieces:
        waiting.append(bits)
        times += counts
        if len(times) > max(CHUNK, len(total.counts)):  # so each row is moved a few times, not once a piece
            total = added()
            waiting, times = [], []
    return added()


def distinct(bits: Bits) -> tuple[Bits, list[int]]:
    """Return the distinct rows of 0/1 rows, shape (r, d), and how often each occurs."""
    words = pack(bits)
    keys = words[:, 0] if words.shape[1] == 1 else words
    _, places, times = np.unique(keys, axis=0, return_index=True, return_counts=True)
    return bits[places], times.tolist()


def read_counts(fields: Fields, name: str) -> list[int]:
    """Read a column that says how often each row occurs.

    Raises
    ------
    DataError
        A count that is negative or no whole number (a float is none): names the column.
    """
    spelled = [str(value).strip() for value in np.asarray(fields)]
    if not all(map(_COUNT.fullmatch, spelled)):
        raise DataError(f"column {name!r} must hold counts: whole numbers, none negative")
    return [int(text) for text in spelled]
