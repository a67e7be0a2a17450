"""The privacy profile of SmallDB on a small instance: delta of every epsilon, and the trade-off curve."""

from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from math import inf, nextafter
from typing import overload

import numpy as np

from queries import Domain, QueryClass, Workload
from queries.arrays import Floats, Integers
from smalldb.auditing.convolving import BITS, Masses, power
from smalldb.auditing.laws import CustomMechanism
from smalldb.auditing.profile_of_laws import LawProfile, profile_of_laws
from smalldb.auditing.worst_case import EPSILONS
from smalldb.counting import multisets
from smalldb.counting.databases import count_pairs, neighbours_of
from smalldb.counting.tabulating import DIGITS, Instance, Tables, instance_of, tabulated
from smalldb.exact.enclosures import Real
from smalldb.exact.numbers import Number, as_fraction, between_0_and_1, float_above, positive, whole
from smalldb.planning import relation_of, workload_of

MOST_RATIOS = 1 << 24  # pairs of neighbours, both ways, x small databases
MOST_TERMS = 1 << 33  # laws x (releases x steps)^2
MOST_MASSES = 1 << 25  # laws x releases x steps
LEAST = Decimal("1e-100")  # below, a probability is less than one unit, and could have millions of digits
MOST_LOSS = 600  # of a trade-off: a probability times its exponential is still a float
FLOAT = 1e-13  # relative, far more than a sum of this kind is off

