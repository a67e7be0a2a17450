"""The page about a release: what it says, that it loads nothing, and how it looks in a real browser."""

import html
import itertools
import json
import math
import os
import re
import shutil
import subprocess
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from calling import FOR_FLAGS, way

import smalldb
from queries import Column, Conjunctions, Domain, Marginals, Parities, Predicates, Rows, Workload
from smalldb.exact.numbers import promised
from smalldb.inference import share_intervals
from smalldb.mechanisms import Marginal, Measurement, Measurements
from smalldb.noise.distributions import Geometric
from smalldb.releasing.evaluation import evaluate
from smalldb.releasing.record import make_record
from smalldb.reporting.page import About, Comparison, page
from smalldb.reporting.page.guarantee import right_guess
from smalldb.reporting.page.pictures import association, bars, marginals, pairs
from smalldb.reporting.page.uses import not_learned
from smalldb.reporting.words import answer_cell
from smalldb.schema import parse_schema

CHROMIUM = shutil.which("chromium")
PROBE = Path(__file__).parent / "page_probe.html"
SCHEMA = parse_schema("""
columns.age = { kind = "cuts", cuts = [18, 65], range = [0, 99] }
columns.job = { kind = "categories", values = ["none", "<b>part</b>"], missing = true }
columns.smoker = { kind = "bool" }
""")


def people(n=60):
    chance = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "age": chance.integers(0, 99, n),
            "job": chance.choice(["none", "<b>part</b>", ""], n),
            "smoker": chance.random(n) < 0.3,
        }
    )


def released(rows=4, **choices):
    real = SCHEMA.encode(people())
    return real, smalldb.release(real, "marginals:2", epsilon=1, rows=rows, **choices)


def compare(real, made):
    return Comparison(real, evaluate(real, Rows.from_frame(real.domain, made.data), made.plan.workload))


