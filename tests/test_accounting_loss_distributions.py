"""Composed losses against exact convolutions, another library, and the best of all adaptive adversaries."""

from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import product
from math import ceil, exp

import numpy as np
import pandas as pd
import pytest
from mpmath import mp, mpf
from test_privacy_loss import symmetric

import smalldb
from smalldb.accounting import KaryResponse, Loss, adaptive_delta, compose, compose_losses, compose_records
from smalldb.accounting.methods import LossDistribution
from smalldb.noise.privacy_loss import BoundedRange, GeometricNoise, LaplaceNoise, RandomisedResponse

EPS = Fraction(1, 5)


@cache
def together(laws):
    """The law of the loss of all of them, as the whole product."""
    with mp.workdps(40):
        found = Counter({mpf(0): mpf(1)})
        for law, times in laws:
            for _ in range(times):
                longer = Counter()
                for (x, p), (y, q) in product(found.items(), symmetric(law).items()):
                    longer[mp.nstr(x + y, 25)] += p * q
                found = Counter({mpf(x): p for x, p in longer.items()})
    return found


def exact_delta(laws, total):
    """The delta of laws together, at a total."""
    with mp.workdps(40):
        found = together(tuple(laws.items()))
        return mp.fsum(p * (1 - mp.exp(total - x)) for x, p in found.items() if x > total)


MIXES = [
    {RandomisedResponse(EPS): 1},
    {RandomisedResponse(EPS): 12},
    {RandomisedResponse(EPS): 3, GeometricNoise(EPS / 3, 3): 4},
    {KaryResponse(EPS, 4): 5, RandomisedResponse(2 * EPS): 2},
    {GeometricNoise(EPS / 10, 10): 3},
]


@pytest.mark.parametrize("laws", MIXES, ids=str)
@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-12])
def test_laws_together_are_those_of_an_exact_convolution(laws, delta):
    found = LossDistribution.of(Counter(laws), delta)
    largest = float(sum(law.epsilon * times for law, times in laws.items()))
    for total in np.linspace(0, largest * 0.99, 7).tolist():
        exact = float(exact_delta(laws, mpf(total)))
        stated = found.delta(total)
        assert exact <= stated
        if delta / 30 < exact < 30 * delta:
            assert stated <= exact * 1.05 + delta / 100


def test_laplace_noise_alone_is_as_by_integration():
    law = Counter({LaplaceNoise(Fraction(1)): 1})
    for total in np.linspace(-0.5, 0.99, 12).tolist():
        exact = 1 - exp((total - 1) / 2)
        assert exact <= LossDistribution.of(law, exact).delta(total) <= exact * 1.01


def test_laplace_noise_together_is_not_below_another_library():
    from dp_accounting.pld import privacy_loss_distribution as pld

    for times in (2, 20):
        theirs = pld.from_laplace_mechanism(5.0, value_discretization_interval=1e-4).self_compose(times)
        for total in (0.1, 0.3, 0.6):
            known = theirs.get_delta_for_epsilon(total)  # rounded up, by the steps of its grid
            if known > 1e-9:
                found = LossDistribution.of(Counter({LaplaceNoise(EPS): times}), known)
                assert found.delta(total) == pytest.approx(known, rel=0.02)


def test_a_law_of_bounded_range_covers_all_pairs():
    """One step: the largest delta of all log ratios t. Three: not below the best adversary."""
    eps = 1.0
    one = Counter({BoundedRange(Fraction(1)): 1})
    for total in np.linspace(-0.9, 0.95, 9):
        most = max(
            (1 - exp(t - eps)) / (1 - exp(-eps)) * max(0, 1 - exp(total - t))
            + (exp(t - eps) - exp(-eps)) / (1 - exp(-eps)) * max(0, 1 - exp(total - t + eps))
            for t in np.linspace(0, eps, 2001)
        )
        assert most <= LossDistribution.of(one, most).delta(float(total)) <= most * 1.01
    two = LossDistribution.of(Counter({BoundedRange(Fraction(1)): 3}), 1e-2)
    for total in (Fraction(0), Fraction(1, 2), Fraction(2)):
        low, _ = adaptive_delta(total=total, epsilon=1, releases=3)
        assert low <= two.delta(float(total))


@pytest.mark.slow
def test_composed_losses_are_never_below_the_truth():
    """Of fixed laws the product is the truth; every method that is called a bound is above it."""
    for laws in MIXES[2:4]:
        for delta in (1e-3, 1e-6):
            total = compose_losses([Loss.of(laws)], delta=delta)
            valid = total.table[total.table["valid"]]
            assert total.epsilon == valid["epsilon"].min()
            for epsilon in valid["epsilon"]:
                assert exact_delta(laws, mpf(float(epsilon))) <= delta
            split = compose_losses(
                [Loss.of({law: 1}) for law, n in laws.items() for _ in range(n)], delta=delta
            )
            assert split.epsilon == pytest.approx(total.epsilon, rel=1e-3)


