"""The certificate: what it says holds, for measured and unmeasured queries, and moves as its proof says."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from asking import certify
from records import check_record

import smalldb
from queries import Column, Domain, Marginals, Predicates, Rows
from queries.workload import Workload
from smalldb.exact.bits import SeededBits
from smalldb.marginals.certificate import Certificate, expected
from smalldb.marginals.measuring import PrivacyMeasure
from smalldb.reporting.words import laid_out, tell

DOMAIN = Domain([Column("job", ["none", "part", "full"]), Column("region", 5), "smoker"])
LAWS = [PrivacyMeasure(*both) for both in product((False, True), repeat=2)]


def made(seed, n):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 3, n)
    codes = np.stack([first, (first * 2 + rng.integers(0, 3, n)) % 5, rng.integers(0, 2, n)], axis=1)
    return Rows.from_codes(DOMAIN, codes)


def worst_share(workload, real, finished):
    one, other = workload.answers(real), workload.answers(finished)
    scale = workload.denominator
    pairs = zip(one.tolist(), other.tolist(), strict=True)
    return max(abs(Fraction(a, scale * real.n) - Fraction(b, scale * finished.n)) for a, b in pairs)


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("rows", [500, 130])
def test_a_certificate_is_seldom_exceeded(law, rows):
    real, finished = made(1, 500), made(2, rows)
    workload = (Marginals(2) + Predicates(["smoker & ~`job=none`"])).workload(DOMAIN)
    total, beta = (500, 507)[not law.replaced], Fraction(1, 5)
    worst = worst_share(workload, real, finished)
    found = [
        certify(workload, real, finished, total, law, Fraction(1), SeededBits(seed)).share(beta)
        for seed in range(150)
    ]
    assert sum(share < worst for share in found) <= 30 + 3 * 5
    # it says something: of the bound, no more than the margins are beyond twice the truth
    assert float(np.median([float(share) for share in found])) < 2 * float(worst) + 0.2


def test_distances_move_by_at_most_the_denominator():
    workload = (Marginals(2) + Predicates(["`job=full` | smoker"])).workload(DOMAIN)
    cells = DOMAIN.table()
    base = Rows.from_codes(DOMAIN, cells[[0, 3, 7, 7, 20]])
    answers = workload.answers(base)
    for cell in cells:
        more = Rows.from_codes(DOMAIN, np.vstack([base.codes().repeat(base.counts, axis=0), cell[None]]))
        assert np.abs(workload.answers(more) - answers).max() <= workload.denominator
    for one, other in product(range(0, len(cells), 3), repeat=2):
        before = Rows.from_codes(DOMAIN, cells[[0, 3, one]])
        after = Rows.from_codes(DOMAIN, cells[[0, 3, other]])
        assert np.abs(workload.answers(before) - workload.answers(after)).max() <= workload.denominator


def test_rows_of_another_number_are_scaled_and_rounded_to_the_nearest():
    answers = np.array([0, 1, 2, 3, 7], dtype=np.int64)
    for rows, total in ((7, 500), (500, 7), (3, 1 << 60), (7, 7)):
        exact = [Fraction(a * total, rows) for a in answers.tolist()]
        found = expected(answers, rows, total).tolist()
        assert all(abs(f - e) <= Fraction(1, 2) for f, e in zip(found, exact, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_a_release_is_within_its_certified_bound(relation):
    real = made(4, 2_000)
    public = {"n_max": 2_000} if relation == "add-remove" else {}
    for seed in range(6):
        release = smalldb.release(real, "marginals:2", epsilon=1, neighbours=relation, rng=seed, **public)
        assert release.record["mechanism"] == "marginals"
        assert release.confidential.max_error <= release.record["bounds"]["released"] <= 1
        assert release.record["bounds"]["covers"] == ["every query of marginals:2"]
        assert ("n" in release.record) == (relation == "replace-one")


def test_an_empty_table_is_certified_as_unknown():
    empty = Rows.from_codes(DOMAIN, np.zeros((0, 3), dtype=np.int64))
    workload: Workload = Marginals(1).workload(DOMAIN)
    found = certify(workload, empty, empty, 0, PrivacyMeasure(False, False), Fraction(1), SeededBits(1))
    assert isinstance(found, Certificate)
    assert found.share(Fraction(1, 20)) == 1


@pytest.mark.slow
def test_without_a_certificate_the_record_says_that_nothing_is_bounded():
    wide = Domain([Column(name, 30) for name in "abcde"])
    real = Rows.from_codes(wide, np.random.default_rng(1).integers(0, 30, (200, 5)))
    release = smalldb.release(real, "marginals:2", epsilon=1, certificate=0, rng=1)
    bounds = release.record["bounds"]
    assert (bounds["beta"], bounds["released"], bounds["covers"]) == ("0.05", None, [])
    check_record(release.record)
    assert "no bound for what was not measured" in laid_out(tell(release.record, release.plan))


@pytest.mark.parametrize("share", [-1, 1, "3/2"])
def test_a_certificate_is_a_share(share):
    with pytest.raises(ValueError, match="certificate must be at least 0 and below 1"):
        smalldb.plan(DOMAIN, n=100, epsilon=1, certificate=share)
