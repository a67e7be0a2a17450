"""Workbooks and statistical files: the same rows as CSV, labels in, labels out."""

import re
import warnings
import zipfile
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pyreadstat
import pytest
from test_readers_formats import every, same

from queries import DataError
from smalldb.cli import main
from smalldb.schema import parse_schema
from smalldb.schema.file_format import FileFormat
from smalldb.schema.table_readers import read_columns, read_described, read_table, rehearse
from smalldb.schema.table_writers import form_of, written

SEX, JOB = {1: "male", 2: "female"}, {1: "none", 2: "part time", 3: "full time", 9: "refused"}
SCHEMA = """
columns.sex = { kind = "categories", groups = { male = [1], female = [2] }, missing = true }
columns.job.kind = "categories"
columns.job.groups = { none = [1], "part time" = [2], "full time" = [3] }
columns.job.missing = ["", "9", "refused"]
columns.age = { kind = "cuts", cuts = [18, 65], range = [0, 110], missing = true }
columns.pay = { kind = "cuts", cuts = [10.5, 20], range = [0, 40] }
columns.town = { kind = "categories", values = ["Köln", "=1+1"], missing = true }
columns.born = { kind = "dates", cuts = [1950, 1980], range = [1890, 2020] }
columns.smoker = { kind = "bool" }
"""


def table(n=300, seed=1):
    draw = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "sex": pd.Series(draw.choice([1, 2, None], n), dtype="Int64"),
            "job": pd.Series(draw.choice([1, 2, 3, 9, None], n), dtype="Int64"),
            "age": pd.Series(draw.choice([*range(100), None], n), dtype="Int64"),
            "pay": draw.integers(0, 400, n) / 10,
            "town": pd.Series(draw.choice(["Köln", "=1+1", ""], n), dtype=object),
            "born": pd.to_datetime(draw.integers(-25000, 15000, n), unit="D").astype("datetime64[s]"),
            "smoker": draw.integers(0, 2, n),
        }
    )


def put(frame, path):
    """Write a table as other programs do, without smalldb."""
    labels = {"sex": SEX, "job": JOB}
    made = frame.astype({"sex": "float64", "job": "float64", "age": "float64"})
    dated = made.assign(born=made["born"].dt.date)
    match path.suffix:
        case ".csv":
            frame.to_csv(path, index=False)
        case ".xlsx":
            with pd.ExcelWriter(path, engine="openpyxl") as writer:
                early = frame["born"] < "1900-03-01"
                born = frame["born"].astype(object).where(~early, frame["born"].dt.strftime("%Y-%m-%d"))
                frame.assign(born=born).to_excel(writer, index=False)
                column = [*frame.columns].index("town") + 1
                for row in range(2, len(frame) + 2):
                    cell = writer.sheets["Sheet1"].cell(row, column)
                    cell.data_type = "s" if cell.value else cell.data_type
        case ".dta":
            made.to_stata(
                path, write_index=False, version=118, value_labels=labels, convert_dates={"born": "td"},
                variable_labels={"sex": "Sex at birth"},
            )  # fmt: skip
        case ".sav":
            pyreadstat.write_sav(
                dated, str(path), variable_value_labels=labels, missing_ranges={"job": [9]},
                column_labels={"sex": "Sex at birth"},
            )  # fmt: skip
        case ".xpt":
            pyreadstat.write_xport(dated, str(path), file_format_version=8)
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".xlsx", ".dta", ".sav", ".xpt"])
def test_the_same_table_in_every_format_is_one_histogram(tmp_path, suffix):
    schema, frame = parse_schema(SCHEMA), table()
    expected = read_table(put(frame, tmp_path / "t.csv"), schema)
    same(schema.encode(frame), expected)
    path = put(frame, tmp_path / f"t{suffix}")
    same(read_table(path, schema), expected)
    assert [*read_columns(path)] == [*frame.columns]
    parts = [frame.iloc[:100], frame.iloc[100:]]  # rows add up: none decides how another is read
    counts = sum(
        read_table(put(part.reset_index(drop=True), tmp_path / f"{i}{suffix}"), schema).histogram()
        for i, part in enumerate(parts)
    )
    assert np.array_equal(counts, expected.histogram())


