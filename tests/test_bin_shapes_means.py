"""Where numbers lie in their bins: what is measured of it, what that costs, and what follows from it."""

import json
import re
from dataclasses import replace
from fractions import Fraction
from functools import partial
from io import StringIO

import naive
import numpy as np
import pandas as pd
import pytest
import test_bin_shapes as finer_bins
from calling import called
from losses import Change
from records import check_record
from replay import Recording, letter
from test_replay import published

import smalldb
from smalldb.accounting.concentrated import rho_of
from smalldb.exact.bits import SeededBits
from smalldb.inference import Answer, Measurements, ask
from smalldb.marginals.asks import offsets_at_once
from smalldb.marginals.measuring import PrivacyMeasure
from smalldb.mechanisms import Marginal, Measurement, Offsets
from smalldb.mechanisms.recorded_universe import schema_ranges
from smalldb.noise.distributions import DiscreteGaussian, Geometric
from smalldb.noise.privacy_loss import Amount
from smalldb.releasing.learned_categories import gather_finer, no_offsets
from smalldb.releasing.transaction import Transaction
from smalldb.reporting.words import answer_cell
from smalldb.schema import Column, Cuts, parse_schema
from smalldb.schema.bin_shapes import HALF, UNITS, BinMeans, InBins, measurable

SCHEMA = """
columns.pay = { kind = "cuts", cuts = [100, 500], range = [0, 1000], missing = ["NA"] }
columns.age = { kind = "cuts", cuts = [30, 50], range = [18, 90], decimals = 0 }
columns.ill = { kind = "bool" }
"""


def people(n=2000, seed=1):
    """Pay of which most is low, also within bins."""
    rng = np.random.default_rng(seed)
    pay = np.minimum(np.round(rng.lognormal(4.5, 1, n), 1), 1000).astype(object)
    pay[rng.random(n) < 0.05] = "NA"
    return pd.DataFrame({"pay": pay, "age": rng.integers(18, 91, n), "ill": rng.random(n) < 0.3})


def all_paid():
    frame = people(1500)
    frame["pay"] = pd.to_numeric(frame["pay"], errors="coerce").fillna(20.0)
    return frame


def public(relation, n):
    return {"neighbours": relation, "n_max": n} if relation == "add-remove" else {}


@pytest.mark.parametrize(
    "kind",
    [
        Cuts([100, 500], 0, 1000),
        Cuts([30, 50], 18, 90, decimals=0),
        Cuts(["-0.25", "1e-9"], -1, "0.7"),
        Cuts([1, 2], 0, 3, decimals=0),
    ],
)
def test_an_offset_is_exact_and_at_most_half_a_bin(kind):
    inside, found = InBins.of(kind), set()
    texts = [f"{x:f}" for x in kind.edges] + "-7 1e999999 1e-999999 -1e-999999 0.1 33.3 49".split()
    texts += [str(x) for x in np.random.default_rng(2).uniform(float(kind.low), float(kind.high), 200)]
    for text in texts:
        code, offset = divmod(inside.code(text), UNITS + 1)
        assert code == kind.code(text)
        if "e" not in text:
            assert offset - HALF == naive.offset_in_bin(text, *kind.spans()[code], UNITS), text
        found.add(offset - HALF)
    assert min(found) >= -HALF and max(found) <= HALF
    assert measurable(kind) and {-HALF, HALF} <= found
    assert inside.code("x") is None


def test_bins_of_one_value_need_nothing_and_columns_with_finer_bins_do():
    assert not measurable(Cuts([1, 2], 0, 2, decimals=0)) and measurable(Cuts([1, 2], 0, 2))
    plain = 'columns.kids = { kind = "integers", range = [0, 9] }\ncolumns.ill = { kind = "bool" }'
    assert smalldb.plan(schema=plain, n=10**6, epsilon=1).means is None
    finer = SCHEMA.replace("range = [0, 1000]", "range = [0, 1000], finer = 4")
    assert smalldb.plan(schema=finer, n=10**6, epsilon=1).means.columns == (0, 1)


