"""Tables that come first: those of a target, and named ones; measured before rounds select others."""

import re
import sys
from fractions import Fraction
from itertools import combinations, product
from math import prod

import numpy as np
import pandas as pd
import pytest
from asking import release_tables
from builders import each_once, tied, universe
from calling import called
from records import check_record

import smalldb
from queries import Column, Domain, Rows
from queries.spec import named_tables
from smalldb.exact.bits import SeededBits
from smalldb.marginals.estimate import column_estimates, estimation
from smalldb.marginals.estimate.column_estimates import pairs_within, read_margins
from smalldb.marginals.estimate.grouping import halved
from smalldb.marginals.expected_error import of_groups
from smalldb.marginals.measuring import NoisyTable, PrivacyMeasure
from smalldb.marginals.strategies.budgets import WORTH
from smalldb.marginals.strategies.choosing_tables import plan_tables
from smalldb.marginals.strategies.first_tables import (
    AFTER,
    CONCENTRATED,
    FOLD,
    LOUDEST,
    WIDEST,
    FirstTable,
    groups_of_first,
    wanted_first,
)
from smalldb.marginals.strategies.rounds import LEAST_UNINFORMATIVE
from smalldb.noise.distributions import Geometric
from smalldb.releasing.distances import distances

N = 4_000
SIZES = (12, 6, 2, 5, 9, 4)
TARGET = 2
DELTA = Fraction(1, 10**9)


def universe_of(sizes, targets=(), named=(), tables=None):
    return universe(sizes, 2 if tables is None else tables, ordered=True, targets=targets, named=named)


def released(sizes, targets=(), *, named=(), codes=None, tables=None, epsilon=3, delta=None, replaced=True):
    columns = universe_of(sizes, targets, named, tables)
    plan = plan_tables(columns, Fraction(epsilon), delta, replaced, N, strategy="adaptive")
    rows = each_once(tied(sizes, N) if codes is None else codes, sizes)
    return plan, release_tables(plan, rows, SeededBits(1))


def measured(made):
    """The columns of each table, in the order of release."""
    return [part.columns for each in made.measurements for part in each.of]


def columns_of(tables):
    return [tuple(c for c, _ in table.scope) for table in tables]


@pytest.mark.slow
@pytest.mark.parametrize("replaced", [True, False])
@pytest.mark.parametrize("delta", [None, DELTA])
def test_the_star_of_a_narrow_target_stands_for_the_columns(delta, replaced):
    """Each of its tables is measured at all categories, and columns are read from them."""
    plan, made = released(SIZES, (TARGET,), delta=delta, replaced=replaced)
    assert plan.cost <= plan.budget and plan.columns == (0,) * 6
    first, selected = made.measurements[:5], made.measurements[5:]
    assert [m.of[0].columns for m in first] == [(0, 2), (1, 2), (2, 3), (2, 4), (2, 5)]
    assert [m.of[0].shape for m in first] == [(12, 2), (6, 2), (2, 5), (2, 9), (2, 4)]
    assert [m.cost for m in first] == [table.cost for table in plan.first]
    assert all(m.selecting is None for m in first) and selected[0].selecting is not None
    if plan.delta is not None:
        assert sum(m.cost for m in first) == CONCENTRATED * (plan.cost - plan.certifying)
    assert columns_of(made.tables[:5]) == [m.of[0].columns for m in first]
    assert made.spent == sum(m.cost + (m.selecting or 0) for m in made.measurements)
    assert made.spent <= plan.cost - plan.certifying


