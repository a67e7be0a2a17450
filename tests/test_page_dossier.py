"""The page as a dossier: one person, what is public, whiskers, the ledger, paper and many columns."""

import html
import json
import re
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from calling import called
from records import check_record
from test_page import Outline, of_columns, opened

import smalldb
from queries import Column, Domain, Marginals
from smalldb.accounting import compose_records
from smalldb.releasing.budget_ledger import Ledger
from smalldb.releasing.ledger_account import Account
from smalldb.releasing.record import make_record
from smalldb.reporting.page import About, page
from smalldb.reporting.page.guarantee import beliefs_picture, guesses_picture

CHROMIUM = shutil.which("chromium")
FRAME = pd.DataFrame(np.random.default_rng(4).integers(0, 2, (300, 3)), columns=[*"abc"])


def release(**choices):
    return smalldb.release(
        FRAME,
        "marginals:1",
        **{"epsilon": 1, "rows": 20, "mechanism": "marginals", "strategy": "contrasts"} | choices,
    )


def fact(text, name):
    (found,) = re.findall(f"<dt>{name}</dt><dd>(.*?)</dd>", text)
    return html.unescape(found)


def test_epsilon_covers_all_rows_of_a_person():
    one, three = release(epsilon="1/3", rng=5), release(rows_per_person=3, rng=5)
    assert three.plan.request.epsilon == one.plan.request.epsilon == Fraction(1, 3)
    assert three.data.equals(one.data)
    assert (three.plan.epsilon, three.plan.privacy) == (1, 1)
    assert (three.record["privacy"]["epsilon"], three.record["privacy"]["rows_per_person"]) == ("1", 3)
    assert "rows_per_person" not in one.record["privacy"]
    census = {"mechanism": "census", "rows": 3, "epsilon": "0.6"}
    for relation in ("replace-one", "add-remove"):
        plans = [
            smalldb.plan(
                Domain(["a", "b"]), n=9 if relation == "replace-one" else None, neighbours=relation, **given
            )
            for given in (census | {"rows_per_person": 3}, census | {"epsilon": "0.2"})
        ]
        assert plans[0].bounded_range == 3 * plans[1].bounded_range
        assert plans[0].privacy == 3 * plans[1].privacy
    for made in (one, three):
        check_record(made.record)
    with pytest.raises(ValueError, match="less than 1e-300 is left to each row"):
        release(rows_per_person=2, delta="1e-300")
    with pytest.raises(ValueError, match="rows_per_person must be a whole number"):
        release(rows_per_person=0)


def test_the_page_says_who_is_one_person():
    unsaid, said = page(release()), page(release(rows_per_person=1))
    assert fact(unsaid, "One person is").startswith("not stated: what is protected is one row")
    assert "This protects rows, not people" in unsaid
    assert fact(said, "One person is").startswith("one row. A person with k rows")
    assert "This protects rows" not in said
    text = page(release(rows_per_person=3))
    assert fact(text, "One person is").startswith("up to 3 rows: epsilon covers all of them")
    assert "If all rows of any one person, up to 3, were exchanged" in text
    assert "a factor of at most 2.72" in text  # of e, for the person


def test_releases_for_persons_of_other_numbers_of_rows_are_not_added_up(tmp_path):
    one, three = release().record, release(rows_per_person=3).record
    with pytest.raises(ValueError, match="the same number of rows of a person"):
        compose_records([one, three], delta=0)
    ledger = Ledger(tmp_path / "x.ledger", budget=3)
    assert ledger.spend(three).spent == 1
    assert ledger.spend(three).spent == 2 == ledger.read().spent
    with pytest.raises(ValueError, match="number of rows of a person"):
        ledger.spend(one)


@pytest.mark.parametrize(("epsilon", "warned"), [("10", False), ("10.01", True)])
def test_a_large_epsilon_is_warned_of_in_record_page_and_account(epsilon, warned, workdir, capfd):
    made = release(epsilon=epsilon)
    check_record(made.record)
    assert ("warning" in made.record) is warned
    assert ("Warning: epsilon is above 10" in page(made)) is warned
    FRAME.to_csv("data.csv", index=False)
    _, _, err = called(capfd, "generate", "data.csv", "--epsilon", epsilon, "--rows", "9")
    assert ("warning:   epsilon is above 10" in err) is warned
    _, out, _ = called(capfd, "account", "--epsilon", epsilon, "--releases", "1")
    assert ("warning: epsilon is above 10" in out) is warned


