"""How numbers are written for people: in few digits, and bounds never below themselves."""

from decimal import ROUND_CEILING, Context
from fractions import Fraction
from math import inf, log10

from smalldb.exact.numbers import as_text

LONG = 20  # characters of a number; beyond, it is written with an exponent


def sized(number: int) -> str:
    """
    Write a count; where it is long, the nearest power of ten.

    Examples
    --------
    >>> sized(2**20), sized(3 * 10**17), sized(9 * 10**17)
    ('1,048,576', 'about 10^17', 'about 10^18')
    """
    if number < 10**15:
        return f"{number:,}"
    power = round(log10(number))  # where a float does not tell, integers do: str would refuse 4,300 digits
    power += (number * number > 10 ** (2 * power + 1)) - (number * number <= 10 ** (2 * power - 1))
    return f"about 10^{power}"


def rounded_up(bound: float, digits: int = 3) -> str:
    """Write a bound with so many digits, never below itself."""
    if bound == inf:
        return "inf"
    short = Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(bound).normalize()
    return f"{short:f}" if bound == 0 or 1e-9 <= bound < 1000 else f"{short:e}"


def promised(bound: float) -> str:
    """Write a bound on an error, and that it is vacuous from 1 on."""
    return rounded_up(bound) + (" (says nothing)" if bound >= 1 else "")


def brief(number: Fraction) -> str:
    """
    Write a number as `as_text` does, or with an exponent where that is long; it is the same number.

    Examples
    --------
    >>> brief(Fraction(1, 20)), brief(Fraction(1, 10**300)), brief(Fraction(12 * 10**400))
    ('0.05', '1e-300', '1.2e+401')
    """
    text = as_text(number)
    if len(text) <= LONG or "/" in text:
        return text
    whole, _, decimals = text.partition(".")
    digits = Context(prec=len(text)).create_decimal(whole + decimals).scaleb(-len(decimals)).normalize()
    return min(text, f"{digits:e}", key=len)
