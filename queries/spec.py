"""Query classes as text: ``conjunctions:2:negations + parities:2``, ``marginals:=2``."""

import re
from collections.abc import Callable
from functools import reduce
from operator import add

from queries.conjunctions import Conjunctions, Disjunctions, Marginals
from queries.decision_lists import DecisionLists
from queries.domain import Domain
from queries.expressions import shorten, suggestion
from queries.halfspaces import Halfspaces
from queries.intervals import Intervals, Thresholds
from queries.parities import Parities
from queries.predicates import Predicates
from queries.query_class import QueryClass

MAX_LENGTH = 100_000  # characters of one specification

# name -> (builder, options that it takes)
_WIDTHS: dict[str, tuple[Callable[..., QueryClass], tuple[str, ...]]] = {
    "conjunctions": (Conjunctions, ("negations",)),
    "disjunctions": (Disjunctions, ()),
    "marginals": (Marginals, ()),
    "parities": (Parities, ()),
}
_PLAIN: dict[str, Callable[[], QueryClass]] = {
    "thresholds": Thresholds,
    "intervals": Intervals,
    "decision-lists": DecisionLists,
    "halfspaces": Halfspaces,
    "halfspaces:last": lambda: Halfspaces(last=True),
}
NAMES = (*_WIDTHS, *(name for name in _PLAIN if ":" not in name), "predicates")


def parse(text: str) -> QueryClass:
    """Read a union of query classes.

    ``NAME:WIDTH`` is all widths up to WIDTH, ``NAME:=WIDTH`` that width alone; `conjunctions` takes
    ``:negations``; `thresholds`, `intervals`, `decision-lists`, `halfspaces` and ``halfspaces:last``
    stand alone; ``predicates:P; Q`` lists predicates. ``+`` joins classes.

    >>> parse("conjunctions:2:negations + parities:=3")
    Union(parts=(Conjunctions(width=2, negations=True, exactly=False), Parities(width=3, exactly=True)))
    """
    if not isinstance(text, str):
        raise TypeError(f"queries must be text such as 'marginals:2', not {type(text).__name__}")
    if len(text) > MAX_LENGTH:
        raise ValueError(f"queries: at most {MAX_LENGTH} characters")
    return reduce(add, [_part(part.strip()) for part in _split(text, "+")])


def default(domain: Domain) -> QueryClass:
    """Return the workload that is taken where none is named: all cells of 1- and 2-way tables."""
    return Marginals(min(2, len(domain.columns)))


def _split(text: str, sign: str) -> list[str]:
    """Split at a sign, but not inside backticks."""
    pieces = [""]
    for quoted_or_not in re.split(r"(`[^`]*`)", text):
        if quoted_or_not.startswith("`"):
            pieces[-1] += quoted_or_not
        else:
            first, *others = quoted_or_not.split(sign)
            pieces[-1] += first
            pieces += others
    return pieces


def _part(part: str) -> QueryClass:
    name, colon, rest = part.partition(":")
    name = name.strip().lower()
    if name == "predicates":
        return Predicates([predicate.strip() for predicate in _split(rest, ";")])
    whole = re.sub(r"\s*:\s*", ":", part.strip().lower())
    if whole in _PLAIN:
        return _PLAIN[whole]()
    if name in _PLAIN:
        if colon:
            raise ValueError(f"queries {shorten(part)!r}: {name} takes no width and no option")
        return _PLAIN[name]()
    if name not in _WIDTHS:
        known = ", ".join(NAMES)
        raise ValueError(
            f"unknown query class {shorten(name)!r}: expected one of {known}{suggestion(name, NAMES)}"
        )
    build, allowed = _WIDTHS[name]
    width, *options = [word.strip() for word in rest.split(":")]
    match = re.fullmatch(r"(=?)\s*([0-9]{1,4})", width)
    if not colon or match is None:
        raise ValueError(f"queries {shorten(part)!r}: expected a width, such as '{name}:2' or '{name}:=2'")
    for option in options:
        if option not in allowed:
            raise ValueError(f"queries {shorten(part)!r}: {name} takes no option {shorten(option)!r}")
    return build(int(match[2]), exactly=bool(match[1]), **dict.fromkeys(options, True))
