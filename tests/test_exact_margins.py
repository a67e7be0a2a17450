"""Margins of exact draws and of enclosures: with words of four bits, each that is lost shows."""

from decimal import Context, Decimal
from fractions import Fraction
from itertools import product
from math import exp, factorial, pi, sqrt

import naive
import numpy as np
import pytest
from margins import ScriptedBits, obeys, outcomes
from scipy import stats

from smalldb.exact import coins, enclosures, integers, levels, normals
from smalldb.exact.coins import Shifted, Uniform, bernoulli_exp
from smalldb.exact.enclosures import Real, ceiling, is_positive, root, round_up, round_up_text
from smalldb.exact.levels import LogConcave, draw_level
from smalldb.exact.numbers import rounded_down, rounded_up

FRACTIONS = sorted({Fraction(p, q) for q in range(1, 24) for p in range(3 * q)})


@pytest.mark.slow
@pytest.mark.parametrize("r, factor", [("0", 1), ("1/3", 1), ("7/10", "9/5"), ("2", "1/3"), ("3", 17)])
def test_a_coin_by_its_decision_tree(monkeypatch, r, factor):
    monkeypatch.setattr(coins, "_BITS", 4)
    r, factor = Fraction(r), Fraction(factor)
    heads = factor * naive.exp_minus(r)
    for number in (r, Shifted(r, Fraction(0), Uniform(ScriptedBits("0" * 64)))):
        found = outcomes(lambda source, number=number: bernoulli_exp(number, source, factor), 16)
        assert obeys(found, {True: heads, False: 1 - heads}, Fraction(1, 1 << 7))


@pytest.mark.parametrize("start, factor", [(0, 2), (2, -2)])
def test_a_coin_of_a_lazy_number_by_its_decision_tree(monkeypatch, start, factor):
    """The exponent is 2 u or 2 - 2 u, u uniform and unknown at first; with it, the eighth that u lies in."""
    monkeypatch.setattr(coins, "_BITS", 4)

    def thrown(source):
        u = Uniform(source)
        head = bernoulli_exp(Shifted(Fraction(start), Fraction(factor), u), source)
        return head, u.value >> (u.drawn - 3)

    lost = [naive.exp_minus(start + Fraction(factor * i, 8)) / factor for i in range(9)]
    law = {(True, i): lost[i] - lost[i + 1] for i in range(8)}
    law |= {(False, i): Fraction(1, 8) - law[True, i] for i in range(8)}
    assert obeys(outcomes(thrown, 14), law, Fraction(1, 2))


@pytest.mark.slow
@pytest.mark.parametrize("bits", [1, 2, 3, 4, 7])
def test_short_exponentials_hold_the_true_ones(bits):
    for r in FRACTIONS:
        true = naive.exp_minus(r)
        lo, hi, shift = levels._exp(r, bits)
        assert lo <= true / Fraction(2) ** shift <= hi
        lo, hi = levels._scaled((lo, hi, shift), -bits)
        assert lo <= true * 2**bits <= hi
        lo, hi, shift = levels._power(levels._exp(r, bits), 5, bits)
        assert lo <= true**5 / Fraction(2) ** shift <= hi


@pytest.mark.parametrize(
    ("counts", "rate"),
    [({3: 2, 6: 8, 9: 6, 12: 4}, "1/12"), ({0: 1, 1: 1, 2: 1}, "1/3"), ({0: 5, 7: 11}, "1/9")],
)
def test_levels_by_their_decision_tree_in_words_of_four_bits(monkeypatch, counts, rate):
    monkeypatch.setattr(levels, "_FIRST_PRECISION", 4)
    law = naive.fraction_law(counts, Fraction(rate))
    found = outcomes(lambda source: draw_level(counts, Fraction(rate), source), 14)
    assert obeys(found, law, Fraction(1, 1 << 10))


def test_a_family_by_its_decision_tree_in_words_of_four_bits(monkeypatch):
    monkeypatch.setattr(levels, "_FIRST_PRECISION", 4)
    law = naive.fraction_law({r: (2 * r + 1) ** 2 for r in range(300)}, Fraction(1, 2))
    family = LogConcave(lambda r: 2 * r + 1, power=2)
    found = outcomes(lambda source: draw_level(family, Fraction(1, 2), source), 10)
    assert obeys(found, law, Fraction(1, 8))


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(4), Fraction(50)])
def test_levels_begin_and_end_for_certain_within_their_part_of_the_unit_interval(rate):
    def below(level):
        return 1 - naive.exp_minus(rate) ** level

    for precision in (1, 2, 4, 30):
        for level, start, end in zip(
            *levels._cumulative(LogConcave(lambda s: 1), rate, precision), strict=True
        ):
            assert below(level) * 2**precision <= start and end <= below(level + 1) * 2**precision


