"""
Every strategy on a table and on neighbours of it, with the same released integers: see `replay`.

The quick part replays each strategy once under both relations; the sweep (`long`) replays random tables, some
of them with no or few rows, and many neighbours.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from calling import called
from replay import Change, Cube, Exponential, Gaussian, Geometric, Leak, Loss, Player, compared, holds, replayed

import smalldb
from queries import Column, Domain, Rows
from smalldb.answers.shares import alternatives
from smalldb.exact.bits import SeededBits
from smalldb.files.checkpoints import Checkpoint
from smalldb.reporting.words import tell
from smalldb.rounds import reader

RELATIONS = pytest.mark.parametrize("relation", ["replace-one", "add-remove"])


@dataclass(frozen=True)
class Case:
    """
    A strategy, and how a plan is brought to take it.

    Attributes
    ----------
    domain, queries, given
        What is asked for.
    takes
        Whether a plan takes the strategy; and the steps that a release then has, at least.
    patched
        Public numbers of choices that are changed, by where they stand.
    changed
        Changes the mechanism that was planned.
    n, tied
        Rows of the table, and how many of ten have all columns alike.
    """

    domain: Domain
    queries: str
    given: Mapping[str, Any]
    takes: Callable[[Any], bool]
    steps: frozenset[str]
    patched: Mapping[str, Any] = field(default_factory=dict)
    changed: Callable[[Any], Any] = lambda chosen: chosen
    n: int = 300
    tied: int = 6


SMALL = Domain([Column("a", 3), Column("b", cuts=[1, 2, 3, 4]), "c"])
COLUMNS = Domain([Column("a", 3), Column("b", 5), "c", Column("d", cuts=[1, 2, 3]), Column("e", 4)])
RULED = Domain(
    [Column("a", 3), Column("b", 4), "c", Column("d", 3)], valid=["~(`a=0` & c)", "~(`b=1` & `d=2`)"]
)
YES_NO = Domain(["a", "b", "c", "d", "e"])
WIDE = Domain([f"a{i}" for i in range(7)])

ROUNDS = {"mechanism": "rounds"}
NO_CELLS = {"rounds.plan.MOST_CELLS": 0}
NEVER_AT_ONCE = NO_CELLS | {"rounds.plan.SURE": 0.0, "rounds.plan.NEAR": 0.0, "rounds.plan._answerable": lambda _: False}
ASKED = NO_CELLS | {"rounds.plan.SURE": 0.0, "rounds.plan._answerable": lambda _: True}
AT_ONCE = NO_CELLS | {"rounds.plan.SURE": 1e9, "rounds.plan.NEAR": 1e9}
STRIPS = NEVER_AT_ONCE | {f"rounds.{where}.MANY_COLUMNS": 3 for where in ("strips", "rounds")}
PARITIES = {f"{where}.MAX_TABLE_ATTRIBUTES": 4 for where in ("rounds.parities", "rounds.mechanism", "answers.setting")}
ALL_ROUNDS = frozenset({"rounds.measure", "rounds.selected", "certificate.certify"})
MEASURED, CERTIFIED = frozenset({"rounds.measure"}), frozenset({"certificate.certify"})


def in_rounds(chosen):
    steps = chosen.steps
    return bool(steps.rounds and steps.at_once is None and not steps.cells and not steps.pairs)


def concentrated(chosen):
    return in_rounds(chosen) and chosen.steps.law.concentrated


def little_memory(chosen):
    return replace(chosen, steps=replace(chosen.steps, memory=20))


def asked(chosen):
    return chosen.steps.at_once is not None


def with_law(*laws):
    """Take the plan of answers that measures by these laws."""

    def changed(chosen):
        request = chosen.request
        made = alternatives(
            request.workload,
            n=request.rows_hint,
            epsilon=request.epsilon,
            neighbours=request.neighbours.value,
            delta=request.delta,
        )
        plans = [plan for plan in made if tuple(part.law for part in plan.parts) == laws]
        if hasattr(chosen, "answers"):
            return replace(chosen, answers=plans[-1])
        return replace(chosen, steps=replace(chosen.steps, answers=plans[-1]))

    return changed


def answers(*laws, **given):
    steps = frozenset(f"{law.title()}.draw" for law in laws)
    base = {"mechanism": "answers", "rows": 40, **given}
    return Case(YES_NO, "marginals:3", base, lambda _: True, steps, changed=with_law(*laws))


ROUNDS_CASES = {
    "cells": Case(SMALL, "marginals:2", ROUNDS, lambda c: bool(c.steps.cells), MEASURED),
    "cells, certified": Case(
        SMALL,
        "marginals:2",
        ROUNDS,
        lambda c: bool(c.steps.cells and c.steps.certifying),
        MEASURED | CERTIFIED,
        {"rounds.mechanism._measures_all": lambda *_: False},
    ),
    "columns": Case(
        COLUMNS, "marginals:1", ROUNDS, lambda c: not c.steps.rounds, MEASURED | CERTIFIED, NO_CELLS
    ),
    "adaptive": Case(COLUMNS, "marginals:2", ROUNDS, in_rounds, ALL_ROUNDS, NEVER_AT_ONCE),
    "adaptive, delta": Case(
        COLUMNS, "marginals:2", ROUNDS | {"delta": "1e-6"}, concentrated, ALL_ROUNDS, NEVER_AT_ONCE
    ),
    "no certificate": Case(
        COLUMNS, "marginals:2", ROUNDS | {"certificate": 0}, in_rounds, ALL_ROUNDS - CERTIFIED, NEVER_AT_ONCE
    ),
    "target": Case(
        COLUMNS, "marginals:2", ROUNDS | {"target": "c", "epsilon": 8}, in_rounds, ALL_ROUNDS, NEVER_AT_ONCE
    ),
    "target, delta": Case(
        COLUMNS,
        "marginals:2",
        ROUNDS | {"target": "a", "epsilon": 8, "delta": "1e-4"},
        concentrated,
        ALL_ROUNDS,
        NEVER_AT_ONCE,
    ),
    "three columns, little room": Case(
        COLUMNS,
        "marginals:3",
        ROUNDS | {"epsilon": 20},
        in_rounds,
        ALL_ROUNDS,
        NO_CELLS,
        changed=little_memory,
    ),
    "rounds that end": Case(
        COLUMNS, "marginals:2", ROUNDS | {"epsilon": 20}, in_rounds, ALL_ROUNDS, NEVER_AT_ONCE, tied=0
    ),
    "strips": Case(COLUMNS, "marginals:2", ROUNDS, in_rounds, ALL_ROUNDS, STRIPS),
    "rules": Case(RULED, "marginals:2", ROUNDS | {"epsilon": 4}, in_rounds, ALL_ROUNDS, NEVER_AT_ONCE),
    "rules, cells": Case(RULED, "marginals:2", ROUNDS, lambda c: bool(c.steps.cells), MEASURED),
    "pairs at once": Case(
        COLUMNS, "marginals:2", ROUNDS, lambda c: bool(c.steps.pairs), frozenset({"rounds.measure_at_once"}), AT_ONCE
    ),
    "asked, then at once": Case(
        SMALL,
        "marginals:2",
        ROUNDS | {"epsilon": 80},
        asked,
        frozenset({"rounds.ask", "rounds.measure_at_once"}),
        ASKED,
        tied=10,
    ),
    "asked, then rounds": Case(
        SMALL, "marginals:2", ROUNDS | {"epsilon": 80}, asked, ALL_ROUNDS | {"rounds.ask"}, ASKED, tied=0
    ),
    "asked, delta": Case(
        SMALL,
        "marginals:2",
        ROUNDS | {"epsilon": 80, "delta": "1e-3"},
        lambda c: asked(c) and c.steps.law.concentrated,
        ALL_ROUNDS | {"rounds.ask"},
        ASKED,
        tied=0,
    ),
    "parities": Case(
        WIDE, "marginals:2", ROUNDS, lambda c: c.steps.measures_all, frozenset({"Wishart.draw"}), PARITIES,
        changed=with_law("wishart"),
    ),
    "parities, delta": Case(
        WIDE,
        "marginals:2",
        ROUNDS | {"delta": "1e-6"},
        lambda c: c.steps.measures_all,
        frozenset({"Gaussian.draw"}),
        PARITIES,
        changed=with_law("gaussian"),
    ),
    "parities, certified": Case(
        WIDE,
        "marginals:3",
        ROUNDS | {"epsilon": "1/10"},
        lambda c: not c.steps.measures_all,
        frozenset({"certificate.certify"}),
        PARITIES,
    ),
}

ANSWERS_CASES = {
    "answers: cube": answers("cube", "cube", "cube"),
    "answers: wishart": replace(answers("wishart"), queries="marginals:2"),
    "answers: cells": answers("cells"),
    "answers: wishart, cells": answers("wishart", "cells"),
    "answers: wishart, safeguard": replace(answers("wishart", "safeguard"), n=1500),
    "answers: gaussian": answers("gaussian", delta="1e-6"),
    "answers: rules": Case(
        Domain(["a", "b", "c", "d"], valid=["~(a & b)", "c | d"]),
        "marginals:3",
        {"mechanism": "answers", "rows": 40},
        lambda _: True,
        frozenset({"Cells.draw"}),
        changed=with_law("cells"),
    ),
}

CASES = ROUNDS_CASES | ANSWERS_CASES


@pytest.fixture
def patched(monkeypatch):
    """Change public numbers of the code for a case; predictions are made of fewer rows of a model, too."""

    def change(case):
        monkeypatch.setattr(reader, "PREDICTING", 1 << 9)
        for where, value in case.patched.items():
            monkeypatch.setattr(f"smalldb.{where}", value)

    return change


def table_of(case, rng, n=None):
    """A random table of the domain: of some rows all columns are alike, of the others they are independent."""
    domain = case.domain
    cells, sizes = domain.table(), np.array(domain.sizes)
    weights = np.array([rng.dirichlet(np.full(size, 0.7)) for size in sizes], dtype=object)
    chances = np.prod([own[cells[:, c]] for c, own in enumerate(weights)], axis=0).astype(float)
    places = cells[rng.choice(len(cells), case.n if n is None else n, p=chances / chances.sum())]
    hidden = rng.integers(0, sizes.min(), len(places))
    alike = np.repeat(hidden[:, None], len(sizes), axis=1)
    allowed = {tuple(cell) for cell in cells.tolist()}
    kept = np.array([tuple(row) in allowed for row in alike.tolist()], dtype=bool).reshape(-1)
    tied = kept & (rng.integers(0, 10, len(places)) < case.tied)
    return np.where(tied[:, None], alike, places).astype(np.int64)


def neighbours_of(case, places, relation, rng, many):
    """Some neighbours of a table, each with its change: rows that are far, rare, frequent, or any."""
    cells = case.domain.table().astype(np.int64)
    present, times = np.unique(places, axis=0, return_counts=True)
    there = {tuple(row) for row in present.tolist()}
    absent = np.array([cell for cell in cells.tolist() if tuple(cell) not in there] or cells.tolist())
    kinds = ["far", "rare", "frequent", "any"]
    for number in range(many):
        kind = kinds[number % len(kinds)]
        out = int(rng.integers(len(places))) if len(places) else None
        if kind == "rare" and out is not None:
            lonely = present[np.argmin(times)]
            out = int(np.flatnonzero((places == lonely).all(axis=1))[0])
        if kind == "far" and out is not None:
            far = (cells != places[out]).sum(axis=1)
            new = cells[rng.choice(np.flatnonzero(far == far.max()))]
        elif kind == "frequent" and len(present):
            new = present[np.argmax(times)]
        else:
            new = (absent if kind == "rare" else cells)[rng.integers(len(absent if kind == "rare" else cells))]
        new = tuple(new.tolist())
        if relation == "replace-one":
            old = tuple(places[out].tolist())
            rows = np.vstack([np.delete(places, out, axis=0), new])
            yield rows, Change((-1, 1), (old, new))
        elif number % 2 or out is None:
            yield np.vstack([places, new]), Change((1,), (new,))
        else:
            old = tuple(places[out].tolist())
            yield np.delete(places, out, axis=0), Change((-1,), (old,))


def planned(case, n, relation, epsilon=None):
    given = {"epsilon": 1} | dict(case.given) | ({} if epsilon is None else {"epsilon": epsilon})
    given |= {"n": n} if relation == "replace-one" else {"neighbours": relation, "n_max": max(1, n + 7)}
    plan = smalldb.plan(case.domain, case.queries, **given)
    return replace(plan, chosen=case.changed(plan.chosen))


def published(made):
    """Everything public of a release, by name."""
    return {
        "rows": (made.places.shape, made.places.dtype.str, made.places.tobytes()),
        "table": made.data.to_csv(),
        "record": json.dumps(made.record),
        "words": tell(made.record, made.plan),
        "repr": repr(made),
    }


def released(plan, seed, places, **more):
    rows = Rows.from_places(plan.workload.domain, places)
    return published(smalldb.release(plan, rows, rng=SeededBits(seed), **more))


def replay_of(plan, one, other, change, seed=0):
    guarantee = plan.chosen.guarantee
    return replayed(partial(released, plan, seed), one, other, change, guarantee.epsilon, guarantee.delta)


@RELATIONS
@pytest.mark.parametrize("name", CASES)
def test_neighbours_lose_no_more_than_stated_and_nothing_else_differs(name, relation, patched):
    case = CASES[name]
    patched(case)
    rng = np.random.default_rng(list(CASES).index(name))
    plan = planned(case, case.n, relation)
    assert case.takes(plan.chosen), "the plan takes another strategy"
    places = table_of(case, rng)
    for other, change in neighbours_of(case, places, relation, rng, 1):
        found = replay_of(plan, places, other, change)
        assert case.steps <= found.kinds.keys()
        assert found.ratio > 0
        print(name, relation, float(found.pure), float(found.rho), found.ratio, dict(found.kinds))
