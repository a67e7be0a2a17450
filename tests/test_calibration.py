"""Calibrated SmallDB: it loses what is stated and no more, by the definition, the audit and closed forms."""

import json
from fractions import Fraction
from math import log

import naive
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from records import check_record

import smalldb
from queries import Column, Conjunctions, Domain, Linear, Marginals, Thresholds
from smalldb import auditing
from smalldb.counting import calibration as module
from smalldb.counting import mechanism
from smalldb.counting.scores import rate_of
from smalldb.noise.privacy_loss import Loss

A, AB = Domain(["a"]), Domain(["a", "b"])
FRAME = pd.DataFrame({"a": [0, 1, 1, 0], "b": [1, 0, 1, 1]})

CASES = [
    (AB, Conjunctions(2), 3, 1, 4, None),
    (AB, Conjunctions(1), 4, "1/3", 4, None),
    (A, Conjunctions(1), 6, 2, 6, None),
    (A, Conjunctions(1), 3, "0.1", 6, "tuples"),
    (Domain(["a", "b"], valid="a | ~b"), Marginals(2), 3, 1, 5, "tuples"),
    (AB, Linear([[0, "1/3", "1/2", 1], ["1/4", 1, 0, "3/4"]]), 2, 3, 3, None),
    (Domain([Column("x", 3)]), Thresholds(), 5, 1, 5, None),
]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0].size}-{case[1].text[:20]}-{case[5]}")
def test_what_is_lost_is_what_is_stated(case):
    """By the definition and by the audit; a thousandth more would be too much."""
    domain, queries, rows, epsilon, n, base = case
    given_ = {"n": n, "rows": rows, "candidates": base}
    found = auditing.calibrated(domain, queries, epsilon=epsilon, **given_)
    stated, more = Fraction(epsilon), found.internal * Fraction(1001, 1000)
    made = smalldb.audit(domain, queries, epsilon=found.internal, **given_)
    assert found.loss == made.loss
    assert found.range == min(made.range[0], 2 * stated)
    assert stated * (1 - Fraction(1, 10**6)) < made.loss[1] <= stated
    assert smalldb.audit(domain, queries, epsilon=more, **given_).loss[0] > stated
    workload = queries.workload(domain)
    loss, _ = naive.worst(workload, rows, found.internal, n, base=base)
    assert loss == pytest.approx(float(stated), rel=1e-6)
    assert naive.worst(workload, rows, more, n, base=base)[0] > stated


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 5),
    st.integers(1, 5),
    st.fractions(Fraction(1, 1000), 20, max_denominator=1000),
    st.sampled_from(["multisets", "tuples"]),
)
def test_no_instance_loses_more(n, rows, epsilon, base):
    found = auditing.calibrated(AB, "marginals:2", n=n, rows=rows, epsilon=epsilon, candidates=base)
    made = smalldb.audit(AB, "marginals:2", n=n, rows=rows, epsilon=found.internal, candidates=base)
    assert epsilon <= found.internal
    assert found.loss == (made.loss[0], min(made.loss[1], epsilon))
    assert made.loss[0] <= epsilon


@pytest.mark.parametrize("epsilon", ["1e-20", "1e-9", 40, 10**6, 10**9])
def test_epsilons_of_every_scale(epsilon):
    found = auditing.calibrated(AB, "conjunctions:2", n=5, rows=2, epsilon=epsilon)
    assert 0 < found.loss[0] <= found.loss[1] <= found.epsilon <= found.internal <= 2 * found.epsilon
    assert found.loss[0] > found.epsilon * (1 - Fraction(1, 10**6))


