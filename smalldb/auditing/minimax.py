"""The best private mechanism of a tiny instance: the least worst error of all that there are."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import TypeAlias

import numpy as np
from tqdm import tqdm

from queries import Domain, QueryClass, Workload
from queries.arrays import Integers
from smalldb.auditing.minimax_program import WHOLE, certified, made_private, solve
from smalldb.auditing.outputs_of_answers import answers_with_costs, without_dominated
from smalldb.auditing.worst_case import EPSILONS
from smalldb.counting.databases import Counts, count_pairs, databases, neighbours_of
from smalldb.counting.tabulating import instance_of, tabulated
from smalldb.exact.numbers import Number, as_fraction, positive, whole
from smalldb.planning import Neighbours, relation_of, workload_of

Outcome: TypeAlias = tuple[int, ...] | tuple[Fraction, ...]

MOST_CONSTRAINTS = 250_000  # pairs of neighbours x outcomes, both ways: some minutes
LARGEST_EPSILON = 10  # beyond, exp(-epsilon) nears the solver's tolerance


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BestMechanism:
    """A mechanism of a tiny instance, given by its laws: a function of a database, as `audit` takes it."""

    # what it can release: small databases, as counts over the cells; or, if outputs are free, the
    # answers to the queries, as shares of n rows
    outcomes: tuple[Outcome, ...]
    _position: Mapping[Counts, int]
    _weights: list[list[int]]

    def __repr__(self) -> str:
        return f"<BestMechanism of {len(self._weights)} databases and {len(self.outcomes)} outcomes>"

    def __call__(self, database: Counts) -> dict[Outcome, Fraction]:
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

    Raises
    ------
    ValueError
        A larger instance, an epsilon above 10, or a program that the solver gives up, or not in time.

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
        pairs = _pairs(position, n, relation)
        bar.update()
        bar.set_description(f"{constraints} constraints")
        value, laws, weights, flows = solve(costs, pairs, float(exact), seconds)
        bar.update()
        bar.set_description("proof")
        lower = certified(costs, pairs, exact, weights, flows) / unit
        bar.update()
        bar.set_description("mechanism")
        made = made_private(laws, pairs, exact)
        worst = max(
            sum(weight * cost for weight, cost in zip(law, line, strict=True))
            for law, line in zip(made, costs.tolist(), strict=True)
        )
        bar.update()
    mechanism = BestMechanism(outcomes, position, made)
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
    try:
        tables = tabulated(instance)
    finally:
        tabulated.cache_clear()
    costs, unit = tables.scores, Fraction(n * rows * workload.denominator)
    if limit is not None:  # a whole number of failures in units of 1
        costs, unit = (costs > int(limit * unit // 1)).astype(np.int64), Fraction(1)
    exponents = -float(instance.rate) * (tables.scores - tables.scores.min(axis=1)[:, None])
    law = np.exp(exponents) * tables.shares
    mean = float(((law * costs).sum(axis=1) / law.sum(axis=1)).max())
    outcomes = tuple(tuple(small) for small in tables.small.tolist())
    return costs, unit, outcomes, mean / float(unit)


def _pairs(position: Mapping[Counts, int], n: int, relation: Neighbours) -> Integers:
    """Return the positions of neighbours, both ways round, shape (pairs, 2)."""
    once = [(position[x], position[other]) for x in position for other in neighbours_of(x, n, relation)]
    return np.array([pair for a, b in once for pair in ((a, b), (b, a))], dtype=np.int64)
