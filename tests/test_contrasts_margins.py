"""Margins of contrasts and their safeguard: few digits, failures that add up, rates, what one row moves."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from math import exp, sqrt
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from builders import counted
from margins import ScriptedBits
from parities import alternatives, asked, columns_alone, estimated, exact, fitted, max_error, means, planned

from queries import Conjunctions, Domain, Marginals, Parities, Rows
from smalldb.exact.bits import SeededBits
from smalldb.exact.coins import Uniform
from smalldb.exact.normals import Normal
from smalldb.marginals.asks import Noisy, Worst
from smalldb.marginals.contrasts.parity_fit import fit, guarded_fit
from smalldb.noise import gaussian as gaussian_noise
from smalldb.noise import wishart as wishart_noise
from smalldb.noise.distributions import Geometric
from smalldb.noise.privacy_loss import Loss
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
    assert plan.replaced or plan.estimate(np.full(len(plan.sets), 1 << 60)).total == 1 << 40


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("sign", [1, -1])
def test_ends_hold_the_truth_where_noise_is_at_its_margins(relation, sign):
    """That of each parity at its part of one half of the failure, and the guard's at the other half."""
    failure, workload = Fraction(1, 20), Parities(3).workload(ABC)
    estimate = estimated(planned(workload, n=1500, epsilon=1, neighbours=relation), ROWS, SeededBits(1))
    (parities,), (guard,), plan = estimate.parities, estimate.guard, estimate.strategy

    def moved(measured, share):
        margins = [int(measured.margins(share)[len(some)]) for some in measured.sets]
        return measured._replace(values=exact(plan, ROWS, measured.sets) + sign * np.array(margins))

    shares = failure / 2 / len(plan.sets), failure / 2
    at_margins = [(moved(one, share),) for one, share in zip((parities, guard), shares, strict=True)]
    sums = replace(estimate, parities=at_margins[0], guard=at_margins[1]).sums_within(failure)
    true = workload.answers(ROWS) / workload.denominator
    assert (sums.low <= true + 1e-6).all() and (true <= sums.high + 1e-6).all()


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
    columns = columns_alone(Marginals(3).workload(ABC), **given)
    assert columns.noises[0][0].rate + columns.certifying == columns.loss.epsilon == 1


BOTH = pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])


def planted(d, n, seed, strength=0.9):
    """Correlated attributes, one of which is mostly the exclusive or of two others."""
    generator = np.random.default_rng(seed)
    bits = (generator.random((n, d)) < generator.uniform(0.2, 0.6, d)).astype(np.int64)
    for i in range(1, d, 2):
        bits[:, i] = np.where(generator.random(n) < 0.4, bits[:, i - 1], bits[:, i])
    bits[:, 3] = np.where(generator.random(n) < strength, bits[:, 0] ^ bits[:, d - 2], bits[:, 3])
    return pd.DataFrame(bits, columns=[f"a{i}" for i in range(d)])


def guarded(frame, neighbours="replace-one", epsilon=1):
    """The plan with a Wishart difference and a safeguard, and the rows."""
    domain = Domain(frame.columns)
    workload = Marginals(3, exactly=True).workload(domain)
    plan = planned(workload, n=len(frame), epsilon=epsilon, neighbours=neighbours)
    assert plan.guarded
    return plan, Rows.from_frame(domain, frame)


def error(plan, rows, seed):
    estimate = estimated(plan, rows, SeededBits(seed))
    return max_error(estimate, rows, estimate.rows(rows.n, None)), estimate


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize(("d", "n"), [(8, 1500), (12, 4000)])
def test_it_rescues_a_planted_interaction(d, n, neighbours):
    """A table with a planted three-way interaction, with and without."""
    plan, rows = guarded(planted(d, n, 5), neighbours)
    found, estimate = error(plan, rows, 1)
    assert estimate.guard[0].sets == ((0, 3, d - 2),)
    assert found < 0.4 * error(replace(plan, guarded=False), rows, 1)[0]


@BOTH
def test_its_share_is_part_of_epsilon(neighbours):
    plan, rows = guarded(planted(7, 1000, 2), neighbours, epsilon=Fraction(7, 5))
    rate, unit = Fraction(7, 100), 2 if neighbours == "replace-one" else 1
    assert plan.triples == tuple(combinations(range(7), 3))
    assert plan.guarding == rate and plan.measuring == Fraction(7, 5) * Fraction(9, 10)
    guard = estimated(plan, rows, SeededBits(1)).guard[0]
    assert guard.noise == Geometric(rate)
    assert guard.deviations == {3: pytest.approx(unit * sqrt(2 * exp(-0.07)) / (1 - exp(-0.07)))}
    parts = Loss.pure(plan.measuring), Loss.ranged(rate), Loss.geometric(rate, 1)
    assert plan.loss == parts[0].together(parts[1]).together(parts[2])
    assert plan.loss.epsilon == Fraction(7, 5)


def test_it_is_there_only_where_it_would_be_heard():
    def guards(n, epsilon, workload=None, d=7, delta=None):
        workload = (workload or Marginals(3)).workload(Domain([f"a{i}" for i in range(d)]))
        given = {"n": n, "epsilon": epsilon, "neighbours": "replace-one", "delta": delta}
        return [plan.guarded for plan in alternatives(workload, **given)]

    assert guards(10_000, 1) == [True]
    assert guards(30_000, Fraction(1, 10), d=14) == [True]
    assert guards(300, 1) == [False]  # noise would choose
    assert guards(10_000, Fraction(1, 100)) == [False]
    assert guards(10_000, 1, Conjunctions(2)) == [False]  # no order 3
    assert guards(10_000, 1, d=21) == [False]  # no table of 2^d cells to predict from
    assert guards(10_000, 1, delta="1e-6") == [True, False, False, False]


