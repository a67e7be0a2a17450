"""The best mechanism: it is private and as good as is said, and free outputs are as free as any."""

from fractions import Fraction
from itertools import product

import naive
import numpy as np
import pytest

import smalldb
from queries import Conjunctions, Domain, Linear, Marginals, Parities
from smalldb.auditing import minimax
from smalldb.auditing.minimax import answers_with_costs, made_private, solve, without_dominated
from smalldb.mechanisms import Neighbours

A, AB = Domain(["a"]), Domain(["a", "b"])


def pairs_of(tables, neighbours):
    """The positions of all ordered pairs of neighbours."""
    return np.array([*naive.neighbouring({x: i for i, x in enumerate(tables)}, neighbours)])


def best_of_grid(workload, n, epsilon, steps, neighbours="replace-one", error=None):
    """The least worst error by floats if answers are multiples of 1 / steps of a row."""
    tables = naive.databases(workload.domain.size, n, neighbours)
    sums = np.array(
        [[sum(w * c for w, c in zip(q, x, strict=True)) for q in workload.matrix()] for x in tables]
    )
    most = n * workload.denominator
    grid = np.array(list(product(range(most * steps + 1), repeat=workload.size)))
    costs = np.abs(steps * sums[:, None] - grid).max(axis=2)
    if error is not None:
        costs = (costs > error * most * steps).astype(int)
    value, *_ = solve(np.unique(costs, axis=1), pairs_of(tables, neighbours), epsilon)
    return value / (1 if error is not None else most * steps)


FREE = [
    (A, Conjunctions(1), 4, 1, "replace-one"),
    (AB, Conjunctions(1), 2, 1, "replace-one"),
    (AB, Parities(2), 1, "1/2", "replace-one"),
    (A, Conjunctions(1), 3, 1, "add-remove"),
    (AB, Conjunctions(1), 2, 1, "add-remove"),
    (Domain(["a", "b"], valid="a | ~b"), Linear([[0, "1/2", 1], [1, 0, "1/2"]]), 1, 1, "replace-one"),
]


@pytest.mark.slow
@pytest.mark.parametrize("domain, queries, n, epsilon, neighbours", FREE, ids=range(len(FREE)))
def test_no_finer_answers_are_better(domain, queries, n, epsilon, neighbours):
    """Halves of a row are all that free outputs need: thirds and quarters change nothing."""
    best = minimax(domain, queries, n=n, epsilon=epsilon, neighbours=neighbours)
    workload = queries.workload(domain)
    for steps in (2, 3, 4):
        grid = best_of_grid(workload, n, float(Fraction(epsilon)), steps, neighbours)
        assert float(best.lower) <= grid * (1 + 1e-9)
        if steps != 3:
            assert float(best.upper) == pytest.approx(grid, rel=1e-6)


