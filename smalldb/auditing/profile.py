"""The privacy profile of SmallDB on a small instance: delta of every epsilon, and the trade-off curve."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import partial
from math import inf, nextafter
from typing import TypeAlias, TypeVar, overload

import numpy as np

from queries import Domain, QueryClass, Workload
from queries.arrays import Floats, Integers
from smalldb.auditing.laws import MOST_LAWS, CustomMechanism, Enclosure, audited, enclosed
from smalldb.counting import multisets
from smalldb.counting.databases import (
    DIGITS,
    Instance,
    Tables,
    both_ways,
    check_budget,
    count_pairs,
    databases,
    instance_of,
    tables_of,
)
from smalldb.exact.enclosures import Real
from smalldb.exact.levels import exp_enclosure
from smalldb.exact.numbers import Number, as_fraction, between_0_and_1, float_above, float_below, whole
from smalldb.mechanisms import Neighbours
from smalldb.planning import relation_of, workload_of

BITS = 256  # a mass is in units of 2^-BITS
Masses: TypeAlias = list[int]
T = TypeVar("T")

MOST_EPSILON = 600  # its exponential is a float
NEAR = 1e-9  # far more than floats are off
MOST_RATIOS = 1 << 24  # pairs of neighbours, both ways, x small databases or other outcomes
MOST_TERMS = 1 << 33  # laws x (releases x steps)^2
MOST_MASSES = 1 << 25  # laws x releases x steps
LEAST = Decimal("1e-100")  # below, a probability is less than one unit, and could have millions of digits
MOST_LOSS = 600  # of a trade-off: a probability times its exponential is still a float
FLOAT = 1e-13  # relative, far more than a sum of this kind is off


def power(low: Sequence[int], high: Sequence[int], times: int) -> tuple[Masses, Masses]:
    """Return (low, high) of the law of a sum of independent numbers of that law, in units of 2^-256."""
    one, most = [1 << BITS], (1 << BITS) - 1
    return (
        _raised(list(low), times, one, partial(_product, up=0)),
        _raised(list(high), times, one, partial(_product, up=most)),
    )


def _raised(base: T, times: int, one: T, product: Callable[[T, T], T]) -> T:
    """Multiply so many of a base, by repeated squaring."""
    total = one
    for bit in f"{times:b}":
        total = product(total, total)
        if bit == "1":
            total = product(total, base)
    return total


def _product(a: Masses, b: Masses, up: int) -> Masses:
    """Multiply polynomials as integers, each coefficient in a slot of its own (Kronecker)."""
    slot = (2 * BITS + 2 + min(len(a), len(b)).bit_length() + 7) // 8 + 1
    packed = [int.from_bytes(b"".join(x.to_bytes(slot, "little") for x in p), "little") for p in (a, b)]
    size = len(a) + len(b) - 1
    digits = (packed[0] * packed[1]).to_bytes(slot * (size + 1), "little")
    return [(int.from_bytes(digits[slot * i : slot * (i + 1)], "little") + up) >> BITS for i in range(size)]


def _least_epsilon(serves: Callable[[float], bool], high: float) -> float:
    """Return an epsilon that serves, as `high` does, within 1e-9 of the least."""
    low = 0.0
    while high - low > 1e-9 * max(high, 1e-9):
        middle = (low + high) / 2
        low, high = (low, middle) if serves(middle) else (middle, high)
    return high


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
        bounds = [self._over(x, other, exact) for x, other in self._ends[near].tolist()]
        return max(low for low, _ in bounds), max(high for _, high in bounds)

    def total_variation(self) -> float:
        """Return the largest total variation between neighbours, rounded up: delta at epsilon 0."""
        return self.delta(0)

    def epsilon_for(self, delta: Number) -> float:
        """Return an epsilon for which a draw is (epsilon, delta)-DP, within 1e-9 of the least."""
        allowed = between_0_and_1(delta, "delta")
        if self.enclosed(0)[1] <= allowed:
            return 0.0
        if self.enclosed(MOST_EPSILON)[1] > allowed:
            raise ValueError(f"delta: no epsilon up to {MOST_EPSILON} has it")
        return _least_epsilon(lambda middle: self.enclosed(middle)[1] <= allowed, float(MOST_EPSILON))

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
    ends = both_ways(position, n, relation)
    laws = [enclosed(mechanism(x)) for x in tables]
    outcomes = {outcome: i for i, outcome in enumerate(dict.fromkeys(o for law in laws for o in law))}
    if len(ends) * len(outcomes) > MOST_RATIOS:
        raise ValueError(f"a profile of {len(ends) // 2} pairs of neighbours is too large: use a smaller n")
    floats = np.zeros((len(tables), len(outcomes)))
    for row, law in zip(floats, laws, strict=True):
        for outcome, (low, high) in law.items():
            row[outcomes[outcome]] = float((low + high) / 2)
    return LawProfile(len(ends) // 2, laws, floats, ends)


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
        """
        return min(1.0, float_above(self.enclosed(epsilon, releases)[1]))

    def enclosed(self, epsilon: Number, releases: int = 1) -> Enclosure:
        """Return (low, high) of that delta, which agree to at least 25 digits: exact fractions."""
        exact, releases = as_fraction(epsilon, "epsilon"), whole(releases, "releases")
        if exact < 0:
            raise ValueError("epsilon must be at least 0")
        masses, losses = self._float(releases)
        over = losses - float(exact)
        doubt = self._doubt(releases)
        value = (masses * -np.expm1(-np.maximum(over, 0))).sum(axis=1)
        off = doubt * (masses * (over > -doubt)).sum(axis=1) + FLOAT * value
        near = np.flatnonzero(value + off >= (value - off).max())
        bounds = [self._over(law, exact, releases) for law in near.tolist()]
        return max(low for low, _ in bounds), max(high for _, high in bounds)

    def total_variation(self, releases: int = 1) -> float:
        """Return the largest total variation between neighbours, rounded up: delta at epsilon 0."""
        return self.delta(0, releases)

    def epsilon_for(self, delta: Number, releases: int = 1) -> float:
        """Return an epsilon for which that many draws are (epsilon, delta)-DP, within 1e-9 of the least."""
        allowed = between_0_and_1(delta, "delta")
        if self.enclosed(0, releases)[1] <= allowed:
            return 0.0
        enough = nextafter(float(self.epsilon * whole(releases, "releases")), inf)
        return _least_epsilon(lambda middle: self.enclosed(middle, releases)[1] <= allowed, enough)

    def tradeoff(self, alpha: Number, releases: int = 1) -> float:
        """
        Return the least error of the second kind of any test of x against x' of that error of the first.

        The least over all neighbours of their trade-off functions (Dong, Roth and Su 2022), rounded down, to
        within 1e-9; `releases` times epsilon is at most 600. It need not be convex: f-DP takes its hull.
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
        return float_below(least)

    def _float(self, releases: int) -> tuple[Floats, Floats]:
        """Return the masses and losses of the sums of steps, by floats."""
        width = self._masses.shape[1]
        if releases not in self._convolved:
            if self.laws * (releases * width) ** 2 > MOST_TERMS or self.laws * releases * width > MOST_MASSES:
                raise ValueError(
                    f"{releases} releases of {self.laws} laws are too many: use a smaller instance"
                )
            self._convolved.clear()
            sums = [_raised(masses, releases, np.ones(1), np.convolve) for masses in self._masses]
            self._convolved[releases] = np.array(sums)
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
        sums = [Fraction(0), Fraction(0)]
        for low, high, loss in self._sums(law, releases):
            over = loss - epsilon
            if over.high > 0:
                share = (1 - (-1 * over).exp()).pick(max, 0)
                sums[0] += low * Fraction(share.low)
                sums[1] += high * Fraction(share.high)
        return sums[0] / (1 << BITS), sums[1] / (1 << BITS)

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

    Examples
    --------
    >>> curve = profile(Domain(["a", "b"]), "conjunctions:2", n=6, epsilon=1, rows=2)
    >>> round(curve.total_variation(), 4), curve.delta(1), round(curve.tradeoff("0.05"), 4)
    (0.2448, 0.0, 0.8907)
    """
    if mechanism is not None:
        if (queries, epsilon, rows, candidates) != (None,) * 4:
            raise ValueError("queries, epsilon, rows and candidates are for SmallDB: leave them out")
        return profile_of_laws(mechanism, domain.size, whole(n, "n"), relation_of(neighbours))
    if epsilon is None or rows is None:
        raise ValueError("epsilon and rows must be given for SmallDB")
    workload, exact = workload_of(queries, domain), audited(epsilon)
    n, rows, relation = whole(n, "n"), whole(rows, "rows"), relation_of(neighbours)
    instance = instance_of(workload, exact, rows, candidates, n, relation)
    pairs = count_pairs(domain.size, n, relation)
    if 2 * pairs * multisets.count(domain.size, rows) > MOST_RATIOS:
        raise ValueError(
            f"a profile of {pairs} pairs of neighbours is too large: use fewer rows or a smaller n"
        )
    with tables_of(instance) as tables:
        return _profile(instance, tables)


def _profile(instance: Instance, tables: Tables) -> Profile:
    here, there = both_ways(tables.position, instance.n, instance.relation).T
    pairs = len(here) // 2
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
    return Profile(instance.epsilon, len(first), pairs, instance, tables, ends, masses, shifts)


def _units_above(x: Decimal) -> int:
    """Return x in units of 2^-256, rounded up."""
    return int(x > 0) if x < LEAST else -int(-Fraction(x) * (1 << BITS) // 1)
