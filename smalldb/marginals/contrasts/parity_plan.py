"""What is measured, from public numbers: which parities with which share of epsilon, or the cells."""

from dataclasses import dataclass
from fractions import Fraction
from math import inf, log, sqrt

import numpy as np

from queries import Domain, Workload
from queries.arrays import Floats
from queries.domain import MAX_TABLE_ATTRIBUTES, Integers
from smalldb.exact.numbers import Number, between_0_and_1, positive, whole
from smalldb.marginals.contrasts.coding import Coding, attributes_of, coded_spectrum, coding, unlike_coded
from smalldb.marginals.contrasts.part_list import LAWS, Cells, Safeguard
from smalldb.marginals.contrasts.parts import Part
from smalldb.marginals.contrasts.priors import prior, read_deviation
from smalldb.marginals.contrasts.setting import Setting
from smalldb.marginals.contrasts.spectrum import Spectrum, spectrum

MAX_ATTRIBUTES = 256
MOST_ROWS = 1 << 60  # so that a sum with noise fits 64 bits
LEAST_EPSILON, MOST_EPSILON = Fraction(1, 1 << 40), 1 << 20
LEAST_DELTA = Fraction(1, 10**300)
_DESCRIBED = {
    "wishart": "parities of one and two columns with Wishart noise",
    "cells": "the counts of all cells with geometric noise",
    "gaussian": "parities with Gaussian noise",
    "safeguard": "the parity of three columns that was predicted worst",
}


@dataclass(frozen=True, slots=True, eq=False)
class ParityPlan:
    """What a release of parities will measure; a function of public numbers alone.

    Attributes
    ----------
    workload
        The reduced queries over the universe.
    n
        Rows of the data under replace-one; under add-remove a public guess, which only steers choices.
    epsilon, neighbours
        The privacy parameter, and "replace-one" or "add-remove".
    parts
        What is measured; the shares sum to 1.
    spectrum
        The queries as sums of parities.
    delta
        The release is (epsilon, delta)-DP; None: it is purely epsilon-DP.
    """

    workload: Workload
    n: int
    epsilon: Fraction
    neighbours: str
    parts: tuple[Part, ...]
    spectrum: Spectrum
    delta: Fraction | None = None

    @property
    def setting(self) -> Setting:
        """What the parts share."""
        return Setting(self.workload, self.n, self.epsilon, self.replaced, self.spectrum, self.delta)

    @property
    def coding(self) -> Coding:
        """How columns are coded as yes/no attributes, whose parities are measured."""
        return coding(self.workload.domain)

    @property
    def domain(self) -> Domain:
        """The attributes."""
        return self.coding.domain

    @property
    def method(self) -> str:
        """The law of the noise; "both": a Wishart difference and cells."""
        laws = {part.law for part in self.unguarded}
        return self.parts[0].law if len(laws) == 1 else "both"

    @property
    def described(self) -> str:
        """What is measured, in some words."""
        laws = dict.fromkeys(part.law for part in self.parts)
        return ", ".join(_DESCRIBED.get(law, f"parities with {law} noise") for law in laws)

    @property
    def safeguard(self) -> Safeguard | None:
        """The part that is measured last and chosen by what was released before, if there is one."""
        last = self.parts[-1]
        return last if isinstance(last, Safeguard) else None

    @property
    def cells(self) -> Cells | None:
        """The part of all cells, if there is one: the last."""
        last = self.parts[-1]
        return last if isinstance(last, Cells) else None

    @property
    def unguarded(self) -> tuple[Part, ...]:
        """The parts but for the safeguard."""
        return self.parts if self.safeguard is None else self.parts[:-1]

    @property
    def expected_error(self) -> float:
        """A public estimate of the mean of max_f |f(x) - f(y)|. Not a bound.

        The fit leaves of the noise of a parity what a prior of its size lets through. The worst query is
        taken for all J of them, and the largest of 2 J normal numbers for the mean of the largest error.
        """
        orders = np.arange(1, self.spectrum.orders[-1] + 1)
        left = 1 / (self.precision(orders, read=True) + prior(orders) ** -2)
        worst = self.spectrum.kinds.worst(np.concatenate([[0.0], left]))
        return min(1.0, sqrt(2 * log(2 * self.workload.size) * worst))

    @property
    def replaced(self) -> bool:
        """Whether neighbours have a row replaced, so that n is public."""
        return self.neighbours == "replace-one"

    @property
    def deviations(self) -> Floats:
        """The public noise of the mean of each parity of the spectrum, shape (K,); infinite: not measured."""
        precision = self.precision(self.spectrum.orders, read=False)
        return np.where(precision > 0, 1 / np.sqrt(np.where(precision > 0, precision, 1.0)), inf)

    def precision(self, orders: Integers, *, read: bool) -> Floats:
        """Return 1 / variance of the means of parities: as released, or as it is expected to be read.

        Parameters
        ----------
        orders
            Of the parities, from 1: how many attributes each has.
        read
            Whether cells count as they are expected to be read by empirical Bayes; else every parity has the
            noise that it is released with.
        """
        domain, cells = self.domain, self.cells
        d = len(domain.attributes)

        def released(some: tuple[Part, ...]) -> Floats:
            known = [[part.deviations.get(o, inf) / self.n for o in range(1, d + 1)] for part in some]
            precision: Floats = (np.maximum(np.array(known).reshape(-1, d), 1e-100) ** -2.0).sum(axis=0)
            return precision

        if read and cells is not None:
            beside, modelled = released(self.parts[:-1]), int(self.spectrum.orders[-1])
            sd = read_deviation(domain.size, self.n, float(self.rate(cells)), beside, modelled)
            precision = np.maximum(released(self.parts), beside + max(sd, 1e-100) ** -2.0)
        else:
            precision = released(self.unguarded)  # of one set that is chosen later nothing is expected
        found: Floats = precision[orders - 1]
        return found

    def rate(self, part: Part) -> Fraction:
        """
        Return the rate r of a part's noise: a value that is off by one more is e^r times less probable.

        Of a safeguard the rate of its noise; its choice costs as much.
        """
        return part.rate(self.setting)


