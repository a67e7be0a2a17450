"""Answers, what sees the data: exact counts, exact noise, and the privacy loss over all neighbours."""

from collections import Counter
from fractions import Fraction
from itertools import accumulate, combinations, product
from math import exp, sqrt

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from margins import outcomes
from parity_bounds import planned
from scipy import stats
from scipy.linalg import hadamard
from smalldb.marginals.contrasts.parity_measurement import counts
from smalldb.marginals.contrasts.parity_plan import alternatives
from smalldb.marginals.contrasts.parts import shares_of

from queries import Conjunctions, Domain, Halfspaces, Intervals, Linear, Marginals, Parities, Predicates, Rows
from smalldb.exact import integers as drawing_module
from smalldb.exact.bits import SeededBits
from smalldb.exact.integers import (
    coins,
    uniform_integers,
    whole_geometric,
)
from smalldb.exact.levels import draw_level
from smalldb.marginals.contrasts import loss, measure
from smalldb.marginals.contrasts import parity_measurement as measuring_module
from smalldb.marginals.contrasts.spectrum import odd_counts, spectrum
from smalldb.noise.cube import _radius, radii
from smalldb.noise.distributions import Cube, Geometric
from smalldb.noise.tails import radius_quantile

pytestmark = pytest.mark.usefixtures("remembered")

CLASSES = [
    Conjunctions(2),
    Marginals(3, exactly=True),
    Parities(3),
    Halfspaces(),
    Intervals(),
    Linear([[0, "1/3", 1, 0.5] * 4, ["1/7"] + [0] * 15]),
]


def table(domain, histogram):
    return Rows.from_counts(domain, domain.decode(domain.table()), histogram)


def odd(row, positions):
    return sum(int(row[i]) for i in positions) % 2


@pytest.mark.parametrize("queries", CLASSES, ids=lambda q: q.text[:12])
def test_a_query_is_the_sum_of_its_parities(queries):
    workload = queries.workload(Domain([*"abcd"]))
    series = spectrum(workload)
    cells = workload.domain.table()
    chi = np.array([[(-1) ** odd(cell, positions) for cell in cells] for positions in series.sets])
    wanted = workload.matrix() / workload.denominator
    found = np.array([series.answers(column) for column in chi.T.astype(float)]).T
    np.testing.assert_allclose(found, wanted, atol=1e-14)
    assert list(series.sets) == sorted(set(series.sets), key=lambda s: (len(s), s))
    assert (series.coefficients != 0).all()
    for positions in combinations(range(4), 2):  # a parity that is left out is in no query
        if positions not in series.sets:
            column = [(-1) ** odd(cell, positions) for cell in cells]
            assert not (workload.matrix() @ column).any()


def test_weights_of_62_bits_are_transformed_without_wrapping():
    big = 2**61 - 1
    workload = Linear([[0, Fraction(big - 2, big), Fraction(1, big), 1]]).workload(Domain([*"ab"]))
    series = spectrum(workload)
    assert series.sets == ((0,), (1,), (0, 1))[: len(series.sets)]
    np.testing.assert_allclose(series.answers(np.ones(len(series.sets))), [0], atol=1e-15)
    np.testing.assert_allclose(series.constants, [0.5])


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_walsh_is_the_hadamard_matrix(dtype):
    from smalldb.kernels.walsh import walsh

    for d in range(7):
        values = np.arange(7, 7 + (1 << d)).astype(dtype) ** 2
        wanted = hadamard(1 << d).astype(dtype) @ values
        walsh(values)
        assert (values == wanted).all()


@given(st.integers(1, 90), st.integers(0, 150), st.integers(0, 2**32))
def test_odd_rows_are_counted(d, n, seed):
    generator = np.random.default_rng(seed)
    bits = (generator.random((n, d)) < generator.random(d)).astype(np.uint8)
    weights = [int(w) for w in generator.integers(0, 2 ** generator.integers(1, 40), n)]
    domain = Domain([f"a{i}" for i in range(d)])
    rows = Rows.from_counts(domain, domain.decode(bits), weights)
    sets = tuple(tuple(sorted({int(i) for i in generator.integers(0, d, 3)})) for _ in range(5))
    wanted = [sum(w for w, row in zip(weights, bits, strict=True) if odd(row, s)) for s in (*sets, ())]
    assert odd_counts(rows, (*sets, ())).tolist() == wanted


