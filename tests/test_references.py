"""Sensitivities by enumeration, the reference mechanisms by their laws, one-shot noise by its formulas."""

import math
import runpy
from collections import Counter
from contextlib import redirect_stdout
from fractions import Fraction
from io import StringIO
from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest
from margins import obeys, outcomes, p_value

import smalldb
from smalldb.accounting import concentrated, one_shot_top_k
from smalldb.accounting import delta as accounting_delta
from smalldb.exact.bits import SeededBits
from smalldb.selection import laplace, linear_sensitivity, randomised_response, score_sensitivity


@pytest.mark.parametrize("factor", [1, 100])
def test_the_essays_two_scores_are_one_mechanism(factor):
    """x + y and 100 x + y: sensitivities 1 and 100, one range, one law."""
    scores = [[factor * x + y for y in (0, 1)] for x in (0, 1)]
    found = score_sensitivity(scores)
    assert (found.sensitivity, found.range) == (factor, 0)
    laws = [smalldb.selection_law(row, epsilon=1, range=1) for row in scores]
    assert laws[0] == laws[1]


def test_the_logarithm_of_the_law_is_not_the_least_sensitive_score():
    """Both scores have one mechanism; that of the logarithm moves by more."""
    scores = [[0, 0], [Fraction(1, 2), Fraction(-1, 2)]]
    laws = [np.exp(np.array(line, float)) / np.exp(np.array(line, float)).sum() for line in scores]
    logs = [[Fraction(math.log(p)) for p in law] for law in laws]
    assert score_sensitivity(scores).sensitivity == Fraction(1, 2)
    assert score_sensitivity(logs).sensitivity > 0.62
    assert score_sensitivity(logs).range == pytest.approx(1)
    assert score_sensitivity(scores).range == 1


def test_the_range_is_at_most_twice_the_sensitivity_and_tight():
    found = score_sensitivity([[0, 0], [1, -1]])
    assert (found.sensitivity, found.range) == (1, 2)
    counts = score_sensitivity([[3, 1, 2], [3, 2, 2], [4, 2, 3]], neighbours=[(0, 1), (1, 2)])
    assert (counts.sensitivity, counts.range) == (1, 1)
    assert score_sensitivity([[5, 7]]).range == 0


@pytest.mark.parametrize("values", [[0, 1], [Fraction(1, 4), Fraction(3, 4), 1], [-2, 1, 0]], ids=str)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_linear_sensitivities_by_enumeration(values, n):
    f = [Fraction(v) for v in values]
    tables = list(combinations_with_replacement(f, n))
    mean, total = (lambda rows: sum(rows) / len(rows)), sum
    for query, size in ((total, None), (mean, n)):
        replaced = max(abs(query([*x[1:], z]) - query(x)) for x in tables for z in f)
        added = max(abs(query([*x, z]) - query(x)) for x in tables for z in f)
        assert linear_sensitivity(values, n=size) == replaced
        assert linear_sensitivity(values, n=size, neighbours="add-remove") == added


@pytest.mark.parametrize("n", [1, 3])
def test_a_query_moves_as_its_value_does_as_the_score_of_one_candidate(n):
    """High values come first: whatever replaces a row lets the score fall."""
    f = [Fraction(1), Fraction(3, 4), Fraction(-1, 4)]
    tables = [x for size in (n, n + 1) for x in combinations_with_replacement(f, size)]
    moved = {"replace-one": [], "add-remove": []}
    for (i, x), (j, y) in combinations(enumerate(tables), 2):
        gone, new = (Counter(x) - Counter(y)).total(), (Counter(y) - Counter(x)).total()
        if new == 1 and gone <= 1 and len(x) == n:
            moved["replace-one" if gone else "add-remove"].append((i, j))
    for neighbours, pairs in moved.items():
        found = score_sensitivity([[sum(x) / len(x)] for x in tables], pairs)
        assert found.sensitivity == linear_sensitivity(f, n=n, neighbours=neighbours)


