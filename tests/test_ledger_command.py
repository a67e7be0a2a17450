"""`generate --ledger`: spend first, then release; and `ledger`, which shows what is spent."""

import json
import os
from pathlib import Path

import pytest
from test_ledger import sealed

from smalldb.accounting import compose_records
from smalldb.cli import main
from smalldb.releasing.budget_ledger import Ledger

EARLIER = Path(__file__).parent / "earlier"  # files that earlier versions wrote
SMALL = "a,b\n" + "0,0\n0,1\n1,1\n1,1\n" * 500


@pytest.fixture
def folder(workdir):
    (workdir / "data.csv").write_text(SMALL)
    (workdir / "empty.csv").write_text("a,b\n")
    (workdir / "bad.csv").write_text("a,b\n7,8\n")
    return workdir


@pytest.fixture
def generate(folder, capsys):
    """Run `generate`; returns exit code, stdout and stderr."""

    def run(*arguments, data="data.csv", epsilon="0.4", rows="2", ledger="l"):
        code = main(["generate", data, "--epsilon", epsilon, "--rows", rows, "--ledger", ledger, *arguments])
        return code, *capsys.readouterr()

    return run


def test_releases_spend_until_nothing_is_left(generate, folder, capsys):
    spendings = [("0.4", "0.6", "release"), ("0.8", "0.2", "releases")]
    for i, (spent, left, name) in enumerate(spendings, 1):
        code, out, err = generate("--budget", "1")
        assert (code, out[:4]) == (0, "a,b\n")
        assert err.startswith(f"ledger:    {spent} of 1 spent, with this release, number {i}\n")
        assert main(["ledger", "l"]) == 0
        shown = (
            f"budget:    1, replace-one neighbours\nspent:     {spent}, by {i} {name}\nleft:      {left}\n"
        )
        assert capsys.readouterr().out == shown
    refused = "smalldb: epsilon: the release needs 0.4, and 0.2 of the budget of 1 is left\n"
    assert generate("-o", "out.csv") == (5, "", refused)
    assert sorted(os.listdir(folder)) == ["bad.csv", "data.csv", "empty.csv", "l"]
    assert generate("--quiet", epsilon="0.2")[0::2] == (0, "")
    assert Ledger("l").read().left == 0


@pytest.mark.parametrize(
    ("changes", "arguments", "spent"),
    [
        ({"data": "none.csv"}, [], None),
        ({"epsilon": "0"}, [], None),
        ({"rows": "1000000"}, ["--mechanism", "census"], None),
        ({}, ["-o", "no/such/folder"], None),
        ({}, ["--seed", "1"], None),
        ({"epsilon": "2"}, [], None),
        ({}, ["-o", "l"], None),
        ({}, ["-o", "L"], None),
        ({}, ["--record", "no/../l"], None),
        ({}, ["--report", "out.txt"], None),
        ({"data": "bad.csv"}, [], 0),
        ({"data": "empty.csv"}, [], 0),
        ({"data": "bad.csv", "epsilon": "2"}, [], None),
        ({"data": "empty.csv"}, ["--neighbours", "add-remove"], 1),
    ],
)
def test_what_is_refused_spends_nothing(generate, folder, changes, arguments, spent):
    code, out, err = generate("--budget", "1", *arguments, **changes)
    assert code == (0 if spent else 5 if changes.get("epsilon") == "2" else 2)
    assert spent or (out, len(err.splitlines())) == ("", 1)
    assert os.path.exists("l") == (spent is not None)
    if spent is not None:
        assert len(Ledger("l").read().records) == spent
    if changes.get("epsilon") == "2":  # before the data are read
        assert "is left" in err


