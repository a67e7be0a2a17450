"""The discrete Gaussian: its law, what moves between neighbours, and the rho that proves (epsilon, delta)."""

from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations, product
from math import exp, expm1, isqrt, log, log1p, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from margins import law_of, p_value
from scipy import stats

from smalldb.accounting.concentrated import _best_gap, rho_of
from smalldb.exact import integers as drawing_module
from smalldb.exact.bits import SeededBits
from smalldb.noise.distributions import DiscreteGaussian, Geometric
from smalldb.noise.gaussian import least_variances, moving

LARGE_RATIO = Fraction(10**400 + 1, 3 * 10**398 + 7)


@pytest.mark.slow
@pytest.mark.parametrize(
    "variance", [Fraction(1, 5), Fraction(2), Fraction(7, 3), Fraction(40, 3), LARGE_RATIO], ids=float
)
def test_noise_has_its_law(variance):
    """At a variance of 1.3 times as much it is refused. At 2, a number is kept with probability 1."""
    drawn = DiscreteGaussian(variance).draw(4000, SeededBits(11))
    for factor, holds in ((1, True), (Fraction(13, 10), False)):
        law = law_of(DiscreteGaussian(variance * factor), 60)
        found = p_value(Counter(drawn.tolist()), dict(zip(range(-60, 61), law, strict=True)))
        assert (found > 1e-6) == holds
    assert drawn.dtype == np.int64


def by_definition(variance, count, source):
    """Rejection from the two-sided geometric law, with 64 bits of a uniform number against Decimal's exp."""
    t, drawn, pending = isqrt(int(variance)) + 1, [0] * count, list(range(count))
    while pending:
        tried = Geometric(Fraction(1, t)).draw(len(pending), source).tolist()
        again = []
        for position, x in zip(pending, tried, strict=True):
            with localcontext(prec=60):
                r = (abs(x) - variance / t) ** 2 / (2 * variance)
                chance = (-Decimal(r.numerator) / r.denominator).exp()
                uniform = Decimal(source.bits(64)) / 2**64
                # 64 bits decide
                assert r == 0 or not 0 <= chance - uniform <= Decimal(2) ** -64
            drawn[position] = x
            if uniform >= chance:
                again.append(position)
        pending = again
    return drawn


VARIANCES = [st.fractions(Fraction(1, 20), most, max_denominator=10**5) for most in (10**7, 2**119)]


@settings(max_examples=20)
@given(st.one_of(VARIANCES), st.integers(0, 2**30))
def test_noise_is_drawn_as_by_definition(variance, seed):
    found = DiscreteGaussian(variance).draw(9, SeededBits(seed))
    assert found.tolist() == by_definition(variance, 9, SeededBits(seed))


def test_noise_that_does_not_fit_is_cut_off(monkeypatch):
    """What is cut off is the drawn number, never the one that is still to be kept or not."""
    noise = DiscreteGaussian(Fraction(900))
    whole = noise.draw(400, SeededBits(2))
    monkeypatch.setattr(drawing_module, "CLIP", 20)
    assert (
        DiscreteGaussian(Fraction(900)).draw(400, SeededBits(2)).tolist() == np.clip(whole, -20, 20).tolist()
    )
    assert np.abs(whole).max() > 60


@pytest.mark.parametrize("attributes", range(1, 7))
def test_sets_that_move_are_counted(attributes):
    for order in range(1, attributes + 1):
        for distance in range(attributes + 1):
            held = set(range(distance))
            odd = [s for s in combinations(range(attributes), order) if len(held.intersection(s)) % 2]
            assert moving(attributes, order, distance) == len(odd)


def worst(attributes, sets, variances):
    """The largest sum of Delta^2 / (2 sigma^2) over all pairs of rows: squared moves of odd counts."""
    rows = list(product((0, 1), repeat=attributes))
    odd = {row: [sum(row[i] for i in s) % 2 for s in sets] for row in rows}
    weights = [1 / (2 * variances[len(s)]) for s in sets]
    return max(
        sum(w for a, b, w in zip(odd[one], odd[other], weights, strict=True) if a != b)
        for one in rows
        for other in rows
    )


@pytest.mark.parametrize("attributes", [3, 4, 5])
@pytest.mark.parametrize("orders", [(1,), (1, 2), (1, 2, 3), (2,), (3,)])
@pytest.mark.parametrize("complete", [True, False])
def test_variances_prove_rho_for_all_pairs_of_rows(attributes, orders, complete):
    """Exactly, and with nothing to spare where all sets of an order are measured."""
    sets = [s for o in orders for s in combinations(range(attributes), o)]
    if not complete:
        sets = sets[::2] + sets[1::4]
    sizes = {o: sum(len(s) == o for s in sets) for o in {len(s) for s in sets}}
    needs, rho = {o: 0.5**o for o in sizes}, Fraction(3, 100)
    variances = least_variances(attributes, sizes, needs, rho, replaced=True)
    found = worst(attributes, sets, variances)
    assert found == rho if complete else found <= rho
    removed = least_variances(attributes, {0: 1, **sizes}, {0: 0.3, **needs}, rho, replaced=False)
    assert 1 / (2 * removed[0]) + sum(1 / (2 * removed[len(s)]) for s in sets) == rho


