"""All that is known of an error in one table: printed, proved, promised by others, and impossible."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from queries import Domain, spec
from smalldb.bounds.calculators import Infeasible, defined
from smalldb.bounds.inverse import sharp_data, sharp_epsilon, sharp_queries
from smalldb.bounds.lecture import (
    proposition_4_4,
    proposition_4_4_data,
    proposition_4_4_rows,
    theorem_4_5,
    theorem_4_5_data,
    theorem_4_5_epsilon,
    theorem_4_5_rows,
)
from smalldb.bounds.optimum import rows_for
from smalldb.bounds.packing_lower_bound import packing
from smalldb.bounds.promises import best_rows, expected, sharp, sharp_neighbourhood
from smalldb.bounds.rivals import (
    laplace_answers,
    laplace_answers_tail,
    laplace_histogram,
    laplace_histogram_tail,
    mwem,
    private_multiplicative_weights,
)
from smalldb.bounds.vc_dimension import vc_rows
from smalldb.exact.numbers import Number

KINDS = ("printed", "proved", "mean", "other", "lower")

MANY = 10**18  # queries: as far as `sharp_queries` looks
SHARP_DATA, SHARP_EPSILON = "n, by the sharp bound", "epsilon, by the sharp bound"
SHARP_QUERIES = "queries at most, by the sharp bound"
SHARP = SHARP_DATA, SHARP_EPSILON, SHARP_QUERIES
FOR_TWO = "as for two queries: false for one"


@dataclass(frozen=True, slots=True)
class Bound:
    """
    A bound on the error.

    Attributes
    ----------
    name
        What states it.
    error
        Exceeded with probability at most beta; of kind "mean" a bound on the mean; of kind "lower" one that
        every private mechanism exceeds with more than beta, on some table.
    rows
        Of the small database; None where that plays no part.
    kind
        "printed": the lecture's, in its form. "proved": SmallDB's. "mean": SmallDB's mean. "other": what
        another purely private mechanism promises. "lower".
    """

    name: str
    error: float
    rows: int | None
    kind: str


@defined
def comparison(
    *,
    n: int,
    cells: int,
    queries: int,
    epsilon: Number,
    beta: Number,
    rows: int | None = None,
    candidates: str = "multisets",
    method: str = "least",
    apart: int = 1,
) -> list[Bound]:
    """
    Return all bounds for the same public numbers.

    Equations (4) to (6), (10), (16), (29) and (31) to (33) of `docs/theory.md`.

    Parameters
    ----------
    rows
        Of the small database; by default the best. Theorem 4.5 speaks of its own.
    method
        How OPT is bounded: `class_method` knows the one of a class.
    apart
        How many cells the queries tell apart: `cells_apart` counts them; 1 leaves out the lower bound.

    Examples
    --------
    >>> table = comparison(n=5000, cells=16, queries=10, epsilon=1, beta="0.05", apart=16)
    >>> [bound.name for bound in table if bound.kind == "other"][:2]
    ['MWEM', 'private multiplicative weights']
    """
    numbers: dict[str, Any] = {"n": n, "cells": cells, "queries": queries, "epsilon": epsilon, "beta": beta}
    base: dict[str, Any] = {"candidates": candidates}
    printed = as_printed(numbers)
    no_beta = {name: value for name, value in numbers.items() if name != "beta"}
    noise = {name: value for name, value in numbers.items() if name != "cells"}

    def chosen(method: str) -> int:
        return best_rows(**numbers, **base, method=method) if rows is None else rows

    m = chosen("least")
    bounds = [
        Bound("Theorem 4.5", theorem_4_5(**printed), theorem_4_5_rows(**printed), "printed"),
        Bound("Proposition 4.4, best alpha", proposition_4_4(**printed), None, "printed"),
        Bound("Proposition 4.4, whole rows", proposition_4_4_rows(**numbers, **base, rows=m), m, "proved"),
        Bound("sharp", sharp(**numbers, **base, rows=m), m, "proved"),
    ]
    if method != "least":
        m = chosen(method)
        error = sharp(**numbers, **base, rows=m, method=method)
        bounds.append(Bound(f"sharp, {method}", error, m, "proved"))
    bounds += [
        Bound("mean", expected(**no_beta, **base, rows=m, method=method), m, "mean"),
        Bound("MWEM", mwem(**numbers), None, "other"),
        Bound("private multiplicative weights", private_multiplicative_weights(**numbers), None, "other"),
        Bound("Laplace noise on each answer", laplace_answers_tail(**noise), None, "other"),
        Bound("Laplace noise on each cell", laplace_histogram_tail(**numbers), None, "other"),
    ]
    if apart > 1:
        least = packing(n=n, apart=apart, epsilon=epsilon, beta=beta)
        bounds.append(Bound("any private mechanism, at least (packing)", least, None, "lower"))
    return bounds


def vapnik(queries: str | None, domain: Domain) -> list[int] | None:
    """Return what is known of the VC dimension, or None where the class has none."""
    chosen = spec.default(domain) if queries is None else spec.parse(queries)
    try:
        dimension = chosen.vc_dimension(domain)
    except ValueError:
        return None
    return [dimension.low, dimension.high]


def promises(numbers: dict[str, Any], rows: int | None, candidates: str) -> list[dict[str, Any]]:
    """Return the errors that are promised, and for how many rows; a note where that needs one."""
    printed, ours = as_printed(numbers), numbers | {"candidates": candidates}
    no_beta = {name: value for name, value in numbers.items() if name != "beta"}
    theorem, m = theorem_4_5(**printed), theorem_4_5_rows(**printed)
    bounds: dict[str, tuple[float, int | None]] = {"Theorem 4.5 (4.2), as printed": (theorem, m)}
    if 0 < theorem < 1:  # alpha must be below 1/2 to say anything
        half = proposition_4_4(alpha=Fraction(theorem) / 2, **printed)
        bounds["Proposition 4.4 as printed, alpha half of that"] = half, None
    bounds["Proposition 4.4 as printed, at its best alpha"] = proposition_4_4(**printed), None
    bounds["sharp, Hoeffding, at the theorem's rows"] = sharp(**ours, rows=m, method="hoeffding"), m
    for method, name in (("hoeffding", "sharp, Hoeffding, best rows"), ("least", "sharp, best rows")):
        best = best_rows(**ours, method=method)
        bounds[name] = sharp(**ours, rows=best, method=method), best
    m = best if rows is None else rows
    if rows is not None:
        bounds["sharp, at these rows"] = sharp(**ours, rows=m, method="least"), m
    if candidates == "multisets":
        bounds["  with the neighbourhood of the best"] = sharp_neighbourhood(**numbers, rows=m), m
    bounds["Proposition 4.4 for whole rows"] = proposition_4_4_rows(**ours, rows=m), m
    bounds["bound on the mean error"] = expected(**no_beta, rows=m, candidates=candidates), m
    noise = {name: value for name, value in no_beta.items() if name != "cells"}
    bounds["Laplace noise on each answer instead: mean"] = laplace_answers(**noise), None
    bounds["Laplace noise on each cell instead: bound on the mean"] = laplace_histogram(**no_beta), None
    return [
        {"name": name, "error": error, "rows": m, "note": _note(name, numbers)}
        for name, (error, m) in bounds.items()
    ]


def as_printed(numbers: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers for the lecture's bounds: for one query, where they are false, those for two."""
    return numbers | {"queries": 2} if numbers["queries"] == 1 else numbers


