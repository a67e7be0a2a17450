"""Databases: SQLite, DuckDB and any other by a URL have the rows of files, and no password is told."""

import os
import sqlite3
from contextlib import closing
from functools import partial
from urllib.parse import quote_plus

import postgres
import psycopg
import pytest
from calling import called
from test_readers_formats import SCHEMA, rows, same

import smalldb
from queries import DataError
from smalldb.files.inputs import shown
from smalldb.schema import parse_schema
from smalldb.schema.file_format import FileFormat
from smalldb.schema.readers.registry import reader_of
from smalldb.schema.table_readers import read_columns, read_table

COLUMNS = "age INTEGER, pay REAL, town VARCHAR(40), smoker BOOLEAN"
SELECT = "SELECT smoker, town, age, pay, 'x' AS more FROM people"


def typed(table):
    """Rows with the types of a database."""
    return [
        (int(age), float(pay) if pay else None, town or None, smoker == "true")
        for age, pay, town, smoker in table
    ]


@pytest.fixture(scope="module")
def expected():
    import pandas as pd

    return parse_schema(SCHEMA).encode(
        pd.DataFrame(rows(), columns=["age", "pay", "town", "smoker"], dtype=object)
    )


def sqlite_of(path, table=None):
    with sqlite3.connect(path) as base:
        base.execute(f"CREATE TABLE people ({COLUMNS})")
        base.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", typed(table or rows()))
    base.close()
    return str(path)


def duckdb_of(path, table=None):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(path)) as base:
        base.execute(f"CREATE TABLE people ({COLUMNS.replace('REAL', 'DOUBLE')})")
        base.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", typed(table or rows()))
    return str(path)


def url_of(path, table=None):
    return f"sqlite:///{sqlite_of(path, table)}"


MAKERS = {"t.sqlite": sqlite_of, "t.db": sqlite_of, "t.duckdb": duckdb_of, "url.sqlite": url_of}


@pytest.fixture(params=MAKERS, scope="module")
def base(request, tmp_path_factory):
    return MAKERS[request.param](tmp_path_factory.mktemp("base") / request.param)


@pytest.mark.slow
@pytest.mark.parametrize("query", [None, "people", SELECT, f"{SELECT};", f"{SELECT} -- all"])
def test_a_table_or_a_query_has_the_rows_of_the_file(base, expected, query):
    schema = parse_schema(f"ignore = ['more']\n{SCHEMA}")
    same(read_table(base, schema, file=FileFormat(query=query)), expected)
    stated = smalldb.schema.drafting.toml(query or "people")
    same(read_table(base, parse_schema(f"ignore = ['more']\nfile.query = {stated}\n{SCHEMA}")), expected)
    named = read_columns(base, file=FileFormat(query=query))
    assert (
        [*named] == ["smoker", "town", "age", "pay", "more"]
        if " " in (query or "")
        else [*named] == [*parse_schema(SCHEMA).names]
    )


def test_a_draft_has_the_types_of_a_table_and_no_sheet(base, capfd):
    code, out, _ = called(capfd, "schema", "init", base)
    assert code == 0
    assert '[columns.age]\nkind = "cuts"' in out and '[columns.smoker]\nkind = "bool"' in out
    assert '[columns.town]\nkind = "categories"' in out and "Köln" not in out
    code, out, _ = called(capfd, "schema", "init", base, "--query", "SELECT town FROM people")
    assert code == 0 and out.count("[columns.") == 1
    assert 'file = { query = "SELECT town FROM people" }' in out
    code, out, err = called(capfd, "generate", base, "--epsilon", 1, "--sheet", "people")
    assert (code, out) == (2, "") and "a sheet is of a workbook, and this is none: leave out --sheet" in err


@pytest.mark.slow
def test_commands_read_a_database(tmp_path, base, capfd):
    schema = tmp_path / "s.toml"
    schema.write_text(f"ignore = ['more']\n{SCHEMA}")
    given = [base, "--schema", schema, "--query", SELECT]
    code, out, err = called(capfd, "generate", *given, "--epsilon", 1, "--rows", 7, "--quiet")
    assert (code, out.count("\n"), err) == (0, 8, "")
    assert out.startswith("smoker,town,age,pay\n")
    code, out, _ = called(capfd, "schema", "check", *given)
    assert code == 0 and "400 rows" in out and "the table fits" in out
    synthetic = tmp_path / "out.csv"
    assert called(capfd, "generate", *given, "--epsilon", 1, "--quiet", "-o", synthetic)[0] == 0
    assert called(capfd, "evaluate", base, synthetic, *given[1:])[0] == 0


