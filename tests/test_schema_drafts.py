"""Drafts of schemas from names, classes and public files, and the curator's check; neither shows a value."""

import io
import json
import re
import tomllib
from dataclasses import make_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Literal, Optional

import pandas as pd
import pytest
from calling import called

from queries import DataError, Domain, Rows
from queries.rule_tables import broken
from smalldb.commands.schema import ask_schema
from smalldb.schema import as_schema, parse_schema, read_schema
from smalldb.schema.checking import check_table
from smalldb.schema.codebook import Described, read_codebook
from smalldb.schema.drafting import HEAD, draft, draft_schema, schema_text
from smalldb.schema.kinds import SPECS
from smalldb.schema.parsing import toml_of
from smalldb.schema.reading import read_any
from smalldb.schema.table_readers import table_pieces, written

SCHEMA = """
ignore = "*"
valid = "~(smoker & `age<18`)"
columns.age = { kind = "cuts", cuts = [18], range = [0, 99], missing = true }
columns.job = { kind = "categories", values = ["none", "full"] }
columns.smoker = { kind = "bool" }
"""


BOOKS = {
    "sex.csv": ("Variable,Code,Label\nsex,1,male\nsex,2,female\n", "[1, 2]"),
    "list.json": ('{"sex": ["f", "m"]}', '["f", "m"]'),
    "labels.json": ('{"sex": {"f": "female", "m": "male"}}', '["f", "m"]'),
    "empty labels.csv": ("column,value,label\nsex,no answer,\nsex,m,\n", '["no answer", "m"]'),
    "other.csv": ("a,b\n1,2\n", None),
    "nothing.csv": ("", None),
    "open.csv": ('column,value\n"', None),
    "open.json": ("{", None),
    "array.json": ("[1]", None),
    "number.json": ('{"a": 1}', None),
}


@pytest.mark.parametrize("name", BOOKS)
def test_a_code_book_makes_categories(tmp_path, name):
    (text, values), path = BOOKS[name], tmp_path / name
    path.write_text(text)
    if values is None:
        with pytest.raises(ValueError, match="is not a code book: ") as caught:
            read_codebook(str(path))
        assert "\n" not in str(caught.value)
        return
    made = draft_schema(["sex", "age"], read_codebook(str(path))).removeprefix(HEAD)
    assert made == f'\n[columns.sex]\nkind = "categories"\nvalues = {values}\n\n[columns.age]\nkind = ""\n'


FIELDS = [
    {"name": "id", "type": "integer"},
    {"name": "age", "type": "integer", "title": "Years", "constraints": {"minimum": 0, "maximum": 110}},
    {"name": "children", "type": "integer", "constraints": {"minimum": 0, "maximum": 9}},
    {"name": "job", "type": "string", "constraints": {"enum": ["none", "full"]}},
    {"name": "rank", "type": "integer", "categories": [{"value": 1, "label": "low"}, {"value": 2}]},
    {"name": "joined", "type": "date", "constraints": {"minimum": "1990-01-01", "maximum": "2020-12-31"}},
    {
        "name": "born",
        "type": "date",
        "format": "%d/%m/%Y",
        "constraints": {"minimum": "1950", "maximum": "2019"},
    },
    {"name": "smoker", "type": "boolean"},
    {"name": "notes", "type": "any"},
]


def test_a_table_schema_says_kinds_ranges_and_values(tmp_path):
    path, names = tmp_path / "people.json", [field["name"] for field in FIELDS]
    path.write_text(json.dumps({"resources": [{"schema": {"fields": FIELDS}}]}))
    package = draft_schema(names[1:], read_codebook(str(path)))
    path.write_text(json.dumps({"fields": FIELDS}))
    for text, ignored in ((draft(str(path)), ("id",)), (draft(path), ("id",)), (package, ())):
        assert 'description = "Years"\n' in text and text.endswith('[columns.notes]\nkind = ""\n')
        text = text.partition("\n[columns.notes]")[0].replace('["1950", "2019"]', "[1950, 2019]")
        schema = parse_schema(text)
        assert schema.names == (*names[1:-1],) and schema.domain.sizes == (10, 10, 2, 2, 10, 10, 2)
        assert schema.columns[5].kind.form == "%d/%m/%Y"
        assert schema.ignored == ignored
    for content in ("[]", '{"job": ["none", "full"]}', "{", '{"fields": 3}', '{"resources": []}'):
        path.write_text(content)
        with pytest.raises(ValueError, match="is not a Table Schema"):
            draft(path)
    with pytest.raises(OSError):
        draft(tmp_path / "none.json")
    for wrong in (int, Person(*[None] * 16)):
        with pytest.raises(TypeError):
            draft(wrong)


