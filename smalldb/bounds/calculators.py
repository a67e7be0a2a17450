"""What all calculators share: one vocabulary of settings, arrays in place of numbers, tables of sweeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, cleandoc, signature
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from queries.late import pd
from smalldb.bounds.arguments import Infeasible

Calculator = TypeVar("Calculator", bound=Callable[..., Any])

DEFINITIONS = {
    "n": ("int", "Rows of the data, at least 1."),
    "cells": ("int", "N, how many different rows there can be (the size of the universe), at least 1."),
    "queries": ("int", "J, how many distinct queries, each with values in [0, 1]; at least 0."),
    "rows": ("int", "m, rows of the small database, at least 1."),
    "epsilon": ("exact number", "Privacy parameter of the release, above 0, in nats."),
    "beta": ("exact number", "Probability that the error is larger than promised, in (0, 1)."),
    "error": ("exact number", "Largest |f(x) - f(y)| over the queries, a share of the rows, in (0, 1)."),
    "alpha": ("exact number", "Error of the best small database, a share of the rows, in (0, 1)."),
    "dimension": ("int", "V, the VC dimension of the queries, at least 1."),
    "attributes": ("int", "k, yes/no attributes of a row: N = 2^k."),
    "candidates": ('{"multisets", "tuples"}', "Which small databases are drawn from."),
    "apart": ("int", "M, how many cells the queries tell apart (`cells_apart` counts them), at least 1."),
    "distance": ("exact number", "By how much some query tells two of the cells apart: 1 for 0/1 queries."),
    "moves": ("int", "Neighbours that a replacement takes: 1, or 2 for add-remove."),
    "method": ('{"least", "hoeffding", "rounding", "binomial"}', "How OPT is bounded, as for `opt`."),
}
"""The settings by name: type and meaning, for the docstrings of all calculators."""

CALCULATORS: dict[str, Callable[..., Any]] = {}
_known = set[str]()
_SECTIONS = ("Parameters", "Returns", "Raises", "Notes", "Examples")


def calculator(function: Calculator) -> Calculator:
    """
    Let a calculator of numbers take arrays, and settings that only others use.

    Any argument may be an array or a list: all are broadcast against each other as numpy does, and the
    result is an array of that shape, NaN where nothing will do. A setting that this calculator does not
    know but another one does is passed over, so that one dict fits all; any other name is a TypeError.
    The docstring gains the definitions of the settings that it does not give itself.
    """
    own = signature(function).parameters

    @wraps(function)
    def wide(**given: Any) -> Any:
        given = {name: value for name, value in given.items() if name in own or name not in _known}
        if not any(np.ndim(value) for value in given.values()):
            return function(**given)
        return _broadcast(function, given)

    CALCULATORS[function.__name__] = wide
    _known.update(own)
    wide.__doc__ = _defined(function.__doc__, list(own))
    return cast(Calculator, wide)


def table(calculators: Sequence[str] | None = None, **settings: Any) -> pd.DataFrame:
    """
    Evaluate calculators over settings: a row a setting, a column a calculator.

    Parameters
    ----------
    calculators
        Their names; by default all to which the settings give what they need.
    settings
        Numbers or arrays, which are broadcast against each other: `n=[100, 1000]` are two settings, and
        `n=[[100], [1000]], epsilon=[0.1, 1]` are four. Without `rows`, each setting has its best rows, if
        that much is given.

    Returns
    -------
    DataFrame
        The settings, then the calculators. NaN where nothing will do.

    Examples
    --------
    >>> settings = {"n": [1000, 10**6], "cells": 16, "queries": 10, "epsilon": 1, "beta": 0.05}
    >>> table(["theorem_4_5", "sharp"], **settings).round(4)[["n", "rows", "theorem_4_5", "sharp"]]
             n   rows  theorem_4_5   sharp
    0     1000     98       0.4851  0.1178
    1  1000000  90917       0.0485  0.0003
    """
    if calculators is None:
        needed = {name: _needed(function) for name, function in CALCULATORS.items()}
        names = [name for name in CALCULATORS if needed[name] and needed[name] <= {*settings, "rows"}]
    else:
        names = list(calculators)
    unknown = [name for name in names if name not in CALCULATORS]
    if unknown:
        raise ValueError(f"calculators must be some of {', '.join(sorted(CALCULATORS))}, not {unknown[0]!r}")
    best = CALCULATORS["best_rows"]
    if "rows" not in settings and any("rows" in _needed(CALCULATORS[name]) for name in names):
        if _needed(best) <= set(settings):
            settings["rows"] = best(**settings)
        elif calculators is None:
            names = [name for name in names if "rows" not in _needed(CALCULATORS[name])]
    spread = np.broadcast_arrays(*(_array(value) for value in settings.values()))
    columns = {name: _plain(values.ravel()) for name, values in zip(settings, spread, strict=True)}
    size = spread[0].size if spread else 1
    for name in names:
        columns[name] = np.broadcast_to(CALCULATORS[name](**settings), spread[0].shape).ravel()
    return pd.DataFrame(columns, index=range(size))


def _needed(function: Callable[..., Any]) -> set[str]:
    """Return the settings that a calculator cannot do without."""
    return {name for name, p in signature(function).parameters.items() if p.default is Parameter.empty}


def _broadcast(function: Callable[..., Any], given: dict[str, Any]) -> npt.NDArray[Any]:
    settings, shape = each_setting(given)
    found = []
    for setting in settings:
        try:
            found.append(function(**setting))
        except Infeasible:
            found.append(np.nan)
    return _plain(np.array(found, dtype=object)).reshape(shape)


def each_setting(given: Mapping[str, Any]) -> tuple[list[dict[str, Any]], tuple[int, ...]]:
    """Broadcast arguments that are arrays or numbers: return each setting, and the shape that they have."""
    # exact numbers, texts and large integers stay what they are, and floats of arrays become Python's
    spread = np.broadcast_arrays(*map(_array, given.values()))
    settings = zip(*(array.ravel().tolist() for array in spread), strict=True)
    return [dict(zip(given, setting, strict=True)) for setting in settings], spread[0].shape


def _array(value: Any) -> npt.NDArray[Any]:
    """Return an array that keeps exact numbers and large integers as they are."""
    if isinstance(value, np.ndarray) or hasattr(value, "to_numpy"):
        return np.asarray(value)
    return np.array(value, dtype=object)


def _plain(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return whole numbers and floats as such, and anything else as objects."""
    if values.dtype != object:
        return values
    if all(type(value) is int and abs(value) < 1 << 63 for value in values):
        return values.astype(np.int64)
    plain = all(type(value) is float or (type(value) is int and abs(value) < 1 << 53) for value in values)
    return values.astype(np.float64) if plain else values


def _defined(doc: str | None, names: list[str]) -> str | None:
    """Add the definitions of settings to a docstring, those that it gives itself left out."""
    if doc is None:  # python -OO
        return None
    text = cleandoc(doc)
    entries = [
        f"{name} : {DEFINITIONS[name][0]}\n    {DEFINITIONS[name][1]}\n"
        for name in names
        if name in DEFINITIONS and not _defines(text, name)
    ]
    head = "Parameters\n----------\n"
    if head in text:
        return text.replace(head, head + "".join(entries), 1)
    section = head + "".join(entries)
    for title in _SECTIONS[1:]:
        mark = f"{title}\n{'-' * len(title)}\n"
        if mark in text:
            return text.replace(mark, f"{section}\n{mark}", 1)
    return f"{text}\n\n{section}"


def _defines(text: str, name: str) -> bool:
    """Return whether a docstring has an entry of a name, alone or among others."""
    entries = (line.split(" : ")[0].split(", ") for line in text.splitlines() if not line.startswith(" "))
    return any(name in entry for entry in entries)
