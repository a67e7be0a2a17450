"""A frame of every kind of object is the table of the texts that these stand for.

Each frame has its own columns' order, dtypes and objects.
"""

import random
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from smalldb.schema import parse_schema

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


@pytest.mark.parametrize("number", range(240))
def test_a_frame_is_the_table_of_its_texts(number):
    chance = random.Random(number)
    rows = chance.choices(CELLS, k=chance.randint(0, 6))
    plain = SCHEMA.encode(pd.DataFrame(rows, columns=["children", "born"], dtype=object))
    assert SCHEMA.encode(frame_of(rows, chance)).histogram().tolist() == plain.histogram().tolist()
