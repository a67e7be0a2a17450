"""The page for curators without a browser: its forms, its commands, its folder, and who may ask for it."""

import asyncio
import re
import shlex
import subprocess
import sys
import time

import pytest

pytest.importorskip("shiny")

from smalldb.app import layout, workplace
from smalldb.app.column_forms import LEFT_OUT, Place, changed, columns_of, keys_of, row, shown
from smalldb.app.serving import HEADERS, RELEASED, Guard
from smalldb.app.workplace import (
    COMMAND,
    FINISHED,
    LOG,
    PAGE,
    RECORD,
    SEVERAL,
    UNFINISHED,
    Workplace,
    call,
    command_line,
)
from smalldb.cli import parser
from smalldb.schema import draft_schema, read_schema
from smalldb.schema.answers import answered
from smalldb.schema.column_parsing import SHARED
from smalldb.schema.kinds import SPECS
from smalldb.schema.parsing import toml_of

HOST, TOKEN = "127.0.0.1:8123", "0123456789abcdef0123456789abcdef"
AGE = Place("", "age")


def asked_of(guard_inner, kind="http", path=f"/{TOKEN}/", **headers):
    """What the guard sends for a request with these headers."""
    sent = []

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append(message)

    given = {"host": HOST} | {name.replace("_", "-"): value for name, value in headers.items()}
    pairs = [(name.encode(), value.encode()) for name, value in given.items() if value is not None]
    scope = {"type": kind, "path": path, "headers": pairs}
    asyncio.run(Guard(guard_inner, HOST, TOKEN)(scope, receive, send))
    return sent


async def inner(scope, receive, send):
    start = "http.response.start" if scope["type"] == "http" else "websocket.accept"
    await send({"type": start, "status": 200, "headers": [(b"Cache-Control", b"public")]})


def test_the_page_is_served_to_its_own_address_with_headers_that_let_nothing_out():
    (start,) = asked_of(inner)
    assert start["status"] == 200
    assert dict(start["headers"]) == HEADERS  # the inner one of the same name is replaced
    assert asked_of(inner, "websocket", origin=f"http://{HOST}")[0]["type"] == "websocket.accept"
    assert b"default-src 'self'" in HEADERS[b"content-security-policy"]


def test_what_was_released_is_served_in_a_sandbox_whatever_policy_it_came_with():
    async def evil(scope, receive, send):
        headers = [(b"Content-Security-Policy", b"default-src *")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})

    (start,) = asked_of(evil, path=f"/{TOKEN}/{RELEASED}/r1/report.html")
    names = [name.lower() for name, _ in start["headers"]]
    assert names.count(b"content-security-policy") == 1
    policy = dict(start["headers"])[b"content-security-policy"].split(b"; ")
    assert {b"default-src 'none'", b"sandbox"} <= {*policy}
    (start,) = asked_of(evil, path=f"/{TOKEN}/other/{RELEASED}/r1/report.html")
    assert dict(start["headers"]) == HEADERS


