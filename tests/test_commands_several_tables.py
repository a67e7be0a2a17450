"""`generate --tables`: a folder of several tables from one payment, whole or not at all."""

import json
import os
import re
import shutil
import subprocess
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from calling import called

import smalldb
from smalldb.commands import tables as several_tables
from smalldb.files import unfinished
from smalldb.files.output_folders import OutputFolder
from smalldb.inference import Tables, combine, interval
from smalldb.releasing import imputed_tables
from smalldb.releasing.budget_ledger import Ledger
from smalldb.releasing.imputed_tables import streamed
from smalldb.releasing.record import with_measurements

GENERATE = ["generate", "data.csv", "--epsilon", "5", "--mechanism", "marginals", "--quiet"]
SCHEMA = """
file = { separator = ";" }
columns.ill = { kind = "bool", true = ["ja"], false = ["nein"] }
columns.age = { kind = "cuts", cuts = [40, 60], range = [20, 80] }
"""


@pytest.fixture
def workdir(workdir):
    coins = np.random.default_rng(1)
    data = pd.DataFrame({"ill": coins.random(200) < 0.3, "old": coins.random(200) < 0.5})
    data.astype(int).to_csv(workdir / "data.csv", index=False)
    return workdir


def released(seed):
    return smalldb.release(pd.read_csv("data.csv"), epsilon=5, mechanism="marginals", seed=seed)


def test_a_folder_has_the_tables_and_what_they_are_drawn_from(workdir, capfd):
    code, out, told = called(capfd, *[*GENERATE, "--tables", 3, "-o", "out", "--seed", 1, "--json"])
    assert code == 0 and "NOT PRIVATE" in told
    names = ["measurements.json", "record.json", "synthetic.csv", "tables.json"]
    tables = [f"table-0{k}.csv" for k in (1, 2, 3)]
    assert sorted(os.listdir("out")) == sorted(names + tables)
    record = json.loads((workdir / "out" / "record.json").read_text())
    assert record == json.loads(out) and record["privacy"]["epsilon"] == "5"
    how = json.loads((workdir / "out" / "tables.json").read_text())
    model = {"model_tables": 1, "model_contrasts": 0, "left_out": [], "rare": {}, "unmeasured": []}
    assert how == {"tables": 3, "rows": 200, **model}
    read = [pd.read_csv(f"out/{name}") for name in [*tables, "synthetic.csv"]]
    assert all(one.shape == (200, 2) and [*one.columns] == ["ill", "old"] for one in read)
    assert not read[0].equals(read[1])
    release = released(1)
    assert all(own.equals(one) for own, one in zip(release.tables(3, rng=1), read[:3], strict=True))
    real = pd.read_csv("data.csv")
    assert abs(combine([one.ill.mean() for one in read[:3]]).estimate - real.ill.mean()) < 0.05


def test_tables_are_written_as_the_input_is_read(workdir, capfd):
    (workdir / "schema.toml").write_text(SCHEMA)
    rows = "".join(f"{'ja' if k % 3 else 'nein'};{20 + k % 60}\n" for k in range(120))
    (workdir / "data.csv").write_text("ill;age\n" + rows)
    more = ["--schema", "schema.toml", "--tables", 2, "-o", "out", "--seed", 1]
    code, _, told = called(capfd, *GENERATE, *more)
    assert code == 0, told
    head, *lines = (workdir / "out" / "table-02.csv").read_text().splitlines()
    assert head == "ill;age" and len(lines) == 120
    assert all(re.fullmatch(r"(ja|nein);[2-8][0-9](\.[0-9]+)?", line) for line in lines)
    assert len({line.split(";")[1] for line in lines}) > 20  # drawn from bins, not their middles


