"""Rejection where numbers are large, words run out or tables are full; each case was once a mistake."""

import os
from collections import Counter
from fractions import Fraction
from math import comb, factorial, prod

import naive
import numpy as np
import pandas as pd
import pytest
from margins import check_coins
from rejecting import chi_square, distance, instance, lane_of, starred

import smalldb
from queries import Conjunctions, Linear
from smalldb.exact.bits import SeededBits
from smalldb.kernels.trials import OUT_OF_WORDS, PAUSED, SURVIVED, subset, tree_trials
from smalldb.rejection import building, sampler
from smalldb.rejection.head_and_tail import PILOT_ENTRIES, pilot_scores
from smalldb.rejection.sampler import Factored, Flat, tuple_sampler
from smalldb.rejection.target import uniform_words


@pytest.mark.slow
def test_layers_are_never_changed_in_the_midst_of_a_batch(monkeypatch):
    """A trial that ran out of words is made again with the same layers: what it read depends on them."""
    attributes, rows, n = 4, 64, 1000
    workload, answers, _ = instance(attributes, n, "conjunctions:2", 0)
    monkeypatch.setattr(sampler, "WORDS", 2 * attributes + 1)
    monkeypatch.setattr(sampler, "MOST_WORDS", 2 * attributes + 1)
    monkeypatch.setattr(sampler, "FIRST", 1)
    trials, refine, left, seen = tree_trials, sampler.Sampler._refine, [0], [0, 0]

    def noted(*arguments):
        found = trials(*arguments)
        order = arguments[8]
        left[0] = found[0] != SURVIVED and len(order) - found[1]
        seen[0] += found[0] == OUT_OF_WORDS
        return found

    def checked(self, budget):
        assert left[0] == 0
        seen[1] += 1
        refine(self, 50)
        self._again = self.work + 2_000  # often, whatever the builder asks for

    monkeypatch.setattr(sampler, "tree_trials", noted)
    monkeypatch.setattr(sampler.Sampler, "_refine", checked)
    for seed in range(10):
        left[0], source = 0, SeededBits(seed)
        made = tuple_sampler(workload, answers, n, rows, Fraction(2 * rows * 30, n))
        for _ in range(20):
            made.draw(source)
    assert min(seen) > 20


@pytest.mark.slow
@pytest.mark.parametrize("stars", [False, True])
def test_trials_behind_one_that_is_kept_are_left_out(stars):
    if stars:
        made, _ = starred(5, 2, 41, "conjunctions:2", 40, (4, 1, 2))
    else:
        workload, answers, _ = instance(4, 34, "conjunctions:2", 3)
        made = tuple_sampler(workload, answers, 34, 3, Fraction(2))
    layer = min(made._mixture.stars) if stars else len(made._mixture.sums) - 1  # the last refuses none
    lane, seen = lane_of(made, [layer] * 30, uniform_words(SeededBits(4), 2_000)), []
    while lane.left(end=7):
        lane.go_on(end=7)
        if lane.status == SURVIVED:
            seen.append(lane.position)
            lane.turn += 1
    read = lane.start
    lane.go_on(end=7)
    assert (lane.status, lane.turn, lane.start) == (PAUSED, 30, read)
    assert seen and max(seen) < 7 and (stars or seen == [*range(7)])


@pytest.mark.slow
@pytest.mark.parametrize("room", [0, 40, 1 << 12])
def test_draws_in_several_lanes_follow_the_law(room, monkeypatch):
    """On any number of processors they are the same, so that one's follow it, without threads to start."""
    check_coins(monkeypatch, sampler)
    monkeypatch.setattr(sampler, "ALONE", 0)
    monkeypatch.setattr(building, "ROOM", room)
    attributes, rows, n, epsilon = 4, 3, 34, Fraction(2)
    workload, answers, _ = instance(attributes, n, "conjunctions:2", rows)
    drawn = []
    for processors in (5, 1):
        monkeypatch.setattr(os, "cpu_count", lambda processors=processors: processors)
        made, source = tuple_sampler(workload, answers, n, rows, epsilon), SeededBits(7)
        drawn.append([made.draw(source)[0].tolist() for _ in range(100)])
    assert drawn[0] == drawn[1]
    if room == 40:  # tables that become full: without them a way is chosen alike, share by share
        assert abs(distance(made, workload, answers, n, rows, epsilon, 2_000, seed=8)) < 4


@pytest.mark.parametrize("value", [0, 1])
@pytest.mark.slow
def test_thresholds_end_with_the_scores(value):
    """With D = 2^45, thresholds beyond all scores would wrap round, for some data and not for others."""
    unit, rows, n = 1 << 45, 20, 1000
    queries = Linear([[0, 0, 1, 1], [0, Fraction(1, unit), Fraction((1 << 44) + 1, unit), 1]])
    step = ((1 << 63) - (1 << 58)) // 12
    epsilon = Fraction(8 * 2 * rows * unit, 10 * step)
    frame = pd.DataFrame({"a": [value] * n, "b": [value] * n})
    for more in (1, 100):
        made = smalldb.release(
            frame, queries, epsilon=more * epsilon, rows=rows, mechanism="rejection", rng=1
        )
        assert made.data.shape == (rows, 2)
    workload = queries.workload(made.plan.workload.domain)
    answers = unit * n * value * np.ones(2, dtype=np.int64)
    target = tuple_sampler(workload, answers, n, rows, Fraction(4))._target
    least, most = target.bounds(1 << 62)
    assert (least <= 0).all()
    assert (most >= rows * unit).all()


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["1/25", "1e-12", "1e-18", "1e-400"])
def test_hardly_any_epsilon_draws_nearly_uniformly(epsilon):
    workload, answers, _ = instance(3, 50, "conjunctions:2", 1)
    epsilon = Fraction(epsilon)
    made = tuple_sampler(workload, answers, 50, 2, epsilon)
    assert isinstance(made, Flat)
    assert abs(distance(made, workload, answers, 50, 2, epsilon, 2_000, seed=1)) < 4
    assert (made.trials == 2_000) is (epsilon < Fraction(1, 100))
    assert "data" in repr(made)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [pytest.param(63, marks=pytest.mark.long), 64])