def test_what_is_known_besides_epsilon_helps():
    delta = "1e-6"
    pure = compose_losses([Loss.pure(EPS)] * 40, delta=delta)
    assert pure.epsilon == compose(epsilon=EPS, releases=40, delta=delta).epsilon
    ranged = compose_losses([Loss.ranged(EPS)] * 40, delta=delta)
    assert ranged.epsilon == compose(epsilon=EPS, releases=40, delta=delta, bounded_range=True).epsilon
    noise = compose_losses([Loss.laplace(EPS)] * 40, delta=delta)
    cells = compose_losses([Loss.geometric(EPS / 2, 1, 2)] * 40, delta=delta)
    assert ranged.epsilon < cells.epsilon < noise.epsilon < pure.epsilon
    assert noise.method.startswith("privacy loss distributions")
    # the figures of docs/theory.md: noise on two counts of a row, and what is only pure
    two, known = (compose(epsilon=e, releases=k, delta=delta) for e, k in (("1/8", 100), ("1/4", 50)))
    assert (ceil(1000 * two.epsilon), ceil(1000 * known.epsilon)) == (6169, 8929)
    # from a rho alone
    rho = compose_losses([Loss(EPS, EPS**2 / 8)] * 40, delta=delta)
    assert rho.method == "Renyi, as stated" and rho.epsilon < cells.epsilon
    gaussian = compose_losses([Loss.concentrated(EPS**2 / 8)] * 40, delta=delta)
    assert gaussian.epsilon == pytest.approx(rho.epsilon, rel=1e-3)
    assert compose_losses([Loss.laplace(EPS)] * 3, delta=0).epsilon == pytest.approx(3 * float(EPS))


def test_refusals_of_losses():
    extreme = "delta must be at least 1e-300, and each rho"
    for losses, delta, message in (
        ([Loss.concentrated(EPS)], 0, "delta must be above 0"),
        ([Loss(None, None)], "1e-6", "neither"),
        ([0.5], "1e-6", "values of Loss"),
        ([], "1e-6", "at least one"),
        ([Loss.concentrated(EPS)], "1e-301", extreme),
        *(([Loss.concentrated(rho)], "1e-6", extreme) for rho in (Fraction(1, 10**90), Fraction(10**90))),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            compose_losses(losses, delta=delta)


def record(private=True, neighbours="replace-one", **privacy):
    return {
        "privacy": {"epsilon": "1", "bounded_range": None} | privacy,
        "delta": privacy.get("delta"),
        "neighbours": neighbours,
        "private": private,
    }


def test_records_compose_by_what_they_state():
    delta = "1e-6"
    pure = compose_records([record()] * 20, delta=delta)
    assert pure.epsilon == compose(epsilon=1, releases=20, delta=delta).epsilon
    frame = pd.DataFrame({"a": [0, 1, 1], "b": [0, 0, 1]})
    ours = smalldb.release(frame, "conjunctions:1", epsilon=1, rows=2).record
    ranged = compose_records([ours] * 20, delta=delta)
    assert ranged.epsilon == compose(epsilon=1, releases=20, delta=delta, bounded_range=True).epsilon
    mixed = compose_records([ours] * 10 + [record()] * 10, delta=delta)
    assert ranged.epsilon < mixed.epsilon <= 20
    assert "Azuma, bounded range" not in set(mixed.table["method"])
    rho = compose_records([record(rho="0.13")] * 20, delta=delta)
    assert rho.method == "Renyi, as stated" and rho.epsilon < pure.epsilon
    laws = Loss.geometric(Fraction(1, 2), 1, 2).laws_as_json()
    cells = compose_records([record(laws=laws)] * 20, delta=delta)
    assert cells.epsilon == compose(epsilon="1/2", releases=40, delta=delta).epsilon < pure.epsilon
    assert compose_records([record(laws=laws)], delta=0).epsilon == 1
    with_delta = compose_records([ours, record(delta="1/1000")], delta=delta)
    assert with_delta.delta == Fraction(1, 1000) + Fraction(delta)
    assert with_delta.epsilon == compose_records([ours, record()], delta=delta).epsilon
    for none in (None, "0", 0):  # a delta of 0 is none
        found = compose_records([record(delta=none), record()], delta=0)
        assert (found.epsilon, found.delta) == (2, 0)
    # a rho of what has a delta leaves the deltas for the sum; one record without a rho, and they are spent
    gaussian = record(rho="0.015", delta="1e-9")
    stated = compose_records([gaussian] * 10, delta=delta)
    assert stated.delta == Fraction("1.01e-6") and stated.method == "Renyi, by rho"
    exact = compose_losses([Loss.concentrated(Fraction("0.015"))] * 10, delta="1.01e-6").epsilon
    assert stated.epsilon == exact < 3.1
    assert compose_records([gaussian] * 9 + [record(delta="1e-9")], delta=delta).epsilon > 9


@pytest.mark.parametrize(
    "records, message",
    [
        ([], "at least one"),
        ([{"epsilon": 1}], "a key is missing"),
        ([{k: v for k, v in record().items() if k != "neighbours"}], "a key is missing"),
        ([record(neighbours=[])], "neighbours must be a text"),
        ([record(private=False)], "seeded"),
        ([record(), record(neighbours="add-remove")], "one neighbouring relation"),
        ([record(delta="1/2")] * 2, "delta"),
        ([record(laws=[])], "do not add up"),
        *(([record(**wrong)], ".") for wrong in ({"rho": "-1"}, {"rho": []}, {"laws": 3}, {"laws": [3]})),
    ],
)
def test_records_that_do_not_compose(records, message):
    with pytest.raises((ValueError, TypeError), match=message):
        compose_records(records, delta="1e-6")
