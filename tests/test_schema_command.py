"""`schema`: drafts from names alone, and shows what a schema makes."""

import pandas as pd
import pytest
from calling import called

from smalldb.schema import parse_schema
from smalldb.schema.table_readers import written


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
    with pytest.raises(ValueError, match="fill in the draft: kind must be one of"):
        parse_schema(drafts[0])


def test_a_draft_of_a_parquet_file_reads_declared_types(tmp_path, capfd):
    pytest.importorskip("pyarrow")
    path, out = tmp_path / "data.parquet", tmp_path / "draft.toml"
    frame = pd.DataFrame(
        {"flag": [True], "job": pd.Series(["secret"], dtype="category"), "age": [31337], "note": ["secret"]}
    )
    path.write_bytes(written(frame, "parquet"))
    code, said, err = called(capfd, "schema", "init", path, "-o", out)
    assert (code, said, err) == (0, "", "")
    text = out.read_text()
    assert "secret" not in text
    assert "31337" not in text
    assert '[columns.flag]\nkind = "bool"\ndtype = "bool"' in text
    assert '[columns.job]\nkind = "categories"' in text
    assert '[columns.age]\nkind = "cuts"' in text
    assert '[columns.note]\nkind = "categories"' in text
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


def test_the_example_is_shown(examples, capfd):
    code, out, err = called(capfd, "schema", "show", examples / "people.toml")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("age         age<20, 20<=age<25, 25<=age<30, ")
    assert lines[0].endswith("75<=age<85, age>=85")
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


def test_many_categories_are_shown_in_part(tmp_path, capfd):
    path = tmp_path / "s.toml"
    path.write_text(f"columns.x = {{ kind = 'categories', values = {list(range(100))} }}")
    code, out, _ = called(capfd, "schema", "show", path)
    assert (code, out.splitlines()[0].endswith("20, 21, ..., 99")) == (0, True)
