"""Composition: the theory's figures, brute force over all outcomes, and an independent accountant."""

import math
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smalldb import accounting
from smalldb.accounting import (
    adaptive_delta,
    binomials,
    compose,
    compose_losses,
    curves,
    gaussian_limit,
    most_releases,
    per_release,
)
from smalldb.noise.privacy_loss import BoundedRange, Loss

OPTIMAL = "optimal, bounded range, non-adaptive (DDR 2020)"
COLUMNS = [  # as in the theory's table
    "addition",
    "advanced (DRV 2010)",
    "advanced (KOV 2015)",
    "optimal, pure (KOV 2015)",
    "Azuma, bounded range",
    "zCDP eps^2/8, loose",
    "zCDP eps^2/8",
    "Renyi, bounded range",
    "Gaussian limit",
    OPTIMAL,
]
TABLE = {
    (16, "0.25", "1e-5"):
        [4, 5.93463, 5.29594, 3.89412, 2.52416, 2.52426, 2.16572, 2.07556, 1.99309, 1.95976],
    (100, "0.1", "1e-6"):
        [10, 6.30823, 5.75611, 4.77457, 2.75324, 2.75326, 2.41909, 2.40020, 2.25408, 2.24603],
    (1000, "0.05", "1e-6"):
        [50, 10.87485, 9.56103, 8.28357, 4.46813, 4.46815, 4.01028, 4.00678, 3.74722, 3.74559],
    (30, 1, "1e-6"): [30, 80.34, 42.65, 29.988, 18.0946, 18.1456, 17.1570, 16.2322, 16.1904, 15.5855],
}  # fmt: skip


def by_method(made):
    return made.table.set_index("method")["epsilon"]


@pytest.mark.parametrize("case", TABLE, ids=str)
def test_table(case):
    releases, epsilon, delta = case
    made = compose(epsilon=epsilon, releases=releases, delta=delta, bounded_range=True)
    for method, expected in zip(COLUMNS, TABLE[case], strict=True):
        assert by_method(made)[method] == pytest.approx(expected, rel=2e-4 if releases == 30 else 2e-5)
    assert made.method == "Renyi, bounded range"
    assert made.epsilon == by_method(made)["Renyi, bounded range"]


def test_vectors(vectors):
    made = by_method(compose(epsilon=0.5, releases=10, delta=1e-6, bounded_range=True))
    value = vectors["acc_T10"]["value"]
    keys = "pure adv_DRV adv_KOV opt_dp br_azuma zcdp_simple zcdp_tight br_rdp gdp_clt".split()
    for key, method in zip(keys, COLUMNS, strict=False):
        assert made[method] == pytest.approx(value[key], rel=1e-7)
    assert made[OPTIMAL] == pytest.approx(vectors["br_eps_T10_.5_1e-6"]["value"], rel=1e-7)
    hundred = by_method(compose(epsilon=0.1, releases=100, delta=1e-6, bounded_range=True))
    assert hundred[OPTIMAL] == pytest.approx(vectors["br_eps_T100_.1_1e-6"]["value"], rel=1e-7)
    assert curves.mean_loss(np.array([1.0]))[0] == pytest.approx(vectors["zcdp_KL_eps1"]["value"], rel=1e-12)
    for name, releases, eps, total in (
        ("brdelta_k1_eps1_eg0.3", 1, 1, 0.3),
        ("brdelta_k2_eps1_eg0.5", 2, 1, 0.5),
        ("brdelta_k3_eps1_eg0.7", 3, 1, 0.7),
        ("brdelta_k6_eps0.3_eg0.5", 6, 0.3, 0.5),
    ):
        assert binomials.range_delta(total, eps, releases) == pytest.approx(vectors[name]["value"], rel=1e-10)


def test_releases_that_are_only_pure_have_no_bound_of_their_range():
    made = compose(epsilon=0.5, releases=10, delta=1e-6)
    assert made.table["valid"].all() and 4.9998 <= made.epsilon < 5
    assert not made.table["method"].str.contains("range|zCDP|Gaussian").any()


def composed(pairs, total):
    """Delta of a product of pairs, each (log ratio, probability under the less likely), by its outcomes."""
    terms = []
    for outcomes in product(*pairs):
        loss, probability = sum(loss for loss, _ in outcomes), math.prod(p for _, p in outcomes)
        terms.append(probability * max(math.exp(loss) - math.exp(total), 0.0))
    return math.fsum(terms)


