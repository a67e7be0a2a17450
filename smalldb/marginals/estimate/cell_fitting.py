"""Log-linear models of universes whose cells are listed: their contrasts, and fits by L-BFGS.

Here a model may have contrasts of any sets of columns, and what is maximised may be any function of the
cells: entropy, or a likelihood in which noise is integrated out. L-BFGS needs no second derivatives, so it
serves one parity and a million. Tables with too many cells for a list have models on junction trees, and
another fitter: `proportional_fitting`.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import log, prod, sqrt

import numpy as np

from queries import Domain
from queries.arrays import Floats
from queries.domain import Integers

_GAIN = 1e-4  # of what the slopes promise, what a step must save
_SHORTEST = 1e-6  # part of a step
_MEMORY = 50  # steps that the curvature is estimated from,
_NUMBERS = 1 << 22  # and how many numbers they may have


@dataclass(frozen=True, slots=True, eq=False)
class Contrasts:
    """
    Contrasts of all sets of columns: products of one cosine a column, of mean 0 and mean square 1.

    The contrasts of a column of k categories are sqrt(2) cos(pi j (2x + 1) / 2k) for j = 1 to k - 1: smooth
    ones first. That of a yes/no column is its sign, so those of yes/no columns are the parities of all sets.
    A contrast's code is its position in an array of shape `sizes`: a j for each column, 0 where it is not in
    it.
    """

    sizes: tuple[int, ...]  # how many categories the columns have
    cells: Integers  # the positions, in an array of that shape, of the cells that can exist; shape (N,)

    @classmethod
    def of(cls, domain: Domain) -> "Contrasts":
        """Return the parities over a domain of yes/no attributes."""
        return cls((2,) * len(domain.attributes), domain.cells())

    def sums(self, weights: Floats | Integers) -> Floats:
        """Return the sums over the cells of weights, (N,), times each contrast, by their codes."""
        table = np.zeros(prod(self.sizes))
        table[self.cells] = weights
        return self._transformed(table, inverse=False)

    def over_cells(self, codes: Integers, coefficients: Floats) -> Floats:
        """Return, for each cell, the sum of coefficients times the contrasts of these codes: shape (N,)."""
        table = np.zeros(prod(self.sizes))
        np.add.at(table, codes, coefficients)
        return self._transformed(table, inverse=True)[self.cells]

    def products(self, weights: Floats, parities: Integers) -> Floats:
        """Return the sums of weights times the product of any two of some parities; 0 is the empty set."""
        found: Floats = self.sums(weights)[parities[:, None] ^ parities]
        return found

    def _transformed(self, table: Floats, inverse: bool) -> Floats:
        if set(self.sizes) == {2}:  # the same, in a twentieth of the time
            from smalldb.kernels.cell_sums import walsh

            walsh(table)
            return table
        from scipy.fft import dctn, idctn

        found = (idctn if inverse else dctn)(table.reshape(self.sizes), norm="ortho", overwrite_x=True)
        return np.asarray(found).ravel() * sqrt(table.size)


def minimised(
    function: Callable[[Floats], tuple[float, Floats]], start: Floats, scale: Floats, enough: float, most: int
) -> Floats:
    """
    Return where a function is least: L-BFGS (Nocedal 1980), with steps that are halved until they help.

    SciPy's calls LAPACK for matrices of up to 100 columns at each step, whose threads take several times as
    long as all the rest.
    """
    point, (value, slopes) = start, function(start)
    slopes = slopes * scale
    memory = max(5, min(_MEMORY, _NUMBERS // max(1, len(start))))
    past = deque[tuple[Floats, Floats, float]](maxlen=memory)
    looked = 1
    while looked < most and np.abs(slopes).max(initial=0.0) > enough:
        step, shares = slopes.copy(), list[float]()
        for moved, bent, inverse in reversed(past):
            shares.append(inverse * float(moved @ step))
            step -= shares[-1] * bent
        if past:
            step /= past[-1][2] * float(past[-1][1] @ past[-1][1])
        for (moved, bent, inverse), share in zip(past, reversed(shares), strict=True):
            step += (share - inverse * float(bent @ step)) * moved
        length, gain, before = 1.0, _GAIN * float(slopes @ step), value
        while looked < most:
            looked += 1
            there = point - length * step * scale
            value, new = function(there)
            if value <= before - length * gain or length < _SHORTEST:
                break
            length /= 2
        if not value < before:
            if not past:
                break
            value = before  # what was remembered of the curvature misleads: from here on it is learned anew
            past.clear()
            continue
        bent = new * scale - slopes
        if (product := -length * float(step @ bent)) > 0:
            past.append((-length * step, bent, 1 / product))
        point, slopes = there, new * scale
    return point


def maximum_entropy(
    contrasts: Contrasts, codes: Integers, means: Floats, ridge: Floats, enough: float, most: int
) -> tuple[Floats, Floats]:
    """
    Return the log-linear coefficients of some contrasts, and the probabilities of the cells, shape (N,).

    They are where ``log Z(theta) - theta means + ridge theta^2 / 2`` is least; what is left of each mean is
    then ridge theta. See `minimised`.
    """

    def probabilities(theta: Floats) -> tuple[float, Floats]:
        logs = contrasts.over_cells(codes, theta)
        top = float(logs.max())
        weights = np.exp(logs - top)
        total = float(weights.sum())
        return top + log(total), weights / total

    def objective(theta: Floats) -> tuple[float, Floats]:
        log_sum, q = probabilities(theta)
        slopes = contrasts.sums(q)[codes] - means + ridge * theta
        return log_sum - float(theta @ means) + float(ridge @ theta**2) / 2, slopes

    theta = minimised(objective, np.zeros(len(codes)), 1 / np.sqrt(1 + ridge), enough, most)
    return theta, probabilities(theta)[1]
