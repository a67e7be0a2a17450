"""A release in rounds that was killed goes on: nothing is drawn or paid twice, and the result is the same."""

import json
import os
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pandas as pd
import pytest
from builders import tied
from dying import Killed, stop_after

import smalldb
from queries import Column, Domain, Rows
from smalldb.exact.bits import SeededBits, SystemBits
from smalldb.files.checkpoints import Checkpoint
from smalldb.marginals import counted_rows as counting
from smalldb.marginals.counted_rows import CountedRows, checked, counted
from smalldb.marginals.strategies.adaptive import Adaptive
from smalldb.marginals.strategies.all_cells import AllCells
from smalldb.marginals.strategies.all_pairs import AllPairs
from smalldb.marginals.strategies.budgets import column_groups
from smalldb.marginals.strategies.contrasts import Contrasts
from smalldb.marginals.strategies.dependence import DependenceTested
from smalldb.mechanisms.journal import CountedBits, Journal
from smalldb.releasing.budget_ledger import Ledger
from smalldb.releasing.ledger_account import OutOfBudget

WIDE = Domain([Column("a", 6), Column("b", 30), "c", Column("d", 40), Column("e", 90)])
ROUNDS = {"strategy": "adaptive"}
CASES = {
    "rounds": (WIDE, ROUNDS),
    "cells": (Domain([Column("a", 3), Column("b", 5), "c"]), {}),
    "at once": (Domain([f"a{i}" for i in range(21)]), {}),
    "gaussian": (WIDE, ROUNDS | {"delta": "1e-9"}),
    "target": (WIDE, ROUNDS | {"target": "c"}),
    "add-remove": (WIDE, ROUNDS | {"neighbours": "add-remove", "n_max": 900}),
    "pairs": (Domain([Column(f"a{i}", 3) for i in range(6)]), {"epsilon": "20", "strategy": "pairs"}),
    "asked": (Domain([Column(f"a{i}", 6) for i in range(6)]), {"epsilon": "6"}),
    "certified at once": (Domain([f"a{i}" for i in range(24)]), {"epsilon": "0.1"}),
}


