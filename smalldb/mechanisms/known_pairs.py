"""Which pairs of columns were measured, and in which of them dependence stands out of the noise."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod, sqrt

import numpy as np

from queries import Domain
from queries.arrays import Floats
from smalldb.mechanisms.measurement import Marginal, Measurement, Parity

LEARNED, QUIET, NOT_MEASURED = "learned", "measured and quiet", "not measured"
SEEN = 3.0  # standard deviations above what noise alone adds up to, at which dependence is seen
KURTOSIS = (
    5.0  # the variance of a squared number over its squared variance, at most (Laplace; a normal one: 2)
)


@dataclass(frozen=True, slots=True)
class KnownPair:
    """
    What is known of how two columns depend.

    Attributes
    ----------
    columns
        Their names.
    known
        "learned": measured, and dependence stands out of the noise. "measured and quiet": measured, and it
        does not. "not measured": a synthetic table then assumes independence given other columns, which is an
        assumption and no finding.
    groups
        At which groups of their categories: for each table that was measured, and each of the two columns,
        the group of each category, from 0.
    """

    columns: tuple[str, str]
    known: str
    groups: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]


def known_pairs(domain: Domain, items: Sequence[Measurement], n: int | None) -> tuple[KnownPair, ...]:
    """
    Return what is known of each pair of columns.

    Dependence is seen where the squared differences from independent columns, over their variance, add up to
    `SEEN` standard deviations more than their number: at most about one quiet pair in fifty is called
    learned.
    """
    groups: dict[tuple[int, int], list[tuple[tuple[int, ...], tuple[int, ...]]]] = {}
    learned = set[tuple[int, int]]()
    for pair, own, seen in _measured(domain, items, n):
        found = groups.setdefault(pair, [])
        if own not in found:
            found.append(own)
        if seen:
            learned.add(pair)
    return tuple(
        KnownPair(
            (domain.names[a], domain.names[b]),
            NOT_MEASURED if (a, b) not in groups else LEARNED if (a, b) in learned else QUIET,
            tuple(groups.get((a, b), ())),
        )
        for a, b in combinations(range(len(domain.sizes)), 2)
    )


_Seen = tuple[tuple[int, int], tuple[tuple[int, ...], tuple[int, ...]], bool]


def _measured(domain: Domain, items: Sequence[Measurement], n: int | None) -> Iterator[_Seen]:
    """Yield each table of two columns that was measured, alone or in a larger one, and what it shows."""
    means: dict[tuple[int, int], float] = {}
    for each in items:
        start, variances = 0, dict[tuple[int, ...], float]()  # alike for tables of the same shape
        contrasts: dict[tuple[int, int], list[tuple[int, int, float]]] = {}
        for part, values in each.tables():
            if isinstance(part, Marginal) and len(part.columns) > 1:
                for i, j in combinations(range(len(part.columns)), 2):
                    if min(part.shape[i], part.shape[j]) > 1:
                        table = values.sum(axis=tuple(a for a in range(values.ndim) if a not in (i, j)))
                        own = part.groups[i], part.groups[j]
                        kind = (*part.shape, -i, -j)
                        if kind not in variances:
                            variances[kind] = _white(each, start, part, i, j)
                        yield (part.columns[i], part.columns[j]), own, _stands_out(table, variances[kind])
            elif isinstance(part, Parity):
                total = float(n or 1)
                value = float(values[0]) if part.signed else total - 2 * float(values[0])
                if not part.columns:
                    n = n or max(1, int(values[0]))
                elif len(part.columns) == 1:
                    means[part.columns[0], part.yes[0]] = value
                elif len(part.columns) == 2:
                    (a, b), (i, j) = part.columns, part.yes
                    beyond = value - means.get((a, i), 0.0) * means.get((b, j), 0.0) / total
                    if (2,) not in variances:
                        unit = np.zeros(len(each.values))
                        unit[start] = 1.0 if part.signed else 2.0
                        variances[2,] = max(each.noise.variance(unit), 1e-9)
                    contrasts.setdefault((a, b), []).append((i, j, beyond**2 / variances[2,]))
            start += part.size
        for (a, b), found in contrasts.items():
            rows, columns, squares = zip(*found, strict=True)
            own = _told_apart(domain.sizes[a], {*rows}), _told_apart(domain.sizes[b], {*columns})
            yield (a, b), own, sum(squares) > _limit(len(squares))


def _told_apart(size: int, categories: set[int]) -> tuple[int, ...]:
    """Return the group of each category, where some are told apart and all others are one."""
    order = {category: group for group, category in enumerate(sorted(categories), 1)}
    return tuple(order.get(category, 0) for category in range(size))


def _white(each: Measurement, start: int, part: Marginal, i: int, j: int) -> float:
    """Return the variance of an interaction of two columns of a table, for weights of length 1."""
    shape = [length if axis in (i, j) else 1 for axis, length in enumerate(part.shape)]
    unit = np.zeros(shape)
    unit[(0,) * len(shape)] = 1.0
    unit = unit - unit.mean(axis=i, keepdims=True)
    unit = unit - unit.mean(axis=j, keepdims=True)
    weights = np.zeros(len(each.values))
    weights[start : start + part.size] = np.broadcast_to(unit, part.shape).ravel()
    return max(each.noise.variance(weights) / float((unit**2).sum()), 1e-9)


def _stands_out(table: Floats, variance: float) -> bool:
    """Tell whether a table is further from independent columns than noise makes it."""
    counts = table.astype(np.float64)
    total = max(counts.sum(), 1.0)
    beyond = counts - np.outer(counts.sum(axis=1), counts.sum(axis=0)) / total
    return float((beyond**2).sum()) / variance > _limit(prod(length - 1 for length in table.shape))


def _limit(freedom: int) -> float:
    return freedom + SEEN * sqrt(KURTOSIS * freedom)
