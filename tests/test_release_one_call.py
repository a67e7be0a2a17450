"""One call: the original columns of a frame go in, and the same columns come out, in the same library."""

import pickle

import pandas as pd
import pytest
from calling import called

import smalldb
from smalldb.releasing.evaluation import evaluate
from smalldb.reporting.page import page
from smalldb.schema import parse_schema

TEXT = """
queries = "marginals:1"
valid = "~(`job=full` & `age<18`)"
ignore = "*"
columns.job = { kind = "categories", values = ["none", "part", "full"], missing = true }
columns.age = { kind = "cuts", cuts = [18, 65], range = [0, 99] }
columns.born = { kind = "dates", cuts = [1990], range = [1950, 2010] }
columns.smoker = { kind = "bool" }
"""
SCHEMA = parse_schema(TEXT)
FRAME = pd.DataFrame(
    {
        "smoker": [True, False] * 20,
        "notes": ["secret"] * 40,
        "age": [17, 30, 41, 70] * 10,
        "job": ["none", None, "full", "part"] * 10,
        "born": pd.to_datetime(["1989-01-01", "2001-02-03"] * 20),
    }
)
ASKED = {"schema": SCHEMA, "epsilon": 1, "rows": 30}


def libraries(frame):
    """The same table in each library that is there; moments are dates in polars."""
    made = {"pandas": frame}
    try:
        import pyarrow

        made["arrow-backed"] = frame.convert_dtypes(dtype_backend="pyarrow")
        made["pyarrow"] = pyarrow.Table.from_pandas(frame)
    except ImportError:
        pass
    try:
        import polars

        table = polars.DataFrame({name: [None if pd.isna(v) else v for v in frame[name]] for name in frame})
        moments = [name for name in frame if frame[name].dtype.kind == "M"]
        made["polars"] = table.with_columns(polars.col(name).cast(polars.Date) for name in moments)
    except ImportError:
        pass
    return made


LIBRARIES = libraries(FRAME)


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
def test_texts_make_no_texts_of_what_the_schema_calls_a_number(library):
    texts = FRAME.assign(born=FRAME["born"].dt.date).astype(object).where(FRAME.notna(), "").astype(str)
    made = smalldb.generate(libraries(texts)[library], **ASKED, rng=3)
    again = made if isinstance(made, pd.DataFrame) else made.to_pandas()
    assert [again[name].dtype.kind for name in ("age", "smoker", "born")] == ["i", "b", "M"]
    assert pd.api.types.is_string_dtype(again["job"].dropna())


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_comes_in_comes_out(library):
    table = LIBRARIES[library]
    made = smalldb.generate(table, **ASKED, rng=3)
    assert type(made) is type(table)
    again = made if isinstance(made, pd.DataFrame) else made.to_pandas()
    assert list(again.columns) == ["smoker", "age", "job", "born"]
    if library == "polars":
        assert made.schema["born"] == table.schema["born"]
    if library == "arrow-backed":
        assert all(isinstance(dtype, pd.ArrowDtype) for dtype in made.dtypes)
    expected = smalldb.generate(FRAME, **ASKED, rng=3)
    assert SCHEMA.encode(made).histogram().tolist() == SCHEMA.encode(expected).histogram().tolist()
    assert again["age"].tolist() == expected["age"].tolist()
    compared = evaluate(table, made, schema=SCHEMA)
    assert compared.workload.text == "marginals:1"
    assert compared.max_error == evaluate(FRAME, expected, schema=TEXT).max_error
    # and a table of yes/no columns without a schema
    flags = table[["smoker"]] if isinstance(table, pd.DataFrame) else table.select(["smoker"])
    made = smalldb.generate(flags, epsilon=1, rows=4)
    assert type(made) is type(table) and made.shape == (4, 1)


