"""Questions and their answers: the language, what is known, least variance, and what is refused."""

import json
import pickle
import re
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import naive
import numpy as np
import pandas as pd
import pytest
from records import check_record

import smalldb
from queries import Column, Domain, Marginals, Predicates, Rows
from smalldb.cli import main
from smalldb.exact.bits import SeededBits
from smalldb.inference import Measurements, ask
from smalldb.inference.confidence_intervals import Interval, margin, of_difference, of_ratio
from smalldb.inference.evidence import QuestionCells, evidence_of
from smalldb.inference.least_variance import least_variance
from smalldb.inference.questions import read_question
from smalldb.mechanisms import Marginal, Measurement, Parity
from smalldb.mechanisms.recorded_universe import standing_ranges
from smalldb.noise.distributions import (
    ConeDifference,
    DiscreteGaussian,
    Geometric,
    KNorm,
    WishartDifference,
)
from smalldb.noise.simulating import DRAWS, Uniforms
from smalldb.releasing.record import FEW, with_measurements
from smalldb.schema import as_schema, parse_schema

DOMAIN = Domain(
    [Column("age", cuts=[30, 50, 80]), Column("sex", ["f", "m"]), "death", Column("kids", 4)],
    valid="~(death & `kids=3`)",
)
RANGES = standing_ranges(DOMAIN)
N = 3000
SCHEMA = """
[columns.age]
kind = "cuts"
cuts = [40, 65, 80]
range = [20, 99]

[columns.job]
kind = "categories"
values = ["none", "part time", "full time"]
missing = ["NA"]

[columns."sample.yr"]
kind = "integers"
range = [1995, 1998]
missing = ["NA"]

[columns.ill]
kind = "bool"
"""


@cache
def codes():
    """Rows of the domain, whose columns depend: shape (N, 4)."""
    rng = np.random.default_rng(4)
    age, sex = rng.integers(0, 4, N), rng.integers(0, 2, N)
    death = rng.random(N) < 0.1 + 0.2 * age
    kids = np.minimum(rng.poisson(0.8 + 0.5 * sex), np.where(death, 2, 3))
    found = np.stack([age, sex, death, kids], axis=1).astype(np.int64)
    assert DOMAIN.contains(found).all()
    return found


def exact_measurement(columns, groups=None, noise=None):
    """What a table of some columns would be without noise, said to have some."""
    groups = groups or [range(DOMAIN.sizes[c]) for c in columns]
    part = Marginal(tuple(columns), tuple(map(tuple, groups)))
    counts = naive.part_values(part, codes()).ravel()
    return Measurement((part,), counts, noise or Geometric(Fraction(1, 10)), Fraction(1, 10))


SINGLE = (0,), (1,), (2,), (3,)


def measured(*tables, n=N, noise=None):
    """What a release of such tables publishes."""
    return Measurements(DOMAIN, [exact_measurement(columns, noise=noise) for columns in tables], n)


def by_hand(text):
    """The answer of the data, row by row, from what the question is read as."""
    values = []
    for term in read_question(text, DOMAIN, RANGES).terms:
        above = below = 0.0
        for row in codes().tolist():
            at = tuple(row[c] for c in term.columns)
            above, below = above + term.numerator[at] * term.rows[at], below + term.rows[at]
        values.append(above / below)
    return values[0] - sum(values[1:])