def read_delta(value: object) -> Fraction | None:
    """Read a delta that a release may have; None stands for itself."""
    if value is None:
        return None
    delta = between_0_and_1(value, "delta")
    if delta < LEAST_DELTA:
        raise ValueError("delta must be at least 1e-300: leave it out for pure privacy")
    return delta


def alternatives(
    workload: Workload,
    *,
    n: int,
    epsilon: Number,
    neighbours: str,
    delta: Number | None = None,
    series: Spectrum | None = None,
) -> list[ParityPlan]:
    """
    Return what can be measured; one takes the plan with the least expected error.

    They are the parities of all orders up to some order that the workload needs, with noise from a cube for
    each order; those of order 1 and 2 with a Wishart difference, and a safeguard if the workload has order 3;
    up to 20 attributes, the cells, or both. If `delta` is given, also the parities up to each such order with
    Gaussian noise. `docs/decisions/0009-answers.md` and `0011-wishart.md` describe the estimate of the error.

    Parameters
    ----------
    workload
        The reduced queries over the universe.
    n
        The public n under replace-one, else a public guess of it.
    epsilon
        Of all parts together.
    neighbours
        "replace-one" or "add-remove".
    delta
        What the guarantee may have; None: it must be pure.
    series
        The spectrum of the workload, where it is known.

    Raises
    ------
    ValueError
        More than 2^60 rows; more than 256 attributes, or more than 20 of which not all rows can exist;
        queries too many or too wide; epsilon or delta out of range. Says what would do.
    """
    domain = workload.domain
    if (lacking := unlike_coded(workload)) is not None:
        raise ValueError(f"contrasts need {lacking}: use strategy cells, pairs or adaptive")
    d = attributes_of(domain)
    if d > MAX_ATTRIBUTES:
        raise ValueError(f"contrasts are measured of at most {MAX_ATTRIBUTES} attributes, not {d}: drop some")
    if domain.valid is not None and d > MAX_TABLE_ATTRIBUTES:
        raise ValueError(
            f"contrasts of more than {MAX_TABLE_ATTRIBUTES} attributes are measured where all rows can "
            "exist: leave out valid, or drop attributes"
        )
    if neighbours not in ("replace-one", "add-remove"):
        raise ValueError("neighbours must be 'replace-one' or 'add-remove'")
    n, exact, allowed = whole(n, "n"), positive(epsilon, "epsilon"), read_delta(delta)
    if not LEAST_EPSILON <= exact <= MOST_EPSILON:
        raise ValueError("contrasts are measured with an epsilon of 2^-40 to 2^20")
    if n > MOST_ROWS:
        raise ValueError("contrasts are measured of at most 2^60 rows")
    replaced = neighbours == "replace-one"
    series = series or (
        spectrum(workload) if coding(domain).plain else coded_spectrum(workload, coding(domain))
    )
    setting = Setting(workload, n, exact, replaced, series, allowed)
    designs = [parts for law in LAWS for parts in law.designs(setting)]
    if not designs:
        raise ValueError("epsilon is too small for so many attributes: use more epsilon or fewer attributes")
    deltas = [None if all(part.pure for part in parts) else allowed for parts in designs]
    return [
        ParityPlan(workload, n, exact, neighbours, parts, series, delta)
        for parts, delta in zip(designs, deltas, strict=True)
    ]
