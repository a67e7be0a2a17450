"""One linear counting query."""

from dataclasses import dataclass
from functools import reduce
from math import prod
from operator import ge

import numpy as np

from queries.arrays import Booleans, Codes, Integers
from queries.columns import Bits
from queries.domain import MAX_CELLS, Domain


@dataclass(frozen=True, slots=True)
class Query:
    """One linear query f: rows -> [0, 1] that looks at a few attributes, or at a few columns.

    Attributes
    ----------
    label
        Readable name, in the grammar of `queries.expressions` where it is a predicate.
    attributes
        Positions of the attributes that it looks at, ascending; with `sizes`, of the columns.
    weights
        ``denominator * f`` for each of the 2^|attributes| settings, in product order;
        None for the parity (XOR) of the attributes, which needs no table.
    denominator
        Common denominator of the weights.
    sizes
        How many categories each of the columns has; the weights are then one for each cell of their table.
        None: the query looks at attributes.
    """

    label: str
    attributes: tuple[int, ...]
    weights: tuple[int, ...] | None
    denominator: int = 1
    sizes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        positions = self.attributes
        # of up to 10^5 queries and more: each check runs in C
        if (
            {*map(type, positions)} - {int}
            or any(map(ge, positions, positions[1:]))
            or (positions and positions[0] < 0)
        ):
            raise ValueError(f"query {self.label!r}: attributes must be positions, ascending")
        if type(self.denominator) is not int or self.denominator < 1:
            raise ValueError(f"query {self.label!r}: the denominator must be a whole number of at least 1")
        if self.weights is None:
            if self.denominator != 1 or self.sizes is not None:
                raise ValueError(f"query {self.label!r}: a parity has denominator 1, and looks at attributes")
            return
        cells = 1 << len(positions) if self.sizes is None else prod(self.sizes)
        if (
            (self.sizes is not None and len(self.sizes) != len(positions))
            or len(self.weights) != cells
            or {*map(type, self.weights)} != {int}
            or min(values := {*self.weights}) < 0  # mostly two
            or max(values) > self.denominator
        ):
            expected = f"2^{len(positions)}" if self.sizes is None else f"{cells}"
            raise ValueError(
                f"query {self.label!r}: expected {expected} whole weights from 0 to {self.denominator}"
            )

    @property
    def constant(self) -> bool:
        """Whether it has one value on all rows, and so no error on any table."""
        return not self.attributes if self.weights is None else len(set(self.weights)) == 1

    def values(self, bits: Bits) -> Integers:
        """Return ``denominator * f`` on 0/1 rows of shape (r, d): int64, shape (r,).

        A query with `sizes` takes rows of codes, shape (r, C).
        """
        chosen = bits[:, list(self.attributes)]
        if self.weights is None:
            return odd(chosen).astype(np.int64)
        weights: Integers = np.array(self.weights, dtype=np.int64)
        if self.sizes is None:
            return weights[settings(chosen)]
        return (
            weights[np.ravel_multi_index(tuple(chosen.T), self.sizes)]
            if self.sizes
            else weights[[0] * len(bits)]
        )

    def on(self, domain: Domain, codes: Codes) -> Integers:
        """Return ``denominator * f``, as `values` does, on rows of codes of a domain, shape (r, C)."""
        if domain.binary or self.sizes is not None:
            return self.values(codes)
        near = Query(self.label, tuple(range(len(self.attributes))), self.weights, self.denominator)
        return near.values(domain.bits(codes, self.attributes))

    def columns(self, domain: Domain) -> tuple[int, ...]:
        """Return the columns of a domain that it looks at, ascending."""
        if self.sizes is not None or domain.binary:
            return self.attributes
        return tuple(sorted({domain.column_of(a)[0] for a in self.attributes}))

    def over_columns(self, domain: Domain) -> Integers:
        """Return ``denominator * f`` on the cells of the table of its columns, shaped by their sizes.

        ValueError beyond 2^20 cells.
        """
        columns = self.columns(domain)
        shape = tuple(domain.sizes[c] for c in columns)
        if prod(shape) > MAX_CELLS:
            raise ValueError(
                f"query {self.label!r} looks at columns with {prod(shape)} cells, more than 2^20"
            )
        if self.weights is not None and (self.sizes is not None or domain.binary):
            return np.array(self.weights, dtype=np.int64).reshape(shape)
        held = []
        for attribute in self.attributes:
            c, within = domain.column_of(attribute)
            truth = domain.columns[c].table[:, within].astype(np.int64)
            held.append(truth.reshape([-1 if i == c else 1 for i in columns]))
        nothing = np.zeros((1,) * len(shape), dtype=np.int64)
        if self.weights is None:
            return np.broadcast_to(reduce(np.bitwise_xor, held, nothing), shape)
        setting = reduce(lambda code, truth: 2 * code + truth, held, nothing)
        weights: Integers = np.array(self.weights, dtype=np.int64)
        return np.broadcast_to(weights[setting], shape)


def odd(chosen: Bits) -> Booleans:
    """Tell which 0/1 rows have an odd number of ones."""
    found: Booleans = chosen.sum(axis=1) % 2 == 1
    return found


def settings(chosen: Bits) -> Integers:
    """Read each 0/1 row as an integer, first column most significant."""
    positions = np.arange(chosen.shape[1] - 1, -1, -1, dtype=np.int64)
    return chosen.astype(np.int64) @ (np.int64(1) << positions)
