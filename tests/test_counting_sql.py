"""The counts of a database are those of its rows, read one by one, whatever a column holds."""

import sqlite3
import warnings
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import count, cycle

import numpy as np
import pandas as pd
import postgres
import psycopg
import pytest
import sqlglot
from calling import called
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from test_readers_formats import same

from smalldb.cli import main
from smalldb.releasing.table_source import Source, file_source
from smalldb.schema import parse_schema
from smalldb.schema.counting_sql import DIALECTS, counting_inside, counting_query
from smalldb.schema.file_format import FileFormat
from smalldb.schema.table_readers import read_table, table_pieces

SCHEMA = """
columns.x.kind = "cuts"
columns.x.cuts = [-1, 0.1, 18, 65.5]
columns.x.range = [-5, 110]
columns.x.missing = ["NA", "-9", "99", "0"]
columns.x.unknown = "missing"
columns.day.kind = "dates"
columns.day.cuts = [1990, "2000-02", "2010-03-04"]
columns.day.range = [1980, 2020]
columns.day.missing = ["NA", "1999-09-09"]
columns.day.unknown = "missing"
columns.town = { kind = "categories", values = ["Aix", "aix", "7"], unknown = "other", missing = true }
columns.flag = { kind = "bool", missing = true, unknown = "missing" }
"""
EDGES = [-9, -9.0, 99, 99.5, 0, -0.0, 0.1, 0.09999999999999999, 18, 17.999999999999996, 65.5]
EDGES += [65.50000000000001, 1e300]
NUMBERS = st.one_of(
    st.none(), st.sampled_from(EDGES), st.integers(-(2**60), 2**60), st.floats(), st.integers(-12, 120)
)
MORE_DAYS = ["0001-01-01", "9999-12-31", "1999-09-09", "2000-02-01", "2010-03-04"]
DAYS = st.one_of(
    st.none(),
    st.dates(date(1975, 1, 1), date(2025, 1, 1)),
    st.sampled_from([*map(date.fromisoformat, MORE_DAYS)]),
)
ISO = DAYS.map(lambda day: day and day.isoformat())
TOWNS = st.sampled_from(["Aix", "aix", "AIX", " Aix ", "7", "", None, "Köln"])
ODD = ["12", " 12 ", "1e1", "NA", "-9", "99.0", "x", "", "2000-02-30", "2000-02-01", "1999-12-31 23:59"]
TEXTS = st.sampled_from([*ODD, "0000-01-01"])


def rows_of(x, day):
    return st.lists(st.tuples(x, day, TOWNS, st.sampled_from([True, False, None])), min_size=1, max_size=30)


def check(path, dialect, query=None):
    """Compare the table `t` with what the query counts."""
    schema = parse_schema(SCHEMA)
    query = query or counting_query(schema, dialect, "t", "how many")
    expected = read_table(path, schema, file=FileFormat(query="t"))
    same(read_table(path, schema, counts="how many", file=FileFormat(query=query)), expected)
    same(file_source(path, schema, file=FileFormat(query="t"), inside=True).read(), expected)


def check_sqlite(folder, rows):
    """Compare rows in a database of SQLite."""
    path = str(folder / "t.db")
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE t (x, day, town TEXT COLLATE NOCASE, flag)")
        base.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
    base.close()
    check(path, "sqlite")


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(table=rows_of(st.one_of(NUMBERS, TEXTS), st.one_of(TEXTS, ISO, NUMBERS)))
def test_sqlite_of_any_types(tmp_path_factory, table):
    check_sqlite(tmp_path_factory.mktemp("base"), table)


def test_sqlite_at_the_ends(tmp_path):
    """Its abs fails at the least integer; some of its versions take any day up to 31 as it stands."""
    numbers = (-(2**63), -(2**63) + 1, 2**63 - 1, -1e15, 1e15, 5)
    days = ["2000-02-29", "2000-02-30", "2001-02-29", "2001-04-31", "2001-04-30", "2001-13-01"]
    rows = [(x, "2001-01-01", "Aix", True) for x in numbers] + [(1, day, "Aix", True) for day in days]
    check_sqlite(tmp_path, rows)


