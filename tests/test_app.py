"""The page for curators without a browser: its forms, its commands, its folder, and who may ask for it."""

import ast
import asyncio
import json
import os
import re
import shlex
import struct
import subprocess
import sys
import time
from html import unescape
from pathlib import Path

import pandas as pd
import pytest

pytest.importorskip("shiny")

from shiny import reactive

from queries.expressions import Faults
from smalldb.app import layout, workplace
from smalldb.app.column_forms import row
from smalldb.app.serving import HEADERS, RELEASED, Guard, serve
from smalldb.app.steps import Steps, guarded
from smalldb.app.workplace import (
    COMMAND,
    FINISHED,
    LOG,
    MEASURED,
    PAGE,
    RECORD,
    SCHEMA,
    SEVERAL,
    TABLE,
    UNFINISHED,
    Workplace,
    call,
    command_line,
    options,
)
from smalldb.cli import main, parser
from smalldb.commands.input_files import named
from smalldb.releasing.record import written_record
from smalldb.schema import draft_schema, read_schema
from smalldb.schema.answers import LEFT_OUT, Place, answered, changed, columns_of, keys_of, shown
from smalldb.schema.column_parsing import SHARED
from smalldb.schema.kinds import SPECS
from smalldb.schema.parsing import toml_of
from smalldb.schema.reading import read_any
from smalldb.schema.related_schema import LINKS, MOST

EXAMPLES = Path(__file__).parent.parent / "examples"
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


def answering(*headers):
    """A server that answers whatever it is asked, with these headers."""

    async def inner(scope, receive, send):
        start = "http.response.start" if scope["type"] == "http" else "websocket.accept"
        await send({"type": start, "status": 200, "headers": [*headers]})

    return inner


inner = answering((b"Cache-Control", b"public"))


def test_the_page_is_served_to_its_own_address_with_headers_that_let_nothing_out():
    (start,) = asked_of(inner)
    assert start["status"] == 200
    assert dict(start["headers"]) == HEADERS  # the inner one of the same name is replaced
    assert asked_of(inner, "websocket", origin=f"http://{HOST}")[0]["type"] == "websocket.accept"
    assert asked_of(inner, "websocket")[0]["type"] == "websocket.close"  # it must have an origin
    assert b"default-src 'self'" in HEADERS[b"content-security-policy"]


def test_what_was_released_is_served_in_a_sandbox_whatever_policy_it_came_with():
    evil = answering((b"Content-Security-Policy", b"default-src *"))
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
    closed = [{"type": "websocket.close", "code": 1008}]
    assert sent[0].get("status") == 403 if kind == "http" else sent == closed


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
    assert [*columns_of(toml_of(text))] == [Place("h", ""), Place("h", "a"), Place("p", "")]


def test_keys_and_links_of_related_tables_have_forms_too():
    text = (EXAMPLES / "homes.toml").read_text(encoding="utf-8")
    homes, persons = Place("homes", ""), Place("persons", "")
    fields = {place: str(row(4, place, columns_of(toml_of(text))[place])) for place in (homes, persons)}
    shown = {place: re.findall('id="field-4-([a-z]+)"', html) for place, html in fields.items()}
    assert shown == {homes: ["key", "parent"], persons: [*LINKS]}
    assert 'value="person"' in fields[persons] and 'data-column=""' in fields[persons]
    text = changed(text, persons, "most", "4")
    text = changed(text, persons, "orphans", "drop")
    schema = read_any(f"{text}\n")
    assert (schema.most, schema.drop, schema.child_key) == (4, True, "person")
    assert read_any(changed(text, persons, "most", "")).most == MOST


