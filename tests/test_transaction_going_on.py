"""A paid release of any mechanism goes on after a kill at any moment: paid once, and drawn once."""

import dataclasses
import json
import os
import random
import shutil
import signal
import sqlite3
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from dying import Killed, killed_after, stop_after

import smalldb
from queries import DataError, Domain, Query, Workload
from smalldb import signals
from smalldb.cli import main
from smalldb.files import outputs
from smalldb.files.checkpoints import GONE
from smalldb.marginals.curator import Curator
from smalldb.releasing.budget_ledger import Ledger
from smalldb.releasing.ledger_account import OutOfBudget
from smalldb.releasing.table_source import Source
from smalldb.releasing.transaction import begun_beside, request_of

FRAME = pd.DataFrame(np.random.default_rng(1).integers(0, 2, (60, 3)), columns=list("abc"))
MECHANISMS = {
    "census": {"mechanism": "census", "rows": 4},
    "rejection": {"mechanism": "rejection", "rows": 4},
    "answers": {"mechanism": "marginals", "strategy": "contrasts", "rows": 9},
    "rounds": {"mechanism": "marginals"},
}
SCHEMA = """
columns.a.kind = "bool"
columns.b.kind = "bool"
columns.c = { kind = "cuts", cuts = "learn", bins = 3, range = [0, 9], share = 0.2 }
"""
CALLS = ("fsync", "ftruncate", "write", "replace", "rename", "unlink", "rmdir", "mkdir", "link", "chmod")


def dying(*_, **__):
    raise Killed


class Deadly:
    """Whatever changes the disk is counted; at a given number the process is dead, and changes no more."""

    def __init__(self, monkeypatch, last):
        self.last, self.calls = last, 0
        for name in CALLS:
            monkeypatch.setattr(os, name, self.counted(getattr(os, name)))

    def counted(self, call):
        def counting(*given, **more):
            if given[:1] == (2,):  # stderr
                return call(*given, **more)
            self.calls += 1
            if self.calls >= self.last:
                raise Killed
            return call(*given, **more)

        return counting


def killed_at(monkeypatch, number, given):
    """Run a command that dies at a change of the disk; return its exit code, or None."""
    with monkeypatch.context() as patched:
        Deadly(patched, number)
        try:
            return main(given)
        except Killed:
            while outputs._held:  # a dead process holds nothing
                os.close(outputs._held.popitem()[1])


@pytest.fixture
def workdir(workdir):
    FRAME.to_csv(workdir / "data.csv", index=False)
    (workdir / "schema.toml").write_text(SCHEMA)
    return workdir


FOLDERS = {
    "tables": ["data.csv", "--tables", "2", "--mechanism", "marginals"],
    "related": ["homes=homes.csv", "persons=persons.csv", "--schema", "homes.toml"],
}


def command(name, number, *more):
    if name in FOLDERS:
        to = [*FOLDERS[name], "-o", f"out{number}"]
    else:
        given = {"schema": "schema.toml", "mechanism": "marginals"} if name == "learned" else MECHANISMS[name]
        options = [word for key, value in given.items() for word in (f"--{key}", str(value))]
        to = ["data.csv", *options, "-o", f"{number}.csv", "--record", f"{number}.json"]
    return ["generate", *to, "--epsilon", "1", "--quiet", *more]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "first", "step"),  # all moments, or some of them
    [("census", 1, 1), ("rejection", 1, 3), ("answers", 2, 3), ("rounds", 3, 3), ("learned", 1, 5)],
)
def test_killed_at_any_moment_it_is_released_for_one_payment(workdir, monkeypatch, name, first, step):
    went_on = []
    assert main(command(name, 0)) == 0  # what is compiled here is not compiled, and lost, at each kill
    for number in range(first, 200, step):
        given = command(name, number, "--ledger", f"l{number}", "--budget", "1")
        if killed_at(monkeypatch, number, given) == 0:  # nothing was left to be killed at
            break
        table, record, ledger = (Path(f"{kind.format(number)}") for kind in ("{}.csv", "{}.json", "l{}"))
        shown = table.read_bytes() if table.exists() else None
        if shown is not None:  # the table comes last, each is whole
            assert json.loads(record.read_text())["rows"] == len(pd.read_csv(table))
        begun = begun_beside(str(ledger))
        assert len(begun) <= 1
        if shown is not None and not begun:  # it was over; the next release of this ledger would sweep
            for left in begun_beside(str(ledger), GONE):
                shutil.rmtree(left)
            continue
        spent = Ledger(ledger).read().spent if ledger.exists() else 0
        assert not spent or begun  # a way to go on
        went_on.append(spent)
        assert main(given) == 0
        assert shown in (None, table.read_bytes())
        assert Ledger(ledger).read().spent == 1
        assert begun_beside(str(ledger)) == []
        assert [path for path in os.listdir() if path.endswith((".part", ".gone"))] == []
    assert went_on.count(0) >= 5 / step and went_on.count(1) >= 10 / step


