"""Many yes/no columns at once: rows that are turned towards parities, as the definition says."""

from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest
from asking import release_tables
from builders import flags, latent
from measures import pairs_off
from parities import planned
from records import check_record

import smalldb
from queries import Marginals, Predicates, Rows
from smalldb.exact.bits import SeededBits
from smalldb.kernels.nearby_rows import turn
from smalldb.marginals.asks import Noisy
from smalldb.marginals.contrasts.parity_fit import Means, rows_with_means
from smalldb.marginals.contrasts.shrinkage import believed
from smalldb.marginals.mechanism import ByMarginals
from smalldb.marginals.strategies.contrasts import Contrasts
from smalldb.reporting.words import laid_out, tell

FULL = 1 << 21


def naive_turn(signs, beyond, weights, threshold, first, starts):
    """The definition, in whole numbers of Python; the same order of visits."""
    rows, columns = signs.shape
    made = 0
    for low, high in pairwise(starts):
        own = range(low, high)
        sizes = {c: [weights[c, q] * abs(beyond[c, q]) for q in range(columns)] for c in own}
        largest = max(max(some) for some in sizes.values())
        if largest == 0:
            continue
        unit, least = 2.0 * largest / FULL, {}
        for c in own:
            all_weights = most = 0.0
            for q in range(columns):
                all_weights, most = all_weights + weights[c, q], most + sizes[c][q]
            least[c] = (all_weights + threshold * most) / unit
        for k in range(rows):
            i = (first + k) % rows

            def gain(c, i=i, unit=unit, least=least):
                pulls = [
                    round(min(max(weights[c, q] * beyond[c, q] / unit, -FULL), FULL)) for q in range(columns)
                ]
                return (
                    int(signs[i, c]) * sum(p * int(s) for p, s in zip(pulls, signs[i], strict=True))
                    - least[c]
                )

            held = [c for c in own if signs[i, c] < 0]
            ways = [held, *([*held, c] for c in own if c not in held)] if held else [[], *([c] for c in own)]
            gains = [sum(map(gain, way)) for way in ways]
            if max(gains) <= 0:
                continue
            for c in ways[gains.index(max(gains))]:
                made += 1
                for q in range(columns):
                    if q != c:
                        beyond[c, q] -= 2.0 * signs[i, c] * signs[i, q]
                        beyond[q, c] = beyond[c, q]
                signs[i, c] = -signs[i, c]
    return made


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_a_sweep_is_the_definition(seed):
    """Of yes/no columns, and of columns of several signs of which one at most is -1."""
    rng = np.random.default_rng(seed)
    rows, sizes = int(rng.integers(1, 30)), rng.integers(1, 2 if seed < 6 else 5, rng.integers(1, 6))
    starts = np.cumsum([1, *sizes])
    d = int(starts[-1])
    held = [rng.integers(0, size + 1, rows) for size in sizes]
    columns = [
        np.where(one[:, None] == 1 + np.arange(size), -1, 1) for one, size in zip(held, sizes, strict=True)
    ]
    signs = np.hstack([np.ones((rows, 1)), *columns]).astype(np.int8)
    targets, weights = (x + x.T for x in (rng.normal(size=(d, d)) * rows, rng.random((d, d))))
    weights[rng.random((d, d)) < 0.2] = 0
    weights = np.minimum(weights, weights.T)
    for low, high in pairwise([0, *starts]):
        weights[low:high, low:high] = 0
    beyond = signs.T.astype(float) @ signs - targets
    np.fill_diagonal(beyond, 0)
    slow = signs.copy(), beyond.copy()
    for sweep, threshold in enumerate((0.5, 0.1, 0.0, 0.0)):
        before = float((weights * beyond**2).sum())
        made = turn(signs, beyond, weights, threshold, sweep * rows // 4, starts)
        assert made == naive_turn(*slow, weights, threshold, sweep * rows // 4, starts.tolist())
        assert (signs == slow[0]).all() and (beyond == slow[1]).all()
        assert (np.add.reduceat(signs[:, 1:] < 0, starts[:-1] - 1, axis=1) <= 1).all()
        assert float((weights * beyond**2).sum()) <= before + 1e-6 * before
    exact = signs.T.astype(float) @ signs - targets
    np.fill_diagonal(exact, 0)
    np.testing.assert_allclose(beyond, exact, atol=1e-9)


def test_columns_start_as_frequent_as_they_are_to_be_and_independent():
    means = np.array([0.9, -0.3, 0.0, 1.0])
    signs = rows_with_means(means, 5_000, 7)
    assert np.abs(signs.sum(axis=0) - means * 5_000).max() <= 2
    products = signs.T.astype(float) @ signs / 5_000 - np.outer(means, means)
    assert np.abs(products[np.triu_indices(4, 1)]).max() < 0.06
    assert (signs != rows_with_means(means, 5_000, 8)).any()


def test_categories_start_as_frequent_as_they_are_to_be():
    means = np.array([0.8, 0.4, 0.5, -0.5, -0.6])  # shares .1; .3, .25; .75, .8, which are too much
    signs = rows_with_means(means, 5_000, 7, (0, 1, 3, 5))
    shares = (signs < 0).mean(axis=0)
    np.testing.assert_allclose(shares, [0.1, 0.3, 0.25, 0.75 / 1.55, 0.8 / 1.55], atol=2 / 5_000)
    assert (np.add.reduceat(signs < 0, [0, 1, 3], axis=1) <= 1).all()


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("delta", [None, "1e-9"])
def test_a_wide_yes_no_table_is_released_without_copies(relation, delta):
    real = latent(24, 6_000, 1).to_numpy()
    domain = flags(24, name="a")
    public = {"n_max": 6_000} if relation == "add-remove" else {}
    made = smalldb.release(
        Rows.from_codes(domain, real), epsilon=10, delta=delta, neighbours=relation, rng=3, **public
    )
    assert made.record["mechanism"] == "marginals"
    assert isinstance(made.plan.chosen.strategy, Contrasts)
    assert pairs_off(real, made.codes, (2,) * 24) < 0.004  # by columns alone .08, by rounds .017
    rows = Rows.from_codes(domain, made.codes)
    assert len(rows.counts) > 0.9 * len(Rows.from_codes(domain, real).counts)
    assert made.confidential.max_error <= made.record["bounds"]["released"] < 0.05
    assert made.record["bounds"]["covers"] == ["every query of marginals:2"]
    assert relation == "add-remove" or len(made.codes) == 6_000


def test_the_number_of_rows_is_read_as_no_more_than_a_table_can_have(monkeypatch):
    """So that no expected sum of a certificate passes 2^60, whatever the noise."""
    workload = Marginals(2).workload(flags(24, name="a"))
    plan = planned(workload, n=50, epsilon=1, neighbours="add-remove")
    for noisy, total in ((1 << 60, 1 << 40), (-(1 << 60), 1), (77, 77)):
        released = np.full(len(plan.sets), noisy, dtype=np.int64)
        monkeypatch.setattr(Noisy, "draw", lambda *_, released=released: released)
        rows = Rows.from_codes(flags(24, name="a"), latent(24, 50, 1).to_numpy())
        assert release_tables(plan, rows, SeededBits(1), 9).total == total


@pytest.mark.parametrize("certificate", [Fraction(0), Fraction(1, 20)])
@pytest.mark.parametrize("text", ["marginals:2", "marginals:3"])
def test_a_certificate_is_paid_only_where_something_is_not_measured(text, certificate):
    workload = smalldb.plan(flags(21, name="a"), text, n=10_000, epsilon=1, mechanism="marginals").workload
    plan = planned(workload, n=10_000, epsilon=1, neighbours="replace-one", certificate=certificate)
    assert plan.epsilon + plan.certifying == 1
    assert plan.certifying in (0, certificate)
    complete, sets = plan.measures_all(workload), {*plan.sets}
    assert bool(plan.certifying) == (bool(certificate) and not complete)
    assert complete == (text == "marginals:2")
    assert complete == all(
        s in sets for t in workload.tables for k in range(1, len(t) + 1) for s in combinations(t, k)
    )


def test_an_epsilon_that_a_certificate_makes_too_small_is_refused():
    given = {"n": 100, "epsilon": Fraction(1, 1 << 40), "mechanism": "marginals", "strategy": "contrasts"}
    assert smalldb.plan(flags(4), "marginals:3", **given, certificate=0).loss.epsilon == Fraction(1, 1 << 40)
    with pytest.raises(ValueError, match="the certificate left out"):
        smalldb.plan(flags(4), "marginals:3", **given, certificate="1/20")


def test_where_nothing_says_what_was_not_measured_the_record_tells():
    rows = Rows.from_codes(flags(24, name="a"), latent(24, 300, 1).to_numpy())
    made = smalldb.release(rows, epsilon="0.1", certificate=0, rng=1)  # pairs would drown: columns alone
    bounds = made.record["bounds"]
    assert not made.plan.chosen.strategy.measures_all(made.plan.workload)
    assert (bounds["beta"], bounds["released"], bounds["covers"]) == ("0.05", None, [])
    check_record(made.record)
    assert "no bound for what was not measured" in laid_out(tell(made.record, made.plan))


def test_rules_and_very_many_columns_take_rounds():
    ruled = flags(24, "~(a0 & a1)", "a")
    many = flags(260, name="a")
    for domain in (ruled, many):
        plan = smalldb.plan(domain, "marginals:1", n=1_000, epsilon=1)
        assert isinstance(plan.chosen, ByMarginals) and not isinstance(plan.chosen.strategy, Contrasts)


def test_predicates_of_many_columns_are_moved_to():
    made = smalldb.release(
        latent(24, 4_000, 5), Predicates(["a0 & a1 & a2", "a3 ^ a4 ^ a5"]), epsilon=20, rng=1
    )
    assert made.confidential.max_error < 0.01


@pytest.mark.parametrize("n", [0, 1])
def test_tiny_tables_are_released(n):
    domain = flags(30, name="a")
    rows = Rows.from_codes(domain, np.ones((n, 30), dtype=np.int64))
    plan = smalldb.plan(domain, epsilon=1, neighbours="add-remove", n_max=5)
    found = release_tables(plan.chosen.strategy, rows, SeededBits(1))
    assert len(found.codes) == found.total >= 1
    workload, finished = plan.workload, Rows.from_codes(domain, found.codes)
    assert 0 <= found.bound(workload, None, finished, Fraction(1, 20)) <= 1


def released(means, dependences, deviation, seed):
    """A plan of all pairs, parities of such means and dependences, and these with normal noise."""
    generator = np.random.default_rng(seed)
    workload = smalldb.plan(flags(len(means), name="a"), "marginals:2", n=10_000, epsilon=1).workload
    plan = planned(workload, n=10_000, epsilon=1, neighbours="replace-one")
    sets = plan.spectrum.sets
    true = np.array([means[list(s)].prod() + (dependences[s] if len(s) == 2 else 0) for s in sets])
    noise = generator.normal(0, deviation, len(true))
    return plan, true, Means(true + noise, np.full(len(true), deviation))


def risks(plan, true, found):
    """Mean squares of what is believed less what is true, over those of what was released: singles, pairs."""
    means, near = believed(plan, found)
    singles, pairs = plan.spectrum.orders == 1, plan.spectrum.orders == 2
    assert (near[singles] == means).all()
    raw, made = (found.chi - true) ** 2, (near - true) ** 2
    return made[singles].mean() / raw[singles].mean(), made[pairs].mean() / raw[pairs].mean()


@pytest.mark.parametrize("seed", range(3))
def test_means_of_columns_that_hardly_depend_are_told_by_their_pairs(seed):
    generator = np.random.default_rng([1, seed])
    means, few = generator.uniform(-1, 1, 40), np.zeros((40, 40))
    few[generator.integers(0, 40, 12), generator.integers(0, 40, 12)] = 0.3
    singles, pairs = risks(*released(means, few, 0.05, seed))
    assert singles < 0.5
    assert pairs < 0.25


@pytest.mark.parametrize("seed", range(3))
def test_means_stay_as_released_where_the_prior_does_not_fit(seed):
    """Dependences that look, in all pairs of a column, as if its mean were another one."""
    generator = np.random.default_rng([2, seed])
    means = generator.uniform(-1, 1, 40)
    shifts = np.outer(generator.normal(0, 0.1, 40), means)
    singles, pairs = risks(*released(means, shifts + shifts.T, 0.02, seed))
    assert singles <= 1.0
    assert pairs <= 1.05


def test_what_two_rare_columns_depend_is_not_taken_for_noise():
    """Two columns that are always the same, among many of which no pair depends as much as these can."""
    generator = np.random.default_rng(4)
    shares = generator.uniform(0.1, 0.9, 40)
    shares[:2] = 0.05
    means, dependences = 1 - 2 * shares, generator.normal(0, 0.1, (40, 40))
    dependences *= np.outer(1 - means**2, 1 - means**2)
    dependences[0, 1] = 1 - means[0] ** 2
    plan, true, found = released(means, dependences, 0.01, 0)
    rank = plan.spectrum.sets.index((0, 1))
    assert true[rank] == pytest.approx(1)
    near = believed(plan, found)[1]
    assert abs(near[rank] - true[rank]) < 0.03 < 0.15 < true[rank] - means[0] ** 2


def test_without_noise_all_is_believed_and_what_was_not_measured_is_the_product_of_means():
    generator = np.random.default_rng(3)
    means = generator.uniform(-1, 1, 24)
    dependences = generator.uniform(-0.5, 0.5, (24, 24)) * np.outer(1 - means**2, 1 - means**2)
    plan, true, found = released(means, dependences, 1e-9, 0)
    near = believed(plan, found)[1]
    np.testing.assert_allclose(near, true, atol=1e-6)
    unknown = (plan.spectrum.orders == 2) & (np.arange(len(true)) % 3 > 0)
    deviations = np.where(unknown, np.inf, found.deviations)
    some = believed(plan, Means(np.where(unknown, 0.0, found.chi), deviations))[1]
    said = np.array([means[list(positions)].prod() for positions in plan.spectrum.sets])
    np.testing.assert_allclose(some[unknown], said[unknown], atol=1e-6)
    np.testing.assert_allclose(some[~unknown], true[~unknown], atol=1e-6)
    none = believed(plan, Means(np.zeros(len(true)), np.full(len(true), np.inf)))
    assert not none[0].any()
    assert not none[1].any()
