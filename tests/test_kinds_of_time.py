"""Bins of the calendar, weekdays, durations and times beyond midnight; fresh numbers for ids."""

import json
from dataclasses import replace
from datetime import date, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from calling import called

import smalldb
from smalldb.schema import Dates, Times, Weekdays, parse_schema
from smalldb.schema.drafting import draft, draft_schema
from smalldb.schema.fields import as_field
from smalldb.schema.kinds import dates
from smalldb.schema.table_readers import read_table, rehearse
from smalldb.schema.table_writers import FORMATS

NAMES = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


def unit_of(day, unit):
    """What a day shares with all others of its bin, by the definition."""
    return {
        "year": day.year,
        "quarter": (day.year, (day.month - 1) // 3),
        "month": (day.year, day.month),
        "week": tuple(day.isocalendar())[:2],
        "day": day,
    }[unit]


@pytest.mark.parametrize("unit", ["year", "quarter", "month", "week", "day"])
@pytest.mark.parametrize(
    ("low", "high"), [(2019, 2021), ("2020-02", "2020-05"), ("2020-12-30", "2021-02-02")]
)
def test_bins_of_the_calendar_are_its_units(unit, low, high):
    starts = {2019: date(2019, 1, 1), "2020-02": date(2020, 2, 1), "2020-12-30": date(2020, 12, 30)}
    ends = {2021: date(2021, 12, 31), "2020-05": date(2020, 5, 31), "2021-02-02": date(2021, 2, 2)}
    first, last = starts[low], ends[high]
    days = [first + timedelta(days=i) for i in range((last - first).days + 1)]
    units = [*dict.fromkeys(unit_of(day, unit) for day in days)]
    if len(units) < 2:
        with pytest.raises(ValueError, match="cuts must be"):
            Dates.of_bins(unit, low, high)
        return
    kind = Dates.of_bins(unit, low, high)
    assert kind.size == len(units)
    assert [kind.code(day.isoformat()) for day in days] == [units.index(unit_of(day, unit)) for day in days]


def test_bins_of_the_calendar_in_a_schema():
    schema = parse_schema('columns.at = { kind = "dates", range = [2020, 2021], bins = "quarter" }')
    assert schema.domain.columns[0].labels[:2] == ("at<2020-04", "2020-04<=at<2020-07")
    assert schema.domain.sizes == (8,)
    for bins, said in (('"decade"', "one of year, quarter, month, week, day"), ("true", "bins must be")):
        with pytest.raises(ValueError, match=said):
            parse_schema(f'columns.at = {{ kind = "dates", range = [2020, 2021], bins = {bins} }}')
    with pytest.raises(ValueError, match="bins must be a whole number"):
        parse_schema('columns.at = { kind = "cuts", range = [2020, 2021], bins = "week" }')
    with pytest.raises(ValueError, match="cuts must be"):
        Dates.of_bins("day", 1, 9999)
    midday = Dates.of_bins("day", "2000-01-01T05:00", "2000-01-03T03:00")  # days begin at midnight
    assert midday.cuts == ("2000-01-02", "2000-01-03")


def test_weekdays_are_those_of_the_calendar(tmp_path):
    days = [date(2019, 12, 25) + timedelta(days=i) for i in range(400)]
    kind = Weekdays()
    assert [kind.code(day.isoformat()) for day in days] == [day.weekday() for day in days]
    assert [NAMES[kind.code(name)] for name in NAMES] == NAMES
    assert kind.code("2020-01-06T23:30:00+02:00") == 0
    assert [kind.code(text) for text in ("monday", "2020-13-01", "", "6")] == [None] * 4
    form = Weekdays("%d.%m.%Y")
    assert [form.code(day.strftime("%d.%m.%Y")) for day in days] == [day.weekday() for day in days]
    schema = parse_schema('columns.at = { kind = "weekdays", missing = true }')
    frame = pd.DataFrame({"at": pd.to_datetime([*days, None])})
    rows = schema.encode(frame)
    assert rows.histogram().tolist() == [*np.bincount([day.weekday() for day in days]), 1]
    made = smalldb.generate(frame, schema=schema, epsilon=1, rng=1)
    assert {*made["at"].dropna()} == {*NAMES}
    for form in ("%d.%m", "%H:%M", "%y%y", "no date"):
        with pytest.raises(ValueError, match="format"):
            parse_schema(f'columns.at = {{ kind = "weekdays", format = "{form}" }}')


@pytest.mark.parametrize("high", ["29:59", "120:00:30"])
def test_times_beyond_midnight_and_durations(high):
    kind = (
        Times.of_bins(5, "00:00", high) if ":30" not in high else Times(["24:00", "99:00:01"], "00:00", high)
    )
    found = Times(["24:00"], "00:00", "36:00")
    codes = {"23:59:59": 0, "24:00": 1, "1:00": 0, "35:59:00.5": 1, "300:00": 1}
    assert {text: found.code(text) for text in codes} == codes
    assert found.side("36:01") == 1 and found.side("36:00") == 0
    assert [Times(["12:00"]).code(text) for text in ("24:00", "25:10", "23:59")] == [None, None, 1]
    for code in range(kind.size):
        for step in kind.steps(code):
            assert kind.code(kind.at(step)) == code
    with pytest.raises(ValueError, match="range must begin"):
        Times(["25:00"])


DURATIONS = [
    (timedelta(hours=36), "36:00:00"),
    (timedelta(minutes=5, microseconds=250_000), "00:05:00.25"),
    (pd.Timedelta("1 days 02:30:00"), "26:30:00"),
    (np.timedelta64(90, "m"), "01:30:00"),
    (timedelta(0), "00:00:00"),
    (-timedelta(hours=1), "-01:00:00"),
]


@pytest.mark.parametrize(("value", "text"), DURATIONS)
def test_a_duration_has_one_text_in_every_column(value, text):
    assert as_field(value) == text
    schema = parse_schema(
        'columns.t = { kind = "times", range = ["00:00", "48:00"], bins = 6, missing = true, '
        'unknown = "missing" }'
    )
    columns = [pd.Series([value, None]), pd.Series([value, None], dtype=object), pd.Series([text, ""])]
    codes, gaps = zip(*(schema.columns[0].codes(column).tolist() for column in columns), strict=True)
    assert len({*codes}) == 1 and (codes[0] == 6) == text.startswith("-") and {*gaps} == {6}


IDS = """
columns.person = { kind = "id" }
columns.a = { kind = "bool" }
columns.key = { kind = "id", dtype = "str" }
"""


@pytest.mark.parametrize("middle", [False, True])
def test_ids_are_fresh_numbers_and_nothing_of_the_data(middle):
    schema = parse_schema(IDS)
    one = pd.DataFrame({"person": range(900, 940), "a": [True, False] * 20, "key": "x"})
    made = smalldb.generate(one, schema=schema, epsilon=1, rng=5, middle=middle)
    assert [*made.columns] == ["person", "a", "key"]
    assert made["person"].tolist() == [*range(1, 41)] and made["person"].dtype == np.int64
    assert made["key"].tolist() == [str(i) for i in range(1, 41)]
    other = one.assign(person=one["person"].iloc[::-1].to_numpy(), key=[object() for _ in range(40)])
    assert smalldb.generate(other, schema=schema, epsilon=1, rng=5, middle=middle).equals(made)
    without = smalldb.generate(one[["a"]], schema=schema, epsilon=1, rng=5, middle=middle)
    assert [*without.columns] == ["a", "person", "key"]
    assert schema.domain.attributes == ("a",)


def test_ids_in_files_and_commands(tmp_path, capfd):
    table, text, out = tmp_path / "t.csv", tmp_path / "s.toml", tmp_path / "out.csv"
    table.write_text("key,a,person\n" + "x,1,7\ny,0,8\n" * 20)
    text.write_text(IDS)
    given = ["generate", table, "--schema", text, "--epsilon", 1, "--quiet"]
    assert called(capfd, *given, "-o", out, "--report", tmp_path / "page.html")[0] == 0
    assert out.read_text().splitlines()[:2][0] == "key,a,person"
    assert out.read_text().splitlines()[2].startswith("2,") and out.read_text().splitlines()[2].endswith(",2")
    assert called(capfd, "evaluate", table, out, "--schema", text)[0] == 0
    assert "the table fits" in called(capfd, "schema", "check", table, "--schema", text)[1]
    assert "person  fresh numbers" in called(capfd, "schema", "show", text)[1]
    assert read_table(str(out), parse_schema(IDS)).n == 40


@pytest.mark.parametrize("form", FORMATS)
def test_ids_are_written_in_every_format(form):
    if form in ("parquet", "arrow"):
        pytest.importorskip("pyarrow")
    assert rehearse(parse_schema(IDS), form) > 10


def test_what_an_id_has_not_is_refused():
    with pytest.raises(ValueError, match="unknown key 'missing'"):
        parse_schema('columns.a = { kind = "bool" }\ncolumns.b = { kind = "id", missing = true }')
    with pytest.raises(ValueError, match="dtype 'int8' cannot hold"):
        parse_schema('columns.a = { kind = "bool" }\ncolumns.b = { kind = "id", dtype = "int8" }')
    with pytest.raises(ValueError, match="at least one column"):
        parse_schema('columns.b = { kind = "id" }')
    with pytest.raises(ValueError, match=r"occurs more than once|no column 'b'|valid"):
        parse_schema('valid = ["b >= a"]\ncolumns.a = { kind = "bool" }\ncolumns.b = { kind = "id" }')


@pytest.mark.parametrize("name", ["id", "ID", "person_id", "patientId", "user-id", "uuid", "hospital id"])
def test_ids_are_proposed_to_be_ignored_by_name(name):
    for text in (draft_schema({name: "int64", "age": "int64"}), draft(pd.DataFrame({name: [1], "age": [2]}))):
        assert f'ignore = ["{name}"]' in text and text.count("[columns.") == 1
    others = ["paid", "covid", "Id of nobody", "idle", "width", "grid", "identity"]
    assert "ignore = []" in draft_schema(others)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cuts", "high", "ahead"),
    [
        ([2020], 2026, False),
        ([2020], 2029, False),
        ([2020], "2026-06", False),
        ([2020], "2026-12-31", True),
        ([2020, "2026-09"], 2026, True),
        ([2020], 2025, False),
    ],
)
@pytest.mark.parametrize("more", ["", "finer = 8", "order"])
def test_no_date_is_ahead_of_today_unless_the_schema_says_so(monkeypatch, cuts, high, ahead, more):
    """Whether drawn by the shape of bins, by finer bins, or as an order leaves it; all bins are filled."""
    today = pd.Timestamp("2026-06-15")
    monkeypatch.setattr(dates, "now", lambda: datetime(2026, 6, 15, 12))
    told = f'kind = "dates"\ncuts = {json.dumps(cuts)}\nrange = [2000, {json.dumps(high)}]\n'
    text = f"[columns.a]\n{told}{more if more != 'order' else ''}\n"
    if more == "order":
        text = f'valid = "a <= b"\n{text}[columns.b]\n{told}'
    schema = parse_schema(text)
    if more == "finer = 8":
        finer = schema.columns[0].finer.released([100] * sum(schema.columns[0].finer.parts), 1.0)
        schema = replace(schema, columns=(replace(schema.columns[0], finer=finer),))
    codes = np.repeat(np.arange(len(cuts) + 1), 4000)[:, None].repeat(len(schema.columns), axis=1)
    made = schema.decode(codes, rng=4)
    assert (made.max() > today).any() == ahead
    for name in made:
        again = schema.columns[schema.names.index(name)].codes(made[name])
        assert (again == codes[:, 0]).all()
        assert made[name].max() > pd.Timestamp("2025-06-01")
