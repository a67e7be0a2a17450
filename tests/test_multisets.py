from math import comb

import naive
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smalldb.counting.multisets import count, iterate, rank, unrank


@pytest.mark.parametrize("cells", range(1, 6))
@pytest.mark.parametrize("rows", range(6))
def test_against_the_definition(cells, rows):
    expected = list(naive.multisets(cells, rows))
    assert list(iterate(cells, rows)) == expected
    assert count(cells, rows) == len(expected)
    assert [rank(counts) for counts in expected] == list(range(len(expected)))
    assert [unrank(i, cells, rows) for i in range(len(expected))] == expected


@st.composite
def positions(draw):
    cells, rows = draw(st.integers(1, 70_000)), draw(st.integers(0, 60))
    return draw(st.integers(0, comb(cells + rows - 1, rows) - 1)), cells, rows


@given(positions())
def test_rank_inverts_unrank(position):
    index, cells, rows = position
    counts = unrank(index, cells, rows)
    assert len(counts) == cells
    assert sum(counts) == rows
    assert min(counts) >= 0
    assert rank(counts) == index


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=30))
def test_unrank_inverts_rank(counts):
    assert unrank(rank(counts), len(counts), sum(counts)) == tuple(counts)


@pytest.mark.parametrize(("cells", "rows"), [(65536, 40), (40, 65536), (2, 10**9), (1, 10**9), (16, 1000)])
def test_big_sizes(cells, rows):
    total = comb(cells + rows - 1, cells - 1)
    assert count(cells, rows) == total
    assert unrank(0, cells, rows) == (rows,) + (0,) * (cells - 1)
    assert unrank(total - 1, cells, rows) == (0,) * (cells - 1) + (rows,)
    assert rank((0,) * (cells - 1) + (rows,)) == total - 1
    assert rank(unrank(total // 3, cells, rows)) == total // 3


BAD = [(count, 0, 3), (count, 3, -1), (iterate, 0, 0), (iterate, 2, -1), (unrank, 0, 0, 1)]


def test_bad_sizes():
    for function, *sizes in [*BAD, (rank, ()), (rank, (2, -1))]:
        with pytest.raises(ValueError, match="must be"):
            function(*sizes)


@pytest.mark.parametrize("index", [-1, 10, 10**30])
def test_index_out_of_range(index):
    with pytest.raises(IndexError, match="index"):
        unrank(index, 3, 3)
