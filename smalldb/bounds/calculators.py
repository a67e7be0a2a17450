"""What all calculators share: one vocabulary of settings, arrays in place of numbers, tables, searches."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial, wraps
from inspect import Parameter, cleandoc, signature
from math import exp, log
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from queries.arrays import pd
from smalldb.exact.numbers import as_fraction, between_0_and_1, positive, whole

Function = TypeVar("Function", bound=Callable[..., Any])
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
Exact: TypeAlias = Any
"""What a caller gives as an exact number, and a calculator gets as a Fraction."""
READERS: dict[str, Callable[[Any, str], Any]] = {
    **dict.fromkeys(("bad", "queries"), partial(whole, least=0)),
    **dict.fromkeys(("n", "cells", "rows", "max_rows", "rounds", "dimension", "attributes", "width"), whole),
    **dict.fromkeys(("apart", "moves", "good", "best", "near", "total", "most"), whole),
    **dict.fromkeys(("epsilon", "gap", "sensitivity", "support"), positive),
    **dict.fromkeys(("beta", "error", "alpha"), between_0_and_1),
}
"""How the settings are read, by name."""
CALCULATORS: dict[str, Callable[..., Any]] = {}
_known = set[str]()
Height = TypeVar("Height", Decimal, float)


class Infeasible(ValueError):
    """No number of what is asked for will do, with the other numbers as they are."""


def share(value: object, name: str) -> Fraction:
    """Read an exact number from 0 to 1, both included."""
    number = as_fraction(value, name)
    if not 0 <= number <= 1:
        raise ValueError(f"{name} must lie between 0 and 1")
    return number


def one_of(known: tuple[str, ...], value: str, name: str) -> str:
    """Read one of a few words."""
    if value not in known:
        words = " or ".join(filter(None, (", ".join(map(repr, known[:-1])), repr(known[-1]))))
        raise ValueError(f"{name} must be {words}, not {value!r}")
    return value


def calculator(function: Function) -> Function:
    """Let a calculator of numbers take arrays, and settings that only others use; `READERS` read them."""
    parameters = signature(function).parameters

    def read(**settings: Any) -> Any:
        for name, value in settings.items():
            if name in READERS and not (name in parameters and value is None is parameters[name].default):
                settings[name] = READERS[name](value, name)
        return function(**settings)

    @wraps(defined(function))
    def wide(**settings: Any) -> Any:
        ours = {name: value for name, value in settings.items() if name in parameters or name not in _known}
        return _broadcast(read, ours, ours, Infeasible)

    CALCULATORS[function.__name__] = wide
    _known.update(parameters)
    return cast(Function, wide)


def sweeping(*names: str) -> Callable[[Function], Function]:
    """Let arguments of these names be arrays; a function of several numbers returns as many arrays."""

    def swept(function: Function) -> Function:
        @wraps(function)
        def wide(**settings: Any) -> Any:
            return _broadcast(function, settings, names)

        return cast(Function, wide)

    return swept


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


def _broadcast(
    function: Function, settings: dict[str, Any], names: Iterable[str], *infeasible: type[Exception]
) -> Any:
    """Call a function for each setting of the named arguments, which are broadcast as numpy does."""
    # exact numbers, texts and large integers stay what they are, and floats of arrays become Python's
    swept = {name: settings[name] for name in names if name in settings}
    if not any(np.ndim(value) for value in swept.values()):
        return function(**settings)
    spread = np.broadcast_arrays(*map(_array, swept.values()))
    results = []
    for values in zip(*(array.ravel().tolist() for array in spread), strict=True):
        try:
            results.append(function(**settings | dict(zip(swept, values, strict=True))))
        except infeasible:
            results.append(np.nan)
    several = results and isinstance(results[0], tuple)
    parts = zip(*results, strict=True) if several else [results]
    arrays = tuple(_plain(np.array(part, dtype=object)).reshape(spread[0].shape) for part in parts)
    return arrays if several else arrays[0]


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


def defined(function: Function) -> Function:
    """Add the definitions of its settings to a docstring, those that it gives itself left out."""
    if function.__doc__ is None:  # python -OO
        return function
    text = cleandoc(function.__doc__)
    described = {name for line in text.splitlines() for name in line.split(" : ")[0].split(", ")}
    entries = [
        "\n{} : {}\n    {}".format(name, *DEFINITIONS[name])
        for name in signature(function).parameters
        if name in DEFINITIONS and name not in described
    ]
    head = "Parameters\n----------"
    if head not in text:
        text = re.sub(r"\Z|(?=\n\n(Returns|Raises|Notes|Examples)\n-)", f"\n\n{head}", text, count=1)
    function.__doc__ = text.replace(head, head + "".join(entries), 1)
    return function


def last_where(holds: Callable[[int], bool], last: int | None) -> int:
    """Return the last m of 1..last that `holds`, which those before do too; 0 if none does."""
    below, above = 0, 1
    while (last is None or above <= last) and holds(above):
        below, above = above, 2 * above
    above = above if last is None else min(above, last + 1)
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (middle, above) if holds(middle) else (below, middle)
    return below


def valley(height: Callable[[int], Height], first: int, last: int | None) -> int:
    """Return the least m in first..last at the bottom of `height`, which falls and then rises."""
    # cost: some 2 log2 of how far the bottom lies from `first`, in evaluations
    low, step = first, 1
    while (last is None or low + step <= last) and height(low + step) < height(low + step - 1):
        low, step = low + step, 8 * step
    high = low + step if last is None else min(low + step, last)
    while low < high:  # bisect_left would end at 2^63
        middle = (low + high) // 2
        low, high = (middle + 1, high) if height(middle + 1) < height(middle) else (low, middle)
    return low


def lambert(level: float) -> float:
    """Return about the u with u + e^u = level: e^u is Lambert's W(e^level)."""
    u = level if level < 1 else log(level)
    for _ in range(8):
        u -= (u + exp(u) - level) / (1 + exp(u))
    return u
