"""The exact law of a selection from a small list: what the draws are tested and audited against."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise, permutations
from math import perm

from smalldb.enclosures import Real
from smalldb.selection.scored import as_fractions, read_scores, read_weights
from smalldb.selection.selecting import Terms, terms

DIGITS = 80
MOST = 20_000  # outcomes
MOST_NOISY = 64  # candidates: the integral has that many pieces of that degree

Law = dict[tuple[int, ...], tuple[Fraction, Fraction]]


def selection_law(
    scores: object,
    *,
    epsilon: object,
    sensitivity: object = None,
    range: object = None,
    monotone: bool = False,
    base_measure: Sequence[object] | None = None,
    method: str = "exponential",
    k: int = 1,
) -> Law:
    """
    Return the probability of every outcome of `select`, enclosed by fractions.

    Takes the arguments of `select`; for lists of up to 64 candidates, and up to 20,000 ranked outcomes.

    Returns
    -------
    dict
        Ranked places of the selected to (low, high): the probability lies between, and they agree to about
        60 digits.

    Examples
    --------
    >>> law = selection_law([0, 0, 0, 0], epsilon=1, sensitivity=1)
    >>> [float(low) for low, high in law.values()]
    [0.25, 0.25, 0.25, 0.25]
    """
    chosen = terms(
        epsilon=epsilon, sensitivity=sensitivity, range=range, monotone=monotone, method=method, k=k
    )
    chunks, _ = read_scores(scores)
    exact = [score for chunk in as_fractions(chunks) for score in chunk]
    weights = read_weights(base_measure, len(exact))
    if weights is not None and method not in ("exponential", "top-k"):
        raise ValueError(f"base_measure is for 'exponential' and 'top-k', not for {method!r}")
    size = len(exact) if weights is None else sum(map(bool, weights))
    if chosen.k > size:
        raise ValueError("k must be at most the number of candidates")
    if len(exact) > MOST_NOISY or perm(size, chosen.k) > MOST:
        raise ValueError(f"an exact law is for up to {MOST_NOISY} candidates and {MOST} outcomes")
    depths = [chosen.rate * (max(exact) - score) for score in exact]
    if method == "permute-and-flip":
        found = _heads(depths)
    elif method == "noisy-max":
        found = _noisy(depths)
    else:
        found = _peeled(depths, weights or [1] * len(exact), chosen)
    return {outcome: (Fraction(p.low), Fraction(p.high)) for outcome, p in found.items()}


def _peeled(depths: list[Fraction], weights: list[int], chosen: Terms) -> dict[tuple[int, ...], Real]:
    """K draws without replacement, each by weight exp(-r)."""
    heights = [weight * _exp(-r) for r, weight in zip(depths, weights, strict=True)]
    possible = [i for i, weight in enumerate(weights) if weight]
    found: dict[tuple[int, ...], Real] = {}
    for outcome in permutations(possible, chosen.k):
        left, probability = set(possible), _one()
        for i in outcome:
            probability = probability * heights[i] / _sum([heights[j] for j in sorted(left)])
            left.remove(i)
        found[outcome] = probability
    return found


def _heads(depths: list[Fraction]) -> dict[tuple[int, ...], Real]:
    """A uniform one of the heads: the mean of 1 / (1 + others that show heads)."""
    coins = [_exp(-r) for r in depths]
    found: dict[tuple[int, ...], Real] = {}
    for i, coin in enumerate(coins):
        shown = [_one()]  # how likely so many of the others show heads
        for other in coins[:i] + coins[i + 1 :]:
            shown = [
                a * other + b * (1 - other) for a, b in zip([_zero(), *shown], [*shown, _zero()], strict=True)
            ]
        found[(i,)] = coin * _sum([p / (1 + heads) for heads, p in enumerate(shown)])
    return found


def _noisy(depths: list[Fraction]) -> dict[tuple[int, ...], Real]:
    """
    The integral of a density times the other distribution functions, piece by piece.

    Between two depths each factor is 1 - exp(-(x + r)) / 2 or exp(x + r) / 2, so their product is a
    polynomial in exp(x) and exp(-x).
    """
    bends = sorted({-r for r in depths})
    found: dict[tuple[int, ...], Real] = {}
    for i in range(len(depths)):
        total = _zero()
        for low, high in pairwise([None, *bends, None]):
            # power of exp(x) -> coefficient
            product = {0: _one()}
            for j, r in enumerate(depths):
                rising = high is not None and high <= -r
                half = _exp(r if rising else -r) / 2
                power = 1 if rising else -1
                factor = {power: half} if rising or j == i else {0: _one(), power: -1 * half}
                product = _multiplied(product, factor)
            total = total + _integral(product, low, high)
        found[(i,)] = total
    return found


def _multiplied(a: dict[int, Real], b: dict[int, Real]) -> dict[int, Real]:
    product: dict[int, Real] = {}
    for power, x in a.items():
        for other, y in b.items():
            product[power + other] = product.get(power + other, _zero()) + x * y
    return product


def _integral(product: dict[int, Real], low: Fraction | None, high: Fraction | None) -> Real:
    """Integrate sum c_p exp(p x) from low to high; None is the infinite end, where every term vanishes."""
    total = _zero()
    for power, coefficient in product.items():
        if power == 0:
            if low is not None and high is not None:
                total = total + coefficient * (high - low)
            continue
        upper = _zero() if high is None else _exp(power * high)
        lower = _zero() if low is None else _exp(power * low)
        total = total + coefficient * (upper - lower) / power
    return total


def _exp(x: Fraction) -> Real:
    return Real.of(x, DIGITS).exp()


def _one() -> Real:
    return Real.of(1, DIGITS)


def _zero() -> Real:
    return Real.of(0, DIGITS)


def _sum(terms: list[Real]) -> Real:
    return sum(terms, _zero())
