import os
import pickle
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import comb

import naive
import numpy as np
import pandas as pd
import pytest
from builders import census_of, flags, posed
from hypothesis import given, settings
from hypothesis import strategies as st

from queries import Conjunctions, Marginals, Thresholds
from smalldb.counting import census, multisets
from smalldb.counting import enumeration_engine as enumeration
from smalldb.counting.dynamic_engine import count_scores
from smalldb.counting.enumeration_engine import enumerate_scores, prepare, tally_shard


def random_matrix(seed, queries, cells, top):
    return np.random.default_rng(seed).integers(0, top + 1, size=(queries, cells)).tolist()


# name: (D times the queries over the cells, the data as counts over the cells, m)
CASES = {
    "conjunctions": (naive.conjunctions(3, 2), [20, 5, 3, 2, 4, 1, 2, 3], 4),
    "all conjunctions, m > n": (naive.conjunctions(3, 3), [1, 0, 0, 0, 0, 1, 0, 1], 5),
    "thresholds": (Thresholds().workload(flags(3)).matrix().tolist(), [2, 1, 0, 4, 0, 0, 1, 2], 4),
    "two-way cells": (
        Marginals(2, exactly=True).workload(flags(3)).matrix().tolist(),
        [4, 0, 1, 2, 0, 3, 1, 1],
        3,
    ),
    "random 0/1": (random_matrix(1, 7, 6, 1), [3, 0, 9, 1, 0, 2], 6),
    "random weights": (random_matrix(2, 4, 6, 12), [3, 0, 9, 1, 0, 2], 5),
    "weights without zero": ([[4, 6, 8, 6], [3, 3, 2, 3], [5, 5, 9, 1]], [7, 0, 2, 5], 7),
    "two-byte ranks": (random_matrix(3, 5, 5, 60), [100, 40, 3, 2, 900], 5),
    "four-byte ranks": (random_matrix(4, 4, 4, 5000), [100, 40, 3, 2], 5),
    "equal columns": ([[0, 1, 1, 0, 1], [1, 1, 1, 1, 1], [1, 0, 0, 1, 0]], [2, 3, 0, 1, 6], 5),
    "constant queries": ([[1, 1, 1], [0, 0, 0], [2, 2, 2]], [2, 3, 4], 5),
    "settled by the first cell": ([[1, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0]], [2, 3, 4, 1], 6),
    "no query": ([], [2, 3, 4, 1], 4),
    "no data": (naive.conjunctions(2, 2), [0, 0, 0, 0], 5),
    "one cell": ([[1], [3]], [5], 4),
    "two cells": ([[1, 0], [0, 1]], [5, 2], 30),
    "one row": (naive.conjunctions(3, 2), [20, 5, 3, 2, 4, 1, 2, 3], 1),
}


def listed(scores, found):
    """The candidates of each score, as the enumeration lists them."""
    return {
        level: [tuple(found.candidate(rank, i).tolist()) for i in range(count)]
        for rank, (level, count) in enumerate(zip(scores.levels.tolist(), found.counts, strict=True))
        if count
    }


def listed_naively(scores, matrix, answers, n, cells, rows):
    """The multisets of each score, in the order of `naive.multisets` over the cells as processed."""
    groups = {}
    for processed in naive.multisets(cells, rows):
        candidate = [0] * cells
        for cell, count in zip(scores.cells.tolist(), processed, strict=True):
            candidate[cell] = count
        groups.setdefault(naive.score(matrix, answers, n, candidate), []).append(tuple(candidate))
    return groups


@pytest.fixture(params=CASES, ids=str)
def case(request):
    return posed(*CASES[request.param])


def test_complete_tables(case):
    scores, lists = case
    found = enumerate_scores(scores)
    assert census_of(scores, found) == naive.census(*lists)
    assert all(type(count) is int for count in found.counts)
    assert listed(scores, found) == listed_naively(scores, *lists)


@pytest.mark.slow
def test_any_tail_and_shard(case, monkeypatch):
    """Where the walk ends and the tables begin, and where shards are cut, changes nothing."""
    scores, lists = case
    expected = naive.census(*lists)
    total = sum(expected.values())
    for tail in range(1, len(scores.cells) + 1):
        monkeypatch.setattr(enumeration, "tail_cells", lambda *_, tail=tail: tail)
        for shard in {1, 7, 100, total}:
            found = enumerate_scores(scores, shard=shard)
            assert census_of(scores, found) == expected
        assert listed(scores, enumerate_scores(scores, shard=50)) == listed_naively(scores, *lists)


