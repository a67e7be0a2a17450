"""Sensitivity and range, by their definitions: of the scores of a mechanism, and of one linear query."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from smalldb.exact.numbers import whole
from smalldb.selection.scored import exact

RELATIONS = ("replace-one", "add-remove")


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """
    How far scores can move between neighbours.

    Attributes
    ----------
    sensitivity
        max |q(x', y) - q(x, y)| over neighbours x, x' and candidates y.
    range
        max over neighbours of (max over y - min over y) of q(x', y) - q(x, y): at most twice the
        sensitivity, and at most once where all scores of neighbours move the same way.
    """

    sensitivity: Fraction
    range: Fraction


def score_sensitivity(
    scores: Sequence[Sequence[object]], neighbours: Iterable[tuple[int, int]] | None = None
) -> Sensitivity:
    """
    Return the sensitivity and the range of scores that are listed in full.

    Equation (27) of `docs/theory.md`. The exponential mechanism with exp(epsilon q) loses at most epsilon
    range (Dong, Durfee and Rogers 2020), and at most 2 epsilon sensitivity (McSherry and Talwar 2007).

    Parameters
    ----------
    scores
        One row a database, one number a candidate; read as `select` reads scores. Public: a table of what
        could be, never the scores of the data.
    neighbours
        Pairs of positions of neighbouring databases; by default every two.

    Examples
    --------
    >>> [score_sensitivity([[a * x + y for y in (0, 1)] for x in (0, 1)]) for a in (1, 100)]
    ... # doctest: +NORMALIZE_WHITESPACE
    [Sensitivity(sensitivity=Fraction(1, 1), range=Fraction(0, 1)),
     Sensitivity(sensitivity=Fraction(100, 1), range=Fraction(0, 1))]
    """
    rows = [[exact(score) for score in row] for row in scores]
    if not rows or not rows[0] or any(len(row) != len(rows[0]) for row in rows):
        raise ValueError("scores must hold databases with one score for each candidate")
    pairs = combinations(range(len(rows)), 2) if neighbours is None else neighbours
    moves = [[b - a for a, b in zip(rows[i], rows[j], strict=True)] for i, j in pairs]
    zero = Fraction(0)
    return Sensitivity(
        max((abs(move) for each in moves for move in each), default=zero),
        max((max(each) - min(each) for each in moves), default=zero),
    )


def linear_sensitivity(
    values: Iterable[object], *, neighbours: str = "replace-one", n: int | None = None
) -> Fraction:
    """
    Return by how much a neighbour can change a linear query: the sum of f over the rows, or their mean.

    Equation (27) of `docs/theory.md`. The sum: max f - min f where a row is replaced, max |f| where one is
    added. The mean over n rows: (max f - min f) / n, and / (n + 1) where one is added to n.

    Parameters
    ----------
    values
        f of each row that can exist; read as `select` reads scores.
    neighbours : {"replace-one", "add-remove"}
        Which tables are neighbours.
    n
        Rows of the table, for the mean; under add-remove of the smaller one. None: the sum.

    Examples
    --------
    >>> [linear_sensitivity([0, 1], n=9, neighbours=relation) for relation in RELATIONS]
    [Fraction(1, 9), Fraction(1, 10)]
    """
    f = [exact(value) for value in values]
    if not f:
        raise ValueError("values must hold one number for each row that can exist")
    if neighbours not in RELATIONS:
        raise ValueError(f"neighbours must be one of {', '.join(map(repr, RELATIONS))}, not {neighbours!r}")
    replaced = neighbours == "replace-one"
    if n is None:
        return max(f) - min(f) if replaced else max(map(abs, f))
    return (max(f) - min(f)) / (whole(n, "n") + (not replaced))
