"""A synthetic table beside the real one: answers and measures as defined, and what simple ways reach."""

import json
from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from math import prod

import numpy as np
import pandas as pd
import pytest
from calling import called
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

import smalldb
from queries import Column, Conjunctions, DataError, Domain, Halfspaces, Marginals, Parities, Rows
from smalldb.exact.bits import SeededBits
from smalldb.mechanisms import Neighbours
from smalldb.releasing.distances import (
    CELLS,
    INDEPENDENT,
    apart,
    baselines,
    distances,
    pair_distances,
    rank_correlations,
    visits,
    whole,
)
from smalldb.releasing.evaluation import evaluate
from smalldb.releasing.record import record_schema
from smalldb.reporting.plots import plot_evaluation


def table(seed, rows, attributes=3):
    bits = np.random.default_rng(seed).integers(0, 2, size=(rows, attributes))
    return pd.DataFrame(bits, columns=list("abcd")[:attributes])


def mean(query, frame):
    """The mean of a query over the rows of a table, from its definition."""
    total = Fraction(0)
    for row in frame.to_numpy().tolist():
        setting = [row[i] for i in query.attributes]
        if query.weights is None:
            total += sum(setting) % 2
        else:
            total += Fraction(query.weights[int("".join(map(str, setting)), 2)], query.denominator)
    return total / len(frame)


@pytest.mark.slow
@given(st.integers(0, 99), st.integers(1, 30), st.integers(1, 9))
def test_answers_and_errors_are_those_of_the_definition(seed, n, rows):
    real, synthetic = table(seed, n), table(seed + 1000, rows)
    queries = Marginals(2) + Parities(3) + Halfspaces()
    made = evaluate(real, synthetic, queries)
    kept = queries.workload(Domain(real.columns)).queries
    assert made.real == tuple(mean(query, real) for query in kept)
    assert made.synthetic == tuple(mean(query, synthetic) for query in kept)
    gaps = [abs(mean(query, real) - mean(query, synthetic)) for query in kept]
    assert list(made.errors) == gaps
    assert (made.max_error, made.mean_error) == (max(gaps), sum(gaps) / len(gaps))
    worst = made.worst(4)
    assert worst["error"].tolist() == [float(gap) for gap in sorted(gaps, reverse=True)[:4]]
    for row in worst.itertuples():
        j = made.workload.labels.index(row.query)
        assert (row.real, row.synthetic) == (float(made.real[j]), float(made.synthetic[j]))


def test_the_largest_error_is_that_of_a_release():
    real = table(5, 40)
    release = smalldb.release(real, "marginals:2", epsilon=1, rows=4, rng=3)
    assert float(evaluate(real, release.data).max_error) == release.confidential.max_error


def test_counted_rows_are_taken_and_what_does_not_fit_is_refused():
    real, synthetic = table(1, 20), table(2, 5)
    domain = Domain(["b", "a", "c"])
    counted = [Rows.from_frame(domain, frame) for frame in (real, synthetic)]
    made = evaluate(*counted, "conjunctions:1")
    assert made.workload.labels == ("b", "a", "c")
    assert made.errors == evaluate(real, synthetic, Conjunctions(1), domain=domain).errors
    assert repr(made) == "<Evaluation: computed from the data>"
    with pytest.raises(ValueError, match="domain"):
        evaluate(real, counted[1])
    with pytest.raises(DataError, match="has no rows"):
        evaluate(real, synthetic[:0])
    none = evaluate(real, synthetic, "predicates:a | ~a")
    assert (none.max_error, none.mean_error, len(none.worst())) == (0, 0, 0)


@pytest.fixture
def folder(workdir):
    """A folder with a real and a synthetic table, as the working directory."""
    table(1, 50).to_csv(workdir / "data.csv", index=False)
    table(2, 6)[["c", "a", "b"]].to_csv(workdir / "out.csv", index=False)
    return workdir