def rows_of(domain, n=800, seed=1):
    return Rows.from_codes(domain, tied(domain.sizes, n, seed))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_release_that_goes_on_is_the_one_that_was_not_killed(name, tmp_path, monkeypatch):
    domain, given = CASES[name]
    given = {"epsilon": 2, "mechanism": "marginals", **given}
    rows = rows_of(domain)
    whole = smalldb.release(rows, rng=7, **given)
    follows = {"cells": AllCells, "pairs": AllPairs, "asked": DependenceTested}
    follows |= dict.fromkeys(("at once", "certified at once"), Contrasts)
    assert isinstance(whole.plan.chosen.strategy, follows.get(name, Adaptive))
    full = tmp_path / "full"
    kept = smalldb.release(rows, rng=7, checkpoint=full, **given)
    assert (kept.codes == whole.codes).all() and kept.record == whole.record
    parts = sum(file.endswith(".shard") for file in os.listdir(full))
    stops = {1, 2, parts // 2, parts - 1, parts} if name in ("cells", "rounds") else {parts // 2}
    for stop in sorted(stops):
        folder = tmp_path / str(stop)
        with monkeypatch.context() as patched:
            stop_after(patched, stop)
            with pytest.raises(Killed):
                smalldb.release(rows, rng=7, checkpoint=folder, **given)
        resumed = smalldb.release(rows, rng=7, checkpoint=folder, **given)
        assert (resumed.codes == whole.codes).all() and resumed.record == whole.record


@pytest.mark.slow
def test_what_was_released_is_not_drawn_again(tmp_path, monkeypatch):
    """Of a private source, too: every number in the folder stays, and a finished release is told again."""
    rows = rows_of(WIDE)
    with monkeypatch.context() as patched:
        stop_after(patched, 9)
        with pytest.raises(Killed):
            smalldb.release(rows, epsilon=2, checkpoint=tmp_path / "x")
    before = {name: (tmp_path / "x" / name).read_bytes() for name in os.listdir(tmp_path / "x")}
    made = smalldb.release(rows, epsilon=2, checkpoint=tmp_path / "x")
    for name, content in before.items():
        assert (tmp_path / "x" / name).read_bytes() == content
    monkeypatch.setattr(Checkpoint, "save", None)
    again = smalldb.release(rows, epsilon=2, checkpoint=tmp_path / "x")
    assert again.record == made.record
    assert (again.codes == made.codes).all()
    for path in (tmp_path / "x").glob("*.shard"):
        taken, _ = json.loads(path.read_bytes().split(b"\n")[3])
        assert taken == 0  # nothing of private coins


@pytest.mark.slow
def test_it_is_paid_once_and_bound_to_that_payment(tmp_path, monkeypatch):
    rows, ledger = rows_of(WIDE), Ledger(tmp_path / "ledger", budget=3)
    given = {"epsilon": 2, "mechanism": "marginals", "checkpoint": tmp_path / "x"}
    with monkeypatch.context() as patched:
        stop_after(patched, 9)
        with pytest.raises(Killed):
            smalldb.release(rows, ledger=ledger, **given)
    assert ledger.read().spent == 2
    other = Ledger(tmp_path / "other", budget=9)
    with pytest.raises(ValueError, match="not paid from this ledger"):
        smalldb.release(rows, ledger=other, **given)
    with pytest.raises(ValueError, match="with another ledger, or without one"):
        smalldb.release(rows, **given)
    assert other.read().spent == 0
    smalldb.release(rows, ledger=ledger, **given)
    assert ledger.read().spent == 2  # and another 2 would be out of budget
    with pytest.raises(OutOfBudget):
        smalldb.release(rows, ledger=ledger, epsilon=2, mechanism="marginals", checkpoint=tmp_path / "y")
    with pytest.raises(OutOfBudget):
        smalldb.release(rows, ledger=ledger, epsilon=2, mechanism="marginals")


@pytest.mark.slow
def test_a_ticket_pays_once_and_for_one_release(tmp_path):
    ledger, one, two = Ledger(tmp_path / "ledger", budget=9), "1" * 32, "2" * 32
    record = smalldb.release(rows_of(CASES["cells"][0]), epsilon=1, mechanism="marginals").record
    other = {**record, "privacy": {"epsilon": "2", "bounded_range": None}}
    assert not ledger.paid(one, record)
    for _ in range(3):
        assert ledger.spend(record, one).spent == 1
    assert ledger.paid(one, record) and not ledger.paid(two, record)
    for use in (ledger.paid, lambda ticket, made: ledger.spend(made, ticket)):
        with pytest.raises(ValueError, match="paid for another release"):
            use(one, other)
    assert ledger.spend(record, two).spent == 2
    assert ledger.spend(record).spent == 3 and ledger.spend(record).spent == 4  # without one each call spends
    assert not ledger.paid("", record)
    assert Ledger(tmp_path / "ledger").read().tickets == (one, two, "", "")
    for wrong in ("x", "A" * 32, "1" * 31):
        with pytest.raises(ValueError, match="a ticket must be"):
            ledger.spend(record, wrong)
    assert ledger.read().spent == 4


@pytest.mark.slow
def test_a_folder_of_another_release_is_refused(tmp_path):
    data = rows_of(WIDE)
    given = {"data": data, "epsilon": 2, "mechanism": "marginals", "checkpoint": tmp_path / "x"}
    smalldb.release(**given)
    for change in (
        {"epsilon": 3},
        {"rows": 10},
        {"certificate": 0},
        {"queries": "marginals:1"},
        {"neighbours": "add-remove", "n_max": 800},
        {"target": "a"},
        {"data": rows_of(WIDE, n=801)},
        {"data": rows_of(WIDE, seed=2)},
    ):
        with pytest.raises(ValueError, match="is of another run"):
            smalldb.release(**{**given, **change})


@pytest.mark.slow
def test_a_part_that_is_missing_or_damaged_is_not_drawn_again(tmp_path):
    given = {"data": rows_of(WIDE), "epsilon": 2, "checkpoint": tmp_path}
    smalldb.release(**given)
    for part in ("000003", "000000"):
        path = tmp_path / f"{part}.shard"
        whole = path.read_bytes()
        path.write_bytes(whole[:-9])
        with pytest.raises(ValueError, match="damaged: it cannot be done again"):
            smalldb.release(**given)
        path.unlink()
        with pytest.raises(ValueError, match="a part is missing: it cannot be done again"):
            smalldb.release(**given)
        path.write_bytes(whole)


@pytest.mark.slow
def test_a_checkpoint_holds_released_integers_and_no_rows(tmp_path):
    """The same bytes whatever the data, but for what is released."""
    rows = rows_of(WIDE)
    smalldb.release(rows, epsilon=2, checkpoint=tmp_path, rng=1)
    parts = [json.loads(p.read_bytes().split(b"\n")[3])[1] for p in sorted(tmp_path.glob("*.shard"))]
    assert [len(text) for text in parts[0]] == [64, 64]  # a salt, and a digest of it and of the data
    assert parts[1] == ""  # paid from no ledger
    groups = column_groups(WIDE.sizes, range(len(WIDE.sizes)), False)
    columns, rest = parts[2 : 2 + len(groups)], parts[2 + len(groups) :]
    assert [len(part) for part in columns] == [sum(WIDE.sizes[c] for c in group) for group in groups]
    assert all(type(part) in (int, list, type(None)) for part in rest)
    digest, query = rest[-2]  # of which rows, the query; and then its sum with noise
    assert len(digest) == 64 and type(query) is int and len(rest[-1]) == 1


def test_only_marginals_take_an_executor(tmp_path):
    frame = pd.DataFrame({"a": [0, 1, 1], "b": [0, 0, 1]})
    with (
        ThreadPoolExecutor(1) as pool,
        pytest.raises(ValueError, match="executor is for marginals: census takes none; leave it out"),
    ):
        smalldb.release(frame, epsilon=1, rows=2, executor=pool)
    with pytest.raises(TypeError, match="executor must be"):
        smalldb.release(frame, epsilon=1, rows=2, executor=3)
    ledger = Ledger(tmp_path / "ledger", budget=1)
    with pytest.raises(ValueError, match="a ledger is for private releases"):
        smalldb.release(frame, epsilon=1, rows=2, ledger=ledger, rng=1)
    with pytest.raises(TypeError, match="not a path"):
        smalldb.release(frame, epsilon=1, rows=2, ledger=str(ledger.path))
    smalldb.release(frame, epsilon=1, rows=2, ledger=ledger)
    assert ledger.read().left == 0


def test_bits_are_counted_and_steps_are_not_drawn_again(tmp_path):
    source = CountedBits(SeededBits(1))
    assert source.bits(5) == SeededBits(1).bits(5)
    assert source.drawn == 5 and not source.private and CountedBits(SystemBits()).private
    for _ in range(2):
        with (checkpoint := Checkpoint(tmp_path, "x")).opened():
            journal = Journal(SeededBits(1), checkpoint)
            assert journal.step(lambda coins: coins.bits(9)) == SeededBits(1).bits(9)
            assert journal.source.drawn == 9
    journal = Journal(SeededBits(1))
    assert journal.step(lambda coins: (coins.bits(9),)) == (SeededBits(1).bits(9),)
    assert not journal.begun


def tables_of(rows):
    return [rows.table((0,), (6,)), rows.table((1, 3), (30, 40))]


@pytest.mark.parametrize("pieces", [1, 3, 7])
def test_pieces_add_up_to_the_same_integers(pieces, monkeypatch):
    rows = rows_of(WIDE, n=500)
    private = checked(rows.codes().astype(np.int64), rows.counts << 40, WIDE.sizes)
    monkeypatch.setattr(counting, "PIECE", 1)
    monkeypatch.setattr(counting, "PIECES", pieces)
    assert len(private.pieces()) == pieces
    for executor in (None, ThreadPoolExecutor(2)):
        found = counted(private, tables_of, executor)
        assert all((a == b).all() for a, b in zip(found, tables_of(private), strict=True))
    none = CountedRows(private.codes[:0], private.counts[:0])
    assert all((table == 0).all() for table in counted(none, tables_of))


@pytest.mark.slow
def test_processes_count_the_same_release(monkeypatch):
    monkeypatch.setattr(counting, "PIECE", 100)
    rows = rows_of(WIDE)
    alone = smalldb.release(rows, epsilon=2, rng=3, mechanism="marginals")
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        made = smalldb.release(rows, epsilon=2, rng=3, mechanism="marginals", executor=pool)
    assert (made.codes == alone.codes).all() and made.record == alone.record
