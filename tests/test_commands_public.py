"""The commands that read no data: what they say is what the library says."""

import json
import re
from decimal import Decimal, localcontext
from fractions import Fraction
from io import StringIO
from math import comb

import pandas as pd
import pytest
from calling import called

import smalldb
from queries import Domain, Marginals
from smalldb import accounting, bounds
from smalldb.commands.account import account_text
from smalldb.exact.numbers import as_fraction, brief, rounded_up


def needed(said):
    return {row["name"]: row["value"] for row in said["needs"]}


def strict(text):
    """Read JSON as all readers do: no NaN, no Infinity."""

    def refuse(name):
        raise AssertionError(name)

    return json.loads(text, parse_constant=refuse)


def test_plan(capfd):
    given = ("plan", "--attributes", 10, "--n", 5000, "--epsilon", 1, "--queries", "marginals:2")
    given += ("--mechanism", "census")
    code, out, err = called(capfd, *given)
    universe = Domain([f"x{i + 1}" for i in range(10)])
    plan = smalldb.plan(universe, Marginals(2), n=5000, epsilon=1, mechanism="census")
    assert (code, err) == (0, "")
    assert f"{plan.candidate_count:,} multisets of {plan.rows} rows" in out
    assert "plain noise is expected to be more accurate" in out
    said = json.loads(called(capfd, *given, "--json")[1])
    assert (said["rows"], said["n"], said["candidate_count"]) == (plan.rows, 5000, str(plan.candidate_count))
    assert said["expected_error"] == plan.expected_error
    assert said["alternatives"] == plan.alternatives
    assert said["alternatives"]["answers"] == bounds.laplace_answers(n=5000, queries=190, epsilon=1)
    quarter = bounds.laplace_histogram(n=5000, cells=1024, queries=190, epsilon=1, support=512)
    assert said["alternatives"]["histogram"] == quarter
    assert said["bounds"]["sharp"] == plan.bound
    assert said["cost"]["operations"] == plan.chosen.work.operations


@pytest.mark.slow
def test_a_plan_of_marginals_says_why_and_what_it_expects(capfd):
    given = ("plan", "--attributes", 8, "--n", 5000, "--epsilon", 1, "--queries", "conjunctions:2")
    code, out, _ = called(capfd, *given, "--verbose")
    plan = smalldb.plan(Domain([f"x{i + 1}" for i in range(8)]), "conjunctions:2", n=5000, epsilon=1)
    assert code == 0
    assert plan.mechanism == "marginals"
    assert f"mechanism: marginals of {plan.strategy}, 5000 rows\n" in out
    assert f"chosen:    {plan.why}\n" in out
    assert f"expected:  an error of about {plan.expected_error:.2g}" in out
    assert out.index("expected:") < out.index("bound:     the release computes")
    assert plan.expected_range is None or "for about nine tables of ten" in out
    side = f"about {plan.expected_error:.2g} at epsilon 1, by marginals of {plan.strategy}"
    assert f"\npure:      {side}\n" in out
    assert "\ndelta:     would not make it smaller\n" in out
    said = json.loads(called(capfd, *given, "--json")[1])
    assert said["compared"] == {"delta": None, "error": plan.expected_error}
    assert (said["mechanism"], said["candidate_count"], said["cost"]) == ("marginals", None, None)
    assert (said["bounds"]["released"], said["why"]) == (None, plan.why)


def test_a_plan_says_what_it_would_be_with_a_delta_and_without(capfd, examples):
    given = ("plan", "--schema", examples / "survey.toml", "--n", 5000, "--epsilon", 1)
    pure, mixed = (called(capfd, *given, *more)[1] for more in ((), ("--delta", "1e-9")))
    errors = [re.search(r"expected:  an error of about ([^ ;]+)", out)[1] for out in (pure, mixed)]
    assert float(errors[1]) < float(errors[0])
    for out in (pure, mixed):
        assert f"\npure:      about {errors[0]} at epsilon 1, by" in out
        assert f"\ndelta:     about {errors[1]} at (1, 1e-09), by" in out
    assert json.loads(called(capfd, *given, "--json")[1])["compared"]["delta"] == "0.000000001"


def test_a_plan_says_that_most_pairs_will_come_out_as_independent(capfd, examples):
    given = ("plan", "--schema", examples / "survey.toml", "--n", 5000, "--epsilon")
    few, many = (called(capfd, *given, epsilon, "--strategy", "adaptive")[1] for epsilon in ("4", "30"))
    pairs = [
        int(re.search(r"about (\d+) of 78 pairs of columns will be measured", said)[1])
        for said in (few, many)
    ]
    assert 0 < pairs[0] < 39 < pairs[1] < 78
    assert "others are assumed to be independent, given the columns in between" in few
    low, high = re.search(r"; (\S+) to (\S+) for about nine tables of ten", few).groups()
    assert float(high) > float(low) > 0