@pytest.mark.parametrize("replaced", [True, False])
def test_no_other_weights_are_much_better(replaced):
    """Two orders over 14 attributes: a dense line of weights, scaled to the same rho."""
    sizes, needs, rho = {1: 14, 2: 91}, {1: 2 / 16, 2: 1 / 16}, Fraction(1, 70)
    found = least_variances(14, sizes, needs, rho, replaced)
    noise = sum(needs[o] * float(found[o]) for o in sizes)
    tried = []
    for share in np.linspace(0.01, 0.99, 400):
        weights = {1: share, 2: 1 - share}
        if replaced:
            most = max(h * weights[1] + h * (14 - h) * weights[2] for h in range(15))
        else:
            most = 14 * weights[1] + 91 * weights[2]
        tried.append(sum(needs[o] * most / (2 * float(rho) * weights[o]) for o in sizes))
    assert min(tried) * 0.999 < noise < min(tried) * 1.01


def converted(rho, epsilon, order):
    """ln delta at an order, by Proposition 12 of CKS as it is printed."""
    gap = order - 1
    return gap * (order * rho - epsilon) - log(gap) + order * log1p(-1 / order)


EPSILONS = [Fraction(1, 1000), Fraction(1, 10), Fraction(1), Fraction(10)]
DELTAS = [Fraction(1, 10**30), Fraction(1, 10**9), Fraction(1, 100), Fraction(9, 10)]


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_rho_is_the_largest_that_some_order_proves(epsilon, delta):
    rho = float(rho_of(epsilon, delta))
    orders = 1 + np.exp(np.linspace(-8, 13, 20_001))
    least = min(converted(rho, float(epsilon), order) for order in orders.tolist())
    assert least <= log(delta) + 1e-4
    assert all(converted(1.0001 * rho, float(epsilon), order) > log(delta) for order in orders.tolist())


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_rho_is_rounded_down(epsilon, delta):
    """Proved by the order that was found, to 60 digits; 2^-38 more is not."""
    rho = rho_of(epsilon, delta)
    with localcontext(prec=60):
        gap = Decimal(_best_gap(float(epsilon), log(delta)))

        def number(value):
            return Decimal(value.numerator) / value.denominator

        def exponent(some):
            conversion = gap * (gap / (1 + gap)).ln() - (1 + gap).ln()
            return gap * ((1 + gap) * number(some) - number(epsilon)) + conversion

        assert exponent(rho) <= number(delta).ln() < exponent(rho * (1 + Fraction(1, 2**38)))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_a_normal_number_of_that_rho_loses_no_more(epsilon, delta):
    """By the profile of the Gaussian mechanism (Balle and Wang 2018); at four times the rho it does."""

    def profile(rho):
        mu, e = sqrt(2 * rho), float(epsilon)
        first, second = stats.norm.logcdf(mu / 2 - e / mu), e + stats.norm.logcdf(-mu / 2 - e / mu)
        return exp(first) * -expm1(second - first)

    rho = float(rho_of(epsilon, delta))
    assert profile(rho) <= delta
    if delta < Fraction(1, 2):
        assert profile(4 * rho) > delta


@pytest.mark.parametrize("epsilon", [Fraction(1, 2**40), Fraction(2**20)])
@pytest.mark.parametrize("delta", [Fraction(1, 10**300), 1 - Fraction(1, 10**300)])
def test_rho_at_the_ends_of_its_range(epsilon, delta):
    rho = rho_of(epsilon, delta)
    assert rho > 0
    assert rho.numerator.bit_length() <= 41 + 20


@pytest.mark.parametrize("replaced", [True, False])
def test_released_counts_are_private_by_their_law(replaced):
    """The sum of (P - e^epsilon P')_+ over all outcomes, for all moves of two attributes' three parities.

    At a quarter of the variances it passes delta.
    """
    epsilon, delta = Fraction(1), Fraction(1, 20)
    sizes = {1: 2, 2: 1} if replaced else {0: 1, 1: 2, 2: 1}
    needs = {0: 0.1, 1: 0.2, 2: 0.1}
    variances = least_variances(2, sizes, needs, rho_of(epsilon, delta), replaced)

    def lost(scale):
        worst = 0.0
        moves = [{1: h, 2: moving(2, 2, h)} for h in (1, 2)] if replaced else [sizes]
        for moved in moves:
            # the law of the loss, one count after another
            probabilities, losses = np.ones(1), np.zeros(1)
            for order, count in moved.items():
                variance = float(variances[order]) * scale
                x, p = np.arange(-30, 31), law_of(DiscreteGaussian(Fraction(variance)), 30)
                for _ in range(count):
                    probabilities = np.outer(probabilities, p).ravel()
                    losses = np.add.outer(losses, ((x + 1) ** 2 - x**2) / (2 * variance)).ravel()
                    # equal losses are one
                    losses, inverse = np.unique(np.round(losses, 9), return_inverse=True)
                    probabilities = np.bincount(inverse, probabilities)
            over = losses > float(epsilon)
            total = (probabilities[over] * -np.expm1(float(epsilon) - losses[over])).sum()
            worst = max(worst, float(total))
        return worst

    assert lost(1.0) <= delta < lost(0.25)
