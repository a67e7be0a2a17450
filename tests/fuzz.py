"""Fuzz what reads a stranger's text: a million inputs, none may end in anything but a clear error.

    nice -n 10 python tests/fuzz.py [RUNS]

Not run in CI (tests/test_fuzz.py is); needs atheris (the extra ``fuzz``). Each target runs in a process of
its own; an input that takes ten seconds, or ends in another error than the tool's own, stops it, and is
shown.
"""

import csv
import io
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from queries import DataError, Domain, Predicates, spec
from smalldb.accounting import compose_records
from smalldb.commands.account import read_record
from smalldb.schema import parse_schema, read_schema
from smalldb.tables import read_csv, read_domain, read_table

ABC = Domain(["a", "b", "c d"])
SCHEMA_TEXT = """
ignore = ["id"]
valid = "smoker | ~`age>=40`"
[columns.age]
kind = "cuts"
cuts = [18, 40]
range = [0, 99]
missing = ["NA"]
[columns.job]
kind = "categories"
values = ["none", "part"]
unknown = "other"
[columns.smoker]
kind = "bool"
[columns.born]
kind = "dates"
cuts = [1990]
range = [1950, 2009]
unknown = "missing"
missing = true
"""
SCHEMA = parse_schema(SCHEMA_TEXT)
RECORD = (
    '{"epsilon": "1/2", "delta": null, "neighbours": "replace-one", "private": true,'
    ' "privacy": {"epsilon": "1/2", "bounded_range": "1/3"}}'
)
SEEDS = {
    "csv": ["a,b\n0,1\n1,1\n", "a\ntrue\nFalse\n", '"a ","b"\r\n"0","1"\r\n', "a,b\n0,7734\n"],
    "table": [
        "id,age,job,smoker,born,n\n1,17,none,true,1989-12-31,2\n2,NA,xq9,0,x,3\n",
        "age,job,smoker,born\n44.5,part,7734,\n",
    ],
    "schema": [SCHEMA_TEXT, '[columns."a b"]\nkind = "categories"\nvalues = [1, 2]\ncoding = "bits"\n'],
    "spec": ["conjunctions:2:negations + marginals:=1", "predicates: a & `c d`; ~b", "intervals"],
    "predicate": ["a & ~(b | `c d`)", "a ^ b"],
    "record": [RECORD],
}
SHARES = {
    "spec": 40,
    "predicate": 55,
    "record": 3,
    "schema": 1,
    "table": 0.5,
    "csv": 0.5,
}  # percent, by speed
CODE = """
import sys, atheris
with atheris.instrument_imports(include=["queries", "smalldb"]):
    import fuzz
fuzz.run_one(*sys.argv[1:])
"""


def check(error, data=""):
    """The tool's own errors are of three kinds, one line each; neither they nor their causes name a value."""
    assert type(error) in (ValueError, TypeError, DataError), type(error)
    assert "\n" not in str(error) and "\r" not in str(error)
    assert 0 < len(str(error)) < 2000
    header, body = split(data)
    said = ""
    while error is not None:
        said, error = f"{said} {error}", error.__cause__ or error.__context__
    for value in set(re.findall(r"[^\s,\"']{3,}", body)) - {"0/1"}:
        if re.search(r"[0-9]", value) and value not in header and value not in SCHEMA_TEXT:
            assert value not in said, "a value of the data stands in an error"


def split(data):
    """The names in the first record of a CSV text, which may have several lines, and all else."""
    lines = io.StringIO(data, newline="")
    try:
        names = "".join(next(filter(None, csv.reader(lines)), []))
    except csv.Error:
        return data, ""
    return names, lines.read()


def tried(raw, work, data=""):
    """Do something with a text; the tool may refuse it. Return whether it was taken."""
    try:
        work(raw)
    except (ValueError, TypeError) as error:
        check(error, data)
        return False
    return True


