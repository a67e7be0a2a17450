"""Noisy counts of all cells, read by empirical Bayes: between what was counted and what low orders say."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from itertools import combinations
from math import inf, log, prod, sqrt

import numpy as np

from queries.arrays import Floats
from queries.domain import Integers
from smalldb.marginals.estimate.belief_propagation import beliefs, build
from smalldb.marginals.estimate.cell_fitting import Contrasts, maximum_entropy, minimised
from smalldb.marginals.estimate.grouping import halved
from smalldb.marginals.estimate.modelling import Model
from smalldb.marginals.measuring import NoisyTable
from smalldb.marginals.universe import Universe

MOST_CELLS = 1 << 20
SHAPES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0)  # of the negative binomial
SCALES = {1: tuple(0.6 * 2.0**i for i in range(-3, 3)), 2: tuple(0.2 * 2.0**-i for i in range(-3, 6))}
POWERS = (0.0, 0.5, 1.0)  # of frequencies in ordered columns, by which contrasts are expected smaller
EXACTLY = 0.5  # deviation of a public number of rows
ITERATIONS = 1000
_FEW = 8  # contrasts: a table of fewer has the prior of all
_PRICE = 4.0  # twice the logarithm of a likelihood, by which another prior must be better
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
class CellCounts:
    """What was released: counts of all cells, and parities beside them."""

    contrasts: Contrasts  # of the N cells that can exist
    # the released count of each cell, with two-sided geometric noise of ratio exp(-rate)
    counts: Integers
    rate: float
    # the codes of parities of yes/no columns that were measured beside the cells, or of the empty set (the
    # number of rows); their sums, and the noise of these as variances
    beside: Integers
    sums: Floats
    noise: Floats

    def read(self, total: int, codes: Integers, theta: Floats, spread: Floats) -> Floats:
        """
        Return a distribution over the cells, shape (N,): their posterior means, divided by their sum.

        Expected counts are log-linear, with a normal prior for each coefficient. True counts are negative
        binomial around them. The likeliest coefficients are those of what was released: of the counts, with
        their noise integrated out, and of the sums beside, which are normal around what the counts leave open
        of them. The shape is the likeliest for the expected counts at the start: chosen again, it grows until
        cells are not trusted.
        """
        logs = self.contrasts.over_cells(codes, theta)
        level = log(total) - float(np.logaddexp.reduce(logs))
        codes, theta = np.concatenate([[0], codes]), np.concatenate([[level], theta])
        spread = np.concatenate([[_LEVEL], spread])
        logs = np.minimum(logs + level, _MOST)
        shape = self.likeliest_shape(logs)
        _, steps, means, variances = self.posterior(logs, shape)
        precision = self.precision(variances)

        def objective(theta: Floats) -> tuple[float, Floats]:
            return self.objective(codes, theta, spread, shape, precision)

        told = steps * np.exp(logs)
        told -= np.minimum(steps**2 * variances, _HIDDEN * told)
        most = int(max(10, min(ITERATIONS, _STEPS * self.rate / (80 * len(self.counts)))))
        theta = minimised(objective, theta, 1 / np.sqrt(spread**-2.0 + told.sum()), _SLOPE, most)
        logs = np.minimum(self.contrasts.over_cells(codes, theta), _MOST)
        _, _, means, variances = self.posterior(logs, shape)
        # counts move by their covariances with the sums
        push = self.precision(variances) @ (self.sums - self.contrasts.sums(means)[self.beside])
        means += variances * self.contrasts.over_cells(self.beside, push)
        np.maximum(means, 0.0, out=means)
        # where cells were seen to be empty, all of them, nothing is known of the distribution
        if not means.sum() > 0:
            means = np.ones(len(means))
        return np.asarray(means / means.sum())

    def precision(self, variances: Floats) -> Floats:
        """Return the inverse of how sums beside vary around those of posterior means: counts and noise."""
        products = self.contrasts.products(variances, self.beside)
        return np.asarray(np.linalg.inv(products + np.diag(self.noise)), dtype=np.float64)

    def objective(
        self, codes: Integers, theta: Floats, spread: Floats, shape: float, precision: Floats
    ) -> tuple[float, Floats]:
        """Return minus the logarithm of the posterior density of coefficients, and its slopes; see `read`."""
        logs = np.minimum(self.contrasts.over_cells(codes, theta), _MOST)
        likelihood, steps, means, variances = self.posterior(logs, shape)
        apart = self.sums - self.contrasts.sums(means)[self.beside]
        push, away = precision @ apart, theta / spread
        slopes = steps * (means - np.exp(logs) + variances * self.contrasts.over_cells(self.beside, push))
        value = -likelihood + float(apart @ push + away @ away) / 2
        return value, away / spread - self.contrasts.sums(slopes)[codes]

    def posterior(self, logs: Floats, shape: float) -> tuple[float, Floats, Floats, Floats]:
        """
        Return what the released counts tell, where expected ones are given as logarithms.

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
    """
    Return a distribution over all cells, from the released counts of all of them.

    Expected counts are log-linear in the contrasts of one and two columns: see `CellCounts.read` and
    `prior_spread`.
    """
    contrasts = Contrasts(universe.sizes, np.flatnonzero(universe.possible()))
    counts = measured.counts.ravel()[contrasts.cells]
    noise = max(_LEAST, sqrt(measured.variance * len(counts)) / total)
    means = contrasts.sums(counts) / total
    codes, spread = prior_spread(universe, means, noise)
    most = max(50, min(ITERATIONS, _TRANSFORMED // prod(universe.sizes)))
    theta, _ = maximum_entropy(contrasts, codes, means[codes], (noise / spread) ** 2, _START, most)
    rows = np.full(int(replaced), float(total))
    beside = np.zeros(len(rows), dtype=np.int64)
    released = CellCounts(contrasts, counts, min(rate, CLEAR), beside, rows, np.full(len(rows), EXACTLY**2))
    table = np.zeros(prod(universe.sizes))
    table[contrasts.cells] = released.read(total, codes, theta, spread)
    groupings = [halved(np.ones(size), True, levels=0) for size in universe.sizes]
    tree = build([tuple((c, grouping.finest) for c, grouping in enumerate(groupings))], groupings)
    with np.errstate(divide="ignore"):
        tables, _ = beliefs(tree, [np.log(table.reshape(universe.sizes))])
    return Model(tree, tuple(tables), ())


def prior_spread(universe: Universe, means: Floats, noise: float) -> tuple[Integers, Floats]:
    """
    Return the codes of the contrasts of one and two columns, and the deviations of their coefficients' prior.

    Those of a table have one deviation, over a power of their frequencies in ordered columns: neighbours are
    alike there. It is the likeliest for the released means of all tables of so many columns, or of the table
    alone where that is clearly likelier. The mean of a contrast of two columns that do not interact is the
    product of two means; a small coefficient moves it by that times the variances of both contrasts.
    """
    sizes, found = universe.sizes, list[tuple[Integers, Floats]]()
    alone = [_moments(means[codes]) for codes in (_codes(sizes, (c,)) for c in range(len(sizes)))]
    for width, scales in SCALES.items():
        priors = [(scale, power) for scale in scales for power in POWERS]
        tables, likelihoods = [], list[Floats]()
        for columns in combinations(range(len(sizes)), width):
            codes = _codes(sizes, columns)
            smooth = [universe.ordered[c] and sizes[c] >= _FEW for c in columns]
            frequencies = _outer(np.arange(1.0, sizes[c]) ** s for c, s in zip(columns, smooth, strict=True))
            apart, moved = means[codes], np.ones(len(codes))
            if width == 2:
                apart = apart - _outer(alone[c][0] for c in columns)
                moved = _outer(alone[c][1] for c in columns)
            tables.append((codes, frequencies))
            likelihoods.append(
                np.array([_likelihood(apart, noise, s * frequencies**-p * moved) for s, p in priors])
            )
        together = int(np.argmax(np.sum(likelihoods, axis=0))) if tables else 0
        for (codes, frequencies), likelihood in zip(tables, likelihoods, strict=True):
            best = int(np.argmax(likelihood))
            own = len(codes) >= _FEW and likelihood[best] > likelihood[together] + _PRICE
            scale, power = priors[best if own else together]
            found.append((codes, scale * frequencies**-power))
    return np.concatenate([codes for codes, _ in found]), np.concatenate([spread for _, spread in found])


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


def _likelihood(values: Floats, noise: float, spread: Floats) -> float:
    variances = noise**2 + spread**2
    return -float((np.log(variances) + values**2 / variances).sum())
