"""Measures column by column, beside simple ways; each measure by its definition."""

import json
from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from calling import called

import smalldb
from queries import Column, Domain, Rows
from smalldb.exact.bits import SeededBits
from smalldb.mechanisms import Neighbours
from smalldb.releasing.distances import CELLS, INDEPENDENT, apart, baselines, rank_correlations, whole
from smalldb.releasing.evaluation import evaluate

DOMAIN = Domain([Column("town", ["a", "b", "c"]), Column("age", cuts=[18, 40, 65]), "smoker", Column("c", 3)])


def rows(seed, n, domain=DOMAIN):
    chance = np.random.default_rng(seed)
    codes = np.column_stack([chance.integers(0, k, n) for k in domain.sizes])
    codes[:, -1] = np.minimum(codes[:, 1], domain.sizes[-1] - 1)  # two columns go together
    return Rows.from_codes(domain, codes)


def one_by_one(table):
    return np.repeat(table.codes(), table.counts, axis=0)


def test_distances_and_errors_are_those_of_the_definition():
    real, made = rows(1, 90), rows(2, 40)
    found = evaluate(real, made).by_column().set_index(["measure", "of"])["value"]
    for width in (1, 2, 3):
        tvd, cell = {}, {}
        for columns in combinations(range(4), width):
            shares = [
                pd.DataFrame(one_by_one(table)[:, columns]).value_counts(normalize=True)
                for table in (real, made)
            ]
            off = shares[0].sub(shares[1], fill_value=0).abs()
            tvd[columns], cell[columns] = off.sum() / 2, off.max()
        for c, name in [*enumerate(DOMAIN.names), (None, "all")]:
            own = [columns for columns in tvd if c is None or c in columns]
            assert found[f"tvd_mean_{width}", name] == pytest.approx(np.mean([tvd[s] for s in own]))
            assert found[f"tvd_largest_{width}", name] == pytest.approx(max(tvd[s] for s in own))
            assert found[f"cell_largest_{width}", name] == pytest.approx(max(cell[s] for s in own))
    errors = [float(error) for error in evaluate(real, made).errors]
    assert found["query_mean", "all"] == pytest.approx(np.mean(errors))
    assert found["query_largest", "all"] == pytest.approx(max(errors))


def test_correlations_are_spearmans():
    real, made = rows(1, 90), rows(2, 40)
    by_hand = [pd.DataFrame(one_by_one(table)[:, [1, 2, 3]]).corr("spearman") for table in (real, made)]
    assert rank_correlations(real) == pytest.approx(by_hand[0].to_numpy())
    found = evaluate(real, made).by_column().set_index(["measure", "of"])["value"]
    off = (by_hand[0] - by_hand[1]).abs().to_numpy()
    assert found["correlation_error", "age x c"] == pytest.approx(off[0, 2])
    assert found["correlation_mean", "all"] == pytest.approx(np.mean([off[0, 1], off[0, 2], off[1, 2]]))
    assert found["correlation_largest", "all"] == pytest.approx(off.max())
    alike = Rows.from_codes(DOMAIN, np.array([[0, 1, 0, 0], [1, 1, 1, 2]]))
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
    even = Rows.from_codes(DOMAIN, DOMAIN.table(), np.full(72, 1000))
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
    real = Rows.from_bits(bound, np.array([[0, 0], [0, 1], [1, 1], [1, 1]]))
    found = baselines(real, Fraction(10), Neighbours.REPLACE_ONE)
    assert found[INDEPENDENT].n <= 4 == found[CELLS].n  # rows of another category would have been refused
    wide = Domain([f"x{i}" for i in range(25)])
    real = Rows.from_bits(wide, np.eye(25, dtype=int))
    assert list(baselines(real, Fraction(1), Neighbours.REPLACE_ONE)) == [INDEPENDENT]


def test_whole_numbers_keep_the_sum_and_stay_near():
    values = np.random.default_rng(3).dirichlet(np.ones(50)) * 1000
    found = whole(values, 1000)
    assert found.sum() == 1000
    assert np.abs(found - values).max() < 1
    assert np.abs(np.cumsum(found) - np.cumsum(values)).max() <= 0.5 + 1e-9


def test_many_rows_are_thinned():
    real = Rows.from_codes(DOMAIN, np.array([[0, 0, 0, 0], [1, 1, 1, 1]]), np.array([3 << 18, 1 << 18]))
    codes = apart(real, SeededBits(1))
    assert (len(codes), int(codes[:, 0].sum())) == (1 << 18, 1 << 16)
    found = baselines(real, Fraction(1), Neighbours.REPLACE_ONE)
    assert (found[INDEPENDENT].n, found[CELLS].n) == (1 << 18, 1 << 20)
    assert np.abs(found[INDEPENDENT].table((0,)) - np.array([3 << 16, 1 << 16, 0])).max() < 20