def response(eps):
    """Randomised response."""
    return [(eps, 1 / (1 + math.exp(eps))), (-eps, math.exp(eps) / (1 + math.exp(eps)))]


def ranged(eps, t):
    """The worst bounded-range pair with log ratios t and t - eps."""
    p = (math.exp(-t) - math.exp(-eps)) / -math.expm1(-eps)
    return [(t, p), (t - eps, 1 - p)]


@pytest.mark.parametrize("releases", range(1, 7))
@pytest.mark.parametrize("eps", [0.1, 0.7, 2.0])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.55, 0.9])
def test_deltas_are_those_of_all_outcomes(releases, eps, share):
    total = share * releases * eps
    assert binomials.pure_delta(total, eps, releases) == pytest.approx(
        composed([response(eps)] * releases, total), rel=1e-9, abs=1e-15
    )
    best = binomials.range_delta(total, eps, releases)
    stationary = [min(max((total + (i + 1) * eps) / (releases + 1), 0), eps) for i in range(releases + 1)]
    grid = [*np.linspace(0, eps, 41), *stationary]
    worst = max(composed([ranged(eps, t)] * releases, total) for t in grid)
    assert best == pytest.approx(worst, rel=1e-9, abs=1e-15)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_mixed_releases_are_bounded(data):
    """Of losses of both kinds, against all outcomes of pairs that they may have."""
    kinds = st.tuples(st.sampled_from(["0.1", "0.7", "1.5", "3"]), st.booleans(), st.floats(0, 1))
    losses, pairs = [], []
    for epsilon, bounded, share in data.draw(st.lists(kinds, min_size=1, max_size=5)):
        losses.append((Loss.ranged if bounded else Loss.pure)(Fraction(epsilon)))
        eps = float(epsilon)
        pairs.append(ranged(eps, share * eps) if bounded else response(eps))
    delta = data.draw(st.sampled_from([0.3, 1e-2, 1e-5, 1e-8]))
    table = compose_losses(losses, delta=delta).table
    for total in table[table["valid"]]["epsilon"]:
        assert composed(pairs, total) <= delta * (1 + 1e-9)


def test_the_non_adaptive_optimum_is_refused_for_adaptive_use():
    given = {"epsilon": 0.5, "releases": 10, "delta": 1e-6, "bounded_range": True}
    adaptive, fixed = compose(**given), compose(**given, adaptive=False)
    assert fixed.method == OPTIMAL
    assert fixed.epsilon < adaptive.epsilon
    valid = adaptive.table.set_index("method")["valid"]
    assert not valid[OPTIMAL]
    assert not valid["Gaussian limit"]
    assert not fixed.table.set_index("method")["valid"]["Gaussian limit"]


@pytest.fixture
def digits():
    with localcontext() as context:
        context.prec, context.Emin, context.Emax = 320, MIN_EMIN, MAX_EMAX
        yield


def exactly(eps, order):
    """Both Renyi curves and the mean loss with 320 digits, as the worst pairs define them."""
    eps, a, one = Decimal(eps), Decimal(order), Decimal(1)
    pure = (((a * eps).exp() + ((1 - a) * eps).exp()) / (1 + eps.exp())).ln() / (a - 1)
    b = (1 - (-a * eps).exp()) / (1 - (-eps).exp())
    t = ((a - 1) * b / (a * (b - 1))).ln()
    bounded = (a * t + (1 + b * ((-t).exp() - 1)).ln()) / (a - 1)
    ratio = eps / (eps.exp() - one)
    return pure, bounded, ratio - 1 - ratio.ln()


@pytest.mark.slow
@pytest.mark.parametrize("eps", [1e-12, 1e-8, 1e-5, 1e-3, 0.0099, 0.011, 0.3, 1.0, 2.5, 40.0, 290.0, 310.0])
@pytest.mark.parametrize("above", [3e-4, 0.02, 1.0, 7.0, 1e3, 1e6, 1e11, 1e15])
def test_curves_are_exact_to_rounding(digits, eps, above):
    order = 1 + above
    pure, bounded, mean = exactly(eps, order)
    found = [float(f(np.array([eps]), order)[0]) for f in (curves.pure_curve, curves.range_curve)]
    assert abs(Decimal(found[0]) / pure - 1) < Decimal("1e-11")
    if eps < curves.LARGE:
        assert abs(Decimal(found[1]) / bounded - 1) < Decimal("1e-11")
    else:
        assert bounded <= found[1] == eps
    above_mean = Decimal(float(curves.mean_loss(np.array([eps]))[0])) / mean - 1
    assert (
        Decimal("-1e-10") < above_mean < Decimal("2e-6" if eps < 0.01 else "1e-10" if eps < 300 else "0.03")
    )


