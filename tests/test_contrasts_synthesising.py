"""Answers, post-processing: the fit, the rounding, the search, the plan's choice and the proven bound."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from parity_bounds import bound
from scipy.linalg import hadamard
from scipy.optimize import minimize
from scipy.stats import norm
from smalldb.marginals.contrasts.maximum_entropy import fit, read_all_cells, sizes_of
from smalldb.marginals.contrasts.parity_means import estimates, masks
from smalldb.marginals.contrasts.parity_plan import alternatives
from smalldb.marginals.contrasts.priors import prior
from smalldb.marginals.rows.query_search import search
from smalldb.marginals.rows.rounding import rounded

from queries import Conjunctions, Domain, Marginals, Parities, Predicates, Rows
from smalldb.exact.bits import SeededBits
from smalldb.marginals.contrasts import measure, synthesise
from smalldb.marginals.contrasts import spectrum as parities_module
from smalldb.marginals.contrasts.shrinkage import uninteracting
from smalldb.marginals.rows import query_search as searching_module
from smalldb.noise.distributions import Geometric
from smalldb.noise.tails import noise_quantile

pytestmark = pytest.mark.usefixtures("remembered")


def names(d):
    return [f"a{i}" for i in range(d)]


def latent(d, n, seed, classes=4):
    """Rows of a few classes, attributes independent within each."""
    generator = np.random.default_rng(seed)
    rates = generator.beta(1, 1, (classes, d))[generator.integers(0, classes, n)]
    return pd.DataFrame((generator.random((n, d)) < rates).astype(np.int64), columns=names(d))


def planned(frame, queries, *, epsilon=1, relation="replace-one", valid=None, method=None):
    domain = Domain(frame.columns, valid)
    workload, rows = queries.workload(domain), Rows.from_frame(domain, frame)
    numbers = {"n": len(frame), "epsilon": epsilon, "neighbours": relation}
    plans = [p for p in alternatives(workload, **numbers) if method in (None, p.method)]
    return min(plans, key=lambda plan: plan.expected_error), rows


def released(frame, queries, *, seed=1, **settings):
    plan, rows = planned(frame, queries, **settings)
    return plan, rows, measure(plan, rows, SeededBits(seed))


def max_error(plan, rows, bits):
    workload = plan.workload
    synthetic = Rows.from_frame(workload.domain, workload.domain.decode(bits))
    one, other = workload.answers(rows) / rows.n, workload.answers(synthetic) / len(bits)
    return np.abs(one - other).max() / workload.denominator


@pytest.mark.parametrize("valid", [None, "a0 | a1"])
@pytest.mark.parametrize("method", ["cube", "wishart", "cells", "both"])
def test_the_fit_is_the_ridge_maximum_entropy(valid, method):
    frame = latent(4, 300, 1)
    frame = frame[(frame.a0 | frame.a1) == 1]
    plan, _, measured = released(frame, Marginals(2), valid=valid, method=method)
    found = estimates(plan, measured)
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
        plan, _, measured = released(frame, Conjunctions(2), epsilon=1)
        found = estimates(plan, measured)
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
    plan, _, measured = released(latent(5, 900, 1), Parities(2, exactly=True), epsilon=1)
    found = estimates(plan, measured)
    np.testing.assert_array_equal(sizes_of(plan, found), prior(plan.spectrum.orders))


def test_a_fit_of_nearly_exact_answers_is_nearly_exact():
    plan, rows, measured = released(latent(6, 5000, 2), Conjunctions(3), epsilon=5000)
    q = fit(plan, estimates(plan, measured)).q
    truth = rows.histogram() / rows.n
    sums = hadamard(64)[masks(plan)]
    assert np.abs(plan.spectrum.answers(sums @ (q - truth)) - plan.spectrum.constants).max() < 1e-3


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


def flip_by_definition(bits, flips, workload, wanted, unit, squarings):
    """The kernel's sweep, with the objective taken afresh from the table each time."""
    power = 2 ** (squarings + 1)

    def objective(table):
        values = np.array([query.values(table).sum() / query.denominator for query in workload.queries])
        return (((values / len(table) - wanted) / unit) ** power).sum()

    for row in range(len(bits)):
        moved = bits.copy()
        moved[row, list(flips)] ^= 1
        if objective(bits) - objective(moved) > 1e-12:
            bits = moved
    return bits


