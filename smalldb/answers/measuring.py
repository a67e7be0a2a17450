"""The one step that sees the data: exact counts, exact noise, integers out."""

from collections import Counter
from fractions import Fraction

import numpy as np

from queries import Rows
from queries.domain import Integers
from smalldb.answers.fitting import predicted
from smalldb.answers.gaussian import gaussian_noise
from smalldb.answers.parities import odd_counts
from smalldb.answers.parts import Measurement
from smalldb.answers.released import Measured, pieces
from smalldb.answers.shares import AnswersPlan
from smalldb.answers.wishart import rates, wishart_noise
from smalldb.exact.bits import BitSource
from smalldb.exact.integers import CLIP, cube_noise, two_sided_geometric, uniform_below
from smalldb.exact.levels import draw_level

LIMIT = CLIP // 2


def measure(plan: AnswersPlan, rows: Rows, source: BitSource) -> Measured:
    """
    Release the counts of a plan with exact noise: by the exponential mechanism over answers, or Gaussian.

    Each count moves by at most 1 between neighbours, so max |V| of a part moves by at most 1, the part's law
    by at most exp(epsilon share), and all of it by at most exp(epsilon). (Cells: the sum of all moves is at
    most 2 under replace-one, at most 1 under add-remove.) The normaliser does not depend on the data, hence
    no factor 1/2; but the mechanism is not epsilon-bounded-range. Gaussian noise is (epsilon, delta)-DP: see
    `gaussian.least_variances` and `accounting.concentrated`. A Wishart difference: the decision record.

    A safeguard comes second: which of its sets is measured is drawn by the exponential mechanism, by how far
    their counts are from what a fit to the integers before predicts. That is post-processing of these, so the
    scores, too, move by at most 1; half its share is for the choice and half for geometric noise.

    Parameters
    ----------
    plan
        Made for the same domain, and for the same n under replace-one.
    rows
        The data.
    source
        Where random bits come from.

    Raises
    ------
    ValueError
        Rows of another domain; under replace-one, another number of rows (which is public).
    """
    if rows.domain != plan.workload.domain:
        raise ValueError("the rows and the plan are over different domains")
    if plan.replaced and rows.n != plan.n:
        raise ValueError("the plan was made for another n")
    exact = counts(plan, rows)
    noise = np.concatenate([_noise(plan, part, source) for part in plan.unguarded])
    # what is released is a function of the sum with the whole noise: no count passes LIMIT, and noise that is
    # cut off at CLIP = 2 LIMIT is beyond it with any count
    values = np.clip(exact[: len(noise)] + noise, -LIMIT, LIMIT)
    if plan.safeguard is not None:
        values = np.concatenate([values, _worst(plan, values, exact[len(noise) :], source)])
    values.setflags(write=False)
    return Measured(values)


def counts(plan: AnswersPlan, rows: Rows) -> Integers:
    """Return what is measured, or may be chosen to be, without noise: int64, parts in order. Private."""
    odd = odd_counts(rows, tuple(places for part in plan.parts for places in part.sets))
    summed = odd if plan.replaced else rows.n - 2 * odd
    cells = [rows.histogram() for part in plan.parts if part.law == "cells"]
    return np.concatenate([summed, *cells])


def loss(plan: AnswersPlan, one: Rows, other: Rows) -> Fraction:
    """
    Return the privacy loss between two tables: the largest log ratio of the laws of their releases.

    Exact for cubes and cells: of the released z, the log-probability is -rate |z - counts| plus what no table
    changes, in the norm of each part, so the ratio is largest at z = counts. For a Wishart difference and a
    safeguard what is proved: their share of epsilon for each row that was replaced, added or removed.
    Private, and for audits of tiny instances.

    Raises
    ------
    ValueError
        Gaussian noise: no ratio is the largest.
    """
    if plan.delta is not None:
        raise ValueError("answers with Gaussian noise have no largest loss: the plan was made with delta")
    gaps = pieces(plan, np.abs(counts(plan, one) - counts(plan, other)))
    moved = int(np.abs(one.histogram() - other.histogram()).sum())
    total = Fraction(0)
    for part, gap in zip(plan.parts, gaps, strict=True):
        if part.law in ("cube", "cells"):
            total += plan.rate(part) * int(gap.max() if part.law == "cube" else gap.sum())
        else:
            total += plan.epsilon * part.share * (moved // 2 if plan.replaced else moved)
    return total


def _worst(plan: AnswersPlan, values: Integers, sums: Integers, source: BitSource) -> Integers:
    """Choose the set that the integers released so far predict worst, and measure it: its place and count."""
    assert plan.safeguard is not None
    rate = plan.rate(plan.safeguard)
    gaps = np.abs(sums - predicted(plan, Measured(values)))
    levels, sizes = np.unique(gaps.max() - gaps, return_counts=True)
    level = draw_level(dict(zip(levels.tolist(), sizes.tolist(), strict=True)), rate / 2, source)
    worst = np.flatnonzero(gaps == gaps.max() - level)
    chosen = worst[uniform_below(len(worst), source)]
    noisy = sums[chosen] + two_sided_geometric(rate, 1, source)
    return np.concatenate([[chosen], np.clip(noisy, -LIMIT, LIMIT)])


def _noise(plan: AnswersPlan, part: Measurement, source: BitSource) -> Integers:
    rate = plan.rate(part)
    if part.law == "cells":
        return two_sided_geometric(rate, plan.workload.domain.size, source)
    if part.law == "cube":
        return cube_noise(len(part.sets), rate, source)
    if part.law == "gaussian":
        sizes = Counter(map(len, part.sets))
        return np.concatenate([gaussian_noise(part.variances[o], sizes[o], source) for o in sorted(sizes)])
    ranks = {attribute: rank for rank, attribute in enumerate(part.attributes, start=1)}
    indices = [[0, 0, *(ranks[i] for i in places)] for places in part.sets]
    pairs = [(some[-2], some[-1]) for some in indices]
    return wishart_noise(len(ranks), *rates(rate, part.tilt), pairs, source)