TYPES = {
    "DOUBLE": NUMBERS.map(lambda value: None if value is None else float(value)),
    "REAL": st.one_of(
        st.none(),
        st.floats(width=32, allow_subnormal=False),
        st.sampled_from([float(v) for v in EDGES if abs(v) < 1e30]),
    ),
    "BIGINT": st.one_of(st.none(), st.integers(-(2**60), 2**60), st.integers(-12, 120)),
    "DECIMAL(9, 2)": st.one_of(st.none(), st.integers(-999, 12000).map(lambda cents: Decimal(cents) / 100)),
    "DECIMAL(30, 20)": st.sampled_from([None, *map(Decimal, ("0.09999999999999999999", "0.1", "99"))]),
    "VARCHAR": st.one_of(st.none(), TEXTS),
    "BOOLEAN": st.sampled_from([True, False, None]),
}
DATED = {
    "DATE": DAYS,
    "TIMESTAMP": DAYS.map(lambda day: day and datetime(day.year, day.month, day.day) + timedelta(hours=23)),
    "VARCHAR": st.one_of(TEXTS, ISO),
}
PAIRS = [*zip(TYPES, cycle(DATED))]


def of_declared_types(x, day, examples, compare):
    """Compare tables whose columns are declared so."""
    settings(deadline=None, max_examples=examples)(given(table=rows_of(TYPES[x], DATED[day]))(compare))()


def compare_in_duckdb(tmp_path_factory, x, day, examples, query=None):
    duckdb = pytest.importorskip("duckdb")

    def compare(table):
        # no warehouse has a year 0, but DuckDB, which stands for one here, has
        assume(query is None or not any(str(row[1] or "").startswith("0000") for row in table))
        path = str(tmp_path_factory.mktemp("base") / "t.duckdb")
        with duckdb.connect(path) as base:
            for name, text in MACROS.items():
                base.execute(f"CREATE MACRO {name} AS {text}")
            base.execute(f"CREATE TABLE t (x {x}, day {day}, town VARCHAR COLLATE NOCASE, flag BOOLEAN)")
            base.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", table)
        check(path, "duckdb", query)

    of_declared_types(x, day, examples, compare)


@pytest.mark.slow
@pytest.mark.parametrize(("x", "day"), PAIRS)
def test_duckdb_of_declared_types(tmp_path_factory, x, day):
    compare_in_duckdb(tmp_path_factory, x, day, 4)


@pytest.mark.slow
@pytest.mark.skipif(postgres.binaries() is None, reason="no server of PostgreSQL")
def test_postgresql_of_declared_types(monkeypatch):
    monkeypatch.setenv("PGPASSWORD", postgres.PASSWORD)

    def compare(table):
        with psycopg.connect(f"host=127.0.0.1 port={port} user=ann dbname=postgres") as base:
            base.execute("DROP TABLE IF EXISTS t")
            kind = x.replace("DOUBLE", "DOUBLE PRECISION")
            base.execute(f"CREATE TABLE t (x {kind}, day {day}, town VARCHAR, flag BOOLEAN)")
            base.cursor().executemany("INSERT INTO t VALUES (%s, %s, %s, %s)", table)
        check(f"postgresql+psycopg://ann@127.0.0.1:{port}/postgres", "postgres")

    with postgres.server() as port:
        for x, day in PAIRS:
            of_declared_types(x, day, 3, compare)