Enclosure = tuple[Fraction, Fraction]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Profile:
    """
    How well neighbours can be told apart at worst, by one draw of SmallDB or by several draws.

    It depends on nobody's data. The loss ln P(y | x) - ln P(y | x') of a candidate is a multiple of
    epsilon / (2 m D) plus what depends on the pair alone, so that the loss of several draws is a sum of whole
    numbers, whose law is convolved in integers. Floats find the pairs that can be the worst, and only they.

    Attributes
    ----------
    epsilon
        That of the mechanism.
    laws
        How many pairs have different laws of the loss, each counted both ways round.
    pairs
        How many pairs of neighbours there are.
    """

    epsilon: Fraction
    laws: int
    pairs: int
    _instance: Instance
    _tables: Tables
    _ends: Integers  # shape (laws, 2): positions of x and of x'
    _masses: Floats  # shape (laws, 2 m D + 1): P(y | x) by the step s(x') - s(x), from -m D on
    _shifts: Floats  # shape (laws,): ln Z(x') - ln Z(x)
    _convolved: dict[int, Floats] = field(default_factory=dict)
    _exact: dict[tuple[int, int], tuple[Masses, Masses]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Profile of {self.pairs} pairs of neighbours>"

    def delta(self, epsilon: Number, releases: int = 1) -> float:
        """
        Return the least delta for which so many draws are (epsilon, delta)-DP, rounded up.

        The draws are of this instance, on one table. Convolutions take some (releases x 2 m D)^2 steps for
        each law.

        Parameters
        ----------
        epsilon
            Exact, at least 0.
        releases
            How many draws, at least 1.
        """
        return min(1.0, float_above(self.enclosed(epsilon, releases)[1]))

    def enclosed(self, epsilon: Number, releases: int = 1) -> Enclosure:
        """
        Return (low, high) of the delta of `delta`, which agree to at least 25 digits: exact fractions.

        Parameters
        ----------
        epsilon, releases
            As for `delta`.
        """
        exact, releases = as_fraction(epsilon, "epsilon"), whole(releases, "releases")
        if exact < 0:
            raise ValueError("epsilon must be at least 0")
        masses, losses = self._float(releases)
        over = losses - float(exact)
        doubt = self._doubt(releases)
        value = (masses * -np.expm1(-np.maximum(over, 0))).sum(axis=1)
        off = doubt * (masses * (over > -doubt)).sum(axis=1) + FLOAT * value
        near = np.flatnonzero(value + off >= (value - off).max())
        found = [self._over(law, exact, releases) for law in near.tolist()]
        return max(low for low, _ in found), max(high for _, high in found)

    def total_variation(self, releases: int = 1) -> float:
        """Return the largest total variation between neighbours, rounded up: delta at epsilon 0."""
        return self.delta(0, releases)

    def epsilon_for(self, delta: Number, releases: int = 1) -> float:
        """
        Return an epsilon for which that many draws are (epsilon, delta)-DP, within 1e-9 of the least.

        Parameters
        ----------
        delta
            Exact, in (0, 1).
        releases
            How many draws, at least 1.
        """
        allowed = between_0_and_1(delta, "delta")
        low, high = 0.0, nextafter(float(self.epsilon * whole(releases, "releases")), inf)
        if self.enclosed(0, releases)[1] <= allowed:
            return 0.0
        while high - low > 1e-9 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.enclosed(middle, releases)[1] <= allowed else (middle, high)
        return high

    def tradeoff(self, alpha: Number, releases: int = 1) -> float:
        """
        Return the least error of the second kind of any test of x against x' of that error of the first.

        The least over all neighbours of their trade-off functions (Dong, Roth and Su 2022), rounded down, to
        within 1e-9. It need not be convex; the f of f-DP is its convex hull.

        Parameters
        ----------
        alpha
            The error of the first kind, an exact number from 0 to 1.
        releases
            How many draws, at least 1; times epsilon at most 600.
        """
        level, releases = as_fraction(alpha, "alpha"), whole(releases, "releases")
        if not 0 <= level <= 1:
            raise ValueError("alpha must lie between 0 and 1")
        if self.epsilon * releases > MOST_LOSS:
            raise ValueError(f"epsilon x releases must be at most {MOST_LOSS} for a trade-off curve")
        masses, losses = self._float(releases)
        # the most likely under x' beside x are rejected first: those of least loss
        first = np.cumsum(masses, axis=1)
        position = np.minimum((first < float(level)).sum(axis=1), masses.shape[1] - 1)
        slopes = np.exp(-losses[np.arange(len(masses)), position])
        gains = (masses * np.maximum(np.exp(-losses) - slopes[:, None], 0)).sum(axis=1)
        value = 1 - slopes * float(level) - gains
        near = np.flatnonzero(value <= value.min() + 1e-9)
        exact = (self._missed(law, level, Fraction(slopes[law]), releases) for law in near.tolist())
        least = max(min(exact), Fraction(0))
        below = float(least)
        return below if Fraction(below) <= least else nextafter(below, -inf)

    def _float(self, releases: int) -> tuple[Floats, Floats]:
        """Return the masses and losses of the sums of steps, by floats."""
        width = self._masses.shape[1]
        if releases not in self._convolved:
            if self.laws * (releases * width) ** 2 > MOST_TERMS or self.laws * releases * width > MOST_MASSES:
                raise ValueError(
                    f"{releases} releases of {self.laws} laws are too many: use a smaller instance"
                )
            self._convolved.clear()
            self._convolved[releases] = np.array([_power(masses, releases) for masses in self._masses])
        steps = np.arange(releases * (width - 1) + 1) - releases * (width // 2)
        return self._convolved[releases], float(self._rate) * steps + releases * self._shifts[:, None]

    def _doubt(self, releases: int) -> float:
        """Return far more than a loss by floats is off."""
        tables = self._tables
        largest = np.abs(tables.floats).max() + float(self._rate) * np.abs(tables.scores).max()
        return FLOAT * releases * (1 + float(largest))

    @property
    def _rate(self) -> Fraction:
        return self._instance.rate

    def _shift(self, law: int) -> Real:
        here, there = self._ends[law].tolist()
        ln_z = self._tables.ln_z
        return ln_z.of_law(ln_z.law(there)) - ln_z.of_law(ln_z.law(here))

    def _power(self, law: int, releases: int) -> tuple[Masses, Masses]:
        """Enclose the masses of the sum of steps, in units of 2^-256."""
        if (law, 1) not in self._exact:
            here, there = self._ends[law].tolist()
            tables = self._tables
            steps = (tables.scores[there] - tables.scores[here]).tolist()
            counted: Counter[tuple[int, int]] = Counter()
            for step, score, orders in zip(steps, tables.scores[here].tolist(), tables.orders, strict=True):
                counted[step, score] += orders
            weights = [Real.of(0, DIGITS)] * self._masses.shape[1]
            for (step, score), count in counted.items():
                position = step + self._masses.shape[1] // 2
                weights[position] = weights[position] + count * Real.of(-self._rate * score, DIGITS).exp()
            total = tables.ln_z.of_law(tables.ln_z.law(here)).exp()
            shares = [weight / total for weight in weights]
            self._exact[law, 1] = (
                [0 if share.low < LEAST else int(Fraction(share.low) * (1 << BITS)) for share in shares],
                [_units_above(share.high) for share in shares],
            )
        if (law, releases) not in self._exact:
            self._exact[law, releases] = power(*self._exact[law, 1], releases)
        return self._exact[law, releases]

    def _sums(self, law: int, releases: int) -> list[tuple[int, int, Real]]:
        """Return the masses, enclosed, and the loss of every sum of steps that is possible."""
        shift, half = releases * self._shift(law), releases * (self._masses.shape[1] // 2)
        masses = zip(*self._power(law, releases), strict=True)
        return [
            (low, high, shift + self._rate * (position - half))
            for position, (low, high) in enumerate(masses)
            if high
        ]

    def _over(self, law: int, epsilon: Fraction, releases: int) -> Enclosure:
        """Enclose the sum of P(y | x) - e^epsilon P(y | x') where that is above 0."""
        found = [Fraction(0), Fraction(0)]
        for low, high, loss in self._sums(law, releases):
            over = loss - epsilon
            if over.high > 0:
                share = (1 - (-1 * over).exp()).pick(max, 0)
                found[0] += low * Fraction(share.low)
                found[1] += high * Fraction(share.high)
        return found[0] / (1 << BITS), found[1] / (1 << BITS)

    def _missed(self, law: int, level: Fraction, slope: Fraction, releases: int) -> Fraction:
        """Bound 1 - power from below; power <= t alpha + sum of (P(y | x') - t P(y | x))+ for all t."""
        gain = Fraction(0)
        for _, high, loss in self._sums(law, releases):
            rise = (-1 * loss).exp() - slope
            if rise.high > 0:
                gain += high * Fraction(rise.high)
        return 1 - slope * level - gain / (1 << BITS)


@overload
def profile(
    domain: Domain,
    queries: QueryClass | Workload | str | None = None,
    *,
    n: int,
    epsilon: Number,
    rows: int,
    neighbours: str = "replace-one",
    candidates: str | None = None,
) -> Profile: ...


@overload
def profile(
    domain: Domain, *, n: int, mechanism: CustomMechanism, neighbours: str = "replace-one"
) -> LawProfile: ...


def profile(
    domain: Domain,
    queries: QueryClass | Workload | str | None = None,
    *,
    n: int,
    epsilon: Number | None = None,
    rows: int | None = None,
    neighbours: str = "replace-one",
    candidates: str | None = None,
    mechanism: CustomMechanism | None = None,
) -> Profile | LawProfile:
    """
    Return the exact privacy profile of SmallDB over all databases of a small instance and their neighbours.

    Parameters
    ----------
    domain, queries, n, epsilon, rows, neighbours, candidates
        As for `smalldb.audit`.
    mechanism
        Instead of SmallDB, one draw of another mechanism, as `smalldb.audit` takes it; it brings its own
        queries, epsilon and rows.

    Raises
    ------
    ValueError
        A larger instance than that of 2^24 pairs of neighbours x small databases, both ways round.

    Examples
    --------
    >>> found = profile(Domain(["a", "b"]), "conjunctions:2", n=6, epsilon=1, rows=2)
    >>> round(found.total_variation(), 4), found.delta(1), round(found.tradeoff("0.05"), 4)
    (0.2448, 0.0, 0.8907)
    """
    if mechanism is not None:
        if (queries, epsilon, rows, candidates) != (None,) * 4:
            raise ValueError("queries, epsilon, rows and candidates are for SmallDB: leave them out")
        return profile_of_laws(mechanism, domain.size, whole(n, "n"), relation_of(neighbours))
    if epsilon is None or rows is None:
        raise ValueError("epsilon and rows must be given for SmallDB")
    workload, exact = workload_of(queries, domain), positive(epsilon, "epsilon")
    if not EPSILONS[0] <= exact <= EPSILONS[1]:
        raise ValueError("epsilon must be from 1e-20 to 1e9 for an audit")
    n, rows, relation = whole(n, "n"), whole(rows, "rows"), relation_of(neighbours)
    instance = instance_of(workload, exact, rows, candidates, n, relation)
    pairs = count_pairs(domain.size, n, relation)
    if 2 * pairs * multisets.count(domain.size, rows) > MOST_RATIOS:
        raise ValueError(
            f"a profile of {pairs} pairs of neighbours is too large: use fewer rows or a smaller n"
        )
    try:
        return _profile(instance, tabulated(instance))
    finally:
        tabulated.cache_clear()


def _profile(instance: Instance, tables: Tables) -> Profile:
    position = tables.position
    once = [
        (position[x], position[other])
        for x in tables.databases
        for other in neighbours_of(x, instance.n, instance.relation)
    ]
    here, there = np.array([*once, *((b, a) for a, b in once)], dtype=np.int64).T
    steps = tables.scores[there] - tables.scores[here]
    half = instance.rows * instance.workload.denominator  # a neighbour moves a score by no more
    kinds = np.unique(np.array(tables.orders, dtype=object), return_inverse=True)[1]
    width = (2 * half + 1) * (int(kinds.max()) + 1)
    if (int(tables.scores.max()) + 1) * width >= 1 << 62:
        raise ValueError("queries: their common denominator is too large for a profile")
    codes = np.sort(tables.scores[here] * width + (steps + half) * (width // (2 * half + 1)) + kinds, axis=1)
    first = np.unique(codes, axis=0, return_index=True)[1]
    here, there, steps = here[first], there[first], steps[first]

    rate = float(instance.rate)
    exponents = -rate * (tables.scores[here] - tables.least[here, None]) - tables.floats[here, None]
    where = steps + half + (2 * half + 1) * np.arange(len(first))[:, None]
    chances = tables.shares * np.exp(exponents)
    summed = np.bincount(where.ravel(), chances.ravel(), len(first) * (2 * half + 1))
    masses = np.asarray(summed.reshape(len(first), -1), dtype=np.float64)
    shifts = tables.floats[there] - tables.floats[here] - rate * (tables.least[there] - tables.least[here])
    ends = np.stack([here, there], axis=1)
    return Profile(instance.epsilon, len(first), len(once), instance, tables, ends, masses, shifts)


def _units_above(x: Decimal) -> int:
    """Return x in units of 2^-256, rounded up."""
    return int(x > 0) if x < LEAST else -int(-Fraction(x) * (1 << BITS) // 1)


def _power(masses: Floats, times: int) -> Floats:
    total = np.ones(1)
    for bit in f"{times:b}":
        total = np.convolve(total, total)
        if bit == "1":
            total = np.convolve(total, masses)
    return total