def test_json_is_the_evaluation(folder, capfd, monkeypatch):
    given = "evaluate", "data.csv", "out.csv", "--json", "--queries"
    code, out, err = called(capfd, *given, "conjunctions:2")
    assert (code, err) == (0, "")
    said, made = json.loads(out), evaluate(table(1, 50), table(2, 6), "conjunctions:2")
    assert (said["confidential"], said["queries"], said["bound"]) == (True, "conjunctions:2", None)
    assert (said["max_error"], said["mean_error"]) == (float(made.max_error), float(made.mean_error))
    answers = zip(made.workload.labels, made.real, made.synthetic, made.errors, strict=True)
    assert said["answers"] == [
        {"query": label, "real": float(real), "synthetic": float(synthetic), "error": float(error)}
        for label, real, synthetic, error in answers
    ]
    # of many queries those farthest off are written
    monkeypatch.setattr("smalldb.reporting.evaluated.LISTED", 10)
    monkeypatch.setattr("smalldb.reporting.evaluated.WORST", 4)
    said = json.loads(called(capfd, *given, "marginals:3")[1])
    made = evaluate(table(1, 50), table(2, 6), "marginals:3")
    assert said["answers_left_out"] == made.workload.size - 4
    assert [answer["query"] for answer in said["answers"]] == made.worst(4)["query"].tolist()


@pytest.mark.slow
def test_the_account_for_people_is_marked_and_names_the_bound(folder, capfd):
    record = smalldb.release(table(1, 50), "parities:2", epsilon=1, rows=6, rng=1).record
    (folder / "out.json").write_text(json.dumps(record))
    code, out, _ = called(
        capfd, "evaluate", "data.csv", "out.csv", "--record", "out.json", "--plot", "compared.svg"
    )
    lines, made = out.splitlines(), evaluate(table(1, 50), table(2, 6), "parities:2")
    assert code == 0
    assert lines[0] == "CONFIDENTIAL: computed from the data, not for publication"
    assert lines[1] == "parities:2: 6 queries after reduction"
    assert lines[2].startswith(
        f"largest error {float(made.max_error):.4f}, mean {float(made.mean_error):.4f}; "
    )
    assert lines[2].endswith(f"promises at most {record['bounds']['sharp']:.3f}"[:-1] + lines[2][-1])
    assert [line.split()[-1] for line in lines[5:11]] == [f"{error:.4f}" for error in made.worst()["error"]]
    assert lines[11:13] == [
        "",
        "distance of tables, mean and largest: 3 tables of 1, 3 tables of 2, 1 tables of 3 columns",
    ]
    assert (folder / "compared.svg").stat().st_mode & 0o777 == 0o600
    assert (folder / "compared.svg").read_text().lstrip().startswith("<?xml")
    # of other queries the record promises nothing
    code, out, _ = called(
        capfd, "evaluate", "data.csv", "out.csv", "--record", "out.json", "--queries", "marginals:1"
    )
    assert (code, "promises" in out) == (0, False)


def test_the_bound_of_any_record_is_shown(folder, capfd):
    for bounds, told in (
        ({"beta": "0.05", "released": 0.25}, 0.25),
        ({"beta": "0.05", "sharp": 0.5}, 0.5),
        ([1, 2], None),
        (None, None),
        ({"released": "0.1"}, None),
        ({"released": 10**400}, None),
        ({"released": 1}, 1.0),
    ):
        record = dict.fromkeys(record_schema()["required"])
        record |= {"queries": {"text": "parities:2"}, "bounds": bounds}
        (folder / "out.json").write_text(json.dumps(record))
        code, out, _ = called(capfd, "evaluate", "data.csv", "out.csv", "--record", "out.json", "--json")
        assert (code, json.loads(out)["bound"]) == (0, told), bounds


def test_real_columns_and_counts(folder, capfd):
    (folder / "people.toml").write_text(
        'queries = "conjunctions:1"\ncolumns.age = { kind = "cuts", cuts = [18, 65], range = [0, 99] }\n'
    )
    (folder / "real.csv").write_text("age,times\n17,3\n40,1\n")
    (folder / "made.csv").write_text("age\n8\n82\n")
    arguments = ("real.csv", "made.csv", "--schema", "people.toml", "--counts", "times")
    code, out, err = called(capfd, "evaluate", *arguments, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["answers"] == [
        {"query": "`age>=18`", "real": 0.25, "synthetic": 0.5, "error": 0.25},
        {"query": "`age>=65`", "real": 0.0, "synthetic": 0.5, "error": 0.5},
    ]


@pytest.fixture
def drawn(monkeypatch):
    """The figures that are drawn."""
    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: drawn.append(figure))
    return drawn


