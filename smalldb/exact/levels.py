"""The exact draw of a level: weights are enclosed, and refined until the random bits leave no doubt."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache, lru_cache
from itertools import accumulate
from typing import TypeAlias

from smalldb.exact.bits import BitSource
from smalldb.exact.enclosures import Real

# (lo, hi, shift): a number known to lie in [lo, hi] * 2^shift
_Enclosure: TypeAlias = tuple[int, int, int]
# levels in order; weights (lo, hi) in one unit, relative to the heaviest; bounds of the left and right tail
_Weights: TypeAlias = tuple[list[int], list[tuple[int, int]], int, int]
_ONE: _Enclosure = (1, 1, 0)
_FIRST_PRECISION = 64

BITS = 64  # of each uniform number at first, and each time that they do not decide
PER_BIT = Fraction(31, 100)  # decimal digits, a little more than log10 2
SPARE = 20  # decimal digits
_Ends = tuple[Decimal, Decimal]


@dataclass(frozen=True, slots=True)
class LogConcave:
    """Infinitely many levels first, first + 1, ..., of which level s counts count(s)^power candidates."""

    # Whoever builds one promises that the weights count(s)^power exp(-rate s) have a finite sum, for
    # the rate it is drawn with, and are log-concave in s among levels that leave the same remainder by
    # `period`: the tails are closed by geometric series on that promise. The power is kept apart so
    # that only the leading bits of count(s)^power are ever computed.

    count: Callable[[int], int]  # level to a positive int, exactly
    first: int = 0  # the least level
    # power, period: at least 1
    power: int = 1
    period: int = 1

    def __post_init__(self) -> None:
        if min(self.power, self.period) < 1:
            raise ValueError("power and period must be at least 1")


def exp_enclosure(r: Fraction, precision: int) -> tuple[int, int]:
    """Integers with lo / 2^precision <= exp(-r) <= hi / 2^precision and hi - lo at most 2, for r >= 0."""
    if r < 0:
        raise ValueError("r must be at least 0")
    return _scaled(_exp(r, precision + 4), -precision)


# Proof: docs/proofs/draw.md, lemma 3.
def draw_level(levels: Mapping[int, int] | LogConcave, rate: Fraction, source: BitSource) -> int:
    """Draw level s with probability proportional to count(s) exp(-rate s), exactly."""
    # The bits of a uniform number U in [0, 1) are revealed one at a time until they leave no doubt
    # between which two cumulative probabilities it lies. These are enclosed by integers, at doubled
    # precision whenever the bits outrun it, without limit. On average a draw takes at most 3 bits more
    # than the entropy of the level. Weights are enclosed relative to the heaviest; a level far below it
    # costs nothing until the bits point at it. Cost: a few dozen short multiplications a level of a
    # map; of a family, a level within about 10 standard deviations of the heaviest.
    if isinstance(levels, LogConcave):
        if rate <= 0:
            raise ValueError("rate must be above 0 for infinitely many levels")
    elif rate < 0:
        raise ValueError("rate must be at least 0")
    elif not levels or min(levels.values()) < 1:
        raise ValueError("levels must hold at least one level, and a count of at least 1 for each")
    precision, drawn, u = _FIRST_PRECISION, 0, 0
    while True:
        names, starts, ends = _cumulative(levels, rate, precision)
        while True:
            unseen = precision - drawn
            i = bisect_right(starts, u << unseen) - 1
            if i >= 0 and (u + 1) << unseen <= ends[i]:
                return names[i]
            if not unseen:
                break
            u, drawn = u << 1 | source.bits(1), drawn + 1
        precision *= 2


def _cumulative(
    levels: Mapping[int, int] | LogConcave, rate: Fraction, precision: int
) -> tuple[list[int], list[int], list[int]]:
    """Levels, and where each begins and ends for certain in the unit interval, in units of 2^-precision."""
    # between the end of one level and the start of the next lies what this precision leaves undecided
    if isinstance(levels, LogConcave):
        return _of_family(levels, rate, precision)
    return _ends(_map_weights(levels, rate, precision), precision)


@lru_cache(maxsize=16)  # of a family that is drawn from again and again until a level is accepted
def _of_family(family: LogConcave, rate: Fraction, precision: int) -> tuple[list[int], list[int], list[int]]:
    return _ends(_family_weights(family, rate, precision), precision)


def _ends(enclosed: _Weights, precision: int) -> tuple[list[int], list[int], list[int]]:
    names, weights, left, right = enclosed
    least = [0, *accumulate(lo for lo, _ in weights)]
    most = list(accumulate((hi for _, hi in weights), initial=left))
    total_least, total_most = least[-1], most[-1] + right
    # Weights in [2, 3] and [5, 6]: the first level ends at 2/9 at least, the second begins at 3/7 at most.
    # Bits of U that leave it between these two decide nothing yet.
    starts = [-((-hi << precision) // total_least) for hi in most[:-1]]
    ends = [(lo << precision) // total_most for lo in least[1:]]
    if not right:
        ends[-1] = 1 << precision
    return names, starts, ends


def _map_weights(levels: Mapping[int, int], rate: Fraction, precision: int) -> _Weights:
    """Every level of a map, and no tails."""
    names = sorted(levels)
    bits = precision + len(names).bit_length() + 8
    factor, steps, weights = _ONE, {0: _ONE}, []
    for level, before in zip(names, names[:1] + names, strict=False):
        gap = level - before
        if gap not in steps:
            steps[gap] = _exp(rate * gap, bits)
        factor = _times(factor, steps[gap], bits)
        weights.append(_times(factor, _trimmed(levels[level], levels[level], 0, bits), bits))
    unit = max(map(_top, weights)) - bits
    return names, [_scaled(weight, unit) for weight in weights], 0, 0


def _family_weights(family: LogConcave, rate: Fraction, precision: int) -> _Weights:
    """The levels around the heaviest, outwards until each tail is below one unit."""
    bits = precision + 16

    @cache
    def weight(level: int) -> _Enclosure:
        count = family.count(level)
        decay = _exp(rate * (level - family.first), bits)
        return _times(_power((count, count, 0), family.power, bits), decay, bits)

    def falling(level: int) -> bool:
        here, beyond = weight(level), weight(level + 1)
        unit = _top(here) - bits
        return _scaled(beyond, unit)[0] <= _scaled(here, unit)[1]

    reach = 1
    while not falling(family.first + reach):
        reach *= 2
    peak = bisect_left(range(family.first, family.first + reach), True, key=falling) + family.first
    heaviest = weight(peak)
    unit = _top(heaviest) - bits

    def negligible(level: int, step: int) -> bool:
        """Whether the weights of this level and all beyond it, of its remainder, are below one unit."""
        before = level - step * family.period
        if min(level, before) < family.first:
            return level < family.first
        tail = _tail(weight(before), weight(level), bits)
        return tail is not None and _scaled(tail, unit)[1] <= 1

    def outwards(step: int) -> tuple[list[tuple[int, tuple[int, int]]], int]:
        passed: list[tuple[int, tuple[int, int]]] = []
        level = peak
        while level + step >= family.first:
            if all(negligible(level + step * ahead, step) for ahead in range(1, family.period + 1)):
                return passed, family.period
            level += step
            passed.append((level, _scaled(weight(level), unit)))
        return passed, 0

    below, left = outwards(-1)
    above, right = outwards(1)
    window = [*reversed(below), (peak, _scaled(heaviest, unit)), *above]
    return [level for level, _ in window], [weight for _, weight in window], left, right


# Proof: docs/proofs/draw.md, lemma 3.
def _tail(here: _Enclosure, beyond: _Enclosure, bits: int) -> _Enclosure | None:
    """Enclose all weights past `here` by the geometric series of their first ratio, None if it diverges."""
    unit = _top(here) - bits
    # 8, then 4: past the 8 there is at most 4 + 2 + 1 + ... = 4 * 8 / (8 - 4) = 8
    lo, hi = _scaled(here, unit)[0], _scaled(beyond, unit)[1]
    return (0, -(-hi * lo // (lo - hi)), unit) if hi < lo else None


# Proof: docs/proofs/draw.md, lemma 1.
def _exp(r: Fraction, bits: int) -> _Enclosure:
    """Enclose exp(-r), r >= 0, to `bits` bits of its own size."""
    # See `docs/proofs/draw.md`, lemma 1. The alternating series at x = r / 2^halvings <= 1, then as
    # many squarings. A computed term is less than 2 below the true one, so n of them are less than 2 n
    # off; the rest of the series is below 2, and cutting x costs less than 1.
    if not r:
        return _ONE
    # r = 3: two halvings, x = 3/4, and e^-3 is the fourth power of e^-x
    halvings = max(0, r.numerator.bit_length() - r.denominator.bit_length() + 1)
    work = bits + halvings + bits.bit_length() + 8
    x = (r.numerator << work) // (r.denominator << halvings)
    term = total = 1 << work
    index = 0
    while term:
        index += 1
        term = (term * x >> work) // index
        total += -term if index % 2 else term
    margin = 2 * index + 3
    return _power((total - margin, min(total + margin, 1 << work), -work), 1 << halvings, bits)


# Proof: docs/proofs/draw.md, lemma 1.
def _power(base: _Enclosure, exponent: int, bits: int) -> _Enclosure:
    """Enclose base^exponent by repeated squaring of short numbers."""
    work = bits + exponent.bit_length() + 2
    result = _ONE
    for digit in f"{exponent:b}":
        result = _times(result, result, work)
        if digit == "1":
            result = _times(result, base, work)
    return _trimmed(*result, bits)


def _times(a: _Enclosure, b: _Enclosure, bits: int) -> _Enclosure:
    return _trimmed(a[0] * b[0], a[1] * b[1], a[2] + b[2], bits)


# Proof: docs/proofs/draw.md, lemma 1.
def _trimmed(lo: int, hi: int, shift: int, bits: int) -> _Enclosure:
    """Keep the leading bits, rounded outwards."""
    drop = hi.bit_length() - bits
    return (lo >> drop, -(-hi >> drop), shift + drop) if drop > 0 else (lo, hi, shift)


def _scaled(value: _Enclosure, unit: int) -> tuple[int, int]:
    """Enclose in multiples of 2^unit."""
    lo, hi, shift = value
    up = shift - unit
    return (lo << up, hi << up) if up >= 0 else (lo >> -up, -(-hi >> -up))


def _top(value: _Enclosure) -> int:
    """Exponent of the least power of two above the number."""
    return value[1].bit_length() + value[2]


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
    noise = -1 * rest.ln() - depth
    return noise.low if least else noise.high
