"""Laws of the privacy loss, composed: each is rounded up to one grid, and they are convolved."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, exp, log, log1p

import numpy as np

from queries.arrays import Floats
from smalldb.accounting.curves import LARGE, ULPS
from smalldb.exact.numbers import float_above
from smalldb.noise.kary_response import KaryResponse
from smalldb.noise.privacy_loss import BoundedRange, GeometricNoise, LaplaceNoise, LossLaw

POSITIONS = 1 << 16  # of a grid from no loss to the largest, at least
PER_STEP = 512  # positions for each step, if there are not too many: rounding up adds one to each
MOST_STEPS = 1 << 12
MOST_POSITIONS = 1 << 18
MOST_ATOMS = 1 << 16  # of a law
SMALLEST, LARGEST = 1e-6, 100.0  # epsilon of a step
ROUNDED = 1e-11  # relative: what rounding takes from a probability, many times over
ROUNDED_STEP = 4e-15  # of all mass, for each step: what the transforms may take from a position
TILTS, COARSE = 64, 2048
LEAST_TILT, MOST_TILT = 1e-3, 0.1  # the latter of a unit of the grid


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
        found = np.maximum(np.fft.irfft(spectrum, size)[: 2 * reach + 1], 0) + ROUNDED_STEP * (steps + 10)
        losses = (np.arange(2 * reach + 1) - reach) * unit
        return cls(np.asarray(losses), np.asarray(found, dtype=np.float64), tilt / unit, log_mass)

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
    return few and atoms <= MOST_ATOMS and min(sizes) >= SMALLEST and max(sizes) <= LARGEST


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