def test_the_picture_shows_both_tables(drawn):
    real, synthetic = table(1, 20), table(2, 9)
    plot_evaluation(*(Rows.from_frame(Domain(real.columns), frame) for frame in (real, synthetic)), "png")
    bars, heat = drawn[0].axes[:2]
    widths = [round(bar.get_width(), 12) for bar in bars.patches]
    assert widths == [round(share, 12) for share in (*real.mean(), *synthetic.mean())]
    off = synthetic.T @ synthetic / 9 - real.T @ real / 20
    assert np.asarray(heat.images[0].get_array()) == pytest.approx(off.to_numpy(), abs=1e-12)
    assert [label.get_text() for label in heat.get_xticklabels()] == ["a", "b", "c"]
    assert "CONFIDENTIAL" in drawn[0].get_suptitle()


def test_the_picture_of_columns_shows_categories_and_distances(drawn):
    domain = Domain([Column("job", ["none", "part", "full"]), "smoker"])
    real, synthetic = (Rows.from_codes(domain, np.array(r)) for r in ([[0, 1], [2, 0]], [[0, 0], [1, 1]]))
    plot_evaluation(real, synthetic, "png")
    bars, heat = drawn[0].axes[:2]
    assert [label.get_text() for label in bars.get_yticklabels()] == [
        *("job=none", "job=part", "job=full", "smoker=no", "smoker=yes")
    ]
    widths = [bar.get_width() for bar in bars.patches]
    assert widths == [0.5, 0, 0.5, 0.5, 0.5, 0.5, 0.5, 0, 0.5, 0.5]
    assert np.asarray(heat.images[0].get_array()).tolist() == [[0.5, 1], [1, 0]]


def test_distances_are_told_by_column(folder, capfd):
    (folder / "people.toml").write_text(
        'columns.age = { kind = "cuts", cuts = [18, 65], range = [0, 99], missing = true }\n'
        'columns.job = { kind = "categories", values = ["none", "part"] }\n'
        'columns.smoker = { kind = "bool" }\n'
    )
    (folder / "real.csv").write_text("age,job,smoker\n17,none,0\n40,part,1\n,part,0\n70,none,1\n")
    (folder / "made.csv").write_text("age,job,smoker\n17,none,0\n40,none,0\n")
    arguments = ("real.csv", "made.csv", "--schema", "people.toml")
    code, out, _ = called(capfd, "evaluate", *arguments, "--json")
    one, two, three = json.loads(out)["distances"]
    assert (code, [d["tables"] for d in (one, two, three)], one["left_out"]) == (0, [3, 3, 1], 0)
    assert one["by_column"] == {name: {"mean": 0.5, "largest": 0.5} for name in ("age", "job", "smoker")}
    assert (two["by_column"]["age"]["mean"], two["largest"], two["largest_cell"]) == (0.75, 0.75, 0.75)
    assert (one["independent_columns"], three["independent_columns"]["mean"]) == (
        {"mean": 0.0, "largest": 0.0},
        0.75,
    )
    code, out, _ = called(capfd, "evaluate", *arguments)
    lines = out.splitlines()
    at = lines.index(
        "distance of tables, mean and largest: 3 tables of 1, 3 tables of 2, 1 tables of 3 columns"
    )
    heads = [word for i in "123" for word in (f"{i}:", "mean", "largest")]
    assert lines[at + 3].split() == ["tables", "with", *heads]
    assert lines[at + 4].split() == ["age", "0.5000", "0.5000", "0.7500", "0.7500", "0.7500", "0.7500"]
    assert lines[at + 8].startswith("independent columns")
    assert (lines[at + 10], lines[at + 11].split()) == ("all columns together", ["synthetic"])


