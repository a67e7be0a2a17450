"""Answers, what sees the data: exact counts, exact noise, and the privacy loss over all neighbours."""

import re
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from math import exp

import naive
import numpy as np
import pytest
from asking import Given
from asking import asked as answered
from builders import counted
from hypothesis import given
from hypothesis import strategies as st
from margins import ScriptedBits, obeys, outcomes
from parities import alternatives, asked, columns_alone, exact, planned
from scipy import stats
from scipy.linalg import hadamard

from queries import Column, Conjunctions, Domain, Halfspaces, Intervals, Linear, Marginals, Parities, Rows
from smalldb.accounting.concentrated import rho_of
from smalldb.exact import integers as drawing_module
from smalldb.exact.bits import SeededBits
from smalldb.exact.integers import coins, uniform_integers, whole_geometric
from smalldb.marginals.asks import Noisy
from smalldb.marginals.contrasts.spectrum import spectrum
from smalldb.marginals.counted_rows import odd_counts
from smalldb.marginals.curator import Unpaid
from smalldb.marginals.strategies.contrasts import GUARD
from smalldb.noise.distributions import DiscreteGaussian, Geometric, KNorm, WishartDifference
from smalldb.noise.k_norm import weights_of
from smalldb.noise.privacy_loss import Amount

pytestmark = pytest.mark.usefixtures("remembered")
RELATIONS = ["replace-one", "add-remove"]

CLASSES = [
    Conjunctions(2),
    Marginals(3, exactly=True),
    Parities(3),
    Halfspaces(),
    Intervals(),
    Linear([[0, "1/3", 1, 0.5] * 4, ["1/7"] + [0] * 15]),
]


def odd(row, positions):
    return sum(int(row[i]) for i in positions) % 2


@pytest.mark.parametrize("queries", CLASSES, ids=lambda q: q.text[:12])
def test_a_query_is_the_sum_of_its_parities(queries):
    workload = queries.workload(Domain([*"abcd"]))
    series = spectrum(workload)
    cells = workload.domain.table()
    chi = np.array([[(-1) ** odd(cell, positions) for cell in cells] for positions in series.sets])
    wanted = workload.matrix() / workload.denominator
    found = np.array([series.answers(column) for column in chi.T.astype(float)]).T
    np.testing.assert_allclose(found, wanted, atol=1e-14)
    assert list(series.sets) == sorted(set(series.sets), key=lambda s: (len(s), s))
    assert (series.coefficients != 0).all()
    for positions in combinations(range(4), 2):  # a parity that is left out is in no query
        if positions not in series.sets:
            column = [(-1) ** odd(cell, positions) for cell in cells]
            assert not (workload.matrix() @ column).any()


def test_weights_of_62_bits_are_transformed_without_wrapping():
    big = 2**61 - 1
    workload = Linear([[0, Fraction(big - 2, big), Fraction(1, big), 1]]).workload(Domain([*"ab"]))
    series = spectrum(workload)
    assert series.sets == ((0,), (1,), (0, 1))[: len(series.sets)]
    np.testing.assert_allclose(series.answers(np.ones(len(series.sets))), [0], atol=1e-15)
    np.testing.assert_allclose(series.constants, [0.5])


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_walsh_is_the_hadamard_matrix(dtype):
    from smalldb.kernels.cell_sums import walsh

    for d in range(7):
        values = np.arange(7, 7 + (1 << d)).astype(dtype) ** 2
        wanted = hadamard(1 << d).astype(dtype) @ values
        walsh(values)
        assert (values == wanted).all()


@given(st.integers(1, 90), st.integers(0, 150), st.integers(0, 2**32))
def test_odd_rows_are_counted(d, n, seed):
    generator = np.random.default_rng(seed)
    bits = (generator.random((n, d)) < generator.random(d)).astype(np.uint8)
    weights = [int(w) for w in generator.integers(0, 2 ** generator.integers(1, 40), n)]
    domain = Domain([f"a{i}" for i in range(d)])
    rows = Rows.from_counts(domain, domain.decode(bits), weights)
    sets = tuple(tuple(sorted({int(i) for i in generator.integers(0, d, 3)})) for _ in range(5))
    wanted = [sum(w for w, row in zip(weights, bits, strict=True) if odd(row, s)) for s in (*sets, ())]
    assert odd_counts(rows, (*sets, ())).tolist() == wanted