@pytest.mark.slow
def test_the_command_writes_it_and_the_rows_are_fewer(tmp_path, capfd):
    path, text = str(tmp_path / "t.db"), tmp_path / "s.toml"
    text.write_text(SCHEMA)
    table_of_sqlite(path)
    code, query, err = called(capfd, "schema", "sql", text, "--dialect", "sqlite", "--query", "t")
    assert (code, err) == (0, "")
    with sqlite3.connect(path) as base:
        assert len(base.execute(query).fetchall()) < 20
    base.close()
    schema = parse_schema(SCHEMA)
    of_query = counting_query(schema, "sqlite", "SELECT * FROM t WHERE 1 = 1;")
    same(*[read_table(path, schema, "n", file=FileFormat(query=each)) for each in (query, of_query)])
    given = [path, "--schema", text, "--query", query, "--counts", "n", "--epsilon", 1, "--rows", 4]
    assert called(capfd, "generate", *given, "--quiet")[1].count("\n") == 5
    for wrong, said in {
        ("--dialect", "sqlte", "--query", "t"): "did you mean 'sqlite'",
        ("--dialect", "sqlite"): "name the table",
        ("--dialect", "sqlite", "--query", "t", "--counts", "x"): "column 'x' cannot hold counts",
    }.items():
        code, _, err = called(capfd, "schema", "sql", text, *wrong)
        assert code == 2 and said in err and err.count("\n") == 1


# what the documentation of both says of their functions, for DuckDB; texts of floats have 15 digits
MACROS = {
    "as_text(x)": "CASE typeof(x) WHEN 'DOUBLE' THEN printf('%.15g', TRY_CAST(x AS DOUBLE)) "
    "ELSE CAST(x AS VARCHAR) END",
    "as_json(x)": """CASE
        WHEN x IS NULL THEN 'null'
        WHEN typeof(x) = 'DOUBLE' AND isnan(TRY_CAST(x AS DOUBLE)) THEN '"NaN"'
        WHEN typeof(x) = 'DOUBLE' AND isinf(TRY_CAST(x AS DOUBLE)) THEN '"Infinity"'
        WHEN typeof(x) IN ('DOUBLE', 'BOOLEAN') THEN CAST(x AS VARCHAR)
        WHEN typeof(x) = 'BIGINT' OR typeof(x) LIKE 'DECIMAL%' THEN CASE
            WHEN TRY_CAST(x AS DECIMAL(38, 18)) = trunc(TRY_CAST(x AS DECIMAL(38, 18)))
            AND abs(TRY_CAST(x AS DECIMAL(38, 18))) <= 9007199254740992
            THEN CAST(x AS VARCHAR) ELSE concat('"', CAST(x AS VARCHAR), '"') END
        WHEN typeof(x) = 'TIMESTAMP' THEN strftime(TRY_CAST(x AS TIMESTAMP), '"%Y-%m-%dT%H:%M:%S"')
        ELSE CAST(to_json(CAST(x AS VARCHAR)) AS VARCHAR) END""",
    "type_of(x)": """CASE typeof(x) WHEN 'DOUBLE' THEN 'FLOAT[DOUBLE]' WHEN 'BIGINT' THEN 'NUMBER(38,0)[SB8]'
        WHEN 'VARCHAR' THEN 'VARCHAR(16777216)[LOB]' WHEN 'TIMESTAMP' THEN 'TIMESTAMP_NTZ(9)[SB8]'
        ELSE concat(replace(typeof(x), 'DECIMAL', 'NUMBER'), '[SB8]') END""",
    "as_double(x)": "CASE typeof(x) WHEN 'DOUBLE' THEN TRY_CAST(x AS DOUBLE) END",
    "as_date(x)": "CASE typeof(x) WHEN 'DATE' THEN TRY_CAST(x AS DATE) END",
    "as_timestamp_ntz(x)": "CASE typeof(x) WHEN 'TIMESTAMP' THEN TRY_CAST(x AS TIMESTAMP) END",
    "as_timestamp_ltz(x)": "CAST(NULL AS TIMESTAMP)",
    "as_timestamp_tz(x)": "CAST(NULL AS TIMESTAMP)",
}
WRITTEN = {"YYYY-MM-DD": "%Y-%m-%d", "YYYY-MM-DD HH24:MI:SS": "%Y-%m-%d %H:%M:%S"}