LARGE = [pytest.param(65_536, marks=pytest.mark.long), pytest.param(65_537, marks=pytest.mark.slow)]


@pytest.mark.parametrize("entries", [255, 256, 257, 65_535, *LARGE])
def test_the_width_of_a_rank(entries):
    """All entries are different levels, and the last is the rank of a candidate."""
    scores, lists = posed([[0, 1, entries - 1]], [1, 0, 0], 1)
    assert len(scores.ranks) == len(scores.levels) == entries
    found = enumerate_scores(scores)
    assert census_of(scores, found) == naive.census(*lists)
    assert listed(scores, found) == listed_naively(scores, *lists)


@st.composite
def instances(draw):
    cells, rows = draw(st.sampled_from([(1, 9), (2, 8), (3, 5), (4, 4), (5, 3), (7, 2), (12, 1)]))
    top = draw(st.sampled_from([1, 1, 3, 100]))
    line = st.lists(st.integers(0, top), min_size=cells, max_size=cells)
    matrix = draw(st.lists(line, max_size=5))
    return matrix, draw(st.lists(st.integers(0, 9), min_size=cells, max_size=cells)), rows


@pytest.mark.slow
@settings(max_examples=60)
@given(instances(), st.integers(1, 30), st.randoms(use_true_random=False))
def test_random_instances(instance, shard, chance):
    scores, lists = posed(*instance)
    found = enumerate_scores(scores, shard=shard)
    expected = listed_naively(scores, *lists)
    assert census_of(scores, found) == Counter({level: len(group) for level, group in expected.items()})
    for rank, (level, count) in enumerate(zip(scores.levels.tolist(), found.counts, strict=True)):
        if count:
            index = chance.randrange(count)
            assert tuple(found.candidate(rank, index).tolist()) == expected[level][index]


def test_an_executor_of_the_caller_walks_and_is_left_open():
    scores, lists = posed(*CASES["thresholds"])
    started = []
    with ThreadPoolExecutor(2, initializer=started.append, initargs=(None,)) as pool:
        found = enumerate_scores(scores, executor=pool, shard=50)
        assert started
        assert pool.submit(int).result() == 0
    assert census_of(scores, found) == naive.census(*lists)


@pytest.mark.parametrize("shards", [2, 5, 1000])
def test_at_least_so_many_shards(shards, monkeypatch):
    monkeypatch.setattr(enumeration, "tail_cells", lambda *_: 1)  # 330 candidates, as many leaves
    monkeypatch.setattr(
        enumeration, "tally_shard", lambda walk, cells, levels, shard: walked.append(shard) or 0
    )
    walked = []
    scores, _ = posed(*CASES["thresholds"])
    enumerate_scores(scores, threads=1, shards=shards)
    assert len(walked) >= min(shards, 330)
    assert [stop for _, stop in walked] == [*(start for start, _ in walked[1:]), 330]


@pytest.mark.slow
def test_more_candidates_than_can_be_seen():
    """A query that settles with the first cell leaves the rest to one binomial."""
    rows, cells = 40, 24
    scores, _ = posed([[1] + [0] * (cells - 1)], [1] * cells, rows)
    found = enumerate_scores(scores)
    with_copies = [comb(cells - 2 + rows - u, rows - u) for u in range(rows + 1)]
    expected = Counter()
    for copies, count in enumerate(with_copies):
        expected[abs(rows - cells * copies)] += count
    assert census_of(scores, found) == expected
    assert sum(found.counts) == multisets.count(cells, rows) > 1 << 55
    last = max(expected)
    assert found.candidate(len(scores.levels) - 1, expected[last] - 1)[0] == rows


def test_a_shard_can_be_sent_to_another_process():
    scores, _ = posed(*CASES["thresholds"])
    sent = pickle.dumps(partial(tally_shard, prepare(scores), len(scores.cells), len(scores.levels)))
    tally = pickle.loads(sent)((0, multisets.count(8, 4)))
    assert tuple(tally.tolist()) == enumerate_scores(scores).counts


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # where nothing is compiled
@pytest.mark.parametrize(("count", "units"), [(enumerate_scores, " 330/330 "), (count_scores, "40/40")])
def test_progress_is_public_and_says_nothing_else(count, units, capsys):
    scores, _ = posed(*CASES["thresholds"])
    found = count(scores, threads=1)
    assert capsys.readouterr() == ("", "")
    assert str(found.counts) not in repr(found) and "cost" not in repr(found).lower()
    with ThreadPoolExecutor(1) as executor:
        for given in ({"threads": 1}, {"executor": executor}):
            count(scores, **given, shards=2, progress=True)
            output = capsys.readouterr()
            assert output.out == "" and "100%" in output.err and units in output.err