def decays(rate, levels):
    """exp(-rate level) for all levels below a number, each to about 1e-100."""
    unit = 1 << 400
    base, powers = int(naive.exp_minus(rate) * unit), [unit]
    while len(powers) < levels:
        powers.append(powers[-1] * base // unit)
    return powers


def cube_law(count, rate, radius):
    """exp(-rate max |v|), normalised over all vectors (but for less than 1e-50)."""
    weights = decays(rate, 300)
    shells = [(2 * r + 1) ** count - max(0, 2 * r - 1) ** count for r in range(300)]
    total = sum(shell * weight for shell, weight in zip(shells, weights, strict=True))
    law = [Fraction(weight, total) for weight in weights]
    return {v: law[max(map(abs, v))] for v in product(range(-radius, radius + 1), repeat=count)}


@pytest.mark.parametrize(("count", "rate"), [(1, Fraction(1)), (2, Fraction(3, 2)), (3, Fraction(5, 2))])
def test_cube_noise_by_its_decision_tree(count, rate):
    found = outcomes(lambda source: tuple(Cube(count, rate).draw(count, source).tolist()), 10)
    law = cube_law(count, rate, 30 if count < 3 else 8)
    for v, decided in found.items():
        assert decided <= law[v] + Fraction(1, 10**20)
    assert sum(found.values()) > 0.55
    wrong = cube_law(count, rate * Fraction(7, 10), 30 if count < 3 else 8)
    assert any(decided > wrong[v] for v, decided in found.items())


def p_value(found, law, trials):
    expected = np.array([float(law[v]) * trials for v in law])
    seen = np.array([found[v] for v in law], dtype=float)
    frequent = expected >= 5
    expected = np.append(expected[frequent], trials - expected[frequent].sum())
    seen = np.append(seen[frequent], trials - seen[frequent].sum())
    return stats.chisquare(seen, expected).pvalue


@pytest.mark.parametrize(("count", "rate"), [(1, Fraction(1)), (2, Fraction(3, 2)), (3, Fraction(3))])
def test_cube_noise_has_its_law(count, rate):
    source, trials = SeededBits(count), 1500
    found = Counter(tuple(Cube(count, rate).draw(count, source).tolist()) for _ in range(trials))
    radius = 12 if count < 3 else 4
    assert p_value(found, cube_law(count, rate, radius), trials) > 1e-6
    assert p_value(found, cube_law(count, rate * Fraction(6, 10), radius), trials) < 1e-6


@pytest.mark.parametrize(("count", "rate"), [(1, Fraction(1, 3)), (10, Fraction(1)), (40, Fraction(7, 2))])
def test_radius_quantiles_are_exact(count, rate):
    levels = range(600)
    weights = [(2 * r + 1) ** count * decay for r, decay in enumerate(decays(rate, 600))]
    total = sum(weights)
    law = [Fraction(part, total) for part in accumulate(weights)]
    for failure in (Fraction(1, 2), Fraction(1, 20), Fraction(1, 10**6)):
        assert radius_quantile(count, rate, failure) == next(r for r in levels if law[r] >= 1 - failure)
    source, trials = SeededBits(3), 300
    found = Counter(draw_level(radii(count), rate, source) for _ in range(trials))
    probabilities = {r: Fraction(weights[r], total) for r in levels}
    assert p_value(found, probabilities, trials) > 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("rate", [Fraction(1, 9), Fraction(1, 40)])
def test_a_wide_radius_has_its_law(rate):
    """Drawn by blocks of 2 and of 10 levels; a uniform position in a level's share is a uniform number."""
    source, trials = SeededBits(6), 300
    drawn = np.array([_radius(3, rate, source) for _ in range(trials)])
    inside = np.random.default_rng(1).random(trials)

    def positions(r):
        weights = np.array([(2 * level + 1) ** 3 * exp(-r * level) for level in range(2000)])
        weights /= weights.sum()
        return np.cumsum(weights)[drawn] - weights[drawn] * inside

    assert stats.kstest(positions(float(rate)), "uniform").pvalue > 1e-6
    assert stats.kstest(positions(0.7 * float(rate)), "uniform").pvalue < 1e-6


@pytest.mark.parametrize("count", [1, 20])
def test_wide_radii_are_as_quick_and_their_quantiles_nearly_exact(count):
    """Against the gamma law of shape count + 1 that they tend to."""
    rate = Fraction(1, 10**7)
    for failure in (Fraction(1, 2), Fraction(1, 1000)):
        limit = stats.gamma(count + 1).isf(float(failure))
        assert -1e-3 < float(radius_quantile(count, rate, failure) * rate) - limit < 0.25
    drawn = [float(_radius(count, rate, SeededBits(seed)) * rate) for seed in range(20)]
    assert stats.kstest(drawn, stats.gamma(count + 1).cdf).pvalue > 1e-6


def test_many_coordinates_and_little_epsilon():
    noise = Cube(5050, Fraction(1, 10)).draw(5050, SeededBits(1))
    assert 50_000 < np.abs(noise).max() < 52_000
    assert stats.kstest(noise / np.abs(noise).max(), stats.uniform(-1, 2).cdf).pvalue > 1e-6


def test_noise_that_does_not_fit_is_cut_off(monkeypatch):
    monkeypatch.setattr(drawing_module, "CLIP", 2)
    source, trials, law = SeededBits(2), 1000, Counter()
    for v, p in cube_law(1, Fraction(1), 40).items():
        law[max(-2, min(2, v[0]))] += p
    found = Counter(int(Cube(1, Fraction(1)).draw(1, source)[0]) for _ in range(trials))
    assert set(found) == {-2, -1, 0, 1, 2}
    expected = np.array([float(p) for p in law.values()])
    assert stats.chisquare([found[v] for v in law], expected * (trials / expected.sum())).pvalue > 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("odds", [0, 1, 4])
def test_what_is_cut_off_is_the_sum_with_the_whole_noise(odds, monkeypatch):
    """Noise that was cut off before the sum would tell neighbours apart with certainty."""
    monkeypatch.setattr(drawing_module, "CLIP", 8)
    monkeypatch.setattr(measuring_module, "LIMIT", 4)
    domain, n, rate, trials = Domain(["a"]), 4, Fraction(1, 2), 800
    plans = alternatives(Conjunctions(1).workload(domain), n=n, epsilon=rate, neighbours="replace-one")
    plan = next(plan for plan in plans if plan.method == "cube")
    law = Counter()
    for v, p in cube_law(1, rate, 80).items():
        law[max(-4, min(4, odds + v[0]))] += p
    rows, source = table(domain, (n - odds, odds)), SeededBits(3)
    found = Counter(int(measure(plan, rows, source).values[0]) for _ in range(trials))
    assert set(law) == set(range(-4, 5))
    expected = np.array([float(law[v]) for v in law])
    assert stats.chisquare([found[v] for v in law], expected * (trials / expected.sum())).pvalue > 1e-6


def test_geometric_noise_beyond_64_bits_is_whole_until_the_difference(monkeypatch):
    """Two halves that are both large must not cancel to 0 by being cut off alike."""
    monkeypatch.setattr(drawing_module, "CLIP", 4)
    source, trials, rate = SeededBits(4), 4000, Fraction(1, 8)
    found = Counter(Geometric(rate).draw(trials, source).tolist())
    law = Counter()
    for x in range(-400, 401):
        law[max(-4, min(4, x))] += exp(-abs(x) / 8)
    total = sum(law.values())
    pairs = [(found[x], trials * p / total) for x, p in law.items()]
    assert stats.chisquare(*np.array(pairs).T).pvalue > 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_each_part_gets_the_noise_of_its_share(relation):
    """What `measure` adds has the deviation that the plan states, part by part."""
    domain, trials, seen = Domain([*"abc"]), 80, set()
    rows, source = table(domain, (5, 3, 0, 2, 1, 1, 4, 4)), SeededBits(6)
    workloads = [queries.workload(domain) for queries in (Conjunctions(2), Marginals(3))]
    public = {"n": 20, "epsilon": Fraction(3, 4), "neighbours": relation}
    for plan in (plan for workload in workloads for plan in alternatives(workload, **public)):
        truth = counts(plan, rows)
        noise = np.array([measure(plan, rows, source).values - truth for _ in range(trials)])
        positions = np.cumsum([0, *(len(part.sets) or domain.size for part in plan.parts)])
        for part, first, last in zip(plan.parts, positions[:-1], positions[1:], strict=True):
            seen.add((part.law, len(plan.parts) > 1))
            if part.law == "cells":
                rate = float(plan.epsilon * part.share) / (2 if relation == "replace-one" else 1)
                stated = [sqrt(2 * exp(-rate)) / (1 - exp(-rate))] * domain.size
            else:
                halved = 2 if relation == "replace-one" else 1  # odd rows are half of a sum of signs
                stated = [part.deviations[len(some)] / halved for some in part.sets]
            found = noise[:, first:last].std(axis=0)
            ratios = found / np.array(stated)
            assert 0.6 < ratios.min() <= ratios.max() < 1.7  # half or twice the rate would be seen
    assert {("cube", True), ("cells", False), ("wishart", True), ("cells", True)} <= seen


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 8])
def test_uniform_integers(bound):
    found = outcomes(lambda source: tuple(uniform_integers(bound, 2, source).tolist()), 11)
    assert set(found) == set(product(range(bound), repeat=2))
    assert len(set(found.values())) == 1
    assert sum(found.values()) > 0.8


