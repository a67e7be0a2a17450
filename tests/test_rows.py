"""Distinct packed rows with counts, however the table arrives."""

import pickle
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queries import DataError, Domain, Rows
from queries.rows import pack, unpack


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


@given(st.integers(0, 99), st.integers(0, 40), st.sampled_from([1, 3, 8, 63, 64, 65, 128, 130]))
def test_rows_count_the_table(seed, n, attributes):
    frame = table(seed, n, attributes)
    frame = pd.concat([frame, frame[::3]])
    domain = Domain(frame.columns)
    rows = Rows.from_frame(domain, frame)
    assert codes(rows) == counted(frame)
    assert list(codes(rows)) == sorted(codes(rows))
    assert rows.n == len(frame)
    in_chunks = Rows.from_chunks(domain, [frame[i : i + 7] for i in range(0, len(frame), 7)])
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


def test_histogram_of_a_restricted_universe():
    domain = Domain(["a", "b"], valid=[1, 3])
    frame = pd.DataFrame({"a": [1, 0, 1], "b": [1, 1, 1]})
    assert Rows.from_frame(domain, frame).histogram().tolist() == [1, 2]


@pytest.mark.parametrize("counts", [[-1, 0], [1.5, 1], [True, 1], [None, 1], ["1", 1]])
def test_bad_counts_are_refused(counts):
    frame = pd.DataFrame({"a": [0, 1]})
    with pytest.raises(DataError, match="whole numbers, none negative"):
        Rows.from_counts(Domain(["a"]), frame, counts)


def test_counts_beyond_the_guard_are_refused():
    frame = pd.DataFrame({"a": [0, 1]})
    with pytest.raises(DataError, match="2\\^62"):
        Rows.from_counts(Domain(["a"]), frame, [2**61, 2**61])
    with pytest.raises(DataError, match="one for each row"):
        Rows.from_counts(Domain(["a"]), frame, [1])


def test_repr_tells_nothing_and_arrays_are_read_only():
    rows = Rows.from_frame(Domain(["a"]), pd.DataFrame({"a": [0] * 31 + [1] * 6}))
    assert repr(rows) == "<Rows over 1 attributes: private>"
    for array in (rows.words, rows.counts):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 5
    assert codes(pickle.loads(pickle.dumps(rows))) == codes(rows)  # for other processes: it is the data
