"""Margins of contrasts: entries of few digits, failures that add up, and rates of the noise."""

from fractions import Fraction
from itertools import product
from math import sqrt

import numpy as np
import pytest
from builders import counted
from margins import ScriptedBits
from parities import alternatives, estimated, planned

from queries import Conjunctions, Domain, Marginals, Parities, Rows
from smalldb.exact.bits import SeededBits
from smalldb.exact.coins import Uniform
from smalldb.exact.normals import Normal
from smalldb.noise import gaussian as gaussian_noise
from smalldb.noise import wishart as wishart_noise
from smalldb.noise.distributions import Geometric
from smalldb.noise.wishart import Drawn, _enclosed, degrees

ABC = Domain(["a", "b", "c"])


def number(sign, whole, digits, bits):
    """A normal number whose first bits are given, and lies at the lower or upper end that they leave."""
    return Normal(sign, whole, Uniform(ScriptedBits(digits + "0" * 400), bits))


def pattern(generator, d, bits):
    """The numbers behind A: rows that are known well or badly, all at an end of what is known."""

    def some(count, size, lone=False):
        ends = generator.choice(
            ["0" * 90, "1" * 90], p=generator.choice([(0, 1), (1, 0), (0.5, 0.5)]), size=count
        )
        wholes = generator.integers(0, 3, count) + size
        if lone:
            wholes[1:] = 0
        signs = generator.choice([-1, 1], p=generator.choice([(0, 1), (0.5, 0.5)]), size=count)
        first = [f"{word:0{bits}b}" for word in generator.integers(0, 1 << bits, count)]
        return [
            number(int(sign), int(whole), digits + str(end), bits)
            for sign, whole, digits, end in zip(signs, wholes, first, ends, strict=True)
        ]

    low, high = degrees(d)
    sizes = generator.choice([0, 1, 1 << 30], size=d + 3)
    rows = [some(d + 2, int(size), lone=bool(generator.integers(2))) for size in sizes[: d + 1]]
    return Drawn(rows, some(low, int(sizes[-2])), some(high, int(sizes[-1])))


def extremes(d, bits):
    """Sums of squares at their ends beside rows that are known; a row that its first number leads away."""
    low, high = degrees(d)

    def small(count, end, whole=0):
        return [number(1, whole, "0" * bits + end * 90, bits) for _ in range(count)]

    known = [[number(1, 1 << 40, "0" * (bits + 90), bits), *small(d + 1, "0")] for _ in range(d + 1)]
    for end in "01":
        yield Drawn(known, small(low, end), small(high, end))
        yield Drawn(known, small(low, end, 2), small(high, end, 2))
    astray = [*small(1, "1"), *small(d + 1, "0", 2)]
    yield Drawn([astray, *known[1:]], small(low, "0", 1 << 40), small(high, "0", 1 << 40))


@pytest.mark.slow
def test_entries_of_few_digits_hold_the_true_ones():
    generator, bits, checked = np.random.default_rng(1), 1, 0
    factors = [Fraction(2**200, 7), Fraction(2**200, 5)]  # so that roots are long
    for drawn in (*extremes(2, bits), *(pattern(generator, 2, bits) for _ in range(120))):
        found = _enclosed(drawn, factors, bits)
        if found is None:
            continue
        checked += 1
        g, first, rest = (
            [[x.floor(80) for x in row] for row in some] for some in (drawn.rows, [drawn.first], [drawn.rest])
        )
        sums = [
            factor * sum(x * x for x in row) for factor, (row,) in zip(factors, (first, rest), strict=True)
        ]
        roots = [sqrt(total) / 2**80 for total in (sums[0], sums[1], sums[1])]
        norms = [sqrt(sum(x * x for x in row)) for row in g]
        for i, j in product(range(3), repeat=2):
            cosine = (
                float(Fraction(sum(a * b for a, b in zip(g[i], g[j], strict=True)))) / norms[i] / norms[j]
            )
            true = cosine * roots[i] * roots[j] * 16 ** (bits + 1)
            slack = 1e-9 * roots[i] * roots[j] * 16 ** (bits + 1)
            assert found[0][i, j] - slack <= true <= found[1][i, j] + slack
    assert checked > 40


