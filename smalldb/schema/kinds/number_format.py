"""How numbers are written in the fields of a table: a public choice."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, final

from queries.faults import Fault
from smalldb.exact.numbers import as_fraction, as_text

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,6})?")
_ZEROS = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0+")
SIGNS = {"decimal": str, "thousands": str}  # keys of a schema
_SIGNS = {"decimal": ".,", "thousands": ".,'\u2019 \u00a0\u202f_"}


@final
@dataclass(frozen=True, slots=True)
class NumberFormat:
    """The signs of written numbers.

    Parameters
    ----------
    decimal
        Before the fraction: ``.`` or ``,``.
    thousands
        Between groups of three digits, where these are grouped; empty: they never are.
    """

    decimal: str = "."
    thousands: str = ""

    def __post_init__(self) -> None:
        for name, signs in _SIGNS.items():
            sign = getattr(self, name)
            if (
                not isinstance(sign, str)
                or len(sign) > 1
                or sign not in signs
                or (not sign and name == "decimal")
            ):
                raise Fault(f"{name} must be one of {' '.join(map(repr, signs))}", name)
        if self.decimal == self.thousands:
            raise Fault("decimal and thousands must be different signs", "decimal")

    @property
    def plain(self) -> bool:
        """Whether numbers are written as programs write them."""
        return (self.decimal, self.thousands) == (".", "")

    def read(self, text: str) -> Decimal | None:
        """Read a field exactly; None: it is no number.

        >>> NumberFormat(",", ".").read("1.234,50"), NumberFormat().read("1,234")
        (Decimal('1234.50'), None)
        """
        if not self.plain:
            text = self._in_plain(text)
        return Decimal(text) if _NUMBER.fullmatch(text) else None

    def write(self, text: str) -> str:
        """Write a plain number with this decimal sign."""
        return text.replace(".", self.decimal)

    def _in_plain(self, text: str) -> str:
        """Respell a number plainly; what is none becomes none."""
        if self.decimal != "." and "." in text and self.thousands != ".":
            return ""
        whole, _, rest = text.partition(self.decimal)
        if self.thousands and self.thousands in whole:
            sign = re.escape(self.thousands)
            if re.fullmatch(rf"[+-]?[0-9]{{1,3}}(?:{sign}[0-9]{{3}})+", whole) is None:
                return ""
            whole = whole.replace(self.thousands, "")
        if self.thousands and self.thousands in rest:
            return ""
        return f"{whole}.{rest}" if rest else whole


PLAIN = NumberFormat()


def number_format(given: Mapping[str, Any]) -> NumberFormat:
    """Return the format that a column's table states."""
    return NumberFormat(**{key: given[key] for key in SIGNS if key in given})


def without_zeros(text: str) -> str:
    """Leave the fraction of zeros out of a whole number, which programs write beside gaps.

    >>> without_zeros("1.0"), without_zeros("-0.0"), without_zeros("01.0"), without_zeros("1.5")
    ('1', '0', '01.0', '1.5')
    """
    found = _ZEROS.fullmatch(text)
    if found is None:
        return text
    return "0" if found[1] == "-0" else found[1]


def as_decimal(number: object, name: str) -> Decimal:
    """Read a number of a schema exactly."""
    try:
        text = as_text(as_fraction(number, name))
    except (ValueError, TypeError) as error:
        raise Fault.of(error, name) from error
    if "/" in text:
        raise Fault(f"{name} must be decimal numbers", name)
    return Decimal(text)
