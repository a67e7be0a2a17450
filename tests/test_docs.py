"""What the README says is so, and its snippets run."""

import math
import re
from fractions import Fraction
from pathlib import Path

import pytest

import smalldb
from queries import Domain
from smalldb.cli import parser

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_python_snippets_run_in_order(monkeypatch):
    monkeypatch.chdir(ROOT)
    found, names = re.findall(r"^```python\n(.*?)^```", README, re.M | re.S), {}
    assert len(found) == 3
    for snippet in found:
        exec(snippet, names)
    assert names["synthetic"].shape == names["release"].data.shape == (6, 6)
    assert names["plan"].rows >= 6
    assert 0 < names["law"].mean() < 1


@pytest.mark.parametrize("attributes, place", [(4, 0), (6, 1)])
def test_the_largest_rows_are_as_stated(attributes, place):
    stated = [int(n) for n in re.search(r"(\d+) rows for four attributes and (\d+) for six", README).groups()]
    domain = Domain([f"x{i}" for i in range(attributes)])
    assert smalldb.plan(domain, n=2000, epsilon=1, rows=stated[place]).rows == stated[place]
    with pytest.raises(ValueError, match="beyond the budget"):
        smalldb.plan(domain, n=2000, epsilon=1, rows=stated[place] + 1)


def test_what_the_readme_points_to_is_there():
    for path in re.findall(r"`((?:docs|examples)/[\w./-]+)`", README):
        assert (ROOT / path).exists(), path


def test_every_command_has_help_with_an_example():
    commands = next(action for action in parser()._actions if action.dest == "command" or action.choices)
    assert set(commands.choices) == {"generate", "plan", "bounds", "account", "census", "audit"}
    for name, command in commands.choices.items():
        assert f"example: smalldb {name}" in command.format_help()
        assert f"smalldb {name}" in README


def snippets(name):
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    names = {}
    for snippet in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S):
        exec(snippet, names)
    return text, names


def test_the_comparison_of_selections_is_computed():
    text, names = snippets("selection.md")
    for epsilon, row in (("1/4", "1/4"), (1, "1"), (4, "4")):
        figures = [f"{names['expected'][epsilon, method]:.4f}" for method in names["realised"]]
        assert f"| {row} | {' | '.join(figures)} |" in text
    for method, (loss, spread) in names["realised"].items():
        assert f"| {method} | {loss:.4f} | {spread:.4f} |" in text
    assert f"lose {names['many'][True]:.2f} together by the exponential mechanism" in text
    assert f"{names['many'][False]:.2f} by the other" in text


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


def test_the_page_on_the_theory_is_computed():
    text, names = snippets("theory.md")
    assert (f"{names['printed']:.3f}", f"{names['sharp']:.3f}", names["needed"]) == ("0.485", "0.118", 1273)
    assert (
        f"| {names['rows'][0]} | {names['rows'][1]:,} | {names['rows'][2]:,} | {names['rows'][3]:,} |" in text
    )
    assert round(names["ten"].epsilon, 3) == 3.632
    assert round(names["only_pure"].epsilon, 5) == 4.99989
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
