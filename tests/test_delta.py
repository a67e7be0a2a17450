"""Releases with a delta: what is measured, bounded, recorded, counted; and that without one all is pure."""

import json
from fractions import Fraction

import jsonschema
import numpy as np
import pandas as pd
import pytest
from builders import latent
from parities import alternatives, estimated, exact, values
from records import check_record

import smalldb
from queries import Conjunctions, Domain, Marginals, Parities, Rows
from smalldb.accounting import compose, compose_records
from smalldb.accounting.concentrated import rho_of
from smalldb.cli import main
from smalldb.exact.bits import SeededBits
from smalldb.exact.integers import CLIP
from smalldb.exact.numbers import as_text
from smalldb.noise.tails import gaussian_quantile
from smalldb.releasing.budget_ledger import Ledger
from smalldb.releasing.record import make_record
from smalldb.reporting.page import page

RELATIONS = ["replace-one", "add-remove"]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("queries", [Conjunctions(2), Marginals(3, exactly=True), Parities(3, exactly=True)])
def test_pure_alternatives_are_what_they_were_and_one_is_added_for_each_order(relation, queries):
    workload = queries.workload(Domain([*"abcdef"]))
    numbers = {"n": 900, "epsilon": "0.7", "neighbours": relation, "delta": "1e-9"}
    more = alternatives(workload, **numbers)
    pure = [plan for plan in more if plan.delta is None]
    added = more[len(pure) :]
    assert [(plan.sets, plan.noises) for plan in pure] == (
        []
        if queries.text.startswith("parities")
        else [(plan.sets, plan.noises) for plan in alternatives(workload, **numbers | {"delta": None})]
    )
    orders = sorted({*more[-1].spectrum.orders.tolist()})
    assert [max(map(len, plan.sets)) for plan in added] == orders
    assert {plan.delta for plan in added} == {Fraction(1, 10**9)}


def test_a_pure_choice_draws_the_same_bits_and_says_that_it_is_pure():
    frame = latent(4, 200, 1)
    given = {"epsilon": 1, "mechanism": "marginals", "strategy": "contrasts", "rows": 9, "rng": 3}
    one, other = smalldb.release(frame, **given), smalldb.release(frame, **given, delta="1e-30")
    pd.testing.assert_frame_equal(one.data, other.data)
    assert one.record == other.record
    assert other.record["delta"] is None is other.plan.delta


def scales(plan):
    """The variance of the noise of each order."""
    orders = [len(some) for some in plan.sets]
    noises = [noise for noise, many in plan.noises for _ in range(many)]
    return {order: noise.scale for order, noise in zip(orders, noises, strict=True)}


@pytest.mark.parametrize("variance", [Fraction(1, 30), Fraction(1, 2), Fraction(7), Fraction(5000, 3)])
@pytest.mark.parametrize(
    "failure", [Fraction(99, 100), Fraction(1, 20), Fraction(1, 10**5), Fraction(1, 10**12)]
)
def test_the_quantile_holds_and_is_near_the_least(variance, failure):
    """By the series. One less, and of more than a few units a tenth less, is too little."""
    x = np.arange(1, 1000)
    weights = np.exp(-(x.astype(float) ** 2) / (2 * float(variance)))
    tails = 2 * np.cumsum(weights[::-1])[::-1] / (1 + 2 * weights.sum())  # of |X| >= 1, 2, ...
    found = gaussian_quantile(variance, failure)
    assert tails[found] <= failure
    least = int(np.argmax(tails <= float(failure)))
    assert least <= found
    if failure < Fraction(1, 2):
        assert found <= max(1.12 * least, least + 1)


def test_the_quantile_ends_where_noise_is_cut_off():
    """The plan with the widest noise: a query that hardly counts, beside all others at the least epsilon."""
    assert gaussian_quantile(Fraction(2) ** 130, Fraction(1, 10**9)) == CLIP


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_record_says_epsilon_and_delta(relation):
    frame = latent(6, 500, 4)
    public = {"n_max": 500} if relation == "add-remove" else {}
    delta = "0.05" if relation == "add-remove" else "0.01"
    given = {"epsilon": 1, "strategy": "contrasts", "rows": 40, "neighbours": relation} | public
    made = smalldb.release(frame, "conjunctions:2", delta=delta, **given)
    assert made.plan.delta == Fraction(delta)
    assert made.record["delta"] == delta
    rho = as_text(rho_of(Fraction(1), Fraction(delta)))
    assert made.record["privacy"] == {"epsilon": "1", "delta": delta, "bounded_range": None, "rho": rho}
    check_record(made.record)
    assert f"(1, {delta})-differential privacy" in page(made)
    cases = [{"delta": None}, {"privacy": {"epsilon": "1", "bounded_range": None}}, {"mechanism": "census"}]
    for wrong in cases:
        with pytest.raises(jsonschema.ValidationError):
            check_record(made.record | wrong)


def record_of(delta, epsilon="1/2"):
    frame = latent(6, 500, 4)
    plan = smalldb.plan(
        Domain(frame.columns),
        "conjunctions:2",
        n=500,
        epsilon=epsilon,
        delta=delta,
        strategy="contrasts",
        rows=9,
    )
    return make_record(plan, private=True)


