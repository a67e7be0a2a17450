"""The one step that sees the data: exact counts, exact noise, integers out."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from queries import Rows
from queries.domain import Integers
from smalldb.answers.drawing import cube_noise, two_sided_geometric
from smalldb.answers.parities import odd_counts
from smalldb.answers.shares import AnswersPlan
from smalldb.randomness import BitSource


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """What was released: integers with exact noise, epsilon-DP as a whole. May be published.

    Attributes
    ----------
    values
        int64 (read-only): for each part of the plan one entry a set: the rows with odd parity on it under
        replace-one, the sum of chi_S over the rows under add-remove (the empty set: the rows); or one entry
        a cell.
    """

    values: Integers


def measure(plan: AnswersPlan, rows: Rows, source: BitSource) -> Measured:
    """
    Release the counts of a plan by the exponential mechanism over answers, exactly.

    Each count moves by at most 1 between neighbours, so max |V| of a part moves by at most 1, the part's law
    by at most exp(epsilon share), and all of it by at most exp(epsilon). (Cells: the sum of all moves is at
    most 2 under replace-one, at most 1 under add-remove.) The normaliser does not depend on the data, hence
    no factor 1/2; but the mechanism is not epsilon-bounded-range.

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
    counted = counts(plan, rows)
    if plan.method == "cells":
        noise = two_sided_geometric(plan.rate(plan.parts[0]), len(counted), source)
    else:
        noise = np.concatenate([cube_noise(len(part.sets), plan.rate(part), source) for part in plan.parts])
    values = counted + noise
    values.setflags(write=False)
    return Measured(values)


def counts(plan: AnswersPlan, rows: Rows) -> Integers:
    """Return what is measured, without noise: int64, as in `Measured.values`. Private."""
    if plan.method == "cells":
        return rows.histogram()
    odd = odd_counts(rows, tuple(places for part in plan.parts for places in part.sets))
    return odd if plan.replaced else rows.n - 2 * odd


def loss(plan: AnswersPlan, one: Rows, other: Rows) -> Fraction:
    """
    Return the exact privacy loss between two tables: the largest log ratio of the laws of their releases.

    Of the released z, the log-probability is -rate |z - counts| plus what no table changes, in the norm of
    each part; the ratio is largest at z = counts. Private, and for audits of tiny instances.
    """
    gaps = np.abs(counts(plan, one) - counts(plan, other))
    if plan.method == "cells":
        return plan.rate(plan.parts[0]) * int(gaps.sum())
    ends = np.cumsum([len(part.sets) for part in plan.parts])[:-1]
    largest = [int(some.max()) for some in np.split(gaps, ends)]
    return sum((plan.rate(part) * gap for part, gap in zip(plan.parts, largest, strict=True)), Fraction(0))
