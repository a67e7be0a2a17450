"""Margins of the census: guards at their last number, and laws in words of four bits."""

from collections import Counter
from contextlib import suppress
from fractions import Fraction
from itertools import accumulate, permutations, product
from math import factorial

import naive
import numpy as np
import pytest
from builders import counted
from margins import obeys, outcomes

import smalldb
from queries import Conjunctions, Domain, Linear, Predicates, Rows
from smalldb.counting import level_counts, multisets
from smalldb.counting.level_counts import Law
from smalldb.counting.mechanism import arranged
from smalldb.counting.scores import MAX_SCORE, Scores, too_large

AB = Domain(["a", "b"])


def test_the_last_scores_below_62_bits():
    for n, rows, denominator in ((1 << 60, 2, 2), (1 << 40, 1 << 11, 1 << 11), (MAX_SCORE, 1, 1)):
        assert too_large(n, rows, denominator)
        assert not too_large(n - 1, rows, denominator)


@pytest.mark.parametrize("mechanism", ["census", "rejection"])
def test_scores_that_pass_62_bits_are_refused_from_public_numbers(mechanism):
    """n m D below 2^62: whatever of the three is large, and n is the cap where it is private."""

    def refused(queries, **public):
        try:
            smalldb.plan(AB, queries, epsilon=Fraction(1, 1 << 70), mechanism=mechanism, **public)
        except ValueError as error:
            assert "scores would reach 2^62" in str(error)
            return True
        return False

    halves = Linear([[0, "1/2", 1, 0]])
    assert refused(halves, n=1 << 60, rows=2)
    assert not refused(halves, n=(1 << 60) - 1, rows=2)
    assert not refused(Predicates(["a"]), n=1 << 60, rows=2)
    assert refused(Predicates(["a"]), n=1 << 60, rows=4)
    eighths = Linear([[0, Fraction(1, 1 << 21), 1, 0]])
    for guess in ({"n_max": 10}, *([{}] if mechanism == "census" else [])):
        assert refused(eighths, rows=2, neighbours="add-remove", **guess)
        assert not refused(eighths, rows=1, neighbours="add-remove", **guess)


@pytest.mark.parametrize("engine", ["enumeration", "dynamic"])
def test_scores_of_a_census_stay_below_62_bits(engine):
    def counted(n):
        data = Rows.from_counts(AB, AB.decode(AB.table()), [0, n - 5, 5, 0])
        return smalldb.census(data, Predicates(["a", "a & b"]), rows=4, engine=engine)

    with pytest.raises(ValueError, match=r"reach 2\^62"):
        counted(1 << 60)
    n = (1 << 60) - 1
    found = counted(n)
    matrix = [[0, 0, 1, 1], [0, 0, 0, 1]]
    expected = naive.census(matrix, [5, 0], n, 4, 4)
    assert dict(zip(found.levels.tolist(), found.counts, strict=True)) == dict(sorted(expected.items()))


def test_an_enumeration_stays_below_62_bits(monkeypatch):
    class Looked(Exception):
        pass

    def look(*_, **__):
        raise Looked

    monkeypatch.setattr(level_counts, "enumerate_scores", look)
    data = Rows.from_counts(AB, AB.decode(AB.table()), [1, 1, 1, 1])
    for number, outcome in ((MAX_SCORE, ValueError), (MAX_SCORE - 1, Looked)):
        monkeypatch.setattr(multisets, "count", lambda cells, rows, number=number: number)
        with pytest.raises(outcome):
            smalldb.census(data, Predicates(["a"]), rows=2, engine="enumeration")


def test_an_enumeration_over_two_cells_stays_below_62_bits():
    """Of m rows there are m + 1 multisets: fewer than 2^62 are refused for their score tables."""
    data = counted(Domain(["a"]), [1, 0])
    for fewer, why in ((1, r"up to 2\^62 candidates"), (2, "score tables")):
        with pytest.raises(ValueError, match=why):
            smalldb.census(data, Predicates(["a"]), rows=MAX_SCORE - fewer, engine="enumeration")


@pytest.mark.parametrize("engine", ["enumeration", "dynamic", "auto"])
def test_an_engine_counts_what_is_asked_for_or_refuses(engine):
    counters, made = {"multisets": naive.census, "tuples": naive.ordered_census}, 0
    for candidates, by_definition in counters.items():
        with suppress(ValueError):
            found = smalldb.census(
                counted(AB, [3, 1, 0, 2]), Conjunctions(1), rows=3, engine=engine, candidates=candidates
            )
            expected = by_definition(Conjunctions(1).workload(AB).matrix(), [2, 3], 6, 4, 3)
            assert dict(zip(found.levels.tolist(), found.counts, strict=True)) == expected
            made += 1
    assert made >= 1


