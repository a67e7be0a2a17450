"""Habits of the command line and in Python: version, help, completion, seeds, CSV, short universes."""

import argparse
import csv
import io
import json

import numpy as np
import pandas as pd
import pytest
from calling import called

import smalldb
from queries import Column, Domain
from smalldb.cli import parser
from smalldb.exact.bits import SeededBits

FRAME = pd.DataFrame(np.random.default_rng(2).integers(0, 2, (40, 3)), columns=[*"abc"])


@pytest.fixture
def folder(workdir):
    FRAME.to_csv(workdir / "data.csv", index=False)
    return workdir


def test_help_is_a_word_too(capfd):
    for given, same in (
        (["help"], ["--help"]),
        (["help", "plan"], ["plan", "--help"]),
        (["help", "schema", "init"], ["schema", "init", "-h"]),
    ):
        told = called(capfd, *given)
        assert told == called(capfd, *same) and told[0] == 0 and told[1] != ""


def actions(found):
    for action in found._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from actions(command)
        else:
            yield action


def test_names_of_files_are_completed():
    shtab = pytest.importorskip("shtab")
    completed = {action.dest: getattr(action, "complete", None) for action in actions(parser())}
    for dest in "data output record report schema ledger plot real synthetic records".split():
        assert completed[dest] == shtab.FILE, dest
    assert completed["checkpoint"] == shtab.DIRECTORY
    assert completed["epsilon"] is completed["queries"] is None
    for shell in ("bash", "zsh"):
        script = shtab.complete(parser(), shell)
        assert "--rows-per-person" in script
        assert "evaluate" in script


def test_a_seed_is_a_seed_by_either_name():
    made = smalldb.release(FRAME, epsilon=1, rows=3, seed=7)
    assert made.data.equals(smalldb.release(FRAME, epsilon=1, rows=3, rng=7).data)
    assert made.data.equals(smalldb.release(FRAME, epsilon=1, rows=3, rng=SeededBits(7)).data)
    assert made.record["private"] is False
    assert made.data.equals(smalldb.release(made.plan, FRAME, seed=7).data)
    assert made.data.equals(smalldb.generate(FRAME, epsilon=1, rows=3, seed=7))
    drawn = smalldb.select([10, 30, 20], epsilon=1, sensitivity=1, seed=2)
    assert drawn.index == smalldb.select([10, 30, 20], epsilon=1, sensitivity=1, rng=2).index
    with pytest.raises(ValueError, match="seed or rng, not both"):
        smalldb.release(FRAME, epsilon=1, rows=3, seed=7, rng=7)
    for wrong in (True, "7", 7.0):
        with pytest.raises(TypeError, match="seed must be a whole number"):
            smalldb.release(FRAME, epsilon=1, rows=3, seed=wrong)


def test_universes_in_short():
    assert Domain(3) == Domain(["x1", "x2", "x3"])
    choices = {"n": 50, "epsilon": 1, "rows": 3}
    cases = [(["a", "b"], Domain(["a", "b"])), (2, Domain(2)), ([Column("t", 3)], Domain([Column("t", 3)]))]
    for short, domain in cases:
        assert smalldb.plan(short, **choices).workload.domain == domain
    for wrong in (0, 10_000, -1):
        with pytest.raises(ValueError, match="from 1 to 9999"):
            Domain(wrong)
    with pytest.raises(TypeError, match="domain must be"):
        smalldb.plan("ab", **choices)


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_a_census_is_a_table(folder, capfd):
    given = "census", "data.csv", "--rows", "2", "--epsilon", "1/2", "1"
    code, out, err = called(capfd, *given, "--csv")
    assert err == "CONFIDENTIAL: computed from the data, not for publication\n"
    found, said = rows(out), json.loads(called(capfd, *given, "--json")[1])
    assert code == 0
    assert [row["count"] for row in found] == said["counts"]
    assert [row["level"] for row in found] == said["levels"]
    assert [float(row["error"]) for row in found] == said["errors"]
    for name, law in zip(("0.5", "1"), said["laws"], strict=True):
        assert [float(row[f"probability at epsilon {name}"]) for row in found] == law["probabilities"]


def test_a_plan_whose_release_tells_its_rows_says_so(capfd):
    given = ["plan", "--attributes", "30", "--epsilon", "1", "--neighbours", "add-remove", "--n-max", "9000"]
    assert ", rows as the release estimates" in called(capfd, *given)[1]


def test_generate_tells_its_record(folder, capfd):
    given = "generate", "data.csv", "--epsilon", "1", "--rows", "3", "--record", "out.json", "--even-if-empty"
    code, out, _ = called(capfd, *given, "--json", "-o", "out.csv")
    assert (code, json.loads(out)) == (0, json.loads((folder / "out.json").read_text()))
    code, out, err = called(capfd, *given, "--json")
    assert (code, json.loads(out)["exit_code"]) == (2, 2)
    assert err == "smalldb: --json needs -o: standard output has the table\n"
