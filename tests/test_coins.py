"""Exact coins: their decisions are those of the real numbers, and their frequencies those of the formulas."""

import math
from fractions import Fraction
from itertools import pairwise

import naive
import pytest
from hypothesis import given
from hypothesis import strategies as st
from margins import OutOfBits, ScriptedBits, outcomes

from smalldb.exact.bits import SeededBits
from smalldb.exact.coins import Known, Shifted, Uniform, bernoulli_exp, halved
from smalldb.exact.integers import coins, decay


@given(
    st.fractions(0, 5, max_denominator=60),
    st.integers(0, 2**64 - 1),
    st.fractions(Fraction(1, 60), 60, max_denominator=60),
)
def test_a_coin_compares_a_uniform_number_with_its_probability(r, word, factor):
    if factor > 1:
        r += factor - 1  # at least ln factor
    probability = factor * naive.exp_minus(r)
    source = ScriptedBits(f"{word:064b}")
    low, high = Fraction(word, 1 << 64), Fraction(word + 1, 1 << 64)
    try:
        shown = bernoulli_exp(r, source, factor)
    except OutOfBits:  # one word does not tell
        assert low - Fraction(1, 1 << 62) < probability < high + Fraction(1, 1 << 62)
    else:
        assert shown == (high <= probability + Fraction(1, 10**40))


def test_more_bits_are_drawn_where_one_word_does_not_tell():
    r = Fraction(1)
    edge = int(naive.exp_minus(r) * 2**64)
    for more, shown in (("0" * 64, True), ("1" * 64, False)):
        assert bernoulli_exp(r, ScriptedBits(f"{edge:064b}" + more)) is shown


def test_enclosures_shrink_around_one_number():
    lazy = Shifted(Fraction(5), Fraction(-3), Uniform(SeededBits(1)))
    ends = [lazy.enclosure(precision) for precision in (1, 8, 64, 64, 200, 8)]
    for (low, high), (inner_low, inner_high) in pairwise(ends):
        assert low <= inner_low < inner_high <= high
    assert ends[4][1] - ends[4][0] == Fraction(3, 1 << 200)
    assert Known(Fraction(1, 3)).enclosure(5) == (Fraction(1, 3), Fraction(1, 3))


@pytest.mark.parametrize("count, times", [(0, 3), (5, 0), (7, 1), (4, 3)])
def test_halving_is_binomial(count, times):
    p = Fraction(1, 1 << times)
    law = {k: math.comb(count, k) * p**k * (1 - p) ** (count - k) for k in range(count + 1)}
    found = outcomes(lambda source: halved(count, times, source), count * times)
    assert found == {k: mass for k, mass in law.items() if mass}


def test_a_coin_above_1_is_an_error():
    with pytest.raises(ArithmeticError, match="above 1"):
        bernoulli_exp(Fraction(1), SeededBits(1), Fraction(3))
    with pytest.raises(ArithmeticError, match="above 1"):
        bernoulli_exp(Fraction(0), SeededBits(1), 1 + Fraction(1, 1 << 60))
    assert bernoulli_exp(Fraction(0), SeededBits(1))
    with pytest.raises(ArithmeticError, match="below 0"):
        bernoulli_exp(Shifted(Fraction(0), Fraction(-1), Known(Fraction(1))), SeededBits(1))
    with pytest.raises(ArithmeticError, match="1 or above"):
        coins(decay(Fraction(0)), 3, SeededBits(1))
