"""How numbers are written for people: in few digits, and what is stated never better than it is."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from fractions import Fraction
from math import inf, log10

from smalldb.exact.numbers import as_text

LONG = 20  # characters of a number; beyond, it is written with an exponent


def sized(number: int) -> str:
    """Write a count; where it is long, the nearest power of ten.

    >>> sized(2**20), sized(3 * 10**17), sized(9 * 10**17)
    ('1,048,576', 'about 10^17', 'about 10^18')
    """
    if number < 10**15:
        return f"{number:,}"
    power = round(log10(number))  # where a float does not tell, integers do: str would refuse 4,300 digits
    power += (number * number > 10 ** (2 * power + 1)) - (number * number <= 10 ** (2 * power - 1))
    return f"about 10^{power}"


def rounded_up(bound: float | Fraction, digits: int = 3) -> str:
    """Write a bound with so many digits, never below itself: an epsilon, a delta, an error.

    >>> rounded_up(19.99472649, 6), rounded_up(19.99472649), rounded_up(Fraction(1, 10))
    ('19.9948', '20', '0.1')
    """
    return _short(bound, digits, ROUND_CEILING)


def rounded_down(number: float | Fraction, digits: int = 3) -> str:
    """Write with so many digits what is allowed, or a lower bound: never above itself."""
    return _short(number, digits, ROUND_FLOOR)


def _short(number: float | Fraction, digits: int, rounding: str) -> str:
    if number == inf:
        return "inf"
    exact = Fraction(number)
    short = Context(prec=digits, rounding=rounding).divide(exact.numerator, exact.denominator).normalize()
    return f"{short:f}" if number == 0 or 1e-9 <= number < 10**digits else f"{short:e}"


def promised(bound: float) -> str:
    """Write a bound on an error, and that it is vacuous from 1 on."""
    return rounded_up(bound) + (" (vacuous)" if bound >= 1 else "")


def brief(number: Fraction) -> str:
    """Write a number as `as_text` does, or with an exponent where that is long; it is the same number.

    >>> brief(Fraction(1, 20)), brief(Fraction(1, 10**300)), brief(Fraction(12 * 10**400))
    ('0.05', '1e-300', '1.2e+401')
    """
    text = as_text(number)
    if len(text) <= LONG or "/" in text:
        return text
    whole, _, decimals = text.partition(".")
    digits = Context(prec=len(text)).create_decimal(whole + decimals).scaleb(-len(decimals)).normalize()
    return min(text, f"{digits:e}", key=len)