def needs(
    numbers: dict[str, Any], error: Fraction, candidates: str, vc: list[int] | None, rows: int | None = None
) -> list[dict[str, Any]]:
    """Return what an error needs, each with the other numbers as given; a note where that needs one."""
    # The sharp bound is taken at `rows`, by default at its best ones. A value is None where nothing
    # will do.
    rest = {name: value for name, value in numbers.items() if name not in ("n", "epsilon", "queries")}
    base: dict[str, Any] = {"error": error, "candidates": candidates, "rows": rows}
    n, epsilon, queries = numbers["n"], numbers["epsilon"], numbers["queries"]
    two = as_printed(numbers)["queries"]
    values: dict[str, Any] = {
        "n, by Theorem 4.5 (4.3)": theorem_4_5_data(error=error, queries=two, epsilon=epsilon, **rest),
        SHARP_DATA: _possible(sharp_data, queries=queries, epsilon=epsilon, **rest, **base),
        "epsilon, by Theorem 4.5": theorem_4_5_epsilon(error=error, n=n, queries=two, **rest),
        SHARP_EPSILON: _possible(sharp_epsilon, n=n, queries=queries, **rest, **base),
        SHARP_QUERIES: sharp_queries(n=n, epsilon=epsilon, **rest, **base),
        "n, by Proposition 4.4 as printed, alpha half of it": proposition_4_4_data(
            error=error, alpha=error / 2, queries=two, epsilon=epsilon, **rest
        ),
        "rows for OPT, lecture": rows_for(alpha=error, queries=queries),
        "rows for OPT, Hoeffding": rows_for(alpha=error, queries=queries, method="hoeffding"),
    }
    if vc is not None and vc[1]:
        for method in ("encyclopaedia", "standard", "sauer"):
            cells = numbers["cells"] if method == "sauer" else None
            name = f"rows for a deviation of half that by VC dimension {vc[1]}, {method}"
            values[name] = vc_rows(dimension=vc[1], alpha=error / 2, method=method, cells=cells)
    notes = {name: None if rows is None else f"with {whole(rows)} rows" for name in SHARP}
    return [
        {"name": name, "value": value, "note": notes.get(name) or _note(name, numbers)}
        for name, value in values.items()
    ]


def _possible(calculated: Callable[..., Any], **settings: Any) -> Any:
    """Return what a calculator says, or None where nothing will do."""
    try:
        return calculated(**settings)
    except Infeasible:
        return None


def whole(rows: int) -> str:
    """Write a number of rows: in digits, as far as people read them."""
    return str(rows) if rows < MANY else f"{Decimal(rows):.2e}"


def _note(name: str, numbers: dict[str, Any]) -> str | None:
    printed = "Theorem 4.5" in name or "as printed" in name
    return FOR_TWO if printed and numbers["queries"] == 1 else None
