"""Permute-and-flip from counts of levels: enclosures hold, and draws follow the exact law."""

import math
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

import smalldb
from queries import Conjunctions, Domain, Rows
from smalldb.auditing import by_score
from smalldb.exact.bits import bit_source
from smalldb.exact.levels import _loudness, draw_loudest

AB = Domain(["a", "b"])


class Scripted:
    """Bits that are given in advance, then zeros."""

    def __init__(self, *numbers):
        self.numbers, self.asked = list(numbers), 0

    def bits(self, count):
        self.asked += 1
        return self.numbers.pop(0) if self.numbers else 0


@given(st.integers(0, 2**64 - 1), st.integers(1, 10**30), st.fractions(0, 50, max_denominator=100))
@settings(max_examples=50, deadline=None)
def test_enclosures_hold_the_noise(drawn, count, depth):
    low, high = _loudness(drawn, 64, count, depth)
    with localcontext(prec=250):
        for numerator in (drawn, drawn + Fraction(1, 2), drawn + 1):
            u = Decimal(Fraction(numerator).numerator) / Fraction(numerator).denominator / (1 << 64)
            if 0 < u < 1:
                noise = -(1 - (u.ln() / count).exp()).ln() - Decimal(depth.numerator) / depth.denominator
                assert low <= noise <= high
    assert low < high


def test_bits_are_revealed_until_they_decide():
    half = 1 << 63
    assert draw_loudest({0: 1, 1: 1}, Fraction(0), Scripted(half, half + 1)) == 1
    source = Scripted(half, half, 7, 4)
    assert draw_loudest({0: 1, 1: 1}, Fraction(0), source) == 0
    assert source.asked == 4
    most = (1 << 64) - 1  # of one: from 44 to infinity, so a noise of about 69 has not won yet
    assert draw_loudest({0: 1, 1: 10**30}, Fraction(0), Scripted(most, half, most, 0)) == 0
    assert draw_loudest({3: 10**40}, Fraction(1), Scripted()) == 3


@pytest.mark.slow
def test_draws_follow_the_exact_law():
    """By the integral of the definition; a rate off by a third is seen."""
    levels, rate = {0: 1, 2: 5, 5: 300}, 1.0

    def chance(level):
        def uniform_head(z):
            others = math.prod((1 - math.exp(-rate * s) * z) ** n for s, n in levels.items())
            return others / (1 - math.exp(-rate * level) * z)

        return levels[level] * math.exp(-rate * level) * quad(uniform_head, 0, 1)[0]

    source, number = bit_source(7), 400
    expected = np.array([number * chance(level) for level in levels])
    assert expected.sum() == pytest.approx(number)
    found = Counter(draw_loudest(levels, Fraction(1), source) for _ in range(number))
    wrong = Counter(draw_loudest(levels, Fraction(2, 3), source) for _ in range(number))
    for drawn, low, high in ((found, 1e-3, 1), (wrong, 0, 1e-4)):
        seen = np.array([drawn[level] for level in levels])
        statistic = ((seen - expected) ** 2 / expected).sum()
        assert low <= stats.chi2.sf(statistic, len(expected) - 1) <= high


def test_a_census_is_drawn_from_by_either_law():
    table = Rows.from_counts(AB, AB.decode(AB.table()), (3, 1, 0, 2))
    census = smalldb.census(table, Conjunctions(2), rows=3)
    for law in ("exponential", "permute-and-flip"):
        drawn = [tuple(census.draw(1, law=law, rng=seed).tolist()) for seed in range(100)]
        assert all(sum(each) == 3 for each in drawn)
        exact = by_score(AB, "conjunctions:2", rows=3, epsilon=1, law=law)((3, 1, 0, 2))
        most = max(exact, key=lambda y: exact[y][0])
        share = drawn.count(most) / 100
        assert abs(share - float(exact[most][0])) < 4 * math.sqrt(share * (1 - share) / 100)


def test_what_is_refused():
    census = smalldb.census(pd.DataFrame({"a": [0, 1, 1]}), "conjunctions:1", rows=2)
    with pytest.raises(ValueError, match="law must be one of"):
        census.draw(1, law="gumbel")
    calibrated = smalldb.census(pd.DataFrame({"a": [0, 1, 1]}), "conjunctions:1", rows=2, calibrated=True)
    with pytest.raises(ValueError, match="calibrated is about"):
        calibrated.draw(1, law="permute-and-flip")
    for levels, rate in (({}, 1), ({0: 0}, 1), ({0: 1}, -1)):
        with pytest.raises(ValueError, match="levels must"):
            draw_loudest(levels, Fraction(rate), bit_source(1))
