"""Random numbers for laws that have no formula: always the same ones, so that intervals can be repeated."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import shake_256
from math import sqrt
from typing import Any, TypeAlias

import numpy as np

from queries.arrays import Floats
from smalldb.exact.bits import SeededBits

DRAWS = 1 << 15
"""Of each number: a probability of .05 is met to within .0012 (standard error)."""

State: TypeAlias = tuple[tuple[str, Any], ...]
WIDE = 1 << 12  # standard deviation from which a sum is taken for one of a continuous law
_LEAST = 2.0**-32  # the least distance of a uniform number from 0 or from 1, doubled
_ROUNDED = 2.0**-34  # more than what rounding takes from a sum of probabilities


@dataclass(frozen=True, slots=True)
class Uniforms:
    """Independent uniform numbers of (0, 1), `draws` of each; nothing private depends on them."""

    bits: SeededBits  # a seeded source
    draws: int = DRAWS  # how many of each number; `DRAWS` but where draws are made in parts

    @classmethod
    def fixed(cls) -> "Uniforms":
        """Return those that every interval is computed with."""
        return cls(SeededBits(0))

    @classmethod
    def sampling(cls) -> "Uniforms":
        """Return others, which are always the same, too."""
        return cls(SeededBits(1))

    def in_parts(self, parts: int) -> "Iterator[Uniforms]":
        """Yield as many draws in parts, for what would take too much memory at once."""
        for _ in range(parts):
            yield Uniforms(self.bits, self.draws // parts)

    @property
    def state(self) -> State:
        """Where in their stream the next numbers stand; others `go_on` there."""
        return tuple(vars(self.bits).items())

    def go_on(self, state: State) -> None:
        """Draw the next numbers from where others stood."""
        vars(self.bits).update(state)

    def numbers(self, *shape: int) -> Floats:
        """Return numbers of shape (draws, *shape)."""
        count = self.draws
        for length in shape:
            count *= length
        key = self.bits.bits(256).to_bytes(32, "big")  # one long digest is quicker than many short ones
        drawn = np.frombuffer(shake_256(key).digest(4 * count), dtype="<u4")
        uniform: Floats = (drawn + 0.5) * 2.0**-32
        return uniform.reshape(self.draws, *shape)

    def normals(self, *shape: int) -> Floats:
        """Return standard normal numbers."""
        from scipy.special import ndtri

        return np.asarray(ndtri(self.numbers(*shape)))

    def gammas(self, shape: float, count: int = 1) -> Floats:
        """Return gamma numbers of a shape, (draws, count)."""
        return np.interp(self.normals(count), *_gamma_grid(shape))

    # Proof: docs/proofs/noise.md, lemma 5.
    def triangle(self, rows: int, width: int) -> Floats:
        """Return rows of `width` independent normal numbers, rotated to be lower triangular (Bartlett)."""
        numbers = np.zeros((self.draws, rows, min(rows, width)))
        for i in range(rows):
            numbers[:, i, : min(i, width)] = self.normals(min(i, width))
            if i < width:
                numbers[:, i, i] = np.sqrt(2 * self.gammas((width - i) / 2)[:, 0])  # a length
        return numbers

    def pass_triangle(self, rows: int, width: int) -> None:
        """Pass over the numbers of a triangle that nobody needs: later ones are the same as behind it."""
        for _ in range(rows + min(rows, width)):
            self.bits.bits(256)

    # Proof: docs/proofs/noise.md, lemma 5.
    def geometric_sums(self, rate: float, count: int) -> Floats:
        """Return sums of `count` independent two-sided geometric numbers, (draws,)."""
        if rate > 500:
            return np.zeros(self.draws)
        unit = 2 * np.sinh(rate / 2)  # a number has the variance 2 / unit^2
        deviation = sqrt(2 * count) / unit
        if deviation <= WIDE:
            return self._inverted(_geometric_tails(rate, count))
        one, other = self.gammas(count, 2).T
        return _outwards((one - other) / unit)

    # Proof: docs/proofs/noise.md, lemma 5.
    def gaussian_sums(self, scale: float, count: int) -> Floats:
        """Return sums of `count` independent discrete Gaussian numbers, (draws,)."""
        if count * scale <= WIDE**2:
            return self._inverted(_gaussian_tails(scale, count))
        return _outwards(self.normals() * sqrt(count * scale))

    def _inverted(self, tails: Floats) -> Floats:
        """Return numbers of a symmetric law from its tails, (draws,): each from one uniform number."""
        centred = 2 * self.numbers() - 1
        sizes = np.searchsorted(-tails, np.abs(centred) - 1, side="right")
        return np.copysign(sizes.astype(np.float64), centred)


# Proof: docs/proofs/noise.md, lemma 8.
def binomials(uniform: Floats, count: int, chance: float) -> Floats:
    """Return binomial numbers that grow with uniform ones: by inversion, or rounded normal numbers."""
    from scipy.special import gammaln, ndtri

    mean = count * chance
    spread = sqrt(mean * (1 - chance))
    if spread == 0:
        return np.full(len(uniform), mean)
    if spread > WIDE:
        return np.asarray(np.rint(mean + spread * ndtri(uniform)))
    low, high = (min(max(int(mean + sign * (8 * spread + 40)), 0), count) for sign in (-1, 1))
    k = np.arange(low, high + 1)
    logs = k * np.log(chance) + (count - k) * np.log1p(-chance) - gammaln(k + 1) - gammaln(count - k + 1)
    odds = np.cumsum(np.exp(logs - logs.max()))
    return np.asarray(low + np.searchsorted(odds[:-1] / odds[-1], uniform).astype(np.float64))


@lru_cache(maxsize=64)
def _geometric_tails(rate: float, count: int) -> Floats:
    length = _ring(sqrt(count / 2) / np.sinh(rate / 2))
    sines = np.sin(np.pi * np.arange(length // 2 + 1) / length)
    return _tails(np.exp(-count * np.log1p((sines / np.sinh(rate / 2)) ** 2)))


@lru_cache(maxsize=64)
def _gaussian_tails(scale: float, count: int) -> Floats:
    length = _ring(sqrt(count * scale))
    values = np.minimum(np.arange(length), length - np.arange(length)).astype(np.float64)
    transform = np.fft.rfft(np.exp(-(values**2) / (2 * max(scale, 1e-3)))).real
    return _tails(np.maximum(transform / transform[0], 0.0) ** count)


def _ring(deviation: float) -> int:
    """Return on how many residues a sum is told: less than e^-40 of its law is beyond half of them."""
    return 1 << int(64 * deviation + 64).bit_length()


def _tails(transform: Floats) -> Floats:
    """Return P(|S| > k), rounded up, of a symmetric sum on a ring of residues with that Fourier transform."""
    law = np.maximum(np.fft.irfft(transform), 0.0)
    law = law[: len(law) // 2]
    beyond: Floats = 2 * np.cumsum(law[:0:-1])[::-1] + _ROUNDED
    return beyond[beyond >= _LEAST]


def _outwards(spread: Floats) -> Floats:
    """Round to whole numbers, away from 0."""
    return np.asarray(np.copysign(np.ceil(np.abs(spread)), spread))


@lru_cache(maxsize=256)
def _gamma_grid(shape: float) -> tuple[Floats, Floats]:
    """Return normal numbers, and the gamma numbers that are exceeded as often; others lie in between."""
    from scipy.special import gammainccinv, gammaincinv, ndtr

    normal = np.linspace(-6.5, 6.5, 4097)
    lower, upper = normal[normal < 0], normal[normal >= 0]
    return normal, np.concatenate([gammaincinv(shape, ndtr(lower)), gammainccinv(shape, ndtr(-upper))])
