"""The privacy profile of one draw of any mechanism, by its laws: delta of every epsilon."""

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from queries.arrays import Floats, Integers
from smalldb.auditing.laws import MOST_LAWS, CustomMechanism, Enclosure, enclosed
from smalldb.counting.databases import check_budget, databases, neighbours_of
from smalldb.exact.levels import exp_enclosure
from smalldb.exact.numbers import Number, as_fraction, between_0_and_1, float_above
from smalldb.planning import Neighbours

MOST_RATIOS = 1 << 24  # pairs of neighbours, both ways, x outcomes
MOST_EPSILON = 600  # its exponential is a float
BITS = 256  # of exp(-epsilon)
NEAR = 1e-9  # far more than floats are off


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LawProfile:
    """
    How well neighbours can be told apart at worst by one draw of a mechanism; see `Profile`.

    Floats find the pairs that can be the worst, and fractions compare them.

    Attributes
    ----------
    pairs
        How many pairs of neighbours there are.
    """

    pairs: int
    _laws: list[dict[Hashable, Enclosure]]
    _floats: Floats  # shape (databases, outcomes)
    _ends: Integers  # shape (2 pairs, 2): positions of x and of x'

    def __repr__(self) -> str:
        return f"<LawProfile of {self.pairs} pairs of neighbours>"

    def delta(self, epsilon: Number) -> float:
        """Return the least delta for which a draw is (epsilon, delta)-DP, rounded up."""
        return min(1.0, float_above(self.enclosed(epsilon)[1]))

    def enclosed(self, epsilon: Number) -> Enclosure:
        """Return (low, high) of that delta, as near as the laws are enclosed."""
        exact = as_fraction(epsilon, "epsilon")
        if not 0 <= exact <= MOST_EPSILON:
            raise ValueError(f"epsilon must be from 0 to {MOST_EPSILON} for a profile of laws")
        here, there = self._floats[self._ends[:, 0]], self._floats[self._ends[:, 1]]
        value = np.maximum(here - np.exp(float(exact)) * there, 0).sum(axis=1)
        near = np.flatnonzero(value >= value.max() - NEAR * (1 + np.exp(float(exact))))
        found = [self._over(x, other, exact) for x, other in self._ends[near].tolist()]
        return max(low for low, _ in found), max(high for _, high in found)

    def total_variation(self) -> float:
        """Return the largest total variation between neighbours, rounded up: delta at epsilon 0."""
        return self.delta(0)

    def epsilon_for(self, delta: Number) -> float:
        """Return an epsilon for which a draw is (epsilon, delta)-DP, within 1e-9 of the least."""
        allowed = between_0_and_1(delta, "delta")
        if self.enclosed(0)[1] <= allowed:
            return 0.0
        low, high = 0.0, float(MOST_EPSILON)
        if self.enclosed(MOST_EPSILON)[1] > allowed:
            raise ValueError(f"delta: no epsilon up to {MOST_EPSILON} has it")
        while high - low > 1e-9 * max(high, 1e-9):
            middle = (low + high) / 2
            low, high = (low, middle) if self.enclosed(middle)[1] <= allowed else (middle, high)
        return high

    def _over(self, here: int, there: int, epsilon: Fraction) -> Enclosure:
        """Enclose the sum of P(o | x) - e^epsilon P(o | x') where that is above 0."""
        bits = BITS + int(3 * epsilon / 2)  # e^-x is more than 2^(-3 x / 2)
        low, high = exp_enclosure(epsilon, bits)
        unit, least, most = 1 << bits, Fraction(0), Fraction(0)
        for outcome, (lowest, highest) in self._laws[here].items():
            other = self._laws[there].get(outcome, (Fraction(0), Fraction(0)))
            least += max(lowest - other[1] * unit / low, Fraction(0))
            most += max(highest - other[0] * unit / high, Fraction(0))
        return least, most


def profile_of_laws(mechanism: CustomMechanism, cells: int, n: int, relation: Neighbours) -> LawProfile:
    """Ask a mechanism for its laws on all databases, and pair the neighbours."""
    check_budget(cells, n, relation, lambda tables, pairs: tables <= MOST_LAWS)
    tables = list(databases(cells, n, relation))
    position = {x: i for i, x in enumerate(tables)}
    once = [(position[x], position[other]) for x in tables for other in neighbours_of(x, n, relation)]
    laws = [enclosed(mechanism(x)) for x in tables]
    outcomes = {outcome: i for i, outcome in enumerate(dict.fromkeys(o for law in laws for o in law))}
    if 2 * len(once) * len(outcomes) > MOST_RATIOS:
        raise ValueError(f"a profile of {len(once)} pairs of neighbours is too large: use a smaller n")
    floats = np.zeros((len(tables), len(outcomes)))
    for row, law in zip(floats, laws, strict=True):
        for outcome, (low, high) in law.items():
            row[outcomes[outcome]] = float((low + high) / 2)
    ends = np.array([*once, *((b, a) for a, b in once)], dtype=np.int64)
    return LawProfile(len(once), laws, floats, ends)
