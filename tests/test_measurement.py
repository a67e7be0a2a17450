"""What a release publishes of its measurements: true numbers with the noise that is stated, at their cost."""

import json
import pickle
from fractions import Fraction

import naive
import numpy as np
import pandas as pd
import pytest
from asking import release_tables
from builders import tied
from parities import alternatives
from records import check_record

import smalldb
from queries import Column, Domain, Marginals, Rows
from smalldb.accounting.concentrated import rho_of
from smalldb.exact.bits import SeededBits
from smalldb.inference import ask
from smalldb.marginals.strategies.dependence import DependenceTested
from smalldb.mechanisms import Dependence, Measurements, Parity
from smalldb.noise.distributions import read
from smalldb.noise.noise_protocol import Moved
from smalldb.releasing.record import with_measurements

DOMAIN = Domain([Column("a", 3), Column("b", 7), "c", Column("d", 40)])
YES_NO = Domain(["p", "q", "r", "s"])
N = 800
RELATIONS = {"replace-one": {}, "add-remove": {"neighbours": "add-remove", "n_max": 1000}}
STRATEGIES = {
    "cells": (Domain(DOMAIN.columns[:3]), "cells", "1"),
    "pairs": (DOMAIN, "pairs", "20"),
    "adaptive": (DOMAIN, "adaptive", "20"),
    "delta": (DOMAIN, "adaptive", "20", "1e-6"),
    "contrasts": (YES_NO, "contrasts", "1"),
    "wishart": (Domain(22), "contrasts", "4"),
    "ruled": (Domain(["p", "q", "r", "s"], "~(p & q)"), "contrasts", "1"),
}
QUERIES = {"contrasts": "marginals:3", "ruled": "marginals:4"}


def rows_of(domain):
    codes = tied(domain.sizes, N, 1, 0.3)
    return Rows.from_codes(domain, codes[domain.contains(codes)] if domain.valid else codes)


def released(name, relation, **more):
    domain, strategy, epsilon, *delta = STRATEGIES[name]
    given = {"epsilon": epsilon, "strategy": strategy, "rng": 1, "delta": (*delta, None)[0]}
    given |= RELATIONS[relation] | more
    return smalldb.release(rows_of(domain), QUERIES.get(name, "marginals:2"), **given), rows_of(domain)


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", STRATEGIES)
def test_values_are_true_numbers_with_the_noise_that_is_stated(name, relation):
    made, rows = released(name, relation)
    codes = np.repeat(rows.codes(), rows.counts, axis=0)
    assert len(made.measurements) > 0
    for each in made.measurements:
        signs = {part.signed for part in each.of if isinstance(part, Parity)}
        assert not each.values.flags.writeable and signs <= {relation == "add-remove"}
        gaps = [values - naive.part_values(part, codes) for part, values in each.tables()]
        apart = np.concatenate([gap.ravel() for gap in gaps])
        failure = Fraction(1, 10**6)
        for position in range(len(apart)) if len(apart) < 30 else (0, len(apart) - 1):
            one = np.zeros(len(apart))
            one[position] = 1.0
            assert abs(apart[position]) <= each.noise.quantile(one, failure / len(apart))
        assert apart.any() or each.noise.variance() < 1


@pytest.mark.parametrize("relation", RELATIONS)
def test_gaussian_contrasts_have_a_noise_for_each_order_and_are_paid_once(relation):
    rows, delta = rows_of(YES_NO), Fraction(1, 1000)
    given = {"n": rows.n, "epsilon": Fraction(1), "neighbours": relation, "delta": delta}
    plans = alternatives(Marginals(3).workload(YES_NO), **given)
    made = release_tables(plans[-1], rows, SeededBits(1))
    codes = np.repeat(rows.codes(), rows.counts, axis=0)
    assert [each.cost for each in made.measurements] == [rho_of(1, delta)] + [0] * (
        len(made.measurements) - 1
    )
    orders = [{len(part.columns) for part in each.of} for each in made.measurements]
    assert orders == [{order} for order in range(relation == "replace-one", 4)]
    for each in made.measurements:
        assert each.concentrated
        gaps = [values - naive.part_values(part, codes) for part, values in each.tables()]
        assert np.abs(gaps).max() <= each.noise.quantile(None, Fraction(1, 10**8))


