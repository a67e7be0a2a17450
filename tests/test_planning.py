"""Plans: public, within the budget to the last row, and true to what then happens."""

import csv
import json
from math import comb

import numpy as np
import pandas as pd
import pytest
from builders import counted, flags
from calling import called

import smalldb
from queries import Column, Conjunctions, Domain, Linear, Marginals, Parities, Predicates, Rows
from smalldb.commands.plan import plan_account, plan_json
from smalldb.counting import cost
from smalldb.counting.cost import EASY, MEMORY, OPERATIONS, VISITS, overhead, rehearse, work
from smalldb.counting.dynamic_engine import count_scores
from smalldb.counting.enumeration_engine import enumerate_scores
from smalldb.counting.recursion import state_bytes
from smalldb.counting.scores import MAX_RANKS, MAX_SCORE, Scores
from smalldb.mechanisms import Marginal
from smalldb.planning.plans import pairs_reached, tables_reached
from smalldb.releasing.imputed_tables import check_drawable
from smalldb.reporting.words import laid_out, tell


def largest(domain, queries, **keywords):
    """The largest rows that a refusal names."""
    with pytest.raises(ValueError, match="the largest that can be done by census is") as caught:
        smalldb.plan(domain, queries, epsilon=1, rows=10**9, mechanism="census", **keywords)
    return int(str(caught.value).split("the largest that can be done by census is ")[1].split()[0])


def plannable(domain, queries, rows, **keywords):
    try:
        planned = smalldb.plan(domain, queries, epsilon=1, rows=rows, mechanism="census", **keywords)
        return planned.rows == rows
    except ValueError:
        return False


