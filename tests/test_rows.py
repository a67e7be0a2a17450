"""Distinct packed rows with counts, however the table arrives."""

import pickle
from collections import Counter
from functools import reduce

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import smalldb
from queries import Column, DataError, Domain, Rows
from queries.encoding import merge, merge_runs
from queries.query import pair_tables
from queries.rows import MAX_TOTAL, pack, tabulated, unpack


def table(seed, rows, attributes):
    bits = np.random.default_rng(seed).integers(0, 2, size=(rows, attributes))
    return pd.DataFrame(bits, columns=[f"x{i}" for i in range(attributes)])


def counted(frame):
    """Row code -> count, with Python ints."""
    return Counter(int("".join(map(str, row)), 2) for row in frame.to_numpy().tolist())


def codes(rows):
    """The same from packed rows."""
    return {
        sum(int(word) << 64 * (rows.words.shape[1] - 1 - i) for i, word in enumerate(words)): int(count)
        for words, count in zip(rows.words, rows.counts, strict=True)
    }


@pytest.mark.slow
@given(st.integers(0, 99), st.integers(0, 40), st.sampled_from([1, 3, 8, 63, 64, 65, 128, 130]))
def test_rows_count_the_table(seed, n, attributes):
    frame = table(seed, n, attributes)
    frame = pd.concat([frame, frame[::3]])
    domain = Domain(frame.columns)
    rows = Rows.from_frame(domain, frame)
    assert codes(rows) == counted(frame)
    assert list(codes(rows)) == sorted(codes(rows))
    assert rows.n == len(frame)
    parts = [Rows.from_frame(domain, frame[i : i + 7]) for i in range(0, len(frame), 7)]
    in_chunks = reduce(Rows.plus, parts, Rows.from_frame(domain, frame[:0]))
    assert codes(in_chunks) == codes(rows)
    assert unpack(pack(rows.bits()), attributes).tolist() == rows.bits().tolist()


@given(st.lists(st.integers(0, 5), min_size=8, max_size=8))
def test_aggregated_counts_are_the_repeated_table(counts):
    domain = Domain(["a", "b", "c"])
    cells = domain.decode(domain.table())
    whole = Rows.from_frame(domain, cells.loc[cells.index.repeat(counts)])
    given_counts = Rows.from_counts(domain, cells, counts)
    assert codes(given_counts) == codes(whole)
    assert given_counts.histogram().tolist() == counts
    some = Domain(["a", "b", "c"], valid="b")
    assert Rows.from_counts(some, some.decode(some.table()), counts[:4]).histogram().tolist() == counts[:4]


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize(("first", "second"), [(0, 0), (0, 5), (7, 0), (3, 40), (40, 3), (60, 60)])
def test_runs_come_together_as_their_concatenation_does(first, second, width):
    rng = np.random.default_rng(first + second)
    runs = [
        merge(rng.integers(0, 50, (many, width), dtype=np.uint64), rng.integers(1, 9, many))
        for many in (first, second)
    ]
    words, counts = merge_runs(*runs[0], *runs[1])
    expected = merge(*(np.concatenate(parts) for parts in zip(*runs, strict=True)))
    assert (words.tolist(), counts.tolist()) == tuple(part.tolist() for part in expected)
    assert (words.dtype, counts.dtype) == (np.uint64, np.int64)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        *(([bad, 1], "whole numbers, none negative") for bad in (-1, 1.5, True, None, "1")),
        ([2**61, 2**61], r"2\^62"),
        ([1], "one for each row"),
    ],
)
def test_bad_counts_are_refused(counts, message):
    with pytest.raises(DataError, match=message):
        Rows.from_counts(Domain(["a"]), pd.DataFrame({"a": [0, 1]}), counts)


def test_repr_tells_nothing_and_arrays_are_read_only():
    rows = Rows.from_frame(Domain(["a"]), pd.DataFrame({"a": [0] * 31 + [1] * 6}))
    assert repr(rows) == "<Rows over 1 attributes: private>"
    for array in (rows.words, rows.counts):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 5
    assert codes(pickle.loads(pickle.dumps(rows))) == codes(rows)  # for other processes: it is the data


