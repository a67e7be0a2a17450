"""A public table to start from: what it is believed, what it costs, and what it must not do."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from naive import replaced_rows

import smalldb
from queries import Column, Domain, Rows
from smalldb.cli import main
from smalldb.exact.bits import SeededBits
from smalldb.kernels.nearby_rows import replace_rows
from smalldb.marginals.estimate.weighted_rows import Started, believed
from smalldb.marginals.measuring import NoisyTable
from smalldb.marginals.strategies.dependence import DependenceTested
from smalldb.marginals.strategies.from_start import FromStart, apart
from smalldb.marginals.universe import Universe
from smalldb.mechanisms import Dependence, Marginal
from smalldb.mechanisms.start import Start
from smalldb.noise.distributions import Geometric
from smalldb.noise.privacy_loss import Amount
from smalldb.planning.starting import check_start, rehearsed

DOMAIN = Domain([Column("a", 4), Column("b", 4), "c", Column("d", 6), Column("e", 6)])
WORDS = "other people, published"


def people(n, seed, shift=0.0, domain=DOMAIN):
    """Rows of which columns depend: a on b, d on e, and c on a; `shift` moves a."""
    rng = np.random.default_rng(seed)
    a = np.minimum(rng.binomial(3, 0.4 + shift, n), 3)
    b = np.where(rng.random(n) < 0.8, a, rng.integers(0, 4, n))
    d = rng.integers(0, 6, n)
    e = np.where(rng.random(n) < 0.7, 5 - d, rng.integers(0, 6, n))
    return np.column_stack([a, b, rng.random(n) < 0.2 + 0.2 * a, d, e]).astype(np.int64)


def table(codes, pair):
    found = np.zeros([DOMAIN.sizes[c] for c in pair])
    np.add.at(found, tuple(codes[:, c] for c in pair), 1 / len(codes))
    return found


def off(codes, others):
    pairs = [(i, j) for i in range(5) for j in range(i)]
    return np.mean([np.abs(table(codes, p) - table(others, p)).sum() / 2 for p in pairs])


def rows(codes):
    return Rows.from_codes(DOMAIN, codes)


def released(data, start=None, seed=0, epsilon="1/2", **given):
    if start is not None:
        given |= {"start": rows(start), "start_is": WORDS}
    return smalldb.release(rows(data), epsilon=epsilon, seed=seed, mechanism="marginals", **given)


@pytest.mark.parametrize("moved", [(0, 1), (1, 1)])
def test_a_row_moves_the_distance_by_one_for_each_table(moved):
    rng = np.random.default_rng(1)
    for _ in range(200):
        tables = [rng.integers(0, 4, (3, 3)) for _ in range(2)]
        expected = [rng.integers(0, 4, (3, 3)) for _ in range(2)]
        others = [own.copy() for own in tables]
        for own in others:
            for change, many in zip((-1, 1), moved, strict=True):
                own[tuple(rng.integers(0, 3, 2))] += change * many
        assert abs(apart(expected, tables) - apart(expected, others)) <= sum(moved) * 2


def test_the_question_has_noise_for_all_its_tables():
    for relation, moved in (("replace-one", 2), ("add-remove", 1)):
        size = {"n": 500} if moved == 2 else {"neighbours": relation, "n_max": 500}
        plan = smalldb.plan(DOMAIN, epsilon=1, start=rows(people(50, 0)), start_is=WORDS, **size)
        strategy = plan.chosen.strategy
        asked = strategy.question(Started.of(strategy.start, strategy.universe, 500))
        assert asked.lost(moved == 2, 1) == Amount(Fraction(1, 20)) and len(asked.of) == 10
        assert asked.noise == Geometric(Fraction(1, 20) / (moved * 10))


@pytest.mark.parametrize(("n", "wished"), [(500, "adaptive"), (200, None)])
def test_a_start_that_is_not_believed_costs_the_questions_alone(n, wished):
    given = {"n": n, "mechanism": "marginals", "strategy": wished}
    plan = smalldb.plan(DOMAIN, epsilon=1, start=rows(people(50, 0)), start_is=WORDS, **given)
    without = smalldb.plan(DOMAIN, epsilon="37/40", **given)
    strategy, other = plan.chosen.strategy, without.chosen.strategy
    assert isinstance(strategy, FromStart) and strategy.other is None
    assert strategy.adaptive.public[1:] == other.public[1:]
    assert strategy.loss.epsilon == strategy.asking + other.loss.epsilon == 1
    assert plan.privacy == 1


def test_of_the_ways_from_a_start_the_one_that_loses_more_is_stated():
    given = {"n": 4000, "epsilon": 2, "start": rows(people(50, 0)), "start_is": WORDS}
    strategy = smalldb.plan(DOMAIN, mechanism="marginals", **given).chosen.strategy
    rounds, pairs = (way.loss.rho for way in strategy.ways)
    assert rounds < pairs < strategy.loss.rho < pairs + rounds


def test_a_shifted_start_is_weighted_by_columns_before_it_is_asked_about():
    data, shifted = people(4000, 1), people(4000, 20, shift=0.2)
    without = smalldb.plan(DOMAIN, epsilon=1, n=4000, mechanism="marginals").chosen.strategy
    assert isinstance(without, DependenceTested)
    made = released(data, shifted, epsilon="1")
    kinds = [type(each.of[0]) for each in made.measurements]
    assert kinds[0] is Marginal and kinds.count(Dependence) == 1
    assert made.record["start"]["believed"] and off(shifted, data) > 0.2
    assert off(np.asarray(made.codes, dtype=np.int64), data) < 0.05


def test_what_noise_cannot_tell_stays_as_public_and_what_it_can_is_believed():
    start = np.array([100.0, 200.0, 300.0, 400.0])
    seen = np.array([400.0, 300.0, 200.0, 100.0])
    assert np.abs(believed(start, [(seen, 1e8)], ordered=True) - start).max() < 5
    assert np.abs(believed(start, [(seen, 1.0)], ordered=True) - seen).max() < 5
    both = believed(start, [(seen, 1e8), (seen, 1.0)], ordered=False)
    assert np.abs(both - seen).max() < 5 and both.sum() == pytest.approx(1000)
    # and so is what is far from the start
    start, seen = np.array([1000.0, 9000.0]), np.array([4000.0, 6000.0])
    assert np.abs(believed(start, [(seen, 1e5)], ordered=True) - seen).max() < 200


def weighted(codes, total=1000):
    universe = Universe(DOMAIN.sizes, (True,) * 5, tuple((i, j) for i in range(5) for j in range(i + 1, 5)))
    return Started.of(Start(codes, np.ones(len(codes), dtype=np.int64), "x", "x"), universe, total)


def test_weights_agree_with_columns_and_keep_the_dependence_of_the_start():
    start = weighted(people(3000, 0))
    wanted = [np.full(size, 1000 // size) for size in DOMAIN.sizes]
    columns = [
        [NoisyTable(((c, 0),), w, Fraction(1), Geometric(Fraction(1)), 1e-3)] for c, w in enumerate(wanted)
    ]
    found = start.with_columns(columns, [True] * 5)
    for c, counts in enumerate(wanted):
        np.testing.assert_allclose(found.table((c,)), counts, atol=2)
    odds = [np.log(s.table((0, 1))[np.ix_([0, 3], [0, 3])] + 1e-9) for s in (start, found)]
    ratio = [o[0, 0] + o[1, 1] - o[0, 1] - o[1, 0] for o in odds]
    assert ratio[0] == pytest.approx(ratio[1], rel=0.1)


def test_a_noisy_table_moves_no_column():
    start, noise = weighted(people(3000, 0)), Geometric(Fraction(1, 50))
    counts = np.rint(start.table((2, 3))).astype(np.int64) + noise.draw(12, SeededBits(1)).reshape(2, 6)
    told = NoisyTable(((2, 1), (3, 1)), counts, Fraction(1), noise, noise.variance())
    found = start.after(told, [np.arange(2), np.arange(6)])
    assert np.abs(found.table((2, 3)) - start.table((2, 3))).sum() > 20
    for c in (2, 3):
        np.testing.assert_allclose(found.table((c,)), start.table((c,)), atol=1)


@pytest.mark.parametrize(("n", "heard"), [(2000, False), (4000, True)])
def test_columns_are_measured_once_where_noise_would_hide_rounds(n, heard):
    given = {"epsilon": 1, "n": n, "mechanism": "marginals"}
    without = smalldb.plan(DOMAIN, **given).chosen.strategy
    plan = smalldb.plan(DOMAIN, start=rows(people(2000, 0)), start_is=WORDS, **given).chosen.strategy
    assert isinstance(without, DependenceTested) and bool(plan.adaptive.rounds) == heard
    assert heard or sum(plan.adaptive.columns) + plan.adaptive.certifying + plan.asking == 1


def test_a_start_is_left_only_if_the_number_tells_so_beyond_its_noise():
    given = {"epsilon": 1, "n": 600, "mechanism": "marginals", "strategy": "adaptive"}
    strategy = smalldb.plan(DOMAIN, start=rows(people(2000, 0)), start_is=WORDS, **given).chosen.strategy
    far, noise = strategy.expected * 2 * 600 * 10, Geometric(Fraction(1, 20) / (2 * 10)).mean_size
    assert strategy.believes(int(far + 0.9 * noise), 600) and not strategy.believes(
        int(far + 1.1 * noise), 600
    )


@pytest.mark.parametrize("made", ["start", "model"])
def test_rows_are_near_to_the_tables_of_the_weights(made):
    public = people(2000, 0)
    start = weighted(public)
    start = replace(start, start=replace(start.start, rows=made))
    found = start.rows([(i, j) for i in range(5) for j in range(i + 1, 5)], frozenset(), 1000, 5).T
    tables = [
        np.abs(table(found, p) - start.table(p) / 1000).sum() / 2 for p in [(0, 1), (0, 2), (3, 4), (1, 3)]
    ]
    assert max(tables) < 0.02
    if made == "start":
        own = {tuple(row) for row in start.codes.tolist()}
        assert all(tuple(row) in own for row in found.tolist())


def test_rows_are_replaced_as_by_hand():
    rng = np.random.default_rng(3)
    sizes, tables = (3, 2, 4), np.array([[0, 1, 0, 2], [1, 2, 6, 4]])
    own, pool = (np.ascontiguousarray(rng.integers(0, sizes, (k, 3)).T, dtype=np.int32) for k in (40, 30))
    beyond, weights = rng.normal(0, 3, 14), rng.random(14) + 0.1
    picks = rng.integers(0, 30, 40)
    expected = replaced_rows(own.copy(), pool, picks, tables, beyond.copy(), weights)
    rows_now, beyond_now = own.copy(), beyond.copy()
    made = replace_rows(rows_now, pool, picks, tables, beyond_now, weights)
    assert made == expected[2] > 0
    np.testing.assert_array_equal(rows_now, expected[0])
    np.testing.assert_allclose(beyond_now, expected[1])


def test_a_start_makes_a_small_release_better():
    for shift in (0.0, 0.1):
        data, public = people(400, 1), people(2000, 2, shift)
        made = [released(data, start, seed, "1") for start in (None, public) for seed in range(3)]
        errors = [off(np.asarray(one.codes, dtype=np.int64), data) for one in made]
        assert np.mean(errors[3:]) < 0.8 * np.mean(errors[:3])
        assert all(one.record["start"]["believed"] for one in made[3:])


def adversaries(data):
    """Starts that tell nothing, or what is false."""
    rng = np.random.default_rng(8)
    permuted = np.column_stack([rng.permutation(data[:, c]) for c in range(5)])
    yield "useless", rng.integers(0, DOMAIN.sizes, (2000, 5))
    yield "one row", np.repeat([[3, 0, 1, 5, 5]], 2000, axis=0)
    yield "permuted", permuted
    yield "reversed", np.column_stack([data[:, :4], 5 - data[:, 4]])


@pytest.mark.slow
@pytest.mark.parametrize("number", range(4))
def test_a_start_that_is_wrong_costs_no_more_than_the_question(number):
    data = people(3000, 1)
    name, start = list(adversaries(people(2000, 2)))[number]
    rounds = {"strategy": "adaptive"}  # which follow a start that is left: columns are measured already
    errors = {
        which: np.mean([off(released(data, given, seed, "1", **rounds).codes, data) for seed in range(4)])
        for which, given in (("scratch", None), (name, start))
    }
    assert errors[name] < 1.1 * errors["scratch"] + 0.005, errors


def test_a_row_moves_no_score_of_a_column_by_more_than_its_partners():
    given = {"epsilon": 1, "n": 600, "mechanism": "marginals"}
    strategy = smalldb.plan(DOMAIN, start=rows(people(2000, 0)), start_is=WORDS, **given).chosen.strategy
    start = Started.of(strategy.start, strategy.universe, 600)
    asked = strategy.worst_column(start)
    assert asked.moved == 3 and asked.cost == Fraction(1, 40)
    assert asked.of is strategy.question(start).of  # the tables of both are counted once
    every, moved = np.random.default_rng(4).integers(0, DOMAIN.sizes, (400, 5)), []
    pairs = [table.columns for table in asked.of]
    for one, other in zip(every[::2], every[1::2], strict=True):
        scores = [asked.scores([table(row[None], p).astype(np.int64) for p in pairs]) for row in (one, other)]
        moved.append(np.abs(scores[0] - scores[1]))
    assert np.max(moved) == 3 and not np.any(np.array(moved)[:, -1])


def test_a_column_that_is_coded_in_reverse_is_left_out_and_the_others_serve():
    domain, rng = Domain([Column(name, 20) for name in "abcdefgh"]), np.random.default_rng(5)
    every = np.floor(20 * np.clip(rng.random((8000, 1)) + rng.normal(0, 0.2, (8000, 8)), 0, 0.99)).astype(int)
    data, public = (Rows.from_codes(domain, codes) for codes in (every[:3000], every[3000:]))
    reverse = Rows.from_codes(domain, np.column_stack([every[3000:, :7], 19 - every[3000:, 7]]))
    given = {"epsilon": 1, "seed": 3, "mechanism": "marginals", "start_is": WORDS}
    honest, wrong = (smalldb.release(data, start=start, **given) for start in (public, reverse))
    assert honest.record["start"]["believed"] and "left_out" not in honest.record["start"]
    assert wrong.record["start"]["believed"] and wrong.record["start"]["left_out"] == "h"
    assert "start is used but for h, which the data relate otherwise" in " ".join(wrong.report().split())
    assert "is from the start (public), not from these data: " in (note := wrong.ask("h>=10 | b>=10").note)
    assert note.endswith(f"{WORDS} (but for h, independent of the others)")
    depends = [np.corrcoef(made.codes.T.astype(float))[7, :7].mean() for made in (honest, wrong)]
    assert depends[0] > 0.5 and abs(depends[1]) < 0.1
    assert np.corrcoef(wrong.codes.T.astype(float))[0, 1] > 0.5


def test_a_column_of_a_rule_is_not_left_out():
    ruled = Domain([*DOMAIN.columns], valid=["~(`a=0` & c)"])
    codes = people(500, 0)
    start = Rows.from_codes(ruled, codes[(codes[:, 0] > 0) | (codes[:, 2] == 0)])
    given = {"epsilon": 1, "n": 600, "mechanism": "marginals"}
    strategy = smalldb.plan(ruled, start=start, start_is=WORDS, **given).chosen.strategy
    asked = strategy.worst_column(Started.of(strategy.start, strategy.universe, 600))
    assert asked.possible.tolist() == [False, True, False, True, True, True]


def test_independent_rows_have_the_columns_that_were_measured():
    start, shares = weighted(people(3000, 0)), [np.eye(size)[size - 1] for size in DOMAIN.sizes]
    codes, weights = start.start.mixed(DOMAIN.sizes, lambda rows: np.ones(len(rows), dtype=bool), shares)
    others = codes[len(start.start.codes) :]
    assert ((others == np.array(DOMAIN.sizes) - 1).mean(axis=0) > 0.9).all()
    assert weights[len(start.start.codes) :].sum() == pytest.approx(0.05)


def test_a_start_needs_words():
    data, start = people(50, 0), rows(people(50, 1))
    for words in (None, "", "  "):
        with pytest.raises(ValueError, match=r"a start must be PUBLIC.*breaks the guarantee"):
            smalldb.release(rows(data), epsilon=1, start=start, start_is=words)
    same = rows(data)
    with pytest.raises(ValueError, match=r"the start is the data"):
        smalldb.release(same, epsilon=1, start=same, start_is=WORDS)
    with pytest.raises(ValueError, match=r"are about a start"):
        smalldb.release(same, epsilon=1, start_is=WORDS)


@pytest.mark.parametrize("start", ["link.csv", "hard.csv", "deep/../data.csv", "*.csv", "deep", "copy.csv"])
def test_a_start_that_is_a_file_of_the_data_is_refused_by_any_name(tmp_path, monkeypatch, start):
    monkeypatch.chdir(tmp_path)
    schema = '[columns.a]\nkind = "bool"\n[columns.b]\nkind = "bool"\n'
    (tmp_path / "deep").mkdir()
    for name, row in (("data.csv", "1,0"), ("copy.csv", "1,0"), ("other.csv", "0,1")):
        (tmp_path / name).write_text(f"a,b\n{row}\n")
    (tmp_path / "link.csv").symlink_to("data.csv")
    (tmp_path / "hard.csv").hardlink_to("data.csv")
    (tmp_path / "deep" / "part.parquet").hardlink_to("data.csv")
    with pytest.raises(ValueError, match="the start is the data"):
        smalldb.release("data.csv", schema=schema, epsilon=1, start=start, start_is=WORDS)
    with pytest.raises(ValueError, match="the start is the data"):
        check_start(start, "d*.csv")
    for other in ("other.csv", "nowhere.csv"):
        check_start(other, "d*.csv")
    check_start("copy.csv", "d*.csv", copies=False)  # no file is read


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"start_rows": "people"}, "start_rows must be"),
        ({"mechanism": "census"}, "a start is for marginals"),
        ({"strategy": "cells"}, "a start is for marginals"),
        ({"start": Domain(["x"])}, "a table"),
        ({"start_is": "x" * 301}, "at most 300"),
        ({"queries": "marginals:1"}, "about pairs of columns"),
    ],
)
def test_a_start_that_cannot_be_taken_is_refused(given, said):
    asked = {"start": rows(people(50, 1)), "start_is": WORDS, "epsilon": 1, "n": 500} | given
    with pytest.raises((TypeError, ValueError), match=said):
        smalldb.plan(DOMAIN, asked.pop("queries", None), **asked)


def test_the_record_the_page_and_answers_say_what_is_from_the_start():
    made = released(people(400, 1), people(2000, 2))
    told = made.record["start"]
    assert told["is"] == WORDS and len(told["sha256"]) == 64 and told["believed"]
    page = made.report()
    assert WORDS in page and told["sha256"] in page and "not from these data" in page
    apart_from = released(people(400, 3), people(2000, 2)).record["start"]
    assert apart_from["sha256"] == told["sha256"]
    asked = made.ask("c | d=0 & e=0")
    assert asked.known == "not measured" and "from the start (public), not from these data" in asked.note
    assert made.measurements.to_frame().cell.str.contains("distance from the start").any()


def test_a_rehearsal_says_about_what_a_release_does():
    data, public = people(400, 1), people(4000, 2)
    plan = smalldb.plan(
        DOMAIN, n=400, epsilon="1/2", mechanism="marginals", start=rows(public), start_is=WORDS
    )
    expected, found = rehearsed(plan), off(np.asarray(released(data, public).codes, dtype=np.int64), data)
    assert 0.5 < found / expected < 2
    assert rehearsed(smalldb.plan(DOMAIN, n=400, epsilon=1)) is None


def test_an_earlier_release_is_refined_and_answers_come_from_both(tmp_path):
    data = people(1500, 1)
    errors = {"half": [], "refined": [], "one": []}
    for seed in range(3):
        first = released(data, seed=seed, strategy="adaptive")
        both = released(data, seed=50 + seed, refine=first)
        one = released(data, seed=90 + seed, epsilon="1", strategy="adaptive")
        for found, made in zip(errors.values(), (first, both, one), strict=True):
            found.append(off(np.asarray(made.codes, dtype=np.int64), data))
    means = {name: np.mean(found) for name, found in errors.items()}
    assert means["refined"] < 0.9 * means["half"] and means["refined"] < 1.4 * means["one"], means
    told = both.record["refines"]
    assert Fraction(told["epsilon"]) == Fraction(1, 2) and told["measurements"] == len(first.measurements)
    assert Fraction(both.record["privacy"]["epsilon"]) == Fraction(1, 2)
    assert len(both.measurements) > len(first.measurements)
    sides = [made.ask("a=1") for made in (first, both)]
    assert sides[1].high - sides[1].low <= sides[0].high - sides[0].low
    assert "add up" in both.report()
    path = tmp_path / "first.json"
    path.write_text(json.dumps(first.record))
    again = released(data, seed=52, refine=path)
    np.testing.assert_array_equal(again.codes, both.codes)


def test_a_file_whose_rows_nobody_counted_yet_is_refined(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text("a,b\n" + "1,0\n0,1\n1,1\n" * 100)
    Path("less.csv").write_text("a,b\n" + "1,0\n0,1\n1,1\n" * 99)
    given = ("--epsilon", "1", "--mechanism", "marginals")
    assert main(["generate", "data.csv", "-o", "1.csv", "--record", "1.json", *given]) == 0
    given += ("-o", "2.csv", "--record", "2.json", "--refine", "1.json")
    assert main(["generate", "less.csv", *given]) == 2
    assert "other columns, categories or rows" in capsys.readouterr().err
    assert main(["generate", "data.csv", *given]) == 0
    assert json.loads(Path("2.json").read_text())["refines"]["epsilon"] == "1"


def test_what_cannot_be_refined_is_refused():
    data, first = people(500, 1), released(people(500, 1))
    with pytest.raises(ValueError, match="not both"):
        released(data, people(50, 2), refine=first)
    with pytest.raises(ValueError, match="other columns, categories or rows"):
        released(people(501, 1), refine=first)
    with pytest.raises(TypeError, match="refine must be a release"):
        released(data, refine=3)
    with pytest.raises(ValueError, match="strategy adaptive"):
        released(data, refine=first, strategy="cells")


@pytest.mark.slow
def test_intervals_of_two_releases_cover():
    data = people(600, 1)
    truth, hits = {q: (data[:, c] == v).mean() for q, c, v in (("a=1", 0, 1), ("d=2", 3, 2))}, []
    for seed in range(20):
        first = released(data, seed=seed, strategy="adaptive")
        both = released(
            data,
            people(1000, 2) if seed % 2 else None,
            seed=100 + seed,
            **({} if seed % 2 else {"refine": first}),
        )
        for question, share in truth.items():
            answer = both.ask(question)
            hits.append(answer.low <= share <= answer.high)
    assert np.mean(hits) >= 0.85