ANSWERS = """\
cuts
0, 110
bins 11

yes
categorie
categories
none, part time, full
other

bool


dates
%d.%m.%Y
1950, 2019
1980, 2000
NA, -
times
06:00, 18:00

"""


def test_questions_are_asked_column_by_column_and_again_where_the_answer_is_wrong():
    answers, told = io.StringIO(ANSWERS), []
    text = ask_schema(
        ["age", "job", "smoker", "notes", "born", "at"], lambda question: answers.readline(), told.append
    )
    schema = parse_schema(text)
    assert schema.names == ("age", "job", "smoker", "born", "at")
    assert schema.ignored == ("notes",)
    assert schema.domain.sizes == (12, 4, 2, 4, 3)
    assert schema.columns[3].gaps == ("NA", "-")
    assert sum("kind must be one of" in line for line in told) == 1


ANSWERED = {  # what each kind is asked for
    "bool": (),
    "categories": ("a, b", ""),
    "cuts": ("0, 9", "5", "2"),
    "integers": ("0, 9",),
    "dates": ("", "1950, 2019", "1980"),
    "weekdays": ("%d.%m.%Y",),
    "times": ("06:00, 18:00",),
}


@pytest.mark.parametrize("kind", SPECS)
def test_each_kind_is_offered_by_the_dialogue_and_by_the_draft(kind):
    answers, asked, told = iter([kind, *ANSWERED[kind], "NA"]), [], []

    def ask(question):
        asked.append(question)
        return next(answers)

    text = ask_schema(["x"], ask, told.append)
    assert kind in re.findall(r"\w+", asked[0].partition(";")[0])
    assert told == ["\nx"] and next(answers, None) is None  # asked once, and for all of it
    assert parse_schema(text).columns[0].gaps == ("NA",)
    assert f'kind = "{kind}"' in text and f'kind = "{kind}"' in HEAD


