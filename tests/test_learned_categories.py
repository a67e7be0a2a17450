"""Categories learned from the data: exact laws, what they cost, and that nothing is learned unasked."""

import json
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import ceil, exp, log

import pandas as pd
import pytest
from calling import called
from records import check_record

import smalldb
from smalldb.exact.bits import SeededBits
from smalldb.mechanisms import Neighbours
from smalldb.noise.privacy_loss import Loss
from smalldb.releasing import learned_categories as learning
from smalldb.releasing import memory
from smalldb.releasing.budget_ledger import Ledger
from smalldb.releasing.evaluation import evaluate
from smalldb.releasing.learned_categories import frequent, quantiles, threshold
from smalldb.schema import Cuts, Schema, parse_schema, read_schema
from smalldb.schema.reading import Learned, OpenSchema

TOWN = 'columns.town = { kind = "categories", values = "learn", share = "1/10", unknown = "other" }\n'
PAY = (
    'columns.pay = { kind = "cuts", cuts = "learn", bins = 4, range = [0, 100], share = 0.2, '
    "missing = true }\n"
)
FLAG = 'columns.flag.kind = "bool"\n'
FRAME = pd.DataFrame(
    {
        "town": ["Leeds"] * 400 + ["York"] * 300 + ["secret"] + ["Hull"] * 99,
        "pay": [*range(100)] * 7 + [None] * 100,
        "flag": [True, False] * 400,
    }
)


def naive_scores(values, low, high, bins, i):
    """The score of every candidate on the grid, as the definition has it."""
    inside = [min(max(value, low), high) for value in values]
    return {
        cut: -abs((bins - i) * sum(v < cut for v in inside) - i * sum(v >= cut for v in inside))
        for cut in range(low + 1, high + 1)
    }


@pytest.mark.parametrize("values", [[], [3], [0, 0, 9, 12, -4], [5, 5, 5], [1, 2, 3, 4, 8]])
def test_scores_of_cuts_are_those_of_the_definition(monkeypatch, values):
    seen, select = [], learning.select

    def spy(scores, *, base_measure, **keywords):
        seen.append((scores, base_measure, keywords["epsilon"], keywords["sensitivity"]))
        return select(scores, base_measure=base_measure, **keywords)

    monkeypatch.setattr(learning, "select", spy)
    cuts = quantiles(Counter(map(str, values)), Cuts([1], 0, 9), 3, Fraction(1), SeededBits(1))
    assert [int(cut) for cut in cuts] == sorted({int(cut) for cut in cuts})
    for i, (scores, widths, epsilon, sensitivity) in enumerate(seen, start=1):
        assert (epsilon, sensitivity) == (Fraction(1, 2), 3)
        expanded = [score for score, width in zip(scores, widths, strict=True) for _ in range(width)]
        assert expanded == list(naive_scores(values, 0, 9, 3, i).values())


def test_a_row_moves_the_score_of_a_cut_by_at_most_the_number_of_bins():
    most = 0
    for values in product(range(4), repeat=3):
        others = [list(values[:2]), *([*values[:2], v] for v in range(4)), [*values, 0], [*values, 3]]
        for other, i in product(others, (1, 2)):
            one, two = (naive_scores(table, 0, 3, 3, i) for table in (values, other))
            most = max(most, *(abs(one[cut] - two[cut]) for cut in one))
    assert most == 3


@pytest.mark.slow
def test_cuts_follow_the_exponential_mechanism():
    values, bins, epsilon = [1, 1, 2, 5], 2, Fraction(2)
    scores = naive_scores(values, 0, 6, bins, 1)
    weights = {cut: exp(float(epsilon) * score / (2 * bins)) for cut, score in scores.items()}
    count = 4000
    counts = Counter(map(str, values))
    drawn = [quantiles(counts, Cuts([1], 0, 6), bins, epsilon, SeededBits(i)) for i in range(count)]
    found = Counter(int(cut) for (cut,) in drawn)
    expected = {cut: count * weight / sum(weights.values()) for cut, weight in weights.items()}

    def chi(law):
        return sum((found[cut] - share) ** 2 / share for cut, share in law.items())

    assert chi(expected) < 25
    sharper = {cut: exp(1.3 * float(epsilon) * score / (2 * bins)) for cut, score in scores.items()}
    assert chi({cut: count * w / sum(sharper.values()) for cut, w in sharper.items()}) > 25