def test_columns_are_read_from_all_tables_that_have_them_by_their_precisions():
    """The definition: a weighted mean of sums, each with the noise of its cells."""
    rng, noise = np.random.default_rng(0), Geometric(Fraction(1))
    tables = [
        NoisyTable(((0, 0), (1, 0)), rng.integers(0, 50, (4, 3)), Fraction(1), noise, 2.0),
        NoisyTable(((1, 0), (2, 0)), rng.integers(0, 50, (3, 7)), Fraction(1), noise, 0.5),
    ]
    read = read_margins(tables, 1)
    sums = [tables[0].counts.sum(axis=0), tables[1].counts.sum(axis=1)]
    weights = [1 / (4 * 2.0), 1 / (7 * 0.5)]
    mean = sum(w * s for w, s in zip(weights, sums, strict=True)) / sum(weights)
    assert (read.counts == np.rint(mean)).all()
    assert read.variance == pytest.approx(1 / sum(weights)) and read.cost == 0 and read.scope == ((1, 0),)
    alone = read_margins(tables, 2)
    assert (alone.counts == tables[1].counts.sum(axis=0)).all() and alone.variance == pytest.approx(3 * 0.5)


def test_a_table_of_three_tells_of_its_pairs():
    counts, noise = np.arange(24).reshape(2, 3, 4), Geometric(Fraction(1))
    table = NoisyTable(((1, 2), (4, 1), (5, 3)), counts, Fraction(1), noise, 3.0)
    pairs = pairs_within(table)
    assert [pair.scope for pair in pairs] == [((1, 2), (4, 1)), ((1, 2), (5, 3)), ((4, 1), (5, 3))]
    assert [pair.variance for pair in pairs] == [12.0, 9.0, 6.0]
    assert (pairs[1].counts == counts.sum(axis=1)).all()
    (same,) = pairs_within(pairs[0])
    assert (same.counts == pairs[0].counts).all() and same.variance == 12.0


@pytest.mark.slow
def test_under_rho_a_target_of_more_categories_has_its_columns_measured_first():
    plan, made = released(SIZES, (1,), delta=DELTA, epsilon=Fraction(2))
    assert SIZES[1] > FOLD[True] and all(plan.columns)
    assert plan.for_first == AFTER * (plan.cost - plan.certifying)
    assert sum(plan.columns) == (plan.cost - plan.certifying) / 5
    told = made.measurements
    assert [m.of[0].columns for m in told[:6]] == [(c,) for c in range(6)]
    assert [m.of[0].columns for m in told[6:11]] == [(0, 1), (1, 2), (1, 3), (1, 4), (1, 5)]
    for measured, first in zip(told[6:11], plan.first, strict=True):
        assert measured.cost == first.cost
        # categories of the target are never grouped
        assert dict(zip(measured.of[0].columns, measured.of[0].shape, strict=True))[1] == 6


@pytest.mark.parametrize("concentrated", [False, True])
@pytest.mark.parametrize("cost", [Fraction(1, 1000), Fraction(1, 50), Fraction(3)])
def test_groups_of_a_table_are_those_of_least_expected_error(cost, concentrated):
    sizes = (60, 40, 30)
    universe = universe_of(sizes, (2,))
    groupings = [halved(np.arange(1.0, size + 1), True) for size in sizes]
    law = PrivacyMeasure(concentrated, replaced=False)
    for columns in ((0, 2), (0, 1), (0, 1, 2)):
        found = groups_of_first(FirstTable(columns, cost, whole=False), universe, groupings, law, N)
        errors = {}
        for levels in product(*(range(1, groupings[c].finest + 1) for c in columns)):
            groups = [groupings[c].groups(level) for c, level in zip(columns, levels, strict=True)]
            if (2 in columns and groups[-1] != 30) or prod(groups) > WIDEST:
                continue
            coarse = [many for c, many in zip(columns, groups, strict=True) if many < sizes[c]]
            columns_error = law.noise(cost).mean_size * prod(groups) / (2 * N)
            errors[levels] = of_groups(columns_error, coarse)
        assert errors[tuple(level for _, level in found)] == min(errors.values())


def test_wide_columns_are_measured_before_they_are_grouped():
    sizes = (2000, 3, 5, 4)
    plan, made = released(sizes, (1,), epsilon=Fraction(2))
    assert not any(table.whole for table in plan.first) and all(plan.columns)
    shapes = [m.of[0].shape for m in made.measurements if len(m.of[0].columns) == 2][:3]
    assert shapes[0][0] < 2000 and shapes[0][1] == 3 and shapes[1:] == [(3, 5), (3, 4)]


