"""The order in which a release is carried out, whatever its source: see `smalldb.releasing.pipeline`."""

import io
import json
import warnings

import numpy as np
import pandas as pd
import pytest
from dying import Killed, stop_after

import smalldb
from queries import Domain, Rows
from smalldb.cli import main
from smalldb.exact.bits import SystemBits
from smalldb.marginals.curator import Curator
from smalldb.releasing import pipeline
from smalldb.releasing.budget_ledger import Ledger
from smalldb.releasing.pipeline import Destination, carry_out
from smalldb.releasing.table_source import Source, file_source, table_source
from smalldb.releasing.transaction import begun_beside
from smalldb.schema.reading import OpenSchema

FRAME = pd.DataFrame(
    {"flag": np.arange(60) % 2, "pay": np.arange(60) * 7 % 50, "left": "out"}, columns=["pay", "left", "flag"]
)
SCHEMA = (
    'ignore = ["left"]\ncolumns.flag.kind = "bool"\n'
    'columns.pay = { kind = "cuts", cuts = "learn", bins = 3, range = [0, 50], share = 0.2 }\n'
)


class Watching(Destination):
    """Notes each step, and what the ledger and the folders beside it say then."""

    def __init__(self, ledger):
        self.ledger, self.steps = ledger, []

    def note(self, step):
        self.steps.append((step, len(self.ledger.read().records), len(begun_beside(self.ledger.path))))

    def noting(self, step, real):
        def noted(*given, **more):
            self.note(step)
            return real(*given, **more)

        return noted

    def __enter__(self):
        self.note("open")
        return self

    def __exit__(self, *error):
        self.note("place")

    def rehearse(self, source):
        self.note("rehearse")

    def reserve(self, plan):
        self.note(f"reserve for {plan.foreseen_rows}")

    def paid(self, account, before):
        self.note("paid")

    def write(self, made):
        self.note("write")


@pytest.mark.parametrize("kind", ["path", "frame", "rows"])
def test_the_steps_have_one_order(tmp_path, monkeypatch, kind):
    """What is public, the data, the payment, the draw, the outputs; and only then the folder is forgotten."""
    schema, flags = OpenSchema(SCHEMA), FRAME[["flag"]]
    FRAME.to_csv(tmp_path / "data.csv", index=False)
    source = {
        "path": lambda: file_source(str(tmp_path / "data.csv"), schema),
        "frame": lambda: table_source(FRAME, schema=schema),
        "rows": lambda: table_source(Rows.from_frame(Domain(["flag"]), flags)),
    }[kind]()
    watching = Watching(Ledger(tmp_path / "l", 1))
    for owner, name in ((Source, "read"), (pipeline, "learn"), (Curator, "run")):
        monkeypatch.setattr(owner, name, watching.noting(name, getattr(owner, name)))
    made = carry_out(
        source, None, {"epsilon": 1}, bits=SystemBits(), ledger=watching.ledger, destination=watching
    )
    learning = [("learn", 1, 1), ("read", 1, 1)] if kind != "rows" else []
    assert watching.steps == [
        ("open", 0, 0),
        ("rehearse", 0, 0),
        ("read", 0, 0),
        ("reserve for 60", 0, 0),
        ("run", 0, 0),  # of a made table: what is imported is imported before the payment
        ("paid", 1, 1),
        *learning,
        ("run", 1, 1),
        ("write", 1, 1),
        ("place", 1, 1),
    ]
    assert begun_beside(watching.ledger.path) == []
    assert list(made.data.columns) == (["pay", "flag"] if learning else ["flag"])


def test_a_file_is_released_like_the_table_in_it(tmp_path):
    FRAME.to_csv(tmp_path / "data.csv", index=False)
    given = {"schema": SCHEMA, "epsilon": 1, "seed": 3}
    made, other = (smalldb.release(data, **given) for data in (tmp_path / "data.csv", FRAME))
    assert made.record == other.record and made.data.equals(other.data)
    closed = SCHEMA.replace('cuts = "learn", bins = 3', "cuts = [10, 20]").replace(", share = 0.2", "")
    given = {"schema": closed, "epsilon": 1, "seed": 3}
    made, other = (smalldb.release(data, **given) for data in (str(tmp_path / "data.csv"), FRAME))
    assert made.record == other.record and made.data.equals(other.data)