def test_a_named_release_tells_what_became_of_it(workdir, capsys):
    """Other data are refused while it is not finished; abandoned or finished, its name is taken."""

    def named(number, *more):
        return main([*command("rounds", number, "--ledger", "l", "--release-id", "a.1"), *more])

    killed_after(3, named, 1, "--budget", "9")  # it has paid
    pd.concat([FRAME, FRAME[:1]]).to_csv("data.csv", index=False)
    assert named(1) == 2 and "of another run" in capsys.readouterr().err
    assert main(["ledger", "l"]) == 0 and "unfinished: release a.1, of epsilon 1" in capsys.readouterr().out
    assert main(["ledger", "l", "--abandon", "b"]) == 2 and "none of this name" in capsys.readouterr().err
    assert main(["ledger", "l", "--abandon", "a.1"]) == 0 and begun_beside("l") == []
    assert named(1) == 2 and "was abandoned: use another name" in capsys.readouterr().err
    finished = command("rounds", 2, "--ledger", "l", "--release-id", "a.2")
    assert main(finished) == main(finished) == 0
    assert main(["ledger", "l", "--records", "2.json"]) == 0
    Path("2.csv").write_text("changed")
    assert main(finished) == 2 and "not those that it had" in capsys.readouterr().err
    assert Ledger("l").read().names == ("a.1", "a.2")
    Path("old").write_bytes(
        b"".join(Path("l").read_bytes().splitlines(keepends=True)[:3])
    )  # a copy from before
    assert main(["ledger", "old", "--records", "2.json"]) == 2 and "older copy" in capsys.readouterr().err