def test_a_plan_says_what_its_cost_depends_on_what_is_better_and_what_is_private(capfd):
    drawn = "--attributes 12 --n 400 --epsilon 1 --rows 20 --queries conjunctions:2"
    small = "--attributes a --n 50 --epsilon 1/10 --rows 1"
    private = "--attributes a,b --neighbours add-remove --epsilon 1 --rows 2"
    outputs = {}
    for given in (drawn, small, private):
        code, outputs[given], _ = called(capfd, "plan", *given.split())
        assert code == 0
    assert "drawn exactly from all about 10^72 tuples of 20 rows" in outputs[drawn]
    assert "cost:      depends on the data" in outputs[drawn]
    said = json.loads(called(capfd, "plan", *drawn.split(), "--json")[1])
    assert said["candidate_count"] == str(2 ** (12 * 20))
    assert "instead:" in outputs[small]
    assert "n is private" in outputs[private] and "instead" not in outputs[private]


def test_bounds_are_the_librarys(capfd):
    given = {"n": 1000, "cells": 16, "queries": 10, "epsilon": 1, "beta": "0.05"}
    arguments = ("bounds", "--attributes", 4, "--size", 10, "--n", 1000, "--epsilon", 1, "--error", "0.1")
    code, out, err = called(capfd, *arguments)
    assert (code, err) == (0, "")
    for figure in ("0.48506341", "0.46559032", "0.44770934", "0.25961532", "0.19157577", "0.11779786"):
        assert figure[:-1] in out  # the worked table of the theory, rounded up
    said = json.loads(called(capfd, *arguments, "--json")[1])
    promised = {row["name"]: row for row in said["promises"]}
    assert promised["sharp, best rows"] == {
        "name": "sharp, best rows",
        "error": bounds.sharp(**given, rows=98),
        "rows": 98,
        "note": None,
    }
    assert promised["Theorem 4.5 (4.2), as printed"]["rows"] == 40
    assert needed(said)["n, by the sharp bound"] == bounds.sharp_data(
        error="0.1", cells=16, queries=10, epsilon=1, beta="0.05"
    )
    assert said["vc"] is None


def test_vacuous_bounds_are_said_to_be_and_stay_json(capfd):
    arguments = ("bounds", "--attributes", 3, "--n", 1, "--epsilon", "0.001")
    code, out, _ = called(capfd, *arguments)
    assert code == 0
    promised, beside = out.split("\n\n")[1:]
    assert all("vacuous" in line for line in promised.splitlines()[1:])
    assert all("vacuous" in line for line in beside.splitlines()[1:-1])
    assert "any private mechanism, at least (packing)" in beside.splitlines()[-1]
    said = strict(called(capfd, *arguments, "--json")[1])
    assert all(row["error"] > 1 for row in said["promises"])
    counted = ("--mechanism", "census")
    code, out, _ = called(capfd, "plan", *arguments[1:], *counted, "--verbose")
    assert code == 0
    assert out.count("(vacuous)") == 5
    large = ("plan", "--attributes", 3, "--n", 9999, "--epsilon", 9, *counted)
    assert "(vacuous)" not in called(capfd, *large)[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        "bounds --attributes 5000 --size 5 --n 1000 --epsilon 1 --error 0.1",
        "bounds --attributes 4 --n 10 --epsilon 1e-320",
        "bounds --attributes 4 --n 10 --epsilon 1e400",
        "plan --attributes 4 --n 1 --epsilon 1e-400",
        "account --epsilon 1e-300 2 --delta 1e-300",
    ],
)
def test_extreme_numbers_stay_short_and_json(capfd, arguments):
    code, out, err = called(capfd, *arguments.split())
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) < 140
    said = called(capfd, *arguments.split(), "--json")[1]
    assert strict(said)
    if not arguments.startswith("plan"):  # a record spells its numbers out
        assert "0" * 40 not in said


