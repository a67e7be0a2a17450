"""The whole way from a table to its release: exact law, privacy loss, record, confidential part."""

import copy
import json
import math
import pickle
from collections import Counter
from fractions import Fraction
from itertools import product

import jsonschema
import naive
import numpy as np
import pandas as pd
import pytest
from builders import counted
from margins import OutOfBits, ScriptedBits
from records import check_record

import smalldb
from queries import Conjunctions, DataError, Domain, Linear, Marginals, Parities, Predicates, Rows
from smalldb.exact.bits import SeededBits
from smalldb.exact.numbers import as_text
from smalldb.noise.privacy_loss import Loss

FRAME = pd.DataFrame({"a": [0, 0, 0, 1, 1, 1], "b": [0, 0, 1, 0, 1, 1]})


def counts_of(frame, domain):
    """A released table as counts over the cells."""
    return tuple(Rows.from_frame(domain, frame).histogram().tolist())


def decided(release, gap):
    """Candidate -> dyadic mass of the bit strings that decide for it, until less than `gap` is open."""
    mass, open_strings, undecided = Counter(), [""], Fraction(1)
    while undecided > gap:
        longer = []
        for prefix in open_strings:
            try:
                mass[release(ScriptedBits(prefix))] += Fraction(1, 2 ** len(prefix))
            except OutOfBits:
                longer += [prefix + "0", prefix + "1"]
        open_strings = longer
        undecided = 1 - sum(mass.values())
    return mass


WHOLE_WAYS = [
    (Domain(["a"]), Predicates(["a"]), (1, 3), 2, "1", "replace-one", "multisets"),
    (Domain(["a", "b"]), Conjunctions(2), (3, 1, 0, 2), 1, "1/2", "replace-one", "multisets"),
    (Domain(["a", "b"], valid="~a | b"), Parities(2), (2, 0, 3), 2, "3", "replace-one", "multisets"),
    (Domain(["a"]), Linear([["1/3", "1"]]), (4, 1), 3, "2", "add-remove", "multisets"),
    (Domain(["a"]), Predicates(["a"]), (0, 0), 2, "1", "add-remove", "multisets"),
    (Domain(["a"]), Predicates(["a"]), (3, 1), 2, "1", "replace-one", "tuples"),
    (
        Domain(["a", "b"], valid="~a | b"), Linear([["1/2", 1, 0]]), (2, 0, 1), 2, "4", "replace-one",
        "tuples",
    ),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("domain", "queries", "histogram", "rows", "epsilon", "neighbours", "candidates"), WHOLE_WAYS
)
def test_every_candidate_is_drawn_with_its_exact_probability(
    domain, queries, histogram, rows, epsilon, neighbours, candidates
):
    workload, data = queries.workload(domain), counted(domain, histogram)
    chosen = {"epsilon": epsilon, "rows": rows, "neighbours": neighbours, "candidates": candidates}
    plan = smalldb.plan(domain, queries, n=None if neighbours == "add-remove" else data.n, **chosen)
    cells = [tuple(cell) for cell in domain.table().tolist()]

    def release(source):
        made = smalldb.release(plan, data, rng=source).data
        if candidates == "multisets":
            return counts_of(made, domain)
        return tuple(cells.index(tuple(row)) for row in made.to_numpy().tolist())

    gap = Fraction(1, 10**6 if candidates == "multisets" else 10**3)
    mass = decided(release, gap)
    exact = naive.law(workload, histogram, rows, epsilon, candidates)
    if candidates == "tuples":
        places = range(domain.size)
        counts = {y: tuple(y.count(c) for c in places) for y in product(places, repeat=rows)}
        orders = Counter(counts.values())
        exact = {y: exact[found] / orders[found] for y, found in counts.items()}
    assert set(mass) <= set(exact)
    assert all(mass[y] <= p + Fraction(1, 10**30) for y, p in exact.items())
    assert sum(exact[y] - mass[y] for y in exact) < gap + Fraction(1, 10**30)
    # the same check must notice a law that is a little off
    if sum(histogram) and candidates == "multisets":
        stretched = naive.law(workload, histogram, rows, Fraction(epsilon) * Fraction(21, 20))
        assert any(mass[y] > p for y, p in stretched.items())