def geometric_law(rate, ends):
    """P(X = x) proportional to exp(-rate |x|), with the tails at the ends."""
    law = Counter()
    for x in range(-600, 601):
        law[max(-ends, min(ends, x))] += (1 - exp(-rate)) / (1 + exp(-rate)) * exp(-rate * abs(x))
    return law


@pytest.mark.parametrize(("rate", "clip"), [(Fraction(1), 2), (Fraction(1, 8), 4)])
def test_noise_that_does_not_fit_is_cut_off(rate, clip, monkeypatch):
    """Two halves that are both large must not cancel to 0 by being cut off alike."""
    monkeypatch.setattr(drawing_module, "CLIP", clip)
    trials, law = 4000, geometric_law(float(rate), clip)
    found = Counter(Geometric(rate).draw(trials, SeededBits(2)).tolist())
    assert set(found) == set(range(-clip, clip + 1))
    assert stats.chisquare([found[v] for v in law], [p * trials for p in law.values()]).pvalue > 1e-6


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 8])
def test_uniform_integers(bound):
    found = outcomes(lambda source: tuple(uniform_integers(bound, 2, source).tolist()), 11)
    assert set(found) == set(product(range(bound), repeat=2))
    assert len(set(found.values())) == 1
    assert sum(found.values()) > 0.8


def test_coins_digit_by_digit(monkeypatch):
    monkeypatch.setattr(drawing_module, "DIGIT", 1)
    heads = Fraction(123456, 10**6)

    def enclosure(precision):  # at first it holds numbers on either side
        apart = Fraction(1, 3) if precision < 50 else Fraction(0)
        return int(heads * (1 - apart) * 2**precision), int(heads * (1 + apart) * 2**precision)

    found = outcomes(lambda source: bool(coins(enclosure, 1, source)[0]), 12)
    assert obeys(found, {True: heads, False: 1 - heads}, Fraction(1, 2**12))


@pytest.mark.slow
@pytest.mark.parametrize("rate", [Fraction(2), Fraction(3, 4)])
def test_two_sided_geometric_by_its_decision_tree(rate, monkeypatch):
    monkeypatch.setattr(drawing_module, "DIGIT", 1)
    found = outcomes(lambda source: int(Geometric(rate).draw(1, source)[0]), 11)
    q = naive.exp_minus(rate)
    for x, decided in found.items():
        assert decided <= (1 - q) / (1 + q) * q ** abs(x)
    assert sum(found.values()) > 0.45


@pytest.mark.parametrize("height", [60, 66, 200])
def test_two_sided_geometric_of_a_tiny_rate_is_whole(height):
    """Beyond the digits of a machine word: |X| rate is nearly exponential."""
    drawn = whole_geometric(Fraction(3, 1 << height), 2000, SeededBits(6))
    sizes = np.abs(drawn).astype(float) * 3 / 2.0**height
    assert stats.kstest(sizes, stats.expon.cdf).pvalue > 1e-6
    assert stats.kstest(1.2 * sizes, stats.expon.cdf).pvalue < 1e-6
    assert stats.binomtest(int((drawn > 0).sum()), 2000).pvalue > 1e-6


DOMAINS = {
    "yes/no": Domain([*"abc"]),
    "ruled": Domain([*"abc"], "~(a & b & c)"),
    "coded": Domain(["a", Column("job", ["none", "part", "full"])]),
}
DESIGNS = [(name, relation, delta) for name in DOMAINS for relation in RELATIONS for delta in (None, "1e-6")]


def plans_of(name, relation, delta, n=3, epsilon=Fraction(3, 5)):
    """All designs of one kind of noise, of up to three columns where these are yes/no columns."""
    domain = DOMAINS[name]
    workload = Marginals(3 if domain.binary else 2).workload(domain)
    given = {"n": n, "epsilon": epsilon, "neighbours": relation, "delta": delta}
    return [plan for plan in alternatives(workload, **given) if (plan.delta is None) == (delta is None)]


def signs_of(plan, row):
    """The signs of a row on the sets of a plan, by definition."""
    coded = plan.coding
    bits = [row[c] == k for c, k in zip(coded.columns, coded.categories, strict=True)]
    return np.array([(-1) ** sum(bits[a] for a in some) for some in plan.sets])


