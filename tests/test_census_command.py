"""The curator's command: what it says is what the census says, and it says that it is confidential."""

import json
from fractions import Fraction

import matplotlib.image
import pandas as pd
import pytest
from calling import called

import smalldb
from queries import Conjunctions, Domain, Marginals
from smalldb.schema import read_schema


@pytest.fixture
def folder(workdir):
    """A folder with a small table, as the working directory."""
    (workdir / "data.csv").write_text("a,b\n0,0\n0,1\n1,1\n1,1\n")
    return workdir


def test_json_is_the_census(folder, capfd):
    arguments = ("data.csv", "--queries", "conjunctions:2", "--rows", 5, "--epsilon", "1/2", 3, "--json")
    code, out, err = called(capfd, "census", *arguments)
    assert (code, err) == (0, "")
    said = json.loads(out)
    found = smalldb.census(pd.read_csv("data.csv"), Conjunctions(2), rows=5)
    assert said["confidential"] is True
    assert (said["rows"], said["n"], said["candidates"], said["total"]) == (5, 4, "multisets", "56")
    assert said["levels"] == [str(level) for level in found.levels]
    assert [int(count) for count in said["counts"]] == list(found.counts)
    assert said["errors"] == [float(found.error(level)) for level in found.levels]
    for law, epsilon in zip(said["laws"], ("1/2", "3"), strict=True):
        exact = found.law(epsilon)
        plan = smalldb.plan(Domain(["a", "b"]), Conjunctions(2), n=4, epsilon=epsilon, rows=5)
        assert Fraction(law["epsilon"]) == Fraction(epsilon)
        assert law["probabilities"] == exact.probabilities.tolist()
        assert law["mean"] == exact.mean()
        quantiles = [{"probability": q, "error": exact.quantile(q)} for q in ("0.5", "0.95", "0.99")]
        assert law["quantiles"] == quantiles
        assert law["bounds"]["sharp"] == plan.bound
        assert law["bounds"]["proposition_4_4"] == plan.proposition_4_4
        assert law["bounds"]["theorem_4_5"] == plan.theorem_4_5


@pytest.mark.slow
def test_the_table_for_people(folder, capfd):
    arguments = ("data.csv", "--queries", "conjunctions:2", "--rows", 4, "--epsilon", 1, "--beta", 0.1)
    code, out, _ = called(capfd, "census", *arguments)
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "CONFIDENTIAL: computed from the data, not for publication"
    assert lines[1].startswith("35 multisets of 4 rows")
    assert lines[2].startswith("least error 0 (1 of them)")
    law = smalldb.census(pd.read_csv("data.csv"), Conjunctions(2), rows=4).law(1)
    figures = [f"{law.mean():.4f}", *(f"{law.quantile(q):.4f}" for q in ("0.5", "0.9", "0.99"))]
    assert lines[-1].split()[1:5] == figures
    code, out, _ = called(capfd, "census", "data.csv", "--rows", 4, "--candidates", "tuples")
    assert code == 0
    assert out.splitlines()[1].startswith("256 tuples of 4 rows")
    assert len(out.splitlines()) == 3


@pytest.mark.slow
@pytest.mark.parametrize("form", ["png", "svg"])
def test_the_picture_is_written(folder, capfd, form):
    arguments = ("data.csv", "--rows", 4, "--epsilon", "0.1", 1, "--plot", f"law.{form}")
    code, _, err = called(capfd, "census", *arguments)
    assert (code, err) == (0, "")
    made = folder / f"law.{form}"
    assert made.stat().st_mode & 0o777 == 0o600
    if form == "svg":
        assert made.read_bytes().startswith(b"<?xml")
    else:
        picture = matplotlib.image.imread(made)
        assert picture.shape[:2] == (750, 1200)
        assert picture[..., :3].std() > 0.05


def test_no_rows_and_no_matplotlib(folder, capfd, monkeypatch):
    (folder / "none.csv").write_text("a,b\n")
    code, _, err = called(capfd, "census", "none.csv", "--rows", 2)
    assert code == 2
    assert "the table has no rows" in err
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    code, _, err = called(capfd, "census", "data.csv", "--rows", 2, "--epsilon", 1, "--plot", "law.png")
    assert code == 3
    assert "pip install 'smalldb-dp[plot]'" in err


def test_a_schema_says_what_the_columns_hold(folder, capfd):
    (folder / "s.toml").write_text(
        'queries = "marginals:1"\n'
        'columns.job = { kind = "categories", values = ["none", "part", "full"] }\n'
        'columns.old = { kind = "bool" }\n'
    )
    (folder / "jobs.csv").write_text("old,job,n\n1,none,3\n0,full,2\n")
    arguments = ("--schema", "s.toml", "--rows", 2, "--epsilon", "1", "--json")
    code, out, err = called(capfd, "census", "jobs.csv", *arguments, "--counts", "n")
    assert (code, err) == (0, "")
    said, schema = json.loads(out), read_schema("s.toml")
    found = smalldb.census(schema.encode(pd.read_csv("jobs.csv"), "n"), Marginals(1), rows=2)
    assert (said["n"], said["total"], said["errors"]) == (
        5,
        "21",
        [float(found.error(v)) for v in found.levels],
    )