@pytest.mark.parametrize(
    ("domain", "queries", "rows", "epsilon"),
    [
        (Domain(["a"]), Predicates(["a"]), 2, Fraction(1)),
        (Domain(["a", "b"]), Conjunctions(2), 2, Fraction(1)),
        (Domain(["a", "b"]), Conjunctions(2), 1, Fraction(4)),
        (Domain(["a"]), Linear([["1/2", "1"]]), 1, Fraction(3)),
    ],
)
def test_the_record_states_a_guarantee_that_holds(domain, queries, rows, epsilon):
    workload = queries.workload(domain)
    for neighbours in ("replace-one", "add-remove"):
        made = smalldb.release(
            counted(domain, (1,) * domain.size), queries, epsilon=epsilon, rows=rows, neighbours=neighbours
        )
        stated = Fraction(made.record["privacy"]["epsilon"])
        assert stated == (
            epsilon
            if neighbours == "replace-one"
            else epsilon * (1 - Fraction(1, 2 * rows * workload.denominator))
        )
        loss, _ = naive.worst(workload, rows, epsilon, 4, neighbours)
        assert 0.25 * stated < loss <= stated


def test_output_has_the_input_s_columns_order_and_dtypes():
    frame = FRAME.astype({"a": "boolean", "b": "uint8"})[["b", "a"]].set_index(pd.Index(range(10, 16)))
    made = smalldb.generate(frame, Conjunctions(2), epsilon=1, rows=5)
    assert list(made.columns) == ["b", "a"]
    assert made.dtypes.equals(frame.dtypes)
    assert made.index.equals(pd.RangeIndex(5))
    assert not made.isna().any(axis=None)
    keys = (2 * made["b"].astype(int) + made["a"].astype(int)).tolist()
    assert keys == sorted(keys)


def test_every_form_of_the_same_input_gives_the_same_release():
    domain = Domain(["a", "b"])
    forms = [FRAME, Rows.from_frame(domain, FRAME), Rows.from_counts(domain, *_aggregated(FRAME))]
    queries = [Conjunctions(2), "conjunctions:2", Conjunctions(2).workload(domain)]
    made = [
        smalldb.release(data, q, epsilon=e, rows=3, rng=5)
        for data, q, e in zip(forms, queries, [0.1, "1/10", Fraction(1, 10)], strict=True)
    ]
    for other in made[1:]:
        assert other.record == made[0].record
        assert (other.data.to_numpy() == made[0].data.to_numpy()).all()


def _aggregated(frame):
    grouped = frame.value_counts().reset_index()
    return grouped[["a", "b"]], grouped["count"]


def test_the_record_is_as_designed():
    record = smalldb.release(FRAME, Conjunctions(2), epsilon="0.50", rows=2, beta=0.1, rng=1).record
    check_record(record)
    sizes = {"cells": 4, "queries": 3, "n": 6, "epsilon": "1/2", "beta": "1/10"}
    expected = {
        "schema": 2,
        "mechanism": "census",
        "candidates": "multisets",
        "epsilon": "0.5",
        "delta": None,
        "neighbours": "replace-one",
        "privacy": {
            "epsilon": "0.5",
            "bounded_range": "0.5",
            "rho": as_text(Loss.ranged(Fraction(1, 2)).rho),
            "laws": [{"law": "bounded range", "epsilon": "0.5", "times": 1}],
        },
        "rows": 2,
        "n": 6,
        "queries": {"text": "conjunctions:2", "stated": 4, "reduced": 3},
        "universe": {"attributes": ["a", "b"], "valid": None},
        "bounds": {
            "beta": "0.1",
            "sharp": smalldb.bounds.sharp(rows=2, **sizes),
            "proposition_4_4": smalldb.bounds.proposition_4_4_rows(rows=2, **sizes),
            "theorem_4_5": smalldb.bounds.theorem_4_5(**sizes),
        },
        "private": False,
        "versions": {"smalldb": smalldb.__version__},
    }
    assert record == json.loads(json.dumps(record)) == expected
    assert list(record) == list(expected)