@pytest.mark.parametrize(("key", "column", "value"), [("most", "", "many"), ("cuts", "age", "55, 25")])
def test_faults_of_related_tables_say_which_field_they_are_about(key, column, value):
    text = (EXAMPLES / "homes.toml").read_text(encoding="utf-8")
    text = changed(text, Place("persons", column), key, value)
    with pytest.raises(Faults) as caught:
        read_any(f"{text}\n")
    where = ("columns", column, key) if column else (key,)
    assert [fault.path for fault in caught.value.each] == [("tables", "persons", *where)]
    assert str(caught.value).startswith("table 'persons': ")


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
        == "smalldb plan --schema=s.toml --n=9 --epsilon=1 --target=a '--target=b c' --calibrated"
    )
    assert parser("plan").parse_args(line[1:]).target == ["a", "b c"]
    line = command_line("generate", "b.csv", epsilon="1", title="-x", citation="--seed=3", seed="-3")
    given = parser("generate").parse_args(line[1:])
    assert (given.title, given.citation, given.seed) == ("-x", "--seed=3", -3)
    assert options(line)["--title"] == "-x" and [*options(line)][-2:] == ["--citation", "--seed"]
    assert (
        call("plan", "'d'", schema="s.toml", n=9, delta=None, target=[]) == "plan('d', schema='s.toml', n=9)"
    )


class Chosen(dict):
    """Fields as they are filled in; empty, where they are not."""

    def __missing__(self, name):
        return lambda: ""

    def __getattr__(self, name):
        return self[name]


def chosen(work, **given):
    """The steps of a tab in which fields have values."""
    made = Steps(work, Chosen({name: (lambda own=own: own) for name, own in given.items()}), None)
    made.read = lambda: ({}, None, None)
    return made


def test_names_and_seeds_are_what_they_are_in_commands_and_in_python(work):
    evil = "1); import os; (b"
    steps = chosen(work, table="a=b.csv", second="p.csv", name="r", seed=evil, mechanism="auto", target=())
    assert steps._data() == ["a_b=a=b.csv", "p=p.csv"]
    named(steps._data())  # as the command reads them
    html = unescape(str(steps._same_release()))
    command, python = re.findall(r"<pre>(.*?)</pre>", html, re.S)
    assert options(shlex.split(command))["--seed"] == evil
    (_, call) = ast.parse(python).body
    given = {each.arg: ast.literal_eval(each.value) for each in call.value.keywords}
    assert given["seed"] == evil
    assert ast.literal_eval(call.value.args[0]) == {"a_b": "a=b.csv", "p": "p.csv"}
    assert chosen(work, table="=o.csv", second="p.csv")._data()[0] == "_o==o.csv"  # no option -o
    assert "read_columns('a=b.csv')" in unescape(str(steps._same_table()))


ERRORS = [OSError("gone"), TypeError("odd"), KeyError("h"), ValueError("wrong"), RecursionError("deep")]


@pytest.mark.parametrize("second", ["", "p.csv"])
@pytest.mark.parametrize("step", ["table", "columns", "budget", "release", "ask"])
def test_what_the_python_of_a_step_imports_is_there(work, step, second):
    html = str(getattr(chosen(work, table="b.csv", second=second, target=()), f"_same_{step}")())
    _, python = re.findall(r"<pre>(.*?)</pre>", unescape(html), re.S)
    imports = [each for each in ast.parse(python).body if isinstance(each, ast.Import | ast.ImportFrom)]
    assert imports
    exec("\n".join(map(ast.unparse, imports)), {})


@pytest.mark.parametrize("error", [*ERRORS, MemoryError()])
def test_a_fault_is_told_where_it_would_end_the_session(error):
    def failing():
        raise error

    async def failing_later():
        raise error

    told = []
    for do in (failing, failing_later):
        assert "alert" in str(asyncio.run(guarded(do)()))
        asyncio.run(guarded(do, told.append)())
    assert len(told) == 2
    with pytest.raises(ZeroDivisionError):  # a defect is none
        asyncio.run(guarded(lambda: 1 / 0)())


@pytest.fixture
def work(tmp_path):
    for name in ("b.csv", "a.csv.gz", "c.parquet", ".hidden.csv", "-x.csv", "notes.txt", "old.ledger"):
        (tmp_path / name).write_text("x\n1\n")
    return Workplace(tmp_path)


def test_tables_are_known_by_their_names(work):
    (work.folder / "b\udce4.csv").write_text("a\n")  # no text
    assert work.files() == ["a.csv.gz", "b.csv", "c.parquet"]
    assert workplace.stem("a.csv.gz") == "a"


