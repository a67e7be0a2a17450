"""A distribution of columns that is drawn anew from rows: Dirichlet tables on the cliques of measurements."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from typing import Self

import numpy as np

from queries.arrays import Floats, Integers, Words
from smalldb.inference.tied_columns import INSTEAD
from smalldb.kernels.imputing import Cliques, gammas
from smalldb.kernels.matching import patterns

MOST_CONTEXTS = 64  # of a column, for each group of the largest that it depends on: more have too few rows
WITHIN = 0.5  # rows that each category has beforehand among those of its group

Rows = np.ndarray[tuple[int, int], np.dtype[np.int16]]


@dataclass(frozen=True, slots=True, eq=False)
class ColumnModel:
    """
    A chain rule: each column given some others, by groups of categories; categories of a group are alike.

    Two columns that were measured together are in one clique, at the common refinement of all groups in which
    they were measured. Columns that were not are independent, given those in between.

    Attributes
    ----------
    groups
        Of each column, the group of each category.
    cliques
        A column, and those that it depends on.
    before
        Rows that each cell of each clique has beforehand: the prior.
    codes
        Of each clique, what the categories of all columns add to the cell.
    """

    groups: tuple[Integers, ...]
    cliques: tuple[tuple[int, ...], ...]
    before: tuple[Floats, ...] = field(repr=False)
    codes: tuple[Integers, ...] = field(repr=False)

    @classmethod
    def of(
        cls,
        sizes: Sequence[int],
        measured: Sequence[dict[int, Integers]],
        shares: Sequence[Floats],
        pseudo_rows: float,
    ) -> Self:
        """Return the model of some measured tables."""
        groups = []
        for column, size in enumerate(sizes):
            told = [table[column] for table in measured if column in table and len(table) > 1]
            together = np.array([np.zeros(size, dtype=np.int64), *told]).T
            groups.append(np.unique(together, axis=0, return_inverse=True)[1].ravel())
        counts = [int(own.max()) + 1 for own in groups]
        cliques = _eliminated(counts, [tuple(table) for table in measured])
        before, codes = [], []
        for column, *given in cliques:
            contexts = prod(counts[c] for c in given)
            largest = max((counts[c] for c in given), default=1)
            if contexts > MOST_CONTEXTS * largest:
                raise ValueError(
                    f"what was measured makes a column depend on {len(given)} others at once: several tables "
                    f"can be drawn where fewer columns meet; {INSTEAD}"
                )
            own = np.bincount(groups[column], shares[column]) * pseudo_rows * largest / contexts
            before.append(np.tile(own, contexts))
            strides, stride = dict[int, int](), 1
            for c in (column, *reversed(given)):
                strides[c], stride = stride, stride * counts[c]
            codes.append(np.concatenate([strides.get(c, 0) * each for c, each in enumerate(groups)]))
        return cls(tuple(groups), cliques, tuple(before), tuple(codes))

    # Proof: docs/proofs/imputation.md, lemma 1.
    def draw(self, rows: Rows, state: Words, layout: Cliques) -> None:
        """Draw the distribution anew, given the rows: into `layout`."""
        ends = pairwise([*layout.origins, len(layout.probabilities)])
        for clique, codes, before, (start, end) in zip(
            self.cliques, self.codes, self.before, ends, strict=True
        ):
            cell = patterns(rows, layout.starts, codes)
            mass = gammas(before + np.bincount(cell, minlength=end - start), state)
            cells = mass.reshape(-1, int(self.groups[clique[0]].max()) + 1)
            layout.probabilities[start:end] = (cells / cells.sum(axis=1, keepdims=True)).ravel()
        for column, own in enumerate(self.groups):
            mass = gammas(np.full(len(own), WITHIN) + np.bincount(rows[:, column], minlength=len(own)), state)
            within = mass / np.bincount(own, mass)[own]
            layout.shares[layout.starts[column] : layout.starts[column + 1]] = within

    def layout(self) -> Cliques:
        """Return room for a distribution, as the kernel reads it: a column varies fastest in its clique."""
        counts = [int(own.max()) + 1 for own in self.groups]
        strides, cells = [], []
        for column, *given in self.cliques:
            steps = np.cumprod([1, counts[column], *(counts[c] for c in reversed(given))])
            cells.append(int(steps[-1]))
            strides.append(dict(zip((column, *reversed(given)), steps.tolist(), strict=False)))
        first, members = ragged([list(own) for own in strides])
        own = [[k for k, steps in enumerate(strides) if c in steps] for c in range(len(counts))]
        first_clique, cliques = ragged(own)
        return Cliques(
            starts=np.cumsum([0, *map(len, self.groups)]),
            groups=np.concatenate(self.groups),
            shares=np.ones(sum(map(len, self.groups))),
            probabilities=np.ones(sum(cells)),
            origins=np.cumsum([0, *cells[:-1]]),
            first_member=first,
            members=members,
            strides=ragged([list(steps.values()) for steps in strides])[1],
            first_clique=first_clique,
            cliques=cliques,
            own_strides=ragged([[strides[k][c] for k in some] for c, some in enumerate(own)])[1],
        )


def ragged(lists: Sequence[Sequence[int]]) -> tuple[Integers, Integers]:
    """Return where each list begins in all of them, and where the last ends; and all of them."""
    whole = [np.array(some, dtype=np.int64) for some in lists]
    starts = np.cumsum([0, *map(len, lists)], dtype=np.int64)
    return starts, np.concatenate([np.zeros(0, dtype=np.int64), *whole])


def _eliminated(counts: Sequence[int], tables: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    """Return each column with the later ones that it meets: the column with the smallest clique is next."""
    near: dict[int, set[int]] = {c: set() for c in range(len(counts))}
    for table in tables:
        for column in table:
            near[column] |= set(table) - {column}
    found = []
    while near:
        column = min(near, key=lambda c: (prod(counts[e] for e in (c, *near[c])), c))
        given = near.pop(column)
        found.append((column, *sorted(given)))
        for c in given:
            near[c] = (near[c] | given) - {c, column}
    return tuple(found)
