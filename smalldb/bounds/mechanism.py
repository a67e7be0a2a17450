"""
The exponential mechanism in general, for the utility -error: its tail, and two bounds on its mean.

A candidate of error e weighs exp(-L e), L = epsilon n / 2. These take what is known of the candidates: how
many of them err by at most how much. For one table that is computed from the data, hence confidential; a
bound on OPT for every table, and a count of 1, are public.
"""

from fractions import Fraction

from smalldb.bounds.arguments import numbers, share, sizes
from smalldb.exact.enclosures import Log, Real, root, round_up
from smalldb.exact.numbers import Number, positive, whole


def failure(*, good: int, bad: int, gap: object, n: int, epsilon: Number) -> float:
    """
    Bound the probability of the `bad` candidates, each of which errs by `gap` more than each `good` one.

    bad / (bad + good exp(epsilon n gap / 2)): the odds form of the lemma of McSherry and Talwar (FOCS 2007),
    exp(-epsilon n gap / 2) total / good, and never above it. `sharp` is this for one good candidate.

    Parameters
    ----------
    good, bad : int
        At least 1, and at least 0.
    gap : exact number above 0

    Examples
    --------
    >>> round(failure(good=1, bad=19, gap="1/2", n=20, epsilon=1), 6)
    0.113492
    """
    good, n = sizes(good=good, n=n)
    bad = whole(bad, "bad", least=0)
    (epsilon,) = numbers(epsilon=epsilon)
    exponent = Real.of(-epsilon * n * positive(gap, "gap") / 2, Log().digits)
    odds = exponent.exp() * Fraction(bad, good)
    return round_up(odds / (odds + 1))


def gibbs(*, optimum: object, total: int, n: int, epsilon: Number, best: int = 1) -> float:
    """
    Bound the mean error by Gibbs: optimum + ln(total / best) / (epsilon n / 2).

    `best` of `total` candidates err by at most `optimum`. The mean of -L err plus the entropy of the draw is
    ln Z >= ln best - L optimum, and the entropy is at most ln total.

    Examples
    --------
    >>> round(gibbs(optimum="1/6", best=2, total=20, n=6, epsilon=2), 4)
    0.5504
    """
    best, total, n = sizes(best=best, total=total, n=n)
    (epsilon,) = numbers(epsilon=epsilon)
    least = share(optimum, "optimum")
    _at_most(total, best, "best")
    return round_up(2 * Log()(Fraction(total, best)) / (epsilon * n) + least)


def mcsherry_talwar(
    *, optimum: object, total: int, n: int, epsilon: Number, near: int = 1, within: object = 0
) -> float:
    """
    Bound the mean error by the accuracy theorem of McSherry and Talwar (FOCS 2007): optimum + 3 t.

    The theorem needs scores that are not negative: it cannot be applied to -error, whose optimum has no
    logarithm, and is applied to 1 - error here. `near` of `total` candidates err by at most
    optimum + within; t is the least number of at least `within` with
    t >= ln((1 - optimum) total / (t near)) / L, L = epsilon n / 2, solved by Lambert's function.
    Where this is below 1, Gibbs is less: ln(total / near) <= L t, so optimum + within + ln(total / near) / L
    is at most optimum + 2 t.

    Examples
    --------
    >>> round(mcsherry_talwar(optimum="1/6", near=10, within="1/6", total=20, n=6, epsilon=2), 4)
    1.0394
    """
    near, total, n = sizes(near=near, total=total, n=n)
    (epsilon,) = numbers(epsilon=epsilon)
    least, within = share(optimum, "optimum"), share(within, "within")
    _at_most(total, near, "near")
    rate = epsilon * n / 2
    if least == 1:
        return round_up(Real.of(1 + 3 * within, Log().digits))
    # with t = e^u / L: u + e^u = ln(L (1 - optimum) total / near)
    whole = Log()(rate * (1 - least) * Fraction(total, near))
    u = root(lambda x: x + x.exp() - whole, whole.pick(min, 1) - 1, whole)
    return round_up(3 * (u.exp() / rate).pick(max, within) + least)


def _at_most(total: int, count: int, name: str) -> None:
    if count > total:
        raise ValueError(f"{name} must be at most total")