COLUMNS = Domain(
    [Column("town", ["a", "b", "c"]), Column("age", cuts=[18, 40, 65]), "smoker", Column("c", 3)]
)


def rows(seed, n, domain=COLUMNS):
    chance = np.random.default_rng(seed)
    codes = np.column_stack([chance.integers(0, k, n) for k in domain.sizes])
    if len(domain.sizes) > 1:
        codes[:, -1] = np.minimum(codes[:, 1], domain.sizes[-1] - 1)  # two columns go together
    return Rows.from_codes(domain, codes)


def listed(table):
    """Every row of the table, as a tuple of codes."""
    pairs = zip(table.codes().tolist(), table.counts.tolist(), strict=True)
    return [tuple(row) for row, times in pairs for _ in range(times)]


def by_definition(real, made, width, max_cells):
    """Tables -> TVD and largest difference of a cell, as fractions, and TVD of independent columns."""
    ours, theirs, sizes = listed(real), listed(made), real.domain.sizes
    margins = {
        (c, code): Fraction(sum(row[c] == code for row in ours), len(ours))
        for c, k in enumerate(sizes)
        for code in range(k)
    }
    found = {}
    for columns in combinations(range(len(sizes)), width):
        cells = list(product(*(range(sizes[c]) for c in columns)))
        if len(cells) > max_cells:
            continue
        ours_in, theirs_in = (
            Counter(tuple(row[c] for c in columns) for row in rows) for rows in (ours, theirs)
        )
        off, apart = [], Fraction(0)
        for cell in cells:
            a, b = Fraction(ours_in[cell], len(ours)), Fraction(theirs_in[cell], len(theirs))
            alone = prod(margins[c, code] for c, code in zip(columns, cell, strict=True))
            off.append(abs(a - b))
            apart += abs(a - alone)
        found[columns] = float(sum(off) / 2), float(max(off)), float(apart / 2)
    return found


@given(st.integers(0, 99), st.integers(1, 25), st.integers(1, 9), st.integers(1, 4), st.sampled_from([8, 99]))
def test_distances_are_those_of_the_definition(seed, n, m, width, max_cells):
    real, made = rows(seed, n), rows(seed + 1000, m)
    found = distances(real, made, width, max_cells)
    expected = by_definition(real, made, width, max_cells)
    assert found.tables == tuple(expected)
    assert found.left_out == len(list(combinations(range(4), width))) - len(expected)
    assert list(zip(found.tvd, found.largest, strict=True)) == [
        figures[:2] for figures in expected.values()
    ]  # exactly
    assert found.independent == pytest.approx([apart for *_, apart in expected.values()], abs=1e-14)
    for c in range(4):
        within = [figures[0] for columns, figures in expected.items() if c in columns]
        assert found.of_column(c).tolist() == within
    assert repr(found) == "<Distances: computed from the data>"


def test_a_table_is_at_no_distance_from_itself_and_counts_may_be_large():
    table = rows(1, 40)
    assert distances(table, table, 2).tvd.max() == 0
    many = Rows.from_codes(COLUMNS, table.codes(), table.counts * 2**52)
    other = Rows.from_codes(COLUMNS, rows(2, 30).codes(), rows(2, 30).counts * 2**50)
    small = distances(table, rows(2, 30), 2)
    assert distances(many, other, 2).tvd.tolist() == small.tvd.tolist()
    assert distances(many, other, 2).largest.tolist() == small.largest.tolist()


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(ValueError, match="over different domains"):
        distances(rows(1, 5), Rows.from_codes(Domain(["a"]), np.array([[1]])), 1)
    for width in (0, 5):
        with pytest.raises(ValueError, match="width must be from 1 to the 4 columns"):
            distances(rows(1, 5), rows(2, 5), width)
    with pytest.raises(DataError, match="has no rows"):
        distances(rows(1, 5), rows(2, 0), 1)


