"""Where parities are measured: exact counts of the data, exact noise, integers out."""

from fractions import Fraction
from functools import partial

import numpy as np

from queries import Rows
from queries.domain import Integers
from smalldb.exact.bits import BitSource
from smalldb.exact.integers import CLIP
from smalldb.marginals.contrasts.maximum_entropy import predicted
from smalldb.marginals.contrasts.parity_means import NoisyParities, pieces
from smalldb.marginals.contrasts.parity_plan import ParityPlan
from smalldb.marginals.contrasts.parts import Part
from smalldb.marginals.contrasts.spectrum import odd_counts

LIMIT = CLIP // 2


# Proof: docs/proofs/draw.md, lemma 7; docs/proofs/safeguard.md, lemma 1.
def measure(plan: ParityPlan, rows: Rows, source: BitSource) -> NoisyParities:
    """
    Release the counts of a plan with exact noise: by the exponential mechanism over answers, or Gaussian.

    Each count moves by at most 1 between neighbours, so max |V| of a part moves by at most 1, the part's law
    by at most exp(epsilon share), and all of it by at most exp(epsilon). (Cells: the sum of all moves is at
    most 2 under replace-one, at most 1 under add-remove.) The normaliser does not depend on the data, hence
    no factor 1/2; but the mechanism is not epsilon-bounded-range. Gaussian noise is (epsilon, delta)-DP: see
    `gaussian.least_variances` and `accounting.concentrated`. A Wishart difference: `docs/proofs/wishart.md`.

    Parts are released in order, and one may look at what those before it released: see `safeguard.Safeguard`.

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
    released: list[Integers] = [np.zeros(0, dtype=np.int64)]

    def before(part: Part) -> Integers:
        return predicted(plan, NoisyParities(np.concatenate(released)), part.sets)

    # what is released is a function of the sum with the whole noise: no count passes LIMIT, and noise that is
    # cut off at CLIP = 2 LIMIT is beyond it with any count
    for part, exact in zip(plan.parts, pieces(plan, counts(plan, rows)), strict=True):
        released.append(np.clip(part.draw(plan.setting, exact, source, partial(before, part)), -LIMIT, LIMIT))
    values = np.concatenate(released)
    values.setflags(write=False)
    return NoisyParities(values)


# Proof: docs/proofs/answers.md, lemma 1.
def counts(plan: ParityPlan, rows: Rows) -> Integers:
    """Return what is measured, or may be chosen to be, without noise: int64, parts in order. Private."""
    odd = odd_counts(
        plan.coding.rows(rows), tuple(positions for part in plan.parts for positions in part.sets)
    )
    summed = odd if plan.replaced else rows.n - 2 * odd
    split = pieces(plan, summed)
    return np.concatenate([part.exact(rows, sums) for part, sums in zip(plan.parts, split, strict=True)])


# Proof: docs/proofs/answers.md, lemma 3.
def loss(plan: ParityPlan, one: Rows, other: Rows) -> Fraction:
    """
    Return the privacy loss between two tables: the largest log ratio of the laws of their releases.

    Exact where no part is `unaudited`: of the released z, the log-probability is -rate |z - counts| plus what
    no table changes, in the norm of each part, so the ratio is largest at z = counts. Of other parts what is
    proved: their share of epsilon for each row that was replaced, added or removed. Private, and for audits
    of tiny instances.

    Parameters
    ----------
    plan
        What is measured, with its neighbouring relation.
    one, other
        Tables over the plan's domain, neighbours or not.

    Raises
    ------
    ValueError
        Gaussian noise: no ratio is the largest.
    """
    gaps = pieces(plan, np.abs(counts(plan, one) - counts(plan, other)))
    moved = int(np.abs(one.histogram() - other.histogram()).sum())
    losses = [part.loss(plan.setting, gap, moved) for part, gap in zip(plan.parts, gaps, strict=True)]
    return sum(losses, Fraction(0))
