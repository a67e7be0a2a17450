"""Orders between columns, such as ``exit >= injection``: by value, as rules over bins, and in rows of data.

An order holds where one of its columns has a gap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from math import gcd, lcm, prod
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np
import numpy.typing as npt

from queries.arrays import Booleans, Codes, Integers, pd
from queries.expressions import Fault, Faults, chain, shorten, suggestion
from queries.rules import MAX_RULE_CELLS, MAX_RULES_CELLS, Relation, Rule
from smalldb.exact.bits import BitSource
from smalldb.schema.fields import Fields, as_field
from smalldb.schema.kinds import Binned, Comparable, Cuts, Dates
from smalldb.schema.kinds.binned import uniform_between
from smalldb.schema.schema_columns import Column

MAX_PATHS = 1 << 10  # of columns, each in order with the next
_EXACT, _EXACT_SINGLE = 15, 6  # decimal digits that every float of 8, of 4 bytes keeps


class Pair(NamedTuple):
    """Two columns, of which the first is not above the second."""

    # their numbers
    low: int
    high: int
    strict: bool  # whether the first is below the second


class Path(NamedTuple):
    """Columns of which each is in order with the next."""

    columns: tuple[int, ...]  # from the lowest to the highest
    reached: tuple[int, ...]  # by category of the first, the least value of the last
    # which categories of the first and the last can stand together: bool, shaped by their categories without
    # gaps
    held: Booleans
    follows: bool = False  # whether a shorter path and the last step say as much


@final
@dataclass(frozen=True, slots=True)
class Order:
    """An order that a schema states."""

    text: str  # as it stands there: "born <= married < died"
    pairs: tuple[Pair, ...]  # of a chain each two neighbours
    number: int = 0  # among the rules


@final
@dataclass(frozen=True, slots=True)
class Orders:
    """The orders of a schema."""

    columns: tuple[Column, ...]  # all columns of the schema
    stated: tuple[Order, ...] = ()
    # by the two columns of each pair in order, whether the first must be below the second. No circles.
    strict: Mapping[tuple[int, int], bool] = field(init=False)
    # by column, how many of the smallest common units one step of its grid is
    scale: Mapping[int, int] = field(init=False)
    # by column and category, the least and the greatest value, in common units
    spans: Mapping[int, Sequence[tuple[int, int]]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        strict: dict[tuple[int, int], bool] = {}
        for low, high, below in (pair for order in self.stated for pair in order.pairs):
            strict[low, high] = strict.get((low, high), False) or below
        units = {c: self.kind(c).unit for pair in strict for c in pair}
        common = reduce(_common, units.values(), Fraction(0))
        object.__setattr__(self, "strict", strict)
        scale = {c: int(unit / common) for c, unit in units.items()}
        spans = {
            c: [
                (first * times, last * times)
                for first, last in map(self.kind(c).steps, range(self.kind(c).size))
            ]
            for c, times in scale.items()
        }
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "spans", spans)

    def kind(self, column: int) -> Comparable:
        """Return the kind of a column that some order names."""
        kind = self.columns[column].kind
        assert isinstance(kind, Comparable)
        return kind

    def least(self, value: int, pair: tuple[int, int]) -> int:
        """Return the least value that the second column of a pair can have beside one of the first."""
        step = self.scale[pair[1]]
        return (value // step + 1) * step if self.strict[pair] else -(-value // step) * step

    def greatest(self, value: int, pair: tuple[int, int]) -> int:
        """Return the greatest value that the first column can have beside one of the second; see `least`."""
        step = self.scale[pair[0]]
        return (-(-value // step) - 1) * step if self.strict[pair] else value // step * step

    @property
    def groups(self) -> list[list[int]]:
        """The columns that orders connect, each group such that a column stands behind those below it."""
        above: dict[int, set[int]] = {c: set() for pair in self.strict for c in pair}
        for low, high in self.strict:
            above[high].add(low)
        found: list[set[int]] = []
        for low, high in self.strict:
            met = [group for group in found if low in group or high in group]
            found = [group for group in found if group not in met] + [{low, high}.union(*met)]
        sequence = [*TopologicalSorter(above).static_order()]
        return [[c for c in sequence if c in group] for group in found]

    def relations(self) -> tuple[Relation, ...]:
        """Return what the orders say of categories: a row of codes can exist if values in it keep all orders.

        Values exist if, along every path of columns without gaps, the least value of the last that is not
        below the first is in its category: the least values of all columns are then such values.
        """
        rules: dict[str, list[Rule]] = {order.text: [] for order in self.stated}
        texts: dict[tuple[int, int], list[str]] = {}
        numbers = {order.text: str(order.number) for order in self.stated}
        for order in self.stated:
            for pair in order.pairs:
                texts.setdefault(pair[:2], []).append(order.text)
        wrong = list[Fault]()
        for path in self._paths():
            first = texts[path.columns[0], path.columns[1]][0]
            if len(path.columns) == 2 and not path.held.any():
                said = f"valid: no values keep the order {shorten(first)!r}: see the ranges"
                wrong.append(Fault(said, "valid", numbers[first]))
            if not path.follows:
                rule = self._rule(path)
                for text in dict.fromkeys(t for pair in pairwise(path.columns) for t in texts[pair]):
                    rules[text].append(rule)
        if wrong:
            raise Faults(wrong)
        return tuple(Relation(text, own) for text, own in rules.items())

    def _paths(self) -> Iterator[Path]:
        """Yield each path of two columns or more, the short ones first."""
        after: dict[int, list[int]] = {}
        for low, high in self.strict:
            after.setdefault(low, []).append(high)
        cells = 0
        waiting = list[Path]()
        for c in after:
            least = tuple(low for low, _ in self.spans[c])
            waiting.append(Path((c,), least, np.eye(len(least)) > 0))
        for path in waiting:  # which grows on the way
            if len(path.columns) > 1:
                yield path
            for c in after.get(path.columns[-1], ()):
                own = len(path.reached) * self.columns[c].kind.size
                cells += own
                if own > MAX_RULE_CELLS or cells > MAX_RULES_CELLS or len(waiting) == MAX_PATHS:
                    raise ValueError(
                        f"valid: the order of {self.columns[path.columns[0]].name!r} and "
                        f"{self.columns[c].name!r} has more than 2^20 pairs of categories, or all have "
                        "more than 2^24, or 2^10 paths of columns: use fewer cuts, or fewer orders that meet"
                    )
                waiting.append(self._longer(path, c))

    def _longer(self, path: Path, column: int) -> Path:
        """Return a path with one more column."""
        pair = path.columns[-1], column
        reached = tuple(self.least(value, pair) for value in path.reached)
        held = self._within(reached, column)
        edge = self._within([self.least(low, pair) for low, _ in self.spans[pair[0]]], column)
        joint = path.held.astype(np.float32) @ edge.astype(np.float32) > 0  # in some category between
        follows = len(path.columns) > 1 and not (joint & ~held).any()
        return Path((*path.columns, column), reached, held, follows)

    def _within(self, values: Sequence[int], column: int) -> Booleans:
        """Tell which values are not above the last one of which categories, shape (values, categories)."""
        ends = [high for _, high in self.spans[column]]
        held: Booleans = np.array(values, dtype=object)[:, None] <= np.array(ends, dtype=object)[None, :]
        return held.astype(bool)

    def _rule(self, path: Path) -> Rule:
        """Return what a path says of the columns that it sees: what holds of its ends, beside no gap."""
        ends = path.columns[0], path.columns[-1]
        seen = tuple(sorted({*ends, *(c for c in path.columns if self.columns[c].missing)}))
        sizes = [self.columns[c].universe.size for c in seen]
        if prod(sizes) > MAX_RULE_CELLS:
            raise ValueError(
                f"valid: the order of {self.columns[ends[0]].name!r} and {self.columns[ends[1]].name!r} sees "
                f"{len(seen)} columns that can have gaps, of more than 2^20 cells: use fewer cuts"
            )
        allowed = np.ones(sizes, dtype=bool)
        told = path.held if ends[0] < ends[1] else path.held.T
        within = tuple(slice(self.columns[c].kind.size) for c in seen)
        allowed[within] = told.reshape([self.columns[c].kind.size if c in ends else 1 for c in seen])
        return Rule(seen, allowed)

    def broken(self, fields: Sequence[Fields], found: Sequence[Integers]) -> dict[str, Booleans]:
        """Tell which rows of data break each order that some row breaks, by its text: bool, shape (r,)."""
        ranks, there = self._ranked(fields, found)
        rows: dict[str, Booleans] = {}
        for order in self.stated:
            wrong = np.zeros(len(found[0]), dtype=bool)
            for low, high, strict in order.pairs:
                beyond = ranks[low] >= ranks[high] if strict else ranks[low] > ranks[high]
                wrong |= there[low] & there[high] & beyond
            if wrong.any():
                rows[order.text] = wrong
        return rows

    def _ranked(
        self, fields: Sequence[Fields], found: Sequence[Integers]
    ) -> tuple[dict[int, Integers], dict[int, Booleans]]:
        """Return the rank of each value among those of all columns of its group, and where there is one."""
        ranks, there = dict[int, Integers](), dict[int, Booleans]()
        for group in self.groups:
            values: dict[int, tuple[Integers, list[Decimal | int | None]]] = {}
            for c in group:
                column = self.columns[c]
                inverse, texts = column.spelled(fields[c])
                values[c] = inverse, [self.kind(c).value(text) for text in texts]
                there[c] = (found[c] >= 0) & (found[c] < column.kind.size)
            every = sorted({v for _, distinct in values.values() for v in distinct if v is not None})
            rank = {value: i for i, value in enumerate(every)}
            for c, (codes, distinct) in values.items():
                own = [-1 if value is None else rank[value] for value in distinct]
                ranks[c] = np.array(own, dtype=np.int64)[codes]
        return ranks, there


def read_orders(columns: Sequence[Column], rules: Mapping[str, int]) -> tuple[Orders, list[Fault]]:
    """Read the orders among the rules of a schema, by their numbers, and tell what is wrong with them."""
    numbers = {column.name: c for c, column in enumerate(columns)}
    stated, wrong = list[Order](), list[Fault]()
    for text, number in rules.items():
        if (linked := chain(text)) is None:
            continue
        names, signs = linked
        faults = [
            f"there is no column {name!r}{suggestion(name, numbers)}"
            for name in dict.fromkeys(names)
            if name not in numbers
        ]
        faults = faults or _unlike([columns[numbers[name]] for name in names])
        wrong += [Fault(f"valid: order {shorten(text)!r}: {said}", "valid", str(number)) for said in faults]
        if not faults:
            pairs = []
            for one, sign, other in zip(names, signs, names[1:], strict=False):
                low, high = (one, other) if sign[0] == "<" else (other, one)
                pairs.append(Pair(numbers[low], numbers[high], len(sign) == 1))
            stated.append(Order(text, tuple(pairs), number))
    made = Orders(tuple(columns), tuple(stated))
    try:
        made.groups  # noqa: B018
    except CycleError as error:
        circle = " <= ".join(repr(columns[c].name) for c in reversed(error.args[1]))
        return Orders(tuple(columns)), [*wrong, Fault(f"valid: orders form a circle: {circle}", "valid")]
    return made, wrong


def _unlike(columns: Sequence[Column]) -> list[str]:
    """Tell why columns cannot be compared."""
    faults = [
        f"column {column.name!r} has no numbers, dates or times that could be compared"
        for column in dict.fromkeys(columns)
        if not isinstance(column.kind, Comparable)
    ]
    kinds = [(c.name, c.kind.measure) for c in columns if isinstance(c.kind, Comparable)]
    for (one, measure), (other, another) in pairwise(kinds):
        if measure != another:
            faults.append(f"column {one!r} holds {measure}, and {other!r} {another}")
        if one == other:
            faults.append(f"it compares column {one!r} with itself")
    return faults or [reason for c in dict.fromkeys(columns) if (reason := inexact(c))]


def inexact(column: Column) -> str | None:
    """Tell why released values of a column may not be those that were drawn, so that no order is sure."""
    kind, dtype = column.kind, column.pandas_dtype
    assert isinstance(kind, Comparable)
    zone = isinstance(dtype, pd.DatetimeTZDtype) or getattr(getattr(dtype, "pyarrow_dtype", 0), "tz", None)
    if isinstance(kind, Dates) and kind.timed and zone:
        return f"column {column.name!r} has times of a time zone, which skips some: take a dtype without zone"
    numbered = getattr(dtype, "kind", "O") == "f"
    if numbered or (isinstance(kind, Cuts) and kind.decimals and kind.numbers.plain):
        digits = _EXACT_SINGLE if numbered and dtype.itemsize == 4 else _EXACT
        most = max(abs(step) for category in range(kind.size) for step in kind.steps(category))
        if most >= 10**digits:
            return (
                f"column {column.name!r} has numbers of more than {digits} digits, "
                "which its dtype may round: take fewer decimals"
            )
    series, _ = column.ends()
    inverse, texts = column.spelled(series)
    steps = [step for category in range(kind.size) for step in kind.steps(category)]
    read = [kind.value(texts[code]) for code in inverse]
    if read[: len(steps)] != [step * kind.unit for step in steps]:
        return (
            f"column {column.name!r} does not write its values in full: its format or dtype leaves out a part"
        )
    return None


def _common(one: Fraction, other: Fraction) -> Fraction:
    """Return the largest unit of which both are multiples."""
    below = lcm(one.denominator, other.denominator)
    return Fraction(gcd(int(one * below), int(other * below)), below)


TRIES = 16  # that all values of a row are drawn, before they are drawn one by one
_WIDEST = 1 << 62  # values of int64

Spans: TypeAlias = dict[int, tuple[int, int]]
"""By column without a gap, the least and the greatest value that it can have; in common units."""
Steps: TypeAlias = list[int | None]


def ordered_steps(orders: Orders, codes: Codes, source: BitSource | None) -> dict[int, Steps]:
    """
    Choose values for rows of codes that keep all orders, exactly.

    The values of a row are uniform in their bins, independent but for the orders: where they break one, all
    of the row are drawn again. What 16 draws have not brought in order is drawn column by column, uniform
    among what the columns before leave. Without a source, values are the middles where these keep the orders,
    and otherwise column by column the nearest to the middle.
    """
    found: dict[int, Steps] = {}
    kinds = {c: orders.kind(c) for group in orders.groups for c in group}
    days = {c: kind.latest for c, kind in kinds.items() if isinstance(kind, Binned)}
    latest = {c: day * orders.scale[c] for c, day in days.items() if day is not None}
    for group in orders.groups:
        distinct, of_row = np.unique(codes[:, group], axis=0, return_inverse=True)
        of_row = of_row.reshape(-1)
        settings = [dict(zip(group, setting, strict=True)) for setting in distinct.tolist()]
        spans = [_spans(orders, setting, {} if source is None else latest) for setting in settings]
        if source is not None:
            drawn = _drawn(orders, group, spans, of_row, source)
        else:
            near = _nearest(orders, group, settings, spans)
            drawn = {c: [near[i].get(c) for i in of_row.tolist()] for c in group}
        for c in group:
            scale = orders.scale[c]
            found[c] = [None if value is None else value // scale for value in drawn[c]]
    return found


def _spans(orders: Orders, setting: Mapping[int, int], latest: Mapping[int, int]) -> Spans:
    """Return what the orders leave of the bins of a row, whose columns stand behind those below them."""
    present = [c for c, code in setting.items() if code < orders.columns[c].kind.size]
    spans = {c: orders.spans[c][setting[c]] for c in present}
    pairs = [pair for pair in orders.strict if pair[0] in spans and pair[1] in spans]
    for c in present:
        least = max([spans[c][0], *(orders.least(spans[p[0]][0], p) for p in pairs if p[1] == c)])
        spans[c] = least, spans[c][1]
    for c in reversed(present):
        ends = [latest[c]] if c in latest and latest[c] >= spans[c][0] else []
        most = min([spans[c][1], *ends, *(orders.greatest(spans[p[1]][1], p) for p in pairs if p[0] == c)])
        spans[c] = spans[c][0], most
    if any(least > most for least, most in spans.values()):
        raise ValueError("a row has categories whose values cannot keep the orders of valid")
    return spans


def _drawn(
    orders: Orders, group: Sequence[int], spans: Sequence[Spans], of_row: Integers, source: BitSource
) -> dict[int, list[int | None]]:
    """Draw the values of a group of columns in all rows; `of_row` tells the spans of each."""
    large = any(max(-least, most) >= _WIDEST for each in spans for least, most in each.values())
    made: dict[int, npt.NDArray[Any]] = {
        c: np.zeros(len(of_row), dtype=object if large else np.int64) for c in group
    }
    there = {c: np.array([c in each for each in spans], dtype=bool)[of_row] for c in group}
    numbers: dict[int, dict[tuple[int, int], int]] = {c: {} for c in group}
    for each in spans:
        for c, span in each.items():
            numbers[c].setdefault(span, len(numbers[c]))
    own = {
        c: np.array([numbers[c][each[c]] if c in each else -1 for each in spans], dtype=np.int64)
        for c in group
    }
    pending = np.arange(len(of_row))
    for _ in range(TRIES):
        for c in group:
            which = own[c][of_row[pending]]
            for span, number in numbers[c].items():
                at, step = pending[which == number], orders.scale[c]
                steps = uniform_between(span[0] // step, span[1] // step, len(at), source)
                made[c][at] = np.array(steps, dtype=made[c].dtype) * step
        pending = pending[~_kept(orders, group, made, there, pending)]
        if not len(pending):
            break

    def draw(column: int, least: int, most: int) -> int:
        step = orders.scale[column]
        return uniform_between(least // step, most // step, 1, source)[0] * step

    for row in pending.tolist():
        for c, value in _one_by_one(orders, group, spans[of_row[row]], draw).items():
            made[c][row] = value
    return {
        c: [value if here else None for value, here in zip(made[c].tolist(), there[c].tolist(), strict=True)]
        for c in group
    }


def _kept(
    orders: Orders,
    group: Sequence[int],
    made: Mapping[int, npt.NDArray[Any]],
    there: Mapping[int, Booleans],
    rows: Integers,
) -> Booleans:
    """Tell which rows keep all orders between columns of a group."""
    kept = np.ones(len(rows), dtype=bool)
    for (low, high), strict in orders.strict.items():
        if low in group:
            one, other = made[low][rows], made[high][rows]
            held = (one < other) if strict else (one <= other)
            kept &= held.astype(bool) | ~there[low][rows] | ~there[high][rows]
    return kept


def _one_by_one(
    orders: Orders, group: Sequence[int], spans: Spans, choose: Callable[[int, int, int], int]
) -> dict[int, int]:
    """Choose values column by column, each from what those below it leave: there is always one.

    Each greatest value leaves one to all columns above, and so does each smaller one.
    """
    made: dict[int, int] = {}
    for c in group:
        if c in spans:
            pairs = [pair for pair in orders.strict if pair[1] == c and pair[0] in made]
            below = [orders.least(made[pair[0]], pair) for pair in pairs]
            made[c] = choose(c, max([spans[c][0], *below]), spans[c][1])
    return made


def _nearest(
    orders: Orders, group: Sequence[int], settings: Sequence[Mapping[int, int]], spans: Sequence[Spans]
) -> list[dict[int, int]]:
    """Choose values near to the middles; none where the middles keep the orders, as they are written."""
    middles: dict[int, list[Any]] = {}
    for c in group:
        column, kind = orders.columns[c], orders.kind(c)
        written = column.decode(np.arange(column.kind.size))
        middles[c] = [kind.value(as_field(value, column.numbers.decimal)) for value in written]
    made: list[dict[int, int]] = []
    for setting, each in zip(settings, spans, strict=True):
        own = {c: middles[c][setting[c]] for c in each}

        def nearest(column: int, least: int, most: int, setting: Mapping[int, int] = setting) -> int:
            first, last = orders.spans[column][setting[column]]
            step = orders.scale[column]
            return max(least, min(most, (first + last) // (2 * step) * step))

        kept = all(
            own[low] < own[high] if strict else own[low] <= own[high]
            for (low, high), strict in orders.strict.items()
            if low in own and high in own
        )
        made.append({} if kept else _one_by_one(orders, group, each, nearest))
    return made