@pytest.mark.slow
@pytest.mark.parametrize(
    "what", [("--attributes", 10, "--size", 1, "--n", 16), ("--attributes", 1, "--n", 100)], ids=str
)
def test_the_lectures_bounds_of_one_query_are_those_of_two(capfd, what):
    """As printed they promise .908 and less where P(error = 1) is .2555."""
    given = {"n": what[-1], "cells": 2 ** what[1], "queries": 2, "epsilon": 1, "beta": "0.05"}
    _, out, _ = called(capfd, "bounds", *what, "--epsilon", 1, "--error", "0.3")
    noted = [line for line in out.splitlines() if line.endswith("as for two queries: false for one")]
    assert all("Theorem 4.5" in line or "as printed" in line for line in noted)
    said = strict(called(capfd, "bounds", *what, "--epsilon", 1, "--error", "0.3", "--json")[1])
    rows = {row["name"]: row for row in said["promises"] + said["needs"]}
    printed = [name for name in rows if "Theorem 4.5" in name or "as printed" in name]
    assert len(printed) == len(noted) >= 5
    assert {name for name in rows if rows[name]["note"] is not None} == set(printed)
    assert rows["Theorem 4.5 (4.2), as printed"]["error"] == bounds.theorem_4_5(**given)
    assert rows["Proposition 4.4 as printed, at its best alpha"]["error"] == bounds.proposition_4_4(**given)
    del given["n"]
    assert rows["n, by Theorem 4.5 (4.3)"]["value"] == bounds.theorem_4_5_data(error="0.3", **given)


@pytest.mark.parametrize("bound", [0.0, 5e-324, 1e-12, 0.1234567891, 1.0, 1234.56789123, 1e300])
@pytest.mark.parametrize("digits", [3, 8])
def test_a_bound_is_never_told_too_low(bound, digits):
    told = Fraction(rounded_up(bound, digits))
    assert Fraction(bound) <= told <= Fraction(bound) * (1 + Fraction(10) ** (1 - digits))
    assert len(rounded_up(bound, digits)) < 20


@pytest.mark.parametrize("text", ["1e-300", "1.25e+400", "0.05", "12345678901234567890123", "1/3", "3e-25"])
def test_numbers_are_told_in_short_and_exactly(text):
    told = brief(as_fraction(text, "x"))
    assert as_fraction(told, "x") == as_fraction(text, "x")
    assert len(told) <= max(len(text), 20)


def needs_of(capfd, *arguments):
    """What an error needs, as it is printed and as JSON has it."""
    given = ("bounds", "--attributes", 4, "--size", 10, *arguments)
    out = called(capfd, *given)[1].split("what an error")[1]
    printed = {line[:64].strip(): line[64:].strip() for line in out.splitlines()[1:]}
    return printed, needed(strict(called(capfd, *given, "--json")[1]))


@pytest.mark.slow
def test_large_and_small_needs_are_told(capfd):
    """A need of 10^18 or more is a number; where any epsilon will do, that is said."""
    printed, said = needs_of(capfd, "--n", 1000, "--epsilon", "1e-320", "--error", "0.1")
    name = "n, by the sharp bound"
    assert Fraction(printed[name]) >= said[name] > 10**300
    assert printed["queries at most, by the sharp bound"] == "0"
    printed, said = needs_of(capfd, "--n", 10**9, "--epsilon", 9, "--error", "0.9", "--beta", "0.999")
    assert said["epsilon, by the sharp bound"] == 0.0
    assert printed["epsilon, by the sharp bound"] == "any"
    assert printed["queries at most, by the sharp bound"] == "any number"


def test_the_needs_are_those_of_the_rows_given(capfd):
    given = ("--n", 1000, "--epsilon", 1, "--rows", 12)
    printed, said = needs_of(capfd, *given, "--error", "0.1")
    for name in ("n, by the sharp bound", "epsilon, by the sharp bound"):
        assert said[name] is None
        assert printed[name].split("  ") == ["nothing will do", "with 12 rows"]
    _, said = needs_of(capfd, *given, "--error", "0.4")
    base = {"error": "0.4", "cells": 16, "queries": 10, "epsilon": 1, "beta": "0.05"}
    assert said["n, by the sharp bound"] == bounds.sharp_data(**base, rows=12) > bounds.sharp_data(**base)


def test_bounds_of_a_class(capfd):
    arguments = ("bounds", "--attributes", "a,b,c", "--queries", "halfspaces", "--n", 50, "--epsilon", "1/2")
    code, out, _ = called(capfd, *arguments, "--rows", 7, "--candidates", "tuples", "--error", "1/4")
    assert code == 0
    assert "halfspaces: 51 distinct queries on 8 cells" in out
    assert "vacuous" in out
    assert "neighbourhood" not in out
    said = json.loads(called(capfd, *arguments, "--error", "1/4", "--json")[1])
    assert said["vc"] == [4, 4]
    assert needed(said)["rows for a deviation of half that by VC dimension 4, sauer"] == bounds.vc_rows(
        dimension=4, alpha="1/8", method="sauer", cells=8
    )