def test_as_many_rows_as_a_word_has_bits(rows, monkeypatch):
    n, epsilon, draws = 100, Fraction(10), 3_000
    workload, answers, _ = instance(2, n, "conjunctions:2", 3)
    law, matrix = Counter(), workload.matrix()
    for counts in naive.multisets(4, rows):  # of ordered rows, by their histograms
        score = int(np.abs(rows * answers - n * (matrix @ np.array(counts))).max())
        orders = factorial(rows) // prod(map(factorial, counts))
        law[score] += orders * naive.exp_minus(epsilon * score / (2 * rows))
    check_coins(monkeypatch, sampler)
    made, source = tuple_sampler(workload, answers, n, rows, epsilon), SeededBits(2)
    found = Counter(made.draw(source)[1] for _ in range(draws))
    assert abs(chi_square(found, law)) < 4


@pytest.mark.slow
def test_empty_layers_raise_the_lower_bound_and_no_further(monkeypatch):
    """Data that no small database fits: the first layers are empty, and are found to be."""
    check_coins(monkeypatch, sampler)
    monkeypatch.setattr(building, "STEP", Fraction(1, 10))
    workload, answers, _ = instance(4, 37, "marginals:2", 8)
    n, rows, epsilon = 37, 3, Fraction(4)
    made = tuple_sampler(workload, answers, n, rows, epsilon)
    lowest = made._mixture.envelope.lowest
    assert lowest > made._target.least_score()
    assert abs(distance(made, workload, answers, n, rows, epsilon, 2_000, seed=3)) < 4


@pytest.mark.slow
def test_rows_are_chosen_without_bias():
    """A word below 2^64 mod C(64, 32) is passed over; the first one that counts is not."""
    rows, n = 64, 64
    workload, _, _ = instance(2, n, "conjunctions:2", 0)
    half = Conjunctions(2).workload(workload.domain)
    answers = np.array([32 if len(q.attributes) == 1 else 16 for q in half.queries], dtype=np.int64)
    made = tuple_sampler(half, answers, n, rows, Fraction(64))
    ways = comb(64, 32)
    excess = (1 << 64) % ways
    assert excess > 0
    everyone = (1 << 64) - 1
    lane = lane_of(made, [0], np.zeros(0, dtype=np.uint64))

    def first_column(row_words, u_word):
        lane.turn = lane.start = 0
        lane.words = np.array([u_word, *row_words, *[everyone] * 20], dtype=np.uint64)
        lane.go_on(1)
        return int(lane.columns[made._mixture.nodes.attributes[0]])

    u_word = next(
        word for word in range(0, 1 << 64, 1 << 52) if first_column([excess], word).bit_count() == 32
    )
    assert lane.ways[0] == ways
    everything = np.uint64(everyone)
    for words in ([excess], [excess - 1, excess], [0, excess - 1, excess + 5], [everyone]):
        expected = int(subset(np.int64(words[-1] % ways), everything, 64, 32))
        assert first_column(words, u_word) == expected


@pytest.mark.slow
def test_counts_beyond_the_doubles_are_not_taken():
    workload, answers, _ = instance(48, 30, "conjunctions:2", 0)
    made = tuple_sampler(workload, answers, 30, 41, Fraction(41, 10))
    bits, score = made.draw(SeededBits(1))
    assert bits.shape == (41, 48)
    assert score == made._target.score(
        np.array([int("".join(map(str, c[::-1])), 2) for c in bits.T], np.uint64)
    )


def test_thousands_of_columns_are_drawn_at_once():
    workload, answers, _ = instance(3000, 40, "conjunctions:1", 0)
    made = tuple_sampler(workload, answers, 40, 5, Fraction(1))
    assert isinstance(made, Factored)
    bits, score = made.draw(SeededBits(1))
    assert bits.shape == (5, 3000)
    assert np.abs(5 * answers - 40 * bits.sum(axis=0, dtype=np.int64)).max() == score


@pytest.mark.slow
def test_the_pilot_takes_bounded_memory():
    class Wide:
        weights = np.zeros((16, 1 << 17), dtype=np.int8)
        rows, cells = 4, np.arange(16)
        offsets = np.arange((1 << 17) + 1)
        ranks, levels = np.zeros(1 << 17, dtype=np.int64), np.zeros(1, dtype=np.int64)

    assert 256 <= len(pilot_scores(Wide)) < PILOT_ENTRIES // 1000


def test_a_coin_has_no_negative_exponent():
    with pytest.raises(ValueError, match="at least 0"):
        sampler.bernoulli_exp(Fraction(-1, 3), SeededBits(1))