def exact_delta(total, pair, releases):
    """Delta of so many equal pairs of two outcomes (loss, probability under the less likely), by Decimals."""
    (high, p), (low, q) = pair
    terms = (
        math.comb(releases, i) * p ** (releases - i) * q**i * (loss.exp() - total.exp())
        for i in range(releases + 1)
        if (loss := (releases - i) * high + i * low) > total
    )
    return sum(terms, Decimal(0))


def exact_pair(eps, t):
    p = ((-t).exp() - (-eps).exp()) / (1 - (-eps).exp())
    return (t, p), (t - eps, 1 - p)


SCALES = [(1000, 30, "1e-6"), (745, 30, "1e-6"), (10**5, 7, "1e-9"), (300, 20, "0.5"), (2, 5, "0.9")]
SCALES += [("1e-13", 10, "1e-14"), ("1e-13", 3, "1e-13"), ("1e-40", 10, "1e-41"), ("1e-8", 40, "1e-9")]


@pytest.mark.slow
@pytest.mark.parametrize("eps, releases, delta", [*SCALES, ("1/2", 10, "1e-6")])
def test_no_bound_is_too_low_at_any_scale(digits, eps, releases, delta):
    """Each one against exact pairs: stationary ones, and such as are a fixed amount off the largest."""
    made = compose(epsilon=eps, releases=releases, delta=delta, bounded_range=True, adaptive=False)
    e, allowed = Decimal(Fraction(eps).numerator) / Fraction(eps).denominator, Decimal(delta)
    for method, total in by_method(made)[made.table["valid"].to_numpy()].items():
        g = Decimal(float(total))
        positions = [(g + (i + 1) * e) / (releases + 1) for i in range(releases + 1)]
        positions += [e - gap for gap in map(Decimal, ("0.1", "1", "5")) if gap < e]
        worst = max(
            (exact_delta(g, exact_pair(e, t), releases) for t in positions if t < e), default=Decimal(0)
        )
        assert worst <= allowed, method
        if "pure" in method or "advanced" in method:
            heads = e.exp() / (1 + e.exp())
            assert exact_delta(g, ((e, 1 - heads), (-e, heads)), releases) <= allowed, method
    best = by_method(made)[OPTIMAL]
    g = Decimal(float(best)) * (1 - Decimal("3e-9"))
    if best:  # and it is not much too high
        positions = [(g + (i + 1) * e) / (releases + 1) for i in range(releases + 1)]
        slack = 1 - Decimal(binomials.slack(float(e), releases) - 1) * 4
        assert max(exact_delta(g, exact_pair(e, t), releases) for t in positions if t < e) > allowed * slack


@pytest.mark.parametrize("eps", ["1e-9", "1e-30", "1e-60"])
def test_orders_are_searched_as_far_as_they_matter(eps):
    delta = Fraction(eps) / 10**6
    made = by_method(compose(epsilon=eps, releases=50, delta=delta, bounded_range=True))
    assert made["Renyi, bounded range"] <= made["zCDP eps^2/8"] < made["zCDP eps^2/8, loose"]


@pytest.mark.slow
@pytest.mark.parametrize("bounded_range", [False, True])
@pytest.mark.parametrize(
    "total, releases, delta",
    [(1, 10, 1e-6), ("1/2", 100, 1e-5), (3, 7, 0), (20, 40, 1e-9), (1, 10_000, 1e-6), (0.01, 1, 1e-3)],
)
def test_per_release_inverts(total, releases, delta, bounded_range):
    """The last case: one release may have more than the total, from pure privacy alone, too."""
    each = per_release(epsilon=total, releases=releases, delta=delta, bounded_range=bounded_range)
    given = {"releases": releases, "delta": delta, "bounded_range": bounded_range}
    assert compose(epsilon=each, **given).epsilon <= float(Fraction(total)) * (1 + 1e-15)
    assert compose(epsilon=Fraction(each * (1 + 1e-9)), **given).epsilon > float(Fraction(total))
    assert each >= float(Fraction(total)) / releases * (1 - 1e-15)
    if releases == 1:
        worst = [ranged(each, t) for t in np.linspace(0, each, 2001)] if bounded_range else [response(each)]
        assert max(composed([pair], total) for pair in worst) == pytest.approx(delta, rel=1e-5)
        assert (each > 0.018) is bounded_range and each > 0.01


