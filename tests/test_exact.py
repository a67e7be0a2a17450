import math
from collections import Counter
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import accumulate, pairwise, product

import naive
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from margins import OutOfBits, ScriptedBits, obeys, outcomes

import smalldb
from queries import Conjunctions, Domain, Rows
from smalldb.auditing import by_score
from smalldb.exact import levels as levels_module
from smalldb.exact.bits import SeededBits, bit_source
from smalldb.exact.coins import Known, Shifted, Uniform, bernoulli_exp, halved
from smalldb.exact.integers import coins, decay, logistic, uniform_below, uniform_integers
from smalldb.exact.levels import LogConcave, _loudness, draw_level, draw_loudest, exp_enclosure
from smalldb.exact.numbers import as_fraction, as_text

CENSUS, RATE = {3: 2, 6: 8, 9: 6, 12: 4}, Fraction(1, 12)


@pytest.mark.parametrize(
    ("value", "expected", "text"),
    [
        (1, "1", "1"),
        (0.1, "1/10", "0.1"),
        (-0.0, "0", "0"),
        (1e-7, "1/10000000", "0.0000001"),
        (1e300, str(10**300), str(10**300)),
        (Fraction(2, 6), "1/3", "1/3"),
        (Decimal("0.05"), "1/20", "0.05"),
        (Decimal("1E+3"), "1000", "1000"),
        ("1/2", "1/2", "0.5"),
        (" 0.1\n", "1/10", "0.1"),
        ("1e-6", "1/1000000", "0.000001"),
        ("-2/6", "-1/3", "-1/3"),
        ("-.25", "-1/4", "-0.25"),
        ("+5.", "5", "5"),
        ("12.50E1", "125", "125"),
        (np.int64(-7), "-7", "-7"),
        (np.uint8(200), "200", "200"),
        *((kind("0.1"), "1/10", "0.1") for kind in (np.float64, np.float32, np.float16, np.longdouble)),
        *((Fraction(1, x), f"1/{x}", f"1/{x}") for x in (3 * 2**70, 2**2000)),
    ],
)
def test_as_fraction_and_as_text(value, expected, text):
    fraction = as_fraction(value, "epsilon")
    assert type(fraction) is Fraction
    assert fraction == Fraction(expected)
    assert as_text(fraction) == text
    assert as_fraction(text, "epsilon") == fraction


@pytest.mark.parametrize(
    "value",
    [
        *(math.nan, math.inf, -math.inf, np.float32("nan")),
        *map(Decimal, ("NaN", "sNaN", "-Infinity")),
        *("", " ", "1 /2", "1e" + "9" * 6000, "9" * 6000, "1/" + "9" * 6000, "\u0663"),
        *"x nan inf 1_0 1/ /2 1/2/3 1/0 1/2.5 0x10 . e5 1e --1 1,5 1e999999999 1e-999999999".split(),
        *(Decimal("1e999999"), Fraction(10**5000), Fraction(1, 2**10001)),
    ],
)
def test_not_a_number(value):
    with pytest.raises(ValueError, match=r"^beta must be a finite number or a text such as") as caught:
        as_fraction(value, "beta")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [True, np.True_, None, 1j, b"1", [1], np.array(1.0), np.array([1])])
def test_not_a_number_type(value):
    with pytest.raises(TypeError, match=r"^beta must be a finite number .* not [A-Za-z]+$"):
        as_fraction(value, "beta")


@given(st.one_of(st.fractions(), st.decimals(allow_nan=False, allow_infinity=False, places=40).map(Fraction)))
def test_text_comes_back(fraction):
    assert as_fraction(as_text(fraction), "x") == as_fraction(fraction, "x") == fraction


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_its_shortest_text(value):
    assert as_fraction(value, "x") == as_fraction(repr(value), "x") == Fraction(repr(value))
    assert float(as_text(as_fraction(value, "x"))) == value


@given(st.fractions(0, 3000, max_denominator=10**9), st.integers(0, 300))
def test_enclosure_holds_exp_and_is_narrow(r, precision):
    context = Context(prec=200)
    true = Fraction(context.exp(context.divide(-r.numerator, r.denominator))) * 2**precision
    slack = true / 10**190
    lo, hi = exp_enclosure(r, precision)
    assert 0 <= lo <= true + slack
    assert true - slack <= hi <= 2**precision
    assert hi - lo <= 2


def test_enclosure_at_the_ends():
    assert exp_enclosure(Fraction(0), 20) == (1 << 20, 1 << 20)
    assert exp_enclosure(Fraction(10**300), 20) == (0, 1)
    assert exp_enclosure(Fraction(1, 10**300), 20) == ((1 << 20) - 1, 1 << 20)
    with pytest.raises(ValueError, match="r must"):
        exp_enclosure(Fraction(-1), 20)


def with_bits(draw, depth):
    """The probability of each outcome and of how many bits it is read from."""
    return outcomes(lambda source: (draw(source), len(source.script)), depth)