QUESTIONS = {
    "death": lambda age, sex, death, kids: death.mean(),
    "~death": lambda age, sex, death, kids: 1 - death.mean(),
    "death=yes": lambda age, sex, death, kids: death.mean(),
    "30<=age<80": lambda age, sex, death, kids: ((age == 1) | (age == 2)).mean(),
    "death | 1<=kids<=2": lambda age, sex, death, kids: death[(kids == 1) | (kids == 2)].mean(),
    "death | (sex=f & 0<kids<3)": lambda age, sex, death, kids: death[
        (sex == 0) & ((kids == 1) | (kids == 2))
    ].mean(),
    "age>=50": lambda age, sex, death, kids: (age >= 2).mean(),
    "death | age>=80": lambda age, sex, death, kids: death[age == 3].mean(),
    "death where age<50 & sex=m": lambda age, sex, death, kids: death[(age < 2) & (sex == 1)].mean(),
    "sex=m & death": lambda age, sex, death, kids: ((sex == 1) & death).mean(),
    "(death | kids=3) | sex=f": lambda age, sex, death, kids: (death | (kids == 3))[sex == 0].mean(),
    "kids in (0, 2)": lambda age, sex, death, kids: np.isin(kids, [0, 2]).mean(),
    "kids in {1, 3} | death": lambda age, sex, death, kids: np.isin(kids, [1, 3])[death].mean(),
    "kids>=2": lambda age, sex, death, kids: (kids >= 2).mean(),
    "`kids=3`": lambda age, sex, death, kids: (kids == 3).mean(),
    'sex="f"': lambda age, sex, death, kids: (sex == 0).mean(),
    "mean(kids)": lambda age, sex, death, kids: kids.mean(),
    "Mean(kids) where sex=f": lambda age, sex, death, kids: kids[sex == 0].mean(),
    "mean(death) | kids<=1": lambda age, sex, death, kids: death[kids <= 1].mean(),
    "mean(age) | age>=30 & age<80": lambda age, sex, death, kids: np.where(age == 1, 40, 65)[
        (age > 0) & (age < 3)
    ].mean(),
    "death - death | age<50": lambda age, sex, death, kids: death.mean() - death[age < 2].mean(),
    "mean(kids) | sex=m - mean(kids) | sex=f": lambda age, sex, death, kids: (
        kids[sex == 1].mean() - kids[sex == 0].mean()
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("text", QUESTIONS)
def test_questions_mean_what_they_say(text):
    age, sex, death, kids = codes().T
    expected = QUESTIONS[text](age, sex, death == 1, kids)
    assert by_hand(text) == pytest.approx(expected)
    # what was measured without error is answered without error, from all cells or from tables
    for measurements in (measured((0, 1, 2, 3)), measured((0, 1, 2, 3), (2,), n=None)):
        answer = ask(measurements, text)
        value = answer.guess if "mean(age)" in text else answer.estimate
        assert answer.known == "measured" and value == pytest.approx(expected)
        assert answer.low <= value <= answer.high and None in (answer.guess, answer.estimate)


REFUSED = {
    "deth": "no column or category 'deth'; did you mean 'death'",
    "death | aeg>=80": "no column or category 'aeg>=80'; did you mean 'age'",
    "sex=w": "column 'sex' has no category 'w': it has f, m",
    "sex=F": "column 'sex' has no category 'F'; did you mean 'f'",
    "death | age>=60": "parts a bin: 'age' is known at the cuts 30, 50, 80; ask age>=50",
    "death | age<=50": "ask age<50",
    "40<=age<80": "parts a bin: 'age' is known at the cuts 30, 50, 80; ask age>=30",
    "age=60": "'age=60' parts a bin: ask age>=50 & age<80",
    "age=20": "'age=20' parts a bin: ask age<30",
    "age in (90, 95)": "'age=90' parts a bin: ask age>=80",
    "sex>f": "the categories of 'sex' have no order",
    "age": "'age' is not a yes/no column: ask a category of it, or mean",
    "death | age<30 & age>=80": "no row can meet 'age<30 & age>=80': use another condition",
    "death | death & kids=3": "no row can meet 'death & kids=3'",
    "corr(age, sex)": "shares, mean(), sum(), median(), quantile(), count() and differences are answered; "
    "several tables give an interval for any other quantity: smalldb tables draws them from the public "
    "files",
    "mean kids": "a question is like",
    "death | age >= 50 of age": "(a name with spaces stands in backticks)",
    "median(sex)": "'sex' holds categories, not numbers",
    "quantile(kids, 2)": "the share below a quantile must lie strictly between 0 and 1",
    "quantile(kids)": "several tables give an interval",
    "mean(sex)": "'sex' holds categories, not numbers: ask the share of one, sex=",
    "mean(weight)": "no column 'weight'",
    "mean(age)": "the outer bins of 'age' have no end, so there is no mean",
    "death | sex=f | age<30": "| means 'given', and 'or' only inside parentheses",
    "death - sex=f - kids=1": "a question is like",
    "": "a question is like",
    "death |": "a question is like",
    "death and sex=f": "and, or, not are written",
}


@pytest.mark.slow
def test_dates_and_times_are_asked_and_the_nearest_cut_is_named():
    schema = parse_schema(
        """
        columns.seen = { kind = "times", cuts = ["12:00", "17:00"] }
        columns.joined = { kind = "dates", cuts = ["2000", "2010-07", 2020], range = [1990, 2029] }
        """
    )
    frame = pd.DataFrame({"seen": ["09:00", "13:00"] * 50, "joined": ["1999-01-01", "2012-01-01"] * 50})
    told = smalldb.release(frame, schema=schema, epsilon=50, seed=1)
    assert told.ask("seen>=12:00").estimate == pytest.approx(0.5, abs=0.1)
    for question, expected in {
        "seen>=16:30": "ask seen>=17:00",
        "seen<12:30": "ask seen<12:00",
        "joined>=2011": "ask joined>=2010-07",
        "joined<2018-11-02": "ask joined<2020",
        "joined<2000-seen": "a difference has spaces around its minus",
        "mean(joined)": "'joined' holds dates or times, not numbers",
    }.items():
        with pytest.raises(ValueError) as error:
            told.ask(question)
        assert expected in str(error.value)


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_asked_is_told_with_the_next_step(text):
    whole = measured((0, 1, 2, 3))
    with pytest.raises(ValueError) as error:
        ask(whole, text)
    assert REFUSED[text] in str(error.value) and "\n" not in str(error.value)


def test_what_no_table_tells_is_not_promised_of_several_tables():
    known = measured((0, 2), (1,))
    for text, said in {
        "corr(age, sex)": "age and sex were not measured together, so this release does not answer it",
        "corr(age, death)": "several tables give an interval",
        "slope(`age`, death) where sex=f": "several tables give an interval",
    }.items():
        with pytest.raises(ValueError, match=said):
            ask(known, text)


def test_levels_and_types_are_checked():
    whole = measured((0, 1, 2, 3))
    for level in (0.4, 1, "0.9999"):
        with pytest.raises(ValueError, match="level must be from"):
            ask(whole, "death", level=level)
    with pytest.raises(TypeError, match="must be text, not int"):
        ask(whole, 3)
    narrow, wide = (ask(whole, "death", level=level) for level in ("0.8", "0.99"))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_only_unions_of_measured_groups_are_known():
    grouped = exact_measurement((0, 2), [(0, 0, 0, 1), (0, 1)])
    others = [exact_measurement((c,)) for c in range(4)]
    known = Measurements(DOMAIN, [*others, grouped], N)
    answer = ask(known, "death | age>=80")
    assert answer.known == "measured" and answer.estimate == pytest.approx(by_hand("death | age>=80"))
    assert answer.of[0] == "age (below 30 ... 50 to 80 / from 80) x death"
    for text, offer in (
        ("death | age>=50", None),
        ("death | age<50", "death | age<80"),
        ("death where age>=30 & age<50", "death where age<80"),
        ("death | age>=80 - death | age<50", "death | age>=80 - death | age<80"),
        ("death | age<50 - death", "death | age<80 - death"),
        ("death | age<50 - death | age>=50", None),
    ):
        answer = ask(known, text)
        assert (answer.known, answer.estimate, answer.low, answer.of) == ("not measured", None, None, ())
        assert "measured only: age (below 30 ... 50 to 80 / from 80) x death" in answer.note
        assert offer is None or f"ask {offer!r}" in answer.note
        if offer:
            assert ask(known, offer).known == "measured"
    assert ask(known, "kids=1 | sex=f").note == "sex and kids were not measured together"
    assert ask(known, "death - death | sex=f").note == "sex and death were not measured together"


@pytest.mark.parametrize("text", ["kids>=2 | death", "kids>=2 & ~death", "mean(kids) | death", "mean(kids)"])
def test_groups_bound_what_they_do_not_tell(text):
    """Of every row in a group the least, and the most, that it may count: written out row by row."""
    groups = [(0, 1), (0, 1, 1, 2)]
    known = Measurements(DOMAIN, [exact_measurement((2, 3), groups, Geometric(Fraction(50)))], N)
    answer = ask(known, text)
    assert (answer.known, answer.estimate) == ("not measured", None)
    (term,) = read_question(text, DOMAIN, RANGES).terms
    low = high = rows = 0.0
    for row in codes().tolist():
        at = tuple(row[c] for c in term.columns)
        if term.rows[at]:
            alike = [(*at[:-1], k) for k in range(4) if groups[1][k] == groups[1][at[-1]]]
            low += min(term.numerator[one] for one in alike)
            high += max(term.numerator[one] for one in alike)
            rows += 1
    assert answer.within == pytest.approx((low / rows, high / rows), abs=1e-3)
    assert answer.within[0] <= by_hand(text) <= answer.within[1]


def test_rules_bound_what_was_not_measured():
    """Whoever died has no third child: of kids by sex, a share of deaths by sex is at most the rest."""
    known = measured((1, 3), noise=Geometric(Fraction(50)))
    third = by_hand("kids=3 | sex=f")
    answer = ask(known, "death | sex=f")
    assert answer.known == "not measured" and answer.within == pytest.approx((0, 1 - third), abs=1e-3)
    answer = ask(known, "~death | sex=f - ~death | sex=m")
    other = by_hand("kids=3 | sex=m")
    assert answer.within == pytest.approx((third - 1, 1 - other), abs=1e-3)
    free = Measurements(Domain(DOMAIN.columns), [exact_measurement((1, 3))], N)
    assert ask(free, "death | sex=f").within is None
    assert ask(known, "age>=80 | sex=f").within is None


def test_single_columns_bound_what_was_not_measured_together():
    """Where shares a and b are exact, both hold in a share from a + b - 1 to the less of them."""
    quiet = Geometric(Fraction(50))
    known = measured(*SINGLE, noise=quiet)
    a, b = by_hand("age>=50"), by_hand("kids<=1")
    both, young = a + b - 1, by_hand("age<30")
    assert both > 0 and young < b
    for text, low, high in (
        ("age>=50 & kids<=1", both, min(a, b)),
        ("kids<=1 | age>=50", both / a, 1),
        ("kids<=1 | age>=50 - kids<=1", both / a - b, 1 - b),
        ("count(age<30 & kids<=1)", 0, N * young),
        ("(age>=50 | kids<=1)", max(a, b), 1),
    ):
        for population in (False, True)[: 1 + ("count" not in text)]:
            answer = ask(known, text, population=population)
            near = 0.2 if population else 2e-3 * (N if "count" in text else 1)
            assert answer.known == "not measured" and answer.within == pytest.approx((low, high), abs=near)
    kids = np.sort(codes()[:, 3])
    rows = round(young * N)
    least, most = kids[:rows].mean(), kids[-rows:].mean()
    assert ask(known, "mean(kids) | age<30").within == pytest.approx((least, most), abs=5e-3)
    loud = measured(*SINGLE)
    assert ask(loud, "mean(kids) | age<30").within[1] > most + 0.01
    few = Measurements(DOMAIN, [exact_measurement((0, 1), noise=Geometric(Fraction(1, 500))), *known], N)
    answer = ask(few, "sex=m | age>=30 & age<50 & sex=m")
    assert answer.known == "measured" and answer.low is None


def test_intervals_of_what_was_not_measured_hold_together():
    """Where the limit is one sum, it is as far off as the largest noise of all eight categories may be."""
    known = measured((0,), (3,))
    answer, count = ask(known, "kids=3 & age<30"), by_hand("kids=3") * N
    drawn = np.random.default_rng(1).geometric(1 - np.exp(-0.1), (2, 100_000, 2, 4))
    noise = (drawn[0] - drawn[1]).astype(float)
    noise -= noise.mean(axis=2, keepdims=True)  # n is public
    largest = np.abs(noise / noise.std(axis=0)).max(axis=(1, 2))
    reach = (answer.within[1] * N - count) / noise[:, 0, 0].std()
    assert reach > 0.98 * np.quantile(largest, 0.95)


def test_tables_that_tell_only_the_number_of_rows_tell_nothing_else():
    items = [exact_measurement((0, c), [(0, 1, 0, 2), range(DOMAIN.sizes[c])]) for c in (1, 2)]
    for n in (N, None):
        assert ask(Measurements(DOMAIN, items, n), "age>=50 & age<80").known == "not measured"


def test_counts_are_sums():
    _, sex, death, kids = codes().T
    noise = Geometric(Fraction(1, 30))
    items = [exact_measurement((1, 2), noise=noise), exact_measurement((3,), noise=noise)]
    for n in (N, None):
        known = Measurements(DOMAIN, items, n)
        for text, expected in {
            "count(death)": death.sum(),
            "count(death | sex=f)": ((death == 1) | (sex == 0)).sum(),
            "count(death) where sex=f": (death[sex == 0]).sum(),
            "count(kids>=2)": (kids >= 2).sum(),
            "count()": N,
        }.items():
            answer = ask(known, text)
            assert answer.known == "measured" and answer.estimate == pytest.approx(expected)
            assert answer.low <= expected <= answer.high
            assert (answer.high == answer.low) == (text == "count()" and n is not None)
    merged = Measurements(DOMAIN, [exact_measurement((3,), [(0, 1, 1, 2)], Geometric(Fraction(50)))], None)
    answer = ask(merged, "count(kids>=2)")
    assert answer.within == pytest.approx(((kids == 3).sum(), (kids >= 1).sum()), abs=1)
    count, share = (ask(Measurements(DOMAIN, items, N), text) for text in ("count(death)", "death"))
    assert (count.low, count.high) == pytest.approx((N * share.low, N * share.high), abs=1)
    assert all(end == int(end) for end in (count.low, count.estimate, count.high))
    assert ask(known, "count(age<30)").known == "not measured"
    with pytest.raises(ValueError, match="counts and sums stand alone"):
        ask(known, "count(death) - death")
    with pytest.raises(ValueError, match="a population has no count"):
        ask(known, "count(death)", population=True)
    assert ask(known, "count(age<30)", bound=0.25, workload=Marginals(1).workload(DOMAIN)).bound is None


def test_a_bound_stands_below_queries_of_the_release_alone():
    known = measured((3,))
    for workload, queries, sums in (
        (
            Marginals(2),
            {"death", "~death", "sex=f", "~(sex=f)", "age<30", "~(age>=80 & sex=m)", "(death | sex=f)"},
            {"age<50": 2, "sex=f & age<50": 2, "age<80": 1},
        ),
        (Predicates(["death & `sex=f`", "death | `kids=3`"]), {"death & sex=f", "~(death | kids=3)"}, {}),
        (Marginals(1), {"death", "~death", "sex=f", "~(sex=f)", "age<30"}, {"age<50": 2, "age<80": 1}),
    ):
        asked = {*queries, "death | age>=80", "death - sex=f", "age<50", "death & sex=m & age<30"}
        asked |= {*sums, "death | sex=f", "(death | sex=f)", "sex=f & age<50", "mean(age) | age>=30 & age<80"}
        for text in asked:
            answer = ask(known, text, bound=0.25, workload=workload.workload(DOMAIN))
            times = 1 if text in queries else sums.get(text, 0)
            assert (answer.known, answer.bound) == ("not measured", 0.25 * times or None)
    assert ask(known, "death", bound=0.25).bound is None


def test_a_synthetic_table_is_told_where_it_is_outside_of_an_interval_and_is_no_answer():
    rows = Rows.from_codes(DOMAIN, codes())
    others = Rows.from_codes(DOMAIN, codes()[codes()[:, 2] == 0])
    answer = ask(measured((0, 1, 2, 3)), "death | age>=80", rows=rows)
    assert answer.note == "" and answer.assumed is None
    note = ask(measured((0, 1, 2, 3)), "death | age>=80", rows=others).note
    assert note == "the synthetic table has 0.000, outside this interval"
    answer = ask(measured(*SINGLE), "death | age>=80", rows=rows)
    assert answer.estimate is None and answer.bound is None
    assert answer.assumed == pytest.approx(by_hand("death | age>=80"))


def test_a_difference_that_stands_out_across_a_quiet_pair_says_so():
    noise = Geometric(Fraction(1, 40))  # of some 57 rows, in each of four cells
    table = exact_measurement((1, 2), noise=noise)
    moved = Measurement(table.of, table.values + np.array([-60, 60, 60, -60]), noise, table.cost)
    known = Measurements(DOMAIN, [exact_measurement((0, 2)), moved], N)
    assert {pair.columns: pair.known for pair in known.pairs()}["sex", "death"] == "too noisy to tell"
    answer = ask(known, "death | sex=m - death | sex=f", level="0.8")
    assert answer.high < 0
    told = "sex and death, over all cells: too noisy to tell: a dependence up to 0.1"
    assert told in answer.note and "could be hidden; where there is none" in answer.note
    assert "one such interval in 5 leaves" in answer.note
    for text in ("death | sex=m", "death | age>=80 - death | age<30", "death - sex=f", "sex=f"):
        assert "dependence" not in ask(known, text, level="0.8").note
    still = Measurements(DOMAIN, [table], N)
    assert ask(still, "death | sex=m - death | sex=f", level="0.8").note == ""


def test_what_needs_no_measurement_is_certain():
    one = measured((0,))
    for text, expected in (("~(death & ~death)", 1.0), ("death & ~death", 0.0), ("death - death", 0.0)):
        answer = ask(measured((2,)), text)
        assert (answer.estimate, answer.low, answer.high) == pytest.approx((expected,) * 3)
    # a rule says it: whoever died has no third child
    answer = ask(measured((0, 1, 2, 3)), "kids=3 | death")
    assert (answer.estimate, answer.low, answer.high) == (0.0, 0.0, 0.0)
    assert ask(one, "death").note == "death was not measured at these categories"
    assert ask(Measurements(DOMAIN, [], N), "death").note.startswith("this release measured nothing")


def test_sums_of_least_variance_are_those_of_the_textbook():
    """Three tables of three columns against generalised least squares, written out cell by cell."""
    noises = [Geometric(Fraction(1, 5)), DiscreteGaussian(Fraction(50)), Geometric(Fraction(1, 40))]
    rng = np.random.default_rng(2)
    items = []
    for columns, noise in zip([(0,), (0, 2), (0, 1, 2)], noises, strict=True):
        exact = exact_measurement(columns, noise=noise)
        noisy = exact.values + noise.draw(len(exact.values), SeededBits(int(rng.integers(99))))
        items.append(Measurement(exact.of, noisy, noise, exact.cost))
    domain = Domain(DOMAIN.columns)
    shape = (4, 2, 2)
    every = [np.eye(16)[i].reshape(shape) for i in range(16)]
    wanted = np.stack([(np.arange(16) % 2), rng.random(16)], axis=1)
    asked, cells = QuestionCells.of(Measurements(domain, items, N), (0, 1, 2), every)
    assert cells.shape == (16, 16)
    for n in (N, None):
        found = least_variance(evidence_of(Measurements(domain, items, n), asked), cells @ wanted, n)
        rows, values, variances = [], [], []
        for each in items:
            (part,) = each.of
            kept = [a for a in range(3) if a in part.columns]
            for at in np.ndindex(*[shape[a] for a in kept]):
                rows.append(
                    [all(i[a] == w for a, w in zip(kept, at, strict=True)) for i in np.ndindex(*shape)]
                )
                values.append(each.values.reshape([shape[a] for a in kept])[at])
                variances.append(each.noise.variance())
        rows = np.array(rows, dtype=float)
        if n is not None:  # a sum that is known, as one with hardly any noise
            rows, values = np.vstack([rows, np.ones(16)]), [*values, n]
            variances = [*variances, 1e-6]
        weighted = rows.T / np.array(variances)
        theta = np.linalg.solve(weighted @ rows, weighted @ np.array(values))
        assert found.known.all()
        assert found.values == pytest.approx(theta @ wanted, rel=1e-6)
        noise = found.noise()
        expected = wanted.T @ np.linalg.inv(weighted @ rows) @ wanted
        assert np.cov(noise.T) == pytest.approx(expected, rel=0.05, abs=0.05 * expected.max())


def test_a_difference_of_shares_is_exact_where_n_is_public():
    noise = Geometric(Fraction(1, 30))
    whole = measured((1,), (2,), noise=noise)
    found = ask(whole, "sex=m - death")
    # each share is half the difference of two counts: the sum of four numbers, halved
    reach = margin(Uniforms.fixed().geometric_sums(1 / 30, 4) / 2, Fraction(19, 20)) / N
    assert found.high - found.estimate == pytest.approx(found.estimate - found.low)
    assert found.high - found.estimate == pytest.approx(reach, rel=0.03)


@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1, 80)])
def test_a_difference_is_no_narrower_than_its_noise(rate):
    """The noise of the difference itself, drawn: the margins of the parts alone fall short by a tenth."""
    known = measured((0, 2), n=None, noise=Geometric(rate))
    answer = ask(known, "death | age>=80 - death | age<30")
    counts = known[0].values.reshape(4, 2)[[3, 0]]
    below, rng = counts.sum(axis=1), np.random.default_rng(1)
    drawn = rng.geometric(1 - np.exp(-float(rate)), (2, 200_000, 2, 2))
    noise = drawn[0] - drawn[1]
    apart = (noise[..., 1] - counts[:, 1] / below * noise.sum(axis=2)) / below
    reach = np.quantile(np.abs(apart[:, 0] - apart[:, 1]), 0.95)
    assert min(answer.estimate - answer.low, answer.high - answer.estimate) > reach