def by_hand(domain, codes, counts):
    words = np.array([[code] for code in codes], dtype=np.uint64)
    return Rows(domain, words, np.array(counts, dtype=np.int64))


def test_rows_made_by_hand_are_added_up_before_a_release():
    domain = Domain(["a", "b"])
    odd = by_hand(domain, [3, 0, 3, 1], [2, 1, 4, 0])
    assert odd.histogram().tolist() == [1, 0, 0, 6]
    sound = odd.checked()
    assert codes(sound) == {0: 1, 3: 6}
    assert sound.checked() is sound
    released = [
        smalldb.release(rows, "conjunctions:2", epsilon=1, rows=3, rng=5).data.to_numpy().tolist()
        for rows in (odd, sound)
    ]
    assert released[0] == released[1]


@pytest.mark.parametrize(
    ("domain", "codes", "counts"),
    [
        (Domain(["a", "b"]), [4], [1]),  # bits beyond the columns
        (Domain(["a", "b"], valid="~(a & b)"), [3], [1]),
        (Domain([Column("size", ["s", "m", "l"])]), [3], [1]),
        (Domain(["a", "b"]), [1, 2], [3, -1]),
        (Domain(["a", "b"]), [1, 2], [1 << 61, 1 << 61]),
    ],
)
def test_rows_made_by_hand_outside_their_domain_are_refused(domain, codes, counts):
    with pytest.raises(DataError, match=r"that valid rules out|rows break rule 1|must not be negative"):
        by_hand(domain, codes, counts).checked()
    with pytest.raises(DataError, match="in a cell that valid rules out"):
        smalldb.release(by_hand(Domain(["a", "b"]), [4], [1]), epsilon=1, rows=3)


def test_rows_made_by_hand_of_another_form_are_refused():
    domain = Domain(["a", "b"])
    for words, counts in (
        (np.zeros((1, 2), dtype=np.uint64), np.ones(1, dtype=np.int64)),
        (np.zeros((1, 1), dtype=np.int64), np.ones(1, dtype=np.int64)),
        (np.zeros((1, 1), dtype=np.uint64), np.ones(2, dtype=np.int64)),
        (np.zeros((1, 1), dtype=np.uint64), np.ones(1)),
    ):
        with pytest.raises(ValueError, match="uint64 words"):
            Rows(domain, words, counts).checked()


SIZES = {
    "yes/no": [2] * 14,
    "small": [4, 3, 5, 2, 4, 4, 2, 3],
    "groups that end at a large column": [4, 4, 300, 2, 2, 2, 65, 3],
    "one pair": [7, 9],
}


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("rows", [0, 1, 5, 3_000, 70_000])
def test_each_pair_has_the_table_of_its_own_count(sizes, rows):
    """Groups within one, between two, cut by the number of rows, and rows in several pieces."""
    rng = np.random.default_rng(rows)
    domain = Domain([Column(f"c{c}", [f"{i}" for i in range(size)]) for c, size in enumerate(sizes)])
    codes = np.stack([rng.integers(0, size, rows) for size in sizes], axis=1).astype(np.uint16)
    counts = rng.integers(1, 9, rows)
    pairs = [(a, b) for b in range(len(sizes)) for a in range(b)]
    found = dict(pair_tables(codes, counts, sizes, pairs))
    assert sorted(found) == sorted(pairs)
    for pair, table in found.items():
        alone = tabulated(domain, codes, counts, pair).reshape([sizes[c] for c in pair])
        np.testing.assert_array_equal(table, alone)


def test_only_the_pairs_that_are_asked_are_counted():
    codes = np.zeros((4, 5), dtype=np.uint8)
    tables = pair_tables(codes, np.ones(4, dtype=np.int64), [2, 3, 40, 50, 2], [(1, 4), (0, 1)])
    assert {pair: table.shape for pair, table in tables} == {(0, 1): (2, 3), (1, 4): (3, 2)}


def test_counts_beyond_what_doubles_hold_are_exact():
    codes, counts = np.array([[0, 1], [1, 1], [0, 1]]), np.array([MAX_TOTAL // 2, 3, 1])
    ((_, table),) = pair_tables(codes, counts, [2, 2], [(0, 1)])
    assert table.tolist() == [[0, MAX_TOTAL // 2 + 1], [0, 3]]
