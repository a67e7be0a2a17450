"""Orders between columns, such as ``exit >= injection``: by value, as rules over bins, and in rows of data.

An order holds where one of its columns has a gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from math import gcd, lcm, prod
from typing import NamedTuple, final

import numpy as np

from queries.arrays import Booleans, Integers, pd
from queries.expressions import Fault, Faults, chain, shorten, suggestion
from queries.rules import MAX_RULE_CELLS, MAX_RULES_CELLS, Relation, Rule
from smalldb.schema.fields import Fields
from smalldb.schema.kinds import Comparable, Cuts, Dates
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
        scale = {c: int(unit / common) for c, unit in units.items()}
        spans = {
            c: [(first * times, last * times) for first, last in self.kind(c).all_steps]
            for c, times in scale.items()
        }
        for name, value in (("strict", strict), ("scale", scale), ("spans", spans)):
            object.__setattr__(self, name, value)

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
        groups: list[set[int]] = []
        for low, high in self.strict:
            met = [group for group in groups if low in group or high in group]
            groups = [group for group in groups if group not in met] + [{low, high}.union(*met)]
        sequence = [*TopologicalSorter(above).static_order()]
        return [[c for c in sequence if c in group] for group in groups]

    def relations(self) -> tuple[Relation, ...]:
        """Return what the orders say of categories: a row of codes can exist if values in it keep all orders.

        Values exist if, along every path of columns without gaps, the least value of the last that is not
        below the first is in its category: the least values of all columns are then such values.
        """
        rules: dict[str, list[Rule]] = {order.text: [] for order in self.stated}
        orders: dict[tuple[int, int], list[Order]] = {}
        for order in self.stated:
            for pair in order.pairs:
                orders.setdefault(pair[:2], []).append(order)
        wrong = list[Fault]()
        for path in self._paths():
            if len(path.columns) == 2 and not path.held.any():
                first = orders[path.columns[0], path.columns[1]][0]
                problem = f"valid: no values keep the order {shorten(first.text)!r}: see the ranges"
                wrong.append(Fault(problem, "valid", str(first.number)))
            if not path.follows:
                rule = self._rule(path)
                steps = pairwise(path.columns)
                for text in dict.fromkeys(order.text for pair in steps for order in orders[pair]):
                    rules[text].append(rule)
        if wrong:
            raise Faults(wrong)
        return tuple(Relation(text, of_text) for text, of_text in rules.items())

    def _paths(self) -> Iterator[Path]:
        """Yield each path of two columns or more, the short ones first."""
        after: dict[int, list[int]] = {}
        for low, high in self.strict:
            after.setdefault(low, []).append(high)
        cells = 0
        least = {c: tuple(low for low, _ in self.spans[c]) for c in after}
        waiting = [Path((c,), reached, np.eye(len(reached)) > 0) for c, reached in least.items()]
        for path in waiting:  # which grows on the way
            if len(path.columns) > 1:
                yield path
            for c in after.get(path.columns[-1], ()):
                pairs = len(path.reached) * self.columns[c].kind.size
                cells += pairs
                if pairs > MAX_RULE_CELLS or cells > MAX_RULES_CELLS or len(waiting) == MAX_PATHS:
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
        held = path.held if ends[0] < ends[1] else path.held.T
        within = tuple(slice(self.columns[c].kind.size) for c in seen)
        allowed[within] = held.reshape([self.columns[c].kind.size if c in ends else 1 for c in seen])
        return Rule(seen, allowed)

    def broken(self, fields: Sequence[Fields], codes: Sequence[Integers]) -> dict[str, Booleans]:
        """Tell which rows of data break each order that some row breaks, by its text: bool, shape (r,)."""
        ranks, there = self._ranked(fields, codes)
        rows: dict[str, Booleans] = {}
        for order in self.stated:
            wrong = np.zeros(len(codes[0]), dtype=bool)
            for low, high, strict in order.pairs:
                beyond = ranks[low] >= ranks[high] if strict else ranks[low] > ranks[high]
                wrong |= there[low] & there[high] & beyond
            if wrong.any():
                rows[order.text] = wrong
        return rows

    def _ranked(
        self, fields: Sequence[Fields], codes_of_columns: Sequence[Integers]
    ) -> tuple[dict[int, Integers], dict[int, Booleans]]:
        """Return the rank of each value among those of all columns of its group, and where there is one."""
        ranks, there = dict[int, Integers](), dict[int, Booleans]()
        for group in self.groups:
            values: dict[int, tuple[Integers, list[Decimal | int | None]]] = {}
            for c in group:
                column = self.columns[c]
                inverse, texts = column.spelled(fields[c])
                values[c] = inverse, [self.kind(c).value(text) for text in texts]
                there[c] = (codes_of_columns[c] >= 0) & (codes_of_columns[c] < column.kind.size)
            every = sorted({v for _, distinct in values.values() for v in distinct if v is not None})
            rank = {value: i for i, value in enumerate(every)}
            for c, (codes, distinct) in values.items():
                distinct_ranks = [-1 if value is None else rank[value] for value in distinct]
                ranks[c] = np.array(distinct_ranks, dtype=np.int64)[codes]
        return ranks, there


def read_orders(columns: Sequence[Column], rules: Mapping[str, int]) -> tuple[Orders, list[Fault]]:
    """Read the orders among the rules of a schema, by their numbers, and tell what is wrong with them."""
    numbers = {column.name: c for c, column in enumerate(columns)}
    stated, wrong = list[Order](), list[Fault]()
    for text, number in rules.items():
        if (linked := chain(text)) is None:
            continue
        names, signs = linked
        absent = [name for name in dict.fromkeys(names) if name not in numbers]
        faults = [f"there is no column {name!r}{suggestion(name, numbers)}" for name in absent]
        faults = faults or _unlike([columns[numbers[name]] for name in names])
        wrong += [
            Fault(f"valid: order {shorten(text)!r}: {problem}", "valid", str(number)) for problem in faults
        ]
        if not faults:
            pairs = []
            for one, sign, other in zip(names, signs, names[1:], strict=False):
                low, high = (one, other) if sign[0] == "<" else (other, one)
                pairs.append(Pair(numbers[low], numbers[high], len(sign) == 1))
            stated.append(Order(text, tuple(pairs), number))
    orders = Orders(tuple(columns), tuple(stated))
    try:
        orders.groups  # noqa: B018
    except CycleError as error:
        circle = " <= ".join(repr(columns[c].name) for c in reversed(error.args[1]))
        return Orders(tuple(columns)), [*wrong, Fault(f"valid: orders form a circle: {circle}", "valid")]
    return orders, wrong


def _unlike(columns: Sequence[Column]) -> list[str]:
    """Tell why columns cannot be compared."""
    unordered = [c for c in dict.fromkeys(columns) if not isinstance(c.kind, Comparable)]
    faults = [f"column {c.name!r} has no numbers, dates or times that could be compared" for c in unordered]
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
        most = max(abs(step) for steps in kind.all_steps for step in steps)
        if most >= 10**digits:
            return (
                f"column {column.name!r} has numbers of more than {digits} digits, "
                "which its dtype may round: take fewer decimals"
            )
    series, _ = column.ends()
    inverse, texts = column.spelled(series)
    steps = [step for steps in kind.all_steps for step in steps]
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