def test_coins_digit_by_digit(monkeypatch):
    monkeypatch.setattr(drawing_module, "DIGIT", 1)
    low, high = Fraction(123456, 10**6), Fraction(123457, 10**6)

    def enclosure(precision):
        return int(low * 2**precision), int(high * 2**precision) + 1 if precision < 50 else int(
            low * 2**precision
        )

    found = outcomes(lambda source: bool(coins(enclosure, 1, source)[0]), 12)
    assert low - Fraction(1, 2**12) <= found[True] <= low
    assert found[False] <= 1 - low


@pytest.mark.parametrize("rate", [Fraction(2), Fraction(3, 4)])
def test_two_sided_geometric_by_its_decision_tree(rate, monkeypatch):
    monkeypatch.setattr(drawing_module, "DIGIT", 1)
    found = outcomes(lambda source: int(Geometric(rate).draw(1, source)[0]), 11)
    q = naive.exp_minus(rate)
    for x, decided in found.items():
        assert decided <= (1 - q) / (1 + q) * q ** abs(x)
    assert sum(found.values()) > 0.45


@pytest.mark.parametrize("rate", [Fraction(2), Fraction(1, 2), Fraction(1, 20)])
def test_two_sided_geometric_has_its_law(rate):
    trials = 40_000
    found = Counter(Geometric(rate).draw(trials, SeededBits(4)).tolist())

    def law(r):
        q = exp(-r)
        return {x: (1 - q) / (1 + q) * q ** abs(x) for x in range(-600, 601)}

    assert p_value(found, law(float(rate)), trials) > 1e-6
    assert p_value(found, law(0.9 * float(rate)), trials) < 1e-6


