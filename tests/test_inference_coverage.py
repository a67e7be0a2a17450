"""Intervals of whole releases cover as often as they say: nothing that the data decide spoils them.

`test_inference_exact_laws` has the law of each interval, given what was measured.
"""

from math import sqrt

import pandas as pd
import pytest
from builders import tied

import smalldb
from queries import Column, Domain, Rows
from smalldb.inference.questions import read_question

pytestmark = pytest.mark.usefixtures("remembered")

MIXED = Domain([Column("age", 5), Column("sex", ["f", "m"]), "death", Column("kids", 3)])
FEW = Domain(["death", "sex", "old", "ill"])
YES_NO = Domain(["death", "sex", "old", "ill", *(f"x{i}" for i in range(6))])
RULED = Domain(["death", "sex", "old", "ill"], "~(death & ~ill)")
OF_MIXED = [
    "death", "death | age>=3", "mean(kids) | sex=m", "death | age<2 - death | age>=3", "sex=m | death",
]  # fmt: skip
OF_YES_NO = [
    "death", "death | old", "mean(ill) where old", "death | old - death | ~old", "sex - ill", "old | ill",
]  # fmt: skip
ADD_REMOVE = {"neighbours": "add-remove", "n_max": 2000}
# the strategy, its domain, questions, epsilon, and what else is asked for
CASES = {
    "cells": (MIXED, OF_MIXED, "1/2", {}),
    "pairs": (MIXED, OF_MIXED, "3", {}),
    "pairs, add-remove": (MIXED, OF_MIXED, "3", ADD_REMOVE),
    "adaptive": (MIXED, OF_MIXED, "3", {}),
    "adaptive, little": (MIXED, OF_MIXED, "1/10", {}),
    "adaptive, add-remove": (MIXED, OF_MIXED, "3", ADD_REMOVE),
    "adaptive, delta": (MIXED, OF_MIXED, "2", {"delta": "1e-6"}),
    "contrasts of cells": (FEW, OF_YES_NO, "1/2", {}),
    "contrasts": (YES_NO, OF_YES_NO, "1", {}),
    "contrasts, add-remove": (YES_NO, OF_YES_NO, "1", ADD_REMOVE),
    "contrasts, delta": (YES_NO, OF_YES_NO, "1", {"delta": "1e-3"}),
    "contrasts, rules": (RULED, OF_YES_NO, "1/2", {}),
}


def table_of(domain, seed, n=2000):
    """A simulated table, whose columns depend, as codes."""
    codes = tied(domain.sizes, n, seed, 0.7)
    if domain.valid is not None:
        codes[:, 3] |= codes[:, 0]
    return codes


def true_answer(text, domain, codes, ranges):
    """The answer of the data."""
    values = []
    for term in read_question(text, domain, ranges).terms:
        at = tuple(codes[:, c] for c in term.columns)
        values.append((term.numerator * term.rows)[at].sum() / term.rows[at].sum())
    return values[0] - sum(values[1:])


@pytest.mark.parametrize(
    ("case", "releases", "population"),
    [pytest.param(case, 15, False, marks=pytest.mark.slow) for case in ("cells", "adaptive", "contrasts")]
    + [pytest.param("cells", 20, True, marks=pytest.mark.slow)]
    + [pytest.param(case, 200, False, marks=pytest.mark.long) for case in CASES]
    + [pytest.param(case, 200, True, marks=pytest.mark.long) for case in CASES if "rules" not in case],
)
def test_intervals_cover_as_often_as_they_say(case, releases, population):
    """No question is missed too often, all of a strategy together not even less often, nor too seldom."""
    domain, questions, epsilon, more = CASES[case]
    held, truths = {text: [] for text in questions}, {}
    for seed in range(releases):
        codes = table_of(domain, seed)
        given = {"epsilon": epsilon, "strategy": case.replace(",", "").split()[0], "rng": seed, **more}
        made = smalldb.release(Rows.from_codes(domain, codes), "marginals:2", mechanism="marginals", **given)
        if not (population and truths):
            people, ranges = table_of(domain, 10**6, 10**6) if population else codes, made.measurements.ranges
            truths = {text: true_answer(text, domain, people, ranges) for text in questions}
        for text in questions:
            answer = made.ask(text, level="0.9", population=population)
            if answer.known == "measured" and answer.low is not None:
                held[text].append(answer.low - 1e-12 <= truths[text] <= answer.high + 1e-12)
    runs = [len(hits) for hits in held.values()]
    assert sum(runs) >= releases
    for text, hits in held.items():
        assert sum(hits) >= (0.9 - 4 * 0.3 / sqrt(len(hits) or 1)) * len(hits), text
    assert 0.9 - 3 * 0.3 / sqrt(max(runs)) <= sum(map(sum, held.values())) / sum(runs) <= 0.985


@pytest.mark.slow
@pytest.mark.parametrize("population", [False, True])
def test_what_was_not_measured_lies_within(population):
    """Radius and area of tumours rise together: the most that both may be is what they are."""
    table = pytest.importorskip("sklearn.datasets").load_breast_cancer(as_frame=True).frame
    frame = pd.DataFrame({"area": table["mean area"], "radius": table["mean radius"]})
    schema = """
        columns.area = { kind = "cuts", cuts = [400, 700, 1000], range = [100, 3000] }
        columns.radius = { kind = "cuts", cuts = [11, 15, 18], range = [5, 30] }
        """
    large, wide = frame["area"] >= 1000, frame["radius"] >= 15
    truths = {
        "area>=1000 & radius>=15": (large & wide).mean(),
        "area>=1000 | radius>=18": large[frame["radius"] >= 18].mean(),
        "mean(area) | radius>=15": frame["area"][wide].mean(),
        "area>=1000 | radius>=15 - area>=1000": large[wide].mean() - large.mean(),
    }
    held, told, runs = 0, 0, 15
    for seed in range(runs):
        rows = frame.sample(len(frame), replace=True, random_state=seed) if population else frame
        made = smalldb.release(
            rows, "marginals:1", schema=schema, epsilon=2, mechanism="marginals", rng=seed, means=0
        )
        for text, truth in truths.items():
            answer = made.ask(text, level="0.8", population=population)
            low, high = answer.within or (-1e9, 1e9)
            assert answer.known == "not measured"
            held += low <= truth <= high
            told += answer.within is not None
    assert told > (1 if population else 2.5) * runs and held >= 0.8 * runs * len(truths)
