"""The audit of accuracy: exact worst errors as defined, and never above what is proved."""

import math
from fractions import Fraction

import naive
import pytest

from queries import Conjunctions, Domain, Intervals, Linear, Marginals, Parities, Thresholds
from smalldb import bounds
from smalldb.auditing import accuracy
from smalldb.planning import plan

AB = Domain(["a", "b"])
CASES = [
    (AB, Conjunctions(2), 2, 1, 4),
    (AB, Conjunctions(1), 3, "1/3", 3),
    (AB, Parities(2), 1, 4, 4),
    (Domain(["a"]), Conjunctions(1), 4, "0.1", 6),
    (Domain(["a", "b"], valid="a | ~b"), Marginals(2), 2, 20, 4),
    (AB, Linear([[0, "1/3", "1/2", 1], ["1/4", 1, 0, "3/4"]]), 2, 3, 3),
    (AB, Thresholds(), 3, 9, 4),
    (AB, Intervals(), 2, 2, 5),
]


def laws(workload, rows, epsilon, n, base):
    """Table -> its law, error -> probability, by fractions and Taylor series."""
    cells, matrix, found = workload.domain.size, workload.matrix().tolist(), {}
    for x, masses in naive.laws(workload, rows, epsilon, n, base=base).items():
        answers = [sum(w * c for w, c in zip(weights, x, strict=True)) for weights in matrix]
        found[x] = law = {}
        for y, mass in zip(naive.multisets(cells, rows), masses, strict=True):
            error = Fraction(naive.score(matrix, answers, n, y), n * rows * workload.denominator)
            law[error] = law.get(error, 0) + mass
    return found


@pytest.mark.slow
@pytest.mark.parametrize("base", ["multisets", "tuples"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{len(case[0].attributes)}-{case[1].text[:20]}")
def test_it_is_the_definition(case, base):
    domain, queries, rows, epsilon, n = case
    found = accuracy(domain, queries, n=n, epsilon=epsilon, rows=rows, candidates=base)
    truth = laws(queries.workload(domain), rows, epsilon, n, base)

    def above(error):
        return max(sum(mass for e, mass in law.items() if e > error) for law in truth.values())

    def mean(law):
        return sum(e * mass for e, mass in law.items())

    assert found.databases == len(truth)
    assert found.optimum == max(min(law) for law in truth.values()) == min(truth[found.hardest[0]])
    assert found.errors == tuple(sorted({error for law in truth.values() for error in law}))
    worst = max(map(mean, truth.values()))
    assert found.worst_mean == pytest.approx(float(worst), rel=1e-14)
    assert mean(truth[found.hardest[1]]) == pytest.approx(worst, rel=1e-14)
    assert 0 <= found.mean[1] - found.mean[0] < Fraction(1, 10**25)
    for error, (low, high) in zip(found.errors, found.exceedances, strict=True):
        assert float(low) == pytest.approx(float(above(error)), rel=1e-12)
        assert 0 <= high - low < Fraction(1, 10**25)
        assert found.failure(error) >= low
    for probability in ("0.1", "0.5", "0.95", "0.999"):
        allowed = 1 - Fraction(probability)
        least = min(error for error in found.errors if above(error) <= allowed)
        assert found.quantile(probability) == least


@pytest.mark.parametrize("base", ["multisets", "tuples"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{len(case[0].attributes)}-{case[1].text[:20]}")
@pytest.mark.parametrize("beta", ["0.01", "0.3", "0.9"])
def test_no_bound_is_below_the_truth(case, base, beta):
    domain, queries, rows, epsilon, n = case
    found = accuracy(domain, queries, n=n, epsilon=epsilon, rows=rows, candidates=base)
    said = found.promised(beta)
    quantile, mean = said.pop("worst quantile"), said.pop("worst mean")
    assert said.pop("bound on the mean") >= mean
    assert quantile >= found.quantile(1 - Fraction(beta))
    assert all(bound >= found.quantile(1 - Fraction(beta)) for bound in said.values())
    sizes = {"cells": domain.size, "queries": queries.workload(domain).size, "rows": rows}
    assert bounds.opt(**sizes) >= found.optimum


@pytest.mark.slow
def test_the_instance_of_the_theorems():
    found = accuracy(AB, "conjunctions:2", n=40, epsilon=1, rows=8)
    assert found.quantile("0.95") == Fraction(3, 10)
    said = found.promised()
    assert [round(said[name], 3) for name in ("sharp", "theorem 4.5")] == [0.527, 0.969]
    assert found.databases == math.comb(43, 3)


def test_a_bound_that_is_false_is_seen():
    """The multisets' count does not bound ordered rows."""
    found = accuracy(AB, "predicates:a & b", n=20, epsilon=2, rows=8, candidates="tuples")
    sizes = {"n": 20, "cells": 4, "queries": 1, "rows": 8, "epsilon": 2, "beta": "0.05"}
    wrong = bounds.sharp(**sizes)
    made = plan(AB, "predicates:a & b", n=20, epsilon=2, rows=8, candidates="tuples")
    assert wrong < found.quantile("0.95") <= bounds.sharp(**sizes, candidates="tuples") == made.bound


@pytest.mark.parametrize(
    "change, said",
    [
        ({"n": 10**6}, "the largest n that can be audited is"),
        ({"epsilon": "1e-21"}, "1e-20"),
        ({"epsilon": 0}, "epsilon must be above 0"),
        ({"rows": 0}, "rows must be"),
        ({"candidates": "lists"}, "candidates must be"),
    ],
)
def test_what_is_refused(change, said):
    with pytest.raises(ValueError, match=said):
        accuracy(AB, "conjunctions:2", **{"n": 4, "epsilon": 1, "rows": 2} | change)


def test_its_table_and_its_ends():
    found = accuracy(AB, "conjunctions:2", n=4, epsilon=1, rows=2)
    frame = found.to_frame()
    assert list(frame.columns) == ["error", "exceedance"]
    assert frame["exceedance"].is_monotonic_decreasing
    assert frame["exceedance"].iloc[-1] == 0 == found.failure(1)
    assert found.failure("-1/10") == 1
