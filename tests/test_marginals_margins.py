"""Margins of rounds: what each step costs, what the certificate adds to its distance, and that it holds."""

from fractions import Fraction
from itertools import count as count_from
from itertools import product

import naive
import numpy as np
import pytest
from asking import certify
from builders import counted, each_once, universe
from margins import law_of

import smalldb
from queries import Column, Domain, Linear, Marginals, Predicates, Rows
from queries.workload import Workload
from smalldb.exact.bits import SeededBits
from smalldb.exact.numbers import float_above
from smalldb.marginals import asks, certificate
from smalldb.marginals.certificate import Certificate, beyond, expected, missed
from smalldb.marginals.counted_rows import count
from smalldb.marginals.counts import InMemory
from smalldb.marginals.estimate.grouping import halved
from smalldb.marginals.estimate.packed_pairs import candidates
from smalldb.marginals.measuring import PrivacyMeasure
from smalldb.noise.distributions import DiscreteGaussian, Geometric
from smalldb.noise.noise_protocol import Moved

DOMAIN = Domain([Column("job", ["none", "part", "full"]), "smoker"])
WORKLOAD = Marginals(2).workload(DOMAIN)
HALVES = Linear([[0, "1/2", 1, "3/4", 0, 0]]).workload(DOMAIN)
LAWS = [PrivacyMeasure(*both) for both in product((False, True), repeat=2)]
BETAS = [0.5, 0.05, 1e-6]


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("law", LAWS)
def test_what_a_selection_misses_is_the_least_that_its_law_allows(law, beta):
    """All that err by t more than the worst together have at most (|Q| + 1) exp(-epsilon t / (2 D))."""
    for workload in (WORKLOAD, HALVES):
        for cost in (Fraction(1, 3), Fraction(1, 50)):
            rate = law.selecting(cost) / (2 * workload.denominator)
            found, candidates = missed(workload, law, cost, beta), workload.size + 1
            assert candidates * naive.exp_minus(rate * found) <= Fraction(beta)
            assert candidates * naive.exp_minus(rate * (found - 1)) > Fraction(beta)


@pytest.mark.parametrize("law", LAWS)
def test_what_is_beyond_a_distance_is_two_margins(law):
    """Half of what may fail is for the selection, half for the noise of a number that moves by D."""
    cost, beta = Fraction(1, 50), Fraction(1, 20)
    quantile = law.noise_of_number(cost, HALVES.denominator).quantile(None, Fraction(1, 40))
    assert beyond(HALVES, law, cost, beta) == missed(HALVES, law, cost, 0.025) + quantile


@pytest.mark.parametrize("law", LAWS)
def test_a_certificate_is_its_distance_and_two_margins(law):
    beta, cost, total = Fraction(1, 10), Fraction(2), 10_000
    unit = HALVES.denominator
    for distance in (37, -37):
        made = Certificate(0, distance, total, HALVES, law, cost)
        margins = beyond(HALVES, law, cost, beta)
        assert made.rows(beta) == Fraction(37 + margins, unit)
        times = 1 if law.replaced else 2
        assert made.share(beta) == (times * made.rows(beta) + Fraction(1, 2 * unit)) / total


