"""A log-linear model of released counts: maximum entropy, relaxed by normal priors."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from queries.arrays import Floats
from smalldb.marginals.estimate.belief_propagation import Tree, beliefs, marginals
from smalldb.marginals.estimate.proportional_fitting import CLOSE, scaled


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """
    A table of the model: what was released of it, and how far that is to be believed.

    Attributes
    ----------
    base
        Logarithms of weights that are kept as they are; minus infinity is a structural zero.
    held
        What the cells are to hold, and a ridge for each: a penalty of half of it, above 0, times the squared
        coefficient. None: the base is all.
    """

    base: Floats
    held: tuple[Floats, Floats] | None


# Proof: docs/proofs/rounds.md, lemma 7.
def fit(
    tree: Tree,
    factors: Sequence[Factor],
    total: float,
    start: Sequence[Floats | None],
    sweeps: int,
    iterations: int,
    close: float = CLOSE,
) -> list[Floats]:
    """
    Return coefficients theta, for each factor with counts: those of the maximum entropy.

    They are where this is greatest ::

        sum of theta counts - total log Z(theta) - sum of ridge theta^2 / 2

    where Z sums exp(base + theta) over all cells. It is concave; at its top, expected counts are the released
    ones less ridge theta: those of maximum entropy that are near the released ones.

    Up to so many sweeps of proportional fitting (`scaling.scaled`) come first; then iterations of L-BFGS, in
    coordinates in which the curvature is about 1. Cost: each is about two passes over all tables of the tree.
    """
    from scipy.optimize import minimize

    free = [i for i, factor in enumerate(factors) if factor.held is not None]
    held = [factor.held for factor in factors if factor.held is not None]
    counts = np.concatenate([np.ravel(cells) for cells, _ in held])
    # A ridge keeps coefficients finite where noise made a count 0 or less. Of two cells and 10 rows, one is
    # held at 8 with ridge 1: theta = 0.897, and 7.103 rows are expected. Held at -1: -2.095, and 1.095 rows.
    ridge = np.concatenate([np.ravel(cells) for _, cells in held])
    shapes = [cells.shape for cells, _ in held]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])

    def split(flat: Floats) -> list[Floats]:
        return [p.reshape(s) for p, s in zip(np.split(flat, ends[:-1]), shapes, strict=True)]

    def weights(theta: Floats) -> list[Floats]:
        found = [factor.base for factor in factors]
        for i, part in zip(free, split(theta), strict=True):
            found[i] = found[i] + part
        return found

    def expected(theta: Floats) -> tuple[float, Floats]:
        tables, log_sum = beliefs(tree, weights(theta))
        parts = marginals(tree, tables)
        return log_sum, np.concatenate([np.ravel(parts[i]) for i in free]) * total

    first = np.concatenate(
        [np.zeros(int(np.prod(s))) if t is None else np.ravel(t) for t, s in zip(start, shapes, strict=True)]
    )
    tables, _ = beliefs(tree, weights(first))
    swept = scaled(tree, tables, [factor.held for factor in factors], split(first), total, sweeps, close)
    if not iterations:
        return swept
    first = np.concatenate([np.ravel(part) for part in swept])
    scale = 1 / np.sqrt(expected(first)[1] + ridge)

    def objective(place: Floats) -> tuple[float, Floats]:
        theta = place * scale
        log_sum, means = expected(theta)
        value = total * log_sum - theta @ counts + ridge @ theta**2 / 2
        return float(value), (means - counts + ridge * theta) * scale

    found = minimize(
        objective,
        first / scale,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": iterations, "maxcor": 20, "gtol": 1e-6, "ftol": 1e-13},
    )
    return split(found.x * scale)