def columns_of(number, workdir):
    coins = np.random.default_rng(2)
    frame = pd.DataFrame(coins.integers(0, 2, (300, number)), columns=[f"c{k}" for k in range(number)])
    frame.to_csv(workdir / "data.csv", index=False)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--mechanism", "census", "--rows", "3"], "is for marginals: census .* --mechanism marginals"),
        (["--strategy", "cells"], "three or more columns .* fewer rows than noise: add --strategy adaptive"),
        (
            ["--strategy", "contrasts", "--epsilon", "1.5"],
            "so much noise that hardly any table has them: take a",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused_before_anything_is_paid(workdir, capfd, more, said):
    columns_of(3 if "census" in more else 12, workdir)
    paid = ["--ledger", "ledger", "--budget", 10, *more, "--tables", 2, "-o", "out"]
    code, _, told = called(capfd, *GENERATE, *paid)
    assert code == 2 and re.search(said, told), told
    assert not (workdir / "ledger").exists() or not Ledger("ledger").read().records
    assert not (workdir / "out").exists()


def test_what_is_paid_is_released_where_cells_are_mostly_empty(workdir, capfd, monkeypatch):
    monkeypatch.setattr(several_tables, "check_drawable", lambda plan: None)
    columns_of(12, workdir)
    more = ["--tables", 2, "-o", "out", "--ledger", "ledger", "--budget", 10, "--json"]
    code, out, told = called(capfd, *GENERATE, *more, "--strategy", "cells")
    assert code == 4 and told.count("\n") == 1
    assert (
        "the release is paid, and stands in out without several tables; another run would pay again" in told
    )
    assert told.endswith("ask for shares and means instead (smalldb ask, release.ask)\n")
    assert json.loads(out) == json.loads((workdir / "out" / "record.json").read_text())
    assert len(Ledger("ledger").read().records) == 1
    assert sorted(os.listdir("out")) == ["measurements.json", "record.json", "synthetic.csv"]


@pytest.mark.parametrize("when", ["drawing", "writing"])
def test_an_error_leaves_no_folder(workdir, capfd, monkeypatch, when):
    def failing(*_, **__):
        raise OSError(28, "No space left on device")

    if when == "drawing":
        monkeypatch.setattr(imputed_tables, "streamed", failing)
    else:
        monkeypatch.setattr("smalldb.files.output_folders.fill", failing)
    before = {*unfinished.unfinished}  # of releases that other tests have killed
    code, _, told = called(capfd, *GENERATE, "--tables", 2, "-o", "out", "--seed", 1, "--record", "r.json")
    assert code == 3 and "no space left" in told
    assert os.listdir(workdir) == ["data.csv"] and unfinished.unfinished == before


def test_a_folder_that_was_begun_can_be_abandoned_or_swept(tmp_path):
    folder = OutputFolder(str(tmp_path / "out"))
    folder.write("a", "text")
    (begun,) = tmp_path.iterdir()
    other = OutputFolder(str(tmp_path / "out"))  # does not sweep what another one holds
    assert begun.exists()
    other.close()
    unfinished.abandon()
    assert not [*tmp_path.iterdir()]
    folder.close()
    left = tmp_path / begun.name
    left.mkdir()
    (left / "a").write_text("of a process that was killed")
    OutputFolder(str(tmp_path / "out")).close()
    assert not left.exists()


def test_an_empty_folder_is_taken_unless_it_is_a_mount_point(tmp_path, monkeypatch):
    (tmp_path / "out").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(os.path, "ismount", lambda path: path == str(tmp_path / "out"))
        with pytest.raises(ValueError, match="is a mount point"):
            OutputFolder(str(tmp_path / "out"))
    assert [each.name for each in tmp_path.iterdir()] == ["out"]
    folder = OutputFolder(str(tmp_path / "out"))
    folder.reserve("a", 4096)
    folder.write("a", b"text")
    folder.reserve("b", 4096)
    folder.remove("b")
    folder.place()
    folder.close()
    assert (tmp_path / "out" / "a").read_bytes() == b"text" and os.listdir(tmp_path / "out") == ["a"]


def test_a_sample_of_the_rows_of_each_draw(workdir, capfd):
    release = released(5)
    whole, some = release.tables(4, rng=3), release.tables(4, rows=50, rng=3)
    for k, (all_rows, few) in enumerate(zip(whole, some, strict=True)):
        assert len(few) == 50 and len(all_rows) == 200
        counts, own = (np.bincount(tables.codes(k) @ [1, 2], minlength=4) for tables in (whole, some))
        assert (own <= counts).all()  # without replacement
    with pytest.raises(ValueError, match="at most 200 rows"):
        release.tables(2, rows=201)
    with pytest.raises(ValueError, match="rows must be a whole number"):
        release.tables(2, rows=0)
    for name, rows, length in (("out", 30, 30), ("all", 5000, 200)):
        more = ["--tables", 2, "--table-rows", rows, "-o", name, "--seed", 1]
        assert called(capfd, *GENERATE, *more)[0] == 0
        assert len(pd.read_csv(f"{name}/table-02.csv")) == length
        assert json.loads((workdir / name / "tables.json").read_text())["rows"] == length


def r_has(package):
    program = shutil.which("Rscript")
    return (
        program and not subprocess.run([program, "-e", f"library({package})"], capture_output=True).returncode
    )


@pytest.mark.slow
def test_r_pools_the_same_numbers(workdir, capfd):
    """The lines of the page, in R, from the files alone: estimates and intervals are those of `combine`."""
    if not r_has("mitools"):
        pytest.skip("R with mitools is not installed")
    coins = np.random.default_rng(1)
    old = coins.random(500) < 0.4
    ill = coins.random(500) < 0.1 + 0.3 * old
    pd.DataFrame({"old": old, "ill": ill}).astype(int).to_csv("data.csv", index=False)
    assert called(capfd, *GENERATE, "--tables", 20, "-o", "release", "--seed", 1)[0] == 0
    pages = Path(__file__).parent.parent / "docs" / "several-tables.md"
    block, *others = re.findall(r"```r\n(.*?)```", pages.read_text(), re.DOTALL)
    blocks = block + (others[0] if r_has("mice") else "")
    done = subprocess.run(["Rscript", "-e", f"options(digits=12)\n{blocks}"], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    tables = [pd.read_csv(f"release/table-{k:02d}.csv") for k in range(1, 21)]

    def line(table):
        x, y = table.old - table.old.mean(), table.ill - table.ill.mean()
        slope = (x @ y) / (x @ x)
        return slope, ((y - slope * x) ** 2).sum() / (len(x) - 2) / (x @ x)

    def row(name, number):
        """The numbers of one of the rows of what R printed that begin with this."""
        found = [each.split() for each in done.stdout.splitlines() if each.strip().startswith(name)]
        return [float(each) for each in found[number][1:] if re.fullmatch(r"-?[0-9.]+(e-?[0-9]+)?", each)]

    slopes = combine(*zip(*map(line, tables), strict=True))
    told = [slopes.estimate, slopes.variance**0.5, *slopes.interval()]
    assert row("old ", 0)[:4] == pytest.approx(told, rel=1e-5)
    shares = combine([table.ill[table.old == 1].mean() for table in tables])
    assert row("ill ", 0)[:4] == pytest.approx(
        [shares.estimate, shares.variance**0.5, *shares.interval()], rel=1e-5
    )
    if r_has("mice"):
        assert row("2 ", 0)[:2] == pytest.approx(told[:2], rel=1e-5)
        assert row("2 ", 1)[-2:] == pytest.approx(told[2:], rel=1e-5)


def test_samples_are_random_among_the_rows(workdir):
    release = released(5)

    def drawn(rows):
        stream = streamed(release.measurements, 200, count=60, rows=rows, rng=3)
        return np.array([codes for codes, _ in islice(stream.draws, 60)])

    shares = drawn(20)[:, :, 1].mean(axis=1) - drawn(None)[:, :, 1].mean(axis=1)
    # hypergeometric: variance p (1 - p) / 20 * (1 - 20 / 200)
    assert abs(shares.mean()) < 4 * shares.std() / 60**0.5
    assert 0.5 < shares.var() / (0.25 / 20 * 0.9) < 1.7


def test_tables_from_public_files_know_what_was_measured(workdir, capfd):
    """Nothing of the data is left; values in bins have the measured means; warnings are as before."""
    schema = 'columns.age = { kind = "cuts", cuts = [40], range = [0, 100] }\n'
    schema += "".join(f'columns.{name} = {{ kind = "bool" }}\n' for name in "abc")
    (workdir / "s.toml").write_text(schema)
    bits = np.random.default_rng(1).integers(0, 2, (3000, 3)).astype(bool)
    frame = pd.DataFrame(bits, columns=[*"abc"]).assign(age=np.where(bits[:, 0], 90, 3))
    given = {"schema": schema, "epsilon": 2, "strategy": "adaptive", "certificate": 0, "means": "1/4"}
    made = smalldb.release(frame, measure_first=["a x b"], rng=1, **given)
    made.data.to_csv("new.csv", index=False)
    whole = with_measurements(made.record, made.plan, made.measurements, made.rows, None)
    (workdir / "r.json").write_text(json.dumps(whole))
    asked = ("tables", "r.json", "new.csv", "--schema", "s.toml", "--tables", 3, "--seed", 1)
    code, out, _ = called(capfd, *asked, "-o", "out")
    assert code == 0 and ("pairs of columns that were never measured together" in out)
    assert called(capfd, *asked, "-o", "again")[0] == 0 and called(capfd, *asked, "-o", "out")[0] == 2
    names = {path.name for path in (workdir / "out").iterdir()}
    others = {"tables.json", "measurements.json", "schema.toml"}
    assert names == {f"table-0{k}.csv" for k in (1, 2, 3)} | others
    for name in names:
        assert (workdir / "out" / name).read_bytes() == (workdir / "again" / name).read_bytes()
    tables, drawn = Tables.read(workdir / "out"), made.tables(3, rng=1)
    assert len(tables) == 3 and tables.unmeasured == drawn.unmeasured
    assert asdict(tables.made_by) == asdict(drawn.made_by)
    assert tables.grouped == drawn.grouped and list(tables[0].columns) == [*made.data.columns]
    assert tables[1].age.mean() == pytest.approx(frame.age.mean(), rel=0.1)
    assert len(tables[:2]) == 2 and tables[:2][0].equals(tables[0])
    how = json.loads((workdir / "out" / "tables.json").read_text())
    assert drawn.unmeasured and tuple(map(tuple, how["unmeasured"])) == drawn.unmeasured
    a, b = drawn.unmeasured[0]
    with pytest.warns(UserWarning, match="never measured together"):
        interval(lambda table: (table[a].astype(float) * table[b].astype(float)).mean(), tables)
    with pytest.warns(UserWarning, match=f"is about columns that were never measured .*{a} x {b}"):
        combine([1.0, 2.0, 3.0], tables=tables, columns=[b, a])
    (workdir / "other.toml").write_text(schema.replace("cuts = [40]", "cuts = [30, 40]"))
    assert called(capfd, *asked[:4], "other.toml", "-o", "third")[0] == 2


def test_tables_from_public_files_keep_the_orders_of_the_schema(workdir, capfd):
    """A record states them for people alone."""
    a, b, c = np.random.default_rng(2).integers(0, 3, (3, 3000))
    pd.DataFrame({"a": a, "b": a + b, "c": a + b + c + 1}).to_csv("abc.csv", index=False)
    columns = "".join(f'columns.{name} = {{ kind = "integers", range = [0, 7] }}\n' for name in "abc")
    (workdir / "abc.toml").write_text('valid = "a <= b < c"\n' + columns)
    rounds = ["--strategy", "adaptive", "--epsilon", 2, "--seed", 1, "--schema", "abc.toml"]
    assert called(capfd, "generate", "abc.csv", *rounds, "-o", "new.csv", "--record", "new.json")[0] == 0
    code, out, _ = called(capfd, "ask", "new.json", "a>=1")
    assert code == 0 and "measured: a" in out
    public = ["new.json", "new.csv", "--schema", "abc.toml"]
    code, _, told = called(capfd, "tables", *public, "--tables", 2, "--seed", 1, "-o", "out")
    assert code == 0, told
    for path in Path("out").glob("table-*.csv"):
        table = pd.read_csv(path)
        assert ((table.a <= table.b) & (table.b < table.c)).all()


def test_tables_of_yes_no_columns_need_no_schema(workdir, capfd):
    frame = pd.DataFrame(np.random.default_rng(1).integers(0, 2, (900, 2)), columns=["a", "b"])
    made = smalldb.release(frame, "marginals:2", epsilon=5, mechanism="marginals", strategy="cells", rng=1)
    made.data.to_csv("new.csv", index=False)
    (workdir / "r.json").write_text(json.dumps(made.record))
    assert called(capfd, "tables", "r.json", "new.csv", "--tables", 2, "-o", "out")[0] == 0
    tables = Tables.read(workdir / "out")
    assert tables[0].isin([0, 1]).all(axis=None) and len(tables[1]) == 900