@pytest.mark.parametrize("law", LAWS)
def test_a_certificate_of_no_distance_is_what_both_laws_allow(law):
    """By the definitions: the least numbers that a selection and that noise exceed with half of beta each."""
    cost, half, unit = Fraction(1, 2), Fraction(1, 40), HALVES.denominator
    rate, noise = law.selecting(cost) / (2 * unit), law_of(law.noise_of_number(cost, unit))
    far = abs(np.arange(len(noise)) - len(noise) // 2)
    selected = next(t for t in count_from(0) if 2 * naive.exp_minus(rate * t) <= half)
    noisy = next(z for z in count_from(0) if noise[far > z].sum() <= half)
    beyond_0 = Certificate(0, 0, 99, HALVES, law, cost).rows(2 * half) * unit
    assert selected + noisy <= beyond_0 <= selected + noisy + law.concentrated  # a bound of its tail


@pytest.mark.parametrize("replaced", [True, False])
def test_without_noise_a_certificate_is_right_of_all_small_tables(replaced, monkeypatch):
    """Whatever the number of rows and what is read of it: then rounding alone is added to the worst query."""
    monkeypatch.setattr(certificate, "beyond", lambda *_: 0)
    law, unit, beta = PrivacyMeasure(False, replaced), HALVES.denominator, Fraction(1, 20)
    tables = [counted(DOMAIN, (*x, 0, 0)) for n in (1, 2, 3) for x in naive.multisets(4, n) if not x[1]]
    sums = {table: Fraction(int(HALVES.answers(table)[0]), unit) for table in tables}
    for real, finished in product(tables, tables[-10:]):
        for total in [real.n] if replaced else (1, 2, 3):
            steps, counts = certificate.certify(HALVES, finished, total, law, Fraction(1)), InMemory(real)
            worst = int(next(steps).exact(counts).argmax())
            asked = steps.send(worst)
            with pytest.raises(StopIteration) as end:
                steps.send(asked.exact(counts))
            share, rows = sums[finished] / finished.n, end.value.value.rows(beta)
            off = max(abs(sums[real] - share * total), Fraction(abs(real.n - total)))
            assert abs(rows - off) <= Fraction(1, 2 * unit)
            assert abs(sums[real] / real.n - share) <= end.value.value.share(beta)


@pytest.mark.parametrize("law", LAWS)
def test_a_certificate_spends_its_cost_once(monkeypatch, law):
    paid = []

    def selecting(scores, *, epsilon, sensitivity, rng):
        assert sensitivity == HALVES.denominator
        assert scores.tolist()[-1] == HALVES.denominator * 7  # the number of rows, off by 7
        paid.append(epsilon**2 / 8 if law.concentrated else epsilon)
        return smalldb.select(scores, epsilon=epsilon, sensitivity=sensitivity, rng=rng)

    def noise(distribution, count, source):
        paid.append(distribution.lost(Moved(HALVES.denominator, HALVES.denominator**2)))
        return np.zeros(count, dtype=np.int64)

    monkeypatch.setattr(asks, "select", selecting)
    for kind in (Geometric, DiscreteGaussian):
        monkeypatch.setattr(kind, "draw", noise)
    rows = Rows.from_codes(DOMAIN, np.array([[0, 1], [1, 0], [2, 1]]))
    certify(HALVES, rows, rows, 10, law, Fraction(1, 2), SeededBits(1))
    assert len(paid) == 2
    assert Fraction(1, 2) * (1 - Fraction(1, 10**9)) < sum(paid) <= Fraction(1, 2)


@pytest.mark.parametrize("rows", [3, 5, 7, 500])
def test_rows_of_another_number_are_scaled_and_rounded_to_the_nearest(rows):
    """Twice the rest times the total passes 2^63 from total x rows = 2^62 on."""
    answers = np.arange(rows, dtype=np.int64)
    for whole in (7 * rows, 500 * rows, (1 << 62) - rows, 1 << 62, (1 << 63) - rows, 1 << 63):
        total = whole // rows
        exact = [Fraction(a * total, rows) for a in answers.tolist()]
        found = expected(answers, rows, total).tolist()
        assert all(abs(f - e) <= Fraction(1, 2) for f, e in zip(found, exact, strict=True))


@pytest.mark.parametrize("moved", [1, 3])
def test_the_noise_of_one_number_has_its_scale(moved):
    wanted = {False: Geometric(Fraction(1, 8 * moved)), True: DiscreteGaussian(Fraction(4 * moved**2))}
    for law in LAWS:  # moved^2 / (2 sigma^2) is 1/8
        assert law.noise_of_number(Fraction(1, 8), moved) == wanted[law.concentrated]


def test_a_column_of_many_levels_is_merged_step_by_step():
    """At every level, against groups of the categories themselves."""
    groupings = [halved(np.ones(k), ordered=True) for k in (9, 16)]
    found = candidates(universe((9, 16), ordered=True), groupings)
    codes = np.random.default_rng(1).integers(0, (9, 16), (60, 2))
    (finest,) = count(found.linear(), each_once(codes, (9, 16)))
    for scope in found.scopes():
        table = np.zeros(found.shape(scope), dtype=np.int64)
        np.add.at(table, tuple(groupings[c].of_categories(level)[codes[:, c]] for c, level in scope), 1)
        assert (found.coarse(finest, scope) == table).all()
    levels = list(found._coarser((0, 1), finest, 0))
    assert len(levels) == len(found.scopes()) > 4
    for level, scope in zip(levels, found.scopes(), strict=True):
        assert (level == found.coarse(finest, scope)).all()


def test_certified_shares_are_rounded_up():
    for share in (Fraction(p, q) for q in range(3, 60) for p in (1, 2)):
        assert share <= Fraction(float_above(share)) <= share + Fraction(1, 1 << 52)


def test_weights_that_would_pass_64_bits_are_refused():
    """Under add-remove the data may have 2^40 rows, however few are guessed."""

    def asked(denominator, **public):
        queries = Linear([[0, Fraction(1, denominator), 1, 0, 0, 0]]).workload(DOMAIN)
        return smalldb.plan(DOMAIN, queries, epsilon=1, mechanism="marginals", **public)

    asked((1 << 20) - 1, neighbours="add-remove", n_max=1000)
    asked(1 << 20, n=1000)
    with pytest.raises(ValueError, match=r"2\^60"):
        asked(1 << 20, neighbours="add-remove", n_max=1000)
    with pytest.raises(ValueError, match=r"2\^60"):
        asked(1 << 50, n=1 << 10)


@pytest.mark.parametrize("public", [{"n": 1000}, {"neighbours": "add-remove", "n_max": 1000}])
def test_no_sum_over_the_largest_table_of_a_plan_passes_2_60(public):
    largest = Rows.from_codes(DOMAIN, np.array([[1, 0]]), np.array([public.get("n", 1 << 40)]))
    for power in (1, 10, 19, 20, 30, 50, 51):
        queries = Linear([[0, Fraction(1, 1 << power), 1, 0, 0, 0]]).workload(DOMAIN)
        sums_fit = largest.n << power < 1 << 60 and int(queries.answers(largest)[0]) == largest.n << power
        try:
            smalldb.plan(DOMAIN, queries, epsilon=1, mechanism="marginals", **public)
        except ValueError:
            assert not sums_fit
        else:
            assert sums_fit


def test_rows_that_would_pass_64_bits_are_refused_before_anything_is_paid():
    weights = Linear([[0, Fraction(1, 1 << 42), 1, 1, 0, 0]]).workload(DOMAIN)
    given = {"n": 9, "epsilon": 1, "mechanism": "marginals"}
    assert smalldb.plan(DOMAIN, weights, rows=(1 << 20) - 1, **given).rows == (1 << 20) - 1
    with pytest.raises(ValueError, match=r"^tables would reach 2\^62: rows x the common denominator"):
        smalldb.plan(DOMAIN, weights, rows=1 << 20, **given)


REGIONS = Domain([Column("job", ["none", "part", "full"]), Column("region", 5), "smoker"])


def test_distances_move_by_at_most_the_denominator():
    workload = (Marginals(2) + Predicates(["`job=full` | smoker"])).workload(REGIONS)
    cells = REGIONS.table()
    base = Rows.from_codes(REGIONS, cells[[0, 3, 7, 7, 20]])
    answers = workload.answers(base)
    for cell in cells:
        more = Rows.from_codes(REGIONS, np.vstack([base.codes().repeat(base.counts, axis=0), cell[None]]))
        assert np.abs(workload.answers(more) - answers).max() <= workload.denominator
    for one, other in product(range(0, len(cells), 3), repeat=2):
        before = Rows.from_codes(REGIONS, cells[[0, 3, one]])
        after = Rows.from_codes(REGIONS, cells[[0, 3, other]])
        assert np.abs(workload.answers(before) - workload.answers(after)).max() <= workload.denominator


def test_an_empty_table_is_certified_as_unknown():
    empty = Rows.from_codes(REGIONS, np.zeros((0, 3), dtype=np.int64))
    workload: Workload = Marginals(1).workload(REGIONS)
    found = certify(workload, empty, empty, 0, PrivacyMeasure(False, False), Fraction(1), SeededBits(1))
    assert isinstance(found, Certificate)
    assert found.share(Fraction(1, 20)) == 1


@pytest.mark.parametrize("share", [-1, 1, "3/2"])
def test_a_certificate_is_a_share(share):
    with pytest.raises(ValueError, match="certificate must be at least 0 and below 1"):
        smalldb.plan(REGIONS, n=100, epsilon=1, certificate=share)
