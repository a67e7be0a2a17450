"""Query classes as text, ``conjunctions:2:negations + parities:2``, and tables named by columns."""

import re
from collections.abc import Callable, Sequence
from functools import reduce
from operator import add

from queries.conjunctions import Conjunctions, Disjunctions, Marginals, Parities
from queries.domain import Domain
from queries.expressions import shorten, suggestion
from queries.halfspaces import DecisionLists, Halfspaces, Intervals, Thresholds
from queries.linear import Predicates
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


_WORDS = re.compile(r"`[^`]*`|\S+")


def named_tables(texts: str | Sequence[str], names: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """Return the columns of each named table, by their numbers: ascending, no table twice."""
    several: Sequence[str] = (texts,) if isinstance(texts, str) else texts
    if not isinstance(several, Sequence) or not all(isinstance(text, str) for text in several):
        raise TypeError('tables to measure first must be texts such as "age x sex"')
    positions = {name: position for position, name in enumerate(names)}
    return tuple(dict.fromkeys(_columns(text, positions) for text in several))


def _columns(text: str, positions: dict[str, int]) -> tuple[int, ...]:
    """Return the numbers of the columns of one table, ascending."""
    named: list[list[str]] = [[]]
    for word in _WORDS.findall(text):
        if word == "x":
            named.append([])
        else:
            named[-1].append(word[1:-1] if word[0] == word[-1] == "`" and len(word) > 1 else word)
    columns, subject = [" ".join(words) for words in named], f"the table {shorten(text)!r}"
    if len(columns) < 2 or not all(columns):
        raise ValueError(f'{subject} must name two columns or more, such as "age x sex"')
    for name in columns:
        if name not in positions:
            raise ValueError(f"{subject}: no column {name!r}{suggestion(name, positions)}")
    if len(set(columns)) < len(columns):
        raise ValueError(f"{subject} names a column twice")
    return tuple(sorted(positions[name] for name in columns))
