"""The best private mechanism of a tiny instance: the least worst error of all that there are."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import inf
from typing import TypeAlias

import numpy as np
from tqdm import tqdm

from queries import Domain, QueryClass, Workload
from queries.arrays import Floats, Integers
from smalldb.auditing.laws import EPSILONS
from smalldb.counting.databases import (
    Histogram,
    both_ways,
    check_budget,
    count_pairs,
    databases,
    instance_of,
    tables_of,
)
from smalldb.exact.levels import exp_enclosure
from smalldb.exact.numbers import Number, as_fraction, positive, whole
from smalldb.mechanisms import Neighbours, relation_of, workload_of

MOST_COSTS = 1 << 24  # tables x vectors of answers
MOST_COMPARED = 1 << 34  # tables x outcomes^2: about ten seconds

BITS = 60  # of a dual variable, and of exp(epsilon)
TIMED_OUT = 1  # the status of a program that ran out of time
WHOLE = 1 << 80  # the probability 1 of a mechanism
NEGLIGIBLE = 1e-9  # an outcome that no table has with more probability is left out
LEAST_SHARE = 1e-12  # of the law that looks at no table
Outcome: TypeAlias = tuple[int, ...] | tuple[Fraction, ...]
MOST_CONSTRAINTS = 250_000  # pairs of neighbours x outcomes, both ways: some minutes
LARGEST_EPSILON = 10  # beyond, exp(-epsilon) nears the solver's tolerance


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


def solve(
    costs: Integers, pairs: Integers, epsilon: float, seconds: float | None = None
) -> tuple[float, Floats, Floats, Floats]:
    """Solve the linear program by floats; return t, the law of each table, and the dual variables."""
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
    for method in ("highs-ipm", "highs-ds"):
        solution = linprog(
            np.eye(1, last + 1, last)[0],
            A_ub=above,
            b_ub=np.zeros(tables + len(here)),
            A_eq=sums,
            b_eq=np.ones(tables),
            bounds=(0, None),
            method=method,
            options={} if seconds is None else {"time_limit": seconds},
        )
        if solution.success:
            break
        if solution.status == TIMED_OUT:
            raise ValueError(
                f"the linear program of {len(here)} constraints was not solved in {seconds:g} seconds: "
                "allow more of them, or use a smaller instance"
            )
    else:
        raise ValueError("the linear program was not solved: use a smaller instance or another epsilon")
    duals = np.maximum(-solution.ineqlin.marginals, 0)
    flows = duals[tables:].reshape(len(pairs), outcomes) * np.exp(-epsilon) * scale
    return float(solution.fun) * scale, solution.x[:last].reshape(costs.shape), duals[:tables], flows


def certified(
    costs: Integers, pairs: Integers, epsilon: Fraction, weights: Floats, flows: Floats
) -> Fraction:
    """Return a proved lower bound on the program's t from any `weights` and `flows` that are not below 0."""
    # With weights w of sum 1, flows u >= 0 and v_x = min over y of w_x cost(x, y) + (sum of u out of x)
    # - exp(epsilon) (sum of u into x): every mechanism has t >= sum of w_x (mean cost at x) >= sum of
    # v_x, since each pair's term u (P(y | x) - exp(epsilon) P(y | x')) is at most 0. exp(epsilon) is
    # rounded up.
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


def made_private(laws: Floats, pairs: Integers, epsilon: Fraction) -> list[list[int]]:
    """Return laws near to those of the solver that are exactly epsilon-DP, in units of `WHOLE`."""
    # they are mixed with one law for all tables, by as little as will do, which is looked up in
    # integers
    _, high = exp_enclosure(epsilon, BITS)  # exp(epsilon) is at least 2^BITS / high
    kept = np.maximum(laws, 0) * (laws.max(axis=0) > NEGLIGIBLE)
    kept /= kept.sum(axis=1)[:, None]
    used = kept.any(axis=0)
    common = (kept.mean(axis=0) + used / used.sum()) / 2
    share = 0.0
    while True:
        mixed = ((1 - share) * kept + share * common) * float(WHOLE)
        whole = np.array([[int(weight) for weight in law] for law in mixed.tolist()], dtype=object)
        for law in whole:
            law[law.argmax()] += WHOLE - law.sum()
        if (whole[pairs[:, 0]] * high <= whole[pairs[:, 1]] << BITS).all():
            return [law.tolist() for law in whole]
        share = min(1.0, max(LEAST_SHARE, 2 * share))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BestMechanism:
    """A mechanism of a tiny instance, given by its laws: a function of a database, as `audit` takes it."""

    # what it can release: small databases, as counts over the cells; or, if outputs are free, the
    # answers to the queries, as shares of n rows
    outcomes: tuple[Outcome, ...]
    _position: Mapping[Histogram, int]
    _weights: list[list[int]]

    def __repr__(self) -> str:
        return f"<BestMechanism of {len(self._weights)} databases and {len(self.outcomes)} outcomes>"

    def __call__(self, database: Histogram) -> dict[Outcome, Fraction]:
        """Return outcome -> probability, exact."""
        weights = self._weights[self._position[tuple(database)]]
        return {
            outcome: Fraction(weight, WHOLE)
            for outcome, weight in zip(self.outcomes, weights, strict=True)
            if weight
        }


