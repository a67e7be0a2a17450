"""
What a mechanism may release if its outputs are free: finitely many vectors of answers are enough.

The sums b_j of a query over a table are whole numbers from 0 to n D. The cost of answers c at a table is
max_j |b_j - c_j|. It is linear in c between the hyperplanes on which, for some table, two terms of the
maximum are equal or one changes its sign: c_j, c_i + c_j or c_i - c_j is whole. These cut the cube into
simplices, the alcoves of the affine reflection group of type B, whose corners are whole but for two or more
halves. So answers may be replaced by a random corner of their simplex, of the same mean: no mean cost
changes.
"""

from fractions import Fraction
from itertools import product

import numpy as np

from queries import Workload
from queries.arrays import Integers
from smalldb.counting.databases import check_budget, databases
from smalldb.mechanisms import Neighbours

MOST_COSTS = 1 << 24  # tables x vectors of answers
MOST_COMPARED = 1 << 34  # tables x outcomes^2: about ten seconds


def answers_with_costs(
    workload: Workload, n: int, limit: Fraction | None, relation: Neighbours
) -> tuple[Integers, Fraction, tuple[tuple[Fraction, ...], ...]]:
    """Return the costs of answers, (tables, outcomes), in units of 1 / unit; the unit; the answers."""
    number, most = workload.size, n * workload.denominator
    sides = 2 * most + 1 if limit is None else most + 1

    def fits(tables: int, pairs: int) -> bool:
        return number * sides.bit_length() < 64 and tables * max(1, number) * sides**number <= MOST_COSTS

    check_budget(workload.domain.size, n, relation, fits)
    tables = np.array(list(databases(workload.domain.size, n, relation)), dtype=np.int64)
    sums = (tables @ workload.matrix().T)[:, None]  # shape (tables, 1, queries)
    if limit is None:
        halves = np.array([c for c in product(range(sides), repeat=number) if sum(x % 2 for x in c) != 1])
        costs = np.abs(2 * sums - halves).max(axis=2, initial=0)
        answers = [tuple(Fraction(int(x), 2 * most) for x in c) for c in halves]
        return costs, Fraction(2 * most), tuple(answers)
    # answers that are right within the limit for a box of sums: the boxes that begin at whole numbers
    width = limit * most
    begin = np.array(list(product(range(sides), repeat=number)))
    above = sums - begin
    costs = ((above < 0) | (above > int(2 * width // 1))).any(axis=2).astype(np.int64)
    answers = [tuple(min(Fraction(int(x)) + width, Fraction(most)) / most for x in c) for c in begin]
    return costs, Fraction(1), tuple(answers)


def without_dominated(costs: Integers) -> list[int]:
    """Return the positions of outcomes, one of those that cost the same, that no other is as cheap as."""
    distinct, first = np.unique(costs, axis=1, return_index=True)
    if distinct.size * distinct.shape[1] > MOST_COMPARED:
        raise ValueError("too many outcomes to compare: use fewer queries, fewer rows or a smaller n")
    return sorted(
        int(first[position])
        for position in range(distinct.shape[1])
        # of distinct outcomes one is cheaper somewhere, so a second one that costs no more dominates
        if (distinct <= distinct[:, [position]]).all(axis=0).sum() == 1
    )
