"""Margins of selection: trees of decisions, coins that are probabilities, octaves that are never too deep."""

import math
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations
from math import ceil, comb
from types import SimpleNamespace

import naive
import numpy as np
import pytest
from margins import LN2, Decisions, OutOfBits, check_coins, obeys, outcomes

import smalldb
from smalldb.exact import coins, integers
from smalldb.exact.bits import SeededBits
from smalldb.exact.coins import Known, Shifted, Uniform
from smalldb.exact.enclosures import Real, contexts
from smalldb.exact.integers import uniform_subset
from smalldb.selection import drawing, scored, selecting, selection_law
from smalldb.selection import law as laws
from smalldb.selection.drawing import exponential, noisy_max, permute_and_flip
from smalldb.selection.scored import OCTAVES, Scored

MORE = 1 + Fraction(1, 10**12)  # than the room that is left where octaves are rounded down


@pytest.mark.parametrize("rate, end", [(3, "1/2"), (1, "3/2"), (4, "1/4")])
def test_the_first_death_by_its_decision_tree(monkeypatch, rate, end):
    """Of `rate` things that die at rate 1 from 1 on, the first dies after t with probability exp(-rate t)."""
    monkeypatch.setattr(coins, "_BITS", 1)
    start, end, cells = Fraction(1), 1 + Fraction(end), 3

    def position(source):
        m = drawing._death(start, end, rate, source)
        if m is None:
            return None
        precision = 1
        while True:
            low, high = (cells * (x - start) / (end - start) for x in m.enclosure(precision))
            if low // 1 == (ceil(high) - 1):
                return low // 1
            precision += 1

    def alive(cell):
        return naive.exp_minus(rate * (end - start) * cell / cells)

    law = {cell: alive(cell) - alive(cell + 1) for cell in range(cells)} | {None: alive(cells)}
    assert obeys(outcomes(position, 11), law, Fraction(3, 5))


class Branches(Decisions):
    """Decisions of selection; uniform numbers are the nodes of a quadrature."""

    nodes, odds = np.polynomial.legendre.leggauss(5)

    def __init__(self, patch, least):
        for module in (drawing, scored, selecting, integers):
            patch.setattr(module, "uniform_below", lambda n, source: self.choose([1 / n] * n))
        for module in (drawing, selecting):
            patch.setattr(module, "bernoulli_exp", self.toss)
        patch.setattr(drawing, "Uniform", self._uniform)
        patch.setattr(drawing, "isqrt", lambda size: 10**9)
        self.least = least

    def bits(self, count):
        return self.choose([0.5**count] * (1 << count))

    def _uniform(self, source):
        # it is kept with probability 1 - 1/e, and all that follows when it is not is alike
        if not self.fresh:
            raise OutOfBits
        self.fresh, self._weight = False, self._weight / (1 - math.exp(-1))
        node = Fraction((1 + self.nodes[self.choose(self.odds / 2)]) / 2)
        near = [Fraction(2, 1 << precision) for precision in range(65)]
        return SimpleNamespace(enclosure=lambda precision: (node - near[precision], node + near[precision]))


@pytest.mark.parametrize("scores", [[0, 0, -1, -3], [0, -2, -2, -4]], ids=str)
def test_noisy_max_by_the_probabilities_of_its_coins(monkeypatch, scores):
    """Levels lie whole steps apart, each of 1 over the number that may die."""
    made = Scored([np.array(scores)], Fraction(1, 2))
    found = Branches(monkeypatch, 0).law(lambda source: noisy_max(made, source))
    law = selection_law(scores, epsilon=1, sensitivity=1, method="noisy-max")
    assert {i: float(p) for (i,), (p, _) in law.items()} == pytest.approx(found, rel=1e-9)


def test_a_count_by_the_probabilities_of_its_coins(monkeypatch):
    """Half of epsilon is for who is selected, half for the count; both are independent."""
    given = {"sensitivity": 1, "method": "permute-and-flip"}

    def draw(source):
        made = smalldb.select([0, -1], **given, epsilon=4, counts=True, rng=source)
        return made.index, made.counts[0] + made.index

    found, law = Branches(monkeypatch, 3e-4).law(draw), selection_law([0, -1], **given, epsilon=2)
    assert sum(found.values()) > 0.9
    for (index, noise), p in found.items():
        assert p <= float(law[index,][1]) * math.tanh(1) * math.exp(-2 * abs(noise)) * (1 + 1e-9)


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("draw", [exponential, permute_and_flip, noisy_max])
@pytest.mark.parametrize("scores", [[0, 0, -1], [2, 0]], ids=str)
def test_draws_by_their_decision_trees(monkeypatch, draw, scores, at_once):
    monkeypatch.setattr(coins, "_BITS", 1)
    monkeypatch.setattr(drawing, "isqrt", lambda size: 10**9 if at_once else 0)
    monkeypatch.setattr(drawing, "OCTAVES", 4)  # or more than a thousand bits tell an octave
    made = Scored([np.array(scores)], Fraction(1, 2))
    law = selection_law(scores, epsilon=1, sensitivity=1, method=draw.__name__.replace("_", "-"))
    found = outcomes(lambda source: draw(made, source), 9)
    assert obeys(found, {i: high for (i,), (_, high) in law.items()}, Fraction(19, 20))


