"""The page for curators in a browser: the whole way, kills, wrong input, the keyboard alone."""

import contextlib
import csv
import http.client
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from smalldb.cli import main
from smalldb.releasing.budget_ledger import Ledger
from smalldb.releasing.transaction import unfinished_releases

pytest.importorskip("shiny")
playwright = pytest.importorskip("playwright.sync_api")

playwright.expect.set_options(timeout=60_000)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")]

EXAMPLES = Path(__file__).parent.parent / "examples"
SECRET = "Zanzibar"  # a remark of the survey, whose column is left out of the release
ROWS = 1500
SEXES = ["not sex", "sex"]


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        made = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@contextmanager
def served(folder):
    """Serve a folder; yield the address and the process."""
    command = [sys.executable, "-m", "smalldb", "app", os.fspath(folder), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().strip(), process
        finally:
            process.terminate()
            process.communicate(timeout=60)


@contextmanager
def opened(browser, url, **more):
    """Open the page in a tab; what it loads and receives is kept in `page.loaded` and `page.received`."""
    context = browser.new_context(**more)
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.loaded, page.received = [], []
    page.on("request", lambda request: page.loaded.append(request.url))
    page.on(
        "websocket", lambda socket: socket.on("framereceived", lambda frame: page.received.append(str(frame)))
    )
    page.goto(url)
    page.wait_for_function("window.Shiny?.shinyapp?.isConnected?.()")
    yield page
    context.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """One server for all tests that need none of their own: its address, and its folder with the survey."""
    folder = tmp_path_factory.mktemp("site")
    survey(folder)
    with served(folder) as (url, _):
        yield url, folder


def step(page, name):
    page.get_by_role("tab", name=name).click()


def fill(page, field, value):
    """Fill a field, and leave it."""
    page.fill(f"#{field}", value)
    page.locator(f"#{field}").blur()


def choose(page, table):
    """Choose a table whose schema stands beside it."""
    page.select_option("#table", table)
    page.locator("#draft_told").get_by_text("taken as it is").wait_for()


def state(page, text):
    page.locator("#status h3").get_by_text(re.compile(text)).first.wait_for()


def survey(folder):
    """Write the raw survey, shortened, with a remark and an age that stand nowhere else."""
    whole = folder / "whole.csv"
    subprocess.run([sys.executable, EXAMPLES / "make_survey.py", whole], check=True)
    lines = whole.read_text(encoding="utf-8").splitlines()[: ROWS + 1]
    whole.unlink()
    (folder / "survey.csv").write_text(
        "\n".join([*lines[:-1], f"{lines[-1].rpartition(',')[0]},{SECRET}"]) + "\n"
    )


def small(folder, name="workers"):
    """Write a small table of yes/no columns with its schema."""
    shutil.copy(EXAMPLES / "autoworkers.csv", folder / f"{name}.csv")
    names = (folder / f"{name}.csv").read_text().splitlines()[0].split(",")
    columns = "".join(f'[columns.{name}]\nkind = "bool"\n' for name in names)
    (folder / f"{name}.toml").write_text(f"rows_per_person = 1\n{columns}")


def test_the_whole_way_on_a_raw_table(site, browser, capsys):
    """From names to answers, with the command that is shown; test_app.py carries out such a one."""
    url, folder = site
    with opened(browser, url) as page:
        page.select_option("#table", "survey.csv")
        page.click("#draft")
        fill(page, "field-0-rows_per_person", "1")
        step(page, "2 Columns")
        page.locator("#problem").get_by_text("kind must be one of").wait_for()
        # in a form: a fault stands beside its field, and is mended there
        page.select_option('select[data-column="age"]', "cuts")
        cuts = page.locator('input[data-column="age"][data-key="cuts"]')
        cuts.fill("30, 50, 70")
        cuts.blur()
        field = page.locator('input[data-column="age"][data-key="range"]')
        field.fill("98, 18")
        field.blur()
        field.locator("xpath=following-sibling::span").get_by_text("range").wait_for()
        assert field.get_attribute("aria-invalid") == "true"
        field.fill("18, 98")
        field.blur()
        playwright.expect(page.locator("#toml")).to_have_value(re.compile(r"range = \[18, 98\]"))
        playwright.expect(page.locator("#toml")).to_have_value(re.compile(r"cuts = \[30, 50, 70\]"))
        # and as TOML: the forms follow
        fill(page, "toml", (EXAMPLES / "survey.toml").read_text(encoding="utf-8"))
        page.get_by_text("The schema has no faults.").wait_for()
        playwright.expect(field).to_have_value("18, 98")
        playwright.expect(page.locator('input[data-column="town"][data-key="values"]')).to_have_value(
            "Bristol"
        )
        assert "confidential" not in page.locator("#check_told").inner_html()
        page.click("#check")
        page.locator(".confidential").get_by_text("the table fits").wait_for()
        assert "CONFIDENTIAL" in page.locator(".confidential").inner_text()
        step(page, "3 Budget")
        fill(page, "n", str(ROWS))
        page.locator("#planned").get_by_text("guarantee: 1-differential privacy").wait_for()
        assert "pairs of columns will be measured" in page.locator("#planned").inner_text()
        step(page, "4 Release")
        page.locator("summary:visible").click()
        fill(page, "seed", "7")
        page.locator("#spends").get_by_text("NOT private").wait_for()
        command = page.locator("#same_release pre").first.inner_text()
        python = page.locator("#same_release pre").last.inner_text()
        # until here nothing of the data was in the page, but that they fit and how many they are
        seen = "".join(page.received) + page.content()
        assert SECRET not in seen and "called back" not in seen
        page.click("#release")
        state(page, "release-1: finished")
        page.locator("#released iframe").wait_for()
        with page.expect_download() as download:
            page.get_by_role("link", name="table.csv").evaluate("link => { link.target = ''; link.click() }")
        released = Path(download.value.path()).read_bytes()
        step(page, "5 Ask")
        playwright.expect(page.locator("#asked")).to_have_value("release-1/measurements.json")
        fill(page, "questions", "smoker\nsmoker | age>=50\nnonsense")
        page.click("#ask")
        answers = page.locator("#ask_told")
        answers.get_by_text("1 of 3 questions have an error").wait_for()
        assert re.search(r"smoker\n  0\.\d+ \(0\.\d+ to 0\.\d+, level 0\.95", answers.inner_text())
        fill(page, "level", "7")
        page.locator("#same_ask").get_by_text("--level=7").first.wait_for()
        page.click("#ask")
        page.locator("#ask_told [role=alert]").get_by_text("level").wait_for()
        fill(page, "level", "0.95")
        fill(page, "questions", "smoker\nage")  # of all columns it takes seconds
        page.check("#table1")
        page.select_option("#by", "sex")
        page.locator("#same_ask").get_by_text("--table1 --by=sex").first.wait_for()
        page.click("#ask")
        playwright.expect(answers.locator("th[scope=col]")).to_have_count(2 + len(SEXES))
        assert answers.locator("th[scope=col]").all_inner_texts() == ["", "all", *SEXES]
        rows = dict(row.split("\t", 1) for row in answers.locator("table").inner_text().splitlines())
        assert re.fullmatch(r"\d+\.\d% \(\d+\.\d% to \d+\.\d%\)\t.*", rows["smoker"])
        assert [*rows][1:] == ["smoker", "age, mean", "age, median"]
        shown = page.locator("#same_ask pre").all_inner_texts()
        assert {address.split("/")[2] for address in page.loaded if ":" in address[:6]} == {url.split("/")[2]}
    assert (folder / "release-1" / "command").read_text().strip() == command
    assert released == (folder / "release-1" / "table.csv").read_bytes()
    assert SECRET not in released.decode()
    namespace = {}
    capsys.readouterr()
    with contextlib.chdir(folder):
        main(shlex.split(shown[0])[1:])
        exec(shown[1], namespace)
    first, *cells = capsys.readouterr().out.splitlines()[2].strip("| ").split(" | ")
    assert rows[first] == "\t".join(cells)
    assert next(line.label for line in namespace["lines"]) == first
    assert "smalldb.release('survey.csv', schema='survey.toml', epsilon='1'" in python
    with (folder / "release-1" / "table.csv").open(encoding="utf-8") as file:
        assert len([*csv.reader(file)]) == ROWS + 1


def children(process):
    """The processes that a process started."""
    of = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(pid) for pid in of]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the kill looks for processes in /proc")
