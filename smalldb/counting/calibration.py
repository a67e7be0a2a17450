"""
SmallDB at its true privacy: the internal epsilon at which the exact worst loss is the epsilon that is stated.

At an internal epsilon e the loss is at most e, and where m grows with n it is less for all n. Under
replace-one, where n is public, the exact loss over all tables of n rows and their neighbours may be looked
up: it depends on nobody's data. Floats find the internal epsilon, fractions certify it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import NamedTuple, final

import numpy as np

from queries import Workload
from queries.arrays import Floats, Integers
from smalldb.counting.databases import (
    DIGITS,
    NEAR,
    Instance,
    Partitions,
    Tables,
    blocks,
    float_ln_z,
    instance_of,
    tables_of,
)
from smalldb.counting.scores import MAX_SCORE, base_measure
from smalldb.exact.enclosures import Real
from smalldb.mechanisms import Neighbours

MOST_SCORES = 1 << 21  # databases x candidates: 16 MiB, looked at some fifteen times
MOST_RATIOS = 1 << 27  # (pairs + databases x queries) x candidates: a second or two
MOST_MOVES = 1 << 21  # pairs x (cells + 16): about a second
MOST_MULTIPLE = 1 << 40  # of m over n: beyond, its closed form is that of no bound on m
FIGURES = 9  # of an internal epsilon
STEP = Fraction(1, 10**8)  # relative: about what the last figure is worth


@final
@dataclass(frozen=True, slots=True)
class Calibration:
    """
    The internal epsilon at which SmallDB loses what is stated; nothing here depends on anybody's data.

    Attributes
    ----------
    epsilon
        What is stated, and what is lost at most.
    internal
        What the exponential mechanism is run with, at least `epsilon`: of nine figures, rounded down. At one
        that is larger by 1e-6 of it, more than `epsilon` is lost.
    loss
        (low, high), which enclose what is lost at worst at `internal`; `high` is at most `epsilon`.
    range
        A bound on the range of the loss at `internal`; at most 2 `epsilon`. It is more than `epsilon` in most
        cases: several calibrated releases lose more together than several that are not.
    """

    epsilon: Fraction
    internal: Fraction
    loss: tuple[Fraction, Fraction]
    range: Fraction


# Proof: docs/proofs/census.md, lemmas 9 and 10.
def calibrating(
    workload: Workload, rows: int, candidates: str | None, n: int | None, relation: Neighbours
) -> Callable[[Fraction], Calibration]:
    """Return what calibrates for tables of n rows; under add-remove, of up to n, or of any number if None."""
    if not workload.size:
        raise ValueError("queries: none of them varies, so there is nothing to calibrate")
    if n == 0:
        raise ValueError("calibrated: a table without rows has no neighbours of its size")
    base = base_measure("multisets" if candidates is None else candidates)
    if n is None:
        return partial(_for_all_sizes, steps=rows * workload.denominator)
    limits = MOST_SCORES, MOST_RATIOS, MOST_MOVES
    try:
        instance = instance_of(workload, Fraction(1), rows, base, n, relation, True, *limits)
    except ValueError as refused:
        column = workload.domain.size == 2 and workload.denominator == 1 and base == "multisets"
        if column and relation is Neighbours.REPLACE_ONE and not rows % n and rows // n <= MOST_MULTIPLE:
            return partial(_of_one_column, multiple=rows // n)
        raise ValueError(f"calibrated: {refused}") from refused
    return lambda epsilon: _looked_up(replace(instance, epsilon=epsilon))


# Proof: docs/proofs/census.md, lemma 9.
def _for_all_sizes(epsilon: Fraction, steps: int) -> Calibration:
    """Return what the range allows under add-remove, whatever n: the loss tends to it as n grows."""
    internal = epsilon / (1 - Fraction(1, 2 * steps))
    return Calibration(epsilon, internal, (Fraction(0), epsilon), epsilon)


# Proof: docs/proofs/census.md, lemma 10.
def _of_one_column(epsilon: Fraction, multiple: int) -> Calibration:
    """Return the calibration by the closed form of one yes/no column, m = k n, k the `multiple`."""
    # The loss is less than e/2 + ln(1 + h - h q) for all n, where q = exp(-e/2) and
    # h = exp(-e / (2 k)), and tends to it. It rises with e.

    def loss(internal: Fraction) -> Real:
        moved, step = (Real.of(-internal / (2 * k), DIGITS).exp() for k in (1, multiple))
        return (1 + step - step * moved).ln() + internal / 2

    low, high = epsilon, 2 * epsilon  # e/2 is lost at least
    while high - low > STEP * low / 100:
        middle = (low + high) / 2
        low, high = (middle, high) if loss(middle).high <= epsilon else (low, middle)
    internal = max(epsilon, _rounded(low))
    worst = loss(internal)
    return Calibration(epsilon, internal, (internal / 2, Fraction(worst.high)), min(internal, 2 * epsilon))


@lru_cache(maxsize=64)
def _looked_up(instance: Instance) -> Calibration:
    with tables_of(instance) as tables:
        return _searched(instance, tables)


def _searched(instance: Instance, tables: Tables) -> Calibration:
    from scipy.optimize import brentq

    epsilon, ends = instance.epsilon, _Ends.of(instance, tables)
    goal, above = float(epsilon), 2.0

    def over(times: float) -> float:
        return float(ends.losses(instance, times)[0].max()) - goal

    # the tables of one row have different best candidates, so the loss has no bound
    while over(above) <= 0:
        above *= 2
    times = brentq(over, 1.0, above, xtol=1e-13) if over(1.0) < 0 else 1.0
    internal = max(epsilon, _rounded(epsilon * Fraction(times)))
    loss = ends.enclosed(instance, tables, internal)
    while loss[1] > epsilon and internal > epsilon:
        internal = max(epsilon, _rounded(internal * (1 - STEP)))
        loss = ends.enclosed(instance, tables, internal)
    steps = 2 * instance.rows * instance.workload.denominator
    range_ = min(internal * ends.widest / steps, 2 * epsilon)
    # at `epsilon` itself no more is lost (lemma 2), whatever the enclosure is rounded to
    return Calibration(epsilon, internal, (loss[0], min(loss[1], epsilon)), range_)


def _rounded(value: Fraction) -> Fraction:
    """Round down to nine figures."""
    return Fraction(Real.of(value, FIGURES).low)


class _Ends(NamedTuple):
    """What the worst losses of all pairs of neighbours are made of, whatever the internal epsilon."""

    # of a pair (likely, other) only the candidate of the largest rise of the score can lose most

    # scores, orders: shape (laws, candidates): the scores of one database of each law; and what the
    # candidates weigh
    scores: Integers
    orders: list[int]
    # likely, other: shape (pairs,): the laws of two neighbours
    likely: Integers
    other: Integers
    up: Integers  # shape (pairs,): that rise, from `likely` to `other`
    widest: int  # the largest difference of two rises of a pair
    positions: Integers  # a database of each law

    @classmethod
    def of(cls, instance: Instance, tables: Tables) -> "_Ends":
        kinds = np.unique(np.array(tables.orders, dtype=object), return_inverse=True)[1]
        width = int(kinds.max()) + 1
        if (int(tables.scores.max()) + 1) * width >= MAX_SCORE:
            raise ValueError("queries: their common denominator is too large for a calibration")
        keys = np.sort(tables.scores * width + kinds, axis=1)
        _, positions, law = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        pairs, widest = list[Integers](), 0
        for here, there in blocks(tables, instance, (0, len(tables.databases))):
            rises = tables.scores[there] - tables.scores[here]
            highest, lowest = rises.max(axis=1), rises.min(axis=1)
            widest = max(widest, int((highest - lowest).max()))
            up = np.stack([law[here], law[there], highest], axis=1)
            back = np.stack([law[there], law[here], -lowest], axis=1)
            pairs.append(np.unique(np.concatenate([up, back]), axis=0))
        likely, other, up = np.unique(np.concatenate(pairs), axis=0).T
        return cls(tables.scores[positions], tables.orders, likely, other, up, widest, positions)

    def losses(self, instance: Instance, times: float) -> tuple[Floats, float]:
        """Return each pair's loss at so many times epsilon, by floats, and far more than they are off."""
        rate = float(instance.rate) * times
        most = rate * int(self.scores.max())
        least = self.scores.min(axis=1) if most > 1 else np.zeros(len(self.scores), dtype=np.int64)
        floats = float_ln_z(self.scores - least[:, None], self.orders, rate, most <= 1)
        up = self.up + least[self.likely] - least[self.other]
        near = NEAR * (1 + float(np.abs(floats).max()) + most if most > 1 else most)
        return rate * up + floats[self.other] - floats[self.likely], near

    def enclosed(self, instance: Instance, tables: Tables, internal: Fraction) -> tuple[Fraction, Fraction]:
        """Return the largest loss at an internal epsilon, exactly: of all that floats do not tell from it."""
        losses, near = self.losses(instance, float(internal / instance.epsilon))
        rate = instance.rate * internal / instance.epsilon
        ln_z = Partitions(tables.scores, tables.orders, rate)
        numbers = [ln_z.law(position) for position in self.positions.tolist()]
        exact = [
            rate * Real.of(int(self.up[i]), DIGITS)
            + ln_z.of_law(numbers[self.other[i]])
            - ln_z.of_law(numbers[self.likely[i]])
            for i in np.flatnonzero(losses >= losses.max() - 2 * near)
        ]
        return Fraction(max(each.low for each in exact)), Fraction(max(each.high for each in exact))
