"""What steps lose: rho and laws against their definitions, over all neighbours of tiny instances."""

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product
from math import exp, tanh

import numpy as np
import pytest
from mpmath import mp, mpf

import smalldb
from queries import Column, Domain, Rows
from smalldb.accounting import KaryResponse, Loss
from smalldb.marginals.measuring import PrivacyMeasure
from smalldb.marginals.strategies.adaptive import Adaptive
from smalldb.noise.privacy_loss import (
    BoundedRange,
    GeometricNoise,
    LaplaceNoise,
    RandomisedResponse,
    read_laws,
)
from smalldb.selection import selection_law

mp.dps = 40
ORDERS = 1 + np.geomspace(1e-4, 200, 400)
SIZES = [Fraction(1, 100), Fraction(1, 4), Fraction(1), Fraction(3)]


def symmetric(law):
    """A law by its definition: losses, and their probabilities under the likelier of two neighbours."""
    e = mp.exp
    match law:
        case RandomisedResponse():
            x = mpf(law.epsilon.numerator) / law.epsilon.denominator
            return {x: 1 / (1 + e(-x)), -x: e(-x) / (1 + e(-x))}
        case KaryResponse():
            x, k = mpf(law.epsilon.numerator) / law.epsilon.denominator, law.categories
            whole = e(x) + k - 1
            return {x: e(x) / whole, -x: 1 / whole, mpf(0): (k - 2) / whole}
        case GeometricNoise():
            r, m = mpf(law.rate.numerator) / law.rate.denominator, law.moved
            found = Counter()
            for z in range(-int(60 / r) - 3, int(60 / r) + m + 4):
                found[r * (abs(z - m) - abs(z))] += (1 - e(-r)) / (1 + e(-r)) * e(-r * abs(z))
            return dict(found)
    raise AssertionError(law)


def divergence(losses, order):
    """The Renyi divergence of a law, by its losses; of order 1 the mean."""
    if order == 1:
        return mp.fsum(p * x for x, p in losses.items())
    return mp.log(mp.fsum(p * mp.exp((order - 1) * x) for x, p in losses.items())) / (order - 1)


def laplace_divergence(eps, order):
    """By integration over the noise: below 0, from 0 to epsilon, beyond."""
    x, a = mpf(eps.numerator) / eps.denominator, mpf(order)
    if order == 1:
        return x + mp.exp(-x) - 1
    whole = (mp.exp((a - 1) * x) + mp.exp(-a * x)) / 2
    whole += mp.exp((a - 1) * x) * (1 - mp.exp(-(2 * a - 1) * x)) / (2 * a - 1) / 2
    return mp.log(whole) / (a - 1)


