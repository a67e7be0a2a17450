"""Margins of rejection: shares at their ends, and coins of a head and a tail in words of four bits."""

from fractions import Fraction
from math import comb, exp

import naive
import numpy as np
import pytest
from margins import LN2, check_coins, obeys, outcomes
from rejecting import instance, lane_of, shares_at, slot_of, survivors, without_stars

from smalldb.counting import multisets
from smalldb.counting.scores import Scores
from smalldb.exact.bits import SeededBits
from smalldb.kernels.bitwise import unpack
from smalldb.kernels.nodes import MOST_ROWS, scan_for
from smalldb.kernels.ways import ONE_WORD, SHARE, choose, share_of, share_tables, tabulate
from smalldb.rejection import head_and_tail
from smalldb.rejection.head_and_tail import HeadAndTail
from smalldb.rejection.relaxation import Relaxer
from smalldb.rejection.sampler import tuple_sampler
from smalldb.rejection.target import Target
from smalldb.rejection.tree import Tree

SCORES = Scores.build(np.array([[0, 1, 2]]), np.array([0]), 1, 1)  # of the three candidates: 0, 1, 2


def test_shares_are_rounded_up():
    """However rare a way is, it is chosen now and then, and never too seldom."""
    unit = Fraction(SHARE)
    pairs = (
        (1.0, 3.0), (2.0, 2.0**62), (3.0, 2.0**63), (5.0, 7 * 2.0**60), (1.0, 2.0**300),
        (2.0**-999, 2.0**999),
    )  # fmt: skip
    for weight, value in pairs:
        exact = Fraction(weight) / Fraction(value) * unit
        for columns in (1, 3, 184756, ONE_WORD, ONE_WORD + 1, 1 << 60):
            few = columns <= ONE_WORD
            found, step = int(share_of(weight, value, float(columns))), columns if few else 1
            assert exact * (1 - Fraction(1, 1 << 51)) <= found <= exact * (1 + Fraction(1, 1 << 51)) + step
            assert found >= exact or exact > 1 << 50
            assert found >= step
            assert found % step == 0


@pytest.mark.slow  # as draws from trees are, which alone choose so
@pytest.mark.parametrize("room", [0, 1 << 12])
def test_a_way_is_chosen_by_the_share_that_holds_the_position(room):
    """With a table and without one: its first position and its last, and nothing beyond the last of all."""
    rows, n = 5, 11
    workload, answers, _ = instance(4, n, "conjunctions:2", 9)
    tree = Tree((2, 0, 1, 3), ((), (0,), (0, 1), (1, 2)))
    relaxation = Relaxer(Target.build(workload, answers, n, rows)).count(tree, 14, 1 << 40)
    nodes, states, node = relaxation.nodes, relaxation.states, 2
    scratch, checked = np.empty(MOST_ROWS + 1), 0
    for state in range(states.start[node], states.start[node + 1]):
        if not states.values[state]:
            continue
        known, mine = shares_at(nodes, states, node, state), share_tables(states, nodes.cells > 0, room)
        slot, scan = slot_of(mine, states, node, state), scan_for(nodes)
        unpack(*states.keys[state], scan.h)
        if room:
            tabulate(nodes, node, slot, states, scan, scratch, mine)
        for expected, (first, end) in known.items():
            for position in (first, end - 1):
                part, within, _ = choose(nodes, node, slot, states, scan, scratch, mine, np.int64(position))
                assert (part, within) == (end - first, position - first)
                assert tuple(scan.u[: nodes.cells[node]].tolist()) == expected
                checked += 1
        part, *_ = choose(nodes, node, slot, states, scan, scratch, mine, np.int64(end))
        assert part == 0
    assert checked > 20