@pytest.mark.parametrize("eps, releases, delta", [(0.05, 300, 1e-6), (0.3, 40, 0.2), (2.0, 90, 1e-9)])
def test_the_windows_leave_nothing_out(eps, releases, delta):
    """Deltas and the least epsilon against the sums over all outcomes, in full."""

    def excess(total, logs, losses):
        return np.exp(logs) @ np.maximum(-np.expm1(total - losses), 0)

    i = np.arange(releases + 1)
    choose = np.log([float(math.comb(releases, j)) for j in range(releases + 1)])

    def pure(total):
        return excess(total, choose - releases * np.logaddexp(0, -eps) - i * eps, (releases - 2 * i) * eps)

    def fixed(total):
        found = []
        for t in (total + (i + 1) * eps) / (releases + 1):
            if t < eps:
                high = -math.expm1(t - eps) / -math.expm1(-eps)
                logs = choose + (releases - i) * math.log(high) + i * math.log1p(-high)
                found.append(excess(total, logs, releases * t - i * eps))
        return max(found, default=0.0)

    for share in (0.01, 0.2, 0.5, 0.9):
        total = share * releases * eps
        assert binomials.pure_delta(total, eps, releases) == pytest.approx(pure(total), rel=1e-9, abs=1e-300)
        assert binomials.range_delta(total, eps, releases) == pytest.approx(
            fixed(total), rel=1e-9, abs=1e-300
        )
    least = binomials.range_epsilon(eps, releases, delta)
    assert fixed(least) <= delta < fixed(least * (1 - 1e-8))
    assert binomials.range_within(least, eps, releases, delta)
    assert not binomials.range_within(least * (1 - 1e-8), eps, releases, delta)


def test_a_million_releases():
    made = compose(epsilon="1/1000", releases=10**6, delta=1e-6, bounded_range=True)
    table = by_method(made)
    assert 2.24 < table["Gaussian limit"] < made.epsilon < 2.42
    assert 4.77 < table["optimal, pure (KOV 2015)"] < 5.0 < table["advanced (KOV 2015)"]
    assert OPTIMAL not in table
    assert compose(epsilon="1e-9", releases=10**12, delta=1e-6).table["valid"].all()


@pytest.mark.parametrize(
    "epsilons", [[0.5, 0.25, 1.0], [0.1] * 4 + [0.7] * 3, [2.0, 0.01, 0.01, 0.3]], ids=str
)
@pytest.mark.parametrize("share", [0.05, 0.4, 0.8])
def test_unequal_pure_releases_are_nearly_optimal(epsilons, share):
    """Against all outcomes of randomised responses, which no bound from privacy alone can be below."""
    total = share * sum(epsilons)
    truth = composed([response(eps) for eps in epsilons], total)
    found = accounting.delta(total=total, epsilon=epsilons)
    assert truth <= found <= truth * 1.01 + 1e-9
    made = compose(epsilon=epsilons, delta=Fraction(truth))
    assert total <= made.epsilon <= total * 1.01
    assert made.method == "optimal, pure, each rounded up to a grid"


@pytest.mark.slow
@pytest.mark.parametrize("bounded_range", [False, True])
@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("eps, releases, total", [("1/2", 10, 2), ("1/10", 100, 3), (1, 1, "0.3"), (2, 3, 1)])
def test_deltas_and_totals_invert_each_other(eps, releases, total, adaptive, bounded_range):
    given = {"epsilon": eps, "releases": releases, "adaptive": adaptive, "bounded_range": bounded_range}
    found = accounting.delta(total=total, **given)
    slack = 1 + 1e-6
    assert compose(**given, delta=found * slack).epsilon <= float(Fraction(total)) * (1 + 1e-9)
    assert compose(**given, delta=found / slack).epsilon >= float(Fraction(total)) * (1 - 1e-9)
    if releases < 5:
        each = float(Fraction(eps))
        pair = ranged(each, each / 2) if bounded_range else response(each)
        assert composed([pair] * releases, float(Fraction(total))) <= found


