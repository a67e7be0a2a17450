"""Random numbers for laws that have no formula: always the same ones, so that intervals can be repeated."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import shake_256

import numpy as np

from queries.arrays import Floats
from smalldb.exact.bits import SeededBits

DRAWS = 1 << 15
"""Of each number: a probability of .05 is met to within .0012 (standard error)."""

_SINGLE = 8  # values of a sum that are drawn one by one


@dataclass(frozen=True, slots=True)
class Uniforms:
    """
    Independent uniform numbers of the interval (0, 1), `draws` of each; nothing private depends on them.

    They stand in for an integral over the noise: what is computed from them is a function of public numbers.
    """

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

        found: Floats = ndtri(self.numbers(*shape))
        return found

    def gammas(self, shape: float, count: int = 1) -> Floats:
        """Return gamma numbers of a shape, (draws, count)."""
        return np.interp(self.normals(count), *_gamma_grid(shape))

    def roots_of_squares(self, degrees: int) -> Floats:
        """Return lengths of normal vectors of so many dimensions, (draws,)."""
        found: Floats = np.sqrt(2 * self.gammas(degrees / 2)[:, 0])
        return found

    # Proof: docs/proofs/noise.md, lemma 5.
    def triangle(self, rows: int, width: int) -> Floats:
        """
        Return rows of `width` independent normal numbers, turned such that the i-th has i + 1 numbers only.

        Inner products of rows are those of the normal numbers (Bartlett's decomposition): shape (draws, rows,
        min(rows, width)).
        """
        found = np.zeros((self.draws, rows, min(rows, width)))
        for i in range(rows):
            found[:, i, : min(i, width)] = self.normals(min(i, width))
            if i < width:
                found[:, i, i] = self.roots_of_squares(width - i)
        return found

    def geometric_sums(self, rate: float, count: int) -> Floats:
        """
        Return sums of `count` independent two-sided geometric numbers, (draws,).

        Each is a difference of two geometric numbers. Of many, they are taken for Laplace numbers of the same
        variance: the sum of these is a difference of two gamma numbers.
        """
        if rate > 500:
            return np.zeros(self.draws)
        if count <= _SINGLE:
            total = np.zeros(self.draws)
            for _ in range(count):
                up, down = np.floor(-np.log(self.numbers(2)) / rate).T
                total += up - down
            return total
        one, other = self.gammas(count, 2).T
        spread: Floats = (one - other) / (2 * np.sinh(rate / 2))
        return spread


@lru_cache(maxsize=256)
def _gamma_grid(shape: float) -> tuple[Floats, Floats]:
    """Return normal numbers, and the gamma numbers that are exceeded as often; others lie in between."""
    from scipy.special import gammainccinv, gammaincinv, ndtr

    normal = np.linspace(-6.5, 6.5, 4097)
    lower, upper = normal[normal < 0], normal[normal >= 0]
    return normal, np.concatenate([gammaincinv(shape, ndtr(lower)), gammainccinv(shape, ndtr(-upper))])
