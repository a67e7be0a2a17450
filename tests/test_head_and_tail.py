"""Head and tail against the census: the counts, the law of the draws, and the budget."""

import math
import sys
from collections import Counter
from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import naive
import numpy as np
import pytest
from builders import counted, flags, posed
from hypothesis import given, settings
from hypothesis import strategies as st
from margins import ScriptedBits
from rejecting import chi_square

from queries import Conjunctions, Linear, Marginals, Parities
from smalldb.counting.dynamic_engine import Dynamic, count_scores
from smalldb.counting.level_counts import count_candidates
from smalldb.counting.recursion import BeyondLimit, Limit
from smalldb.counting.scores import Scores
from smalldb.exact.bits import SeededBits
from smalldb.exact.integers import uniform_below
from smalldb.exact.levels import draw_level
from smalldb.rejection import head_and_tail as module
from smalldb.rejection.head_and_tail import (
    ROWS,
    all_heads,
    capable,
    head_and_tail,
    multiset_sampler,
    multisets_of,
    propose,
)

# counts and hashes wrap within a word on purpose; uncompiled, numpy warns of it
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

MATRIX = [[0, 1, 1, 2, 0], [1, 0, 1, 0, 0], [0, 0, 1, 1, 3]]


def sampler(scores, rate, cut):
    counted = count_scores(scores.cut(cut), keep_layers=True, threads=1)
    return head_and_tail(scores, rate, cut, counted, counted.cost)


@given(
    data=st.lists(st.integers(0, 4), min_size=5, max_size=5),
    rows=st.integers(1, 5),
    matrix=st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), max_size=3),
)
@settings(max_examples=30, deadline=None)
def test_a_head_is_the_census_up_to_its_cut(data, rows, matrix):
    matrix = np.array(matrix, dtype=np.int64).reshape(len(matrix), 5).tolist()
    scores, (*arguments, _, _) = posed(matrix, data, rows)
    whole = naive.census(*arguments, 5, rows)
    for cut in range(len(scores.levels)):
        counted = count_scores(scores.cut(cut), threads=1)
        up_to = {s: c for s, c in zip(scores.levels[: cut + 1].tolist(), counted.counts, strict=False) if c}
        assert up_to == {s: c for s, c in whole.items() if s <= scores.levels[cut]}
        assert sum(counted.counts) == sum(whole.values())


def test_each_candidate_of_a_head_stands_at_one_position():
    scores, (*arguments, _, _) = posed(MATRIX, [2, 0, 3, 1, 1], 4)
    for cut in (0, 3, 7):
        counted = count_scores(scores.cut(cut), keep_layers=True, threads=1)
        for rank, number in enumerate(counted.counts[: cut + 1]):
            found = {tuple(counted.candidate(rank, index).tolist()) for index in range(number)}
            assert len(found) == number
            assert {naive.score(*arguments, y) for y in found} <= {int(scores.levels[rank])}


def floyd(positions, cells, rows):
    """Floyd's choice of the positions of rows, or of bars if those are fewer, with a set."""
    slots = cells + rows - 1
    chosen = set()
    for last, position in zip(range(slots - len(positions), slots), positions, strict=True):
        chosen.add(last if position in chosen else position)
    stars = chosen if len(positions) == rows else set(range(slots)) - chosen
    counts = [0] * cells
    for before, position in enumerate(sorted(stars)):
        counts[position - before] += 1
    return tuple(counts)


@pytest.mark.parametrize(("cells", "rows"), [(1, 3), (2, 1), (2, 5), (3, 2), (4, 3), (4, 4), (3, 6), (6, 2)])
def test_every_multiset_is_proposed_equally_often(cells, rows):
    chosen = min(rows, cells - 1)
    every = list(product(*(range(cells + rows - chosen + i) for i in range(chosen))))
    found = multisets_of(np.array(every, dtype=np.int64).reshape(len(every), chosen).T, cells, rows)
    assert [tuple(y) for y in found.tolist()] == [floyd(positions, cells, rows) for positions in every]
    counts = Counter(map(tuple, found.tolist()))
    assert counts.keys() == set(naive.multisets(cells, rows))
    assert len(set(counts.values())) == 1