def test_sums_and_finer_counts_are_those_of_all_rows_as_often_as_they_occur():
    """But gaps."""
    schema = parse_schema(SCHEMA.replace("range = [0, 1000]", "range = [0, 1000], finer = 10"))
    frame = people(300)
    frame["n"] = np.arange(300) % 4
    finer = schema.columns[0].finer.kind
    expected, counted = {0: [0] * 3, 1: [0] * 3}, [0] * finer.size
    for row in frame.to_dict("records"):
        for c, name in enumerate(("pay", "age")):
            if row[name] != "NA":
                kind = schema.columns[c].kind
                code = kind.code(str(row[name]))
                offset = naive.offset_in_bin(str(row[name]), *kind.spans()[code], UNITS)
                expected[c][code] += row["n"] * offset
        if row["pay"] != "NA":
            counted[finer.code(str(row["pay"]))] += row["n"]
    sums, histograms = no_offsets(schema), {}
    assert [*gather_finer(schema, "n", histograms, schema.pieces(frame, "n"), sums)]
    assert {c: each.tolist() for c, each in sums.items()} == expected
    assert {name: counts.tolist() for name, counts in histograms.items()} == {"pay": counted}


@finer_bins.RELATIONS
def test_noise_is_for_what_a_row_moves(relation):
    """Half a bin of each column; of a row that is replaced both ends of one bin, or halves of two."""
    parts = [Offsets((0,), 3, UNITS), Offsets((2,), 5, UNITS)]
    halves = 2 if relation == "replace-one" else 1
    for concentrated in (False, True):
        law, cost = PrivacyMeasure(concentrated, relation == "replace-one"), Fraction(1, 10)
        asked = offsets_at_once(parts, law, cost)
        for noise, _ in asked.noises:
            if concentrated:
                assert noise == DiscreteGaussian(Fraction((halves * HALF) ** 2) / cost)
            else:
                assert noise == Geometric(cost / 2 / (halves * HALF))
        assert asked.lost(law.replaced, 1) == (Amount(rho=cost) if concentrated else Amount(cost))


MEANS = SCHEMA, people, {"pay": 500, "age": 18}, [{"pay": 1000, "age": 29}, {"pay": 499.9, "age": 90}]
FINER = finer_bins.SCHEMA, finer_bins.people, {}, [{"pay": 777, "day": "2001-12-30"}]


@finer_bins.RELATIONS
@pytest.mark.parametrize(
    ("what", "at", "more"),
    [
        (MEANS, -1, {"means": "1/4", "mechanism": "marginals"}),
        (MEANS, -1, {"means": "1/4", "mechanism": "marginals", "delta": "1e-2", "strategy": "contrasts"}),
        (FINER, 0, {}),
    ],
)
def test_replayed_on_a_neighbour_it_loses_what_it_states_and_tells_nothing_else(relation, what, at, more):
    """And on a table that has nothing to do with the first: values follow from what was released alone."""
    schema, made, first, others = what
    given = {"schema": schema, "epsilon": 1, **more, **public(relation, 300)}

    def released(seed, frame):
        return published(smalldb.release(frame, rng=SeededBits(seed), **given))

    frame = made(300)
    for name, value in first.items():
        frame.loc[0, name] = value
    recording = Recording(partial(released, 0), frame)
    assert letter(recording.steps[at]) == "f"
    plan = smalldb.plan(n=None if public(relation, 1) else 300, **given)
    assert (plan.means is None or plan.means.rho is None) == ("delta" not in more)
    for other in others:
        changed = frame.copy()
        if relation == "add-remove":
            changed = frame.iloc[1:].reset_index(drop=True)
        else:
            for name, value in other.items():
                changed.loc[0, name] = value
        delta = Fraction(more["delta"]) if "delta" in more else None
        assert recording.lost(changed, Change((), ()), Fraction(1), delta).ratio <= 1
    recording.replayed(made(300 if relation == "replace-one" else 251, seed=9))