def test_what_is_public_is_said_as_it_is():
    text = page(release())
    assert fact(text, "Rows of the data") == "300, public"
    assert fact(text, "Synthetic rows") == "20: public, fixed before the data were read"
    domain = Domain([Column("a", 3), Column("b", 4)], valid="`a>=1` | ~`b>=3`")
    frame = pd.DataFrame({"a": [0, 1, 2] * 50, "b": [0, 3, 1] * 50})
    choices = {
        "epsilon": 1,
        "neighbours": "add-remove",
        "n_max": 400,
        "domain": domain,
        "mechanism": "marginals",
    }
    text = page(smalldb.release(frame, "marginals:1", **choices))
    assert fact(text, "Rows of the data").startswith("private; choices were made for about 400 at most")
    assert fact(text, "Synthetic rows").endswith(": computed from released numbers; the guarantee covers it")
    assert fact(text, "Rules") == "`a>=1` | ~`b>=3`"
    text = page(smalldb.release(frame, "marginals:1", **choices, rows=50))
    assert fact(text, "Synthetic rows") == "50: public, fixed before the data were read"


def test_titles_publishers_and_the_ledger_stand_on_it():
    made = release()
    account = Account(Fraction(5, 2), (make_record(made.plan, private=True),) * 2)
    text = page(made, about=About("<Homes>", "An office", "homes, wave 3", account))
    Outline(text)
    assert "<title>&lt;Homes&gt;</title>" in text
    assert "<h1>&lt;Homes&gt;</h1>" in text
    assert (fact(text, "Publisher"), fact(text, "Table")) == ("An office", "homes, wave 3")
    assert (fact(text, "Spent"), fact(text, "Left")) == ("2 by 2 in all, including this one", "0.5")
    assert "No ledger is kept" in page(made)


def test_whiskers_are_as_long_as_the_bound_where_nothing_was_measured():
    measured = release(rows=400, epsilon=5)
    made = smalldb.Release(measured.data, measured.record, measured.plan, measured.codes)
    bound, shares = made.record["bounds"]["released"], made.data.mean()
    text = page(made)
    (label,) = re.findall(r'aria-label="Attributes, share of rows \(synthetic\): (.*?)"', text)
    for name, part in zip("abc", label.split("; "), strict=True):
        low, high = map(float, re.search(r"\(([\d.]+) to ([\d.]+)\)", part).groups())
        assert low <= 100 * (shares[name] - bound) < low + 0.1
        assert high >= 100 * (shares[name] + bound) > high - 0.1
    lines = re.findall(r'd="M([\d.]+),26H([\d.]+)M', text)
    assert lines[0] == lines[1]  # the halo and the line
    assert [float(end) for end in lines[0]] == pytest.approx(
        [1 + 298 * (shares["a"] - bound), 1 + 298 * (shares["a"] + bound)], abs=0.006
    )


def curve(drawn):
    (points,) = re.findall('<polyline points="([^"]*)" class="most"', drawn)
    return [tuple(map(float, point.split(","))) for point in points.split()]


def test_the_picture_is_the_bound_on_beliefs():
    found = dict(curve(beliefs_picture(Fraction(1))))
    assert found[34 + 100.0] == pytest.approx(26 + 200 * (1 - 0.7311), abs=0.06)
    assert (found[34.0], found[234.0]) == (226.0, 26.0)
    found = dict(curve(guesses_picture(Fraction(1), Fraction(1, 100))))
    assert found[34.0] == pytest.approx(26 + 400 * (1 - 0.7338), abs=0.06)
    assert found[234.0] == 26.0
    for epsilon in (Fraction(1, 1000), Fraction(10**6)):
        assert all(26 <= y <= 226 for _, y in curve(beliefs_picture(epsilon)))