def written(release, **more):
    """A command as the page writes it for a release."""
    files = {"schema": SCHEMA, "record": RECORD, "report": PAGE, "output": TABLE}
    places = {name: f"{release}/{file}" for name, file in files.items()}
    given = {"epsilon": "1", "ledger": "old.ledger", "release_id": release} | places | more
    return command_line("generate", "b.csv", **given)


def begun(work, name, **files):
    home = work.folder / name
    home.mkdir()
    (home / COMMAND).write_text(shlex.join(written(name)) + "\n")
    for file, content in files.items():
        (home / file).write_text(content)
    return home


def downloaded(work, release, file):
    """Status, content disposition and body of what is sent for a file of a release."""
    request = type("Request", (), {"path_params": {"release": release, "file": file}})
    sent = []

    async def send(message):
        sent.append(message)

    async def serve():
        response = await work.download(request)
        scope = {"type": "http", "method": "GET", "headers": [], "asgi": {"spec_version": "2.4"}}
        await response(scope, None, send)

    asyncio.run(serve())
    disposition = dict(sent[0]["headers"]).get(b"content-disposition", b"").decode()
    return sent[0]["status"], disposition, b"".join(part["body"] for part in sent[1:])


def got(work, release, file):
    return downloaded(work, release, file)[0]


def test_public_files_of_finished_releases_are_served_and_nothing_else(work):
    begun(work, "r1", **{RECORD: "{}", TABLE: "x", LOG: "said", ".hidden.csv": "", "notes.txt": ""})
    begun(work, "r2", **{RECORD: "{}"})  # killed before its table was there, which comes last
    assert work.releases() == {"r1": FINISHED, "r2": UNFINISHED} and work.outputs("r2") == []
    assert work.outputs("r1") == [RECORD, TABLE]

    assert got(work, "r1", RECORD) == 200
    for release, file in [
        ("r1", "../b.csv"),
        ("r1", COMMAND),
        ("r1", LOG),
        ("r1", ".hidden.csv"),
        ("r1", "notes.txt"),
        ("r1", f"./{RECORD}"),
        ("r2", COMMAND),
        ("..", "b.csv"),
        (".", "b.csv"),
    ]:
        assert got(work, release, file) == 404


def test_only_the_page_of_a_release_is_shown_and_all_else_is_saved(work):
    home = begun(work, "r1", **{RECORD: "{}", PAGE: "<p>"})
    (home / SEVERAL).mkdir()
    for name in (RECORD, PAGE, "p.csv", "p.html", ".q.csv"):
        (home / SEVERAL / name).write_text("")
    several = [f"{SEVERAL}/{name}" for name in (RECORD, PAGE, "p.csv")]
    assert work.outputs("r1") == [RECORD, PAGE, *several]
    for file in work.outputs("r1"):
        _, kind, body = downloaded(work, "r1", file)
        assert body == (home / file).read_bytes()
        assert kind.startswith("inline;" if file.endswith(PAGE) else "attachment;"), file