def test_sampling_widens():
    for text in ("death", "death | age>=80", "mean(kids)", "death - death | age<50"):
        whole = measured((0, 1, 2, 3), noise=Geometric(Fraction(2)))
        table, population = ask(whole, text), ask(whole, text, population=True)
        assert population.population and population.high - population.low > 1.5 * (table.high - table.low)
    age, _, death, _ = codes().T
    share, rows = death[age == 3].mean(), (age == 3).sum()
    expected = 2 * 1.96 * np.sqrt(share * (1 - share) / rows)
    found = ask(whole, "death | age>=80", population=True)
    assert found.high - found.low == pytest.approx(expected, rel=0.05)
    # rows that count in both terms: the difference of death and of death without a few of them
    inside, outside = death[age < 2].mean(), death[age >= 2].mean()
    below, above = (age < 2).sum(), (age >= 2).sum()
    variance = (above / N) ** 2 * (inside * (1 - inside) / below + outside * (1 - outside) / above)
    found = ask(whole, "death - death | age<50", population=True)
    variance += (inside - outside) ** 2 * (above / N) * (below / N) / N  # how many are above is drawn, too
    assert found.high - found.low == pytest.approx(2 * 1.96 * np.sqrt(variance), rel=0.05)


def test_means_of_bins_say_where_numbers_may_lie():
    whole = measured((0, 1, 2, 3))
    ages = codes()[:, 0][(codes()[:, 0] > 0) & (codes()[:, 0] < 3)]
    lows, middles, highs = (np.where(ages == 1, *pair).mean() for pair in ((30, 50), (40, 65), (50, 80)))
    answer = ask(whole, "mean(age) | age>=30 & age<80")
    assert answer.low < lows < answer.guess < highs < answer.high and answer.guess == pytest.approx(middles)
    assert answer.estimate is None
    assert answer.note == "the guess assumes that numbers are in the middle of their bins"
    assert (answer.low, answer.high) == pytest.approx((lows, highs), rel=0.05)
    wide = ask(whole, "mean(age) | age>=30 & age<80", population=True)
    assert wide.low < answer.low and answer.high < wide.high
    found = ask(whole, "mean(age) | age>=30 & age<50 - mean(age) | age>=50 & age<80")
    assert (found.estimate, found.guess, found.low, found.high) == (None, -25, -50, 0)
    exact = ask(whole, "mean(kids)")
    assert exact.guess is None and exact.estimate == pytest.approx(by_hand("mean(kids)"))
    rows = Rows.from_codes(DOMAIN, codes()[codes()[:, 0] == 2])  # of rows in bins no mean is known
    assert ask(whole, "mean(age) | age>=30 & age<80", rows=rows).note == answer.note


