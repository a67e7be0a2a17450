"""Margins of rejection: shares at their ends, and coins of a head and a tail in words of four bits."""

from collections import Counter
from fractions import Fraction
from itertools import permutations, product
from math import comb, exp, factorial

import naive
import numpy as np
import pytest
from builders import posed
from margins import LN2, Decisions, OutOfBits, check_coins, obeys, outcomes
from rejecting import (
    force,
    gaps,
    instance,
    lane_of,
    shares_at,
    slot_of,
    spelled,
    starred,
    survivors,
    without_stars,
)

from smalldb.counting import multisets
from smalldb.counting.dynamic_engine import count_scores
from smalldb.counting.scores import Scores
from smalldb.exact.bits import SeededBits
from smalldb.exact.coins import Uniform
from smalldb.kernels.bitwise import unpack
from smalldb.kernels.nodes import MOST_ROWS, scan_for
from smalldb.kernels.stars import SIZE, star_trials
from smalldb.kernels.trials import IMPOSSIBLE, OUT_OF_WORDS, PAUSED, SURVIVED, subset, usable
from smalldb.kernels.ways import ONE_WORD, SHARE, choose, share_of, share_tables, tabulate
from smalldb.rejection import building, head_and_tail, sampler
from smalldb.rejection.head_and_tail import HeadAndTail, Proposals
from smalldb.rejection.relaxation import Relaxer
from smalldb.rejection.sampler import Lane, tuple_sampler
from smalldb.rejection.target import Target, uniform_words
from smalldb.rejection.tree import Tree, scattered, star

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


@pytest.mark.parametrize(("below", "above"), [(0, 30), (0, 42), (-600, 600)])
def test_rare_ways_have_shares_that_are_rounded_up(below, above):
    """Of a root whose value is too large: for ways of few columns and of many, and where all underflow."""
    rows, tree = 24, Tree((0, 1), ((), (0,)))
    workload, answers, _ = instance(2, rows, "conjunctions:2", 3)
    relaxation = Relaxer(Target.build(workload, answers, rows, rows)).count(tree, rows * rows, 1 << 40)
    states = relaxation.states
    states.values[0] *= 2.0**above
    states.values[1:] *= 2.0**below
    found = shares_at(relaxation.nodes, states, 0, 0)
    assert len(found) == rows + 1
    for (ones,), (first, end) in found.items():
        columns = comb(rows, ones)
        exact = Fraction(int(SHARE) * columns, 1 << rows) * Fraction(2) ** (below - above)
        assert end - first >= max(1, exact)
        assert columns > ONE_WORD or (end - first) % columns == 0


@pytest.mark.parametrize("modulus", [3, 10, (1 << 40) + 1, comb(64, 32), (1 << 63) - 1])
def test_of_usable_words_each_residue_has_as_many(modulus):
    least = (1 << 64) % modulus
    for words, here in (([least], 0), ([least - 1], 1), ([0, least - 1, least], 2), ([modulus], 0)):
        assert usable(np.array(words, dtype=np.uint64), 0, np.uint64(modulus)) == here


def test_subsets_of_many_rows_come_in_order():
    found = [int(subset(np.int64(rank), np.uint64(1023), 10, 4)) for rank in range(comb(10, 4))]
    every = [bits for bits in range(1024) if bits.bit_count() == 4]
    assert found == sorted(every, key=lambda bits: [bits >> row & 1 for row in range(10)])


def test_a_column_among_many_takes_a_word_of_its_own():
    workload, _, _ = instance(2, 24, "conjunctions:2", 3)
    answers = np.array([12 if len(query.attributes) == 1 else 6 for query in workload.queries])
    made, read, seen = tuple_sampler(workload, answers, 24, 24, Fraction(24)), 0, set()
    force(made, Tree((0, 1), ((), (0,))))  # which holds all queries
    lane = lane_of(made, [0, 1, 2] * 20, uniform_words(SeededBits(1), 1_000))
    for _ in survivors(lane):
        many = int((lane.ways > ONE_WORD).sum())
        assert lane.start - read == 2 + many
        read = lane.start
        seen.add(many)
    assert 1 in seen


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


def test_layers_of_hardly_any_mass_have_a_share(made, monkeypatch):
    monkeypatch.setattr(made._builder, "_rate", Fraction(100))
    assert 1 in np.diff(made._builder.mixture().sums)


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


@pytest.mark.parametrize("less", [0, Fraction(1, 10**12), Fraction(1, 10**7)])
def test_coins_of_the_tail_are_no_more_likely_than_certain(monkeypatch, less):
    """With a rate just below ln 2, a gap of one is worth less than one fair coin."""
    factors = check_coins(monkeypatch, head_and_tail)
    found, drawn = HeadAndTail(SCORES, LN2 * (1 - less), {}, 0), set()
    for seed in range(30):
        drawn.add(found.draw(SeededBits(seed))[1])
    assert drawn == {0, 1, 2}
    assert factors and set(factors) <= {1, 2}


def test_log2_e_is_rounded_down():
    assert 0 < 1 - Fraction(head_and_tail.LOG2_E) * LN2 < Fraction(1, 10**8)


