"""What a release and simple ways get right, column by column, as one long table; for the curator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import comb

import numpy as np

from queries import Domain, Rows, Workload
from queries.arrays import Floats, Integers
from queries.late import pd
from smalldb.releasing.distances import (
    MAX_VISITS,
    Classified,
    Distances,
    classified,
    distances,
    ordered_columns,
    rank_correlations,
    visits,
)

WIDTHS = (1, 2, 3)  # columns of the tables that are compared
MOST_TABLES = 5_000  # of a width, for each of the tables beside one another: all triples of 30 columns
ALL = "all"  # columns together
FIELDS = ("table", "measure", "of", "value")
Line = tuple[str, str, str, float]


@dataclass(frozen=True, slots=True)
class Measure:
    """A row of the summary."""

    name: str  # in the long table
    said: str  # for people


MEASURES = (
    *(
        Measure(f"{kind}_{width}", said.format(width, "" if width == 1 else "s"))
        for width in WIDTHS
        for kind, said in (
            ("tvd_mean", "tables of {} column{}: distance, mean"),
            ("tvd_largest", "tables of {} column{}: distance, largest"),
            ("cell_largest", "tables of {} column{}: largest error of a cell"),
        )
    ),
    Measure("query_mean", "queries: mean error"),
    Measure("query_largest", "queries: largest error"),
    Measure("correlation_mean", "rank correlations: mean error"),
    Measure("correlation_largest", "rank correlations: largest error"),
    Measure("accuracy", "target told right on unseen real rows"),
    Measure("balanced_accuracy", "the same, mean over its categories"),
)


def overview(
    real: Rows, tables: Mapping[str, Rows], workload: Workload, target: int | None = None
) -> pd.DataFrame:
    """Measure tables beside the real one: a row for each table, measure and column. Confidential."""
    lines: list[Line] = []
    answers, correlated = workload.answers(real), rank_correlations(real)
    for name, table in tables.items():
        for width in feasible(real, table, MOST_TABLES):
            lines += _of_distances(name, distances(real, table, width))
        lines += _of_queries(name, workload, answers, real.n, table)
        lines += _of_correlations(name, real.domain, correlated, table)
    if target is not None:
        lines += _of_classifiers(classified(real, tables, target))
    return pd.DataFrame(lines, columns=list(FIELDS))


def summary(long: pd.DataFrame) -> pd.DataFrame:
    """Return what `overview` says of all columns together: a row for each measure, a column for each table.

    Measures that nothing is known of are left out; a value that one table lacks is not a number.
    """
    found = long[long["of"] == ALL].pivot(index="measure", columns="table", values="value")
    order = [measure.name for measure in MEASURES if measure.name in found.index]
    return found.loc[order, list(dict.fromkeys(long["table"]))].rename_axis(index=None, columns=None)


def feasible(real: Rows, made: Rows, tables: int | None = None) -> list[int]:
    """Return the widths of the tables that can be compared in seconds, where there are at most so many."""
    columns = len(real.domain.sizes)
    widths = [w for w in WIDTHS if w <= columns and visits(real, made, w) <= MAX_VISITS]
    return [w for w in widths if tables is None or comb(columns, w) <= tables]


def _of_distances(name: str, found: Distances) -> list[Line]:
    if not found.tables:
        return []
    among, width, lines = np.array(found.tables), found.width, []
    parts = {column: (among == c).any(axis=1) for c, column in enumerate(found.domain.names)}
    for of, chosen in {**parts, ALL: np.ones(len(among), dtype=bool)}.items():
        if chosen.any():
            tvd = found.tvd[chosen]
            lines += [
                (name, f"tvd_mean_{width}", of, float(tvd.mean())),
                (name, f"tvd_largest_{width}", of, float(tvd.max())),
                (name, f"cell_largest_{width}", of, float(found.largest[chosen].max())),
            ]
    return lines


def _of_queries(name: str, workload: Workload, answers: Integers, n: int, table: Rows) -> list[Line]:
    if not workload.size:
        return []
    apart = np.abs(answers / n - workload.answers(table) / table.n) / workload.denominator
    return [
        (name, "query_mean", ALL, float(apart.mean())),
        (name, "query_largest", ALL, float(apart.max())),
    ]


def _of_correlations(name: str, domain: Domain, correlated: Floats, table: Rows) -> list[Line]:
    chosen = ordered_columns(domain)
    first, second = np.triu_indices(len(chosen), 1)
    # a column with one category in use goes together with nothing
    off = np.abs(np.nan_to_num(correlated) - np.nan_to_num(rank_correlations(table)))[first, second]
    if not len(off):
        return []
    names = [domain.names[c] for c in chosen]
    lines: list[Line] = [
        (name, "correlation_error", f"{names[i]} x {names[j]}", value)
        for i, j, value in zip(first.tolist(), second.tolist(), off.tolist(), strict=True)
    ]
    lines.append((name, "correlation_mean", ALL, float(off.mean())))
    return [*lines, (name, "correlation_largest", ALL, float(off.max()))]


def _of_classifiers(found: Mapping[str, Classified]) -> list[Line]:
    lines: list[Line] = []
    for name, each in found.items():
        lines.append((name, "accuracy", ALL, each.accuracy))
        lines.append((name, "balanced_accuracy", ALL, each.balanced))
    return lines
