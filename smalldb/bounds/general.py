"""General theorems on the exponential mechanism, for one table whose best error is known."""

from fractions import Fraction

from smalldb.arguments import positive, whole
from smalldb.bounds.common import sizes
from smalldb.enclosures import Log, Real, round_up
from smalldb.exact import as_fraction


def gibbs(*, n: int, epsilon: object, opt: object, candidate_count: int, optimal: int = 1) -> float:
    """
    Bound the mean error: opt + ln(|R| / N_opt) / L, L = epsilon n / 2.

    By Gibbs' variational principle the mean of -L err plus the entropy of the draw is ln Z, which is at
    least ln N_opt - L opt, and the entropy is at most ln |R|.

    Parameters
    ----------
    opt : exact number of [0, 1]
        The least error. From a census it is computed from the data, and so is the bound: confidential.
    candidate_count, optimal : int
        |R|, and N_opt, how many candidates have the least error.

    Examples
    --------
    >>> round(gibbs(n=6, epsilon=2, opt="1/6", candidate_count=20, optimal=2), 4)
    0.5504
    """
    strength, least, total, best = _given(n, epsilon, opt, candidate_count, optimal)
    return round_up(Log()(Fraction(total, best)) / strength + least)


def mcsherry_talwar(*, n: int, epsilon: object, opt: object, candidate_count: int, optimal: int = 1) -> float:
    """
    Bound the mean error by the accuracy theorem of McSherry and Talwar (2007): opt + 3 t.

    The theorem is for utilities of at least 0, so it is applied to 1 - err: the mean is at least its best
    value minus 3 t for t >= ln((1 - opt) |R| / (t N_t)) / L, and the least such t is taken. Where opt is 1,
    t is 0. `gibbs` is better wherever t is not tiny.

    Parameters
    ----------
    optimal : int
        N_t: how many candidates err by less than opt + t. Those with the least error will do.
    """
    strength, least, total, best = _given(n, epsilon, opt, candidate_count, optimal)
    if least == 1:
        return 1.0
    top = (1 - least) * Fraction(total, best)
    low, high = Fraction(0), max(top, Fraction(1))  # ln(top / t) <= 0 there
    while high - low > Fraction(1, 1 << 60):
        middle = (low + high) / 2
        enough = (Log()(top / middle) / strength).high <= (Real.of(middle, 50)).low
        low, high = (low, middle) if enough else (middle, high)
    return round_up(Real.of(least + 3 * high, 50))


def failure(
    *, n: int, epsilon: object, opt: object, error: object, candidate_count: int, optimal: int = 1
) -> float:
    """
    Bound the probability of an error of at least `error`: the odds form B / (G + B).

    B = (|R| - N_opt) exp(-L error) bounds what such candidates weigh, G = N_opt exp(-L opt) is what the best
    ones do. 1 for an error of at most opt.
    """
    strength, least, total, best = _given(n, epsilon, opt, candidate_count, optimal)
    gap = as_fraction(error, "error") - least
    if gap <= 0:
        return 1.0
    bad = (total - best) * Real.of(-strength * gap, 50).exp()
    return min(1.0, round_up(bad / (bad + best)))


def _given(
    n: int, epsilon: object, opt: object, candidate_count: int, optimal: int
) -> tuple[Fraction, Fraction, int, int]:
    (n,) = sizes(n=n)
    total, best = whole(candidate_count, "candidate_count"), whole(optimal, "optimal")
    least = as_fraction(opt, "opt")
    if not 0 <= least <= 1:
        raise ValueError("opt must lie from 0 to 1")
    if best > total:
        raise ValueError("optimal must be at most candidate_count")
    return positive(epsilon, "epsilon") * n / 2, least, total, best
