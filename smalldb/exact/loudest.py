"""The exact draw of permute-and-flip from counts of levels: one uniform number a level, bit by bit."""

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction

from smalldb.exact.bits import BitSource
from smalldb.exact.enclosures import Real

BITS = 64  # of each uniform number at first, and each time that they do not decide
PER_BIT = Fraction(31, 100)  # decimal digits, a little more than log10 2
SPARE = 20  # decimal digits

_Ends = tuple[Decimal, Decimal]


# Proof: docs/proofs/draw.md, lemma 10.
def draw_loudest(levels: Mapping[int, int], rate: Fraction, source: BitSource) -> int:
    """Draw the level of the candidate with the largest noise minus rate x level, exactly."""
    # Each candidate has exponential noise of scale 1: report-noisy-max with such noise is permute-and-
    # flip (Ding and others 2021). The largest of N such noises is -ln(1 - U^(1/N)), U uniform. The bits
    # of U are revealed, 64 at a time, for all levels that may still be the loudest, until one is for
    # certain. Cost: some tenths of a millisecond a level.
    if not levels or min(levels.values()) < 1 or rate < 0:
        raise ValueError("levels must hold one, each a count of at least 1; the rate must be at least 0")
    first, left = min(levels), dict.fromkeys(levels, 0)
    bits = 0
    while len(left) > 1:
        bits += BITS
        left = {level: drawn << BITS | source.bits(BITS) for level, drawn in left.items()}
        ends = {
            level: _loudness(drawn, bits, levels[level], rate * (level - first))
            for level, drawn in left.items()
        }
        most = max(low for low, _ in ends.values())
        left = {level: drawn for level, drawn in left.items() if ends[level][1] > most}
    return next(iter(left))


def _loudness(drawn: int, bits: int, count: int, depth: Fraction) -> _Ends:
    """Enclose the largest noise of a level, less its depth, for all U from drawn to drawn + 1, by 2^-bits."""
    digits = int(bits * PER_BIT) + count.bit_length() + SPARE
    below = Real.of(-depth, digits).low
    return (
        _noise(drawn, bits, count, digits, depth, least=True) if drawn else below,
        _noise(drawn + 1, bits, count, digits, depth, least=False),
    )


def _noise(numerator: int, bits: int, count: int, digits: int, depth: Fraction, least: bool) -> Decimal:
    """Bound -ln(1 - U^(1/count)) - depth at U = numerator 2^-bits."""
    if numerator == 1 << bits:
        return Decimal("Infinity")
    rest = 1 - (Real.of(Fraction(numerator, 1 << bits), digits).ln() / count).exp()
    if rest.low <= 0:
        return Decimal("-Infinity") if least else Decimal("Infinity")
    found = -1 * rest.ln() - depth
    return found.low if least else found.high
