"""The privacy profile: as defined, over all neighbours; its composition beside what the theorems say."""

import math
from fractions import Fraction
from itertools import product

import naive
import numpy as np
import pytest

from queries import Conjunctions, Domain, Linear, Marginals, Parities, Thresholds
from smalldb.accounting import compose
from smalldb.accounting.binomials import range_delta
from smalldb.auditing import audit, profile
from smalldb.auditing.profile import BITS, power

A, AB = Domain(["a"]), Domain(["a", "b"])
CASES = [
    (AB, Conjunctions(2), 2, 1, 3),
    (AB, Parities(2), 1, 4, 3),
    (A, Conjunctions(1), 3, "1/3", 5),
    (Domain(["a", "b"], valid="a | ~b"), Marginals(2), 2, 2, 3),
    (AB, Linear([[0, "1/3", "1/2", 1]]), 1, 3, 3),
    (AB, Thresholds(), 2, 6, 2),
]
RELATIONS = ["replace-one", "add-remove"]


def pairs_of_laws(workload, rows, epsilon, n, neighbours, base="multisets"):
    """The laws of all ordered pairs of neighbours, as lists of floats in the order of the candidates."""
    laws = naive.laws(workload, rows, epsilon, n, neighbours, base)
    return naive.neighbouring({x: list(map(float, law)) for x, law in laws.items()}, neighbours)


def together(law, releases):
    return [math.prod(each) for each in product(law, repeat=releases)]


def delta_of(p, q, epsilon):
    return math.fsum(max(0.0, a - math.exp(epsilon) * b) for a, b in zip(p, q, strict=True))


def tradeoff_of(p, q, alpha):
    """Neyman and Pearson: reject the outcomes of largest q / p first, the last of them at random."""
    missed = 1.0
    for a, b in sorted(zip(p, q, strict=True), key=lambda pair: pair[0] / pair[1]):
        share = min(1.0, alpha / a) if a else 1.0
        alpha, missed = max(0.0, alpha - a), missed - share * b
    return missed


@pytest.mark.slow
@pytest.mark.parametrize("base", ["multisets", "tuples"])
@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[1].text[:16])
def test_it_is_the_definition(case, neighbours, base):
    domain, queries, rows, epsilon, n = case
    found = profile(domain, queries, n=n, epsilon=epsilon, rows=rows, neighbours=neighbours, candidates=base)
    pairs = list(pairs_of_laws(queries.workload(domain), rows, epsilon, n, neighbours, base))
    assert 2 * found.pairs == len(pairs)
    for share in (0, 0.2, 0.6, 0.9):
        at = share * float(Fraction(epsilon))
        truth = max(delta_of(p, q, at) for p, q in pairs)
        assert found.delta(at) == pytest.approx(truth, rel=1e-9, abs=1e-14)
        low, high = found.enclosed(at)
        assert 0 <= high - low < Fraction(1, 10**25)
        assert found.delta(at) >= high
    for alpha in (0, 0.01, 0.25, 0.5, 0.8, 1):
        truth = min(tradeoff_of(p, q, alpha) for p, q in pairs)
        assert found.tradeoff(alpha) == pytest.approx(truth, abs=2e-9)
    assert found.total_variation() == found.delta(0)


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("case", CASES[:3], ids=lambda case: case[1].text[:16])
def test_several_releases_are_their_product(case, neighbours):
    domain, queries, rows, epsilon, n = case
    found = profile(domain, queries, n=n, epsilon=epsilon, rows=rows, neighbours=neighbours)
    pairs = set(
        (tuple(p), tuple(q)) for p, q in pairs_of_laws(queries.workload(domain), rows, epsilon, n, neighbours)
    )
    products = [(together(p, 2), together(q, 2)) for p, q in pairs]
    for share in (0, 0.3, 1.1):
        at = share * float(Fraction(epsilon))
        truth = max(delta_of(p, q, at) for p, q in products)
        assert found.delta(at, 2) == pytest.approx(truth, rel=1e-9, abs=1e-14)
    for alpha in (0.05, 0.5):
        truth = min(tradeoff_of(p, q, alpha) for p, q in products)
        assert found.tradeoff(alpha, 2) == pytest.approx(truth, abs=2e-9)


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[1].text[:16])
def test_no_theorem_is_below_the_truth(case, neighbours):
    domain, queries, rows, epsilon, n = case
    given = {"n": n, "epsilon": epsilon, "rows": rows, "neighbours": neighbours}
    found, number = profile(domain, queries, **given), Fraction(epsilon)
    worst = audit(domain, queries, **given)
    assert found.delta(worst.loss[1]) == 0 < found.delta(float(worst.loss[0]) * 0.99)
    for releases in (1, 3, 10):
        for share in (0, 0.1, 0.4):
            total = share * releases * float(number)
            assert found.delta(total, releases) <= range_delta(total, float(number), releases) * (1 + 1e-9)
        proved = compose(epsilon=epsilon, releases=releases, delta="1e-4", bounded_range=True, adaptive=False)
        spent = found.epsilon_for("1e-4", releases)
        assert spent <= proved.epsilon
        assert found.enclosed(spent, releases)[1] <= Fraction(1, 10**4)
        assert spent == 0 or found.enclosed(spent * (1 - 1e-6), releases)[1] > Fraction(1, 10**4)