@pytest.mark.parametrize(
    ("domain", "queries", "keywords", "limit"),
    [
        # scores below 2^62
        (Domain(["a"]), Predicates(["a"]), {"n": 2**40}, (MAX_SCORE - 1) // 2**40),
        (Domain(["a"]), Predicates(["a"]), {"neighbours": "add-remove"}, (MAX_SCORE - 1) // 2**40),
        (Domain(["a"]), Linear([[0, "1/8"]]), {"n": 2**40}, (MAX_SCORE - 1) // 2**43),
        # entries of the rank tables
        (Domain(["a"]), Predicates(["a"]), {"n": 10}, MAX_RANKS - 1),
        (Domain(["a"]), Linear([[0, "1/1000"], ["1/7", 0]]), {"n": 10}, (MAX_RANKS // 2 - 1) // 7000),
    ],
)
def test_the_largest_rows_are_the_largest(domain, queries, keywords, limit):
    assert largest(domain, queries, **keywords) == limit
    assert plannable(domain, queries, limit, **keywords)
    assert not plannable(domain, queries, limit + 1, **keywords)


@pytest.mark.slow
@pytest.mark.parametrize(("d", "queries"), [(7, Conjunctions(2)), (4, Marginals(2)), (9, Marginals(1))])
def test_the_budget_binds_where_cost_does(d, queries):
    domain = flags(d)
    workload = queries.workload(domain)
    found = largest(domain, queries, n=100)
    assert plannable(domain, queries, found, n=100)
    assert not plannable(domain, queries, found + 1, n=100)
    needed = work(workload, found)
    if needed.engine == "enumeration":
        assert needed.operations == comb(2**d + found - 1, found) * workload.size <= VISITS
    else:
        assert needed.operations <= OPERATIONS
        assert needed.memory <= MEMORY
    assert comb(2**d + found, found + 1) * workload.size > VISITS
    assert rehearse(workload, "multisets").estimate(found + 1) is None or (
        rehearse(workload, "multisets").estimate(found + 1).memory > MEMORY
    )


@pytest.mark.parametrize(
    ("domain", "queries", "message"),
    [
        (flags(21), Conjunctions(1), "at most 20 attributes, not 21"),
        (flags(18), Marginals(2), "queries on 262144 cells are too many"),
        (flags(30, "x0"), Conjunctions(1), "at most 20 attributes, not 30"),
        (Domain(["a"]), Linear([[0, f"1/{2**61}"]]), "scores would reach 2\\^62"),
        (Domain(["a"]), Linear([[0, f"1/{2**30}"]]), "score tables .* are too large"),
    ],
)
def test_what_no_rows_can_do_is_refused_for_its_own_reason(domain, queries, message):
    with pytest.raises(ValueError, match=f"{message}.*no number of rows can be done"):
        smalldb.plan(domain, queries, n=2, epsilon=1, rows=1, mechanism="census")


LARGE = [  # public inputs of all kinds; each took long, or was refused for a false reason, at some time
    (flags(10), Marginals(4), {"rows": 5}),
    (flags(12), Conjunctions(2), {}),
    (flags(12), Conjunctions(2), {"rows": 1, "candidates": "tuples"}),
    (flags(12), Predicates(["x0"]), {"rows": 10**5}),
    (flags(20), Predicates(["x0"]), {"rows": 6 * 10**7}),
    (flags(20), Conjunctions(1), {"rows": 1}),
    (flags(1, "x0"), Conjunctions(1), {"rows": 3}),
    (flags(2), Linear([[0, f"1/{2**24}", 1, 0]]), {"rows": 2, "candidates": "tuples"}),
    (flags(6), Linear([[f"{i}/{2**20}" for i in range(64)]]), {"rows": 8}),
    (flags(1), Conjunctions(1), {"candidates": "tuples"}),
    (flags(6), Conjunctions(1), {"rows": 10**9}),
    (flags(6, "x0"), Predicates(["x0"]), {"rows": 10**6, "candidates": "tuples"}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("domain", "queries", "choices"), LARGE)
def test_any_plan_is_made_in_bounded_work(domain, queries, choices, monkeypatch):
    """Whatever is rehearsed is within the bound on steps; nothing else is long."""
    rehearsed = []

    def counted(scores, *, candidates, threads):
        found = count_scores(scores, candidates=candidates, threads=threads)
        workload = queries.workload(domain)
        rehearsed.append(overhead(workload, scores.rows, candidates) + found.cost.operations)
        return found

    monkeypatch.setattr(cost, "count_scores", counted)
    rehearse.cache_clear()
    try:
        plan = smalldb.plan(domain, queries, n=1000, epsilon=1, mechanism="census", **choices)
    except ValueError as error:
        assert "the largest that can be done by census is" in str(error) or "no number of rows" in str(error)
    else:
        assert plan.chosen.work.operations <= VISITS
    assert sum(rehearsed) < 60 * cost.REHEARSED_STEPS


SMALL = pd.DataFrame({"a": [0, 1], "b": [1, 1]})
MANY = Rows.from_counts(Domain(["a", "b"]), Domain(["a", "b"]).decode(np.eye(2, dtype=int)), [1, 2**61])


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"shards": 0}, ValueError, "shards must be a whole number"),
        ({"shards": 2.5}, TypeError, "shards must be a whole number"),
        ({"threads": 0}, ValueError, "threads must be a whole number"),
        ({"threads": "2"}, TypeError, "threads must be a whole number"),
        ({"executor": 3}, TypeError, "executor must be"),
        ({"rows": 0}, ValueError, "rows must be a whole number"),
        ({"rows": True}, TypeError, "rows must be a whole number"),
        ({"rows": 2.0}, TypeError, "rows must be a whole number"),
        ({"rows": 10**5}, ValueError, "beyond the budget"),
        ({"rows": 2**22, "engine": "enumeration"}, ValueError, "up to 2\\^62 candidates"),
        ({"candidates": "tuples", "engine": "enumeration"}, ValueError, "tuples need engine 'dynamic'"),
        ({"engine": "fast"}, ValueError, "engine must be"),
        ({"data": MANY, "rows": 4}, ValueError, "reach 2\\^62"),
        ({"data": MANY, "domain": Domain(["a"])}, ValueError, "not the domain of the given rows"),
        ({"domain": ["a", "b"]}, TypeError, r"domain must be a queries\.Domain"),
    ],
)
def test_bad_censuses_are_refused(change, kind, message):
    given = {"data": SMALL, "queries": Conjunctions(2), "rows": 2} | change
    with pytest.raises(kind, match=message):
        smalldb.census(given.pop("data"), given.pop("queries"), **given)


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        *(({"n": n}, ValueError, "n must be a whole number") for n in (0, -1)),
        *(({"n": n}, TypeError, "n must be a whole number") for n in (2.5, True, "5")),
        ({"n": None}, (TypeError, ValueError), "n must be a whole number"),
        (
            {"queries": Linear([[0, "1/8"]]), "n": np.int64(2**60), "rows": np.int64(2)},  # these do not wrap
            ValueError,
            "scores would reach 2\\^62",
        ),
        *(
            ({"domain": odd}, TypeError, r"domain must be a queries\.Domain")
            for odd in ({"a", "b"}, SMALL, "a,b")
        ),
        ({"mechanism": "anwsers"}, ValueError, "mechanism must be"),
        ({"candidates": "sets"}, ValueError, "candidates must be"),
    ],
)
def test_bad_plans_are_refused(change, kind, message):
    given = {"domain": Domain(["a"]), "queries": Predicates(["a"]), "n": 10, "rows": 2, "mechanism": "census"}
    given |= change
    with pytest.raises(kind, match=message):
        smalldb.plan(given.pop("domain"), given.pop("queries"), epsilon=1, **given)


