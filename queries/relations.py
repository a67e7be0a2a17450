"""Rules that are no predicates: a text that people read, and tables over few columns that it stands for."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from queries.arrays import Booleans
from queries.rules import Rule


@final
@dataclass(frozen=True, slots=True, init=False)
class Relation:
    """A rule of `Domain.valid` whose meaning is given: which settings of a few columns can exist.

    Parameters
    ----------
    text
        As it stands in `valid`.
    rules
        Of which all must hold.

    Examples
    --------
    >>> same = Relation("a is b", [Rule((0, 1), np.eye(2, dtype=bool))])
    >>> same.holds(np.array([[0, 0], [0, 1]])).tolist()
    [True, False]
    """

    text: str
    tables: tuple[tuple[tuple[int, ...], tuple[int, ...], bytes], ...]  # columns, sizes, truth: compared

    def __init__(self, text: str, rules: Iterable[Rule]) -> None:
        object.__setattr__(self, "text", text)
        tables = tuple((rule.columns, rule.allowed.shape, rule.allowed.tobytes()) for rule in rules)
        object.__setattr__(self, "tables", tables)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of which all must hold."""
        return tuple(
            Rule(columns, np.frombuffer(truth, dtype=bool).reshape(shape))
            for columns, shape, truth in self.tables
        )

    def holds(self, codes: npt.NDArray[np.integer]) -> Booleans:
        """Tell which rows of codes, shape (r, C), keep it."""
        held = np.ones(len(codes), dtype=bool)
        for rule in self.rules:
            held &= rule.holds(codes)
        return held