def test_a_finished_release_is_repeated_with_what_it_had(workdir, capsys):
    """Other options, another schema or a table of another name are no repetition."""
    given = [*command("learned", 1, "--ledger", "l", "--release-id", "a"), "--budget", "9"]
    assert main(given) == 0
    shutil.copy("data.csv", "tomorrow.csv")
    for old, new in (("1", "2"), ("data.csv", "tomorrow.csv")):
        assert main([new if word == old else word for word in given]) == 2
        assert "its options or the name of its data are not those" in capsys.readouterr().err
    assert main([*given, "--middle"]) == 2
    Path("schema.toml").write_text(SCHEMA.replace("0.2", "0.3"))
    assert main(given) == 2
    Path("schema.toml").write_text(SCHEMA)
    capsys.readouterr()
    assert main([*given[:-2], "--json", "--checkpoint", "own"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(Path("1.json").read_text())
    assert Ledger("l").read().spent == 1


@pytest.mark.parametrize("name", [["--release-id", "a"], []])
def test_another_version_pays_no_second_time(workdir, monkeypatch, capsys, name):
    """It cannot go on from what it may read otherwise; it says which version can, and what else to do."""
    given = command("rounds", 1, "--ledger", "l", "--budget", "9", *name)
    killed_after(3, main, given)
    with monkeypatch.context() as patched:
        patched.setattr("smalldb.files.checkpoints.__version__", "9.0")
        assert main(given) == 2
    said = capsys.readouterr().err
    assert "is of smalldb 0." in said and "and this is smalldb 9.0: it has paid and is not finished" in said
    assert ("smalldb ledger --abandon a" in said) == bool(name)
    assert main(given) == 0 and Ledger("l").read().spent == 1


@pytest.mark.parametrize("options", [[], ["--checkpoint", "own"]])
def test_a_named_release_at_which_another_process_works_may_be_tried_again(workdir, monkeypatch, options):
    """Two schedulers, or one that is impatient: one releases, the other learns that it shall come later."""
    given = command("rounds", 1, "--ledger", "l", "--budget", "9", "--release-id", "a", *options)
    codes, run = [], Curator.run

    def drawing(*arguments):
        codes.append(in_a_child(given))
        return run(*arguments)

    monkeypatch.setattr(Curator, "run", drawing)
    monkeypatch.setattr("smalldb.releasing.pipeline.rehearse_draw", lambda *_: None)  # it is a release, too
    assert main(given) == 0 and codes == [3]
    assert Ledger("l").read().names == ("a",)


def test_a_release_that_another_process_finished_meanwhile_stands(workdir, monkeypatch):
    """It was not finished when the command began, and is when it would pay."""
    given = command("rounds", 1, "--ledger", "l", "--budget", "9", "--release-id", "a")
    codes, read = [], Source.read

    def reading(*arguments):
        if not codes:
            codes.append(None)
            codes.append(main(given))
        return read(*arguments)

    monkeypatch.setattr(Source, "read", reading)
    assert main(given) == 0 and codes == [None, 0]
    assert Ledger("l").read().names == ("a",) and begun_beside("l") == []


@pytest.mark.parametrize("options", [[], ["--checkpoint", "own"]])
@pytest.mark.parametrize("repeated", [True, False])
def test_a_named_release_that_ended_leaves_nothing_beside_the_ledger(workdir, monkeypatch, options, repeated):
    """Killed after its end and before its folder or the file that names one went: the next run sweeps."""
    given = command("rounds", 1, "--ledger", "l", "--release-id", "a.1", *options)
    with monkeypatch.context() as patched, pytest.raises(Killed):
        finish = Ledger.finish
        patched.setattr(Ledger, "finish", lambda *given: (finish(*given), dying()))
        main([*given, "--budget", "9"])
    assert len([*workdir.glob(".l.*")]) == 1
    again = given if repeated else command("rounds", 2, "--ledger", "l")
    assert main(again) == 0 and [*workdir.glob(".l.*")] == []


RELATED = """
unit = "homes"

[tables.homes]
key = "home"
columns.owned = { kind = "bool" }

[tables.persons]
parent = "homes"
most = 3
columns.works = { kind = "bool" }
"""


@pytest.fixture
def several(workdir):
    Path("homes.toml").write_text(RELATED)
    homes = pd.DataFrame({"home": range(200), "owned": np.arange(200) % 2})
    persons = pd.DataFrame({"home": np.arange(300) % 150, "works": np.arange(300) % 2})
    homes.to_csv("homes.csv", index=False)
    persons.to_csv("persons.csv", index=False)
    return workdir


def contents(*places):
    """The files at these places, and in folders there."""
    found = [path for place in places for path in (place, *place.glob("*")) if path.is_file()]
    return {str(path): path.read_bytes() for path in found}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "first", "named"), [("rounds", 1, True), ("tables", 2, True), ("related", 2, False)]
)
def test_a_release_is_paid_once_and_repeated_for_nothing(several, monkeypatch, capsys, name, first, named):
    """Killed at every second moment: the same command goes on or ends well, with one line in the ledger.

    Without a name it is refused once its folder stands and all is done.
    """
    for number in range(first, 200, 2):
        given = command(name, number, "--ledger", f"l{number}", "--budget", "9")
        given += ["--release-id", "night-1"] if named else []
        places = (
            [Path(f"out{number}")] if name in FOLDERS else [Path(f"{number}.json"), Path(f"{number}.csv")]
        )
        ended = killed_at(monkeypatch, number, given) == 0
        stood = contents(*places)
        done = len(stood) > 1 and begun_beside(f"l{number}") == []
        assert main(given) == (2 if done and not named else 0)
        whole = contents(*places)
        assert stood.items() <= whole.items()
        account = Ledger(f"l{number}").read()
        assert account.spent == 1 and begun_beside(f"l{number}") == []
        assert account.names == ("night-1" if named else "",) and (not named or account.ended["night-1"])
        capsys.readouterr()
        assert main(given) == (0 if named else 2) and contents(*places) == whole
        said = capsys.readouterr().err
        assert named or "is not empty: name one that is new or empty" in said
        if ended:
            break
    assert number > 20


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_of_others_is_not_taken_for_the_one_that_a_killed_run_placed(several, capsys, name):
    given = command(name, 1, "--ledger", "l1", "--budget", "1")
    killed_after(3, main, given)
    Path("out1").mkdir()
    Path("out1", "record.json").write_text("{}")
    assert main(given) == 2
    error = capsys.readouterr().err
    assert (
        "is not empty: name one that is new or empty; the ledger is paid: the same command goes on" in error
    )
    assert os.listdir("out1") == ["record.json"]
    assert main(["out2" if word == "out1" else word for word in given]) == 0
    assert Ledger("l1").read().spent == 1