@pytest.mark.parametrize(
    "given",
    [
        {"host": "evil.example:8123"},  # a name that was bound to 127.0.0.1 (DNS rebinding)
        {"host": "localhost:8123"},
        {"host": "127.0.0.1:80"},
        {"host": None},
        {"path": "/"},
        {"path": f"/{TOKEN[:-1]}0/"},
        {"path": f"//{TOKEN}/"},
        {"path": "/é/"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": f"https://{HOST}"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_other_hosts_origins_and_paths_are_refused(given, kind):
    own = {"origin": f"http://{HOST}"} if kind == "websocket" else {}
    sent = asked_of(inner, kind, **own | given)
    assert (
        sent[0].get("status") == 403
        if kind == "http"
        else sent == [{"type": "websocket.close", "code": 1008}]
    )


def test_a_websocket_without_an_origin_is_refused():
    assert asked_of(inner, "websocket")[0]["type"] == "websocket.close"


ANSWERS = [
    ("cuts", "cuts", "18, 65", "cuts", [18, 65]),
    ("cuts", "cuts", "bins 10", "bins", 10),
    ("cuts", "cuts", "learn", "cuts", "learn"),
    ("cuts", "decimals", "two", "decimals", "two"),
    ("cuts", "share", "1/20", "share", "1/20"),
    ("integers", "range", "0, 9", "range", [0, 9]),
    ("dates", "cuts", "1990, 1990-07", "cuts", ["1990", "1990-07"]),
    ("dates", "bins", "quarter", "bins", "quarter"),
    ("times", "cuts", "06:00, 18:00", "cuts", ["06:00", "18:00"]),
    ("categories", "values", "north, south", "values", ["north", "south"]),
    ("categories", "values", '["a, b", "c"]', "values", ["a, b", "c"]),
    ("categories", "values", "1, 2", "values", [1, 2]),
    ("categories", "groups", '{ west = ["Bath"] }', "groups", {"west": ["Bath"]}),
    ("bool", "missing", "yes", "missing", True),
    ("bool", "missing", "99, NA", "missing", ["99", "NA"]),
    ("bool", "description", "[sic]", "description", "[sic]"),
    ("", "valid", "a & b\n~(c | d)", "valid", ["a & b", "~(c | d)"]),
    ("", "rows_per_person", "3", "rows_per_person", 3),
    ("", "rows_per_person", "many", "rows_per_person", "many"),
    ("", "fixed", "sex, born", "fixed", ["sex", "born"]),
]


@pytest.mark.parametrize(("kind", "key", "answer", "other", "value"), ANSWERS)
def test_answers_are_the_values_that_they_mean_and_are_shown_again_as_they_are_answered(
    kind, key, answer, other, value
):
    assert answered(kind, key, answer) == (other, value)
    sign = "\n" if key == "valid" else ", "
    assert answered(kind, other, shown(value, sign)) == (other, value)


def test_what_is_answered_goes_into_the_schema_and_into_its_own_column():
    text = draft_schema(["age", "sex"])
    text = changed(text, AGE, "kind", "cuts")
    text = changed(text, AGE, "cuts", "18, 65")
    text = changed(text, AGE, "range", "0, 110")
    text = changed(text, Place("", "sex"), "kind", "categories")
    text = changed(text, Place("", "sex"), "values", "f, m")
    text = changed(text, None, "rows_per_person", "1")
    schema = read_schema(text)
    assert (schema.names, schema.rows_per_person) == (("age", "sex"), 1)
    assert text.startswith("# A draft")  # its head stays
    text = changed(text, AGE, "cuts", "")
    assert "cuts" not in toml_of(text)["columns"]["age"]


def test_a_column_is_left_out_and_taken_back_and_another_kind_keeps_what_it_can_have():
    text = "".join(
        f'[columns.{name}]\nkind = "bool"\nmissing = true\ntrue = ["J"]\n' for name in ("age", "sex")
    )
    out = changed(text, AGE, "kind", LEFT_OUT)
    assert columns_of(toml_of(out)) == {
        Place("", "sex"): {"kind": "bool", "missing": True, "true": ["J"]},
        AGE: None,
    }
    assert columns_of(toml_of(changed(out, AGE, "kind", "bool")))[AGE] == {"kind": "bool"}
    other = columns_of(toml_of(changed(text, AGE, "kind", "categories")))
    assert [*other] == [AGE, Place("", "sex")]  # where it was
    assert other[AGE] == {"missing": True, "kind": "categories"}


def test_columns_of_related_tables_have_forms_too():
    text = 'unit = "h"\n[tables.h]\nkey = "id"\n[tables.h.columns.a]\nkind = ""\n[tables.p]\nparent = "h"\n'
    text = changed(text, Place("h", "a"), "kind", "bool")
    assert toml_of(text)["tables"] == {
        "h": {"key": "id", "ignore": [], "columns": {"a": {"kind": "bool"}}},
        "p": {"parent": "h"},
    }
    assert [*columns_of(toml_of(text))] == [Place("h", "a")]


@pytest.mark.parametrize("kind", SPECS)
def test_each_kind_has_a_field_for_each_of_its_keys(kind):
    html = str(row(3, AGE, {"kind": kind}))
    for key in {*SHARED, *SPECS[kind].keys}:
        assert html.count(f'id="field-3-{key}"') == html.count(f'id="fault-3-{key}"') == 1
    assert {*keys_of(kind)} == {*SHARED, *SPECS[kind].keys}


@pytest.mark.parametrize(
    "given", [{}, {"columns": 3}, {"columns": {"a": 3}}, {"tables": {"h": 3}}, {"ignore": "*"}]
)
def test_forms_are_made_of_whatever_toml_there_is(given):
    assert all(str(row(1, place, own)) for place, own in columns_of(given).items())


def test_names_cannot_bring_markup_into_the_page():
    evil = "<script>alert(1)</script>"
    assert "<script" not in str(row(1, Place("", evil), {"kind": "bool", "description": evil}))


def test_commands_and_calls_are_those_of_the_library():
    line = command_line(
        "plan", schema="s.toml", n=9, epsilon="1", target=["a", "b c"], delta="", calibrated=True
    )
    assert (
        shlex.join(line)
        == "smalldb plan --schema s.toml --n 9 --epsilon 1 --target a --target 'b c' --calibrated"
    )
    assert parser("plan").parse_args(line[1:]).target == ["a", "b c"]
    assert (
        call("plan", "'d'", schema="s.toml", n=9, delta=None, target=[]) == "plan('d', schema='s.toml', n=9)"
    )


@pytest.fixture
def work(tmp_path):
    for name in ("b.csv", "a.csv.gz", "c.parquet", ".hidden.csv", "-x.csv", "notes.txt", "old.ledger"):
        (tmp_path / name).write_text("x\n1\n")
    return Workplace(tmp_path)


def test_tables_are_known_by_their_names(work):
    assert work.files() == ["a.csv.gz", "b.csv", "c.parquet"]
    assert workplace.stem("a.csv.gz") == "a"


def begun(work, name, **files):
    home = work.folder / name
    home.mkdir()
    (home / COMMAND).write_text("smalldb generate b.csv --ledger old.ledger\n")
    for file, content in files.items():
        (home / file).write_text(content)
    return home


def downloaded(work, release, file):
    request = type("Request", (), {"path_params": {"release": release, "file": file}})
    return asyncio.run(work.download(request))


def got(work, release, file):
    return downloaded(work, release, file).status_code


def test_public_files_of_finished_releases_are_served_and_nothing_else(work):
    home = begun(work, "r1")
    (home / RECORD).write_text("{}")
    (home / LOG).write_text("said")
    begun(work, "r2")
    assert work.releases() == {"r1": FINISHED, "r2": UNFINISHED} and work.outputs("r2") == []

    assert got(work, "r1", RECORD) == 200
    for release, file in [
        ("r1", "../b.csv"),
        ("r1", COMMAND),
        ("r1", LOG),
        ("r2", COMMAND),
        ("..", "b.csv"),
        (".", "b.csv"),
    ]:
        assert got(work, release, file) == 404


def test_only_the_page_of_a_release_is_shown_and_all_else_is_saved(work):
    home = begun(work, "r1", **{RECORD: "{}", PAGE: "<p>"})
    (home / SEVERAL).mkdir()
    for name in (RECORD, PAGE, "p.csv"):
        (home / SEVERAL / name).write_text("")
    for file in work.outputs("r1"):
        kind = downloaded(work, "r1", file).headers["content-disposition"]
        assert kind.startswith("inline;" if file.endswith(PAGE) else "attachment;"), file


@pytest.mark.parametrize("name", ["", "..", "a/b", "-x", "a b", "x" * 65])
def test_names_of_releases_are_names_of_folders_here(work, name):
    with pytest.raises(ValueError, match="letters and digits"):
        work.begin(name, ["smalldb"], "")


def test_the_name_of_a_finished_release_is_not_taken_again(work):
    (begun(work, "r1") / RECORD).write_text("{}")
    with pytest.raises(ValueError, match="stands in this folder already"):
        work.begin("r1", ["smalldb", "--release-id", "r1"], "")


@pytest.mark.slow
def test_a_release_that_runs_is_not_begun_again_and_is_seen_by_whoever_looks(work, monkeypatch):
    code = "import sys; sys.stderr.write('said'); sys.stderr.flush(); open(sys.argv[1]).read()"
    waiting = [sys.executable, "-c", code]
    pipe = work.folder / "pipe"
    subprocess.run(["mkfifo", pipe], check=True)
    monkeypatch.setattr(workplace, "SMALLDB", waiting)
    work.begin("r1", ["smalldb", str(pipe)], "schema")
    assert Workplace(work.folder).releases()["r1"].startswith("running for ")
    for again in (lambda: work.go_on("r1"), lambda: work.begin("r1", ["smalldb"], "")):
        with pytest.raises(ValueError, match=r"is running|stands in this folder"):
            again()
    pipe.write_text("end")
    while work.releases()["r1"] != UNFINISHED:  # it ended, and left no record
        time.sleep(0.01)
    assert work.text("r1", LOG) == "said"


def test_a_table_that_a_command_printed_is_a_table_of_the_page():
    html = str(layout.table("|  | all | a\\|b |\n|---|---|---|\n| <b> | 1 (0 to 2) | 3% |\n\nlevel 0.95\n"))
    assert re.findall(r"<t[hd][^>]*>([^<]*)</t", html) == ["", "all", "a|b", "&lt;b&gt;", "1 (0 to 2)", "3%"]
    assert "level 0.95" in html and "---" not in html
