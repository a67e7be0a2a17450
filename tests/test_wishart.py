"""Wishart-difference noise: exact normal numbers, exact rounding, privacy by another method, tails."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from queries import Conjunctions, Domain, Marginals, Rows
from smalldb.answers import drawing as drawing_module
from smalldb.answers import measure, plan_answers
from smalldb.answers import wishart as wishart_module
from smalldb.answers.normals import Normal, Uniform, _below_line, _less, normals
from smalldb.answers.shares import alternatives
from smalldb.answers.tails import laplace_sum_quantile, laplace_sum_tail
from smalldb.answers.wishart import rounded_entries, scale, trace, wishart_noise
from smalldb.randomness import ScriptedBits, SeededBits

ONE = Fraction(1)
PAIRS3 = [(i, j) for i in range(3) for j in range(i, 3)]


def test_normal_numbers_have_their_law():
    drawn = np.array([x.floor(50) for x in normals(12_000, SeededBits(1))]) / 2.0**50
    assert stats.kstest(drawn, "norm").pvalue > 1e-3
    assert stats.kstest(drawn * 1.05, "norm").pvalue < 1e-3
    assert stats.kstest(drawn + 0.05, "norm").pvalue < 1e-3
    for moment, wanted, deviation in ((1, 0, 1), (2, 1, 2**0.5), (4, 3, 96**0.5)):
        assert abs((drawn**moment).mean() - wanted) < 4 * deviation / len(drawn) ** 0.5


def test_the_digits_of_a_normal_number_are_those_of_one_number():
    for x in normals(50, SeededBits(2)):
        deep = x.floor(200)
        assert [x.floor(bits) for bits in (1, 30, 64, 150)] == [deep >> (200 - b) for b in (1, 30, 64, 150)]


def test_comparisons_go_as_deep_as_they_must():
    half = "1" + "0" * 31
    one, other = (Uniform(ScriptedBits(half + "0" * 32 + tail)) for tail in ("0" * 32, "1" * 32))
    assert _less(one, other)
    assert not _less(other, one)
    # r < (2 + x) / 4 with x = 0 + ... on either side of the line
    x = Uniform(ScriptedBits("0" * 31 + "1" + "1" * 64))
    assert _below_line(Uniform(ScriptedBits("1" + "0" * 31 + "0" * 64)), x, 1)
    assert not _below_line(Uniform(ScriptedBits("1" + "0" * 30 + "1" + "0" * 64)), x, 1)


def fresh(p, seed):
    """The rows of G and H; each number with digits of its own, so that their order does not matter."""
    generator = np.random.default_rng(seed)

    def number():
        sign, whole = 1 - 2 * int(generator.integers(2)), int(generator.integers(0, 3))
        return Normal(sign, whole, Uniform(SeededBits(int(generator.integers(2**40)))))

    return [[number() for _ in range(2 * (p + 1))] for _ in range(p)]


@settings(max_examples=30)
@given(st.integers(1, 4), st.integers(0, 2**30), st.integers(1, 400), st.sampled_from([1, 5, 64]))
def test_entries_are_rounded_as_by_definition(p, seed, size, bits):
    """Against fractions of 400 digits; with a first look that is too short, more digits are asked for."""
    pairs = [(i, j) for i in range(p) for j in range(i, p)]
    factors = [Fraction(size + i, 7 + j) for i, j in pairs]
    exact = [[Fraction(x.floor(400), 2**400) for x in row] for row in fresh(p, seed)]
    wanted = []
    for (i, j), factor in zip(pairs, factors, strict=True):
        terms = [a * b for a, b in zip(exact[i], exact[j], strict=True)]
        wanted.append((factor * (sum(terms[: p + 1]) - sum(terms[p + 1 :])) + Fraction(1, 2)).__floor__())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wishart_module, "_BITS", bits)
        assert rounded_entries(fresh(p, seed), factors, pairs).tolist() == wanted


def test_noise_that_does_not_fit_is_cut_off(monkeypatch):
    monkeypatch.setattr(drawing_module, "CLIP", 5)
    drawn = wishart_noise(Fraction(1000), [ONE] * 3, PAIRS3, SeededBits(1))
    assert set(np.abs(drawn)) <= set(range(6))
    assert 5 in np.abs(drawn)


def float_noise(trials, p, unit, roots, generator):
    g = generator.standard_normal((2, trials, p, p + 1)) * np.array(roots)[:, None]
    return unit * (g[0] @ g[0].swapaxes(1, 2) - g[1] @ g[1].swapaxes(1, 2))


def test_noise_has_its_law():
    """Each entry, and a product of two, against noise of floats; at twice the scale it is refused."""
    roots, unit, trials = [Fraction(1, 2), ONE, ONE], Fraction(30), 400
    source = SeededBits(3)
    drawn = np.array([wishart_noise(unit, roots, PAIRS3, source) for _ in range(trials)])
    model = float_noise(20_000, 3, 30, [0.5, 1, 1], np.random.default_rng(1))
    for column, (i, j) in enumerate(PAIRS3):
        assert stats.ks_2samp(drawn[:, column], model[:, i, j]).pvalue > 1e-3
        assert stats.ks_2samp(drawn[:, column], 2 * model[:, i, j]).pvalue < 1e-3
    both = model[:, 0, 1] * model[:, 1, 2]
    assert stats.ks_2samp(drawn[:, 1] * drawn[:, 4], both).pvalue > 1e-3


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_released_noise_has_the_deviation_that_is_stated(relation):
    domain = Domain([*"abcd"])
    rows = Rows.from_counts(domain, domain.decode(domain.table()), range(16))
    plans = alternatives(Conjunctions(2).workload(domain), n=120, epsilon="0.1", neighbours=relation)
    plan = next(plan for plan in plans if plan.method == "wishart")
    source, part = SeededBits(4), plan.parts[0]
    released = np.array([measure(plan, rows, source).values for _ in range(150)], dtype=float)
    factor = 2 if relation == "replace-one" else 1
    for order in (1, 2):
        columns = [k for k, places in enumerate(part.sets) if len(places) == order]
        spread = released[:, columns].std(axis=0).mean() * factor
        assert abs(spread / part.deviations[order] - 1) < 0.1


@pytest.mark.parametrize("root", [ONE, Fraction(2, 3), Fraction(1, 3)])
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_traces_cover_every_neighbour(d, root):
    """The nuclear norm of a neighbour's move, scaled by S, is what a shift costs: at most the trace B."""
    weights = np.array([1 / float(root), *[1] * d])
    signs = [np.array([1, *row]) * weights for row in product((1, -1), repeat=d)]
    largest = max(
        np.linalg.svd(np.outer(u, u) / 2 - np.outer(v, v) / 2, compute_uv=False).sum()
        for u, v in product(signs, signs)
    )
    bound = float(trace(d, root))
    assert largest <= bound * (1 + 1e-12)
    assert np.isclose(np.linalg.svd(np.outer(signs[0], signs[0]), compute_uv=False).sum(), bound)
    assert scale(d, root, Fraction(3, 7)) == trace(d, root) / 2 * Fraction(7, 3)


