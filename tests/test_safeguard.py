"""The safeguard: the parity of order 3 that is predicted worst, chosen and measured exactly."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import exp, sqrt

import numpy as np
import pandas as pd
import pytest
from parity_bounds import bound, planned
from scipy.stats import chisquare
from smalldb.marginals.contrasts.maximum_entropy import fit, guarded_fit, predicted
from smalldb.marginals.contrasts.parity_bound import _parity_intervals
from smalldb.marginals.contrasts.parity_means import NoisyParities, estimates, pieces
from smalldb.marginals.contrasts.parity_plan import alternatives
from smalldb.marginals.contrasts.part_list import Wishart

from queries import Conjunctions, Domain, Marginals, Rows
from smalldb.exact.bits import SeededBits
from smalldb.marginals.contrasts import loss, measure, synthesise
from smalldb.marginals.contrasts import parity_measurement as measuring

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
    plans = alternatives(workload, n=len(frame), epsilon=epsilon, neighbours=neighbours)
    (plan,) = [plan for plan in plans if plan.safeguard is not None]
    return plan, Rows.from_frame(domain, frame)


def error(plan, rows, seed):
    measured = measure(plan, rows, SeededBits(seed))
    made = Rows.from_bits(rows.domain, synthesise(plan, measured, rows.n))
    unit = plan.workload.denominator * rows.n
    return np.abs(plan.workload.answers(made) - plan.workload.answers(rows)).max() / unit, measured


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize(("d", "n"), [(8, 1500), (12, 4000)])
def test_it_rescues_a_planted_interaction(d, n, neighbours):
    """A table with a planted three-way interaction, with and without."""
    plan, rows = guarded(planted(d, n, 5), neighbours)
    whole = Wishart.of(plan.setting, Fraction(1))
    found, measured = error(plan, rows, 1)
    assert plan.safeguard.sets[measured.values[-2]] == (0, 3, d - 2)
    assert found < 0.4 * error(replace(plan, parts=(whole,)), rows, 1)[0]


@BOTH
def test_its_share_is_part_of_epsilon(neighbours):
    plan, rows = guarded(planted(7, 1000, 2), neighbours, epsilon=Fraction(7, 5))
    assert [part.law for part in plan.parts] == ["wishart", "safeguard"]
    assert sum(part.share for part in plan.parts) == 1
    assert plan.safeguard.sets == tuple(combinations(range(7), 3))
    assert plan.method == "wishart"
    unit, q = 2 if neighbours == "replace-one" else 1, exp(-7 / 100)
    assert plan.safeguard.deviations == {3: pytest.approx(unit * sqrt(2 * q) / (1 - q))}
    other = Rows.from_frame(rows.domain, planted(7, 1000, 3))
    moved = int(np.abs(rows.histogram() - other.histogram()).sum())
    assert loss(plan, rows, other) == plan.epsilon * (moved // 2 if neighbours == "replace-one" else moved)


def test_it_is_there_only_where_it_would_be_heard():
    frame = planted(7, 300, 2)

    def laws(n, epsilon, workload=None, d=7):
        domain = Domain([f"a{i}" for i in range(d)])
        workload = (workload or Marginals(3)).workload(domain)
        plans = alternatives(workload, n=n, epsilon=epsilon, neighbours="replace-one")
        return {part.law for plan in plans for part in plan.parts}

    assert "safeguard" in laws(10_000, 1)
    assert "safeguard" not in laws(300, 1)  # noise would choose
    assert "safeguard" not in laws(10_000, Fraction(1, 100))
    assert "safeguard" not in laws(10_000, 1, Conjunctions(2))  # no order 3
    assert "safeguard" not in laws(10_000, 1, d=21)  # no table of 2^d cells to predict from
    assert len(frame) == 300


def drawn(sums, plan, times, guess):
    """Choices and noise of the second stage, many times, with predictions given."""
    source = SeededBits(7)
    made = [plan.safeguard.draw(plan.setting, sums, source, lambda: guess) for _ in range(times)]
    return np.array(made)


def chances(sums, guess, rate):
    """How likely each set is to be chosen, by the definition of the exponential mechanism."""
    weights = np.exp(rate * np.abs(sums - guess) / 2)
    return weights / weights.sum()


@pytest.mark.slow
def test_the_law_of_the_second_stage(monkeypatch):
    plan, _ = guarded(planted(4, 2000, 1), epsilon=16)
    rate = float(plan.rate(plan.safeguard))
    assert rate == 16 * 0.05
    # three sets are predicted equally badly, two equally well
    sums, guess = np.array([1000, 1003, 996, 1001, 1006, 996, 1001]), np.full(7, 1001)
    made = drawn(sums, plan, 4000, guess)
    chosen = np.bincount(made[:, 0], minlength=7)
    assert chisquare(chosen, 4000 * chances(sums, guess, rate)).pvalue > 1e-4
    assert chisquare(chosen, 4000 * chances(sums, guess, 1.3 * rate)).pvalue < 1e-4
    noise = np.clip(made[:, 1] - sums[made[:, 0]], -5, 5)
    law = np.exp(-rate * np.abs(np.arange(-5, 6)))
    law[[0, -1]] /= 1 - np.exp(-rate)
    observed = np.array([Counter(noise.tolist())[v] for v in range(-5, 6)])
    assert chisquare(observed, 4000 * law / law.sum()).pvalue > 1e-4
    wrong = np.exp(-1.3 * rate * np.abs(np.arange(-5, 6)))
    assert chisquare(observed, 4000 * wrong / wrong.sum()).pvalue < 1e-4


@pytest.mark.parametrize(("neighbours", "guess"), [("replace-one", 3000), ("add-remove", 900)])
def test_predictions_are_the_counts_of_the_fit(neighbours, guess):
    """By the sum over cells; of as many rows as were released, however wrong the public guess was."""
    frame = planted(6, 3000, 8)
    plan, _ = guarded(frame.head(guess), neighbours, epsilon=8)
    rows = Rows.from_frame(plan.workload.domain, frame)
    measured = measure(plan, rows, SeededBits(1))
    q = fit(plan, estimates(plan, measured, plan.unguarded)).q
    odd = rows.domain.table()[:, np.array(plan.safeguard.sets)].sum(axis=2) % 2
    total = 3000 if plan.replaced else int(measured.values[0])
    assert abs(total - 3000) < 60
    wanted = total * (q @ odd if plan.replaced else q @ (1 - 2.0 * odd))
    assert np.abs(predicted(plan, measured, plan.safeguard.sets) - wanted).max() <= 0.5 + 1e-6
    assert np.abs(wanted).max() > 100


@BOTH
def test_the_second_stage_costs_its_share_at_most(neighbours):
    """Choice and noise by their definitions, for some neighbours, given the first stage."""
    plan, rows = guarded(planted(5, 2000, 3), neighbours, epsilon=4)
    sets, rate = len(plan.safeguard.sets), float(plan.rate(plan.safeguard))
    measured = measure(plan, rows, SeededBits(1))
    guess = predicted(plan, measured, plan.safeguard.sets)

    def law(counts):
        table = Rows.from_counts(rows.domain, rows.domain.decode(rows.domain.table()), counts)
        sums = measuring.counts(plan, table)[-sets:]
        values = np.arange(sums.min() - 3, sums.max() + 4)
        noise = -rate * np.abs(values - sums[:, None])
        return np.log(chances(sums, guess, rate))[:, None] + noise, values

    counts = rows.histogram()
    first, values = law(counts)
    for gone, new in [(0, 31), (3, 4), (7, 24), (31, 1)]:
        moved = counts.copy()
        moved[new] += 1
        if neighbours == "replace-one":
            assert moved[gone] > 0
            moved[gone] -= 1
        second, others = law(moved)
        common = slice(max(values[0], others[0]), min(values[-1], others[-1]))
        one = first[:, (values >= common.start) & (values <= common.stop)]
        other = second[:, (others >= common.start) & (others <= common.stop)]
        share = float(plan.epsilon * plan.safeguard.share)
        assert np.abs(one - other).max() <= share + 1e-9
        assert np.abs(one - other).max() > share / 3  # so half a rate too much would be seen


def test_what_was_predicted_is_left_alone():
    """Independent attributes hold no surprise: the fit is that to the first stage."""
    generator = np.random.default_rng(1)
    frame = pd.DataFrame(generator.integers(0, 2, (3000, 8)), columns=[f"a{i}" for i in range(8)])
    plan, rows = guarded(frame)
    measured = measure(plan, rows, SeededBits(2))
    chosen, value = pieces(plan, measured.values)[-1].tolist()
    found = estimates(plan, measured)
    position = plan.spectrum.sets.index(plan.safeguard.sets[chosen])
    assert found.chi[position] == (3000 - 2 * value) / 3000
    assert np.isfinite(found.deviations[position])
    alone = replace(plan, parts=plan.unguarded)
    first = guarded_fit(alone, replace(measured, values=measured.values[:-2]))
    np.testing.assert_array_equal(guarded_fit(plan, measured).q, first.q)


@pytest.mark.slow
@BOTH
def test_the_bound_holds_and_knows_it(neighbours):
    plan, rows = guarded(planted(7, 3000, 4), neighbours)
    for seed in range(5):
        found, measured = error(plan, rows, seed)
        bits = synthesise(plan, measured, rows.n)
        assert found <= bound(plan, measured, bits, Fraction(1, 20))


@BOTH
def test_its_margin_is_the_least_for_its_half_of_the_failure(neighbours):
    """Of geometric noise of rate 1/20; a sum of signs moves by 2 with an odd count."""
    plan, rows = guarded(planted(7, 3000, 4), neighbours)
    values = measure(plan, rows, SeededBits(1)).values
    position = plan.spectrum.sets.index(plan.safeguard.sets[values[-2]])
    low, high = _parity_intervals(plan, NoisyParities(values), Fraction(1, 10), 10**6)
    found = int(high[position] - low[position]) // 2
    margin, odd = divmod(found, 2) if plan.replaced else (found, 0)
    weights = np.exp(-np.arange(2000) / 20)
    weights[1:] *= 2
    assert odd == 0
    assert weights[margin + 1 :].sum() <= weights.sum() / 20 < weights[margin:].sum()


def test_a_plan_for_three_way_tables_has_it_by_default():
    domain = Domain([f"a{i}" for i in range(14)])
    plan = planned(Marginals(3).workload(domain), n=30_000, epsilon=Fraction(1, 10), neighbours="replace-one")
    assert plan.safeguard is not None
