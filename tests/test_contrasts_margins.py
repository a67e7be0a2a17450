"""Margins of answers: entries of few digits, blocks of radii, and failures that add up."""

from fractions import Fraction
from itertools import product
from math import sqrt

import numpy as np
import pytest
from smalldb.marginals.contrasts.parity_plan import alternatives

from queries import Conjunctions, Domain
from smalldb.exact.bits import ScriptedBits, SeededBits
from smalldb.exact.coins import Uniform
from smalldb.exact.normals import Normal
from smalldb.marginals.contrasts import part_of_cells as cells
from smalldb.noise import cube
from smalldb.noise import gaussian as gaussian_noise
from smalldb.noise import wishart as wishart_noise
from smalldb.noise.wishart import Drawn, _enclosed, degrees, rates

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


@pytest.mark.parametrize("inside", [0, 1, 3])
def test_a_level_of_a_block_is_kept_as_its_weight_says(monkeypatch, inside):
    """By exp(-rate inside), and by a coordinate for each side; the block has the count of its last level."""
    count, rate, width, tossed, sides = 5, Fraction(1, 18), 4, [], []

    def level(blocks, r, source):
        assert r == rate * width
        assert blocks.power == count
        assert [blocks.count(block) for block in range(3)] == [2 * (4 * block + 3) + 1 for block in range(3)]
        return 1

    def below(n, source):
        if n == width:
            return inside
        sides.append(n)
        return 2 * (width + inside)

    monkeypatch.setattr(cube, "draw_level", level)
    monkeypatch.setattr(cube, "uniform_below", below)
    monkeypatch.setattr(cube, "bernoulli_exp", lambda r, source: tossed.append(r) or True)
    assert cube._radius(count, rate, SeededBits(1)) == width + inside
    assert (tossed, sides) == ([rate * inside], [15] * count)


def each_asked(monkeypatch, module, name):
    """The failures that quantiles are asked for; the last argument of each."""
    asked = []

    def quantile(*arguments):
        asked.append(arguments[-1])
        return 1

    monkeypatch.setattr(module, name, quantile)
    return asked


def plans(relation, delta=None):
    workload = Conjunctions(2).workload(ABC)
    return alternatives(workload, n=50, epsilon=1, neighbours=relation, delta=delta)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_what_may_fail_adds_up_to_the_failure(monkeypatch, relation):
    failure, seen = Fraction(1, 20), set()
    asked = {
        "cells": [each_asked(monkeypatch, cells, "noise_quantile")],
        "wishart": [
            each_asked(monkeypatch, wishart_noise, name)
            for name in ("entry_quantile", "laplace_sum_quantile")
        ],
        "gaussian": [each_asked(monkeypatch, gaussian_noise, "gaussian_quantile")],
    }
    for plan in plans(relation, "1e-6"):
        for part in plan.parts:
            if part.law not in asked:
                continue
            seen.add(part.law)
            part.margins(plan.setting, failure)
            numbers = len(part.sets)
            if part.law == "cells":
                part.direct(plan.setting, np.full(8, 5), failure)
                numbers = plan.workload.size + len(plan.spectrum.sets) + 1
            for some in asked[part.law]:
                assert all(each * numbers <= failure for each in some)
                some.clear()
    assert seen == set(asked)


@pytest.mark.parametrize("d", [2, 3])
def test_the_diagonal_is_bounded_by_at_least_its_shape(monkeypatch, d):
    """A difference of gammas of shape k / 2 spreads no further than k / 2 Laplace numbers, rounded up."""
    counts = []
    monkeypatch.setattr(wishart_noise, "laplace_sum_quantile", lambda count, *_: counts.append(count) or 1)
    workload = Conjunctions(2).workload(Domain([f"x{i}" for i in range(d)]))
    for plan in alternatives(workload, n=50, epsilon=1, neighbours="add-remove"):
        if plan.parts[0].law == "wishart":
            plan.parts[0].margins(plan.setting, Fraction(1, 20))
    assert counts
    assert all(0 <= 2 * count - degrees(d)[0] <= 1 for count in counts)


def test_a_part_is_drawn_at_its_own_rate(monkeypatch):
    spent = []

    def noise(distribution, count, source):
        spent.append(distribution.x + distribution.y)
        return np.zeros(count, dtype=np.int64)

    monkeypatch.setattr(wishart_noise.WishartDifference, "draw", noise)
    some = [plan for plan in plans("replace-one") if plan.parts[0].law == "wishart"]
    for plan in some:
        part = plan.parts[0]
        part.draw(plan.setting, np.zeros(len(part.sets), dtype=np.int64), SeededBits(1), lambda: None)
        assert sum(rates(part.rate(plan.setting), part.tilt)) == plan.epsilon * part.share
    assert spent == [plan.epsilon * plan.parts[0].share for plan in some]
    assert min(spent) < 1


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_the_rates_of_cubes_add_up_to_epsilon(monkeypatch, relation):
    """Counts of all orders move by at most 1 together, so what the orders spend is added up."""
    spent = []

    def noise(distribution, count, source):
        spent.append(distribution.rate)
        return np.zeros(count, dtype=np.int64)

    monkeypatch.setattr(cube.Cube, "draw", noise)
    some = [plan for plan in plans(relation) if plan.method == "cube" and len(plan.parts) > 1]
    assert some
    for plan in some:
        spent.clear()
        for part in plan.parts:
            part.draw(plan.setting, np.zeros(len(part.sets), dtype=np.int64), SeededBits(1), lambda: None)
        assert sum(spent) == plan.epsilon
