"""Every strategy is as accurate as the file of figures says: means of a few seeded releases on six tables.

`accuracy_pins.json` holds mean and deviation of many releases. The mean of a few others is to be within three
standard errors of it, of the difference of two independent means: whether draws are those of before or not.
With a hundred figures, some would be farther off by chance whenever a change reorders the draws. So what is
too far off is judged again, by twice as many new releases: chance does both in some 30 of a million.
Seeds are fixed, so that the same code on the same machine always gives the same answer.
"""

import json
import re
from math import sqrt

import accuracy_pins
import numpy as np
import pytest
from accuracy_pins import BASELINES, FIRST, HOME, cases, measured
from measures import Burt, corrected_v, figures

from queries import Rows
from smalldb.marginals.estimate.packed_pairs import cramers_v
from smalldb.releasing.distances import CELLS, distances

FEW = 5  # releases
AGAIN = 10  # more, where these are too far off
FAR = 3.0  # standard errors
LEAST = 0.01  # of a mean, its deviation: figures that hardly vary may be off by rounding
EXPECTED = json.loads(HOME.read_text(encoding="utf-8"))
QUICK = re.compile(
    "autoworkers: (contrasts, epsilon|cells).*|yes/no: cells.*|wide: contrasts, epsilon 1"
    "|heaped: adaptive, epsilon 2|columns: pairs, epsilon 1|yes/no: (chosen, .*|adaptive, epsilon 1)"
    # shrinkage, search and smoothing decide
)
# strategies that a simple way beats, as yet or because the table is small enough for it
BEHIND = {
    ("autoworkers: contrasts, epsilon 1", CELLS),
    ("autoworkers: contrasts, epsilon 1, delta 1e-9", CELLS),
    ("autoworkers: contrasts, threes, epsilon 1", CELLS),
    ("autoworkers: contrasts, threes, epsilon 1, delta 1e-9", CELLS),
    ("autoworkers: adaptive, epsilon 1", CELLS),
    ("autoworkers: adaptive, epsilon 1, delta 1e-9", CELLS),
}


def too_far(case, seeds):
    """The figures that are too far off, by how many standard errors: above 0, it is worse."""
    expected, found = dict(EXPECTED[str(case)]), [measured(case, seed) for seed in seeds]
    releases = expected.pop("releases")
    apart = {}
    for measure, (mean, deviation) in expected.items():
        error = max(deviation, LEAST * mean) * sqrt(1 / len(found) + 1 / releases)
        apart[measure] = float(np.mean([one[measure] for one in found]) - mean) / error
    return {measure: off for measure, off in apart.items() if abs(off) > FAR}


def named(case):
    """A parameter of a test, with a name that a shell takes."""
    quick = QUICK.fullmatch(str(case))
    name = re.sub(r"[^a-z0-9]+", "-", str(case))
    return pytest.param(case, id=name, marks=[pytest.mark.slow if quick else pytest.mark.long])


@pytest.mark.parametrize("case", [named(case) for case in cases()])
def test_a_strategy_is_as_accurate_as_it_was(case):
    assert FEW + AGAIN < FIRST
    off = too_far(case, range(FEW))
    if off:
        again = too_far(case, range(FEW, FEW + AGAIN))
        off = {measure: again[measure] for measure in off if off[measure] * again.get(measure, 0) > 0}
    assert not off, f"{case}: standard errors above the figures of the file: {off}"


@pytest.mark.parametrize("name", sorted({case.table for case in cases()}))
def test_strategies_beat_simple_ways(name):
    """By the mean 2-way distances in the file, at the same epsilon; simple ways are pure."""
    for case in cases():
        if case.table != name or case.rows is not None:
            continue
        for way in BASELINES:
            simple = EXPECTED.get(f"{name}: {way}, epsilon {case.epsilon}")
            assert (simple is None) == (way == CELLS and not accuracy_pins.table(name)[0].listable)
            if simple is not None:
                better = EXPECTED[str(case)]["2-way"][0] < simple["2-way"][0]
                assert better == ((str(case), way) not in BEHIND), f"{case} and {way}"


def test_the_file_has_what_is_tested():
    ours = {str(case) for case in cases()}
    assert ours <= EXPECTED.keys()
    tables = "|".join({case.table for case in cases()})
    others = re.compile(f"({tables}): ({'|'.join(BASELINES)}), epsilon [0-9/]+")
    assert all(others.fullmatch(key) for key in EXPECTED.keys() - ours)


def test_a_burt_matrix_holds_every_table():
    domain, codes = accuracy_pins.table("columns")
    real, made = Burt.of(codes[:400], domain.sizes), Burt.of(codes[300:], domain.sizes)
    ours, theirs = (Rows.from_codes(domain, some) for some in (codes[:400], codes[300:]))
    found = figures(real, made, 400)
    for width, measure in ((1, "1-way"), (2, "2-way")):
        assert found[measure] == pytest.approx(distances(ours, theirs, width).tvd.mean())
    weighted = Burt.of(ours.codes(), domain.sizes, ours.counts)
    np.testing.assert_allclose(weighted.shares, real.shares, atol=1e-15)
    assert figures(real, weighted, 400) == pytest.approx(dict.fromkeys(found, 0.0))


def test_measures_of_a_table_of_two_columns():
    # a: 60, 39 and 1 of 100 rows; b depends on it
    real = Burt.of([[0, 0]] * 45 + [[0, 1]] * 15 + [[1, 1]] * 39 + [[2, 0]], (3, 2))
    made = Burt.of([[0, 0]] * 30 + [[0, 1]] * 30 + [[1, 1]] * 40, (3, 2))
    found = figures(real, made, 100)
    assert found["1-way"] == pytest.approx((0.01 + 0.16) / 2)
    assert found["2-way"] == pytest.approx(0.16)
    of_b = (1 / 4 + 0 + 1) / 3  # no synthetic row has the third category
    of_a = ((45 / 46 - 1 + 0) * -1 + abs(15 / 54 - 30 / 70)) / 2
    assert found["conditional"] == pytest.approx((of_b + of_a) / 2)
    rare = Burt.of([[0, 0]] * 450 + [[0, 1]] * 150 + [[1, 1]] * 391 + [[2, 0]] * 9, (3, 2))
    assert figures(rare, made, 1000)["conditional"] == pytest.approx(
        ((1 / 4 + 0) / 2 + (1 - 450 / 459 + abs(150 / 541 - 3 / 7)) / 2) / 2
    )


def test_the_association_is_corrected_for_its_bias():
    rng = np.random.default_rng(1)
    table = rng.random((4, 7))
    assert corrected_v(table, 10**12) == pytest.approx(cramers_v(table), rel=1e-6)
    assert corrected_v(np.diag([0.2, 0.3, 0.5]), 50) == pytest.approx(1, abs=1e-3)
    independent = [rng.multinomial(500, np.full(28, 1 / 28)).reshape(4, 7) / 500 for _ in range(200)]
    squares = [corrected_v(one, 500) ** 2 for one in independent]
    biased = [cramers_v(one) ** 2 for one in independent]
    assert np.median(squares) < 0.003 < 0.01 < np.median(biased)
    assert corrected_v(np.array([[0.4, 0.6], [0.0, 0.0]]), 100) == 0
