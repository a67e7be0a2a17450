"""The exact law of a selection from a small list: what the draws are tested and audited against."""

from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cache, lru_cache
from itertools import accumulate, pairwise
from math import perm
from operator import mul
from typing import Any

from smalldb.exact.enclosures import Real, contexts
from smalldb.exact.numbers import Number, positive
from smalldb.selection.scored import as_fractions
from smalldb.selection.selecting import Terms, candidates_of, terms

DIGITS = 120
DOWN, UP = contexts(DIGITS)
FURTHEST = 10_000  # a probability below 10^-FURTHEST is only said to be that
FAR = 5 * FURTHEST  # exp(-FAR) is below 10^(-2 FURTHEST)
MOST = 20_000  # outcomes
MOST_CANDIDATES = 64

Probabilities = dict[tuple[Any, ...], tuple[Fraction, Fraction]]


def selection_law(
    scores: object,
    *,
    epsilon: Number,
    sensitivity: Number | None = None,
    range: Number | None = None,
    monotone: bool = False,
    base_measure: object = None,
    method: str = "exponential",
    k: int = 1,
    counts: bool = False,
) -> Probabilities:
    """
    Return the probability of every outcome of `select`, enclosed by fractions.

    Takes the arguments of `select`; for lists of up to 64 candidates, and up to 20,000 ranked outcomes; a
    few seconds at most. With `counts` it is the law of the positions that are drawn with half of epsilon;
    each count has two-sided geometric noise of its own besides, of rate epsilon / (2 k sensitivity).

    Parameters
    ----------
    scores, epsilon, sensitivity, range, monotone, base_measure, method, k, counts
        As `smalldb.select`.

    Returns
    -------
    dict
        Ranked positions of the selected, or their labels, to (low, high): the probability lies between, and
        they agree to about 60 digits. Below 10^-10000, low is 0 and high is that.

    Examples
    --------
    >>> law = selection_law([0, 0, 0, 0], epsilon=1, sensitivity=1)
    >>> [float(low) for low, high in law.values()]
    [0.25, 0.25, 0.25, 0.25]
    """
    if counts and sensitivity is None:
        raise ValueError("counts need a sensitivity, not a range")
    spent = positive(epsilon, "epsilon") / 2 if counts else epsilon
    chosen = terms(epsilon=spent, sensitivity=sensitivity, range=range, monotone=monotone, method=method, k=k)
    chunks, _, weights, namer = candidates_of(scores, base_measure, chosen, MOST_CANDIDATES)
    exact = [score for chunk in as_fractions(chunks) for score in chunk]
    size = len(exact) if weights is None else sum(map(bool, weights))
    if perm(size, chosen.k) > MOST:
        raise ValueError(f"an exact law is for up to {MOST} outcomes")
    depths = [chosen.rate * (max(exact) - score) for score in exact]
    if method in ("exponential", "top-k"):
        law = _by_weight(depths, weights or [1] * len(exact), chosen)
    else:
        law = _in_rounds(depths, chosen)
    if namer is None:
        return law
    named = {tuple(map(namer, positions)): enclosed for positions, enclosed in law.items()}
    if len(named) < len(law):
        raise ValueError("scores must have different labels")
    return named


def _in_rounds(depths: list[Fraction], chosen: Terms) -> Probabilities:
    """K draws without replacement, each by the law of the method over those that are left."""

    @cache
    def drawn(left: tuple[int, ...]) -> dict[Fraction, Real]:
        best = min(depths[i] for i in left)
        below = [depths[i] - best for i in left]
        return _noisy(below) if chosen.method == "noisy-max" else _heads(below, Fraction(1))

    def parts(left: tuple[int, ...], probability: Real) -> list[Real]:
        best = min(depths[i] for i in left)
        return [probability * drawn(left)[depths[i] - best] for i in left]

    return _peeled(tuple(range(len(depths))), chosen.k, parts)


def _by_weight(depths: list[Fraction], weights: list[int], chosen: Terms) -> Probabilities:
    """K draws without replacement, each by weight exp(-r), seen from the best one that is left."""

    def parts(left: tuple[int, ...], probability: Real) -> list[Real]:
        best = min(depths[i] for i in left)
        heights = [weights[i] * _exp(best - depths[i]) for i in left]
        share = probability / sum(heights, Real.of(0, DIGITS))
        return [share * height for height in heights]

    return _peeled(tuple(i for i, weight in enumerate(weights) if weight), chosen.k, parts)


def _peeled(
    every: tuple[int, ...], k: int, parts: Callable[[tuple[int, ...], Real], list[Real]]
) -> Probabilities:
    """Return the law of a ranked list, by what each of those that are left gets of a probability."""
    law: Probabilities = {}

    def peel(ranked: tuple[int, ...], left: tuple[int, ...], probability: Real) -> None:
        if len(ranked) == k:
            law[ranked] = _shown(probability)
            return
        for i, part in zip(left, parts(left, probability), strict=True):
            peel((*ranked, i), tuple(j for j in left if j != i), part)

    peel((), every, Real.of(1, DIGITS))
    return law


