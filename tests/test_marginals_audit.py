"""Rounds on columns of 2, 3 and 5 categories: the worst loss over all small tables and their neighbours."""

from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest
from asking import Given, certify, release_tables

from queries import Column, Domain, Marginals, Predicates, Rows
from smalldb.exact.bits import SeededBits
from smalldb.marginals import asks, certificate
from smalldb.marginals.counted_rows import CountedRows, count
from smalldb.marginals.estimate.estimation import Estimator
from smalldb.marginals.measuring import PrivacyMeasure
from smalldb.marginals.strategies import adaptive as rounds_module
from smalldb.marginals.strategies.adaptive import ModelCapacity
from smalldb.marginals.strategies.choosing_tables import plan_tables
from smalldb.marginals.universe import Universe

SIZES = (2, 3, 5)
CELLS = np.array(list(product(*map(range, SIZES))))
PAIRS = tuple(combinations(range(3), 2))
UNIVERSE = Universe(SIZES, (False, False, True), (*PAIRS, (0, 1, 2)), (1,) * 4)
DOMAIN = Domain(["a", Column("b", 3), Column("c", 5)])
EPSILON = Fraction(1)


def databases(replaced):
    """Every table of two rows, or of up to two, as counts over the 30 cells."""
    sizes = [2] if replaced else [0, 1, 2]
    chosen = [c for n in sizes for c in combinations_with_replacement(range(30), n)]
    return np.array([np.bincount(np.array(c, dtype=np.int64), minlength=30) for c in chosen])


def neighbours(tables, replaced):
    """The positions of all ordered pairs of neighbours among them."""
    apart = np.abs(tables[:, None] - tables[None]).sum(axis=2)
    return np.nonzero(apart == (2 if replaced else 1))


def rows_of(counts):
    return CountedRows(CELLS, counts.astype(np.int64))


def tabulated(tables, columns):
    """The counts of the table of some columns, of each database."""
    sizes = [SIZES[c] for c in columns]
    return np.array([rows_of(counts).table(columns, sizes).ravel() for counts in tables])


def log_law(scores, rate):
    """The logarithms of the probabilities of an exponential mechanism, a row each."""
    exponents = scores * rate
    top = exponents.max(axis=1, keepdims=True)
    return exponents - top - np.log(np.exp(exponents - top).sum(axis=1, keepdims=True))


@pytest.mark.slow
@pytest.mark.parametrize("replaced", [True, False])
@pytest.mark.parametrize("cells", [True, False])
def test_measuring_loses_its_share_and_no_more(replaced, cells):
    """With noise of rate r, log ratios are at most r times the distance of the counts, reached at z = x."""
    plan = plan_tables(UNIVERSE, EPSILON, None, replaced, 100, strategy="cells" if cells else "adaptive")
    tables = databases(replaced)
    pairs = neighbours(tables, replaced)
    measured = [((0, 1, 2), plan.measuring)] if cells else [((c,), p) for c, p in enumerate(plan.columns)]
    loss = np.zeros(len(pairs[0]), dtype=object)
    for columns, cost in measured:
        counts = tabulated(tables, columns)
        moved = np.abs(counts[pairs[0]] - counts[pairs[1]]).sum(axis=1)
        loss = loss + np.array([plan.law.rate(cost) * int(m) for m in moved], dtype=object)
    assert max(loss) == sum(cost for _, cost in measured) > 0
    assert plan.cost <= EPSILON


@pytest.mark.slow
@pytest.mark.parametrize("replaced", [True, False])
def test_each_round_loses_its_share_and_no_more(replaced):
    """Selection and measurement together, given what was released before, over all outcomes."""
    plan = plan_tables(UNIVERSE, EPSILON * 4, None, replaced, 100, strategy="adaptive")
    tables = databases(replaced)
    pairs = neighbours(tables, replaced)
    made = release_tables(plan, rows_of(tables[-1] * 50), SeededBits(1), count=10)
    assert made.tables and not made.beside
    estimator = Estimator.of(plan, made.columns)
    linear, names = estimator.candidates.linear(), estimator.names
    counted = [count(linear, rows_of(counts)) for counts in tables]
    model, left = estimator.fit([], ()), plan.rounds * (plan.selecting + plan.measuring)
    for number, released in enumerate(made.tables):
        before = list(made.tables[:number])
        capacity, expected = (
            ModelCapacity(estimator, before),
            estimator.moved(estimator.predicted(model, number), []),
        )
        ask = rounds_module.worst_of(plan, estimator, capacity, expected, [], left, linear)
        possible = [k for k in np.flatnonzero(ask.possible) if ask.refused(k) is None]
        scores = np.array([ask.exact(Given(c))[possible] for c in counted], dtype=float)
        law = log_law(scores, float(ask.epsilon) / (2 * ask.moved))
        ratios = law[pairs[0]] - law[pairs[1]]
        assert float(plan.selecting) / 4 < ratios.max() <= float(plan.selecting) + 1e-12
        for position, k in enumerate(possible):
            where = estimator.candidates.tables.index(tuple(c for c, _ in names[k]))
            coarse = np.array([estimator.candidates.coarse(c[where], names[k]).ravel() for c in counted])
            moved = np.abs(coarse[pairs[0]] - coarse[pairs[1]]).sum(axis=1)
            cost = plan.cost_of(coarse.shape[1])
            together = ratios[:, position] + float(plan.law.rate(cost)) * moved
            assert together.max() <= float(plan.selecting + cost) + 1e-12
            assert moved.max() == plan.law.moved
        left -= plan.selecting + released.cost
        model = estimator.fit([*before, released], model.coefficients)
    assert left >= 0
    assert made.spent <= plan.cost - plan.certifying


@pytest.mark.slow
@pytest.mark.parametrize("replaced", [True, False])
def test_the_two_stages_of_a_certificate_lose_its_cost_and_no_more(replaced, monkeypatch):
    """The selected query, and its distance with noise, given the finished rows."""
    workload = (Marginals(2) + Predicates(["a | `b=1`"])).workload(DOMAIN)
    tables, cost, law = databases(replaced), Fraction(2), PrivacyMeasure(False, replaced)
    pairs, finished = neighbours(tables, replaced), Rows.from_codes(DOMAIN, CELLS[[3, 7, 7]])
    seen = []

    class Stop(Exception):
        pass

    def select(scores, *, epsilon, sensitivity, rng):
        seen.append((scores, epsilon, sensitivity))
        raise Stop

    monkeypatch.setattr(asks, "select", select)
    distances = []
    for counts in tables:
        real = Rows.from_codes(DOMAIN, CELLS, counts.astype(np.int64))
        with pytest.raises(Stop):
            certify(workload, real, finished, 2, law, cost, SeededBits(1))
        answers = workload.answers(real) - certificate.expected(workload.answers(finished), 3, 2)
        distances.append(np.append(answers, workload.denominator * (real.n - 2)))
        assert (np.abs(distances[-1]) == seen[-1][0]).all()
    (_, epsilon, sensitivity), distances = seen[0], np.array(distances)
    assert (epsilon, sensitivity) == (cost / 2, workload.denominator)
    law_of = log_law(np.abs(distances).astype(float), float(epsilon) / (2 * sensitivity))
    ratios = law_of[pairs[0]] - law_of[pairs[1]]
    moved = np.abs(distances[pairs[0]] - distances[pairs[1]])
    assert moved.max() == workload.denominator
    together = ratios + float(cost / 2 / workload.denominator) * moved
    assert float(cost) / 2 < together.max() <= float(cost) + 1e-12