@finer_bins.RELATIONS
def test_its_part_of_epsilon_is_stated(relation):
    more = public(relation, 2000)
    for each, settings in ((1, {}), (2, {"rows_per_person": 2})):
        plan = smalldb.plan(schema=SCHEMA, epsilon=1, n=None if more else 2000, **more, **settings)
        assert plan.means.epsilon == Fraction(1, 25) / each and plan.means.columns == (0, 1)
        assert plan.request.epsilon == Fraction(24, 25) / each and plan.epsilon == plan.privacy == 1
    made = smalldb.release(people(), schema=SCHEMA, epsilon=1, rng=5, **more)
    check_record(made.record)
    assert made.record["means"] == {"columns": ["pay", "age"], "epsilon": "0.04"}
    assert made.record["privacy"]["epsilon"] == "1"
    again = Measurements.from_record(json.loads(json.dumps(made.record)))
    assert [each.of for each in again] == [each.of for each in made.measurements]
    assert ask(again, "mean(pay)") == ask(made.measurements, "mean(pay)")
    noise = again[-1].noise
    assert noise == Geometric(Fraction(1, 50) / (HALF * (1 if more else 2)))


def test_beside_a_delta_it_has_what_all_of_epsilon_proves():
    given = {"schema": SCHEMA, "n": 2000, "epsilon": 1, "delta": "1e-2", "strategy": "contrasts"}
    plan = smalldb.plan(**given)
    proved = rho_of(Fraction(1), Fraction(1, 100))
    assert plan.means.rho + plan.chosen.guarantee.loss.rho == plan.loss.rho == proved
    assert plan.delta == Fraction(1, 100) and plan.privacy == 1
    two = smalldb.plan(**given | {"rows_per_person": 2})
    assert two.delta == Fraction(1, 100) and two.privacy == 1
    made = smalldb.release(people(), **{k: v for k, v in given.items() if k != "n"}, rng=3)
    check_record(made.record)
    assert "rho" in made.record["means"] and made.ask("mean(age)").estimate is not None


def test_it_can_be_left_out_and_is_where_it_tells_nothing():
    plan = partial(smalldb.plan, schema=SCHEMA, epsilon=1)
    assert plan(n=2000, means=0).means is None and plan(n=2000, means=0).request.epsilon == 1
    assert plan(n=200).means is None and plan(n=200).request.epsilon == 1
    assert plan(n=200, means="1/2").means.epsilon == Fraction(1, 2)
    assert plan(n=50, rows=2, mechanism="census", queries="marginals:1", means="1/2").means is None
    for share in (-1, "0.6"):
        with pytest.raises(ValueError, match="means must be a share of epsilon from 0, for none, to 1/2"):
            plan(n=2000, means=share)
    schema, frame = parse_schema(SCHEMA), people()
    rows = schema.encode(frame)
    for means in ({}, {"means": "1/2"}):  # rows that were counted have no values
        made = smalldb.release(rows, schema=schema, epsilon=1, rng=1, **means)
        assert made.plan.means is None and made.plan.request.epsilon == 1
    planned = smalldb.plan(schema=schema, n=2000, epsilon=1)
    assert smalldb.release(planned, rows, schema=schema, rng=1).record["epsilon"] == "0.96"
    with pytest.raises(ValueError, match="the plan was made for another schema"):
        other = parse_schema(SCHEMA.replace("range = [0, 1000]", "range = [0, 1000], finer = 4"))
        smalldb.release(planned, frame, schema=other)


def test_values_follow_the_released_means_and_stay_in_their_bins():
    """A bin whose numbers are near its end has drawn ones there; where noise is large, the shape is left."""
    for kind in (Cuts([100], 0, 1000), Cuts(["1.5"], 0, 9, decimals=2), Cuts([3], 0, 4, decimals=0)):
        codes = np.repeat([0, 1], [1000, 4000])
        plain = Column("x", kind).decode(codes, SeededBits(1)).astype(float)
        spans = [[float(end) for end in span] for span in kind.spans()]
        for at in (0.1, 0.9):
            sums = tuple(round((at - 0.5) * count * UNITS) for count in (1000, 4000))
            column = Column("x", kind, means=BinMeans(sums, 1.0, 5000.0))
            made = column.decode(codes, SeededBits(1)).astype(float)
            assert (column.codes(made) == codes).all()
            for code, (low, high) in enumerate(spans):
                wanted = min(low + at * (high - low), float(kind.at(kind.steps(code)[1])))
                assert made[codes == code].mean() == pytest.approx(wanted, abs=0.02 * (high - low))
            lost = replace(column, means=BinMeans(sums, 1e6 * UNITS, 5000.0))
            far = lost.decode(codes, SeededBits(1)).astype(float)
            assert far.mean() == pytest.approx(plain.mean(), rel=0.05)
            half = replace(column, means=BinMeans(sums, 1.0, 2500.0))  # of half as many rows in the data
            assert abs(half.decode(codes, SeededBits(1)).astype(float).mean() - plain.mean()) > 0


