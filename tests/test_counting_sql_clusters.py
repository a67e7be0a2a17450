"""Tables and candidate tables that Dask and Spark count: the same integers, whoever is killed meanwhile."""

import os
import signal
import sys
import threading
import time
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_counting_sql import SCHEMA
from test_readers_formats import same

import smalldb
from smalldb.files.checkpoints import finished
from smalldb.schema import count_on_cluster, parse_schema

ROWS, PARTS = 2_000, 8
WIDE = "\n".join(f'columns.c{i} = {{ kind = "integers", range = [0, 5] }}' for i in range(6))


def odd_rows():
    """Rows of the schema with numbers at cuts, gaps, days and towns of all kinds."""
    chance = np.random.default_rng(5)
    numbers = [-9.0, 99.0, 0.0, -0.0, 0.1, 0.09999999999999999, 18.0, 17.999999999999996, 65.5, 1e300, np.nan]
    x = np.where(chance.random(ROWS) < 0.5, chance.choice(numbers, ROWS), chance.normal(30, 30, ROWS))
    days = [None, *(date(1980 + i, 1 + i % 12, 1 + i % 28) for i in range(45)), date(1999, 9, 9)]
    return pd.DataFrame(
        {
            "x": x,
            "day": [days[i] for i in chance.integers(0, len(days), ROWS)],
            "town": [("Aix", "aix", "7", "Köln", None)[i] for i in chance.integers(0, 5, ROWS)],
            "flag": chance.integers(0, 2, ROWS).astype(bool),
        }
    )


def late(folder, wait=0.3):
    """Return a function that hands on a part, late, and tells who began it; it is sent by value."""

    def told(part):
        Path(folder, f"{os.getpid()}-{time.monotonic_ns()}").touch()
        time.sleep(wait)
        return part

    return told


def kill_when_begun(folder, number, seen, victim=int):
    """Kill the process that began the first part, once so many parts are begun."""
    while len(begun := sorted(os.listdir(folder), key=lambda name: int(name.split("-")[1]))) < number:
        time.sleep(0.01)
    seen.append(victim(begun[0].split("-")[0]))
    os.kill(seen[0], signal.SIGKILL)


def test_other_tables_are_refused():
    with pytest.raises(TypeError, match="a DataFrame of Spark or of Dask, not DataFrame"):
        count_on_cluster(odd_rows(), parse_schema(SCHEMA))


@pytest.mark.slow
@pytest.mark.parametrize("parts", [1, 5, PARTS])
def test_dask_counts_what_the_reader_counts(parts):
    dask, frames = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    table, schema = odd_rows(), parse_schema(SCHEMA)
    with dask.config.set(scheduler="synchronous"):
        same(count_on_cluster(frames.from_pandas(table, npartitions=parts), schema), schema.encode(table))
        with pytest.raises(ValueError, match="flag"):
            count_on_cluster(frames.from_pandas(table.drop(columns="flag"), npartitions=parts), schema)


@pytest.mark.slow
def test_dask_counts_on_when_a_worker_is_killed(tmp_path):
    distributed, frames = pytest.importorskip("distributed"), pytest.importorskip("dask.dataframe")
    table, schema, seen = odd_rows(), parse_schema(SCHEMA), []
    given = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with distributed.LocalCluster(**given) as cluster, distributed.Client(cluster) as client:
        frame = frames.from_pandas(table, npartitions=PARTS)
        killer = threading.Thread(target=kill_when_begun, args=(tmp_path, 3, seen), daemon=True)
        killer.start()
        found = count_on_cluster(frame.map_partitions(late(str(tmp_path)), meta=frame._meta), schema)
        killer.join()
        assert seen[0] not in client.run(os.getpid).values()
    assert len(os.listdir(tmp_path)) > PARTS  # what the dead worker had was done again
    same(found, schema.encode(table))


def machine_of(worker):
    """Return the process of Spark that has a worker in Python: the parent of the worker's parent."""
    parent = worker
    for _ in range(2):
        parent = int(Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[1])
    return parent


def deadly(folder):
    """Return a function that squares, and kills its machine when part 5 comes for the first time."""

    def square(part):
        if part == 5 and not Path(folder, "dead").exists():
            Path(folder, "dead").touch()
            os.kill(machine_of(os.getpid()), signal.SIGKILL)
            time.sleep(60)
        return part * part

    return square


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")  # of Spark itself
def test_spark_counts_on_when_a_worker_is_killed(tmp_path, monkeypatch):
    sql = pytest.importorskip("pyspark.sql")
    from pyspark import cloudpickle
    from pyspark.sql import types

    from smalldb.files.spark import SparkExecutor

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import tests
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, sys.executable)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    table, schema, seen = odd_rows(), parse_schema(SCHEMA), []
    kinds = (types.DoubleType, types.DateType, types.StringType, types.BooleanType)
    told = types.StructType(
        [types.StructField(n, kind()) for n, kind in zip(table.columns, kinds, strict=True)]
    )
    rows = [[None if v != v else v for v in row] for row in table.itertuples(index=False)]
    numbered = [(i % (ROWS // PARTS) == 0, row) for i, row in enumerate(rows)]
    begun, dead = tmp_path / "begun", tmp_path / "dead"
    begun.mkdir()
    dead.mkdir()
    session = sql.SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", False)
    spark = session.getOrCreate()
    try:
        tell = late(str(begun))
        slow = spark.sparkContext.parallelize(numbered, PARTS).map(lambda p: tell(p[1]) if p[0] else p[1])
        frame = spark.createDataFrame(slow, told)
        killer = threading.Thread(target=kill_when_begun, args=(begun, 3, seen, machine_of), daemon=True)
        killer.start()
        found = count_on_cluster(frame, schema)
        killer.join()
        assert len(os.listdir(begun)) > PARTS  # what the dead worker had was done again
        same(found, schema.encode(table))
        with SparkExecutor(spark) as executor:
            squares = sorted(finished(deadly(str(dead)), range(9), executor=executor))
        assert squares == [(code, code * code) for code in range(9)] and os.listdir(dead)
        chance = np.random.default_rng(3)
        wide = pd.DataFrame(chance.integers(0, 6, (3000, 6)), columns=[f"c{i}" for i in range(6)])
        how = {"schema": WIDE, "queries": "marginals:2", "epsilon": 1, "seed": 4, "strategy": "adaptive"}
        with SparkExecutor(spark) as executor:
            made = smalldb.release(wide, executor=executor, **how)
        assert made.data.equals(smalldb.release(wide, **how).data)
    finally:
        spark.stop()
