"""Columns that are computed: exact in every released row, in the file's dtype and spelling."""

import json
import re
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from calling import called
from hypothesis import given
from hypothesis import strategies as st

import smalldb
from queries.expressions import evaluate, formula
from smalldb.schema import parse_schema
from smalldb.schema.derived import _combined
from smalldb.schema.table_readers import read_table
from smalldb.schema.table_writers import written

WAGES = """
rows_per_person = 1
columns.age = { kind = "integers", range = [20, 60] }
columns.education = { kind = "cuts", cuts = [8, 12, 16], range = [0, 20], missing = true }
columns.experience = { derive = "age - education - 6", missing = ["NA"] }
columns.entry = { kind = "dates", cuts = [1990, 2000], range = [1980, 2009] }
columns.exit = { kind = "dates", cuts = [1990, 2000], range = [1980, 2009], format = "%d.%m.%Y" }
columns.years = { derive = "(exit - entry) / 365.25", decimals = 2, decimal = "," }
columns.rate = { derive = "years * 2 / education", decimals = 1, missing = true, dtype = "float32" }
"""


def wages(n=600, seed=4):
    rng = np.random.default_rng(seed)
    age, education = rng.integers(20, 61, n), rng.integers(0, 21, n).astype(object)
    education[rng.random(n) < 0.1] = None
    entry, exit_ = rng.integers(0, 5_000, n), rng.integers(5_000, 10_900, n)
    start = np.datetime64("1980-01-01")
    return pd.DataFrame(
        {
            "experience": [None if e is None else a - e - 6 for a, e in zip(age, education, strict=True)],
            "age": age,
            "education": education,
            "entry": start + entry,
            "exit": pd.Series(start + exit_).dt.strftime("%d.%m.%Y"),
            "years": "",
            "rate": 0.0,
        }
    )


def check(made):
    """Compare each row with the definition, in exact numbers."""
    for row in made.to_dict("records"):
        gap = pd.isna(row["education"])
        assert pd.isna(row["experience"]) == gap
        if not gap:
            assert row["experience"] == row["age"] - row["education"] - 6
        days = (pd.to_datetime(row["exit"], format="%d.%m.%Y") - row["entry"]).days
        years = round(Fraction(days) / Fraction("365.25") * 100)
        assert Fraction(row["years"].replace(",", ".")) == Fraction(years, 100)
        assert pd.isna(row["rate"]) == (gap or row["education"] == 0)
        if not pd.isna(row["rate"]):
            exact = round(Fraction(years, 100) * 2 / int(row["education"]) * 10)
            assert np.float32(exact / 10) == row["rate"]


@pytest.mark.slow
@pytest.mark.parametrize("middle", [False, True])
def test_computed_columns_are_exact_in_every_released_row(middle):
    made = smalldb.generate(wages(), schema=WAGES, epsilon=1, rng=8, middle=middle)
    assert [*made.columns] == [*wages().columns]
    assert [*made.dtypes.astype(str)][:4] == ["Int64", "int64", "Int64", "datetime64[s]"]
    assert made["rate"].dtype == np.float32
    check(made)


def test_a_table_may_lack_them_and_its_release_has_them_last():
    made = smalldb.generate(wages().drop(columns=["experience", "years"]), schema=WAGES, epsilon=1, rng=8)
    assert [*made.columns][-2:] == ["experience", "years"]
    check(made)


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_files_spell_them_as_the_schema_does(form, tmp_path):
    schema = parse_schema(WAGES)
    made = schema.decode(schema.encode(wages(60)).codes(), rng=3)
    path = tmp_path / f"made.{form}"
    path.write_bytes(written(made, form, schema))
    lines = path.read_text().splitlines()
    row = made.iloc[0]
    if form == "csv":
        assert f',"{row["years"]}",' in lines[1] and (("NA" in lines[1]) == pd.isna(row["experience"]))
    else:
        told = json.loads(lines[0])
        assert told["years"] == row["years"]
        assert told["experience"] == (None if pd.isna(row["experience"]) else row["experience"])
    assert read_table(str(path), schema).n == len(made)


