"""Several tables of contrasts: fresh noise on the published parities, and rows that have these."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import NamedTuple, Self

import numpy as np

from queries import Domain
from queries.arrays import Floats, Integers, splitmix64
from queries.domain import MAX_TABLE_ATTRIBUTES
from smalldb.exact.bits import bit_source
from smalldb.marginals.contrasts.coding import Coding, coding
from smalldb.marginals.contrasts.parity_fit import Means, fit, flipped_towards, rounded, rows_with_means
from smalldb.marginals.contrasts.spectrum import Positions
from smalldb.mechanisms import Measurement, Parity

FREE = 3.0  # a deviation of coefficients, wide beside what they are: the prior hardly counts
LOUDEST = 0.8  # of 1, what noise does to sums of squares of signs: beyond, intervals cover too seldom
LOUD = "contrasts have so much noise that hardly any table has them"
RARE = 3.0  # deviations of noise: of categories with fewer rows, intervals are too narrow


class _Sets(NamedTuple):
    """What was measured: distinct sets of attributes, and how many each has."""

    sets: tuple[Positions, ...]
    orders: Integers


# Proof: docs/proofs/refits.md, lemma 2.
@dataclass(frozen=True, slots=True, eq=False)
class ParityRefits:
    """Published contrasts, and how rows are drawn anew that have them, but for fresh noise."""

    measurements: tuple[Measurement, ...]
    total: int
    coding: Coding
    spectrum: _Sets
    members: Integers  # of each published number, which of the sets; -1: the number of rows
    signed: bool
    deviations: Floats  # of the noise of each published number

    @classmethod
    def of(cls, domain: Domain, measurements: Sequence[Measurement], total: int) -> Self | None:
        """Lay out what was measured; None: it is not contrasts alone."""
        parts = [part for each in measurements for part in each.of]
        parities = [part for part in parts if isinstance(part, Parity)]
        if not parities or len(parities) < len(parts):
            return None
        coded = coding(domain)
        attribute = {both: a for a, both in enumerate(zip(coded.columns, coded.categories, strict=True))}
        positions = [
            tuple(attribute[both] for both in zip(part.columns, part.yes, strict=True)) for part in parities
        ]
        sets = tuple(sorted({some for some in positions if some}, key=lambda some: (len(some), some)))
        at = {(): -1} | {some: rank for rank, some in enumerate(sets)}
        deviations, start = np.empty(len(positions)), 0
        for each in measurements:
            orders = np.array([len(some) for some in positions[start : start + len(each.of)]])
            for order in {*orders.tolist()}:  # noise of one order is alike
                here = np.flatnonzero(orders == order)
                one = np.eye(1, len(orders), here[0]).ravel()
                deviations[start + here] = each.noise.variance(one) ** 0.5
            start += len(orders)
        spectrum = _Sets(sets, np.array([len(some) for some in sets]))
        members, signed = np.array([at[some] for some in positions]), parities[0].signed
        return cls(tuple(measurements), total, coded, spectrum, members, signed, deviations)

    @property
    def suitable(self) -> bool:
        """Whether tables have such contrasts, noise and all."""
        orders = np.append(self.spectrum.orders, 0)[self.members]
        largest = float(self.deviations[orders == 2].max(initial=0.0)) * (1 if self.signed else 2)
        return can_exist(len(self.coding.columns), largest / self.total)

    @property
    def domain(self) -> Domain:
        """The attributes."""
        return self.coding.domain

    def draws(self, seed: int) -> Iterator[Integers]:
        """Yield tables without end: categories, shape (total, C)."""
        coins, published = bit_source(seed), self._published()
        free = np.full(len(self.spectrum.sets), FREE)
        while True:
            noise = np.concatenate([each.noise.draw(len(each.values), coins) for each in self.measurements])
            estimate, row_seed = self._estimates(published + noise), coins.bits(64)
            if len(self.coding.columns) <= MAX_TABLE_ATTRIBUTES:
                bits = rounded(self.domain, fit(self, estimate, free).q, self.total)
                bits = bits[np.argsort(splitmix64(self.total, row_seed))]
            else:
                means = np.zeros(len(self.coding.columns))
                for some, chi in zip(self.spectrum.sets, estimate.chi, strict=True):
                    if len(some) == 1:
                        means[some[0]] = chi
                start = rows_with_means(means, self.total, row_seed, self.coding.starts)
                bits = (flipped_towards(self, estimate, estimate.chi, start) < 0).astype(np.uint8)
            yield self.coding.codes(bits)

    def _published(self) -> Integers:
        return np.concatenate([each.values for each in self.measurements])

    def _estimates(self, values: Integers) -> Means:
        """Return the means of all sets, as shares of rows that are as noisy, and their noise."""
        counted = values[self.members < 0]
        rows = float(max(1, counted.mean())) if len(counted) else float(self.total)
        shares, unit = (values, 1.0) if self.signed else (self.total - 2.0 * values, 2.0)
        shares, here = np.clip(shares / rows, -1.0, 1.0), self.members >= 0
        weights, sets = (unit * self.deviations[here] / self.total) ** -2.0, self.members[here]
        precision = np.bincount(sets, weights)
        chi: Floats = np.bincount(sets, weights * shares[here]) / precision
        return Means(chi, np.asarray(precision**-0.5))

    def rare(self) -> tuple[tuple[int, ...], ...]:
        """Return of each column the categories whose rows are hardly more than noise, or fewer."""
        chi, deviations = self._estimates(self._published())
        rows, noise = np.full(len(self.coding.columns), np.nan), np.zeros(len(self.coding.columns))
        for some, share, deviation in zip(self.spectrum.sets, chi, deviations, strict=True):
            if len(some) == 1:
                rows[some[0]], noise[some[0]] = self.total * (1 - share) / 2, self.total * deviation / 2
        of_columns = []
        for start, end in pairwise(self.coding.starts):
            counts = [self.total - rows[start:end].sum(), *rows[start:end]]
            least = RARE * np.array([np.sqrt((noise[start:end] ** 2).sum()), *noise[start:end]])
            of_columns.append(tuple(np.flatnonzero(counts < least).tolist()))
        return tuple(of_columns)


# Proof: docs/proofs/refits.md, lemma 2.
def can_exist(attributes: int, deviation: float) -> bool:
    """Tell whether tables have parities with noise of such a deviation, as released and added once more."""
    # products of signs have no negative eigenvalues; noise moves these by 2 deviations, times the root
    return 2 * deviation * sqrt(2 * attributes) <= LOUDEST
