"""`generate` with a schema: real columns in, the same columns out."""

import json
import re
from importlib import resources

import jsonschema
import pytest
from calling import called

from smalldb.schema.table_writers import NAMED

SCHEMA = """
queries = "marginals:1"
ignore = ["id"]
columns.job = { kind = "categories", values = ["none", "part", "full"], coding = "bits", missing = true }
columns.age = { kind = "cuts", cuts = [18, 65], range = [0, 99], dtype = "Int16" }
columns.born = { kind = "dates", cuts = [1990], range = [1950, 2010] }
columns.smoker = { kind = "bool" }
"""
ROWS = [
    ("1", "17", "true", "none", "1995-03-02"),
    ("2", "30", "false", "", "1970-12-31"),
    ("3", "70", "FALSE", "full", "1955-01-01"),
    ("4", "41", "1", "part", "1985-06-07"),
]
EPSILON = ("--epsilon", "1", "--rows", "3")


@pytest.fixture
def folder(workdir):
    """A folder with a table, its columns in another order than the schema's, and the schema."""
    (workdir / "people.toml").write_text(SCHEMA)
    lines = ["id,age,smoker,job,born", *map(",".join, ROWS * 50)]
    (workdir / "people.csv").write_text("\n".join(lines) + "\n")
    return workdir


def generated(capfd, *arguments):
    code, out, err = called(capfd, "generate", "people.csv", "--schema", "people.toml", *EPSILON, *arguments)
    assert code == 0, err
    return out


def test_the_columns_come_back_in_the_order_of_the_file(folder, capfd):
    out = generated(capfd, "--middle")
    header, *rows = [line.split(",") for line in out.splitlines()]
    assert header == ["age", "smoker", "job", "born"]
    assert len(rows) == 3
    for age, smoker, job, born in rows:
        assert age in ("8", "41", "82")
        assert smoker in ("true", "false")
        assert job in ("none", "part", "full", "")
        assert re.fullmatch(r"(19|20)\d\d-07-01", born)


def test_the_report_is_public_unless_the_curator_asks(folder, capfd):
    generated(capfd, "--report", "public.html")
    generated(capfd, "--report", "own.html", "--confidential")
    assert (folder / "own.html").stat().st_mode & 0o777 == 0o600
    assert (folder / "public.html").stat().st_mode == (folder / "people.csv").stat().st_mode
    public, own = ((folder / name).read_text() for name in ("public.html", "own.html"))
    assert ("CONFIDENTIAL" in public, "Largest error" in public) == (False, False)
    assert ("CONFIDENTIAL" in own, "Largest error" in own) == (True, True)
    assert "18&lt;=age&lt;65" in public


def test_the_record_has_the_queries_and_whether_the_schema_is_of_unseen_data(folder, capfd):
    generated(capfd, "--record", "silent.json")
    generated(capfd, "--record", "stated.json", "--schema-unseen", "--queries", "conjunctions:2")
    silent, stated = (json.loads((folder / name).read_text()) for name in ("silent.json", "stated.json"))
    assert ("schema_unseen" in silent, stated["schema_unseen"]) == (False, True)
    assert (silent["queries"]["text"], stated["queries"]["text"]) == ("marginals:1", "conjunctions:2")
    form = resources.files("smalldb.releasing").joinpath("record.schema.json").read_text(encoding="utf-8")
    jsonschema.validate(stated, json.loads(form))
    code, _, err = called(capfd, "generate", "people.csv", "--epsilon", "1", "--schema-unseen")
    assert (code, "--schema-unseen needs --schema" in err) == (2, True)


def test_a_table_without_rows_is_released_as_its_neighbours_are(folder, capfd):
    (folder / "none.csv").write_text("id,age,smoker,job,born\n")
    options = ("--neighbours", "add-remove", "--report", "own.html", "--ledger", "l", "--budget", "2")
    command = ("generate", "none.csv", "--schema", "people.toml", *EPSILON, *options)
    for more in ("--confidential",), ():
        code, _, err = called(capfd, *command, *more)
        page = (folder / "own.html").read_text()
        assert (code, "CONFIDENTIAL" in page) == (0, bool(more)), err
        assert ("The data have no rows" in page) is bool(more)


BAD = [
    (["people.csv", "--valid", "smoker"], "--valid is for tables without --schema"),
    (["people.csv", "-o", "people.toml"], f"written as {NAMED}"),
    (["people.csv", "--record", "people.toml"], "an output would replace an input"),
    (["people.csv", "--record", "people.csv"], "an output would replace an input"),
    (["people.csv", "--counts", "times"], "the table has no column 'times'"),
    (["other.csv"], "the table has no column 'smoker'; did you mean 'smokers'?"),
    (["people.csv", "--queries", "marginals:9"], "width 9 is more than"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=lambda v: v if isinstance(v, str) else "")
def test_what_is_refused_is_refused_before_a_row_is_read(folder, capfd, arguments, message):
    head = "id,age,smoker,job,born\n"
    said = []
    for rows in ("".join(",".join(row) + "\n" for row in ROWS), "secret\n"):
        (folder / "people.csv").write_text(head + rows)
        (folder / "other.csv").write_text(head.replace("smoker", "smokers") + rows)
        code, out, err = called(capfd, "generate", *arguments, "--schema", "people.toml", *EPSILON)
        assert (code, out) == (2, "")
        assert message in err
        assert err.count("\n") == 1
        said.append(err)
    assert said[0] == said[1]
    assert sorted(path.name for path in folder.iterdir()) == ["other.csv", "people.csv", "people.toml"]
    assert (folder / "people.toml").read_text() == SCHEMA
