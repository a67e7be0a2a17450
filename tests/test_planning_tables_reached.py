"""How many pairs of columns a plan measures at most, beside those that its release has measured."""

import json

import numpy as np
import pandas as pd
import pytest
from calling import called

import smalldb
from queries import Column, Domain, Rows
from smalldb.commands.plan import plan_account, plan_json
from smalldb.mechanisms import Marginal
from smalldb.planning.plans import pairs_reached, tables_reached
from smalldb.reporting.words import laid_out, tell

FLAGS = Domain([f"c{k}" for k in range(6)])
WIDE = Domain([Column(f"c{k}", 3) for k in range(6)])


def released(domain, **more):
    codes = np.random.default_rng(3).integers(0, 2, (400, 6))
    codes[:, 1] = codes[:, 0]
    rows = Rows.from_codes(domain, codes)
    return smalldb.release(rows, epsilon=1, mechanism="marginals", seed=2, **more)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("domain", "more", "expected"),
    [
        (FLAGS, {"queries": "marginals:2", "strategy": "contrasts"}, 15),
        (FLAGS, {"queries": "marginals:1", "strategy": "contrasts"}, 0),
        (FLAGS, {"queries": "marginals:2", "strategy": "cells"}, 15),
        (WIDE, {"queries": "marginals:2", "strategy": "pairs"}, 15),
        (WIDE, {"queries": "marginals:1", "strategy": "adaptive"}, 0),
        (WIDE, {"queries": "marginals:2", "strategy": "adaptive"}, None),
        (WIDE, {"queries": "marginals:3", "strategy": "adaptive"}, None),
        (WIDE, {"queries": "marginals:1", "strategy": "adaptive", "measure_first": ["c0 x c1 x c2"]}, 3),
        (WIDE, {"queries": "marginals:2", "strategy": "adaptive", "target": "c2"}, None),
    ],
)
def test_no_release_measures_more_pairs_than_its_plan_says(domain, more, expected):
    made = released(domain, **more)
    few, most, every = pairs_reached(made.plan)
    measured = sum(pair.known != "not measured" for pair in made.measurements.pairs())
    assert every == 15 and measured <= most and few <= most
    if more["queries"] == "marginals:2":  # a table of three columns has up to three new pairs
        assert measured <= 1.5 * few + 1  # fewer where columns hardly depend: rounds end early
    tables = sum(isinstance(part, Marginal) for each in made.measurements for part in each.of)
    assert tables <= tables_reached(made.plan)
    if expected is not None:
        assert measured == few == most == expected
    how = "all" if few == 15 else f"about {few} of"
    told = plan_account(made.plan, "none")
    assert f"{how} 15 pairs of columns are expected to be measured together" in told
    assert ("are assumed to be independent" in told) is (few < every)
    assert (
        told.index("\nexpected: ")
        < told.index("\nnoise: ")
        < told.index("\nrelations: ")
        < told.index("\nbound: ")
    )
    summary = laid_out(tell(made.record, made.plan, made.measurements))
    assert f"relations: {measured or 'none'} of 15 pairs of columns w" in summary
    assert ("--measure-first" in summary) is (measured < every)
    said = plan_json(made.plan, "none")["pairs_of_columns"]
    assert said == {"expected": few, "measured_at_most": most, "all": 15}


def test_a_census_measures_none():
    made = smalldb.plan(Domain(["a", "b"]), "marginals:2", n=10, epsilon=1, rows=3, mechanism="census")
    assert pairs_reached(made) is None and "relations" not in plan_account(made, "none")
    assert plan_json(made, "none")["pairs_of_columns"] is None


def test_evaluate_tells_what_the_record_says_of_pairs(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    coins = np.random.default_rng(1).integers(0, 2, (300, 3))
    coins[:, 1] = coins[:, 0]
    pd.DataFrame(coins, columns=["a", "b", "c"]).to_csv("data.csv", index=False)
    for queries in ("marginals:2", "marginals:1"):
        options = ["--epsilon", 3, "--seed", 1, "--mechanism", "marginals", "--queries", queries, "--quiet"]
        code, *_ = called(capfd, "generate", "data.csv", *options, "-o", "out.csv", "--record", "out.json")
        assert code == 0
        code, told, _ = called(capfd, "evaluate", "data.csv", "out.csv", "--record", "out.json")
        record = json.loads((tmp_path / "out.json").read_text())["pairs"]
        learned, quiet = len(record["learned"]), len(record["quiet"])
        assert learned + quiet == (3 if queries == "marginals:2" else 0)
        said = f"{learned} learned, {quiet} measured without a dependence that stands out"
        said += f", {3 - learned - quiet} not measured"
        assert code == 0 and f"pairs of columns, by the record: {said}" in told
        code, told, _ = called(capfd, "evaluate", "data.csv", "out.csv", "--record", "out.json", "--json")
        assert json.loads(told)["pairs"] == record
    code, told, _ = called(capfd, "evaluate", "data.csv", "out.csv")
    assert code == 0 and "by the record" not in told


@pytest.mark.parametrize(
    ("domain", "strategy", "delta"),
    [
        (FLAGS, "contrasts", None),
        (FLAGS, "cells", None),
        (WIDE, "pairs", None),
        (WIDE, "adaptive", None),
        (WIDE, "adaptive", "1e-6"),
    ],
)
def test_shares_are_off_by_what_the_plan_expects_of_noise(domain, strategy, delta):
    codes = np.random.default_rng(3).integers(0, 2, (400, 6))
    rows = Rows.from_codes(domain, codes)
    asked = {"epsilon": 1, "queries": "marginals:2", "strategy": strategy, "delta": delta, "certificate": 0}
    question = "c{}" if domain is FLAGS else "`c{}=1`"
    off = []
    for seed in range(4):
        made = smalldb.release(rows, mechanism="marginals", seed=seed, **asked)
        off += [abs(made.ask(question.format(c)).estimate - codes[:, c].mean()) for c in range(6)]
    assert 0.5 < np.mean(off) / made.plan.expected_share < 1.6
    assert plan_json(made.plan, "none")["expected_share"] == made.plan.expected_share
    assert (
        f"noise:     moves the share of a category by about {made.plan.expected_share:.2g}"
        in plan_account(made.plan, "none")
    )


def test_means_are_off_by_what_the_plan_expects_of_noise():
    schema = smalldb.schema.read_schema(
        '[columns.age]\nkind = "cuts"\ncuts = [20, 40, 60, 80]\nrange = [0, 100]\n'
        '[columns.sex]\nkind = "categories"\nvalues = ["f", "m"]\n'
    )
    ages = np.random.default_rng(1).integers(0, 100, 2000)
    frame = pd.DataFrame({"age": ages, "sex": np.where(ages % 2, "f", "m")})
    off = []
    for seed in range(6):
        made = smalldb.release(frame, schema=schema, epsilon=1, seed=seed)
        off.append(abs(made.ask("mean(age)").estimate - ages.mean()) / 100)
    assert 0.3 < np.mean(off) / made.plan.expected_mean < 2
    assert "and a mean of numbers by about" in plan_account(made.plan, "none")
    assert smalldb.plan(schema=schema, n=2000, epsilon=1, means=0).expected_mean is None