def for_duckdb(query, dialect):
    """Write a query for DuckDB, with `MACROS` where it has no function that does the same."""
    exp = sqlglot.exp

    def changed(node):
        match node:
            case exp.Anonymous(name="SYSTEM$TYPEOF"):
                return exp.func("type_of", *node.expressions)
            case exp.ToVariant():
                return node.this
            case exp.ToChar() if node.args.get("format"):
                return exp.func("strftime", node.this, exp.Literal.string(WRITTEN[node.args["format"].name]))
            case exp.ToChar():
                return exp.func("as_text", node.this)
            case exp.ToBinary():
                return exp.Anonymous(this="encode", expressions=[node.this])
            case exp.JSONFormat():
                return exp.func("as_json", node.this)
            case exp.Cast() if type(node) is exp.Cast and node.is_type("text"):
                return exp.func("as_text", node.this)
            case exp.Cast() if type(node) is exp.Cast and node.is_type("binary", "varbinary"):
                return exp.Anonymous(this="encode", expressions=[node.this])
        return node

    (parsed,) = sqlglot.parse(query, read=dialect, error_level=sqlglot.ErrorLevel.RAISE)
    return parsed.transform(changed).sql("duckdb", unsupported_level=sqlglot.ErrorLevel.RAISE)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["bigquery", "snowflake"])
@pytest.mark.parametrize(("x", "day"), [pair for pair in PAIRS if pair[0] != "REAL"])  # both have one float
def test_what_is_parsed_as_of_a_warehouse_counts_in_duckdb(tmp_path_factory, dialect, x, day):
    query = for_duckdb(counting_query(parse_schema(SCHEMA), dialect, "t", "how many"), dialect)
    compare_in_duckdb(tmp_path_factory, x, day, 3, query)


def test_names_that_a_database_cannot_tell_apart_are_refused():
    one = 'columns.{} = {{ kind = "bool" }}\n'
    both = parse_schema(one.format("x") + one.format("X"))
    for dialect in DIALECTS:
        if dialect in ("postgres", "snowflake"):
            assert counting_query(both, dialect, "t")
            continue
        with pytest.raises(ValueError, match=f"'x' and 'X' have one name in {dialect}: rename one"):
            counting_query(both, dialect, "t")
        with pytest.raises(ValueError, match="'x' and 'X' have one name"):
            counting_query(parse_schema(one.format("x")), dialect, "t", "X")
    with pytest.raises(ValueError, match=r"no column can be called .* in bigquery: rename it"):
        counting_query(parse_schema(one.format("'a\\b'")), "bigquery", "t")


def table_of_sqlite(path, name="t"):
    with sqlite3.connect(path) as base:
        base.execute(f"CREATE TABLE {name} (x, day, town, flag)")
        values = [(i / 7, f"19{80 + i % 20}-01-02", "Aix", i % 2) for i in range(700)]
        base.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?)", values)
    base.close()


@pytest.mark.parametrize(
    ("cuts", "more", "warned"),
    [(10, [], False), (250, [], True), (250, ["--n-max", "100000000", "--rows", "9"], False)],
)
def test_where_rows_may_nearly_all_differ_counting_in_the_database_is_warned_of(
    tmp_path, monkeypatch, cuts, more, warned
):
    """From the cells of the schema and a public number of rows, before anything is read."""
    path, text = str(tmp_path / "t.db"), tmp_path / "s.toml"
    columns = [
        f"columns.{x} = {{ kind = 'cuts', cuts = {[*range(1, cuts)]}, range = [0, 4000] }}" for x in "xyz"
    ]
    text.write_text('ignore = "*"\n' + "\n".join(columns))
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE t (x, y, z)")
    base.close()
    private = ["--neighbours", "add-remove", *more] if more else []
    given = ["generate", path, "--query", "t", "--schema", str(text), "--count-in-database", "--epsilon", "1"]
    given += private
    monkeypatch.setattr(Source, "read", lambda *_: pytest.fail("read"))
    with warnings.catch_warnings(record=True) as told, pytest.raises(pytest.fail.Exception):
        warnings.simplefilter("always")
        main(given)
    assert any("most of them differ" in str(each.message) for each in told) == warned