@pytest.mark.parametrize(
    ("schema", "made", "change"),
    [
        (SCHEMA, people, {"age": {31: 32}}),
        (finer_bins.SCHEMA, finer_bins.people, {"pay": {250: 550}}),
    ],
)
def test_a_release_goes_on_with_the_same_values_only(tmp_path, schema, made, change):
    """Others in the same bins are other data; with finer bins also where no means bind them."""
    given = {"schema": schema, "epsilon": 1, "checkpoint": tmp_path / "kept"}
    given |= {"means": 0} if "finer" in schema else {}
    frame = made()
    first, other = smalldb.release(frame, **given), frame.replace(change)
    assert smalldb.release(frame, **given).record == first.record
    parsed = parse_schema(schema)
    assert (parsed.encode(other).codes() == parsed.encode(frame).codes()).all()
    with pytest.raises(ValueError, match="other data or parameters"):
        smalldb.release(other, **given)


@pytest.mark.parametrize(("means", "apart"), [("1/2", 5), (0, 3)])
def test_a_release_is_bound_to_all_that_it_counts(monkeypatch, means, apart):
    """Of numbers in one bin: to each where means are measured, else to their finer bins."""
    schema, bound = SCHEMA if means else SCHEMA.replace("1000]", "1000], finer = 4"), []

    class Bound(Exception):
        pass

    def bind(*given):
        bound.append(str([array.tolist() for array in given[2:]]))
        raise Bound

    monkeypatch.setattr(Transaction, "bind", bind)
    for pay in (120, 130, 230, 430, 499):
        with pytest.raises(Bound):
            smalldb.release(people(300).assign(pay=pay), schema=schema, epsilon=1, means=means)
    assert len({*bound}) == apart


def test_categories_that_are_learned_have_means_too():
    frame, schema = people(), SCHEMA.replace("cuts = [100, 500]", 'cuts = "learn", share = "1/20", bins = 4')
    made = smalldb.release(frame, schema=schema, epsilon=4, rng=2, means="1/10")
    assert made.record["means"]["columns"] == ["pay", "age"]
    truth = pd.to_numeric(frame["pay"], errors="coerce").mean()
    answer = made.ask("mean(pay)")
    assert answer.low <= truth <= answer.high


def measured(frame, seed, rate=Fraction(1, 3), offsets=Fraction(1, 20 * UNITS)):
    """A table of all columns, and offsets, with noise."""
    schema = parse_schema(SCHEMA.replace(', missing = ["NA"]', ""))
    source, sums = SeededBits(seed), no_offsets(schema)
    assert [*gather_finer(schema, None, {}, schema.pieces(frame), sums)]
    table = schema.encode(frame)
    part = Marginal((0, 1, 2), tuple(tuple(range(size)) for size in schema.domain.sizes))
    counts = np.zeros(schema.domain.sizes, dtype=np.int64)
    np.add.at(counts, tuple(table.codes().T), table.counts)
    noise, inside = Geometric(rate), Geometric(offsets)
    items = [Measurement((part,), counts.ravel() + noise.draw(part.size, source), noise, Fraction(1))]
    for c, each in sums.items():
        drawn = each + inside.draw(len(each), source)
        items.append(Measurement((Offsets((c,), len(each), UNITS),), drawn, inside, Fraction(1)))
    return Measurements(schema.domain, items, len(frame), schema_ranges(schema))


QUESTIONS = {
    "mean(pay)": lambda d: d.pay.mean(),
    "sum(pay)": lambda d: d.pay.sum(),
    "mean(pay) | pay<500": lambda d: d.pay[d.pay < 500].mean(),
    "mean(pay) | ill": lambda d: d.pay[d.ill].mean(),
    "mean(age) - mean(age) | ill": lambda d: d.age.mean() - d.age[d.ill].mean(),
    "median(age)": lambda d: d.age.quantile(0.5, interpolation="lower"),
    "quantile(pay, 9/10) where ill": lambda d: d.pay[d.ill].quantile(0.9, interpolation="lower"),
}


