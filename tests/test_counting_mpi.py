"""MPI: two processes count as one does; if one is killed the run ends, and the next goes on from there."""

import json
import os
import shutil
import signal
import subprocess
import sys
from threading import Thread
from time import sleep

import numpy as np
import pandas as pd
import pytest

import smalldb
from queries import Conjunctions

pytest.importorskip("mpi4py")
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("mpiexec") is None, reason="no MPI is installed"),
]

SHARDS = 29
SCRIPT = """
import json, os
import pandas as pd, smalldb
from mpi4py.futures import MPIPoolExecutor
from queries import Conjunctions

if __name__ == "__main__":
    with MPIPoolExecutor() as executor:
        with open("worker", "w") as file:
            file.write(str(executor.submit(os.getpid).result()))
        census = smalldb.census(
            pd.read_csv("data.csv"), Conjunctions(2), rows=14, engine="dynamic",
            executor=executor, shards=%d, checkpoint="kept",
        )
    print(json.dumps(list(map(str, census.counts))))
"""
FRAME = pd.DataFrame(np.random.default_rng(2).integers(0, 2, (90, 3)), columns=list("abc"))


def started(folder):
    (folder / "script.py").write_text(SCRIPT % SHARDS)
    FRAME.to_csv(folder / "data.csv", index=False)
    paths = [os.path.dirname(os.path.dirname(os.path.abspath(smalldb.__file__))), *sys.path]
    allowed = {  # of Open MPI: as root, and more processes than cores; others do not read them
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
    }
    return subprocess.Popen(
        ["mpiexec", "-n", "2", sys.executable, "-m", "mpi4py.futures", "script.py"],
        cwd=folder,
        env={**os.environ, **allowed, "PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def kill_after(folder, parts, process, seen):
    """Kill a process when so many parts are finished; tell how many were."""
    while (done := len(list(folder.glob("*.shard")))) < parts:
        sleep(0.001)
    os.kill(process, signal.SIGKILL)
    seen.append(done)


def test_a_killed_process_ends_the_run_and_the_next_goes_on(tmp_path):
    run, seen = started(tmp_path), []
    while not (tmp_path / "worker").exists() or not (tmp_path / "worker").read_text():
        assert run.poll() is None, run.communicate()[1]
        sleep(0.01)
    worker = int((tmp_path / "worker").read_text())
    assert worker != run.pid
    killer = Thread(target=kill_after, args=(tmp_path / "kept", 3, worker, seen))
    killer.start()
    out, _ = run.communicate(timeout=600)
    killer.join()
    finished = len(list((tmp_path / "kept").glob("*.shard")))
    assert run.returncode != 0
    assert out == ""
    assert 3 <= seen[0] <= finished < SHARDS
    out, err = (again := started(tmp_path)).communicate(timeout=600)
    assert again.returncode == 0, err
    expected = smalldb.census(FRAME, Conjunctions(2), rows=14, engine="dynamic").counts
    assert json.loads(out) == [*map(str, expected)]
