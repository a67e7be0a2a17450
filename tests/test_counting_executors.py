"""Threads, processes, Dask: the same integers from any of them, whoever dies meanwhile."""

import os
import random
import signal
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from builders import same

import smalldb
from queries import Conjunctions, Domain
from smalldb.files.checkpoints import Checkpoint, finished
from smalldb.schema import Column, Flag, Schema
from smalldb.schema.fields import tally
from smalldb.schema.table_readers import read_table

pytestmark = pytest.mark.slow

FRAME = pd.DataFrame(np.random.default_rng(1).integers(0, 2, (60, 3)), columns=list("abc"))
ENGINES = ["enumeration", "dynamic"]


class Shuffled(Executor):
    """Runs what it is sent in this thread, when it has got it all, in an order of its own."""

    def __init__(self, seed, parts):
        self.sent, self.chance, self.parts = [], random.Random(seed), parts

    def submit(self, function, /, *arguments, **named):
        future = Future()
        self.sent.append((future, partial(function, *arguments, **named)))
        if len(self.sent) == self.parts:
            threading.Thread(target=self.run).start()
        return future

    def run(self):
        self.chance.shuffle(self.sent)
        for future, work in self.sent:
            future.set_result(work())


class Leaky(ThreadPoolExecutor):
    """Loses every third part: some when it is sent, some when it is done."""

    sent = 0

    def submit(self, function, /, *arguments, **named):
        self.sent += 1
        if self.sent % 6 == 3:
            raise RuntimeError("cannot schedule new futures after shutdown")
        if self.sent % 6 == 0:
            return super().submit(int, "the machine went away")
        return super().submit(function, *arguments, **named)


def counted(engine, executor=None, **given):
    return smalldb.census(FRAME, Conjunctions(2), rows=6, engine=engine, executor=executor, shards=8, **given)


def slow(mark, part):
    """Kill the process that does part 5 for the first time, after some others are done."""
    if part == 5 and not Path(mark).exists():
        Path(mark).touch()
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    return part * part


@pytest.mark.parametrize("seed", range(3))
def test_any_order(seed):
    parts = list(range(30))
    found = list(finished(abs, parts, executor=Shuffled(seed, 30)))
    assert [position for position, _ in found] != sorted(parts)
    assert sorted(found) == list(enumerate(parts))
    chosen = {"rows": 6, "engine": "dynamic"}
    plain = smalldb.census(FRAME, Conjunctions(2), **chosen)
    shuffled = smalldb.census(FRAME, Conjunctions(2), **chosen, executor=Shuffled(seed, 7), shards=7)
    assert same(shuffled, plain)


@pytest.mark.parametrize("engine", ENGINES)
def test_parts_that_are_lost_are_run_again_and_counted_once(engine, tmp_path):
    with Leaky(2) as executor, pytest.warns(RuntimeWarning, match="executor lost"):
        assert same(counted(engine, executor, checkpoint=tmp_path / "kept"), counted(engine))
    assert same(counted(engine, checkpoint=tmp_path / "kept"), counted(engine))


def test_parts_that_a_shutdown_cancels_are_run_again():
    begun, go, found = threading.Event(), threading.Event(), []

    def work(part):
        begun.set()
        go.wait()
        return part

    class Stopped(ThreadPoolExecutor):
        sent = 0

        def submit(self, function, /, *arguments, **named):
            future = super().submit(function, *arguments, **named)
            self.sent += 1
            if self.sent == 6:
                begun.wait()
                self.shutdown(wait=False, cancel_futures=True)
                go.set()
            return future

    def count():
        found.extend(finished(work, range(6), executor=Stopped(1)))

    with pytest.warns(RuntimeWarning, match="lost 5 of 6 parts .CancelledError."):
        counting = threading.Thread(target=count, daemon=True)
        counting.start()
        counting.join(20)
    assert sorted(found) == [(part, part) for part in range(6)]


def test_an_executor_that_is_empty_is_used():
    class Empty(ThreadPoolExecutor):
        def __len__(self):
            return 0

    with Empty(1, "mine") as executor:
        names = finished(lambda _: threading.current_thread().name, range(3), executor=executor)
        assert {name for _, name in names} == {"mine_0"}


def test_an_error_of_the_work_is_an_error():
    with (
        ThreadPoolExecutor(2) as executor,
        pytest.warns(RuntimeWarning, match="ZeroDivisionError"),
        pytest.raises(ZeroDivisionError),
    ):
        list(finished(partial(divmod, 1), [1, 0, 2], executor=executor))


def test_a_killed_process_is_made_up_for(tmp_path):
    kept = Checkpoint(tmp_path / "kept", "run")
    work = partial(slow, str(tmp_path / "killed"))
    with (
        ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor,
        pytest.warns(RuntimeWarning, match="BrokenProcessPool"),
    ):
        found = list(finished(work, range(12), executor=executor, checkpoint=kept))
    assert sorted(found) == [(position, position * position) for position in range(12)]
    assert sorted(finished(work, range(12), checkpoint=kept)) == sorted(found)


@pytest.mark.parametrize("given", [{"rows": 2}, {"mechanism": "select"}], ids=str)
def test_audits_on_processes(given):
    domain, chosen = Domain(["a", "b"]), {"n": 3, "epsilon": 1} | given
    plain = smalldb.audit(domain, "conjunctions:2", **chosen)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        assert smalldb.audit(domain, "conjunctions:2", **chosen, executor=executor) == plain


def test_a_table_in_partitions(tmp_path):
    schema = Schema([Column(name, Flag()) for name in FRAME])
    paths = [str(tmp_path / f"{i}.csv") for i in range(4)]
    FRAME.to_csv(tmp_path / "all.csv", index=False)
    for i, path in enumerate(paths):
        FRAME[i::4].to_csv(path, index=False)
    whole = read_table(str(tmp_path / "all.csv"), schema)
    with ThreadPoolExecutor(2) as executor:
        tables = executor.map(partial(read_table, schema=schema), paths)
        together = tally(schema.domain, ((rows.codes(), rows.counts) for rows in tables))
    assert together.words.tolist() == whole.words.tolist()
    assert together.counts.tolist() == whole.counts.tolist()


def test_dask_with_a_worker_killed_in_mid_run(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    import dask

    settings = {"distributed.worker.daemon": False, "distributed.admin.log-format": "%(message)s"}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        victims = client.run(os.getpid)
        assert len(set(victims.values())) == 2
        saved, save = [], Checkpoint.save

        def killing(self, position, result):
            save(self, position, result)
            saved.append(position)
            if len(saved) == 3:
                os.kill(min(victims.values()), signal.SIGKILL)

        with monkeypatch.context() as patched:
            patched.setattr(Checkpoint, "save", killing)
            found = counted("dynamic", client.get_executor(), checkpoint=tmp_path / "kept")
        assert sorted(saved) == list(range(13))  # at least 8 prefixes
        assert same(found, counted("dynamic"))
        assert min(victims.values()) not in client.run(os.getpid).values()
