"""Noisy counts of all cells, read by empirical Bayes: between what was counted and what low orders say."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from itertools import combinations
from math import inf, log, prod, sqrt

import numpy as np

from queries import Domain
from queries.arrays import Floats
from queries.domain import Integers
from smalldb.marginals.estimate.grouping import halved
from smalldb.marginals.estimate.junction import beliefs, build
from smalldb.marginals.estimate.modelling import Model
from smalldb.marginals.measuring import NoisyTable
from smalldb.marginals.universe import Universe

_GAIN = 1e-4  # of what the slopes promise, what a step must save
_SHORTEST = 1e-6  # part of a step
_MEMORY = 50  # steps that the curvature is estimated from,
_NUMBERS = 1 << 22  # and how many numbers they may have
MOST_CELLS = 1 << 20
SHAPES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0)  # of the negative binomial
SCALES = {1: tuple(0.6 * 2.0**i for i in range(-3, 3)), 2: tuple(0.2 * 2.0**-i for i in range(-3, 6))}
EXACTLY = 0.5  # deviation of a public number of rows
ITERATIONS = 1000
_LEVEL = 10.0  # deviation of the logarithm of what all cells are expected to hold
CLEAR = 40.0  # a rate beyond which there is no noise to speak of
_MOST = 50.0  # logarithm of what a cell is expected to hold
_HIDDEN = 0.9  # of what counts tell of the coefficients, what noise can hide
_START = 1e-4  # slopes that are left in the model from which the search starts,
_SLOPE = 0.02  # and in the likeliest one
_STEPS = 1 << 31  # of the sums of posteriors, in all
_TRANSFORMED = 1 << 24  # cells, in all
_LEAST = 1e-12  # deviation of a mean, as noise


@dataclass(frozen=True, slots=True, eq=False)
class Contrasts:
    """Contrasts of all sets of columns: products of one cosine a column, of mean 0 and mean square 1.

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

    def _transformed(self, table: Floats, inverse: bool) -> Floats:
        if set(self.sizes) == {2}:  # the same, in a twentieth of the time
            from smalldb.kernels.cell_sums import walsh

            walsh(table)
            return table
        from scipy.fft import dctn, idctn

        transformed = (idctn if inverse else dctn)(table.reshape(self.sizes), norm="ortho", overwrite_x=True)
        return np.asarray(transformed).ravel() * sqrt(table.size)


def minimised(
    function: Callable[[Floats], tuple[float, Floats]], start: Floats, scale: Floats, enough: float, most: int
) -> Floats:
    """Return where a function is least: L-BFGS (Nocedal 1980), with steps that are halved until they help.

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
    """Return the log-linear coefficients of some contrasts, and the probabilities of the cells, shape (N,).

    They are where ``log Z(theta) - theta means + ridge theta^2 / 2`` is least.
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


@dataclass(frozen=True, slots=True, eq=False)
class CellCounts:
    """What was released: counts of all cells; and the number of rows, where that is public."""

    contrasts: Contrasts  # of the N cells that can exist
    # the released count of each cell, with two-sided geometric noise of ratio exp(-rate)
    counts: Integers
    rate: float
    rows: float | None = None

    def read(self, total: int, codes: Integers, theta: Floats, spread: Floats) -> Floats:
        """Return a distribution over the cells, shape (N,): their posterior means, divided by their sum.

        Expected counts are log-linear, with a normal prior for each coefficient. True counts are negative
        binomial around them. The likeliest coefficients are those of what was released: of the counts, with
        their noise integrated out, and of the number of rows, which is normal around what the counts leave
        open of it. The shape is the likeliest for the expected counts at the start: chosen again, it grows
        until cells are not trusted.
        """
        logs = self.contrasts.over_cells(codes, theta)
        level = log(total) - float(np.logaddexp.reduce(logs))
        codes, theta = np.concatenate([[0], codes]), np.concatenate([[level], theta])
        spread = np.concatenate([[_LEVEL], spread])
        logs = np.minimum(logs + level, _MOST)
        shape = self.likeliest_shape(logs)
        _, steps, means, variances = self.posterior(logs, shape)
        precision = 1 / (variances.sum() + EXACTLY**2)

        def objective(theta: Floats) -> tuple[float, Floats]:
            return self.objective(codes, theta, spread, shape, precision)

        information = steps * np.exp(logs)
        information -= np.minimum(steps**2 * variances, _HIDDEN * information)
        most = int(max(10, min(ITERATIONS, _STEPS * self.rate / (80 * len(self.counts)))))
        theta = minimised(objective, theta, 1 / np.sqrt(spread**-2.0 + information.sum()), _SLOPE, most)
        logs = np.minimum(self.contrasts.over_cells(codes, theta), _MOST)
        _, _, means, variances = self.posterior(logs, shape)
        # counts move by their covariances with the number of rows
        means += variances * (self._lacking(means) / (variances.sum() + EXACTLY**2))
        np.maximum(means, 0.0, out=means)
        # where cells were seen to be empty, all of them, nothing is known of the distribution
        if not means.sum() > 0:
            means = np.ones(len(means))
        return np.asarray(means / means.sum())

    def _lacking(self, means: Floats) -> float:
        """Return how many rows the posterior means lack; 0 where their number is not public."""
        return 0.0 if self.rows is None else self.rows - float(means.sum())

    def objective(
        self, codes: Integers, theta: Floats, spread: Floats, shape: float, precision: float
    ) -> tuple[float, Floats]:
        """Return minus the logarithm of the posterior density of coefficients, and its slopes; see `read`."""
        logs = np.minimum(self.contrasts.over_cells(codes, theta), _MOST)
        likelihood, steps, means, variances = self.posterior(logs, shape)
        lacking, away = self._lacking(means), theta / spread
        slopes = steps * (means - np.exp(logs) + variances * (precision * lacking))
        value = -likelihood + (precision * lacking**2 + float(away @ away)) / 2
        return value, away / spread - self.contrasts.sums(slopes)[codes]

    def posterior(self, logs: Floats, shape: float) -> tuple[float, Floats, Floats, Floats]:
        """Return what the released counts tell, where expected ones are given as logarithms.

        The logarithm of their likelihood; of each cell how far a step of the logarithm of its expected count
        arrives at the count; and the mean and the variance of the count.
        """
        from smalldb.kernels.cell_sums import posterior

        heights, (means, variances) = np.logaddexp(logs, log(shape)), np.empty((2, len(logs)))
        likelihood = posterior(self.counts, logs - heights, shape, self.rate, means, variances)
        likelihood += shape * float((log(shape) - heights).sum())
        return likelihood, np.exp(log(shape) - heights), means, variances

    def likeliest_shape(self, logs: Floats) -> float:
        """Climb to the likeliest shape for expected counts, given as logarithms."""

        @cache
        def likelihood(position: int) -> float:
            return self.posterior(logs, SHAPES[position])[0] if 0 <= position < len(SHAPES) else -inf

        position = len(SHAPES) // 2
        while (best := max(position - 1, position, position + 1, key=likelihood)) != position:
            position = best
        return SHAPES[position]