def test_related_tables_are_paid_once_in_python_too(several):
    tables = {name: pd.read_csv(f"{name}.csv") for name in ("homes", "persons")}
    ledger, given = Ledger("l", 1), {"schema": RELATED, "epsilon": 1}
    killed_after(5, smalldb.release, tables, ledger=ledger, **given)
    changed = {**tables, "persons": tables["persons"].assign(works=1)}
    with pytest.raises(ValueError, match=r"of another run \(other data"):
        smalldb.release(changed, ledger=ledger, **given)
    (folder,) = begun_beside("l")
    kept = {path: path.read_bytes() for path in folder.glob("*.shard")}
    assert len(kept) == 5
    shuffled = {name: table.sample(frac=1, random_state=1) for name, table in tables.items()}
    made = smalldb.release(shuffled, ledger=ledger, **given)  # the same rows are the same data
    assert ledger.read().spent == 1 and begun_beside("l") == []
    again = [smalldb.release(tables, checkpoint="own", **given) for _ in "ab"]
    assert again[0].record == again[1].record and made.record != again[0].record
    assert all(again[0].data[name].equals(again[1].data[name]) for name in tables)


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_release_that_goes_on_is_the_one_that_was_not_killed(tmp_path, name):
    """With a seed to the last row; else every number in the folder stays, and the table is told again."""
    given = {"epsilon": 2, "queries": "marginals:2", **MECHANISMS[name]}
    whole = smalldb.release(FRAME, rng=7, **given)
    kept = smalldb.release(FRAME, rng=7, checkpoint=tmp_path / "whole", **given)
    assert (kept.codes == whole.codes).all() and kept.record == whole.record
    parts = len(list((tmp_path / "whole").glob("*.shard")))
    for stop in range(parts):
        for rng, folder in ((7, tmp_path / f"seed{stop}"), (None, tmp_path / f"private{stop}")):
            killed_after(stop + 1, smalldb.release, FRAME, rng=rng, checkpoint=folder, **given)
            before = {path: path.read_bytes() for path in folder.glob("*.shard")}
            assert len(before) == stop + 1
            resumed = smalldb.release(FRAME, rng=rng, checkpoint=folder, **given)
            assert all(path.read_bytes() == content for path, content in before.items())
            again = smalldb.release(FRAME, rng=rng, checkpoint=folder, **given)
            assert again.data.equals(resumed.data) and again.record == resumed.record
            if rng is not None:
                assert resumed.data.equals(whole.data) and resumed.record == whole.record


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name == "rejection")) for name in MECHANISMS]
)
def test_other_data_are_refused(tmp_path, name):
    """Also those that differ in one row only; the folder tells no row."""
    other = FRAME.copy()
    other.loc[0, "a"] = 1 - other.loc[0, "a"]
    folder = tmp_path / "kept"
    given = {"epsilon": 1, "checkpoint": folder, **MECHANISMS[name]}
    made = smalldb.release(FRAME, **given)
    with pytest.raises(ValueError, match=r"of another run \(other data or parameters\)"):
        smalldb.release(other, **given)
    shuffled = FRAME.sample(frac=1, random_state=1)  # the same rows are the same data
    assert smalldb.release(shuffled, **given).data.equals(made.data)
    first = json.loads((folder / "000000.shard").read_bytes().split(b"\n")[3])
    smalldb.release(FRAME, epsilon=1, checkpoint=tmp_path / "other", **MECHANISMS[name])
    second = json.loads((tmp_path / "other" / "000000.shard").read_bytes().split(b"\n")[3])
    assert first[1][0] != second[1][0] and first[1][1] != second[1][1]  # salts, and so digests


