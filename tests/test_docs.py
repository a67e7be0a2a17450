"""What the README and the pages say is so, and their snippets run; so do the examples."""

import csv
import importlib.util
import json
import math
import os
import re
import runpy
import shlex
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest
from calling import called
from matplotlib import pyplot

import smalldb
from queries import Column, Conjunctions, Domain
from smalldb.cli import parser
from smalldb.exact.numbers import rounded_up
from smalldb.inference.questions import read_question
from smalldb.releasing.budget_ledger import Ledger
from smalldb.schema import parse_schema, read_schema
from smalldb.schema.reading import read_any

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def page(name):
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def loaded(name):
    """A script of the documentation, as a module."""
    spec = importlib.util.spec_from_file_location(Path(name).stem, ROOT / "docs" / name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folder(workdir, monkeypatch):
    """A folder with the examples, where pages are followed; commands are those of this environment."""
    (workdir / "examples").symlink_to(ROOT / "examples")
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable), prepend=os.pathsep)
    return workdir


@pytest.fixture
def shell(folder, capfd):
    """Carry out a command; return its output and errors. Ours runs here, without imports."""

    def done(command):
        words = shlex.split(command, comments=True)
        if words[0] == "smalldb" and "|" not in words:
            code, out, err = called(capfd, *words[1:])
            assert code == 0, err
            return out, err
        made = subprocess.run(["bash", "-euc", command], check=True, capture_output=True, text=True)
        return made.stdout, made.stderr

    return done


def followed(text, shell=None):
    """Do what a page says, in its order; return the names that its Python snippets leave."""
    names = {}
    for language, snippet in re.findall(r"^```(python|sh)\n(.*?)^```", text, re.M | re.S):
        if language == "python":
            exec(snippet, names)
        else:
            for command in snippet.replace("\\\n", "").splitlines():
                shell(command)
    return names


def steps(session):
    """The commands of a session, each with what it shows."""
    return [step.partition("\n")[::2] for step in re.split(r"^\$ ", session, flags=re.M)[1:]]


def printed_alike(session, shell):
    """
    Run the commands of a session, and compare what they print; what is drawn may differ in its digits.

    A command whose output goes to head may end by the closed pipe: what was printed is compared.
    """
    drawn = re.compile(r"at most 0\.\d+|0\.\d{4,}|\d+ stands?(?= out)")
    for command, shown in steps(session):
        printed = "".join(reversed(shell(command)))
        if command == "head -n 3 synthetic.csv":
            assert (printed.splitlines()[0], printed.count("\n")) == (shown.splitlines()[0], 3)
        else:
            assert drawn.sub("#", printed).split() == drawn.sub("#", shown).split(), command