def test_a_dialogue_that_ends_early_writes_nothing(tmp_path, monkeypatch, capfd):
    (tmp_path / "data.csv").write_text("a,b\nsecret,1\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("bool\n"))
    out = tmp_path / "s.toml"
    code, _, err = called(capfd, "schema", "init", tmp_path / "data.csv", "--interactive", "-o", out)
    assert (code, out.exists()) == (2, False)
    assert err.endswith("smalldb: the answers ended before the columns did: nothing was written\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("bool\n\n\n"))
    code, _, err = called(capfd, "schema", "init", tmp_path / "data.csv", "--interactive", "-o", out)
    assert (code, parse_schema(out.read_text()).names) == (0, ("a",))
    assert "secret" not in err


def test_a_check_counts_by_column_and_shows_no_value(tmp_path, capfd):
    path, schema = tmp_path / "data.csv", tmp_path / "s.toml"
    schema.write_text(SCHEMA)
    rows = ["17,none,yes", ",full,no", "x1,part,no", "40,,maybe", "50,full,Y", "60,half,"]
    path.write_text("\n".join(["age,job,smoker", *rows]) + "\n")
    found = check_table(parse_schema(SCHEMA), table_pieces(str(path), parse_schema(SCHEMA)))
    assert (found.rows, found.ruled_out) == (6, 1)
    assert [(own["gaps"], own["not_covered"]) for own in found.counts.values()] == [(1, 1), (1, 2), (1, 1)]
    assert not found.fits
    assert repr(found) == "<Check: computed from the data>"
    for row in rows:  # alone, it fits where it would not be refused
        alone, fits = [([pd.Series([field]) for field in row.split(",")], None)], True
        try:
            parse_schema(SCHEMA).count(alone)
        except DataError:
            fits = False
        assert check_table(parse_schema(SCHEMA), alone).fits == fits == (row in (rows[1], rows[4]))
    code, out, err = called(capfd, "schema", "check", path, "--schema", schema)
    assert (code, err) == (1, "smalldb: the table does not fit: it would be refused\n")
    assert out.startswith("CONFIDENTIAL: computed from the data")
    assert "  (rows 3, 4, 6)\n" in out
    told = "ruled out by valid: 1 row\n  rule 1, 'RULE': 1 row  (row 1)\n"
    told = told.replace("RULE", parse_schema(SCHEMA).valid or "")
    assert out.endswith(told)
    assert not any(value in out for value in ("x1", "half", "maybe"))
    code, out, _ = called(capfd, "schema", "check", path, "--schema", schema, "--json")
    assert json.loads(out)["columns"][1] == {"column": "job", "gaps": 1, "not_covered": 2, "rows": [3, 4, 6]}
    path.write_text("age,job,smoker,other\n40,full,Y,secret\n,none,N,\n")
    code, out, _ = called(capfd, "schema", "check", path, "--schema", schema)
    assert out.endswith("the table fits\n")


RULED = """
valid = ["~(smoker & age<18)", "~smoker | age<65", "smoker | age<80"]
columns.age = { kind = "cuts", cuts = [18, 65, 80], range = [0, 110] }
columns.smoker = { kind = "bool" }
"""


def test_rules_that_rows_break_are_named(tmp_path, capfd, monkeypatch):
    for size in ("CHUNK", "NEAR"):  # what several pieces break is told together
        monkeypatch.setattr(f"smalldb.schema.readers.csv_files.{size}", 2)
    path, schema = tmp_path / "data.csv", tmp_path / "s.toml"
    schema.write_text(RULED)
    path.write_text("age,smoker\n30,1\n12,1\n40,0\n17,0\n" + "70,1\n" * 7 + "12,1\n")
    told = (
        "rows break rule 1 ('~(smoker & age<18)') and "
        "rule 2 ('~smoker | age<65') of valid: smalldb schema check says how many rows, and which; "
        'mend them, or the schema, or give it breaks = "missing", which makes gaps of them'
    )
    ledger = tmp_path / "l.json"
    paid = ("--ledger", ledger, "--budget", "1")
    code, out, err = called(capfd, "generate", path, "--schema", schema, "--epsilon", "1", "--quiet", *paid)
    assert (code, out) == (2, "")
    assert err == f"smalldb: {told} (this looked at the data: for the curator only)\n"
    code, _, err = called(capfd, "evaluate", path, path, "--schema", schema)
    assert (code, told in err) == (2, True)
    code, out, _ = called(capfd, "schema", "check", path, "--schema", schema)
    assert out.splitlines()[-3:] == [
        "ruled out by valid: 9 rows",
        "  rule 1, '~(smoker & age<18)': 2 rows  (rows 2, 12)",
        "  rule 2, '~smoker | age<65': 7 rows  (rows 5, 6, 7, 8, 9, ...)",
    ]
    code, out, _ = called(capfd, "schema", "check", path, "--schema", schema, "--json")
    assert json.loads(out)["rules"] == [
        {"rule": 1, "text": "~(smoker & age<18)", "broken": 2, "rows": [2, 12]},
        {"rule": 2, "text": "~smoker | age<65", "broken": 7, "rows": [5, 6, 7, 8, 9]},
    ]
    path.write_text("a,b,c\n1,0,1\n1,1,0\n")
    code, _, err = called(capfd, "generate", path, "--valid", "(~a | c) & (b | ~c)", "--epsilon", "1")
    assert (code, "rows break rule 1 ('(~a | c) & (b | ~c)') of valid (this looked" in err) == (2, True)


def test_rules_are_broken_as_they_are_written():
    domain, rules = Domain(["a", "b", "c"]), ["a | b", "~(b & c)", "a ^ c", "b"]
    codes = domain.table()
    found = broken(rules, domain.find, domain.sizes, codes)
    held = [lambda a, b, c: a or b, lambda a, b, c: not (b and c), lambda a, b, c: a != c, lambda a, b, c: b]
    for number, rule in enumerate(held, start=1):
        assert found[number].tolist() == [not rule(*row) for row in codes.tolist()]
    with pytest.raises(DataError, match=r"break rule 1 \('a \| b'\) and rule 3 .* and rule 4 .* of valid"):
        Rows.from_codes(Domain([*"abc"], rules), codes[:1])
    with pytest.raises(DataError, match=r"rule 1 .* and rule 2 .* and rule 3 .* and 1 more of valid"):
        Domain([*"abc"], ["~a", "~b", "~c", "~(a & b)"]).encode(pd.DataFrame([[1, 1, 1]], columns=[*"abc"]))


def test_a_number_of_json_lines_has_a_point_and_a_text_the_signs_of_its_column(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text('{"x": 1.234, "y": 150.5}\n{"x": "1.234", "y": 50}\n')
    schema = parse_schema(
        'columns.x = { kind = "cuts", cuts = [100], range = [0, 9999], decimal = ",", thousands = "." }\n'
        'columns.y = { kind = "cuts", cuts = [100], range = [0, 9999] }'
    )
    ((fields, _),) = table_pieces(str(path), schema)
    found = [column.codes(each).tolist() for column, each in zip(schema.columns, fields, strict=True)]
    assert found == [[0, 1], [1, 0]]


def test_a_schema_is_written_as_it_was_read():
    given = {
        "valid": ["a", "~b"],
        "ignore": ['x "y"', "*"],
        "columns": {
            "over 40": {"kind": "bool", "missing": True, "true": [1], "false": [0]},
            "town": {"kind": "categories", "values": ["ż\x7f"], "groups": {"a b": ["c"], "d": [1, 2]}},
            "pay": {"kind": "cuts", "cuts": [Decimal("0.10"), Decimal("1E+5")], "unknown": "missing"},
        },
    }
    assert tomllib.loads(schema_text(given), parse_float=Decimal) == given


def test_an_empty_table_of_columns_stays():
    """The page writes one where the last column is ignored."""
    for given in ({"columns": {}, "ignore": ["a"]}, {"unit": "a", "tables": {"a": {"columns": {}}}}):
        assert tomllib.loads(schema_text(given)) == given


def test_a_schema_may_begin_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(SCHEMA, encoding="utf-8-sig")
    assert read_schema(str(path)) == as_schema(path) == read_any(path) == parse_schema(SCHEMA)


RANGED = """
columns.age = { kind = "cuts", cuts = [18, 65], range = [0, 110], missing = ["999"] }
columns.n = { kind = "integers", range = [1, 3], unknown = "nearest" }
columns.day = { kind = "dates", cuts = ["2000-04"], range = ["2000-01", "2000-06"], missing = true }
columns.moment = { kind = "dates", cuts = ["2000-04-01T12:00"], range = ["2000-01-01", "2000-06-30"] }
columns.at = { kind = "times", cuts = ["12:00"], range = ["06:00", "18:00"] }
columns.job = { kind = "categories", values = ["a", "b"] }
"""


def test_a_check_counts_no_cuts_of_a_column_that_is_computed():
    schema = parse_schema(
        'columns.a = { kind = "cuts", cuts = [5], range = [0, 9] }\ncolumns.b.derive = "a * 2"'
    )
    whole = schema.with_derived(["a", "b"])
    found = check_table(schema, whole.pieces(pd.DataFrame({"a": [1, 7], "b": [2, 15]})), schema.derived)
    none = {"gaps": 0, "not_covered": 0, "fractions": 0}
    ranged = {"below_range": 0, "above_range": 0, "before_cuts": 1, "behind_cuts": 1}
    assert found.counts == {"a": none | ranged, "b": none} and dict(found.broken) == {1: 1}


def test_a_rule_may_compare_a_column_that_is_computed_and_is_in_the_table():
    years = "".join(
        f'columns.{name} = {{ kind = "integers", range = [5, 80] }}\n' for name in ("age", "educ")
    )
    schema = parse_schema(f'valid = ["exper >= 0"]\n{years}columns.exper.derive = "age - educ - 6"')
    frame = pd.DataFrame({"age": [30, 30, 30, 25], "educ": [20, 10, 10, 20], "exper": [4, 14, 15, -1]})
    check = check_table(schema, schema.with_derived(["exper"]).pieces(frame), schema.derived)
    assert (check.broken, check.first) == ({1: 1, 2: 1}, {1: [4], 2: [3]})
    assert (check.ruled_out, check.refused, check.fits) == (1, 1, False)
    assert [column.name for column in check.columns] == [*frame]
    assert check_table(schema, schema.pieces(frame[["age", "educ"]])).broken == {1: 1}


def test_a_check_counts_values_beyond_ranges_and_outside_cuts(tmp_path, capfd):
    lines = [
        "age,n,day,moment,at,job",
        "-1,0,1999-12-31,1999-12-31T23:59:59,05:59,a",
        "0,1,2000-01-01,2000-01-01T00:00:00,06:00,b",
        "999.0,3,2000-06-30,2000-06-30T23:59:59,18:00:30,a",
        "110,4,2000-07-01,2000-07-01T00:00:00,18:01,a",
        "110.5,5,,2000-04-01T11:59:00,11:59,b",
    ]
    path, schema = tmp_path / "data.csv", tmp_path / "s.toml"
    path.write_text("\n".join(lines) + "\n")
    schema.write_text(RANGED)
    found = check_table(parse_schema(RANGED), table_pieces(str(path), parse_schema(RANGED)))
    counts = {
        "age": (1, 1, 2, 2),
        "n": (1, 2),
        "day": (1, 1, 2, 2),
        "moment": (1, 1, 3, 2),
        "at": (1, 1, 3, 2),
    }
    names = "below_range", "above_range", "before_cuts", "behind_cuts"
    told = {name: tuple(own[each] for each in names if each in own) for name, own in found.counts.items()}
    assert told == {**counts, "job": ()}
    # 110.5, and 999.0 is none
    assert [own.get("fractions") for own in found.counts.values()] == [1, None, None, None, None, None]
    assert found.fits
    code, out, _ = called(capfd, "schema", "check", path, "--schema", schema)
    assert code == 0 and "fractions that are read as whole numbers, for want of decimals: 1\n" in out
    assert "beyond range: 1 below, 2 above\n" in out
    assert "  beyond range: 1 below, 1 above  2 before the first cut, 2 from the last on\n" in out
    _, out, _ = called(capfd, "schema", "check", path, "--schema", schema, "--json")
    first, second, *_, last = json.loads(out)["columns"]
    assert first["below_range"] == first["above_range"] == first["fractions"] == 1
    assert first["before_cuts"] == first["behind_cuts"] == 2
    assert second["above_range"] == 2 and "before_cuts" not in second
    assert {*last} == {"column", "gaps", "not_covered", "rows"}


def test_a_draft_of_floats_leaves_open_whether_they_are_whole():
    """Means are bounded by whole numbers where 0 is stated, and a draft had stated it of fractions."""
    made = draft(pd.DataFrame({"weight": [50.3], "children": [1]})).replace("cuts = []", "cuts = [60]")
    made = made.replace("range = []", "range = [0, 99]")
    assert re.findall("decimals = (\\S+)", made) == ["[]", "0"]
    with pytest.raises(ValueError, match=r"column 'weight': fill in the draft: decimals is empty"):
        parse_schema(made)
    assert [c.kind.decimals for c in parse_schema(made.replace("= []  # as", "= 1  # as")).columns] == [1, 0]


def test_a_draft_of_a_frame_is_of_its_dtypes_and_declared_categories(tmp_path):
    def frame(rows):
        return pd.DataFrame(
            {
                "Unnamed: 0": range(len(rows)),
                "size": pd.Categorical([*rows], categories=["S", "M", "L"]),
                "grade": pd.Categorical([1] * len(rows), categories=[1, 2, 3]),
                "span": pd.Categorical([0.5] * len(rows), categories=[0.5, 1.5]),
                "flag": [True] * len(rows),
                "pay": [1.5] * len(rows),
            }
        )

    text = draft(frame("SM"))
    assert text == draft(frame("LLL")) == draft(frame("SM").iloc[:0])  # whatever its rows are
    assert [*tomllib.loads(text)["columns"]] == ["size", "grade", "span", "flag", "pay"]
    assert 'values = [1, 2, 3]\ndtype = "category"' in text
    assert '[columns.span]\nkind = "categories"\nvalues = []' in text
    complete = parse_schema(text[: text.index("[columns.span]")])
    made = complete.decode(complete.encode(frame("SML")[["size", "grade"]]).codes())
    assert made["size"].dtype == frame("S")["size"].dtype
    assert made["grade"].dtype == frame("S")["grade"].dtype
    told = draft(frame("S"), {"size": Described(values=("S", "XL"))})
    assert 'values = ["S", "XL"]' in told
    with pytest.raises(TypeError, match="expected a pandas DataFrame"):
        draft("people.csv")


class Region(Enum):
    NORTH = "north"
    SOUTH = "south"


class Grade(IntEnum):
    LOW = 1
    HIGH = 2


class Odd(Enum):
    A = 1
    B = "b"


ANNOTATED = {  # a class of its fields, and what is drafted of each
    "person_id": (int, None),
    "age": (int, {"kind": "cuts", "cuts": [], "range": [], "decimals": 0}),
    "pay": (Decimal | None, {"kind": "cuts", "cuts": [], "range": [], "decimals": 0, "missing": True}),
    "region": (Region, {"kind": "categories", "values": ["north", "south"]}),
    "grade": (Grade | None, {"kind": "categories", "values": [1, 2], "missing": True}),
    "job": (Literal["none", "part", "full"], {"kind": "categories", "values": ["none", "part", "full"]}),
    "ward": (Optional[Literal[1, 2]], {"kind": "categories", "values": [1, 2], "missing": True}),  # noqa: UP045
    "state": (Literal["a", "b", None], {"kind": "categories", "values": ["a", "b"], "missing": True}),
    "smoker": (bool, {"kind": "bool"}),
    "joined": (date, {"kind": "dates", "cuts": [], "range": []}),
    "shift": (time, {"kind": "times", "cuts": []}),
    "stay": (timedelta | None, {"kind": "times", "cuts": [], "missing": True}),
    "town": (str, {"kind": "categories", "values": []}),
    "odd": (Odd, {"kind": "categories", "values": []}),
    "mixed": (int | str, {"kind": ""}),
    "other": (list[int], {"kind": ""}),
}
Person = make_dataclass("Person", [(name, annotation) for name, (annotation, _) in ANNOTATED.items()])


def test_a_data_class_declares_its_columns():
    given = toml_of(draft(Person))
    assert given["columns"] == {name: drafted for name, (_, drafted) in ANNOTATED.items() if drafted}
    assert given["ignore"] == ["person_id"]


def test_a_draft_of_a_csv_file_depends_on_its_first_line_alone(tmp_path, capfd):
    path = tmp_path / "data.csv"
    drafts = []
    for data in ("1,true\n", "secret,31337\n", 'no CSV "', ""):
        path.write_text("age,over 40\n" + data)
        code, out, err = called(capfd, "schema", "init", path)
        assert (code, err) == (0, "")
        drafts.append(out)
    assert len(set(drafts)) == 1
    assert "public knowledge" in drafts[0]
    assert '[columns.age]\nkind = ""\n\n[columns."over 40"]\nkind = ""\n' in drafts[0]
    out = tmp_path / "draft.toml"
    out.write_text(drafts[0])
    code, _, err = called(capfd, "schema", "show", out)  # a fault of several columns is said once
    assert (code, err.count("kind must be one of")) == (2, 1)
    assert "columns 'age', 'over 40': fill in the draft: " in err
    assert err.endswith("or list the column in ignore, without a table (lines 18, 21)\n")


def test_a_draft_of_a_parquet_file_reads_declared_types(tmp_path, capfd):
    pytest.importorskip("pyarrow")
    path, out = tmp_path / "data.parquet", tmp_path / "draft.toml"
    frame = pd.DataFrame(
        {
            "flag": [True],
            "job": pd.Series(["secret"], dtype="category"),
            "age": pd.Series([31], dtype="Int8"),
            "day": pd.to_datetime(["2031-03-13"]),
            'a "note"': ["secret"],
        }
    )
    path.write_bytes(written(frame, "parquet"))
    assert called(capfd, "schema", "init", path, "-o", out) == (0, "", "")
    text = out.read_text().removeprefix(HEAD)
    assert "secret" not in text and "31" not in text
    kinds = [line for line in text.splitlines() if line.startswith(("kind", "["))]
    assert kinds == [
        *("[columns.flag]", 'kind = "bool"', "[columns.job]", 'kind = "categories"', "[columns.age]"),
        *(
            'kind = "cuts"',
            "[columns.day]",
            'kind = "dates"',
            r'[columns."a \"note\""]',
            'kind = "categories"',
        ),
    ]
    assert 'kind = "bool"\ndtype = "bool"' in text and '\ndtype = "int8"' in text
    assert 'kind = ""' in draft_schema({"odd": pd.Series([object()]).dtype})
    path.write_bytes(b"secret")
    code, _, err = called(capfd, "schema", "init", path)
    assert (code, err) == (2, f"smalldb: {path} is not a Parquet file that can be read\n")


def test_a_draft_replaces_nothing(tmp_path, capfd):
    data, out = tmp_path / "data.csv", tmp_path / "draft.toml"
    data.write_text("a,b\n0,1\n")
    assert called(capfd, "schema", "init", data, "-o", data) == (
        2,
        "",
        "smalldb: an output would replace an input: name another file\n",
    )
    assert called(capfd, "schema", "init", data, "-o", out) == (0, "", "")
    out.write_text("filled in")
    refused = f"smalldb: {out} exists already: name another file\n"
    assert called(capfd, "schema", "init", data, "-o", out) == (2, "", refused)
    (tmp_path / "link.toml").symlink_to(tmp_path / "new.toml")
    assert called(capfd, "schema", "init", data, "-o", tmp_path / "link.toml")[0] == 2
    assert not (tmp_path / "new.toml").exists()
    assert (data.read_text(), out.read_text()) == ("a,b\n0,1\n", "filled in")


def test_a_schema_is_shown_and_of_many_categories_a_part(examples, tmp_path, capfd):
    code, out, err = called(capfd, "schema", "show", examples / "people.toml")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("age         age<20, 20<=age<25, 25<=age<30, ")
    assert lines[0].endswith("75<=age<85, age>=85")
    path = tmp_path / "s.toml"
    path.write_text(f"columns.x = {{ kind = 'categories', values = {list(range(100))} }}")
    assert called(capfd, "schema", "show", path)[1].splitlines()[0].endswith("20, 21, ..., 99")
    assert lines[1:] == [
        "sex         female, male",
        "region      north, east, south, west",
        "employment  employed, self-employed, student, retired, other, missing",
        "smoker      no, yes",
        "joined      joined<2000, 2000<=joined<2010, 2010<=joined<2020, joined>=2020",
        "income      income<10000, 10000<=income<20000, 20000<=income<40000, 40000<=income<80000, "
        "income>=80000, missing",
        "7 columns, 37 categories, 29,952 cells that can exist",
        "queries: marginals:2",
    ]