def test_a_table_that_is_too_large_is_refused_before_anything_is_spent(generate, folder):
    (folder / "s.toml").write_text("[columns]\na = { kind = 'bool' }\nb = { kind = 'bool' }\n")
    (folder / "large.csv").write_text(f"a,b,n\n0,1,{2**40}\n1,1,1\n")
    arguments = ("--schema", "s.toml", "--counts", "n", "--neighbours", "add-remove", "--budget", "1")
    code, out, err = generate(*arguments, data="large.csv")
    assert (code, out, "more than 2^40 rows" in err) == (2, "", True)
    assert Ledger("l").read().records == ()


def test_an_unfinished_line_is_told(generate, folder, capsys):
    generate("--budget", "1")
    with (folder / "l").open("ab") as file:
        file.write(b"0123456789abc")
    assert main(["ledger", "l", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["torn"] is True
    assert main(["ledger", "l"]) == 0
    assert "unfinished: the last line" in capsys.readouterr().out
    assert "an unfinished line of a run that released nothing was removed" in generate()[2]
    assert main(["ledger", "l", "--json", "--delta", "1e-6"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["budget"], shown["spent"], shown["left"], shown["torn"]) == ("1", "0.8", "0.2", False)
    assert len(shown["releases"]) == 2
    assert shown["composed"]["epsilon"] == compose_records(shown["releases"], delta="1e-6").epsilon
    assert main(["ledger", "data.csv"]) == 2
    assert "damaged, or no ledger" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["0.2.0", "filter"])
def test_a_ledger_that_an_earlier_version_wrote_is_read_and_spent_from(workdir, capsys, name):
    """The files are those that these versions wrote; what they wrote stays as it is."""
    before = (EARLIER / f"{name}.ledger").read_bytes()
    Path("l").write_bytes(before)
    Path("data.csv").write_text("a,b\n" + "0,1\n1,1\n" * 100)
    assert main(["ledger", "l", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["spent"], said["left"], said["finished"]) == ("0.25", "0.75", [])
    given = ["generate", "data.csv", "--epsilon", "1/2", "-o", "out.csv", "--ledger", "l", "--quiet"]
    assert main([*given, "--record", "out.json", "--release-id", "a"]) == 0
    assert main(["ledger", "l", "--records", "out.json"]) == 0
    assert Path("l").read_bytes().startswith(before)
    assert main([*given, "--release-id", "b"]) == 5


@pytest.mark.parametrize("name", ["0.2.0", "filter"])
def test_a_ledger_that_a_later_version_wrote_is_left_alone(folder, capsys, name):
    """What its first line says besides, or otherwise, may change what all others mean."""
    head = json.loads((EARLIER / f"{name}.ledger").read_text().split("\n")[0][65:])
    given = ["generate", "data.csv", "--epsilon", "1/2", "-o", "out.csv", "--ledger", "l"]
    for change in ({"ledger": 3}, {"ledger": 3 - head["ledger"]}, {"unit": "person"}, {"budget": "2/2"}):
        Path("l").write_bytes(sealed(json.dumps(head | change)))
        before = Path("l").read_bytes()
        for refused in (["ledger", "l"], given):
            assert main(refused) == 2 and "damaged, or no ledger" in capsys.readouterr().err
        assert Path("l").read_bytes() == before and not Path("out.csv").exists()
    Path("l").write_bytes(sealed(json.dumps(head)))
    assert main(given) == 0


def test_records_that_earlier_versions_wrote_are_read(capsys):
    records = [str(EARLIER / f"{name}.json") for name in ("0.2.0", "calibrated")]
    assert main(["account", "--records", *records, "--delta", "1e-6", "--json"]) == 0
    assert 0 < json.loads(capsys.readouterr().out)["epsilon"] < 0.5
    marginals = str(EARLIER / "marginals.json")
    assert main(["ask", marginals, "a=1", "--json"]) == 0
    (answer,) = json.loads(capsys.readouterr().out)
    assert answer["known"] == "measured" and answer["low"] < 0.525 < answer["high"]
    assert main(["ledger", str(EARLIER / "0.2.0.ledger"), "--records", records[0]]) == 2
    assert "the record names no line of a ledger" in capsys.readouterr().err
