"""Intervals cover: over simulated tables and fresh noise, for every strategy, as often as they say."""

import json
from functools import cache
from math import sqrt

import naive
import numpy as np
import pandas as pd
import pytest
from builders import tied
from records import check_record

import smalldb
from queries import Column, Domain, Rows
from smalldb.exact.bits import SeededBits
from smalldb.inference import Measurements, ask
from smalldb.inference.questions import read_question
from smalldb.mechanisms import Dependence, Measurement
from smalldb.releasing.record import with_measurements

pytestmark = pytest.mark.usefixtures("remembered")

MIXED = Domain([Column("age", 5), Column("sex", ["f", "m"]), "death", Column("kids", 3)])
FEW = Domain(["death", "sex", "old", "ill"])
YES_NO = Domain(["death", "sex", "old", "ill", *(f"x{i}" for i in range(6))])
RULED = Domain(["death", "sex", "old", "ill"], "~(death & ~ill)")
OF_MIXED = [
    "death",
    "death | age>=3",
    "mean(kids) | sex=m",
    "death | age<2 - death | age>=3",
    "sex=m | death",
]
OF_YES_NO = [
    "death", "death | old", "mean(ill) where old", "death | old - death | ~old", "sex - ill", "old | ill",
]  # fmt: skip
# the strategy, its domain, questions, epsilon, and what else is asked for
CASES = {
    "cells": (MIXED, OF_MIXED, "1/2", {"strategy": "cells"}),
    "pairs": (MIXED, OF_MIXED, "3", {"strategy": "pairs"}),
    "adaptive": (MIXED, OF_MIXED, "3", {"strategy": "adaptive"}),
    "adaptive, add-remove": (MIXED, OF_MIXED, "3", {"strategy": "adaptive", "neighbours": "add-remove"}),
    "adaptive, delta": (MIXED, OF_MIXED, "2", {"strategy": "adaptive", "delta": "1e-6"}),
    "pairs, add-remove": (MIXED, OF_MIXED, "3", {"strategy": "pairs", "neighbours": "add-remove"}),
    "contrasts of cells": (FEW, OF_YES_NO, "1/2", {"strategy": "contrasts"}),
    "contrasts": (YES_NO, OF_YES_NO, "1", {"strategy": "contrasts"}),
    "contrasts, add-remove": (YES_NO, OF_YES_NO, "1", {"strategy": "contrasts", "neighbours": "add-remove"}),
    "contrasts, delta": (YES_NO, OF_YES_NO, "1", {"strategy": "contrasts", "delta": "1e-3"}),
    "contrasts, rules": (RULED, OF_YES_NO, "1/2", {"strategy": "contrasts"}),
}
ALIKE = (
    "adaptive, add-remove",
    "contrasts, add-remove",
    "contrasts of cells",
    "contrasts, delta",
    "pairs, add-remove",
)  # to others
N = 2000


def table_of(domain, n, seed):
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


def measured_again(measurements, codes, seed):
    """The same measurements of other rows, with fresh noise, drawn exactly; but how far columns depend."""
    source, domain = SeededBits(seed), measurements.domain
    items = []
    for each in measurements:
        exact = np.concatenate(
            [
                np.zeros(part.size, int)
                if isinstance(part, Dependence)
                else naive.part_values(part, codes).ravel()
                for part in each.of
            ]
        )
        noisy = exact + each.noise.draw(len(exact), source)
        if (
            len(exact) == 1 << len(domain.sizes) and domain.valid is not None
        ):  # nothing is drawn where no row is
            noisy = np.where(domain.allowed(range(len(domain.sizes))).ravel(), noisy, 0)
        items.append(Measurement(each.of, noisy, each.noise, each.cost, each.selecting))
    return Measurements(domain, items, measurements.n, measurements.ranges)


@cache
def release_of(case, n=N):
    """A release of a strategy."""
    domain, _, epsilon, more = CASES[case]
    rows = Rows.from_codes(domain, table_of(domain, n, 0))
    given = {"n_max": n} if more.get("neighbours") == "add-remove" else {}
    made = smalldb.release(
        rows, "marginals:2", epsilon=epsilon, mechanism="marginals", rng=5, **more, **given
    )
    assert made.record["strategy"] == case.replace(",", "").split()[0]
    return made


