"""What is measured, from public numbers: which parities with which share of epsilon, or the cells."""

from dataclasses import dataclass
from fractions import Fraction
from math import exp, expm1, inf, log, sqrt
from typing import Literal, TypeAlias

import numpy as np

from queries import Workload
from queries.domain import MAX_TABLE_ATTRIBUTES, Integers
from smalldb.answers.parities import Floats, Places, Spectrum, spectrum
from smalldb.arguments import positive, whole

Method: TypeAlias = Literal["cube", "cells"]

MAX_ATTRIBUTES = 256
LEAST_EPSILON, MOST_EPSILON = Fraction(1, 1 << 40), 1 << 20
MAX_LEVELS = 1 << 22  # that the exact draw of a radius may enclose
SHARES = 64  # shares are multiples of 1/64
FIRST_DEVIATION, FACTOR = 0.6, 1 / 3  # what a parity of order o is expected to be: 0.6 / 3^(o - 1)


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """One part of what is measured.

    Attributes
    ----------
    sets
        The parities, all of one order (under add-remove, the first part counts the rows too: the empty
        set). Empty for cells.
    share
        Its share of epsilon.
    deviation
        The standard deviation of the noise in the sum of chi_S over the rows, for each set (of cells: for
        every set).
    """

    sets: tuple[Places, ...]
    share: Fraction
    deviation: float


@dataclass(frozen=True, slots=True, eq=False)
class AnswersPlan:
    """What a release of answers will measure; a function of public numbers alone.

    Attributes
    ----------
    workload
        The reduced queries over the universe.
    n
        Rows of the data under replace-one; under add-remove a public guess, which only steers choices.
    epsilon, neighbours
        The privacy parameter, and "replace-one" or "add-remove".
    method
        "cube": sums of parities, with noise exp(-epsilon share max |V|) for each part.
        "cells": the count of each cell, with noise exp(-epsilon |V|_1 / 2), or exp(-epsilon |V|_1) under
        add-remove.
    parts
        What is measured; the shares sum to 1.
    spectrum
        The queries as sums of parities.
    """

    workload: Workload
    n: int
    epsilon: Fraction
    neighbours: str
    method: Method
    parts: tuple[Measurement, ...]
    spectrum: Spectrum

    @property
    def expected_error(self) -> float:
        """A public estimate of the mean of max_f |f(x) - f(y)|. Not a bound.

        The fit leaves of the noise of a parity what a prior of its size lets through. The worst query is
        taken for all J of them, and the largest of 2 J normal numbers for the mean of the largest error.
        """
        noise, size = self.deviations, prior(self.spectrum.orders)
        left = size**2 / (1 + (size / np.maximum(noise, 1e-100)) ** 2)
        terms = self.spectrum.coefficients**2 * left[self.spectrum.members]
        worst = self.spectrum.over_queries(terms).max()
        return min(1.0, sqrt(2 * log(2 * self.workload.size) * worst))

    @property
    def replaced(self) -> bool:
        """Whether neighbours have a row replaced, so that n is public."""
        return self.neighbours == "replace-one"

    @property
    def shares(self) -> dict[int, Fraction]:
        """The share of epsilon of each order measured ("cells": all on order d)."""
        if self.method == "cells":
            return {len(self.workload.domain.attributes): Fraction(1)}
        return {len(part.sets[-1]): part.share for part in self.parts}

    @property
    def deviations(self) -> Floats:
        """The public noise of the mean of each parity of the spectrum, shape (K,); infinite: not measured."""
        if self.method == "cells":
            return np.full(len(self.spectrum.sets), self.parts[0].deviation / self.n)
        known = {len(part.sets[-1]): part.deviation / self.n for part in self.parts}
        return np.array([known.get(order, inf) for order in self.spectrum.orders.tolist()])

    def rate(self, part: Measurement) -> Fraction:
        """Return the epsilon in the exponent of a part, a unit of its noise: of its counts, or of a cell."""
        epsilon = self.epsilon * part.share
        return epsilon / 2 if self.method == "cells" and self.replaced else epsilon


