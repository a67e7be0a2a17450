"""What people are shown has no hidden signs, at every door; what a spreadsheet would run can be guarded."""

import unicodedata

import pandas as pd
import pytest
from calling import called

import smalldb
from smalldb.reporting import visible
from smalldb.reporting.page import About, page
from smalldb.reporting.plots_base import short
from smalldb.schema import parse_schema
from smalldb.schema.table_writers import guarded, written

HOSTILE = "a\x1b]0;x\x07\u202eb\u2066\x9b1m\u200b\u2028c"
SCHEMA = r"""
[columns."a\u001b]0;x\u202eb"]
kind = "categories"
values = ["=cmd|' /C calc'!A0", "+1", "-x\u009b31m", "@sum", "-5"]
[columns.b]
kind = "bool"
"""


def hidden(text):
    return {sign for sign in text if unicodedata.category(sign) in ("Cc", "Cf", "Cs")} - {*"\n\t"}


def test_hidden_signs_are_seen_and_words_stay_words():
    assert visible(HOSTILE) == r"a\x1b]0;x\x07\u202eb\u2066\x9b1m\u200b\u2028c"
    for plain in ("naïve 日本 שלום", "क\u094dष", "👩\u200d👧", "tab | bar \\ '\""):
        assert visible(plain) == plain
    assert visible("a\nb\tc\r", "\n\t") == "a\nb\tc\\r" and visible("\n\udcff") == r"\n\udcff"
    assert not hidden(short(HOSTILE))


def test_no_door_shows_hidden_signs(workdir, capfd):
    (workdir / "s.toml").write_text(SCHEMA)
    name = parse_schema(SCHEMA).names[0]
    (workdir / "d.csv").write_text(f"{name},b\n" + "@sum,0\n-5,1\n" * 30)
    (workdir / "odd.csv").write_text(f"{name}\x07\x1b,b\n1,0\n")
    common = ["--schema", "s.toml"]
    release = [
        *common,
        *"--epsilon 1 --even-if-empty --rows 2 --seed 1 --report r.html --title".split(),
        HOSTILE,
    ]
    plan = ["plan", "--n", "9", "--epsilon", "1"]
    for arguments, code in (
        (["schema", "show", "s.toml"], 0),
        (["schema", "check", "d.csv", *common], 0),
        (["generate", "d.csv", *release, "-o", "out.jsonl"], 0),
        (["evaluate", "d.csv", "d.csv", *common], 0),
        ([*plan, *common], 0),
        ([*plan, "--attributes", f"a,{HOSTILE}", "--queries", f"predicates:`{HOSTILE}`"], 0),
        (["schema", "check", f"{HOSTILE}.csv", *common], 2),
        (["schema", "check", "odd.csv", *common], 2),
        (["generate", f"--{HOSTILE}"], 2),
        (["evaluate", "d.csv", "d.csv", *common, "--queries", HOSTILE], 2),
    ):
        found, out, err = called(capfd, *arguments)
        assert (found, hidden(out), hidden(err)) == (code, set(), set()), arguments
        assert err.count("\n") <= 20
    assert not hidden((workdir / "r.html").read_text())
    made = smalldb.release(pd.read_csv("d.csv"), schema=SCHEMA, epsilon=1, rows=2, rng=1)
    assert not hidden(page(made, about=About(title=HOSTILE)))
    assert not hidden(made._repr_html_())


def test_what_a_spreadsheet_runs_is_guarded_and_other_texts_stay():
    for text in ("=1+1", "+x", "-x", "@a", "\tx", "\r=1", "-1+cmd|' /C calc'!A0", "+1(2)"):
        assert guarded(text) == f"'{text}"
    for text in ("", "a=1", "-5", "+5.25", "-1e-9", "-1,234.5", "1-2", "'=1", "x@y"):
        assert guarded(text) == text


@pytest.mark.slow
def test_a_release_can_be_safe_for_spreadsheets(workdir, capfd):
    (workdir / "s.toml").write_text(SCHEMA.replace("a\\u001b]0;x\\u202eb", "=a").replace("\\u009b", ""))
    (workdir / "d.csv").write_text("=a,b\n" + "@sum,0\n-5,1\n+1,1\n" * 30)
    release = ["d.csv", "--schema", "s.toml", "--epsilon", "9", "--rows", "40", "--seed", "1", "--quiet"]
    _, plain, _ = called(capfd, "generate", *release)
    _, safe, _ = called(capfd, "generate", *release, "--spreadsheet-safe")
    first, *rows = plain.splitlines()
    assert first == "=a,b" and {"@sum", "-5", "+1"} & {row.split(",")[0] for row in rows}
    assert safe.splitlines() == [
        "'=a,b",
        *(guarded(row.split(",")[0]) + row[row.index(",") :] for row in rows),
    ]
    frame = pd.DataFrame(
        {"-n": [-1, 2], "c": pd.Categorical(["=x", None]), "s": pd.array(["@", "y"], dtype="str")}
    )
    assert written(frame, "csv", guard=True).decode().splitlines() == ["'-n,c,s", "-1,'=x,'@", "2,,y"]
    assert written(frame, "csv").decode().splitlines() == ["-n,c,s", "-1,=x,@", "2,,y"]