@pytest.mark.parametrize("height", [60, 66, 200])
def test_two_sided_geometric_of_a_tiny_rate_is_whole(height):
    """Beyond the digits of a machine word: |X| rate is nearly exponential."""
    drawn = whole_geometric(Fraction(3, 1 << height), 2000, SeededBits(6))
    sizes = np.abs(drawn).astype(float) * 3 / 2.0**height
    assert stats.kstest(sizes, stats.expon.cdf).pvalue > 1e-6
    assert stats.kstest(1.2 * sizes, stats.expon.cdf).pvalue < 1e-6
    assert stats.binomtest(int((drawn > 0).sum()), 2000).pvalue > 1e-6


@pytest.mark.parametrize("count", [*range(1, 45), 64, 65, 256])
def test_shares_are_above_zero_and_add_up(count):
    """Fourteen shares of a fourteenth are five 64ths each when they are rounded: six too many."""
    for weights in ([1.0] * count, [1e9, *[1.0] * (count - 1)], [1 + i / count for i in range(count)]):
        shares = shares_of(weights)
        assert sum(shares) == 1
        assert min(shares) > 0


def test_a_parity_of_each_order_is_measured():
    """Shares of one plan once added up to 65/64, and one was -1/64."""
    names = [f"a{i}" for i in range(14)]
    domain = Domain(names)
    workload = Predicates([" ^ ".join(names[:k]) for k in range(1, 15)]).workload(domain)
    plan = planned(workload, n=10**9, epsilon=1, neighbours="replace-one")
    assert min(part.share for part in plan.parts) > 0
    bits = np.zeros((1, 14), dtype=np.uint8)
    rows = Rows.from_counts(domain, domain.decode(bits), [10**9])
    assert np.abs(measure(plan, rows, SeededBits(1)).values).max() < 10**5


