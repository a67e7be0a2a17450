"""Kill paid releases of every mechanism at random moments, start them again, and count what was paid.

    python tests/benchmarks/killed.py [KILLS [MECHANISM ...]]     # of each and signal: up to ten seconds each

Each time `generate --ledger` runs in a process of its own and gets a signal after a random time, up to a
little more than an undisturbed run takes. Then the outputs must be all or none and whole, nothing may be left
half-written (but by SIGKILL, until then), and the same command, started again, must end in a release
and in exactly one payment, without a folder beside the ledger.
"""

import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from smalldb import cli
from smalldb.commands import options  # noqa: F401 - imported once, before the processes are forked

SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
CASES = {
    "census": (4, "--rows 14 --mechanism census"),
    "rejection": (8, "--rows 20 --mechanism rejection --queries conjunctions:2"),
    "answers": (12, "--rows 400 --mechanism marginals --strategy contrasts"),
    "rounds": (30, "--mechanism marginals"),
    "learned": (3, "--mechanism marginals --schema schema.toml"),
}
OUTPUTS = ("out.csv", "out.json")
SCHEMA = """
columns.c0 = { kind = "bool" }
columns.c1 = { kind = "bool" }
columns.c2 = { kind = "cuts", cuts = "learn", bins = 4, range = [0, 100], share = 0.2 }
"""


def started(name):
    """Start the command in a forked process; return its id."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    sys.argv = ["smalldb", "generate", "data.csv", "--epsilon", "1", "--ledger", "people", "--budget", "1"]
    sys.argv += [*CASES[name][1].split(), "-o", OUTPUTS[0], "--record", OUTPUTS[1], "--quiet"]
    sys.argv += ["--even-if-empty"]
    handle = os.open("told", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(handle, 2)
    sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115 - for the rest of the process
    code = 1
    try:
        cli.run()
    except SystemExit as ended:
        code = ended.code
    finally:
        sys.stderr.flush()
        os._exit(code)


def waited(child):
    """Return how a process ended: its code, or minus its signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def checked(whole):
    """Look at the outputs: all or none, each whole; with SIGKILL the first may stand alone."""
    there = [name for name in OUTPUTS if os.path.exists(name)]
    if "out.json" in there:
        json.loads(Path("out.json").read_text())
    if "out.csv" in there:
        rows = json.loads(Path("out.json").read_text())["rows"]  # the table comes last
        assert len(pd.read_csv("out.csv")) == rows
    assert not whole or len(there) in (0, 2)
    return there


def payments():
    return Path("people").read_text().count("\n") - 1 if os.path.exists("people") else 0


def main(kills, names):
    chance = random.Random(5)
    home = os.getcwd()
    for name in names:
        columns = CASES[name][0]
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            table = np.random.default_rng(3).integers(0, 2, (2000, columns))
            frame = pd.DataFrame(table, columns=[f"c{i}" for i in range(columns)])
            if name == "learned":
                frame["c2"] = np.random.default_rng(4).integers(0, 100, 2000)
                Path("schema.toml").write_text(SCHEMA)
            frame.to_csv("data.csv", index=False)
            kept = {"data.csv", "schema.toml", "told"}

            def clean(kept=kept):
                for path in set(os.listdir()) - kept:
                    os.unlink(path)

            for _ in range(2):  # the first one may compile
                begun = time.monotonic()
                assert waited(started(name)) == 0, Path("told").read_text()
                took = time.monotonic() - begun
                clean()
            for number in SIGNALS:
                found = dict.fromkeys(("killed", "paid, nothing released", "went on", "parts left"), 0)
                for _ in range(kills):
                    child = started(name)
                    time.sleep(chance.uniform(0, 1.1 * took))
                    os.kill(child, number)
                    code = waited(child)
                    ended = (-number, 128 + number)
                    assert code in (0, *ended), Path("told").read_text()
                    found["killed"] += code in ended
                    there = checked(whole=number != signal.SIGKILL)
                    parts = [file for file in os.listdir() if file.endswith(".part")]
                    assert not parts or number == signal.SIGKILL
                    found["parts left"] += bool(parts)
                    lost = payments() == 1 and there != list(OUTPUTS)
                    found["paid, nothing released"] += lost
                    if code != 0 and len(there) < 2:
                        assert waited(started(name)) == 0, Path("told").read_text()
                        found["went on"] += lost
                        parts = [file for file in os.listdir() if file.endswith(".part")]
                        assert not parts
                    assert checked(whole=True) == list(OUTPUTS)
                    assert payments() == 1
                    left = set(os.listdir()) - kept - {"people", *OUTPUTS, *parts}
                    for path in left:
                        # killed between the last output and the end of the folder
                        assert code != 0 and len(there) == 2, left
                        for file in os.listdir(path):
                            os.unlink(os.path.join(path, file))
                        os.rmdir(path)
                    clean()
                said = ", ".join(f"{what}: {times}" for what, times in found.items())
                print(f"{name} ({took:.1f} s), {kills} x {number.name}: {said}", flush=True)
            os.chdir(home)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 10, sys.argv[2:] or CASES)