@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1), Fraction(7, 3)])
@pytest.mark.parametrize("chance", [Fraction(1, 2), Fraction(1, 10**6), Fraction(1, 10**30)])
def test_a_text_that_one_row_has_is_seen_with_at_most_that_probability(rate, chance):
    least = threshold(rate, chance)
    tail = -float(rate) * (least - 1) - log(1 + exp(-float(rate)))  # of 1 + noise >= least
    assert tail <= log(chance)
    assert least <= 2 + ceil(-log(chance) / float(rate))
    assert least >= 1 + -log(chance) / float(rate) - 1e-9


@pytest.mark.parametrize("relation", list(Neighbours))
def test_rare_texts_stay_unseen_and_frequent_ones_are_found(relation):
    counts = {"often": 300, "rarely": 1, **{f"once {i}": 1 for i in range(200)}}
    for seed in range(20):
        assert frequent(counts, Fraction(1), Fraction(1, 10**6), relation, SeededBits(seed)) == ["often"]


def test_replacing_a_row_costs_two_steps():
    """Half of epsilon and of delta for each: the threshold is more than twice as high."""
    low = threshold(Fraction(1), Fraction(1, 10**6))
    high = threshold(Fraction(1, 2), Fraction(1, 2 * 10**6))
    at = {"x": low + 12}
    assert high > 2 * low - 2
    args = (Fraction(1), Fraction(1, 10**6))
    kept = sum(bool(frequent(at, *args, Neighbours.ADD_REMOVE, SeededBits(i))) for i in range(50))
    passed = sum(bool(frequent(at, *args, Neighbours.REPLACE_ONE, SeededBits(i))) for i in range(50))
    assert kept == 50
    assert passed < 40


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_a_release_says_what_was_learned_and_adds_up(neighbours):
    size = {"n_max": 1000} if neighbours == "add-remove" else {}
    made = smalldb.release(
        FRAME, schema=TOWN + PAY + FLAG, epsilon=2, delta="1e-6", neighbours=neighbours, rng=1, **size
    )
    assert isinstance(made.schema, Schema)
    assert "secret" not in json.dumps(made.record) + str(made.data["town"].unique())
    assert {"Leeds", "York", "other"} <= set(made.schema.columns[0].kind.listed)
    assert 1 <= len(made.schema.columns[1].kind.cuts) <= 3
    assert made.record["learned"] == [
        {"column": "town", "what": "values", "epsilon": "0.2", "delta": "0.0000001"},
        {"column": "pay", "what": "cuts", "epsilon": "0.4", "delta": None},
    ]
    check_record(made.record)
    assert made.plan.request.epsilon == Fraction(14, 10) * Fraction(24, 25)  # the rest is for means
    assert made.record["privacy"]["epsilon"] == made.record["epsilon"] == "2"
    assert Fraction(made.record["privacy"]["delta"]) <= Fraction(1, 10**6)
    assert made.plan.bounded_range is None
    assert evaluate(FRAME, made.data, schema=made.schema).max_error < 1