FAULTS = [
    ("SELECT age, pay AS age FROM people", "the query returns two columns 'age': rename one"),
    ("peple", "has no table 'peple'; did you mean 'people'?"),
    ("SELECT ag FROM people", "cannot run the query"),
    ("DELETE FROM people WHERE 1", ""),
    ("SELECT age FROM people", "the table has no column 'pay'"),
    (f"{SELECT}; DROP TABLE people", ""),
]


@pytest.mark.parametrize(("query", "said"), FAULTS)
def test_a_query_that_does_not_fit_is_told_in_a_line(base, expected, query, said):
    schema = parse_schema(f"ignore = ['more']\n{SCHEMA}")
    with pytest.raises(ValueError) as caught:
        read_table(base, schema, file=FileFormat(query=query))
    assert said in str(caught.value) and "\n" not in str(caught.value)
    same(read_table(base, schema), expected)  # nothing was written


def test_a_database_of_several_tables_asks_which(tmp_path, expected):
    for path in (sqlite_of(tmp_path / "t.db"), f"sqlite:///{sqlite_of(tmp_path / 'u.db')}"):
        with sqlite3.connect(path.removeprefix("sqlite:///")) as base:
            base.execute("CREATE TABLE towns (town TEXT)")
            base.execute('CREATE VIEW "older people" AS SELECT * FROM people WHERE age > 65')
        base.close()
        with pytest.raises(ValueError, match=r"has 3 tables.*'towns'.*: say which \(--query, or file.query"):
            read_table(path, parse_schema(SCHEMA))
        same(read_table(path, parse_schema(f"file.query = 'people'\n{SCHEMA}")), expected)
        older = read_table(path, parse_schema(SCHEMA), file=FileFormat(query='SELECT * FROM "older people"'))
        assert 0 < older.n < 400


@pytest.mark.parametrize("suffix", [".db", ".duckdb"])
@pytest.mark.parametrize("name", ["older people", 'we"ird', "a;b", "it's; all", "select all from people"])
def test_a_table_is_named_whatever_its_name(tmp_path, suffix, name):
    path, schema = str(tmp_path / f"t{suffix}"), parse_schema("columns.a = { kind = 'bool' }")
    connect = sqlite3.connect if suffix == ".db" else pytest.importorskip("duckdb").connect
    with closing(connect(path)) as base:
        quoted = '"' + name.replace('"', '""') + '"'
        base.execute(f"CREATE TABLE {quoted} (a INTEGER)")
        base.execute(f"INSERT INTO {quoted} VALUES (0), (1), (1)")
        base.execute("CREATE TABLE other (a INTEGER)")
        base.commit()
    file = FileFormat(query=name)
    assert read_table(path, schema, file=file).histogram().tolist() == [1, 2]
    assert [*read_columns(path, file=file)] == ["a"]