@pytest.mark.slow  # scikit-learn may start a process, to count cores
def test_a_target_is_told_of_real_rows():
    pytest.importorskip("sklearn")
    real, made, none = rows(1, 400), rows(2, 400), Rows.from_codes(DOMAIN, np.array([[0, 0, 0, 0]]))
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
        evaluate(*[Rows.from_bits(Domain(["a"]), np.array([[0], [1]]))] * 2).by_column(target="a")
    with pytest.raises(ValueError, match="epsilon"):
        found.by_column(epsilon=0)
    assert smalldb.evaluate is evaluate


@pytest.fixture
def folder(tmp_path, monkeypatch):
    chance = np.random.default_rng(1)
    frame = pd.DataFrame(chance.integers(0, 2, (60, 3)), columns=[*"abc"])
    frame.to_csv(tmp_path / "data.csv", index=False)
    made = smalldb.release(frame, epsilon="1/2", rows=8, rng=1)
    made.data.to_csv(tmp_path / "out.csv", index=False)
    (tmp_path / "out.json").write_text(json.dumps(made.record))
    monkeypatch.chdir(tmp_path)
    return evaluate(frame, made.data)


def test_the_command_tells_the_same_for_people_and_machines(folder, capfd):
    given = "evaluate", "data.csv", "out.csv", "--record", "out.json"
    code, out, err = called(capfd, *given)
    assert (code, err) == (0, "")
    at = out.splitlines().index("all columns together, beside simple ways at epsilon 0.5")
    expected = folder.summary(epsilon="1/2")
    head, *lines = out.splitlines()[at + 1 :]
    assert head.split() == ["synthetic", *INDEPENDENT.split(), *CELLS.split()]
    assert len(lines) == len(expected)
    for line, values in zip(lines, expected.to_numpy().tolist(), strict=True):
        assert line.split()[-3:] == [f"{value:.4f}" for value in values]
    long = folder.by_column(epsilon="1/2")
    code, out, _ = called(capfd, *given, "--json")
    assert json.loads(out)["by_column"] == long.to_dict("records")
    code, out, err = called(capfd, *given, "--csv")
    assert err == "CONFIDENTIAL: computed from the data, not for publication\n"
    assert out == long.to_csv(index=False)
    code, out, _ = called(capfd, "evaluate", "data.csv", "out.csv")
    assert "all columns together\n" in out
    assert INDEPENDENT + " " * 3 not in out.splitlines()[-1]


def test_a_private_number_of_rows_weighs_the_noise_by_its_relation(folder, tmp_path, capfd):
    record = json.loads((tmp_path / "out.json").read_text())
    (tmp_path / "out.json").write_text(json.dumps(record | {"neighbours": "add-remove"}))
    _, out, _ = called(capfd, "evaluate", "data.csv", "out.csv", "--record", "out.json", "--csv")
    assert out == folder.by_column(epsilon="1/2", neighbours="add-remove").to_csv(index=False)
    record["privacy"] |= {"epsilon": "1", "rows_per_person": 2}
    (tmp_path / "out.json").write_text(json.dumps(record))
    _, out, _ = called(capfd, "evaluate", "data.csv", "out.csv", "--record", "out.json", "--csv")
    assert out == folder.by_column(epsilon="1/2").to_csv(index=False)
    code, _, err = called(capfd, "evaluate", "data.csv", "out.csv", "--epsilon", "-1")
    assert (code, err.startswith("smalldb: epsilon must")) == (2, True)


def test_numbers_of_both_tables_stand_side_by_side(tmp_path, monkeypatch, capfd):
    """Means, deviations and quantiles are those of pandas, without gaps; in Python, text and JSON."""
    monkeypatch.chdir(tmp_path)
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
    (tmp_path / "s.toml").write_text(schema)
    real.to_csv("real.csv", index=False)
    made.to_csv("made.csv", index=False)
    code, out, _ = called(capfd, "evaluate", "real.csv", "made.csv", "--schema", "s.toml", "--json")
    told = {(row["column"], row["measure"]): row for row in json.loads(out)["numbers"]}
    assert code == 0 and told["x", "mean"]["real"] == pytest.approx(found["real"]["x"]["mean"])
    code, out, _ = called(capfd, "evaluate", "real.csv", "made.csv", "--schema", "s.toml")
    assert code == 0 and "x, standard deviation" in out
    assert smalldb.evaluate(real[["b"]], made[["b"]]).numbers is None