def test_many_columns_are_indexed_from_a_to_z():
    domain = Domain([Column(name, 4) for name in ("zebra", "Ape", "bee", *(f"c{i}" for i in range(97)))])
    text = page(of_columns(domain, Marginals(1))[1])
    (index,) = re.findall(r'<nav aria-label="Columns from A to Z".*?</nav>', text)
    links = re.findall('<a href="#([^"]*)">(.*?)</a>', index)
    assert [name for _, name in links[:5]] == ["Ape", "bee", "c0", "c1", "c2"]
    assert (len(links), links[-1][1]) == (100, "zebra")
    for anchor, name in links:
        assert (
            f"<figcaption>{name}</figcaption>"
            in re.search(f'<figure class="bars" id="{anchor}">.*?</figure>', text)[0]
        )
    assert "Columns from A to Z" not in page(release())


def test_the_command_passes_what_the_curator_says(workdir, capfd):
    FRAME.to_csv("data.csv", index=False)
    given = ["generate", "data.csv", "--epsilon", "1", "--rows", "9", "-o", "out.csv", "--report", "out.html"]
    given += ["--record", "out.json", "--title", "Flags", "--publisher", "Us", "--table", "flags-1"]
    given += ["--rows-per-person", "2", "--ledger", "x.ledger", "--budget", "4"]
    assert called(capfd, *given)[0] == 0
    text = Path("out.html").read_text(encoding="utf-8")
    assert "<h1>Flags</h1>" in text
    assert (fact(text, "Publisher"), fact(text, "Table"), fact(text, "Left")) == ("Us", "flags-1", "3")
    assert json.loads(Path("out.json").read_text())["privacy"]["rows_per_person"] == 2
    given = ["plan", "--attributes", "3", "--n", "100", "--epsilon", "1", "--rows-per-person", "4"]
    code, out, _ = called(capfd, *given)
    assert (code, "for a person with up to 4 rows" in out) == (0, True)


def wide(columns):
    kinds = [
        ["none", "full time, " * 4 + "all year", "東京都特別区部" * 6],
        None,
        ["north", "EAST, BY MANY OTHERS", "west"],
    ]
    domain = Domain([Column(f"column number {i}", kinds[i % 3]) for i in range(columns)])
    return of_columns(domain, Marginals(1))[1]


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium here (Debian: apt-get install chromium)")
@pytest.mark.parametrize(("columns", "width"), [(27, 1280), (100, 390)])
def test_pages_of_many_columns_do_not_overflow(tmp_path, columns, width):
    found = opened(page(wide(columns)), tmp_path, width, dark=False)
    assert (found["wide"], found["cut"], found["covered"]) == (0, 0, 0)
    assert found["contrast"] > 4.5
    assert found["smallest"] > 12


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium here (Debian: apt-get install chromium)")
@pytest.mark.parametrize(("size", "points"), [("A4", (595, 842)), ("letter", (612, 792))])
def test_on_paper_it_is_whole(tmp_path, size, points):
    made = wide(12)
    text = page(made)
    (tmp_path / "p.html").write_text(text.replace("@page {", f"@page {{ size: {size};"), encoding="utf-8")
    command = [CHROMIUM, "--headless", "--disable-gpu", "--no-sandbox", f"--user-data-dir={tmp_path}/profile"]
    command += ["--no-pdf-header-footer", f"--print-to-pdf={tmp_path}/p.pdf", (tmp_path / "p.html").as_uri()]
    subprocess.run(command, capture_output=True, timeout=120, check=True)
    raw = (tmp_path / "p.pdf").read_bytes()
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)", raw)
    assert {tuple(round(float(side)) for side in box) for box in boxes} == {points}
    # what is folded on the screen takes pages of its own on paper
    closed = text.replace("details::details-content", "details::nothing")
    (tmp_path / "p.html").write_text(closed, encoding="utf-8")
    subprocess.run(command, capture_output=True, timeout=120, check=True)
    assert (tmp_path / "p.pdf").read_bytes().count(b"/MediaBox") < len(boxes) < 12
