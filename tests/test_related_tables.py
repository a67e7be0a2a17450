"""The commands on two related tables."""

import gzip
import json
import sys
from fractions import Fraction

import pandas as pd
import pytest
from test_related_release import SCHEMA, made_tables

import smalldb
from queries import DataError
from smalldb.cli import main
from smalldb.files import LibraryMissing
from smalldb.releasing.budget_ledger import Ledger
from smalldb.releasing.transaction import begun_beside

TWO = "homes=homes.csv persons=persons.csv"
BOTH = TWO.split()
GENERATE = ["generate", *BOTH, "--schema", "s.toml", "--epsilon", "1", "-o", "out"]
PAID = [*GENERATE, "--ledger", "led", "--budget", "2"]
CHECK = ["schema", "check", *BOTH, "--schema", "s.toml"]


@pytest.fixture
def files(workdir):
    """Work in a folder with two files and a schema."""
    for name, table in made_tables(200).items():
        table.to_csv(f"{name}.csv", index=False)
    (workdir / "s.toml").write_text(SCHEMA)
    return workdir


def test_two_files_become_two_files_a_record_and_a_page(files, tmp_path, capsys):
    assert main([*GENERATE, "--seed", "1"]) == 0
    told = capsys.readouterr().err
    assert "1-differential privacy of each row of homes with all its rows of persons" in told
    assert "NOT PRIVATE" in told
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        *("homes.csv", "persons.csv", "record.json", "report.html")
    }
    homes, persons = (pd.read_csv(f"out/{name}.csv") for name in ("homes", "persons"))
    record = json.loads((tmp_path / "out" / "record.json").read_text())
    assert len(homes) == record["tables"]["homes"]["rows"] == 200
    assert persons.hid.isin(homes.hid).all()
    evaluate = ["evaluate", *BOTH, "out", "--schema", "s.toml"]
    assert main(evaluate) == 0
    assert "CONFIDENTIAL" in (shown := capsys.readouterr().out) and "joined" in shown
    assert main([*evaluate, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"]["homes"] == [200, 200] and 0 < found["number_similarity"] <= 1
    chosen = ["--record", "r.json", "--measurements", "m.json", "--report", "r.html", "-o", "more"]
    assert main([*GENERATE, "--seed", "1", *chosen]) == 0
    capsys.readouterr()
    for name, same in (
        *(("r.json", "record.json"), ("m.json", "record.json"), ("r.html", "report.html")),
        ("more/homes.csv", "homes.csv"),
    ):
        assert (tmp_path / name).read_bytes() == (tmp_path / "out" / same).read_bytes()
    assert main(GENERATE) == 2
    assert "not empty" in capsys.readouterr().err


def test_copies_are_written_beside_the_tables(files, tmp_path, capsys):
    given = [*GENERATE, "--epsilon", "5", "--seed", "1", "--strategy", "cells"]
    assert main([*given, "--tables", "3"]) == 0
    assert "fitted anew for each" in capsys.readouterr().err
    assert main([*given, "-o", "alone"]) == 0
    out = tmp_path / "out"
    copies = [f"{name}-0{k}.csv" for name in ("homes", "persons") for k in (1, 2, 3)]
    own = ["homes.csv", "persons.csv", "record.json", "report.html"]
    assert sorted(path.name for path in out.iterdir()) == sorted([*own, *copies, "tables.json"])
    assert all((out / name).read_bytes() == (tmp_path / "alone" / name).read_bytes() for name in own)
    record = json.loads((out / "record.json").read_text())
    how = json.loads((out / "tables.json").read_text())
    assert (how["tables"], how["rows"]) == (3, 200)
    sizes = set()
    for k in (1, 2, 3):
        homes, persons = (pd.read_csv(out / f"{name}-0{k}.csv") for name in ("homes", "persons"))
        assert [*homes.columns] == [*pd.read_csv("homes.csv").columns] and len(homes) == 200
        assert sorted(homes.hid) == [*range(1, 201)] and persons.hid.isin(homes.hid).all()
        assert not ((persons.role == "spouse") & (persons.age < 15)).any()
        assert persons.groupby("hid").size().max() <= record["tables"]["persons"]["most"]
        assert (homes.town == "A").mean() == pytest.approx(
            (pd.read_csv("homes.csv").town == "A").mean(), abs=0.1
        )
        sizes.add(len(persons))
    assert len(sizes) > 1
    assert main([*given, "--tables", "3", "--table-rows", "9", "-o", "more"]) == 2
    assert "do not take --table-rows yet" in capsys.readouterr().err
    made = smalldb.release(made_tables(200), schema=SCHEMA, epsilon=5, seed=1, strategy="cells")
    first, again = made.tables(2, rng=3), made.tables(2, rng=3)
    assert all(a[name].equals(b[name]) for a, b in zip(first, again, strict=True) for name in a)
    assert not first[0]["homes"].equals(first[1]["homes"])
    with pytest.raises(ValueError, match="drawn whole"):
        made.tables(2, rows=5)


def test_targets_and_named_tables_are_measured_first():
    tables = made_tables(300)
    made = smalldb.release(
        tables, schema=SCHEMA, epsilon=9, seed=1, target="role", measure_first=["rent x town", "town x age"]
    )
    assert made.record["target"] == "persons.role"
    assert ["homes.rent", "homes.town"] in made.record["measure_first"]
    told = made.record["tables"]
    measured = {
        name: [part["columns"] for one in table["measurements"] for part in one["tables"]]
        for name, table in told.items()
    }
    assert ["homes.rent", "homes.town"] in measured["homes"]
    assert ["homes.town", "persons.age"] in measured["persons"]
    others = {
        (*columns,) for columns in measured["persons"] if "persons.role" in columns and len(columns) == 2
    }
    assert {first for first, _ in others} >= {"homes.rent", "homes.town", "number of persons"}
    with pytest.raises(ValueError, match="no column 'rol'"):
        smalldb.plan(schema=SCHEMA, n=300, epsilon=1, target="rol")
    with pytest.raises(ValueError, match="do not take refine yet"):
        smalldb.plan(schema=SCHEMA, n=300, epsilon=1, refine=made.record)


def test_a_named_release_is_paid_once(files, capsys):
    given = [*PAID, "--release-id", "first"]
    assert main(given) == main(given) == 0
    assert "release first stands already: nothing is paid" in capsys.readouterr().err
    assert Ledger("led").read().spent == 1


@pytest.mark.parametrize("where", ["marginals.families.with_children", "releasing.pipeline.with_tables"])
@pytest.mark.parametrize("error", [MemoryError, ImportError("no such library", name="late")])
def test_what_fails_behind_the_payment_goes_on_from_there(files, monkeypatch, capsys, where, error):
    def failing(*_, **__):
        raise error

    with monkeypatch.context() as patched:
        patched.setattr("smalldb.releasing.pipeline.rehearse_draw", lambda *_: None)
        patched.setattr(f"smalldb.{where}", failing)
        assert main(PAID) == 3
    assert "the ledger is paid: the same command goes on" in capsys.readouterr().err
    assert Ledger("led").read().spent == 1 and len(begun_beside("led")) == 1
    assert main(PAID) == 0
    assert Ledger("led").read().spent == 1 and begun_beside("led") == []


@pytest.mark.parametrize(
    ("where", "instead", "said"),
    [
        ("marginals.families.with_children", None, ""),
        ("releasing.memory.memory_limit", lambda: 1 << 16, "rows of 5 columns need about"),
    ],
)
def test_what_would_fail_behind_the_payment_is_noticed_before_it(
    files, monkeypatch, capsys, where, instead, said
):
    monkeypatch.setattr(f"smalldb.{where}", instead)
    assert main(PAID) != 0 and said in capsys.readouterr().err
    assert Ledger("led").read().spent == 0 and begun_beside("led") == []


def test_check_counts_what_would_be_refused(files, capsys):
    assert main(CHECK) == 0
    assert "the tables fit" in capsys.readouterr().out
    persons = pd.read_csv("persons.csv")
    persons.loc[:2, "hid"] = 10**6
    pd.concat([persons, persons.iloc[5:6]]).to_csv("persons.csv", index=False)
    assert main(CHECK) == 1
    told, error = capsys.readouterr()
    assert "without a parent: 3 (refused" in told and "1 stand twice, 0 are gaps" in told
    assert "the tables do not fit" in error and "the tables fit" not in told
    assert main([*CHECK, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["tables"]["persons"]["orphans"] == 3 and not found["fits"]


def test_keys_that_may_stand_for_several_parents_are_refused_and_nothing_is_paid(tmp_path):
    tables, ledger = made_tables(40), Ledger(tmp_path / "led", budget=9)
    twice = tables | {"homes": pd.concat([tables["homes"], tables["homes"].iloc[:1]])}
    large = {name: table.assign(hid=table.hid * 2.0**53) for name, table in tables.items()}
    for given in (twice, large):
        with pytest.raises(DataError, match="'hid'"):
            smalldb.release(given, schema=SCHEMA, epsilon=4, ledger=ledger)
    assert ledger.read().spent == 0


def test_where_nothing_is_expected_nothing_is_paid(files, capsys):
    given = [*PAID, "--epsilon", "0.02"]
    for more, said in (
        ([], "more than 100 points"),
        (["--neighbours", "add-remove", "--n-max", "200"], "points"),
    ):
        assert main([*given, *more]) == 2
        error = capsys.readouterr().err
        assert "nothing useful is expected" in error and said in error and "--even-if-empty" in error
        assert Ledger("led").read().spent == 0
    assert main([*given, "--even-if-empty"]) == 0
    assert Ledger("led").read().spent == Fraction(1, 50)
    with pytest.warns(smalldb.EmptyReleaseWarning, match="nothing useful is expected"):
        smalldb.release(made_tables(200), schema=SCHEMA, epsilon="0.02")


def test_what_a_file_lacks_is_told_as_of_one_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    schema = 'person = "id"\nfixed = ["a"]\ncolumns.a.kind = "bool"\ncolumns.b.kind = "bool"\n'
    (tmp_path / "t.parquet").write_bytes(b"")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"id,a,b\n1,0,1\n")[:-9])
    with pytest.raises(LibraryMissing, match="pyarrow"):
        smalldb.release("t.parquet", schema=schema, epsilon=1)
    with pytest.raises(DataError, match="for the curator only"):
        smalldb.release("t.csv.gz", schema=schema, epsilon=1)


def test_a_schema_of_related_tables_is_shown(files, tmp_path, capsys):
    assert main(["schema", "show", "s.toml"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "unit: a row of homes with all its rows of persons is protected"
    assert {"table homes", "table persons", "link: hid of persons is hid of homes"} <= {*told}
    assert any(line.split() == ["town", "A,", "B,", "C"] for line in told)
    assert told[-1] == "number of persons: 0 to 3, 4 or more"
    (tmp_path / "long.toml").write_text(
        'person = "id"\nfixed = ["a"]\nmost = 2\ncolumns.a.kind = "bool"\ncolumns.b.kind = "bool"\n'
    )
    assert main(["schema", "show", str(tmp_path / "long.toml")]) == 0
    assert capsys.readouterr().out.endswith("number of rows: 1, 2 or more\n")


def test_a_draft_is_made_of_names_alone(files, capsys):
    assert main(["schema", "init", *BOTH]) == 0
    assert 'unit = "homes"' in (text := capsys.readouterr().out) and "[tables.persons.columns.age]" in text
    assert main(["schema", "init", *BOTH, "third=homes.csv"]) == 2
    assert "two for now" in capsys.readouterr().err


@pytest.mark.parametrize(
    "given, said",
    [
        ("homes=homes.csv -o out --schema s.toml", "no table for 'persons'"),
        ("homes.csv persons=persons.csv -o out --schema s.toml", "are named: write NAME=FILE"),
        ("homes=homes.csv homes=homes.csv -o out --schema s.toml", "named twice"),
        (
            "homes=homes.csv persons=persons.csv -o out --schema s.toml --refine r.json",
            "do not take refine yet",
        ),
        (
            "homes=homes.csv persons=persons.csv -o out --schema s.toml --columns a",
            "do not take --columns yet",
        ),
        (f"{TWO} --schema s.toml", "need -o DIR"),
        (f"{TWO} -o out", "need a --schema with unit"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(files, given, said, capsys):
    assert main(["generate", *given.split(), "--epsilon", "1"]) == 2
    told = capsys.readouterr().err
    assert said in told and told.count("\n") == 1


def test_a_long_file_becomes_one_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [(i // 3, "fm"[i // 3 % 2], i % 100) for i in range(300)]
    pd.DataFrame(rows, columns=["player", "sex", "hits"]).to_csv("seasons.csv", index=False)
    (tmp_path / "s.toml").write_text(
        'person = "player"\nfixed = ["sex"]\ncolumns.sex = { kind = "categories", values = ["f", "m"] }\n'
        'columns.hits = { kind = "cuts", cuts = [50], range = [0, 100] }\n'
    )
    assert main(["generate", "seasons.csv", "--schema", "s.toml", "--epsilon", "2", "-o", "out"]) == 0
    assert "2-differential privacy of each player with all its rows" in capsys.readouterr().err
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {"seasons.csv", "record.json", "report.html"}
    assert main(["evaluate", "seasons.csv", "out", "--schema", "s.toml"]) == 0
    assert "joined" in capsys.readouterr().out
    assert main(["schema", "check", "seasons.csv", "--schema", "s.toml"]) == 0
    shown = capsys.readouterr().out
    assert "player: 100 rows" in shown and "rows: 300 rows" in shown and "the tables fit" in shown
    bad = pd.read_csv("seasons.csv", dtype={"player": "Int64"})
    bad.loc[0, "player"], bad.loc[4, "sex"] = None, "f"
    bad.to_csv("bad.csv", index=False)
    assert main(["schema", "check", "bad.csv", "--schema", "s.toml"]) == 1
    shown, error = capsys.readouterr()
    assert "without a player: 1 (refused)" in shown and "'sex' is fixed, and differs" in shown
    assert "the tables do not fit" in error
    two = ["generate", "seasons.csv", "s=s.csv", "--schema", "s.toml", "--epsilon", "2", "-o", "o"]
    assert main(two) == 2
    assert "is for one table" in capsys.readouterr().err
    assert main(["plan", "--schema", "s.toml", "--n", "9", "--epsilon", "1"]) == 0
    told = capsys.readouterr().out
    assert "1-differential privacy of each player with all its rows" in told
    assert (
        "nothing useful is expected" in told and "none: related tables are released without a delta" in told
    )
