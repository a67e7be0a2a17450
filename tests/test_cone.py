"""The noise of all tables of one and two columns at once: its cone, its law, and how it is rounded."""

from collections import Counter
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, pairwise, product
from math import factorial, floor, sqrt

import numpy as np
import pytest
from margins import p_value

from smalldb.exact.bits import SeededBits
from smalldb.noise import cone
from smalldb.noise.cone import ConeDifference, Drawn, dimensions, rounded_tables, squares, width
from smalldb.noise.simulating import Uniforms

DEEP = 600  # bits of numbers that are known exactly


class Known:
    """A number that is a multiple of 2^-DEEP, with the digits of a normal number."""

    def __init__(self, value):
        self.value = value

    def floor(self, bits):
        return self.value >> DEEP - bits if bits <= DEEP else self.value << bits - DEEP


def known(numbers):
    """The floats of an array, as lists of known numbers."""
    if np.ndim(numbers) == 0:
        return Known(floor(Fraction(float(numbers)) * 2**DEEP))
    return [known(part) for part in numbers]


def all_pairs(sizes):
    return list(combinations(range(len(sizes)), 2))


def numbers(sizes, count, rng, more_squares=0, wider=0):
    """Normal numbers for so many matrices: of frames, shares, and totals."""
    return (
        [rng.normal(size=(count, k, width(sizes) + wider)) for k in sizes],
        [rng.normal(size=(count, k, squares(sizes, k) + more_squares)) for k in sizes],
        rng.normal(size=(count, 2 * dimensions(sizes))),
    )


def by_definition(frames, shares, totals, factor=0.5):
    """Lemma 4 in floats: the tables of columns, and of pairs, of each matrix."""
    total, parts, vectors = factor * (totals**2).sum(axis=1), [], []
    for frame, some in zip(frames, shares, strict=True):
        part = (some**2).sum(axis=2)
        part /= part.sum(axis=1, keepdims=True)
        axes, triangle = np.linalg.qr(frame.swapaxes(1, 2))
        axes = (axes * np.sign(np.diagonal(triangle, axis1=1, axis2=2))[:, None]).swapaxes(1, 2)
        z = np.sqrt(part)
        along = (z[:, :, None] * axes).sum(axis=1)
        parts.append(part)
        vectors.append(z[:, :, None] * (axes - z[:, :, None] * along[:, None]))
    columns = [total[:, None] * part for part in parts]
    tables = [
        total[:, None, None]
        * (parts[a][:, :, None] * parts[b][:, None] + vectors[a] @ vectors[b].swapaxes(1, 2))
        for a, b in all_pairs(frames)
    ]
    return columns, tables


def drawn_of(frames, shares, totals, number):
    """The numbers of one matrix, as the module takes them."""
    return Drawn(
        [known(frame[number]) for frame in frames],
        [known(some[number]) for some in shares],
        known(totals[number]),
    )


@pytest.mark.parametrize("sizes", [(2,), (5,), (2, 2), (3, 2), (2, 2, 2), (4, 3), (2, 3, 4), (1, 3, 2)])
def test_rows_span_the_space_of_consistent_tables(sizes):
    found = []
    for codes in product(*map(range, sizes)):
        u = np.concatenate([np.eye(k)[code] for k, code in zip(sizes, codes, strict=True)])
        found.append(np.outer(u, u).ravel())
    assert np.linalg.matrix_rank(np.array(found)) == dimensions(sizes)
    # categories that no table tells apart: one way for each column but the first
    assert np.linalg.matrix_rank(sum(found).reshape(sum(sizes), -1)) == width(sizes)


def test_as_many_numbers_are_drawn_as_the_proof_says(monkeypatch):
    asked = []

    def tables(both, factor, pairs):
        asked.append((both, factor, pairs))
        return np.zeros(0, dtype=np.int64)

    monkeypatch.setattr(cone, "rounded_tables", tables)
    sizes, rate, pairs = (3, 2, 5), Fraction(3, 7), ((0, 2), (1, 2))
    noise = ConeDifference(sizes, rate, pairs)
    noise.draw(noise.count, SeededBits(0))
    ((both, factor, wanted),) = asked
    assert factor == Fraction(7, 6) and wanted is pairs and len(both) == 2
    every = []
    for frames, shares, total in both:
        assert [[len(row) for row in frame] for frame in frames] == [[8] * k for k in sizes]
        assert [[len(row) for row in some] for some in shares] == [[10 - k] * k for k in sizes]
        assert len(total) == 2 * (1 + 2 + 1 + 4 + 2 * 1 + 2 * 4 + 1 * 4)
        every += [number for column in (*frames, *shares) for row in column for number in row] + total
    assert len(set(map(id, every))) == len(every)


