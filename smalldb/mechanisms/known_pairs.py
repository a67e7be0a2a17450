"""Which pairs of columns were measured, and in which of them dependence stands out of the noise."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil, prod, sqrt
from typing import NamedTuple

import numpy as np

from queries import Domain
from queries.arrays import Floats, Integers
from smalldb.mechanisms.measurement import Marginal, Measurement, Parity

LEARNED, NOT_MEASURED = "learned", "not measured"
NOISY, LITTLE = "too noisy to tell", "little dependence"  # measured, and it does not stand out of the noise
MOST_LITTLE = 0.05  # up to which a dependence is called little
SEEN = 3.0  # standard deviations above what noise alone adds up to, at which dependence is seen
KURTOSIS = 5.0  # variance of a squared number over its squared variance, at most (Laplace; a normal one: 2)


@dataclass(frozen=True, slots=True)
class KnownPair:
    """What is known of how two columns depend.

    Attributes
    ----------
    columns
        Their names.
    known
        "learned": measured, and dependence stands out of the noise. "too noisy to tell" or "little
        dependence": measured, and it does not; `at_most` decides which. "not measured": a synthetic table
        then assumes independence given other columns, which is an assumption and no finding.
    groups
        At which groups of their categories: for each table that was measured, and each of the two columns,
        the group of each category, from 0.
    at_most
        Of a pair that was measured and not learned: by how much the share of any condition on the measured
        groups of both columns may differ from that of independent columns, but for one release in fifty. It
        follows from what was released and from its noise. Otherwise None.
    """

    columns: tuple[str, str]
    known: str
    groups: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    at_most: float | None = None

    @property
    def quiet(self) -> bool:
        """Whether it was measured, and dependence does not stand out of the noise."""
        return self.at_most is not None

    @property
    def told(self) -> str:
        """What is known, with how large a dependence could be hidden; rounded up."""
        if self.at_most is None:
            return self.known
        most = f"{ceil(100 * self.at_most) / 100:.2f}"
        return (
            f"{LITTLE}: at most {most}"
            if self.known == LITTLE
            else f"{NOISY}: a dependence up to {most} could be hidden"
        )


def known_pairs(domain: Domain, items: Sequence[Measurement], n: int | None) -> tuple[KnownPair, ...]:
    """Return what is known of each pair of columns; one quiet pair in fifty is called learned, at most."""
    measured: dict[tuple[int, int], list[_Seen]] = {}
    for pair, seen in _measured(domain, items, n):
        measured.setdefault(pair, []).append(seen)
    pairs = []
    for a, b in combinations(range(len(domain.sizes)), 2):
        tables = measured.get((a, b), [])
        groups = tuple(dict.fromkeys(table.groups for table in tables))
        at_most, known = None, NOT_MEASURED
        if any(table.dependent for table in tables):
            known = LEARNED
        elif tables:
            at_most = max(min(table.at_most, 1.0) for table in tables)
            known = LITTLE if at_most <= MOST_LITTLE else NOISY
        pairs.append(KnownPair((domain.names[a], domain.names[b]), known, groups, at_most))
    return tuple(pairs)


class _Seen(NamedTuple):
    """What a table of two columns shows."""

    groups: tuple[tuple[int, ...], tuple[int, ...]]  # of the categories of both
    dependent: bool
    at_most: float  # how far from independent columns, if it is not dependent


def _measured(
    domain: Domain, items: Sequence[Measurement], n: int | None
) -> Iterator[tuple[tuple[int, int], _Seen]]:
    """Yield each table of two columns that was measured."""
    means: dict[tuple[int, int], float] = {}
    for each in items:
        start, variances = 0, dict[tuple[int, ...], float]()  # alike for tables of the same shape
        contrasts: dict[tuple[int, int], list[tuple[int, int, float]]] = {}
        for part, values in each.tables():
            if isinstance(part, Marginal) and len(part.columns) > 1:
                for i, j in combinations(range(len(part.columns)), 2):
                    if min(part.shape[i], part.shape[j]) > 1:
                        table = values.sum(axis=tuple(a for a in range(values.ndim) if a not in (i, j)))
                        kind = (*part.shape, -i, -j)
                        if kind not in variances:
                            variances[kind] = _white(each, start, part, i, j)
                        variance, total = variances[kind], n or max(1.0, float(table.sum()))
                        beyond = from_independence(table) / variance
                        limit = _limit(prod(length - 1 for length in table.shape))
                        # half of what the cells differ by, from the root of the sum of their squares
                        scale = sqrt(table.size * variance) / (2 * total)
                        most = scale * (sqrt(beyond) + sqrt(limit))
                        groups = part.groups[i], part.groups[j]
                        yield (part.columns[i], part.columns[j]), _Seen(groups, beyond > limit, most)
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
        for (a, b), cells in contrasts.items():
            rows, columns, squares = zip(*cells, strict=True)
            groups = _groups(domain.sizes[a], {*rows}), _groups(domain.sizes[b], {*columns})
            limit = _limit(len(squares))
            # a contrast is four times a cell; the last group of either column follows from the others
            scale = (1 + len({*rows})) * (1 + len({*columns})) * sqrt(variances[2,]) / (8 * (n or 1))
            most = scale * (sqrt(sum(squares)) + sqrt(limit))
            yield (a, b), _Seen(groups, sum(squares) > limit, most)


def _groups(size: int, categories: set[int]) -> tuple[int, ...]:
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


def independent(table: Integers | Floats) -> Floats:
    """Return a table of two columns as if they were independent."""
    # products of whole numbers would wrap around: those of walks count in units
    rows, columns = table.sum(axis=1, dtype=np.float64), table.sum(axis=0, dtype=np.float64)
    return np.asarray(np.outer(rows, columns) / max(float(rows.sum()), 1.0))


def from_independence(table: Integers | Floats) -> float:
    """Return the sum of squared differences from independent columns."""
    return float(((table - independent(table)) ** 2).sum())


def _limit(freedom: int) -> float:
    return freedom + SEEN * sqrt(KURTOSIS * freedom)