def test_pure_cuts_stay_pure():
    made = smalldb.release(FRAME, schema=PAY + FLAG + 'ignore = "*"', epsilon=1, rng=1)
    assert (made.plan.delta, made.record["delta"]) == (None, None)
    assert (made.record["privacy"]["epsilon"], made.record["privacy"]["bounded_range"]) == ("1", None)
    assert made.plan.loss == Loss.pure(Fraction(1))  # of what is drawn then nothing more is known before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TOWN.replace(', share = "1/10"', ""), "spends a share of epsilon: for example share = "),
        (TOWN.replace(', unknown = "other"', ""), 'needs unknown = "other"'),
        (TOWN.replace('"1/10"', '"3/2"'), "share must be above 0 and below 1"),
        (TOWN.replace('"learn"', '"lern"'), 'values must be a list, in square brackets, or "learn"'),
        (PAY.replace("bins = 4, ", ""), "needs bins"),
        (PAY.replace(", range = [0, 100]", ""), "range is missing"),
        (PAY.replace("0.2", "0.9") + TOWN, "must add up to less than 1"),
        (FLAG.replace('"bool"', '"bool"\ncolumns.flag.values = "learn"'), "unknown key 'values'"),
        ('valid = "~flag | `town=other`"\n' + TOWN + FLAG, "valid: no rule can use column 'town'"),
        (PAY.replace("100]", '20000000], dtype = "float32"'), "dtype 'float32' cannot hold its values"),
        (PAY.replace("100]", '20000000], dtype = "int8"'), "dtype 'int8' cannot hold its values"),
    ],
)
def test_a_wish_to_learn_that_is_incomplete_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        smalldb.release(FRAME, schema=text + 'ignore = "*"', epsilon=1, delta="1e-6")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda text: parse_schema(text), "learns its categories from the data"),
        (lambda text: smalldb.plan(schema=text, n=9, epsilon=1), "learns its categories from the data"),
        (lambda text: evaluate(FRAME, FRAME, schema=text), "learns its categories from the data"),
        (lambda text: evaluate(FRAME, FRAME, schema=OpenSchema(text)), "learns its categories from the data"),
        (lambda text: smalldb.release(FRAME.iloc[:0], schema=text, epsilon=1, delta="1e-6"), "no rows"),
    ],
)
def test_nothing_is_learned_unasked(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call(TOWN + FLAG + 'ignore = "*"')
    assert "secret" not in str(caught.value)
    planned = smalldb.plan(schema=FLAG, n=len(FRAME), epsilon=1)
    with pytest.raises(TypeError, match="a plan cannot know categories that are learned"):
        smalldb.release(planned, FRAME, schema=PAY + FLAG)


def test_what_is_paid_ends_in_a_table_where_nothing_is_frequent_or_one_value_is():
    schema = 'ignore = "*"\n' + TOWN + FLAG
    gaps = schema.replace('"other"', '"missing"').replace("share", "missing = true, share")
    for text in (schema, gaps):
        made = smalldb.release(FRAME.iloc[400:420], schema=text, epsilon=1, delta="1e-6", seed=1)
        assert len(made.data) == 20
        assert "York" not in str(made.data) + str(made.record)
    made = smalldb.release(FRAME.iloc[:400], schema=gaps, epsilon=9, delta="1e-6", seed=1)
    assert list(made.schema.columns[0].kind.listed) == ["Leeds", "?"]
    assert set(made.data["town"]) == {"Leeds"}


def gathered(schema, frame):
    """The texts of the columns that learn."""
    texts = {}
    assert [*learning.gather(schema, texts, schema.outline.pieces(frame))]
    return texts


def learnt(schema, frame, epsilon, fits):
    """Ask for categories, and put them into the schema."""
    costs, _ = learning.shared(schema, {"epsilon": epsilon, "delta": "1e-6"})
    ask = learning.LearnedCategories(schema, costs, Neighbours.ADD_REMOVE)
    return learning.learn(schema, ask.draw(gathered(schema, frame), SeededBits(1)), fits)


def test_categories_are_left_out_until_the_release_can_be_made():
    """Of 60 towns a rule or the queries may bear only few: the most frequent stay."""
    frame = pd.DataFrame({"town": [f"t{i}" for i in range(60) for _ in range(9000 - 100 * i)]})
    tried = []

    def fits(found):
        tried.append(found.columns[0].kind.size)
        if found.columns[0].kind.size > 16:
            raise ValueError("too many categories")
        return "a plan"

    made, planned = learnt(OpenSchema(TOWN), frame, 9, fits)
    assert (tried, planned) == ([61, 31, 16], "a plan")
    assert {*made.columns[0].kind.listed} == {*(f"t{i}" for i in range(15)), "other"}


def test_a_gap_that_was_written_as_a_float_is_not_learned():
    text = TOWN.replace("share", 'missing = ["99"], share')
    frame = pd.DataFrame({"town": ["99.0"] * 300 + ["1"] * 200 + ["2"] * 100})
    made = smalldb.release(frame, schema=text, epsilon=9, delta="1e-6", seed=1)
    assert list(made.schema.columns[0].kind.listed) == ["1", "2", "other"]


def test_cuts_are_left_out_only_where_no_category_is_left():
    tried = []

    def fits(found):
        tried.append([column.kind.size for column in found.columns])
        if tried[-1] != [3, 2]:
            raise ValueError("too many categories")

    learnt(OpenSchema(TOWN + PAY), FRAME.drop(columns="flag"), 99, fits)
    assert tried == [[4, 4], [2, 4], [3, 4], [3, 2]]  # 3 towns, 1, none: the outline's two; 3 cuts, 1


def test_a_text_that_would_name_an_attribute_of_another_column_is_left_out():
    frame = pd.DataFrame({"a": ["x=y"] * 500, "a=x": ["y"] * 500})
    column = '{ kind = "categories", values = "learn", share = "1/10", unknown = "other" }\n'
    made = smalldb.release(
        frame, schema=f'columns.a = {column}columns."a=x" = {column}', epsilon=9, delta="1e-6", seed=1
    )
    assert made.data.shape == (500, 2)


@pytest.mark.slow
def test_a_memory_that_learned_categories_would_pass_leaves_some_out(monkeypatch):
    """alpha makes more rows of more queries: what was paid ends in a table of fewer categories."""
    frame = pd.DataFrame({"town": [f"t{i}" for i in range(40)] * 90, "flag": [0, 1] * 1800})
    few = smalldb.plan(OpenSchema(TOWN + FLAG).outline.domain, n=3600, epsilon=9, alpha="1/5").rows
    monkeypatch.setattr(memory, "memory_limit", lambda: 2 * few * 2 * memory.BYTES_PER_FIELD)
    made = smalldb.release(
        frame, schema=TOWN + FLAG, epsilon=9, delta="1e-6", alpha="1/5", neighbours="add-remove", n_max=4000
    )
    assert few <= len(made.data) <= 2 * few
    assert 2 < made.schema.columns[0].kind.size < 41


def test_the_command_learns_and_the_ledger_is_spent_first(workdir, capfd):
    FRAME.to_csv("data.csv", index=False)
    (workdir / "s.toml").write_text(PAY + FLAG + 'ignore = ["town"]')
    common = ("generate", "data.csv", "--schema", "s.toml", "--epsilon", "1")
    code, _, err = called(
        capfd, *common, "-o", "out.csv", "--record", "r.json", "--ledger", "l", "--budget", "2"
    )
    assert code == 0, err
    assert "0.2 of epsilon was spent on learning the categories of pay" in err
    assert Ledger("l").read().spent == 1
    record = json.loads((workdir / "r.json").read_text())
    assert (record["privacy"]["epsilon"], record["learned"][0]["epsilon"]) == ("1", "0.2")
    assert list(pd.read_csv("out.csv").columns) == ["pay", "flag"]
    (workdir / "s.toml").write_text(TOWN + FLAG + 'ignore = ["pay"]')
    code, _, err = called(capfd, *common, "-o", "none.csv")
    assert (code, (workdir / "none.csv").exists()) == (2, False)
    assert "needs a delta" in err
    code, _, err = called(capfd, *common, "--delta", "1e-6", "-o", "some.csv")
    assert code == 0 and "--schema-out OUT.toml writes" in err
    assert "secret" not in (workdir / "some.csv").read_text()
    code, _, err = called(capfd, "schema", "show", "s.toml")
    assert (code, "learns its categories" in err) == (2, True)


def test_the_categories_that_were_learned_can_be_written_out_for_later_commands(workdir, capfd):
    FRAME.to_csv("data.csv", index=False)
    rule = 'valid = "flag | ~flag"\n'
    (workdir / "s.toml").write_text(rule + TOWN + PAY + FLAG)
    given = ["generate", "data.csv", "--schema", "s.toml", "--epsilon", "1", "--delta", "1e-6"]
    given += ["-o", "out.csv"]
    code, _, err = called(capfd, *given, "--schema-out", "closed.toml", "--record", "r.json", "--seed", "1")
    assert code == 0 and "--schema-out OUT.toml writes" not in err
    closed, record = read_schema("closed.toml"), json.loads((workdir / "r.json").read_text())
    categories = [{"name": c.name, "places": list(c.labels)} for c in closed.domain.columns]
    recorded = record["universe"]["columns"]
    assert categories == [{key: column[key] for key in ("name", "places")} for column in recorded]
    assert closed.valid == "flag | ~flag"
    assert "learn" not in (workdir / "closed.toml").read_text()
    again = ("evaluate", "data.csv", "out.csv", "--schema", "closed.toml", "--record", "r.json")
    assert called(capfd, *again)[0] == 0


def test_the_ledger_books_what_the_record_says(tmp_path):
    ledger = Ledger(str(tmp_path / "l"), 5)
    made = smalldb.release(FRAME, schema=PAY + FLAG + 'ignore = "*"', epsilon=1, rows=2, ledger=ledger)
    (booked,) = ledger.read().records
    assert made.plan.mechanism == "census"  # whose draw alone would have a bounded range
    assert booked["privacy"] == {"epsilon": "1", "bounded_range": None}
    assert booked["privacy"].items() <= made.record["privacy"].items()


@pytest.mark.slow
@pytest.mark.parametrize("size", [{"rows": 2}, {"alpha": "0.3"}])
def test_what_is_learned_is_paid_with_all_of_epsilon(tmp_path, size):
    """A census under add-remove states less, by its rows; but paid is before its categories are known."""
    ledger = Ledger(str(tmp_path / "l"), 5)
    given = {"epsilon": 1, "neighbours": "add-remove", "mechanism": "census"} | size
    made = smalldb.release(FRAME, schema=PAY + FLAG + 'ignore = "*"', ledger=ledger, **given)
    (booked,) = ledger.read().records
    assert made.plan.chosen.guarantee.epsilon < made.plan.request.epsilon
    assert booked["privacy"]["epsilon"] == made.record["privacy"]["epsilon"] == made.record["epsilon"] == "1"


def test_of_categories_not_yet_known_nothing_less_than_epsilon_is_stated():
    given = {"epsilon": "0.8", "rows": 2, "neighbours": "add-remove", "mechanism": "census"}
    foreseen = smalldb.plan(2, **given)
    made = replace(foreseen, learned=(Learned("1", "cuts", Fraction(1, 5), None),))
    assert foreseen.privacy < foreseen.epsilon and made.loss == Loss.pure(Fraction(1))


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        (TOWN, {}, "needs a delta"),
        (TOWN, {"delta": "1e-6"}, "a ledger counts pure privacy"),
        (PAY, {"delta": "1e-6"}, "a ledger counts pure privacy"),
        (PAY, {"rows_per_person": 2}, "learned categories protect one row each"),
        (TOWN.replace("share", 'groups = { a = ["Leeds"] }, share'), {}, "groups do not go together"),
        (PAY, {"flag": ["maybe"] + [True] * 799}, "column 'flag'"),  # would be, after learning
    ],
)
def test_what_is_refused_is_not_paid(tmp_path, text, settings, message):
    ledger, given = Ledger(str(tmp_path / "l"), 5), dict(settings)
    frame = FRAME.assign(flag=given.pop("flag", FRAME["flag"]))
    with pytest.raises(ValueError, match=message) as caught:
        smalldb.release(frame, schema=text + FLAG + 'ignore = "*"', epsilon=1, ledger=ledger, **given)
    assert "secret" not in str(caught.value)
    assert ledger.read().records == ()


