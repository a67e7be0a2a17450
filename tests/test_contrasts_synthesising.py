"""Contrasts, post-processing: the fit, the rounding, the rows, the plan's choice and the proven bound."""

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from builders import latent
from hypothesis import given
from hypothesis import strategies as st
from parities import alternatives, bound, estimated, fitted, max_error, means
from parities import planned as designed
from scipy.linalg import hadamard
from scipy.optimize import minimize
from scipy.stats import norm

from queries import Conjunctions, Domain, Marginals, Parities, Predicates, Rows
from smalldb.exact.bits import SeededBits
from smalldb.marginals.contrasts import spectrum as parities_module
from smalldb.marginals.contrasts.parity_fit import fit, masks, prior, rounded, sizes_of
from smalldb.marginals.contrasts.shrinkage import uninteracting

pytestmark = pytest.mark.usefixtures("remembered")


def names(d):
    return [f"a{i}" for i in range(d)]


def released(frame, queries, *, epsilon=1, relation="replace-one", valid=None, delta=None, seed=1):
    """An estimate, and the rows; of all designs with a delta, that of most orders."""
    domain = Domain(frame.columns, valid)
    workload, rows = queries.workload(domain), Rows.from_frame(domain, frame)
    numbers = {"n": len(frame), "epsilon": epsilon, "neighbours": relation, "delta": delta}
    return estimated(alternatives(workload, **numbers)[-1], rows, SeededBits(seed)), rows


@pytest.mark.parametrize("valid", [None, "a0 | a1"])
@pytest.mark.parametrize("delta", [None, "1e-6"])
def test_the_fit_is_the_ridge_maximum_entropy(valid, delta):
    frame = latent(4, 300, 1)
    frame = frame[(frame.a0 | frame.a1) == 1]
    estimate, _ = released(frame, Marginals(2), valid=valid, delta=delta)
    plan, found = estimate.strategy, means(estimate)
    chi = hadamard(16)[masks(plan)]
    exists = np.isin(np.arange(16), plan.workload.domain.cells())
    ridge = (found.deviations / prior(plan.spectrum.orders)) ** 2

    def objective(theta):
        return np.log(np.exp(theta @ chi)[exists].sum()) - theta @ found.chi + ridge @ theta**2 / 2

    theta = minimize(objective, np.zeros(len(chi)), method="BFGS", options={"gtol": 1e-8}).x
    wanted = np.where(exists, np.exp(theta @ chi), 0)
    q = fit(plan, found, prior(plan.spectrum.orders)).q
    assert q[~exists].sum() == 0
    np.testing.assert_allclose(q, wanted / wanted.sum(), atol=found.deviations.min() / 20)


def test_the_prior_of_pairs_is_the_likeliest_of_its_halvings():
    generator = np.random.default_rng(2)
    apart = pd.DataFrame((generator.random((20_000, 8)) < 0.3).astype(np.int64), columns=names(8))
    together = apart.copy()
    for i in range(1, 8, 2):
        together[f"a{i}"] = np.where(generator.random(20_000) < 0.7, together[f"a{i - 1}"], apart[f"a{i}"])
    for frame, small in ((apart, True), (together, False)):
        estimate, _ = released(frame, Conjunctions(2))
        plan, found = estimate.strategy, means(estimate)
        sizes, orders = sizes_of(plan, found), plan.spectrum.orders
        assert (sizes[orders == 1] == prior(np.array([1]))).all()
        singles, chi, deviations = found.chi[:8], found.chi[8:], found.deviations[8:]
        pairs = np.array(plan.spectrum.sets[8:])
        moved = (1 - singles[pairs[:, 0]] ** 2) * (1 - singles[pairs[:, 1]] ** 2)
        mean = singles[pairs[:, 0]] * singles[pairs[:, 1]]
        grid = [prior(np.array([2]))[0] / 2**k for k in range(6)]
        scores = [norm.logpdf(chi, mean, np.hypot(deviations, size * moved)).sum() for size in grid]
        assert (sizes[orders == 2] == grid[np.argmax(scores)]).all()
        assert np.argmax(scores) >= 3 if small else np.argmax(scores) == 0


def test_pairs_without_their_attributes_keep_the_prior():
    estimate, _ = released(latent(5, 900, 1), Parities(2, exactly=True))
    plan, found = estimate.strategy, means(estimate)
    np.testing.assert_array_equal(sizes_of(plan, found), prior(plan.spectrum.orders))


@given(st.integers(1, 5), st.integers(1, 60), st.integers(0, 2**32))
def test_rounding_is_systematic(d, rows, seed):
    generator = np.random.default_rng(seed)
    q = generator.dirichlet(np.full(1 << d, 0.3)) * generator.integers(0, 2, 1 << d)
    q[0] += 0.01
    domain = Domain(names(d))
    counts = Rows.from_frame(domain, domain.decode(rounded(domain, q, rows))).histogram()
    gray = [cell ^ cell >> 1 for cell in range(1 << d)]
    share = np.cumsum(q[gray]) / q.sum() * rows
    assert counts.sum() == rows
    assert not counts[q == 0].any()
    assert np.abs(np.cumsum(counts[gray]) - share).max() <= 0.5 + 1e-9


