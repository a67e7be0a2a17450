"""From (epsilon, delta) to the rho that proves it, and from one row to several (group privacy)."""

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import exp, log, log1p

from smalldb.accounting.curves import golden
from smalldb.exact.enclosures import Log, contexts

_BITS = 40  # of rho
_LEAST, _MOST = -40.0, 60.0  # logarithms of the orders that are searched
_DIGITS = 40
MOST_EXPONENT = 600  # of e: beyond, no delta is left


# Proof: docs/proofs/delta.md, lemmas 2 and 5.
@lru_cache(maxsize=256)
def rho_of(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return a rho, as large as is proved, such that rho-zCDP implies (epsilon, delta), delta from 1e-300."""
    # For every order a > 1 it does with ln delta = (a - 1) (a rho - epsilon) + (a - 1) ln(1 - 1/a) - ln a
    # (Canonne, Kamath and Steinke 2020, Proposition 12), which is linear in rho. Floats search an order;
    # what it proves is enclosed and rounded down: a theorem, whatever the search returned.
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

    return exp(golden(lambda height: -rho(height), _LEAST, _MOST, 1e-7)[0])


@lru_cache(maxsize=256)
def group_factor(epsilon: Fraction, rows: int) -> Fraction:
    """Return (e^(K epsilon) - 1) / (e^epsilon - 1), rounded up: what a delta grows by for K rows."""
    # Between two tables that differ in K rows stand K - 1 others, each a row from the next. So P(S) <=
    # e^epsilon P_1(S) + delta and so on, and the deltas add up to delta (1 + ... + e^((K - 1) epsilon)).
    if rows * epsilon > MOST_EXPONENT:
        raise ValueError(
            f"rows_per_person: with a delta, epsilon may be at most {MOST_EXPONENT}: leave out delta"
        )
    up = contexts(_DIGITS)[1]
    # exp of the context is right to half of its last digit, whatever the rounding: one more is above it
    ratio = up.next_plus(up.exp(up.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))))
    total, power = Decimal(1), ratio  # of the first 1, 2, 4, ... powers of the ratio; its power of so many
    for bit in f"{rows:b}"[1:]:
        total, power = up.multiply(total, up.add(Decimal(1), power)), up.multiply(power, power)
        if bit == "1":
            total, power = up.add(Decimal(1), up.multiply(total, ratio)), up.multiply(power, ratio)
    return Fraction(total)