def test_under_add_remove_nothing_public_depends_on_n():
    one = smalldb.release(FRAME, Conjunctions(2), epsilon=1, rows=2, neighbours="add-remove")
    two = smalldb.release(FRAME[:3], Conjunctions(2), epsilon=1, rows=2, neighbours="add-remove")
    none = smalldb.release(FRAME[:0], Conjunctions(2), epsilon=1, rows=2, neighbours="add-remove")
    assert one.record == two.record == none.record
    assert "n" not in one.record
    assert "bounds" not in one.record
    assert one.record["private"] is True
    check_record(one.record)
    assert one.record["privacy"]["epsilon"] == "0.75"
    assert repr(one) == repr(two)


def test_the_schema_refuses_other_records():
    record = smalldb.release(FRAME, Conjunctions(2), epsilon=1, rows=2).record
    cases = [{"n": None}, {"private": "yes"}, {"epsilon": 0.5}, {"neighbours": "add-remove"}, {"more": 1}]
    for change in cases:
        with pytest.raises(jsonschema.ValidationError):
            check_record(record | change)


class Source:
    """A user's source of bits."""

    def __init__(self, private, kind=int):
        self.private, self.kind, self.bits_of = private, kind, SeededBits(1)

    def bits(self, count):
        return self.kind(self.bits_of.bits(count))


def test_private_is_what_the_source_says_and_nothing_less():
    for source, private in (
        (Source(True), True), (Source(False), False), (Source("yes"), False), (None, True), (7, False),
    ):  # fmt: skip
        made = smalldb.release(FRAME, Conjunctions(2), epsilon=1, rows=2, rng=source)
        assert made.record["private"] is private


@pytest.mark.parametrize("kind", [np.int64, np.uint8, lambda bits: bits + (1 << 70), lambda bits: -1, str])
def test_sources_that_draw_no_plain_bits_are_refused(kind):
    with pytest.raises((TypeError, ValueError), match="BitSource"):
        smalldb.release(FRAME, Conjunctions(2), epsilon=1, rows=2, rng=Source(True, kind))


@pytest.mark.parametrize("queries", [Linear([["1/3", 1, 0, "1/2"], [0, 0, "1/7", 1]]), Marginals(2)])
def test_the_confidential_part_is_right_and_does_not_travel(queries):
    made = smalldb.release(FRAME, queries, epsilon=1, rows=4, rng=3)
    secret, workload = made.confidential, queries.workload(Domain(["a", "b"]))
    matrix = workload.matrix().astype(float) / workload.denominator
    real = matrix @ counts_of(FRAME, workload.domain) / 6
    synthetic = matrix @ counts_of(made.data, workload.domain) / 4
    assert list(secret.errors.index) == list(workload.labels)
    assert secret.errors.to_numpy() == pytest.approx(np.abs(real - synthetic), abs=1e-15)
    assert secret.max_error == max(secret.errors)
    assert secret.census.total == math.comb(7, 4)
    level = secret.max_error * 6 * 4 * workload.denominator
    assert level == pytest.approx(round(level)) and round(level) in secret.census.levels
    for shown in (repr(made), repr(secret), repr(secret.census)):
        assert str(secret.max_error) not in shown
    for travelled in (pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made)):
        assert travelled.record == made.record
        assert travelled.data.equals(made.data)
        with pytest.raises(ValueError, match="stays with the original"):
            _ = travelled.confidential


@pytest.mark.slow
def test_pickles_hold_no_private_numbers():
    """Two tables, one released table: the pickles must be the same bytes."""
    found = {}
    for frame in (FRAME, FRAME.replace({"b": {1: 0}})):
        for seed in range(20):
            made = smalldb.release(frame, Conjunctions(2), epsilon=1, rows=1, rng=seed)
            key = (len(frame), tuple(made.data.to_numpy().ravel()))
            found.setdefault(key, set()).add(pickle.dumps(made))
    assert any(len(pickles) for pickles in found.values())
    assert all(len(pickles) == 1 for pickles in found.values())


def test_a_universe_of_one_cell():
    domain = Domain(["a"], valid="a")
    made = smalldb.release(pd.DataFrame({"a": [1, 1]}), Conjunctions(1), epsilon=1, rows=3, domain=domain)
    assert made.data["a"].tolist() == [1, 1, 1]
    assert made.record["queries"]["reduced"] == 0
    assert made.record["bounds"]["sharp"] == 0


