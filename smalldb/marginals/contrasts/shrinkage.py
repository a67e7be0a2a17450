"""Released parities of many columns as they are believed, by a prior that is fitted to them; post-processing.

The parity of two columns is the product of their means, and what they depend on each other beyond it. The
released parities of all pairs tell how dependence is spread (empirical Bayes). Where most pairs hardly
depend, they also tell the mean of a column, better than its own released parity does.
"""

from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from queries.arrays import Floats
from smalldb.marginals.contrasts.parity_fit import Means, Plan, sizes_of

# what fits tables of 21 to 156 yes/no columns
POWERS = (0.0, 0.5, 1.0)  # of the variances of both signs: a dependence of 1 moves a parity by as much
SIZES = tuple(0.4 / 2**halvings for halvings in range(10))  # of dependences, as standard deviations
SHARED = (*SIZES, 1e-6)  # of what all pairs of a column have in common
MIDDLES = np.array([sign * 1.5 * 0.8**step for step in range(30) for sign in (-1, 1)] + [0.0])
WIDTH = 0.11  # of a middle: half of what lies between two
CORRELATIONS = np.array([sign * 0.8**step for step in range(12) for sign in (-1, 1)])  # of rare columns, too
FARTHEST = 2.5  # deviations of its noise that a pair is believed to be from what was released, at most
FITS = 0.6  # of what means are expected to move by: where they move by much more, the prior does not fit
_PASSES = 5
_MIXED = 100  # steps of expectation and maximisation
_LEAST = 1e-6  # a scale
_CERTAIN = 1e-18  # a variance that stands for none
_HALVINGS = 50


class _Pairs(NamedTuple):
    """Released parities of pairs, shape (d, d), symmetric, and variances of their noise."""

    chi: Floats
    variances: Floats


def believed(plan: Plan, released: Means) -> tuple[Floats, Floats]:
    """Return the means of all attributes, shape (d,), and each parity as it is believed, shape (K,).

    Order 2: the mean of what the pair depends, beyond the product of its means, by a mixture of priors that
    is fitted to all pairs. Order 3: by a normal prior about `uninteracting`, where its pairs are there.
    Above, and where pairs were not measured: about the product of the means.
    """
    sets, orders, d = plan.spectrum.sets, plan.spectrum.orders, len(plan.domain.attributes)
    noise = released.deviations**2
    singles, pairs = np.flatnonzero(orders == 1), np.flatnonzero((orders == 2) & np.isfinite(noise))
    chi, variances = np.zeros(d), np.ones(d)  # no mean is farther than 1 from 0
    attributes = [sets[rank][0] for rank in singles]
    chi[attributes], variances[attributes] = released.chi[singles], np.minimum(noise[singles], 1.0)
    a, b = np.array([sets[rank] for rank in pairs]).reshape(-1, 2).T.astype(np.int64)
    both = _Pairs(np.zeros((d, d)), np.full((d, d), np.inf))
    for at in ((a, b), (b, a)):
        both.chi[at], both.variances[at] = released.chi[pairs], noise[pairs]
    means, scales = _means(chi, variances, both)
    independent = np.array([means[list(positions)].prod() for positions in sets])
    trust = 1 / (1 + noise / sizes_of(plan, released) ** 2)
    near: Floats = np.where(orders == 1, independent, independent + trust * (released.chi - independent))
    spreads = np.sqrt(1 - means**2)
    middles = np.hstack([scales[a, b, None] * MIDDLES, (spreads[a] * spreads[b])[:, None] * CORRELATIONS])
    near[pairs] = independent[pairs] + _dependences(
        released.chi[pairs] - independent[pairs], noise[pairs], middles
    )
    near = np.clip(near, -1.0, 1.0)
    ranks = {positions: rank for rank, positions in enumerate(sets)}
    triples = [some for some in sets if len(some) == 3 and ranks.keys() >= {*combinations(some, 2)}]
    if triples:
        lower = np.array([[near[ranks[pair]] for pair in combinations(some, 2)] for some in triples])
        three = [ranks[positions] for positions in triples]
        independent[three] = uninteracting(means[np.array(triples)], lower)
        near[three] = independent[three] + trust[three] * (released.chi[three] - independent[three])
    return means, near


