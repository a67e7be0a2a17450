"""Intervals that state a level against the exact law of their noise: by convolution, and by enumeration."""

from fractions import Fraction
from functools import cache
from itertools import product
from math import comb

import numpy as np
import pytest
from margins import law_of
from scipy import stats

from queries import Column, Domain
from smalldb.exact.bits import SeededBits
from smalldb.inference import Measurements, ask
from smalldb.inference.confidence_intervals import margin
from smalldb.mechanisms import Marginal, Measurement
from smalldb.noise import cone, simulating, wishart
from smalldb.noise.distributions import ConeDifference, DiscreteGaussian, Geometric, KNorm, WishartDifference
from smalldb.noise.simulating import Uniforms
from smalldb.noise.wishart import rates

pytestmark = pytest.mark.usefixtures("remembered")

LEVELS = ("0.5", "0.8", "0.9", "0.95", "0.99", "0.999")
RATES = ("1/20", "1/4", "1/2", "1", "3/2", "2", "3", "4", "11/2", "7", "9")
SCALES = ("1/20", "3/10", "1", "2", "7", "63", "64", "400")
CELLS = (1, 2, 3, 5, 8, 9, 12, 16, 30, 60, 100, 300, 1000)
EDGE = 1e-5  # of what floats take from an end


@cache
def law_of_sum(noise, count):
    """The law of a sum of independent values, around its middle: by convolution of halves."""
    if count == 1:
        return law_of(noise)
    half = law_of_sum(noise, count // 2)
    found = np.convolve(half, half)
    if count % 2:
        found = np.convolve(found, law_of(noise))
    reach = len(found) // 2 - int(np.flatnonzero(found > 1e-25)[0])
    return found[len(found) // 2 - reach : len(found) // 2 + reach + 1]


def sums_covered(noise, count, simulated):
    """Each margin of a sum holds as often as its level says, and one step less holds hardly more often."""
    law = law_of_sum(noise, count)
    sizes = np.abs(np.arange(len(law)) - len(law) // 2)
    for level in LEVELS:
        reach = margin(simulated, Fraction(level))
        assert law[sizes <= reach].sum() >= float(level), (noise, count, level)
        assert law[sizes < reach - 0.5].sum() <= float(level) + 0.02, (noise, count, level)


def quick(values, some, others=pytest.mark.slow):
    return [value if value in some else pytest.param(value, marks=others) for value in values]


@pytest.mark.parametrize("count", quick(CELLS, (1, 8, 9, 30, 100)))
def test_sums_of_geometric_numbers_have_their_exact_law(count):
    for rate in map(Fraction, RATES):
        if count / rate**2 < 40_000:
            sums_covered(Geometric(rate), count, Uniforms.fixed().geometric_sums(float(rate), count))


@pytest.mark.parametrize("count", quick(CELLS[:-1], (1, 9, 100)))
def test_sums_of_gaussian_numbers_have_their_exact_law(count):
    for scale in map(Fraction, SCALES):
        if count * scale < 40_000:
            sums_covered(DiscreteGaussian(scale), count, Uniforms.fixed().gaussian_sums(float(scale), count))


@pytest.mark.parametrize("noise", [Geometric(Fraction(1, 100)), DiscreteGaussian(Fraction(20_000))], ids=str)
@pytest.mark.parametrize("count", [1, 3, 20])
def test_wide_sums_are_rounded_outwards(noise, count, monkeypatch):
    """What a continuous law stands in for is covered, too: here from a hundredth of the usual width on."""
    monkeypatch.setattr(simulating, "WIDE", 1)
    uniforms = Uniforms.fixed()
    if isinstance(noise, Geometric):
        sums_covered(noise, count, uniforms.geometric_sums(float(noise.rate), count))
    else:
        sums_covered(noise, count, uniforms.gaussian_sums(float(noise.scale), count))


@cache
def joint_law(noise, reach):
    """All vectors of a joint law that are not far out, and their probabilities: by the norm it speaks of."""
    vectors = np.array(list(product(range(-reach, reach + 1), repeat=sum(noise.sizes))))
    columns = np.split(vectors, np.cumsum(noise.sizes)[:-1], axis=1)
    sums = np.stack([own.sum(axis=1) for own in columns])
    there = (sums == (0 if noise.replaced else sums[0])).all(axis=0)
    norms = np.max([abs(own).sum(axis=1) for own in columns], axis=0)[there] / (1 + noise.replaced)
    vectors = vectors[there]
    odds = np.exp(-float(noise.rate) * norms)
    return vectors, odds / odds.sum()


JOINT = [
    *((KNorm((2, 2), Fraction(rate), replaced), 4, 9) for rate in (3, 6) for replaced in (True, False)),
    (KNorm((3, 2), Fraction(4), False), 5, 6),
]


@pytest.mark.parametrize(("noise", "count", "reach"), JOINT, ids=str)
def test_sums_of_joint_noise_have_their_exact_law(noise, count, reach):
    vectors, odds = joint_law(noise, reach)
    rows = np.array([[1.0], [-0.5]])
    for kinds in ([0] + [-1] * (count - 1), [0, -1, 0] + [-1] * (count - 3), [0, 1, 1] + [0] * (count - 3)):
        simulated = noise.simulated(rows, np.array(kinds), Uniforms.fixed())[:, 0]
        sizes = abs(vectors @ np.vstack([rows, [[0.0]]])[kinds][:, 0])
        for level in LEVELS:
            reached = margin(simulated, Fraction(level)) + EDGE
            assert odds[sizes <= reached].sum() >= float(level), (kinds, level)
            assert odds[sizes < reached - 1].sum() <= float(level) + 0.02, (kinds, level)


WISHART = tuple((i, j) for i in range(4) for j in range(i + 1, 4))  # three columns: orders 1 and 2


@pytest.mark.slow
@pytest.mark.parametrize("rate", ["1/3", "15"])
def test_sums_of_wishart_noise_are_covered(rate):
    """Of noise that is drawn exactly: of n, of one parity, and of the sums that a cell and a share are."""
    noise = WishartDifference(3, *rates(Fraction(rate), Fraction(1, 3)), ((0, 0), *WISHART))
    draws = 400
    drawn = np.array([noise.draw(7, SeededBits(seed)) for seed in range(draws)])
    shown = [[1, 0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1], [0, 1, 1, 0, 1, 0, 0]]
    for weights in (*shown, [1, -1, 0, 1, 1, 0, 1]):
        kinds = np.array([-1, 0, 1])[weights]  # of weight 0, 1 and -1
        simulated = noise.simulated(np.array([[1.0], [-1.0]]), kinds, Uniforms.fixed())[:, 0]
        sizes = abs(drawn @ weights)
        assert (sizes <= margin(simulated, Fraction(9, 10)) + EDGE).mean() >= 0.9 - 3 * 0.3 / draws**0.5


STEPS, NODES = 16, 40  # of a grid in each row, and of equally likely numbers


def below(noise, entry, ends):
    """The chance that an entry of one of the two matrices is below some ends, by what it is made of."""
    middles = (np.arange(NODES) + 0.5) / NODES
    if isinstance(noise, ConeDifference):  # of the first column's counts: the total times a share
        half, size = cone.squares(noise.sizes, noise.sizes[0]) / 2, noise.sizes[0]
        shares = stats.beta(half, (size - 1) * half).ppf(middles)
        total = stats.gamma(cone.dimensions(noise.sizes), scale=1 / float(noise.rate))
        return np.mean([total.cdf(ends / share) for share in shares], axis=0)
    low, high = (stats.gamma(degree / 2) for degree in wishart.degrees(noise.attributes))
    if entry == (0, 0):
        return low.cdf(float(noise.x) * ends)
    half, sizes = (noise.attributes + 1) / 2, np.abs(ends)  # of a cosine times sqrt(a a), or sqrt(b a)
    cosines, rate = np.abs(2 * stats.beta(half, half).ppf(middles) - 1), float(noise.y)
    if entry[0]:
        of_size = np.mean([high.cdf(rate * sizes / c) for c in cosines], axis=0)
    else:
        squares = float(noise.x) * rate * sizes**2
        of_size = np.mean(
            [high.cdf(squares / (b * c * c)) for b in low.ppf(middles) for c in cosines], axis=0
        )
    return (1 + np.sign(ends) * of_size) / 2


SINGLE = {  # noise by its rate, and one of its values
    "rows": (lambda rate: WishartDifference(3, *rates(rate, Fraction(1, 3)), ((0, 0), (0, 1), (1, 2))), 0),
    "order 1": (lambda rate: WishartDifference(3, *rates(rate, Fraction(1, 3)), ((0, 0), (0, 1), (1, 2))), 1),
    "order 2": (lambda rate: WishartDifference(3, *rates(rate, Fraction(1, 3)), ((0, 0), (0, 1), (1, 2))), 2),
    "cone": (lambda rate: ConeDifference((2, 2), rate, ((0, 1),)), 0),
    "wide cone": (lambda rate: ConeDifference((3, 2), rate, ((0, 1),)), 0),
}


@pytest.mark.parametrize("of", quick(SINGLE, ("order 2", "cone")))
@pytest.mark.parametrize("rate", quick(("1/3", "2", "6", "15"), ("6",)))
def test_one_value_of_noise_of_matrices_has_its_exact_law(rate, of):
    made, at = SINGLE[of]
    noise, reach = made(Fraction(rate)), 8 + int(80 / Fraction(rate))
    entry = noise.pairs[at] if isinstance(noise, WishartDifference) else None
    chances = np.diff(below(noise, entry, np.arange(-reach * STEPS, reach * STEPS + 1) / STEPS))
    assert chances.sum() > 1 - 1e-6
    law = np.convolve(chances, chances[::-1])
    size = np.abs(np.arange(len(law)) - len(law) // 2) / STEPS
    kinds = np.full(len(noise.pairs) if entry else noise.count, -1)
    kinds[at] = 0
    simulated = noise.simulated(np.eye(1), kinds, Uniforms.fixed())[:, 0]
    for level in LEVELS:
        end = round(margin(simulated, Fraction(level))) + 0.5  # it is rounded to nearest
        covered = [law[size < e].sum() + law[size == e].sum() / 2 for e in (end, end - 1)]
        assert covered[0] >= float(level) - 1e-3, level
        assert covered[1] <= float(level) + 0.02, level


def of_cells(shape, counts, noise, n):
    """A measurement of the table of all columns, with the counts that were released."""
    columns = [Column(f"c{i}", [str(j) for j in range(size)]) for i, size in enumerate(shape)]
    part = Marginal(tuple(range(len(shape))), tuple(tuple(range(size)) for size in shape))
    return Measurements(Domain(columns), [Measurement((part,), counts, noise, Fraction(1))], n)


def pair_covered(noise, sizes, weights, reach):
    """How often a weighted sum of two sums stays within a reach: exactly."""
    one, other = (law_of_sum(noise, size) for size in sizes)
    a, b = (np.arange(len(law)) - len(law) // 2 for law in (one, other))
    within = np.abs(weights[0] * a[:, None] + weights[1] * b) <= reach * (1 + EDGE) + EDGE
    return float(one @ within @ other)


@pytest.mark.parametrize("cells", quick((2, 4, 12, 18, 40, 200), (4, 18)))
def test_shares_of_a_public_number_of_rows_are_covered(cells):
    """A sum over some cells of a table; of the rest it is known how much there is."""
    inside, counts = cells // 2 - (cells > 4), np.full(cells, 1000)
    names = ", ".join(map(str, range(inside)))
    for rate in map(Fraction, RATES[1:]):
        noise = Geometric(rate)
        for level in LEVELS:
            found = ask(of_cells((cells,), counts, noise, 1000 * cells), f"c0 in ({names})", level=level)
            reach = (found.high - found.estimate) * 1000 * cells
            shares = 1 - inside / cells, inside / cells
            assert pair_covered(noise, (inside, cells - inside), shares, reach) >= float(level)


@cache
def outcomes(noise, cells, left_out=2e-4):
    """The likeliest vectors of noise of some cells, with their probabilities, but for what is left out."""
    law = law_of(noise)
    likely = np.flatnonzero(law > left_out / 50)
    values = (likely - len(law) // 2).tolist()
    vectors = [(np.prod(law[[v + len(law) // 2 for v in one]]), one) for one in product(values, repeat=cells)]
    vectors.sort(reverse=True)
    count = int(np.searchsorted(np.cumsum([chance for chance, _ in vectors]), 1 - left_out)) + 1
    return vectors[:count]


def missed(noise, exact, shape, n, text, truth, level, population=False):
    """The probability that an interval is given and does not hold, but for what is left out."""
    total = 0.0
    for chance, vector in outcomes(noise, exact.size):
        released = exact.ravel() + np.array(vector)
        found = ask(of_cells(shape, released, noise, n), text, level=level, population=population)
        if found.low is not None and not found.low - EDGE <= truth <= found.high + EDGE:
            total += float(chance)
    return total


TABLE = np.array([[7, 33], [11, 19]])
SHARE, DIFFERENCE = ("c1=0 | c0=0", 7 / 40), ("c1=0 | c0=1 - c1=0 | c0=0", 11 / 30 - 7 / 40)
MORE_NOISE = [Geometric(Fraction(rate)) for rate in ("9", "7", "11/2", "4", "3", "2")]
MORE_NOISE += [DiscreteGaussian(Fraction(3, 10))]
OF_TABLE = [SHARE, DIFFERENCE, ("c1=0", 18 / 70), ("c1=0 - c0=0", 18 / 70 - 40 / 70)]


@pytest.mark.parametrize(("text", "truth"), OF_TABLE[:2])
def test_ratios_and_differences_are_covered(text, truth):
    """Of a table of four cells, over all noise: the interval of each outcome is computed."""
    for level in ("0.9", "0.95"):  # there differences of two parts without a margin held at .92
        assert missed(Geometric(Fraction(11, 2)), TABLE, (2, 2), None, text, truth, level) <= 1 - float(level)


@pytest.mark.slow
@pytest.mark.parametrize("n", [70, None], ids=["replace-one", "add-remove"])
@pytest.mark.parametrize("noise", quick(MORE_NOISE, MORE_NOISE[:1], pytest.mark.long), ids=str)
@pytest.mark.parametrize(("text", "truth"), OF_TABLE)
def test_ratios_and_differences_are_covered_at_all_levels(text, truth, noise, n):
    """The lower the rate, the more outcomes: those of 9 are one in fifty of all."""
    for level in LEVELS:
        assert missed(noise, TABLE, (2, 2), n, text, truth, level) <= 1 - float(level)


def missed_of_sample(rate, rows, share, public, level):
    """The probability that the share of a population is missed: over all samples, and all noise."""
    total, noise = 0.0, Geometric(Fraction(rate))
    for drawn in range(rows + 1):
        chance = comb(rows, drawn) * share**drawn * (1 - share) ** (rows - drawn)
        if chance > 1e-5:
            exact, n = np.array([drawn, rows - drawn]), rows if public else None
            total += chance * missed(noise, exact, (2,), n, "c0=0", share, level, population=True)
    return total


def test_a_sample_without_one_does_not_say_that_there_are_none():
    """Once the interval was from 0 to 0."""
    found = ask(of_cells((2,), np.array([0, 25]), Geometric(Fraction(9)), 25), "c0=0", population=True)
    assert found.low == 0 and 3 / 25 < found.high < 0.2


def test_shares_of_a_population_are_covered():
    assert missed_of_sample("11", 9, 0.1, True, "0.8") <= 0.2


@pytest.mark.long
@pytest.mark.parametrize("public", [True, False], ids=["replace-one", "add-remove"])
@pytest.mark.parametrize("rate", ["9", "3"])
@pytest.mark.parametrize("share", [0.002, 0.05, 0.1, 0.3, 0.5])
def test_shares_of_a_population_are_covered_at_all_levels(share, rate, public):
    for level in LEVELS:
        assert missed_of_sample(rate, 25, share, public, level) <= 1 - float(level)
