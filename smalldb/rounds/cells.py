"""All cells of a small universe at once: measured with one noise, read by empirical Bayes."""

from collections.abc import Sequence
from itertools import combinations
from math import log

import numpy as np

from queries.arrays import Floats
from queries.domain import Integers
from smalldb.rounds.grouping import halved
from smalldb.rounds.measuring import Measured
from smalldb.rounds.modelling import Model, fitted
from smalldb.rounds.reading import read_column
from smalldb.rounds.universe import Universe

MOST_CELLS = 1 << 20
SHAPES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0, 1000.0)  # of the negative binomial
SWEEPS, ITERATIONS = 0, 60
_CLEAR = 40.0  # a rate beyond which there is no noise to speak of


# Proof: docs/proofs/rounds.md, lemma 9.
def read_cells(universe: Universe, measured: Measured, rate: float, total: int) -> Model:
    """
    Return a distribution over all cells, from the released counts of all of them.

    First a log-linear model of the tables of two columns is fitted to sums of the released counts. Counts are
    negative binomial around what it expects, with the likeliest shape, and were seen with two-sided geometric
    noise: their posterior means are taken. The tables of two columns are then fitted once more, with those
    means as the base, so that shrinking cells does not move what sums of cells tell.

    Parameters
    ----------
    measured
        All columns at all places, in their own order: counts of shape `universe.sizes`.
    rate
        Of the noise: exp(-rate |z|).
    total
        The number of rows.
    """
    from smalldb.kernels.posterior import posterior

    everything = tuple(range(len(universe.sizes)))
    possible = np.ones(universe.sizes, dtype=bool)
    for columns, allowed in universe.rules:
        possible &= allowed.reshape([s if c in columns else 1 for c, s in enumerate(universe.sizes)])
    seen = np.where(possible, measured.counts, 0)
    masses = [_margin(seen, (c,)) for c in everything]
    variances = [measured.variance * universe.cells / size for size in universe.sizes]
    read = [
        read_column(mass, variance, total, ordered)
        for mass, variance, ordered in zip(masses, variances, universe.ordered, strict=True)
    ]
    lifted = [_lifted(mass, total) for mass in read]
    groupings = [halved(mass, True, levels=0) for mass in lifted]
    pairs = [
        Measured(
            tuple((c, groupings[c].finest) for c in pair),
            _margin(seen, pair),
            measured.cost,
            measured.variance * universe.cells / universe.size(pair),
        )
        for pair in combinations(everything, 2)
    ]
    whole = tuple((c, groupings[c].finest) for c in everything)
    zeros = np.where(possible, 0.0, -np.inf)
    first = fitted(groupings, lifted, pairs, [(whole, zeros)], total, (), SWEEPS, ITERATIONS, alike=True)
    expected = np.maximum(_cells(first), 1e-300)[possible] * total
    counts, bounded = np.ascontiguousarray(seen[possible]), min(rate, _CLEAR)
    best, means = -np.inf, expected
    for shape in SHAPES:
        heights = np.logaddexp(np.log(expected), log(shape))
        found, spread = np.empty(len(counts)), np.empty(len(counts))
        likelihood = posterior(counts, np.log(expected) - heights, shape, bounded, found, spread)
        likelihood += shape * float((log(shape) - heights).sum())
        if likelihood <= best:
            break
        best, means = likelihood, found
    base = np.full(universe.sizes, -np.inf)
    base[possible] = np.log(np.maximum(means, 1e-12) / total)
    return fitted(
        groupings,
        lifted,
        pairs,
        [(whole, base)],
        total,
        (),
        SWEEPS,
        ITERATIONS,
        independent=False,
        alike=True,
    )


def _margin(cells: Integers, columns: Sequence[int]) -> Integers:
    sums: Integers = cells.sum(axis=tuple(a for a in range(cells.ndim) if a not in columns))
    return sums


def _lifted(mass: Floats, total: int) -> Floats:
    lifted: Floats = np.maximum(mass, 1e-9 * total)
    return lifted * float(total / lifted.sum())


def _cells(model: Model) -> Floats:
    """Return the probabilities of all cells: the table of the bucket that has all columns."""
    sizes = [table.size for table in model.tables]
    return model.tables[int(np.argmax(sizes))]
