"""Cells read by empirical Bayes: the posterior by its definition, the shape, and what is gained."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp

import smalldb
from queries import Conjunctions, Domain, Marginals, Rows
from smalldb.exact.bits import SeededBits
from smalldb.kernels import posterior as kernel
from smalldb.kernels.posterior import posterior
from smalldb.marginals.contrasts import measure
from smalldb.marginals.contrasts import posterior_cells as histogram_module
from smalldb.marginals.contrasts.maximum_entropy import fit
from smalldb.marginals.contrasts.parity_means import (
    Estimates,
    Measured,
    combined,
    estimates,
    pieces,
    released_total,
)
from smalldb.marginals.contrasts.parity_plan import alternatives
from smalldb.marginals.contrasts.posterior_cells import Model, read
from smalldb.marginals.estimate.newton import newton


@pytest.mark.parametrize("rate", [0.05, 0.7, 40.0])
@pytest.mark.parametrize("shape", [0.1, 1.0, 30.0])
def test_the_posterior_is_the_definition(rate, shape):
    observed = np.array([-200, -3, 0, 1, 2, 40, 333, 2500, 12])
    expected = np.array([0.3, 1e-9, 4.0, 1e-9, 7.5, 30.0, 2.0, 2480.0])
    # the last is tilted so far that without the noise there were no sum
    log_decays = np.append(np.log(expected / (expected + shape)), rate / 2)
    means, variances = np.empty(9), np.empty(9)
    found = posterior(observed, log_decays, shape, rate, means, variances)
    h, total = np.arange(6000), 0.0
    ways = gammaln(h + shape) - gammaln(shape) - gammaln(h + 1)
    for y, log_decay, first, second in zip(observed, log_decays, means, variances, strict=True):
        log_weights = ways + h * log_decay - rate * np.abs(y - h)
        top = log_weights.max()
        weights = np.exp(log_weights - top)
        total += top + np.log(weights.sum())
        weights /= weights.sum()
        wanted = weights @ h
        assert abs(first - wanted) <= 1e-6 * (1 + wanted)
        assert abs(second - weights @ (h - wanted) ** 2) <= 1e-5 * (1 + second)
    assert abs(found - total) < 1e-6 * abs(total)


@pytest.mark.parametrize("shape", [0.1, 2.0])
def test_a_large_count_is_as_clear_as_its_noise(shape):
    """Around 10^8 the prior is flat: what is left is the noise; 10^15 steps from 0 would not end."""
    observed, rate = np.array([10**8, 10**15]), 0.4
    means, variances = np.empty(2), np.empty(2)
    posterior(observed, np.log(observed / (observed + shape)), shape, rate, means, variances)
    np.testing.assert_allclose(means - observed, 0, atol=0.2)
    np.testing.assert_allclose(variances, 2 * np.exp(-rate) / np.expm1(-rate) ** 2, rtol=1e-6)


def test_a_posterior_without_a_sum_is_infinite():
    one = np.empty(1)
    assert posterior(np.array([3]), np.array([0.5]), 1.0, 0.5, one, one.copy()) == np.inf
    assert posterior(np.array([3]), np.array([np.nan]), 1.0, 0.5, one, one.copy()) == np.inf


def test_the_likeliest_shape_is_climbed_to():
    generator = np.random.default_rng(1)
    expected = generator.gamma(1, 20, 3000)
    for shape in (0.2, 2.0, 100.0):
        counts = generator.poisson(expected * generator.gamma(shape, 1 / shape, 3000))
        counts += generator.geometric(0.4, 3000) - generator.geometric(0.4, 3000)
        assert histogram_module._likeliest(counts, np.log(expected), -np.log(0.6)) == shape


def small_model():
    """Three attributes, cells and two parities beside them."""
    return Model(
        Domain(["a", "b", "c"], "a | b | c"),
        counts=np.array([5, -2, 9, 0, 1, 14, 3]),
        rate=0.4,
        shape=2.0,
        codes=np.array([0, 1, 2, 4, 3]),
        spread=np.array([10.0, 0.6, 0.6, 0.6, 0.2]),
        beside=np.array([0, 4, 3]),
        sums=np.array([25.0, -3.0, 4.0]),
        noise=np.array([0.25, 9.0, 16.0]),
    )


def signs(model, codes):
    """chi_S of each cell that can exist, shape (N, K)."""
    cells = model.domain.cells().tolist()
    return np.array([[(-1) ** (x & code).bit_count() for code in codes.tolist()] for x in cells])


def defined_tilt(model, log_decays, tilt):
    """The objective of `tilted`, by its definition."""
    h, value = np.arange(150), 0.0
    for y, log_decay in zip(model.counts, log_decays + signs(model, model.beside) @ tilt, strict=True):
        ways = gammaln(h + model.shape) - gammaln(model.shape) - gammaln(h + 1)
        value += logsumexp(ways + h * log_decay - model.rate * np.abs(y - h))
    return value - tilt @ model.sums + model.noise @ tilt**2 / 2


def test_counts_are_tilted_towards_the_sums_beside_them():
    model, generator = small_model(), np.random.default_rng(3)
    log_decays = np.log(generator.uniform(0.3, 0.9, 7))
    best = minimize(lambda tilt: defined_tilt(model, log_decays, tilt), np.zeros(3), tol=1e-12)
    start = model.tilted(log_decays, np.zeros(3))
    assert abs(start.value - defined_tilt(model, log_decays, np.zeros(3))) < 1e-9
    found = newton(lambda tilt: model.tilted(log_decays, tilt), start, 1e-7)
    np.testing.assert_allclose(found.place, best.x, atol=1e-4)
    # what is left of a sum is its noise times the tilt
    left = model.sums - signs(model, model.beside).T @ found.found[0]
    np.testing.assert_allclose(left, model.noise * found.place, atol=1e-5)


def test_slopes_and_curvatures_are_those_of_the_values():
    model, generator = small_model(), np.random.default_rng(4)
    theta, step = generator.normal(0, 0.3, 5), 1e-4
    log_decays, tilt = np.log(generator.uniform(0.3, 0.9, 7)), generator.normal(0, 0.05, 3)
    for function, place in (
        (lambda t: model.expected(t, np.zeros(3)), theta),
        (lambda t: model.tilted(log_decays, t), tilt),
    ):
        now, moves = function(place), np.eye(len(place)) * step
        slope = [(function(place + m).value - function(place - m).value) / (2 * step) for m in moves]
        np.testing.assert_allclose(now.slope, slope, rtol=1e-3, atol=1e-2)
    curvature = [(function(place + m).slope - function(place - m).slope) / (2 * step) for m in moves]
    np.testing.assert_allclose(now.curvature(), curvature, rtol=1e-5, atol=1e-5)
    assert (np.linalg.eigvalsh(model.expected(theta, np.zeros(3)).curvature()) > 0).all()


@pytest.mark.slow
def test_expected_counts_are_the_likeliest():
    model = small_model()

    def density(theta):
        """Minus the logarithm of prior times what was seen, the counts integrated out, by definition."""
        logs = signs(model, model.codes) @ theta
        sizes = np.exp(logs)
        log_decays = np.log(sizes / (sizes + model.shape))
        seen = minimize(lambda tilt: defined_tilt(model, log_decays, tilt), np.zeros(3), tol=1e-10).fun
        none = model.shape * np.log(model.shape / (sizes + model.shape)).sum()
        return -seen - none + ((theta / model.spread) ** 2).sum() / 2

    start = np.array([1.0, 0, 0, 0, 0])
    assert abs(model.expected(start, np.zeros(3)).value - density(start)) < 1e-4
    found = newton(lambda theta: model.expected(theta, np.zeros(3)), model.expected(start, np.zeros(3)), 1e-5)
    assert np.abs(found.slope).max() < 1e-3
    for move in np.eye(5)[[0, 2, 4]] * 0.02:
        assert density(found.place + move) > density(found.place) < density(found.place - move)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_what_was_measured_beside_cells_is_read_with_its_noise(neighbours):
    """Sums of signs and their variances; the rows are those released, or public but for a half."""
    frame = planted(7, 900, 2)
    rows = Rows.from_frame(Domain(frame.columns), frame)
    # a public guess of n that is wrong by far
    n = 900 if neighbours == "replace-one" else 300
    plans = alternatives(Marginals(3).workload(rows.domain), n=n, epsilon=8, neighbours=neighbours)
    plan = next(p for p in plans if p.method == "both")
    measured = measure(plan, rows, SeededBits(1))
    total = released_total(plan, measured)
    codes, sums, variances = histogram_module._beside(plan, measured, total)
    assert codes.tolist() == [0, *(sum(1 << (6 - i) for i in s) for s in plan.parts[0].sets if s)]
    values, noise = pieces(plan, measured.values)[0], plan.parts[0].deviations
    wanted = [900, *(900 - 2 * values)] if plan.replaced else values
    np.testing.assert_allclose(sums, wanted, rtol=1e-9)
    deviations = [0.5 if plan.replaced else noise[0], *(noise[len(s)] for s in plan.parts[0].sets if s)]
    np.testing.assert_allclose(variances, np.square(deviations), rtol=1e-9)


def test_estimates_are_averaged_by_their_precision():
    one = Estimates(np.array([0.2, 0.5, 0.0]), np.array([0.1, 0.3, np.inf]))
    two = Estimates(np.array([0.6, 0.0, 0.0]), np.array([0.2, np.inf, np.inf]))
    both = combined([one, two])
    np.testing.assert_allclose(both.chi, [0.28, 0.5, 0])
    np.testing.assert_allclose(both.deviations, [(1 / 125) ** 0.5, 0.3, np.inf])


def planted(d, n, seed):
    """Skewed attributes in pairs, and one that is mostly the exclusive or of two others."""
    generator = np.random.default_rng(seed)
    bits = (generator.random((n, d)) < generator.uniform(0.05, 0.5, d)).astype(np.int64)
    bits[:, 3] = np.where(generator.random(n) < 0.8, bits[:, 0] ^ bits[:, 6], bits[:, 3])
    for i in range(1, d, 2):
        bits[:, i] = np.where(generator.random(n) < 0.5, bits[:, i - 1], bits[:, i])
    return pd.DataFrame(bits, columns=[f"a{i}" for i in range(d)])


def three_way_errors(method, valid=None):
    frame = planted(9, 4000, 1)
    if valid is not None:
        frame = frame[(frame.a0 & frame.a1) == 0]
    domain = Domain(frame.columns, valid)
    rows, workload = Rows.from_frame(domain, frame), Marginals(3, exactly=True).workload(domain)
    plans = alternatives(workload, n=len(frame), epsilon=1, neighbours="replace-one")
    plan = max((p for p in plans if p.method == method), key=lambda p: p.parts[0].share)
    truth, found = rows.histogram() / rows.n, []
    for seed in range(3):
        measured = measure(plan, rows, SeededBits(seed))
        both = [fit(plan, estimates(plan, measured, plan.unguarded)).q]
        both += [read(plan, measured)] if plan.parts[-1].law == "cells" else []
        matrix = workload.matrix() / workload.denominator
        found.append([np.abs(matrix @ (q[domain.cells()] - truth)).max() for q in both])
    return np.mean(found, axis=0), both[-1]


def test_cells_beside_a_wishart_difference_find_what_order_two_misses():
    """A table with a planted three-way interaction, with and without cells."""
    (without,), _ = three_way_errors("wishart")
    (_, both), _ = three_way_errors("both")
    assert both < 0.7 * without


def test_reading_beats_the_fit_of_noisy_cells():
    (fitted, found), q = three_way_errors("cells")
    assert found < 0.9 * fitted
    assert abs(q.sum() - 1) < 1e-9
    assert (q >= 0).all()


def test_nothing_is_read_into_cells_that_cannot_exist():
    (_, found), q = three_way_errors("both", "~(a0 & a1)")
    domain = Domain([f"a{i}" for i in range(9)], "~(a0 & a1)")
    assert q[np.setdiff1d(np.arange(512), domain.cells())].sum() == 0
    assert found < 0.04


def test_a_reading_without_noise_is_the_histogram():
    frame = planted(7, 900, 2)
    domain = Domain(frame.columns)
    rows = Rows.from_frame(domain, frame)
    plans = alternatives(Conjunctions(2).workload(domain), n=900, epsilon=2**12, neighbours="add-remove")
    plan = next(p for p in plans if p.method == "cells")
    q = read(plan, measure(plan, rows, SeededBits(1)))
    np.testing.assert_allclose(q, rows.histogram() / 900, atol=1e-6)


def test_a_table_without_rows_is_read():
    """Under add-remove, and with noise that hides nothing: every posterior mean is 0."""
    frame = pd.DataFrame(np.zeros((0, 4), dtype=np.int64), columns=[*"abcd"])
    given = {
        "epsilon": 32,
        "rows": 16,
        "neighbours": "add-remove",
        "n_max": 256_611,
        "mechanism": "marginals",
        "strategy": "contrasts",
    }
    made = smalldb.release(frame, Marginals(3), rng=1, **given)
    assert made.plan.chosen.strategy.parities.method == "cells"
    assert len(made.data.drop_duplicates()) == 16


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["largest", "heavy", "alternating"])
def test_hostile_integers_are_read_in_bounded_work(monkeypatch, kind):
    """Whatever integers were released, a reading looks at so many places, a public number."""
    domain = Domain([f"a{i}" for i in range(6)])
    plans = alternatives(Marginals(3).workload(domain), n=1000, epsilon=1, neighbours="add-remove")
    seen = []
    monkeypatch.setattr(kernel, "posterior", lambda *given: seen.append(1) or posterior(*given))
    for plan in plans:
        if plan.cells is None:
            continue
        size = sum(domain.size if part is plan.cells else len(part.sets) for part in plan.parts)
        values = {
            "largest": np.full(size, 1 << 60),
            "heavy": (np.random.default_rng(1).pareto(0.3, size) * 1000).clip(0, 1 << 60),
            "alternating": (1 << 60) * (-1) ** np.arange(size),
        }[kind]
        seen.clear()
        table = read(plan, Measured(values.astype(np.int64)))
        assert np.isfinite(table).all()
        assert 0 < len(seen) <= 51 * 52 + 20