def test_going_on_after_browser_server_and_release_were_killed(site, tmp_path, browser):
    shutil.copy(site[1] / "survey.csv", tmp_path)
    shutil.copy(EXAMPLES / "survey.toml", tmp_path)
    ledger = tmp_path / "survey.ledger"
    with served(tmp_path) as (url, process):
        with opened(browser, url) as page:
            step(page, "5 Ask")
            page.click("#ask")
            page.locator("#ask_told").get_by_text("RECORD.json: no such file").wait_for()
            step(page, "1 Table")
            choose(page, "survey.csv")
            step(page, "3 Budget")
            fill(page, "budget", "3/2")
            step(page, "4 Release")
            page.locator("#same_release").get_by_text("--budget=3/2").first.wait_for()
            page.click("#release")
            state(page, "running")
        until = time.monotonic() + 120
        while not (ledger.exists() and Ledger(ledger).read().records) and time.monotonic() < until:
            time.sleep(0.01)  # until it is paid
        for pid in (*children(process), process.pid):
            os.kill(pid, signal.SIGKILL)
    account = Ledger(ledger).read()
    assert len(unfinished_releases(str(ledger), account)) == 1
    assert not (tmp_path / "release-1" / "table.csv").exists()
    with served(tmp_path) as (again, _), opened(browser, again) as page:
        assert again != url
        choose(page, "survey.csv")
        step(page, "3 Budget")
        page.locator("#account").get_by_text(
            "budget 1.5, releases 1 (1 not finished), spent 1, left 0.5"
        ).wait_for()
        step(page, "4 Release")
        state(page, "release-1: unfinished")
        page.click("#go_on-release-1")
        state(page, "release-1: finished")
        page.locator("#status").get_by_text("this release was paid before").wait_for()
    assert [str(record["privacy"]["epsilon"]) for record in Ledger(ledger).read().records] == ["1"]
    assert json.loads((tmp_path / "release-1" / "record.json").read_text())["private"] is True


