"""OPT(m) by the class of the queries: against enumeration, and what it is worth."""

from fractions import Fraction

import naive
import pytest

from queries import (
    Column,
    Conjunctions,
    Domain,
    Intervals,
    Linear,
    Marginals,
    Parities,
    Predicates,
    Thresholds,
)
from smalldb import bounds
from smalldb.bounds import class_method, covering_radius

AB, ABC = Domain(["a", "b"]), Domain(["a", "b", "c"])
ONE_HOT = Domain(["a", "b", "c"], valid="(a ^ b ^ c) & ~(a & b & c)")
COLUMNS = Domain([Column("x", 3), Column("y", 2)])
CASES = [
    (AB, Thresholds()),
    (AB, Intervals()),
    (AB, Conjunctions(1)),
    (AB, Conjunctions(2)),
    (AB, Parities(2)),
    (AB, Linear([[0, "1/3", "1/2", 1]])),
    (Domain(["a", "b"], valid="a | ~b"), Intervals()),
    (ONE_HOT, Conjunctions(1)),
]
CLASSES = [
    (ABC, Thresholds(), "thresholds"),
    (ABC, Intervals(), "intervals"),
    (ABC, Conjunctions(1, negations=True), "one-way"),
    (ABC, Predicates(["a", "~b"]), "one-way"),
    (ABC, Parities(1), "one-way"),
    (COLUMNS, Marginals(1), "intervals"),
    (COLUMNS, Marginals(2), "least"),
    (ABC, Conjunctions(2), "least"),
    (ONE_HOT, Conjunctions(1), "least"),
    (ONE_HOT, Thresholds(), "thresholds"),
    (ABC, Conjunctions(1) + Intervals(), "least"),
]


def by_definition(workload, rows, n):
    """The largest, over tables of n rows, of the least error of m rows."""
    tables = naive.multisets(workload.domain.size, n)
    worst = max(min(naive.scores(workload, rows, x).values()) for x in tables)
    return Fraction(worst, n * rows * workload.denominator)


@pytest.mark.slow
@pytest.mark.parametrize("domain, queries", CASES, ids=lambda value: getattr(value, "text", "")[:16])
def test_it_is_the_definition(domain, queries):
    workload = queries.workload(domain)
    for rows in (1, 2, 3):
        low, high = covering_radius(workload, rows=rows, tolerance="1/20")
        assert low <= high
        # scores of all n rows are those of a table of shares
        for n in (1, 3, 2 * rows, 4):
            truth = by_definition(workload, rows, n)
            assert covering_radius(workload, rows=rows, n=n) == (truth, truth)
            assert truth <= high
        assert high <= bounds.opt(
            cells=domain.size, queries=workload.size, rows=rows, method=class_method(domain, queries)
        ) * Fraction(21, 20)


def test_known_radii():
    for rows in (1, 2, 4):
        for queries, times in ((Thresholds(), "1/2"), (Intervals(), "3/4"), (Conjunctions(2), "2/3")):
            low, high = covering_radius(queries.workload(AB), rows=rows, tolerance="1/10")
            assert low <= Fraction(times) / rows <= high <= low * Fraction("1.15")
    assert covering_radius(Conjunctions(1).workload(Domain(["a"])), rows=1, n=3) == (Fraction(1, 3),) * 2
    assert covering_radius(Linear([[1, 1, 1, 1]]).workload(AB), rows=1) == (0, 0)


@pytest.mark.parametrize("domain, queries, method", CLASSES)
def test_a_class_knows_its_method(domain, queries, method):
    assert class_method(domain, queries) == method
    workload = queries.workload(domain)
    for rows in (1, 2):
        most = bounds.opt(cells=domain.size, queries=workload.size, rows=rows, method=method)
        assert all(covering_radius(workload, rows=rows, n=n)[1] <= most for n in range(1, 6))


def test_it_takes_texts_and_the_default():
    assert class_method(AB, "conjunctions:1") == "one-way"
    assert class_method(AB) == "least"


def test_a_rule_can_make_the_class_err_more():
    radius = covering_radius(Conjunctions(1).workload(ONE_HOT), rows=1, n=3)[1]
    assert radius == Fraction(2, 3) > bounds.opt(cells=3, queries=3, rows=1, method="one-way")


def test_what_it_is_worth():
    given = {"error": "0.1", "epsilon": 1, "beta": "0.05"}
    thresholds = {"cells": 256, "queries": 255}
    one_way = {"cells": 1024, "queries": 10}
    assert bounds.sharp_data(**given, **thresholds) == 22715
    assert bounds.sharp_data(**given, **thresholds, method="thresholds") == 1706
    assert bounds.sharp_data(**given, **one_way) == 8481
    assert bounds.sharp_data(**given, **one_way, method="one-way") == 2264


@pytest.mark.slow
@pytest.mark.parametrize("method", ["thresholds", "one-way", "intervals", "least"])
@pytest.mark.parametrize("candidates", ["multisets", "tuples"])
@pytest.mark.parametrize("beta", ["0.05", "0.999"])
def test_the_best_rows_and_the_least_data(method, candidates, beta):
    sizes = {"cells": 8, "queries": 7, "epsilon": 1, "beta": beta, "method": method, "candidates": candidates}
    for n in (10, 60, 300):
        best = bounds.best_rows(n=n, **sizes)
        every = [bounds.sharp(n=n, rows=m, **sizes) for m in range(1, 80)]
        assert best == 1 + every.index(min(every))
        assert bounds.best_rows(n=n, max_rows=3, **sizes) == 1 + every.index(min(every[:3]))
    n = bounds.sharp_data(error="0.1", **sizes)
    assert bounds.sharp(n=n, rows=bounds.best_rows(n=n, **sizes), **sizes) <= 0.1
    if n > 1:
        assert bounds.sharp(n=n - 1, rows=bounds.best_rows(n=n - 1, **sizes), **sizes) > 0.1
    if method != "least":
        del sizes["queries"]
        assert bounds.sharp_queries(error="0.2", n=max(n, 2), **sizes) == 10**18


def test_too_many_tables():
    with pytest.raises(ValueError, match="rows must be fewer"):
        covering_radius(Conjunctions(2).workload(ABC), rows=40)
    with pytest.raises(ValueError, match="n must be fewer"):
        covering_radius(Conjunctions(2).workload(ABC), rows=1, n=100)
