"""Columns of any number of categories as yes/no attributes, so that their contrasts are parities."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise

import numpy as np

from queries import Domain, Workload
from queries.arrays import Codes, Floats
from queries.domain import MAX_TABLE_ATTRIBUTES, Bits, Integers
from queries.query import Cells
from smalldb.marginals.contrasts.spectrum import Kinds, Spectrum, check_parities

MOST_COLUMNS = 2  # of a table whose columns are coded


@dataclass(frozen=True, slots=True, eq=False)
class Coding:
    """A yes/no attribute for each category of each column but its first; a yes/no column is its own.

    A row has yes in at most one attribute of a column. Its signs, 1 and -1, are those of a row of yes/no
    columns, so what protects these protects it.
    """

    domain: Domain  # of the attributes
    # of each attribute, the column, and the category that it says yes to
    columns: tuple[int, ...]
    categories: tuple[int, ...]
    starts: tuple[int, ...]  # the first attribute of each column, and how many there are
    plain: bool  # whether the columns are yes/no attributes themselves

    def codes(self, bits: Bits) -> Integers:
        """Return the codes of columns from attributes, shape (rows, C)."""
        held = bits * np.array(self.categories)
        return np.asarray(np.add.reduceat(held, self.starts[:-1], axis=1).astype(np.int64))


def attributes_of(domain: Domain) -> int:
    """Return how many attributes the columns of a domain are coded as."""
    return sum(domain.sizes) - len(domain.sizes)


@lru_cache(maxsize=32)
def coding(domain: Domain) -> Coding:
    """Return the coding of a domain: that of yes/no columns is the domain itself.

    >>> from queries import Column
    >>> coded = coding(Domain(["smoker", Column("job", ["none", "part", "full"])]))
    >>> coded.columns, coded.categories, coded.domain.valid
    ((0, 1, 1), (1, 1, 2), ('~(x2 & x3)',))
    """
    sizes = domain.sizes
    columns = tuple(c for c, size in enumerate(sizes) for _ in range(1, size))
    categories = tuple(code for size in sizes for code in range(1, size))
    starts = tuple(np.cumsum([0, *(size - 1 for size in sizes)]).tolist())
    if domain.unlike_binary is None:
        return Coding(domain, columns, categories, starts, plain=True)
    attributes = Domain(len(columns))
    if len(columns) <= MAX_TABLE_ATTRIBUTES:  # two attributes of a column cannot exist
        rules = [
            f"~({attributes.names[a]} & {attributes.names[b]})"
            for start, end in pairwise(starts)
            for a, b in combinations(range(start, end), 2)
        ]
        attributes = Domain(len(columns), tuple(rules) or None)
    return Coding(attributes, columns, categories, starts, plain=False)


def unlike_coded(workload: Workload) -> str | None:
    """Say what a workload lacks whose columns are to be coded; None: nothing."""
    domain = workload.domain
    if domain.unlike_binary is None:
        return None
    if workload.listed or max((len(block.columns) for block in workload.cells), default=0) > MOST_COLUMNS:
        return f"{domain.unlike_binary}, or queries that are the cells of tables of at most two columns"
    return f"{domain.unlike_binary}, or all rows to exist" if domain.valid is not None else None


def coded_spectrum(workload: Workload, coded: Coding) -> Spectrum:
    """Write cells of tables as sums of parities of attributes: a cell's share is a product, one a column."""
    sizes, shares = workload.domain.sizes, {c: _shares(size) for c, size in enumerate(workload.domain.sizes)}
    ranks: dict[tuple[int, ...], int] = {}
    kinds: dict[tuple[tuple[int, bool], ...], Floats] = {}
    constants, coefficients = list[Floats](), list[Floats]()
    lengths, members = list[Integers](), list[Integers]()
    for block in workload.cells:
        cells = _cells(workload.domain, block)
        terms = np.ones((len(cells), 1))
        sets: list[tuple[int, ...]] = [()]
        for axis, c in enumerate(block.columns):
            terms = (terms[:, :, None] * shares[c][cells[:, axis]][:, None, :]).reshape(len(cells), -1)
            more: list[tuple[int, ...]] = [(), *((a,) for a in range(coded.starts[c], coded.starts[c + 1]))]
            sets = [(*some, *one) for some in sets for one in more]
        positions = np.array([ranks.setdefault(some, len(ranks)) for some in sets[1:]])
        check_parities(len(ranks))
        who, which = np.nonzero(terms[:, 1:])
        constants.append(terms[:, 0])
        lengths.append(np.bincount(who, minlength=len(cells)))
        members.append(positions[which])
        coefficients.append(terms[who, which + 1])
        for cell, coefficients_of in zip(cells.tolist(), terms, strict=True):
            kind = tuple((sizes[c], not code) for c, code in zip(block.columns, cell, strict=True))
            if kind not in kinds:
                orders = np.array([len(some) for some in sets])
                kinds[kind] = np.stack([orders, coefficients_of**2])[:, coefficients_of != 0]
    order = sorted(ranks, key=lambda some: (len(some), some))
    at = np.empty(len(ranks), dtype=np.int64)
    at[[ranks[some] for some in order]] = np.arange(len(order))
    of_kinds = [one[:, one[0] > 0] for one in kinds.values()]
    every = np.concatenate(of_kinds, axis=1)
    return Spectrum(
        tuple(order),
        np.array([len(some) for some in order], dtype=np.int64),
        np.concatenate(constants),
        np.concatenate([[0], np.cumsum(np.concatenate(lengths))]),
        at[np.concatenate(members)],
        np.concatenate(coefficients),
        Kinds(np.cumsum([0, *(one.shape[1] for one in of_kinds)]), every[0].astype(np.int64), every[1]),
    )


def _shares(size: int) -> Floats:
    """Return each category of a column as a constant and a number for each attribute, shape (size, size)."""
    # the share of a category but the first is (1 - chi) / 2; that of the first is what the others leave of 1
    shares = np.zeros((size, size))
    shares[1:, 0] = 0.5
    shares[1:, 1:] = -0.5 * np.eye(size - 1)
    shares[0] = np.eye(1, size)[0] - shares[1:].sum(axis=0)
    return shares


def _cells(domain: Domain, block: Cells) -> Codes:
    """Return the queries of a table as codes of its columns, shape (queries, columns)."""
    sizes = tuple(domain.sizes[c] for c in block.columns)
    cells = block.of_counts(block.in_order(domain, np.arange(block.cells).reshape(sizes)))
    return np.stack(np.unravel_index(cells, sizes), axis=1)