@pytest.mark.parametrize("replaced", [True, pytest.param(False, marks=pytest.mark.long)])
@pytest.mark.parametrize("delta", [None, pytest.param(DELTA, marks=pytest.mark.long)])
def test_a_star_that_noise_would_drown_is_left_out_and_the_plan_says_so(delta, replaced):
    sizes = (5,) + (16,) * 13
    given = {"epsilon": Fraction(1, 50), "replaced": replaced, "delta": delta}
    plan, made = released(sizes, (0,), **given)
    plain, without = released(sizes, (), **given)
    assert plan.first == () and plan.costs == plain.costs
    assert (made.codes == without.codes).all()
    assert "hidden by noise" in plan.described and "hidden by noise" not in plain.described
    # it is decided by how loud it would be at two groups of each other column
    louder, _ = released(sizes, (0,), **given | {"epsilon": Fraction(3)})
    assert len(louder.first) == 13
    for table in louder.first:
        assert louder.law.noise(table.cost).mean_size * 10 / (2 * N) <= LOUDEST


PAIRS = tuple(combinations(range(6), 2))
SOME = tuple({*PAIRS} - {(1, 2)})
STAR = [(0, 2), (1, 2), (2, 3), (2, 4), (2, 5)]
STARS = sorted({*STAR, (0, 5), (1, 5), (3, 5), (4, 5)})  # of two targets, which share a table


@pytest.mark.parametrize(
    ("targets", "named", "tables", "first", "alone", "told"),
    [
        ((2, 5), (), PAIRS, STARS, [], "tables of the targets ("),
        ((2,), (), ((0, 1, 2), (3, 4, 5)), STAR[:2], [3, 4, 5], "tables of the target ("),  # of wider tables
        ((2,), (), SOME, [STAR[0], *STAR[2:]], [1], "tables of the target ("),
        ((), ((0, 4), (1, 3, 5)), PAIRS[:3], [(0, 4), (1, 3, 5)], [2], "named tables ("),
        ((2,), ((0, 1),), PAIRS, [(0, 1), *STAR], [], "named tables and tables of the target ("),
    ],
)
def test_tables_of_targets_and_named_ones_come_first(targets, named, tables, first, alone, told):
    """Those of targets if the workload has them; columns that are in none are measured by themselves."""
    plan, made = released(SIZES, targets, named=named, tables=tables)
    assert [table.columns for table in plan.first] == first
    assert measured(made)[: len(first) + len(alone)] == [*first, *((c,) for c in alone)]
    shapes = [tuple(SIZES[c] for c in columns) for columns in first]
    assert [each.of[0].shape for each in made.measurements[: len(first)]] == shapes
    assert plan.described.startswith(told)
    assert made.spent <= plan.cost - plan.certifying


def test_a_target_that_no_table_of_the_workload_has_changes_nothing():
    without = tuple(table for table in PAIRS if TARGET not in table)
    named, plain = (released(SIZES, targets, tables=without)[1] for targets in ((TARGET,), ()))
    assert (named.codes == plain.codes).all()


def test_a_table_without_room_in_the_model_is_beside_it():
    """Pairs of what is released of it, so that rows are moved to them."""
    columns = universe_of(SIZES, named=((1, 2, 3), (1, 2, 4)))
    plan = plan_tables(columns, Fraction(3), None, True, N, strategy="adaptive", memory=80)
    made = release_tables(plan, each_once(tied(SIZES, N), SIZES), SeededBits(1))
    assert columns_of(made.tables)[:1] == [(1, 2, 3)]
    assert columns_of(made.beside)[:3] == [(1, 2), (1, 4), (2, 4)]


def test_what_columns_were_read_from_is_not_told_again(monkeypatch):
    """Else the same noise would count twice where columns are reconciled with tables."""
    told = []

    def reconciled(read, columns, groupings, tables, *more):
        told.append(columns_of(tables))
        return column_estimates.reconciled(read, columns, groupings, tables, *more)

    monkeypatch.setattr(estimation, "reconciled", reconciled)
    plan, _ = released(SIZES, (TARGET,))
    assert plan.first[0].whole and told[-1] and len(told[-1]) == len(max(told, key=len))
    assert all(len(tables) <= max(0, number - 5) for number, tables in enumerate(told))