def test_the_ends():
    assert accounting.delta(total=5, epsilon="1/2", releases=10) == 0.0
    assert accounting.delta(total="1e-9", epsilon=50, releases=1000) <= 1.0
    assert accounting.delta(total="1e100", epsilon="1e100", releases=2) == 1.0  # beyond what floats can do
    for total in (2, "2.5", 10**9, 10**300):  # all epsilons need no delta
        assert adaptive_delta(total=total, epsilon=1, releases=2) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("bounded_range", [False, True])
@pytest.mark.parametrize(
    "epsilon, total, delta",
    [("1/10", 1, 1e-6), ("1/10", 1, 0), (1, "1/2", 0), ("1/3", 7, "1/1000"), (1, "0.999", "1/10")],
)
def test_the_most_releases_are_the_last_that_fit(epsilon, total, delta, bounded_range):
    given = {"epsilon": epsilon, "delta": delta, "bounded_range": bounded_range}
    most = most_releases(total=total, **given)
    allowed = float(Fraction(total)) * (1 + 1e-15)
    assert most == 0 or compose(releases=most, **given).epsilon <= allowed
    assert compose(releases=most + 1, **given).epsilon > allowed * (1 - 1e-8)


def test_gaussian_limits():
    assert gaussian_limit(epsilon=[3, 4]) == pytest.approx(5)
    assert gaussian_limit(epsilon=[3, 4], bounded_range=True) == pytest.approx(2.5)
    one = {"epsilon": 1, "releases": 1, "bounded_range": True, "total": "0.3"}
    assert gaussian_limit(**one) == pytest.approx(0.09635, abs=1e-5)
    assert accounting.delta(**one) == pytest.approx(0.13796280335447103, rel=1e-8)
    many = {"epsilon": "1/1000", "releases": 10**6, "total": 4}
    assert gaussian_limit(**many) == pytest.approx(accounting.delta(**many), rel=1e-2)


def test_the_adaptive_optimum_is_enclosed(vectors):
    value = vectors["br_adaptive_k2_eps1_eg0"]["value"]
    low, high = adaptive_delta(total=0, epsilon=1, releases=2)
    assert value["lower"] - 1e-12 <= low <= high <= value["upper"]
    fixed = binomials.range_delta(0.0, 1.0, 2)
    assert low > fixed + 0.01 and fixed == pytest.approx(value["nonadaptive"], rel=1e-9)
    note = {("0.7", 3): (0.161261, 0.161966), (1, 4): (0.147299, 0.148081), ("0.5", 2): (0.152451, 0.152453)}
    for (total, releases), (least, most) in note.items():
        low, high = adaptive_delta(total=total, epsilon=1, releases=releases)
        assert least - 2e-6 <= low <= high <= most
        assert high - low < 1e-5
        assert binomials.range_delta(float(Fraction(total)), 1.0, releases) <= high


@pytest.mark.slow
@pytest.mark.parametrize("eps, releases, total", [(1.0, 2, 0.3), (0.5, 4, 0.9), (2.0, 3, 1.0)])
@pytest.mark.parametrize("steps", [1, 3, 20])
def test_brackets_hold_however_coarse(eps, releases, total, steps):
    fine = adaptive_delta(total=total, epsilon=eps, releases=releases, steps=300)
    low, high = adaptive_delta(total=total, epsilon=eps, releases=releases, steps=steps)
    assert low <= fine[1]
    assert fine[0] <= high
    assert adaptive_delta_by_hand(total, eps, releases, steps) == pytest.approx(low, rel=1e-9)
    assert fine[1] <= accounting.delta(total=total, epsilon=eps, releases=releases, bounded_range=True)


def adaptive_delta_by_hand(total, eps, releases, steps):
    """The recursion as it is written, over log ratios on a grid."""
    if not releases:
        return max(0.0, 1 - math.exp(total))
    found = 0.0
    for t in (i * eps / steps for i in range(steps + 1)):
        if releases > 2 and steps > 3:
            return adaptive_delta(total=total, epsilon=eps, releases=releases, steps=steps)[0]
        p = (1 - math.exp(t - eps)) / (1 - math.exp(-eps))
        values = (adaptive_delta_by_hand(g, eps, releases - 1, steps) for g in (total - t, total - t + eps))
        found = max(found, p * next(values) + (1 - p) * next(values))
    return found