@pytest.mark.parametrize(
    "queries", [Conjunctions(2), Marginals(3, exactly=True), Parities(4), Conjunctions(1) + Parities(2)]
)
@pytest.mark.parametrize("flips", [(0,), (1, 3)])
def test_a_sweep_is_the_definition(queries, flips):
    from smalldb.kernels.flipping import add_up, flip
    from smalldb.marginals.rows.query_search import _moves, _tables

    generator = np.random.default_rng(3)
    workload = queries.workload(Domain(names(5)))
    wanted = generator.random(workload.size) / 3
    bits = generator.integers(0, 2, (12, 5)).astype(np.uint8)
    tables = _tables(workload, len(bits), wanted)
    totals = add_up(bits, tables)
    _, seen, toggles = next(m for m in _moves(tables, 5, 12, True) if m[0].tolist() == list(flips))
    for squarings in (0, 1, 2):
        slow = flip_by_definition(bits, flips, workload, wanted, 0.5, squarings)
        flipped = flip(
            bits, np.array(flips), np.ones(12, bool), seen, toggles, tables, totals, 0.5, squarings
        )
        assert (bits == slow).all()
        assert totals.tolist() == [query.values(bits).sum() for query in workload.queries]
        assert flipped or squarings


def test_the_search_only_improves_and_keeps_to_the_cells_that_exist():
    domain = Domain(names(6), "a0 ^ a1 ^ a2 ^ (a3 & a4)")
    workload = Conjunctions(2).workload(domain)
    cells = domain.table()
    start = cells[np.arange(40) % 5]
    wanted = np.array([query.values(cells).mean() for query in workload.queries])
    found = search(workload, start, wanted)
    assert domain.contains(found).all()

    def error(bits):
        return max(abs(q.values(bits).mean() - w) for q, w in zip(workload.queries, wanted, strict=True))

    assert error(found) < error(start) / 4
    assert (search(workload, found, wanted, enough=1.0) == found).all()


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize(("queries", "d"), [(Marginals(3, exactly=True), 7), (Conjunctions(2), 12)])
def test_synthetic_rows_answer_well_and_are_a_function_of_what_was_released(queries, d, relation):
    frame = latent(d, 20_000, 4)
    plan, rows, measured = released(frame, queries, epsilon=4, relation=relation)
    for m in (1, 60, 3000):
        bits = synthesise(plan, measured, m)
        assert bits.shape == (m, d)
        assert (bits == synthesise(plan, measured, m)).all()
        assert bits.tolist() == sorted(bits.tolist())
    assert max_error(plan, rows, bits) < 0.02
    assert max_error(plan, rows, synthesise(plan, measured, 60)) < 0.05


def test_of_a_large_table_some_rows_are_moved(monkeypatch):
    workload = Conjunctions(2).workload(Domain([*"abc"]))
    touched = sum(len(query.attributes) for query in workload.queries)
    budget = 500 * touched * searching_module.SWEEPS
    monkeypatch.setattr(searching_module, "FEWEST", 10)
    start, wanted = np.zeros((5000, 3), dtype=np.uint8), np.full(workload.size, 0.02)
    made = search(workload, start, wanted, budget=budget)
    assert 0 < (made != start).any(axis=1).sum() <= 500
    found = [made[:, list(query.attributes)].all(axis=1).mean() for query in workload.queries]
    assert np.abs(np.array(found) - wanted).max() < 0.01


def test_no_row_is_made_that_cannot_exist():
    frame = latent(6, 3000, 5)
    kind = np.random.default_rng(1).integers(0, 3, len(frame))
    for i in range(3):
        frame[f"a{i}"] = (kind == i).astype(np.int64)
    text = "(a0 & ~a1 & ~a2) | (~a0 & a1 & ~a2) | (~a0 & ~a1 & a2)"
    plan, rows, measured = released(frame, Conjunctions(2), epsilon=20, valid=text)
    for m in (7, 100):
        bits = synthesise(plan, measured, m)
        assert plan.workload.domain.contains(bits).all()
    assert max_error(plan, rows, bits) < 0.02


def test_listed_cells_of_many_attributes_are_refused():
    workload = Conjunctions(1).workload(Domain(names(21), [0, 5, 2**20]))
    with pytest.raises(ValueError, match="where all rows can exist"):
        alternatives(workload, n=9, epsilon=1, neighbours="replace-one")


@pytest.mark.parametrize("seed", range(3))
def test_three_attributes_without_interaction(seed):
    """Log-linear tables of pairs are found again; of others the one table that iterative scaling ends at."""
    generator = np.random.default_rng(seed)
    signs = np.array(list(product((1, -1), repeat=3)))
    pairs = np.array([signs[:, i] * signs[:, j] for i, j in combinations(range(3), 2)]).T
    logs = generator.normal(size=(20, 3)) @ signs.T + generator.normal(size=(20, 3)) @ pairs.T
    tables = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    found = uninteracting(tables @ signs, tables @ pairs)
    np.testing.assert_allclose(found, tables @ signs.prod(axis=1), atol=1e-9)

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


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("method", ["cube", "wishart", "cells", "both"])
@pytest.mark.parametrize("queries", [Conjunctions(2), Marginals(2), Predicates(["a0 | a1 | a2", "a0 ^ a3"])])
def test_the_bound_holds_as_often_as_it_says(relation, method, queries):
    frame, held, wide = latent(4, 150, 7), 0, []
    bits = np.random.default_rng(2).integers(0, 2, (7, 4)).astype(np.uint8)
    plan, rows = planned(frame, queries, epsilon=3, relation=relation, method=method)
    for seed in range(40):
        measured = measure(plan, rows, SeededBits(seed))
        error, promised = max_error(plan, rows, bits), bound(plan, measured, bits, "0.2")
        held += error <= promised
        wide.append(promised - error)
    assert held >= 40 - 15  # Binomial(40, 0.2) exceeds 15 with probability 0.003
    assert np.mean(wide) < 0.5