def _heads(depths: list[Fraction], most: Fraction) -> dict[Fraction, Real]:
    """A uniform one of the heads, of probability most exp(-r) each: depth -> the law of one of that depth."""
    # the mean of 1 / (1 + others that show heads) is the integral, over z from 0 to 1, of the product
    # of 1 - z (probability) over the others
    coins = {r: most * _exp(-r) for r in depths}
    product = [Real.of(1, DIGITS)]
    for r in depths:
        product = _times(product, coins[r])
    pieces = [Real.of(Fraction(1, power), DIGITS) for power in range(1, len(product))]
    return {r: coin * _dot(pieces, _without(product, coin)) for r, coin in coins.items()}


def _noisy(depths: list[Fraction]) -> dict[Fraction, Real]:
    """The integral of a density times the other distribution functions: depth -> the law of one there."""
    # Up to x = -r a candidate rises: density and distribution function are exp(x + r) / 2. Then it
    # falls: exp(-x - r) / 2, and one minus that. So between two neighbouring bends, `low` and `high`,
    # the product over the `number` that rise is height exp(number (x - high)), and that over those that
    # fall a polynomial in z = exp(low - x), to which each bend adds its factors. Below all bends all
    # rise; above 0 all fall, which is the case of heads of probability exp(-r) / 2.
    levels = sorted(Counter(depths).items(), reverse=True)
    number = len(depths)
    height = _exp(sum((r - levels[0][0] for r in depths), Fraction(0))) / 2**number
    law = {r: p + height / number for r, p in _heads(depths, Fraction(1, 2)).items()}
    product, half = [Real.of(1, DIGITS)], Real.of(Fraction(1, 2), DIGITS)
    for position, ((low, count), (high, _)) in enumerate(pairwise(levels), 1):
        number -= count
        for _ in range(count):
            product = _times(product, half)
        length = low - high  # they are depths: the bends are at -low and -high
        fading = list(accumulate([_exp(-length)] * len(depths), mul, initial=Real.of(1, DIGITS)))
        pieces = [
            (fading[power] - fading[number]) / (number - power)
            if number != power
            else min(length, Fraction(FAR)) * fading[number]  # beyond, x exp(-number x) falls
            for power in range(len(product))
        ]
        height = _exp(sum(((r - high) * others for r, others in levels[position:]), Fraction(0))) / 2**number
        rise = height * _dot(pieces, product)
        for r, _ in levels[position:]:
            law[r] += rise
        for r, _ in levels[:position]:
            density = half * _exp(low - r)
            law[r] += height * density * _dot(pieces[1:], _without(product, density))
        product = [c * faded for c, faded in zip(product, fading, strict=False)]
    return law


def _times(product: list[Real], factor: Real) -> list[Real]:
    """Multiply a polynomial by 1 - factor z."""
    zero = Real.of(0, DIGITS)
    return [c - factor * before for c, before in zip([*product, zero], [zero, *product], strict=True)]


def _without(product: list[Real], factor: Real) -> list[Real]:
    """Divide a polynomial by its factor 1 - factor z."""
    quotient = product[:1]
    for c in product[1:-1]:
        quotient.append(_plus(c, factor, quotient[-1]))
    return quotient


def _dot(factors: list[Real], values: list[Real]) -> Real:
    """Add up the products of factors of at least 0 with values."""
    total = Real.of(0, DIGITS)
    for factor, value in zip(factors, values, strict=True):
        total = _plus(total, factor, value)
    return total


def _plus(c: Real, factor: Real, x: Real) -> Real:
    """Return c + factor x for a factor of at least 0: most of the time goes here."""
    low = DOWN.fma(factor.low if x.low >= 0 else factor.high, x.low, c.low)
    high = UP.fma(factor.high if x.high >= 0 else factor.low, x.high, c.high)
    return Real(low, high, DIGITS)


@lru_cache(maxsize=1024)
def _exp(x: Fraction) -> Real:
    """Enclose exp(x), x at most 0."""
    if x <= -FAR:
        return Real(Decimal(0), Decimal((0, (1,), -2 * FURTHEST)), DIGITS)
    return Real.of(x, DIGITS).exp()


def _shown(p: Real) -> tuple[Fraction, Fraction]:
    """Round a probability outwards to fractions of a bounded size."""
    least = Decimal((0, (1,), -FURTHEST))
    low = Fraction(p.low) if p.low >= least else Fraction(0)
    return low, min(Fraction(max(p.high, least)), Fraction(1))