def test_bits_decide_a_level_as_soon_as_they_can(vectors):
    value = vectors["lazy_inverse_cdf"]["value"]
    for uniform, level in zip(value["U_hex"], value["level"], strict=True):
        assert draw_level(CENSUS, RATE, ScriptedBits(f"{int(uniform, 16):064b}")) == level
    found = with_bits(lambda source: draw_level(CENSUS, RATE, source), 26)
    assert float(sum(p * bits for (_, bits), p in found.items())) == pytest.approx(3.50, abs=0.005)
    found = with_bits(lambda source: draw_level({-5: 1, 0: 1, 7: 2}, Fraction(0), source), 2)
    assert found == {(-5, 2): Fraction(1, 4), (0, 2): Fraction(1, 4), (7, 1): Fraction(1, 2)}
    assert draw_level({7: 10**100}, Fraction(1), ScriptedBits("")) == 7


def lazy_level(weights, source):
    """The same draw with every cumulative weight known beyond doubt."""
    levels = sorted(weights)
    below = [0, *accumulate(weights[level] for level in levels)]
    u, scale = 0, 1
    while True:
        for level, low, high in zip(levels, below, below[1:], strict=False):
            if low * scale <= u * below[-1] and (u + 1) * below[-1] <= high * scale:
                return level
        u, scale = 2 * u + source.bits(1), 2 * scale


@given(
    st.dictionaries(st.integers(-50, 50), st.integers(1, 10**30), min_size=1, max_size=8),
    st.fractions(0, 2, max_denominator=1000),
    st.integers(),
)
def test_draw_equals_its_slow_twin(levels, rate, seed):
    assume(rate > 0 or len(levels) == 1)
    quick, slow = SeededBits(seed), SeededBits(seed)
    assert draw_level(levels, rate, quick) == lazy_level(naive.fraction_law(levels, rate), slow)
    assert quick.bits(64) == slow.bits(64)


@pytest.mark.slow
@pytest.mark.parametrize("first", [-3, 0, 290, 400])
@pytest.mark.parametrize("prefix", ["", "0" * 100, "1" * 100], ids=["middle", "left", "right"])
def test_a_family_equals_its_slow_twin(first, prefix):
    context = Context(prec=160)
    weights = {}
    for r in range(first, 2000):
        decay = context.exp(context.divide(-r, 10))
        weights[r] = context.multiply(context.power(2 * r + 7, 30), decay)
    unit = context.divide(max(weights.values()), 2**400)
    weights = {r: int(context.divide(weight, unit)) for r, weight in weights.items()}
    family = LogConcave(lambda r: 2 * r + 7, first, power=30)
    for seed in range(2):
        script = f"{prefix}{SeededBits(seed).bits(200):0200b}"
        quick, slow = ScriptedBits(script), ScriptedBits(script)
        assert draw_level(family, Fraction(1, 10), quick) == lazy_level(weights, slow)
        assert quick.bits(64) == slow.bits(64)


@pytest.mark.slow
@pytest.mark.parametrize("ones", [0, 1, 10, 60, 64, 70, 127, 200])
@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 3), Fraction(50)])
def test_geometric_levels_far_into_the_tail(ones, rate):
    context = Context(prec=200)
    for seed in range(5):
        rest = SeededBits(seed).bits(300)
        beyond = context.divide(2**300 - rest, 2 ** (300 + ones))  # P(level >= s) = exp(-rate s)
        expected = int(context.divide(-context.ln(beyond) * rate.denominator, rate.numerator))
        script = ScriptedBits("1" * ones + f"{rest:0300b}")
        assert draw_level(LogConcave(lambda s: 1), rate, script) == expected


def test_support_is_complete_where_floats_underflow():
    n, epsilon, error = 2000, Fraction(1), Fraction(3, 4)
    rate, level = epsilon / 2, int(n * error)
    assert math.exp(-rate * level) == 0.0
    # e^-750 lies between 2^-1083 and 2^-1082, so that 1083 ones and no fewer lead there
    assert draw_level({0: 1, level: 1}, rate, ScriptedBits("1" * 1083)) == level
    with pytest.raises(OutOfBits):
        draw_level({0: 1, level: 1}, rate, ScriptedBits("1" * 1082))
    assert draw_level({0: 1, level: 1}, rate, ScriptedBits("1" * 1081 + "00")) == 0
    assert draw_level({0: 1, level: 2**1083}, rate, ScriptedBits("1")) == level


def test_a_light_first_level_is_not_forgotten():
    # P(0) = 1 / (1 + 2^300 / (e - 1)) lies between 2^-300 and 2^-299
    family = LogConcave(lambda s: 2**300 if s else 1)
    assert draw_level(family, Fraction(1), ScriptedBits("0" * 300)) == 0
    with pytest.raises(OutOfBits):
        draw_level(family, Fraction(1), ScriptedBits("0" * 299))


