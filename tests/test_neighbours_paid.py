"""What is public beside the table, as in `test_neighbours`, of releases that are private, paid and described.

A ledger refuses a seed, so here the system's entropy is what is repeated from run to run.
"""

import json
import os
import random
import uuid
import warnings
from hashlib import shake_256
from importlib import import_module

import pytest
from calling import way_options
from test_neighbours import Shown, neighbour

from smalldb.cli import main
from smalldb.marginals.asks import Noisy
from smalldb.marginals.curator import Curator

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
WALKS = {"census": 4, "contrasts": 1, "rejection": 1}  # of each kind of table and relation
STEPS = 5  # neighbours in a walk


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
    """Run `generate` with the same entropy each time; returns what it shows and the integers it released."""
    monkeypatch.chdir(tmp_path)
    import_module("multiprocessing.process")  # draws from the system's entropy when it is first imported
    (tmp_path / "s.toml").write_text(SCHEMA)
    draw, released = Curator.draw, []

    def noted(curator, ask, coins):
        answer = draw(curator, ask, coins)
        if isinstance(ask, Noisy):
            released.append(answer)
        return answer

    def shown(text, form, arguments):
        (tmp_path / f"data.{form}").write_text(text)
        released.clear()
        calls = iter(range(10**6))

        def repeated(count):
            return shake_256(f"{arguments} {next(calls)}".encode()).digest(count)

        with monkeypatch.context() as patched, warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            patched.setattr(Curator, "draw", noted)
            patched.setattr(os, "urandom", repeated)
            patched.setattr(uuid, "uuid4", uuid.uuid1)  # would draw for the name of compiled code
            code = main(
                ["generate", f"data.{form}", "--even-if-empty", "--ledger", "l", "--budget", "3", *arguments]
            )
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
        said = Shown(code, out, err, table, record, report)
        return (
            said,
            (made["l"], [str(each.message) for each in warned]),
            [values.tolist() for values in released],
        )

    return shown


def walk(kind, relation, mechanism, number):
    """Tables, each a neighbour of the one before, their format, and the arguments of all their runs."""
    chance = random.Random(f"{kind} {relation} {mechanism} {number}")
    names, fields, options, form = TABLES[kind]
    cells = [(a, b) for a in fields[0] for b in fields[1]]
    rows = chance.choices(cells, k=chance.randint(1, 3))
    tables = [rows]
    for _ in range(STEPS):
        tables.append(neighbour(tables[-1], cells, relation, chance))
    arguments = [*options, *way_options(mechanism), "--neighbours", relation, "--queries", "marginals:2"]
    arguments += ["--epsilon", chance.choice(["1/100", "1/20", "1/3"]), "--rows", str(chance.randint(1, 2))]
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


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("kind", TABLES)
def test_neighbours_show_the_same_and_pay_the_same(run, kind, relation):
    pairs = alike = 0
    for mechanism, walks in WALKS.items():
        for number in range(walks):
            before = None
            texts, form, arguments = walk(kind, relation, mechanism, number)
            for text in texts:
                shown, known, integers = run(text, form, arguments)
                if before is not None:
                    earlier, paid, others = before
                    assert known == paid
                    assert shown.without_table() == earlier.without_table()
                    if shown.table:
                        assert names_of(shown.table) == names_of(earlier.table)
                    if (shown.table, integers) == (earlier.table, others):
                        assert shown == earlier
                        alike += shown.code == 0
                    pairs += 1
                before = shown, known, integers
    assert pairs >= 20
    assert alike >= 2
