"""The exact law of the error against the vectors, the definition, and itself."""

import math
from fractions import Fraction

import naive
import numpy as np
import pandas as pd
import pytest
from builders import counted, flags
from hypothesis import given, settings
from hypothesis import strategies as st

import smalldb
from queries import Conjunctions, Marginals, Thresholds
from smalldb import bounds
from smalldb.counting.level_counts import Law

# id -> domain, queries, counts over the cells, rows, epsilon, the error whose exceedance is `fail_prob`
ENTRIES = {
    "census_d2_conj": (2, Conjunctions(2), (3, 1, 0, 2), 3, "1/2", "1/3"),
    "census_d3_cells": (3, Marginals(2, exactly=True), (4, 0, 1, 2, 0, 3, 1, 1), 4, 2, "1/4"),
    "census_d3_conj": (3, Conjunctions(2), (20, 5, 3, 2, 4, 1, 2, 3), 6, 1, "1/5"),
    "census_thresh8": (3, Thresholds(), (2, 1, 0, 4, 0, 0, 1, 2), 4, 1, "1/4"),
}


def census(d, queries, histogram, rows, **keywords):
    return smalldb.census(counted(flags(d), histogram), queries, rows=rows, **keywords)


@pytest.mark.parametrize("name", ENTRIES)
def test_the_vectors_come_out(name, vectors):
    d, queries, histogram, rows, epsilon, error = ENTRIES[name]
    expected = vectors[name]["value"]
    found = census(d, queries, histogram, rows)
    assert dict(zip(map(str, found.levels), found.counts, strict=True)) == expected["census"]
    assert found.total == expected["R"]
    law = found.law(epsilon)
    assert law.probabilities.tolist() == [float(p) for p in expected["probs"].values()]
    assert law.mean() == float(expected["expected_error"])
    assert law.exceedance(error) == float(expected["fail_prob"])


def test_the_empty_table_is_uniform(vectors):
    found = census(2, Conjunctions(2), (0, 0, 0, 0), 2)
    assert {str(s): c for s, c in zip(found.levels, found.counts, strict=True)} == (
        vectors["census_empty"]["value"]["census"]
    )
    assert found.law(1).probabilities.tolist() == [1.0]
    assert found.law(1).mean() == 0


@settings(max_examples=50)
@given(
    st.dictionaries(st.integers(0, 400), st.integers(1, 10**30), min_size=1, max_size=8),
    st.fractions(Fraction(1, 1000), 3, max_denominator=1000),
)
def test_floats_are_the_nearest_and_enclosures_hold(counts, rate):
    counts = dict(sorted(counts.items()))
    law = Law(np.array(list(counts)), tuple(counts.values()), rate, 7)
    exact = list(naive.fraction_law(counts, rate).values())
    for (low, high), p, probability in zip(law.enclosures(), exact, law.probabilities, strict=True):
        assert low - Fraction(1, 10**40) <= p <= high + Fraction(1, 10**40)
        assert high - low < Fraction(1, 2**60)
        assert probability == pytest.approx(float(p), rel=1e-15, abs=1e-40)
    mean = sum(s * p for s, p in zip(counts, exact, strict=True)) / 7
    assert law.mean() == pytest.approx(float(mean), rel=1e-15, abs=1e-40)
    variance = sum((Fraction(s, 7) - mean) ** 2 * p for s, p in zip(counts, exact, strict=True))
    assert law.variance() == pytest.approx(float(variance), rel=1e-14, abs=1e-30)


def test_far_levels_have_their_true_probability():
    law = Law(np.array([0, 500, 2000]), (1, 1, 10**400), Fraction(1), 1)
    assert law.probabilities.tolist() == [1.0, math.exp(-500), 0.0]
    low, high = law.enclosures(4000)[2]
    assert 0 < low < high < Fraction(1, 10**460)
    assert law.variance() == pytest.approx(500**2 * math.exp(-500), rel=1e-12)
    assert Law(np.array([7]), (3,), Fraction(1), 2).variance() == 0.0


def test_many_levels_and_a_huge_epsilon():
    levels = np.arange(3000) * 7
    law = Law(levels, tuple(range(1, 3001)), Fraction(1, 1000), 1)
    assert law.probabilities.sum() == pytest.approx(1, abs=1e-12)
    assert Law(levels, law.counts, Fraction(10) ** 300, 1).probabilities.tolist() == [1.0] + [0.0] * 2999


def test_all_of_the_probability_needs_no_precision(monkeypatch):
    """Levels so far apart that the last weight is below 2^-10^12: it would have to be told from 0."""
    law = Law(np.array([0, 1, 10**9]), (1, 5, 1), Fraction(1000), 1)
    monkeypatch.setattr(Law, "_weights", None)
    assert law.quantile(1) == 1e9
    assert law.quantile("1") == 1e9


def test_tables_of_a_census_and_of_a_law():
    found = census(*ENTRIES["census_d2_conj"][:4])
    frame = found.to_frame()
    assert frame["level"].tolist() == found.levels.tolist()
    assert frame["error"].tolist() == [float(found.error(level)) for level in found.levels]
    assert (frame["share"] * 20).tolist() == frame["candidates"].tolist() == [2, 8, 6, 4]
    law = found.law("1/2")
    frame = law.to_frame()
    assert list(frame.columns) == ["level", "error", "candidates", "probability", "cdf"]
    exact = list(
        naive.fraction_law(dict(zip(law.levels.tolist(), law.counts, strict=True)), law.rate).values()
    )
    assert frame["cdf"].tolist() == [float(sum(exact[: i + 1])) for i in range(len(exact))]
    pd.testing.assert_series_equal(frame["probability"], pd.Series(law.probabilities, name="probability"))
    assert frame["candidates"].tolist() == [2, 8, 6, 4]
    assert repr(law) == "<Law of the error over 20 candidates: confidential>"


@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.parametrize("epsilon", ["1/10", 2, 30])
def test_bounds_on_the_mean_from_a_census(name, epsilon):
    """Never below the mean; Gibbs never above McSherry and Talwar where that is below 1."""
    found = census(*ENTRIES[name][:4])
    mean, gibbs, talwar = found.law(epsilon).mean(), found.gibbs(epsilon), found.mcsherry_talwar(epsilon)
    assert mean <= gibbs
    assert mean <= talwar
    assert talwar >= 1 or gibbs <= talwar
    least = found.error(found.levels[0])
    known = {"n": found.n, "epsilon": epsilon, "optimum": least, "total": found.total}
    of_levels = [  # of all that are near to the best, the best choice
        bounds.mcsherry_talwar(**known, near=sum(found.counts[: i + 1]), within=found.error(level) - least)
        for i, level in enumerate(found.levels)
    ]
    assert talwar == pytest.approx(min(of_levels), rel=1e-9)


def test_refusals():
    found = census(*ENTRIES["census_d2_conj"][:4])
    for epsilon in (0, -1, float("nan"), "x"):
        with pytest.raises(ValueError, match="epsilon"):
            found.law(epsilon)
    for probability in (0, 1.5, -1):
        with pytest.raises(ValueError, match=r"probability must lie in \(0, 1\]"):
            found.law(1).quantile(probability)
    with pytest.raises(IndexError, match="no candidate stands at this level"):
        found.candidate(4, 0)
    with pytest.raises(IndexError, match="at least 0 and below the count of its level"):
        found.candidate(3, 2)