def test_a_database_counts_and_the_release_is_that_of_its_rows(tmp_path, capfd):
    path, text = str(tmp_path / "t.db"), tmp_path / "s.toml"
    text.write_text(SCHEMA)
    table_of_sqlite(path)
    given = ["--schema", text, "--query", "t", "--epsilon", 1, "--seed", 3, "--quiet", "--means", 0]
    plain = called(capfd, "generate", path, *given)
    assert plain[0] == 0 and plain[1].count("\n") == 701
    assert called(capfd, "generate", path, *given, "--count-in-database") == plain
    source = file_source(path, parse_schema(SCHEMA), file=FileFormat(query="t"), inside=True)
    pieces = table_pieces(source.table, source.schema, source.counts, file=source.file)
    assert sum(len(fields[0]) for fields, _ in pieces) < 20
    with sqlite3.connect(path) as base:
        base.execute('ALTER TABLE t RENAME TO "my table"')
    base.close()
    given[3] = "my table"
    assert called(capfd, "generate", path, *given, "--count-in-database") == plain


def test_finer_bins_are_counted_apart(tmp_path):
    path = str(tmp_path / "t.db")
    table_of_sqlite(path)
    finer = parse_schema(SCHEMA.replace("columns.x.kind", "columns.x.finer = 3\ncolumns.x.kind"))
    assert finer.columns[0].finer is not None
    found = []
    for file in ("t", counting_query(finer, "sqlite", "t", "k")):
        counts = None if file == "t" else "k"
        times = np.zeros(finer.columns[0].finer.kind.size + 1, dtype=int)
        for fields, _ in table_pieces(path, finer, counts, file=FileFormat(query=file)):
            of_piece = np.ones(len(fields[0]), dtype=int) if counts is None else fields[-1].astype(int)
            np.add.at(times, finer.columns[0].encode_finer(fields[0]), of_piece)
        found.append(times.tolist())
    assert found[0] == found[1] and sum(found[0]) == 700 and sum(map(bool, found[0])) > 6


def test_what_cannot_count_is_refused_in_a_line(tmp_path, capfd):
    path, text, csv = str(tmp_path / "t.db"), tmp_path / "s.toml", tmp_path / "t.csv"
    text.write_text(SCHEMA)
    csv.write_text("x,day,town,flag\n1,2000-01-01,Aix,1\n")
    table_of_sqlite(path)
    inside = ["--count-in-database", "--epsilon", 1]
    for table, said in {
        (csv, "--schema", text): "only sqlite, duckdb, postgres, spark, bigquery, snowflake can count",
        (path, "--schema", text): "name the table that is to be counted (--query)",
        (path, "--schema", text, "--query", "t", "--counts", "flag"): "leave out --counts",
        (path, "--query", "t"): "--count-in-database needs --schema",
        (path, "--schema", text, "--query", "u"): "has no table 'u'",
    }.items():
        code, out, err = called(capfd, "generate", *table, *inside)
        assert (code, out) == (2, "") and said in err and err.count("\n") == 1


def test_the_dialect_is_that_of_the_url():
    schema = parse_schema(SCHEMA)
    for url, dialect in {
        "postgresql+psycopg://host/base": "postgres",
        "snowflake://user@account/base": "snowflake",
        "sqlite:///t.db": "sqlite",
    }.items():
        assert counting_inside(url, schema, "t") == (counting_query(schema, dialect, "t"), "n")
        quoted = counting_query(schema, dialect, 'SELECT * FROM "of.all"."people"')
        assert counting_inside(url, schema, "of.all.people")[0] == quoted
    of_project = counting_query(schema, "bigquery", "set.people")
    assert counting_inside("bigquery://project", schema, "set.people")[0] == of_project
    other = parse_schema('columns.n = { kind = "bool" }\ncolumns.N_ = { kind = "bool" }')
    assert counting_inside("sqlite:///t.db", other, "t")[1] == "n__"
    with pytest.raises(ValueError, match=r"mysql://host/base: only sqlite, .* can count"):
        counting_inside("mysql://host/base", schema, "t")


