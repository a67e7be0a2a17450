"""All that is known of an error in one table: printed, proved, promised by others, and impossible."""

from dataclasses import dataclass
from typing import Any

from smalldb.bounds.lecture import proposition_4_4, proposition_4_4_rows, theorem_4_5, theorem_4_5_rows
from smalldb.bounds.packing_lower_bound import packing
from smalldb.bounds.promises import best_rows, expected, sharp
from smalldb.bounds.rivals import (
    laplace_answers_tail,
    laplace_histogram_tail,
    mwem,
    private_multiplicative_weights,
)
from smalldb.exact.numbers import Number

KINDS = ("printed", "proved", "mean", "other", "lower")


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
    n
        Rows of the data, at least 1.
    cells
        N, the cells of the universe.
    queries
        J, how many queries there are; 0 is allowed.
    epsilon
        Of the release; an exact number above 0.
    beta
        The probability with which the error may be larger; an exact number in (0, 1).
    rows
        Of the small database; by default the best. Theorem 4.5 speaks of its own.
    candidates
        As for `sharp`.
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
    given: dict[str, Any] = {"n": n, "cells": cells, "queries": queries, "epsilon": epsilon, "beta": beta}
    base: dict[str, Any] = {"candidates": candidates}
    printed = given | {"queries": 2} if queries == 1 else given  # false for one query
    no_beta = {name: value for name, value in given.items() if name != "beta"}
    noise = {name: value for name, value in given.items() if name != "cells"}

    def chosen(method: str) -> int:
        return best_rows(**given, **base, method=method) if rows is None else rows

    m = chosen("least")
    found = [
        Bound("Theorem 4.5", theorem_4_5(**printed), theorem_4_5_rows(**printed), "printed"),
        Bound("Proposition 4.4, best alpha", proposition_4_4(**printed), None, "printed"),
        Bound("Proposition 4.4, whole rows", proposition_4_4_rows(**given, **base, rows=m), m, "proved"),
        Bound("sharp", sharp(**given, **base, rows=m), m, "proved"),
    ]
    if method != "least":
        own = chosen(method)
        error = sharp(**given, **base, rows=own, method=method)
        found.append(Bound(f"sharp, {method}", error, own, "proved"))
        m = own
    found += [
        Bound("mean", expected(**no_beta, **base, rows=m, method=method), m, "mean"),
        Bound("MWEM", mwem(**given), None, "other"),
        Bound("private multiplicative weights", private_multiplicative_weights(**given), None, "other"),
        Bound("Laplace noise on each answer", laplace_answers_tail(**noise), None, "other"),
        Bound("Laplace noise on each cell", laplace_histogram_tail(**given), None, "other"),
    ]
    if apart > 1:
        least = packing(n=n, apart=apart, epsilon=epsilon, beta=beta)
        found.append(Bound("any private mechanism, at least (packing)", least, None, "lower"))
    return found