def test_the_weight_of_an_octave_is_taken_back(monkeypatch):
    """Of two that are 3/2 apart, the better one would win with .90 for .82: 13 bits decide .875 of that."""
    monkeypatch.setattr(coins, "_BITS", 1)
    monkeypatch.setattr(drawing, "OCTAVES", 4)
    made, law = Scored([np.array([0, -3])], Fraction(1, 2)), selection_law([0, -3], epsilon=1, sensitivity=1)
    found = outcomes(lambda source: exponential(made, source), 13)
    assert obeys(found, {i: high for (i,), (_, high) in law.items()}, Fraction(1, 20))


def test_sums_of_products_are_rounded_outwards():
    """1/3 x 1/3 + 1/7 has more digits than a law is worked out to."""
    with localcontext(prec=100):
        third, seventh = Decimal(1) / 3, Decimal(1) / 7
    for sign in (1, -1):
        c, factor, x = (Real(d, d, laws.DIGITS) for d in (sign * seventh, third, sign * third))
        made = laws._plus(c, factor, x)
        exact = Fraction(factor.low) * Fraction(x.low) + Fraction(c.low)
        assert Fraction(made.low) < exact < Fraction(made.high)


@pytest.mark.parametrize("method", ["permute-and-flip", "noisy-max"])
@pytest.mark.parametrize("scores", [[0, 10, 4, 20], [50, 0, 150]], ids=str)
def test_a_law_of_few_digits_encloses_that_of_many(monkeypatch, method, scores):
    given = {"scores": scores, "epsilon": 1, "sensitivity": 1, "method": method}
    finely = selection_law(**given)
    monkeypatch.setattr(laws, "_exp", laws._exp.__wrapped__)  # as it keeps what it found
    for digits in range(3, 25):
        monkeypatch.setattr(laws, "DIGITS", digits)
        for name, context in zip(("DOWN", "UP"), contexts(digits), strict=True):
            monkeypatch.setattr(laws, name, context)
        for outcome, (low, high) in selection_law(**given).items():
            assert low <= finely[outcome][0] and finely[outcome][1] <= high


@pytest.mark.parametrize("weights", [None, [1, 3, 2, 1]], ids=str)
@pytest.mark.parametrize("gone", [[], [0], [1], [3, 0]], ids=str)
def test_heaps_are_drawn_from_by_their_weights(monkeypatch, weights, gone):
    """By the decision tree of a draw, whichever have left: 2^-octave times the weight, of those left."""
    for module in (scored, drawing):
        monkeypatch.setattr(module, "OCTAVES", 3)
    made = Scored([np.array([0, 0, -2, -2])], Fraction(1, 2), weights)
    heaps = drawing.Heaps(made)
    for index in gone:
        octave, position = next((o, p) for o in made.octaves for p in range(2) if heaps.at(o, p) == index)
        heaps.remove(octave, position)
    mass = {i: Fraction((weights or [1] * 4)[i], 1 << (i > 1)) for i in range(4) if i not in gone}
    law = {i: m / sum(mass.values()) for i, m in mass.items()}
    assert obeys(outcomes(lambda source: heaps.at(*heaps.pick(source)), 12), law, Fraction(1, 10))


@pytest.mark.slow
@pytest.mark.parametrize("deep", [1, 2])
@pytest.mark.parametrize("weights", [None, [1, 3]], ids=str)
def test_ranked_draws_by_their_decision_trees(monkeypatch, weights, deep):
    """Both of two, with octaves that are counted anew early or late."""
    monkeypatch.setattr(coins, "_BITS", 1)
    for module in (scored, drawing):
        monkeypatch.setattr(module, "OCTAVES", 2)
    monkeypatch.setattr(drawing, "DEEP", deep)
    given = {"epsilon": 2, "sensitivity": 1, "method": "top-k", "k": 2, "base_measure": weights}
    law = {outcome: high for outcome, (_, high) in selection_law([0, -2], **given).items()}

    def draw(source):
        return tuple(drawing.ranked(Scored([np.array([0, -2])], Fraction(1, 2), weights), 2, source))

    assert obeys(outcomes(draw, 10), law, Fraction(9, 10))


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("draw", [exponential, permute_and_flip, noisy_max])
def test_no_coin_is_more_likely_than_certain(monkeypatch, draw, at_once):
    check_coins(monkeypatch, drawing)
    monkeypatch.setattr(drawing, "isqrt", lambda size: 10**9 if at_once else 0)
    for seed in range(60):
        scores = np.random.default_rng(seed).integers(-30, 5, 12)
        draw(Scored([scores], Fraction(3, 7)), SeededBits(seed))


