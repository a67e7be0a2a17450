import math
import pickle
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product

import naive
import numpy as np
import pytest
from builders import census_of, posed
from hypothesis import given, settings
from hypothesis import strategies as st

from smalldb.counting import recursion as module
from smalldb.counting.dynamic_engine import count_scores, count_shard
from smalldb.counting.enumeration_engine import enumerate_scores
from smalldb.counting.recursion import MAX_KEY_BITS, Cost, key_bits, state_bytes
from smalldb.kernels import census_layers as kernels

# counts and hashes wrap within a word on purpose; uncompiled, numpy warns of it
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

BASES = {"multisets": naive.census, "tuples": naive.ordered_census}
bases = pytest.mark.parametrize("candidates", BASES)


def orderings(candidate):
    return math.factorial(sum(candidate)) // math.prod(map(math.factorial, candidate))


@st.composite
def instances(draw, most_cells=5, most_rows=4):
    """A few distinct columns, some repeated, in any order, with weights 0 to 3."""
    queries, distinct = draw(st.integers(0, 3)), draw(st.integers(1, 4))
    column = st.lists(st.integers(0, 3), min_size=queries, max_size=queries)
    columns = draw(st.lists(column, min_size=distinct, max_size=distinct))
    cells = draw(st.lists(st.sampled_from(columns), min_size=1, max_size=most_cells))
    data = draw(st.lists(st.integers(0, 4), min_size=len(cells), max_size=len(cells)))
    matrix = [[cell[j] for cell in cells] for j in range(queries)]
    return matrix, data, draw(st.integers(1, most_rows))


@pytest.mark.slow
@given(
    instance=instances(),
    candidates=st.sampled_from(sorted(BASES)),
    shards=st.integers(1, 9) | st.just(1000),
)
@settings(max_examples=250, deadline=None)
def test_equals_the_definition(instance, candidates, shards):
    matrix, data, rows = instance
    scores, (*arguments, _, _) = posed(matrix, data, rows)
    counted = count_scores(scores, candidates=candidates, threads=1, shards=shards)
    assert census_of(scores, counted) == dict(BASES[candidates](*arguments, len(data), rows))
    assert all(type(count) is int for count in counted.counts)