def _means(chi: Floats, variances: Floats, pairs: _Pairs) -> tuple[Floats, Floats]:
    """Return means of attributes as all parities tell them, (d,), and what dependences move pairs by, (d, d).

    With x_j the mean of j and s_ij a scale, the parity of i and j is x_i x_j + s_ij (m + a_i + e_ij), and
    noise: m is what all pairs have in common, a_i what those of i have, normal of deviation t, and e_ij is
    normal of deviation s. The likeliest of all powers, s and t is taken; other means are as they were in the
    pass before.
    """
    known, means, scales = np.isfinite(pairs.variances), np.clip(chi, -1.0, 1.0), np.ones(pairs.chi.shape)
    if not known.any():
        return means, scales
    precision = 1 / np.maximum(variances, _CERTAIN)
    for _ in range(_PASSES):
        likeliest, moved, surer = -np.inf, np.zeros_like(means), np.zeros_like(means)
        beyond = np.where(known, pairs.chi - np.outer(means, means), 0.0)
        left = np.where(known, pairs.chi - np.outer(chi, means), 0.0)
        free = np.outer(1 - means**2, 1 - means**2)
        for power in POWERS:
            each = np.maximum(free**power, _LEAST)
            for size in SIZES:
                total = np.where(known, pairs.variances + (size * each) ** 2, 1.0)
                weights = known / total
                common = (weights * each * beyond).sum() / (weights * each**2).sum()
                rest = np.where(known, left - common * each, 0.0)
                # normal equations of by how much the mean of i moves, and of a_i
                a, b = (weights * means**2).sum(axis=1), (weights * means * each).sum(axis=1)
                c = (weights * each**2).sum(axis=1)
                first, second = (weights * means * rest).sum(axis=1), (weights * each * rest).sum(axis=1)
                fixed = float(np.log(total).sum() + (weights * rest**2).sum())
                for shared in SHARED:
                    p, q = a + precision, c + shared**-2
                    area = p * q - b**2
                    explained = (q * first**2 - 2 * b * first * second + p * second**2) / area
                    likelihood = float((explained - np.log(area) - 2 * np.log(shared)).sum()) - fixed
                    if likelihood > likeliest:
                        likeliest, scales = likelihood, each
                        moved, surer = (q * first - b * second) / area, (q * a - b**2) / area
        # if the prior is right, the squares of the moves add up to about that by which variances fall
        fits = float((surer / precision).sum()) / max(float((moved**2).sum()), _CERTAIN)
        means = np.clip(chi + (min(1.0, fits) * moved if fits > FITS else 0.0), -1.0, 1.0)
    return means, scales


def _dependences(beyond: Floats, noise: Floats, middles: Floats) -> Floats:
    """Return the mean of what pairs depend, given what was released: by a mixture of narrow normal priors.

    Shares of the mixture are the likeliest (Kiefer and Wolfowitz 1956), by expectation and maximisation. No
    pair is believed to be far from what was released of it, as if it were like most others (limited
    translation, Efron and Morris 1972).
    """
    variances = (WIDTH * middles) ** 2
    total = np.maximum(variances + noise[:, None], _CERTAIN)
    apart = beyond[:, None] - middles
    logs = -(np.log(total) + apart**2 / total) / 2
    likelihoods = np.exp(logs - logs.max(axis=1, keepdims=True, initial=-np.inf))
    belongs = likelihoods / middles.shape[1]
    for _ in range(_MIXED if len(beyond) else 0):
        shares = (belongs / belongs.sum(axis=1, keepdims=True)).mean(axis=0)
        belongs = likelihoods * shares
    belongs /= belongs.sum(axis=1, keepdims=True)
    expected = (belongs * (middles + variances / total * apart)).sum(axis=1)
    farthest = FARTHEST * np.sqrt(noise)
    return np.asarray(np.clip(expected, beyond - farthest, beyond + farthest))


def uninteracting(means: Floats, pairs: Floats) -> Floats:
    """Return the parities of three attributes if these have no three-way interaction, shape (k,).

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
    return np.asarray((low + high) / 2)