def test_an_evaluation_compares_what_it_can_in_seconds(monkeypatch):
    real, made = rows(1, 50), rows(2, 40)
    assert [found.width for found in evaluate(real, made).distances()] == [1, 2, 3]
    monkeypatch.setattr("smalldb.releasing.distances.MAX_VISITS", visits(real, made, 1))
    assert [found.width for found in evaluate(real, made).distances()] == [1, 3]
    narrow = [rows(seed, 2, Domain(["a", "b"])) for seed in (1, 2)]
    assert [found.width for found in evaluate(*narrow).distances()] == [1, 2]


def test_the_distances_of_pairs_are_those_of_the_tables():
    real, made = rows(1, 50), rows(2, 40)
    found = pair_distances(real, made)
    assert found.shape == (4, 4)
    for width in (1, 2):
        each = distances(real, made, width)
        for columns, tvd in zip(each.tables, each.tvd, strict=True):
            assert found[columns[0], columns[-1]] == found[columns[-1], columns[0]] == tvd
    assert np.array_equal(pair_distances(real, made, 2), found[:2, :2])
    wide = Domain([Column("a", 200), Column("b", 200), "c"])
    assert np.isnan(pair_distances(rows(1, 9, wide), rows(2, 9, wide))[0, 1])
    one = Domain([Column("a", 3)])
    assert pair_distances(rows(1, 9, one), rows(2, 9, one)).shape == (1, 1)


def test_measures_by_column_are_of_the_tables_that_have_the_column():
    made = evaluate(rows(1, 90), rows(2, 40))
    found = made.by_column().set_index(["measure", "of"])["value"]
    for each in made.distances():
        for c, name in [*enumerate(COLUMNS.names), (None, "all")]:
            own = [j for j, columns in enumerate(each.tables) if c is None or c in columns]
            assert found[f"tvd_mean_{each.width}", name] == pytest.approx(each.tvd[own].mean())
            assert found[f"tvd_largest_{each.width}", name] == each.tvd[own].max()
            assert found[f"cell_largest_{each.width}", name] == each.largest[own].max()
    errors = [float(error) for error in made.errors]
    assert found["query_mean", "all"] == pytest.approx(np.mean(errors))
    assert found["query_largest", "all"] == pytest.approx(max(errors))


def test_correlations_are_spearmans():
    real, made = rows(1, 90), rows(2, 40)
    by_hand = [
        pd.DataFrame(np.repeat(table.codes(), table.counts, axis=0)[:, [1, 2, 3]]).corr("spearman")
        for table in (real, made)
    ]
    assert rank_correlations(real) == pytest.approx(by_hand[0].to_numpy())
    found = evaluate(real, made).by_column().set_index(["measure", "of"])["value"]
    off = (by_hand[0] - by_hand[1]).abs().to_numpy()
    assert found["correlation_error", "age x c"] == pytest.approx(off[0, 2])
    assert found["correlation_mean", "all"] == pytest.approx(np.mean([off[0, 1], off[0, 2], off[1, 2]]))
    assert found["correlation_largest", "all"] == pytest.approx(off.max())
    alike = Rows.from_codes(COLUMNS, np.array([[0, 1, 0, 0], [1, 1, 1, 2]]))
    assert np.isnan(rank_correlations(alike)).tolist() == [
        [True] * 3,
        [True, False, False],
        [True, False, False],
    ]
    assert "nan" not in evaluate(real, alike).by_column().to_csv().lower()


@pytest.mark.parametrize("relation", list(Neighbours))
def test_simple_ways_come_near_the_data_as_epsilon_grows(relation):
    real = rows(1, 5000)
    tight = baselines(real, Fraction(10**6), relation)
    assert (tight[CELLS].histogram() == real.histogram()).all()
    for c in range(4):
        assert (tight[INDEPENDENT].table((c,)) == real.table((c,))).all()
    assert abs(rank_correlations(tight[INDEPENDENT])[0, 2]) < 0.1 < rank_correlations(real)[0, 2]
    even = Rows.from_codes(COLUMNS, COLUMNS.table(), np.full(72, 1000))
    loose = baselines(even, Fraction(1, 10), relation)
    assert {name: table.n for name, table in loose.items()} == {INDEPENDENT: 72_000, CELLS: 72_000}
    # geometric noise of rate epsilon / 2 or epsilon on each of 72 cells
    off = np.abs(loose[CELLS].histogram() - even.histogram()).mean()
    expected = 10 if relation is Neighbours.ADD_REMOVE else 20
    assert 0.7 * expected < off < 1.3 * expected
    again = baselines(even, Fraction(1, 10), relation)[INDEPENDENT]
    assert (again.words == loose[INDEPENDENT].words).all()