@pytest.mark.parametrize("linked", [PAGE, "log", "command", f"{SEVERAL}/t.csv", SEVERAL, "."])
def test_links_lead_nowhere(work, linked, tmp_path_factory):
    """Neither to what is shown and saved, nor to what a command would write over."""
    outside = tmp_path_factory.mktemp("outside")
    secret = outside / "secret"
    home = begun(work, "r1", **{RECORD: "{}", LOG: "said"})
    (home / SEVERAL).mkdir()
    (home / SEVERAL / RECORD).write_text("{}")
    place = home / linked
    if place.is_dir():
        place.rename(outside / "moved")
        place.symlink_to(outside / "moved")
    else:
        place.unlink(missing_ok=True)
        secret.write_text(f"{shlex.join(written('r1'))} secret")
        place.symlink_to(secret)
    served = [file for file in work.outputs("r1") if got(work, "r1", file) == 200]
    assert {*served} <= {RECORD, f"{SEVERAL}/{RECORD}"} and got(work, "r1", linked) == 404
    assert "secret" not in work.text("r1", LOG) + work.text("r1", COMMAND)
    (outside / "moved" / RECORD if linked == SEVERAL else home / SEVERAL / RECORD).unlink()
    before = secret.exists() and secret.read_text()
    for run in (lambda: work.go_on("r1"), lambda: work.begin("r1", written("r1"), "")):
        with pytest.raises((ValueError, OSError)):
            run()
    assert (secret.exists() and secret.read_text()) == before


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_a_schema_that_is_a_link_is_neither_shown_nor_written(work, tmp_path_factory, link):
    secret, place = tmp_path_factory.mktemp("outside") / "secret", work.folder / "b.toml"
    secret.write_text("secret")
    link(place, secret)
    steps = chosen(work, table="b.csv")
    with reactive.isolate():
        with pytest.raises(OSError, match=r"b\.toml|another name"):
            steps._taken("taken")
        if place.is_symlink():
            with pytest.raises(ValueError, match="is a link"):
                steps._keep("other", forms=False)
            assert secret.read_text() == "secret"
        place.unlink()
        steps._keep("other", forms=False)
        steps._taken("taken")
        assert steps.text() == "other"
    assert place.read_text() == "other"


def test_a_release_that_cannot_be_read_leaves_the_others_as_they_are(work, monkeypatch):
    begun(work, "r1", **{RECORD: "{}", TABLE: ""})
    damaged = begun(work, "r2", **{RECORD: "{}", TABLE: ""})
    (damaged / COMMAND).write_text(shlex.join(written("r2", ledger="b.csv")))
    (work.folder / f".b.csv.{'0' * 16}-0.unfinished").mkdir()
    begun(work, "r3")  # which vanishes after it was listed
    (work.folder / "r4").mkdir(mode=0)
    progress = Workplace._progress

    def vanishing(self, release):
        if release == "r3":
            raise FileNotFoundError(2, "No such file", release)
        return progress(self, release)

    monkeypatch.setattr(Workplace, "_progress", vanishing)
    found = work.releases()
    assert found.pop("r2").startswith("cannot be read: ") and "damaged, or no ledger" in work._state("r2")
    assert found.pop("r3").startswith("cannot be read: ") and found == {"r1": FINISHED}
    assert [work.outputs(name) for name in ("r1", "r2", "r3")] == [[RECORD, TABLE], [], []]


@pytest.mark.parametrize("file", [TABLE, LOG, COMMAND])
@pytest.mark.parametrize("kind", ["pipe", "device", "loop", "folder", "another name"])
def test_what_is_no_file_of_its_own_is_neither_read_nor_served(work, started, file, kind, tmp_path_factory):
    home = begun(work, "r1", **{RECORD: "{}", TABLE: "x", LOG: "said"})
    assert work.outputs("r1") == [RECORD, TABLE]
    other = tmp_path_factory.mktemp("outside") / "other"
    (home / file).replace(other)
    if kind == "pipe":
        os.mkfifo(home / file)
    elif kind == "folder":
        (home / file).mkdir()
    elif kind == "another name":  # elsewhere
        (home / file).hardlink_to(other)
    else:
        (home / file).symlink_to("/dev/zero" if kind == "device" else file)
    assert got(work, "r1", file) == 404 and work.text("r1", file) == ""
    assert work.releases() == ({} if file == COMMAND else {"r1": UNFINISHED if file == TABLE else FINISHED})
    assert TABLE not in work.outputs("r1") or file == LOG
    if file != TABLE or kind in ("device", "loop"):
        with pytest.raises((ValueError, OSError)):
            work.go_on("r1")
        assert started == []


def test_of_a_long_file_the_end_is_read(work):
    home = begun(work, "r1", **{LOG: f"{'x' * (1 << 20)} the end"})
    assert work.text("r1", LOG).endswith("the end") and len(work.text("r1", LOG)) < 1 << 17
    with (home / COMMAND).open("r+") as file:
        file.truncate(1 << 40)  # most of it is no bytes of the disk
    assert work.releases() == {"r1": UNFINISHED}


