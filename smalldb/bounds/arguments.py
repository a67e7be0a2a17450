"""Reading the public numbers of a bound, by the name of the argument."""

from fractions import Fraction

from smalldb.exact.numbers import as_fraction, between_0_and_1, positive, whole


class Infeasible(ValueError):
    """No number of what is asked for will do, with the other numbers as they are."""


def sizes(**values: object) -> list[int]:
    """Read whole numbers of at least 1, `queries` of at least 0."""
    return [whole(value, name, least=0 if name == "queries" else 1) for name, value in values.items()]


def numbers(**values: object) -> list[Fraction]:
    """Read exact numbers strictly between 0 and 1, `epsilon` above 0."""
    return [
        (positive if name == "epsilon" else between_0_and_1)(value, name) for name, value in values.items()
    ]


def share(value: object, name: str) -> Fraction:
    """Read an exact number from 0 to 1, both included."""
    number = as_fraction(value, name)
    if not 0 <= number <= 1:
        raise ValueError(f"{name} must lie between 0 and 1")
    return number


def one_of(known: tuple[str, ...], value: str, name: str) -> str:
    """Read one of a few words."""
    if value not in known:
        words = " or ".join(filter(None, (", ".join(map(repr, known[:-1])), repr(known[-1]))))
        raise ValueError(f"{name} must be {words}, not {value!r}")
    return value