@pytest.mark.slow
def test_account_is_the_librarys(capfd):
    given = ("account", "--epsilon", 0.5, "--releases", 10, "--delta", "1e-6")
    code, out, err = called(capfd, *given, "--bounded-range")
    assert (code, err) == (0, "")
    for figure in "3.63235 4.01029 4.46707 4.46815 4.99989 9.53589 11.5549 3.56908 3.74722".split():
        assert figure in out
    assert out.index("3.63235") < out.index("no bounds here") < out.index("3.56908")
    said = json.loads(called(capfd, *given, "--fixed", "--bounded-range", "--json")[1])
    made = accounting.compose(epsilon="0.5", releases=10, delta="1e-6", adaptive=False, bounded_range=True)
    assert (said["epsilon"], said["method"]) == (made.epsilon, made.method)
    assert "range" not in called(capfd, *given)[1].replace("arrange", "")
    listed = json.loads(called(capfd, "account", "--epsilon", "1/2", "1/4", "--json")[1])
    assert (listed["epsilon"], listed["method"], listed["delta"]) == (0.75, "addition", "0")
    each = json.loads(
        called(capfd, "account", "--total", 1, "--releases", 10, "--delta", "1e-6", "--json")[1]
    )
    assert each["per_release"] == accounting.per_release(epsilon=1, releases=10, delta="1e-6")
    assert "may have epsilon" in called(capfd, "account", "--total", 1, "--releases", 10)[1]


def delta_of_responses(each: Fraction, releases: int, total: Fraction) -> Decimal:
    """The exact delta at which so many randomised responses keep within a total."""
    with localcontext() as context:
        context.prec = 60
        one, most = (Decimal(x.numerator) / Decimal(x.denominator) for x in (each, total))
        excess = (
            comb(releases, lies)
            * max(Decimal(0), (one * (releases - lies)).exp() - (most + one * lies).exp())
            for lies in range(releases + 1)
        )
        return sum(excess, Decimal(0)) / (1 + one.exp()) ** releases


@pytest.mark.parametrize(
    "epsilon, releases, delta", [("1", 20, "1e-5"), ("0.3", 7, "1e-3"), ("0.1", 1, "1e-6")]
)
def test_a_printed_epsilon_is_rounded_up(capfd, epsilon, releases, delta):
    """Its delta holds for it, in all pictures and words: 19.9947 had a delta of 1.005e-5."""
    given = ("account", "--epsilon", epsilon, "--releases", releases, "--delta", delta)
    told = re.match(r"together: \((\S+), ", called(capfd, *given)[1])[1]
    made = accounting.compose(epsilon=epsilon, releases=releases, delta=delta)
    assert Fraction(made.epsilon) <= Fraction(told) <= Fraction(made.epsilon) * (1 + Fraction(1, 10**5))
    assert delta_of_responses(Fraction(epsilon), releases, Fraction(told)) <= Decimal(delta)
    table = account_text(made)
    for method, value in zip(made.table["method"], made.table["epsilon"], strict=True):
        if method != "addition":
            (line,) = (line for line in table.splitlines() if line.startswith(f"  {method} "))
            assert Fraction(line[len(method) + 2 :].split()[0]) >= Fraction(value)


@pytest.mark.parametrize("releases", [1, 3, 7, 9])
def test_a_sum_of_epsilons_is_printed_as_it_is(releases):
    made = accounting.compose(epsilon="0.1", releases=releases, delta=0)
    assert account_text(made).startswith(f"together: (0.{releases}, 0)-differential privacy, by addition\n")
    assert made.added == Fraction(releases, 10)


@pytest.mark.parametrize(
    "total, releases, delta", [("0.3", 1, "0"), ("1", 7, "1e-6"), ("2", 3, "0"), ("1", 6, "0")]
)
def test_what_each_release_may_have_is_rounded_down(capfd, total, releases, delta):
    given = ("account", "--total", total, "--releases", releases, "--delta", delta)
    told = re.match(r"each of \d+ releases may have epsilon (\S+)\n", called(capfd, *given)[1])[1]
    each = as_fraction(accounting.per_release(epsilon=total, releases=releases, delta=delta), "each")
    assert each * (1 - Fraction(1, 10**9)) <= Fraction(told) <= each


