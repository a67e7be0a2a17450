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

from smalldb.releasing.distances import CELLS

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