@pytest.mark.parametrize(
    ("noise", "count"),
    [
        (Geometric(Fraction(1, 3)), 5),
        (Geometric(Fraction(2)), 4),
        (Geometric(Fraction(1, 50)), 60),
        (DiscreteGaussian(Fraction(7, 2)), 3),
        (DiscreteGaussian(Fraction(400)), 3),
        (WishartDifference(3, Fraction(1, 40), Fraction(1, 10), ((0, 0), (0, 2), (1, 2), (2, 3))), 4),
        pytest.param(
            ConeDifference((2, 3, 4), Fraction(1, 5), ((0, 1), (0, 2), (1, 2))), 35, marks=pytest.mark.slow
        ),
        (ConeDifference((2, 3), Fraction(1, 5), ((0, 1),)), 11),
        (KNorm((2, 3, 5), Fraction(1, 2), False), 10),
        (KNorm((2, 3, 5), Fraction(3), True), 10),
        (KNorm((4, 3), Fraction(1, 400), False), 7),
        (KNorm((4, 3), Fraction(1, 4000), True), 7),
    ],
    ids=str,
)
def test_simulated_noise_has_the_covariance_and_the_quantiles_of_the_noise(noise, count):
    rng = np.random.default_rng(7)
    rows, at = rng.normal(size=(3, 2)), rng.integers(-1, 3, count)
    found = noise.simulated(rows, at, Uniforms.fixed())
    assert found.shape == (DRAWS, 2)
    assert (found == noise.simulated(rows, at, Uniforms.fixed())).all()
    weights = np.vstack([rows, np.zeros(2)])[at]
    variances = np.array([noise.variance(one) for one in weights.T])
    assert np.diag(noise.covariance(weights)) == pytest.approx(variances)
    scale = np.sqrt(np.outer(variances, variances))
    assert np.cov(found.T) / scale == pytest.approx(noise.covariance(weights) / scale, abs=0.05)
    for failure in (Fraction(1, 5), Fraction(1, 100)):
        for one, own in zip(found.T, weights.T, strict=True):
            assert margin(one, 1 - failure) <= noise.quantile(own, failure)