@pytest.mark.parametrize("fair", [0, 1, 2])
def test_the_coin_for_the_head_looks_at_its_uniform_number_until_it_is_decided(monkeypatch, fair):
    found, share = HeadAndTail(SCORES, Fraction(1), {0: 1}, 1), Fraction(4, 5)  # of the tail
    monkeypatch.setattr(head_and_tail, "PRECISION", 3)
    near = [0, *(Fraction(1, 9 * bits) for bits in range(1, 200))]
    monkeypatch.setattr(HeadAndTail, "tail_share", lambda _, bits: (share - near[bits], share + near[bits]))
    for seed in range(200):
        _, high = Uniform(SeededBits(seed)).enclosure(200)
        assert (high <= (1 - share) * 2**fair) == found._takes_head(fair, SeededBits(seed))


@pytest.mark.parametrize("rate", [Fraction(1, 9), Fraction(1), Fraction(2)])
@pytest.mark.parametrize("cut", [None, 0, 1, 3])
def test_a_trial_of_head_and_tail_by_the_probabilities_of_its_decisions(monkeypatch, cut, rate):
    scores, (*posed_as, cells, rows) = posed([[0, 1, 1, 2], [1, 0, 1, 0]], [2, 0, 3, 1], 2)
    candidates, walk = list(naive.multisets(cells, rows)), Decisions()
    found = HeadAndTail(scores, rate, {}, int(scores.levels[0]))
    if cut is not None:
        counted = count_scores(scores.cut(cut), keep_layers=True, threads=1)
        found = head_and_tail.head_and_tail(scores, rate, cut, counted, counted.cost)
    share = float(found.tail_share()[0])

    def propose(scores, size, source):
        if not walk.fresh:  # what follows a trial in vain is alike
            raise OutOfBits
        walk.fresh = False
        y = candidates[below(len(candidates), source)]
        score = np.array([naive.score(*posed_as, y)])
        return Proposals(score, np.array([y])[:, scores.cells], np.zeros((1, 2), np.uint64))

    def below(n, source):
        return walk.choose([1 / n] * n)

    def level(levels, rate, source):
        weights = np.array([count * exp(-rate * s) for s, count in levels.items()])
        return list(levels)[walk.choose((weights / weights.sum()).tolist())]

    for name, stand_in in {
        "propose": propose,
        "bernoulli_exp": walk.toss,
        "all_heads": lambda _, coins: np.array([walk.heads(0.5 ** int(coins.max()))]),
        "uniform_below": below,
        "draw_level": level,
    }.items():
        monkeypatch.setattr(head_and_tail, name, stand_in)
    monkeypatch.setattr(
        HeadAndTail, "_takes_head", lambda _, coins, source: walk.heads(2**coins * (1 - share))
    )
    made = walk.law(lambda source: tuple(found.draw(source)[0].tolist()))
    weights = {y: exp(-rate * naive.score(*posed_as, y)) for y in candidates}
    law = {y: weight / sum(weights.values()) for y, weight in weights.items()}
    assert {y: p / sum(made.values()) for y, p in made.items()} == pytest.approx(law, rel=1e-9)


def walked(made, layer):
    """What trials of a layer end with, how often, and what the coin is told: all columns that words name."""
    d = made._target.attributes
    lane, left = lane_of(made, [layer], np.zeros(0, np.uint64)), [((), Fraction(1))]
    broad, order = (
        part[layer * d :][:d].tolist() for part in (lane.leaves.broad, made._mixture.nodes.attributes)
    )

    def tried(words):
        lane.turn = lane.start = lane.shares[len(words) - 1] = lane.status = 0
        lane.words = np.array([*words, *[0] * (d - len(words))], dtype=np.uint64)
        lane.go_on(1)
        assert lane.status != IMPOSSIBLE
        last = len(words) - 1
        return int(lane.shares[last]), int(lane.ways[last]), int(lane.columns[order[last]])

    while left:
        words, mass = left.pop()
        tries, first = [], 0
        if broad[len(words)]:  # the last; of two rows, so that 12 words name each of its columns as often
            tries = [(*words, word) for word in range(12 << 40, (12 << 40) + 12)]
            tries = [some for some in tries if tried(some) and lane.status != OUT_OF_WORDS]
            tries = [(some, Fraction(1, len(tries))) for some in tries]
        while not broad[len(words)] and (found := tried((*words, first << 1)))[0]:
            share, count, _ = found
            tries += [((*words, first + r << 1), Fraction(share, count << 63)) for r in range(count)]
            assert tried((*words, first + share - 1 << 1)) == tried(tries[-1][0])
            first += share
        for some, odds in tries:
            tried(some)
            if lane.status == OUT_OF_WORDS or lane.start > len(some):
                left.append((some, mass * odds))
            elif lane.status == SURVIVED:
                yield lane.columns.copy(), mass * odds, lane.shares.tolist(), lane.ways.tolist()


