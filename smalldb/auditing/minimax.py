"""
The best private mechanism of a tiny instance: the least worst error of all that release small databases.

A linear program: the probabilities P(y | x) are at most exp(epsilon) apart between neighbours, add up to 1
for each table x, and the error of each x is at most t; t is least. The solver works in floats, so its word is
not taken: its dual variables are rounded to fractions, and every dual solution bounds t from below.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import inf

import numpy as np

from queries import Domain, QueryClass, Workload
from queries.arrays import Floats, Integers
from smalldb.auditing.worst_case import EPSILONS
from smalldb.counting import multisets
from smalldb.counting.databases import Counts, count_pairs, neighbours_of
from smalldb.counting.tabulating import Instance, Tables, instance_of, tabulated
from smalldb.exact.levels import exp_enclosure
from smalldb.exact.numbers import Number, as_fraction, positive, whole
from smalldb.planning import Neighbours, workload_of

MOST_CONSTRAINTS = 200_000  # pairs of neighbours x small databases, both ways: about a minute
BITS = 60  # of a dual variable
LARGEST_EPSILON = 10  # beyond, exp(-epsilon) nears the solver's tolerance


@dataclass(frozen=True, slots=True)
class Minimax:
    """
    The least worst mean error of all epsilon-DP mechanisms that release a small database of m rows.

    Attributes
    ----------
    lower
        Exact, and proved by a dual solution: no such mechanism has a smaller worst error (or probability of
        one). One that releases more rows may have.
    solved
        What the solver found, by floats: close to the best mechanism's own.
    smalldb
        The same of SmallDB, rounded to nearest.
    databases, outcomes
        The size of the instance.
    """

    lower: Fraction
    solved: float
    smalldb: float
    databases: int
    outcomes: int

    @property
    def ratio(self) -> float:
        """How many times as much as `lower` SmallDB errs, at most; infinite where `lower` is 0."""
        return self.smalldb / float(self.lower) if self.lower else inf


def minimax(
    domain: Domain,
    queries: QueryClass | Workload | str | None = None,
    *,
    n: int,
    epsilon: Number,
    rows: int,
    error: Number | None = None,
) -> Minimax:
    """
    Bound from below the worst mean error of every epsilon-DP mechanism that releases `rows` rows.

    Neighbours replace a row of n. Cost: a linear program of tables x small databases variables; the limit is
    200,000 constraints, two for each small database and pair of neighbours.

    Parameters
    ----------
    error
        Given, the worst P(error > it) instead of the worst mean error.

    Raises
    ------
    ValueError
        A larger instance, an epsilon above 10, or a program that the solver gives up.

    Examples
    --------
    >>> best = minimax(Domain(["a"]), "conjunctions:1", n=1, epsilon=1, rows=1)  # randomised response
    >>> round(float(best.lower), 9)
    0.268941421
    """
    workload, exact = workload_of(queries, domain), positive(epsilon, "epsilon")
    if not EPSILONS[0] <= exact <= LARGEST_EPSILON:
        raise ValueError(f"epsilon must be from 1e-20 to {LARGEST_EPSILON} for a linear program")
    n, rows = whole(n, "n"), whole(rows, "rows")
    limit = None if error is None else as_fraction(error, "error")
    instance = instance_of(workload, exact, rows, None, n, Neighbours.REPLACE_ONE)
    pairs = count_pairs(domain.size, n, Neighbours.REPLACE_ONE)
    constraints = 2 * pairs * multisets.count(domain.size, rows)
    if constraints > MOST_CONSTRAINTS:
        raise ValueError(
            f"a linear program of {constraints} constraints is too large: at most {MOST_CONSTRAINTS}; "
            "use fewer rows or a smaller n"
        )
    try:
        return _minimax(instance, tabulated(instance), limit)
    finally:
        tabulated.cache_clear()


def _minimax(instance: Instance, tables: Tables, limit: Fraction | None) -> Minimax:
    unit = instance.n * instance.rows * instance.workload.denominator
    pairs = _pairs(tables, instance.n)
    costs = tables.scores
    if limit is not None:  # a whole number of failures in units of 1
        costs, unit = (costs > int(limit * unit // 1)).astype(np.int64), 1
    value, weights, flows = solve(costs, pairs, float(instance.epsilon))
    lower = certified(costs, pairs, instance.epsilon, weights, flows) / unit
    exponents = -float(instance.rate) * (tables.scores - tables.scores.min(axis=1)[:, None])
    law = np.exp(exponents) * tables.shares
    mean = (law * costs).sum(axis=1) / law.sum(axis=1)
    return Minimax(max(lower, Fraction(0)), value / unit, float(mean.max()) / unit, *costs.shape)


def _pairs(tables: Tables, n: int) -> Integers:
    """Return the places of neighbours, both ways round, shape (pairs, 2)."""
    place: dict[Counts, int] = tables.place
    once = [
        (place[x], place[other])
        for x in tables.databases
        for other in neighbours_of(x, n, Neighbours.REPLACE_ONE)
    ]
    return np.array([pair for a, b in once for pair in ((a, b), (b, a))], dtype=np.int64)


def solve(costs: Integers, pairs: Integers, epsilon: float) -> tuple[float, Floats, Floats]:
    """
    Solve the linear program by floats; return t, and the dual variables of the tables and of the pairs.

    Parameters
    ----------
    costs
        Shape (tables, outcomes).
    pairs
        Shape (pairs, 2): (x, x') stands for P(y | x) <= exp(epsilon) P(y | x').

    Returns
    -------
    t, weights of shape (tables,), flows of shape (pairs, outcomes); none of the last two below 0.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    tables, outcomes = costs.shape
    last = tables * outcomes  # t; P(y | x) is number x outcomes + y
    each = np.arange(last)
    scale = max(1, int(costs.max()))
    here = (pairs[:, :1] * outcomes + np.arange(outcomes)).ravel()
    there = (pairs[:, 1:] * outcomes + np.arange(outcomes)).ravel()
    ratios = tables + np.arange(len(here))
    # P(y | x) exp(-epsilon) <= P(y | x'): no coefficient above 1
    entries = np.concatenate(
        [costs.ravel() / scale, -np.ones(tables), np.full(len(here), np.exp(-epsilon)), -np.ones(len(here))]
    )
    lines = np.concatenate([each // outcomes, np.arange(tables), ratios, ratios])
    columns = np.concatenate([each, np.full(tables, last), here, there])
    above = coo_array((entries, (lines, columns)), shape=(tables + len(here), last + 1)).tocsr()
    sums = coo_array((np.ones(last), (each // outcomes, each)), shape=(tables, last + 1)).tocsr()
    for method in ("highs", "highs-ipm"):
        found = linprog(
            np.eye(1, last + 1, last)[0],
            A_ub=above,
            b_ub=np.zeros(tables + len(here)),
            A_eq=sums,
            b_eq=np.ones(tables),
            bounds=(0, None),
            method=method,
        )
        if found.success:
            break
    else:
        raise ValueError("the linear program was not solved: use a smaller instance or another epsilon")
    duals = np.maximum(-found.ineqlin.marginals, 0)
    flows = duals[tables:].reshape(len(pairs), outcomes) * np.exp(-epsilon) * scale
    return float(found.fun) * scale, duals[:tables], flows


def certified(
    costs: Integers, pairs: Integers, epsilon: Fraction, weights: Floats, flows: Floats
) -> Fraction:
    """
    Return a proved lower bound on the program's t from any `weights` and `flows` that are not below 0.

    With weights w of sum 1, flows u >= 0 and v_x = min over y of w_x cost(x, y) + (sum of u out of x)
    - exp(epsilon) (sum of u into x): every mechanism has t >= sum of w_x (mean cost at x) >= sum of v_x,
    since each pair's term u (P(y | x) - exp(epsilon) P(y | x')) is at most 0. exp(epsilon) is rounded up.
    """
    whole_weights = [round(w * (1 << BITS)) for w in weights.tolist()]
    low, _ = exp_enclosure(epsilon, BITS)
    growth = Fraction(1 << BITS, low)  # at least exp(epsilon)
    total = sum(whole_weights)
    if not total:
        return Fraction(0)
    over, under = growth.numerator, growth.denominator
    out = [[0] * costs.shape[1] for _ in range(len(costs))]
    for (here, there), flow in zip(pairs.tolist(), flows.tolist(), strict=True):
        for outcome, amount in enumerate(flow):
            if amount > 0:
                rounded = round(amount * (1 << BITS))
                out[here][outcome] += rounded * under
                out[there][outcome] -= rounded * over
    least = sum(
        min(weight * cost * under + flow for cost, flow in zip(line, flows_of, strict=True))
        for weight, line, flows_of in zip(whole_weights, costs.tolist(), out, strict=True)
    )
    return Fraction(least, under * total)