def on_file(work, raw):
    """Do something with a file of this content."""
    with tempfile.NamedTemporaryFile(prefix="fuzz") as file:
        file.write(raw)
        file.flush()
        return tried(file.name, work, raw.decode(errors="replace"))


def fuzz_csv(raw):
    """A CSV file of yes/no columns."""

    def work(path):
        domain = read_domain(path)
        rows = read_csv(path, domain)
        assert rows.n == rows.counts.sum()

    return on_file(work, raw)


def fuzz_table(raw):
    """A CSV file with a schema, and with a column of counts."""
    counts = "n" if b",n" in raw.partition(b"\n")[0] else None
    return on_file(lambda path: read_table(path, SCHEMA, counts), raw)


def fuzz_schema(raw):
    """A schema."""

    def work(path):
        schema = read_schema(path)
        assert schema.decode(schema.domain.table()[:4]).shape[1] == len(schema.columns)

    with tempfile.NamedTemporaryFile(prefix="fuzz") as file:
        file.write(raw)
        file.flush()
        return tried(file.name, work)


def fuzz_spec(raw):
    """Query classes; what is read says itself in words that are read as the same."""

    def work(text):
        read = spec.parse(text)
        assert spec.parse(read.text) == read
        assert "halfspaces" in read.text or read.stated(ABC) >= 0

    return tried(raw.decode(errors="replace"), work)


def fuzz_predicate(raw):
    """A predicate, as a query and as what can exist."""

    def work(text):
        query = Predicates([text]).workload(ABC)
        if query.size:  # a tautology says nothing, a contradiction leaves no cell
            assert Domain(ABC.attributes, valid=text).size == query.matrix()[0].sum()

    return tried(raw.decode(errors="replace"), work)


def fuzz_record(raw):
    """A public record, and what it loses together with another."""

    def work(path):
        record = read_record(path)
        assert compose_records([record, record], delta="0").epsilon >= 0

    with tempfile.NamedTemporaryFile(prefix="fuzz") as file:
        file.write(raw)
        file.flush()
        return tried(file.name, work)


TARGETS = {
    "csv": fuzz_csv,
    "table": fuzz_table,
    "schema": fuzz_schema,
    "spec": fuzz_spec,
    "predicate": fuzz_predicate,
    "record": fuzz_record,
}


def run_one(name, runs, folder):
    """Fuzz a target in this process, which ends with it."""
    import atheris

    corpus = Path(folder, name)
    corpus.mkdir()
    for i, seed in enumerate(SEEDS[name]):
        (corpus / str(i)).write_text(seed)
    options = [f"-runs={runs}", "-max_len=512", "-timeout=10", "-seed=1", "-print_final_stats=1"]

    def run(raw):
        try:
            TARGETS[name](raw)
        except BaseException:
            print(f"failed on {raw!r}", file=sys.stderr, flush=True)
            raise

    atheris.Setup(["fuzz", *options, str(corpus)], run)
    atheris.Fuzz()


def main(runs):
    """Fuzz each target in a process of its own, and add up."""
    total, failed = 0, []
    for name, share in SHARES.items():
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-c", CODE, name, str(int(runs * share / 100)), folder]
            environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", env=environment, check=False
            )
            found = len(list(Path(folder, name).iterdir()))
        executed = re.search(r"stat::number_of_executed_units: +([0-9]+)", done.stderr)
        number = int(executed[1]) if executed else 0
        total += number
        took = time.monotonic() - begun
        print(
            f"{name:10}{number:>10,} inputs, {found} kept, {took:.0f} s, exit {done.returncode}", flush=True
        )
        if done.returncode:
            failed.append(name)
            print(done.stdout[-3000:], done.stderr[-3000:], flush=True)
    print(f"{total:,} inputs in all; failed: {', '.join(failed) or 'none'}")
    return 1 if failed or total < runs else 0


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]) if len(sys.argv) == 2 else 1_000_000))