def test_the_counts_of_one_column_have_laplace_noise_and_are_independent():
    """The cone is of all nonnegative numbers, on which exp(-rate total) is a product."""
    for k in (1, 2, 4, 5):
        wanted = {m: factorial(2 * m) for m in range(6)}
        assert cone._even_moments((k,), (k,), list(wanted)) == wanted
        assert ConeDifference((k,), Fraction(1, 3), ()).covariance(np.eye(k)) == pytest.approx(18 * np.eye(k))
    noise, source = ConeDifference((2,), Fraction(1, 3), ()), SeededBits(0)
    drawn = Counter(number for _ in range(60) for number in noise.draw(2, source).tolist())
    ends = np.exp((np.arange(100) - 0.5) / -3)  # the odds of |x| > number - 1/2
    odds = dict(enumerate((ends[:-1] - ends[1:]) / 2))
    law = {sign * number: p for number, p in odds.items() for sign in (1, -1)} | {0: 1 - ends[1]}
    assert p_value(drawn, law) > 0.01


def uniform_on_the_slice(sizes, count, rng):
    """Free entries of matrices with the total 1, by rejection: shares, then tables less products of them."""
    free = [k - 1 for k in sizes]
    starts = np.cumsum([0, *free])
    shares = rng.uniform(size=(count, sum(free)))
    inside = np.ones(count, dtype=bool)
    matrix = np.zeros((count, sum(free), sum(free)))
    for start, end in pairwise(starts):
        t = shares[:, start:end]
        inside &= t.sum(axis=1) < 1
        matrix[:, start:end, start:end] = t[:, :, None] * np.eye(end - start) - t[:, :, None] * t[:, None]
    beside = []
    for a, b in all_pairs(sizes):
        block = rng.uniform(-0.25, 0.25, (count, free[a], free[b]))  # its square: up to t (1 - t) t' (1 - t')
        matrix[:, starts[a] : starts[a + 1], starts[b] : starts[b + 1]] = block
        matrix[:, starts[b] : starts[b + 1], starts[a] : starts[a + 1]] = block.swapaxes(1, 2)
        beside.append(block.reshape(count, -1))
    inside[inside] = np.linalg.eigvalsh(matrix[inside])[:, 0] > 0
    return np.concatenate([shares, *beside], axis=1)[inside]


def free_entries(columns, tables):
    """The same of matrices by definition."""
    pairs, total = all_pairs(columns), columns[0].sum(axis=1)
    shares = [t / total[:, None] for t in columns]
    beside = [
        (table / total[:, None, None] - shares[a][:, :, None] * shares[b][:, None])[:, :-1, :-1]
        for (a, b), table in zip(pairs, tables, strict=True)
    ]
    return np.concatenate(
        [*(t[:, :-1] for t in shares), *(block.reshape(len(total), -1) for block in beside)], axis=1
    )


def moments(entries):
    """All products of up to four entries."""
    return np.stack(
        [
            entries[:, list(some)].prod(axis=1)
            for degree in (1, 2, 3, 4)
            for some in combinations_with_replacement(range(entries.shape[1]), degree)
        ]
    )


def off(one, other):
    """The largest difference of means, in standard errors."""
    spread = np.sqrt(one.var(axis=1) / one.shape[1] + other.var(axis=1) / other.shape[1])
    return (abs(one.mean(axis=1) - other.mean(axis=1)) / spread).max()