@pytest.mark.parametrize("relation", ["replace-one", pytest.param("add-remove", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", STRATEGIES)
def test_records_and_frames_hold_all_of_them(name, relation):
    made, _ = released(name, relation)
    record = with_measurements(made.record, made.plan, made.measurements, made.rows, None)
    check_record(record)
    told = json.loads(json.dumps(record))
    again, told = Measurements.from_record(told), told["measurements"]
    assert [one["values"] for one in told] == [each.values.tolist() for each in made.measurements]
    for one, each in zip(told, made.measurements, strict=True):
        noise = dict(one["noise"])
        assert read(noise.pop("name"), noise) == each.noise
        assert Fraction(one["rho" if each.concentrated else "epsilon"]) == each.cost
    assert (again.n, again.domain.names) == (made.measurements.n, made.measurements.domain.names)
    assert again.ranges == made.measurements.ranges and again.pairs() == made.measurements.pairs()
    for one, other in zip(again, made.measurements, strict=True):
        assert (one.of, one.noise, one.selecting) == (other.of, other.noise, other.selecting)
    frame = made.measurements.to_frame()
    assert again.to_frame().equals(frame)
    assert frame["value"].tolist() == [value for one in told for value in one["values"]]
    copy = pickle.loads(pickle.dumps(made))
    assert copy.measurements.as_json() == made.measurements.as_json()


def test_groups_are_named_by_their_categories():
    made, _ = released("adaptive", "replace-one")
    frame = made.measurements.to_frame()
    columns = frame[frame["table"] == "a"]
    assert columns["cell"].tolist() == ["a=0", "a=1", "a=2"]
    assert frame["cell"].str.contains(" or ").any()


def test_a_record_is_read_whatever_the_schema_says_of_rows():
    number = {"kind": "integers", "range": [0, 3]}
    columns = {
        "a": {**number, "determines": {"y": {"0": "yes", "1": "no", "2": "yes", "3": "no"}}},
        "b": number,
        "c": number,
        "y": {"kind": "bool"},
        "d": {"kind": "bool", "missing": True, "only_if": "y"},
        "e": {"kind": "bool", "missing": True, "missing_with": "d"},
    }
    frame = pd.DataFrame({"a": [0, 1, 2], "b": [1, 2, 3], "c": [2, 2, 3], "y": ["yes", "no", "yes"]})
    frame = frame.assign(d=["no", None, "yes"], e=["no", None, "no"]).loc[[0, 1, 2] * 100]
    schema = {"valid": ["a <= b <= c", "~(y & b>=3)"], "columns": columns}
    frame = frame[~((frame.y == "yes") & (frame.b == 3))]
    made = smalldb.release(frame, schema=schema, epsilon=9, seed=1)
    read = Measurements.from_record(json.loads(json.dumps(made.record)))
    assert read.domain.valid == ("~(y & b>=3)",)
    assert ask(read, "a=0").known == ask(made.measurements, "a=0").known == "measured"


def test_mechanisms_that_draw_a_table_at_once_publish_none():
    made = smalldb.release(rows_of(YES_NO), "marginals:1", epsilon=1, rows=2, mechanism="census", rng=1)
    assert list(made.measurements) == [] and made.measurements.to_frame().empty


@pytest.mark.parametrize("relation", ["replace-one", pytest.param("add-remove", marks=pytest.mark.long)])
def test_the_number_that_decides_is_published_with_its_cost(relation):
    domain, n = Domain([Column(f"c{i}", k) for i, k in enumerate((5, 8, 9, 3, 7, 4, 6, 10))]), 30_000
    codes = np.random.default_rng(0).integers(0, domain.sizes, (n, 8))
    given = {"epsilon": 1, "mechanism": "marginals", "rng": 1} | RELATIONS[relation]
    if relation == "add-remove":
        given["n_max"] = n
    made = smalldb.release(Rows.from_codes(domain, codes), "marginals:2", rows=10, **given)
    strategy, first = made.plan.chosen.strategy, made.measurements[0]
    assert isinstance(strategy, DependenceTested)
    (part,) = first.of
    assert isinstance(part, Dependence) and first.cost == strategy.asking and not first.concentrated
    gap = abs(int(first.values[0] - naive.part_values(part, codes)[0]))
    assert gap <= first.noise.quantile(None, Fraction(1, 10**6))
    moved = (6 if relation == "replace-one" else 4) * len(part.pairs)
    assert first.noise.lost(Moved(moved)) == first.cost
    assert "dependence of pairs" in made.measurements.to_frame()["cell"][0]
