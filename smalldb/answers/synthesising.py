"""From released integers to synthetic rows: post-processing, without entropy."""

from itertools import combinations, product

import numpy as np

from queries.domain import MAX_TABLE_ATTRIBUTES, Bits
from queries.rows import pack
from smalldb.answers.fitting import guarded_fit, sizes_of
from smalldb.answers.histogram import read
from smalldb.answers.parities import Floats
from smalldb.answers.released import Estimates, Measured, estimates, masks
from smalldb.answers.rounding import rounded, scattered
from smalldb.answers.searching import search
from smalldb.answers.shares import AnswersPlan
from smalldb.exact.numbers import whole

PRECISION = 50  # the search ends where it is so much more exact than the release
SEARCHED = 2000  # rows at most beyond 20 attributes; larger tables repeat them
FROM_AFAR = 10**9  # budget of a search that starts there from independent attributes
_HALVINGS = 50


def synthesise(plan: AnswersPlan, measured: Measured, rows: int, *, progress: bool = False) -> Bits:
    """
    Return synthetic rows whose answers are near to the released ones: 0/1, shape (rows, d), in cell order.

    Up to 20 attributes a distribution over the cells is fitted, rounded to rows, and the rows are moved
    towards the answers of the distribution. Beyond, rows with independent attributes are moved towards the
    released answers, each parity drawn towards what lower orders say of it, as far as its public noise makes
    it doubtful; tables of more than 2000 rows repeat fewer.

    The same released integers give the same rows. No row is made that `domain.valid` rules out.
    """
    rows = whole(rows, "rows")
    series = plan.spectrum
    enough = plan.expected_error / PRECISION
    if len(plan.workload.domain.attributes) <= MAX_TABLE_ATTRIBUTES:
        from smalldb.kernels.walsh import walsh

        distribution = guarded_fit(plan, measured).q if plan.cells is None else read(plan, measured)
        start = rounded(plan.workload.domain, distribution, rows)
        walsh(distribution)
        wanted = series.answers(distribution[masks(plan)])
        bits = search(plan.workload, start, wanted, enough=enough, progress=progress)
    else:
        found = estimates(plan, measured)
        ones = _ones(plan, found)
        wanted = series.answers(_shrunk(plan, found, 1 - 2 * ones))
        copies = -(-rows // SEARCHED)
        start = scattered(ones, rows // copies)
        bits = search(plan.workload, start, wanted, enough=enough, budget=FROM_AFAR, progress=progress)
        bits = bits[np.arange(rows) % len(bits)]
    return bits[np.lexsort(pack(bits).T[::-1])]


def _ones(plan: AnswersPlan, found: Estimates) -> Floats:
    """Return how frequent each attribute is, shape (d,); one half where that was not measured."""
    ones = np.full(len(plan.workload.domain.attributes), 0.5)
    for places, chi in zip(plan.spectrum.sets, found.chi, strict=True):
        if len(places) == 1:
            ones[places[0]] = (1 - chi) / 2
    return ones


def _shrunk(plan: AnswersPlan, found: Estimates, means: Floats) -> Floats:
    """Draw each parity towards what lower orders say of it, by its noise and prior.

    Order 2 and above 3: the product of the means of its attributes; order 3: `uninteracting`, where its pairs
    are there.
    """
    sets, orders = plan.spectrum.sets, plan.spectrum.orders
    said = np.array([means[list(places)].prod() for places in sets])
    trust = 1 / (1 + (found.deviations / sizes_of(plan, found)) ** 2)
    shrunk: Floats = np.where(orders == 1, said, said + trust * (found.chi - said))
    ranks = {places: rank for rank, places in enumerate(sets)}
    triples = [
        places for places in sets if len(places) == 3 and all(p in ranks for p in combinations(places, 2))
    ]
    if triples:
        pairs = [[shrunk[ranks[pair]] for pair in combinations(places, 2)] for places in triples]
        at = [ranks[places] for places in triples]
        said[at] = uninteracting(means[np.array(triples)], np.array(pairs))
        shrunk[at] = said[at] + trust[at] * (found.chi[at] - said[at])
    return shrunk


def uninteracting(means: Floats, pairs: Floats) -> Floats:
    """
    Return the parities of three attributes if these have no three-way interaction, shape (k,).

    The logarithms of the four cells of even parity add up to those of the four others. Where no table has the
    given means, shape (k, 3), and pairs (1 2), (1 3), (2 3), the middle of what each cell alone allows.
    """
    signs = np.array(list(product((1.0, -1.0), repeat=3)))
    even = signs.prod(axis=1) > 0
    sums = 1 + means @ signs.T + pairs @ np.array([a * b for a, b in combinations(signs.T, 2)])
    low, high = -sums[:, even].min(axis=1), sums[:, ~even].min(axis=1)
    low, high = np.where(low <= high, [low, high], (low + high) / 2)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        ups, downs = sums[:, even] + middle[:, None], sums[:, ~even] - middle[:, None]
        above = ups.prod(axis=1) > downs.prod(axis=1)
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    found: Floats = (low + high) / 2
    return found