@pytest.mark.slow
def test_intervals_hold_what_they_say_of_the_data():
    """Of a hundred releases at least 90 each at level .9: truth is that of the values, not of middles."""
    frame = all_paid()
    held = dict.fromkeys(QUESTIONS, 0)
    for seed in range(100):
        known = measured(frame, seed)
        for text, truth in QUESTIONS.items():
            if seed % 10 and text.endswith("| ill"):
                continue
            answer = ask(known, text, level="0.9")
            held[text] += answer.low <= truth(frame) <= answer.high
    always = [held.pop(text) for text in QUESTIONS if text.endswith("| ill")]  # for they hold for any groups
    assert min(held.values()) >= 86 and always == [10, 10], (held, always)  # P(< 86 of 100 at .9) = .05
    exact = measured(frame, 1, Fraction(60), Fraction(60))
    for text in ("mean(pay)", "mean(pay) | pay<500"):
        answer = ask(exact, text)
        assert answer.estimate == pytest.approx(QUESTIONS[text](frame), rel=1e-4)
        assert answer.high - answer.low < 1e-3 * answer.high and answer.guess is None


def test_what_is_assumed_of_groups_is_a_guess_below_the_interval_that_holds():
    frame = all_paid()
    answer = ask(measured(frame, 1), "mean(pay) | ill")
    assert answer.estimate is None and answer.low < answer.guess_low < answer.guess
    assert answer.guess < answer.guess_high < answer.high
    assert answer.note == "the guess assumes the same mean of a bin in every group"
    assert answer.guess_low <= frame.pay[frame.ill].mean() <= answer.guess_high
    plain = ask(without_offsets(measured(frame, 1)), "mean(pay) | ill")
    assert (plain.low, plain.high) == (answer.low, answer.high) and plain.guess_low is None


def without_offsets(known):
    return Measurements(known.domain, known[:1], known.n, known.ranges)


def test_of_few_rows_ends_of_bins_serve_better_than_noise():
    """A wide bin of 30 rows: its offsets are lost in noise of 300, and the interval holds nevertheless."""
    frame = all_paid()
    known = measured(frame, 3, offsets=Fraction(1, 300 * UNITS))
    noisy, ends = ask(known, "mean(pay)"), ask(without_offsets(known), "mean(pay)")
    assert noisy.high - noisy.low <= 1.02 * (ends.high - ends.low)
    assert noisy.low <= frame.pay.mean() <= noisy.high


def test_a_population_is_held_too():
    """Draws of 200 rows of a table: the mean of the table is inside."""
    frame = all_paid()
    held = 0
    for seed in range(40):
        some = frame.sample(200, random_state=seed).reset_index(drop=True)
        known = measured(some, seed, Fraction(4), Fraction(1, UNITS))
        answer = ask(known, "mean(pay)", population=True, level="0.9")
        held += answer.low <= frame.pay.mean() <= answer.high
    assert held >= 34


def test_the_command_asks_sums_and_medians_and_says_what_is_known(workdir, capfd):
    people().to_csv("data.csv", index=False)
    (workdir / "s.toml").write_text(SCHEMA)
    more = ("--means", "1/10", "--seed", 1, "--measurements", "r.json", "-o", "out.csv")
    code, _, _ = called(capfd, "generate", "data.csv", "--schema", "s.toml", "--epsilon", 1, *more)
    assert code == 0 and json.loads((workdir / "r.json").read_text())["means"]["epsilon"] == "0.1"
    code, out, _ = called(capfd, "ask", "r.json", "mean(age)", "mean(age) | ill", "median(age)", "sum(age)")
    assert code == 0 and "under this assumption)" in out
    assert "from 30 to 49" in out or "from 50 to 90" in out
    code, out, _ = called(capfd, "ask", "r.json")  # what is known
    assert code == 0 and "age: bins: age<30, 30<=age<50, age>=50; its means are measured" in out
    assert "ill: yes/no: no, yes" in out and "pairs of columns were not measured together" in out
    code, out, _ = called(capfd, "ask", "r.json", "--json")
    known = json.loads(out)
    assert [each["kind"] for each in known["columns"]] == ["bins", "bins", "yes/no"]
    assert len(known["pairs"]) + known["pairs_not_measured"] == 3