@pytest.mark.slow
@pytest.mark.parametrize("form", ["xlsx", "dta", "sav"])
def test_labels_in_labels_out(tmp_path, form):
    schema = parse_schema(SCHEMA)
    rows = schema.encode(table())
    path = tmp_path / f"out.{form}"
    assert form_of(str(path)) == form
    assert rehearse(schema, form) > 40
    released = schema.decode(every(rows), rng=5)
    path.write_bytes(written(released, form, schema))
    same(read_table(str(path), schema), rows)
    match form:
        case "xlsx":
            again = pd.read_excel(path)
            assert {*again["job"].dropna()} == {"none", "part time", "full time"}
            assert {*again["town"].dropna()} == {"Köln", "=1+1"}
            assert again["pay"].dtype == "float64" and again["smoker"].dtype == bool
        case "dta":
            again = pd.read_stata(path)
            assert [*again["sex"].cat.categories] == ["male", "female"]
            codes = pd.read_stata(path, convert_categoricals=False)["sex"]
            assert {*codes.dropna()} == {1, 2}
            assert again["born"].dtype.kind == "M"
        case "sav":
            again = pd.read_spss(path)
            assert {*again["job"].dropna()} == {"none", "part time", "full time"}
            found = read_described(str(path))["job"].groups
            assert found == {"none": (1,), "part time": (2,), "full time": (3,)}
    assert released["job"].isna().sum() == again["job"].isna().sum()


