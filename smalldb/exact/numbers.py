"""Exact numbers: fractions read from what a user gives, and spelled again, exactly or rounded up."""

import re
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import floor, inf, log10, nextafter
from numbers import Integral, Rational
from typing import Any, TypeAlias

import numpy as np

Number: TypeAlias = int | float | Fraction | Decimal | str | np.integer[Any] | np.floating[Any]
"""What is read as an exact number: see `as_fraction`."""

_MAX_BITS = 10_000
_MAX_EXPONENT = 4_000
_MAX_PLACES = 1_000
_DECIMAL = re.compile(r"([+-]?)(?=\.?[0-9])([0-9]*)\.?([0-9]*)(?:[eE]([+-]?[0-9]{1,9}))?")
_RATIO = re.compile(r"[+-]?[0-9]+/[0-9]+")

LONG = 20  # characters of a number; beyond, it is written with an exponent


def as_fraction(value: object, name: str) -> Fraction:
    """Read a number exactly; a float means its shortest decimal text, so that 0.1 is 1/10.

    Text is "1/2", "0.1" or "1e-6". TypeError: another type, bool included. ValueError: not finite, or of
    more than 10,000 bits above or below the line.

    >>> as_fraction(0.1, "epsilon"), as_fraction("1/2", "epsilon")
    (Fraction(1, 10), Fraction(1, 2))
    """
    expected = f"{name} must be a finite number or a text such as '1/2', '0.1' or '1e-6'"
    match value:
        case bool():
            raise TypeError(f"{expected}, not bool")
        case Integral():
            fraction = Fraction(int(value))
        case Rational():
            fraction = Fraction(value)
        case float():
            fraction = _parse(float.__repr__(value), expected)
        case np.floating():
            fraction = _parse(np.format_float_scientific(value), expected)
        case Decimal() | str():
            fraction = _parse(str(value).strip(), expected)
        case _:
            raise TypeError(f"{expected}, not {type(value).__name__}")
    if max(fraction.numerator.bit_length(), fraction.denominator.bit_length()) > _MAX_BITS:
        raise ValueError(f"{expected}, of at most {_MAX_BITS} bits above and below the line")
    return fraction


def as_text(fraction: Fraction) -> str:
    """Spell a fraction in its canonical text; `as_fraction` reads it back to the same number.

    A terminating decimal of up to 1,000 places is written as such, every other number as "p/q".

    >>> as_text(Fraction(1, 20)), as_text(Fraction(3)), as_text(Fraction(2, 3))
    ('0.05', '3', '2/3')
    """
    denominator = fraction.denominator
    twos = (denominator & -denominator).bit_length() - 1
    fives, rest = 0, denominator >> twos
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    places = max(twos, fives)
    if rest != 1 or places > _MAX_PLACES:
        return str(fraction)
    digits = str(abs(fraction.numerator) * 10**places // denominator).rjust(places + 1, "0")
    whole, decimals = digits[: len(digits) - places], digits[len(digits) - places :]
    return ("-" if fraction < 0 else "") + whole + ("." + decimals if places else "")


def plain(value: Any) -> Any:
    """Return an exact value as JSON holds it: fractions as texts, tuples as lists."""
    if isinstance(value, Fraction):
        return as_text(value)
    return list(map(plain, value)) if isinstance(value, tuple) else value


def _parse(text: str, expected: str) -> Fraction:
    """Read "p/q" or a decimal; the exponent is bounded before any power of ten is built."""
    decimal = _DECIMAL.fullmatch(text)
    if not decimal and not _RATIO.fullmatch(text):
        raise ValueError(expected)
    if decimal and abs(int(decimal[4] or 0)) > _MAX_EXPONENT:
        raise ValueError(f"{expected}, with an exponent of at most {_MAX_EXPONENT}")
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError) as error:
        raise ValueError(expected) from error


def float_above(x: Fraction | Decimal, read: Callable[[float], Any] = float) -> float:
    """Return the least float not below a number; `read` by `repr`, one whose shortest text is not below."""
    nearest = float(x)
    return nearest if type(x)(read(nearest)) >= x else nextafter(nearest, inf)


def float_below(x: Fraction | Decimal, read: Callable[[float], Any] = float) -> float:
    """Return the largest float not above a number; `read` by `repr`, one whose shortest text is not above."""
    nearest = float(x)
    return nearest if type(x)(read(nearest)) <= x else nextafter(nearest, -inf)


def positive(value: object, name: str) -> Fraction:
    """Read an exact number above 0."""
    number = as_fraction(value, name)
    if number <= 0:
        raise ValueError(f"{name} must be above 0")
    return number


def between_0_and_1(value: object, name: str) -> Fraction:
    """Read an exact number strictly between 0 and 1."""
    number = as_fraction(value, name)
    if not 0 < number < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1")
    return number


def share(value: Number, name: str) -> Fraction:
    """Read an exact number from 0 to below 1."""
    number = as_fraction(value, name)
    if not 0 <= number < 1:
        raise ValueError(f"{name} must be at least 0 and below 1")
    return number


def whole(value: object, name: str, least: int = 1) -> int:
    """Read a whole number of at least `least`."""
    expected = f"{name} must be a whole number of at least {least}"
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{expected}, not {type(value).__name__}")
    if value < least:
        raise ValueError(expected)
    return int(value)


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


def number_told(value: float | None, ends: tuple[float | None, float | None] = (None, None)) -> str:
    """
    Write a number in some digits, or by its interval: to two digits of half its width.

    >>> number_told(1996.7893), number_told(1996.7893, (1996.74, 1996.84)), number_told(0.7, (0.33, 0.7))
    ('1996.79', '1996.789', '0.70')
    """
    if value is None:
        return ""
    low, high = (inf if end is None else end for end in ends)
    half = (high - low) / 2
    if not 1e-9 * abs(value) < half < inf:
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:.6g}" if abs(value) < 1e5 else f"{value:.0f}"
    exact = max(Fraction(str(number)).denominator for number in (value, low, high))
    places = 1 - floor(log10(half))
    while places > 0 and 10 ** (places - 1) % exact == 0:  # such as ends of bins
        places -= 1
    return f"{value:z.{max(places, 0)}f}"


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