def test_ratios_are_where_the_linear_test_keeps_them():
    """Normal noise: Fieller's interval has a closed form."""
    uniforms = Uniforms.fixed()
    above, below = uniforms.normals(2).T
    found = of_ratio((30.0, 100.0), (4 * above, 9 * below), Fraction(19, 20))
    z = margin(above, Fraction(19, 20))
    a, b, c = 100**2 - (9 * z) ** 2, -2 * 30 * 100, 30**2 - (4 * z) ** 2
    ends = [(-b + sign * np.sqrt(b * b - 4 * a * c)) / (2 * a) for sign in (-1, 1)]
    assert (found.low, found.high) == pytest.approx(ends, rel=0.02) and found.estimate == 0.3
    assert of_ratio((30.0, 15.0), (4 * above, 9 * below), Fraction(19, 20)) is None
    exact = of_ratio((30.0, 100.0), (0 * above, 0 * below), Fraction(19, 20))
    assert exact == (0.3, 0.3, 0.3)


def test_differences_take_the_margins_of_their_parts():
    one, other = Interval(0.5, 0.4, 0.7), Interval(0.2, 0.1, 0.25)
    found = of_difference(one, other, 0.0)
    assert found.estimate == pytest.approx(0.3)
    assert found.low == pytest.approx(0.3 - np.hypot(0.1, 0.05))
    assert found.high == pytest.approx(0.3 + np.hypot(0.2, 0.1))
    assert of_difference(one, one, 1.0).low == pytest.approx(-0.1)  # 0.1 and 0.2 less one another


