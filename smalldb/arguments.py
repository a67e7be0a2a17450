"""Reading the public numbers that a user gives: exact, in range, refused by name."""

from fractions import Fraction

import numpy as np

from smalldb.exact import as_fraction


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


def whole(value: object, name: str, least: int = 1) -> int:
    """Read a whole number of at least `least`."""
    expected = f"{name} must be a whole number of at least {least}"
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{expected}, not {type(value).__name__}")
    if value < least:
        raise ValueError(expected)
    return int(value)
