"""Released parities as they are believed: drawn towards what those of lower orders say; post-processing."""

from itertools import combinations, product

import numpy as np

from queries.arrays import Floats
from smalldb.marginals.contrasts.maximum_entropy import sizes_of
from smalldb.marginals.contrasts.parity_means import Estimates
from smalldb.marginals.contrasts.parity_plan import ParityPlan

_HALVINGS = 50


def frequencies(plan: ParityPlan, found: Estimates) -> Floats:
    """Return how frequent each attribute is, shape (d,); one half where that was not measured.

    Parameters
    ----------
    plan, found
        As for `shrunk`.
    """
    ones = np.full(len(plan.domain.attributes), 0.5)
    for positions, chi in zip(plan.spectrum.sets, found.chi, strict=True):
        if len(positions) == 1:
            ones[positions[0]] = (1 - chi) / 2
    return ones


def shrunk(plan: ParityPlan, found: Estimates, means: Floats) -> Floats:
    """Draw each parity towards what lower orders say of it, by its noise and prior.

    Order 2 and above 3: the product of the means of its attributes; order 3: `uninteracting`, where its pairs
    are there.

    Parameters
    ----------
    plan
        Which attributes and parities there are.
    found
        The means of the parities as they were released, with their noise.
    means
        Shape (d,): the mean sign of each attribute, 1 - 2 times its frequency.

    Returns
    -------
    array of float
        The mean of each parity as it is believed, shape (K,).
    """
    sets, orders = plan.spectrum.sets, plan.spectrum.orders
    said = np.array([means[list(positions)].prod() for positions in sets])
    trust = 1 / (1 + (found.deviations / sizes_of(plan, found)) ** 2)
    near: Floats = np.where(orders == 1, said, said + trust * (found.chi - said))
    ranks = {positions: rank for rank, positions in enumerate(sets)}
    triples = [
        positions
        for positions in sets
        if len(positions) == 3 and all(p in ranks for p in combinations(positions, 2))
    ]
    if triples:
        pairs = [[near[ranks[pair]] for pair in combinations(positions, 2)] for positions in triples]
        at = [ranks[positions] for positions in triples]
        said[at] = uninteracting(means[np.array(triples)], np.array(pairs))
        near[at] = said[at] + trust[at] * (found.chi[at] - said[at])
    return near


def uninteracting(means: Floats, pairs: Floats) -> Floats:
    """
    Return the parities of three attributes if these have no three-way interaction, shape (k,).

    The logarithms of the four cells of even parity add up to those of the four others. Where no table has the
    given means, shape (k, 3), and pairs (1 2), (1 3), (2 3), the middle of what each cell alone allows.
    """
    signs = np.array(list(product((1.0, -1.0), repeat=3)))
    even = signs.prod(axis=1) > 0
    sums = 1 + means @ signs.T + pairs @ np.array([a * b for a, b in combinations(signs.T, 2)])
    low, high = -sums[:, even].min(axis=1), sums[:, ~even].min(axis=1)
    low, high = np.where(low <= high, [low, high], (low + high) / 2)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        ups, downs = sums[:, even] + middle[:, None], sums[:, ~even] - middle[:, None]
        above = ups.prod(axis=1) > downs.prod(axis=1)
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    found: Floats = (low + high) / 2
    return found