def frame_of(count=400):
    rng = np.random.default_rng(6)
    age = rng.integers(20, 99, count)
    return pd.DataFrame(
        {
            "age": age,
            "job": rng.choice(["none", "part time", "full time", "NA"], count),
            "sample.yr": rng.choice(["1995", "1996", "1998", "NA"], count),
            "ill": rng.random(count) < age / 120,
        }
    )


@pytest.mark.slow
def test_a_release_answers_by_its_schema():
    frame = frame_of()
    made = smalldb.release(frame, schema=as_schema(SCHEMA), epsilon=100, strategy="cells", seed=1)
    check_record(made.record)
    again = Measurements.from_record(json.loads(json.dumps(made.record)))
    for text, expected in {
        "mean(age)": None,
        "ill | age>=80": frame["ill"][frame["age"] >= 80].mean(),
        'job="part time"': (frame["job"] == "part time").mean(),
        "job in (none, full time) | ill": frame["job"][frame["ill"]].isin(["none", "full time"]).mean(),
        "sample.yr<=1996": frame["sample.yr"].isin(["1995", "1996"]).mean(),
        "mean(sample.yr) | ill": pd.to_numeric(frame["sample.yr"][frame["ill"]], errors="coerce").mean(),
        "`sample.yr`=1998 - ill": (frame["sample.yr"] == "1998").mean() - frame["ill"].mean(),
    }.items():
        answer = made.ask(text)
        assert answer.known == "measured" and ask(again, text) == replace(answer, note=ask(again, text).note)
        assert "the synthetic table" in answer.note or answer.note == ask(again, text).note
        if expected is not None:
            assert answer.low - 1e-9 <= expected <= answer.high + 1e-9
            assert answer.estimate == pytest.approx(expected, rel=0.02, abs=0.02)
        elif text == "mean(age)":
            assert answer.low <= frame["age"].mean() <= answer.high
            assert answer.estimate == pytest.approx(frame["age"].mean(), abs=0.1) and answer.guess is None
    gaps = (frame["sample.yr"] == "NA").mean()
    note = made.ask("mean(sample.yr)").note
    found = re.search(r"rows with a number; (.*)% \((.*)% to (.*)%\) have none", note)
    share, least, most = (float(part) / 100 for part in found.groups())
    assert least <= share <= most and share == pytest.approx(gaps, abs=0.01)
    copy = pickle.loads(pickle.dumps(made))
    assert copy.ask("ill") == made.ask("ill")


def test_small_records_hold_measurements_and_large_ones_do_not():
    made = smalldb.release(frame_of(), schema=as_schema(SCHEMA), epsilon=1, mechanism="marginals", seed=1)
    record = {key: value for key, value in made.record.items() if key not in ("measurements", "pairs")}
    assert made.measurements.numbers <= FEW and "measurements" in made.record
    assert (
        with_measurements(record, made.plan, made.measurements, made.rows, made.measurements.numbers - 1)
        is record
    )
    whole = with_measurements(record, made.plan, made.measurements, made.rows, None)
    assert whole == made.record
    check_record(record)
    with pytest.raises(ValueError, match="holds no measurements"):
        Measurements.from_record(record)
    for change, said in (
        ({"schema": 3}, "of another version"),
        ({"universe": 3}, "cannot be read"),
        ({"measurements": [{}]}, "cannot be read"),
    ):
        with pytest.raises(ValueError, match=said):
            Measurements.from_record({**made.record, **change})
    for broken in ({}, [], 3):
        with pytest.raises(ValueError, match="not a record of smalldb"):
            Measurements.from_record(broken)
    for path, value in (
        (("values",), [1.5]),
        (("values",), [1]),
        (("tables", 0, "columns"), ["weight"]),
        (("tables", 0, "groups"), [[0, 2]]),
        (("noise", "name"), "white"),
        (("epsilon",), "much"),
    ):
        record = json.loads(json.dumps(made.record))
        *inner, last = path
        node = record["measurements"][0]
        for key in inner:
            node = node[key]
        node[last] = value
        with pytest.raises(ValueError, match="its measurements cannot be read"):
            Measurements.from_record(record)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame_of().to_csv("data.csv", index=False)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    return tmp_path


