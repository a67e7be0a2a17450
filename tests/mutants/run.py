"""Apply each mutant to a copy of the tree: its tests, which pass on the tree as it is, must fail.

    nice -n 10 python tests/mutants/run.py [--only PATTERN] [--jobs JOBS] [--at-once]

Not run in CI: it takes some seconds a mutant. PATTERN is a regular expression, looked for in "file: name".
With --at-once the tests are not run on the tree as it is, which is known to pass them.
Each run is a fork of this process, which has loaded all other packages before.
"""

import argparse
import contextlib
import multiprocessing
import os
import re
import shutil
import signal
import sys
import tempfile
import time
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
QUICK = ["-qx", "--assert=plain", "-o", "addopts=--import-mode=importlib"]
QUICK += ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:unraisableexception"]
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis")


def code_of(mutant: Mutant | None, tests: tuple[str, ...]) -> int:
    """Return the exit code of pytest on some tests, in a copy of the tree with the mutant in it."""
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
            signal.setitimer(signal.ITIMER_PROF, SECONDS)  # not the clock: the machine may be busy
            signal.alarm(HOUR)
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            code = int(pytest.main([*QUICK, *tests]))
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        if not (sys.modules["smalldb"].__file__ or "").startswith(folder):
            raise RuntimeError("the tests did not import the copy")
        return code


def verdict(mutant: Mutant) -> tuple[Mutant, str, float]:
    """Return what became of a mutant, and after how many seconds."""
    started = time.monotonic()
    code = code_of(mutant, mutant.tests)
    words = {pytest.ExitCode.OK: "SURVIVED", pytest.ExitCode.TESTS_FAILED: "killed"}
    return (
        mutant,
        words.get(pytest.ExitCode(code), f"BROKEN (pytest ends with {code})"),
        time.monotonic() - started,
    )


def main() -> int:
    """Run them and tell; 1 where one is not killed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", default="", metavar="PATTERN")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--at-once", action="store_true")
    given = parser.parse_args()
    chosen = [mutant for mutant in mutants() if re.search(given.only, str(mutant))]
    named = tuple(sorted({test for mutant in chosen for test in mutant.tests}))
    with multiprocessing.get_context("fork").Pool(given.jobs, maxtasksperchild=1) as pool:
        if not named or not (given.at_once or pool.apply(code_of, (None, named)) == pytest.ExitCode.OK):
            print("no mutant of that name, or the tests do not pass on the tree as it is")
            return 2
        alive = 0
        for mutant, word, seconds in pool.imap(verdict, chosen, chunksize=1):
            alive += word != "killed"
            print(f"{word:8} {seconds:4.0f} s  {mutant}", flush=True)
    print(f"{len(chosen)} mutants, {len(chosen) - alive} killed")
    return int(alive > 0)


def _too_long(*_: object) -> None:
    raise TimeoutError("the tests of a mutant take too long")


if __name__ == "__main__":
    raise SystemExit(main())
