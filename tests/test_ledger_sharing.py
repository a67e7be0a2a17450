"""What a ledger shares with other processes and with the disk, beside its lines."""

import os
import subprocess
import sys
from fractions import Fraction

import pytest
from test_ledger import record

from smalldb.cli import main
from smalldb.releasing.budget_ledger import Ledger

FORK = """
import os, sys, threading
from smalldb.releasing.budget_ledger import Ledger
from test_ledger import record

ledger, plain = Ledger(sys.argv[1], 1), os.fsync
locked, go = threading.Event(), threading.Event()

def slow(handle):
    locked.set()
    go.wait()
    plain(handle)

os.fsync = slow
spending = threading.Thread(target=ledger.spend, args=[record()])
spending.start()
locked.wait()
reader, writer = os.pipe()
if not (child := os.fork()):
    os.close(writer)
    os.read(reader, 1)  # lives until its parent ends
    os._exit(0)
go.set()
spending.join()
os.fsync = plain
print(ledger.spend(record()).spent)
"""


@pytest.mark.slow
def test_a_process_forked_while_the_lock_was_held_does_not_keep_it(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK, str(tmp_path / "l")],
        env={
            **os.environ,
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path]),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "1/5\n"), done.stderr


def test_a_ledger_whose_maker_was_killed_is_in_its_folder_before_anything_is_released(tmp_path, monkeypatch):
    path, plain, synced = tmp_path / "l", os.fsync, []
    Ledger(path, 1)

    def noted(handle):
        synced.append(os.fstat(handle).st_ino)
        plain(handle)

    monkeypatch.setattr(os, "fsync", noted)
    Ledger(path).spend(record())
    assert synced == [path.stat().st_ino, tmp_path.stat().st_ino]


def test_sums_that_no_text_can_tell_are_refused_before_they_are_spent(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text("a,b\n0,0\n0,1\n1,1\n")
    ledger = Ledger("l", 1)
    ledger.spend(record(Fraction(1, 3**6000)))
    before = (tmp_path / "l").read_bytes()
    with pytest.raises(ValueError, match=r"^epsilon, added up with all before it, must be .* bits"):
        ledger.spend(record(Fraction(1, 7**3000)))
    epsilon = f"1/{7**3000}"
    command = ["generate", "data.csv", "--epsilon", epsilon, "--rows", "2", "--ledger", "l", "-o", "out.csv"]
    assert main(command) == 2
    assert capsys.readouterr().err.startswith("smalldb: epsilon, added up")
    assert (tmp_path / "l").read_bytes() == before
    assert main(["ledger", "l"]) == 0
    assert f"1/{3**6000}" in capsys.readouterr().out