@pytest.mark.parametrize("power", [1, 40])
def test_levels_that_a_family_leaves_out_weigh_no_more_than_its_tails(power):
    rate, family = Fraction(1, 5), LogConcave(lambda r: 2 * r + 1, power=power)
    names, weights, left, right = levels._family_weights(family, rate, 4)
    true = [(2 * r + 1) ** power * naive.exp_minus(rate * r) for r in range(1500)]
    unit = max(true) / max(low for low, _ in weights)
    assert sum(true[: names[0]]) <= left * unit and sum(true[names[-1] + 1 :]) <= right * unit


@pytest.mark.parametrize("bits", [4, 8, 30])
def test_a_tail_is_no_lighter_than_all_weights_past_it(bits):
    """Weights here, here q, here q^2, ...: those past the first add up to here q / (1 - q)."""
    for here, p, q in product((1, 5, 12), range(1, 9), (9, 10)):
        beyond = Fraction(here * p, q)
        enclosed = (
            beyond.numerator * 64 // beyond.denominator,
            -(-beyond.numerator * 64 // beyond.denominator),
            -6,
        )
        found = levels._tail((here, here, 0), enclosed, bits)
        true = beyond / (1 - Fraction(p, q))
        assert found is None or found[1] * Fraction(2) ** found[2] >= true


def test_digits_are_told_when_they_are_known():
    number = Fraction(123_456_789, 987_654_321)

    def slow(precision):
        unit = 1 << precision
        known = int(number * unit)
        return (known, known + 1) if precision > 150 else (0, unit)

    digits = [int(number * 256**position) % 256 for position in range(1, 6)]
    assert [integers._expansion(slow, position) for position in range(1, 6)] == digits


def test_enclosed_digits_of_geometric_numbers():
    for r in FRACTIONS:
        decay = naive.exp_minus(r)
        for precision in (1, 3, 4, 9):
            low, high = integers.logistic(r)(precision)
            assert low <= (decay / (1 + decay)) * 2**precision <= high


@pytest.mark.slow
def test_comparisons_of_normal_numbers_in_words_of_four_bits(monkeypatch):
    monkeypatch.setattr(normals, "_BITS", 4)
    words, tails = [f"{word:04b}" for word in range(16)], ["0" * 12, "0" * 11 + "1", "1" * 12]
    for (one, a), (other, b) in product(product(words, tails), repeat=2):
        r, x = Fraction(int(one + a, 2), 1 << 16), Fraction(int(other + b, 2), 1 << 16)
        near = Fraction(1, 1 << 12)  # beyond, the bits that are left decide nothing

        def uniforms(*scripts):
            return [Uniform(ScriptedBits(script + "01" * 40), 4) for script in scripts]

        if abs(r - x) > near:
            assert normals._less(*uniforms(one + a, other + b)) == (r < x)
        for k in (0, 1, 3):
            line = (2 * k + x) / (2 * k + 2)
            if abs(r - line) > near:
                assert normals._below_line(*uniforms(one + a, other + b), k) == (r < line)


@pytest.mark.parametrize("k", [0, 1, 3])
def test_numbers_lie_below_the_line_as_often_as_it_is_high(monkeypatch, k):
    monkeypatch.setattr(normals, "_BITS", 1)
    for script in (f"{x:04b}" + "01" * 10 for x in range(16)):
        line = (2 * k + Fraction(int(script, 2), 1 << 24)) / (2 * k + 2)

        def below(source, script=script):
            return normals._below_line(Uniform(source), Uniform(ScriptedBits(script)), k)

        assert obeys(outcomes(below, 10), {True: line, False: 1 - line}, Fraction(1, 1 << 8))


@pytest.mark.slow
def test_whole_parts_of_normal_numbers_by_their_decision_tree(monkeypatch):
    """k has the weight exp(-k^2 / 2), less what is refused: the law of one try, -1 for no number."""
    monkeypatch.setattr(integers, "DIGIT", 1)
    found = outcomes(lambda source: (normals._wholes(1, source) or [-1])[0], 12)
    half = naive.exp_minus(Fraction(1, 2))
    law = {k: (1 - half) * naive.exp_minus(Fraction(k * k, 2)) for k in range(30)}
    law[-1] = 1 - sum(law.values())
    assert obeys(found, law, Fraction(1, 10))
    assert all(found[k] > 0 for k in (-1, 0, 1, 2))


@pytest.mark.parametrize("k, undecided", [(0, "1/10"), (1, "1/3")])
def test_one_try_for_a_normal_number_by_its_decision_tree(monkeypatch, k, undecided):
    """Of size k + x, x has the density exp(-x (2 k + x) / 2) of being kept; both signs are alike."""
    monkeypatch.setattr(normals, "_BITS", 1)

    def kept(source):
        wholes = iter([[k]])
        monkeypatch.setattr(normals, "_wholes", lambda count, source: next(wholes))
        try:
            return normals.normals(1, source)[0].floor(1)
        except StopIteration:
            return None

    scale = sqrt(2 * pi) * exp(k**2 / 2) / 2
    halves = {v: [v / 2, (v + 1) / 2] for v in (-2 * k - 2, -2 * k - 1, 2 * k, 2 * k + 1)}
    law = {v: scale * np.diff(stats.norm.cdf(ends))[0] for v, ends in halves.items()}
    law[None] = 1 - sum(law.values())
    assert obeys(outcomes(kept, 14), law, Fraction(undecided))


@pytest.mark.parametrize("digits", [1, 2, 3, 7])
def test_reals_of_few_digits_hold_the_true_ones(digits):
    """Decimals are rounded to nearest: but for the step outwards, every other value would lie outside."""
    context = Context(prec=60)
    for value in range(2, 200):
        ten = Real.of(value, digits)
        for found, true in (
            (ten.ln(), context.ln(Decimal(value))),
            (ten.sqrt(), context.sqrt(Decimal(value))),
            ((ten / 50).exp(), context.exp(Decimal(value) / 50)),
            (ten / 7, context.divide(Decimal(value), Decimal(7))),
            (ten * Fraction(1, 3) + Fraction(1, 7), context.divide(Decimal(7 * value + 3), Decimal(21))),
        ):
            assert found.low <= true <= found.high
        third = ten.cbrt()
        assert Fraction(third.low) ** 3 <= value <= Fraction(third.high) ** 3
        zero = root(lambda x, value=value: x * x - value, Real.of(0, digits), Real.of(value, digits))
        assert zero.low**2 <= value <= zero.high**2


def test_what_is_read_off_an_enclosure_waits_for_enough_digits():
    def late(value):
        return lambda ln: (
            Real.of(value, ln.digits) if ln.digits > 300 else Real(Decimal(-5), Decimal(9), ln.digits)
        )

    assert [ceiling(late(Fraction(5, 2))), ceiling(late(-3)), ceiling(late(9))] == [3, 1, 9]
    assert is_positive(late(3))
    assert not is_positive(late(-3))
    assert is_positive(
        lambda ln: late(3)(ln) if ln.digits > 300 else Real(Decimal(-5), Decimal(0), ln.digits)
    )


def test_a_zero_lies_wherever_a_function_may_be_zero():
    eighth, ten = Decimal(1) / 8, Real.of(10, 20)
    zero = root(lambda x: x - Real(5 - eighth, 5 + eighth, 20), 0 * ten, ten)
    assert zero.low <= 5 - eighth and 5 + eighth <= zero.high


def test_shown_floats_are_never_below():
    for value in (Fraction(p, q) for q in range(2, 60) for p in (1, 2, 10**9 + 7)):
        x = Real.of(value, 40)
        assert Fraction(round_up(x)) >= value
        assert Fraction(repr(round_up_text(x))) >= value
        for digits in (1, 3):
            assert Fraction(rounded_up(round_up(x), digits)) >= value >= Fraction(rounded_down(value, digits))


def test_logarithms_of_factorials_hold_the_true_ones():
    context = Context(prec=80)
    for x in range(9, 200):
        found, true = enclosures._ln_factorial(x, 4), context.ln(Decimal(factorial(x)))
        assert found.low <= true <= found.high