def test_records_with_a_delta_count_as_pure_ones_that_fail_so_often():
    """Three of them: epsilons as of pure ones, and the deltas added."""
    records = [record_of("0.01"), record_of("0.02"), record_of(None)]
    assert [record["delta"] for record in records] == ["0.01", "0.02", None]
    kept = ("epsilon", "delta", "bounded_range")
    old = [one | {"privacy": {k: v for k, v in one["privacy"].items() if k in kept}} for one in records]
    total = compose_records(old, delta="1e-6")
    assert total.epsilon == compose(epsilon="1/2", releases=3, delta="1e-6").epsilon
    assert total.delta == Fraction("0.030001")
    better = compose_records(records, delta="1e-6")
    assert (better.method, better.delta) == ("Renyi, by rho", total.delta) and better.epsilon < total.epsilon
    ranged = records[0] | {"privacy": records[0]["privacy"] | {"bounded_range": "1/2"}}
    with pytest.raises(ValueError, match="no bounded range"):
        compose_records([ranged], delta="1e-6")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"delta": 0}, "delta must lie strictly between 0 and 1"),
        ({"delta": 1}, "delta must lie strictly between 0 and 1"),
        ({"delta": "1e-301"}, "delta must be at least 1e-300"),
        ({"delta": "1e-9", "mechanism": "census"}, "delta is for marginals"),
        ({"delta": "1e-9", "mechanism": "rejection"}, "delta is for marginals"),
        ({"delta": "1e-9", "candidates": "tuples"}, "delta is for marginals"),
    ],
)
def test_a_delta_without_meaning_is_refused(given, said):
    with pytest.raises(ValueError, match=said) as caught:
        smalldb.plan(Domain([*"abc"]), n=100, epsilon=1, rows=4, **given)
    assert "\n" not in str(caught.value)
    with pytest.raises(TypeError, match="delta must be a finite number"):
        smalldb.plan(Domain([*"abc"]), n=100, epsilon=1, rows=4, delta=True)


def test_smalldb_stays_pure_where_a_delta_is_allowed():
    made = smalldb.plan(Domain([*"abc"]), n=100, epsilon=1, rows=4, delta="0.1")
    assert (made.mechanism, made.delta, made.bounded_range) == ("census", None, 1)


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("epsilon", [Fraction(1, 2**40), Fraction(2**20)])
def test_plans_at_the_ends_of_the_range(relation, epsilon):
    domain = Domain([f"a{i}" for i in range(100)])
    given = {"n": 10, "epsilon": epsilon, "neighbours": relation, "delta": "1e-300"}
    plan = alternatives(Conjunctions(2).workload(domain), **given)[-1]
    assert plan.delta and all(0 < variance < 2**120 for variance in scales(plan).values())
    rows = Rows.from_frame(domain, latent(100, 10, 1))
    released = values(estimated(plan, rows, SeededBits(1)))
    if epsilon > 1:
        assert released.tolist() == exact(plan, rows).tolist()
    else:
        assert np.abs(released).max() > 10**9


def test_the_commands_take_a_delta(workdir, capsys):
    latent(6, 500, 4).to_csv("data.csv", index=False)
    common = "--epsilon 1 --delta 0.01 --mechanism marginals --strategy contrasts --rows 20".split()
    common += ["--queries", "conjunctions:2"]
    assert main(["generate", "data.csv", *common, "--record", "r.json", "--report", "r.html"]) == 0
    out, err = capsys.readouterr()
    assert out.count("\n") == 21
    assert "mechanism: marginals of contrasts, 20 rows" in err
    assert "guarantee: (1, 0.01)-differential privacy, replace-one neighbours" in err
    assert "a delta of 1/n" in err
    assert json.loads((workdir / "r.json").read_text())["delta"] == "0.01"
    assert "parities with Gaussian noise" in (workdir / "r.html").read_text()
    assert "it is not the probability that the factor fails" in (workdir / "r.html").read_text()
    assert main(["plan", "--attributes", "6", "--n", "500", "--json", *common]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["privacy"].pop("rho") == as_text(rho_of(Fraction(1), Fraction("0.01")))
    assert said["privacy"] == {"epsilon": "1", "delta": "0.01", "bounded_range": None}


@pytest.mark.parametrize(
    ("mechanism", "bounds"),
    [
        ("answers", {"beta": "0.05", "released": 0.1}),
        ("rounds", {"beta": "0.05", "released": 0.1, "covers": ["every query of conjunctions:2"]}),
    ],
)
def test_records_of_former_names_are_still_read(tmp_path, mechanism, bounds):
    """Version 0.2 had two mechanisms of what are strategies now: its records say so, without a strategy."""
    frame = latent(4, 60, 1)
    plan = smalldb.plan(Domain(frame.columns), "conjunctions:2", n=60, epsilon="1/2", strategy="contrasts")
    new = make_record(plan, private=True)
    check_record(new)
    assert (new["mechanism"], new["strategy"]) == ("marginals", "contrasts")
    old = {key: value for key, value in new.items() if key != "strategy"}
    with pytest.raises(jsonschema.ValidationError):
        check_record(old)  # of marginals the strategy is stated
    old |= {"mechanism": mechanism, "bounds": bounds}
    check_record(old)
    assert compose_records([old, new], delta=0).epsilon == 1
    assert Ledger(tmp_path / "l", budget=2).spend(old).spent == Fraction(1, 2)
    (tmp_path / "r.json").write_text(json.dumps(old))
    for name in ("data.csv", "made.csv"):
        frame.to_csv(tmp_path / name, index=False)
    files = [str(tmp_path / name) for name in ("data.csv", "made.csv", "r.json")]
    assert main(["evaluate", *files[:2], "--record", files[2]]) == 0
    assert main(["account", "--records", files[2], files[2], "--delta", "0"]) == 0