LAWS = [
    *(RandomisedResponse(x) for x in SIZES),
    *(KaryResponse(x, k) for x in SIZES for k in (3, 6)),
    *(GeometricNoise(x / m, m) for x in SIZES[1:] for m in (1, 2, 5)),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_rho_is_the_largest_divergence_over_its_order(law):
    losses, rho = symmetric(law), law.rho
    assert abs(mp.fsum(losses.values()) - 1) < mpf(10) ** -20
    exact = divergence(losses, 1)
    assert exact <= rho <= exact * (1 + mpf(10) ** -10)
    assert all(divergence(losses, float(order)) <= order * rho for order in ORDERS[::8])


@pytest.mark.parametrize("eps", SIZES)
def test_the_rho_of_laplace_noise_and_of_bounded_range(eps):
    x, rho = float(eps), LaplaceNoise(eps).rho
    assert float(rho) == pytest.approx(x + exp(-x) - 1, rel=1e-9)
    assert all(laplace_divergence(eps, float(order)) <= order * rho for order in ORDERS)
    assert laplace_divergence(eps, 1) <= rho < eps**2 / 2
    most = 0.0
    for t in np.linspace(0, x, 401)[1:-1]:  # the pairs of bounded range: log ratios t and t - epsilon
        p = (1 - exp(t - x)) / (1 - exp(-x))
        with np.errstate(over="ignore"):
            found = np.log(p * np.exp((ORDERS - 1) * t) + (1 - p) * np.exp((ORDERS - 1) * (t - x)))
        most = max(most, float((found / (ORDERS - 1) / ORDERS).max()), p * t + (1 - p) * (t - x))
    assert most <= BoundedRange(eps).rho <= min(eps**2 / 8, Fraction(most) * Fraction("1.0001"))


@pytest.mark.slow
@pytest.mark.parametrize("categories", [7, 20, 1000])
@pytest.mark.parametrize("eps", SIZES)
def test_many_categories_are_searched(eps, categories):
    """Order 1 is not the worst where there are many: to take it would be below the truth."""
    law = KaryResponse(eps, categories)
    losses = symmetric(law)
    orders = [1.0, *(1 + np.geomspace(1e-4, 4000, 600))]
    found = max(divergence(losses, float(order)) / order for order in orders)
    assert found <= law.rho <= found * mpf("1.0005")
    if categories == 1000:
        assert law.rho > divergence(losses, 1) * mpf("1.05")


def test_rho_over_cost_rises():
    costs = [Fraction(i, 50) for i in range(1, 400)]
    for law in (RandomisedResponse, BoundedRange, LaplaceNoise):
        ratios = [law(cost).rho / cost for cost in costs]
        assert all(a <= b for a, b in pairwise(ratios))


def laplace_delta(total, eps):
    """The delta of Laplace noise at a total: 1 - e^((total - epsilon) / 2) from -epsilon to epsilon."""
    if total >= eps:
        return 0.0
    return 1 - exp((total - eps) / 2) if total >= -eps else 1 - exp(total)


def flipped(scores, rate):
    law = selection_law(scores, epsilon=rate, range=1, method="permute-and-flip")
    return np.array([float(low + high) / 2 for low, high in law.values()])


@pytest.mark.slow
@pytest.mark.parametrize("eps", [Fraction(1, 4), Fraction(1), Fraction(2)])
def test_permute_and_flip_loses_no_more_than_laplace_noise(eps):
    """All tables of up to three scores, all moves from 0 to 1 in halves: every delta, every divergence."""
    half, found = Fraction(1, 2), {}
    x, rho = float(eps), float(LaplaceNoise(eps).rho)
    totals = np.linspace(-x, x, 9)
    allowed = np.array([laplace_delta(total, x) for total in totals])
    attained = np.zeros(len(totals))
    orders = 1 + np.geomspace(1e-3, 30, 12)
    most = largest_of_counts = 0.0
    for steps in product(range(4), range(4), (0, 1, 2, 3, -300)):  # the third may be as good as absent
        for move in product(range(3), repeat=3):
            pair = []
            for scores in (steps, tuple(a + b for a, b in zip(steps, move, strict=True))):
                key = tuple(sorted(max(scores) - s for s in scores))
                if key not in found:
                    found[key] = dict(zip(key, flipped([-half * d for d in key], eps), strict=True))
                pair.append(np.array([found[key][max(scores) - s] for s in scores]))
            for p, other in (pair, pair[::-1]):
                deltas = np.maximum(p - np.exp(totals)[:, None] * other, 0).sum(axis=1)
                assert (deltas <= allowed + 1e-12).all()
                attained = np.maximum(attained, deltas)
                divergences = np.log((p * (p / other) ** (orders[:, None] - 1)).sum(axis=1))
                ratio = float((divergences / (orders - 1) / orders).max())
                most = max(most, ratio)
                if not any(s % 2 for s in (*steps, *move)):
                    largest_of_counts = max(largest_of_counts, ratio)
    assert 0.65 * rho < largest_of_counts < most
    assert 0.66 * rho < most <= rho * (1 + 1e-9)
    # at a total of 0 it is attained, with the scores half a step apart: a smaller law would not do
    assert attained[4] == pytest.approx(allowed[4], abs=1e-12)


def test_a_table_has_the_law_of_its_cells():
    """All tables of up to two rows a cell, and their neighbours: the law of the loss by its definition."""
    for replaced in (False, True):
        law = PrivacyMeasure(concentrated=False, replaced=replaced)
        cost = Fraction(3, 2)
        stated = law.loss_of_table(cost)
        assert stated.epsilon == cost
        rate, worst = float(law.rate(cost)), 0.0
        noise = {z: tanh(rate / 2) * exp(-rate * abs(z)) for z in range(-60, 61)}
        mean = sum(p * rate * (abs(z - 1) - abs(z)) for z, p in noise.items())
        for cells in product(range(3), repeat=3):
            for other in product(range(3), repeat=3):
                moves = [abs(a - b) for a, b in zip(cells, other, strict=True)]
                neighbours = sum(moves) == (2 if replaced else 1)
                if not neighbours or (replaced and sum(cells) != sum(other)):
                    continue
                worst = max(worst, mean * sum(moves))
        assert worst == pytest.approx(float(stated.rho), rel=1e-9)
        assert dict(stated.laws) == {RandomisedResponse(law.rate(cost)): 1 + replaced}


DOMAINS = [Domain(list("abcd")), Domain([Column("x", list("abc")), Column("y", list("de")), "z"])]


def plans():
    for domain in DOMAINS:
        for relation in ("replace-one", "add-remove"):
            for strategy in ("cells", "contrasts", "pairs", "adaptive"):
                for delta in (None, Fraction(1, 100)):
                    given = {"epsilon": 1, "neighbours": relation, "strategy": strategy, "delta": delta}
                    given |= {"n": 400} if relation == "replace-one" else {"n_max": 400}
                    with suppress(ValueError):
                        yield smalldb.plan(domain, "marginals:2", mechanism="marginals", rows=20, **given)


def test_every_strategy_states_its_loss():
    seen = set()
    for plan in plans():
        loss = plan.loss
        seen.add((plan.strategy, plan.delta is None))
        assert loss.rho is not None
        if plan.delta is None:
            assert loss.epsilon == plan.privacy == 1
            assert loss.least_rho <= RandomisedResponse(Fraction(1)).rho
        else:
            assert loss.epsilon is None and loss.laws is None
        if plan.strategy == "cells" and plan.neighbours.value == "replace-one":
            assert loss.rho < Fraction(1, 4) and loss.laws is not None
    assert {name for name, _ in seen} == {"cells", "contrasts", "pairs", "adaptive"}
    assert {("contrasts", False), ("adaptive", False)} <= seen


def ways(strategy, left, step, factor):
    """All that rounds may cost from here, path by path: tables of 4 or 64 cells, that told or not."""
    yield [("again", left)]
    for cells in (4, 64):
        raised = strategy.raised(factor)
        cost = raised.cost_of(cells)
        if step and raised.selecting + cost <= left:
            rest = left - raised.selecting - cost
            for times in (1, 2):
                for path in ways(strategy, rest, step - 1, factor * times):
                    yield [("selecting", raised.selecting), ("measuring", cost), *path]


@pytest.mark.slow
def test_no_path_of_rounds_loses_more_than_is_stated():
    from smalldb.marginals.strategies.budgets import column_groups, shares_of_columns

    tried = 0
    for plan in plans():
        strategy = plan.chosen.strategy
        if not isinstance(strategy, Adaptive) or plan.delta is not None or not strategy.rounds:
            continue
        strategy = replace(strategy, halved=False)  # rounds go on in their noise
        stated = strategy._loss_of_rounds
        sizes = strategy.universe.sizes
        groups = column_groups(sizes, range(len(sizes)), False)
        shares = shares_of_columns(sizes, groups, False)
        for path in ways(strategy, strategy.for_rounds, 5, Fraction(1)):
            tried += 1
            spent, law = Loss.none(), strategy.law
            for kind, cost in path:
                if kind == "again":
                    for group in groups:
                        if own := cost * sum(shares[c] for c in group):
                            alone = len(group) == 1
                            spent = spent.together(law.loss_of_table(own) if alone else Loss.pure(own))
                else:
                    of = law.loss_of_selection if kind == "selecting" else law.loss_of_table
                    spent = spent.together(of(cost))
            assert spent.epsilon <= stated.epsilon and spent.rho <= stated.rho
    assert tried > 100


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_rounds_that_end_at_once_lose_what_columns_measured_again_do(neighbours):
    """All of the budget for columns at once: by epsilon alone, of which nothing loses more."""
    n = {"n": 5000} if neighbours == "replace-one" else {"n_max": 5000, "neighbours": neighbours}
    given = {"epsilon": 1, "strategy": "adaptive", "mechanism": "marginals"}
    strategy = smalldb.plan(
        Domain([Column(c, 3) for c in "abcd"]), "marginals:2", **n, **given
    ).chosen.strategy
    stated, again = strategy._loss_of_rounds, Loss.pure(strategy.for_rounds)
    assert stated.epsilon == again.epsilon > 0 and again.rho <= stated.rho <= again.rho * Fraction(1001, 1000)


def test_a_group_of_rows_loses_more():
    one = Loss.ranged(Fraction(1, 10)).of_group(3)
    assert one == Loss.ranged(Fraction(3, 10)) and one.bounded_range == Fraction(3, 10)
    two = Loss.geometric(Fraction(1, 10), 1, 2)
    group = two.of_group(3)
    assert (group.epsilon, group.rho, group.laws) == (Fraction(6, 10), 9 * two.rho, None)
    assert Loss.concentrated(Fraction(1, 7)).of_group(3).rho == Fraction(9, 7)
    plan = smalldb.plan(DOMAINS[0], "marginals:1", n=100, epsilon=1, rows_per_person=4, mechanism="marginals")
    assert plan.loss.epsilon == plan.privacy and plan.loss.least_rho <= RandomisedResponse(plan.privacy).rho


def test_losses_of_steps_add_up_and_of_ways_do_not():
    table, draw = Loss.geometric(Fraction(1, 4), 1, 2), Loss.ranged(Fraction(1, 2))
    both = table.together(draw).together(table)
    assert both.epsilon == Fraction(3, 2) and both.rho == 2 * table.rho + draw.rho
    assert dict(both.laws) == {RandomisedResponse(Fraction(1, 4)): 4, BoundedRange(Fraction(1, 2)): 1}
    either = table.either(draw)
    assert (either.epsilon, either.rho, either.laws) == (Fraction(1, 2), max(table.rho, draw.rho), None)
    assert table.together(Loss.concentrated(Fraction(1))).epsilon is None
    assert table.together(Loss(Fraction(1), None)).least_rho == RandomisedResponse(Fraction(3, 2)).rho
    assert Loss.none().least_rho == 0


def test_laws_are_written_and_read():
    laws = {GeometricNoise(Fraction(1, 3), 4): 2, LaplaceNoise(SIZES[1]): 1, BoundedRange(SIZES[3]): 5}
    loss = Loss.of(laws)
    assert read_laws(loss.laws_as_json()) == laws
    assert Loss.concentrated(Fraction(1)).laws_as_json() is None
    for wrong in (
        [{"law": "none such", "times": 1}],
        [{"law": "bounded range", "times": 1}],
        [{"law": "bounded range", "epsilon": "-1", "times": 1}],
        [{"law": "geometric noise", "rate": "1", "moved": 0, "times": 1}],
        [{"law": "bounded range", "epsilon": "1", "times": 0}],
    ):
        with pytest.raises(ValueError):
            read_laws(wrong)


def test_the_record_states_rho_and_laws():
    rows = Rows.from_codes(DOMAINS[0], np.eye(4, dtype=np.uint8).repeat(25, axis=0))
    plan = smalldb.plan(DOMAINS[0], "marginals:1", n=100, epsilon=1, mechanism="marginals", strategy="cells")
    record = smalldb.release(plan, rows).record
    assert record["schema"] == 2
    assert record["privacy"]["laws"] == plan.loss.laws_as_json()
    assert Fraction(record["privacy"]["rho"]) == plan.loss.rho < Fraction(1, 4)