@pytest.mark.parametrize("epsilon, delta", [(1, "1e-400"), ("1e-400", 1e-6), ("1e200", 1e-6)])
@pytest.mark.parametrize("bounded_range", [False, True])
def test_beyond_floats_only_addition_is_left(epsilon, delta, bounded_range):
    made = compose(epsilon=epsilon, delta=delta, releases=2, bounded_range=bounded_range)
    assert list(made.table["method"]) == ["addition"]
    assert Fraction(made.epsilon) >= 2 * Fraction(epsilon)


def test_forms_of_epsilons():
    """Any iterable is as many releases; an array of no dimension is its number."""
    for epsilons in (np.array([0.1, 0.2]), (e for e in ("1/10", "1/5")), {0.1: 1, 0.2: 2}.keys()):
        table = compose(epsilon=epsilons, delta=1e-6).table
        assert table.equals(compose(epsilon=[0.1, 0.2], delta=1e-6).table)
    assert compose(epsilon=np.array(0.5), releases=3, delta=0).epsilon == 1.5
    made = compose(epsilon=[0.1, 0.2], delta=1e-6, bounded_range=True, adaptive=False)
    assert OPTIMAL not in by_method(made)
    note = made.table.set_index("method")["note"]["Renyi, bounded range"]
    assert note == "the optimal bound is for up to 10000 equal releases"
    for function in (accounting.delta, gaussian_limit):
        equal = function(total=1, epsilon="0.1", releases=20)
        assert equal == function(total=1, epsilon=["0.1"] * 20)
        assert equal == function(total=1, epsilon=np.array(0.1), releases=20)


@pytest.mark.slow
@pytest.mark.parametrize("bounded_range", [False, True])
@pytest.mark.parametrize("epsilon", ["1e-9", "1/2", 1, 50, 800, 10**6])
@pytest.mark.parametrize("releases", [1, 3, 900])
@pytest.mark.parametrize("delta", ["1e-12", "0.3"])
def test_nothing_overflows_or_is_below_0(epsilon, releases, delta, bounded_range):
    made = compose(epsilon=epsilon, releases=releases, delta=delta, bounded_range=bounded_range)
    assert 0 <= made.epsilon <= float(Fraction(epsilon)) * releases
    assert not made.table["epsilon"].isna().any()


def test_the_range_pays_for_sixteen_times_as_many():
    """Scores of range 1 and sensitivity 1: twice the sensitivity would be charged without the range."""
    for epsilon, k in ((Fraction(1, 10), 100), (Fraction(1, 7), 3)):
        charged = gaussian_limit(epsilon=2 * epsilon, releases=k)
        assert charged == pytest.approx(2 * float(epsilon) * math.sqrt(k))
        for times, factor in ((1, 4), (16, 1)):
            of_range = gaussian_limit(epsilon=epsilon, releases=times * k, bounded_range=True)
            assert charged == pytest.approx(factor * of_range)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["1e-6", "1e-4", 1, 100])
@pytest.mark.parametrize("share", ["0", "1/3", "9/10"])
def test_the_adaptive_bracket_holds_at_any_epsilon(epsilon, share):
    """One release has its optimum in closed form; two lose no less adaptively than fixed in advance."""
    each = Fraction(epsilon)
    for k in (1, 2):
        total = k * each * Fraction(share)
        low, high = accounting.adaptive_delta(total=total, epsilon=each, releases=k)
        fixed = binomials.range_delta(float(total), float(each), k)
        assert low <= high
        assert fixed <= high
        assert k > 1 or low <= fixed * (1 + 1e-9)


# Top-k of an unknown domain


def limited_domain(counts, k, known, epsilon, margin):
    """The law of the ranked list, by peeling among the known elements and the sentinel (None)."""
    order = sorted(range(len(counts)), key=lambda i: -counts[i])
    weights = {i: math.exp(epsilon * counts[i]) for i in order[:known] if counts[i]}
    weights[None] = math.exp(epsilon * (counts[order[known]] + margin))
    law = {}

    def peel(drawn, chance):
        if len(drawn) == k or drawn[-1:] == (None,):
            law[drawn] = law.get(drawn, 0) + chance
            return
        left = {i: weight for i, weight in weights.items() if i not in drawn}
        for i, weight in left.items():
            peel((*drawn, i), chance * weight / sum(left.values()))

    peel((), 1)
    return law


