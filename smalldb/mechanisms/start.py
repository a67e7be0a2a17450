"""A public table that a release starts from: of other people, or released under differential privacy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from queries.arrays import Floats, Numbers, splitmix64
from queries.domain import Domain, Integers
from smalldb.mechanisms.measurement import Measurement

ROWS = ("start", "model")  # what synthetic rows are: rows of the start, or made from tables of it
MOST_ROWS = 1 << 16  # distinct rows of a start that are weighed; of more, a public sample
INDEPENDENT = 0.05  # the weight of independent rows
UNSEEN = 0.1  # of these rows, how much of a column is spread over all its categories
LEAST_INDEPENDENT = 1 << 12  # independent rows


@dataclass(frozen=True, slots=True, eq=False)
class Earlier:
    """A release of the same data, which a new one refines: public."""

    measurements: tuple[Measurement, ...]
    domain: Domain
    n: int | None  # how many rows it had; None: private
    epsilon: str  # that its record states
    digest: str  # SHA-256 of its measurements


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """A public table by the schema of the data, and what its user says it is."""

    codes: Integers  # of its distinct rows, shape (r, C)
    counts: Integers  # how often each is there, shape (r,)
    words: str  # what it is, as its user says: published
    digest: str  # SHA-256 of its rows as codes
    rows: str = ROWS[0]

    def of(self, counts: Integers) -> "Start":
        """Return the start with other counts of its rows, some of them 0."""
        return replace(self, codes=self.codes[counts > 0], counts=counts[counts > 0])

    # Proof: docs/proofs/start.md, lemma 3.
    def without(self, column: int, shares: Floats) -> "Start":
        """Return the start with one column independent of the others, by shares of its categories."""
        codes, many = self.codes.copy(), len(self.codes)
        codes[:, column] = _shuffled(shares, many, column)
        return replace(self, codes=codes)

    def mixed(
        self,
        sizes: tuple[int, ...],
        possible: Callable[[Integers], Integers],
        shares: Sequence[Floats] | None = None,
    ) -> tuple[Integers, Floats]:
        """
        Return rows and their weights: those of the start, and independent ones, as far as possible.

        `shares` are those of the categories of each column among independent rows; None: as in the start.
        """
        codes: Integers = self.codes
        weights: Floats = self.counts / float(self.counts.sum())
        if len(codes) > MOST_ROWS:
            codes, weights = codes[systematic(weights, MOST_ROWS)], np.full(MOST_ROWS, 1 / MOST_ROWS)
        many = max(LEAST_INDEPENDENT, min(len(codes), MOST_ROWS))
        columns = []
        for c, size in enumerate(sizes):
            held = np.bincount(codes[:, c], weights, size) if shares is None else shares[c]
            share = held.astype(np.float64) * (1 - UNSEEN) + UNSEEN / size
            columns.append(_shuffled(share, many, c))
        others = np.stack(columns, axis=1)
        others = others[possible(others)]
        if not len(others):
            return codes, weights
        share = np.full(len(others), INDEPENDENT / len(others))
        return np.concatenate([codes, others]), np.concatenate([weights * (1 - INDEPENDENT), share])


def _shuffled(shares: Floats, many: int, column: int) -> Integers:
    """Return so many categories of a column, by their shares, in an order that is as of no other column."""
    return systematic(shares, many)[np.argsort(splitmix64(many, column))]


def systematic(weights: Numbers, many: int) -> Integers:
    """Return so many numbers of weights, each about as often as its weight says, ascending."""
    ends = np.cumsum(weights)
    positions = np.searchsorted(ends, (np.arange(many) + 0.5) * (ends[-1] / many), side="right")
    return np.asarray(np.minimum(positions, np.flatnonzero(weights)[-1]))
