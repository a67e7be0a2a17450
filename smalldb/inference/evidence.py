"""The cells that a question tells apart, and what each measurement says of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from queries import Domain
from queries.arrays import Booleans, Floats
from queries.domain import Integers
from smalldb.mechanisms.measurement import Marginal, Measurement, Parity, grouped
from smalldb.mechanisms.measurement_list import Measurements
from smalldb.noise.noise_protocol import Noise

MOST_CELLS = 1024  # cells that are told apart
MOST_TOTALS = 8  # tables of other columns that tell how many rows there are, where this is not public


@dataclass(frozen=True, slots=True, eq=False)
class QuestionCells:
    """The columns of a question, and the classes of their categories that it tells apart."""

    columns: tuple[int, ...]  # numbers of columns, ascending
    classes: tuple[Integers, ...]  # for each the class of each category, from 0
    possible: Booleans  # which cells of classes some row can have, flat

    @classmethod
    def of(
        cls, measurements: Measurements, columns: tuple[int, ...], arrays: Sequence[Floats]
    ) -> "tuple[QuestionCells, Floats]":
        """Return the classes that arrays over the cells of columns tell apart, and the arrays over theirs."""
        # contrasts of categories are about these alone, so they are told apart, too
        every, allowed = np.stack(arrays), measurements.domain.allowed(columns)
        classes, contrasts = [], _categories(measurements)
        for axis, c in enumerate(columns):
            slices = np.moveaxis(every, axis + 1, 0).reshape(every.shape[axis + 1], -1)
            slices = np.hstack([slices, np.eye(len(slices))[:, sorted(contrasts.get(c, ()))]])
            _, first, of_category = np.unique(slices, axis=0, return_index=True, return_inverse=True)
            of_category = of_category.ravel()
            every = np.take(every, first, axis=axis + 1)
            allowed = grouped(allowed, axis, of_category)
            classes.append(of_category)
        if allowed.size > MOST_CELLS:
            raise ValueError(
                f"the question tells {allowed.size} cells apart, more than 1024: ask with coarser categories"
            )
        possible = allowed.ravel()
        return cls(columns, tuple(classes), possible), every.reshape(len(arrays), -1)[:, possible].T

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of classes of each column."""
        return tuple(int(classes.max()) + 1 for classes in self.classes)


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What one measurement says of the cells: sums of released values with joint noise."""

    number: int  # of the measurement
    parts: tuple[int, ...]  # which of its tables or contrasts, by number
    noise: Noise  # of its values
    membership: Integers  # of each value the sum that it belongs to; -1: to none
    sums: Floats  # the released sums
    cells: Floats  # of which cells each is the sum, weighted: shape (cells, sums)

    @property
    def covariance(self) -> Floats:
        """The covariance of the noise of the sums, positive definite."""
        count = len(self.sums)
        values_of = np.bincount(self.membership[self.membership >= 0], minlength=count)
        if self.noise.repeating or (values_of == 1).all():
            rows = np.vstack([np.eye(count), np.zeros(count)])[self.membership]
            exact = self.noise.covariance(rows)
        else:  # of independent values
            exact = np.diag(self.noise.variance() * values_of)
        return np.asarray(exact + 1e-6 * (float(np.diag(exact).max()) or 1.0) * np.eye(count))


def _categories(measurements: Measurements) -> dict[int, set[int]]:
    """Return the categories of each column that contrasts of categories are about."""
    categories: dict[int, set[int]] = {}
    for part in (part for each in measurements for part in each.of):
        if isinstance(part, Parity) and part.categories is not None:
            for c, category in zip(part.columns, part.categories, strict=True):
                categories.setdefault(c, set()).add(category)
    return categories


def evidence_of(measurements: Measurements, question: QuestionCells) -> list[Evidence]:
    """Return what all measurements say of the cells; each is in it at most once."""
    of_cells, totals = list[Evidence](), list[Evidence]()
    for number, each in enumerate(measurements):
        evidence = _evidence(measurements, number, each, question)
        if evidence is None:
            continue
        (of_cells if (np.ptp(evidence.cells, axis=0) > 0).any() else totals).append(evidence)
    totals.sort(key=lambda evidence: float(evidence.covariance[0, 0]))
    return sorted(of_cells + totals[:MOST_TOTALS], key=lambda evidence: evidence.number)


def _evidence(
    measurements: Measurements, number: int, each: Measurement, question: QuestionCells
) -> Evidence | None:
    """Return what a measurement says of the cells; None: nothing."""
    pieces = list(_pieces(measurements, each, question))
    if each.noise.repeating:  # what larger pieces tell is not told again
        pieces.sort(key=lambda piece: -piece.cells.shape[1])
        pieces = [pieces[number] for number in telling([piece.cells for piece in pieces])]
    if not pieces:
        return None
    membership, sums, cells = np.full(len(each.values), -1, dtype=np.int64), list[Floats](), list[Floats]()
    count = 0
    for piece in pieces:
        used = piece.membership >= 0
        membership[piece.start : piece.start + len(used)][used] = piece.membership[used] + count
        summed = np.bincount(piece.membership[used], piece.values[used], piece.cells.shape[1])
        sums.append(summed.astype(np.float64))
        cells.append(piece.cells)
        count += piece.cells.shape[1]
    parts = tuple(piece.number for piece in pieces)
    return Evidence(
        number, parts, each.noise, membership, np.concatenate(sums), np.concatenate(cells, axis=1)
    )


class _Piece(NamedTuple):
    """What one table or contrast says: as `Evidence`, from its own first value on."""

    number: int
    start: int
    values: Floats
    membership: Integers
    cells: Floats


def _pieces(measurements: Measurements, each: Measurement, question: QuestionCells) -> Iterator[_Piece]:
    start = 0
    for number, (part, values) in enumerate(each.tables()):
        sums = None
        if isinstance(part, Marginal):
            sums = _of_table(measurements.domain, part, question)
        elif isinstance(part, Parity):
            sums = _of_parity(part, question)
        shared = bool({*part.columns} & {*question.columns})
        if sums is not None and (shared or measurements.n is None):
            yield _Piece(number, start, values.ravel().astype(np.float64), *sums)
        start += part.size


def _of_table(domain: Domain, part: Marginal, question: QuestionCells) -> tuple[Integers, Floats] | None:
    """Return the sum that each cell of a table belongs to, and of which cells that is the sum."""
    blocks = {
        c: joined(question.classes[question.columns.index(c)], groups)
        for c, groups in zip(part.columns, part.groups, strict=True)
        if c in question.columns
    }

    def numbered(columns: Sequence[int], shape: Sequence[int], side: int) -> Integers:
        sizes = zip(columns, shape, strict=True)
        numbers = [blocks[c][side] if c in blocks else np.zeros(size, dtype=np.int64) for c, size in sizes]
        return np.ravel_multi_index(np.ix_(*numbers), [int(each.max()) + 1 for each in numbers])

    membership = numbered(part.columns, part.shape, 1)
    of_cells = numbered(question.columns, question.shape, 0).ravel()[question.possible]
    positions = np.full(int(membership.max()) + 1, -1, dtype=np.int64)
    there = np.unique(of_cells)
    positions[there] = np.arange(len(there))
    membership = positions[membership]
    if domain.valid is not None:
        membership = np.where(part.possible(domain), membership, -1)
    cells = (of_cells[:, None] == there[None, :]).astype(np.float64)
    return membership.ravel(), cells


def joined(classes: Integers, groups: Sequence[int]) -> tuple[Integers, Integers]:
    """
    Return the finest blocks that neither classes nor groups of categories part: of each class, of each group.

    >>> joined(np.array([0, 0, 1, 1, 2]), [0, 1, 1, 2, 3])
    (array([0, 0, 1]), array([0, 0, 0, 1]))
    """
    of_class, of_group = np.arange(int(classes.max()) + 1), np.full(max(groups) + 1, -1, dtype=np.int64)
    for class_, group in zip(classes.tolist(), groups, strict=True):
        if of_group[group] < 0:
            of_group[group] = of_class[class_]
        elif of_group[group] != of_class[class_]:
            gone, stays = of_class[class_], of_group[group]
            of_class[of_class == gone] = stays
            of_group[of_group == gone] = stays
    blocks = np.unique(of_class)
    return np.searchsorted(blocks, of_class), np.searchsorted(blocks, of_group)


def _of_parity(part: Parity, question: QuestionCells) -> tuple[Integers, Floats] | None:
    """Return the same of one contrast; None: it looks at columns that the question does not look at."""
    if not {*part.columns} <= {*question.columns}:
        return None
    odd = np.zeros((1,) * len(question.columns), dtype=bool)
    yes_of = dict(zip(part.columns, part.yes, strict=True))
    for axis, (c, classes) in enumerate(zip(question.columns, question.classes, strict=True)):
        if c in yes_of:
            of_yes = classes[yes_of[c]]
            if np.count_nonzero(classes == of_yes) > 1:
                return None
            yes = np.arange(classes.max() + 1) == of_yes
            odd = odd ^ yes.reshape([-1 if i == axis else 1 for i in range(len(question.columns))])
    odd = np.broadcast_to(odd, question.shape).ravel()[question.possible]
    numbers = np.where(odd, -1.0, 1.0) if part.signed else odd.astype(np.float64)
    return np.zeros(1, dtype=np.int64), numbers[:, None]


def telling(cells: Sequence[Floats]) -> list[int]:
    """Return which sums of cells, by number, tell what those before them do not."""
    chosen, rank = list[int](), 0
    for number in range(len(cells)):
        more = int(np.linalg.matrix_rank(np.hstack([cells[k] for k in (*chosen, number)])))
        if more > rank:
            chosen.append(number)
            rank = more
    return chosen
