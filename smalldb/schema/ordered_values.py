"""Values of bins that keep orders between columns: drawn together, or near to the middles."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from queries.arrays import Booleans, Codes, Integers
from smalldb.exact.bits import BitSource
from smalldb.schema.fields import as_field
from smalldb.schema.kinds import Binned
from smalldb.schema.kinds.edges import uniform_between
from smalldb.schema.orders import Orders

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
    """
    Return what the orders leave of the bins of a row, whose columns stand behind those below them.

    Where they leave it, no date is ahead of the `latest` value of its column.
    """
    present = [c for c, code in setting.items() if code < orders.columns[c].kind.size]
    spans = {c: orders.span(c, setting[c]) for c in present}
    pairs = [pair for pair in orders.strict if pair[0] in spans and pair[1] in spans]
    for c in present:
        least = max([spans[c][0], *(orders.least(spans[p[0]][0], p) for p in pairs if p[1] == c)])
        spans[c] = least, spans[c][1]
    for c in reversed(present):
        ends = [latest[c]] if c in latest and latest[c] >= spans[c][0] else []
        most = min([spans[c][1], *ends, *(orders.greatest(spans[p[1]][1], p) for p in pairs if p[0] == c)])
        spans[c] = spans[c][0], most
    if any(least > most for least, most in spans.values()):
        raise ValueError("a row has categories in which no values keep the orders of valid")
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
            first, last = orders.span(column, setting[column])
            step = orders.scale[column]
            return max(least, min(most, (first + last) // (2 * step) * step))

        kept = all(
            own[low] < own[high] if strict else own[low] <= own[high]
            for (low, high), strict in orders.strict.items()
            if low in own and high in own
        )
        made.append({} if kept else _one_by_one(orders, group, each, nearest))
    return made