def test_texts_cannot_leave_their_quotes():
    schema = parse_schema("""
[columns."a\\"'; DROP"]
kind = "dates"
cuts = [2000]
range = [1990, 2010]
missing = ["'); DROP TABLE t; --"]
""")
    with pytest.raises(ValueError, match="no table can be called 't`' in bigquery"):
        counting_query(schema, "bigquery", "t`")
    for dialect, way in DIALECTS.items():
        if way.never:
            continue
        query = counting_query(schema, dialect, f"t{way.mark}")
        assert (
            "DROP TABLE" not in query.replace("a\"'; DROP", "")
            and f"{way.mark}t{2 * way.mark}{way.mark}" in query
        )
    assert '"a""\'; DROP"' in counting_query(schema, "duckdb", "t")
    assert "`a\"'; DROP`" in counting_query(schema, "spark", "t")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")  # of Spark itself
def test_spark_of_declared_types(tmp_path):
    sql, pa = pytest.importorskip("pyspark.sql"), pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    schema = parse_schema(SCHEMA)
    types = {
        "DOUBLE": pa.float64(),
        "REAL": pa.float32(),
        "BIGINT": pa.int64(),
        "DECIMAL(9, 2)": pa.decimal128(9, 2),
        "DECIMAL(30, 20)": pa.decimal128(30, 20),
        "VARCHAR": pa.string(),
        "BOOLEAN": pa.bool_(),
        "DATE": pa.date32(),
        "TIMESTAMP": pa.timestamp("us"),
    }
    spark = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", False).getOrCreate()
    numbers = count()

    def compare(table):
        path = str(tmp_path / f"t{next(numbers)}.parquet")
        names = dict(zip(("x", "day", "town", "flag"), zip(*table, strict=True), strict=True))
        kinds = zip(names, (x, day, "VARCHAR", "BOOLEAN"), strict=True)
        columns = [(name, types[kind]) for name, kind in kinds]
        parquet.write_table(pa.table(names, schema=pa.schema(columns)), path)
        spark.read.parquet(path).createOrReplaceTempView("t")
        counted = spark.sql(counting_query(schema, "spark", "t", "how many")).toPandas()
        same(schema.encode(counted, counts="how many"), read_table(path, schema))

    try:
        for x, day in PAIRS:
            of_declared_types(x, day, 4, compare)
    finally:
        spark.stop()


def test_floats_of_four_bytes_are_read_by_their_shortest_text(tmp_path):
    """.7 of four bytes is .699999988: below a cut at .7, if it is taken for a float of eight."""
    duckdb = pytest.importorskip("duckdb")
    schema = parse_schema("columns.x = { kind = 'cuts', cuts = [0.7, 1.1], decimals = 1, range = [0, 2] }")
    path, frame = str(tmp_path / "x.duckdb"), pd.DataFrame({"x": np.array([0.7, 0.6, 1.1, 0.1], "float32")})
    frame.to_parquet(tmp_path / "x.parquet")
    with duckdb.connect(path) as base:
        base.execute("CREATE TABLE t AS SELECT * FROM frame")
    read = [
        schema.encode(frame),
        read_table(str(tmp_path / "x.parquet"), schema),
        read_table(path, schema, file=FileFormat(query="t")),
        file_source(path, schema, file=FileFormat(query="t"), inside=True).read(),
    ]
    for rows in read:
        assert (rows.codes().ravel().tolist(), rows.counts.tolist()) == ([0, 1, 2], [2, 1, 1])
