"""What the bounds share: checked public numbers, and the logarithm of the number of small databases."""

from decimal import Decimal
from fractions import Fraction
from math import comb

from smalldb.arguments import between_0_and_1, positive, whole
from smalldb.enclosures import Log, Real, ln_choose


def sizes(**values: object) -> list[int]:
    """Read whole numbers of at least 1; of queries, at least 0."""
    return [whole(value, name, least=0 if name == "queries" else 1) for name, value in values.items()]


def numbers(**values: object) -> list[Fraction]:
    """Read exact numbers between 0 and 1; epsilon, above 0."""
    return [
        (positive if name == "epsilon" else between_0_and_1)(value, name) for name, value in values.items()
    ]


def known(candidates: str) -> None:
    """Refuse what is no base measure."""
    if candidates not in ("multisets", "tuples"):
        raise ValueError(f"candidates must be 'multisets' or 'tuples', not {candidates!r}")


def ln_count(
    ln: Log, cells: int, rows: int, candidates: str, less: int = 0, times: Fraction = Fraction(1)
) -> Real:
    """Enclose ln((|R| - less) times), for `less` 0 or 1; one logarithm if |R| is small: nothing cancels."""
    tuples = candidates == "tuples"
    if tuples and rows * cells.bit_length() <= 8 * ln.digits:
        return ln((cells**rows - less) * times)
    if not tuples and min(rows, cells - 1) <= 2 * ln.digits and cells <= 10 ** (2 * ln.digits):
        return ln((comb(cells + rows - 1, rows) - less) * times)
    whole = rows * ln(cells) if tuples else ln_choose(rows, cells - 1, ln.digits)
    # here |R| > 2 * 10^digits, so ln|R| - ln(|R| - 1) < 10^-digits
    return whole - less * Real(Decimal(0), Decimal(f"1e-{ln.digits}"), ln.digits) + ln(times)


def excess(ln: Log, cells: int, rows: int, beta: Fraction, candidates: str) -> Real:
    """Enclose max(0, ln((|R| - 1) (1 - beta) / beta))."""
    return ln_count(ln, cells, rows, candidates, less=1, times=(1 - beta) / beta).pick(max, 0)