@pytest.mark.slow
@bases
@given(instance=instances(), seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_two_words_two_limbs_and_any_order_of_the_cells(candidates, instance, seed):
    matrix, data, rows = instance
    scores, (*arguments, _, _) = posed(matrix, data, rows)
    order = np.random.default_rng(seed).permutation(len(data))
    scores = replace(scores, cells=scores.cells[order], weights=scores.weights[order])
    with pytest.MonkeyPatch.context() as patch:
        layout = module.layout
        patch.setattr(module, "layout", lambda scores: ([64 + at for at in layout(scores)[0]], 128))
        patch.setattr(module, "key_bits", lambda scores: 128)
        recursion = module.Recursion.build(scores, candidates)
    recursion = replace(recursion, limbs=2)
    layers = list(recursion.run((), Cost()))
    assert layers[-1][0][0].shape[1] == layers[-1][0][1].shape[1] == 2
    counts = recursion.tally(layers[-1])
    expected = BASES[candidates](*arguments, len(data), rows)
    assert {int(s): c for s, c in zip(scores.levels, counts, strict=True) if c} == dict(expected)
    rank = seed % len(counts)
    seen = Counter(
        naive.score(*arguments, recursion.trace((), layers, rank, index).tolist())
        for index in range(min(counts[rank], 10))
    )
    assert seen == Counter({int(scores.levels[rank]): min(counts[rank], 10)})


@bases
def test_bytes_of_a_state(candidates):
    for cells, rows in [(3, 4), (3, 41), (40, 40)]:
        scores, _ = posed([[0, 1] * (cells // 2) + [1] * (cells % 2)], [1] * cells, rows)
        layer = module.Recursion.build(scores, candidates).opening(())[0]
        assert state_bytes(scores, candidates) == sum(array.nbytes for array in layer)


@given(
    instance=instances(most_cells=4, most_rows=3),
    candidates=st.sampled_from(sorted(BASES)),
    shards=st.integers(1, 5),
    keep=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_candidate_is_a_bijection(instance, candidates, shards, keep):
    matrix, data, rows = instance
    scores, (*arguments, _, _) = posed(matrix, data, rows)
    counted = count_scores(scores, candidates=candidates, threads=1, shards=shards, keep_layers=keep)
    seen = Counter()
    for rank, count in enumerate(counted.counts):
        for index in range(count):
            candidate = counted.candidate(rank, index)
            assert candidate.dtype == np.int64
            assert naive.score(*arguments, candidate.tolist()) == scores.levels[rank]
            seen[tuple(candidate.tolist())] += 1
    ways = orderings if candidates == "tuples" else lambda candidate: 1
    assert seen == {candidate: ways(candidate) for candidate in naive.multisets(len(data), rows)}


@pytest.mark.parametrize("count, said", [(count_scores, "no candidate"), (enumerate_scores, "rank must be")])
def test_candidate_refuses_what_does_not_exist(count, said):
    scores, _ = posed([[0, 1, 1]], [1, 2, 0], 2)
    counted = count(scores, threads=1)
    for rank, index in [(-1, 0), (len(counted.counts), 0), (0, counted.counts[0]), (0, -1)]:
        with pytest.raises(IndexError, match=said):
            counted.candidate(rank, index)


@bases
def test_keys_of_two_words(candidates):
    matrix = np.random.default_rng(1).integers(0, 8, (14, 5))
    scores, (*arguments, _, _) = posed(matrix, [5, 1, 0, 3, 2], 4)
    assert 64 < key_bits(scores) <= MAX_KEY_BITS
    counted = count_scores(scores, candidates=candidates, threads=1, keep_layers=True)
    assert census_of(scores, counted) == dict(BASES[candidates](*arguments, 5, 4))
    rank = max(range(len(counted.counts)), key=counted.counts.__getitem__)
    candidate = counted.candidate(rank, counted.counts[rank] - 1)
    assert naive.score(*arguments, candidate.tolist()) == scores.levels[rank]


def test_wider_keys_are_refused_whatever_the_data():
    matrix = np.random.default_rng(1).integers(0, 8, (40, 6))
    widths = set()
    for data in ([5, 1, 0, 3, 2, 2], [0, 0, 13, 0, 0, 0]):
        scores, _ = posed(matrix, data, 12)
        widths.add(key_bits(scores))
        with pytest.raises(ValueError, match=r"keys of .* bits, more than 128: use fewer queries or rows"):
            count_scores(scores)
    assert len(widths) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "candidates, cells, rows, limbs", [("multisets", 24, 60, 2), ("tuples", 3, 64, 2), ("tuples", 5, 70, 3)]
)
def test_counts_beyond_a_word(candidates, cells, rows, limbs):
    generator = np.random.default_rng(cells)
    matrix = generator.integers(0, 2, (1, cells)).tolist()
    data = generator.integers(0, 9, cells).tolist()
    scores, (*arguments, _, _) = posed(matrix, data, rows)
    counted = count_scores(scores, candidates=candidates, threads=1, keep_layers=True)
    (answer,), n, ones = *arguments[1:], sum(matrix[0])
    expected = Counter()
    for held in range(rows + 1):  # by how many rows hold
        ways = math.comb(rows, held) * ones**held * (cells - ones) ** (rows - held)
        if candidates == "multisets":
            others = math.comb(cells - ones + rows - held - 1, rows - held)
            ways = math.comb(ones + held - 1, held) * others
        expected[abs(rows * answer - n * held)] += ways
    total = math.comb(cells + rows - 1, rows) if candidates == "multisets" else cells**rows
    assert sum(counted.counts) == total > 1 << 64 * (limbs - 1)
    assert census_of(scores, counted) == expected
    rank = max(range(len(counted.counts)), key=counted.counts.__getitem__)
    drawn = {tuple(counted.candidate(rank, counted.counts[rank] * i // 5).tolist()) for i in range(5)}
    assert len(drawn) == 5
    assert {naive.score(*arguments, candidate) for candidate in drawn} == {scores.levels[rank]}


@bases
def test_result_does_not_depend_on_threads_executor_or_shards(candidates, monkeypatch):
    scores, (*arguments, _, _) = posed(naive.conjunctions(3, 2), [3, 0, 1, 4, 0, 0, 2, 1], 4)
    expected = BASES[candidates](*arguments, 8, 4)
    monkeypatch.setattr(module, "THREADED", 1)
    plain = count_scores(scores, candidates=candidates, threads=1)
    assert census_of(scores, plain) == dict(expected)
    threaded = count_scores(scores, candidates=candidates, threads=3)
    assert (threaded.counts, threaded.cost) == (plain.counts, plain.cost)
    for shards in (1, 2, 7):
        with ThreadPoolExecutor(2) as executor:
            split = count_scores(scores, candidates=candidates, executor=executor, shards=shards)
        assert split.counts == plain.counts
        candidate = split.candidate(len(split.counts) - 1, split.counts[-1] - 1)
        assert naive.score(*arguments, candidate.tolist()) == scores.levels[-1]


def test_a_shard_can_be_sent_to_another_process():
    scores, _ = posed([[0, 1, 2], [1, 1, 0]], [2, 1, 3], 3)
    copy = pickle.loads(pickle.dumps(partial(count_shard, scores, (1,))))
    assert copy() == count_shard(scores, (1,))


def test_law_of_multisets_and_of_ordered_rows(vectors):
    vector = vectors["multiset_vs_ordered"]["value"]
    scores, _ = posed([[0, 1]], [3, 1], 2)
    for candidates, name in (("multisets", "multiset"), ("tuples", "ordered")):
        counted = count_scores(scores, candidates=candidates, threads=1, keep_layers=True)
        census = census_of(scores, counted)
        law = naive.fraction_law(census, Fraction(1, 4))
        mass = Counter()
        for rank, count in enumerate(counted.counts):
            for index in range(count):
                candidate = tuple(counted.candidate(rank, index).tolist())
                mass[candidate] += law[int(scores.levels[rank])] / count
        for candidate, expected in zip(vector["candidates"], vector[name], strict=True):
            assert abs(mass[tuple(candidate)] - Fraction(expected)) < Fraction(1, 10**18)


def test_unknown_candidates_are_refused():
    scores, _ = posed([[0, 1]], [1, 2], 2)
    with pytest.raises(ValueError, match="'multisets' or 'tuples', not 'rows'"):
        count_scores(scores, candidates="rows")


def test_states_with_the_same_future_are_joined():
    scores, _ = posed(naive.conjunctions(3, 2), [30, 0, 10, 4, 0, 0, 2, 1], 8)
    recursion = module.Recursion.build(scores, "multisets")
    candidates_after_four_cells = math.comb(8 + 4, 4)
    layers = list(recursion.run((), Cost()))[4]
    assert sum(len(keys) for keys, _ in layers) < candidates_after_four_cells // 2
    assert sum(sum(numbers(counts)) for _, counts in layers) == candidates_after_four_cells


def numbers(counts):
    return [sum(int(limb) << 64 * i for i, limb in enumerate(row)) for row in counts]


def arrays(values, words):
    return np.array(
        [[value >> 64 * word & (1 << 64) - 1 for word in range(words)] for value in values], dtype=np.uint64
    ).reshape(len(values), words)


def test_carries_run_through_full_limbs():
    full = (1 << 64) - 1
    limbs = (0, 1, full - 1, full)
    for low, middle, more_low, more_middle in product(limbs, repeat=4):
        values = low | middle << 64 | 5 << 128, more_low | more_middle << 64 | 7 << 128
        totals = arrays(values[:1], 3)
        kernels.add_row(totals, 0, arrays(values[1:], 3), 0)
        assert numbers(totals) == [sum(values)]