def test_halves_are_needed():
    workload = Conjunctions(1).workload(AB)
    whole, half = (best_of_grid(workload, 2, 1.0, steps) for steps in (1, 2))
    assert half < 0.99 * whole
    assert float(minimax(AB, Conjunctions(1), n=2, epsilon=1).lower) == pytest.approx(half, rel=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("error", ["0.1", "1/4", "0.4"])
def test_no_finer_answers_fail_less(error):
    best = minimax(AB, Conjunctions(1), n=3, epsilon=1, error=error)
    fine = best_of_grid(Conjunctions(1).workload(AB), 3, 1.0, 20, error=Fraction(error))
    assert float(best.lower) == pytest.approx(fine, rel=1e-7, abs=1e-9)


CASES = [
    (AB, Conjunctions(2), 3, 2, 1, "replace-one", None),
    (AB, Conjunctions(2), 3, None, 1, "replace-one", None),
    (AB, Marginals(2), 2, 2, "1/10", "replace-one", None),
    (A, Conjunctions(1), 5, None, 3, "replace-one", "1/5"),
    (AB, Conjunctions(1), 3, 2, 1, "add-remove", None),
    (AB, Conjunctions(1), 2, None, 2, "add-remove", None),
    (A, Conjunctions(1), 4, 3, "1e-6", "replace-one", None),
]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_the_mechanism_is_private_and_as_good_as_is_said(case):
    domain, queries, n, rows, epsilon, neighbours, error = case
    best = minimax(domain, queries, n=n, rows=rows, epsilon=epsilon, neighbours=neighbours, error=error)
    made = smalldb.audit(domain, n=n, epsilon=epsilon, mechanism=best.mechanism, neighbours=neighbours)
    assert made.loss[1] <= Fraction(epsilon)
    matrix = queries.workload(domain).matrix().tolist()
    unit = queries.workload(domain).denominator

    def cost(x, outcome):
        sums = [Fraction(sum(w * c for w, c in zip(q, x, strict=True)), unit) for q in matrix]
        if rows is None:
            answers = [n * answer for answer in outcome]
        else:
            answers = [
                Fraction(sum(x) * sum(w * c for w, c in zip(q, outcome, strict=True)), rows * unit)
                for q in matrix
            ]
        found = max(abs(a - b) for a, b in zip(sums, answers, strict=True)) / n
        return found if error is None else found > Fraction(error)

    means = []
    for x in naive.databases(domain.size, n, neighbours):
        law = best.mechanism(x)
        assert sum(law.values()) == 1
        means.append(sum(p * cost(x, outcome) for outcome, p in law.items()))
    assert max(means) == best.upper
    assert best.lower <= best.upper <= best.lower * (1 + Fraction(1, 10**5)) + Fraction(1, 10**9)
    assert best.outcomes == len(best.mechanism.outcomes)
    assert best.databases == len(means)


@pytest.mark.slow
def test_more_rows_are_never_worse_and_free_outputs_the_best():
    least = [minimax(AB, "conjunctions:2", n=4, epsilon=1, rows=rows).lower for rows in (2, 3, 4)]
    assert [round(float(each), 4) for each in least] == [0.3770, 0.3343, 0.3089]
    free = minimax(AB, "conjunctions:2", n=3, epsilon=1)
    assert (free.smalldb, free.ratio) == (None, None)
    assert free.upper < minimax(AB, "conjunctions:2", n=3, epsilon=1, rows=3).lower


def test_one_column_needs_no_more_rows_than_n():
    """A mean error is linear between multiples of 1/n: any answer may be rounded at random."""
    free, rows = (minimax(A, "conjunctions:1", n=12, epsilon=4, rows=each) for each in (None, 12))
    assert free.lower == pytest.approx(rows.lower, rel=1e-9)


def test_dominated_outcomes_are_left_out():
    costs, _, _ = answers_with_costs(Conjunctions(2).workload(AB), 2, None, Neighbours.REPLACE_ONE)
    kept = without_dominated(costs)
    for column in range(costs.shape[1]):
        assert any((costs[:, position] <= costs[:, column]).all() for position in kept)
    for one, other in product(kept, repeat=2):
        assert one == other or (costs[:, one] > costs[:, other]).any()


def test_laws_that_are_not_private_are_mixed_until_they_are():
    """The identity is as far from private as can be; what is left of it keeps epsilon exactly."""
    pairs = np.array([(0, 1), (1, 0)])
    (a, b), (c, d) = made_private(np.eye(2), pairs, Fraction(1))
    assert a + b == c + d == 1 << 80
    assert 2.5 < a / c < np.e and 2.5 < d / b < np.e


@pytest.mark.parametrize(
    "change, said",
    [
        ({"seconds": 1e-6, "n": 4}, "not solved in 1e-06 seconds"),
        ({"seconds": 0}, "seconds must be above 0"),
        ({"n": 30}, "beyond the budget"),
        ({"queries": "marginals:2", "n": 12}, "beyond the budget"),
        ({"neighbours": "both"}, "neighbours"),
    ],
)
def test_what_is_refused(change, said):
    with pytest.raises(ValueError, match=said):
        minimax(AB, **{"queries": "conjunctions:2", "n": 3, "epsilon": 1} | change)


def test_too_many_outcomes_are_not_compared(monkeypatch):
    monkeypatch.setitem(minimax.__globals__, "MOST_COMPARED", 100)
    with pytest.raises(ValueError, match="too many outcomes"):
        minimax(AB, "conjunctions:2", n=3, epsilon=1)
