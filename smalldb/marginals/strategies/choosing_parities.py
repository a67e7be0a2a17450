"""Which parities to measure, with which noise: that of least expected error, from public numbers."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import log, sqrt

import numpy as np

from queries import Workload
from queries.domain import MAX_TABLE_ATTRIBUTES
from smalldb.accounting.concentrated import rho_of
from smalldb.marginals.contrasts.coding import attributes_of, coded_spectrum, coding, unlike_coded
from smalldb.marginals.contrasts.spectrum import Spectrum, spectrum
from smalldb.marginals.strategies.contrasts import GUARD, Contrasts, sets_of
from smalldb.noise.gaussian import DiscreteGaussian, least_variances
from smalldb.noise.k_norm import KNorm, weights_of
from smalldb.noise.wishart import WishartDifference, rates

MAX_ATTRIBUTES = 256
MOST_ROWS = 1 << 60  # so that a sum with noise fits 64 bits
LEAST_EPSILON, MOST_EPSILON = Fraction(1, 1 << 40), 1 << 20
TILTS = tuple(Fraction(part, 32) for part in range(1, 32))
NOTICED = 0.5  # mean of a parity that is chosen almost surely, if it is predicted as 0


# Proof: docs/proofs/rounds.md, lemma 10.
def alternatives(
    workload: Workload,
    *,
    n: int,
    epsilon: Fraction,
    delta: Fraction | None,
    neighbours: str,
    certificate: Fraction,
) -> list[Contrasts]:
    """Return all designs: columns alone, with Wishart noise, with Gaussian noise up to each order."""
    if (lacking := unlike_coded(workload)) is not None:
        raise ValueError(f"contrasts need {lacking}: use strategy cells, pairs or adaptive")
    d = attributes_of(workload.domain)
    if d > MAX_ATTRIBUTES:
        raise ValueError(f"contrasts are measured of at most {MAX_ATTRIBUTES} attributes, not {d}: drop some")
    if workload.domain.valid is not None and d > MAX_TABLE_ATTRIBUTES:
        raise ValueError(
            f"contrasts of more than {MAX_TABLE_ATTRIBUTES} attributes are measured where all rows can "
            "exist: leave out valid, or drop attributes"
        )
    if epsilon * (1 - certificate) < LEAST_EPSILON or epsilon > MOST_EPSILON:
        raise ValueError("contrasts are measured with an epsilon of 2^-40 to 2^20, the certificate left out")
    if n > MOST_ROWS:
        raise ValueError("contrasts are measured of at most 2^60 rows")
    coded = coding(workload.domain)
    series = spectrum(workload) if coded.plain else coded_spectrum(workload, coded)
    replaced, plans = neighbours == "replace-one", list[Contrasts]()
    for certifying in sorted({Fraction(0), epsilon * certificate}):
        bare = Contrasts(workload, series, n, epsilon - certifying, replaced, certifying)
        designs = [_columns(bare), _wishart(bare)]
        if delta:
            designs += [_gaussian(bare, delta, order) for order in sorted({*series.orders.tolist()})]
        # a certificate is paid where something is not measured
        plans += [
            plan
            for plan in designs
            if plan is not None and (not certificate or plan.measures_all(workload) != bool(certifying))
        ]
    if not plans:
        raise ValueError(
            "without a delta, contrasts of one and two columns are measured, and no query needs one: "
            "use strategy cells or adaptive"
        )
    return plans


def _columns(bare: Contrasts) -> Contrasts | None:
    """Return the counts of all columns that are asked about, at once, with K-norm noise."""
    sets = sets_of(bare.spectrum, 1, 1)
    if not sets:
        return None
    columns = tuple(sorted({bare.coding.columns[a] for (a,) in sets}))
    noise = KNorm(tuple(bare.workload.domain.sizes[c] for c in columns), bare.epsilon, bare.replaced)
    unit, sets = (2, sets) if bare.replaced else (1, ((), *sets))
    deviations = {o: unit * sqrt(max(map(noise.variance, ws))) for o, ws in weights_of(noise).items()}
    return replace(bare, sets=sets, noises=((noise, len(sets)),), deviations=deviations, columns=columns)


def _wishart(bare: Contrasts) -> Contrasts | None:
    """Return all parities of orders 1 and 2, with a guard where order 3 is asked and would be noticed."""
    series, replaced = bare.spectrum, bare.replaced
    sets, unit = sets_of(series, 1, 2), 2 if replaced else 1
    if not sets or len(sets[-1]) < 2:
        return None
    triples, rate = sets_of(series, 3, 3), float(bare.epsilon * GUARD / 4)
    guarded = bool(triples) and bare.tabled and rate * NOTICED * bare.n / unit >= log(len(triples)) + 2
    plan = replace(bare, guarded=guarded, sets=sets if replaced else ((), *sets))
    attributes = sorted({i for positions in sets for i in positions})
    constant = 0.0 if replaced else float(np.abs(series.constants).max())

    def worst(tilt: Fraction) -> float:
        variances = _variances(len(attributes), tilt)
        return _worst(series, variances) + constant**2 * variances[0]

    tilt = min(TILTS, key=worst)
    scale, variances = unit / float(plan.measuring), _variances(len(attributes), tilt)
    deviations = {o: scale * sqrt(v) for o, v in variances.items() if o or not replaced}
    ranks = {attribute: rank for rank, attribute in enumerate(attributes, start=1)}
    # a set as a pair of numbers: 0 stands for what a set of less than two lacks
    indices = [[0, 0, *(ranks[i] for i in positions)][-2:] for positions in plan.sets]
    entries = tuple((a, b) for a, b in indices)
    noise = WishartDifference(len(ranks), *rates(plan.measuring, tilt), entries)
    return replace(plan, noises=((noise, len(plan.sets)),), deviations=deviations)


def _gaussian(bare: Contrasts, delta: Fraction, highest: int) -> Contrasts:
    """Return the parities of all orders up to one, rho-zCDP, with the least noise in the worst query."""
    series, replaced = bare.spectrum, bare.replaced
    sets = sets_of(series, 1, highest)
    sizes = Counter(map(len, sets))
    needs = {order: _worst(series, {order: 1.0}) for order in sizes}
    if not replaced:
        sets, sizes[0], needs[0] = ((), *sets), 1, float(np.abs(series.constants).max()) ** 2
    attributes = len({i for positions in sets for i in positions})
    variances = least_variances(attributes, sizes, needs, rho_of(bare.epsilon, delta), replaced)
    noises = tuple((DiscreteGaussian(v), sizes[order]) for order, v in sorted(variances.items()))
    deviations = {order: (2 if replaced else 1) * sqrt(v) for order, v in variances.items()}
    return replace(bare, delta=delta, sets=sets, noises=noises, deviations=deviations)


def _worst(series: Spectrum, weights: Mapping[int, float]) -> float:
    """Return the largest sum over a query's parities of its squared coefficient times its order's weight."""
    return series.kinds.worst(np.array([weights.get(o, 0.0) for o in range(series.orders[-1] + 1)]))


@lru_cache(maxsize=1024)
def _variances(attributes: int, tilt: Fraction) -> dict[int, float]:
    """Return the variance of a Wishart difference for epsilon 1: of n, and of entries of order 1 and 2."""
    noise = WishartDifference(attributes, *rates(Fraction(1), tilt), ())
    return {order: noise.entry_variance(order) for order in range(3)}
