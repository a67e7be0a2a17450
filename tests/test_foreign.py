"""Commands on a system without fork, file locks and many signals: what works, and what is refused."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
FOREIGN = str(Path(__file__).with_name("foreign.py"))
WORKERS = str(ROOT / "examples" / "autoworkers.csv")


def run(folder, *arguments):
    given = [sys.executable, FOREIGN, *map(str, arguments)]
    return subprocess.run(given, cwd=folder, capture_output=True, text=True)


def smalldb(folder, *arguments):
    return run(folder, "-m", "smalldb", *arguments)


def test_a_release_is_made_read_and_asked(tmp_path):
    made = [
        "generate", WORKERS, "--epsilon", 1, "-o", "new.csv", "--record", "new.json", "--report", "new.html",
    ]  # fmt: skip
    for name in ("new.csv", "new.json", "new.html"):  # they are written over
        (tmp_path / name).touch()
    done = smalldb(tmp_path, *made)
    assert done.returncode == 0 and "1-differential privacy" in done.stderr
    assert len((tmp_path / "new.csv").read_text().splitlines()) == 1842
    assert json.loads((tmp_path / "new.json").read_text())["private"]
    asked = smalldb(tmp_path, "ask", "new.json", "smoker")
    assert (asked.returncode, asked.stderr) == (0, "") and "level 0.95" in asked.stdout
    assert smalldb(tmp_path, "evaluate", WORKERS, "new.csv").returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.csv", "new.html", "new.json"]


def test_a_folder_of_tables_appears_whole(tmp_path):
    """Also over an empty folder, and beside what a killed run has left."""
    left = tmp_path / ".tables.1-1-0.part"
    left.touch()
    (tmp_path / "tables").mkdir()
    chosen = ["generate", WORKERS, "--epsilon", 1, "--mechanism", "marginals", "--strategy", "adaptive"]
    chosen += ["--seed", 1]
    done = smalldb(tmp_path, *chosen, "--tables", 2, "--table-rows", 20, "-o", "tables")
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "tables").glob("*.csv"))) >= 2
    assert {path.name for path in tmp_path.iterdir()} == {"tables", left.name}


def test_what_needs_locks_is_refused_in_a_line_and_leaves_nothing(tmp_path):
    given = ["generate", WORKERS, "--epsilon", 1, "-o", "new.csv"]
    for more, said in {
        ("--ledger", "spent.ledger", "--budget", 3): "ledger: this system has no file locks",
        ("--checkpoint", "kept"): "checkpoint: this system has no file locks",
    }.items():
        done = smalldb(tmp_path, *given, *more)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr and done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())