def test_one_query_is_promised_nothing_false():
    plan = smalldb.plan(Domain(["a"]), Predicates(["a"]), n=100, epsilon=1, rows=3)
    sizes = {"n": 100, "cells": 2, "epsilon": 1, "beta": "1/20"}
    assert plan.theorem_4_5 == smalldb.bounds.theorem_4_5(queries=2, **sizes)
    assert plan.bound == smalldb.bounds.sharp(queries=1, rows=3, **sizes)


def test_tuples_have_their_own_bounds():
    multisets, tuples = (
        smalldb.plan(flags(3), Conjunctions(2), n=100, epsilon=1, rows=6, candidates=base)
        for base in ("multisets", "tuples")
    )
    assert (multisets.candidate_count, tuples.candidate_count) == (comb(13, 6), 8**6)
    assert multisets.bound < tuples.bound
    assert multisets.expected_error < tuples.expected_error
    assert multisets.proposition_4_4 < tuples.proposition_4_4


def test_a_plan_is_public_and_the_same_each_time(monkeypatch):
    workload = Conjunctions(2).workload(flags(4))
    first = work(workload, 30)
    rehearse.cache_clear()
    monkeypatch.setattr(cost, "process_time", iter(range(1000)).__next__)
    assert work(workload, 30) == first  # but for the seconds
    assert first.engine == "dynamic"
    assert work(workload, 8).engine == "enumeration"
    assert work(workload, 8).operations <= EASY


def autoworkers(examples, d):
    with (examples / "autoworkers.csv").open() as file:
        cells = [int("".join(row[:d]), 2) for row in list(csv.reader(file))[1:]]
    return np.bincount(cells, minlength=2**d)