@pytest.mark.slow
@pytest.mark.parametrize("analysis, scale", [("direct", 1), ("exponential", 2)])
def test_laplace_noise_by_its_law(analysis, scale):
    """Scale Delta / epsilon, or twice that; a scale 30 % off is noticed."""
    source, trials = SeededBits(11), 2_000
    given = {"epsilon": 2, "sensitivity": 3, "analysis": analysis, "rng": source}
    drawn = Counter(laplace(7, **given) - 7 for _ in range(trials))
    for factor, holds in ((1, True), (1.3, False), (0.7, False)):
        q = math.exp(-1 / (1.5 * scale * factor))
        law = {z: (1 - q) / (1 + q) * q ** abs(z) for z in range(-60, 61)}
        assert (p_value(drawn, law) > 1e-4) == holds


def test_randomised_response_by_its_decision_tree(monkeypatch):
    honest = 1 / (1 + math.exp(-1))
    law = smalldb.selection_law([1, 0], epsilon=1, range=1)
    assert float(law[(0,)][0]) == pytest.approx(honest, rel=1e-15)
    monkeypatch.setattr("smalldb.exact.integers.DIGIT", 3)
    for truth in (True, False):
        found = outcomes(lambda s, x=truth: bool(randomised_response([x], epsilon=1, rng=s)[0]), 12)
        law = {truth: Fraction(honest), not truth: Fraction(1 - honest)}
        assert obeys(found, {v: p + Fraction(1, 10**12) for v, p in law.items()}, Fraction(1, 100))


TOP_K = {"k": 2, "candidates": 9, "epsilon": "0.1", "delta": "1e-6"}
TIGHT = TOP_K | {"conversion": "tight"}


@pytest.mark.parametrize(
    "function, given, said",
    [
        *(
            (laplace, {"answer": bad, "epsilon": 1}, "answer must be a whole number")
            for bad in (True, 1.5, "3")
        ),
        (laplace, {"answer": 1, "epsilon": 1, "analysis": "exact"}, "analysis"),
        (randomised_response, {"answers": [0, 1], "epsilon": 1}, "answers must be True or False"),
        (one_shot_top_k, TOP_K | {"monotone": 1}, "monotone must be True or False, not int"),
        (one_shot_top_k, TOP_K | {"k": 10}, "k"),
        (one_shot_top_k, TOP_K | {"delta": 0}, "delta"),
        (one_shot_top_k, TOP_K | {"conversion": "loose"}, "conversion"),
        (one_shot_top_k, TOP_K | {"epsilon": 0}, "epsilon"),
        *((one_shot_top_k, TIGHT | {"epsilon": extreme}, "for 'tight'") for extreme in ("1e-20", 1 << 21)),
        (one_shot_top_k, TIGHT | {"epsilon": 1, "delta": "1e-301"}, "for 'tight'"),
        (linear_sensitivity, {"values": [0, 1], "neighbours": "both"}, "neighbours"),
        (linear_sensitivity, {"values": []}, "values"),
        *((score_sensitivity, {"scores": bad}, "scores must hold") for bad in ([], [[]], [[1], [1, 2]])),
    ],
)
def test_what_the_references_refuse(function, given, said):
    with pytest.raises((ValueError, TypeError), match=said):
        function(**given)