def test_neither_rows_nor_alpha_plans_the_rows():
    made = smalldb.release(FRAME, Conjunctions(2), epsilon=1, mechanism="census")
    plan = smalldb.plan(Domain(["a", "b"]), Conjunctions(2), n=6, epsilon=1, mechanism="census")
    assert made.record["rows"] == plan.rows
    for rows in range(1, 60):
        other = smalldb.plan(
            Domain(["a", "b"]), Conjunctions(2), n=6, epsilon=1, rows=rows, mechanism="census"
        )
        assert plan.bound <= other.bound


BAD = [  # beside those of test_wrong_uses
    ({"epsilon": float("nan")}, ValueError, "epsilon"),
    ({"epsilon": "inf"}, ValueError, "epsilon"),
    ({"epsilon": True}, TypeError, "epsilon"),
    ({"alpha": 0, "rows": None}, ValueError, "alpha must lie strictly between 0 and 1"),
    ({"rows": 0}, ValueError, "rows must be a whole number of at least 1"),
    ({"rows": 2.5}, TypeError, "rows must be a whole number"),
    ({"rows": True}, TypeError, "rows must be a whole number"),
    ({"alpha": 0.5}, ValueError, "rows or alpha, not both"),
    ({"neighbours": "add"}, ValueError, "neighbours must be 'replace-one' or 'add-remove'"),
    ({"beta": 1}, ValueError, "beta must lie strictly between 0 and 1"),
    ({"queries": 3}, TypeError, "queries must be a query class"),
    ({"queries": Conjunctions(1).workload(Domain(["z"]))}, ValueError, "another domain"),
    ({"domain": Domain(["a"]), "queries": "parities:1"}, ValueError, "'b' is not an attribute"),
    ({"data": FRAME[:0]}, ValueError, "no rows"),
    ({"rows": 10**6, "mechanism": "rejection"}, ValueError, "the largest that can be done by rejection is"),
    ({"rows": 10**9}, ValueError, "at most 500000000 rows of 2 columns are made by marginals: give fewer"),
    (
        {"mechanism": "marginals", "strategy": "contrasts", "candidates": "tuples"},
        ValueError,
        "marginals have no candidates",
    ),
    ({"n_max": 0, "neighbours": "add-remove"}, ValueError, "n_max must be a whole number of at least 1"),
    ({"queries": Linear([[0, f"1/{2**61}", 0, 0]])}, ValueError, "2\\^62"),
]


@pytest.mark.parametrize(("change", "kind", "message"), BAD)
def test_bad_arguments_are_refused(change, kind, message):
    arguments = {"data": FRAME, "queries": Conjunctions(2), "epsilon": 1, "rows": 2} | change
    with pytest.raises(kind, match=message) as caught:
        smalldb.release(**arguments)
    assert "\n" not in str(caught.value)


def test_the_refused_size_names_one_that_works():
    names = [f"x{i}" for i in range(6)]
    with pytest.raises(ValueError, match="beyond the budget") as caught:
        smalldb.plan(Domain(names), Conjunctions(2), n=10, epsilon=1, rows=20, mechanism="census")
    largest = int(str(caught.value).split("the largest that can be done by census is ")[1].split()[0])
    small = smalldb.plan(Domain(names), Conjunctions(2), n=10, epsilon=1, rows=largest)
    assert (small.rows, small.mechanism) == (largest, "census")
    drawn = smalldb.plan(Domain(names), Conjunctions(2), n=10, epsilon=1, rows=largest + 1)
    assert (drawn.rows, drawn.mechanism) == (largest + 1, "rejection")
    assert "beyond the budget" in drawn.why
    with pytest.raises(ValueError, match="at most 20 attributes"):
        smalldb.plan(
            Domain([f"x{i}" for i in range(40)]), Conjunctions(2), n=10, epsilon=1, rows=1, mechanism="census"
        )


def test_add_remove_has_a_public_cap_on_n():
    domain = Domain(["a"])
    data = Rows.from_counts(domain, pd.DataFrame({"a": [0, 1]}), [2**40, 1])
    with pytest.raises(DataError, match="more than 2\\^40 rows"):
        smalldb.release(data, Predicates(["a"]), epsilon=1, rows=2, neighbours="add-remove")
    with pytest.raises(ValueError, match="n is private"):
        smalldb.plan(domain, Predicates(["a"]), n=5, epsilon=1, rows=2, neighbours="add-remove")
    assert smalldb.plan(domain, Predicates(["a"]), epsilon=1, rows=2, neighbours="add-remove").bound is None