def of_each_kind(plans):
    """One plan for each method and number of parts; shares do not matter."""
    return list({(plan.method, len(plan.parts)): plan for plan in plans}.values())


def histograms(cells, n):
    return naive.multisets(cells, n)


def neighbours(cells, histogram, relation):
    for i in range(cells):
        if relation == "add-remove":
            yield tuple(h + (c == i) for c, h in enumerate(histogram))
        elif histogram[i]:
            for j in range(cells):
                if i != j:
                    yield tuple(h - (c == i) + (c == j) for c, h in enumerate(histogram))


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("queries", [Conjunctions(1), Conjunctions(2), Parities(2, exactly=True)])
@pytest.mark.parametrize("valid", [None, "~(a & b & c)"])
def test_the_worst_loss_over_all_neighbours(relation, queries, valid):
    domain, n, epsilon = Domain([*"abc"], valid), 2, Fraction(3, 5)
    workload = queries.workload(domain)
    plans = alternatives(workload, n=n, epsilon=epsilon, neighbours=relation)
    assert all(sum(part.share for part in plan.parts) == 1 for plan in plans)
    for plan in of_each_kind(plans):
        tables = {h: table(domain, h) for m in (n, n + 1) for h in histograms(domain.size, m)}
        worst = max(
            loss(plan, tables[h], tables[other])
            for h in histograms(domain.size, n)
            for other in neighbours(domain.size, h, relation)
        )
        assert worst <= epsilon
        assert worst == epsilon or valid is not None


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_the_loss_is_that_of_the_law(relation):
    """Enumerate released vectors: log ratios of exp(-rate |z - counts|) over a box around the counts."""
    domain = Domain([*"ab"])
    workload = Conjunctions(2).workload(domain)
    one, other = (
        table(domain, (1, 0, 1, 0)),
        table(domain, (1, 0, 0, 1) if relation == "replace-one" else (1, 0, 1, 1)),
    )
    plans = alternatives(workload, n=2, epsilon=1, neighbours=relation)
    for plan in (plan for plan in plans if plan.method in ("cube", "cells")):
        here, there = counts(plan, one), counts(plan, other)

        def exponent(z, truth, plan=plan):
            gaps = [abs(a - b) for a, b in zip(z, truth.tolist(), strict=True)]
            if plan.method == "cells":
                return plan.rate(plan.parts[0]) * sum(gaps)
            positions, total = iter(gaps), Fraction(0)
            for part in plan.parts:
                total += plan.epsilon * part.share * max(next(positions) for _ in part.sets)
            return total

        box = product(
            *(range(min(a, b) - 1, max(a, b) + 2) for a, b in zip(here.tolist(), there.tolist(), strict=True))
        )
        ratios = [exponent(z, there) - exponent(z, here) for z in box]
        assert max(ratios) == loss(plan, one, other)


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_what_is_released_are_the_counts_with_noise(relation):
    domain = Domain([*"ab"])
    rows = table(domain, (3, 1, 0, 2))
    plans = alternatives(Conjunctions(2).workload(domain), n=6, epsilon=2, neighbours=relation)
    for plan in of_each_kind(plans):
        sets = [positions for part in plan.parts for positions in part.sets]
        truth = [signed(rows, s, relation) for s in sets]
        truth += [3, 1, 0, 2] if plan.parts[-1].law == "cells" else []
        assert counts(plan, rows).tolist() == truth
        source, trials = SeededBits(1), 60
        released = np.array([measure(plan, rows, source).values for _ in range(trials)])
        assert released.dtype == np.int64
        spread = np.abs(released - truth).mean(axis=0)
        assert (np.abs(np.median(released, axis=0) - truth) <= 1 + spread / 2).all()
        assert not measure(plan, rows, source).values.flags.writeable


def signed(rows, positions, relation):
    odds = sum(int(c) for row, c in zip(rows.bits(), rows.counts, strict=True) if odd(row, positions))
    return odds if relation == "replace-one" else rows.n - 2 * odds


def test_other_data_are_refused():
    domain = Domain([*"ab"])
    plan = planned(Conjunctions(2).workload(domain), n=6, epsilon=1, neighbours="replace-one")
    with pytest.raises(ValueError, match="another n"):
        measure(plan, table(domain, (1, 1, 1, 1)), SeededBits(1))
    with pytest.raises(ValueError, match="different domains"):
        measure(plan, table(Domain([*"xy"]), (3, 1, 1, 1)), SeededBits(1))
