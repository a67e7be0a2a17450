"""All cells measured: a bound from their noise alone, and no share of epsilon for a certificate."""

from fractions import Fraction

import numpy as np
import pytest

import smalldb
from queries import Column, Domain, Marginals, Predicates, Rows
from smalldb.exact.bits import SeededBits
from smalldb.exact.integers import two_sided_geometric
from smalldb.rounds.certificate import beyond, certify
from smalldb.rounds.direct import direct_bound, margins
from smalldb.rounds.measuring import Law

COLUMNS = [Column("job", ["none", "part", "full"]), Column("region", 5), "smoker"]
DOMAIN = Domain(COLUMNS, "~(`job=none` & smoker)")


def rows_of(seed, n=1_000):
    rng = np.random.default_rng(seed)
    places = np.stack([rng.integers(0, k, n) for k in DOMAIN.sizes], axis=1)
    places[places[:, 0] == 0, 2] = 0
    return Rows.from_places(DOMAIN, places)


def histogram(rows):
    counts = np.zeros(DOMAIN.sizes, dtype=np.int64)
    np.add.at(counts, tuple(rows.places().T), rows.counts)
    return counts


def worst(workload, real, finished):
    one, other = workload.answers(real) / real.n, workload.answers(finished) / finished.n
    return np.abs(one - other).max() / workload.denominator


@pytest.mark.parametrize("public", [True, False])
def test_the_bound_holds_as_often_as_it_says(public):
    workload = (Marginals(2) + Predicates(["smoker | `job=full`"])).workload(DOMAIN)
    real, finished, rate, beta = rows_of(1), rows_of(2, 300), Fraction(1, 4), Fraction(1, 5)
    exact, apart = histogram(real), worst(workload, real, finished)
    margin = max(margins(workload, rate, beta)) / real.n
    bounds = []
    for seed in range(100):
        noisy = exact + two_sided_geometric(rate, exact.size, SeededBits(seed)).reshape(exact.shape)
        n = real.n if public else None
        bounds.append(direct_bound(workload, noisy, rate, n, finished, beta))
    assert (np.array(bounds) >= apart).mean() >= 0.8
    assert apart < np.mean(bounds) < apart + 3 * margin


def test_margins_are_exceeded_as_seldom_as_they_say_and_no_sooner():
    workload, rate, beta = Marginals(2).workload(DOMAIN), Fraction(1, 3), Fraction(1, 5)
    of_query, of_rows = margins(workload, rate, beta)
    cells = DOMAIN.table()
    beyond = beyond_half = 0
    for seed in range(200):
        noise = two_sided_geometric(rate, len(cells), SeededBits(seed))
        sums = np.zeros(workload.size)
        for sign in (1, -1):
            some = np.maximum(sign * noise, 0)
            sums += sign * workload.answers(Rows.from_places(DOMAIN, cells, some))
        sizes = np.append(np.abs(sums) / workload.denominator / of_query, abs(noise.sum()) / of_rows)
        beyond, beyond_half = beyond + (sizes.max() > 1), beyond_half + (sizes.max() > 0.45)
    assert beyond <= 40
    assert beyond_half > 40  # less than half of them would not do


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_nothing_is_spent_on_a_certificate_where_all_cells_are_measured(relation):
    real = rows_of(3, 3_000)
    given = {"n_max": 3_000} if relation == "add-remove" else {}
    for seed in range(4):
        made = smalldb.release(real, "marginals:2", epsilon=1, neighbours=relation, rng=seed, **given)
        steps = made.plan.chosen.steps
        assert (steps.certifying, steps.cells) == (0, 1)
        assert made.confidential.max_error <= made.record["bounds"]["released"] < 0.2
        assert made.record["bounds"]["covers"] == ["every query of marginals:2"]


def test_the_smaller_margin_is_taken_from_public_numbers():
    """A share of few places is a sum of many cells' noise: there a certificate says more."""
    domain = Domain([Column("a", 90), Column("b", 90), "c", "d"])
    steps = smalldb.plan(domain, "marginals:1", n=10**7, epsilon=1, mechanism="rounds").chosen.steps
    workload, beta = Marginals(1).workload(domain), Fraction(1, 20)
    law = Law(False, True)
    least = beyond(workload, law, Fraction(1, 40), beta) / workload.denominator
    direct = max(margins(workload, law.spread(Fraction(1)), beta))
    assert direct > least
    assert not steps.cells or steps.certifying


def test_a_certificate_at_the_same_epsilon_is_wider_on_a_small_universe():
    workload, real, finished = Marginals(2).workload(DOMAIN), rows_of(1), rows_of(2)
    law, beta = Law(False, True), Fraction(1, 20)
    certified = certify(workload, real, finished, real.n, law, Fraction(1, 20), SeededBits(1)).share(beta)
    noisy = histogram(real) + two_sided_geometric(Fraction(1, 2), 30, SeededBits(1)).reshape(DOMAIN.sizes)
    direct = direct_bound(workload, noisy, Fraction(1, 2), real.n, finished, beta)
    assert worst(workload, real, finished) <= direct < certified / 2


def test_numbers_that_say_nothing_are_bounded_by_1():
    workload, finished = Marginals(1).workload(DOMAIN), rows_of(2)
    huge = np.full(DOMAIN.sizes, 1 << 60)
    assert direct_bound(workload, huge, Fraction(1, 2), 100, finished, Fraction(1, 20)) == 1
    none = np.zeros(DOMAIN.sizes, dtype=np.int64)
    assert direct_bound(workload, none, Fraction(1, 2), None, finished, Fraction(1, 20)) == 1