def walked_star(made, layer):
    """The same of a star of two leaves; their columns fit at once where a single word suffices for both."""
    star, columns, first = made._mixture.stars[layer].star, np.zeros(5, dtype=np.uint64), 0
    sizes = star.leaves[:, SIZE].tolist()
    halves = [[-(-(rank << 32) // size) + 1 for rank in range(size)] for size in sizes]

    def tried(*words):
        return star_trials(star, np.zeros(1, np.int64), 0, 1, 1, np.array(words, np.uint64), 0, columns, 9)

    for state, end in enumerate(star.sums.tolist()):
        ended = []
        for position, low, high in product((first, end - 1), *halves):
            status, _, read, _, found = tried(position << 1, low | high << 32)
            if status != OUT_OF_WORDS:
                ended.append(columns.copy() if status == SURVIVED else None)
                assert read == 2 and (status == PAUSED or found == state)
        odds = Fraction(end - first, len(ended) << 63)
        for each in ended:
            if each is not None:
                yield each, odds, *made._mixture.stars[layer].chosen(state)
        first = end
    assert tried(first << 1, 0)[:3] == (PAUSED, 1, 1)  # the slack


def coins_of(made, workload, answers, n, walk):
    """Every coin of a layer's trials; times it, but for the exponential, each candidate is as likely."""
    mixture, target, rows = made._mixture, made._target, made._target.rows
    scores, last = gaps(workload, answers, n, rows).max(axis=0), len(mixture.sums) - 1
    total, coins, first = Counter(), [], 0
    everyone = np.indices((1 << rows,) * target.attributes).reshape(target.attributes, -1).T.astype(np.uint64)
    for layer, end in enumerate(mixture.sums.tolist()):
        positions = np.array([first, end - 1, end], dtype=np.uint64) << np.uint64(1)
        assert mixture.choose(positions).tolist() == [layer, layer, layer + 1]
        uniform = ((columns, Fraction(1, target.candidates), [], []) for columns in everyone)
        for columns, mass, shares, ways in uniform if layer == last else walk(made, layer):
            bits = target.bits(columns)
            score = int(scores[spelled(bits)])
            factor = mixture.factor(layer, score, shares, ways)
            coins.append(factor * naive.exp_minus(made._rate * (score - mixture.envelope.lowest)))
            part = Fraction(end - first, 1 << 63) * mass * factor
            orders = permutations(range(rows)) if layer in mixture.stars else [range(rows)] * factorial(rows)
            for order in orders:
                total[spelled(bits[list(order)])] += part
        first = end
    assert len(total) == target.candidates
    assert len(set(total.values())) == 1
    return coins


@pytest.mark.parametrize("room", [0, 1 << 12])
@pytest.mark.parametrize(
    "tree",
    [scattered(4), Tree((2, 0, 1, 3), ((), (0,), (0, 1), (1,))), star((1, 3, 0), 4)],
    ids=lambda tree: str(tree.parents),
)
def test_the_law_of_trials_by_walking_their_words(tree, room, monkeypatch):
    """And no coin is above certain, but by the slack of each node one of them nearly is."""
    without_stars(monkeypatch)
    monkeypatch.setattr(building, "ROOM", room)
    workload, answers, _ = instance(4, 20, "marginals:2", 2)
    made = tuple_sampler(workload, answers, 20, 2, Fraction(1))
    force(made, tree)
    coins = coins_of(made, workload, answers, 20, walked)
    assert 1 - Fraction(1, 1 << 19 if tree.broad else 1 << 25) < max(coins) <= 1


@pytest.mark.parametrize("text", ["conjunctions:2", "disjunctions:2", "conjunctions:2:negations"])
def test_the_law_of_trials_of_stars_by_walking_their_words(text):
    made, (*posed_as, _, _) = starred(5, 2, 41, text, 20, (4, 1, 2))
    assert len(made._mixture.stars) == len(made._mixture.sums) - 1
    assert max(coins_of(made, *posed_as, walked_star)) <= 1


def test_the_first_trial_that_is_kept_is_taken_whatever_lane_it_is_in(monkeypatch):
    class Quick(Lane):
        def go_on(self, end):
            while self.turn < len(self.order) and self.position >= end:
                self.turn += 1
            self.status = SURVIVED if self.turn < len(self.order) else PAUSED

    made, _ = starred(5, 2, 41, "conjunctions:2", 20, (4, 1, 2))
    monkeypatch.setattr(sampler, "Lane", Quick)
    monkeypatch.setattr(sampler, "ALONE", 0)
    for seed in range(30):
        kept = np.flatnonzero(np.random.default_rng(seed).random(20) < 0.5).tolist()
        made._tossed = lambda lane, source, kept=kept: lane.position in kept and (lane.position,)
        assert made._first_kept(20, SeededBits(seed)) == ((kept[0],) if kept else None)


def test_rows_of_a_star_are_not_in_the_order_of_its_hubs():
    made, _ = starred(5, 2, 41, "conjunctions:2", 20, (4, 1, 2))
    drawn = [made.draw(SeededBits(seed))[0] for seed in range(60)]
    cells = [(bits[:, [4, 1, 2]] @ [1, 2, 4]).tolist() for bits in drawn]
    assert sum(first > second for first, second in cells) > 15