def measurements_of(case):
    """What it measured."""
    return release_of(case).measurements


def covered(case, runs, population=False):
    """For each question how often its interval covers, of how many: what is not known does not count."""
    domain, questions, _, _ = CASES[case]
    plan = measurements_of(case)
    hits = dict.fromkeys(questions, 0)
    asked = dict.fromkeys(questions, 0)
    if population:
        people = table_of(domain, 1_000_000, 10**6)
        of_all = {text: true_answer(text, domain, people, plan.ranges) for text in questions}
    for seed in range(1, runs + 1):
        codes = table_of(domain, N, seed if population else 0)
        again = measured_again(plan, codes, seed)
        for text in questions:
            answer = ask(again, text, level="0.9", population=population)
            if answer.known == "measured" and answer.low is not None:
                truth = of_all[text] if population else true_answer(text, domain, codes, plan.ranges)
                asked[text] += 1
                hits[text] += answer.low - 1e-12 <= truth <= answer.high + 1e-12
    return {text: (hits[text], asked[text]) for text in questions if asked[text]}


def check(found, least):
    """No question is missed too often, all of a strategy together not even less often, nor too seldom."""
    assert found
    for text, (hits, runs) in found.items():
        assert hits >= (0.9 - least / sqrt(runs)) * runs, (text, hits, runs)
    total, of = (sum(pair[i] for pair in found.values()) for i in (0, 1))
    assert 0.9 - 0.75 * least / sqrt(max(runs for _, runs in found.values())) <= total / of <= 0.985


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_measurements_are_read_as_they_were_written(case):
    """Of every strategy, and with noise of every kind, from the record."""
    made = release_of(case)
    record = with_measurements(made.record, made.plan, made.measurements, made.rows, None)
    check_record(record)
    again = Measurements.from_record(json.loads(json.dumps(record)))
    assert (again.n, again.domain.names) == (made.measurements.n, made.measurements.domain.names)
    assert again.ranges == made.measurements.ranges
    for one, other in zip(again, made.measurements, strict=True):
        assert (one.of, one.values.tolist(), one.noise) == (other.of, other.values.tolist(), other.noise)
        paid = [(each.cost, each.selecting) for each in (one, other)]
        assert paid[0] == paid[1]
    assert (
        again.to_frame().equals(made.measurements.to_frame()) and again.pairs() == made.measurements.pairs()
    )
    assert ask(again, "death | sex" if made.measurements.domain.binary else "death") == made.ask(
        "death | sex" if made.measurements.domain.binary else "death"
    )


def runs_of(some, few, many):
    """A few runs of some cases, and many of all."""
    return [pytest.param(case, few, marks=pytest.mark.slow) for case in CASES if case in some] + [
        pytest.param(case, many, marks=pytest.mark.long) for case in CASES
    ]


@pytest.mark.parametrize(("case", "runs"), runs_of(CASES.keys() - ALIKE, 15, 600))
def test_intervals_cover_as_often_as_they_say(case, runs):
    check(covered(case, runs), 4 * 0.3)


@pytest.mark.parametrize(
    ("case", "runs"), [each for each in runs_of(["cells"], 20, 300) if "rules" not in each.values[0]]
)
def test_intervals_of_the_population_cover(case, runs):
    check(covered(case, runs, population=True), 4 * 0.3)


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


@pytest.mark.long
@pytest.mark.parametrize("epsilon", ["1/10", "1", "3"])
def test_whole_releases_cover_what_they_say_is_measured(epsilon):
    """Selection, groups and all: nothing that the data decide spoils the intervals."""
    hits = runs = 0
    for seed in range(150):
        codes = table_of(MIXED, 3000, seed)
        made = smalldb.release(Rows.from_codes(MIXED, codes), epsilon=epsilon, strategy="adaptive", rng=seed)
        for text in OF_MIXED:
            answer = made.ask(text)
            if answer.known == "measured" and answer.low is not None:
                runs += 1
                truth = true_answer(text, MIXED, codes, made.measurements.ranges)
                hits += answer.low - 1e-12 <= truth <= answer.high + 1e-12
    assert runs > 150 and 0.95 - 4 * 0.22 / sqrt(runs) <= hits / runs
