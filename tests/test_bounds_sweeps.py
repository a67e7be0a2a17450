"""Calculators over arrays: each element is the number, one dict fits all, and sweeps are quick."""

import inspect
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import smalldb
from queries import Domain
from smalldb import bounds
from smalldb.bounds.calculators import CALCULATORS, DEFINITIONS

SETTINGS = {"n": 1000, "cells": 16, "queries": 10, "rows": 98, "epsilon": Fraction(1, 2), "beta": 0.05}
SETTINGS |= {"error": "0.4", "alpha": 0.3, "dimension": 3, "attributes": 4, "optimum": 0.1, "total": 50}
SETTINGS |= {"near": 3, "good": 1, "bad": 4, "gap": 0.2, "apart": 16, "width": 2, "candidates": "multisets"}
THEORY = (Path(__file__).parent.parent / "docs" / "theory.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CALCULATORS)
def test_one_dict_fits_all(name):
    own = inspect.signature(CALCULATORS[name]).parameters
    given = {setting: value for setting, value in SETTINGS.items() if setting in own}
    assert CALCULATORS[name](**SETTINGS) == CALCULATORS[name](**given)


@pytest.mark.parametrize("name", CALCULATORS)
def test_arrays_are_their_numbers(name):
    """Broadcast over two axes, exact numbers and texts as they are."""
    swept = {"n": [[300], [10**4]], "queries": np.array([[2], [30]]), "epsilon": ["1/3", 2, Fraction(1, 7)]}
    if "dimension" in inspect.signature(CALCULATORS[name]).parameters:
        swept["dimension"] = [1, 2, 4]
    found = CALCULATORS[name](**SETTINGS | swept)
    shape = np.broadcast_shapes(
        *(np.shape(v) for k, v in swept.items() if k in inspect.signature(CALCULATORS[name]).parameters)
    )
    assert np.shape(found) == shape
    for position in np.ndindex(shape):
        one = {
            key: np.broadcast_to(np.array(value, dtype=object), (2, 3))[
                position if len(position) == 2 else (0, *position)
            ]
            for key, value in swept.items()
        }
        assert found[position] == CALCULATORS[name](**SETTINGS | one)


WRONG = {
    "n": (0, -1, True, 2.0, "3", None),
    "cells": (0, False, 2.5),
    "rows": (0, True, "3"),
    "max_rows": (0, True),
    "queries": (-1, True, 1.0),
    "epsilon": (0, -1, True, "one", float("nan"), float("inf"), None),
    "alpha": (0, 1, "3/2", True),
    "beta": (0, 1, -0.1, True, [0.1, 2], {0.1}),
    "error": (0, 1, 2, True),
    "candidates": ("sets", None),
    "method": ("log2", None),
    "dimension": (0, True, 1.5),
    "attributes": (0, True),
    "optimum": (2, -1, True),
    "counted": ("all",),
    **dict.fromkeys(("total", "rounds"), (0, True)),
    **dict.fromkeys(("support", "sensitivity", "apart", "width", "moves", "good", "near", "distance"), (0,)),
}


@pytest.mark.parametrize("name", CALCULATORS)
def test_every_bad_argument_is_named(name):
    for setting in inspect.signature(CALCULATORS[name]).parameters:
        for value in WRONG.get(setting, ()):
            with pytest.raises((ValueError, TypeError), match=f"^{setting} must [^\n]*$"):
                CALCULATORS[name](**SETTINGS | {setting: value})


def test_a_name_that_nobody_knows_is_refused():
    with pytest.raises(TypeError, match="sise"):
        bounds.sharp(**SETTINGS, sise=3)
    with pytest.raises(TypeError, match="rows"):
        bounds.sharp(**{name: value for name, value in SETTINGS.items() if name != "rows"})
    with pytest.raises(ValueError, match="beta must"):
        bounds.sharp(**SETTINGS | {"beta": [0.1, 2]})


def test_where_nothing_will_do_a_sweep_goes_on():
    given = SETTINGS | {"rows": [1, 98], "error": "1/10"}
    found = bounds.sharp_data(**given)
    assert np.isnan(found[0])
    assert found[1] == bounds.sharp_data(**given | {"rows": 98})
    with pytest.raises(bounds.Infeasible, match="error must be larger"):
        bounds.sharp_data(**given | {"rows": 1})


def test_large_whole_numbers_stay_exact():
    found = bounds.theorem_4_5_data(**SETTINGS | {"epsilon": pd.Series(["1e-30", "1/2"], index=[7, 9])})
    assert found.dtype == object
    assert found[0] == bounds.theorem_4_5_data(**SETTINGS | {"epsilon": "1e-30"}) > 1 << 63
    assert bounds.theorem_4_5_data(**SETTINGS | {"epsilon": [1, "1/2"]}).dtype == np.int64


def test_tables():
    small = {name: SETTINGS[name] for name in ("n", "cells", "queries", "epsilon", "beta")}
    found = bounds.table(**small | {"n": [[100], [1000]], "epsilon": [1, 2, "1/2"]})
    assert len(found) == 6
    assert list(found.columns[:6]) == ["n", "cells", "queries", "epsilon", "beta", "rows"]
    for _, row in found.iterrows():
        given = {name: row[name] for name in small}
        assert row["rows"] == bounds.best_rows(**given)
        assert row["sharp"] == bounds.sharp(**given, rows=row["rows"])
        assert row["theorem_4_5"] == bounds.theorem_4_5(**given)
    assert bounds.table(["theorem_4_5"], **small).shape == (1, 6)
    assert "sharp" not in bounds.table(cells=4, dimension=[1, 2])
    assert bounds.table(cells=4, dimension=[1, 2])["sauer"].tolist() == [5, 11]
    with pytest.raises(ValueError, match="calculators must be some of"):
        bounds.table(["sharpe"], **small)


@pytest.mark.parametrize("name", CALCULATORS)
def test_docstrings_define_their_settings_once_and_cite_the_theory(name):
    text = CALCULATORS[name].__doc__
    for setting in inspect.signature(CALCULATORS[name]).parameters:
        if setting in DEFINITIONS:
            entries = [
                line for line in text.splitlines() if re.match(rf"(\w+, )*{setting}(, \w+)*( : |$)", line)
            ]
            assert len(entries) == 1, setting
    assert text.count("Parameters\n----------\n") == 1
    numbers = re.findall(r"Equation \((\d+)\) of `docs/theory.md`", text)
    assert len(numbers) == 1
    row = next(line for line in THEORY.splitlines() if line.startswith(f"| ({numbers[0]}) |"))
    assert name in row or name.rsplit("_", 1)[0] in row


def test_audits_as_tables():
    """One row each, to be put together; nothing in it is below what was found."""
    universe = Domain(["a", "b"])
    found = [smalldb.audit(universe, "conjunctions:2", n=3, epsilon=e, rows=2) for e in ("1/3", 1)]
    frame = pd.concat([audit.to_frame() for audit in found], ignore_index=True)
    assert list(frame.columns) == ["loss", "range", "cap", "databases", "pairs"]
    assert frame["loss"].tolist() == [audit.worst_loss for audit in found]
    assert frame["pairs"].tolist() == [audit.pairs for audit in found]
    for audit, limit in zip(found, frame["cap"], strict=True):
        assert audit.cap <= Fraction(limit)