@pytest.fixture(scope="module")
def made():
    """A sampler whose layers are those of trees."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        without_stars(monkeypatch)
        workload, answers, _ = instance(4, 34, "conjunctions:2", 3)
        return tuple_sampler(workload, answers, 34, 3, Fraction(2))


@pytest.mark.slow
def test_a_layer_is_chosen_by_the_share_that_holds_the_position(made):
    mixture, d = made._mixture, made._target.attributes
    last = len(mixture.sums) - 1

    def tried(position):
        layers = mixture.choose(np.array([position << 1], dtype=np.uint64))
        lane = lane_of(made, layers, np.full(d, 1 << 40, dtype=np.uint64))
        return list(survivors(lane)) == [last], lane.start

    begins, ends = (int(end) for end in mixture.sums[-2:])
    assert tried(begins) == tried(ends - 1) == (True, d)
    assert not tried(begins - 1)[0]
    assert tried(ends) == (False, 0)  # the slack of the shares


@pytest.mark.slow
def test_the_position_within_a_share_says_which_column(made):
    """Each column of a way has equally many positions of its share: one in as many as there are columns."""
    target, mixture, d = made._target, made._mixture, made._target.attributes
    lane = lane_of(made, [0], np.zeros(0, dtype=np.uint64))

    def first_column(position):
        lane.turn = lane.start = 0
        lane.words = np.array([position << 1, *[0] * d], dtype=np.uint64)
        lane.go_on(1)
        return int(lane.columns[mixture.nodes.attributes[0]])

    first, several = 0, 0
    while first < 0.999 * SHARE:
        seen = [first_column(first)]
        share, count = int(lane.shares[0]), int(lane.ways[0])
        seen += [first_column(first + position) for position in (*range(1, count + 1), share - 1)]
        assert share % count == 0
        assert len(set(seen[:count])) == count == comb(target.rows, seen[0].bit_count())
        assert {column.bit_count() for column in seen} == {seen[0].bit_count()}
        assert seen[count:] == [seen[0], seen[count - 1]]
        several += count > 1
        first += share
    assert several > 0


@pytest.mark.slow
def test_a_coin_is_at_most_1_by_the_slack_of_each_node(made):
    """Were one node's forgotten, the likeliest coin would be above 1: a node's is 2^-20 of it."""
    mixture, target = made._mixture, made._target
    words = np.random.default_rng(1).integers(0, 1 << 64, 200_000, dtype=np.uint64)
    lane = lane_of(made, np.ones(5_000, dtype=np.int64), words)
    coins = []
    for _ in survivors(lane):
        score = target.score(lane.columns)
        factor = mixture.factor(1, score, *lane.chosen())
        coins.append(float(factor) * exp(-float(made._rate) * (score - mixture.envelope.lowest)))
    assert 1 - 2**-25 < max(coins) <= 1


def test_shares_of_layers_are_rounded_up(made):
    mixture = made._mixture
    sizes = [*(layer.size for layer in made._builder._layers), made._target.candidates]
    masses = [size * drop for size, drop in zip(sizes, mixture.envelope.drops(), strict=True)]
    for share, mass in zip(np.diff(mixture.sums, prepend=0).tolist(), masses, strict=True):
        assert 0 <= share - mass * int(SHARE) / sum(masses) < 1
    assert mixture.sums[-1] <= (1 << 63) - 1


@pytest.mark.parametrize(
    ("head", "tail", "rate"),
    [({0: 1}, 1, "1/3"), ({0: 1, 1: 1}, 2, "2"), ({0: 1}, 1, "0"), ({0: 2}, 9, "1/9")],
)
def test_the_coin_for_the_head_by_its_decision_tree(monkeypatch, head, tail, rate):
    monkeypatch.setattr(head_and_tail, "PRECISION", 4)
    rate = Fraction(rate)
    found = HeadAndTail(SCORES, rate, head, tail)
    weight = sum(number * naive.exp_minus(rate * level) for level, number in head.items())
    share = weight / (weight + multisets.count(3, 1) * naive.exp_minus(rate * tail))
    for fair in range(3):
        heads = share * 2**fair
        if heads <= 1:
            tree = outcomes(lambda source, fair=fair: found._takes_head(fair, source), 13)
            assert obeys(tree, {True: heads, False: 1 - heads}, Fraction(1, 50))


@pytest.mark.parametrize("rate", ["0", "1/3", "2/3", "1", "3"])
def test_fair_coins_for_the_head_are_not_too_many(monkeypatch, rate):
    found, asked = HeadAndTail(SCORES, Fraction(rate), {0: 1}, 1), []

    def takes(self, coins, source):
        asked.append(coins)
        return False

    monkeypatch.setattr(HeadAndTail, "_takes_head", takes)
    for seed in range(20):
        found.draw(SeededBits(seed))
    share = 1 - found.tail_share()[0]
    assert set(asked) == {coins for coins in range(9) if Fraction(1, 2) < share * 2**coins <= 1}


@pytest.mark.parametrize("less", [0, Fraction(1, 10**12), Fraction(1, 10**7)])
def test_coins_of_the_tail_are_no_more_likely_than_certain(monkeypatch, less):
    """With a rate just below ln 2, a gap of one is worth less than one fair coin."""
    factors = check_coins(monkeypatch, head_and_tail)
    found, drawn = HeadAndTail(SCORES, LN2 * (1 - less), {}, 0), set()
    for seed in range(30):
        drawn.add(found.draw(SeededBits(seed))[1])
    assert drawn == {0, 1, 2}
    assert factors and set(factors) <= {1, 2}