def each_asked(monkeypatch, module, name):
    """The failures that quantiles are asked for; the last argument of each."""
    asked = []

    def quantile(*arguments):
        asked.append(arguments[-1])
        return 1

    monkeypatch.setattr(module, name, quantile)
    return asked


ROWS = Rows.from_codes(ABC, np.random.default_rng(1).integers(0, 2, (1500, 3)))


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("delta", [None, "1e-6"])
def test_what_may_fail_adds_up_to_the_failure(monkeypatch, relation, delta):
    """Over all numbers that were measured, the guard's with them."""
    failure, workload = Fraction(1, 20), Marginals(3).workload(ABC)
    noise = wishart_noise if delta is None else gaussian_noise
    names = ("entry_quantile", "laplace_sum_quantile") if delta is None else ("gaussian_quantile",)
    given = {"n": 1500, "epsilon": 1, "neighbours": relation, "delta": delta}
    for plan in alternatives(workload, **given):
        if (plan.delta is None) != (delta is None):
            continue
        estimate = estimated(plan, ROWS, SeededBits(1))
        assert len(estimate.guard) == plan.guarded == (delta is None)
        with monkeypatch.context() as patched:
            of_guard = each_asked(patched, Geometric, "quantile")
            of_parities = [each for name in names for each in [each_asked(patched, noise, name)]]
            estimate.sums_within(failure)
        most = max(each for some in of_parities for each in some)
        assert most * len(plan.sets) + sum(of_guard) == failure


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_ends_of_a_query_are_as_far_apart_as_its_parity_and_the_rows(relation):
    """Odd rows are (n - sum of signs) / 2: two margins of an odd count, or those of n and of the sum."""
    failure, n = Fraction(1, 20), 10**6
    plan = planned(Parities(2, exactly=True).workload(ABC), n=n, epsilon=1, neighbours=relation)
    rows = counted(ABC, [n // 8] * 8)
    estimate = estimated(plan, rows, SeededBits(1))
    margins = estimate.parities[0].margins(failure / len(plan.sets))
    sums = estimate.sums_within(failure)
    wide = 2 * margins[2] if plan.replaced else margins[0] + margins[2]
    np.testing.assert_allclose(sums.high - sums.low, wide, atol=1e-6)


@pytest.mark.parametrize("d", [2, 3])
def test_the_diagonal_is_bounded_by_at_least_its_shape(monkeypatch, d):
    """A difference of gammas of shape k / 2 spreads no further than k / 2 Laplace numbers, rounded up."""
    counts = []
    monkeypatch.setattr(wishart_noise, "laplace_sum_quantile", lambda count, *_: counts.append(count) or 1)
    workload = Conjunctions(2).workload(Domain([f"x{i}" for i in range(d)]))
    plan = planned(workload, n=50, epsilon=1, neighbours="add-remove")
    plan.noises[0][0].entry_quantile(0, Fraction(1, 20))
    assert counts
    assert all(0 <= 2 * count - degrees(d)[0] <= 1 for count in counts)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("certificate", [Fraction(0), Fraction(1, 20)])
def test_rates_add_up_to_epsilon(relation, certificate):
    """Of the Wishart difference, of the guard's choice and noise, and of the certificate."""
    given = {"n": 1500, "epsilon": 1, "neighbours": relation, "certificate": certificate}
    plan = planned(Marginals(3).workload(ABC), **given)
    noise = plan.noises[0][0]
    assert plan.guarded and plan.guarding == plan.epsilon / 20
    assert noise.x + noise.y + 2 * plan.guarding + plan.certifying == 1
    assert plan.certifying == certificate
    assert plan.loss.epsilon == 1