class Outline(HTMLParser):
    """Checks that elements are closed in order, and collects texts and attributes."""

    def __init__(self, page):
        super().__init__()
        self.open, self.texts, self.given = [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.given.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.texts.append(data)


def test_the_page_is_whole_loads_nothing_and_takes_names_as_texts():
    real, made = released()
    outline = Outline(page(made, SCHEMA, compare(real, made)))
    assert not [tag for tag, _ in outline.given if tag in ("script", "link", "img", "iframe", "object")]
    for _, given in outline.given:
        assert not given.keys() & {"src", "srcset", "onclick", "onload"}
        assert given.get("href", "#").startswith("#")
    assert "url(" not in page(made)
    assert "default-src 'none'" in page(made)
    anchors = [given["id"] for _, given in outline.given if "id" in given]
    assert len(anchors) == len(set(anchors))
    for _, given in outline.given:
        assert given.get("aria-labelledby", anchors[0]) in anchors
        assert given.get("href", f"#{anchors[0]}")[1:] in anchors
    tags = [tag for tag, _ in outline.given]
    assert {"header", "nav", "main", "footer"} <= {*tags}
    assert tags.count("main") == tags.count("h1") == 1
    assert "<b>" not in page(made, SCHEMA) and "&lt;b&gt;part&lt;/b&gt;" in page(made, SCHEMA)
    (record,) = re.findall(r'<pre id="record"[^>]*>(.*?)</pre>', page(made, SCHEMA), re.S)
    assert json.loads(html.unescape(record)) == made.record


def test_only_with_the_data_it_is_confidential_and_says_their_errors():
    real, made = released()
    copy = smalldb.Release(made.data, made.record, made.plan, made.codes)
    public, text = page(made, SCHEMA), page(made, SCHEMA, compare(real, made))
    assert page(copy, SCHEMA) == public
    assert "CONFIDENTIAL" not in public and "Largest error" not in public
    assert text.count("CONFIDENTIAL") == 2 and "Publish the table, but not this page" in text
    assert "may be published" not in text and "Publish it and pass it on" in public
    assert f"<dd>{made.confidential.max_error:.4f}</dd>" in text
    assert repr(compare(real, made)) == "<Comparison: computed from the data>"


def test_a_seeded_release_is_called_not_private():
    for rng, expected in ((3, True), (None, False)):
        text = page(released(rng=rng)[1], SCHEMA)
        assert ("NOT PRIVATE" in text) is ("is NOT private" in text) is expected
        assert ("may be published" in text) is not expected


def test_nothing_of_n_is_said_under_add_remove():
    pages = []
    for n in (60, 200):
        real = SCHEMA.encode(people(n))
        made = smalldb.release(real, "marginals:1", epsilon=1, rows=1, neighbours="add-remove", rng=1)
        pages.append(re.sub(r'<section aria-labelledby="data">.*?</section>', "", page(made), flags=re.S))
    assert pages[0] == pages[1]
    assert "was added or left out" in pages[0]
    assert "is in the data at all" in pages[0]


def test_beliefs_are_multiplied_odds():
    frame = pd.DataFrame({"a": [0, 1], "b": [1, 1]})
    text = page(smalldb.release(frame, epsilon="0.6931471805599453", rows=2))  # just below ln 2
    cells = re.findall(r'<th scope="row">([\d.]+) %</th><td>([\d.]+) %</td>', text)
    assert cells == [("1", "2.0"), ("10", "18.2"), ("50", "66.7")]
    assert "a factor of at most 2." in text
    assert "100 %" in page(smalldb.release(frame, epsilon=10**6, rows=2))


def with_delta(relation, epsilon=1, delta="0.01"):
    frame = pd.DataFrame(np.random.default_rng(4).integers(0, 2, (400, 6)), columns=[*"abcdef"])
    public = {"n_max": 500} if relation == "add-remove" else {}
    chosen = {"mechanism": "marginals", "strategy": "contrasts", "rows": 40, "neighbours": relation, **public}
    made = smalldb.release(frame, "conjunctions:2", epsilon=epsilon, delta=delta, **chosen)
    assert made.plan.delta is not None
    return made


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_a_page_with_a_delta_states_its_definition_and_no_belief(relation):
    text = page(with_delta(relation, delta="0.05"))
    assert "a belief about one person can move" not in text
    assert "failure" not in text
    assert "would become at most 2.72 times what it was, plus 0.05" in text
    assert "not the probability that the factor fails" in text
    cells = re.findall(r'<th scope="row">([\d.]+) %</th><td>([\d.]+) %</td>', text)
    # 1 - .95 / (1 + e), .9 + .1 * .05, .99 + .01 * .05
    assert cells == [("50", "74.5"), ("90", "90.5"), ("99", "99.1")]


def test_no_guess_is_right_more_often_than_the_page_says():
    """The most that any rule over three outcomes reaches, where two laws are (epsilon, delta)-close."""
    chance, reached = np.random.default_rng(7), {}
    for epsilon, delta, before in itertools.product(("1/2", "2"), ("0.01", "0.2"), ("0.5", "0.9")):
        e, d, p = math.exp(Fraction(epsilon)), float(delta), float(before)
        said = float(right_guess(before, Fraction(epsilon), Fraction(delta)).removesuffix(" %")) / 100
        low = (1 - d) / (1 + e)
        corners = [[[d, 1 - d, 0], [0, 1 - d, d]], [[1 - low, low, 0], [low, 1 - low, 0]]]
        for yes, no in [*corners, *chance.dirichlet([1, 1, 1], (2000, 2))]:
            yes, no = np.array(yes), np.array(no)
            if max(np.maximum(yes - e * no, 0).sum(), np.maximum(no - e * yes, 0).sum()) <= d + 1e-12:
                right = np.maximum(p * yes, (1 - p) * no).sum()
                assert right <= said + 1e-9
                reached[epsilon, delta, before] = max(right, reached.get((epsilon, delta, before), 0))
        assert reached[epsilon, delta, before] > said - 0.0011  # rounded up to a tenth of a percent


@pytest.mark.parametrize(
    "mechanism", ["census", pytest.param("rejection", marks=pytest.mark.slow), *FOR_FLAGS]
)
def test_every_mechanism_has_its_page(mechanism):
    frame = pd.DataFrame(np.random.default_rng(1).integers(0, 2, (80, 8)), columns=[*"abcdefgh"])
    made = smalldb.release(frame, "marginals:1", epsilon=1, rows=3, **way(mechanism))
    text = page(made)
    Outline(text)
    bounds = made.record["bounds"]
    assert ("of this release, from its released numbers" in text) is ("released" in bounds)
    assert ("Theorem 4.5" in text) is ("theorem_4_5" in bounds)


@pytest.mark.slow
def test_many_attributes_are_shown_in_part():
    frame = pd.DataFrame(
        np.random.default_rng(1).integers(0, 2, (50, 70)), columns=[f"x{i}" for i in range(70)]
    )
    made = smalldb.release(frame, "conjunctions:1", epsilon=1, rows=5, mechanism="marginals")
    real = Rows.from_frame(made.plan.workload.domain, frame)
    text = page(made, comparison=compare(real, made))
    assert "are drawn" not in text
    assert text.count('class="bar1"') == 70
    assert text.count("<figcaption>Attributes (61 to 70 of 70)</figcaption>") == 2
    assert text.count("are shown for at most 24 of them") == 2
    assert "are drawn" not in page(released()[1], SCHEMA)


def test_marginals_are_shares_of_rows():
    real = SCHEMA.encode(people())
    decoded = SCHEMA.decode(real.codes(), middle=True).loc[lambda frame: frame.index.repeat(real.counts)]
    by_hand = {
        "age": [(decoded["age"] == value).mean() for value in SCHEMA.columns[0].kind.values()],
        "job": [
            *((decoded["job"] == v).mean() for v in ("none", "<b>part</b>")),
            decoded["job"].isna().mean(),
        ],
        "smoker": [(~decoded["smoker"]).mean(), decoded["smoker"].mean()],
    }
    for found in marginals(real):
        assert found.shares == pytest.approx(by_hand[found.column])
    assert [found.labels for found in marginals(real)] == [
        ("age<18", "18<=age<65", "age>=65"),
        ("none", "<b>part</b>", "missing"),
        ("no", "yes"),
    ]
    frame = pd.DataFrame(np.random.default_rng(1).integers(0, 2, (50, 4)), columns=[*"abcd"])
    (whole,) = marginals(Rows.from_frame(Domain([*"abcd"]), frame), together=True)
    assert (whole.column, whole.labels) == ("Attributes", tuple("abcd"))
    assert whole.shares == pytest.approx(frame.mean().tolist())


COLUMNS = Domain([Column("town", [f"t{i}" for i in range(5)]), "smoker", Column("age", cuts=[18, 40, 65])])


def of_columns(domain, queries, n=40):
    """A made-up release of any domain, and rows to compare it with."""
    made = smalldb.release(pd.DataFrame({"a": [0, 1]}), epsilon=1, rows=2)
    plan = replace(made.plan, request=replace(made.plan.request, workload=queries.workload(domain)))
    real, synthetic = (
        Rows.from_codes(
            domain, np.column_stack([chance.integers(0, k, n) for k in domain.sizes]).astype(np.int64)
        )
        for chance in map(np.random.default_rng, (1, 2))
    )
    codes = np.repeat(synthetic.codes(), synthetic.counts, axis=0)
    return real, smalldb.Release(domain.decode(codes), make_record(plan, private=True), plan, codes)


@pytest.mark.parametrize("together", [False, True])
def test_a_page_without_a_schema_speaks_of_columns(together):
    real, made = of_columns(COLUMNS, Marginals(2))
    text = page(made, comparison=compare(real, made) if together else None)
    Outline(text)
    assert "town (5 categories), smoker, age (4 categories)" in text
    for label in ("t4", "no", "yes", "below 18", "18 to 40", "from 65"):
        assert f">{label}<" in text
    assert text.count("Cramer's V") == 3  # two captions, and the summary of the folded table
    assert ("Distance of the table of each two columns" in text) is together
    assert "Not covered" not in text
    assert "both of two attributes" not in text


def uncovered_shares(text):
    """What is marked as not covered in each card, by the texts for screen readers."""
    found = {}
    for title, listed in re.findall(r'aria-label="([^"]*?), share of rows \(synthetic\): ([^"]*)"', text):
        shares = [part.rsplit(": ", 1) for part in html.unescape(listed).split("; ")]
        found[title] = [label for label, said in shares if said.endswith("% not covered")]
        assert all(re.search(r"% (not covered|\([\d.]+ to [\d.]+\))$", said) for _, said in shares)
    return found


def test_shares_that_no_bound_covers_are_marked():
    def marked(queries, domain=COLUMNS):
        return list(uncovered_shares(page(of_columns(domain, queries)[1])).values())

    assert marked(Marginals(1)) == [[], [], []]
    every = [list(column.labels) for column in COLUMNS.columns]
    assert marked(Marginals(2, exactly=True)) == every
    # thresholds tell the outer bins alone; an attribute of a category tells that category
    assert marked(Conjunctions(1)) == [[], [], ["18 to 40", "40 to 65"]]
    asked = Predicates(["`town=t0` | `town=t1`", "`age>=40` & ~`age>=65`", "~smoker"])
    assert marked(asked) == [every[0], [], ["below 18", "18 to 40", "from 65"]]
    flags = Domain(["a", "b", "c"])
    assert marked(Parities(2) + Predicates(["a"]), flags) == [[]]
    assert marked(Predicates(["a & b", "c"]), flags) == [["a", "b"]]
    for queries, said in ((Conjunctions(2), False), (Marginals(2), False), (Parities(2), True)):
        text = page(of_columns(flags, queries)[1])
        assert ("No bound covers some of these shares" in text) is said
    real = SCHEMA.encode(people())
    made = smalldb.release(real, "marginals:1", epsilon=1, rows=1, neighbours="add-remove", rng=1)
    text = page(made, SCHEMA)
    assert "No bound covers them." in text
    assert [len(found) for found in uncovered_shares(text).values()] == [3, 3, 2]


@pytest.mark.slow
def test_many_columns_and_queries_are_shown_in_part(monkeypatch):
    domain = Domain([Column(f"c{i}", 70) for i in range(40)])
    real, made = of_columns(domain, Marginals(2))
    named, label = [], Workload.label
    monkeypatch.setattr(Workload, "label", lambda self, j: named.append(j) or label(self, j))
    text = page(made, comparison=compare(real, made))
    assert made.plan.workload.size > 10**6
    assert len(named) == 210  # the first, and the ten that are farthest off
    assert "The first 30 columns are shown." in text
    assert text.count("the first 60 categories of a column are drawn") == 2
    assert len(text) < 3 * 10**6


def test_association_is_cramers_v():
    rows = Rows.from_codes(
        COLUMNS, np.array([[0, 0, 0], [1, 0, 0], [2, 1, 1], [2, 1, 2], [2, 1, 3], [0, 0, 0]])
    )
    found = association(rows, 3)
    assert found[0, 1] == pytest.approx(1)  # the town says who smokes
    assert np.allclose(found, found.T)
    assert np.diag(found).tolist() == [1, 1, 1]
    counts, chi = np.array([[2, 0, 0, 0], [1, 0, 0, 0], [0, 1, 1, 1]]), 0.0
    for i, j in np.ndindex(counts.shape):
        expected = counts[i].sum() * counts[:, j].sum() / 6
        chi += (counts[i, j] - expected) ** 2 / expected
    assert found[0, 2] == pytest.approx(np.sqrt(chi / 6 / 2))
    alike = Rows.from_codes(COLUMNS, np.array([[0, 0, 0], [0, 1, 1]]))
    assert association(alike, 3)[0].tolist() == [1, 0, 0]
    apart = Rows.from_codes(COLUMNS, np.array([[a, b, 0] for a in range(5) for b in range(2)]))
    assert association(apart, 2)[0, 1] == pytest.approx(0, abs=1e-7)


def test_bars_are_as_long_as_their_shares():
    drawn = bars("t", ["a", "b"], ("real", [0.25, 1.0]), ("synthetic", [0.5, 0.0]))
    lengths = re.findall(r'width="([\d.]+)" height="6" class="bar(\d)"', drawn)
    assert lengths == [("75.00", "0"), ("150.00", "1"), ("300.00", "0"), ("0.00", "1")]
    assert "a: 25.0 % / 50.0 %; b: 100.0 % / 0.0 %" in drawn


def test_pairs_are_drawn_and_listed_up_to_a_size():
    off = np.array([[0.1, -0.02], [-0.02, 0.0]])
    drawn = pairs("t", ["a", "b"], off, signed=True)
    assert re.findall(r'class="bar(\d)" fill-opacity="([\d.]+)"', drawn) == [
        ("0", "0.450"),
        ("1", "0.090"),
        ("1", "0.090"),
        ("0", "0.000"),
    ]
    assert re.findall(r"<td>(.*?)</td>", drawn) == ["+10.0", "-2.0", "-2.0", "0"]
    assert "<svg" not in pairs("t", ["a"] * 25, np.zeros((25, 25)))


@pytest.fixture(scope="module")
def learned():
    """A release by rounds of five columns of which three depend, so that some pairs are not measured."""
    chance = np.random.default_rng(3)
    age = chance.integers(0, 3, 4000)
    frame = pd.DataFrame(
        {
            "age": age,
            "ill": chance.random(4000) < 0.1 + 0.3 * age,
            "job": (age + (chance.random(4000) < 0.2)) % 3,
            "sex": chance.integers(0, 2, 4000),
            "eye": chance.integers(0, 3, 4000),
        }
    )
    schema = parse_schema("""
[columns.age]
kind = "cuts"
cuts = [1, 2]
range = [0, 2]
description = "Age at the visit"
unit = "decades"
[columns]
ill = { kind = "bool" }
job = { kind = "categories", values = ["0", "1", "2"] }
sex = { kind = "bool" }
eye = { kind = "categories", values = ["0", "1", "2"] }
""")
    chosen = {"mechanism": "marginals", "strategy": "adaptive", "measure_first": ["age x ill", "age x job"]}
    return smalldb.release(frame, schema=schema, epsilon=1, seed=1, **chosen)


def unmeasured(made, schema=None):
    """The same release, as if nothing had been measured."""
    none = Measurements(made.plan.workload.domain, (), made.plan.n)
    return smalldb.Release(made.data, made.record, made.plan, made.codes, schema, None, none)


@pytest.mark.slow
def test_a_measured_share_has_its_own_interval_and_another_the_bound_of_the_release(learned):
    text = page(learned)
    (shown,) = re.findall(r'aria-label="ill, share of rows \(synthetic\): ([^"]*)"', text)
    yes = shown.split("; ")[1]
    answer = learned.ask("ill")
    low, high = map(float, re.search(r"\(([\d.]+) to ([\d.]+)\)", yes).groups())
    assert low == math.floor(1000 * answer.low) / 10
    assert high == pytest.approx(100 * answer.high, abs=0.11) and high >= 100 * answer.high - 1e-6
    assert high - low < 40 * learned.record["bounds"]["released"]  # of a bound on each side, in percent
    assert "covers with probability 0.95, each by itself" in text
    none = unmeasured(learned, learned.schema)
    text = page(none)
    assert "It follows from the bound of the release" in text and "its own interval" not in text
    assert share_intervals(none.measurements, 0, Fraction(19, 20)) == (None,) * 3


def test_intervals_of_all_categories_are_about_those_of_ask(learned):
    found = share_intervals(learned.measurements, 2, Fraction(19, 20))
    for label, one in zip(("0", "1", "2"), found, strict=True):
        answer = learned.ask(f"job={label}")
        near = 0.05 * (answer.high - answer.low)  # which sums are told apart is not quite the same
        assert (one.estimate, one.low, one.high) == pytest.approx(
            (answer.estimate, answer.low, answer.high), abs=near
        )


def test_means_and_quartiles_of_numbers_have_the_intervals_of_ask(learned):
    (shown,) = re.findall(r"<caption>Means and quartiles of the data.*?</table>", page(learned), re.DOTALL)
    cells = [html.unescape(cell) for cell in re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", shown)]
    asked = ("mean(age)", "quantile(age, 0.25)", "median(age)", "quantile(age, 0.75)")
    assert cells[-5:] == ["age", *(answer_cell(learned.ask(text)) for text in asked)]
    estimate, low, high = map(float, re.findall(r"[\d.]+", cells[-4]))
    assert low < estimate < high and low < learned.data["age"].mean() < high
    assert "Means and quartiles" not in page(unmeasured(learned))


def test_what_was_not_learned_stands_near_the_top(learned):
    text = page(learned)
    pairs_of = {kind: [] for kind in ("learned", "too noisy to tell", "little dependence", "not measured")}
    for pair in learned.measurements.pairs():
        pairs_of[pair.known].append(" x ".join(pair.columns))
    assert pairs_of["learned"] and pairs_of["not measured"]
    assert text.index('id="unknown"') < text.index('id="guarantee"') < text.index('id="data"')
    part = text[text.index('id="unknown"') : text.index('id="guarantee"')]
    assert f"{len(pairs_of['learned'])} of 10 pairs of columns were learned" in part
    assert f"{len(pairs_of['not measured'])} were not measured together" in part
    assert "; ".join(pairs_of["not measured"]) in part
    assert text.count('class="unknown"') == 2 * len(pairs_of["not measured"])
    assert text.count("<td>not measured</td>") == 2 * len(pairs_of["not measured"])
    assert "Grey: the two were not measured together" in text
    assert "What each column was learned with" in part
    for pair in pairs_of["learned"]:
        one, other = pair.split(" x ")
        assert re.search(rf"{one}: [^;]*\b{other}\b", part) and re.search(rf"{other}: [^;]*\b{one}\b", part)


def test_pairs_say_in_how_many_groups_they_were_learned_and_which_a_rule_ties():
    domain = Domain([Column("age", 4), "ill", Column("cause", 3)], valid="ill | cause=0")
    counts, noise = np.array([900, 20, 30, 500]), Geometric(Fraction(1))
    table = Marginal((0, 2), ((0, 0, 1, 1), (0, 1, 1)))
    ages = Marginal((0,), ((0, 1, 2, 3),))
    made = Measurements(
        domain,
        [
            Measurement((ages,), np.array([460, 460, 265, 265]), noise, Fraction(1)),
            Measurement((table,), counts, noise, Fraction(1)),
        ],
        1450,
    )

    class Made:
        measurements = made

    text = not_learned(Made)
    assert "age in 2 groups x cause in 2 groups" in text
    assert "age: cause; ill: none; cause: age" in text
    assert "Rules connect 1 of these: ill x cause." in text


def test_a_mechanism_that_measures_nothing_says_so():
    _, made = released()
    text = page(made)
    assert "measures no pair of columns." in text and 'class="unknown"' not in text
    assert "This release has no intervals that include the noise" in text


def test_it_says_who_published_it_how_to_cite_it_what_was_measured_and_what_for_it_is(learned):
    given = ("Office", "a@b.org", "2026", "CC0", "Ill people")
    names = ("publisher", "contact", "date", "licence", "title")
    text = page(learned, about=About(**dict(zip(names, given, strict=True))))
    assert all(said in text for said in given)
    assert "Office (2026): Ill people. Synthetic data, 1-differential privacy, smalldb" in text
    assert "<dd>Look here</dd>" in page(learned, about=About(citation="Look here"))
    learned.record["private"], kept = True, learned.record["private"]
    try:
        text = page(learned)
    finally:
        learned.record["private"] = kept
    assert "Cite as" not in text
    tables = learned.record["bounds"]["tables"]
    assert f"Bounds of {len(tables)} measured tables, from their noise" in text
    for one in tables:
        row = f'<th scope="row">{" x ".join(one["columns"])}</th><td>{promised(one["released"])}</td>'
        assert row in text
    assert "Standard errors computed as if these rows were people are too small." in text
    assert "only the bound on all queries holds" in text
    assert "draw several tables from the public files" in text
    assert "(smalldb ask)" in text and "Do not study relations of columns that were not measured" in text
    assert "<figcaption>age: Age at the visit, in decades</figcaption>" in text
    assert "<td>Age at the visit, in decades</td>" in text
    assert '<th scope="col">meaning</th>' not in page(released()[1], SCHEMA)


def test_fields_are_spelled_as_in_the_file(learned):
    flags = pd.DataFrame({"a": [True, False] * 20, "b": [False, False] * 20})
    for made in (learned, smalldb.release(flags, epsilon=1, rows=3, seed=1)):
        rows = page(made).split("<caption>First rows")[1].split("</table>")[0]
        assert "False" not in rows and "True" not in rows and "false" in rows


def opened(text, folder, width, dark):
    """What a page looks like in Chromium."""
    given = {"WIDTH": str(width), "PAGE": json.dumps(text).replace("</", "<\\/")}
    probe = PROBE.read_text(encoding="utf-8")
    for name, value in given.items():
        probe = probe.replace(name, value)
    path = Path(folder, "probe.html")
    path.write_text(probe, encoding="utf-8")
    command = [
        *(CHROMIUM, "--headless", "--disable-gpu", f"--user-data-dir={folder}/profile", "--dump-dom"),
        *(f"--blink-settings=preferredColorScheme={int(not dark)}", "--virtual-time-budget=5000"),
        *(["--no-sandbox"] if os.geteuid() == 0 else []),
        path.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    (found,) = re.findall("FOUND(.*)END", html.unescape(done.stdout))
    return json.loads(found)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium here (Debian: apt-get install chromium)")
@pytest.mark.parametrize(("width", "dark"), [(360, True), (1100, False)])
def test_it_is_readable_in_a_real_browser(tmp_path, width, dark):
    real, made = released()
    found = opened(page(made, SCHEMA, compare(real, made)), tmp_path, width, dark)
    assert found["record"] == made.record
    assert found["title"] == "A synthetic table of 4 rows"
    assert found["bars"] == 2 * 8  # the categories of the columns, beside the data and alone
    assert (found["ground"] < 0.1) is dark
    assert found["contrast"] > 4.5  # of the accessibility guidelines
    assert (found["wide"], found["cut"]) == (0, 0)
    assert found["smallest"] > 12  # pixels
    assert found["banners"] == ["rgb(168, 0, 28)"]
    assert found["reachable"]


@pytest.mark.slow
def test_no_label_of_a_share_is_cut():
    """Bins drop the name that stands above them; what is long is broken into lines, never cut."""
    income = "Monthly net income of the household, self-reported"
    answers = ["none of the above, or prefers not to say", "東京都特別区部東京都特別区部東京都", "x" * 60]
    schema = parse_schema(
        f'[columns."{income}"]\nkind = "cuts"\nrange = [0, 3000000]\nbins = 3\n'
        f'[columns."<="]\nkind = "categories"\nvalues = {answers}\n'
        '[columns.yes]\nkind = "bool"\n'
    )
    frame = pd.DataFrame({income: [1, 2000000], "<=": answers[:2], "yes": [True, False]})
    text = page(smalldb.release(frame, schema=schema, epsilon=1, rows=40), schema)
    drawn = [html.unescape(found) for found in re.findall(r"<text x=\"0\"[^>]*>([^<]*)</text>", text)]
    for label in ("...<1000000", "1000000<=...<2000000", "...>=2000000", "no", "yes"):
        assert label in drawn
    together = "".join(drawn).replace(" ", "")
    assert all(answer.replace(" ", "") in together for answer in answers)
    listed = text[text.index('id="machine"') : text.index('id="record"')]
    assert "<td>bool</td>" in listed and f"{income}&lt;1000000" not in listed


@pytest.mark.slow
def test_cards_of_long_labels_still_fit_on_a_sheet():
    labels = [f"value {i} of those that are too long for a line" for i in range(30)]
    short = [f"{i}" for i in range(30)]
    for names, cards in ((short, 2), (labels, 3)):
        schema = parse_schema(
            f'[columns.a]\nkind = "categories"\nvalues = {names}\n[columns.b]\nkind = "bool"\n'
        )
        frame = pd.DataFrame({"a": names, "b": True})
        text = page(smalldb.release(frame, schema=schema, epsilon=1, rows=40), schema)
        boxes = [int(h) for h in re.findall(r'viewBox="0 0 300 (\d+)" role', text)]
        assert len(boxes) == cards + 1
        assert max(boxes) <= 800