def test_a_law_in_units_of_its_weights():
    """A score is D times as large where weights are in units of 1 / D, and costs as much less."""
    domain = Domain(["a"])
    data = counted(domain, [2, 5])
    plain, fine = (
        smalldb.census(data, Linear(rows), rows=3).law(2).probabilities
        for rows in ([[0, 1]], [[0, 1], [0, "1/8"]])
    )
    assert plain.tolist() == fine.tolist()


@pytest.mark.parametrize("entries", [65_535, 65_536, 70_000])
def test_ranks_find_their_levels(entries):
    scores = Scores.build(np.array([[0, 1, entries - 1]]), np.array([3]), 1, 1)
    assert (scores.levels[scores.ranks] == np.abs(3 - np.arange(entries))).all()


@pytest.mark.parametrize(
    ("counts", "rate"),
    [
        ({3: 2, 6: 8, 9: 6, 12: 4}, "1/12"),
        ({0: 1, 1: 1, 2: 1}, "1/3"),
        ({0: 5, 7: 11}, "9/10"),
        ({0: 1, 50: 9}, 1),
    ],
)
def test_laws_in_words_of_four_bits(monkeypatch, counts, rate):
    monkeypatch.setattr(level_counts, "_FIRST_PRECISION", 4)
    found = Law(np.array(list(counts)), tuple(counts.values()), Fraction(rate), 7)
    exact = naive.fraction_law(counts, Fraction(rate))
    for precision in (1, 2, 4, 6, 9):
        for (low, high), p in zip(found.enclosures(precision), exact.values(), strict=True):
            assert low <= p <= high
    assert found.probabilities.tolist() == [float(p) for p in exact.values()]
    assert found.mean() == float(sum(s * p for s, p in exact.items()) / 7)
    below = list(accumulate(exact.values()))
    for wanted in (Fraction(i, 64) for i in range(1, 64)):
        position = next(i for i, total in enumerate(below) if total >= wanted)
        assert found.quantile(wanted) == float(Fraction(list(counts)[position], 7))
    assert (found.quantile(1), found.exceedance(-1)) == (found.errors[-1], 1)
    for level in counts:
        above, at = float(sum(p for s, p in exact.items() if s > level)), Fraction(level, 7)
        assert found.exceedance(at) == above == found.exceedance(at + Fraction(1, 10**30))


def test_a_quantile_on_both_sides_of_its_jump():
    """Nearer to it than the precision that is tried first."""
    law = Law(np.array([0, 1]), (1, 1), Fraction(1), 1)
    assert [law.quantile(end) for end in law.enclosures(400)[0]] == [0, 1]


@pytest.mark.parametrize(
    ("queries", "candidates"), [(Conjunctions(1), "multisets"), (Predicates(["a"]), "tuples")]
)
def test_a_calibrated_draw_by_its_decision_tree(queries, candidates):
    """By the definition, at the internal epsilon."""
    histogram, n, tuples = [1, 0, 2, 0], 3, candidates == "tuples"
    plan = smalldb.plan(AB, queries, n=n, epsilon=4, rows=2, candidates=candidates, calibrated=True)
    law = naive.law(plan.workload, histogram, 2, plan.chosen.guarantee.internal, candidates)
    counts = {y: tuple(map(y.count, range(4))) for y in product(range(4), repeat=2)}
    if tuples:
        orders = Counter(counts.values())
        law = {y: law[each] / orders[each] for y, each in counts.items()}

    def draw(source):
        codes = plan.chosen.draw(counted(AB, histogram), source, progress=False).codes
        rows = tuple((codes @ [2, 1]).tolist())
        return rows if tuples else counts[rows]

    assert obeys(outcomes(draw, 12), law, Fraction(1, 100))


def test_every_order_of_rows_is_as_likely():
    found = outcomes(lambda source: tuple(arranged(np.array([4, 7, 9]), source).tolist()), 12)
    expected = dict.fromkeys(permutations((4, 7, 9)), Fraction(1, factorial(3)))
    assert obeys(found, expected, Fraction(1, 50))


def test_a_base_measure_leaves_the_mechanisms_that_have_one():
    assert smalldb.plan(AB, n=100, epsilon=1, candidates="tuples").candidates == "tuples"
