"""How many small databases there are, on a logarithmic scale."""

from decimal import Decimal
from fractions import Fraction
from math import comb

from smalldb.exact.enclosures import Log, Real, ln_choose

BASES = ("multisets", "tuples")


def ln_count(
    ln: Log, cells: int, rows: int, candidates: str, less: int = 0, times: Fraction = Fraction(1)
) -> Real:
    """Enclose ln((|R| - less) times), for `less` 0 or 1."""
    # |R| is C(N + m - 1, m) for multisets and N^m for tuples. One logarithm if |R| is small: nothing
    # cancels.
    tuples = candidates == "tuples"
    if tuples and rows * cells.bit_length() <= 8 * ln.digits:
        return ln((cells**rows - less) * times)
    if not tuples and min(rows, cells - 1) <= 2 * ln.digits and cells <= 10 ** (2 * ln.digits):
        return ln((comb(cells + rows - 1, rows) - less) * times)
    whole = rows * ln(cells) if tuples else ln_choose(rows, cells - 1, ln.digits)
    # here |R| > 2 * 10^digits, so ln|R| - ln(|R| - 1) < 10^-digits
    return whole - less * Real(Decimal(0), Decimal(f"1e-{ln.digits}"), ln.digits) + ln(times)