@pytest.mark.parametrize("rows", [60, 61])
def test_a_killed_night_blocks_the_next_whatever_its_number_of_rows(tmp_path, monkeypatch, rows):
    """Unless it had not paid: then nothing is lost."""
    ledger, given = Ledger(tmp_path / "l", 3), {"epsilon": 1, "mechanism": "census", "rows": 2}
    tonight = pd.DataFrame(np.random.default_rng(2).integers(0, 2, (rows, 3)), columns=list("abc"))
    for paid in (False, True):
        with monkeypatch.context() as patched, pytest.raises(Killed):
            stop_after(patched, 4)
            if not paid:
                patched.setattr(Ledger, "spend", dying)
            smalldb.release(FRAME, ledger=ledger, **given)
        assert len(begun_beside(ledger.path)) == 1
        if not paid:
            smalldb.release(tonight, ledger=ledger, **given)
            assert ledger.read().spent == 1 and begun_beside(ledger.path) == []
            continue
        with pytest.raises(ValueError, match=r"of another run \(other data.*it has paid and is not finished"):
            smalldb.release(tonight, ledger=ledger, **given)
        assert ledger.read().spent == 2
        shutil.rmtree(*begun_beside(ledger.path))  # as the message says
        smalldb.release(tonight, ledger=ledger, **given)
        assert ledger.read().spent == 3


@pytest.mark.slow
def test_in_python_a_ledger_is_enough(tmp_path):
    ledger = Ledger(tmp_path / "l", 1)
    for name, given in MECHANISMS.items():
        ledger = Ledger(tmp_path / name, 1)
        for at in (0, 1, 2, 3):
            killed_after(at + 1, smalldb.release, FRAME, epsilon=1, ledger=ledger, **given)
            assert len(begun_beside(ledger.path)) == (at > 1)
        smalldb.release(FRAME, epsilon=1, ledger=ledger, **given)
        assert ledger.read().spent == 1 and begun_beside(ledger.path) == []
        with pytest.raises(OutOfBudget):
            smalldb.release(FRAME, epsilon=1, ledger=ledger, **given)
        assert begun_beside(ledger.path) == []


def test_releases_at_once_have_folders_of_their_own(tmp_path, monkeypatch):
    """Whoever finds a folder in use takes the next; one that was killed is gone on with first."""
    ledger, given = Ledger(tmp_path / "l", 3), {"epsilon": 1, "rows": 2}
    begun, run = [], Curator.run

    def drawing(*arguments):
        if len(begun) < 2:
            begun.append(1)
            smalldb.release(FRAME, ledger=ledger, **given)
        return run(*arguments)

    monkeypatch.setattr(Curator, "run", drawing)
    smalldb.release(FRAME, ledger=ledger, **given)
    assert ledger.read().left == 0 and sorted(os.listdir(tmp_path)) == ["l"]


def test_what_a_killed_removal_left_is_removed(tmp_path, monkeypatch):
    ledger, given = Ledger(tmp_path / "l", 3), {"epsilon": 1, "rows": 2}
    with monkeypatch.context() as patched:
        patched.setattr("shutil.rmtree", lambda *_, **__: None)
        patched.setattr("smalldb.releasing.transaction.rmtree", lambda *_, **__: None)
        smalldb.release(FRAME, ledger=ledger, **given)
    assert len(os.listdir(tmp_path)) == 2
    smalldb.release(FRAME, ledger=ledger, epsilon=2, rows=2)
    assert os.listdir(tmp_path) == ["l"] and ledger.read().left == 0


def test_a_ledger_with_a_long_name_has_a_folder_beside_it(tmp_path):
    for name in ("x" * 255, "\u00e9" * 127):
        ledger = Ledger(tmp_path / name, 1)
        killed_after(4, smalldb.release, FRAME, epsilon=1, rows=2, ledger=ledger)
        assert len(begun_beside(ledger.path)) == 1
        smalldb.release(FRAME, epsilon=1, rows=2, ledger=ledger)
        assert begun_beside(ledger.path) == [] and ledger.read().spent == 1


def test_queries_made_by_hand_that_share_a_text_are_told_apart(tmp_path):
    domain = Domain(["a", "b", "c"])
    given = {"epsilon": 1, "rows": 3, "checkpoint": tmp_path / "x", "domain": domain}
    one, other = (
        Workload.reduced(domain, "mine", [Query("q", positions, (0, 1, 1, 0))])
        for positions in ((0, 1), (0, 2))
    )
    smalldb.release(FRAME, one, **given)
    with pytest.raises(ValueError, match="of another run"):
        smalldb.release(FRAME, other, **given)