def test_no_row_is_made_that_cannot_exist():
    frame = latent(6, 3000, 5)
    kind = np.random.default_rng(1).integers(0, 3, len(frame))
    for i in range(3):
        frame[f"a{i}"] = (kind == i).astype(np.int64)
    text = "(a0 & ~a1 & ~a2) | (~a0 & a1 & ~a2) | (~a0 & ~a1 & a2)"
    estimate, rows = released(frame, Conjunctions(2), epsilon=20, valid=text)
    for m in (7, 100):
        bits = estimate.rows(m, None)
        assert rows.domain.contains(bits).all()
    assert max_error(estimate, rows, bits) < 0.02


@pytest.mark.parametrize("seed", range(3))
def test_three_attributes_without_interaction(seed):
    """Of the one table with such pairs that iterative scaling ends at."""
    generator = np.random.default_rng(seed)
    signs = np.array(list(product((1, -1), repeat=3)))
    pairs = np.array([signs[:, i] * signs[:, j] for i, j in combinations(range(3), 2)]).T
    table = generator.dirichlet(np.ones(8)).reshape(2, 2, 2)
    scaled = np.full((2, 2, 2), 1 / 8)
    for _ in range(2000):
        for axis in range(3):
            scaled *= table.sum(axis=axis, keepdims=True) / scaled.sum(axis=axis, keepdims=True)
    flat = table.reshape(1, 8)
    wanted = scaled.reshape(8) @ signs.prod(axis=1)
    np.testing.assert_allclose(uninteracting(flat @ signs, flat @ pairs), [wanted], atol=1e-6)


def test_means_of_no_table_have_a_parity_all_the_same():
    found = uninteracting(np.array([[0.9, 0.9, 0.9], [1.0, 1.0, 1.0]]), np.array([[-0.5] * 3, [1.0] * 3]))
    assert (np.abs(found) <= 3).all()
    assert abs(found[1] - 1) < 1e-9


@pytest.mark.parametrize("delta, d", [(None, 5), ("1e-6", 5), ("1e-6", 12)])
def test_the_bound_without_noise_is_the_error(delta, d):
    estimate, rows = released(latent(d, 4000, 8), Marginals(2), epsilon=2**20, delta=delta)
    bits = estimate.rows(200, None)
    error = max_error(estimate, rows, bits)
    assert error <= bound(estimate, bits, "0.01") <= error + 1e-9 < 0.01


def test_the_bound_counts_what_was_not_measured():
    estimate, _ = released(latent(4, 500, 9), Parities(3), epsilon=2**20)
    assert not estimate.strategy.measures_all(estimate.strategy.workload)
    assert bound(estimate, np.zeros((3, 4), dtype=np.uint8), "0.05") == 1.0


TABLES = ["titanic", "autoworkers", *(("latent", d, n) for d, n in ((9, 800), (10, 6000)))]


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES, ids=str)
@pytest.mark.parametrize("epsilon", ["0.1", "1"])
@pytest.mark.parametrize("delta", [None, "1e-9"])
@pytest.mark.parametrize("queries", [Conjunctions(2), Marginals(3, exactly=True)], ids=lambda q: q.text)
def test_the_plan_is_near_the_best_of_its_alternatives(table, epsilon, queries, delta, examples):
    frame = pd.read_csv(examples / f"{table}.csv") if isinstance(table, str) else latent(*table[1:], seed=11)
    domain = Domain(frame.columns)
    workload, rows = queries.workload(domain), Rows.from_frame(domain, frame)
    numbers = {"n": len(frame), "epsilon": epsilon, "neighbours": "replace-one", "delta": delta}
    errors = {}
    for plan in alternatives(workload, **numbers):
        found = []
        for seed in range(2):
            made = estimated(plan, rows, SeededBits(seed))
            found.append(max_error(made, rows, rounded(domain, fitted(made).q, 5000)))
        errors[plan.worst_expected] = np.mean(found)
    chosen = min(errors)
    assert errors[chosen] <= 2.3 * min(errors.values())
    assert 0.35 < errors[chosen] / chosen < 1.6


@pytest.mark.parametrize(
    ("queries", "d", "change", "text"),
    [
        (Conjunctions(1), 257, {}, "at most 256 attributes, not 257"),
        (Conjunctions(2), 3, {"epsilon": 2.0**-50}, "epsilon of 2\\^-40 to 2\\^20"),
        (Conjunctions(2), 3, {"epsilon": 2**20 + 1}, "epsilon of 2\\^-40 to 2\\^20"),
        (Conjunctions(2), 3, {"n": 2**60 + 1}, "at most 2\\^60 rows"),
        (Parities(3, exactly=True), 4, {}, "contrasts of one and two columns are measured"),
        (Conjunctions(17, exactly=True), 17, {}, "at most 16"),
        (Parities(3), 30, {}, "need 4525 parities or more, more than 4000"),
        (Predicates(["a0 | ~a0"]), 3, {}, "no query"),
    ],
)
def test_what_cannot_be_served_is_refused(queries, d, change, text, monkeypatch):
    monkeypatch.setattr(parities_module, "MAX_PARITIES", 4000)
    workload = queries.workload(Domain(names(d)))
    with pytest.raises(ValueError, match=text):
        designed(workload, **{"n": 100, "epsilon": 1, "neighbours": "replace-one", **change})
