"""Rows of data that break a rule: refused, with gaps in place of fields, or left out."""

import json

import numpy as np
import pandas as pd
import pytest
from calling import called

import smalldb
from queries import DataError
from smalldb.schema.checking import check_table
from smalldb.schema.reading import read_schema

ORDER, SMOKERS = "hits <= at_bats", "~smoker | age>=18"
SCHEMA = """
valid = ["hits <= at_bats", "~smoker | age>=18"]
{breaks}
[columns.hits]
kind = "cuts"
cuts = [2, 4]
range = [0, 9]
missing = true
[columns.at_bats]
kind = "cuts"
cuts = [4, 8]
range = [0, 20]
[columns.age]
kind = "cuts"
cuts = [18, 65]
range = [0, 99]
[columns.smoker]
kind = "bool"
missing = true
"""
# the second row breaks both rules, the third the first one, also within a bin; the fourth the second
FRAME = pd.DataFrame(
    {
        "hits": [1, 3, 3, 0, 8],
        "at_bats": [5, 1, 2, 2, 9],
        "age": [20, 10, 30, 12, 70],
        "smoker": [True, True, False, True, False],
    }
)
BOTH = 'breaks = "missing"'


def schema_with(breaks):
    return read_schema(SCHEMA.format(breaks=breaks))


def mended(schema, frame):
    (piece,) = schema.mended(schema.pieces(frame))
    return [["" if pd.isna(value) else str(value) for value in column] for column in piece[0]]


def test_rows_get_gaps_are_left_out_or_refused_as_the_schema_says():
    hits, at_bats, age, smoker = mended(schema_with(BOTH), FRAME)  # gaps where there can be some, alone
    assert hits == ["1", "", "", "0", "8"]
    assert smoker == ["True", "", "False", "", "False"]
    assert (at_bats, age) == (["5", "1", "2", "2", "9"], ["20", "10", "30", "12", "70"])
    assert mended(schema_with('breaks = "drop"'), FRAME)[0] == ["1", "8"]
    assert schema_with('breaks = "drop"').encode(FRAME.assign(times=[2, 3, 4, 5, 6]), "times").n == 8
    some = f'breaks = {{ "{ORDER}" = "missing", "{SMOKERS}" = "drop" }}'
    assert mended(schema_with(some), FRAME)[0] == ["1", "", "8"]
    for breaks, rule in ((f'breaks = {{ "{ORDER}" = "missing" }}', "rule 2"), ("", "rule 1")):
        with pytest.raises(DataError, match=rf'{rule}.*breaks = "missing"'):
            schema_with(breaks).encode(FRAME)


@pytest.mark.parametrize("how", ["missing", "drop"])
def test_each_row_is_mended_by_itself(how):
    """One more row of data adds its own mended row or nothing, whatever the others are."""
    schema, rng = schema_with(f'breaks = "{how}"'), np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "hits": rng.integers(0, 10, 300),
            "at_bats": rng.integers(0, 21, 300),
            "age": rng.integers(0, 100, 300),
            "smoker": rng.integers(0, 2, 300).astype(bool),
        }
    )
    together = pd.DataFrame(zip(*mended(schema, frame), strict=True))
    alone = [mended(schema, frame[i : i + 1]) for i in range(len(frame))]
    apart = pd.DataFrame([row for one in alone for row in zip(*one, strict=True)])
    assert together.to_numpy().tolist() == apart.to_numpy().tolist()
    assert (how == "drop") == (len(together) < len(frame))
    assert schema.encode(frame).n == len(together)


def test_what_a_mended_row_breaks_in_turn_is_mended_too():
    texts = """
    valid = ["a <= b"]
    breaks = "missing"
    columns.a = { kind = "integers", range = [0, 3], missing = true, missing_with = "c" }
    columns.b = { kind = "integers", range = [0, 3] }
    columns.c = { kind = "integers", range = [0, 3], missing = true }
    """
    schema = read_schema(texts)
    assert mended(schema, pd.DataFrame({"a": [3, 1], "b": [2, 2], "c": [1, 1]})) == [
        ["", "1"],
        ["2", "2"],
        ["", "1"],
    ]


LEARNED = '[columns.x]\nkind = "cuts"\ncuts = "learn"\nbins = 3\nrange = [0, 9]\nshare = "1/20"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SCHEMA.format(breaks='breaks = "x"'), 'breaks must be "missing" or "drop"'),
        (SCHEMA.format(breaks='breaks = { "no" = "drop" }'), "'no' is not a rule of the schema"),
        (SCHEMA.format(breaks="breaks = 3"), 'breaks must be "missing" or "drop", or a table'),
        (
            SCHEMA.format(breaks=BOTH).replace("~smoker | age", "smoker & age"),
            "a row with gaps can break the rule 'smoker & age>=18'",
        ),
        ('breaks = "drop"\ncolumns.a = { kind = "bool" }', "the schema has no rule"),
        (SCHEMA.format(breaks=f"{BOTH}\n{LEARNED}"), "breaks does not go with learned categories"),
    ],
)
def test_what_is_wrong_is_told(text, said):
    with pytest.raises(ValueError, match=said):
        read_schema(text)


def test_rows_are_left_out_under_add_remove_alone():
    schema = schema_with('breaks = "drop"')
    with pytest.raises(ValueError, match='"drop" makes the number of rows private'):
        smalldb.release(FRAME, schema=schema, epsilon=1)
    made = smalldb.release(FRAME, schema=schema, epsilon=1, neighbours="add-remove", n_max=9, rng=1)
    assert not (made.data["hits"] > made.data["at_bats"]).any()


def test_a_release_counts_numbers_that_became_gaps_nowhere():
    """At an epsilon that leaves no noise, offsets and counts are those of the mended table."""
    frame = pd.concat([FRAME] * 100, ignore_index=True)
    schema = schema_with(BOTH)
    made = smalldb.release(frame, schema=schema, epsilon=10**6, rng=1)
    assert made.data["hits"].isna().sum() == 200
    answer = smalldb.inference.ask(made.measurements, "mean(hits)")
    assert answer.estimate == pytest.approx((1 + 0 + 8) / 3, abs=0.01)


def test_schema_check_counts_them_and_says_what_becomes_of_them(tmp_path, capfd):
    (tmp_path / "s.toml").write_text(schema_text := SCHEMA.format(breaks=BOTH))
    FRAME.to_csv(tmp_path / "d.csv", index=False)
    check = ("schema", "check", tmp_path / "d.csv", "--schema", tmp_path / "s.toml")
    code, out, _ = called(capfd, *check)
    assert code == 0
    assert f"rule 1, '{ORDER}': 2 rows, which become gaps" in out
    assert "the table fits" in out
    told = json.loads(called(capfd, *check, "--json")[1])
    assert (told["ruled_out"], told["refused"], told["fits"]) == (3, 0, True)
    schema = read_schema(schema_text.replace(BOTH, f'breaks = {{ "{ORDER}" = "missing" }}'))
    check = check_table(schema, schema.pieces(FRAME))
    assert (check.ruled_out, check.refused, check.fits) == (3, 2, False)