@pytest.mark.parametrize("k, d", [(1, 10), (7, 10**6), (10, 10)])
@pytest.mark.parametrize("epsilon", ["0.01", "0.19"])
@pytest.mark.parametrize("delta", ["1e-9", "0.04"])
def test_one_shot_noise_is_that_of_the_essay(k, d, epsilon, delta):
    given = {"k": k, "candidates": d, "epsilon": epsilon, "delta": delta}
    found = one_shot_top_k(**given, monotone=True)
    e, tail = float(Fraction(epsilon)), math.log(1 / float(Fraction(delta)))
    prime = 2 * math.sqrt(tail) * (math.sqrt(1 + e / tail) - 1)
    assert found.parameter == pytest.approx(prime, rel=1e-9)
    assert found.gumbel == pytest.approx(math.pi * math.sqrt(k) / (math.sqrt(6) * prime), rel=1e-9)
    assert found.counts == pytest.approx(2 * math.sqrt(2 * k) / prime, rel=1e-9)
    spread = math.sqrt(2 * k * (tail + math.log(d)))
    assert found.laplace == pytest.approx(8 * spread / e, rel=1e-12)
    if e < tail:
        assert found.parameter >= e / (2 * math.sqrt(tail))
        assert found.gumbel <= found.laplace / 4
        assert found.counts <= found.laplace / 2
        assert found.gumbel <= 2 * math.pi * math.sqrt(k * tail) / (math.sqrt(6) * e)
        assert found.counts <= 4 * math.sqrt(2 * k * tail) / e
    both = one_shot_top_k(**given)
    for each, width in ((found, 1), (both, 2)):  # k draws, each of that range over its scale
        drawn = width * math.pi / (math.sqrt(6) * each.gumbel)
        assert k * drawn**2 == pytest.approx(each.parameter**2, rel=1e-9)
    rho = Fraction(found.parameter) ** 2 / 4
    assert float(rho) + 2 * math.sqrt(float(rho) * tail) == pytest.approx(e, rel=1e-9)
    tight = one_shot_top_k(**given, monotone=True, conversion="tight")
    assert tight.parameter >= found.parameter
    assert Fraction(tight.parameter) ** 2 / 4 <= concentrated.rho_of(Fraction(epsilon), Fraction(delta))


@pytest.mark.parametrize("conversion, broken", [("printed", 7.891491e-6), ("tight", 9.294758e-5)])
def test_one_shot_noise_holds_where_a_row_moves_counts_both_ways(conversion, broken):
    """k draws among many candidates are k draws of bounded range: that of the counts, over the noise."""
    given = {"k": 1000, "candidates": 10**6, "epsilon": 1, "delta": "1e-6", "conversion": conversion}

    def lost(noise, width):
        each = width * math.pi / (math.sqrt(6) * noise)
        return accounting_delta(total=1, epsilon=each, releases=1000, bounded_range=True, adaptive=False)

    both, same = one_shot_top_k(**given), one_shot_top_k(**given, monotone=True)
    assert both.gumbel == pytest.approx(2 * same.gumbel, rel=1e-12)
    assert (both.counts, both.laplace, both.parameter) == (same.counts, same.laplace, same.parameter)
    assert lost(both.gumbel, 2) < 1e-6 and lost(same.gumbel, 1) < 1e-6
    draw, count = 2 * math.pi / (math.sqrt(6) * both.gumbel), math.sqrt(2) / both.counts  # lost by one
    rho = float(concentrated.rho_of(Fraction(1), Fraction(1, 10**6)))
    assert 0.7 * rho < 1000 * (draw**2 / 8 + count**2 / 2) < rho * (1 + 1e-9)
    assert lost(same.gumbel, 2) == pytest.approx(broken, rel=1e-6)  # what the promise is about


def test_where_one_shot_noise_has_no_theorem():
    for silent in ({"epsilon": "0.2"}, {"delta": "0.05"}):
        assert one_shot_top_k(**TOP_K | silent).laplace is None
    for extreme in ({"epsilon": "1e-20"}, {"epsilon": 1 << 21}, {"epsilon": 1, "delta": "1e-301"}):
        assert one_shot_top_k(**TOP_K | extreme).parameter > 0  # as printed
    assert randomised_response([], epsilon=1).tolist() == []


@pytest.mark.slow
def test_the_averaging_attack_runs_and_works(examples):
    """Fresh noise averages away; noise for k answers together does not."""
    run = runpy.run_path(str(examples / "averaging.py"))
    truth, many = run["TRUTH"], 400
    fresh = run["asked"](many, 1, rng=5)
    assert abs(np.mean(fresh) - truth) < 5 * run["noise"](1) / math.sqrt(many) < 0.4
    shared = run["asked"](many, Fraction(1, many), rng=6)
    assert np.std(shared) == pytest.approx(run["noise"](1 / many), rel=0.3)
    with redirect_stdout(StringIO()) as printed:
        run["main"]()
    assert "epsilon spent" in printed.getvalue()