def test_convolution_is_the_definition():
    third = [1, 5, 2]
    low, high = power([x << BITS - 3 for x in third], [x << BITS - 3 for x in third], 5)
    truth = [1]
    for _ in range(5):
        truth = np.convolve(truth, third)
    assert [x >> BITS - 15 for x in low] == truth.tolist() == [x >> BITS - 15 for x in high]
    low, high = power(
        [(1 << BITS) // 3, 2 * (1 << BITS) // 3], [(1 << BITS) // 3 + 1, 2 * (1 << BITS) // 3 + 1], 7
    )
    for i, (least, most) in enumerate(zip(low, high, strict=True)):
        true = Fraction(math.comb(7, i) * 2**i, 3**7) * 2**BITS
        assert least <= true <= most <= least + 10**4


def test_what_is_refused():
    found = profile(AB, Conjunctions(2), n=3, epsilon=1, rows=2)
    for wrong, said in (
        (lambda: found.delta("-1/2"), "at least 0"),
        (lambda: found.delta(1, 0), "releases must be"),
        (lambda: found.tradeoff(2), "between 0 and 1"),
        (lambda: found.epsilon_for(0), "strictly between"),
        (lambda: found.delta(1, 10**6), "too many"),
        (lambda: profile(AB, Conjunctions(2), n=60, epsilon=1, rows=10), "is too large"),
        (lambda: profile(AB, Conjunctions(2), n=3, epsilon=0, rows=2), "epsilon must be"),
    ):
        with pytest.raises(ValueError, match=said):
            wrong()
    assert repr(found) == "<Profile of 60 pairs of neighbours>"


@pytest.mark.parametrize("epsilon", [100, 600, 10**8])
def test_any_epsilon_is_told_in_time(epsilon):
    """Weights of millions of digits count as less than a unit; the loss is that of the audit."""
    found = profile(A, Conjunctions(1), n=3, rows=2, epsilon=epsilon)
    worst = audit(A, Conjunctions(1), n=3, rows=2, epsilon=epsilon).worst_loss
    assert 0.99 < found.total_variation() <= 1
    assert found.delta(worst) == 0 < found.delta(Fraction(worst) * Fraction(9, 10))
    assert found.epsilon_for("1e-6") <= worst * (1 + 1e-9)


def test_a_trade_off_of_large_losses_is_refused():
    found = profile(A, Conjunctions(1), n=3, rows=2, epsilon=200)
    assert 0 <= found.tradeoff("1/2", 3) < 1e-9
    with pytest.raises(ValueError, match="epsilon x releases must be at most 600"):
        found.tradeoff("1/2", 4)
