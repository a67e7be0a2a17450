"""What an earlier release of the same data measured, beside what is measured now."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from smalldb.marginals.estimate.column_estimates import pooled
from smalldb.marginals.estimate.estimation import Estimator
from smalldb.marginals.estimate.grouping import Grouping
from smalldb.marginals.measuring import NoisyTable
from smalldb.mechanisms import Marginal, Measurement


# Proof: docs/proofs/start.md, "Theorem".
def with_earlier(
    first: Estimator, columns: Sequence[NoisyTable], earlier: Sequence[Measurement]
) -> tuple[Estimator, list[NoisyTable]]:
    """Return what follows from columns that were measured twice, and the earlier tables of several columns.

    Groups of categories are those of the earlier release: they follow from its columns, as they did then.
    Tables whose groups are others tell nothing here; `ask` uses them.
    """
    sizes, tables = first.plan.universe.sizes, [*_tables(earlier)]
    of_columns: list[list[NoisyTable]] = [[] for _ in sizes]
    for c, table in columns_of(earlier, sizes):
        of_columns[c].append(table)
    now = [[one] if one.cost else [] for one in columns]  # else it was read from the earlier ones
    before = tuple(
        _pooled(earlier_tables) if earlier_tables else one
        for earlier_tables, one in zip(of_columns, columns, strict=True)
    )
    estimator = Estimator.of(first.plan, before)
    both = tuple(
        _pooled([*earlier_tables, *new]) for earlier_tables, new in zip(of_columns, now, strict=True)
    )
    read = Estimator.of(first.plan, both)
    estimator = replace(estimator, columns=read.columns, read=read.read, total=read.total)
    tables_at_levels = []
    for part, table in tables:
        earlier_tables = zip(part.columns, part.groups, strict=True)
        levels = [
            at for c, groups in earlier_tables if (at := _level(estimator.groupings[c], groups)) is not None
        ]
        if 1 < len(levels) == len(part.columns):
            takes = [np.argsort(numbers) for _, numbers in levels]
            scope = tuple((c, level) for c, (level, _) in zip(part.columns, levels, strict=True))
            tables_at_levels.append(replace(table, scope=scope, counts=table.counts[np.ix_(*takes)]))
    return estimator, tables_at_levels


def columns_of(earlier: Sequence[Measurement], sizes: Sequence[int]) -> Iterator[tuple[int, NoisyTable]]:
    """Yield each column that was measured with all its categories."""
    for part, table in _tables(earlier):
        if len(part.columns) == 1 and part.shape[0] == sizes[part.columns[0]]:
            yield part.columns[0], table


def _tables(earlier: Sequence[Measurement]) -> Iterator[tuple[Marginal, NoisyTable]]:
    """Yield each table that was measured, with the variance of the noise of a cell."""
    for each in earlier:
        start = 0
        for part, values in each.tables():
            if isinstance(part, Marginal):
                one = np.zeros(len(each.values))
                one[start] = 1.0
                scope = tuple((c, 0) for c in part.columns)
                yield part, NoisyTable(scope, values, each.cost, each.noise, each.noise.variance(one))
            start += part.size


def _pooled(tables: Sequence[NoisyTable]) -> NoisyTable:
    """Return one table for several of the same column: means by their precisions, rounded."""
    if len(tables) == 1:
        return tables[0]
    counts, variance = pooled([each.counts for each in tables], [[each.variance] for each in tables])
    return replace(tables[-1], counts=np.rint(counts).astype(np.int64), variance=variance.item())


def _level(grouping: Grouping, groups: Sequence[int]) -> tuple[int, list[int]] | None:
    """Return the level whose groups these are, and the number of each of them there; None: there is none."""
    for level in range(grouping.finest + 1):
        of_category = grouping.of_categories(level)
        pairs = {*zip(groups, of_category.tolist(), strict=True)}
        if len(pairs) == grouping.groups(level) == max(groups) + 1:
            return level, [at for _, at in sorted(pairs)]
    return None