@dataclass(frozen=True, slots=True)
class Minimax:
    """
    The least worst mean error of all epsilon-DP mechanisms that release what they may.

    Attributes
    ----------
    lower
        Exact, and proved by a dual solution: no such mechanism has a smaller worst error (or probability of
        one). With `rows` given, one that releases more rows may have.
    upper
        Exact: the worst error of `mechanism`.
    solved
        What the solver found, by floats: between the two, or nearly.
    smalldb
        The same of SmallDB, rounded to nearest; None where outputs are free.
    databases, outcomes
        The size of the instance; without outcomes that err more than another on every table.
    mechanism
        One that is epsilon-DP, exactly, and as good as `upper` says.
    """

    lower: Fraction
    upper: Fraction
    solved: float
    smalldb: float | None
    databases: int
    outcomes: int
    mechanism: BestMechanism

    @property
    def ratio(self) -> float | None:
        """How many times as much as `lower` SmallDB errs, at most; infinite where `lower` is 0."""
        if self.smalldb is None:
            return None
        return self.smalldb / float(self.lower) if self.lower else inf


def minimax(
    domain: Domain,
    queries: QueryClass | Workload | str | None = None,
    *,
    n: int,
    epsilon: Number,
    rows: int | None = None,
    error: Number | None = None,
    neighbours: str = "replace-one",
    seconds: float | None = None,
    progress: bool = False,
) -> Minimax:
    """
    Enclose the least worst mean error of all epsilon-DP mechanisms, and return one that has it, nearly.

    Cost: a linear program of tables x outcomes variables; the limit is 250,000 constraints, two for each
    outcome and pair of neighbours.

    Parameters
    ----------
    domain, queries
        The universe and the workload.
    n
        Rows of the tables: all of n rows under replace-one, all of up to n under add-remove. There the error
        of a table of k rows counts k/n: the error of its counts, over n.
    epsilon
        Exact, up to 10.
    rows
        The mechanisms release small databases of so many rows. None: they release whatever they like, which
        may as well be answers to the queries: no output errs less on all tables.
    error
        Given, the worst P(error > it) instead of the worst mean error.
    neighbours
        "replace-one" or "add-remove".
    seconds
        How long the solver may take; None: as long as it does.
    progress
        Show a bar on stderr, a step for each part of the work.

    Examples
    --------
    >>> best = minimax(Domain(["a"]), "conjunctions:1", n=1, epsilon=1, rows=1)  # randomised response
    >>> round(float(best.lower), 9), round(float(best.upper), 9)
    (0.268941421, 0.268941421)
    """
    workload, exact = workload_of(queries, domain), positive(epsilon, "epsilon")
    if not EPSILONS[0] <= exact <= LARGEST_EPSILON:
        raise ValueError(f"epsilon must be from 1e-20 to {LARGEST_EPSILON} for a linear program")
    n, relation = whole(n, "n"), relation_of(neighbours)
    limit = None if error is None else as_fraction(error, "error")
    if seconds is not None and not seconds > 0:
        raise ValueError("seconds must be above 0")
    with tqdm(total=4, disable=not progress, unit=" steps") as bar:
        bar.set_description("costs")
        known = None if rows is None else whole(rows, "rows")
        costs, unit, outcomes, smalldb = _costs(workload, exact, n, known, limit, relation)
        kept = without_dominated(costs)
        costs, outcomes = costs[:, kept], tuple(outcomes[position] for position in kept)
        constraints = 2 * count_pairs(domain.size, n, relation) * len(kept)
        if constraints > MOST_CONSTRAINTS:
            raise ValueError(
                f"a linear program of {constraints} constraints is too large: at most {MOST_CONSTRAINTS}; "
                "use fewer rows or a smaller n"
            )
        tables = list(databases(domain.size, n, relation))
        position = {x: i for i, x in enumerate(tables)}
        pairs = both_ways(position, n, relation)
        bar.update()
        bar.set_description(f"{constraints} constraints")
        value, laws, weights, flows = solve(costs, pairs, float(exact), seconds)
        bar.update()
        bar.set_description("proof")
        lower = certified(costs, pairs, exact, weights, flows) / unit
        bar.update()
        bar.set_description("mechanism")
        private = made_private(laws, pairs, exact)
        worst = max(
            sum(weight * cost for weight, cost in zip(law, line, strict=True))
            for law, line in zip(private, costs.tolist(), strict=True)
        )
        bar.update()
    mechanism = BestMechanism(outcomes, position, private)
    upper, least = Fraction(worst, WHOLE) / unit, max(lower, Fraction(0))
    solved = value / float(unit)
    return Minimax(least, upper, solved, smalldb, len(tables), len(outcomes), mechanism)


def _costs(
    workload: Workload,
    epsilon: Fraction,
    n: int,
    rows: int | None,
    limit: Fraction | None,
    relation: Neighbours,
) -> tuple[Integers, Fraction, tuple[Outcome, ...], float | None]:
    """Return what each outcome costs each table, in units of 1 / unit, and what SmallDB costs the worst."""
    if rows is None:
        return *answers_with_costs(workload, n, limit, relation), None
    instance = instance_of(workload, epsilon, rows, None, n, relation)
    with tables_of(instance) as tables:
        costs, unit = tables.scores, Fraction(n * rows * workload.denominator)
        if limit is not None:  # a whole number of failures in units of 1
            costs, unit = (costs > int(limit * unit // 1)).astype(np.int64), Fraction(1)
        exponents = -float(instance.rate) * (tables.scores - tables.scores.min(axis=1)[:, None])
        law = np.exp(exponents) * tables.shares
        mean = float(((law * costs).sum(axis=1) / law.sum(axis=1)).max())
        outcomes = tuple(tuple(small) for small in tables.small.tolist())
        return costs, unit, outcomes, mean / float(unit)