def worst_excess(k, known, epsilon, margin, total):
    """The largest sum of (P - e^total P')+ over neighbours of four elements with counts up to 3."""
    worst = 0
    laws = {
        counts: limited_domain(counts, k, known, epsilon, margin) for counts in product(range(4), repeat=4)
    }
    for counts, law in laws.items():
        for row in product((0, 1), repeat=4):
            more = tuple(map(sum, zip(counts, row, strict=True)))
            if more in laws:
                for one, two in ((law, laws[more]), (laws[more], law)):
                    worst = max(
                        worst, sum(max(0, p - math.exp(total) * two.get(o, 0)) for o, p in one.items())
                    )
    return worst


@pytest.mark.slow
@pytest.mark.parametrize("k, known", [(1, 1), (1, 2), (2, 2), (2, 3)])
@pytest.mark.parametrize("epsilon, delta", [("1/2", "0.2"), (2, "0.01")])
def test_an_unknown_domain_loses_no_more(k, known, epsilon, delta):
    found = accounting.unknown_domain_top_k(k=k, known=known, epsilon=epsilon, delta=delta)
    each = float(Fraction(epsilon))
    assert found.margin == pytest.approx(1 + math.log(2 * known / float(delta)) / each, rel=1e-12)
    assert found.delta == Fraction(delta)
    lost = worst_excess(k, known, each, found.margin, found.epsilon)
    assert 0 < lost <= float(delta)
    # without its margin the sentinel would not hide who is known
    assert worst_excess(k, known, each, 0, found.epsilon) > float(delta)


@pytest.mark.parametrize("known, each, delta", [(1, "0.5", "0.2"), (100, "0.1", "1e-6"), (7, 3, "0.01")])
def test_who_one_neighbour_alone_knows_seldom_passes_the_sentinel(known, each, delta):
    """Their counts, of which none was known, were the next, and a row adds 1 to each of them."""
    found = accounting.unknown_domain_top_k(k=1, known=known, epsilon=each, delta=delta)
    odds = known * math.exp(float(each) * (1 - found.margin))  # of the largest Gumbel noise
    assert 0.9 * float(delta) / 2 < odds / (1 + odds) < float(delta) / 2


@pytest.mark.parametrize(
    ("most", "reached"), [(20, 0.0218), pytest.param(150, 0.0372, marks=pytest.mark.long)]
)
def test_with_a_delta_the_number_of_releases_must_be_fixed(most, reached):
    """Who may stop anywhere, and states what `compose` says of so many, breaks the delta."""
    eps, delta = 0.1, Fraction(1, 100)
    truth = 1 / (1 + math.exp(-eps))
    stated = [0.0, *(compose(epsilon="0.1", releases=k, delta=delta).epsilon for k in range(1, most + 1))]
    # best[s]: the largest excess of P over e^stated P' of a rule that goes on from k answers, of sum s
    best = {s: 0.0 for s in range(-most - 1, most + 2)}
    for k in reversed(range(most + 1)):
        onwards = {s: truth * best[s + 1] + (1 - truth) * best[s - 1] for s in range(-k, k + 1, 2)}
        best |= {s: max(-math.expm1(stated[k] - s * eps), onwards[s]) for s in onwards}
    assert reached < best[0] < reached + 1e-4
    fixed = math.fsum(
        math.comb(most, i)
        * truth ** (most - i)
        * (1 - truth) ** i
        * max(0.0, -math.expm1(stated[most] - (most - 2 * i) * eps))
        for i in range(most + 1)
    )
    assert fixed <= float(delta)


def test_rounds_of_one_release_are_never_taken_as_fixed_in_advance():
    """What is peeled next depends on what was drawn before, whoever chose the releases."""
    step = BoundedRange(Fraction(1, 2))
    rounds, apart = (
        {*compose_losses(losses, delta=1e-6, adaptive=False).table["method"]}
        for losses in ([Loss.of({step: 10})], [Loss.of({step: 1})] * 10)
    )
    assert apart - rounds == {OPTIMAL}


