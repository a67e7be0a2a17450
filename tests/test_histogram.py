"""Cells read by empirical Bayes: the posterior by its definition, the shape, and what is gained."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import nbinom

from queries import Conjunctions, Domain, Marginals, Rows
from smalldb.answers import histogram as histogram_module
from smalldb.answers import measure
from smalldb.answers.fitting import Estimates, combined, estimates, fit
from smalldb.answers.histogram import SHAPES, read
from smalldb.answers.shares import alternatives
from smalldb.randomness import SeededBits


@pytest.mark.parametrize("rate", [0.05, 0.7, 40.0])
@pytest.mark.parametrize("shape", [0.1, 1.0, 30.0])
def test_the_posterior_is_the_definition(rate, shape):
    from smalldb.kernels.posterior import posterior

    observed = np.array([-200, -3, 0, 1, 2, 40, 333, 2500])
    expected = np.array([0.3, 1e-9, 4.0, 1e-9, 7.5, 30.0, 2.0, 2480.0])
    means, variances = np.empty(8), np.empty(8)
    found = posterior(observed, expected, shape, rate, means, variances)
    h, total = np.arange(6000), 0.0
    for y, mean, first, second in zip(observed, expected, means, variances, strict=True):
        log_weights = nbinom.logpmf(h, shape, shape / (mean + shape)) - rate * np.abs(y - h)
        top = log_weights.max()
        weights = np.exp(log_weights - top)
        total += top + np.log(weights.sum())
        weights /= weights.sum()
        wanted = weights @ h
        assert abs(first - wanted) <= 1e-6 * (1 + wanted)
        assert abs(second - weights @ (h - wanted) ** 2) <= 1e-5 * (1 + second)
    assert abs(found - total) < 1e-6 * abs(total)


def test_the_likeliest_shape_is_climbed_to():
    generator = np.random.default_rng(1)
    expected = generator.gamma(1, 20, 3000)
    counts = generator.poisson(expected * generator.gamma(2.0, 0.5, 3000)) + generator.geometric(0.4, 3000)
    found = {histogram_module._likeliest(counts, expected, 0.5, start)[0] for start in (0, 4, 8)}
    assert len(found) == 1
    assert SHAPES[found.pop()] == 2.0


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
        both = [fit(plan, estimates(plan, measured))]
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
