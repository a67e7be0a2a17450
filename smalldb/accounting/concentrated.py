"""From (epsilon, delta) to concentrated privacy: the rho that proves it."""

from fractions import Fraction
from math import exp, log, log1p, sqrt

from smalldb.exact.enclosures import Log

_BITS = 40  # of rho
_LEAST, _MOST = -40.0, 60.0  # logarithms of the orders that are searched
_GOLDEN = (sqrt(5) - 1) / 2


# Proof: docs/proofs/delta.md, lemmas 2 and 5.
def rho_of(epsilon: Fraction, delta: Fraction) -> Fraction:
    """
    Return a rho, as large as is proved, so that rho-zCDP implies (epsilon, delta)-differential privacy.

    For every order a > 1, rho-zCDP implies (epsilon, delta) with ::

        ln delta = (a - 1) (a rho - epsilon) + (a - 1) ln(1 - 1/a) - ln a

    (Canonne, Kamath and Steinke 2020, Proposition 12). That is linear in rho, so each order proves one.
    A good order is searched for in floats; what it proves is enclosed and rounded down: a theorem, whatever
    the search found.

    Parameters
    ----------
    epsilon
        From 2^-40 to 2^20.
    delta
        Strictly between 0 and 1, and at least 1e-300.

    Examples
    --------
    >>> round(float(rho_of(Fraction(1), Fraction(1, 10**9))), 6)
    0.014973
    """
    gap = Fraction(_best_gap(float(epsilon), log(delta)))
    ln = Log()
    rho = (epsilon + (ln(delta) + ln(1 + gap)) / gap + ln(1 + 1 / gap)) / (1 + gap)
    low = Fraction(rho.low)
    unit = Fraction(2) ** (low.numerator.bit_length() - low.denominator.bit_length() - _BITS)
    return (low / unit).__floor__() * unit


def _best_gap(epsilon: float, log_delta: float) -> float:
    """Return a - 1 for about the order that proves most, by golden sections of its logarithm."""

    def rho(height: float) -> float:
        gap = exp(height)
        return (epsilon + (log_delta + log1p(gap)) / gap + log1p(1 / gap)) / (1 + gap)

    low, high = _LEAST, _MOST
    while high - low > 1e-7:  # the top is flat: its square is what is lost
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        low, high = (low, right) if rho(left) >= rho(right) else (left, high)
    return exp(low)