def test_every_bin_of_a_learned_cut_holds_a_number():
    kind = Cuts([2], "0.5", "9.5", 0)
    for seed in range(40):  # few values: all candidates are nearly alike
        cuts = quantiles(Counter(["0.5"]), kind, 3, Fraction(1, 100), SeededBits(seed))
        assert {int(cut) for cut in cuts} <= {*range(2, 10)}  # 1 would leave nothing between 0.5 and itself


def test_the_floor_of_a_tiny_number_is_found_without_writing_it_out(monkeypatch):
    assert [learning._floor(Decimal(text), 1) for text in ("0.99", "-0.11", "0.1")] == [9, -2, 1]
    monkeypatch.setattr(learning, "Fraction", lambda number: pytest.fail("written out"))
    assert [learning._floor(Decimal(text), 1) for text in ("1e-999999", "-1e-999999", "0")] == [0, -1, 0]


def test_texts_are_looked_at_once_however_often_they_occur(monkeypatch):
    seen, stands = [], learning._can_stand

    def spy(text, asked):
        seen.append(text)
        return stands(text, asked)

    monkeypatch.setattr(learning, "_can_stand", spy)
    schema = OpenSchema(TOWN + 'ignore = "*"')
    counts = gathered(schema, FRAME)
    assert counts == {"town": Counter(FRAME["town"])}
    assert sorted(seen) == sorted(FRAME["town"].unique())
    unused = FRAME.astype({"town": pd.CategoricalDtype([*FRAME["town"].unique(), "Bath"])})
    assert gathered(schema, unused) == counts