WRONG = [  # a field, what is wrong, where that is told and in which words
    ("epsilon", "abc", "#planned", "epsilon"),
    ("epsilon", "-1", "#planned", "epsilon"),
    ("epsilon", "", "#planned", "epsilon"),
    ("delta", "2", "#planned", "delta"),
    ("n", "many", "#planned", "n must be a whole number"),
    ("n", "", "#planned", "n must be a whole number"),
    ("n", "-5", "#planned", "n must be a whole number"),
    ("n_max", "9", "#planned", "n_max is for add-remove"),
    ("ledger", "wrong.csv", "#account", "damaged, or no ledger"),
    ("ledger", "nowhere/x.ledger", "#account", "no such ledger"),
]
REFUSED = [  # the same, of what the release refuses before anything is paid
    ("name", "../up", "#release_told", "letters and digits"),
    ("name", "", "#release_told", "letters and digits"),
    ("ledger", "", "#release_told", "name a ledger"),
    ("budget", "", "#status", "no ledger yet: add --budget E"),
    ("budget", "abc", "#status", "budget"),
    ("budget_delta", "7", "#status", "delta"),
    ("tables", "1", "#status", "--tables must be from 2"),
    ("seed", "x", "#status", "expected a whole number"),
]


def test_wrong_input_at_every_field_is_told_in_the_librarys_words_and_spends_nothing(site, browser):
    url, folder = site
    for name in ("wrong", "public"):
        small(folder, name)
    with (folder / "public.csv").open("a") as file:
        file.write("1,1,1,1,1,1\n")
    (folder / "broken.csv").write_text("")
    (folder / "same.csv").hardlink_to(folder / "wrong.csv")
    usual = {"epsilon": "1", "n": "1841", "budget": "2", "ledger": "wrong.ledger"}
    with opened(browser, url) as page:
        page.select_option("#table", "broken.csv")
        page.click("#draft")
        page.locator("#draft_told").get_by_text("is empty").wait_for()
        choose(page, "wrong.csv")
        page.select_option("#book", "broken.csv")
        page.click("#draft")
        page.locator("#draft_told").get_by_text("exists already").wait_for()
        fill(page, "field-0-rows_per_person", "none")
        page.locator("#fault-0-rows_per_person").get_by_text("must be a whole number").wait_for()
        fill(page, "field-0-rows_per_person", "1")
        step(page, "2 Columns")
        fill(page, "field-0-valid", "nobody & here")
        page.locator("#fault-0-valid").get_by_text("nobody").wait_for()
        fill(page, "field-0-valid", "")
        page.locator("#problem").get_by_text("no faults").wait_for()
        good = page.locator("#toml").input_value()
        fill(page, "toml", "no TOML")
        page.locator("#problem").get_by_text("not TOML").wait_for()
        fill(page, "toml", good)
        page.locator("#problem").get_by_text("no faults").wait_for()
        step(page, "3 Budget")
        for field, value in usual.items():
            fill(page, field, value)
        for field, value, place, said in WRONG:
            fill(page, field, value)
            page.locator(place).get_by_text(said).first.wait_for()
            fill(page, field, usual.get(field, ""))
            page.locator("#planned").get_by_text("guarantee").wait_for()
        for start, words, said in (
            ("wrong.csv", "", "the start is the data"),
            ("same.csv", "release of 2025", "the start is the data"),
            ("public.csv", "", "start_is"),
            ("public.csv", "last year", "guarantee"),
            ("", "last year", "start_is and start_rows are about a start"),
            ("", "", "guarantee"),
        ):
            page.select_option("#start", start)
            fill(page, "start_is", words)
            page.locator("#planned").get_by_text(said).first.wait_for()
        for number, (field, value, place, said) in enumerate(REFUSED):
            name = f"wrong-{number}"
            for each, own in {
                **usual,
                "budget_delta": "",
                "tables": "",
                "seed": "",
                "name": name,
                field: value,
            }.items():
                page.locator(f"#{each}").evaluate(
                    "(box, value) => { box.value = value; box.dispatchEvent(new Event('change')); "
                    "$(box).trigger('change'); $(box).trigger('blur') }",
                    own,
                )
            step(page, "4 Release")
            page.locator("#same_release").get_by_text(
                f"{name if field != 'name' else value}/table"
            ).first.wait_for()
            page.click("#release")
            if place == "#status":
                state(page, f"{name}: unfinished")
                page.click(f"#why-{name}")
            page.locator(place).get_by_text(said).first.wait_for()
    assert not [*folder.rglob("wrong.ledger*")] and not [*folder.parent.glob("up")]