def test_rows_of_data_in_which_one_is_another_are_counted_and_not_refused(tmp_path, capfd):
    table, text = tmp_path / "made.csv", tmp_path / "s.toml"
    schema = parse_schema(WAGES)
    made = schema.decode(schema.encode(wages(40)).codes(), rng=3)
    made["years"] = made["years"].where(made.index != 5, "99,99")
    table.write_bytes(written(made, "csv", schema))
    text.write_text(WAGES)
    told = called(capfd, "schema", "check", table, "--schema", text)[1]
    assert "\"column 'years': derive = '(exit - entry) / 365.25'\": 1 row  (row 6)" in told
    assert "the table fits" in told and "99" not in told
    as_json = json.loads(called(capfd, "schema", "check", table, "--schema", text, "--json")[1])
    assert as_json["rules"][0]["broken"] == 1
    assert as_json["fits"]


@pytest.mark.parametrize(
    ("described", "said"),
    [
        ('{ derive = "age - educaton" }', "no column 'educaton'; did you mean 'education'?"),
        ('{ derive = "age - sex" }', "column 'sex' has no numbers or dates"),
        ('{ derive = "entry" }', "it is a date, not a number"),
        ('{ derive = "entry * 2 - entry" }', "a date can only be subtracted from another"),
        ('{ derive = "age / 3" }', "its number of digits is needed: decimals"),
        ('{ derive = "age - education" }', "missing = true gives gaps a category"),
        ('{ derive = "age / (age - 30)", decimals = 1 }', "divide by 0"),
        ('{ derive = "6" }', "it uses no column"),
        ('{ derive = "age -" }', "expected an expression"),
        ('{ derive = "age ; 2" }', "at character 5"),
        ('{ derive = "(age" }', "expected an expression"),
        ('{ derive = "age education" }', "expected an expression"),
        ('{ derive = "new + 1" }', "it depends on itself, by columns 'new'"),
        ('{ derive = "b + 1" }\ncolumns.b = { derive = "new - 1" }', "on itself, by columns 'new', 'b'"),
        ('{ derive = "age", kind = "integers" }', "unknown key 'kind'"),
        ("{ derive = 3 }", "derive must be a text"),
        ('{ derive = "age * 1000", dtype = "int8" }', "dtype 'int8' cannot hold its values"),
        ('{ derive = "age * 10000000000000.5", dtype = "float64" }', "more than 15 digits"),
    ],
)
def test_what_cannot_be_computed_is_refused_in_one_line(described, said):
    text = f'columns.sex = {{ kind = "categories", values = ["f", "m"] }}\n{WAGES}columns.new = {described}'
    with pytest.raises(ValueError, match="column 'new'") as refused:
        parse_schema(text)
    assert said in str(refused.value) and "\n" not in str(refused.value)


@st.composite
def expressions(draw, depth=3):
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(["x", "y", "2", "0.5", "-x", "`y`"]))
    one, other = draw(expressions(depth=depth - 1)), draw(expressions(depth=depth - 1))
    shape = draw(st.sampled_from(["{} {} {}", "({} {} {})", "-({} {} {})"]))
    return shape.format(one, draw(st.sampled_from("+-*/")), other)


@given(expressions(), st.integers(-9, 9), st.integers(1, 9))
def test_expressions_are_read_as_python_reads_them(text, x, y):
    def evaluated(number, name):
        return evaluate(
            formula(text), lambda kind, word: {"number": number, "name": name}[kind](word), _combined
        )

    python = re.sub("[0-9.]+", lambda found: f"Fraction({found[0]!r})", text.replace("`", ""))
    values = {"x": Fraction(x), "y": Fraction(y)}
    try:
        expected = eval(python, {"Fraction": Fraction, **values})
    except ZeroDivisionError:
        with pytest.raises(ZeroDivisionError):
            evaluated(Fraction, values.__getitem__)
    else:
        assert evaluated(Fraction, values.__getitem__) == expected