def test_a_schema_is_given_as_itself_its_file_or_its_text(tmp_path):
    path = tmp_path / "people.toml"
    path.write_text(TEXT)
    expected = smalldb.generate(FRAME, **ASKED, rng=1)
    for schema in (TEXT, path, str(path)):
        assert smalldb.generate(FRAME, **(ASKED | {"schema": schema}), rng=1).equals(expected)
    planned = smalldb.plan(schema=path, n=40, epsilon=1, rows=30)
    assert planned.workload.domain == SCHEMA.domain
    assert planned.workload.text == "marginals:1"
    assert smalldb.release(planned, FRAME, schema=SCHEMA, rng=1).data.equals(expected)
    with pytest.raises(FileNotFoundError):
        smalldb.plan(schema=tmp_path / "none.toml", n=40, epsilon=1)


def test_values_are_drawn_and_rows_shuffled_after_the_release():
    drawn, middle = (smalldb.release(FRAME, **ASKED, rng=5, middle=middle) for middle in (False, True))
    assert drawn.rows.counts.tolist() == middle.rows.counts.tolist()
    assert drawn.record == middle.record
    assert drawn.codes.tolist() != middle.codes.tolist()
    assert sorted(drawn.codes.tolist()) == sorted(middle.codes.tolist())
    assert set(middle.data["age"]) <= {8, 41, 82}
    assert middle.data.drop(columns=["smoker", "job"]).equals(
        SCHEMA.decode(middle.codes, middle=True)[["age", "born"]]
    )
    assert drawn.data["age"].nunique() > 10
    assert drawn.data["born"].dt.day.nunique() > 5
    assert str(drawn.data["age"].dtype) == "int64"
    assert list(smalldb.release(SCHEMA.encode(FRAME), **ASKED).data.columns) == list(SCHEMA.names)
    again = SCHEMA.encode(drawn.data.assign(notes=""))  # raises where a row breaks the rule
    assert again.histogram().tolist() == drawn.rows.histogram().tolist()


def test_a_release_with_a_schema_travels_and_has_its_page():
    made = smalldb.release(FRAME, **ASKED, rng=5)
    again = pickle.loads(pickle.dumps(made))
    assert again.schema == SCHEMA
    assert again.data.equals(made.data)
    shown = page(made)
    assert str(made.data["born"][0].date()) in shown
    assert "secret" not in shown


def test_a_census_takes_a_schema_too():
    flags = 'columns.smoker.kind = "bool"\nignore = "*"'
    found = smalldb.census(FRAME, "marginals:1", schema=flags, rows=3)
    same = smalldb.census(FRAME[["smoker"]], "marginals:1", rows=3)
    assert (found.counts, found.levels.tolist()) == (same.counts, same.levels.tolist())


def test_bounds_take_a_schema(tmp_path, capfd):
    (tmp_path / "s.toml").write_text(TEXT)
    code, out, err = called(
        capfd, "bounds", "--schema", tmp_path / "s.toml", "--n", 100, "--epsilon", 1, "--json"
    )
    assert (code, err) == (0, "")
    assert f'"cells": "{SCHEMA.domain.size}"' in out


def test_dictionaries_of_arrow_are_their_words():
    pyarrow = pytest.importorskip("pyarrow")
    dictionary = pyarrow.dictionary(pyarrow.int8(), pyarrow.string())
    words = pd.Series(["a", None, "b"], dtype=pd.ArrowDtype(dictionary))
    listed = "columns.a = { kind = 'categories', values = ['a', 'b'], missing = true }"
    assert parse_schema(listed).encode(pd.DataFrame({"a": words})).histogram().tolist() == [1, 1, 1]


def test_codes_of_a_released_category_do_not_follow_the_data():
    polars = pytest.importorskip("polars")
    schema = 'columns.city = { kind = "categories", values = ["x", "y"], unknown = "other" }'
    column = polars.Series("city", ["first", "y", "x"] * 9, dtype=polars.Categorical)
    made = smalldb.release(polars.DataFrame([column]), schema=schema, epsilon=9, rows=3)
    assert made.data["city"].dtype == polars.String
