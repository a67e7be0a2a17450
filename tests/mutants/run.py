"""Apply each mutant to a copy of the tree: its tests, which pass on the tree as it is, must fail.

    nice -n 10 python tests/mutants/run.py [--only PATTERN] [--jobs JOBS] [--at-once] [--matrix KILLERS.json]

Not run in CI: it takes some seconds a mutant. PATTERN is a regular expression, looked for in "file: name".
With --at-once the tests are not run on the tree as it is, which is known to pass them.
With --matrix each mutant meets all files of tests that the mutants of its room name: minutes a mutant.
KILLERS.json then holds the functions that fail, by mutant; what it holds of other mutants stays.
Each run is a fork of this process, which has loaded all other packages before.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import hypothesis.strategies  # noqa: F401 - loaded once, here, and not anew for each mutant
import numba  # noqa: F401
import pandas  # noqa: F401
import pytest
import scipy.optimize
import scipy.stats  # noqa: F401
from listing import ROOT, Mutant, mutants

SECONDS = 300  # of the processor: a mutant whose tests never end fails them, too
HOUR = 3600  # of the clock, for tests that wait for ever
# no asserts are rewritten, no doctests looked for, and tests that take long are run, too
QUICK = ["-q", "--assert=plain", "-o", "addopts=--import-mode=importlib"]
QUICK += ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:unraisableexception"]
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis")


class Failures:
    """A plugin of pytest that collects the functions that fail."""

    def __init__(self) -> None:
        self.functions = set[str]()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take one down."""
        if report.failed:
            self.functions.add(report.nodeid.partition("[")[0])


def outcome(mutant: Mutant | None, tests: tuple[str, ...], *options: str) -> tuple[int, list[str]]:
    """Return the exit code of pytest in a copy of the tree with the mutant in it, and what fails."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "tree")
        shutil.copytree(ROOT, copy, ignore=LEFT_OUT)  # with the caches of compiled kernels
        if mutant is not None:
            changed = mutant.applied((copy / mutant.file).read_text(encoding="utf-8"))
            (copy / mutant.file).write_text(changed, encoding="utf-8")
        os.chdir(copy)
        os.environ["PYTHONPATH"] = str(copy)
        sys.path.insert(0, str(copy))
        if mutant is not None:
            signal.signal(signal.SIGPROF, _too_long)
            signal.signal(signal.SIGALRM, _too_long)
            signal.setitimer(signal.ITIMER_PROF, SECONDS, SECONDS)  # not the clock: the machine may be busy
            signal.alarm(HOUR)
        failures = Failures()
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            code = int(pytest.main([*QUICK, *options, *tests], plugins=[failures]))
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        if not (sys.modules["smalldb"].__file__ or "").startswith(folder):
            raise RuntimeError("the tests did not import the copy")
        return code, sorted(failures.functions)


def verdict(mutant: Mutant, files: dict[str, tuple[str, ...]] | None) -> tuple[Mutant, str, list[str], float]:
    """Return what became of a mutant, what failed, and after how many seconds."""
    started = time.monotonic()
    if files is None:
        code, failed = outcome(mutant, mutant.tests, "-x")
    else:
        code, failed = outcome(mutant, files[mutant.room], "-m", "not long")
    words = {pytest.ExitCode.OK: "SURVIVED", pytest.ExitCode.TESTS_FAILED: "killed"}
    word = words.get(pytest.ExitCode(code), f"BROKEN (pytest ends with {code})")
    return mutant, word, failed, time.monotonic() - started


def files_of_rooms() -> dict[str, tuple[str, ...]]:
    """Return the files of tests that mutants of a room name, by room."""
    found = dict[str, set[str]]()
    for mutant in mutants():
        found.setdefault(mutant.room, set()).update(test.partition("::")[0] for test in mutant.tests)
    return {room: tuple(sorted(files)) for room, files in found.items()}


def main() -> int:
    """Run them and tell; 1 where one is not killed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", default="", metavar="PATTERN")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--at-once", action="store_true")
    parser.add_argument("--matrix", type=Path, metavar="KILLERS.json")
    given = parser.parse_args()
    chosen = [mutant for mutant in mutants() if re.search(given.only, str(mutant))]
    named = tuple(sorted({test for mutant in chosen for test in mutant.tests}))
    with multiprocessing.get_context("fork").Pool(given.jobs, maxtasksperchild=1) as pool:
        if not named or not (
            given.at_once or pool.apply(outcome, (None, named, "-x"))[0] == pytest.ExitCode.OK
        ):
            print("no mutant of that name, or the tests do not pass on the tree as it is")
            return 2
        alive, files, killers = 0, None, dict[str, list[str]]()
        if given.matrix is not None:
            files = files_of_rooms()
            killers = json.loads(given.matrix.read_text(encoding="utf-8")) if given.matrix.exists() else {}
        for mutant, word, failed, seconds in pool.imap(partial(verdict, files=files), chosen, chunksize=1):
            alive += word != "killed"
            by = "" if files is None else f" by {len(failed)}"
            print(f"{word + by:8} {seconds:4.0f} s  {mutant}", flush=True)
            if given.matrix is not None:
                killers[str(mutant)] = failed
                given.matrix.write_text(json.dumps(killers, indent=1) + "\n", encoding="utf-8")
    print(f"{len(chosen)} mutants, {len(chosen) - alive} killed")
    return int(alive > 0)


def _too_long(*_: object) -> None:
    raise TimeoutError("the tests of a mutant take too long")


if __name__ == "__main__":
    raise SystemExit(main())
