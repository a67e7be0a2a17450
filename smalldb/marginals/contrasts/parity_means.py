"""Released integers, and the means of parities that they tell; post-processing."""

from dataclasses import dataclass
from math import inf

import numpy as np

from queries.arrays import Floats
from queries.domain import Integers
from smalldb.marginals.contrasts.parity_plan import ParityPlan
from smalldb.marginals.contrasts.parts import Part
from smalldb.marginals.contrasts.spectrum import masks_of
from smalldb.marginals.estimate.column_estimates import pooled


@dataclass(frozen=True, slots=True, eq=False)
class NoisyParities:
    """What was released: integers with exact noise, as private as the plan says. May be published.

    Attributes
    ----------
    values
        int64 (read-only): for each part of the plan one entry a set: the rows with odd parity on it under
        replace-one, the sum of chi_S over the rows under add-remove (the empty set: the rows); or one entry a
        cell. Of a safeguard two entries: which of its sets was chosen, and this for it.
    """

    values: Integers


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """The means of the parities as they were released.

    Attributes
    ----------
    chi
        Shape (K,), for each parity of the plan's spectrum; 0 where it was not measured.
    deviations
        The public standard deviation of the noise in it; infinite where it was not measured.
    """

    chi: Floats
    deviations: Floats


def pieces(plan: ParityPlan, values: Integers) -> list[Integers]:
    """Split what is measured into the parts of the plan, of which cells or a safeguard stand last."""
    return np.split(values, np.cumsum([len(part.sets) for part in plan.parts])[: len(plan.parts) - 1])


def estimates(plan: ParityPlan, measured: NoisyParities, parts: tuple[Part, ...] | None = None) -> Estimates:
    """Read released integers of all parts, or some, as means of parities; post-processing.

    Parameters
    ----------
    plan, measured
        What was planned, and what its parts released.
    parts
        Those of the plan that are read; None: all.

    Returns
    -------
    Estimates
        Sums over the rows, divided by `released_total`, and cut to [-1, 1]. Several measurements of a parity
        are averaged by their precisions.
    """
    total = float(max(1, released_total(plan, measured)))
    positions = {chosen: position for position, chosen in enumerate(plan.spectrum.sets)}
    some = [Estimates(np.zeros(len(positions)), np.full(len(positions), inf))]
    for part, values in zip(plan.parts, pieces(plan, measured.values), strict=True):
        if parts is None or part in parts:
            sets, sums = part.released(plan.setting, values)
            members = [positions[chosen] for chosen in sets]
            chi, deviations = np.zeros(len(positions)), np.full(len(positions), inf)
            chi[members] = np.clip(sums / total, -1.0, 1.0)
            deviations[members] = [part.deviations[len(chosen)] / total for chosen in sets]
            some.append(Estimates(chi, deviations))
    chi, variances = pooled([one.chi for one in some], [one.deviations**2 for one in some])
    return Estimates(chi, np.sqrt(variances))


def released_total(plan: ParityPlan, measured: NoisyParities) -> int:
    """Return n under replace-one; under add-remove, the number of rows as the best part released it."""
    if plan.replaced:
        return plan.n
    return min(released_counts(plan, measured), key=lambda counted: counted[0].deviations[0])[1]


def released_counts(plan: ParityPlan, measured: NoisyParities) -> list[tuple[Part, int]]:
    """Return the parts that count rows, under add-remove, and how many each released."""
    pairs = zip(plan.parts, pieces(plan, measured.values), strict=True)
    return [(part, part.counted(values)) for part, values in pairs if 0 in part.deviations]


def masks(plan: ParityPlan) -> Integers:
    """Return the mask of each parity's set, up to 20 attributes."""
    return masks_of(plan.spectrum.sets, len(plan.domain.attributes))