def generated(*more):
    given = ("data.csv", "--schema", "schema.toml", "--epsilon", "20", "--seed", "1", "--quiet")
    assert main(["generate", *given, "--mechanism", "marginals", "-o", "out.csv", *more]) == 0


def test_the_command_answers_from_files_alone(folder, capsys):
    outputs = "--record", "record.json", "--measurements", "measured.json"
    generated("--strategy", "cells", "--means", "0", *outputs)
    record, measured = (json.loads((folder / f"{name}.json").read_text()) for name in ("record", "measured"))
    check_record(record)
    assert record == measured
    assert Measurements.read("measured.json").as_json() == record["measurements"]
    (folder / "data.csv").unlink()
    questions = ["ill | age>=80", "mean(age) where ill", 'job="none" - job="none" | ill']
    capsys.readouterr()
    assert main(["ask", "record.json", *questions]) == 0
    told = capsys.readouterr().out
    assert told.count("measured: age x job x sample.yr x ill\n") == 3
    assert "level 0.95, for the table" in told
    assert re.search(r"\n  from \S+ to \S+, wherever numbers lie in their bins \(level 0.95, for", told)
    assert re.search(
        r"a guess: \S+ \(it has no level\)\n  the guess assumes that numbers are in the middle of", told
    )
    assert main(["ask", "measured.json", *questions, "--json", "--beta", "0.1", "--population"]) == 0
    answers = json.loads(capsys.readouterr().out)
    assert [answer["question"] for answer in answers] == questions
    assert {answer["level"] for answer in answers} == {0.9}
    assert all(answer["population"] and answer["low"] < answer["high"] for answer in answers)
    assert main(["ask", "measured.json", questions[0], "--csv", *questions[1:]]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("question,known,estimate,low,high,level") and len(lines) == 4


def test_an_odd_question_does_not_stop_the_others(folder, capsys):
    generated("--strategy", "cells", "--record", "record.json")
    questions = ["ill", "il", "ill | age>=80", "mean(ill) where"]
    capsys.readouterr()
    assert main(["ask", "record.json", *questions]) == 1
    told, error = capsys.readouterr()
    first, second, third, last = told.split("\n\n")
    assert "level 0.95" in first and "level 0.95" in third
    assert second.startswith("il\n  error: no column or category 'il'; did you mean 'ill'")
    assert "\n  error: question 'mean(ill) where'" in last and "2 of 4 questions have an error" in error
    assert main(["ask", "record.json", *questions, "--json"]) == 1
    answers = json.loads(capsys.readouterr().out)
    assert [one["known"] for one in answers] == ["measured", "error", "measured", "error"]
    assert "did you mean 'ill'" in answers[1]["note"] and answers[1]["low"] is None  # and it is one document
    assert main(["ask", "record.json", "il", "ill |"]) == 2
    assert main(["ask", "record.json", "ill", "--level", "3"]) == 2


def test_fields_are_asked_as_a_file_spells_them():
    """A yes/no column by any spelling of a yes; a bin of one value by it."""
    schema = """
    columns.ill = { kind = "bool", missing = true }
    columns.children = { kind = "cuts", cuts = [1, 2, 3], range = [0, 9] }
    columns.rooms = { kind = "cuts", cuts = [1, 2, 3], range = [0, 9], decimals = 0 }
    """
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"ill": rng.choice(["true", "false", "true", ""], 900)})
    frame["children"] = frame["rooms"] = rng.integers(0, 6, 900)
    made = smalldb.release(frame, schema=as_schema(schema), epsilon=50, strategy="cells", seed=1)
    expected = (frame["ill"] == "true").mean()
    for text in ("ill=true", "ill=TRUE", "ill=1", "ill=yes", "ill=y", "ill in (true)"):
        assert made.ask(text).estimate == pytest.approx(expected, abs=0.02)
    assert made.ask("ill=false").estimate == made.ask("ill=no").estimate
    for column in ("children", "rooms"):
        answer = made.ask(f"{column}=2 | ill=true")
        assert answer.estimate == pytest.approx(made.ask(f"2<={column}<3 | ill").estimate)
        told = "children=2 counts 2<=children<3: the schema does not state that numbers are whole"
        assert (told in answer.note) == (column == "children")
        for odd in (f"{column}=4", f"{column}=2.5"):
            with pytest.raises(ValueError, match="parts a bin"):
                made.ask(odd)


@pytest.mark.parametrize("gaps", ["", ", missing = true"])
def test_a_spelling_of_its_own_means_what_the_schema_says(gaps, tmp_path):
    """Once 1 was read as yes where a file writes it for no: the answer was that of the other share."""
    schema = as_schema(
        f"""
        columns.sex = {{ kind = "bool", true = [2], false = [1]{gaps} }}
        columns.ill = {{ kind = "bool", true = ["J", "j"], false = ["N"]{gaps} }}
        """
    )
    frame = pd.DataFrame({"sex": [1] * 700 + [2] * 300, "ill": (["J"] + ["N"] * 4) * 200})
    made = smalldb.release(frame, schema=schema, epsilon=50, mechanism="marginals", strategy="cells", seed=1)
    (tmp_path / "record.json").write_text(json.dumps(made.record))
    read = Measurements.read(str(tmp_path / "record.json"))
    for own in (made.ask, lambda text: ask(read, text)):
        for text, share in [("sex=1", 0.7), ("sex=2", 0.3), ("sex=true", 0.3), ("sex", 0.3), ("sex=no", 0.7)]:
            assert own(text).estimate == pytest.approx(share, abs=0.02)
        for text in ("ill=J", "ill=j", "ill=true", "ill in (J)"):
            assert own(text).estimate == pytest.approx(0.2, abs=0.02)
        for odd in ("sex=0", "sex=3", "sex>=2", "ill=1", "ill=y"):
            with pytest.raises(ValueError, match=r"has no category|have no order"):
                own(odd)