@pytest.mark.parametrize("suffix", [".dta", ".sav"])
def test_a_draft_from_labels_reads_no_row(tmp_path, suffix, capsys):
    texts = []
    for seed in (1, 2):
        path = put(table(seed=seed, n=50), tmp_path / f"{seed}{suffix}")
        assert main(["schema", "init", path]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert 'kind = "categories"\ngroups = { male = [1], female = [2] }\n' in texts[0]
    assert 'description = "Sex at birth"\n' in texts[0]
    labels = texts[0][: texts[0].index("[columns.age]")]
    drafted = parse_schema(labels)
    assert drafted.columns[0].kind == parse_schema(SCHEMA).columns[0].kind
    if suffix == ".sav":  # 9 is declared to be missing
        assert drafted.columns[1].gaps == ("", "9", "refused")
        assert drafted.columns[1].kind == parse_schema(SCHEMA).columns[1].kind
    else:
        assert drafted.columns[1].kind.labels == [*JOB.values()]
    assert 'kind = "dates"' in texts[0] and 'kind = "cuts"' in texts[0]


@pytest.mark.parametrize("suffix", [".dta", ".sav"])
def test_odd_labels_mark_their_column_and_the_others_are_drafted(tmp_path, suffix, capsys):
    names = {"c": "Respondent ID", "d": "Has an ID", "e": "Age  in years"}
    frame = pd.DataFrame({name: [1.0, 2.0] for name in "abcde"})
    labels = {"a": {1: "other", 2: "none", 9: "other"}, "b": {1: "2", 2: "two"}, "d": {1: "yes", 2: "no"}}
    path = str(tmp_path / f"t{suffix}")
    if suffix == ".dta":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            frame.to_stata(path, write_index=False, value_labels=labels, variable_labels=names)
        gaps = str(tmp_path / "gaps.dta")  # its missing values have labels, too
        few, odd = frame[["a"]], {"a": {1: "yes", 2: "no", 2147483622: "refused"}}
        few.to_stata(gaps, write_index=False, value_labels=odd)
        found = read_described(gaps)["a"]
        assert found.groups == {"yes": (1,), "no": (2,)} and found.gaps == ("", "refused")
    else:
        pyreadstat.write_sav(frame, path, variable_value_labels=labels, column_labels=names)
    assert main(["schema", "init", path]) == 0
    a, b, c, d, e = capsys.readouterr().out.split("\n[columns.")[1:]
    assert "# the label 'other' stands for the codes 1 and 9: mend the labels, or list" in a
    assert "# the label '2' of the code 1 is the code of another: mend the labels" in b
    assert c == 'c]\nkind = "id"  # an identifier, by its label: fresh numbers\n'
    assert "groups = { yes = [1], no = [2] }" in d and 'description = "Has an ID"' in d
    assert 'kind = "cuts"' in e and "decimals = []" in e and 'description = "Age in years"' in e


def test_a_formula_without_a_stored_value_is_called_what_it_is(tmp_path, monkeypatch):
    """An empty text that a formula came to is a gap; formulas in columns that are not read do not matter."""
    monkeypatch.setattr("smalldb.schema.readers.excel_files.RECORDS", 2)
    path, schema = (
        str(tmp_path / "t.xlsx"),
        parse_schema("ignore = ['b']\ncolumns.a = { kind = 'bool', missing = true }"),
    )
    rows = [[], ["a", "b"], [1, "=A3"], [None, 2], [0, None], [1], [None, 3]]
    for odd in ([], ["=A1", 5]):
        book = openpyxl.Workbook()
        for row in [*rows, odd, [1, 1]]:
            book.active.append(row)
        book.save(path)
        if not odd:
            assert read_table(path, schema).histogram().tolist() == [1, 3, 2]
            continue
        with pytest.raises(DataError, match="column 'a' has a formula whose value is not stored: open the"):
            read_table(path, schema)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    stored = rb'<c r="A\1" t="str"><f>A1</f><v></v>'
    empty = re.sub(rb'<c r="A(\d+)"[^>]*><f>A1</f><v ?/?>(</v>)?', stored, parts[sheet])
    assert empty != parts[sheet]
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (parts | {sheet: empty}).items():
            archive.writestr(name, content)
    assert read_table(path, schema).n == 7


def test_a_workbook_of_several_sheets_asks_which(tmp_path, capsys):
    book, path = openpyxl.Workbook(), str(tmp_path / "t.xlsx")
    book.active.append(["note"])
    people = book.create_sheet("people")
    for row in (["a", "b", None], [None, None, None], [True, 0, None], [1, "1.0", None], [None] * 3):
        people.append(row)
    book.save(path)
    schema = "[columns.a]\nkind = 'bool'\n[columns.b]\nkind = 'bool'\n"
    for given in (["schema", "init", path], ["schema", "init", path, "--sheet", "persons"]):
        assert main(given) == 2
        assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(ValueError, match=r"2 sheets, 'Sheet', 'people': say which \(--sheet, or file.sheet"):
        read_table(path, parse_schema(schema))
    with pytest.raises(ValueError, match="no sheet 'peeple'; did you mean 'people'"):
        read_table(path, parse_schema(schema), file=FileFormat(sheet="peeple"))
    stating = parse_schema(f"file.sheet = 'people'\n{schema}")
    assert read_table(path, stating).histogram().tolist() == [0, 0, 1, 1]
    assert main(["schema", "init", path, "--sheet", "people"]) == 0
    assert 'file = { sheet = "people" }' in capsys.readouterr().out


def test_bad_workbooks_are_refused_in_a_line(tmp_path):
    schema, path = parse_schema("[columns.a]\nkind = 'bool'\n"), str(tmp_path / "t.xlsx")

    def book(*rows):
        made = openpyxl.Workbook()
        for row in rows:
            made.active.append(row)
        made.save(path)

    for rows, kind, said in (
        ([["a", "a"], [1, 1]], ValueError, "column name 'a' occurs more than once"),
        ([], ValueError, "is empty: expected a first line with column names"),
        ([["a"], [1, 5]], DataError, "a value in a column without a name"),
    ):
        book(*rows)
        with pytest.raises(kind, match=said):
            read_table(path, schema)
    for content, said in {
        b"a\n1\n": "is not a workbook",
        b"\xd0\xcf\x11\xe0" + b"\0" * 99: "save it as .xlsx",
    }.items():
        (tmp_path / "t.xlsx").write_bytes(content)
        with pytest.raises(ValueError, match=said):
            read_table(path, schema)


@pytest.mark.parametrize("suffix", [".dta", ".sav", ".sas7bdat", ".xpt"])
def test_what_is_no_such_file_is_refused_in_a_line(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    schema = parse_schema(SCHEMA)
    said = dict.fromkeys([b"", b"a,b\n0,1\n", b"\0" * 5000], "can be read")
    if suffix == ".dta":  # it may end early, too
        whole = Path(put(table(), path)).read_bytes()
        said |= dict.fromkeys([whole[: len(whole) // 2], whole[:-2000]], "can be read|is broken")
    for content, message in said.items():
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message) as caught:
            read_table(str(path), schema)
        assert "\n" not in str(caught.value)
    with pytest.raises(FileNotFoundError):
        read_table(str(tmp_path / f"none{suffix}"), schema)


@pytest.mark.parametrize("suffix", [".dta", ".sav"])
def test_from_labels_to_a_release_in_two_commands(workdir, suffix):
    frame, labels = table(400)[["sex", "job"]], {"sex": SEX, "job": JOB}
    if suffix == ".dta":
        frame.astype("float64").to_stata("t.dta", write_index=False, value_labels=labels)
    else:
        pyreadstat.write_sav(frame.astype("float64"), "t.sav", variable_value_labels=labels)
    assert main(["schema", "init", f"t{suffix}", "-o", "s.toml"]) == 0
    given = [f"t{suffix}", "--schema", "s.toml", "--epsilon", "2", "-o", f"out{suffix}"]
    assert main(["generate", *given]) == 0
    again = pd.read_stata("out.dta") if suffix == ".dta" else pd.read_spss("out.sav")
    assert {*again["sex"].dropna()} == {*SEX.values()}
    shares, real = (sexes.value_counts(normalize=True) for sexes in (again["sex"], frame["sex"].map(SEX)))
    assert abs(shares["male"] - real["male"]) < 0.2
