"""What one row does to a column's counts, and sums of it: lattice points, counted and drawn exactly."""

from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from itertools import accumulate, pairwise
from math import comb, log
from typing import TypeAlias

import numpy as np

from queries.arrays import Floats, Integers
from smalldb.exact.bits import BitSource
from smalldb.exact.integers import uniform_below, uniform_subset

Radii: TypeAlias = Floats | Integers
_LISTED = 1 << 20


# Proof: docs/proofs/k-norm.md, lemma 1.
@lru_cache(maxsize=1 << 16)
def points(size: int, up: int, down: int) -> int:
    """Count integer vectors with the sum up - down, positive entries up to `up` in all, others to -down."""
    # of 3 entries, for 1 and 1: seven, 0 and one category up and another down
    return sum(_by_positive(size - 1, up, down))


def _by_positive(free: int, up: int, down: int) -> Iterator[int]:
    """Count those of which 0, 1, 2... of the first `free` entries are positive; the last one follows."""
    # of which j are: comb(free, j) comb(up, j) comb(down + free - j, free - j), each from the one before
    those = comb(down + free, free)
    for positive in range(min(free, up) + 1):
        yield those
        rest = free - positive
        those = those * (rest * rest * (up - positive)) // ((positive + 1) ** 2 * max(1, down + rest))


# Proof: docs/proofs/k-norm.md, lemma 1.
def draw_point(size: int, up: int, down: int, source: BitSource) -> list[int]:
    """Draw one of `points`, uniformly, exactly."""
    free, position = size - 1, uniform_below(points(size, up, down), source)
    ends = accumulate(_by_positive(free, up, down))
    positive = next(positive for positive, end in enumerate(ends) if position < end)
    signs = uniform_subset(free, positive, source)
    rest = free - positive
    rises = iter(_gaps(uniform_subset(up, positive, source)))
    falls = iter(_gaps(uniform_subset(down + rest, rest, source)))
    entries = [next(rises) if entry in signs else 1 - next(falls) for entry in range(free)]
    return [*entries, up - down - sum(entries)]


def _gaps(subset: set[int]) -> list[int]:
    """Return the steps from -1 to the least, and on to the next: at least 1 each."""
    return [here - before for before, here in pairwise([-1, *sorted(subset)])]


def log_points(size: int, up: Radii, down: Radii) -> Floats:
    """Return the logarithm of `points`, for arrays of radii."""
    return _added(size - 1, lambda j: _log_comb(up, j), down)


# Proof: docs/proofs/k-norm.md, lemma 4.
def log_squares(size: int, up: Radii, down: Radii) -> Floats:
    """Return the logarithm of the sum over `points` of the square of an entry, for arrays of radii."""

    def rising(j: int, most: Radii) -> Floats:
        """Of the sum over x of x^2 comb(most - x, j)."""
        return _log_comb(most + 2, j + 3) + np.log(np.maximum(2 * most + 1 - j, 1) / (most + 2))

    return np.logaddexp(
        _added(size - 2, lambda j: rising(j, up), down), _added(size - 2, lambda j: rising(j, down), up)
    )


# Proof: docs/proofs/k-norm.md, lemma 4.
def log_tails(size: int, least: int, up: Radii, down: Radii) -> Floats:
    """Return the logarithm of how many points have an entry of at least that, above 0."""
    return _added(size - 2, lambda j: _log_comb(up - least + 1, j + 1), down)


def _added(free: int, positive: Callable[[int], Floats], down: Radii) -> Floats:
    """Return the logarithm of a sum over how many of the free entries are positive."""
    logs = np.full(len(down), -np.inf)
    for j in range(free + 1):
        rest = free - j
        logs = np.logaddexp(logs, positive(j) + _log_comb(down + rest, rest) + log(comb(free, j)))
    return logs


def _log_comb(n: Radii, k: int) -> Floats:
    """Return the logarithm of n choose k; minus infinite where n is below k."""
    inside = np.maximum(n, k)
    fixed = _listed_factorials(1 << k.bit_length())[k]
    logs = _log_factorials(inside) - _log_factorials(inside - k) - fixed
    return np.asarray(np.where(n >= k, logs, -np.inf))


def _log_factorials(n: Radii) -> Floats:
    """Return the logarithms of factorials: of whole numbers from a list, as long as it is short."""
    from scipy.special import gammaln

    if n.dtype.kind == "i" and (most := int(n.max(initial=0))) < _LISTED:
        return _listed_factorials(1 << most.bit_length())[n]
    return np.asarray(gammaln(n + 1.0))


@cache
def _listed_factorials(count: int) -> Floats:
    """Return the logarithms of the factorials of 0 to count - 1."""
    from scipy.special import gammaln

    return np.asarray(gammaln(np.arange(1.0, count + 1)))
