"""
The exponential mechanism in general, for the utility -error: its tail, and two bounds on its mean.

A candidate of error e weighs exp(-L e), L = epsilon n / 2; one of utility u in general weighs exp(L u),
L = epsilon / (2 sensitivity). These take what is known of the candidates: how
many of them err by at most how much. For one table that is computed from the data, hence confidential; a
bound on OPT for every table, and a count of 1, are public.
"""

from fractions import Fraction

from smalldb.bounds.calculators import Exact, calculator, lambert, share
from smalldb.exact.enclosures import Log, Real, round_up
from smalldb.exact.numbers import as_fraction


@calculator
def failure(
    *,
    good: int,
    bad: int,
    gap: Exact,
    epsilon: Exact,
    n: int | None = None,
    sensitivity: Exact | None = None,
) -> float:
    """
    Bound the probability of the `bad` candidates, each of which errs by `gap` more than each `good` one.

    Equation (8) of `docs/theory.md`. bad / (bad + good exp(L gap)), L = epsilon / (2 sensitivity): the odds
    form of the lemma of McSherry and Talwar (FOCS 2007), exp(-L gap) total / good, and never above it.
    `sharp` is this for one good candidate.

    Parameters
    ----------
    good, bad : int
        How many candidates: at least 1, and at least 0.
    gap : exact number
        In the units of the utility, above 0.
    n : int, optional
        Rows of the data, for the utility -error, whose sensitivity is 1/n.
    sensitivity : exact number, optional
        Of the utility, in its units, in place of 1/n: by how much a neighbour can change it.

    Examples
    --------
    >>> round(failure(good=1, bad=19, gap="1/2", n=20, epsilon=1), 6)
    0.113492
    """
    exponent = Real.of(-_rate(epsilon, n, sensitivity) * gap, Log().digits)
    odds = exponent.exp() * Fraction(bad, good)
    return round_up(odds / (odds + 1))


@calculator
def gibbs(
    *,
    optimum: Exact,
    total: int,
    epsilon: Exact,
    n: int | None = None,
    best: int = 1,
    sensitivity: Exact | None = None,
) -> float:
    """
    Bound the mean error by Gibbs: optimum + ln(total / best) / L, L = epsilon / (2 sensitivity).

    Equation (9) of `docs/theory.md`. `best` of `total` candidates err by at most `optimum`. The mean of -L
    err plus the entropy of the draw is ln Z >= ln best - L optimum, and the entropy is at most ln total.

    Parameters
    ----------
    optimum : exact number
        A share of the rows, from 0 to 1; with a `sensitivity`, the least loss -u, in the units of u.
    total, best : int
        How many candidates there are, and how many err by at most `optimum`; at least 1.
    n : int, optional
        Rows of the data, for the utility -error, whose sensitivity is 1/n.
    sensitivity : exact number, optional
        Of the utility, in its units, in place of 1/n.

    Examples
    --------
    >>> round(gibbs(optimum="1/6", best=2, total=20, n=6, epsilon=2), 4)
    0.5504
    """
    rate = _rate(epsilon, n, sensitivity)
    least = share(optimum, "optimum") if sensitivity is None else as_fraction(optimum, "optimum")
    _at_most(total, best, "best")
    return round_up(Log()(Fraction(total, best)) / rate + least)


@calculator
def mcsherry_talwar(
    *, optimum: Exact, total: int, n: int, epsilon: Exact, near: int = 1, within: Exact = 0
) -> float:
    """
    Bound the mean error by the accuracy theorem of McSherry and Talwar (FOCS 2007): optimum + 3 t.

    Equation (12) of `docs/theory.md`. The theorem needs scores that are not negative: it cannot be applied to
    -error, whose optimum has no logarithm, and is applied to 1 - error here. `near` of `total` candidates err
    by at most optimum + within; t is the least number of at least `within` with t >= ln((1 - optimum) total /
    (t near)) / L, L = epsilon n / 2, solved by Lambert's function. Where this is below 1, Gibbs is less:
    ln(total / near) <= L t, so optimum + within + ln(total / near) / L is at most optimum + 2 t.

    Parameters
    ----------
    optimum
        The least error of a candidate, a share of the rows: an exact number from 0 to 1, both included.
    total, near
        How many candidates there are, and how many err by at most optimum + within; at least 1.
    within
        A share of the rows, an exact number from 0 to 1.

    Examples
    --------
    >>> round(mcsherry_talwar(optimum="1/6", near=10, within="1/6", total=20, n=6, epsilon=2), 4)
    1.0394
    """
    least, within = share(optimum, "optimum"), share(within, "within")
    _at_most(total, near, "near")
    rate = epsilon * n / 2
    if least == 1:
        return round_up(Real.of(1 + 3 * within, Log().digits))
    # with t = e^u / L: u + e^u = ln(L (1 - optimum) total / near)
    u = _above_root(Log()(rate * (1 - least) * Fraction(total, near)))
    return round_up(3 * (u.exp() / rate).pick(max, within) + least)


def _rate(epsilon: Fraction, n: int | None, sensitivity: Fraction | None) -> Fraction:
    """Return L: a candidate weighs exp(L u) for a utility u."""
    if sensitivity is not None:
        return epsilon / (2 * sensitivity)
    if n is None:
        raise TypeError("n must be given, or a sensitivity")
    return epsilon * n / 2


def _at_most(total: int, count: int, name: str) -> None:
    if count > total:
        raise ValueError(f"{name} must be at most total")


def _above_root(level: Real) -> Real:
    """Return a number above the u with u + e^u = level, by some 30 digits of it."""
    # u + e^u is convex: a tangent lies below it, and meets the level above the root
    start = Real.of(Fraction(lambert(float(level.high))), level.digits)
    slope = start.exp() + 1
    return start - (start + start.exp() - level) / slope