@BOTH
def test_it_asks_for_what_moves_by_one_row_at_its_rate(neighbours):
    """At the door, on neighbours: choice and noise are for counts that move by 1; rates add up."""
    plan, rows = guarded(planted(5, 2000, 3), neighbours, epsilon=4)
    counts, moved = rows.histogram(), 0
    for gone, new in [(0, 31), (3, 4), (7, 24), (31, 1)]:
        other = counts.copy()
        other[new] += 1
        other[gone] -= neighbours == "replace-one"
        table = counted(rows.domain, other)
        asks = asked(plan, rows, table, SeededBits(1))
        assert [type(ask) for ask, _, _ in asks] == [Noisy, Worst, Noisy]
        _, choice, noise = [ask for ask, _, _ in asks]
        for _, one, two in asks[1:]:
            moved = max(moved, np.abs(one - two).max())
            assert np.abs(one - two).max() <= choice.moved == 1
        lost = [ask.lost(plan.replaced, 1).epsilon for ask, _, _ in asks]
        assert lost[1:] == [choice.epsilon, noise.noises[0][0].rate] == [plan.guarding] * 2
        assert sum(lost) == plan.epsilon
    assert moved == 1


@pytest.mark.parametrize(("neighbours", "guess"), [("replace-one", 3000), ("add-remove", 900)])
def test_predictions_are_the_counts_of_the_fit(neighbours, guess):
    """By the sum over cells; of as many rows as were released, however wrong the public guess was."""
    frame = planted(6, 3000, 8)
    plan, _ = guarded(frame.head(guess), neighbours, epsilon=8)
    rows = Rows.from_frame(plan.domain, frame)
    estimate = estimated(plan, rows, SeededBits(1))
    q = fitted(estimate).q
    odd = rows.domain.table()[:, np.array(plan.triples)].sum(axis=2) % 2
    assert abs(estimate.total - 3000) < 60
    wanted = estimate.total * (q @ odd if plan.replaced else q @ (1 - 2.0 * odd))
    assert np.abs(estimate.predicted(plan.triples) - wanted).max() <= 0.5 + 1e-6
    assert np.abs(wanted).max() > 100


def test_what_was_predicted_is_left_alone():
    """Independent attributes hold no surprise: the fit is that to the first stage."""
    generator = np.random.default_rng(1)
    frame = pd.DataFrame(generator.integers(0, 2, (3000, 8)), columns=[f"a{i}" for i in range(8)])
    plan, rows = guarded(frame)
    estimate = estimated(plan, rows, SeededBits(2))
    (guard,), found = estimate.guard, means(estimate)
    position = plan.spectrum.ranks[guard.sets[0]]
    assert found.chi[position] == (3000 - 2 * int(guard.values[0])) / 3000
    assert np.isfinite(found.deviations[position])
    with_guard = guarded_fit(plan, estimate.means(*estimate.parities), estimate.means(guard), found)
    np.testing.assert_array_equal(with_guard.q, fitted(estimate).q)


@BOTH
def test_its_margin_is_the_least_for_its_half_of_the_failure(neighbours):
    """Of geometric noise of rate 1/20."""
    plan, rows = guarded(planted(7, 3000, 4), neighbours)
    guard = estimated(plan, rows, SeededBits(1)).guard[0]
    margin = int(guard.margins(Fraction(1, 20))[3])
    weights = np.exp(-np.arange(2000) / 20)
    weights[1:] *= 2
    assert weights[margin + 1 :].sum() <= weights.sum() / 20 < weights[margin:].sum()


def released(seed, d=8, n=3000):
    """A plan with a safeguard, and what is released of a table that a seed makes; predictions see a part."""
    domain = Domain([f"a{i}" for i in range(d)])
    workload = Marginals(3, exactly=True).workload(domain)
    plan = planned(workload, n=n, epsilon=1, neighbours="replace-one")
    assert plan.guarded
    rows = Rows.from_codes(domain, np.random.default_rng(seed).integers(0, 2, (n, d)).astype(np.uint8))
    (noise, many), *_ = plan.noises
    return plan, exact(plan, rows) + noise.draw(many, SeededBits(seed))


def floats(plan, values):
    """The fitted means before they are rounded, and the rounded predictions."""
    estimate = plan.estimate(values)
    means = fit(plan, estimate.means(*estimate.parities)).chi
    return means.tobytes().hex(), estimate.predicted(plan.triples).tolist()


def test_predictions_depend_on_released_integers_alone():
    """The same floats to the last bit, wherever the integers lie in memory and whatever was allocated."""
    plan, values = released(1)
    expected, held = floats(plan, values), []
    for offset in range(1, 8):
        raw = np.zeros(8 * len(values) + 64, dtype=np.uint8)
        moved = raw[offset : offset + 8 * len(values)].view(np.int64)
        moved[:] = values
        held.append(np.random.default_rng(offset).random(10 ** (offset % 5)))
        assert floats(plan, moved) == expected
        strided = np.zeros(3 * len(values), dtype=np.int64)[::3]
        strided[:] = values
        assert floats(plan, strided) == expected
    other = values.copy()
    other[0] += 1
    assert floats(plan, other)[0] != expected[0]


@pytest.mark.slow
def test_predictions_do_not_depend_on_threads_or_the_allocator():
    here = Path(__file__).parent
    code = "import json, test_contrasts_margins as t; print(json.dumps(t.floats(*t.released(2))))"
    other = {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2", "NUMBA_NUM_THREADS": "2"}
    other |= {"PYTHONMALLOC": "malloc", "MALLOC_PERTURB_": "171", "MALLOC_TOP_PAD_": "1000003"}
    path = os.pathsep.join([str(here), str(here.parent)])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path, **other},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == [*floats(*released(2))]