def test_tables_of_answers_are_those_of_single_questions(workdir, capfd):
    """By groups and as the first table of a paper: text, CSV, JSON and Markdown; errors in their place."""
    given = {"schema": SCHEMA, "epsilon": 1, "strategy": "cells", "mechanism": "marginals", "rng": 1}
    made = smalldb.release(people(), **given)
    (workdir / "r.json").write_text(json.dumps(made.record))
    code, out, _ = called(capfd, "ask", "r.json", "--table1", "--by", "ill", "--json")
    rows = {row["row"]: row["groups"] for row in json.loads(out)}
    assert code == 0 and [*rows] == ["pay, mean", "pay, median", "age, mean", "age, median"]
    assert [*rows["age, mean"]] == ["all", "not ill", "ill"]
    cases = [("all", "mean(age)"), ("ill", "mean(age) where ill"), ("not ill", "mean(age) where ~ill")]
    for group, question in cases:
        assert rows["age, mean"][group]["low"] == ask(made.measurements, question).low
    code, out, _ = called(capfd, "ask", "r.json", "age", "ill | age<30", "--by", "ill", "--csv")
    assert code == 0 and out.startswith("row,group,known,estimate,low,high,guess,") and out.count("\n") == 10
    code, out, _ = called(capfd, "ask", "r.json", "--table1", "--markdown")
    lines = out.splitlines()
    assert code == 0 and lines[:2] == ["|  | all |", "|---|---|"] and lines[2].startswith("| pay, mean | ")
    assert any(line.startswith("| ill | ") and "%" in line for line in lines)
    code, out, err = called(capfd, "ask", "r.json", "ill", "nobody", "--by", "age")
    assert code == 1 and "error" in out and "3 cells have an error" not in out + err and "4 cells" in err
    made = replace(Answer("mean(age)", "measured", None, 20.0, 40.0, 0.95, False), guess=31.4, guess_low=31.0)
    assert answer_cell(replace(made, guess_high=32.0)) == "20 to 40; about 31.4*"
    for wrong in (["--by", "ill"], ["ill", "--by", "nobody"], ["ill", "--markdown"]):
        assert called(capfd, "ask", "r.json", *wrong)[0] == 2


def test_numbers_are_rounded_by_their_intervals(workdir, capfd):
    """Years once had the mean `1997 (1997 to 1997)`; what is not measured shows the synthetic value."""
    schema = 'columns.year = { kind = "integers", range = [1995, 2003] }\ncolumns.ill = { kind = "bool" }\n'
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"year": rng.binomial(8, 0.2, 9000) + 1995, "ill": rng.random(9000) < 0.2})
    given = {"schema": schema, "epsilon": 2, "mechanism": "marginals", "strategy": "adaptive", "rng": 1}
    made = smalldb.release(frame, "marginals:1", **given)
    (workdir / "s.toml").write_text(schema)
    (workdir / "r.json").write_text(json.dumps(made.record))
    made.data.to_csv("new.csv", index=False)
    synthetic = ("--synthetic", "new.csv", "--schema", "s.toml")
    code, out, _ = called(capfd, "ask", "r.json", "--table1", "--by", "ill", *synthetic)
    (line,) = (line for line in out.splitlines() if line.startswith("year, mean"))
    estimate, low, high = map(float, re.findall(r"[\d.]+", line)[:3])
    assert code == 0 and low < frame.year.mean() < high and low < estimate < high
    assert f"{made.data.year[made.data.ill].mean():.6g}+" in line and "+: in the synthetic table" in out
    code, out, _ = called(capfd, "ask", "r.json", "--table1", "--by", "ill", *synthetic, "--csv")
    rows = pd.read_csv(StringIO(out)).set_index(["row", "group"])
    assert rows.assumed["year, mean", "ill"] == pytest.approx(made.data.year[made.data.ill].mean())
