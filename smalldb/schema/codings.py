"""How the places of a column become yes/no attributes."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import final

import numpy as np

from queries.domain import Bits
from queries.expressions import quote


@final
@dataclass(frozen=True, slots=True, eq=False)
class Coding:
    """The attributes of a column, and the setting of them that stands for each of its places.

    Attributes
    ----------
    names
        Of the attributes, most significant first.
    table
        Shape (places, attributes), uint8, distinct rows (read-only): the setting of each place.
    rule
        Predicate of the settings that stand for a place; None where every setting does.
    """

    names: tuple[str, ...]
    table: Bits
    rule: str | None

    def __post_init__(self) -> None:
        self.table.setflags(write=False)

    def places(self, bits: Bits) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Return the place that each row (shape (r, attributes)) stands for; KeyError: for none."""
        place_of = {setting.tobytes(): place for place, setting in enumerate(self.table)}
        rows = np.ascontiguousarray(bits, dtype=np.uint8)
        return np.fromiter((place_of[row.tobytes()] for row in rows), dtype=np.int64, count=len(rows))


def one_hot(names: Sequence[str]) -> Coding:
    """One attribute a place, of which exactly one holds.

    >>> one_hot(["a", "b", "c"]).rule
    '(a | b | c) & ~(a & (b | c)) & ~(b & c)'
    """
    quoted = [quote(name) for name in names]
    rules = [f"({' | '.join(quoted)})"]
    for i, name in enumerate(quoted[:-1], start=1):
        others = " | ".join(quoted[i:])
        rules.append(f"~({name} & {others})" if i == len(quoted) - 1 else f"~({name} & ({others}))")
    return Coding(tuple(names), np.eye(len(names), dtype=np.uint8), " & ".join(rules))


def thermometer(names: Sequence[str], gap: str | None = None) -> Coding:
    """One attribute a threshold: place i reaches the first i of them. A gap, the last place, reaches none.

    >>> thermometer(["a", "b"], "gap").table.tolist()
    [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 0, 1]]
    >>> thermometer(["a", "b"], "gap").rule
    '(a | ~b) & ~(a & gap)'
    """
    quoted = [quote(name) for name in names]
    rules = [f"({low} | ~{high})" for low, high in pairwise(quoted)]
    table = np.tri(len(names) + 1, len(names), -1, dtype=np.uint8)
    if gap is not None:
        rules.append(f"~({quoted[0]} & {quote(gap)})")
        table = np.pad(table, ((0, 1), (0, 1)))
        table[-1, -1] = 1
    return Coding((*names, *([] if gap is None else [gap])), table, " & ".join(rules) or None)


def binary(column: str, names: Sequence[str]) -> Coding:
    """The number of the place in bits; every setting stands for a place where they are 2, 4, 8, ...

    An attribute is named by the places whose bit is 1, or by its number if they are more than four.

    >>> binary("job", ["job=none", "job=part", "job=full"]).names
    ('job=full', 'job=part')
    >>> binary("job", ["job=none", "job=part", "job=full"]).rule
    '(~`job=full` | ~`job=part`)'
    """
    width = (len(names) - 1).bit_length()
    table = (np.arange(len(names))[:, None] >> np.arange(width)[::-1] & 1).astype(np.uint8)
    bits = []
    for i, settings in enumerate(table.T, start=1):
        first, *others = [name for name, bit in zip(names, settings, strict=True) if bit]
        joined = "|".join([first, *(name.removeprefix(f"{column}=") for name in others)])
        bits.append(joined if len(others) < 4 else f"{column}.bit{i}")
    return Coding(tuple(bits), table, _at_most([quote(bit) for bit in bits], len(names) - 1))


def _at_most(bits: Sequence[str], largest: int) -> str | None:
    """Predicate of the binary numbers up to the largest; None where all are."""
    if largest == (1 << len(bits)) - 1:
        return None
    low = largest & ((1 << len(bits) - 1) - 1)
    rest = _at_most(bits[1:], low)
    if largest >> len(bits) - 1:
        return f"(~{bits[0]} | {rest})"
    return f"~{bits[0]}" if rest is None else f"(~{bits[0]} & {rest})"