def test_an_interrupt_cancels_the_rest(monkeypatch):
    monkeypatch.setattr(enumeration, "tail_cells", lambda *_: 1)
    scores, _ = posed(*CASES["thresholds"])
    started = []

    def slow_shard(walk, cells, levels, shard):
        started.append(shard)
        if len(started) == 2:
            raise KeyboardInterrupt
        time.sleep(0.02)
        return np.zeros(levels, dtype=np.int64)

    monkeypatch.setattr(enumeration, "tally_shard", slow_shard)
    with pytest.raises(KeyboardInterrupt):
        enumerate_scores(scores, threads=1, shard=1)
    assert 2 <= len(started) < 330 / 2


WRAPS = pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="its sums wrap around in compiled code")


@pytest.mark.parametrize("engine", ["enumeration", pytest.param("dynamic", marks=WRAPS)])
def test_a_census_travels_without_its_tables(engine):
    frame = pd.DataFrame({name: [0, 1, 1, i % 2] for i, name in enumerate("abcd")})
    found = census(frame, Conjunctions(2), rows=3, engine=engine)
    level = int(found.levels[1])
    drawn = [found.candidate(level, i).tolist() for i in range(min(20, found.counts[1]))]  # keeps layers
    sent = pickle.dumps(found)
    assert len(sent) < 60_000
    again = pickle.loads(sent)
    assert (again.counts, again.levels.tolist()) == (found.counts, found.levels.tolist())
    assert [again.candidate(level, i).tolist() for i in range(len(drawn))] == drawn


# Multisets by their position


@pytest.mark.parametrize("cells", range(1, 6))
@pytest.mark.parametrize("rows", range(6))
def test_against_the_definition(cells, rows):
    expected = list(naive.multisets(cells, rows))
    assert list(multisets.iterate(cells, rows)) == expected
    assert multisets.count(cells, rows) == len(expected)
    assert [multisets.rank(counts) for counts in expected] == list(range(len(expected)))
    assert [multisets.unrank(i, cells, rows) for i in range(len(expected))] == expected


@st.composite
def positions(draw):
    cells, rows = draw(st.integers(1, 70_000)), draw(st.integers(0, 60))
    return draw(st.integers(0, comb(cells + rows - 1, rows) - 1)), cells, rows


@given(positions())
def test_rank_inverts_unrank(position):
    index, cells, rows = position
    counts = multisets.unrank(index, cells, rows)
    assert len(counts) == cells
    assert sum(counts) == rows
    assert min(counts) >= 0
    assert multisets.rank(counts) == index


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=30))
def test_unrank_inverts_rank(counts):
    assert multisets.unrank(multisets.rank(counts), len(counts), sum(counts)) == tuple(counts)


@pytest.mark.parametrize(("cells", "rows"), [(65536, 40), (40, 65536), (2, 10**9), (1, 10**9), (16, 1000)])
def test_big_sizes(cells, rows):
    total = comb(cells + rows - 1, cells - 1)
    assert multisets.count(cells, rows) == total
    assert multisets.unrank(0, cells, rows) == (rows,) + (0,) * (cells - 1)
    assert multisets.unrank(total - 1, cells, rows) == (0,) * (cells - 1) + (rows,)
    assert multisets.rank((0,) * (cells - 1) + (rows,)) == total - 1
    assert multisets.rank(multisets.unrank(total // 3, cells, rows)) == total // 3


def test_bad_sizes():
    of_two = [("count", 0, 3), ("count", 3, -1), ("iterate", 0, 0), ("iterate", 2, -1)]
    for name, *sizes in [*of_two, ("unrank", 0, 0, 1), ("rank", ()), ("rank", (2, -1))]:
        with pytest.raises(ValueError, match="must be"):
            getattr(multisets, name)(*sizes)


@pytest.mark.parametrize("index", [-1, 10, 10**30])
def test_index_out_of_range(index):
    with pytest.raises(IndexError, match="index"):
        multisets.unrank(index, 3, 3)