def test_far_levels_cost_nothing_until_the_bits_point_at_them():
    levels = {10**9 * i: 1 for i in range(1000)}
    assert draw_level(levels, Fraction(1), ScriptedBits("0")) == 0
    assert draw_level({0: 1, 10**6: 10**9}, Fraction(10**1000), ScriptedBits("0")) == 0


def test_impossible_levels_are_refused():
    family = LogConcave(lambda s: 1)
    for levels, rate in (({}, 1), ({0: 0}, 1), ({0: 1, 1: -1}, 1), ({0: 1}, -1), (family, 0), (family, -1)):
        with pytest.raises(ValueError, match=r"^(rate|levels) must"):
            draw_level(levels, Fraction(rate), SeededBits(1))
    with pytest.raises(ValueError, match="power and period must"):
        LogConcave(lambda s: s + 1, power=0)


@pytest.mark.parametrize(("width", "count"), [(1, 3), (8, 5), (13, 40_001), (62, 7)])
def test_many_integers_are_the_bits_in_order(width, count):
    found = uniform_integers(1 << width, count, SeededBits(3))
    text = f"{SeededBits(3).bits(width * count):0{width * count}b}"
    assert found.tolist() == [int(text[i : i + width], 2) for i in range(0, len(text), width)]


@pytest.mark.parametrize("width, bound", [(2, 3), (3, 5), (3, 8)])
def test_integers_that_are_too_large_are_drawn_again(width, bound):
    for seed in range(30):
        slow = SeededBits(seed)
        fields = [slow.bits(width) for _ in range(30)]
        assert uniform_integers(bound, 1, SeededBits(seed)) == next(each for each in fields if each < bound)


@pytest.mark.parametrize("n", range(1, 13))
def test_tree_of_uniform_below(n):
    found, mass = with_bits(lambda source: uniform_below(n, source), 24), Counter()
    for (value, _), p in found.items():
        mass[value] += p
    undecided = [1 - sum(p for (_, bits), p in found.items() if bits <= depth) for depth in range(25)]
    assert set(mass) == set(range(n))
    assert len(set(mass.values())) == 1
    assert undecided[-1] < 1e-6
    assert all(part * 2**depth <= n for depth, part in enumerate(undecided))
    assert sum(undecided) <= math.log2(n) + 2


def dice_roller(n, source):
    """Lumbroso's fast dice roller, a bit at a time as published."""
    v, c = 1, 0
    while n > 1:
        v, c = 2 * v, 2 * c + source.bits(1)
        if v >= n:
            if c < n:
                return c
            v, c = v - n, c - n
    return 0


@given(st.integers(1, 10**100), st.integers())
@example(1, 0)
@example(64, 0)
def test_uniform_equals_its_slow_twin(n, seed):
    quick, slow = SeededBits(seed), SeededBits(seed)
    for _ in range(3):
        assert uniform_below(n, quick) == dice_roller(n, slow)
    assert quick.bits(64) == slow.bits(64)


def test_uniform_below_nothing_is_refused():
    for n in (0, -3):
        with pytest.raises(ValueError, match="n must"):
            uniform_below(n, SeededBits(1))


# Coins


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


@pytest.mark.parametrize("kind", [decay, logistic])
def test_short_enclosures_meet_long_ones(kind):
    for r, precision in product((Fraction(p, 7) for p in range(1, 30)), range(1, 9)):
        (low, high), (least, most) = kind(r)(precision), kind(r)(precision + 200)
        assert low << 200 <= most and least <= high << 200


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


# Permute-and-flip from counts of levels

AB = Domain(["a", "b"])


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


def words(*numbers):
    return ScriptedBits("".join(f"{number:064b}" for number in numbers))


def test_bits_are_revealed_until_they_decide():
    half = 1 << 63
    assert draw_loudest({0: 1, 1: 1}, Fraction(0), words(half, half + 1, 0, 0)) == 1
    source = words(half, half, 7, 4)
    assert draw_loudest({0: 1, 1: 1}, Fraction(0), source) == 0
    with pytest.raises(OutOfBits):  # all were read
        source.bits(1)
    most = (1 << 64) - 1  # of one: from 44 to infinity, so a noise of about 69 has not won yet
    assert draw_loudest({0: 1, 1: 10**30}, Fraction(0), words(most, half, most, 0)) == 0
    assert draw_loudest({3: 10**40}, Fraction(1), words(0)) == 3


@pytest.mark.parametrize("counts", [{0: 1, 1: 1}, {3: 2, 4: 5}])
def test_draws_follow_the_exact_law(monkeypatch, counts):
    """That of all candidates, one by one, by the decision tree in words of two bits."""
    monkeypatch.setattr(levels_module, "BITS", 2)
    scores = [-level for level, count in counts.items() for _ in range(count)]
    exact, law = smalldb.selection_law(scores, epsilon=1, range=1, method="permute-and-flip"), Counter()
    for (i,), (_, high) in exact.items():
        law[-scores[i]] += high
    found = outcomes(lambda source: draw_loudest(counts, Fraction(1), source), 8)
    assert obeys(found, law, Fraction(1, 8))


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