def neighbours(domain, codes, relation):
    """Every table that differs in one row, as codes; the row that is gone, and the one that came."""
    cells = [row for row in product(*map(range, domain.sizes)) if domain.contains(np.array([row])).all()]
    for new in cells:
        if relation == "add-remove":
            yield [*codes, new], None, new
        else:
            for i, gone in enumerate(codes):
                yield [*codes[:i], *codes[i + 1 :], new], gone, new


@pytest.mark.parametrize(("name", "relation", "delta"), DESIGNS)
def test_counts_are_of_the_rows_and_move_by_one_row_alone(name, relation, delta):
    """By what a row is in them, which proofs speak of: (signs - signs) / 2 of odd rows, signs of sums."""
    domain = DOMAINS[name]
    cells = [row for row in product(*map(range, domain.sizes)) if domain.contains(np.array([row])).all()]
    codes = [cells[0], cells[-1], cells[1]]
    for plan in plans_of(name, relation, delta):
        rows = Rows.from_codes(domain, np.array(codes))
        signs = np.array([signs_of(plan, row) for row in codes])
        true = (1 - signs).sum(axis=0) // 2 if plan.replaced else signs.sum(axis=0)
        assert exact(plan, rows).tolist() == true.tolist()
        assert plan.sets[0] == () or plan.replaced
        for others, gone, new in neighbours(domain, codes, relation):
            moved = exact(plan, Rows.from_codes(domain, np.array(others))) - true
            step = signs_of(plan, new) - (0 if gone is None else signs_of(plan, gone))
            assert moved.tolist() == (-step // 2 if plan.replaced else step).tolist()


@pytest.mark.parametrize(("name", "relation", "delta"), DESIGNS)
def test_every_ask_loses_no_more_than_it_costs(name, relation, delta):
    """At the door: what the noise of each ask is for, beside how far it moves."""
    domain, n = DOMAINS[name], 3
    source, epsilon = SeededBits(2), Fraction(3, 5)
    cells = [row for row in product(*map(range, domain.sizes)) if domain.contains(np.array([row])).all()]
    codes = [cells[0], cells[-1], cells[1]]
    worst = Fraction(0)
    for plan in plans_of(name, relation, delta, n, epsilon):
        rows, spent, rho = Rows.from_codes(domain, np.array(codes)), Fraction(0), Fraction(0)
        for others, _, _ in neighbours(domain, codes, relation):
            spent = Fraction(0)
            for ask, one, other in asked(plan, rows, Rows.from_codes(domain, np.array(others)), source):
                moved, at = np.abs(one - other), 0
                for noise, many in ask.noises:
                    own, at = moved[at : at + many], at + many
                    assert own.max() <= 1
                    if isinstance(noise, WishartDifference):  # a row is of trace y and corner x: lemma 4
                        assert noise.x + noise.y == ask.lost(plan.replaced, 1).epsilon == plan.measuring
                        assert noise.pairs == entries(plan)
                    else:
                        assert isinstance(noise, DiscreteGaussian)
                        rho += Fraction(int((own**2).sum())) / (2 * noise.scale)
                spent += sum(ask.lost(plan.replaced, 1))
            worst, rho = max(worst, rho), Fraction(0)
            assert spent == (epsilon if delta is None else plan.loss.rho)
            assert plan.epsilon == epsilon
        if delta is not None:
            assert worst <= rho_of(epsilon, Fraction(1, 10**6)) == plan.loss.rho
    assert delta is None or name == "ruled" or worst > 0.999 * rho_of(epsilon, Fraction(1, 10**6))


def entries(plan):
    """Which entry of the matrix of a row and 1 each set is: of one attribute, of two, or 1 itself."""
    attributes = sorted({a for some in plan.sets for a in some})
    return tuple(((0, 0, *(attributes.index(a) + 1 for a in some))[-2:]) for some in plan.sets)


def weights_by_definition(plan, some):
    """What the number of a set is of the counts of all categories: its category, or all but twice it."""
    sizes = plan.workload.domain.sizes
    cells = [(c, k) for c, size in enumerate(sizes) for k in range(size)]
    (c, k), *_ = [(plan.coding.columns[a], plan.coding.categories[a]) for a in some] or [(0, None)]
    yes = np.array([float(cell == (c, k)) for cell in cells])
    return yes if plan.replaced else np.array([float(cell[0] == c) for cell in cells]) - 2 * yes


@pytest.mark.parametrize("name", DOMAINS)
@pytest.mark.parametrize("relation", RELATIONS)
def test_columns_alone_are_counted_with_k_norm_noise(name, relation):
    """A row moves one count of each column, or two; parities are read from the counts by their weights."""
    domain, epsilon = DOMAINS[name], Fraction(3, 5)
    given = {"n": 200, "epsilon": epsilon, "neighbours": relation}
    plan = columns_alone(Marginals(2).workload(domain), **given)
    (noise, _), (ask,) = plan.noises[0], [next(plan.steps())]
    assert [part.columns for part in ask.of] == [(c,) for c in range(len(domain.sizes))]
    assert ((noise, sum(domain.sizes)),) == ask.noises
    assert noise == KNorm(domain.sizes, epsilon, relation == "replace-one")
    assert plan.loss.amount == ask.lost(plan.replaced, 1) == Amount(epsilon)
    rows = counted(domain, np.arange(domain.size) * 9)
    made = answered(plan.steps(), rows, SeededBits(2), plan.loss, plan.replaced)
    (measured,), (published,) = made.parities, made.measurements
    true = exact(plan, rows)
    assert np.abs(measured.values - true).max() <= noise._level_quantile(Fraction(1, 10**9)) * 2
    known, failure = weights_of(noise), Fraction(1, 10)
    for order in known:
        likely = [noise.variance(one) for one in known[order]]
        assert plan.deviations[order] == (2 if plan.replaced else 1) * max(likely) ** 0.5
        widest = max(noise.quantile(one, failure) for one in known[order])
        assert measured.margins(failure)[order] == widest
        for value, some in zip(measured.values, plan.sets, strict=True):
            if len(some) == order:
                one = weights_by_definition(plan, some)
                assert one @ published.values == value
                assert min(abs(noise.variance(one) - each) for each in likely) < 1e-9 * max(likely)
                assert noise.quantile(one, failure) <= widest
    if not plan.replaced:
        assert made.total == max(1, int(measured.values[0]))
    assert published.noise == noise and published.cost == epsilon


@pytest.mark.parametrize("certificate", [Fraction(0), Fraction(1, 20)])
def test_epsilon_less_the_certificate_is_at_least_2_to_the_minus_40(certificate):
    workload = Marginals(3).workload(Domain(4))
    given = {"n": 100, "neighbours": "replace-one", "certificate": certificate}
    least = Fraction(1, 1 << 40) / (1 - certificate)
    assert planned(workload, epsilon=least, **given).epsilon >= Fraction(1, 1 << 40)
    with pytest.raises(ValueError, match="the certificate left out"):
        planned(workload, epsilon=least * Fraction(99, 100), **given)


def test_a_plan_that_asks_for_more_than_epsilon_is_stopped_before_it_is_answered():
    domain = Domain([*"ab"])
    plan = planned(Conjunctions(2).workload(domain), n=4, epsilon=1, neighbours="replace-one")
    noises, no_bits = plan.noises, ScriptedBits("")
    dear = replace(plan, epsilon=Fraction(1, 2))
    ask = Noisy(plan.parities(plan.sets), noises)
    with pytest.raises(Unpaid, match=re.escape("would be (1, 0, 0), and (0.5, 0, 0) is paid")):
        answered(iter_of(ask), counted(domain, (1, 1, 1, 1)), no_bits, dear.loss, plan.replaced)


def iter_of(ask):
    """The steps of a strategy that asks this alone."""
    return (yield ask)


@pytest.mark.parametrize("scores", [(0, 3, 9), (5, 5, 6)])
def test_the_worst_parity_is_asked_for_by_how_far_counts_are_off(scores):
    domain, rate = Domain([*"abc"]), Fraction(1, 2)
    plan = planned(Marginals(3).workload(domain), n=8, epsilon=1, neighbours="replace-one")
    rows, sets = counted(domain, (1, 0, 2, 1, 0, 1, 3, 0)), ((0, 1), (0, 2), (1, 2))
    signs = np.array([1, -1, 1])
    ask = replace(plan, epsilon=2 * rate / GUARD, guarded=True).worst(
        exact(plan, rows, sets) - signs * scores
    )
    assert ask.epsilon == rate == ask.lost(True, 1).epsilon
    assert ask.exact(Given([exact(plan, rows, sets)])).tolist() == [*scores] and ask.moved == 1
