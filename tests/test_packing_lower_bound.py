"""Lower bounds: proved, never above what some mechanism does."""

import math
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, product
from types import SimpleNamespace

import numpy as np
import pytest

from queries import Column, Conjunctions, Domain, Intervals, Linear, Marginals, Parities, Thresholds
from smalldb import bounds
from smalldb.auditing import accuracy, minimax
from smalldb.auditing.minimax import certified, solve
from smalldb.bounds.packing_lower_bound import _codes

A, AB = Domain(["a"]), Domain(["a", "b"])
CASES = [
    (AB, Conjunctions(2), 4, 1, 2),
    (AB, Conjunctions(1), 4, "1/3", 2),
    (AB, Parities(2), 4, 4, 1),
    (A, Conjunctions(1), 10, 1, 3),
    (AB, Thresholds(), 4, 2, 2),
    (AB, Intervals(), 3, "0.1", 2),
    (Domain(["a", "b"], valid="a | ~b"), Marginals(2), 5, 10, 2),
]


# Packing


@pytest.mark.parametrize(
    "apart, epsilon, beta", [(2, "0.1", "0.05"), (1024, 1, "0.05"), (16, 3, "0.4"), (4, 9, "0.9")]
)
def test_packing_is_the_definition(apart, epsilon, beta):
    epsilon, beta = Fraction(epsilon), Fraction(beta)
    for n in (1, 5, 100):
        # exp at 28 digits decides: no case is near
        excluded = [
            h
            for h in range(1, n + 1)
            if Decimal(float(1 - beta)) * (1 + (apart - 1) * Decimal(float(-epsilon * h)).exp()) > 1
        ]
        found = bounds.packing(n=n, apart=apart, epsilon=epsilon, beta=beta)
        assert found == pytest.approx(max(excluded, default=0) / (2 * n), rel=1e-15)
        assert Fraction(found) <= Fraction(max(excluded, default=0), 2 * n)
        means = [h / (2 * n) * (1 - 1 / (1 + (apart - 1) * math.exp(-epsilon * h))) for h in range(1, n + 1)]
        assert bounds.packing_mean(n=n, apart=apart, epsilon=epsilon) == pytest.approx(max(means), rel=1e-12)


def test_packing_scales_as_it_should():
    sizes = {"n": 100, "apart": 64, "beta": "0.05"}
    assert bounds.packing(epsilon=1, moves=2, **sizes) == bounds.packing(epsilon=2, **sizes)
    assert bounds.packing(epsilon=1, distance="1/2", **sizes) == bounds.packing(epsilon=1, **sizes) / 2
    assert bounds.packing(n=10, apart=1, epsilon=1, beta="0.5") == 0
    assert bounds.packing_mean(n=10, apart=1, epsilon=1) == 0
    with pytest.raises(ValueError, match="distance must be above 0"):
        bounds.packing(epsilon=1, distance=2, **sizes)