def test_the_command_shows_the_value_of_the_synthetic_table(folder, capsys):
    generated("--queries", "marginals:1", "--strategy", "adaptive", "--record", "record.json")
    asked = ["ask", "record.json", "ill | age>=80"]
    capsys.readouterr()
    assert main([*asked, "--synthetic", "out.csv", "--schema", "schema.toml", "--json"]) == 0
    (answer,) = json.loads(capsys.readouterr().out)
    rows = pd.read_csv("out.csv")
    old = rows[rows.age >= 80]
    assert answer["known"] == "not measured" and answer["assumed"] == pytest.approx(old.ill.mean())
    assert main([*asked, "--synthetic", "out.csv", "--schema", "schema.toml"]) == 0
    assert f"{answer['assumed']:.4g} in the synthetic table: an assumption" in capsys.readouterr().out
    rows.assign(ill=7).to_csv("other.csv", index=False)
    pd.DataFrame({"a": [0, 1], "b": [1, 1]}).to_csv("bits.csv", index=False)
    Path("bits.toml").write_text('columns.a.kind = "bool"\ncolumns.b.kind = "bool"\n')
    for more, said in {
        "--synthetic out.csv": "--synthetic: name the schema of the release with --schema",
        "--synthetic other.csv --schema schema.toml": "other.csv: it does not fit schema.toml",
        "--synthetic bits.csv --schema bits.toml": "other columns or categories than those of record.json",
        "--schema schema.toml": "--schema needs --synthetic",
    }.items():
        assert main([*asked, *more.split()]) == 2
        told = capsys.readouterr().err
        assert said in told and "curator" not in told


def test_files_without_measurements_are_refused_in_one_line(folder, capsys):
    pd.DataFrame({"a": [0, 1, 1], "b": [1, 1, 0]}).to_csv("bits.csv", index=False)
    common = "generate bits.csv --epsilon 1 --rows 2 -o o.csv --even-if-empty --quiet --seed 1".split()
    assert main([*common, "--record", "r.json", "--mechanism", "census"]) == 0
    for given, said in (
        (["ask", "r.json", "a"], "r.json: it holds no measurements"),
        (["ask", "bits.csv", "a"], "not a record"),
        (["ask", "none.json", "a"], "no such file"),
        ([*common, "--measurements", "m.json", "--mechanism", "census"], "--measurements is for marginals"),
    ):
        capsys.readouterr()
        assert main(given) == 2
        error = capsys.readouterr().err
        assert said in error and error.count("\n") == 1 + error.count("NOT PRIVATE")
    assert not (folder / "m.json").exists()


def test_pairs_tell_what_was_learned():
    items = [
        exact_measurement((0, 2)),
        exact_measurement((1, 2)),
        exact_measurement((0, 2), [(0, 0, 1, 1), (0, 1)]),
    ]
    found = {pair.columns: pair for pair in Measurements(DOMAIN, items, N).pairs()}
    assert found["age", "death"].known == "learned" and len(found["age", "death"].groups) == 2
    assert found["sex", "death"].known == "little dependence" and found["age", "death"].at_most is None
    assert found["age", "kids"].known == "not measured" and found["age", "kids"].groups == ()
    whole = {pair.columns: pair.known for pair in measured((0, 1, 2)).pairs()}
    assert whole["age", "death"] == "learned" and whole["age", "kids"] == "not measured"


def test_products_of_large_counts_do_not_wrap_around():
    """Walks count each row in units of 720,720."""
    of, noise = (Marginal((0, 1), ((0, 1), (0, 1))),), Geometric(Fraction(1, 720_720))
    released = Measurement(of, np.full(4, 25_000 * 720_720), noise, Fraction(1))
    (pair,) = Measurements(Domain(["a", "b"]), [released]).pairs()
    assert pair.known == "little dependence"


@pytest.mark.parametrize("kind", ["table", "contrasts"])
@pytest.mark.parametrize("rate", [Fraction(1, 60), Fraction(1, 10), Fraction(2)])
@pytest.mark.parametrize("table", [[[350, 350], [150, 150]], [[230, 270], [215, 285]]], ids=["none", "some"])
def test_what_could_hide_is_no_less_than_what_does_and_noise_is_seldom_called_learned(kind, rate, table):
    """The dependence of the data: half of what the cells of a table differ by from independent columns."""
    table, noise, n = np.array(table), Geometric(rate), 1000
    shares = table / n
    truth = np.abs(shares - np.outer(shares.sum(axis=1), shares.sum(axis=0))).sum() / 2
    exact, of = table.ravel(), (Marginal((0, 1), ((0, 1), (0, 1))),)
    if kind == "contrasts":
        of = tuple(Parity(one, False) for one in ((0,), (1,), (0, 1)))
        exact = np.array([table[1].sum(), table[:, 1].sum(), table[0, 1] + table[1, 0]])
    pairs = []
    for seed in range(100):
        values = exact + noise.draw(len(exact), SeededBits(seed))
        pairs += Measurements(Domain(["a", "b"]), [Measurement(of, values, noise, Fraction(1))], n).pairs()
    quiet = [pair for pair in pairs if pair.quiet]
    for pair in quiet:
        assert pair.at_most < 60 / float(rate) / n + truth  # of some deviations of the noise
        named = "little dependence" if pair.at_most <= 0.05 else "too noisy to tell"
        assert pair.known == named and pair.told.startswith(f"{named}: a")
    assert (len(quiet) > 10 or rate > 1) and sum(pair.at_most < truth for pair in quiet) <= 5
    assert truth or len(quiet) >= 94  # one in fifty, and three deviations of that