@pytest.mark.parametrize("short", [module.SHORT, 0])
def test_proposals_are_the_bits_of_the_source(monkeypatch, short):
    monkeypatch.setattr(module, "SHORT", short)
    scores, (*arguments, _, _) = posed(MATRIX, [2, 0, 3, 1, 1], 3)
    width, trials = 2 if short else 4, 50
    found = propose(scores, trials, SeededBits(5))
    raw = SeededBits(5).bits(8 * trials * (16 + 3 * width)).to_bytes(trials * (16 + 3 * width), "little")
    numbers = [int.from_bytes(raw[i : i + width], "little") for i in range(16 * trials, len(raw), width)]
    for trial in range(trials):
        positions = [numbers[i * trials + trial] % (5 + i) for i in range(3)]
        assert tuple(found.candidates[trial].tolist()) == floyd(positions, 5, 3)
        assert [int.from_bytes(raw[16 * trial + i : 16 * trial + i + 8], "little") for i in (0, 8)] == (
            found.words[trial].tolist()
        )
        candidate = np.zeros(5, dtype=np.int64)
        candidate[scores.cells] = found.candidates[trial]
        assert found.scores[trial] == naive.score(*arguments, candidate.tolist())


def test_words_that_cannot_be_split_evenly_make_no_proposal():
    scores, _ = posed([[0, 1, 2]], [1, 1, 0], 1)  # positions 0, 1, 2: the word 65,535 is one too many
    script = "".join(f"{byte:08b}" for byte in reversed(bytes(32) + b"\xff\xff\xfe\xff"))
    found = propose(scores, 2, ScriptedBits(script))
    assert found.candidates.tolist() == [[0, 0, 1]]
    assert len(found.words) == len(found.scores) == 1


