"""Warnings of `interval`: what a statistic of several tables owes to assumptions."""

import warnings

import numpy as np
import pandas as pd
import pytest

from smalldb.inference import interval
from smalldb.inference.assumptions import ACROSS, INSIDE, WITHIN
from smalldb.inference.several_tables import Refitted, Spelling, Tables
from smalldb.mechanisms.known_pairs import LEARNED, KnownPair
from smalldb.schema import as_schema

SCHEMA = """
columns.age = { kind = "cuts", cuts = [40, 60, 80], range = [20, 100] }
columns.town = { kind = "categories", values = ["A", "B", "C"] }
columns.ill = { kind = "bool" }
"""
HALVES = (0, 0, 1, 1)
"""Of age, below 60 and from 60 on."""


@pytest.fixture
def tables():
    """Return a function from the groups at which age x town was measured to three tables."""
    schema = as_schema(SCHEMA)
    rng = np.random.default_rng(3)
    drawn = [rng.integers(0, (4, 3, 2), (400, 3)) for _ in range(3)]
    like = pd.DataFrame({"age": [1.5], "town": ["A"], "ill": [True]})

    def made(*groups, unmeasured=()):
        pair = KnownPair(("age", "town"), LEARNED, groups)
        spelling = Spelling(schema.domain, schema, like)
        return Tables(
            spelling, drawn, (1, 2, 3), Refitted(1, 0, (), {}), unmeasured, [pair] if groups else []
        )

    return made


def told(statistic, tables):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        interval(statistic, tables)
    return [str(each.message) for each in found]


def in_a(low, high=200):
    return lambda table: (table.town[(table.age >= low) & (table.age < high)] == "A").mean()


def test_values_inside_bins_are_an_assumption(tables):
    assert told(lambda table: table.age.mean(), tables()) == [INSIDE]
    assert told(lambda table: (table.age >= 70).mean(), tables()) == [INSIDE]
    assert told(lambda table: (table.age >= 60).mean(), tables()) == []
    assert told(in_a(40, 60), tables()) == []


@pytest.mark.slow
def test_categories_that_were_measured_in_groups_are_not_told_apart(tables):
    grouped = tables((HALVES, (0, 1, 2)))
    assert told(in_a(40, 60), grouped) == [WITHIN.format("age x town")]
    assert told(in_a(80), grouped) == [WITHIN.format("age x town")]
    assert told(in_a(20, 60), grouped) == []
    assert told(in_a(60), grouped) == []
    assert told(lambda table: table.ill[table.age >= 80].mean(), grouped) == []
    assert told(lambda table: (table.age >= 80).mean() + (table.town == "A").mean(), grouped) == []


def test_groups_of_one_table_are_enough(tables):
    """Tables of age x town in two groupings: what either of them has is known."""
    grouped = tables((HALVES, (0, 1, 2)), ((0, 1, 1, 1), (0, 1, 1)))
    assert told(in_a(20, 40), grouped) == []
    assert told(in_a(60), grouped) == []
    assert told(in_a(40, 60), grouped) == [WITHIN.format("age x town")]


def test_a_statistic_may_owe_to_all_of_them(tables):
    grouped = tables((HALVES, (0, 1, 2)), unmeasured=[("age", "ill")])

    def both(table):
        return in_a(40, 60)(table) + table.age[table.ill].mean()

    assert told(both, grouped) == [INSIDE, ACROSS.format("age x ill"), WITHIN.format("age x town")]
    rng = np.random.default_rng()
    assert told(lambda table: both(table) + rng.random(), grouped) == []
