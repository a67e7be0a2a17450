"""
Every strategy on a table, on a neighbour of it and on an unrelated table, with the same released integers.

See `replay`. Each strategy is replayed once under both relations; the sweep (`long`) replays
random tables, some of them of no or few rows or of rows that are all alike, and six neighbours of each.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from calling import called
from dying import Killed, stop_after
from losses import Change
from replay import HASTY, Player, Recording, letter

import smalldb
from queries import Column, Domain, Linear, QueryClass, Rows
from smalldb.exact.bits import SeededBits
from smalldb.marginals.asks import Noisy
from smalldb.marginals.mechanism import ByMarginals
from smalldb.marginals.strategies.adaptive import Adaptive
from smalldb.marginals.strategies.choosing_parities import alternatives
from smalldb.marginals.strategies.dependence import DependenceTested
from smalldb.marginals.strategies.from_start import FromStart
from smalldb.mechanisms.start import Start
from smalldb.noise.distributions import DiscreteGaussian, KNorm, WishartDifference
from smalldb.releasing import transaction
from smalldb.reporting.words import laid_out, tell

SLOW = ("adaptive", "asked, then rounds", "strips", "target, groups")  # K-norm noise of added rows takes long
SLOW += ("no certificate", "rounds that end", "three columns, little room", "asked, delta")
SLOW += ("target, delta", "named tables", "named tables and target, delta")  # others like them are not


def replayed_with(names, slow=SLOW):
    """Cases under both relations, some of them where rows are replaced alone unless slow tests run, too."""
    return pytest.mark.parametrize(
        ("name", "relation"),
        [
            pytest.param(
                name, relation, marks=[pytest.mark.slow] * (relation != "replace-one" and name in slow)
            )
            for name in names
            for relation in ("replace-one", "add-remove")
        ],
    )


@dataclass(frozen=True)
class Case:
    """A strategy, and how a plan is brought to take it."""

    domain: Domain
    given: Mapping[str, Any]
    takes: Callable[[Any], bool]  # whether a plan takes the strategy
    steps: str  # of a release, each by its letter: a regular expression
    patched: Mapping[str, Any] = field(default_factory=dict)  # public numbers of choices, by where they stand
    changed: Callable[[Any], Any] = lambda chosen: chosen  # changes the mechanism that was planned
    n: int = 300
    tied: int = 6  # how many rows of ten have all columns alike
    queries: str | QueryClass = "marginals:2"


SMALL = Domain([Column("a", 3), Column("b", cuts=[1, 2, 3, 4]), "c"])
COLUMNS = Domain([Column("a", 3), Column("b", 5), "c", Column("d", cuts=[1, 2, 3])])
RULED = Domain(
    [Column("a", 3), Column("b", 4), "c", Column("d", 3)], valid=["~(`a=0` & c)", "~(`b=1` & `d=2`)"]
)
YES_NO = Domain(["a", "b", "c", "d", "e"])
RULED_YES_NO = Domain(["a", "b", "c", "d"], valid=["~(a & b)", "c | d"])
WIDE = Domain([f"a{i}" for i in range(7)])
WEIGHTS = Linear([[Fraction(cell % 5, 4) for cell in range(30)]])  # in quarters of a row

ROUNDS = {"mechanism": "marginals"}
QUICK = HASTY | {"marginals.strategies.budgets.MOST_WIDE": 0}  # rounds go on in noise that would end them
HALVES = {"marginals.strategies.budgets.MOST_WIDE": 256}
CELLS, PAIRS, ADAPTIVE, CONTRASTS = (
    ROUNDS | {"strategy": name} for name in ("cells", "pairs", "adaptive", "contrasts")
)
ASKED = {
    "marginals.strategies.all_cells.MOST_CELLS": 0,
    "marginals.strategies.choosing_tables.SHARES": (Fraction(1, 2),),
    "marginals.strategies.choosing_tables.LOUD": 1.0,
    "marginals.strategies.choosing_tables._error": lambda way: way.expected / (100 if way.most_pairs else 1),
}
CERTIFIED = {
    f"marginals.strategies.{where}.saved": lambda strategy, *_: strategy
    for where in ("strategy.AtOnce", "adaptive.Adaptive", "dependence.DependenceTested")
}
STRIPS = {f"marginals.{where}.MANY_COLUMNS": 3 for where in ("estimate.packed_pairs", "strategies.rounds")}
PARITIES = {"marginals.strategies.contrasts.MAX_TABLE_ATTRIBUTES": 4}
PURE_TOO = {"marginals.strategies.choosing_tables.CLEARLY": 0}
ASKED_UNDER_RHO = PURE_TOO | {
    "marginals.mechanism.unlike_coded": lambda _: "no",
    "marginals.strategies.choosing_tables._error": lambda way: way.expected,
}
GROUPS = {"marginals.strategies.first_tables.WHOLE": 12}
ENDING = dict.fromkeys(
    [f"marginals.strategies.rounds.{name}" for name in ("LEAST_UNINFORMATIVE", "PER_INFORMATIVE")], 1
)
DELTA = ADAPTIVE | {"epsilon": 1, "delta": "1e-3"}
NAMED = DELTA | {"measure_first": ["a x b x d", "a x b"], "target": "b"}


def any_plan(_):
    return True


def certified(chosen):
    return bool(chosen.strategy.certifying)


def in_rounds(chosen):
    return isinstance(chosen.strategy, Adaptive) and chosen.strategy.rounds > 0


def halved(chosen):
    return in_rounds(chosen) and chosen.strategy.halved


def concentrated(chosen):
    return in_rounds(chosen) and chosen.strategy.law.concentrated


def little_memory(chosen):
    return replace(chosen, strategy=replace(chosen.strategy, memory=20))


def refining(chosen):
    """Refine a release of a table with the same columns."""
    case = Case(COLUMNS, ADAPTIVE, in_rounds, "", n=900)
    first = smalldb.release(
        Rows.from_codes(COLUMNS, table_of(case, np.random.default_rng(5))),
        case.queries,
        epsilon=1,
        seed=5,
        **ADAPTIVE,
    )
    return replace(chosen, strategy=chosen.strategy.refining(tuple(first.measurements)))


def of_start(chosen):
    return isinstance(chosen.strategy, FromStart)


def with_start(chosen, tied, domain=COLUMNS):
    """Start from a table of 300 rows."""
    case = Case(domain, {}, any_plan, "", tied=tied)
    codes = table_of(case, np.random.default_rng(9), 300)
    start = Start(codes, np.ones(300, dtype=np.int64), "other people", "digest")
    return ByMarginals.planned(replace(chosen.request, start=start))


def asked(chosen):
    return isinstance(chosen.strategy, DependenceTested)


def designs(chosen, certificate):
    """All contrasts that a plan chooses from."""
    request = chosen.request
    return alternatives(
        request.workload,
        n=request.rows_hint,
        epsilon=request.epsilon,
        neighbours=request.neighbours.value,
        delta=request.delta,
        certificate=certificate,
    )


def designed(noise, guarded=False):
    """Take the contrasts that are measured with this noise."""

    def changed(chosen):
        made = designs(chosen, Fraction(0))
        plans = [plan for plan in made if isinstance(plan.noises[0][0], noise) and plan.guarded == guarded]
        return replace(chosen, strategy=plans[-1])

    return changed


def certified_contrasts(chosen):
    """Those of one and two columns alone, with Gaussian noise: the others are certified."""
    made = designs(chosen, Fraction(1, 20))
    return next(p for p in made if p.certifying and isinstance(p.noises[0][0], DiscreteGaussian))


def contrasts(noise, steps, domain=YES_NO, queries="marginals:3", given=None, n=300, guarded=False):
    asked = {"mechanism": "marginals", "strategy": "contrasts", "rows": 40} | (given or {})
    return Case(domain, asked, any_plan, steps, changed=designed(noise, guarded), n=n, queries=queries)


CASES = {
    "cells": Case(SMALL, CELLS, any_plan, "m"),
    "cells, certified": Case(SMALL, CELLS, certified, "mcn", CERTIFIED),
    "weights, certified": Case(SMALL, CELLS, certified, "mcn", CERTIFIED, queries=WEIGHTS),
    "columns": Case(COLUMNS, ADAPTIVE, lambda c: not c.strategy.rounds, "k", queries="marginals:1"),
    "adaptive": Case(COLUMNS, ADAPTIVE, in_rounds, "k(sm)+k?cn"),
    "halves": Case(COLUMNS, ADAPTIVE, halved, "kpcn", HALVES),
    "halves, rules": Case(RULED, ADAPTIVE, halved, "kpcn", HALVES),
    "adaptive, delta": Case(
        COLUMNS, ADAPTIVE | {"delta": "1e-6"}, concentrated, "m{4}(sm)+(m{4})?cn", PURE_TOO
    ),
    "no certificate": Case(COLUMNS, ADAPTIVE | {"certificate": 0}, in_rounds, "k(sm)+(k)?"),
    # the star alone, which the columns are read from
    "target": Case(COLUMNS, ADAPTIVE | {"target": "c", "epsilon": 8}, in_rounds, "m{3}(sm)*k?cn"),
    "target, delta": Case(COLUMNS, DELTA | {"target": "a"}, concentrated, "m{3}(sm)*(m{4})?cn", n=3000),
    "target, delta, columns first": Case(
        COLUMNS, DELTA | {"target": "b"}, concentrated, "m{4}m{3}(sm)*(m{4})?cn", n=3000
    ),
    "target, groups": Case(
        COLUMNS, ADAPTIVE | {"target": ["b", "c"], "epsilon": 2}, in_rounds, "km{5}(sm)*k?cn", GROUPS, n=1000
    ),
    # the column that no named table has, too
    "named tables": Case(
        COLUMNS, ADAPTIVE | {"measure_first": ["a x b x d"], "epsilon": 4}, in_rounds, "mm(sm)*k?cn"
    ),
    "named tables and target, delta": Case(COLUMNS, NAMED, concentrated, "m{4}m{4}(sm)*(m{4})?cn", n=3000),
    "three columns, little room": Case(
        COLUMNS,
        ADAPTIVE | {"epsilon": 20},
        in_rounds,
        "k(sm)+k?cn",
        changed=little_memory,
        queries="marginals:3",
    ),
    "rounds that end": Case(COLUMNS, ADAPTIVE | {"epsilon": 5}, in_rounds, "k(sm)+kcn", ENDING, tied=0),
    "strips": Case(COLUMNS, ADAPTIVE, in_rounds, "k(sm)+k?cn", STRIPS),
    "rules": Case(RULED, ADAPTIVE | {"epsilon": 4}, in_rounds, "k(sm)+k?cn"),
    "rules, cells": Case(RULED, CELLS, any_plan, "m"),
    "pairs at once": Case(COLUMNS, PAIRS, any_plan, "p"),
    "pairs, certified": Case(COLUMNS, PAIRS, certified, "pcn", CERTIFIED),
    "asked, then at once": Case(COLUMNS, ROUNDS, asked, "ap", ASKED, n=1000, tied=10),
    "asked, then rounds": Case(COLUMNS, ROUNDS, asked, "ak(sm)+k?cn", ASKED, n=1000, tied=0),
    "asked, delta": Case(
        COLUMNS, ROUNDS | {"delta": "1e-6"}, asked, "am{4}((sm)+(m{4})?)?cn", ASKED | ASKED_UNDER_RHO, n=1000
    ),
    "refined": Case(COLUMNS, ADAPTIVE, in_rounds, "(sm)+k?cn", {}, lambda c: refining(c), n=900),
    "start, believed": Case(COLUMNS, ADAPTIVE, of_start, "ksa(sm)*k?cn", {}, lambda c: with_start(c, 10)),
    "start, far": Case(COLUMNS, ADAPTIVE, of_start, "ksa(sm)*k?cn", {}, lambda c: with_start(c, 0), n=900),
    "start, cells": Case(SMALL, ROUNDS, of_start, "am(cn)?", {}, lambda c: with_start(c, 0, SMALL), n=900),
    "parities": Case(WIDE, CONTRASTS, any_plan, "W", PARITIES, designed(WishartDifference)),
    "parities, delta": Case(
        WIDE, CONTRASTS | {"delta": "1e-6"}, any_plan, "G", PARITIES, designed(DiscreteGaussian)
    ),
    "parities, certified": Case(WIDE, CONTRASTS, certified, "[Wk]cn", PARITIES, queries="marginals:3"),
    "parities, delta, certified": Case(
        WIDE,
        CONTRASTS | {"epsilon": "1/2", "delta": "1e-3"},
        any_plan,
        "Gcn",
        PARITIES,
        lambda chosen: replace(chosen, strategy=certified_contrasts(chosen)),
        queries="marginals:3",
    ),
    "coded": contrasts(WishartDifference, "W", SMALL, "marginals:2"),
    "coded, delta": contrasts(DiscreteGaussian, "G", SMALL, "marginals:2", {"delta": "1e-6"}),
    "coded, wide": replace(contrasts(WishartDifference, "W", COLUMNS, "marginals:2"), patched=PARITIES),
    "columns of contrasts": contrasts(KNorm, "k"),
    "wishart": contrasts(WishartDifference, "W", queries="marginals:2"),
    "wishart, safeguard": contrasts(WishartDifference, "Wsg", n=1500, guarded=True),
    "gaussian": contrasts(DiscreteGaussian, "G", given={"delta": "1e-6"}),
    "rules, contrasts": contrasts(WishartDifference, "W", RULED_YES_NO, "marginals:2"),
}


@pytest.fixture
def patched(monkeypatch):
    """Change public numbers of the code for a case."""

    def change(case):
        for where, value in (QUICK | case.patched).items():
            monkeypatch.setattr(f"smalldb.{where}", value)

    return change


def cells_of(domain):
    """All rows that there can be; of very many some."""
    if np.prod(domain.sizes, dtype=float) <= 1 << 16:
        return domain.table().astype(np.int64)
    return np.random.default_rng(0).integers(0, domain.sizes, (1 << 12, len(domain.sizes)))


def table_of(case, rng, n=None):
    """A random table: of some rows all columns are alike, of the others they are independent."""
    cells, sizes = cells_of(case.domain), np.array(case.domain.sizes)
    weights = np.array([rng.dirichlet(np.full(size, 0.7)) for size in sizes], dtype=object)
    chances = np.prod([own[cells[:, c]] for c, own in enumerate(weights)], axis=0).astype(float)
    codes = cells[rng.choice(len(cells), case.n if n is None else n, p=chances / chances.sum())]
    hidden = rng.integers(0, sizes.min(), len(codes))
    alike = np.repeat(hidden[:, None], len(sizes), axis=1)
    allowed = {tuple(cell) for cell in cells.tolist()}
    kept = [case.domain.valid is None or tuple(row) in allowed for row in alike.tolist()]
    tied = np.array(kept, dtype=bool) & (rng.integers(0, 10, len(codes)) < case.tied)
    return np.where(tied[:, None], alike, codes).astype(np.int64)


def neighbours_of(case, codes, relation, rng, many):
    """Some neighbours of a table, each with its change: rows that are far, rare, frequent, or any."""
    cells = cells_of(case.domain)
    present, times = np.unique(codes, axis=0, return_counts=True)
    there = {tuple(row) for row in present.tolist()}
    absent = np.array([cell for cell in cells.tolist() if tuple(cell) not in there] or cells.tolist())
    kinds = ["far", "rare", "frequent", "any"]
    for number in range(many):
        kind = kinds[number % len(kinds)]
        out = int(rng.integers(len(codes))) if len(codes) else None
        if kind == "rare" and out is not None:
            lonely = present[np.argmin(times)]
            out = int(np.flatnonzero((codes == lonely).all(axis=1))[0])
        if kind == "far" and out is not None:
            far = (cells != codes[out]).sum(axis=1)
            new = cells[rng.choice(np.flatnonzero(far == far.max()))]
        elif kind == "frequent" and len(present):
            new = present[np.argmax(times)]
        else:
            new = (absent if kind == "rare" else cells)[
                rng.integers(len(absent if kind == "rare" else cells))
            ]
        new = tuple(new.tolist())
        if relation == "replace-one":
            old = tuple(codes[out].tolist())
            rows = np.vstack([np.delete(codes, out, axis=0), new])
            yield rows, Change((-1, 1), (old, new), case.domain.sizes)
        elif number % 2 or out is None:
            yield np.vstack([codes, new]), Change((1,), (new,), case.domain.sizes)
        else:
            old = tuple(codes[out].tolist())
            yield np.delete(codes, out, axis=0), Change((-1,), (old,), case.domain.sizes)


def planned(case, n, relation, epsilon=None):
    given = {"epsilon": 1} | dict(case.given) | ({} if epsilon is None else {"epsilon": epsilon})
    given |= {"n": n} if relation == "replace-one" else {"neighbours": relation, "n_max": max(1, n + 7)}
    plan = smalldb.plan(case.domain, case.queries, **given)
    return replace(plan, chosen=case.changed(plan.chosen))


def published(made):
    """Everything public of a release, by name."""
    return {
        "rows": (made.codes.shape, made.codes.dtype.str, made.codes.tobytes()),
        "table": made.data.to_csv(),
        "record": json.dumps(made.record),
        "measurements": json.dumps(made.measurements.as_json()),
        "words": laid_out(tell(made.record, made.plan)),
        "repr": repr(made),
    }


def released(plan, seed, codes, **more):
    rows = Rows.from_codes(plan.workload.domain, codes)
    return published(smalldb.release(plan, rows, rng=SeededBits(seed), **more))


def recorded(plan, codes, seed=0):
    return Recording(partial(released, plan, seed), codes, seed)


@replayed_with(CASES)
def test_a_release_loses_what_it_states_and_tells_nothing_else(name, relation, patched):
    """On a neighbour, and on a table that has nothing to do with the first."""
    replay(CASES[name], relation, patched, np.random.default_rng(crc32(name.encode())))


def replay(case, relation, patched, rng):
    patched(case)
    plan = planned(case, case.n, relation)
    assert case.takes(plan.chosen), "the plan takes another strategy"
    codes = table_of(case, rng)
    recording = recorded(plan, codes)
    steps = "".join(map(letter, recording.steps))
    assert re.fullmatch(case.steps, steps), steps
    guarantee = plan.chosen.guarantee
    neighbours = list(neighbours_of(case, codes, relation, rng, 400))  # some query is of few rows
    other, change = next((n for n in neighbours if moves_certified(plan, recording, n[1])), neighbours[0])
    assert recording.lost(other, change, guarantee.epsilon, guarantee.delta).ratio > 0
    recording.replayed(stranger_of(case, rng, len(codes), relation))


def moves_certified(plan, recording, change):
    """Whether a neighbour moves the query that a certificate is about: then it loses all that it may."""
    last, workload = recording.steps[-1].ask, plan.workload
    if not isinstance(last, Noisy) or last.at is None:
        return True
    query = last.at
    rows = [Rows.from_codes(workload.domain, np.array([row])) for row in change.codes]
    answers = [np.append(workload.answers(row), row.n)[query] for row in rows]
    return np.dot(change.signs, answers) != 0


REALLY_WIDE = {
    "strips": replace(
        CASES["strips"],
        domain=Domain([Column(f"a{i}", 2 + i % 3) for i in range(30)]),
        given=ADAPTIVE | {"epsilon": 20},
        steps="k(sm)+k?cn",
        patched={"marginals.strategies.budgets.EVER_ROUNDS": 4},
        n=400,
    ),
    "parities": replace(CASES["parities"], domain=Domain([f"a{i}" for i in range(24)]), patched={}),
    "parities, delta": replace(
        CASES["parities, delta"], domain=Domain([f"a{i}" for i in range(24)]), patched={}
    ),
}


@pytest.mark.slow
@replayed_with(REALLY_WIDE)
def test_more_columns_than_a_table_can_have(name, relation, patched):
    replay(REALLY_WIDE[name], relation, patched, np.random.default_rng(8))


@pytest.mark.slow
@replayed_with(["asked, then rounds", "adaptive", "pairs at once", "wishart"])
def test_a_row_beside_rows_that_are_all_alike(name, relation, patched):
    """The dependence of two columns moves by nearly 4, as far as the question allows."""
    case = CASES[name]
    patched(case)
    plan, cells = planned(case, 300, relation), cells_of(case.domain)
    alike, guarantee = np.repeat(cells[:1], 300, axis=0), plan.chosen.guarantee
    recording = recorded(plan, alike)
    ((other, change),) = neighbours_of(case, alike, relation, np.random.default_rng(0), 1)
    if relation == "add-remove":
        new = cells[-1]
        other, change = np.vstack([alike, new]), Change((1,), (tuple(new.tolist()),), case.domain.sizes)
    assert other[-1].all()
    assert recording.lost(other, change, guarantee.epsilon, guarantee.delta).ratio > 0


def stranger_of(case, rng, n, relation):
    """A table of another distribution; under add-remove of another number of rows."""
    return table_of(replace(case, tied=10 - case.tied), rng, n if relation == "replace-one" else n // 3)


@pytest.mark.long
@replayed_with(CASES, slow=())
def test_random_tables_and_many_neighbours(name, relation, patched):
    """Of few rows and many, at several epsilons; some neighbour loses half of what it may."""
    case, rng = CASES[name], np.random.default_rng([1, crc32(name.encode())])
    patched(case)
    ratios = []
    for number, n in enumerate([case.n, 1, 2, 40, case.n] + [0] * (relation == "add-remove")):
        try:
            plan = planned(case, max(n, 1), relation, [None, "1/10", 1, 5][number % 4])
        except IndexError:  # no plan has these laws for so few rows
            continue
        codes = table_of(case, rng, n)
        if number == 4:  # all rows alike
            codes[:] = codes[0]
        recording, guarantee = recorded(plan, codes, number), plan.chosen.guarantee
        for other, change in neighbours_of(case, codes, relation, rng, 6):
            ratios.append(recording.lost(other, change, guarantee.epsilon, guarantee.delta).ratio)
        recording.replayed(stranger_of(case, rng, n, relation))
    assert max(ratios) > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["adaptive", "rules", "asked, then at once", "parities, certified"])
def test_a_release_that_goes_on_with_other_data_tells_nothing_of_them(name, patched, monkeypatch, tmp_path):
    """Killed in the middle, and started again on a neighbour: the folder, too, is the same.

    But for the salted digest of the data, by which other data are refused: here it is set aside.
    """
    monkeypatch.setattr(transaction, "_salted", lambda table, salt: ["", ""])
    case = CASES[name]
    patched(case)
    rng = np.random.default_rng(5)
    plan, codes = planned(case, case.n, "replace-one"), table_of(case, rng)
    ((other, _),) = neighbours_of(case, codes, "replace-one", rng, 1)
    whole = tmp_path / "whole"
    recording = Recording(partial(released, plan, 0, checkpoint=whole), codes)
    parts = len(list(whole.glob("*.shard")))
    assert parts > len(recording.steps)  # every answer is kept
    for stop in {1, parts // 2, parts - 1}:
        folder = tmp_path / str(stop)
        with Player(recording.steps).hooked() as killed, monkeypatch.context() as patch:
            stop_after(patch, stop)
            with pytest.raises(Killed):
                released(plan, 0, codes, checkpoint=folder)
        with Player(recording.steps[len(killed.steps) :]).hooked() as going_on:
            assert released(plan, 0, other, checkpoint=folder) == recording.published
        assert len(killed.steps) + len(going_on.steps) == len(recording.steps)
        assert contents(folder) == contents(whole)


def contents(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


COMMANDS = {
    "adaptive": (COLUMNS, []),
    "adaptive, delta, target": (COLUMNS, ["--delta", "1e-4", "--target", "c", "--epsilon", 8]),
    "pairs": (COLUMNS, []),
    "cells": (SMALL, []),
    "contrasts": (YES_NO, ["--rows", 40]),
}


@replayed_with(COMMANDS, slow=COMMANDS)
def test_a_command_tells_nothing_else(name, relation, patched, tmp_path, capfd):
    """All that `generate` prints and writes, of a table and of one that has nothing to do with it."""
    domain, options = COMMANDS[name]
    case = replace(CASES["adaptive"], domain=domain)
    patched(case)
    rng = np.random.default_rng(6)
    schema = tmp_path / "schema.toml"
    schema.write_text(schema_of(domain), encoding="utf-8")
    more = [] if relation == "replace-one" else ["--neighbours", relation, "--n-max", 400]

    def generated(codes):
        data, outputs = tmp_path / "data.csv", [tmp_path / f"out.{end}" for end in ("csv", "json", "html")]
        np.savetxt(data, codes, "%d", ",", header=",".join(domain.names), comments="")
        to = zip(("-o", "--record", "--report"), outputs, strict=True)
        strategy = name.partition(",")[0]
        given = ["--epsilon", 1, "--strategy", strategy, *options, *more, "--seed", 3, "--schema", schema]
        told = called(capfd, "generate", data, *given, *(word for pair in to for word in pair))
        assert told[0] == 0, told
        return {"told": told} | {path.name: path.read_bytes() for path in outputs}

    recording = Recording(generated, table_of(case, rng))
    recording.replayed(stranger_of(case, rng, case.n, relation))


def schema_of(domain):
    """A schema whose columns have the domain's categories, or are yes/no."""
    found = []
    for name, size in zip(domain.names, domain.sizes, strict=True):
        values = "[" + ", ".join(f'"{code}"' for code in range(size)) + "]"
        kind = 'kind = "bool"' if size == 2 else f'kind = "categories"\nvalues = {values}'
        found.append(f"[columns.{name}]\n{kind}\n")
    return "".join(found)