def test_the_error_falls_by_two_fifths():
    """The figures of docs/theory.md: one column, n = m = 40."""
    worst = {}
    for epsilon in (1, 2):
        internal = auditing.calibrated(A, "conjunctions:1", n=40, rows=40, epsilon=epsilon).internal
        for each in (epsilon, internal):
            worst[epsilon, each == epsilon] = auditing.accuracy(
                A, "conjunctions:1", n=40, rows=40, epsilon=each
            ).worst_mean
    assert worst == pytest.approx(
        {(1, True): 0.0480, (1, False): 0.0291, (2, True): 0.0213, (2, False): 0.0078}, abs=5e-5
    )


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2, 5])
@pytest.mark.parametrize("epsilon", ["0.1", 1, 3])
def test_the_closed_form_of_one_column_is_never_below_the_truth(times, epsilon, monkeypatch):
    """It is that of n without end, and soon reached."""
    sizes = [1, 2, 3, 8, 40]
    exact = [auditing.calibrated(A, "conjunctions:1", n=n, rows=times * n, epsilon=epsilon) for n in sizes]
    monkeypatch.setattr(module, "MOST_SCORES", 0)
    module._looked_up.cache_clear()
    closed = {auditing.calibrated(A, "conjunctions:1", n=n, rows=times * n, epsilon=epsilon) for n in sizes}
    (one,) = closed
    for n, found in zip(sizes, exact, strict=True):
        made = smalldb.audit(A, "conjunctions:1", n=n, rows=times * n, epsilon=one.internal)
        assert made.loss[1] <= one.epsilon
        assert one.internal <= found.internal
    if epsilon != "0.1":
        assert float(one.internal) == pytest.approx(float(exact[-1].internal), rel=1e-6)
    assert one.loss[1] > one.epsilon * (1 - Fraction(1, 10**6))


def test_one_column_of_any_size():
    found = auditing.calibrated(A, "conjunctions:1", n=10**9, rows=10**9, epsilon=1)
    assert float(found.internal) == pytest.approx(1.55637312)
    with pytest.raises(ValueError, match="beyond the budget"):
        auditing.calibrated(A, "conjunctions:1", n=10**9, rows=10**9 + 1, epsilon=1)
    with pytest.raises(ValueError, match="audit"):
        auditing.calibrated(A, "conjunctions:1", n=10**9, rows=10**9, epsilon=1, candidates="tuples")


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_add_remove_spends_all_of_epsilon_whatever_n(rows):
    """The range is epsilon (1 - 1/(2 m D)); the loss tends to it, so that no more would do."""
    found = auditing.calibrated(A, "conjunctions:1", epsilon=1, rows=rows, neighbours="add-remove")
    assert found.internal == Fraction(2 * rows, 2 * rows - 1)
    given_ = {"rows": rows, "epsilon": found.internal, "neighbours": "add-remove"}
    few, many = (smalldb.audit(A, "conjunctions:1", n=n, **given_).worst_loss for n in (4, 100))
    assert few < many <= 1
    assert many > 0.999


def test_a_table_of_up_to_n_rows():
    found = auditing.calibrated(AB, "conjunctions:2", n=5, rows=3, epsilon=1, neighbours="add-remove")
    made = smalldb.audit(AB, "conjunctions:2", n=5, rows=3, epsilon=found.internal, neighbours="add-remove")
    assert found.loss == made.loss
    unlimited = auditing.calibrated(AB, "conjunctions:2", rows=3, epsilon=1, neighbours="add-remove")
    assert found.internal > unlimited.internal
    plain = smalldb.plan(AB, "conjunctions:2", rows=3, epsilon=unlimited.internal, neighbours="add-remove")
    assert plain.privacy == 1  # at the internal epsilon no more is stated


def test_a_release_is_drawn_at_the_internal_epsilon(monkeypatch):
    rates = []

    def draw(levels, rate, source):
        rates.append(rate)
        return min(levels)

    monkeypatch.setattr(mechanism, "draw_level", draw)
    release = smalldb.release(FRAME, "conjunctions:2", epsilon=1, rows=4, calibrated=True)
    found = auditing.calibrated(AB, "conjunctions:2", n=4, rows=4, epsilon=1)
    assert rates == [rate_of(found.internal, 4, 1)]
    assert release.record["privacy"] == {
        "epsilon": "1",
        "bounded_range": None,
        "rho": "0.166698036769",  # of the range, 1.16553251
        "internal_epsilon": "1.16553251",
    }
    check_record(json.loads(json.dumps(release.record)))