def table_rows(text):
    """The rows of all tables of a page, by their first field."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {first: rest for first, *rest in rows}


def test_the_python_snippets_run_in_order(monkeypatch):
    monkeypatch.chdir(ROOT)
    found, names = re.findall(r"^```python\n(.*?)^```", README, re.M | re.S), {}
    assert len(found) == 2
    for snippet in found:
        exec(snippet, names)
    assert names["synthetic"].shape == names["release"].data.shape == (6, 6)
    assert names["plan"].mechanism == "marginals"
    assert 0 < names["law"].mean() < 1


def test_the_commands_for_real_tables_run_as_printed(folder, shell):
    (session,) = re.findall(r"^```sh-session\n(\$ python .*?)^```", README, re.M | re.S)
    runs, printed = zip(*((shell(command), shown) for command, shown in steps(session)), strict=True)
    assert [bool(shown) for shown in printed] == [False, False, True, True, True, False]
    drawn = r"at most \S+|relations: .*(?= bound)"
    accounts = [re.sub(drawn, "", " ".join(text.split())) for text in (runs[2][1], printed[2])]
    assert accounts[0] == accounts[1]
    drawn, shown = (list(csv.reader(text.splitlines())) for text in (runs[3][0], printed[3]))
    assert (shown[0], len(shown)) == (drawn[0], len(drawn))
    assert {len(row) for row in shown} == {13}
    answers = [re.sub(r"0\.\d+|smoker;.*", "", text) for text in (runs[4][0].strip(), printed[4].strip())]
    assert answers[0].splitlines()[:2] == answers[1].splitlines()[:2]
    assert (folder / "new.html").read_text().startswith("<!doctype html>")
    with pytest.raises(ValueError, match="fill in the draft"):
        read_schema("draft.toml")


def test_the_largest_rows_are_as_stated():
    stated = re.search(r"(\d+) rows for\s+four attributes and (\d+) for six", README).groups()
    census = {"n": 2000, "epsilon": 1, "mechanism": "census"}
    for attributes, rows in zip((4, 6), map(int, stated), strict=True):
        assert smalldb.plan(Domain(attributes), **census, rows=rows).rows == rows
        with pytest.raises(ValueError, match="beyond the budget"):
            smalldb.plan(Domain(attributes), **census, rows=rows + 1)


def test_the_picture_is_drawn_and_its_figures_are_as_stated(tmp_path):
    overview = loaded("pictures/overview.py")
    release, _, laws = overview.figures()
    law, plan = laws["0.1"], release.plan
    assert plan.epsilon == Fraction("0.1")
    figures = [law.mean(), law.quantile(0.95), plan.bound, plan.theorem_4_5]
    shown = " ".join(page("mechanisms.md").split())
    stated = re.search(
        r"one of the ([\d,]+)\s+tables of 12 rows.*?its mean is (\S+),\s+and it is at most (\S+)\s+with "
        r"probability 0.95. For any data (\S+) is\s+provable, and Theorem 4.5 promises (0\.\d+)",
        shown,
        re.S,
    ).groups()
    assert stated[0] == f"{plan.candidate_count:,}"
    assert [float(text) for text in stated[1:]] == pytest.approx(figures, abs=1e-3)
    overview.draw(tmp_path / "drawn.svg")
    assert (tmp_path / "drawn.svg").read_text().count("<path") > 20
    assert "](pictures/overview.svg)" in shown
    assert (ROOT / "docs" / "pictures" / "overview.svg").exists()


def test_the_tutorial_can_be_followed(folder, shell):
    text = page("tutorial.md")
    for block in re.findall(r"^```sh-session\n(.*?)^```", text, re.M | re.S):
        printed_alike(block, shell)
    header = (folder / "people.csv").read_text().split("\n")[0].split(",")
    released = (folder / "synthetic.csv").read_text().split("\n")[0].split(",")
    assert released == [name for name in header if name in released]
    assert (folder / "compared.png").read_bytes().startswith(b"\x89PNG")
    for picture in ("report", "compared"):
        assert f"](pictures/{picture}.png)" in text
    names = followed(text, shell)
    assert names["workers"].shape == (1841, 6)
    assert (names["record"]["mechanism"], names["record"]["privacy"]["epsilon"]) == ("marginals", "1")
    six = smalldb.plan(Domain(names["workers"].columns), Conjunctions(2), n=1841, epsilon=1, rows=6)
    assert f"all {six.candidate_count:,} tables of six rows" in text
    assert f"the mean error is provably at most {six.expected_error:.2f}" in text
    freely = smalldb.plan(Domain(names["workers"].columns), Conjunctions(2), n=1841, epsilon=1)
    assert (freely.mechanism, freely.rows) == ("marginals", 1841)
    assert f"an expected\nerror of {freely.expected_error:.2g}" in text
    (shown,) = re.findall(r"^```toml\n(.*?)^```", text, re.M | re.S)
    assert shown == (ROOT / "examples" / "people.toml").read_text(encoding="utf-8")
    for page_of in ("report.html", "workers.html"):
        assert (folder / page_of).read_text().startswith("<!doctype html>")


def test_the_page_on_epsilon_and_rows_is_computed():
    text = page("epsilon-and-rows.md")
    names, rows = followed(text), table_rows(text)
    for epsilon, share in names["afterwards"].items():
        assert float(rows[f"{epsilon}"][0].removesuffix(" %")) == pytest.approx(100 * share, abs=0.1)
    for (n, epsilon), expected in names["expected"].items():
        column = ["0.1", "0.5", "1"].index(epsilon)
        assert rows[f"{n} people"][column] == f"{expected:.2g}"
    for m, bound in names["small"].items():
        assert rows[str(m)] == [f"{bound:.2f}"]
    assert f"epsilon {names['epsilon']:.2f} for 2000 people, or {names['people']} people at epsilon 1" in text


def test_the_page_on_schemas_can_be_followed(folder, shell):
    text = page("schema.md")
    names = followed(text, shell)
    assert list(names["synthetic"].columns) == ["age", "job"]
    with pytest.raises(ValueError, match="fill in the draft"):
        read_schema("draft.toml")
    (shown,) = re.findall(r"^```toml\n(.*?)^```", text, re.M | re.S)
    schema = parse_schema(shown)
    assert all(label in text for column in schema.domain.columns for label in column.labels)
    # what the page calls categories, ranges and attributes
    parts = "".join(re.findall(r"^- (?:a category|a range).*", text, re.M))
    called = re.findall(r"`` `(.*?)` ``|`([a-z]+[<>=]+[0-9]+)`", parts)
    assert len(called) == 7 and all(schema.domain.find(one or other) is not None for one, other in called)
    flags = 'columns.smoker.kind = "bool"\ncolumns.pregnant.kind = "bool"\n'
    sex = 'columns.sex = { kind = "categories", values = ["female", "male"] }\n'
    age = 'columns.age = { kind = "cuts", cuts = [18], range = [0, 99] }\n'
    rules = re.search(r"`valid = (\[.*?\])`", text)[1]
    assert parse_schema(f"valid = {rules}\n{flags}{sex}{age}").domain.size == 9


def test_the_page_on_columns_can_be_followed():
    text = page("columns.md")
    names, rows = followed(text), table_rows(text)
    plan, release, domain = names["plan"], names["release"], names["domain"]
    assert f"That gives `({domain.product}, {domain.size})`" in text
    assert f"('{plan.mechanism}', {plan.rows}, {plan.expected_error:.2g})" in text
    assert list(release.data.columns) == list(names["frame"].columns)
    assert not (release.data["driver"] & (release.data["age"] == "below 16")).any()
    assert release.record["bounds"]["covers"] == ["every query of marginals:2"]
    assert 0.03 < release.record["bounds"]["released"] < 0.06
    assert names["evaluation"].max_error < 0.03
    assert f"{names['pairs'].independent.mean():.3f})" in text
    assert names["pairs"].tvd.mean() < names["pairs"].independent.mean() / 2
    for (columns, categories), expected in names["expected"].items():
        assert rows[f"{columns} columns"][[5, 20, 100].index(categories)] == f"{expected:.3f}"
    wide = Domain([Column(f"c{i}", 300) for i in range(100)])
    with pytest.raises(ValueError, match="use fewer columns"):
        smalldb.plan(wide, n=20000, epsilon=1)


def test_the_pages_on_several_tables_and_on_big_data_can_be_followed(folder, shell):
    names = followed(page("several-tables.md"), shell)
    assert names["low"] < names["people"].ill[names["people"].old].mean() < names["high"]
    assert names["pooled"].within > 0
    names = followed(page("big-data.md"), shell)
    assert names["rows"].n == 9000
    assert list(names["synthetic"].columns) == ["age", "region", "smoker"]
    assert (folder / "synthetic.csv").read_text().count("\n") == 1001


def test_the_page_on_related_tables_can_be_followed(folder, shell):
    names = followed(page("related-tables.md"), shell)
    assert names["persons"].home.isin(names["homes"].home).all() and len(names["homes"]) == 4000
    assert names["answer"].low < names["answer"].estimate < names["answer"].high
    # of 60 releases, children were off by at most .069 and joined columns by .064
    found = names["evaluation"]
    assert found.tvd["children"] < found.independent["children"] / 2 and found.tvd["joined"] < 0.15
    assert {path.name for path in (folder / "out").iterdir()} == {
        *("homes.csv", "persons.csv", "record.json", "report.html")
    }
    with pytest.raises(ValueError, match="fill in the draft"):
        read_any(str(folder / "draft.toml"))


def test_the_page_on_asking_can_be_followed(shell, capfd):
    text = page("asking.md")
    for made in re.findall(r"^```sh\n.*?^```", text, re.M | re.S):
        followed(made, shell)
    for session in re.findall(r"^```sh-session\n(.*?)^```", text, re.M | re.S):
        printed_alike(session, shell)
    names = followed(re.sub(r"^```sh\n.*?^```", "", text, flags=re.M | re.S))
    assert names["answer"].known == "not measured"
    printed = capfd.readouterr().out.splitlines()
    assert printed == [f"not measured {names['answer'].note}", "learned little dependence"]
    for question in re.findall(r"^\| `([^`]+)`", text, re.M):
        assert read_question(question.replace("\\|", "|"), names["measured"].domain, names["measured"].ranges)


def test_the_page_on_public_starts_can_be_followed(shell):
    text = page("public-start.md")
    followed(text, shell)
    (session,) = re.findall(r"^```sh-session\n(.*?)^```", text, re.M | re.S)
    printed_alike(session, shell)


def test_the_page_on_many_releases_can_be_followed(shell):
    text = page("many-releases.md")
    names, rows = followed(text, shell), table_rows(text)
    assert Ledger("workers.ledger").read().spent == Fraction(1, 2)
    assert float(rows["with delta = 0"][0]) == names["added"].epsilon == 5
    shown = rows["with delta = 1e-6, if all are SmallDB (census or rejection)"]
    assert shown == [rounded_up(names["ten"].epsilon, 4)]
    table = "with delta = 1e-6, if all measure one table under replace-one (`marginals`, strategy `cells`)"
    assert rows[table] == [rounded_up(names["table"].epsilon, 4)]
    assert names["mixed"].epsilon < 5
    assert rows["with delta = 1e-6, whatever they are"] == [rounded_up(names["pure"].epsilon, 4)]


def test_the_reference_has_every_room_of_public_names():
    parts = set(re.findall("^::: (.*)$", page("reference.md"), re.M))
    rooms = {
        f"smalldb.{name}" for name in smalldb.__all__ if (ROOT / "smalldb" / name / "__init__.py").exists()
    }
    assert {"smalldb", "queries", "smalldb.schema"} | rooms <= parts | {"smalldb.plan", "smalldb.release"}


def test_what_is_made_from_the_code_is_up_to_date():
    """The reference of the command line; strategies, noises and laws in the schema of records."""
    assert page("commands.md") == loaded("commands.py").text(), "run: python docs/commands.py"
    made = loaded("record_schema.py")
    text = made.HOME.read_text(encoding="utf-8")
    assert made.written(text) == text, "run: python docs/record_schema.py"
    less = text.replace('"contrasts", "adaptive"', '"contrasts"').replace('"const": "cone"', "0")
    assert made.written(less.replace('"Laplace noise", ', "")) == text


def test_the_page_on_the_mechanisms_is_computed():
    text = page("mechanisms.md")
    names = followed(text)
    assert names["counted"] == {0.2: 4, 0.3: 2, 0.4: 8, 0.6: 12, 0.7: 10}
    for share, row in zip(names["law"].probabilities, ("0.2", "0.3", "0.4"), strict=False):
        assert table_rows(text)[row][2] == f"{share:.3f}"
    assert f"The mean error of this draw is {names['law'].mean():.3f}" in text
    (deviation,) = names["plan"].chosen.strategy.deviations.values()
    assert f"standard deviation of {deviation:.1f} people" in text
    assert names["synthetic"].shape == (10, 3)


def test_what_is_pointed_to_is_there():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    for path in pages:
        text = path.read_text(encoding="utf-8")
        for named in re.findall(r"`((?:docs|examples)/[\w./-]+)`", text):
            assert (ROOT / named).exists(), (path.name, named)
        for linked in re.findall(r"\]\(([\w./-]+)(?:#[\w-]+)?\)", text):
            assert (path.parent / linked).exists(), (path.name, linked)


def test_every_command_has_help_with_an_example():
    commands = next(action for action in parser()._actions if action.dest == "command" or action.choices)
    named = set("app generate tables plan bounds account ask census audit evaluate ledger schema".split())
    assert set(commands.choices) == named
    assert "example: smalldb generate" in parser().format_help()
    shown = re.findall(r"^\$ smalldb (.*)$", README, re.M)
    assert len([parser().parse_args(shlex.split(command, comments=True)).run for command in shown]) == 7
    for name, command in commands.choices.items():
        assert re.search(rf"^example: smalldb {name} .*[^\\s]$", command.format_help(), re.M)
        assert command.epilog in command.format_help()
        assert f"smalldb {name}" in README


def test_the_comparison_of_selections_is_computed():
    text = page("selection.md")
    names = followed(text)
    for epsilon, row in (("1/4", "1/4"), (1, "1"), (4, "4")):
        figures = [f"{names['expected'][epsilon, method]:.4f}" for method in names["realised"]]
        assert f"| {row} | {' | '.join(figures)} |" in text
    for method, (loss, spread) in names["realised"].items():
        assert f"| {method} | {loss:.4f} | {spread:.4f} |" in text
    many = {method: rounded_up(epsilon, 3) for method, epsilon in names["many"].items()}
    assert f"lose {many['exponential']} together by the exponential mechanism" in text
    assert f"{many['permute-and-flip']} by permute-and-flip, and {many['noisy-max']} by noisy max" in text


@pytest.mark.parametrize("epsilon", ["1/100", "1/2", 4])
def test_with_two_candidates_laplace_noise_never_wins(epsilon):
    wrong = {
        method: smalldb.selection_law([1, 0], epsilon=epsilon, sensitivity=1, method=method)[(1,)]
        for method in ("exponential", "noisy-max")
    }
    r = Fraction(epsilon) / 2
    apart = math.exp(-r) * (r / 4 - math.tanh(r / 2) / 2)
    assert wrong["noisy-max"][0] > wrong["exponential"][1]
    found = float(wrong["noisy-max"][0] - wrong["exponential"][0])
    assert found == pytest.approx(apart, rel=1e-6, abs=1e-15)


def test_the_table_on_calibration_is_computed():
    """SmallDB before and after, and beside the best where that takes no minutes."""
    every = re.findall(r"^\| ([\w:]+), (\d) attributes? \| (.*) \|$", page("theory.md"), re.M)
    lines = [line for line in every if line[2].count("|") == 6]
    assert len(lines) == 10

    def told(figure):
        return f"{figure:.4f}".removeprefix("0")

    for queries, attributes, row in lines:
        n, rows, epsilon, plain, calibrated, of_rows, free = row.split(" | ")
        domain, given = Domain(list("ab")[: int(attributes)]), {"n": int(n), "rows": int(rows)}
        internal = smalldb.auditing.calibrated(domain, queries, **given, epsilon=epsilon).internal
        means = [
            smalldb.auditing.accuracy(domain, queries, **given, epsilon=each).worst_mean
            for each in (epsilon, internal)
        ]
        assert (plain, calibrated) == (told(means[0]), f"{told(means[1])} ({float(internal):.3f})")
        if attributes == "1":
            for rows_, figure in ((int(rows), of_rows), (None, free)):
                best = smalldb.auditing.minimax(domain, queries, n=int(n), rows=rows_, epsilon=epsilon)
                assert figure == told(float(best.lower))


def test_the_page_on_the_theory_is_computed():
    text = page("theory.md")
    names = followed(text)
    assert (names["of_cuts"], float(names["truth"].quantile("0.95"))) == (1706, 0.3)
    assert (rounded_up(names["ten_draws"], 4), names["truth"].n) == ("7.69", 40)
    every = re.findall(r"^\| ([\w:]+), (\d) attributes? \| (.*) \|$", text, re.M)
    best = [line for line in every if line[2].count("|") == 5]
    assert len(best) == 6
    for queries, attributes, row in best:
        n, rows, epsilon, *figures = row.split(" | ")
        given = {"n": int(n), "rows": int(rows), "epsilon": epsilon}
        found = smalldb.auditing.minimax(Domain(list("ab")[: int(attributes)]), queries, **given)
        exact = found.smalldb, float(found.lower), found.ratio
        assert [float(figure) for figure in figures] == pytest.approx(exact, abs=0.006)
    assert (f"{names['printed']:.3f}", f"{names['sharp']:.3f}", names["needed"]) == ("0.485", "0.118", 1273)
    assert (
        f"| {names['rows'][0]} | {names['rows'][1]:,} | {names['rows'][2]:,} | {names['rows'][3]:,} |" in text
    )
    assert rounded_up(names["ten"].epsilon, 4) == "3.633"
    assert rounded_up(names["only_pure"].epsilon, 6) == "4.99989"
    assert all(f"cost {figure}" in text for figure in ("3.633", "4.99989", "3.570"))
    cases = {
        "4, 10, 10^3, 1, .05": (16, 10, 10**3, 1, "0.05"),
        "8, 36, 10^4, 1, .05": (256, 36, 10**4, 1, "0.05"),
        "10, 56, 10^5, .5, .01": (1024, 56, 10**5, "0.5", "0.01"),
        "32, 41449, 10^8, .1, .001": (2**32, 41449, 10**8, "0.1", "0.001"),
    }
    for title, (cells, queries, n, epsilon, beta) in cases.items():
        given = {"n": n, "cells": cells, "queries": queries, "epsilon": epsilon, "beta": beta}
        (row,) = (line for line in text.splitlines() if line.startswith(f"| {title} |"))
        stated = [float(figure) for figure in re.findall(r"\| (\.\d{4})", row)]
        sharp = [
            smalldb.bounds.sharp(**given, rows=smalldb.bounds.best_rows(**given, method=name), method=name)
            for name in ("hoeffding", "least")
        ]
        exact = [smalldb.bounds.theorem_4_5(**given), smalldb.bounds.proposition_4_4(**given), *sharp]
        assert all(bound <= figure < bound + 1.01e-4 for bound, figure in zip(exact, stated, strict=True)), (
            row
        )


def test_tables_are_reproduced_by_their_maker(examples, tmp_path):
    maker = tmp_path / "make_tables.py"
    maker.write_text((examples / "make_tables.py").read_text(encoding="utf-8"), encoding="utf-8")
    runpy.run_path(str(maker), run_name="__main__")
    for name in ("autoworkers.csv", "titanic.csv"):
        assert (tmp_path / name).read_bytes() == (examples / name).read_bytes()


def test_margins_are_the_published_ones(examples):
    workers = pd.read_csv(examples / "autoworkers.csv")
    assert workers.shape == (1841, 6)
    assert workers["family_history"].sum() == 260
    titanic = pd.read_csv(examples / "titanic.csv")
    assert titanic.shape == (2201, 6)
    assert titanic[["first_class", "second_class", "third_class"]].sum().tolist() == [325, 285, 706]
    assert (titanic["survived"].sum(), titanic["child"].sum(), titanic["female"].sum()) == (711, 109, 470)


def test_quickstart_runs(examples, capsys):
    runpy.run_path(str(examples / "quickstart.py"), run_name="__main__")
    told = capsys.readouterr().out
    record, _ = json.JSONDecoder().raw_decode(told[told.index("{") :])
    assert record["rows"] == 6
    assert "confidential: the largest error" in told


@pytest.mark.parametrize("notebook", ["analyst", "small_database", "steward"])
def test_the_cells_print_what_they_printed(notebook, examples, monkeypatch, capsys):
    shown = []
    monkeypatch.setattr(pyplot, "show", lambda: shown.append(pyplot.gcf()))
    monkeypatch.chdir(examples)
    cells = json.loads((examples / f"{notebook}.ipynb").read_text(encoding="utf-8"))["cells"]
    names = {}
    for cell in (cell for cell in cells if cell["cell_type"] == "code"):
        exec("".join(cell["source"]), names)
        stored = [output for output in cell["outputs"] if output["output_type"] == "stream"]
        assert capsys.readouterr().out == "".join(line for output in stored for line in output["text"])
        pictures = [output for output in cell["outputs"] if "image/png" in output.get("data", {})]
        assert len(pictures) == len(shown)
        while shown:
            pyplot.close(shown.pop())