def joint_density(unit, root, size, width):
    """The law of (V_00, V_01) for p = 2 on a grid, from its characteristic function: no Wishart density."""
    step = width / size
    frequencies = 2 * np.pi * np.fft.fftfreq(size, step)
    a, b = frequencies[:, None], frequencies[None, :]
    # |det(I - 2i Theta Sigma)|^-3 with Theta = [[a, b/2], [b/2, 0]], Sigma = unit diag(root^2, 1)
    variance = (unit * root) ** 2
    modulus = (1 + b**2 * variance) ** 2 + (2 * a * unit * root**2) ** 2
    density = np.fft.fftshift(np.fft.ifft2(modulus**-1.5).real)
    return density / density.sum(), step


@pytest.mark.parametrize("root", [1.0, 0.5])
def test_the_privacy_loss_for_one_attribute(root):
    """p = 2, all points of a grid of shifts: log ratios of the numerical law stay within epsilon.

    Under add-remove both n and the sum of signs move, by (1, 1) or (1, -1); under replace-one the odd count
    moves by 1 alone. At a scale a third too small the largest loss is beyond epsilon.
    """
    epsilon, size = 1.0, 1024
    unit = (1 / root**2 + 1) / (2 * epsilon)
    density, step = joint_density(unit, root, size, 64 * unit * root)

    def loss(move):
        shift = round(move / step)
        inner = slice(size // 4, 3 * size // 4)
        # u u^T moves (V_00, V_01) by (1, +-1), replace-one V_01 by 1
        worst = []
        for down, right in ((shift, shift), (shift, -shift), (0, shift)):
            moved = np.roll(density, (down, right), axis=(0, 1))[inner, inner]
            here = density[inner, inner]
            kept = np.minimum(here, moved) > 1e-9 * density.max()
            worst.append(np.abs(np.log(here[kept] / moved[kept])).max() / (shift * step))
        return np.array(worst)

    found = loss(1.0)
    assert (found <= epsilon * 1.01).all()
    assert found.max() > 0.75 * epsilon
    narrow, narrow_step = joint_density(unit / 1.5, root, size, 64 * unit * root)
    assert narrow_step == step
    density = narrow
    assert loss(1.0).max() > epsilon


@pytest.mark.parametrize("shift", [Fraction(1, 2), ONE, Fraction(3)])
def test_the_law_of_one_count_in_closed_form(shift):
    """For p = 2 V_01 is a sum of 3 Laplace numbers, density exp(-|x|) (x^2 + 3 |x| + 3) / 16."""

    def log_density(x):
        return -np.abs(x) + np.log(x**2 + 3 * np.abs(x) + 3)

    x = np.linspace(-400, 400, 100_001)
    for root, epsilon in ((1.0, 1.0), (2 / 3, 0.3)):
        unit = float(scale(1, Fraction(root).limit_denominator(9), Fraction(str(epsilon)))) * root
        losses = log_density(x) - log_density(x - float(shift) / unit)
        assert np.abs(losses).max() <= epsilon * float(shift)
    assert np.abs(losses).max() > 0.5 * epsilon * float(shift)
    wide = np.linspace(-200, 200, 400_001)
    tail = (np.exp(log_density(wide)) / 16)[wide >= 2].sum() * (wide[1] - wide[0])
    assert abs(tail / float(laplace_sum_tail(3, Fraction(2)).high) - 1) < 1e-3


@pytest.mark.parametrize("count", [1, 2, 7])
def test_tails_of_laplace_sums(count):
    drawn = np.random.default_rng(count).laplace(size=(200_000, count)).sum(axis=1)
    for x in (Fraction(0), Fraction(3, 2), Fraction(5)):
        tail = laplace_sum_tail(count, x)
        assert tail.low <= tail.high
        wanted = float(tail.high)
        assert abs((drawn >= float(x)).mean() - wanted) < 5 * (wanted / len(drawn)) ** 0.5
    assert abs(float(laplace_sum_tail(1, Fraction(5)).high) - np.exp(-5.0) / 2) < 1e-15


def test_quantiles_of_entries():
    unit, failure = Fraction(9, 2), Fraction(1, 20)
    drawn = np.round(4.5 * np.random.default_rng(2).laplace(size=(200_000, 5)).sum(axis=1))
    found = laplace_sum_quantile(5, unit, failure)
    assert (np.abs(drawn) > found).mean() <= 0.05 + 0.002
    assert (np.abs(drawn) > found - 1).mean() > 0.05 - 0.002


def test_the_diagonal_spreads_less_than_what_stands_for_it():
    """n's noise is 2 s t times a difference of gammas of shape (p + 1) / 2; the bound rounds that up."""
    drawn = 2 * (stats.chi2(5).rvs(200_000, random_state=1) - stats.chi2(5).rvs(200_000, random_state=2)) / 2
    for x in (4, 8, 12):
        assert (drawn >= 2 * x).mean() <= float(laplace_sum_tail(3, Fraction(x)).high) * 1.05


def test_many_attributes_in_a_release():
    domain = Domain([f"a{i}" for i in range(30)])
    bits = np.random.default_rng(1).integers(0, 2, (500, 30))
    plan = plan_answers(Marginals(2).workload(domain), n=500, epsilon=1, neighbours="replace-one")
    assert plan.method in ("wishart", "cube")
    measured = measure(plan, Rows.from_frame(domain, domain.decode(bits.astype(np.uint8))), SeededBits(1))
    assert len(measured.values) == sum(len(part.sets) for part in plan.parts)