def test_a_link_that_comes_between_a_look_and_a_download_is_not_followed(work, monkeypatch):
    home = begun(work, "r1", **{RECORD: "{}", TABLE: "x"})
    (home / TABLE).unlink()
    (home / TABLE).symlink_to(work.folder / "b.csv")
    monkeypatch.setattr(Workplace, "outputs", lambda *_: [RECORD, TABLE])
    assert got(work, "r1", RECORD) == 200 and got(work, "r1", TABLE) == 404


@pytest.mark.parametrize("name", ["", "..", "a/b", "-x", "a b", "x" * 65])
def test_names_of_releases_are_names_of_folders_here(work, name):
    with pytest.raises(ValueError, match="letters and digits"):
        work.begin(name, ["smalldb"], "")


@pytest.fixture
def started(work, monkeypatch):
    """The commands that were started; none runs."""
    started = []
    monkeypatch.setattr(Workplace, "_start", lambda _, command, log: started.append(command))
    return started


OTHER = [
    ["sh", "-c", "evil"],
    ["smalldb", "ledger", "old.ledger"],
    written("r2"),
    written("r1", release_id="r2"),
    [word for word in written("r1") if "--release-id" not in word],
    written("r1", output="b.csv"),
    written("r1", output="r2/table.csv"),
    written("r1", output="r1/../b.csv"),
    written("r1", record="r1/.."),
    written("r1", report="/tmp/report.html"),
    written("r1", schema="other.toml"),
    written("r1", confidential=True),
    written("r1", checkpoint="r2"),
    written("r1", schema_out="r1/schema.toml"),
    [*written("r1"), "--output", "b.csv"],
    [*written("r1"), "-ob.csv"],
    [*written("r1"), "--"],
    [*written("r1"), "/etc/passwd"],
    [*written("r1"), "x=../b.csv"],
    [*written("r1"), "--start=/tmp/b.csv", "--start-is=public"],
    [*written("r1"), "postgresql://evil.example/x"],
]


@pytest.mark.parametrize("command", OTHER, ids=shlex.join)
def test_only_a_command_that_the_page_writes_is_gone_on_with(work, started, command):
    (begun(work, "r1") / COMMAND).write_text(shlex.join(command))
    with pytest.raises(ValueError, match="none of this page"):
        work.go_on("r1")
    (work.folder / "r1" / COMMAND).unlink()
    with pytest.raises(ValueError, match="none of this page"):
        work.begin("r1", command, "")
    assert started == []


LEDGERS = ["r1/x.ledger", "r2/x.ledger", "r2/deep/x.ledger", "link.ledger", "../x.ledger", "/tmp/x.ledger"]


@pytest.mark.parametrize("ledger", LEDGERS)
def test_a_ledger_stands_in_the_folder_and_in_none_of_a_release(work, started, ledger):
    begun(work, "r2")
    (work.folder / "link.ledger").symlink_to(work.folder / "r2" / "x.ledger")
    with pytest.raises(ValueError, match="of this folder, outside of the folders of releases"):
        work.begin("r1", written("r1", ledger=ledger), "")
    assert not (work.folder / "r1").exists()


@pytest.mark.parametrize("refine", ["/tmp/record.json", "../record.json", f"r2/{RECORD}", "b.csv"])
def test_what_is_refined_is_a_finished_release_of_the_folder(work, started, refine):
    begun(work, "r2", **{RECORD: "{}"})  # unfinished
    begun(work, "r3", **{RECORD: "{}", TABLE: ""})
    with pytest.raises(ValueError, match="a finished release of this folder"):
        work.begin("r1", written("r1", refine=refine), "")
    work.begin("r1", written("r1", refine=f"r3/{RECORD}"), "")
    assert len(started) == 1


def test_a_table_that_is_a_link_is_neither_offered_nor_released(work, started, tmp_path_factory):
    begun(work, "r1")
    table, elsewhere = work.folder / "b.csv", tmp_path_factory.mktemp("outside") / "b.csv"
    table.rename(elsewhere)
    table.symlink_to(elsewhere)
    assert "b.csv" not in work.files()
    for run in (lambda: work.go_on("r1"), lambda: work.begin("r2", written("r2"), "")):
        with pytest.raises(ValueError, match="none of this page"):
            run()
    assert started == []