def test_simple_ways_hold_the_rules_and_leave_out_what_is_too_large():
    bound = Domain(["a", "b"], valid="~a | b")
    real = Rows.from_codes(bound, np.array([[0, 0], [0, 1], [1, 1], [1, 1]]))
    found = baselines(real, Fraction(10), Neighbours.REPLACE_ONE)
    assert found[INDEPENDENT].n <= 4 == found[CELLS].n  # rows of another category would have been refused
    wide = Domain([f"x{i}" for i in range(25)])
    real = Rows.from_codes(wide, np.eye(25, dtype=int))
    assert list(baselines(real, Fraction(1), Neighbours.REPLACE_ONE)) == [INDEPENDENT]


def test_whole_numbers_keep_the_sum_and_stay_near():
    values = np.random.default_rng(3).dirichlet(np.ones(50)) * 1000
    found = whole(values, 1000)
    assert found.sum() == 1000
    assert np.abs(found - values).max() < 1
    assert np.abs(np.cumsum(found) - np.cumsum(values)).max() <= 0.5 + 1e-9


def test_many_rows_are_thinned():
    real = Rows.from_codes(COLUMNS, np.array([[0, 0, 0, 0], [1, 1, 1, 1]]), np.array([3 << 18, 1 << 18]))
    codes = apart(real, SeededBits(1))
    assert (len(codes), int(codes[:, 0].sum())) == (1 << 18, 1 << 16)
    found = baselines(real, Fraction(1), Neighbours.REPLACE_ONE)
    assert (found[INDEPENDENT].n, found[CELLS].n) == (1 << 18, 1 << 20)
    assert np.abs(found[INDEPENDENT].table((0,)) - np.array([3 << 16, 1 << 16, 0])).max() < 20


@pytest.mark.slow  # scikit-learn may start a process, to count cores
def test_a_target_is_told_of_real_rows():
    pytest.importorskip("sklearn")
    real, made, none = rows(1, 400), rows(2, 400), Rows.from_codes(COLUMNS, np.array([[0, 0, 0, 0]]))
    found = evaluate(real, made).summary(target="c", epsilon=1)
    assert list(found.columns) == ["synthetic", INDEPENDENT, CELLS, "real"]
    assert (found.loc["accuracy", ["synthetic", "real"]] == 1).all()  # c follows from the age
    assert found.loc["accuracy", INDEPENDENT] < 0.8
    assert found.loc[["accuracy", "balanced_accuracy"]].notna().all(axis=None)
    constant = evaluate(real, none).summary(target="c")
    assert constant.loc["balanced_accuracy", "synthetic"] == pytest.approx(1 / 3)


def test_targets_that_cannot_be_taken_are_refused():
    found = evaluate(rows(1, 9), rows(2, 9))
    with pytest.raises(ValueError, match="no column 'smokr'; did you mean 'smoker'"):
        found.by_column(target="smokr")
    with pytest.raises(ValueError, match="at least one other column"):
        evaluate(*[Rows.from_codes(Domain(["a"]), np.array([[0], [1]]))] * 2).by_column(target="a")
    with pytest.raises(ValueError, match="epsilon"):
        found.by_column(epsilon=0)
    assert smalldb.evaluate is evaluate


@pytest.fixture
def of_files(workdir):
    chance = np.random.default_rng(1)
    frame = pd.DataFrame(chance.integers(0, 2, (60, 3)), columns=[*"abc"])
    frame.to_csv(workdir / "data.csv", index=False)
    made = smalldb.release(frame, epsilon="1/2", rows=8, rng=1)
    made.data.to_csv(workdir / "out.csv", index=False)
    (workdir / "out.json").write_text(json.dumps(made.record))
    return evaluate(frame, made.data)


