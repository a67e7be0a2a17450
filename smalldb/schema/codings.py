"""How the categories of a column become yes/no attributes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from queries.domain import Bits


@final
@dataclass(frozen=True, slots=True, eq=False)
class Coding:
    """The attributes of a column, and which of them hold at each of its categories."""

    names: tuple[str, ...]  # of the attributes
    # shape (categories, attributes), uint8 (read-only): the attributes that hold in each category
    table: Bits

    def __post_init__(self) -> None:
        self.table.setflags(write=False)


def one_hot(names: Sequence[str]) -> Coding:
    """One attribute a category, of which exactly one holds."""
    return Coding(tuple(names), np.eye(len(names), dtype=np.uint8))


def thermometer(names: Sequence[str], gap: str | None = None) -> Coding:
    """One attribute a threshold: category i reaches the first i of them. A gap, the last one, reaches none.

    >>> thermometer(["a", "b"], "gap").table.tolist()
    [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 0, 1]]
    """
    table = np.tri(len(names) + 1, len(names), -1, dtype=np.uint8)
    if gap is not None:
        table = np.pad(table, ((0, 1), (0, 1)))
        table[-1, -1] = 1
    return Coding((*names, *([] if gap is None else [gap])), table)


def binary(column: str, names: Sequence[str]) -> Coding:
    """The number of the category in bits.

    An attribute is named by the categories whose bit is 1, or by its number if they are more than four.

    >>> binary("job", ["job=none", "job=part", "job=full"]).names
    ('job=full', 'job=part')
    """
    width = (len(names) - 1).bit_length()
    table = (np.arange(len(names))[:, None] >> np.arange(width)[::-1] & 1).astype(np.uint8)
    bits = []
    for i, settings in enumerate(table.T, start=1):
        first, *others = [name for name, bit in zip(names, settings, strict=True) if bit]
        joined = "|".join([first, *(name.removeprefix(f"{column}=") for name in others)])
        bits.append(joined if len(others) < 4 else f"{column}.bit{i}")
    return Coding(tuple(bits), table)