def test_the_bound_without_noise_is_the_error():
    frame = latent(5, 4000, 8)
    for method in ("cube", "wishart", "cells", "both"):
        plan, rows, measured = released(frame, Marginals(2), epsilon=2**20, method=method)
        bits = synthesise(plan, measured, 20)
        error = max_error(plan, rows, bits)
        assert error <= bound(plan, measured, bits, 0.01) <= error + (1e-3 if method == "cells" else 1e-9)


def test_the_bound_counts_what_was_not_measured():
    frame = latent(4, 500, 9)
    plans = alternatives(
        Parities(2).workload(Domain(frame.columns)), n=500, epsilon=2**20, neighbours="replace-one"
    )
    low = next(plan for plan in plans if plan.method == "cube" and len(plan.parts) == 1)
    rows = Rows.from_frame(low.workload.domain, frame)
    bits = np.zeros((3, 4), dtype=np.uint8)
    assert bound(low, measure(low, rows, SeededBits(1)), bits, 0.05) == 1.0


def test_chernoff_covers_the_noise_of_a_query():
    rate, weight, failure = Fraction(1, 2), 12, Fraction(1, 10)
    noise = Geometric(rate).draw(12 * 20_000, SeededBits(1)).reshape(-1, 12).sum(axis=1)
    limit = noise_quantile(rate, weight, failure)
    assert (np.abs(noise) > limit).mean() < 0.1
    assert (np.abs(noise) > limit / 2).mean() > 0.1


TABLES = ["titanic", "autoworkers", *(("latent", d, n) for d, n in ((9, 800), (10, 6000)))]


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES, ids=str)
@pytest.mark.parametrize("epsilon", ["0.1", "1"])
@pytest.mark.parametrize("queries", [Conjunctions(2), Marginals(3, exactly=True)], ids=lambda q: q.text)
def test_the_plan_is_near_the_best_of_its_alternatives(table, epsilon, queries, examples):
    frame = pd.read_csv(examples / f"{table}.csv") if isinstance(table, str) else latent(*table[1:], seed=11)
    domain = Domain(frame.columns)
    workload, rows = queries.workload(domain), Rows.from_frame(domain, frame)
    numbers = {"n": len(frame), "epsilon": epsilon, "neighbours": "replace-one"}
    errors = {}
    for plan in alternatives(workload, **numbers):
        found = []
        for seed in range(2):
            measured = measure(plan, rows, SeededBits(seed))
            cells = plan.parts[-1].law == "cells"
            q = read_all_cells(plan, measured) if cells else fit(plan, estimates(plan, measured)).q
            found.append(max_error(plan, rows, rounded(domain, q, 5000)))
        errors[plan.expected_error] = np.mean(found)
    chosen = min(errors)
    assert errors[chosen] <= 1.6 * min(errors.values())
    assert 0.4 < errors[chosen] / chosen < 1.6


@pytest.mark.parametrize(
    ("queries", "d", "change", "text"),
    [
        (Conjunctions(1), 257, {}, "at most 256 attributes, not 257"),
        (Conjunctions(2), 3, {"epsilon": 2.0**-50}, "epsilon of 2\\^-40 to 2\\^20"),
        (Conjunctions(1), 50, {"epsilon": "1e-9"}, "epsilon is too small"),
        (Conjunctions(2), 3, {"epsilon": 0}, "epsilon must be above 0"),
        (Conjunctions(2), 3, {"n": 0}, "n must be"),
        (Conjunctions(2), 3, {"neighbours": "both"}, "neighbours must be"),
        (Conjunctions(17, exactly=True), 17, {}, "at most 16"),
        (Parities(3), 30, {}, "need 4525 parities or more, more than 4000"),
        (Predicates(["a0 | ~a0"]), 3, {}, "no query"),
    ],
)
def test_what_cannot_be_served_is_refused(queries, d, change, text, monkeypatch):
    monkeypatch.setattr(parities_module, "MAX_PARITIES", 4000)
    workload = queries.workload(Domain(names(d)))
    with pytest.raises(ValueError, match=text):
        alternatives(workload, **{"n": 100, "epsilon": 1, "neighbours": "replace-one", **change})