def test_learned_categories_are_learned_once(tmp_path, monkeypatch):
    data = pd.DataFrame({"town": ["Leeds", "York", "Hull"] * 30})
    schema = 'columns.town = { kind = "categories", values = "learn", share = "1/2", unknown = "other" }\n'
    given = {"schema": schema, "epsilon": 2, "delta": "1e-3", "checkpoint": tmp_path / "x"}
    made = smalldb.release(data, **given)
    monkeypatch.setattr("smalldb.releasing.learned_categories.frequent", None)
    again = smalldb.release(data, **given)
    assert again.data.equals(made.data) and again.record == made.record
    with pytest.raises(ValueError, match="of another run"):
        smalldb.release(data[1:], **given)


def test_a_release_with_a_checkpoint_of_its_own_is_listed_until_it_is_finished(workdir, capsys):
    given = command("census", 1, "--ledger", "l", "--budget", "1", "--checkpoint", "own")
    killed_after(3, main, given)
    capsys.readouterr()
    assert main(["ledger", "l"]) == 0
    assert f"unfinished: release 1, of epsilon 1, in {workdir / 'own'}:" in capsys.readouterr().out
    assert main(["ledger", "l", "--json"]) == 0
    unfinished = json.loads(capsys.readouterr().out)["unfinished"]
    assert unfinished == [{"release": 1, "folder": str(workdir / "own")}]
    paid = Path("l").read_bytes()
    Path("l").write_bytes(paid.splitlines(keepends=True)[0])  # a copy from before the payment
    assert main(given) == 2 and "was not paid from this ledger" in capsys.readouterr().err
    assert Ledger("l").read().spent == 0
    Path("l").write_bytes(paid)
    assert main(given) == 0 and Ledger("l").read().spent == 1
    assert main(["ledger", "l"]) == 0
    assert "unfinished" not in capsys.readouterr().out and not [*workdir.glob(".l.*")]


LEARNING = """
columns.town = { kind = "categories", values = "learn", unknown = "other", share = "1/4" }
columns.smoker.kind = "bool"
"""


@pytest.mark.parametrize("where", ["smalldb.releasing.pipeline.learn", "smalldb.releasing.pipeline.alike"])
def test_other_data_are_refused_where_categories_are_learned(tmp_path, monkeypatch, where):
    """Killed before the step that learns, and behind it: the texts are bound from the first step on."""

    tables = [
        pd.DataFrame({"town": [*towns] * 100, "smoker": [0, 1] * 100}) for towns in (["N", "S"], ["E", "W"])
    ]
    given = {"schema": LEARNING, "epsilon": 2, "delta": "1e-6", "checkpoint": tmp_path / "x"}
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(where, dying)
        smalldb.release(tables[0], **given)
    with pytest.raises(ValueError, match=r"of another run \(other data"):
        smalldb.release(tables[1], **given)
    assert {*smalldb.release(tables[0], **given).data.town} <= {"N", "S", "other"}


@pytest.mark.parametrize("changed", ["rows", "columns"])
def test_a_table_that_changes_between_two_readings_is_refused(tmp_path, monkeypatch, changed):
    """A database may: number of rows and what is not learned are compared before more is drawn."""
    table = pd.DataFrame({"town": ["N", "S"] * 100, "smoker": [0, 1] * 100})
    other = table[2:] if changed == "rows" else table.assign(smoker=[1] * 200)
    read, readings = Source.read, []

    def reading(source, *given):
        readings.append(source)
        return read(source if len(readings) == 1 else dataclasses.replace(source, table=other), *given)

    monkeypatch.setattr(Source, "read", reading)
    given = {"schema": LEARNING, "epsilon": 2, "delta": "1e-6", "checkpoint": tmp_path / "x"}
    with pytest.raises(DataError, match="the table changed while it was read"):
        smalldb.release(table, **given)
    assert len(readings) == 2 and len([*(tmp_path / "x").glob("*.shard")]) == 3  # data, ticket, categories


def in_a_child(given, delay=None, number=signal.SIGKILL):
    """Run a command in a child process, which a signal may end; return its exit code, or None."""
    return ended(started(given), delay, number)


def started(given):
    """Start a command in a child process; return its number."""
    child = os.fork()
    if not child:
        code = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            signals.take()
            code = main(given)
        finally:
            os._exit(code)
    return child


def ended(child, delay=None, number=signal.SIGKILL):
    """Wait for a child process, or end it by a signal after some seconds; return its exit code, or None."""
    if delay is not None:
        time.sleep(delay)
        os.kill(child, number)
    status = os.waitpid(child, 0)[1]
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else None


