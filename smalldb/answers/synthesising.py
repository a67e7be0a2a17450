"""From released integers to synthetic rows: post-processing, without entropy."""

import numpy as np

from queries.domain import MAX_TABLE_ATTRIBUTES, Bits
from queries.rows import pack
from smalldb.answers.fitting import Estimates, estimates, fit, masks
from smalldb.answers.histogram import read
from smalldb.answers.measuring import Measured
from smalldb.answers.parities import Floats
from smalldb.answers.priors import prior
from smalldb.answers.rounding import rounded, scattered
from smalldb.answers.searching import search
from smalldb.answers.shares import AnswersPlan
from smalldb.arguments import whole

PRECISION = 50  # the search ends where it is so much more exact than the release
SEARCHED = 2000  # rows at most beyond 20 attributes; larger tables repeat them


def synthesise(plan: AnswersPlan, measured: Measured, rows: int, *, progress: bool = False) -> Bits:
    """
    Return synthetic rows whose answers are near to the released ones: 0/1, shape (rows, d), in cell order.

    Up to 20 attributes a distribution over the cells is fitted, rounded to rows, and the rows are moved
    towards the answers of the distribution. Beyond, rows with independent attributes are moved towards the
    released answers, each parity drawn towards what its attributes would give independently, as far as
    its public noise makes it doubtful; tables of more than 2000 rows repeat fewer.

    The same released integers give the same rows. No row is made that `domain.valid` rules out.
    """
    rows = whole(rows, "rows")
    found, series = estimates(plan, measured), plan.spectrum
    enough = plan.expected_error / PRECISION
    if len(plan.workload.domain.attributes) <= MAX_TABLE_ATTRIBUTES:
        from smalldb.kernels.walsh import walsh

        distribution = read(plan, measured) if plan.parts[-1].law == "cells" else fit(plan, found).q
        start = rounded(plan.workload.domain, distribution, rows)
        walsh(distribution)
        wanted = series.answers(distribution[masks(plan)])
        bits = search(plan.workload, start, wanted, enough=enough, progress=progress)
    else:
        ones = _ones(plan, found)
        wanted = series.answers(_shrunk(plan, found, 1 - 2 * ones))
        copies = -(-rows // SEARCHED)
        start = scattered(ones, rows // copies)
        bits = search(plan.workload, start, wanted, enough=enough, progress=progress)
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
    """Draw each parity towards the product of the means of its attributes, by its noise and prior."""
    product = np.array([means[list(places)].prod() for places in plan.spectrum.sets])
    orders, firsts = plan.spectrum.orders, [places[0] for places in plan.spectrum.sets]
    trust = 1 / (1 + (found.deviations / prior(orders)) ** 2)
    shrunk: Floats = np.where(orders == 1, means[firsts], product + trust * (found.chi - product))
    return shrunk
