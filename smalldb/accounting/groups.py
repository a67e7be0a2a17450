"""What protects one row protects several together, at a larger epsilon and delta (group privacy)."""

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache

_DIGITS = 40
MOST_EXPONENT = 600  # of e: beyond, no delta is left


@lru_cache(maxsize=256)
def group_factor(epsilon: Fraction, rows: int) -> Fraction:
    """Return (e^(K epsilon) - 1) / (e^epsilon - 1), rounded up: what a delta grows by for K rows.

    Between two tables that differ in K rows stand K - 1 others, each a row from the next. So P(S) <=
    e^epsilon P_1(S) + delta and so on, and the deltas add up to delta (1 + e^epsilon + ... + e^((K - 1)
    epsilon)). Without a delta it is theorem 2.2 of Dwork and Roth (2014). The factor is at most 1e-36
    (relative) above the true one; ValueError where K epsilon is above 600, so that no delta of any use is
    left.

    >>> float(group_factor(Fraction(1, 35), 35)), group_factor(Fraction(1), 1)
    (59.28481417338689, Fraction(1, 1))
    """
    if rows * epsilon > MOST_EXPONENT:
        raise ValueError(
            f"rows_per_person: with a delta, epsilon may be at most {MOST_EXPONENT}: leave out delta"
        )
    up = Context(prec=_DIGITS, rounding=ROUND_CEILING)
    # exp of the context is right to half of its last digit, whatever the rounding: one more is above it
    ratio = up.next_plus(up.exp(up.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))))
    total, power = Decimal(1), ratio  # of the first 1, 2, 4, ... powers of the ratio; its power of so many
    for bit in f"{rows:b}"[1:]:
        total, power = up.multiply(total, up.add(Decimal(1), power)), up.multiply(power, power)
        if bit == "1":
            total, power = up.add(Decimal(1), up.multiply(total, ratio)), up.multiply(power, ratio)
    return Fraction(total)