def test_a_wide_table_is_not_what_columns_are_read_from():
    """A count of a column would be a sum of 72 cells, each with its noise."""
    plan, made = released(SIZES, named=((0, 1, 4),))
    assert not plan.first[0].whole and all(plan.columns)
    assert sorted(measured(made)[:6]) == [(c,) for c in range(6)] and measured(made)[6] == (0, 1, 4)


def test_tables_of_the_target_that_tell_nothing_end_no_rounds_and_columns_get_what_is_left():
    sizes = (4,) * 8
    assert LEAST_UNINFORMATIVE < 7
    for epsilon, again in ((Fraction(1, 2), 0), (Fraction(4), 8)):
        plan, made = released(sizes, (3,), codes=tied(sizes, N, loose=1e9), epsilon=epsilon)
        assert len(made.tables) >= 7 + LEAST_UNINFORMATIVE
        assert [part.scope for part in made.again] == [((c, 0),) for c in range(again)]
        assert not again or made.spent == plan.cost - plan.certifying


def test_tables_that_no_grouping_makes_small_are_refused():
    with pytest.raises(ValueError, match="a table to measure first has 30000 cells or more"):
        wanted_first(universe_of((15_000, 2, 3), (0,)))
    sizes = (2,) * 16
    with pytest.raises(ValueError, match="tables of fewer columns"):
        wanted_first(universe_of(sizes, named=(tuple(range(15)),), tables=((0, 1),)))


@pytest.mark.parametrize("strategy", ["cells", "pairs", "contrasts"])
def test_strategies_that_measure_all_alike_refuse_a_target(strategy):
    domain = Domain(["a", "b", "c"] if strategy == "contrasts" else [Column("a", 3), "b", "c"])
    given = {"n": 1000, "epsilon": 1, "mechanism": "marginals", "strategy": strategy}
    assert smalldb.plan(domain, **given).strategy == strategy
    with pytest.raises(ValueError, match=f"the strategy {strategy} measures everything alike.*adaptive"):
        smalldb.plan(domain, target="b", **given)


@pytest.mark.parametrize(
    ("domain", "n", "delta", "taken"),
    [
        (Domain(5), 1000, None, "cells"),
        (Domain([Column("a", 3), "b", "c"]), 1000, None, "cells"),
        (Domain(40), 10_000, None, "contrasts"),
        (Domain(100), 17_000, "1e-9", "adaptive"),
        (Domain([Column("a", 8), *(Column(f"b{i}", 8) for i in range(9))]), 5000, None, "adaptive"),
    ],
)
def test_all_alike_is_measured_where_tables_of_a_target_are_hardly_worse_so(domain, n, delta, taken):
    given = {"n": n, "epsilon": 1, "delta": delta, "mechanism": "marginals"}
    plan, named = (
        smalldb.plan(domain, target=domain.names[0], strategy=strategy, **given)
        for strategy in (None, "adaptive")
    )
    assert plan.strategy == taken
    alike = "those of the target as exactly as all others" in plan.chosen.facts.known
    assert alike == (taken != "adaptive")
    own = [
        named.chosen.strategy.law.noise(first.cost).mean_size * prod(domain.sizes[c] for c in first.columns)
        for first in named.chosen.strategy.first
    ]
    to_beat = (
        np.mean([of_groups(each / (2 * n), ()) for each in own])
        / WORTH[named.chosen.strategy.law.concentrated]
    )
    assert named.chosen.strategy.to_beat == pytest.approx(to_beat)
    if taken != "adaptive":
        assert plan.chosen.strategy.expected < to_beat
    # tables that are named are more than a question of two columns
    first = {"measure_first": [f"{domain.names[0]} x {domain.names[1]}"]}
    assert smalldb.plan(domain, **given, **first).strategy == "adaptive"


DOMAIN = Domain(
    [Column("signal", 12), "rich", *(Column(f"c{i}", 10) for i in range(8))],
)