TAKEN = {  # what each function takes
    compose: {"epsilon": 1, "releases": 2, "delta": 1e-6},
    per_release: {"epsilon": 1, "releases": 2, "delta": 0},
    most_releases: {"epsilon": 1, "total": 3, "delta": 0},
    accounting.delta: {"total": 1, "epsilon": 1, "releases": 2},
    adaptive_delta: {"total": 1, "epsilon": 1, "releases": 2},
    gaussian_limit: {"epsilon": 1, "releases": 5},
    accounting.unknown_domain_top_k: {"k": 2, "known": 5, "epsilon": 1, "delta": "1e-6"},
}
REFUSED = [
    (compose, {"epsilon": 0}, "epsilon"),
    (compose, {"epsilon": [0.1, -1]}, "epsilon"),
    (compose, {"epsilon": [], "releases": None}, "at least one"),
    (compose, {"releases": 0}, "releases"),
    (compose, {"releases": None}, "releases"),
    (compose, {"releases": 3, "epsilon": [1, 1]}, "number of epsilons"),
    (compose, {"releases": 10**16}, "releases must be at most"),
    (compose, {"releases": None, "epsilon": [1] * 100_001}, "at most 100000, if listed"),
    (compose, {"delta": 1}, "delta"),
    (compose, {"delta": -1e-9}, "delta"),
    *(
        (compose, {"epsilon": "1e400", "delta": delta}, "epsilon must be at most 1e300")
        for delta in (0, 1e-6)
    ),
    *((compose, {"epsilon": "1e308", "releases": 100, "delta": d}, "at most 1e300") for d in (0, 1e-6)),
    (per_release, {"epsilon": "1e-400"}, "epsilon must be larger"),
    (per_release, {"epsilon": "1e400"}, "epsilon must be at most"),
    (per_release, {"epsilon": "1e-320", "releases": 5, "delta": "1e-6"}, "epsilon must be larger"),
    (accounting.delta, {"total": 0}, "total"),
    (accounting.delta, {"releases": None}, "releases"),
    (accounting.delta, {"epsilon": -1}, "epsilon"),
    (adaptive_delta, {"releases": 65}, "releases"),
    (adaptive_delta, {"steps": 0}, "steps"),
    (adaptive_delta, {"steps": 2001}, "steps"),
    (adaptive_delta, {"epsilon": "1e-7"}, "epsilon must be from"),
    (adaptive_delta, {"epsilon": 101}, "epsilon must be from"),
    (adaptive_delta, {"total": -1}, "total"),
    *((gaussian_limit, {"epsilon": extreme}, "epsilon must be from") for extreme in ("1e-300", "1e300")),
    *((gaussian_limit, {"total": extreme}, "total must be from") for extreme in ("1e-300", "1e300")),
    (accounting.unknown_domain_top_k, {"known": 1}, "k must be at most"),
    (accounting.unknown_domain_top_k, {"delta": 0}, "delta must be"),
    (per_release, {"epsilon": [1, -1]}, "epsilon"),
    (most_releases, {"epsilon": [1, 2], "total": [1, 2, 3]}, "broadcast"),
]


@pytest.mark.parametrize("function, changes, message", REFUSED)
def test_what_is_refused(function, changes, message):
    with pytest.raises(ValueError, match=message):
        function(**TAKEN[function] | changes)


@pytest.mark.parametrize("changes", [{"adaptive": 1}, {"bounded_range": "yes"}, {"releases": 2.0}], ids=str)
def test_wrong_types(changes):
    with pytest.raises(TypeError):
        compose(**TAKEN[compose] | changes)


@pytest.mark.parametrize(
    ("function", "swept", "fixed"),
    [
        (per_release, {"epsilon": [[1], ["1/2"]], "releases": [3, 30]}, {"delta": 0}),
        (
            most_releases,
            {"total": [1, 2.5], "delta": [[0], ["1e-6"]]},
            {"epsilon": 0.1, "bounded_range": True},
        ),
        (
            accounting.delta,
            {"total": np.array([0.5, 1.0]), "releases": np.array([[5], [20]])},
            {"epsilon": "0.1"},
        ),
        (gaussian_limit, {"releases": [1, 4, 9]}, {"epsilon": Fraction(1, 10)}),
        (adaptive_delta, {"total": [0, 1], "epsilon": [[1], [2]]}, {"releases": 2, "steps": 20}),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_each_element_is_the_number(function, swept, fixed):
    """Or the two numbers of a bracket."""
    found = np.array(function(**swept, **fixed))
    spread = np.broadcast_arrays(*(np.array(value, dtype=object) for value in swept.values()))
    assert found.shape[-spread[0].ndim :] == spread[0].shape
    for position in np.ndindex(spread[0].shape):
        one = {name: values[position] for name, values in zip(swept, spread, strict=True)}
        assert np.array_equal(found[(..., *position)], function(**one, **fixed))