@pytest.mark.parametrize("octaves", [1, 5, 40])
def test_thinning_leaves_room_for_a_depth_just_above_a_whole_octave(monkeypatch, octaves):
    """Heads have probability exp(m - r): m a little more than so many octaves, r the same and one more."""
    check_coins(monkeypatch, drawing)
    monkeypatch.setattr(drawing, "isqrt", lambda size: 10**9)
    above = octaves * LN2 * (1 + Fraction(1, 10**10))
    rate = LN2 * MORE
    made = Scored([np.array([0] + [-octaves - 1] * 40)], rate)
    assert octaves + 1 in made.octaves
    for seed in range(40):
        drawing._uniform_head(made, Fraction(0), 1, Known(above), False, SeededBits(seed))


@pytest.mark.parametrize("part", [Fraction(1, 4), Fraction(1, 2), Fraction(99, 100)])
def test_thinning_leaves_room_for_a_part_of_an_octave(monkeypatch, part):
    """With m a part of an octave, heads of the next one may not be thinned at all: known, or known lazily."""

    class Vague:
        def enclosure(self, precision):
            return max(Fraction(0), LN2 * part - Fraction(1, 2**precision)), LN2 * part

    check_coins(monkeypatch, drawing)
    monkeypatch.setattr(drawing, "isqrt", lambda size: 10**9)
    made = Scored([np.array([0] + [-1] * 40)], LN2 * MORE)
    assert 1 in made.octaves
    for seed in range(5):
        for m in (Known(LN2 * part), Shifted(Fraction(0), LN2 * part, Uniform(SeededBits(seed))), Vague()):
            drawing._uniform_head(made, Fraction(0), 1, m, False, SeededBits(seed))


def test_all_that_were_passed_may_die(monkeypatch):
    """Two, three and four candidates a level, none with positive noise: they die at rates 0, 2 and 5."""
    rates = []
    monkeypatch.setattr(drawing, "_death", lambda start, end, rate, source: rates.append(rate))
    monkeypatch.setattr(drawing, "halved", lambda count, times, source: 0)
    noisy_max(Scored([np.array([5, 5, 3, 3, 3, 1, 1, 1, 1])], Fraction(1)), SeededBits(1))
    assert rates == [0, 2, 5]


@pytest.mark.parametrize("kind", [np.int64, np.float64, object])
def test_octaves_are_never_too_deep(kind):
    """With a rate just below ln 2, a candidate k below the best lies less than k octaves below."""
    for less in (Fraction(1, 10**14), Fraction(1, 10**15)):
        rate = LN2 * (1 - less)
        scores = -np.arange(200)
        made = Scored(
            [np.array([Fraction(int(u)) for u in scores]) if kind is object else scores.astype(kind)], rate
        )
        octaves = made._octaves_of(made._chunks[0])
        assert (octaves[1:] < np.arange(1, 200)).all()
    assert Scored([np.array([0, -(10**9)])], Fraction(1)).octaves == {0: 1, OCTAVES - 1: 1}


@pytest.mark.parametrize(
    "method, scores, rate",
    [
        # octaves from integers and from fractions: a little less than whole ones
        ("exponential", np.array([0] + [-3] * 20), LN2 * (1 - Fraction(1, 10**14))),
        ("exponential", [Fraction(0)] + [Fraction(-3)] * 20, LN2 * (1 - Fraction(1, 10**15))),
        # seen from a little more than a whole one
        ("noisy-max", [0] + [-1 - Fraction(1, 10**10)] * 5 + [-2 - Fraction(1, 10**12)] * 40, LN2 * MORE),
    ],
    ids=["integers", "fractions", "ranks"],
)
def test_selections_near_whole_octaves_are_drawn(monkeypatch, method, scores, rate):
    """A coin refuses a probability above 1, however little it is."""
    monkeypatch.setattr(drawing, "isqrt", lambda size: 10**9)
    for seed in range(20):
        smalldb.select(scores, epsilon=rate, range=1, method=method, rng=seed)


@pytest.mark.parametrize("size, count", [(4, 2), (3, 3), (5, 1), (3, 0)])
def test_subsets_are_alike_by_their_decision_tree(size, count):
    found = outcomes(lambda source: tuple(sorted(uniform_subset(size, count, source))), 14)
    law = dict.fromkeys(combinations(range(size), count), Fraction(1, comb(size, count)))
    assert obeys(found, law, Fraction(1, 50))


def test_picks_are_alike_by_their_decision_trees():
    made = Scored([np.array([1, 0, 1]), np.array([0, 1, -9])], Fraction(1, 10))
    third = Fraction(1, 3)
    picked = outcomes(lambda source: made.pick_from(Fraction(1), source), 12)
    assert obeys(picked, {0: third, 2: third, 4: third}, Fraction(1, 50))
    above = outcomes(lambda source: made.pick_from(Fraction(0), source, above=True), 12)
    assert obeys(above, dict.fromkeys(range(5), Fraction(1, 5)), Fraction(1, 50))
    weighed = Scored([np.array([0, 0, 0])], Fraction(1), weights=[1, 0, 3])
    assert outcomes(lambda source: weighed.pick(0, source), 4) == Counter(
        {0: Fraction(1, 4), 2: Fraction(3, 4)}
    )
