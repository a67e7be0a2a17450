"""Releases of tables with columns: what comes out keeps rules, bounds and columns."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import smalldb
from queries import Column, Domain, Rows
from smalldb.releasing.distances import distances
from smalldb.schema import read_schema

TOWNS = [f"town {i}" for i in range(18)]


def correlated(domain, n, seed):
    """Rows in which each column depends on the one before it."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(n)
    columns = [
        np.minimum(((hidden + 0.3 * rng.random(n)) / 1.3 * k).astype(np.int64), k - 1) for k in domain.sizes
    ]
    return np.stack(columns, axis=1)


def test_eighteen_towns_and_three_sexes_alone():
    domain = Domain([Column("town", TOWNS), Column("sex", ["female", "male", "other"])])
    rows = Rows.from_codes(domain, correlated(domain, 4_000, 1))
    made = smalldb.release(rows, epsilon=1, rng=1)
    assert made.data.shape == (4_000, 2)
    assert set(made.data["town"]) <= set(TOWNS)
    (found,) = [distances(rows, made.rows, 2)]
    # far better than noise on each cell that nobody read: 54 cells, two-sided geometric noise of rate 1/2
    assert found.tvd.mean() < 0.03 < found.independent.mean()


@pytest.mark.slow
def test_a_rule_holds_on_61_attributes():
    wide = [Column(f"c{i}", 4) for i in range(18)]
    domain = Domain(
        [Column("sex", ["female", "male", "other"]), "pregnant", *wide, "last", "one", "more"],
        valid=["~(`sex=male` & pregnant)", "~(last & one & more)"],
    )
    assert len(domain.attributes) == 61
    codes = correlated(domain, 3_000, 2)
    codes = codes[domain.contains(codes)]
    made = smalldb.release(Rows.from_codes(domain, codes), epsilon=1, rng=2)
    assert made.record["mechanism"] == "marginals"
    assert domain.contains(made.codes).all()
    assert not ((made.data["sex"] == "male") & (made.data["pregnant"] == 1)).any()


@pytest.mark.slow
def test_every_share_on_the_page_of_the_example_is_within_its_bound(examples, tmp_path, monkeypatch):
    import runpy
    import sys

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["make_people.py", "people.csv"])
    runpy.run_path(str(examples / "make_people.py"), run_name="__main__")
    from smalldb.schema.table_readers import read_table

    schema = read_schema(str(examples / "people.toml"))
    real = read_table(str(Path("people.csv")), schema)
    made = smalldb.release(real, schema.queries, epsilon=10, rng=3)
    bound = made.record["bounds"]["released"]
    assert bound < 0.02
    for width in (1, 2):
        for columns in combinations(range(len(schema.domain.sizes)), width):
            gap = np.abs(real.table(columns) / real.n - made.rows.table(columns) / made.rows.n)
            assert gap.max() <= bound, columns
    assert list(schema.decode(made.codes).columns) == list(schema.names)