@pytest.mark.parametrize("place", ["", "r1", f"r1/{COMMAND}", f"r1/{LOG}"])
@pytest.mark.parametrize("how", ["written by others", "owned by another"])
def test_nothing_is_run_that_others_could_have_written(work, started, monkeypatch, place, how):
    """The folder, that of a release, its command and its lock are the curator's own."""
    monkeypatch.chdir(work.folder)  # and back, when `serve` has gone there
    begun(work, "r1", **{LOG: ""})
    work.go_on("r1")
    assert len(started) == 1
    if how == "written by others":
        (work.folder / place).chmod(0o702 if place.partition("/")[2] == "" else 0o602)
    elif os.geteuid() == 0:
        os.chown(work.folder / place, 4711, -1)
    else:
        pytest.skip("only root gives files away")
    with pytest.raises((ValueError, OSError)):
        work.go_on("r1")
    if not place:
        with pytest.raises(OSError, match="others may write"):
            serve(work.folder, browser=False)
        with pytest.raises(OSError, match="others may write"):
            work.begin("r2", written("r2"), "")
    assert len(started) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_group_of_the_user_alone_may_write(work, started):
    """Debian gives each user such a group, and folders that it may write."""
    begun(work, "r1", **{LOG: ""})
    work.folder.chmod(0o775)
    work.go_on("r1")
    os.chown(work.folder, -1, 4711)
    with pytest.raises((ValueError, OSError)):
        work.go_on("r1")
    assert len(started) == 1


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="lists of who may write are Linux's")
def test_a_list_of_who_may_write_is_seen_where_the_group_is_the_users_own(work, started):
    """As `setfacl -m u:4711:rwx` writes it: the mode of the group is then the most that the list gives."""
    begun(work, "r1", **{LOG: ""})
    entries = [(1, 7, -1), (2, 7, 4711), (4, 7, -1), (16, 7, -1), (32, 5, -1)]
    packed = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    try:
        os.setxattr(work.folder, "system.posix_acl_access", packed)
    except OSError:
        pytest.skip("this file system has no such lists")
    assert work.folder.stat().st_mode & 0o777 == 0o775
    with pytest.raises((ValueError, OSError)):
        work.go_on("r1")
    assert started == []


def test_what_the_page_writes_is_its_own_whatever_the_umask_and_the_log_that_stood_there(work, started):
    before = os.umask(0)
    try:
        work.begin("r1", written("r1"), "")
        log = work.folder / "r1" / LOG
        log.chmod(0o644)
        work.go_on("r1")
    finally:
        os.umask(before)
    assert len(started) == 2 and log.stat().st_mode & 0o777 == 0o600


def test_what_is_unfinished_is_gone_on_with_and_nothing_else(work, started):
    home = begun(work, "r1", **{RECORD: "{}"})
    work.go_on("r1")
    rehearsal = [word for word in written("r3", seed="-3") if "--ledger" not in word and "--rel" not in word]
    work.begin("r3", rehearsal, "")
    work.go_on("r3")
    assert started == [written("r1"), rehearsal, rehearsal]
    (home / TABLE).write_text("")
    with pytest.raises(ValueError, match="is in this folder already"):
        work.begin("r1", written("r1"), "")
    for name, said in (("r1", "r1 is finished"), ("r2", "no such release"), ("../r1", "no such release")):
        with pytest.raises(ValueError, match=said):
            work.go_on(name)
    assert len(started) == 3


def test_of_two_pages_one_begins_a_release(work, started, monkeypatch):
    """Each other moment for the second is one before or after all that the first writes."""
    write, tried = Workplace.write, []

    def interrupted(self, name, text):
        tried.append(name)
        with pytest.raises(ValueError, match=r"is running|is in this folder"):
            Workplace(work.folder).begin("r1", written("r1", epsilon="9"), "other")
        write(self, name, text)

    monkeypatch.setattr(Workplace, "write", interrupted)
    work.begin("r1", written("r1"), "own")
    assert tried == [f"r1/{SCHEMA}", f"r1/{COMMAND}"] and started == [written("r1")]
    assert (work.text("r1", SCHEMA), work.text("r1", COMMAND)) == ("own", shlex.join(written("r1")))


