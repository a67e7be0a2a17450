"""What is public of a run depends on the data through the release alone.

Runs of the command line on neighbouring tables, which are private, paid and described: exit code, both
streams, warnings, ledger, record and report. A ledger refuses a seed, so the system's entropy is what is
repeated from run to run. A walk is a list of tables, each a neighbour of the one before. Marginals are in
`test_replay`.
"""

import json
import os
import random
import re
import uuid
import warnings
from hashlib import shake_256
from importlib import import_module
from itertools import pairwise
from typing import NamedTuple

import pytest

from smalldb.cli import main
from smalldb.releasing import pipeline

pytestmark = pytest.mark.slow

SCHEMA = """
columns.age = { kind = "cuts", cuts = [18, 40], range = [0, 99], missing = ["NA"] }
columns.job = { kind = "categories", values = ["none", "part"], unknown = "other", coding = "bits" }
"""
TABLES = {  # what makes a field, which options tell how it is read, and where it is read from
    "spelled": (("a", "b"), (("0", "1"), ("true", "False")), ["--spelling", "true/false"], "csv"),
    "schema": (("age", "job"), (("3", "18.0", "4e1", "NA"), ("none", "x")), ["--schema", "s.toml"], "csv"),
    "lines": (("age", "job"), (("3", "55", "NA"), ("none", "part")), ["--schema", "s.toml"], "jsonl"),
    "counts": (("age", "job"), (("3", "55"), ("none", "y")), ["--schema", "s.toml", "--counts", "n"], "csv"),
}
OUTPUTS = ("out.csv", "out.jsonl", "out.json", "out.html", "l")
WALKS = {  # how many of each kind of table and relation, and of which queries
    "census": (4, ["marginals:2", "marginals:1"]),
    "census --candidates tuples": (1, ["marginals:2"]),
    "rejection": (1, ["marginals:2"]),
    "rejection --candidates multisets": (1, ["marginals:1"]),
    "census --rows 1000000000": (1, ["marginals:2"]),  # refused
}
STEPS = 5  # neighbours in a walk


class Shown(NamedTuple):
    """What a run shows; the table is on stdout or in a file."""

    code: int
    out: str
    err: str
    table: str | None
    record: dict | None
    report: str | None
    ledger: str | None
    warned: list[str]

    def without_table(self):
        """What is known before the draw: all but the table, and the error that is computed from it."""
        err = re.sub("(bound:     at most )[^ ]+( \\(vacuous\\))?", r"\1", self.err)
        record = self.record and self.record | {"bounds": None}
        return self._replace(err=err, record=record, report=None, out="", table=None)


def neighbour(rows, cells, relation, chance):
    """A table with one row exchanged, or with one row more or less."""
    rows = list(rows)
    if relation == "replace-one":
        position = chance.randrange(len(rows))
        rows[position] = chance.choice([cell for cell in cells if cell != rows[position]])
    elif rows and chance.random() < 0.5:
        del rows[chance.randrange(len(rows))]
    else:
        rows.insert(chance.randrange(len(rows) + 1), chance.choice(cells))
    return rows


