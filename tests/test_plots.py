"""The pictures of public numbers: what stands in them, and the same bytes each time."""

import re
from fractions import Fraction
from io import StringIO
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from calling import called

from queries import Column, Domain, Rows
from smalldb.accounting import compose
from smalldb.reporting.page.pictures import marginals
from smalldb.reporting.plots import plot_evaluation, plot_shares
from smalldb.reporting.plots_base import bound, number, plot_composition, rendered
from smalldb.reporting.plots_bounds import Setting, drawn_bounds

GIVEN = {"n": 900, "cells": 8, "queries": 7, "epsilon": Fraction(1), "beta": Fraction(1, 20)}
COMMANDS = {
    "account": ("account", "--epsilon", "0.5", "--releases", 10, "--delta", "1e-6", "--bounded-range"),
    "bounds": "bounds --attributes 3 --n 900 --epsilon 1 --against rows".split(),
    "audit": "audit --attributes 1 --queries conjunctions:1 --rows 2 --epsilon 1 --n 4".split(),
    "plan": "plan --attributes 3 --n 500 --epsilon 1 --mechanism marginals --strategy contrasts".split(),
}


def texts(picture):
    return " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", picture.decode()))


@pytest.mark.slow
@pytest.mark.parametrize("axis", ["n", "epsilon", "rows"])
def test_a_picture_of_bounds_says_what_it_is(axis):
    setting = Setting(GIVEN, method="thresholds", apart=8, name="thresholds")
    said = texts(rendered(drawn_bounds(setting, axis), "svg"))
    names = "Theorem 4.5", "Proposition 4.4", "sharp", "sharp, thresholds", "MWEM", "packing", "Laplace noise"
    assert all(name in said for name in (*names, "|Q| = 7", "N = 8", "n = 900", "m = "))
    assert f"m = {setting.table()[4].rows}" in said
    if axis == "rows":
        theorem = setting.table()[0]
        assert f"{bound(theorem.error)} at its own {theorem.rows} rows" in said


@pytest.mark.slow
@pytest.mark.parametrize("axis", ["n", "epsilon", "rows"])
def test_nothing_overlaps_or_is_cut(axis):
    given = GIVEN | {"n": 10**6, "queries": 45_150, "cells": 2**300}
    figure = drawn_bounds(Setting(given, apart=2**300, method="thresholds", name="conjunctions:2"), axis)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    (legend,) = figure.legends
    frame, title = figure.get_window_extent(), axes.title.get_window_extent()
    below = legend.get_window_extent()
    for box in (title, below):
        assert frame.x0 <= box.x0 < box.x1 <= frame.x1
        assert frame.y0 <= box.y0 < box.y1 <= frame.y1
    assert not title.overlaps(below)
    shown = axes.get_xlim()
    ticks = [t.label1 for t in axes.xaxis.get_major_ticks() if shown[0] <= t.get_loc() <= shown[1]]
    boxes = sorted((tick.get_window_extent() for tick in ticks if tick.get_text()), key=lambda box: box.x0)
    assert len(boxes) > 3
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
    assert all(box.y0 > below.y1 for box in boxes)


@pytest.mark.slow
def test_what_pictures_state_is_rounded_up():
    """19.9947 is no 19.9 in a title, and a bound at epsilon 1/3 none at .333."""
    made = compose(epsilon=1, releases=20, delta="1/30000")
    composed = {20: made}.get
    title = texts(plot_composition(made, lambda count: composed(count, made), 20, "svg"))
    assert "20 releases lose at most epsilon = 20 together" in title
    assert "delta = 3.34e-5" in title
    setting = Setting(GIVEN | {"epsilon": Fraction(1, 3)})
    said = texts(rendered(drawn_bounds(setting, "epsilon"), "svg"))
    *_, best = (made.error for made in setting.table() if made.kind == "proved")
    (stated,) = re.findall(r"epsilon = 0\.334, m = \d+: ([\d.]+)", said)
    assert best <= float(stated) <= best * 1.01


def test_bounds_beyond_the_picture_are_named():
    assert [number(x) for x in (0.05, 20000, 1e9, 1e-6, 462)] == ["0.05", "20,000", "1e9", "1e-6", "462"]
    said = texts(rendered(drawn_bounds(Setting(GIVEN | {"n": 5, "queries": 1000}), "n"), "svg"))
    assert re.search(r"private multiplicative weights: above [\d,.]+ everywhere", said)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "form"), [*((name, "svg") for name in COMMANDS), ("plan", "png"), ("plan", "pdf")]
)
def test_commands_draw(name, form, capfd, tmp_path):
    pictures = []
    for run in range(1 + (name == "plan")):  # the same bytes each time
        path = tmp_path / f"{run}.{form}"
        code, _, err = called(capfd, *COMMANDS[name], "--plot", path)
        assert (code, err) == (0, "")
        pictures.append(path.read_bytes())
    assert len({*pictures}) == 1
    assert pictures[0][:4] in (b"\x89PNG", b"<?xm", b"%PDF")
    if form == "svg":
        said = texts(pictures[0])
        stated = {"account": "delta = 1e-6", "audit": "N = 2", "plan": "the share of a category, by noise"}
        stated["bounds"] = "n = 900"
        assert stated[name] in said


def test_the_audit_tells_the_error(capfd):
    code, out, _ = called(capfd, *COMMANDS["audit"], "--error")
    assert code == 0
    assert "error over all 5 tables of 4 rows, with probability 0.95" in out
    table = pd.read_csv(StringIO(called(capfd, *COMMANDS["audit"], "--error", "--csv")[1]))
    assert table["neighbours"].tolist() == ["replace-one", "add-remove"]
    assert table["databases"].tolist() == [5, 15]
    assert (table["loss"] <= table["cap"]).all()
    assert (table["worst quantile"] <= table["sharp"]).all()
    assert '"error": {' in called(capfd, *COMMANDS["audit"], "--error", "--json")[1]


def test_pictures_of_long_names_keep_their_room():
    name = "the income of all people of the household, before taxes, in the currency of the country"
    domain = Domain([Column(name, [f"{i} as somebody once said of {name}" for i in range(9)]), "a"])
    rows = Rows.from_codes(domain, np.arange(18).reshape(9, 2) % 2)
    for drawn in (plot_shares(marginals(rows), "svg"), plot_evaluation(rows, rows, "svg")):  # no warning
        labels = re.findall(r"<text[^>]*>([^<]*)</text>", drawn.decode())
        assert max(map(len, labels)) <= 60
        assert any("..." in label and label.endswith("the country") for label in labels)
