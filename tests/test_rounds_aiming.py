"""The tables of a target: measured before rounds select others, at a public share, and better for it."""

import sys
from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from calling import called

import smalldb
from queries import Column, Domain, Marginals, Rows
from smalldb.exact.bits import SeededBits
from smalldb.marginals import Universe, checked, plan_tables, release_tables
from smalldb.marginals.adaptive.stopping_rule import QUIET
from smalldb.marginals.adaptive.target_marginals import LEVEL, LOUD, LOUDEST, MOST, TIMES, aimed
from smalldb.marginals.estimate.estimation import Reader
from smalldb.releasing.distances import distances

N = 4_000
SIZES = (40, 6, 2, 5, 30, 4)
TARGET = 2


def rows_of(sizes, seed=0, depend=True):
    """Columns that all follow a hidden one; or that depend on nothing."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(N) if depend else 0
    return np.stack([((hidden + rng.random(N)) / (1 + depend) * k).astype(np.int64) for k in sizes], axis=1)


def released(sizes, target, *, places=None, tables=None, epsilon=Fraction(3), delta=None, replaced=True):
    tables = tuple(combinations(range(len(sizes)), 2)) if tables is None else tables
    universe = Universe(sizes, (True,) * len(sizes), tables, (1,) * len(tables), target=target)
    plan = plan_tables(universe, epsilon, delta, replaced, N)
    assert plan.rounds
    places = rows_of(sizes) if places is None else places
    rows = checked(places, np.ones(len(places), dtype=np.int64), sizes)
    return plan, release_tables(plan, rows, SeededBits(1))


@pytest.mark.parametrize("replaced", [True, False])
@pytest.mark.parametrize("delta", [None, Fraction(1, 10**9)])
def test_tables_of_the_target_come_first_and_costs_add_up(delta, replaced):
    plan, made = released(SIZES, TARGET, delta=delta, replaced=replaced)
    assert not made.history.beside and plan.cost <= plan.budget
    first, selected = made.history.tables[:5], made.history.tables[5:]
    columns = [tuple(c for c, _ in table.scope) for table in first]
    assert columns == [(0, 2), (1, 2), (2, 3), (2, 4), (2, 5)]
    for table in first:
        assert all(groups <= 1 << LEVEL for groups in table.counts.shape)
    assert max(first[0].counts.shape) > 1 << (LEVEL - 2)
    full = [TIMES * plan.cost_of(table.counts.size) for table in first]
    budget = plan.rounds * (plan.selecting + plan.measuring)
    kept = min(1, MOST * budget / sum(full))
    assert [table.cost for table in first] == [kept * cost for cost in full]
    assert sum(table.cost for table in first) <= MOST * budget
    assert selected
    parts = (*made.history.columns, *made.history.tables, *made.history.again)
    raised = sum(table.cost / plan.cost_of(table.counts.size) for table in selected)
    assert made.spent == sum(part.cost for part in parts) + raised * plan.selecting
    assert made.spent <= plan.cost - plan.certifying


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2), Fraction(5)])
def test_groups_are_as_fine_as_noise_lets_them_be(epsilon):
    sizes = (64, 2, 64, 32, 32)
    even = np.stack([np.arange(N) * step % k for step, k in zip((1, 3, 5, 7, 9), sizes, strict=True)], axis=1)
    plan, made = released(sizes, 1, epsilon=epsilon, places=even)

    def off(cells):
        return plan.law.noise(TIMES * plan.cost_of(cells)).mean_size * cells / (2 * N)

    for table in made.history.tables[:4]:
        cells = table.counts.size
        assert cells == 4 or off(cells) <= LOUD
        assert cells == 2 << LEVEL or off(2 * cells) > LOUD


def off_by_noise(plan, table):
    return plan.law.noise(table.cost).mean_size * table.counts.size / (2 * N)


def came_first(plan, made):
    """The tables of the target; the released ones start with them, in the model and beside it."""
    planned = aimed(plan, Reader.of(plan, made.history.columns).candidates)
    begins = [*made.history.tables[: len(planned)], *made.history.beside[: len(planned)]]
    return [next(table for table in begins if (table.scope, table.cost) == found) for found in planned]


def test_a_target_of_many_places_is_measured_in_groups_where_noise_is_loud():
    sizes = (60,) + (8,) * 13
    shapes = []
    for epsilon in (Fraction(1), Fraction(9)):
        plan, made = released(sizes, 0, epsilon=epsilon)
        tables = came_first(plan, made)
        shapes.append([table.counts.shape for table in tables])
        assert [tuple(c for c, _ in table.scope) for table in tables] == [(0, c) for c in range(1, 14)]
        assert all(off_by_noise(plan, table) <= LOUDEST for table in tables)
    # groups of the other column get coarser first
    assert set(shapes[0]) == {(2, 2)} and all(2 < target < 60 and other == 2 for target, other in shapes[1])


@pytest.mark.parametrize("replaced", [True, False])
def test_tables_that_noise_would_drown_are_left_out(replaced):
    """At a budget that pays for few tables they cost enough to tell something, or are left to selection."""
    sizes = (2,) + (16,) * 13
    plan, made = released(sizes, 0, epsilon=Fraction(1, 3), replaced=replaced)
    tables = came_first(plan, made)
    assert 0 < len(tables) < 13
    assert all(off_by_noise(plan, table) <= LOUDEST for table in tables)
    # one more, and all of them would be louder than that
    louder = TIMES * min(1, MOST * plan.for_rounds / (TIMES * (len(tables) + 1) * plan.cost_of(4)))
    assert plan.law.noise(louder * plan.cost_of(4)).mean_size * 4 / (2 * N) > LOUDEST
    plan, made = released(sizes, 0, epsilon=Fraction(1, 20), replaced=replaced)
    plain = released(sizes, None, epsilon=Fraction(1, 20), replaced=replaced)[1]
    assert (made.places == plain.places).all()


def test_pairs_of_wider_tables_come_first_too():
    _, made = released(SIZES, TARGET, tables=((0, 1, TARGET), (3, 4, 5)))
    columns = [tuple(c for c, _ in table.scope) for table in made.history.tables]
    assert columns[:2] == [(0, TARGET), (1, TARGET)]


def test_only_tables_of_the_workload_come_first():
    tables = tuple(table for table in combinations(range(6), 2) if table != (1, TARGET))
    _, made = released(SIZES, TARGET, tables=tables)
    columns = [tuple(c for c, _ in table.scope) for table in made.history.tables]
    assert columns[:4] == [(0, 2), (2, 3), (2, 4), (2, 5)]
    assert (1, 2) not in columns
    without = tuple(table for table in tables if TARGET not in table)
    named, plain = (released(SIZES, target, tables=without)[1] for target in (TARGET, None))
    assert (named.places == plain.places).all()


def test_the_target_leaves_half_of_the_rounds_to_others():
    """Many large tables of the target at a budget of few rounds: they share half of it."""
    sizes = (30,) * 12
    plan, made = released(sizes, 0, epsilon=Fraction(1, 2))
    tables = came_first(plan, made)
    assert sum(table.cost for table in tables) == MOST * plan.rounds * (plan.selecting + plan.measuring)
    assert len(made.history.tables) + len(made.history.beside) > len(tables) > 5
    assert made.spent <= plan.cost - plan.certifying


def test_tables_of_the_target_that_tell_nothing_end_no_rounds():
    sizes = (4,) * 8
    assert QUIET < 7
    plan, made = released(sizes, 3, places=rows_of(sizes, depend=False), epsilon=Fraction(1, 2))
    # seven that tell nothing, and then as many as without a target
    assert len(made.history.tables) >= 7 + QUIET
    assert made.history.tables[7].cost == plan.cost_of(made.history.tables[7].counts.size)


@pytest.mark.parametrize("target", [-1, 6])
def test_a_target_is_the_number_of_a_column(target):
    with pytest.raises(ValueError, match="the target is the number of a column"):
        released(SIZES, target)


DOMAIN = Domain(
    [Column("signal", 12), "rich", *(Column(f"c{i}", 10) for i in range(8))],
)


MANY = 20_000


def people(seed):
    """Eight columns that depend on each other far more than on the target, and one of a few rare places."""
    rng = np.random.default_rng(seed)
    signal = np.where(rng.random(MANY) < 0.9, 0, rng.integers(1, 12, MANY))
    hidden = rng.random(MANY)
    rich = rng.random(MANY) < np.where(signal == 0, 0.4 * hidden, np.where(signal < 6, 0.95, 0.02))
    others = [((hidden + rng.random(MANY) / 2) / 1.5 * 10).astype(np.int64) for _ in range(8)]
    return Rows.from_places(DOMAIN, np.stack([signal, rich.astype(np.int64), *others], axis=1))


@pytest.mark.slow
def test_a_named_target_is_told_better():
    """Mean distance of the tables of the target, with and without its name, beside independent columns."""
    found = {"rich": [], None: []}
    independent = []
    for seed in range(4):
        rows = people(seed)
        for target, kept in found.items():
            made = smalldb.release(rows, epsilon=1, mechanism="marginals", target=target, rng=seed)
            told = distances(rows, made.rows, 2)
            here = np.array([1 in table for table in combinations(range(10), 2)])
            kept.append(told.tvd[here].mean())
            independent.append(told.independent[here].mean())
    assert np.mean(found["rich"]) < 0.9 * np.mean(found[None])
    assert np.mean(found["rich"]) < np.mean(independent)


def test_plans_and_records_tell_the_target():
    rows = people(0)
    made = smalldb.release(rows, epsilon=1, mechanism="marginals", target="rich", rng=1)
    assert "tables of the target first" in made.plan.chosen.facts.known
    assert made.plan.request.target == 1
    with pytest.raises(ValueError, match=r"target: no column 'rihc'; did you mean 'rich'\?"):
        smalldb.plan(DOMAIN, n=MANY, epsilon=1, target="rihc")
    with pytest.raises(ValueError, match="at least one other column"):
        smalldb.plan(Domain(["a"]), n=MANY, epsilon=1, target="a")
    with pytest.raises(TypeError, match="target must be the name of a column, not int"):
        smalldb.plan(DOMAIN, n=MANY, epsilon=1, target=1)
    record = made.record
    assert record["target"] == "rich"
    assert "target" not in smalldb.release(rows, epsilon=1, mechanism="marginals", rng=1).record


def test_words_tell_of_a_target_only_where_its_tables_come_first():
    given = {"n": MANY, "epsilon": 1, "mechanism": "marginals", "target": "rich"}
    plans = [smalldb.plan(DOMAIN, queries, **given) for queries in (Marginals(2), Marginals(1))]
    told = [plan.chosen.facts.known for plan in plans]
    assert "tables of the target first" in told[0] and "first" not in told[1]


@pytest.mark.parametrize("mechanism", ["census", "rejection"])
def test_mechanisms_that_take_no_notice_of_a_target_refuse_it(mechanism):
    with pytest.raises(
        ValueError, match=f"a target is for marginals: {mechanism} would take no notice of it"
    ):
        smalldb.plan(3, n=100, epsilon=1, rows=4, mechanism=mechanism, target="x1")
    # what is chosen may take no notice
    assert smalldb.plan(3, n=100, epsilon=1, rows=4, target="x1").mechanism == "census"


def test_generate_takes_a_target(tmp_path, capfd):
    rows, schema = people(0), tmp_path / "s.toml"
    names = DOMAIN.names
    pd.DataFrame(rows.places()[:N], columns=names).to_csv(tmp_path / "d.csv", index=False)
    columns = [
        f'[columns.{name}]\nkind = "categories"\nvalues = {[str(place) for place in range(size)]}\n'
        for name, size in zip(names, DOMAIN.sizes, strict=True)
    ]
    schema.write_text("".join(columns))
    given = [tmp_path / "d.csv", "--schema", schema, "--epsilon", 1, "--seed", 1]
    code, named, error = called(capfd, "generate", *given, "--target", "rich")
    assert code == 0 and "tables of the target first" in error
    code, plain, error = called(capfd, "generate", *given)
    assert code == 0 and "first" not in error
    assert named != plain and named.splitlines()[0] == plain.splitlines()[0] == ",".join(names)
    code, out, error = called(capfd, "generate", *given, "--target", "rihc")
    assert (code, out) == (2, "") and "target: no column 'rihc'; did you mean 'rich'?" in error


def test_a_confidential_report_of_a_target_says_what_it_needs(tmp_path, capfd, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    pd.DataFrame({"a": [0, 1] * 50, "b": [0, 1, 1, 1] * 25}).to_csv(tmp_path / "d.csv", index=False)
    given = [tmp_path / "d.csv", "--epsilon", 1, "--target", "b", "--report", tmp_path / "r.html"]
    code, out, error = called(capfd, "generate", *given, "--confidential")
    assert (code, out) == (2, "") and "classifiers need scikit-learn" in error
    assert "leave out --confidential" in error
    assert called(capfd, "generate", *given)[0] == 0


def test_a_target_moves_no_other_cost():
    plans = [
        smalldb.plan(DOMAIN, n=MANY, epsilon=1, strategy="adaptive", target=target).chosen.strategy
        for target in ("rich", None)
    ]
    for name in ("columns", "rounds", "selecting", "measuring", "certifying", "cost"):
        assert getattr(plans[0], name) == getattr(plans[1], name)
    # a checkpoint of one is none of the other
    assert plans[0].public != plans[1].public