@pytest.mark.slow
def test_what_a_composition_assumes_is_said_where_there_is_a_delta(capfd):
    """How many releases there are may depend on what was seen only where epsilons are added up."""
    assumed = "the number of releases and their epsilons did not depend on anything released"
    for given in (("--epsilon", "0.1", "--releases", 3), ("--total", 1, "--releases", 3)):
        assert f"assumed:  {assumed}\n" in called(capfd, "account", *given, "--delta", "1e-6")[1]
        assert "assumed" not in called(capfd, "account", *given)[1]
    given = ("account", "--epsilon", "0.1", "--releases", 3, "--json")
    assert strict(called(capfd, *given)[1])["assumed"] is None
    assert strict(called(capfd, *given, "--delta", "1e-6")[1])["assumed"] == assumed


def test_records_are_accounted_for(capfd, tmp_path):
    frame = pd.DataFrame({"a": [0, 1], "b": [1, 1]})
    record = smalldb.release(frame, epsilon="1/2", rows=2).record
    paths = [tmp_path / f"{i}.json" for i in range(3)]
    for path in paths:
        path.write_text(json.dumps(record))
    code, out, _ = called(capfd, "account", "--records", *paths)
    assert code == 0
    assert out.startswith("together: (1.5, 0)-differential privacy, by addition")
    for wrong in ("[1]", "{"):
        paths[0].write_text(wrong)
        code, _, err = called(capfd, "account", "--records", *paths)
        assert code == 2 and "is not a record" in err


def test_audit_says_both_relations(capfd):
    given = ("audit", "--attributes", 2, "--queries", "conjunctions:2", "--rows", 2, "--epsilon", 1, "--n", 6)
    code, out, _ = called(capfd, *given)
    assert code == 0
    assert "0.78199428126368" in out
    assert "0.55531240213481" in out
    said = json.loads(called(capfd, *given, "--json")[1])
    assert said["replace-one"]["loss"] == pytest.approx(0.7819942812636838, abs=1e-12)
    assert said["add-remove"]["cap"] == "0.75"
    assert Fraction(said["add-remove"]["cap"]) >= Fraction(said["add-remove"]["loss"])
    one = called(capfd, *given, "--neighbours", "add-remove")[1]
    assert "replace-one" not in one
    picked = (
        "audit", "--attributes", 2, "--epsilon", 1, "--n", 2, "--mechanism", "select", "--method",
        "noisy-max",
    )  # fmt: skip
    assert called(capfd, *picked)[0] == 0
    ranked = called(capfd, *picked[:-1], "top-k", "--k", 2, "--attributes", 1, "--queries", "marginals:1")
    assert (ranked[0], "k must be at most" in ranked[2]) == (2, True)  # one query is left
    assert called(capfd, *picked[:-1], "top-k", "--k", 2, "--n", 1)[0] == 0


def test_tables_as_csv(capfd):
    """The same numbers as the JSON has, in full; an infinite one and a missing one are empty."""
    given = (
        "bounds", "--attributes", 4, "--size", 10, "--n", 1000, "--epsilon", 1, "--error", "0.1", "--rows",
        12,
    )  # fmt: skip
    said = strict(called(capfd, *given, "--json")[1])
    text = StringIO(called(capfd, *given, "--csv")[1])
    frame = pd.read_csv(text, dtype={"value": str}).astype({"value": float})  # exactly, as pandas 2 does not
    assert list(frame.columns) == ["kind", "name", "value", "rows", "note"]
    parts = (("promises", "error"), ("besides", "error"), ("needs", "value"))
    wanted = [(row["name"].strip(), row[value]) for part, value in parts for row in said[part]]
    values = [None if pd.isna(v) else v for v in frame["value"]]
    assert [*zip(frame["name"], values, strict=True)] == wanted
    counts = frame["kind"].value_counts()
    assert (counts["promise"], counts["need"]) == (len(said["promises"]), len(said["needs"]))
    given = ("account", "--epsilon", "1/2", "--releases", 10, "--delta", "1e-6", "--bounded-range")
    text = StringIO(called(capfd, *given, "--csv")[1])
    frame = pd.read_csv(text, dtype={"epsilon": str}).astype({"epsilon": float})
    made = accounting.compose(epsilon="1/2", releases=10, delta="1e-6", bounded_range=True)
    assert frame["epsilon"].tolist() == made.table["epsilon"].tolist()
    assert frame["valid"].tolist() == made.table["valid"].tolist()
    out = called(capfd, "account", "--total", 1, "--releases", 10, "--csv")[1]
    assert out.split() == ["per_release", "0.1"]
    assert called(capfd, *given, "--csv", "--json")[0] == 2