def plan_answers(workload: Workload, *, n: int, epsilon: object, neighbours: str) -> AnswersPlan:
    """
    Decide what to measure, by the least expected error.

    Candidates: the parities of all orders up to some order that the workload needs, with noise from a cube
    for each order; or, up to 20 attributes, the cells. Shares of epsilon are proportional to
    (A_o k_o^2)^(1/3), where k_o parities of order o have the squared coefficients A_o in the worst query: the
    least sum of A_o (k_o / share_o)^2. The decision record derives the estimate of the error.

    Raises
    ------
    ValueError
        More than 256 attributes, or more than 20 of which not all rows can exist; queries too many or too
        wide; epsilon out of range. Says what would do.
    """
    plans = alternatives(workload, n=n, epsilon=epsilon, neighbours=neighbours)
    return min(plans, key=lambda plan: plan.expected_error)


def alternatives(workload: Workload, *, n: int, epsilon: object, neighbours: str) -> list[AnswersPlan]:
    """Return the plans that `plan_answers` chooses from; the same arguments and errors."""
    domain = workload.domain
    d = len(domain.attributes)
    if d > MAX_ATTRIBUTES:
        raise ValueError(f"answers are released for at most {MAX_ATTRIBUTES} attributes, not {d}: drop some")
    if domain.valid is not None and d > MAX_TABLE_ATTRIBUTES:
        raise ValueError(
            f"answers over more than {MAX_TABLE_ATTRIBUTES} attributes are released where all rows can "
            "exist: leave out valid, or drop attributes"
        )
    if neighbours not in ("replace-one", "add-remove"):
        raise ValueError("neighbours must be 'replace-one' or 'add-remove'")
    n, exact = whole(n, "n"), positive(epsilon, "epsilon")
    if not LEAST_EPSILON <= exact <= MOST_EPSILON:
        raise ValueError("answers are released for an epsilon of 2^-40 to 2^20")
    series, replaced = spectrum(workload), neighbours == "replace-one"
    made: list[tuple[Method, tuple[Measurement, ...]]] = [
        ("cube", parts)
        for highest in sorted({*series.orders.tolist()})
        if (parts := _cubes(series, exact, replaced, highest)) is not None
    ]
    if d <= MAX_TABLE_ATTRIBUTES:
        made.append(("cells", _cells(domain.size, exact, replaced)))
    if not made:
        raise ValueError("epsilon is too small for so many attributes: use more epsilon or fewer attributes")
    return [AnswersPlan(workload, n, exact, neighbours, method, parts, series) for method, parts in made]


def prior(orders: Integers) -> Floats:
    """Return how large parities of these orders are expected to be, as a standard deviation."""
    deviations: Floats = FIRST_DEVIATION * np.power(FACTOR, orders - 1.0)
    return deviations


def _cubes(
    series: Spectrum, epsilon: Fraction, replaced: bool, highest: int
) -> tuple[Measurement, ...] | None:
    """Measure the parities of all orders up to one; None: drawing a radius would take too long."""
    orders = series.orders
    kept = sorted({order for order in orders.tolist() if order <= highest})
    first, last = np.searchsorted(orders, kept), np.searchsorted(orders, kept, side="right")
    sets = [series.sets[start:end] for start, end in zip(first, last, strict=True)]
    if not replaced:
        sets[0] = ((), *sets[0])
    squares = series.coefficients**2
    weights = [
        (series.over_queries(squares * (orders[series.members] == order)).max() * len(some) ** 2) ** (1 / 3)
        for order, some in zip(kept, sets, strict=True)
    ]
    parts = []
    for some, share in zip(sets, _shares(weights), strict=True):
        k, rate = len(some), epsilon * share
        if 20 * sqrt(k) / rate > MAX_LEVELS:
            return None
        # V is uniform up to a radius R, and R + 1/2 is nearly Gamma(k + 1, rate)
        variance = max(0.0, float((k + 1) * (k + 2) / rate**2 / 3 - Fraction(1, 12)))
        parts.append(Measurement(some, share, sqrt(variance) * (2 if replaced else 1)))
    return tuple(parts)


def _shares(weights: list[float]) -> list[Fraction]:
    """Round shares that are proportional to the weights to multiples of 1 / SHARES, none 0."""
    parts = [max(1, round(SHARES * weight / sum(weights))) for weight in weights]
    parts[int(np.argmax(parts))] += SHARES - sum(parts)
    return [Fraction(part, SHARES) for part in parts]


def _cells(cells: int, epsilon: Fraction, replaced: bool) -> tuple[Measurement, ...]:
    rate = float(epsilon / 2 if replaced else epsilon)
    return (Measurement((), Fraction(1), sqrt(2 * cells * exp(-rate)) / -expm1(-rate)),)