def test_where_nothing_is_expected_a_library_warns_and_a_command_asks_before_the_payment(
    tmp_path, monkeypatch, capsys
):
    """The answer follows from public numbers; a warning that is an error refuses, too."""
    few, ledger = FRAME[["flag"]].head(4), Ledger(tmp_path / "l", 9)
    said = "nothing useful is expected: even if all of epsilon went to single columns, noise would move"
    with pytest.warns(smalldb.EmptyReleaseWarning, match=said):
        made = smalldb.release(few, epsilon=1, ledger=ledger)
    assert made.plan.nothing_expected is not None and len(ledger.read().records) == 1
    with warnings.catch_warnings(), pytest.raises(smalldb.EmptyReleaseWarning):
        warnings.simplefilter("error", smalldb.EmptyReleaseWarning)
        smalldb.release(few, epsilon=1, ledger=ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("error", smalldb.EmptyReleaseWarning)
        smalldb.release(FRAME[["flag"]], epsilon=1, ledger=ledger)
    assert len(ledger.read().records) == 2
    few.to_csv(tmp_path / "data.csv", index=False)
    monkeypatch.chdir(tmp_path)
    given = ["generate", "data.csv", "--epsilon", "1", "--ledger", "l", "-o", "out.csv", "--quiet"]
    plain, reads = Source.read, []

    def reading(*given):
        reads.append(given)
        return plain(*given)

    monkeypatch.setattr(Source, "read", reading)
    for private in (False, True):
        more = ["--neighbours", "add-remove", "--n-max", "2"] if private else []
        assert main([*given, *more]) == 2
        assert capsys.readouterr().err == (
            f"smalldb: {said} each share by about 71 of 100 points: "
            "take more rows or a larger epsilon, or add --even-if-empty to spend it all the same\n"
        )
        assert len(reads) == 1  # n of a file is not known before; a public guess of it is
        assert len(Ledger("l").read().records) == 2
    assert main([*given, "--even-if-empty"]) == 0
    assert (tmp_path / "out.csv").exists() and len(Ledger("l").read().records) == 3
    for answer, code in (("n", 2), ("", 2), ("yes", 0)):
        monkeypatch.setattr("sys.stdin", Terminal(answer + "\n"))
        monkeypatch.setattr("sys.stderr", Terminal())
        assert main(given) == code, answer
    assert len(Ledger("l").read().records) == 4


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_what_a_ledger_cannot_pay_is_refused_before_the_data_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(Source, "read", lambda *_: pytest.fail("read"))
    with pytest.raises(ValueError, match="of the budget of 1 is left"):
        smalldb.release(FRAME[["flag"]], epsilon=2, ledger=Ledger(tmp_path / "l", 1))


def test_the_ledger_tells_which_paid_releases_go_on(tmp_path, monkeypatch, capsys):
    """By their folders and what the ledger says of them: nothing of the data."""
    ledger, frame = Ledger(tmp_path / "people", 9), FRAME[["flag"]]
    smalldb.release(frame, epsilon=1, ledger=ledger)
    for parts, epsilon in ((2, "5"), (3, "1/2")):  # killed before its payment is saved, and behind it
        with monkeypatch.context() as patched, pytest.raises(Killed):
            if parts == 2:
                patched.setattr(Ledger, "spend", lambda *_: (_ for _ in ()).throw(Killed()))
            stop_after(patched, parts + (parts == 2))
            smalldb.release(frame, epsilon=epsilon, ledger=ledger)
    (paid,) = (path for path in begun_beside(ledger.path) if (path / "000002.shard").exists())
    assert len(begun_beside(ledger.path)) == 2
    assert main(["ledger", ledger.path]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[3:] == [
        f"unfinished: release 2, of epsilon 0.5, in {paid}:",
        "            the smalldb generate --ledger ... that began it goes on, and pays no second time",
    ]
    assert main(["ledger", ledger.path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["unfinished"] == [{"release": 2, "folder": str(paid)}]
    smalldb.release(frame, epsilon="1/2", ledger=ledger)
    assert main(["ledger", ledger.path]) == 0
    assert "unfinished" not in capsys.readouterr().out