def test_cells_apart():
    abc = Domain(["a", "b", "c"])
    assert bounds.cells_apart(Conjunctions(3, exactly=True).workload(abc)) == 2
    assert bounds.cells_apart(Marginals(2).workload(Domain(["a", "b"], valid="a | ~b"))) == 3
    wide = Domain([f"c{i}" for i in range(40)])
    assert bounds.cells_apart(Conjunctions(2).workload(wide)) == 2**40
    assert bounds.cells_apart(Parities(2, exactly=True).workload(wide)) == 1
    columns = Domain([Column(f"c{i}", 50) for i in range(6)])
    assert bounds.cells_apart(Marginals(2).workload(columns)) == 50**6
    with pytest.raises(ValueError, match="0/1"):
        bounds.cells_apart(Linear([[0, "1/2", 1, 1]]).workload(AB))


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(3)])
def test_packing_is_never_above_the_best_that_releases_an_answer(epsilon):
    """One query on two cells; any multiple of 1 / 12 may be released."""
    for n in (1, 2, 3, 6):
        costs = np.abs(12 // n * np.arange(n + 1)[:, None] - np.arange(13)[None])
        pairs = np.array([(a, b) for a in range(n + 1) for b in range(n + 1) if abs(a - b) == 1])
        best = solve(costs, pairs, float(epsilon))[0] / 12
        assert bounds.packing_mean(n=n, apart=2, epsilon=epsilon) <= best * (1 + 1e-9)
        for beta in ("0.05", "0.3"):
            least = bounds.packing(n=n, apart=2, epsilon=epsilon, beta=beta)
            if least:
                fails = (costs >= 12 * Fraction(least).limit_denominator(1000)).astype(np.int64)
                assert solve(fails, pairs, float(epsilon))[0] > float(beta)


# The linear program


@pytest.mark.parametrize("domain, queries, n, epsilon, rows", CASES, ids=range(len(CASES)))
@pytest.mark.parametrize("error", [None, "0.3"])
def test_smalldb_is_never_better_than_the_best(domain, queries, n, epsilon, rows, error):
    best = minimax(domain, queries, n=n, epsilon=epsilon, rows=rows, error=error)
    found = accuracy(domain, queries, n=n, epsilon=epsilon, rows=rows)
    truth = found.mean[1] if error is None else Fraction(found.failure(error))
    assert best.lower <= truth
    assert best.smalldb == pytest.approx(float(truth), rel=1e-12, abs=1e-15)
    assert float(best.lower) == pytest.approx(best.solved, rel=1e-7, abs=1e-9)
    assert error is not None or best.lower >= found.optimum - Fraction(1, 10**7)
    if error is None:
        given = {"n": n, "epsilon": epsilon, "apart": bounds.cells_apart(queries.workload(domain))}
        assert bounds.packing_mean(**given) <= best.solved * (1 + 1e-9)
        assert 1 <= best.ratio < 2.3


@pytest.mark.parametrize("epsilon", ["1/100", 1, 5])
def test_randomised_response_is_the_best_for_one_row(epsilon):
    best = minimax(A, "conjunctions:1", n=1, epsilon=epsilon, rows=1)
    truth = 1 / (1 + Decimal(float(Fraction(epsilon))).exp())
    assert 0 <= truth - Decimal(float(best.lower)) < Decimal("1e-12")


def test_any_dual_solution_is_a_bound_and_a_wrong_growth_is_not():
    tables, rng = 4, np.random.default_rng(7)
    costs = np.abs(4 * np.arange(tables)[:, None] - 3 * np.arange(5)[None])
    pairs = np.array([(a, b) for a in range(tables) for b in range(tables) if abs(a - b) == 1])
    value, _, weights, flows = solve(costs, pairs, 1.0)
    for _ in range(200):
        noise = rng.exponential(size=2)
        near = weights + noise[0] * rng.random(tables), flows * (1 + noise[1] * rng.random(flows.shape))
        assert certified(costs, pairs, Fraction(1), *near) <= value
    assert value * (1 - 1e-9) <= certified(costs, pairs, Fraction(1), weights, flows) <= value * (1 + 1e-12)
    assert certified(costs, pairs, Fraction(99, 100), weights, flows) > value
    assert certified(costs, pairs, Fraction(1), 0 * weights, flows) == 0


@pytest.mark.parametrize(
    "change, said",
    [({"n": 30}, "constraints is too large"), ({"epsilon": 11}, "to 10"), ({"rows": 0}, "rows must be")],
)
def test_what_is_refused(change, said):
    with pytest.raises(ValueError, match=said):
        minimax(AB, "conjunctions:2", **{"n": 4, "epsilon": 1, "rows": 2} | change)


def test_a_program_that_is_not_solved_is_no_bound(monkeypatch):
    unsolved = SimpleNamespace(success=False, status=4)
    monkeypatch.setattr("scipy.optimize.linprog", lambda *given, **named: unsolved)
    with pytest.raises(ValueError, match="was not solved"):
        minimax(A, "conjunctions:1", n=2, epsilon=1, rows=1)


@pytest.mark.parametrize("moves", [1, 10**40])
@pytest.mark.parametrize("epsilon", ["1e-300", "1e-9", 50, 10**18, 10**40])
@pytest.mark.parametrize("apart", [2, 10**9, 10**400])
def test_extreme_numbers_have_means_too(apart, epsilon, moves):
    """Quick, and never above h / (2 n) / (1 + e^(epsilon h) / (M - 1)) at its best h."""
    for n in (1, 1000, 10**40):
        found = bounds.packing_mean(n=n, apart=apart, epsilon=epsilon, moves=moves)
        rate, most = float(Fraction(epsilon) * moves), math.log(apart - 1)
        near = [1, n, *(min(n, max(1, round(most * step / 16 / rate))) for step in range(1, 18))]
        tried = [h / (2 * n) / (1 + math.exp(min(rate * h - most, 700))) for h in near]
        assert max(tried) * (1 - 1e-9) <= found <= 0.5 or max(tried) < 1e-300


def told_apart(cells, width, s, order):
    """The tables of a Reed-Muller code for one free attribute: the least difference of a parity of two."""
    rows = np.arange(1 << s)
    monomials = [
        np.prod([(rows >> i) & 1 for i in chosen], axis=0) * np.ones(len(rows), dtype=int)
        for size in range(order + 1)
        for chosen in combinations(range(s), size)
    ]
    words = [np.array(bits) @ np.array(monomials) % 2 for bits in product((0, 1), repeat=len(monomials))]
    index = [  # the attributes that tell the cells apart, each a parity of one part
        sum((rows >> bit) & 1 for i, bit in enumerate(part) if chosen >> i & 1) % 2
        for part in np.array_split(np.arange(s), width - 1)
        for chosen in range(1, 1 << len(part))
    ]
    products = [np.zeros(len(rows), dtype=int)]
    for size in range(1, width):
        products += [sum(chosen) % 2 for chosen in combinations(index, size)]
    answers = np.array([[((word + other) % 2).sum() for other in products] for word in words])
    least = min(np.abs(a - b).max() for a, b in combinations(answers, 2))
    return len(rows), len(words), len(index), least


@pytest.mark.parametrize("width, s", [(2, 1), (2, 2), (3, 2), (2, 3), (3, 3), (4, 3)])
def test_parities_tell_the_words_of_a_code_apart(width, s):
    for order in range(s):
        cells, words, index, least = told_apart(1 << s, width, s, order)
        found = [code for code in _codes(index + 5, width) if code[0] == cells][order]
        assert found[:2] == (cells, 5 * round(math.log2(words)))
        assert found[2] <= least


@pytest.mark.parametrize("epsilon", ["1/1000", 1, 10**9])
@pytest.mark.parametrize("attributes, width", [(1, 1), (3, 2), (30, 2), (30, 3), (400, 4)])
def test_packing_for_parities(attributes, width, epsilon):
    """The formula, code by code; never above what noise on each answer promises."""
    beta, n = Fraction(1, 20), 5000
    values = [bounds.packing(n=n, apart=2**attributes, epsilon=epsilon, beta=beta)]
    for cells, bits, told in _codes(attributes, width):
        odds = bits * math.log(2) + math.log(19) + math.log1p(-(2.0 ** -min(bits, 1000)))
        moved = min(n, max(0, math.ceil(odds / float(Fraction(epsilon)) - 1)))
        values.append(told * (moved // cells) / (2 * n))
    given = {"n": n, "epsilon": epsilon, "beta": beta}
    found = bounds.packing_parities(attributes=attributes, width=width, **given)
    assert found == pytest.approx(max(values), rel=1e-12)
    queries = sum(math.comb(attributes, size) for size in range(1, width + 1))
    assert found <= bounds.laplace_answers_tail(queries=queries, **given)
    assert width > 1 or found == values[0]


def test_many_attributes_are_told_apart_by_more_than_one_cell():
    given = {"n": 10**7, "epsilon": "0.01", "beta": "0.05"}
    found = bounds.packing_parities(attributes=100, width=3, **given)
    assert found > 2.3 * bounds.packing(apart=2**100, **given)
    widest = bounds.packing_parities(attributes=100, width=9, **given)
    assert bounds.packing_parities(attributes=100, width=10**30, **given) == widest
    with pytest.raises(ValueError, match="attributes must be at most"):
        bounds.packing_parities(attributes=10**30, width=3, **given)