def test_a_plan_states_what_holds_at_the_internal_epsilon():
    given_ = {"n": 40, "rows": 40, "epsilon": 1}
    plain, made = (smalldb.plan(A, "conjunctions:1", **given_, calibrated=each) for each in (False, True))
    known = smalldb.plan(A, "conjunctions:1", **given_ | {"epsilon": made.chosen.guarantee.internal})
    assert made.expected_error == known.expected_error
    assert made.bound < plain.bound
    assert made.privacy == 1
    assert "internal epsilon of 1.556" in made.chosen.facts.method


def test_rho_is_at_least_a_divergence_by_definition():
    """That of order 1, which is above the rho of a range of epsilon."""
    plan = smalldb.plan(A, "conjunctions:1", n=4, rows=4, epsilon=1, calibrated=True)
    pairs = naive.neighbouring(naive.laws(plan.workload, 4, plan.chosen.guarantee.internal, 4))
    divergence = max(sum(float(p) * log(p / q) for p, q in zip(*pair, strict=True)) for pair in pairs)
    assert Loss.ranged(Fraction(1)).rho < divergence <= plan.chosen.guarantee.loss.rho


def test_each_row_of_a_person_is_calibrated():
    made = smalldb.plan(AB, "conjunctions:2", n=6, rows=3, epsilon=2, rows_per_person=2, calibrated=True)
    assert made.privacy == 2
    alone = auditing.calibrated(AB, "conjunctions:2", n=6, rows=3, epsilon=1)
    assert made.chosen.guarantee.internal == alone.internal


def test_a_census_tells_the_law_of_calibrated_draws():
    plain, made = (smalldb.census(FRAME, "conjunctions:2", rows=4, calibrated=each) for each in (False, True))
    internal = auditing.calibrated(AB, "conjunctions:2", n=4, rows=4, epsilon=1).internal
    assert made.counts == plain.counts
    assert made.law(1).rate == plain.law(internal).rate > plain.law(1).rate
    assert (made.gibbs(1), made.mcsherry_talwar(1)) == (
        plain.gibbs(internal),
        plain.mcsherry_talwar(internal),
    )


@pytest.mark.parametrize(
    "more, match",
    [
        ({"n": 5000, "rows": 3}, "largest n that can be audited is 46$"),
        ({"n": 10}, "give rows or alpha"),
        ({"n": 10, "rows": 4, "mechanism": "rejection"}, "for the census"),
        ({"n": 10, "rows": 4, "mechanism": "marginals"}, "for the census"),
        ({"n": 10, "rows": 4, "strategy": "cells"}, "for the census"),
        ({"n": 10, "rows": 4, "target": "a"}, "for the census"),
        ({"n": 10, "rows": 4, "queries": Linear([[1, 1, 1, 1]])}, "none of them varies"),
    ],
)
def test_what_cannot_be_calibrated_is_refused(more, match):
    given_ = {"queries": "conjunctions:2"} | more
    with pytest.raises(ValueError, match=match):
        smalldb.plan(AB, epsilon=1, calibrated=True, **given_)


def test_scores_that_would_wrap_round_are_refused():
    queries = Linear([[0, 1, Fraction(1, 10**17), Fraction(1, 2)]])
    with pytest.raises(ValueError, match="common denominator is too large"):
        auditing.calibrated(AB, queries, n=4, rows=5, epsilon=1, candidates="tuples")
    assert auditing.calibrated(AB, queries, n=4, rows=5, epsilon=1).internal > 1


def test_wrong_arguments():
    with pytest.raises(TypeError, match="calibrated"):
        smalldb.plan(AB, n=4, rows=4, epsilon=1, calibrated=1)
    with pytest.raises(ValueError, match="n must be given"):
        auditing.calibrated(AB, rows=4, epsilon=1)
    with pytest.raises(ValueError, match="epsilon must be"):
        auditing.calibrated(AB, n=4, rows=4, epsilon=10**10)
    with pytest.raises(ValueError, match="without rows"):
        smalldb.census(FRAME[:0], "conjunctions:2", rows=4, calibrated=True)
