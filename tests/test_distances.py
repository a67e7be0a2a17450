"""Distances of tables: the definition, row by row, in exact numbers."""

from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queries import Column, DataError, Domain, Rows
from smalldb.releasing.distances import distances, pair_distances, visits
from smalldb.releasing.evaluation import evaluate

DOMAIN = Domain([Column("job", ["none", "part", "full"]), "smoker", Column("age", 4), Column("day", 2)])


def rows(seed, n, domain=DOMAIN):
    chance = np.random.default_rng(seed)
    weights = [chance.dirichlet([0.7] * k) for k in domain.sizes]
    drawn = [chance.choice(k, n, p=p) for k, p in zip(domain.sizes, weights, strict=True)]
    return Rows.from_codes(domain, np.column_stack(drawn))


def listed(table):
    """Every row of the table, as a tuple of codes."""
    pairs = zip(table.codes().tolist(), table.counts.tolist(), strict=True)
    return [tuple(row) for row, times in pairs for _ in range(times)]


def naive(real, made, width, max_cells):
    """Tables -> TVD and largest difference of a cell, as fractions, and TVD of independent columns."""
    ours, theirs, sizes = listed(real), listed(made), real.domain.sizes
    margins = {
        (c, code): Fraction(sum(row[c] == code for row in ours), len(ours))
        for c, k in enumerate(sizes)
        for code in range(k)
    }
    found = {}
    for columns in combinations(range(len(sizes)), width):
        cells = list(product(*(range(sizes[c]) for c in columns)))
        if len(cells) > max_cells:
            continue
        ours_in, theirs_in = (
            Counter(tuple(row[c] for c in columns) for row in rows) for rows in (ours, theirs)
        )
        off, apart = [], Fraction(0)
        for cell in cells:
            a, b = Fraction(ours_in[cell], len(ours)), Fraction(theirs_in[cell], len(theirs))
            alone = prod(margins[c, code] for c, code in zip(columns, cell, strict=True))
            off.append(abs(a - b))
            apart += abs(a - alone)
        found[columns] = float(sum(off) / 2), float(max(off)), float(apart / 2)
    return found


@given(st.integers(0, 99), st.integers(1, 25), st.integers(1, 9), st.integers(1, 4), st.sampled_from([8, 99]))
def test_distances_are_those_of_the_definition(seed, n, m, width, max_cells):
    real, made = rows(seed, n), rows(seed + 1000, m)
    found = distances(real, made, width, max_cells)
    expected = naive(real, made, width, max_cells)
    assert found.tables == tuple(expected)
    assert found.left_out == len(list(combinations(range(4), width))) - len(expected)
    assert list(zip(found.tvd, found.largest, strict=True)) == [
        figures[:2] for figures in expected.values()
    ]  # exactly
    assert found.independent == pytest.approx([apart for *_, apart in expected.values()], abs=1e-14)
    for c in range(4):
        within = [figures[0] for columns, figures in expected.items() if c in columns]
        assert found.of_column(c).tolist() == within
    assert repr(found) == "<Distances: computed from the data>"


def test_a_table_is_at_no_distance_from_itself_and_counts_may_be_large():
    table = rows(1, 40)
    assert distances(table, table, 2).tvd.max() == 0
    many = Rows.from_codes(DOMAIN, table.codes(), table.counts * 2**52)
    other = Rows.from_codes(DOMAIN, rows(2, 30).codes(), rows(2, 30).counts * 2**50)
    small = distances(table, rows(2, 30), 2)
    assert distances(many, other, 2).tvd.tolist() == small.tvd.tolist()
    assert distances(many, other, 2).largest.tolist() == small.largest.tolist()


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(ValueError, match="over different domains"):
        distances(rows(1, 5), Rows.from_codes(Domain(["a"]), np.array([[1]])), 1)
    for width in (0, 5):
        with pytest.raises(ValueError, match="width must be from 1 to the 4 columns"):
            distances(rows(1, 5), rows(2, 5), width)
    with pytest.raises(DataError, match="has no rows"):
        distances(rows(1, 5), rows(2, 0), 1)


def test_an_evaluation_compares_what_it_can_in_seconds(monkeypatch):
    real, made = rows(1, 50), rows(2, 40)
    assert [found.width for found in evaluate(real, made).distances()] == [1, 2, 3]
    monkeypatch.setattr("smalldb.releasing.distances.MAX_VISITS", visits(real, made, 1))
    assert [found.width for found in evaluate(real, made).distances()] == [1, 3]
    narrow = [rows(seed, 2, Domain(["a", "b"])) for seed in (1, 2)]
    assert [found.width for found in evaluate(*narrow).distances()] == [1, 2]


def test_the_distances_of_pairs_are_those_of_the_tables():
    real, made = rows(1, 50), rows(2, 40)
    found = pair_distances(real, made)
    assert found.shape == (4, 4)
    for width in (1, 2):
        each = distances(real, made, width)
        for columns, tvd in zip(each.tables, each.tvd, strict=True):
            assert found[columns[0], columns[-1]] == found[columns[-1], columns[0]] == tvd
    assert np.array_equal(pair_distances(real, made, 2), found[:2, :2])
    wide = Domain([Column("a", 200), Column("b", 200), "c"])
    assert np.isnan(pair_distances(rows(1, 9, wide), rows(2, 9, wide))[0, 1])
    one = Domain([Column("a", 3)])
    assert pair_distances(rows(1, 9, one), rows(2, 9, one)).shape == (1, 1)
