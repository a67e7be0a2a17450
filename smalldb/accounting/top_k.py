"""Top-k with counts at one (epsilon, delta): by one draw of noise, and where candidates are not listed."""

from dataclasses import dataclass
from fractions import Fraction

from smalldb.accounting.checked_arguments import checked_flag
from smalldb.accounting.composing import compose
from smalldb.accounting.concentrated import rho_of
from smalldb.accounting.methods import LEAST_DELTA
from smalldb.exact.enclosures import Log, Real, round_up
from smalldb.exact.numbers import Number, float_below, positive, share, whole

PI_ABOVE = Fraction(3141592653589793238462643383279503, 10**33)
MOST_EPSILON, MOST_DELTA = Fraction(1, 5), Fraction(1, 20)  # where the theorem on Laplace noise holds

LEAST_TIGHT, MOST_TIGHT = Fraction(1, 1 << 40), Fraction(1 << 20)


@dataclass(frozen=True, slots=True)
class OneShot:
    """
    Standard deviations of the noise, rounded up; each is for counts that a neighbour moves by at most 1.

    Attributes
    ----------
    parameter
        epsilon', rounded down: Gumbel noise of scale range sqrt(k) / epsilon' and Laplace noise of scale
        2 sqrt(k) / epsilon' are epsilon'^2 / 8-zCDP each. The range is 1 for monotone counts, else 2.
    gumbel
        range pi sqrt(k) / (sqrt(6) epsilon'), to find the k largest.
    counts
        2 sqrt(2 k) / epsilon', on their counts.
    laplace
        8 sqrt(2 k ln(d / delta)) / epsilon, on every count, where one draw of Laplace noise does both (Qiao,
        Su and Zhang 2021, Theorem 2.2). None where that theorem is silent: epsilon of .2, delta of .05 and
        above.
    """

    parameter: float
    gumbel: float
    counts: float
    laplace: float | None


def one_shot_top_k(
    *,
    k: int,
    candidates: int,
    epsilon: Number,
    delta: Number,
    monotone: bool = False,
    conversion: str = "printed",
) -> OneShot:
    """
    Return the noise of one-shot top-k with counts, by Gumbel and by Laplace noise.

    Equation (26) of `docs/theory.md`. The two parts are epsilon'^2 / 4-zCDP together: a draw of range r
    by Gumbel noise of scale s is r / s-bounded-range, and so r^2 / (8 s^2)-zCDP.

    Parameters
    ----------
    k, candidates
        How many are selected, of how many; d is the latter.
    epsilon, delta
        Of the ranked list and its counts together; exact, above 0, delta below 1.
    monotone
        The caller's promise that all counts move the same way between neighbours, as they do under
        add-remove: the range of a draw is 1, and half of the Gumbel noise will do. Where one row can move
        counts in both directions, as under replace-one, the range is 2, and noise for monotone counts does
        not keep (epsilon, delta). The Laplace noises are the same in both cases.
    conversion : {"printed", "tight"}
        epsilon' = 2 sqrt(ln(1/delta)) (sqrt(1 + epsilon / ln(1/delta)) - 1), from rho + 2 sqrt(rho
        ln(1/delta)) <= epsilon (Bun and Steinke 2016); at least epsilon / (2 sqrt(ln(1/delta))) for epsilon
        below ln(1/delta). Or from the conversion of Canonne, Kamath and Steinke (2020), for epsilon from
        2^-40 to 2^20 and delta from 1e-300: less noise, for the same guarantee.

    Examples
    --------
    >>> noise = one_shot_top_k(k=10, candidates=1000, epsilon="0.1", delta="1e-6", monotone=True)
    >>> noise.gumbel < noise.laplace / 4, noise.counts < noise.laplace / 2
    (True, True)
    """
    k, candidates = whole(k, "k"), whole(candidates, "candidates")
    if k > candidates:
        raise ValueError("k must be at most the number of candidates")
    if conversion not in ("printed", "tight"):
        raise ValueError(f"conversion must be 'printed' or 'tight', not {conversion!r}")
    exact, allowed = positive(epsilon, "epsilon"), positive(share(delta, "delta"), "delta")
    ln = Log()
    if conversion == "printed":
        tail = ln(1 / allowed)
        # 2 (sqrt(tail + epsilon) - sqrt(tail)), without the difference of near numbers
        prime = Real.of(2 * exact, ln.digits) / ((tail + exact).sqrt() + tail.sqrt())
    else:
        if not LEAST_TIGHT <= exact <= MOST_TIGHT or allowed < LEAST_DELTA:
            raise ValueError("epsilon must lie in [2^-40, 2^20] and delta be at least 1e-300 for 'tight'")
        prime = 2 * Real.of(rho_of(exact, allowed), ln.digits).sqrt()
    width = 1 if checked_flag(monotone, "monotone") else 2
    root_k = Real.of(k, ln.digits).sqrt()
    known = exact < MOST_EPSILON and allowed < MOST_DELTA
    laplace = round_up((2 * k * ln(candidates / allowed)).sqrt() * 8 / exact) if known else None
    return OneShot(
        float_below(prime.low),
        round_up(width * root_k * PI_ABOVE / (Real.of(6, ln.digits).sqrt() * prime)),
        round_up(2 * Real.of(2 * k, ln.digits).sqrt() / prime),
        laplace,
    )


@dataclass(frozen=True, slots=True)
class UnknownDomain:
    """
    What top-k among the `known` largest counts needs and loses; public numbers alone.

    Attributes
    ----------
    margin
        How far above the largest count that is not known the sentinel stands, rounded up.
    epsilon, delta
        Of the ranked list: (epsilon, delta)-differential privacy, epsilon rounded up.
    """

    margin: float
    epsilon: float
    delta: Fraction


def unknown_domain_top_k(*, k: int, known: int, epsilon: Number, delta: Number) -> UnknownDomain:
    """
    Account for top-k of an unknown domain: limited-domain peeling (Durfee and Rogers 2019).

    Equation (34) of `docs/theory.md`, where the proof is. A row adds at most 1 to each count, of any
    elements; neighbours add or remove a row. The `known` largest counts get Gumbel noise of scale 1/epsilon,
    and so does a sentinel at `margin` above the next count. What is above the sentinel is released in order,
    up to k of it; exact noise is assumed. `smalldb.select` is for candidates that are listed, and needs no
    delta.

    Parameters
    ----------
    k, known
        How many are released at most, and among how many.
    epsilon
        Of each draw, exact.
    delta
        Of all together, exact, above 0: half for elements that only one of two neighbours knows, half for the
        composition of k draws.

    Examples
    --------
    >>> needs = unknown_domain_top_k(k=10, known=100, epsilon="0.1", delta="1e-6")
    >>> round(needs.margin, 2), round(needs.epsilon, 4)
    (192.14, 0.6709)
    """
    k, known = whole(k, "k"), whole(known, "known")
    if k > known:
        raise ValueError("k must be at most the number of known counts")
    each, spent = positive(epsilon, "epsilon"), positive(share(delta, "delta"), "delta")
    ln, seen = Log(), spent / 2
    drawn = compose(epsilon=each, releases=k, delta=seen, bounded_range=True).epsilon
    total = Real.of(Fraction(drawn), ln.digits) + k * ln(1 + seen)
    return UnknownDomain(round_up(ln(known / seen) / each + 1), round_up(total), spent)
