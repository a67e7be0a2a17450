"""What a synthetic table can tell about one person at most: consequences of the guarantee, rounded up."""

from fractions import Fraction
from math import ceil, exp

MOST = 600.0  # epsilon; e^epsilon is a float up to here, and long since no protection


def factor(epsilon: Fraction) -> float:
    """Return e^epsilon, rounded up; of a very large epsilon a number that says as little."""
    return exp(min(MOST, float(epsilon))) * (1 + 1e-12)


def belief(before: str, epsilon: Fraction) -> str:
    """Return the most that a belief can become: no table multiplies its odds by more than e^epsilon.

    >>> belief("0.5", Fraction(1))
    '73.2 %'
    """
    return _percent(Fraction(after(float(before), epsilon)))


def after(before: float, epsilon: Fraction) -> float:
    """Return what `belief` says as a number, from 0 to 1."""
    if before >= 1:
        return 1.0
    odds = factor(epsilon) * before / (1 - before)
    return odds / (1 + odds) * (1 + 1e-12)


def right_guess(before: str, epsilon: Fraction, delta: Fraction) -> str:
    """
    Return the largest probability that a guess from the table is right, of a yes that has `before` >= 1/2.

    A rule that says yes with probability a where no is true, and b where yes is true, has
    b <= e^epsilon a + delta and 1 - a <= e^epsilon (1 - b) + delta. It is right with probability
    before b + (1 - before) (1 - a), which is largest in a corner: a = 1 - b = (1 - delta) / (1 + e^epsilon),
    or a = 1 - delta, b = 1, or a = 0, b = delta, which is worse than the one before it as `before` >= 1/2.

    Parameters
    ----------
    before
        The share of yes among all, as exact text, from 0.5 on.
    epsilon, delta
        The guarantee, exact.

    Returns
    -------
    str
        In percent, rounded up.

    Examples
    --------
    >>> right_guess("0.5", Fraction(1), Fraction(1, 100))
    '73.4 %'
    """
    yes = Fraction(before)
    return _percent(max(Fraction(right_share(0.5, epsilon, delta)), yes + (1 - yes) * delta))


def right_share(before: float, epsilon: Fraction, delta: Fraction) -> float:
    """Return what `right_guess` says as a number."""
    by_rule = (1 - (1 - float(delta)) / (1 + factor(epsilon))) * (1 + 1e-12)
    return max(by_rule, before + (1 - before) * float(delta))


def _percent(share: Fraction) -> str:
    tenths = ceil(1000 * share)
    return "100 %" if tenths >= 1000 else f"{tenths / 10} %"
