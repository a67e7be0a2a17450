"""What other mechanisms promise: the formulas once more, and their lemma."""

import math

import numpy as np
import pytest

from smalldb import bounds

SIZES = {"n": 10**5, "cells": 1024, "queries": 1000, "epsilon": 1, "beta": "0.05"}
BOTH = [bounds.mwem, bounds.private_multiplicative_weights]


def written_out(n, cells, queries, epsilon, beta, rounds):
    """Both errors in floats, from the scales of the noise."""
    each = epsilon / (2 * rounds)

    def learned(noise):
        return math.sqrt(4 * math.log(cells) / rounds + (noise / n) ** 2)

    selected = 2 / each * math.log(queries * 2 * rounds / beta)
    mwem = learned(math.log(2 * rounds / beta) / each) + selected / n
    compared = 2 / each * math.log(3 * rounds / beta) + 4 / each * math.log(3 * (queries + rounds) / beta)
    return mwem, learned(math.log(3 * rounds / beta) / each) + 2 * compared / n


@pytest.mark.parametrize("rounds", [1, 7, 400])
@pytest.mark.parametrize("n, cells, queries", [(100, 2, 1), (10**6, 2**20, 5000)])
def test_the_formulas(rounds, n, cells, queries):
    given = {"n": n, "cells": cells, "queries": queries, "epsilon": 0.5, "beta": 0.01, "rounds": rounds}
    for method, expected in zip(BOTH, written_out(**given), strict=True):
        assert method(**given) == pytest.approx(expected, rel=1e-12)
        assert method(**given) >= expected * (1 - 1e-14)


@pytest.mark.parametrize("method", BOTH)
def test_the_best_rounds(method):
    least = min(method(rounds=rounds, **SIZES) for rounds in range(1, 300))
    assert method(**SIZES) == least
    assert method(**SIZES | {"cells": 1}) == 0 == method(**SIZES | {"queries": 0})
    with pytest.raises(ValueError, match="rounds"):
        method(rounds=0, **SIZES)


def test_a_measured_query_brings_the_distance_down():
    rng = np.random.default_rng(3)
    for _ in range(2000):
        a, b = rng.dirichlet(np.full(5, 0.3), size=2) + 1e-9
        a, b, q = a / a.sum(), b / b.sum(), rng.integers(0, 2, 5)
        noise = rng.uniform(-1, 1)
        gap = q @ b - q @ a
        moved = a * np.exp(q * (q @ b + noise - q @ a) / 2)
        fall = (b * np.log(moved / moved.sum() / a)).sum()
        assert fall >= (gap**2 - noise**2) / 4 - 1e-12


@pytest.mark.parametrize("beta", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("queries", [1, 2, 300])
def test_the_tail_of_noise_on_answers_is_exact(queries, beta):
    found = bounds.laplace_answers_tail(n=50, queries=queries, epsilon=2, beta=beta)
    scale = queries / 100
    assert (1 - math.exp(-found / scale)) ** queries == pytest.approx(1 - beta, rel=1e-12)
    assert bounds.laplace_answers_tail(n=50, queries=0, epsilon=2, beta=beta) == 0


def test_the_tail_of_noise_on_many_answers():
    given = {"n": 1, "queries": 10**60, "epsilon": 1, "beta": "1e-9"}
    assert bounds.laplace_answers_tail(**given) == pytest.approx(10**60 * math.log(1e69), rel=1e-12)


def test_the_tail_of_noise_on_cells_holds():
    rng = np.random.default_rng(9)
    queries = rng.integers(0, 2, (30, 16))
    support = int(queries.sum(axis=1).max())
    given = {"n": 100, "cells": 16, "queries": 30, "epsilon": 1, "support": support}
    errors = np.abs(rng.laplace(scale=2, size=(4000, 16)) @ queries.T).max(axis=1) / 100
    assert errors.mean() <= bounds.laplace_histogram(**given) <= 4 * errors.mean()
    for beta in (0.5, 0.05, 0.01):
        found = bounds.laplace_histogram_tail(beta=beta, **given)
        assert np.quantile(errors, 1 - beta) <= found <= 4 * np.quantile(errors, 1 - beta)
    sizes = {"n": 100, "cells": 16, "epsilon": 1, "beta": 0.05}
    assert bounds.laplace_histogram_tail(queries=0, **sizes) == 0
    assert bounds.laplace_histogram(n=100, cells=2, queries=0, epsilon=1) == 0
    assert bounds.laplace_answers(n=100, queries=0, epsilon=1) == 0