def test_a_refusal_that_looked_at_the_data_is_shown_where_it_is_asked_for_and_marked(site, browser):
    url, folder = site
    small(folder, "misfit")
    with (folder / "misfit.csv").open("a") as file:
        file.write("2,2,2,2,2,2\n")
    looked = "looked at the data"
    with opened(browser, url) as page, opened(browser, url) as other:
        choose(page, "misfit.csv")
        step(page, "3 Budget")
        fill(page, "n", "1842")
        fill(page, "budget", "1")
        step(page, "4 Release")
        fill(page, "name", "misfit-1")
        page.locator("#same_release").get_by_text("--budget=1").first.wait_for()
        page.click("#release")
        for tab in (page, other):
            step(tab, "4 Release")
            state(tab, "misfit-1: unfinished")
        page.click("#why-misfit-1")
        box = page.locator("#status .confidential")
        box.get_by_text(looked).wait_for()
        assert "CONFIDENTIAL" in box.inner_text()
        other.wait_for_timeout(2500)
        assert looked in "".join(page.received) and looked not in "".join(other.received) + other.content()
        page.click("#go_on-misfit-1")  # and not again unless it is asked for again
        playwright.expect(box).to_have_count(0)
        state(page, "misfit-1: unfinished")
        assert looked not in page.locator("#status").inner_text()
    assert not [*folder.glob("misfit.ledger")] or not Ledger(folder / "misfit.ledger").read().records


def test_what_cannot_be_read_is_told_and_ends_no_session(site, browser):
    url, folder = site
    small(folder, "odd")
    (folder / "odd2.csv").write_text((folder / "odd.csv").read_text() + "1,1,1,1,1,1\n")
    (folder / "odd2.toml").mkdir()
    begun = folder / "odd-1"
    begun.mkdir()
    (begun / "command").write_text("smalldb 'generate")
    try:
        with opened(browser, url) as page:
            page.select_option("#table", "odd2.csv")
            page.locator("#draft_told [role=alert]").get_by_text("odd2.toml").wait_for()
            choose(page, "odd.csv")
            step(page, "3 Budget")
            page.select_option("#start", "odd2.csv")
            fill(page, "start_is", "of 2025")
            (folder / "odd2.csv").unlink()
            fill(page, "n", "18")
            page.locator("#planned [role=alert]").get_by_text("odd2.csv").wait_for()
            step(page, "4 Release")
            page.click("#go_on-odd-1")
            page.locator("#release_told [role=alert]").wait_for()
            fill(page, "title", "-x")
            page.locator("#same_release").get_by_text("--title=-x").first.wait_for()
    finally:
        shutil.rmtree(begun)