MANY = 20_000


def people(seed):
    """Eight columns that depend on each other far more than on the target, and one of few rare categories."""
    rng = np.random.default_rng(seed)
    signal = np.where(rng.random(MANY) < 0.9, 0, rng.integers(1, 12, MANY))
    hidden = rng.random(MANY)
    rich = rng.random(MANY) < np.where(signal == 0, 0.4 * hidden, np.where(signal < 6, 0.95, 0.02))
    others = [((hidden + rng.random(MANY) / 2) / 1.5 * 10).astype(np.int64) for _ in range(8)]
    return Rows.from_codes(DOMAIN, np.stack([signal, rich.astype(np.int64), *others], axis=1))


@pytest.mark.slow
def test_a_named_target_is_told_better():
    """Mean distance of the tables of the target, with and without its name, beside independent columns."""
    found = {"rich": [], None: []}
    independent = []
    for seed in range(2):
        rows = people(seed)
        for target, kept in found.items():
            made = smalldb.release(rows, epsilon=1, mechanism="marginals", target=target, rng=seed)
            told = distances(rows, made.rows, 2)
            here = np.array([1 in table for table in combinations(range(10), 2)])
            kept.append(told.tvd[here].mean())
            independent.append(told.independent[here].mean())
    assert np.mean(found["rich"]) < 0.5 * np.mean(found[None])
    assert np.mean(found["rich"]) < 0.5 * np.mean(independent)


@pytest.mark.slow
def test_plans_and_records_tell_the_target():
    rows = people(0)
    made = smalldb.release(rows, epsilon=1, mechanism="marginals", target="rich", rng=1)
    assert "tables of the target (" in made.plan.chosen.facts.known
    assert made.plan.request.targets == (1,)
    for targets in ("rihc", ["c1", "rihc"]):
        with pytest.raises(ValueError, match=r"target: no column 'rihc'; did you mean 'rich'\?"):
            smalldb.plan(DOMAIN, n=MANY, epsilon=1, target=targets)
    with pytest.raises(ValueError, match="at least one other column"):
        smalldb.plan(Domain(["a"]), n=MANY, epsilon=1, target="a")
    with pytest.raises(TypeError, match="target must be the name of a column, not int"):
        smalldb.plan(DOMAIN, n=MANY, epsilon=1, target=1)
    assert made.record["target"] == "rich"
    few = Rows.from_codes(DOMAIN, rows.codes()[:100])
    assert "target" not in smalldb.release(few, epsilon=1, mechanism="marginals", rng=1).record
    several = smalldb.release(few, epsilon=1, mechanism="marginals", target=["c1", "rich"], rng=1)
    assert several.record["target"] == ["rich", "c1"]


@pytest.mark.parametrize("mechanism", ["census", "rejection"])
def test_mechanisms_that_take_no_notice_of_a_target_refuse_it(mechanism):
    with pytest.raises(
        ValueError, match=f"a target is for marginals.*: {mechanism} would take no notice of them"
    ):
        smalldb.plan(3, n=100, epsilon=1, rows=4, mechanism=mechanism, target="x1")
    # without a mechanism, what takes no notice is not asked
    assert smalldb.plan(3, n=100, epsilon=1, rows=4, target="x1").mechanism == "marginals"