PATHS = {
    "single": ["data.csv", "--mechanism", "marginals", "-o", "{}.csv", "--record", "{}.json"],
    "learned": ["data.csv", "--schema", "schema.toml", "-o", "{}.csv", "--schema-out", "{}.toml"],
    "checkpoint": ["data.csv", "--mechanism", "marginals", "-o", "{}.csv", "--checkpoint", "own{}"],
    "database": "data.sqlite --query t --count-in-database --schema flags.toml -o {}.csv".split(),
    "tables": [*FOLDERS["tables"], "-o", "{}"],
    "related": [*FOLDERS["related"], "-o", "{}"],
}
KILLS = 50  # of each path


@pytest.mark.long
@pytest.mark.parametrize("name", PATHS)
def test_fifty_kills_of_named_releases_pay_once_each_and_lose_nothing(several, name, capsys):
    """Processes are ended at random moments, some twice, some beside a second one of the same name.

    All releases of a path share a ledger. The same command, repeated, ends well; then each name is paid once.
    """
    Path("flags.toml").write_text("".join(f'columns.{column}.kind = "bool"\n' for column in "abc"))
    with sqlite3.connect("data.sqlite") as made:
        FRAME.to_sql("t", made, index=False)
    made.close()

    def named(number):
        given = [word.format(f"n{number}") for word in PATHS[name]]
        common = ["--epsilon", "1", "--quiet", "--ledger", "l", "--budget", "999"]
        return ["generate", *given, *common, "--release-id", f"n{number}"]

    def files(number):
        found = [path for top in Path().glob(f"n{number}*") for path in (top, *top.rglob("*"))]
        return {str(path): path.read_bytes() for path in found if path.is_file() and path.name[0] != "."}

    chance, lasts = random.Random(5), []
    assert main(named(0)) == 0  # imported and compiled here, not in each child
    for number in (1, 2):
        begun = time.monotonic()
        assert in_a_child(named(number)) == 0
        lasts.append(time.monotonic() - begun)
    whole, number, found = {path[2:] for path in files(2)}, 2, Counter()
    while found["kills"] < KILLS:
        number += 1
        given, shown = named(number), {}
        for _ in range(1 + number % 2):
            beside = started(given) if number % 3 == 0 else None
            ending = signal.SIGTERM if chance.random() < 1 / 3 else signal.SIGKILL
            code = in_a_child(given, chance.uniform(0, 1.1 * lasts[-1]), ending)
            if beside is not None:  # 3: the other one was at work
                assert ended(beside) in (0, 3)
            assert code in (0, 3, None, 128 + signal.SIGTERM)
            if code in (0, 3):
                continue
            found["kills"] += 1
            account = Ledger("l").read()
            found["with the payment made" if f"n{number}" in account.names else "before it"] += 1
            if len(files(number)) == len(whole):
                shown = files(number)
                found["with the outputs in place"] += 1
        assert in_a_child(given) == 0
        assert {path[len(f"n{number}") :] for path in files(number)} == whole
        assert shown in ({}, files(number))
        shown = files(number)
        assert in_a_child(given) == 0 and files(number) == shown
    account = Ledger("l").read()
    assert sorted(account.names) == sorted(f"n{k}" for k in range(number + 1)) == sorted(account.ended)
    assert all(account.ended.values()) and account.spent == number + 1
    swept = (".part", ".parts", ".gone")  # by the next run: no folder of a release is left
    assert [path for path in os.listdir() if path[0] == "." and not path.endswith(swept)] == []
    with capsys.disabled():
        told = ", ".join(f"{times} {what}" for what, times in found.items())
        print(f"\n{name}: {number - 2} releases ({lasts[-1]:.1f} s): {told}")
    assert min(found["before it"], found["with the payment made"]) >= KILLS // 10


def test_what_a_paid_release_is_known_by_stays(examples):
    """Of a version before: with another digest the same command would pay again."""
    small = smalldb.plan(4, "conjunctions:2", n=3000, epsilon=1, rows=5)
    people, homes = (
        smalldb.plan(schema=examples / f"{name}.toml", n=3000, epsilon=1) for name in ("people", "homes")
    )
    assert request_of(small).startswith("46f0db48d6c81c10")
    assert request_of(people).startswith("70d5ac577c5c0d69")
    assert request_of(homes).startswith("e9b39c509d592beb")
