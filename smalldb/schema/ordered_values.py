"""Values of rows that keep the orders between columns: drawn in their bins, or near to the middles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from queries.arrays import Codes, Integers
from smalldb.exact.bits import BitSource
from smalldb.schema.fields import as_field
from smalldb.schema.kinds import Binned
from smalldb.schema.kinds.binned import uniform_between
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
    steps: dict[int, Steps] = {}
    kinds = {c: orders.columns[c].kind for c in orders.scale}
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
            steps[c] = [None if value is None else value // scale for value in drawn[c]]
    return steps


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
    dtype = object if large else np.int64
    values: dict[int, npt.NDArray[Any]] = {c: np.zeros(len(of_row), dtype=dtype) for c in group}
    there = {c: np.array([c in each for each in spans], dtype=bool)[of_row] for c in group}
    numbers: dict[int, dict[tuple[int, int], int]] = {c: {} for c in group}
    for each in spans:
        for c, span in each.items():
            numbers[c].setdefault(span, len(numbers[c]))
    span_numbers = {
        c: np.array([numbers[c][each[c]] if c in each else -1 for each in spans], dtype=np.int64)
        for c in group
    }
    pending: Integers = np.arange(len(of_row))
    for _ in range(TRIES):
        for c in group:
            which = span_numbers[c][of_row[pending]]
            for span, number in numbers[c].items():
                at, step = pending[which == number], orders.scale[c]
                steps = uniform_between(span[0] // step, span[1] // step, len(at), source)
                values[c][at] = np.array(steps, dtype=dtype) * step
        kept = np.ones(len(pending), dtype=bool)
        for low, high in (pair for pair in orders.strict if pair[0] in values):
            one, other = values[low][pending], values[high][pending]
            held = (one < other) if orders.strict[low, high] else (one <= other)
            kept &= held.astype(bool) | ~there[low][pending] | ~there[high][pending]
        pending = pending[~kept]
        if not len(pending):
            break

    def draw(column: int, least: int, most: int) -> int:
        step = orders.scale[column]
        return uniform_between(least // step, most // step, 1, source)[0] * step

    for row in pending.tolist():
        for c, value in _one_by_one(orders, group, spans[of_row[row]], draw).items():
            values[c][row] = value
    pairs = {c: zip(values[c].tolist(), there[c].tolist(), strict=True) for c in group}
    return {c: [value if here else None for value, here in pairs[c]] for c in group}


def _one_by_one(
    orders: Orders, group: Sequence[int], spans: Spans, choose: Callable[[int, int, int], int]
) -> dict[int, int]:
    """Choose values column by column, each from what those below it leave: there is always one.

    Each greatest value leaves one to all columns above, and so does each smaller one.
    """
    chosen: dict[int, int] = {}
    for c in group:
        if c in spans:
            pairs = [pair for pair in orders.strict if pair[1] == c and pair[0] in chosen]
            below = [orders.least(chosen[pair[0]], pair) for pair in pairs]
            chosen[c] = choose(c, max([spans[c][0], *below]), spans[c][1])
    return chosen


def _nearest(
    orders: Orders, group: Sequence[int], settings: Sequence[Mapping[int, int]], spans: Sequence[Spans]
) -> list[dict[int, int]]:
    """Choose values near to the middles; none where the middles keep the orders, as they are written."""
    middles: dict[int, list[Any]] = {}
    for c in group:
        column, kind = orders.columns[c], orders.kind(c)
        written = column.decode(np.arange(column.kind.size))
        middles[c] = [kind.value(as_field(value, column.kind.numbers.decimal)) for value in written]
    chosen: list[dict[int, int]] = []
    for setting, each in zip(settings, spans, strict=True):
        middle = {c: middles[c][setting[c]] for c in each}

        def nearest(column: int, least: int, most: int, setting: Mapping[int, int] = setting) -> int:
            first, last = orders.spans[column][setting[column]]
            step = orders.scale[column]
            return max(least, min(most, (first + last) // (2 * step) * step))

        kept = all(
            middle[low] < middle[high] if strict else middle[low] <= middle[high]
            for (low, high), strict in orders.strict.items()
            if low in middle and high in middle
        )
        chosen.append({} if kept else _one_by_one(orders, group, each, nearest))
    return chosen
