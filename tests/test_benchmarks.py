"""The programs of benchmarks: all are named, and the one that runs them tells what became slower."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "benchmarks"


def test_every_program_stands_in_the_readme():
    told = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert not [path.name for path in FOLDER.glob("*.py") if f"benchmarks/{path.name}" not in told]


def test_every_ratio_that_is_kept_is_one():
    for size in json.loads((FOLDER / "ratios.json").read_text(encoding="utf-8")).values():
        assert len(size["figures"]) >= 15
        for figure in size["figures"].values():
            assert 0 < figure["ratio"] == pytest.approx(figure["ours"] / figure["yardstick"])


@pytest.mark.slow
def test_what_is_slower_than_in_the_last_run_is_told(tmp_path):
    last, saved = tmp_path / "last.json", tmp_path / "new.json"

    def run(*given):
        command = [
            sys.executable, str(FOLDER / "all.py"), "--quick", "--only", "planned", "--last", str(last),
        ]  # fmt: skip
        return subprocess.run([*command, *given], capture_output=True, text=True)

    first = run()
    found = json.loads(first.stdout)["quick"]["figures"]
    (name,) = found
    assert (first.returncode, "times the last" in first.stderr) == (0, False)
    for factor, code in ((1e-3, 1), (1e3, 0)):
        figures = {name: {"ratio": found[name]["ratio"] * factor}, "another": {"ratio": 1}}
        last.write_text(json.dumps({"quick": {"figures": figures}, "full": 5}))
        done = run("--save", str(saved))
        assert (done.returncode, done.stdout) == (code, "")
        assert (f"worse than the last run: {name}" in done.stderr) == bool(code)
        assert "times the last" in done.stderr
        new = json.loads(saved.read_text())
        assert new["full"] == 5 and new["quick"]["figures"]["another"] == {"ratio": 1}
        assert new["quick"]["figures"][name]["ratio"] > 0


@pytest.mark.slow
def test_a_million_distinct_rows_take_the_memory_that_the_page_says(monkeypatch):
    """Also where few are distinct."""
    monkeypatch.syspath_prepend(str(FOLDER))
    scale = importlib.import_module("scale")
    text = scale.PAGE.read_text(encoding="utf-8").partition("<!-- scale.py -->")[2]
    lines = [line.split("|") for line in text.partition("<!-- /scale.py -->")[0].splitlines()]
    told = {(line[1].strip(), line[2].strip()): line for line in lines if len(line) > 3}
    for few, which in ((False, "nearly all"), (True, f"{scale.FEW:,}")):
        _, said = map(float, told["1,000,000", which][3].split(","))
        _, peak = scale.figures(10**6, few, ["smalldb"])["smalldb"]
        assert 0.6 * said < peak < 1.3 * said