def test_a_page_that_was_killed_before_its_command_was_written_leaves_the_name_free(work, started):
    home = work.folder / "r1"
    home.mkdir()
    for left in (LOG, SCHEMA, f".{COMMAND}.1-1-1.part"):
        (home / left).write_text("left")
    work.begin("r1", written("r1"), "own")
    assert work.text("r1", SCHEMA) == "own" and len(started) == 1
    (work.folder / "r2").mkdir()
    (work.folder / "r2" / "mine.txt").write_text("")
    with pytest.raises(ValueError, match="is in this folder already"):
        work.begin("r2", written("r2"), "")
    assert [path.name for path in (work.folder / "r2").iterdir()] == ["mine.txt"]


@pytest.mark.slow
def test_a_release_that_runs_is_not_begun_again_and_is_seen_by_whoever_looks(work, monkeypatch):
    code = "import sys; sys.stderr.write('said'); sys.stderr.flush(); open(sys.argv[2]).read()"
    waiting = [sys.executable, "-c", code]
    pipe = work.folder / "b.csv"
    pipe.unlink()
    subprocess.run(["mkfifo", pipe], check=True)
    monkeypatch.setattr(workplace, "SMALLDB", waiting)
    work.begin("r1", written("r1"), "schema")
    assert Workplace(work.folder).releases()["r1"].startswith("running for ")
    for again in (lambda: work.go_on("r1"), lambda: work.begin("r1", written("r1"), "")):
        with pytest.raises(ValueError, match=r"is running|is in this folder|no ledger"):
            again()
    pipe.write_text("end")
    while work.releases()["r1"] != UNFINISHED:  # it ended, and left no table
        time.sleep(0.01)
    assert work.text("r1", LOG) == "said"


def until_ended(work, name):
    """The state of a release when its command does not run any more."""
    while work.releases()[name].startswith("running"):
        time.sleep(0.05)
    return work.releases()[name]


def small(work):
    """Write a table of two columns; return its schema."""
    (work.folder / "b.csv").write_text("a,b\n" + "1,0\n0,1\n" * 500)
    return '[columns.a]\nkind = "bool"\n[columns.b]\nkind = "bool"\n'


def files_in(home):
    found = (path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file())
    return {name: (home / name).read_bytes() for name in found}


KINDS = {
    "titanic": {"table": "titanic.csv"},
    "titanic.parquet, several": {"table": "titanic.parquet", "tables": "2"},
    "homes": {"table": "homes.csv", "second": "persons.csv"},
}


@pytest.mark.slow
@pytest.mark.parametrize("given", KINDS.values(), ids=KINDS)
def test_what_the_page_releases_is_what_its_command_and_its_python_release_and_all_of_it_is_served(
    tmp_path, monkeypatch, given
):
    if "parquet" in given["table"]:
        pytest.importorskip("pyarrow")
    raw = pd.read_csv(EXAMPLES / "titanic.csv")
    raw.to_csv(tmp_path / "titanic.csv", index=False)
    if "parquet" in given["table"]:
        raw.to_parquet(tmp_path / "titanic.parquet")
    text = "rows_per_person = 1\n" + "".join(f'[columns.{name}]\nkind = "bool"\n' for name in raw.columns)
    if "second" in given:
        homes = [EXAMPLES / "make_homes.py", tmp_path / "homes.csv", tmp_path / "persons.csv"]
        subprocess.run([sys.executable, *homes], check=True)
        text = (EXAMPLES / "homes.toml").read_text(encoding="utf-8")
    (tmp_path / f"{workplace.stem(given['table'])}.toml").write_text(text)
    work = Workplace(tmp_path)
    steps = chosen(
        work, **{"epsilon": "1", "name": "r1", "seed": "7", "mechanism": "auto", "target": (), **given}
    )
    steps.read = lambda: (toml_of(text), read_any(f"{text}\n"), None)
    work.begin("r1", steps._releasing(), text)
    assert until_ended(work, "r1") == FINISHED, work.text("r1", LOG)
    released = files_in(tmp_path / "r1")
    assert {*released} == {*work.outputs("r1"), COMMAND, LOG}
    for name in (COMMAND, LOG):
        del released[name]
    (tmp_path / "r1").rename(tmp_path / "page")
    (tmp_path / "r1").mkdir()
    (tmp_path / "r1" / SCHEMA).write_text(text)
    command, python = re.findall(r"<pre>(.*?)</pre>", unescape(str(steps._same_release())), re.S)
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command)[1:]) == 0
    assert files_in(tmp_path / "r1") == released
    exec(python, namespace := {})
    release = namespace["release"]
    record = json.loads(released.get(RECORD) or released[f"{SEVERAL}/{RECORD}"])
    assert json.loads(written_record(release.record)) == record
    if given["table"] == "titanic.csv":
        assert release.data.to_csv(index=False).lower().encode() == released[TABLE]


