"""What is public of a release, as in `test_neighbours`, where the tables are frames of every kind of object.

A row is its texts. A walk is a list of tables of texts, each a neighbour of the one before; each is held in a
frame of its own columns' order, dtypes and objects, which are drawn anew for every table.
"""

import random
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from calling import way
from test_neighbours import neighbour

import smalldb
from smalldb.marginals.asks import Order, SmallDatabase
from smalldb.marginals.curator import Curator
from smalldb.reporting.page import page
from smalldb.schema import parse_schema

pytestmark = pytest.mark.slow

SCHEMA = parse_schema("""
columns.children.kind = "categories"
columns.children.values = ["1", "True"]
columns.children.unknown = "other"
columns.children.missing = true
columns.children.coding = "bits"
columns.born = { kind = "dates", cuts = [2020], range = [2000, 2039] }
""")
EAST = timezone(timedelta(hours=1))
HELD = {  # the objects that a text can stand for; many of one text equal those of another
    "1": ["1", " 1 ", 1, 1.0, np.int64(1), np.float32(1), np.uint8(1), Decimal("1")],
    "True": ["True", True, np.True_],
    "1.00": ["1.00", Decimal("1.00")],
    "": ["", None, float("nan"), pd.NA, pd.NaT, Decimal("NaN")],
    "2019-12-31": [
        *("2019-12-31", "2019-12-31 23:30:00+00:00", date(2019, 12, 31), pd.Timestamp("2019-12-31")),
        *(datetime(2019, 12, 31, 23, 30, tzinfo=UTC), pd.Timestamp("2019-12-31 23:30", tz=UTC)),
    ],
    "2020-01-01": [
        *("2020-01-01", "2020-01-01 00:30:00+01:00", date(2020, 1, 1), np.datetime64("2020-01-01")),
        *(datetime(2020, 1, 1, 0, 30, tzinfo=EAST), pd.Timestamp("2020-01-01 00:30", tz=EAST)),
    ],
}
CELLS = [(children, born) for children in ("1", "True", "1.00", "") for born in ("2019-12-31", "2020-01-01")]
STEPS = 6  # neighbours in a walk


def held(texts, chance):
    """A column of these texts."""
    dtype = chance.choice([object, object, None, "str", "category"])
    if dtype in ("str", "category"):  # as texts: a category holds equal objects for one
        return pd.Series(texts, dtype=dtype)
    return pd.Series([chance.choice(HELD[text]) for text in texts], dtype=dtype if texts else object)


def frame_of(rows, chance):
    children, born = ([row[i] for row in rows] for i in range(2))
    columns = {"children": held(children, chance), "born": held(born, chance)}
    return pd.DataFrame({name: columns[name] for name in chance.sample(list(columns), 2)})


def walk(relation, number):
    chance = random.Random(f"frames {relation} {number}")
    tables = [chance.choices(CELLS, k=chance.randint(1, 6))]
    for _ in range(STEPS):
        tables.append(neighbour(tables[-1], CELLS, relation, chance))
    return [(rows, frame_of(rows, chance)) for rows in tables]


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("number", range(20))
def test_a_frame_is_the_table_of_its_texts(relation, number):
    for rows, frame in walk(relation, number):
        plain = SCHEMA.encode(pd.DataFrame(rows, columns=["children", "born"], dtype=object))
        assert SCHEMA.encode(frame).histogram().tolist() == plain.histogram().tolist()


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("mechanism", ["census", "cells", "adaptive"])
def test_neighbouring_frames_that_release_the_same_show_the_same(relation, mechanism, monkeypatch):
    released = {}

    def first(holder):
        """What was drawn of the walk's first table, for all its tables; but small databases."""
        real = holder.draw

        def same(self, what, coins):
            found = real(self, what, coins)
            if isinstance(what, SmallDatabase):
                return found
            numbers.append(len(numbers))
            return released.setdefault(numbers[-1], found)

        monkeypatch.setattr(holder, "draw", same)

    numbers = []
    first(Curator)
    first(Order)
    alike = 0
    for number in range(3):
        before = None
        released.clear()
        for _, frame in walk(relation, number):
            choices = {"rows": 2, "neighbours": relation, "rng": number} | way(mechanism)
            if relation == "add-remove":
                choices["n_max"] = 9
            numbers.clear()
            made = smalldb.release(SCHEMA.encode(frame), "marginals:1", epsilon="1/5", **choices)
            known = made.record | {"bounds": None}, repr(made), list(made.data.columns), [*made.data.dtypes]
            drawn = made.data.to_numpy().tolist()
            shown = page(made, SCHEMA), made.record
            if before is not None:
                assert known == before[0]
                if drawn == before[1]:
                    assert shown == before[2]
                    alike += 1
            before = known, drawn, shown
    assert alike >= 3
