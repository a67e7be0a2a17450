"""The methods: what bounds the epsilon of releases together, each with what it needs to hold."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import ceil, exp, log, log1p, sqrt

import numpy as np

from queries.arrays import Floats
from smalldb.accounting import binomials, curves
from smalldb.accounting.curves import LARGE, ULPS
from smalldb.exact.numbers import float_above
from smalldb.noise.privacy_loss import (
    BoundedRange,
    GeometricNoise,
    KaryResponse,
    LaplaceNoise,
    Loss,
    LossLaw,
    RandomisedResponse,
)

POSITIONS = 1 << 16  # of a grid from no loss to the largest, at least
PER_STEP = 512  # positions for each step, if there are not too many: rounding up adds one to each
MOST_STEPS = 1 << 12
MOST_POSITIONS = 1 << 18
MOST_ATOMS = 1 << 16  # of a law
LEAST_STEP, MOST_STEP = 1e-6, 100.0  # epsilon of a step
ROUNDED = 1e-11  # relative: what rounding takes from a probability, many times over
ROUNDED_STEP = 4e-15  # of all mass, for each step: what the transforms may take from a position
TILTS, COARSE = 64, 2048
LEAST_TILT, MOST_TILT = 1e-3, 0.1  # the latter of a unit of the grid

MOST_FIXED = 10_000  # releases: the optimal non-adaptive bound takes their power 3/2
MOST_PURE = 10**8  # releases: the optimal pure bound takes their square root
MARGIN = 1e-9  # relative: what rounding may add up to, many times over
LARGEST = Fraction(10**300)  # epsilon of all releases together: a float
FLOATS = Fraction(1, 10**80), Fraction(10**80)  # beyond, squares and cubes could leave them
LEAST_DELTA = Fraction(1, 10**300)
Items = Counter[Loss]  # how many releases there are of each loss; all are pure, or none is


@dataclass(frozen=True, slots=True)
class LossDistribution:
    """The loss of steps together, no smaller than it is."""

    # probabilities are tilted, so that losses about that which a given delta asks for are likely,
    # before they are multiplied as Fourier transforms: what rounding adds is then small beside them

    losses: Floats  # on a grid, ascending
    law: Floats  # their tilted probabilities; times e^(log_mass - tilt loss) they are their own
    # tilt, log_mass: as above
    tilt: float
    log_mass: float

    # Proof: docs/proofs/losses.md, lemma 9.
    @classmethod
    def of(cls, laws: Counter[LossLaw], delta: float) -> "LossDistribution":
        """Compose so many steps of each law."""
        steps = laws.total()
        largest = sum(float_above(law.epsilon) * times for law, times in laws.items())
        unit = largest / min(MOST_POSITIONS, max(POSITIONS, PER_STEP * steps))
        every = [(np.log(_on_grid(law, unit)), times) for law, times in laws.items()]
        reach = sum(len(logs) // 2 * times for logs, times in every)
        tilt = _tilt(every, unit, delta)
        size = 1 << (2 * reach + 1).bit_length()
        spectrum, log_mass = np.ones(size // 2 + 1, dtype=complex), 0.0
        for logs, times in every:
            tilted, log_total = _tilted(logs, tilt)
            spectrum *= np.fft.rfft(tilted, size) ** times
            log_mass += times * log_total
        masses = np.maximum(np.fft.irfft(spectrum, size)[: 2 * reach + 1], 0) + ROUNDED_STEP * (steps + 10)
        losses = (np.arange(2 * reach + 1) - reach) * unit
        return cls(np.asarray(losses), np.asarray(masses, dtype=np.float64), tilt / unit, log_mass)

    def delta(self, total: float) -> float:
        """Return the delta at a total, rounded up."""
        over = self.losses * (1 + ULPS) - total
        first = int(np.searchsorted(over, 0))
        sizes = np.exp(-self.tilt * over[first:]) * -np.expm1(-over[first:])
        exponent = self.log_mass - self.tilt * total
        return min(1.0, float(self.law[first:] @ sizes) * exp(min(exponent, LARGE)) * (1 + ROUNDED))


def possible(laws: Counter[LossLaw]) -> bool:
    """Return whether there are few enough, of losses that the grid holds well."""
    sizes = [float_above(law.epsilon) for law in laws]
    few = 0 < laws.total() <= MOST_STEPS
    atoms = max((law.moved for law in laws if isinstance(law, GeometricNoise)), default=1)
    return few and atoms <= MOST_ATOMS and min(sizes) >= LEAST_STEP and max(sizes) <= MOST_STEP


def _on_grid(law: LossLaw, unit: float) -> Floats:
    """Return the probabilities of losses -most..most, in units, where no loss is smaller than it is."""
    eps = float_above(law.epsilon)
    most = ceil(eps / unit * (1 + ULPS))
    atoms, chances, rising = _shape(law, eps)
    positions = np.ceil(atoms / unit + ULPS * (1 + np.abs(atoms / unit))).astype(np.int64)
    masses = np.zeros(2 * most + 1)
    np.add.at(masses, np.minimum(positions, most) + most, chances)
    # between -epsilon and epsilon, rising e^(-(epsilon - loss) / 2) is what is less likely than a loss
    ends = np.clip(np.arange(-most - 1, most + 1) * unit, -eps, eps)
    masses += rising * np.exp((ends[1:] - eps) / 2) * -np.expm1((ends[:-1] - ends[1:]) / 2)
    return np.maximum(masses * (1 + ROUNDED), 1e-300)


# Proof: docs/proofs/losses.md, lemma 6.
def _shape(law: LossLaw, eps: float) -> tuple[Floats, Floats, float]:
    """Return single losses, their probabilities, and how much a law has of a rising density."""
    match law:
        case BoundedRange():
            return np.zeros(0), np.zeros(0), float(-1 / np.expm1(-eps))
        case LaplaceNoise():
            return np.array([eps, -eps]), np.array([0.5, 0.5 * exp(-eps)]), 0.5
        case GeometricNoise():
            rate, i = float_above(law.rate), np.arange(law.moved + 1)
            chances = np.exp(-rate * i) / (1 + exp(-rate))
            chances[1:-1] *= -np.expm1(-rate)
            return np.asarray(rate * (law.moved - 2 * i)), np.asarray(chances), 0.0
        case KaryResponse():
            chances = np.array([1.0, exp(-eps), (law.categories - 2) * exp(-eps)])
            return np.array([eps, -eps, 0.0]), chances / (1 + (law.categories - 1) * exp(-eps)), 0.0
    chances = np.array([1.0, exp(-eps)]) / (1 + exp(-eps))  # no law of that epsilon loses more
    return np.array([eps, -eps]), chances, 0.0


def _tilted(logs: Floats, tilt: float) -> tuple[Floats, float]:
    """Return the tilted probabilities, and the logarithm of what they were divided by."""
    logs = logs + tilt * (np.arange(len(logs)) - len(logs) // 2)
    top = float(logs.max())
    weights = np.exp(logs - top)
    total = float(weights.sum())
    return weights / total, top + log(total)


def _tilt(every: Sequence[tuple[Floats, int]], unit: float, delta: float) -> float:
    """Return the order, less 1, whose Renyi divergence proves about the least epsilon; of a unit."""
    heights = np.linspace(log(LEAST_TILT), log(MOST_TILT / unit), TILTS)
    coarse = []  # some thousand losses say it as well
    for logs, times in every:
        starts = np.unique(np.linspace(0, len(logs) - 1, COARSE).astype(np.int64))
        masses = np.add.reduceat(np.exp(logs), starts)
        coarse.append((masses, (starts - len(logs) // 2) * unit, times))

    def proved(height: float) -> float:
        tilt = exp(height)
        parts = []
        for masses, losses, times in coarse:
            exponents = tilt * losses
            top = exponents.max()
            parts.append(times * (top + log(float(masses @ np.exp(exponents - top)))))
        return float(sum(parts) - log(delta) + tilt * log(tilt) - (1 + tilt) * log1p(tilt)) / tilt

    return exp(min(heights.tolist(), key=proved)) * unit


@dataclass(frozen=True, slots=True)
class Method:
    """A row of the table."""

    name: str
    note: str
    valid: bool  # whether it is a bound here
    value: Callable[[], float]  # returns its epsilon, rounded up
    # returns whether its epsilon is at most a total, so that `value` does not come out above; does not
    # solve for it
    within: Callable[[Fraction], bool]


def methods_of(items: Items, delta: Fraction, adaptive: bool) -> Iterator[Method]:
    """Yield all methods that apply, to releases that each have an epsilon."""
    pure = added(items)
    if pure > LARGEST:
        raise ValueError("epsilon must be at most 1e300, of all releases together")
    yield Method("addition", "also at delta 0", True, lambda: float_above(pure), lambda total: pure <= total)
    laws = laws_of(items)
    if delta < LEAST_DELTA or not all(FLOATS[0] < law.epsilon < FLOATS[1] for law in laws):
        return
    yield from _approximate(items, laws, below(delta), adaptive)
    yield from concentrated(items, delta)


# Proof: docs/proofs/losses.md, lemma 10.
def concentrated(items: Items, delta: Fraction) -> Iterator[Method]:
    """Yield the method of what releases state besides epsilon: their rho, and laws of their steps."""
    if delta < LEAST_DELTA or not any(_states_more(loss) for loss in items):
        return
    sizes = [size for loss in items for size in (loss.epsilon, loss.rho) if size]
    if not sizes or not all(FLOATS[0] < size < FLOATS[1] for size in sizes):
        return
    curves_of = [(_curve(loss), times) for loss, times in items.items()]

    def curve(order: float) -> float:
        return sum(times * each(order) for each, times in curves_of)

    least, note = float_above(min(sizes)), "from the rho or the laws of each"
    yield _closed("Renyi, as stated", lambda: curves.converted(curve, below(delta), least), note)


def added(items: Items) -> Fraction:
    """Return the sum of all epsilons."""
    return sum((loss.epsilon * times for loss, times in items.items() if loss.epsilon), Fraction(0))


def laws_of(items: Items) -> Counter[LossLaw]:
    """Return the laws of all steps; of a release whose laws are not known, that which loses most."""
    laws = Counter[LossLaw]()
    for loss, times in items.items():
        known = loss if loss.laws is not None else Loss.pure(loss.epsilon or Fraction(0))
        for law, steps in known.laws or ():
            laws[law] += steps * times
    return laws


def _states_more(loss: Loss) -> bool:
    """Tell whether it is more than pure, or of bounded range: these have methods of their own."""
    return loss.epsilon is None or loss.laws not in (
        Loss.pure(loss.epsilon).laws,
        Loss.ranged(loss.epsilon).laws,
    )


def _curve(loss: Loss) -> Callable[[float], float]:
    """Return an upper bound on its Renyi divergence, by the order."""
    rho = None if loss.rho is None else float_above(loss.rho)
    eps = None if loss.epsilon is None else np.array([float_above(loss.epsilon)])
    steps = [(_curve_of_law(law), times) for law, times in loss.laws or ()]

    def curve(order: float) -> float:
        bounds = [] if rho is None else [rho * order]
        if eps is not None:
            bounds.append(float(curves.pure_curve(eps, order)[0]))
        if steps:
            bounds.append(sum(times * each(order) for each, times in steps))
        return min(bounds)

    return curve


def _curve_of_law(law: LossLaw) -> Callable[[float], float]:
    eps, rho = np.array([float_above(law.epsilon)]), float_above(law.rho)
    match law:
        case BoundedRange():
            return lambda order: float(curves.range_curve(eps, order)[0])
        case RandomisedResponse():
            return lambda order: float(curves.pure_curve(eps, order)[0])
    return lambda order: min(rho * order, float(curves.pure_curve(eps, order)[0]))


def _approximate(items: Items, laws: Counter[LossLaw], delta: float, adaptive: bool) -> Iterator[Method]:
    """Yield the methods of delta > 0 from epsilons and ranges, the quick ones first."""
    eps, counts = kinds_above((law.epsilon, times) for law, times in laws.items())
    number, most = laws.total(), float(counts @ eps)
    yield _closed("advanced (DRV 2010)", lambda: curves.drv(eps, counts, delta))
    yield _closed("advanced (KOV 2015)", lambda: curves.kov(eps, counts, delta))
    ranged = {law: times for law, times in laws.items() if isinstance(law, BoundedRange)}
    ranges, times = kinds_above((law.epsilon, count) for law, count in ranged.items())
    rest = kinds_above((law.epsilon, count) for law, count in laws.items() if law not in ranged)

    def curve(order: float) -> float:
        pure = rest[1] @ curves.pure_curve(rest[0], order)
        return float(pure + times @ curves.range_curve(ranges, order))

    mixed, bounded = bool(len(ranges) and len(rest[0])), not len(rest[0])
    name = "Renyi, mixed" if mixed else "Renyi, bounded range" if bounded else "Renyi, pure"
    note = "each by its own curve" if mixed else ""
    adaptive = adaptive and number > 1  # one release has none before it
    # rounds of one release are chosen by what earlier ones showed
    single = all(sum(times for _, times in loss.laws or ()) == 1 for loss in items)
    equal = bounded and single and len(ranges) == 1 and number <= MOST_FIXED
    if bounded and not adaptive and not equal:
        note = f"the optimal bound is for up to {MOST_FIXED} equal releases"
    least = min([*ranges.tolist(), *rest[0].tolist()])
    yield _closed(name, lambda: curves.converted(curve, delta, least), note)
    if bounded:
        rho, tight = float(times @ (ranges * ranges)) / 8, float(times @ curves.mean_loss(ranges))
        yield _closed("Azuma, bounded range", lambda: curves.azuma(ranges, times, delta))
        yield _closed("zCDP eps^2/8", lambda: curves.converted(lambda order: rho * order, delta, least))
        yield _closed(
            "zCDP r - 1 - ln r",
            lambda: curves.converted(lambda order: tight * order, delta, least),
            "r = eps / (e^eps - 1): the least rho",
        )
        note = "rho + 2 sqrt(rho ln(1/delta))"
        yield _closed("zCDP eps^2/8, loose", lambda: curves.loose(rho, delta), note)
    if len(eps) == 1 and number <= MOST_PURE:
        yield _solved(
            "optimal, pure (KOV 2015)",
            "no better bound from epsilon-DP alone",
            lambda total: binomials.pure_delta(total, eps[0], number) * binomials.slack(eps[0], number),
            delta,
            most,
        )
    if len(eps) > 1 and binomials.mixable(counts):
        mixture = binomials.Mixture.of(eps, counts)
        yield _solved(
            "optimal, pure, each rounded up to a grid",
            "nearly the best from epsilon-DP alone",
            mixture.delta,
            delta,
            mixture.most,
        )
    if possible(laws) and any(_states_more(loss) for loss in items):
        every = cache(lambda: LossDistribution.of(laws, delta))
        yield _solved(
            "privacy loss distributions, each rounded up to a grid",
            "of the laws of all steps",
            lambda total: every().delta(total),
            delta,
            most,
        )
    if equal:
        yield Method(
            "optimal, bounded range, non-adaptive (DDR 2020)",
            "for releases fixed in advance; no bound for adaptive ones" if adaptive else "fixed in advance",
            not adaptive,
            lambda: binomials.range_epsilon(ranges[0], number, delta) * (1 + MARGIN),
            lambda total: binomials.range_within(
                _goal(total) / (1 + MARGIN), ranges[0], number, delta / binomials.slack(ranges[0], number)
            ),
        )
    if bounded:
        mu = curves.range_mu(ranges, times)
        yield _solved(
            "Gaussian limit",
            f"a limit for many releases, no bound: mu = {mu:.6g}",
            lambda total: curves.gaussian_delta(total, mu),
            delta,
            2 * most + sqrt(most),
            valid=False,
        )


def _closed(name: str, value: Callable[[], float], note: str = "") -> Method:
    """Return the method of a formula."""

    def up() -> float:
        return value() * (1 + MARGIN)

    return Method(name, note, True, up, lambda total: up() <= _goal(total))


def _solved(
    name: str, note: str, delta_of: Callable[[float], float], delta: float, most: float, valid: bool = True
) -> Method:
    """Return the method of a delta that falls as epsilon grows."""
    return Method(
        name,
        note,
        valid,
        lambda: curves.solved(delta_of, delta, most) * (1 + MARGIN),
        lambda total: delta_of(_goal(total) / (1 + MARGIN)) <= delta,
    )


def _goal(total: Fraction) -> float:
    return float(total) * (1 - 1e-12)


def kinds_above(numbers: Iterable[tuple[Fraction, int]]) -> tuple[Floats, Floats]:
    """Return distinct epsilons, rounded up, and how many there are of each."""
    kinds = Counter[float]()
    for epsilon, count in numbers:
        kinds[float_above(epsilon)] += count
    return np.array(list(kinds), dtype=float), np.array(list(kinds.values()), dtype=float)


def below(delta: Fraction) -> float:
    """Return a float that is not above delta."""
    return float(delta) * (1 - 2.0**-52)