def test_the_command_tells_the_same_for_people_and_machines(of_files, workdir, capfd):
    given = "evaluate", "data.csv", "out.csv", "--record", "out.json"
    code, out, err = called(capfd, *given)
    assert (code, err) == (0, "")
    at = out.splitlines().index("all columns together, beside simple ways at epsilon 0.5")
    expected = of_files.summary(epsilon="1/2")
    head, *lines = out.splitlines()[at + 1 :]
    assert head.split() == ["synthetic", *INDEPENDENT.split(), *CELLS.split()]
    assert len(lines) == len(expected)
    for line, values in zip(lines, expected.to_numpy().tolist(), strict=True):
        assert line.split()[-3:] == [f"{value:.4f}" for value in values]
    long = of_files.by_column(epsilon="1/2")
    code, out, _ = called(capfd, *given, "--json")
    assert json.loads(out)["by_column"] == long.to_dict("records")
    code, out, err = called(capfd, *given, "--csv")
    assert err == "CONFIDENTIAL: computed from the data, not for publication\n"
    assert out == long.to_csv(index=False)
    code, out, _ = called(capfd, "evaluate", "data.csv", "out.csv")
    assert "all columns together\n" in out
    assert INDEPENDENT + " " * 3 not in out.splitlines()[-1]
    # a private number of rows weighs the noise by its relation; epsilon is that of one row
    record = json.loads((workdir / "out.json").read_text())
    (workdir / "out.json").write_text(json.dumps(record | {"neighbours": "add-remove"}))
    alone = of_files.by_column(epsilon="1/2", neighbours="add-remove")
    assert called(capfd, *given, "--csv")[1] == alone.to_csv(index=False)
    record["privacy"] |= {"epsilon": "1", "rows_per_person": 2}
    (workdir / "out.json").write_text(json.dumps(record))
    assert called(capfd, *given, "--csv")[1] == long.to_csv(index=False)


def test_numbers_of_both_tables_stand_side_by_side(workdir, capfd):
    """Means, deviations and quantiles are those of pandas, without gaps; in Python, text and JSON."""
    schema = (
        'columns.x = { kind = "cuts", cuts = [3, 7], range = [0, 10], missing = ["NA"] }\n'
        'columns.k = { kind = "integers", range = [0, 5] }\ncolumns.b = { kind = "bool" }\n'
    )
    draw = np.random.default_rng(1)
    real = pd.DataFrame({"x": draw.uniform(0, 10, 300).round(2), "k": draw.integers(0, 6, 300), "b": 1})
    made = real.assign(x=(real["x"] / 2).round(3), b=0)
    real = real.assign(x=real["x"].astype(object).where(draw.random(300) > 0.1, "NA"))
    found = smalldb.evaluate(real, made, schema=schema).numbers.set_index(["column", "measure"])
    assert [*found.index.get_level_values(0).unique()] == ["x", "k"]
    for table, name in ((real, "real"), (made, "synthetic")):
        for column in "xk":
            values = pd.to_numeric(table[column], errors="coerce").dropna()
            own = found[name][column]
            assert own["mean"] == pytest.approx(values.mean())
            assert own["standard deviation"] == pytest.approx(values.std(ddof=0))
            ordered = np.sort(values)
            assert own["median"] == ordered[int(np.ceil(0.5 * len(ordered))) - 1]
    (workdir / "s.toml").write_text(schema)
    real.to_csv("real.csv", index=False)
    made.to_csv("made.csv", index=False)
    code, out, _ = called(capfd, "evaluate", "real.csv", "made.csv", "--schema", "s.toml", "--json")
    told = {(row["column"], row["measure"]): row for row in json.loads(out)["numbers"]}
    assert code == 0 and told["x", "mean"]["real"] == pytest.approx(found["real"]["x"]["mean"])
    code, out, _ = called(capfd, "evaluate", "real.csv", "made.csv", "--schema", "s.toml")
    assert code == 0 and "x, standard deviation" in out
    assert smalldb.evaluate(real[["b"]], made[["b"]]).numbers is None
