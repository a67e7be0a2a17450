"""Apply each mutant to a copy of the tree: its tests, which pass on the tree as it is, must fail.

    nice -n 10 python tests/mutants/run.py [--only PATTERN] [--jobs JOBS] [--at-once]
    pytest --cov=smalldb --cov=queries --cov-context=test    # by pytest-cov; writes .coverage
    nice -n 10 python tests/mutants/run.py --matrix KILLERS.json [--only PATTERN] [--jobs JOBS]

Not run in CI: it takes some seconds a mutant. PATTERN is a regular expression, looked for in "file: name".
With --at-once the tests are not run on the tree as it is, which is known to pass them.
With --matrix each mutant meets the functions of tests that run its lines, as .coverage says: of many, MOST
that run the fewest lines. KILLERS.json then holds those that fail, by mutant; what it holds of others
stays.
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
from collections import Counter
from collections.abc import Callable, Sequence
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
MOST = 20
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


def reached() -> Callable[[Mutant], tuple[str, ...]]:
    """Return what gives the tests that a mutant names, and the functions that run its lines."""
    from coverage import CoverageData

    data = CoverageData(str(ROOT / ".coverage"))
    data.read()
    functions = dict[str, dict[int, set[str]]]()
    for path in data.measured_files():
        by_line = data.contexts_by_lineno(path)
        here = {
            line: {re.split(r"[\[|]", each)[0] for each in by_line[line] if each.startswith("tests/")}
            for line in by_line
        }
        functions[os.path.relpath(path, ROOT)] = here
    lines = Counter(f for here in functions.values() for some in here.values() for f in some)

    def of(mutant: Mutant) -> tuple[str, ...]:
        before, was, _ = (ROOT / mutant.file).read_text(encoding="utf-8").partition(mutant.was)
        here, first = functions[os.path.normpath(mutant.file)], before.count("\n") + 1
        some = set().union(*(here.get(line, ()) for line in range(first, first + was.count("\n") + 1)))
        some = some or set().union(*here.values())  # a constant, which an import reads
        return (*dict.fromkeys((*mutant.tests, *sorted(some, key=lambda f: (lines[f], f))[:MOST])),)

    return of


def verdict(
    task: tuple[Mutant, tuple[str, ...]], options: Sequence[str]
) -> tuple[Mutant, str, list[str], float]:
    """Return what became of a mutant, what failed, and after how many seconds."""
    (mutant, tests), started = task, time.monotonic()
    code, failed = outcome(mutant, tests, *options)
    words = {pytest.ExitCode.OK: "SURVIVED", pytest.ExitCode.TESTS_FAILED: "killed"}
    word = words.get(pytest.ExitCode(code), f"BROKEN (pytest ends with {code})")
    return mutant, word, failed, time.monotonic() - started


def main() -> int:
    """Run them and tell; 1 where one is not killed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", default="", metavar="PATTERN")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--at-once", action="store_true")
    parser.add_argument("--matrix", type=Path, metavar="KILLERS.json")
    given = parser.parse_args()
    chosen = {mutant: mutant.tests for mutant in mutants() if re.search(given.only, str(mutant))}
    named = tuple(sorted({test for tests in chosen.values() for test in tests}))
    options, killers = ["-x", "-m", "long or not long"], dict[str, list[str]]()
    if given.matrix is not None:
        options, functions = ["-m", "not long"], reached()
        chosen = {mutant: functions(mutant) for mutant in chosen}
        killers = json.loads(given.matrix.read_text(encoding="utf-8")) if given.matrix.exists() else {}
    with multiprocessing.get_context("fork").Pool(given.jobs, maxtasksperchild=1) as pool:
        if not named or not (
            given.at_once or pool.apply(outcome, (None, named, "-x"))[0] == pytest.ExitCode.OK
        ):
            print("no mutant of that name, or the tests do not pass on the tree as it is")
            return 2
        alive = 0
        for mutant, word, failed, seconds in pool.imap(partial(verdict, options=options), chosen.items()):
            alive += word != "killed"
            by = "" if given.matrix is None else f" by {len(failed)}"
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