def test_the_keyboard_alone_does_it_and_at_four_hundred_percent_nothing_runs_over(site, browser):
    url, folder = site
    small(folder, "keys")
    narrow = {"width": 320, "height": 256}  # a window of 1280 x 1024 at 400 %
    with opened(browser, url, viewport=narrow) as page:

        def reach(where):
            for _ in range(60):
                page.keyboard.press("Tab")
                if page.evaluate("where => document.activeElement?.matches(where)", where):
                    return
            raise AssertionError(f"Tab does not reach {where}")

        def fits():
            return page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")

        reach("#table")
        page.keyboard.type("keys")
        page.locator("#draft_told").get_by_text("taken as it is").wait_for()
        playwright.expect(page.locator("#field-0-rows_per_person")).to_have_value("1")
        assert fits()
        for number in range(2, 6):
            page.get_by_role("tab", selected=True).focus()
            page.keyboard.press("ArrowRight")
            page.keyboard.press("Enter")
            playwright.expect(page.get_by_role("tab", selected=True)).to_contain_text(str(number))
            assert fits(), number
            if number == 2:
                reach("#field-1-kind")  # a form that is written anew keeps the focus
                page.keyboard.type("categories", delay=25)  # as slowly as forms are written anew
                page.locator("#field-1-values").wait_for()
                assert page.evaluate("document.activeElement.id") == "field-1-kind"
                page.evaluate(
                    "() => { window.sent = []; const set = Shiny.setInputValue;"
                    " Shiny.setInputValue = (...own) => { sent.push(own[1].value); set(...own) } }"
                )
                page.keyboard.type("bool")
                page.keyboard.press("Tab")  # a field that is left is sent, before a button is pressed
                assert page.evaluate("sent") == ["bool"]
                page.locator("#field-1-true").wait_for(state="attached")
            if number == 3:
                reach("#budget")
                page.keyboard.type("2")
            if number == 4:
                reach("#name")
                page.keyboard.press("Control+A")
                page.keyboard.type("keys")
                reach("#release")
                page.keyboard.press("Enter")
                state(page, "keys: finished")
                assert fits()
            if number == 5:
                playwright.expect(page.locator("#asked")).to_contain_text("keys/measurements.json")
                reach("#asked")
                page.keyboard.type("keys/m")
                reach("#table1")
                page.keyboard.press("Space")
                reach("#ask")
                page.keyboard.press("Enter")
                cells = page.locator("#ask_told td")
                playwright.expect(cells).to_have_count(6)
                assert all(
                    re.fullmatch(r"\d+\.\d% \(\d+\.\d% to \d+\.\d%\)", text)
                    for text in cells.all_inner_texts()
                )
                assert fits()


EVIL = """<p>released</p><script>
for (const own of [parent, top])
  try { own.document.title = "reached"; own.document.getElementById("release").click() } catch {}
document.title = "ran"; fetch("../../beacon")
</script><img src="../../beacon" onerror="document.title = 'ran'"><form action="../../beacon"></form>"""


def test_a_script_in_a_released_page_reaches_nothing(site, browser):
    """Neither in the page's frame nor in a tab of its own."""
    url, folder = site
    small(folder, "evil")
    home = folder / "evil-1"
    home.mkdir()
    for name, text in {"command": "smalldb generate", "table.csv": "", "report.html": EVIL}.items():
        (home / name).write_text(text)
    try:
        with opened(browser, url) as page:
            answered = []  # what a policy forbids is a request for Playwright, too, and has no answer
            page.context.on("response", lambda response: answered.append(response.url))
            choose(page, "evil.csv")
            step(page, "3 Budget")
            fill(page, "budget", "1")
            step(page, "4 Release")
            page.locator("#same_release").get_by_text("--budget=1").first.wait_for()
            frame = page.frame_locator("#released iframe")
            frame.get_by_text("released").wait_for()
            (tab := page.context.new_page()).goto(f"{url}released/evil-1/report.html")
            tab.get_by_text("released").wait_for()
            page.wait_for_timeout(1000)
            assert (page.title(), tab.title()) == ("smalldb", "")
            assert sum(address.endswith("report.html") for address in answered) == 2
            assert not [address for address in answered if "beacon" in address]
            assert page.locator("#release_told").inner_text() == ""
    finally:
        shutil.rmtree(home)
    assert not (folder / "evil.ledger").exists()


def test_the_address_is_secret_and_of_this_machine(site, tmp_path):
    """What the guard refuses is in test_app.py; here the server that stands behind it."""
    with served(tmp_path) as (second, _):
        found = [re.fullmatch(r"http://(127\.0\.0\.1:\d+)/([0-9a-f]{32})/", url) for url in (site[0], second)]
        (host, token), (_, other) = (match.groups() for match in found)
        assert token != other

        def asked(path, **headers):
            with closing(http.client.HTTPConnection(host)) as link:
                link.request("GET", path, headers={"Host": host} | headers)
                with link.getresponse() as response:
                    return response.status

        upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
        upgrade |= {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Origin": f"http://{host}"}
        assert asked(f"/{token}/") == 200
        assert asked(f"/{token}/websocket/", **upgrade) == 101
        assert asked("/") == asked(f"/{other}/") == 403
        assert asked(f"/{token}/websocket/", **upgrade | {"Origin": "http://evil.example"}) == 403
        assert asked(f"/{token}/released/x/../../etc/passwd") == 404