def test_a_confidential_report_of_a_target_says_what_it_needs(tmp_path, capfd, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    pd.DataFrame({"a": [0, 1] * 50, "b": [0, 1, 1, 1] * 25}).to_csv(tmp_path / "d.csv", index=False)
    given = [tmp_path / "d.csv", "--epsilon", 1, "--target", "b", "--report", tmp_path / "r.html"]
    code, out, error = called(capfd, "generate", *given, "--confidential")
    assert (code, out) == (3, "") and "classifiers need scikit-learn" in error
    assert "leave out --confidential" in error
    assert called(capfd, "generate", *given)[0] == 0


NAMES = ["age", "sex", "a x b", "x", "a  b"]


@pytest.mark.parametrize(
    ("texts", "columns"),
    [
        ("age x sex", ((0, 1),)),
        (["sex x age", "age  x   sex", "age x `a x b`"], ((0, 1), (0, 2))),
        (["`x` x sex x age"], ((0, 1, 3),)),
        (["`a  b` x age"], ((0, 4),)),
        ([], ()),
    ],
)
def test_tables_are_named_by_their_columns(texts, columns):
    assert named_tables(texts, NAMES) == columns


@pytest.mark.parametrize(
    ("texts", "kind", "said"),
    [
        (3, TypeError, 'must be texts such as "age x sex"'),
        ([3], TypeError, 'must be texts such as "age x sex"'),
        (["age"], ValueError, "the table 'age' must name two columns or more"),
        ([""], ValueError, "must name two columns or more"),
        (["age x x sex"], ValueError, "must name two columns or more"),
        (["age x sx"], ValueError, "no column 'sx'; did you mean 'sex'?"),
        (["age x age"], ValueError, "names a column twice"),
    ],
)
def test_what_names_no_table_is_refused(texts, kind, said):
    with pytest.raises(kind, match=re.escape(said)):
        named_tables(texts, NAMES)


@pytest.mark.slow
def test_plans_and_records_tell_of_named_tables():
    given = {"epsilon": 1, "mechanism": "marginals", "measure_first": ["rich x signal", "c0 x c1 x rich"]}
    made = smalldb.release(people(0), rng=1, **given)
    assert made.record["measure_first"] == [["signal", "rich"], ["rich", "c0", "c1"]]
    assert (
        "named tables (" in made.plan.chosen.facts.known
        and "% of the budget)" in made.plan.chosen.facts.known
    )
    assert [m.of[0].columns for m in made.measurements[:2]] == [(0, 1), (1, 2, 3)]
    check_record(made.record)
    with pytest.raises(ValueError, match="so are tables to measure first: census would take no notice"):
        smalldb.plan(3, n=100, epsilon=1, rows=4, mechanism="census", measure_first=["x1 x x2"])
    with pytest.raises(ValueError, match="the strategy contrasts measures everything alike"):
        smalldb.plan(3, n=100, epsilon=1, strategy="contrasts", measure_first=["x1 x x2"])


SCHEMA = 'measure_first = ["a x b"]\n' + "".join(
    f'[columns.{name}]\nkind = "categories"\nvalues = ["0", "1", "2"]\n' for name in "abc"
)


def test_a_schema_names_tables_unless_somebody_says_otherwise(tmp_path, capfd):
    frame = pd.DataFrame(np.random.default_rng(0).integers(0, 3, (300, 3)).astype(str), columns=[*"abc"])
    frame.to_csv(tmp_path / "d.csv", index=False)
    (tmp_path / "s.toml").write_text(SCHEMA)
    schema = tmp_path / "s.toml"
    assert smalldb.release(frame, schema=SCHEMA, epsilon=1, seed=1).record["measure_first"] == [["a", "b"]]
    assert smalldb.plan(schema=SCHEMA, n=300, epsilon=1).request.first == ((0, 1),)
    assert smalldb.plan(schema=SCHEMA, n=300, epsilon=1, measure_first=["b x c"]).request.first == ((1, 2),)
    assert smalldb.plan(schema=SCHEMA, n=300, epsilon=1, measure_first=[]).request.first == ()
    code, out, _ = called(capfd, "plan", "--schema", schema, "--n", 300, "--epsilon", 1)
    assert code == 0 and "named tables (" in out
    code, out, error = called(
        capfd, "generate", tmp_path / "d.csv", "--schema", schema, "--epsilon", 1, "--seed", 1,
        "--measure-first", "a x c", "--measure-first", "b x c",
    )  # fmt: skip
    assert code == 0 and "named tables (" in error
    code, _, error = called(
        capfd, "plan", "--schema", schema, "--n", 300, "--epsilon", 1, "--measure-first", "a x d"
    )
    assert code == 2 and "no column 'd'" in error
    with pytest.raises(ValueError, match="measure_first: the table 'a x d': no column 'd'"):
        smalldb.schema.parse_schema(SCHEMA.replace("a x b", "a x d"))
