"""The losses that a replay adds up are those of the definitions."""

from fractions import Fraction
from itertools import product
from math import exp, log

import numpy as np
import pytest
from losses import Change, Cone, Exponential, Gaussian, Geometric, Loss, Wishart, holds

from smalldb.accounting.concentrated import rho_of

RATE = Fraction(3, 7)


def log_law(weights):
    """The logarithms of the probabilities of outcomes, by these."""
    total = sum(weights.values())
    return {outcome: log(weight / total) for outcome, weight in weights.items()}


def noisy(exact, weight, reach=40):
    """The law of two counts with noise, cut off where next to nothing is left."""
    grid = product(range(-reach, reach + 1), repeat=2)
    return log_law({z: weight([a - b for a, b in zip(z, exact, strict=True)]) for z in grid})


@pytest.mark.slow
@pytest.mark.parametrize("other", [(0, 0), (1, 0), (-1, 1), (2, 1)])
def test_noise_loses_the_largest_log_ratio(other):
    law = Geometric(RATE)
    here, there = (noisy(x, lambda v: exp(-RATE * (abs(v[0]) + abs(v[1])))) for x in ((0, 0), other))
    ratios = {z: here[z] - there[z] for z in here}
    assert float(law.worst((0, 0), other, None)) == pytest.approx(max(map(abs, ratios.values())), abs=1e-6)


def test_gaussian_noise_loses_a_rho():
    """The Renyi divergence of order 2 is 2 rho, for discrete Gaussian noise as for continuous."""
    law, other = Gaussian(Fraction(5)), (2, -1)
    here, there = (noisy(x, lambda v: exp(-(v[0] ** 2 + v[1] ** 2) / 10)) for x in ((0, 0), other))
    divergence = log(sum(exp(2 * here[z] - there[z]) for z in here))
    assert 2 * float(law.worst((0, 0), other, None)) == pytest.approx(divergence)


@pytest.mark.parametrize("seed", range(5))
def test_a_selection_loses_the_largest_log_ratio(seed):
    rng = np.random.default_rng(seed)
    one = rng.integers(-30, 30, 8).tolist()
    other = [score + int(move) for score, move in zip(one, rng.integers(-2, 3, 8), strict=True)]
    here, there = (log_law({i: exp(RATE * s) for i, s in enumerate(scores)}) for scores in (one, other))
    ratios = [here[i] - there[i] for i in range(8)]
    law = Exponential(RATE, False)
    assert float(law.worst(one, other, None)) == pytest.approx(max(map(abs, ratios)))
    assert (
        law.worst(one, other, None)
        <= law.proved(one, other, None)
        == 2 * RATE * max(abs(a - b) for a, b in zip(one, other, strict=True))
    )
    ranged = Exponential(RATE, True)
    assert float(ranged.worst(one, other, None)) == pytest.approx((max(ratios) - min(ratios)) ** 2 / 8)
    assert ranged.worst(one, other, None) <= ranged.proved(one, other, None)


def test_a_selection_of_scores_far_apart_is_exact():
    law = Exponential(Fraction(10**6), False)
    assert law.worst([0, 5 * 10**9], [1, 5 * 10**9 - 1], None) == 2 * 10**6


@pytest.mark.parametrize(
    ("law", "one"),
    [
        (Wishart(RATE, ((0, 0), (0, 1), (0, 2), (1, 2))), (9, 4, -1, 3)),
        (Cone(RATE, (2, 3), ((0, 1),)), (3, 4, 1, 2, 4, 0, 1, 2, 1, 1, 2)),
    ],
)
def test_a_row_that_is_added_loses_the_rate_and_one_that_is_replaced_twice(law, one):
    added, replaced = Change((1,), ((1, 0),)), Change((-1, 1), ((0, 1), (1, 0)))
    for change, lost in ((added, RATE), (replaced, 2 * RATE)):
        rows = [
            sign * np.array(law.row(codes, None))
            for sign, codes in zip(change.signs, change.codes, strict=True)
        ]
        other = np.array(one) + sum(rows)
        assert law.worst(one, other.tolist(), change) == lost
        other[1] += 1
        with pytest.raises(Loss, match="do not move as one row does"):
            law.worst(one, other.tolist(), change)


def test_rows_with_odd_signs_are_half_a_sum_of_signs():
    law, change = Wishart(RATE, ((0, 1), (1, 2))), Change((-1, 1), ((0, 1), (1, 1)))
    assert law.worst((5, 5), (6, 4), change) == RATE  # odd: 0 and 1 become 1 and 0
    assert law.worst((5, 5), (5, 5), Change((-1, 1), ((0, 1), (0, 1)))) == 0


@pytest.mark.parametrize(
    ("epsilon", "delta"), [("1", "1e-9"), ("1/10", "1e-3"), ("20", "1e-6"), ("1/100", "1/10")]
)
def test_a_rho_holds_up_to_the_one_that_is_proved(epsilon, delta):
    epsilon, delta = Fraction(epsilon), Fraction(delta)
    rho = rho_of(epsilon, delta)
    assert holds(Fraction(0), rho, epsilon, delta)
    assert not holds(Fraction(0), rho * Fraction(102, 100), epsilon, delta)
    assert holds(epsilon / 2, rho_of(epsilon / 2, delta), epsilon, delta)
    assert not holds(epsilon / 2, rho, epsilon, delta)
    assert not holds(epsilon, rho, epsilon, delta)
    assert holds(epsilon, Fraction(0), epsilon, None) and not holds(epsilon, rho, epsilon, None)
