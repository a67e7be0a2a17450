"""Means, standard deviations and quantiles of the number columns of two tables; for the curator."""

from collections import Counter
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from queries.late import pd
from smalldb.schema import Schema
from smalldb.schema.fields import Piece, occurrences, spelled
from smalldb.schema.kinds.kind import Comparable

QUANTILES = {
    "quantile .05": 0.05,
    "quartile": 0.25,
    "median": 0.5,
    "upper quartile": 0.75,
    "quantile .95": 0.95,
}
NumberCounts: TypeAlias = dict[str, Counter[float]]
"""By column of numbers, how often each number occurs. Private, where it is of the data."""


def gather_numbers(
    schema: Schema, counts: str | None, numbers: NumberCounts, pieces: Iterator[Piece]
) -> Iterator[Piece]:
    """Hand on the pieces of a table, and count on the way which numbers the columns of numbers hold."""
    columns = [(c, column) for c, column in enumerate(schema.columns) if _is_number(column.kind)]
    numbers |= {column.name: Counter() for _, column in columns}
    for fields, times in pieces:
        occur = occurrences(fields, times, counts)
        for c, column in columns:
            found = spelled(fields[c], column.numbers.decimal)
            if found is None or not isinstance(column.kind, Comparable):
                continue
            inverse, distinct = found
            weights = np.bincount(inverse, None if occur is None else np.array(occur), len(distinct))
            for text, weight in zip(distinct, weights.tolist(), strict=True):
                value = None if text in ("", *column.gaps) else column.kind.value(text)
                if value is not None:
                    numbers[column.name][float(value)] += int(weight)
        yield fields, times


def _is_number(kind: object) -> bool:
    return isinstance(kind, Comparable) and kind.measure == "numbers"


def number_summaries(real: NumberCounts, synthetic: NumberCounts) -> "pd.DataFrame":
    """Return, of each column of numbers, its measures in both tables: column, measure, real, synthetic."""
    rows = [
        (name, measure, ours, theirs)
        for name in real
        if real[name] and synthetic.get(name)
        for (measure, ours), (_, theirs) in zip(
            _measures(real[name]), _measures(synthetic[name]), strict=True
        )
    ]
    return pd.DataFrame(rows, columns=["column", "measure", "real", "synthetic"])


def _measures(numbers: Counter[float]) -> list[tuple[str, float]]:
    values = np.array(sorted(numbers))
    counts = np.array([numbers[value] for value in values.tolist()], dtype=np.float64)
    mean = float(values @ counts / counts.sum())
    deviation = float(np.sqrt((values - mean) ** 2 @ counts / counts.sum()))
    below = np.cumsum(counts) / counts.sum()
    quantiles = [(name, float(values[np.searchsorted(below, p - 1e-12)])) for name, p in QUANTILES.items()]
    return [("mean", mean), ("standard deviation", deviation), *quantiles]
