import numpy as np
import pytest

from queries import Column, Domain
from queries.query import pair_tables
from queries.rows import MAX_TOTAL, tabulated

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