def test_a_view_of_duckdb_reads_files_of_its_folder_and_of_no_other(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    home, elsewhere = tmp_path / "it's here", tmp_path / "elsewhere"
    for folder in (home, elsewhere):
        folder.mkdir()
        (folder / "t.csv").write_text("a\n1\n")
    path = str(home / "views.duckdb")
    with duckdb.connect(path) as base:
        for name, folder in (("own", home), ("other", elsewhere), ("up", home / ".." / "elsewhere")):
            base.execute(
                f"""CREATE VIEW {name} AS SELECT * FROM '{str(folder / "t.csv").replace("'", "''")}'"""
            )
    for name in ("other", "up"):
        with pytest.raises(ValueError, match="cannot run the query: Permission Error"):
            read_columns(path, FileFormat(query=name))
    assert [*read_columns(path, FileFormat(query="own"))] == ["a"]
    with duckdb.connect(path, read_only=True) as base:  # whose settings stay as they are
        assert [*read_columns(path, FileFormat(query="other"))] == ["a"]
        assert base.execute("FROM other").fetchall() == [(1,)]


def test_what_is_no_database_is_refused(tmp_path, capfd):
    for name in ("t.sqlite", "t.duckdb", "t.db"):
        (tmp_path / name).write_bytes(b"age,pay\n" * 500)
        with pytest.raises(ValueError, match=r"is not a database of|DuckDB"):
            read_table(str(tmp_path / name), parse_schema(SCHEMA))
        with pytest.raises(OSError):
            read_table(str(tmp_path / f"no{name}"), parse_schema(SCHEMA))
    path = tmp_path / "none.sqlite"
    code, _, err = called(capfd, "schema", "init", f"sqlite:///{path}", "--query", "people")
    assert code == 2 and "no such file" in err and not path.exists()


@pytest.mark.slow
def test_a_database_that_another_locks_may_be_read_later(tmp_path, monkeypatch, capfd):
    """SQLite waits for five seconds by itself."""
    path = tmp_path / "people.sqlite"
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, timeout=0.01))
    with closing(sqlite3.connect(path, isolation_level=None)) as held:
        held.execute("CREATE TABLE t (a INTEGER)")
        held.execute("BEGIN EXCLUSIVE")
        code, _, said = called(capfd, "schema", "init", path, "--query", "t")
    assert code == 3 and said.endswith("people.sqlite is locked by another process: try again later\n")


@pytest.mark.parametrize(("row", "count"), [(1, 1), (69_000, 70_000)])
def test_a_query_that_fails_on_a_row_tells_nothing_of_it(tmp_path, row, count):
    """An error of the database may quote the value that it is about; on the first row, too, it is of data."""
    path = sqlite_of(tmp_path / "t.db", [("90001", "1", "Köln", "true")] * count)
    query = f"SELECT abs(iif(rowid = {row}, -9223372036854775808, age)) AS age, pay, town, smoker FROM people"
    for address in (path, f"sqlite:///{path}"):
        with pytest.raises(DataError, match=r"its query is: it cannot|(run|stopped) the query") as caught:
            read_table(address, parse_schema(SCHEMA), file=FileFormat(query=query))
        assert caught.value.__context__ is None and "9" not in str(caught.value).removeprefix(shown(address))


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql+psycopg://ann:secret@host:5432/people", "postgresql+psycopg://host:5432/people"),
        ("mysql://ann@host/people?password=secret", "mysql://host/people"),
        ("sqlite:////tmp/people.db", "sqlite:////tmp/people.db"),
        ("postgresql://ann:se?cret@host/people", "postgresql://***"),
        ("postgresql://ann:se#cret@host/people", "postgresql://***"),
        ("postgresql://ann:se/cret@host/people", "postgresql://***"),
        ("postgresql://ann:se@secret@host/people", "postgresql://***"),
        ("postgresql://ann:secret", "postgresql://***"),
        ("postgresql://host/people?password=sec@ret", "postgresql://***"),
    ],
)
def test_no_password_is_told(url, told, tmp_path, capfd):
    assert shown(url) == told and "secret" not in shown(url)
    assert reader_of(url).name == "sql"
    schema = tmp_path / "s.toml"
    schema.write_text(SCHEMA)
    for command in (["generate", url, "--epsilon", "1"], ["schema", "check", url], ["evaluate", url, url]):
        code, out, err = called(capfd, *command, "--schema", schema)
        if "sqlite" not in url:
            assert code in (2, 3) and out == "" and err.count("\n") == 1
            assert "secret" not in err and "cret" not in err and "sec@ret" not in err
    assert called(capfd, "generate", url, "--epsilon", "1")[0] == 2
    for given in (["plan", url], [url], ["generate", "t.csv", url], ["plan", f"--data={url}"]):
        code, out, err = called(capfd, *given)  # where no URL is expected
        assert code == 2 and out == "" and "secret" not in err and "cret" not in err and "sec@ret" not in err


@pytest.mark.parametrize("url", ["postgresql://ann:p@h/d", "mysql://h/d?password=x", "people.csv"])
def test_a_schema_states_no_password(url, capfd):
    with pytest.raises(ValueError, match="file: url") as caught:
        parse_schema(f"file.url = '{url}'\n{SCHEMA}")
    assert url not in str(caught.value)