def test_of_all_words_each_candidate_has_as_many():
    for cells, rows in ((3, 1), (2, 2), (2, 6)):
        scores, _ = posed([range(cells)], [1] * cells, rows)
        raw = bytes(16 << 16) + np.arange(1 << 16, dtype="<u2").tobytes()
        source = SimpleNamespace(bits=lambda count, raw=raw: int.from_bytes(raw, "little"))
        found = Counter(map(tuple, propose(scores, 1 << 16, source).candidates.tolist()))
        assert set(found.values()) == {(1 << 16) // len(list(naive.multisets(cells, rows)))}


def test_fair_coins_are_the_low_bits():
    words = np.array([0, 1, 8, 12, 1 << 63], dtype=np.uint64)
    coins = np.array([62, 0, 3, 3, 62], dtype=np.uint64)
    assert all_heads(words, coins).tolist() == [True, True, True, False, True]


INSTANCES = {  # queries, attributes, histogram, rows, epsilon
    "tiny": (Conjunctions(2), 2, (3, 1, 0, 2), 3, 4),
    "skewed": (Conjunctions(2), 3, (20, 5, 3, 2, 4, 1, 2, 3), 6, 1),
    "cells": (Marginals(2), 3, (4, 0, 1, 2, 0, 3, 1, 1), 5, 3),
    "steep": (Parities(2), 3, (7, 1, 0, 0, 2, 0, 5, 9), 6, 3),
    "flat": (Conjunctions(1), 3, (2, 1, 1, 1, 0, 1, 1, 1), 4, "1/10"),
    "four": (Conjunctions(2), 4, (9, 0, 1, 3, 2, 2, 0, 0, 5, 1, 1, 1, 0, 4, 2, 6), 5, 5),
}


def instance(name):
    queries, d, histogram, rows, epsilon = INSTANCES[name]
    data = counted(flags(d), histogram)
    workload = queries.workload(data.domain)
    answers = workload.answers(data)
    census = count_candidates(workload, data, rows, "multisets", "dynamic", keep_layers=True, threads=1)
    scores = Scores.build(workload.matrix(), answers, data.n, rows)
    return scores, census, Fraction(epsilon) / (2 * rows * workload.denominator), (workload, answers, data.n)


def distance(drawn, census, rate):
    """How far the drawn levels are from the exact law."""
    law = naive.fraction_law(dict(zip(census.levels.tolist(), census.counts, strict=True)), rate)
    return chi_square(drawn, law)


def drawn(found, seed, times=1000):
    """The scores of draws; which candidate of its level the head gives is left out: that takes longest."""
    source = SeededBits(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dynamic, "candidate", lambda self, rank, index: None)
        return Counter(found.draw(source)[1] for _ in range(times))


@pytest.mark.slow
@pytest.mark.parametrize("name", INSTANCES)
@pytest.mark.parametrize("part", [Fraction(1, 8), Fraction(1, 2)])
def test_the_law_is_that_of_the_census_whatever_the_cut(name, part):
    scores, census, rate, _ = instance(name)
    cut = int(len(census.levels) * part)
    cut = int(np.searchsorted(scores.levels, census.levels[cut]))
    found = sampler(scores, rate, cut)
    assert found.tail is not None
    assert abs(distance(drawn(found, 1), census, rate)) < 4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tiny", "skewed", "cells"])
def test_without_a_head_the_law_is_the_same(name):
    scores, census, rate, _ = instance(name)
    found = module.HeadAndTail(scores, rate, {}, int(census.levels[0]))
    assert abs(distance(drawn(found, 2, 300), census, rate)) < 4


@pytest.mark.parametrize("name", INSTANCES)
def test_a_head_that_holds_everything_draws_as_the_census_does(name):
    scores, census, rate, _ = instance(name)
    found, ours, theirs = sampler(scores, rate, len(scores.levels) - 1), SeededBits(6), SeededBits(6)
    assert found.tail is None
    assert (list(found.head), tuple(found.head.values())) == (census.levels.tolist(), census.counts)
    counts = dict(zip(census.levels.tolist(), census.counts, strict=True))
    for _ in range(20):
        candidate, score = found.draw(ours)
        level = draw_level(counts, rate, theirs)
        assert score == level
        assert candidate.tolist() == census.candidate(level, uniform_below(counts[level], theirs)).tolist()
    assert ours.bits(64) == theirs.bits(64)


@pytest.fixture
def eager(monkeypatch):
    """Count as long as there is a tail."""
    monkeypatch.setattr(module, "TRIAL", 1)
    monkeypatch.setattr(module, "expected_trials", lambda found, pilot: 0 if found.tail is None else math.inf)
    monkeypatch.setattr(module, "overhead", lambda workload, rows, candidates: 0)


def prepared(name):
    _, census, rate, (workload, answers, n) = instance(name)
    found = multiset_sampler(workload, answers, n, census.rows, INSTANCES[name][4])
    assert found.rate == rate
    return found, census


@pytest.mark.parametrize(("spare", "levels"), [(0, [0]), (2500, range(1, 20)), (10**9, [None])])
def test_any_budget_serves_the_same_law(monkeypatch, eager, spare, levels):
    monkeypatch.setattr(module, "OPERATIONS", module.PILOT + spare)
    found, census = prepared("cells")
    assert (len(found.head) if found.tail else None) in levels
    assert abs(distance(drawn(found, 7, 300), census, found.rate)) < 4


@pytest.mark.parametrize("limit, most", [("MEMORY", 1000), ("MAX_KEY_BITS", 10)])
def test_a_head_that_takes_too_much_is_left_out(monkeypatch, eager, limit, most):
    monkeypatch.setattr(module, limit, most)
    assert not prepared("four")[0].head


def test_a_cheap_tail_is_not_counted():
    assert not prepared("flat")[0].head


@pytest.mark.parametrize("threads", [1, 2])
def test_a_count_stops_at_its_limit(threads):
    scores, _, _, _ = instance("four")
    cost = count_scores(scores, threads=1).cost
    enough = Limit(cost.operations, 1 << 40)
    assert count_scores(scores, threads=threads, limit=enough).cost.operations == cost.operations
    for limit in (Limit(cost.operations // 2, 1 << 40), Limit(1 << 40, cost.states * 16 // 2), Limit(0, 0)):
        with pytest.raises(BeyondLimit):
            count_scores(scores, threads=threads, limit=limit)


def test_a_steep_rate_and_a_flat_one():
    scores, census, _, _ = instance("skewed")
    best = int(census.levels[0])
    cut = int(np.searchsorted(scores.levels, best))
    assert drawn(sampler(scores, Fraction(10) ** 400, cut), 8, 20) == {best: 20}
    flat = drawn(sampler(scores, Fraction(1, 10**400), cut), 9)
    assert abs(distance(flat, census, Fraction(0))) < 4


def test_no_query_and_no_data_leave_all_candidates_alike():
    for matrix, data in (([], [1, 2, 3]), ([[0, 1, 1], [1, 0, 2]], [0, 0, 0])):
        matrix = np.array(matrix, dtype=np.int64).reshape(-1, 3)
        scores, _ = posed(matrix, data, 2)
        found = sampler(scores, Fraction(1), 0)
        assert found.tail is None
        assert found.head == {0: 6}
        without = module.HeadAndTail(scores, Fraction(1), {}, 0)
        candidate, score = without.draw(SeededBits(1))
        assert (candidate.sum(), score) == (2, 0)


def test_progress_shows_the_time_alone(capsys):
    _, census, _, (workload, answers, n) = instance("four")
    multiset_sampler(workload, answers, n, census.rows, 5, progress=True)
    shown = capsys.readouterr().err.replace("\r", " ").split()
    assert "elapsed" in shown
    assert set(shown) - {"elapsed"} <= {f"00:{second:02}" for second in range(60)}
    assert "tqdm" in sys.modules


def test_what_is_capable_is_public_and_served():
    def asked(queries, d, n, rows, epsilon, valid=None):
        return capable(queries.workload(flags(d, valid)), n, rows, epsilon)

    for d, kinds in ROWS.items():
        for kind, rows in kinds:
            assert asked(kind, d, 1000, rows, 1)
            assert asked(kind, d, 1000, 1, 10**6)
            assert not asked(kind, d, 1000, rows + 1, 1)
    assert not asked(Conjunctions(3), 5, 1000, 4, 1)
    assert not asked(Conjunctions(2, exactly=True), 5, 1000, 4, 1)
    assert not asked(Conjunctions(2), 5, 1000, 4, 1, "~(x0 & x1)")
    assert not asked(Conjunctions(2), 8, 1000, 4, 1)
    assert asked(Conjunctions(3), 8, 24, 30, 1)
    assert asked(Conjunctions(2), 5, 240, 30, "1/10", "~(x0 & x1)")
    assert not asked(Conjunctions(3), 8, 25, 30, 1)
    assert not asked(Conjunctions(2), 8, 1 << 60, 30, Fraction(1, 1 << 60))
    assert not asked(Conjunctions(1), 11, 10, 3, 1)
    assert not asked(Conjunctions(1), 3, 10, 1 << 11, 1)
    with pytest.raises(ValueError, match="epsilon"):
        asked(Conjunctions(2), 4, 1000, 10, 0)


def test_scores_beyond_62_bits_are_refused():
    _, _, _, (workload, answers, _) = instance("skewed")
    with pytest.raises(ValueError, match=r"reach 2\^62"):
        multiset_sampler(workload, answers, 1 << 60, 6, 1)


def test_a_large_denominator_is_refused_as_many_rows_are():
    workload = Linear([[0, Fraction(1, 1 << 58)]]).workload(flags(1))
    with pytest.raises(ValueError, match=r"reach 2\^62"):
        multiset_sampler(workload, np.array([1]), 4, 4, 1)
