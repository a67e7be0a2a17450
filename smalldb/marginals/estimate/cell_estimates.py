"""All cells of a small universe at once: measured with one noise, read by empirical Bayes."""

from collections.abc import Sequence
from itertools import combinations
from math import log, prod

import numpy as np

from queries.arrays import Floats, Numbers
from queries.domain import Integers
from smalldb.marginals.estimate.belief_propagation import beliefs, build
from smalldb.marginals.estimate.column_estimates import read_column
from smalldb.marginals.estimate.grouping import halved
from smalldb.marginals.estimate.log_linear import Factor, fit
from smalldb.marginals.estimate.modelling import Model, fitted
from smalldb.marginals.measuring import Measured
from smalldb.marginals.universe import Universe

MOST_CELLS = 1 << 20
SHAPES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0, 1000.0)  # of the negative binomial
SWEEPS, ITERATIONS = 0, 60
_CLEAR = 40.0  # a rate beyond which there is no noise to speak of
_CERTAIN = 1e-9  # a variance of which the same holds
_TOLD = 0.02  # of the noise, what a prior is taken to miss at least


# Proof: docs/proofs/rounds.md, lemma 9.
def read_cells(universe: Universe, measured: Measured, rate: float, total: int) -> Model:
    """
    Return a distribution over all cells, from the released counts of all of them.

    First a log-linear model of the tables of two columns is fitted to sums of the released counts. Counts are
    negative binomial around what it expects, with the likeliest shape, and were seen with two-sided geometric
    noise: their posterior means are taken. Their sums over columns and pairs of columns are moved to released
    ones as far as the two differ by more than noise (`moved_to_sums`).

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
    possible = universe.possible()
    seen = np.where(possible, measured.counts, 0)
    noise = measured.variance * np.count_nonzero(possible)  # of the sum of all cells that rows can be in
    read = [
        read_column(_margin(seen, (c,)), noise / size, total, ordered)
        for c, (size, ordered) in enumerate(zip(universe.sizes, universe.ordered, strict=True))
    ]
    lifted = [_lifted(mass, total) for mass in read]
    groupings = [halved(mass, True, levels=0) for mass in lifted]
    pairs = [
        Measured(
            tuple((c, groupings[c].finest) for c in pair),
            _margin(seen, pair),
            measured.cost,
            measured.noise,
            noise / universe.size(pair),
        )
        for pair in combinations(everything, 2)
    ]
    whole = tuple((c, groupings[c].finest) for c in everything)
    zeros = np.where(possible, 0.0, -np.inf)
    first = fitted(
        groupings, dict(enumerate(lifted)), pairs, [(whole, zeros)], total, (), SWEEPS, ITERATIONS, alike=True
    )
    expected = np.maximum(_cells(first), 1e-300)[possible] * total
    counts, bounded = np.ascontiguousarray(seen[possible]), min(rate, _CLEAR)
    best, means, variances = -np.inf, expected, np.zeros(len(counts))
    for shape in SHAPES:
        heights = np.logaddexp(np.log(expected), log(shape))
        found, spread = np.empty(len(counts)), np.empty(len(counts))
        likelihood = posterior(counts, np.log(expected) - heights, shape, bounded, found, spread)
        likelihood += shape * float((log(shape) - heights).sum())
        if likelihood <= best:
            break
        best, means, variances = likelihood, found, spread
    believed, doubt = np.zeros(universe.sizes), np.zeros(universe.sizes)
    believed[possible] = np.maximum(means, 1e-12)
    believed *= total / believed.sum()
    doubt[possible] = variances
    return moved_to_sums(believed, doubt, seen, measured.variance)


def moved_to_sums(believed: Floats, doubt: Floats, seen: Integers, variance: float) -> Model:
    """
    Return the distribution of posterior means, with sums moved to released ones where those tell more.

    Where the prior holds, a released sum and a sum of posterior means differ by noise alone, of the variance
    of the noise less that of the posterior: then moving would bring the noise back. What they differ by
    beyond that is what the prior missed. Each table of one or two columns is held as closely as that says.

    Parameters
    ----------
    believed
        Posterior means of all cells; 0 where no row can be, and there alone.
    doubt
        Their posterior variances.
    seen
        The released counts.
    variance
        Of the noise of each.
    """
    everything, total = tuple(range(believed.ndim)), float(believed.sum())
    groupings = [halved(np.ones(size), True, levels=0) for size in believed.shape]
    whole = tuple((c, groupings[c].finest) for c in everything)
    scopes, factors = [], []
    for columns in (*combinations(everything, 1), *combinations(everything, 2)):
        here, beyond = _margin(believed, columns), _margin(seen - believed, columns)
        for axis in range(beyond.ndim):  # what the tables of fewer columns say is theirs
            beyond = beyond - beyond.mean(axis=axis, keepdims=True)
        noise = max(variance * np.count_nonzero(believed) / here.size, _CERTAIN)
        freedom = prod(size - 1 for size in here.shape)
        left = max(noise - float(_margin(doubt, columns).mean()), 0.0)
        missed = max(float((beyond**2).sum()) - left * freedom, _TOLD * noise * freedom)
        # as in `modelling.factor_of`, the ridge is mu noise / s where mu rows are believed; with a variance s
        # of c mu for what was missed there, it is the same for all cells
        ridge = noise * float(np.maximum(here, 1.0).sum()) / missed
        scopes.append(tuple(whole[c] for c in columns))
        factors.append(Factor(np.zeros(here.shape), (here + beyond, np.full(here.shape, ridge))))
    with np.errstate(divide="ignore"):
        factors.append(Factor(np.log(believed / total), None))
    tree = build([*scopes, whole], groupings)
    found = fit(tree, factors, total, [None] * len(scopes), SWEEPS, ITERATIONS)
    probabilities, _ = beliefs(tree, [*found, factors[-1].base])
    return Model(tree, tuple(probabilities), tuple(found))


def _margin(cells: Numbers, columns: Sequence[int]) -> Numbers:
    sums: Numbers = cells.sum(axis=tuple(a for a in range(cells.ndim) if a not in columns))
    return sums


def _lifted(mass: Floats, total: int) -> Floats:
    lifted: Floats = np.maximum(mass, 1e-9 * total)
    return lifted * float(total / lifted.sum())


def _cells(model: Model) -> Floats:
    """Return the probabilities of all cells: the table of the bucket that has all columns."""
    sizes = [table.size for table in model.tables]
    return model.tables[int(np.argmax(sizes))]