def shapes(cells, seed):
    """Tables of many shapes, other than those that are rehearsed with."""
    source = np.random.default_rng(seed)
    ends = np.zeros(cells, dtype=np.int64)
    ends[[0, -1]] = 10_000, 7_000
    yield ends
    yield np.bincount([cells // 3], minlength=cells) * 20_000
    for spread in (0.05, 0.7, 5):
        yield source.multinomial(20_000, source.dirichlet(np.full(cells, spread)))
    yield source.multinomial(500, source.dirichlet(np.full(cells, 0.7)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("d", "queries", "rows", "candidates"),
    [
        (3, Conjunctions(2), 30, "multisets"),
        (4, Conjunctions(2), 14, "multisets"),
        (4, Marginals(2), 10, "multisets"),
        (5, Conjunctions(1), 12, "multisets"),
        (5, Conjunctions(2), 8, "multisets"),
        pytest.param(6, Conjunctions(2), 7, "multisets", marks=pytest.mark.long),
        (4, Parities(3), 8, "multisets"),
        (4, Conjunctions(2), 10, "tuples"),
        (4, Linear([[f"{i % 5}/20" for i in range(16)]]), 20, "multisets"),
    ],
)
def test_estimates_are_not_exceeded_and_not_useless(examples, d, queries, rows, candidates):
    workload = queries.workload(flags(d))
    foretold = rehearse(workload, candidates).estimate(rows)
    matrix, taken = workload.matrix(), []
    for histogram in [*shapes(2**d, d), autoworkers(examples, d)]:
        scores = Scores.build(matrix, matrix @ histogram, int(histogram.sum()), rows)
        spent = count_scores(scores, candidates=candidates, threads=1).cost
        steps = overhead(workload, rows, candidates)
        taken.append((spent.operations + steps, spent.peak + spent.states * state_bytes(scores, candidates)))
    operations, memory = np.max(taken, axis=0)
    assert foretold.operations / 12 < operations <= foretold.operations
    assert foretold.memory / 20 < memory <= foretold.memory


COUNTERS = {"enumeration": enumerate_scores, "dynamic": count_scores}


@pytest.mark.parametrize("engine", COUNTERS)
def test_a_census_runs_the_engine_that_is_named(engine):
    domain = flags(3)
    data = counted(domain, range(8))
    found = smalldb.census(data, Conjunctions(2), rows=5, engine=engine)
    matrix = Conjunctions(2).workload(domain).matrix()
    direct = COUNTERS[engine](Scores.build(matrix, matrix @ np.arange(8), 28, 5))
    assert type(found._engine) is type(direct)
    assert [c for c in direct.counts if c] == list(found.counts)


def test_a_census_takes_the_domain_that_is_given():
    frame = pd.DataFrame({"a": [0, 0], "b": [0, 1]})
    assert smalldb.census(frame, Conjunctions(2), rows=2).total == comb(5, 2)
    restricted = Domain(["a", "b"], valid="~a")
    assert smalldb.census(frame, Conjunctions(2), rows=2, domain=restricted).total == comb(3, 2)


def test_a_plan_and_what_it_says_of_others_are_short():
    wide = smalldb.plan(Domain([f"c{i}" for i in range(13)]), n=1000, epsilon=1)
    assert repr(wide) == (
        "<Plan: marginals, 1000 rows, marginals:2 over 13 columns, epsilon 1, replace-one neighbours>"
    )
    many = Domain([Column(f"c{i}", 10) for i in range(4)])
    open_ended = smalldb.plan(many, epsilon=1, neighbours="add-remove", n_max=5000)
    assert (
        open_ended.why
        == "the others were ruled out: under add-remove n is private, so rows cannot be planned from it"
    )
    assert "rows as the release estimates" in repr(open_ended)
    mixed = smalldb.plan(Domain([Column(f"c{i}", 10) for i in range(12)]), n=1000, epsilon=1)
    assert mixed.why == ("the others were ruled out: census and rejection promise no mean error below 1")


def test_a_plan_says_where_nothing_useful_is_expected_from_public_numbers_alone():
    """Noise on single columns alone: 2 sqrt(2) 3 / n of three columns, at epsilon 1; or a bound of 1."""
    few, more = (smalldb.plan(3, n=n, epsilon=1) for n in (16, 17))
    assert few.column_noise > 1 / 2 > more.column_noise
    assert "noise would move each share by about 53 of 100 points" in few.nothing_expected
    assert more.nothing_expected is None
    vacuous = smalldb.plan(3, n=40, epsilon="1/2", rows=2)
    assert vacuous.bound >= 1 and vacuous.column_noise < 1 / 2
    assert vacuous.nothing_expected == "the bound on the error will be 1 or more, which says nothing"
    unknown = smalldb.plan(3, epsilon=1, neighbours="add-remove", rows=2)
    assert unknown.nothing_expected is None and unknown.column_noise is None


def test_a_plan_shows_what_is_expected_pure_and_with_a_delta(capfd):
    """Side by side, whichever was asked for; where a delta is of no use or not possible, that is said."""

    def sides(*more):
        code, out, err = called(capfd, "plan", "--epsilon", 1, *more)
        assert code == 0, err
        return [line[11:] for line in out.splitlines() if line.startswith(("pure:", "delta:"))]

    wide = ("--schema", "examples/survey.toml", "--n", 20_000)
    pure, delta = sides(*wide)
    assert pure.startswith("about ") and " at epsilon 1, by adaptive marginals" in pure
    assert delta.startswith("about ") and " at (1, 1e-09), by adaptive marginals" in delta
    assert sides(*wide, "--delta", "1e-9") == [pure, delta]
    few = ("--attributes", 4, "--n", 2000, "--queries", "conjunctions:2", "--rows", 12)
    assert sides(*few)[1] == "would not make it smaller"
    assert sides(*few, "--mechanism", "census")[1].startswith("none: delta is for marginals")
    unknown = sides("--attributes", 4, "--rows", 12, "--neighbours", "add-remove")
    assert unknown[0].startswith("without n_max no error is estimated at epsilon 1")


FLAGS = Domain([f"c{k}" for k in range(6)])
WIDE = Domain([Column(f"c{k}", 3) for k in range(6)])


def released(domain, **more):
    codes = np.random.default_rng(3).integers(0, 2, (400, 6))
    codes[:, 1] = codes[:, 0]
    rows = Rows.from_codes(domain, codes)
    return smalldb.release(rows, epsilon=1, mechanism="marginals", seed=2, **more)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("domain", "more", "expected", "pairs"),
    [
        (FLAGS, {"queries": "marginals:2", "strategy": "contrasts"}, 15, "all"),
        (FLAGS, {"queries": "marginals:1", "strategy": "contrasts"}, 0, "none"),
        (FLAGS, {"queries": "marginals:2", "strategy": "cells"}, 15, "all"),
        (WIDE, {"queries": "marginals:2", "strategy": "pairs"}, 15, "all"),
        (WIDE, {"queries": "marginals:1", "strategy": "adaptive"}, 0, "none"),
        (WIDE, {"queries": "marginals:2", "strategy": "adaptive"}, None, "all"),
        (WIDE, {"queries": "marginals:3", "strategy": "adaptive"}, None, "all"),
        (WIDE, {"queries": "marginals:1", "strategy": "adaptive", "measure_first": ["c0 x c1 x c2"]}, 3, "3"),
        (WIDE, {"queries": "marginals:2", "strategy": "adaptive", "target": "c2"}, None, "about 7"),
    ],
)
def test_no_release_measures_more_pairs_than_its_plan_says(domain, more, expected, pairs):
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
    told = plan_account(made.plan, "none")
    assert f"{pairs} of 15 pairs of columns will be measured together" in told
    assert ("others are assumed to be independent" in told) is (pairs != "all")
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


def test_a_plan_says_each_number_of_pairs_that_may_be_measured_and_whether_several_tables_can_be_drawn():
    said = plan_account(smalldb.plan(WIDE, "marginals:2", n=10_000, epsilon="1/2"), "none")
    assert "\nrelations: none or all of 15 pairs of columns will be measured together\n" in said
    assert "\ntables:    one: --tables" in said
    for strategy, more, remedy in (
        ("pairs", 10_000, "--strategy adaptive"),
        ("adaptive", 400, "--measure-first"),
    ):
        plan = smalldb.plan(WIDE, "marginals:2", n=more, epsilon=1, strategy=strategy)
        with pytest.raises(
            ValueError, match=f"cannot be drawn from that: add {remedy}, or leave out --tables"
        ):
            check_drawable(plan)


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