def content(rows, names, form, chance):
    """A table as a file; those with counts have each row once, and one row that nobody has.

    Each of the JSON lines has its keys in an order of its own, and its numbers as numbers or as texts.
    """
    if "n" in names:
        rows = [(*row, rows.count(row)) for row in sorted({*rows})] + [("3", "none", 0)]
    if form == "jsonl":
        lines = []
        for row in rows:
            fields = [int(field) if field.isdigit() and chance.random() < 0.5 else field for field in row]
            pairs = list(zip(names, fields, strict=True))
            lines.append(json.dumps(dict(chance.sample(pairs, len(pairs)))) + "\n")
        return "".join(lines)
    return "".join(",".join(map(str, row)) + "\n" for row in (names, *rows))


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run `generate` with the same entropy each time; returns what it shows."""
    monkeypatch.chdir(tmp_path)
    import_module("multiprocessing.process")  # draws from the system's entropy when it is first imported
    (tmp_path / "s.toml").write_text(SCHEMA)

    def shown(text, form, arguments):
        (tmp_path / f"data.{form}").write_text(text)
        calls = iter(range(10**6))

        def repeated(count):
            return shake_256(f"{arguments} {next(calls)}".encode()).digest(count)

        given = ["generate", f"data.{form}", "--even-if-empty", "--ledger", "l", "--budget", "3", *arguments]
        with monkeypatch.context() as patched, warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            patched.setattr(os, "urandom", repeated)
            patched.setattr(uuid, "uuid4", uuid.uuid1)  # would draw for the name of compiled code
            code = main(given)
        made = {}
        for name in OUTPUTS:
            path = tmp_path / name
            made[name] = path.read_text() if path.exists() else None
            path.unlink(missing_ok=True)
        assert sorted(os.listdir(tmp_path)) == sorted([f"data.{form}", "s.toml"])
        (tmp_path / f"data.{form}").unlink()
        out, err = capsys.readouterr()
        record = made["out.json"] and json.loads(made["out.json"])
        table = made["out.csv"] or made["out.jsonl"] or out
        report = "CONFIDENTIAL" if "--confidential" in arguments else made["out.html"]
        return Shown(code, out, err, table, record, report, made["l"], [str(each.message) for each in warned])

    return shown


def walk(kind, relation, setting, number):
    """Tables, each a neighbour of the one before, their format, and the arguments of all their runs."""
    chance = random.Random(f"{kind} {relation} {setting} {number}")
    names, fields, options, form = TABLES[kind]
    cells = [(a, b) for a in fields[0] for b in fields[1]]
    tables = [chance.choices(cells, k=chance.randint(1, 3))]
    for _ in range(STEPS):
        tables.append(neighbour(tables[-1], cells, relation, chance))
    _, queries = WALKS[setting]
    arguments = [*options, "--mechanism", *setting.split(), "--neighbours", relation]
    arguments += ["--queries", queries[number % len(queries)]]
    arguments += ["--epsilon", chance.choice(["1/100", "1/20", "1/3"])]
    if "--rows" not in arguments:
        arguments += ["--rows", str(chance.randint(1, 2))]
    arguments += ["--record", "out.json", "--report", "out.html"]
    arguments += chance.choice([[], ["-o", "out.csv"], ["-o", "out.jsonl"]])
    arguments += chance.choice([[], ["--confidential"], ["--quiet"]])
    if relation == "add-remove":
        arguments += ["--n-max", "9"]
    names = (*names, "n") if kind == "counts" else names
    return [content(rows, names, form, chance) for rows in tables], form, arguments


def names_of(table):
    """The columns of a released table, in their order."""
    first = table.split("\n")[0]
    return list(json.loads(first)) if first.startswith("{") else first.split(",")


def compared(run, texts, form, arguments):
    """Compare the runs on neighbours; return how many pairs there were, and in how many all was the same."""
    shown, same = [run(text, form, arguments) for text in texts], 0
    for earlier, later in pairwise(shown):
        assert later.without_table() == earlier.without_table()
        if later.code == 0:
            assert names_of(later.table) == names_of(earlier.table)
            if later.table == earlier.table:
                assert later == earlier
                same += 1
    return len(shown) - 1, same


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("kind", TABLES)
def test_neighbours_show_the_same_and_pay_the_same(run, kind, relation):
    found = [
        compared(run, *walk(kind, relation, setting, number))
        for setting, (walks, _) in WALKS.items()
        for number in range(walks)
    ]
    pairs, alike = (sum(some) for some in zip(*found, strict=True))
    assert pairs == 40 and alike >= 2


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda made: made.record.update(n=made.confidential.census.n),
        lambda made: made.record.update(spread=len(made.confidential.census.levels)),
        lambda made: made.record.update(best=made.confidential.max_error),
    ],
)
def test_a_record_that_says_more_is_noticed(run, monkeypatch, spoilt):
    real = pipeline.carried_out

    def telling(*arguments, **keywords):
        made = real(*arguments, **keywords)
        spoilt(made)
        return made

    monkeypatch.setattr(pipeline, "carried_out", telling)
    with pytest.raises(AssertionError):
        for number in range(3):
            compared(run, *walk("spelled", "add-remove", "census", number))