@pytest.mark.slow
def test_a_release_is_refined_by_an_earlier_one(work, monkeypatch):
    monkeypatch.chdir(work.folder)
    schema = small(work)
    for name, refine in (("r1", ""), ("r2", f"r1/{MEASURED}")):
        steps = chosen(work, table="b.csv", epsilon="1", n="1000", name=name, seed="7", mechanism="auto")
        steps.input |= chosen(work, neighbours="replace-one", target=(), refine=refine).input
        steps.read = lambda: ({}, read_any(schema), None)
        work.begin(name, steps._releasing(), schema)
        assert until_ended(work, name) == FINISHED, work.text(name, LOG)
        assert bool(steps._planner()().request.earlier) == bool(refine)
    assert "refines" in json.loads(work.text("r2", RECORD))


KILLED = """
import os, signal, sys
from smalldb.releasing.budget_ledger import Ledger
place = os.replace
def replaced(begun, target, **folders):
    place(begun, target, **folders)
    if target == {file!r}:
        os.kill(os.getpid(), signal.SIGKILL)
def finish(*_):
    os.kill(os.getpid(), signal.SIGKILL)
os.replace = replaced
if {file!r} == "the end":
    Ledger.finish = finish
from smalldb.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("file", [RECORD, PAGE, TABLE, "the end"])
def test_a_release_that_was_killed_while_its_files_were_written_goes_on_and_is_paid_once(
    work, monkeypatch, file
):
    (work.folder / "old.ledger").unlink()
    schema = small(work)
    monkeypatch.setattr(workplace, "SMALLDB", [sys.executable, "-c", KILLED.format(file=file)])
    work.begin("r1", written("r1", budget="1"), schema)
    assert until_ended(work, "r1") == UNFINISHED and work.outputs("r1") == []
    known = work.account("old.ledger")
    assert known is not None and known[0].names == ("r1",) and known[1] == ["r1"]
    with pytest.raises(ValueError, match="is in this folder already"):
        work.begin("r1", written("r1", budget="1"), schema)
    stood = [(work.folder / "r1" / name).read_bytes() for name in (RECORD,) if work.text("r1", name)]
    monkeypatch.undo()
    work.go_on("r1")
    assert until_ended(work, "r1") == FINISHED, work.text("r1", LOG)
    assert stood == [(work.folder / "r1" / RECORD).read_bytes()] and {*work.outputs("r1")} >= {TABLE, PAGE}
    account, unfinished = work.account("old.ledger")
    assert len(account.records) == 1 and unfinished == []


def test_a_table_that_a_command_printed_is_a_table_of_the_page():
    html = str(layout.table("|  | all | a\\|b |\n|---|---|---|\n| <b> | 1 (0 to 2) | 3% |\n\nlevel 0.95\n"))
    assert re.findall(r"<t[hd][^>]*>([^<]*)</t", html) == ["", "all", "a|b", "&lt;b&gt;", "1 (0 to 2)", "3%"]
    assert "level 0.95" in html and "---" not in html