# Proof: docs/proofs/rounds.md, lemma 9.
def read_cells(universe: Universe, measured: NoisyTable, rate: float, total: int, replaced: bool) -> Model:
    """Return a distribution over all cells from their counts: see `CellCounts.read` and `prior_spread`."""
    contrasts = Contrasts(universe.sizes, np.flatnonzero(universe.possible()))
    counts = measured.counts.ravel()[contrasts.cells]
    noise = max(_LEAST, sqrt(measured.variance * len(counts)) / total)
    means = contrasts.sums(counts) / total
    codes, spread = prior_spread(universe.sizes, means, noise)
    most = max(50, min(ITERATIONS, _TRANSFORMED // prod(universe.sizes)))
    theta, _ = maximum_entropy(contrasts, codes, means[codes], (noise / spread) ** 2, _START, most)
    released = CellCounts(contrasts, counts, min(rate, CLEAR), float(total) if replaced else None)
    table = np.zeros(prod(universe.sizes))
    table[contrasts.cells] = released.read(total, codes, theta, spread)
    groupings = [halved(np.ones(size), True, levels=0) for size in universe.sizes]
    tree = build([tuple((c, grouping.finest) for c, grouping in enumerate(groupings))], groupings)
    with np.errstate(divide="ignore"):
        tables, _ = beliefs(tree, [np.log(table.reshape(universe.sizes))])
    return Model(tree, tuple(tables), ())


def prior_spread(sizes: Sequence[int], means: Floats, noise: float) -> tuple[Integers, Floats]:
    """
    Return the codes of the contrasts of one and two columns, and the deviations of their coefficients' prior.

    Those of so many columns have one deviation: the likeliest for the released means. The mean of a contrast
    of two columns that do not interact is the product of two means; a small coefficient moves it by that
    times the variances of both contrasts.
    """
    alone = [_moments(means[_codes(sizes, (c,))]) for c in range(len(sizes))]
    chosen, spread = list[Integers](), list[Floats]()
    for width, scales in SCALES.items():
        columns = list(combinations(range(len(sizes)), width))
        codes = [_codes(sizes, some) for some in columns]
        apart, moved = [means[some] for some in codes], [np.ones(len(some)) for some in codes]
        if width == 2:
            apart = [
                mean - _outer(alone[c][0] for c in some) for mean, some in zip(apart, columns, strict=True)
            ]
            moved = [_outer(alone[c][1] for c in some) for some in columns]
        if not columns:
            continue
        every, of_one = np.concatenate(apart), np.concatenate(moved)
        variances = [noise**2 + (scale * of_one) ** 2 for scale in scales]
        likelihoods = [-float((np.log(each) + every**2 / each).sum()) for each in variances]
        chosen += codes
        spread.append(np.full(len(every), scales[int(np.argmax(likelihoods))]))
    return np.concatenate(chosen), np.concatenate(spread)


def _codes(sizes: Sequence[int], columns: Sequence[int]) -> Integers:
    """Return the codes of the contrasts of a set of columns."""
    steps = [prod(sizes[c + 1 :]) * np.arange(1, sizes[c]) for c in columns]
    return np.asarray(reduce(np.add.outer, steps).ravel())


def _outer(parts: Iterator[Floats]) -> Floats:
    return np.asarray(reduce(np.multiply.outer, parts).ravel())


def _moments(means: Floats) -> tuple[Floats, Floats]:
    """Return the means of a column's contrasts, and their variances: cos^2 x = (1 + cos 2x) / 2."""
    means = np.clip(means, -sqrt(2), sqrt(2))
    wrapped = np.concatenate([[0.0], means, [0.0], -means[::-1]])  # of cosines of all frequencies below 2k
    squares = 1 + wrapped[(2 * np.arange(1, len(means) + 1)) % len(wrapped)] / sqrt(2)
    return means, np.maximum(squares - means**2, 0.02)
