"""The queries of one node of a tree, as linear forms of how many rows of each cell have a one."""

from collections.abc import Sequence
from itertools import chain, combinations
from math import gcd
from typing import NamedTuple

import numpy as np

from queries.arrays import Integers
from smalldb.kernels.nodes import MOST_CELLS
from smalldb.rejection.target import Target


class NodeForms(NamedTuple):
    """The linear forms of one node, and the boxes on each, as `Nodes` has them."""

    forms: Integers  # shape (forms, `MOST_CELLS`): what a one in each cell of the parents adds to the form
    # shape (forms,): how many queries have the form; theirs follow one another in what follows
    boxes: Integers
    scales: Integers  # shape (queries,): by how much an answer moves where the form moves by 1
    # shape (queries, `MOST_CELLS`): what a row in each cell adds to the answer where the node has a
    # zero
    constants: Integers
    queries: Integers  # shape (queries,): which ones they are


def forms_of(target: Target, clique: tuple[int, ...]) -> NodeForms:
    """Return the queries of a node: of its own attribute, the last of its clique, and parents."""
    # An answer on the rows moves by a form of u, how many rows of each cell of the parents have a one.
    # Queries that have the same form, but for a factor, are bounds on one number.
    *parents, own = clique
    settings = np.arange(1 << len(parents))
    forms: dict[tuple[int, ...], list[tuple[int, Integers, int]]] = {}
    for some in chain.from_iterable(combinations(parents, size) for size in range(len(clique))):
        attributes = tuple(sorted((*some, own)))
        for j in target.by_attributes.get(attributes, ()):
            values = []
            for bit in (0, 1):
                bits = np.full((len(attributes), len(settings)), bit, dtype=np.int64)
                for row, a in enumerate(attributes):
                    if a != own:
                        bits[row] = settings >> parents.index(a) & 1
                weights = target.tables[j].weights
                values.append(bits.sum(axis=0) % 2 * target.unit if weights is None else weights[tuple(bits)])
            change = values[1] - values[0]
            scale = gcd(*change.tolist()) * (1 if change[change != 0][0] > 0 else -1)
            forms.setdefault(tuple((change // scale).tolist()), []).append((scale, values[0], j))
    boxes = list(chain.from_iterable(forms.values()))
    return NodeForms(
        _padded(list(forms)),
        np.array([len(found) for found in forms.values()], dtype=np.int64),
        np.array([scale for scale, _, _ in boxes], dtype=np.int64),
        _padded([constants for _, constants, _ in boxes]),
        np.array([j for _, _, j in boxes], dtype=np.int64),
    )


def _padded(rows: Sequence[Sequence[int] | Integers]) -> Integers:
    table = np.zeros((len(rows), MOST_CELLS), dtype=np.int64)
    for row, values in zip(table, rows, strict=True):
        row[: len(values)] = values
    return table
