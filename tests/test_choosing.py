"""Which mechanism is chosen, and what its release and record hold."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from builders import counted, flags
from calling import FOR_FLAGS, way
from records import check_record

import smalldb
from queries import Conjunctions, Domain, Linear, Marginals
from smalldb.planning import Plan
from smalldb.rejection.mechanism import largest_c


def table(attributes, n, seed=1):
    draws = np.random.default_rng(seed)
    kinds = draws.integers(0, 2, (n, 1))
    ones = draws.random((n, attributes)) < np.where(kinds, draws.uniform(0, 1, attributes), 0.3)
    return pd.DataFrame(ones.astype(np.int64), columns=list(flags(attributes).attributes))


@pytest.mark.parametrize(
    ("attributes", "rows", "choices", "mechanism", "candidates"),
    [
        (4, 8, {}, "census", "multisets"),
        (4, 8, {"candidates": "tuples"}, "census", "tuples"),
        (4, 8, {"mechanism": "rejection", "n": 400}, "rejection", "tuples"),
        (4, 8, {"mechanism": "marginals", "strategy": "contrasts"}, "marginals", None),
        (12, 20, {"n": 400}, "rejection", "tuples"),
        (12, 20, {}, "marginals", None),  # not every kind of table would be quick
        (12, 20, {"mechanism": "rejection"}, "rejection", "tuples"),
        (12, 20, {"candidates": "tuples", "n": 400}, "rejection", "tuples"),
        (12, 200, {}, "marginals", None),  # more rows than rejection draws
        (100, 20, {}, "marginals", None),  # a wide table, all parities at once
        (100, 20, {"queries": Conjunctions(1)}, "rejection", "tuples"),  # no rejection at all
        (12, None, {"alpha": "0.1"}, "marginals", None),
    ],
)
def test_a_size_is_done_by_the_first_way_that_can(attributes, rows, choices, mechanism, candidates):
    keywords = {"queries": Conjunctions(2), "n": 1000, "epsilon": 1, "rows": rows} | choices
    made = smalldb.plan(flags(attributes), **keywords)
    assert (made.mechanism, made.candidates) == (mechanism, candidates)
    assert rows in (None, made.rows)
    assert made.runner_up is None


def test_what_was_passed_over_is_said():
    made = smalldb.plan(flags(12), Conjunctions(2), n=1000, epsilon=1, rows=200)
    assert len(made.refused) == 2
    assert "beyond the budget" in made.why
    assert "at most 64 rows" in made.why
    assert smalldb.plan(flags(4), Conjunctions(2), n=1000, epsilon=1, rows=8).why is None


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "n"), [(1, 30), (1, 1000), ("1/100", 1000), (10, 100_000), (100, 50)])
@pytest.mark.parametrize("attributes", [2, 4])
def test_with_the_size_left_open_the_least_expected_error_is_taken(attributes, epsilon, n):
    def planned(name):
        return smalldb.plan(flags(attributes), Conjunctions(2), n=n, epsilon=epsilon, **way(name))

    chosen, ways = planned("auto"), [planned(name) for name in ("census", "marginals")]
    assert chosen.expected_error == min(way.expected_error for way in ways)
    if chosen.runner_up is None:  # what others could reach is told, and no census is rehearsed
        assert chosen.mechanism == "marginals"
        assert re.search("promises? no mean error below", chosen.why)
    else:
        assert chosen.runner_up.expected_error >= chosen.expected_error
        assert f"by {chosen.runner_up.mechanism}" in chosen.why
        assert {chosen.mechanism, chosen.runner_up.mechanism} >= {"marginals"}


def test_what_cannot_be_measured_is_left_to_a_census():
    ruled = Domain(["a0", "a1"], valid="~a0 | a1")
    made = smalldb.plan(ruled, Conjunctions(2), n=100, epsilon=1 << 21)
    assert made.mechanism == "census" and made.runner_up.strategy != "contrasts"
    with pytest.raises(ValueError, match=r"an epsilon of 2\^-40 to 2\^20"):
        smalldb.plan(ruled, Conjunctions(2), n=100, epsilon=1 << 21, strategy="contrasts")
    assert smalldb.plan(flags(2), Conjunctions(2), n=100, epsilon=1 << 21).strategy != "contrasts"


@pytest.mark.slow
def test_marginals_are_given_as_many_rows_as_the_data_within_reason():
    assert smalldb.plan(flags(8), Conjunctions(2), n=100_000, epsilon=1).rows == 100_000
    assert smalldb.plan(flags(8), Conjunctions(2), n=10**12, epsilon=1).rows == 10**8 // 8


@pytest.mark.parametrize("mechanism", ["auto", "census", "rejection", *FOR_FLAGS])
def test_under_add_remove_the_rows_are_named_or_told_by_the_release(mechanism):
    given = {"epsilon": 1, "neighbours": "add-remove"} | way(mechanism)
    if mechanism in ("census", "rejection"):
        with pytest.raises(ValueError, match="give rows or alpha"):
            smalldb.plan(flags(3), Conjunctions(2), **given, n_max=100)
        return
    made = smalldb.plan(flags(3), Conjunctions(2), **given, n_max=100)
    assert (made.mechanism, made.rows) == ("marginals", None)
    with pytest.raises(ValueError, match="need n_max, a public guess"):
        smalldb.plan(flags(3), Conjunctions(2), **given)


@pytest.mark.parametrize("mechanism", ["rejection", *FOR_FLAGS])
def test_under_add_remove_what_depends_on_n_needs_n_max(mechanism):
    keywords = {"epsilon": 1, "rows": 20, "neighbours": "add-remove"} | way(mechanism)
    with pytest.raises(ValueError, match=r"needs? n_max, a public guess"):
        smalldb.plan(flags(6), Conjunctions(2), **keywords)
    made = smalldb.plan(flags(6), Conjunctions(2), **keywords, n_max=200)
    assert mechanism in (made.mechanism, made.strategy)
    assert (made.n, made.bound) == (None, None)
    # marginals estimate theirs by n_max; rejection would have to know n
    assert (made.expected_error is None) == (mechanism == "rejection")


def test_what_is_named_is_not_refused_for_time():
    keywords = {"rows": 20, "mechanism": "rejection"}
    made = smalldb.plan(flags(14), Conjunctions(2), n=100_000, epsilon=1, **keywords)
    told = made.chosen.facts.cost
    assert "on most up to 25" in told
    assert "from less than a second to days" in told
    quick = smalldb.plan(flags(14), Conjunctions(2), n=1000, epsilon=1, **keywords)
    assert "on tables of many kinds it was seconds" in quick.chosen.facts.cost
    assert smalldb.plan(flags(60), Conjunctions(2), n=100, epsilon=1, **keywords).rows == 20
    assert smalldb.plan(flags(8), n=10**6, epsilon=1, candidates="multisets", **keywords).rows == 20
    assert "; by name it is taken" in smalldb.plan(flags(14), n=1000, epsilon=1, rows=20).why


def test_what_there_is_no_room_for_is_refused_by_name():
    keywords = {"epsilon": 1, "mechanism": "rejection"}
    with pytest.raises(ValueError, match="epsilon up to") as caught:
        smalldb.plan(flags(14), Conjunctions(2), n=10**9, rows=20, **keywords)
    enough = str(caught.value).split("epsilon up to ")[1].split(";")[0]
    assert smalldb.plan(flags(14), n=10**9, rows=20, **keywords | {"epsilon": enough}).rows == 20
    with pytest.raises(ValueError, match=r"the largest that can be done by rejection is \d+ rows") as caught:
        smalldb.plan(flags(14), Conjunctions(2), n=1100, rows=65, **keywords)
    largest = int(str(caught.value).split("by rejection is ")[1].split()[0])
    assert smalldb.plan(flags(14), Conjunctions(2), n=1100, rows=largest, **keywords).rows == largest > 20
    with pytest.raises(ValueError, match="no room for multisets"):
        smalldb.plan(flags(12), n=1000, rows=3, candidates="multisets", **keywords)


@pytest.mark.slow
@pytest.mark.parametrize("queries", [Conjunctions(2), Conjunctions(3)])
def test_what_is_accepted_falls_with_attributes_rows_and_width(queries):
    def largest(attributes, rows):
        return largest_c(queries.workload(flags(attributes)), rows)

    sizes = (6, 7, 8, 9, 10, 12, 14, 20)
    for rows in (1, 20, 21, 30, 40, 50, 64):
        found = [largest(d, rows) for d in sizes]
        assert found == sorted(found, reverse=True)
        assert all(0 < sure <= most for sure, most in found)
    for d in sizes:
        found = [largest(d, rows) for rows in range(1, 65)]
        assert found == sorted(found, reverse=True)
    assert largest_c(Conjunctions(3).workload(flags(6)), 20) < largest_c(
        Conjunctions(2).workload(flags(6)), 20
    )


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("mechanism", ["census", "rejection", *FOR_FLAGS])
def test_every_mechanism_releases_and_records(mechanism, neighbours):
    frame = table(4, 40).astype({"x1": bool})
    public = {"n_max": 50} if neighbours == "add-remove" else {}
    made = smalldb.release(
        frame, Marginals(2), epsilon="1/2", rows=6, **way(mechanism), neighbours=neighbours, **public
    )
    assert made.data.shape == (6, 4)
    assert made.data.dtypes.equals(frame.dtypes)
    assert isinstance(made.plan, Plan)
    record = made.record
    check_record(record)
    assert mechanism in (record["mechanism"], record.get("strategy"))
    assert (record["private"], record["rows"]) == (True, 6)
    assert ("n" in record) == (neighbours == "replace-one")
    if "strategy" in record:
        assert (record["privacy"]["epsilon"], record["privacy"]["bounded_range"]) == ("0.5", None)
        assert record["candidates"] is None
        assert record["bounds"]["released"] >= 0
    else:
        assert record["privacy"]["epsilon"] == record["privacy"]["bounded_range"]
        assert ("bounds" in record) == (neighbours == "replace-one")
    total = smalldb.accounting.compose_records([record, record], delta=0)
    assert total.epsilon <= 1
    drawn = {"n": None, "bounds": None, "measurements": None}
    assert str(len(frame)) not in json.dumps(record | drawn)


@pytest.mark.slow
def test_a_larger_table_than_n_max_is_not_refused():
    given = {"epsilon": "1/10", "rows": 4, "neighbours": "add-remove", "n_max": 10}
    for mechanism in ("rejection", *FOR_FLAGS):
        made = smalldb.release(table(4, 300), Conjunctions(2), **given, **way(mechanism))
        assert len(made.data) == 4


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("mechanism", ["contrasts", "cells", "adaptive", "rejection", "census"])
def test_denominators_that_pass_64_bits_are_refused_whatever_the_data(mechanism, neighbours):
    """Refused with the data in hand, n = 1 and n = 2 could be told apart with certainty."""
    queries = Linear([[0, f"1/{2**61}", 1, 1]])
    public = {"n_max": 1000} if neighbours == "add-remove" else {}
    n = 2 if neighbours == "replace-one" else 1
    frame = pd.DataFrame({"a": [1] * n, "b": [0] * n})
    with pytest.raises(ValueError, match=r"would reach 2\^6[02]"):
        smalldb.release(frame, queries, epsilon=1, rows=2, neighbours=neighbours, **way(mechanism), **public)


@pytest.mark.parametrize("epsilon", [1, 10, 40])
@pytest.mark.parametrize("attributes", [1, 3])
def test_an_empty_table_has_answers_under_add_remove(attributes, epsilon):
    given = {"epsilon": epsilon, "rows": 5, "neighbours": "add-remove", "n_max": 1000}
    made = smalldb.release(table(attributes, 0), strategy="contrasts", **given)
    assert made.data.shape == (5, attributes)
    assert made.confidential.max_error == 0


@pytest.mark.parametrize("n", [10**7, 10**9, 10**12])
@pytest.mark.parametrize("epsilon", ["1e-7", 1])
def test_counts_of_any_size_are_answered(n, epsilon):
    rows = counted(flags(3), [n // 8 + position for position in range(8)])
    made = smalldb.release(rows, Marginals(3), epsilon=epsilon, rows=1000, strategy="contrasts")
    assert made.data.shape == (1000, 3)
    assert made.confidential.max_error <= (0.01 if n * float(epsilon) > 10**4 else 1)