@pytest.mark.slow
@pytest.mark.parametrize(("sizes", "count"), [((3, 2), 250_000), ((2, 2, 2), 150_000)])
def test_matrices_have_the_moments_of_the_uniform_law_on_the_cone(sizes, count):
    """Their total is a gamma number of as many dimensions; what they are beside it is uniform."""
    rng = np.random.default_rng(2)
    wanted = moments(uniform_on_the_slice(sizes, count, rng))
    assert wanted.shape[1] > 20_000

    def found(**changed):
        return moments(free_entries(*by_definition(*numbers(sizes, 40_000, rng, **changed))))

    assert off(found(), wanted) < 5
    for changed in ({"more_squares": 1}, {"more_squares": -1}, {"wider": 1}, {"wider": -1}):
        assert off(found(**changed), wanted) > 8


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(2, 2), (4, 1, 3), (3, 2, 5)])
@pytest.mark.parametrize("size", [Fraction(1, 10**7), Fraction(3, 2), Fraction(10**9)])
@pytest.mark.parametrize("bits", [1, 64])
def test_tables_are_rounded_as_by_definition(sizes, size, bits, monkeypatch):
    """With a first look that is too short, more digits are asked for."""
    monkeypatch.setattr(cone, "_BITS", bits)
    rng = np.random.default_rng(3)
    given = numbers(sizes, 10, rng)
    columns, tables = by_definition(*given, float(size))
    wanted = np.concatenate([t.reshape(len(t), -1) for t in (*columns, *tables)], axis=1)
    for one in range(0, 10, 2):
        both = [drawn_of(*given, one), drawn_of(*given, one + 1)]
        found, exact = rounded_tables(both, size, all_pairs(sizes)), wanted[one] - wanted[one + 1]
        assert found.dtype == np.int64
        assert (abs(found - exact) <= 0.5 + 1e-11 * abs(wanted).max()).all()
        assert found[: len(found) // 2].any() == (size > 1)


@pytest.mark.parametrize(("later", "wanted"), [((2, 2), 0), ((3, 3), -1)])
@pytest.mark.parametrize("swapped", [False, True])
def test_both_ends_must_round_alike(later, wanted, swapped, monkeypatch):
    """What is subtracted lies between 2/5 and 3/5 at first, then nearer to one of them."""
    looks = []

    def enclosed(drawn, factor, pairs, bits):
        ends = (0, 0) if drawn is zero else ((2, 3) if bits == start else later)
        looks.append(bits)
        return tuple(np.array([end * 4**bits // 5], dtype=object) for end in ends)

    monkeypatch.setattr(cone, "_enclosed", enclosed)
    zero, other = (Drawn([[[]]], [[[]]], []) for _ in range(2))
    start = cone._BITS + 2
    found = rounded_tables([other, zero] if swapped else [zero, other], Fraction(1), [])
    assert found.tolist() == [-wanted if swapped else wanted]
    assert sorted(set(looks)) == [start, 2 * start]


def test_the_total_is_rounded_as_by_definition(monkeypatch):
    """In one category, whose share is 1, and with a first look that is too short."""
    monkeypatch.setattr(cone, "_BITS", 1)
    given, factor = numbers((1,), 80, np.random.default_rng(3)), Fraction(10**6)
    totals = [factor * sum(Fraction(number) ** 2 for number in row) for row in given[2].tolist()]
    for one in range(0, 80, 2):
        both = [drawn_of(*given, one), drawn_of(*given, one + 1)]
        exact = totals[one] - totals[one + 1]
        assert rounded_tables(both, factor, []).tolist() == [floor(exact + Fraction(1, 2))]


def test_tables_are_those_of_the_pairs_that_are_asked_for():
    sizes, rng = (3, 2, 4), np.random.default_rng(4)
    given = numbers(sizes, 2, rng)
    both = [drawn_of(*given, 0), drawn_of(*given, 1)]
    every = rounded_tables(both, Fraction(100), all_pairs(sizes))
    some = rounded_tables(both, Fraction(100), [(0, 2)])
    assert (some == np.concatenate([every[:9], every[9 + 6 : 9 + 6 + 12]])).all()
    assert (rounded_tables(both[::-1], Fraction(100), all_pairs(sizes)) == -every).all()


def upper(numbers, bits):
    """The same numbers cut after `bits` digits, then nearly a whole unit more: the worst for their floors."""
    if isinstance(numbers, list):
        return [upper(part, bits) for part in numbers]
    return Known((numbers.floor(bits) + 1 << DEEP - bits) - 1)


def frames(seed, near=None):
    """Rows of normal numbers; with `near`, the second is that near to the first."""
    rng = np.random.default_rng(seed)
    k, m = [(2, 2), (4, 4), (3, 7), (6, 20)][seed % 4]
    rows = rng.normal(size=(k, m))
    if near is not None:
        rows[1] = rows[0] + near * rows[1]
    return known(rows)


def distances(balls, truth, bits):
    """How far middles are from the truth of DEEP bits, in units of 2^-bits."""
    away = (balls.middles << DEEP - bits) - truth.middles
    return [float(Fraction(int(row @ row), 4 ** (DEEP - bits))) ** 0.5 for row in away]


@pytest.mark.parametrize("near", [None, 2.0**-4, 2.0**-12])
def test_frames_are_known_up_to_their_errors(near):
    shown, tightest = 0, 0.0
    for seed, bits in product(range(40), (16, 40)):
        rows = upper(frames(seed, near), bits)
        few, many = cone._frame(rows, bits), cone._frame(rows, DEEP)
        if few is None:
            continue
        shown += 1
        away = np.array(distances(few, many, bits))
        assert (away <= few.errors.astype(float)).all()
        tightest = max(tightest, (away / few.errors.astype(float)).max())
    assert shown > 30 and tightest > 0.2
    whole = many.middles @ many.middles.T
    assert (abs(whole - (np.eye(len(whole), dtype=object) << 2 * DEEP)) < 1 << 2 * DEEP - 400).all()


def test_shares_and_vectors_are_known_up_to_their_errors():
    tightest = np.zeros(2)
    for seed, bits in product(range(60), (14, 40)):
        rng = np.random.default_rng(seed)
        rows = frames(seed, None if seed % 3 else 2.0**-6)
        scale = np.where(rng.random(len(rows)) < 0.3, 2.0**-5, 1.0)
        if seed % 4 == 1:  # few digits tell what is shared
            scale[:] = 2.0 ** (3 - bits // 2)
        some = upper(known(rng.normal(size=(len(rows), 3)) * scale[:, None]), bits)
        few, many = (
            cone._shares([cone._sum_of_squares(row, digits) for row in some], digits)
            for digits in (bits, DEEP)
        )
        vectors = cone._without_total(*many, cone._frame(rows, DEEP), DEEP)
        away = abs((few[0] << DEEP - bits) - many[0])
        assert (away <= few[1] << DEEP - bits).all()
        allowed = few[1] << DEEP - bits
        tightest[0] = max(tightest[0], *(x / y for x, y in zip(away, allowed, strict=True)))
        axes = cone._frame(rows, bits)
        if axes is None:
            continue
        rough = cone._without_total(*few, axes, bits)
        ratio = np.array(distances(rough, vectors, bits)) / rough.errors.astype(float)
        assert ratio.max() <= 1
        tightest[1] = max(tightest[1], ratio.max())
    assert tightest[0] > 0.5 and tightest[1] > 0.02


@pytest.mark.parametrize(("near", "size"), [(None, 1.0), (2.0**-10, 1.0), (None, 2.0**-12)])
def test_few_digits_enclose_what_many_tell(near, size):
    """Also where rows hardly differ, and where few digits of the total are known."""
    sizes, shown, tightest = (3, 2, 4), 0, 0.0
    for seed, bits in product(range(12), (24, 48)):
        rng = np.random.default_rng(seed)
        some, shares, totals = numbers(sizes, 1, rng)
        if near is not None:
            some[0][:, -1] = some[0][:, 0] + near * some[0][:, -1]
            shares[1][:, 0] *= near
        drawn = Drawn(*(upper(part, bits) for part in drawn_of(some, shares, size * totals, 0)))
        factor = Fraction(1 + 2 * seed, 2)
        few = cone._enclosed(drawn, factor, all_pairs(sizes), bits)
        many = cone._enclosed(drawn, factor, all_pairs(sizes), DEEP)
        if few is None:
            continue
        shown += 1
        low, high = (end << 2 * (DEEP - bits) for end in few)
        assert (low <= many[0]).all() and (many[1] <= high).all()
        assert ((many[1] - many[0] << 400) < high - low).all()
        away = abs(2 * many[0] - low - high)
        tightest = max(tightest, *(x / y for x, y in zip(away, high - low, strict=True)))
    assert shown >= 12 and tightest > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(2, 3, 4), (3, 2)])
def test_linear_combinations_have_the_variance_and_the_quantiles_that_are_stated(sizes):
    """Combinations of all entries, against matrices of floats; counts of a column add up to the total."""
    rng, count, pairs = np.random.default_rng(6), 40_000, tuple(all_pairs(sizes))
    noise = ConeDifference(sizes, Fraction(1, 300), pairs)
    one, other = (by_definition(*numbers(sizes, count, rng), 150) for _ in range(2))
    drawn = [a - b for a, b in zip([*one[0], *one[1]], [*other[0], *other[1]], strict=True)]
    entries = np.concatenate([table.reshape(count, -1) for table in drawn], axis=1)
    columns, _ = noise.variances
    assert noise.variance(np.eye(1, noise.count)[0]) == pytest.approx(columns[0])
    margin = np.zeros(noise.count)  # of the first column and its table with the second, one way and the other
    margin[: sizes[0]] = 1
    margin[sum(sizes) : sum(sizes) + sizes[0] * sizes[1]] = -1
    assert noise.variance(margin) < 1e-9 * noise.variance()
    some = [np.ones(noise.count), *rng.normal(size=(4, noise.count)), *np.eye(noise.count)[[0, -1]]]
    for weights in some:
        sums, stated = entries @ weights, noise.variance(weights)
        squared = sums**2
        assert abs(squared.mean() - stated) < 4.5 * squared.std() / count**0.5 < 0.2 * stated
        for failure in (Fraction(1, 10), Fraction(1, 1000)):
            within = noise.quantile(weights, failure)
            assert (abs(sums) > within).mean() <= failure
            assert (abs(sums) > within / 2).mean() > failure
    assert noise.quantile(None, failure) == max(noise.quantile(unit, failure) for unit in np.eye(noise.count))


@pytest.mark.parametrize(
    "shape", [(), (3, 4), *(pytest.param(shape, marks=pytest.mark.slow) for shape in [(3,), (2, 4)])]
)
def test_moments_are_those_of_draws(shape):
    sizes, rng, count = (2, 3, 4), np.random.default_rng(7), 50_000
    columns, tables = (
        [one - other for one, other in zip(*some, strict=True)]
        for some in zip(*(by_definition(*numbers(sizes, count, rng), 1.5) for _ in range(2)), strict=True)
    )
    drawn = {
        (): columns[0].sum(axis=1, keepdims=True),
        (3,): columns[1],
        (3, 4): tables[2].reshape(count, -1),
        (2, 4): tables[1].reshape(count, -1),
    }[shape]
    stated = {m: x * 9**m for m, x in cone._even_moments(sizes, shape, range(4)).items()}  # at rate 1/3
    assert stated[0] == 1
    for m in (1, 2, 3):
        powers = (drawn ** (2 * m)).mean(axis=1)
        error = powers.std() / count**0.5
        assert abs(powers.mean() - float(stated[m])) < 4.5 * error < 0.5 * float(stated[m])
    for failure in (Fraction(1, 10), Fraction(1, 1000)):
        found = cone.quantile(sizes, Fraction(1, 300), shape, failure)
        assert (abs(100 * drawn) > found + 0.5).mean() <= failure
        assert (abs(100 * drawn) > found / 1.5).mean() > failure / 2
        # some moment proves it, and none proves a twentieth less
        moments = cone._even_moments(sizes, shape, range(1, 20))
        reached = (found + Fraction(1, 2)) / 300
        assert min(x / reached ** (2 * m) for m, x in moments.items()) <= failure
        assert min(x / (reached * Fraction(19, 20)) ** (2 * m) for m, x in moments.items()) > failure


def test_noise_of_columns_alone_is_simulated_the_same_without_frames(monkeypatch):
    """What nobody looks at is passed over, and the later numbers are those behind it."""
    noise = ConeDifference((2, 3, 4), Fraction(1, 4), ((0, 1), (1, 2)))
    kinds = np.full(noise.count, -1)
    kinds[5:9] = range(4)  # the counts of the last column
    weights = np.array([[1.0, 0.0], [1.0, 2.0], [0.0, -1.0], [3.0, 1.0]])

    def simulated():
        uniforms = Uniforms(SeededBits(3))
        return noise.simulated(weights, kinds, uniforms), uniforms.bits.bits(64)

    quick, after = simulated()
    whole = ConeDifference.of_columns
    monkeypatch.setattr(ConeDifference, "of_columns", lambda self, c, u, pairs: pytest.fail("not remembered"))
    again, then = simulated()
    assert (quick == again).all() and after == then
    cone._simulated_tables.cache_clear()
    monkeypatch.setattr(ConeDifference, "of_columns", lambda self, c, u, pairs: whole(self, c, u, True))
    slow, then = simulated()
    assert (quick == slow).all() and after == then
    assert quick.std(axis=0) == pytest.approx(
        [sqrt(noise.variance(np.insert(np.zeros(noise.count - 4), [5] * 4, w))) for w in weights.T], rel=0.03
    )


@pytest.mark.parametrize(("mixed", "narrow", "small"), [(2**10, 1, 1), (1, 2.0**-12, 1), (1, 1, 2.0**-12)])
def test_tables_of_columns_that_are_alike_are_those_of_their_counts(mixed, narrow, small):
    """With itself a column has its counts on the diagonal; with all directions turned, the rest of both ways.

    Rows plus earlier ones have the same frame, as exactly, and few digits of them, of shares or of the total
    tell less. The vectors y of lemma 4 are as long as the shares say.
    """
    k, bits, rng = 3, 32, np.random.default_rng(8)
    for _ in range(4):
        whole = rng.integers(-(2**40), 2**40, (k, 7))
        mixes = [np.eye(k, dtype=np.int64) + np.tril(rng.integers(-mixed, mixed, (k, k)), -1) for _ in "abc"]
        frames = [known(sign * mix @ whole * 2.0**-38) for sign, mix in zip((1, 1, -1), mixes, strict=True)]
        some, totals = narrow * rng.normal(size=(k, 5)) * [[1], [1], [2.0**-5]], small * rng.normal(size=8)
        squares_of = np.array([sum(Fraction(x) ** 2 for x in row) for row in some])
        share = squares_of / squares_of.sum()
        counts = Fraction(3, 2) * sum(Fraction(x) ** 2 for x in totals) * share
        same = np.diag(counts)
        turned = 2 * np.outer(counts, share) - same
        exact = np.concatenate([counts] * 3 + [table.ravel() for table in (same, turned, turned)])
        drawn = Drawn(frames, [known(some)] * 3, known(totals))
        low, high = cone._enclosed(drawn, Fraction(3, 2), all_pairs((k,) * 3), bits)
        assert (low <= exact * 4**bits).all() and (exact * 4**bits <= high).all()
        assert (high - low < 4**bits * counts.sum() / 3).all()
        parts = cone._shares([cone._sum_of_squares(row, bits) for row in known(some)], bits)
        vectors = cone._without_total(*parts, cone._frame(frames[0], bits), bits)
        lengths = [float(row @ row) ** 0.5 for row in vectors.middles]
        away = abs(np.array(lengths) - 2.0**bits * np.sqrt((share * (1 - share)).astype(float)))
        assert (away <= vectors.errors.astype(float)).all()


def test_second_moments_are_variances():
    """Each by its formula: of moments, of parts that are not correlated, and of what is stated."""
    sizes, rate = (2, 3, 4), Fraction(1, 3)
    noise, starts = ConeDifference(sizes, rate, tuple(all_pairs(sizes))), np.cumsum([0, *sizes])
    columns, beyond = noise.variances
    unit, first = np.eye(noise.count), sum(sizes)

    def second(*shape):
        return pytest.approx(float(cone._even_moments(sizes, shape, [1])[1] / rate**2))

    assert noise.variance(unit[:2].sum(axis=0)) == second()
    for c, k in enumerate(sizes):
        assert noise.variance(unit[starts[c]]) == second(k) == columns[c]
    for a, b in noise.pairs:
        cells = unit[first : first + sizes[a] * sizes[b]].reshape(sizes[a], sizes[b], -1)
        first += sizes[a] * sizes[b]
        assert noise.variance(cells[0, 0]) == second(sizes[a], sizes[b])
        corners = cells[0, 0] - cells[0, 1] - cells[1, 0] + cells[1, 1]
        assert noise.variance(corners) == pytest.approx(4 * beyond[a, b])


@pytest.mark.parametrize("k", range(1, 6))
def test_a_sum_of_rounded_counts_is_off_by_all_that_rounding_adds(k):
    """The total is just below r + 1/2, and all counts but one just above a half."""
    noise, failure, tiny = ConeDifference((k, 2), Fraction(1, 4), ()), Fraction(1, 100), Fraction(1, 1000)
    counts = [Fraction(1, 2)] * (k - 1)
    counts.append(Fraction(noise.cell_quantile((), failure)) + Fraction(1, 2) - tiny - sum(counts))
    assert sum(floor(each + Fraction(1, 2)) for each in counts) == floor(noise.sum_quantile(k, failure))