def test_a_schema_may_say_where_its_table_is(tmp_path, capfd):
    path, schema = sqlite_of(tmp_path / "t.db"), tmp_path / "s.toml"
    schema.write_text(f"file = {{ url = 'sqlite:///{path}', query = 'people' }}\n{SCHEMA}")
    code, out, _ = called(
        capfd, "generate", "--schema", schema, "--epsilon", 1, "--rows", 3, "--quiet", "--even-if-empty"
    )
    assert code == 0 and out.count("\n") == 4
    assert "the table fits" in called(capfd, "schema", "check", "--schema", schema)[1]
    schema.write_text(SCHEMA)
    for command in (["generate", "--epsilon", "1"], ["schema", "check"]):
        code, _, err = called(capfd, *command, "--schema", schema)
        assert code == 2 and "name the table: DATA, or file.url" in err


@pytest.mark.slow
@pytest.mark.skipif(postgres.binaries() is None, reason="no server of PostgreSQL")
def test_postgresql(tmp_path, expected, monkeypatch, capfd):
    """The password has every sign that a URL does not like."""
    schema = parse_schema(f"ignore = ['more']\n{SCHEMA}")
    with postgres.server() as port:
        host = f"127.0.0.1:{port}/postgres"
        url = f"postgresql+psycopg://ann:{quote_plus(postgres.PASSWORD)}@{host}"
        address = f"host=127.0.0.1 port={port} user=ann dbname=postgres"
        with psycopg.connect(address, password=postgres.PASSWORD) as base:
            base.execute("CREATE SCHEMA other")
            for name in ("people", 'other."Peo ple"'):
                base.execute(f"CREATE TABLE {name} ({COLUMNS.replace('REAL', 'NUMERIC(5, 1)')})")
                base.cursor().executemany(f"INSERT INTO {name} VALUES (%s, %s, %s, %s)", typed(rows()))
            base.execute("CREATE VIEW other.half AS SELECT * FROM people WHERE age % 2 = 0")
        for query in (
            None,
            "people",
            SELECT,
            'SELECT * FROM other."Peo ple"',
            f"{SELECT} WHERE age::int >= 0 AND smoker::text LIKE '%e'",
        ):
            same(read_table(url, schema, file=FileFormat(query=query)), expected)
        assert 0 < read_table(url, schema, file=FileFormat(query="other.half")).n < 400
        dtypes = {"age": "int64", "pay": "float64", "town": "string", "smoker": "bool"}
        assert read_columns(url) == dtypes
        for query, said in FAULTS:
            with pytest.raises(ValueError) as caught:
                read_table(url, schema, file=FileFormat(query=query))
            assert said in str(caught.value) and "\n" not in str(caught.value)
        for part in ("1 / (age - 50)", "town::int"):
            query = f"SELECT {part} AS age, pay, town, smoker FROM people"
            with pytest.raises(ValueError, match=r"cannot run the query|stopped the query") as caught:
                read_table(url, schema, file=FileFormat(query=query))
            assert caught.value.__context__ is None
        wrong = url.replace("ann:", "bob:")
        with pytest.raises(ValueError, match=r"no connection to the database.*bob") as caught:
            read_table(wrong, schema)
        assert postgres.PASSWORD not in str(caught.value)
        text = tmp_path / "s.toml"
        text.write_text(f"file.url = 'postgresql+psycopg://ann@{host}'\n{SCHEMA}")
        monkeypatch.setenv("PGPASSWORD", postgres.PASSWORD)
        outputs = [tmp_path / name for name in ("out.csv", "record.json", "page.html", "ledger")]
        given = [
            "--epsilon", 1, "--rows", 9, "-o", outputs[0], "--record", outputs[1], "--report", outputs[2],
        ]  # fmt: skip
        given += ["--ledger", outputs[3], "--budget", 3]
        for start in ([], [url]):
            code, out, err = called(capfd, "generate", *start, "--schema", text, *given)
            assert (code, out) == (0, "")
            told = [err, *(path.read_text() for path in outputs)]
            assert not any(
                postgres.PASSWORD in each or quote_plus(postgres.PASSWORD) in each for each in told
            )
        same(read_table(url, schema, file=FileFormat(query="people")), expected)
    with pytest.raises(ValueError, match="no connection to the database"):
        read_table(url, schema)
    assert os.environ["PGPASSWORD"] == postgres.PASSWORD
