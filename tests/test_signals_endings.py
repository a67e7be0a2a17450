"""How a command ends: by a signal, for lack of memory, without a library, at input without end."""

import fcntl
import os
import pkgutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from smalldb import signals
from smalldb.cli import main
from smalldb.files import inputs
from smalldb.files.inputs import rereadable
from smalldb.files.outputs import Outputs
from smalldb.releasing.budget_ledger import Ledger
from smalldb.schema.readers import csv_files as readers
from smalldb.schema.readers.registry import has_lines

GENERATE = ["generate", "data.csv", "--epsilon", "1", "--rows", "2"]
OUTPUTS = ["-o", "out.csv", "--record", "out.json"]
PAID = ["--quiet", "--ledger", "l", "--budget", "1"]
CARRIED_OUT, REMOVE = (
    f"smalldb.releasing.pipeline.{name}" for name in ("carried_out", "Transaction._remove")
)


@pytest.fixture
def workdir(workdir):
    (workdir / "data.csv").write_text("a,b\n" + "0,1\n1,1\n" * 50)
    return workdir


def signalled(name, where, *command, ignored=False):
    """Run a command in a child process that a signal reaches behind a function; its exit code and outputs."""
    plain = pkgutil.resolve_name(where)

    def dying(*given, **more):
        found = plain(*given, **more)
        os.kill(os.getpid(), getattr(signal, name))
        return found

    with TemporaryFile("w+") as out, TemporaryFile("w+") as err:
        child = os.fork()
        if not child:
            code = 1
            try:
                sys.stdout = out
                os.dup2(err.fileno(), 2)
                signal.signal(getattr(signal, name), signal.SIG_IGN if ignored else signal.SIG_DFL)
                signals.take()
                pytest.MonkeyPatch().setattr(where, dying)
                code = main([*command])
                out.flush()
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        err.seek(0)
        return code, out.read(), err.read()


SIGNALS = [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "terminated"), ("SIGHUP", 129, "hung up")]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "code", "said"), SIGNALS)
def test_a_signal_leaves_nothing_behind(workdir, name, code, said):
    told = f"smalldb: {said}; unfinished files were removed\n"
    assert signalled(name, CARRIED_OUT, *GENERATE, *OUTPUTS) == (code, "", told)
    assert os.listdir(workdir) == ["data.csv"]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "code", "said"), SIGNALS)
def test_a_signal_after_the_payment_names_the_way_to_go_on(workdir, name, code, said):
    found, _, told = signalled(name, CARRIED_OUT, *GENERATE, *OUTPUTS, *PAID)
    (folder,) = workdir.glob(".l.*.unfinished")
    goes_on = f"the ledger is paid: the same command goes on from {folder}, and pays no second time"
    assert (found, told) == (code, f"smalldb: {said}; unfinished files were removed; {goes_on}\n")
    assert sorted(os.listdir(workdir)) == [folder.name, "data.csv", "l"]
    assert main([*GENERATE, *OUTPUTS, "--ledger", "l"]) == 0
    assert sorted(os.listdir(workdir)) == ["data.csv", "l", "out.csv", "out.json"]
    assert len(Ledger("l").read().records) == 1


TABLES = ["generate", "data.csv", "--epsilon", "1", "--tables", "2", "-o", "out", "--mechanism", "marginals"]
DONE = [  # the signal, the function behind which it comes, the command, whether the caller ignores it
    *((name, "os.replace", [*GENERATE, *OUTPUTS, "--quiet"], False) for name in ("SIGINT", "SIGTERM")),
    # only the folder beside the ledger is left: a retry would pay again
    *((name, REMOVE, [*GENERATE, *OUTPUTS, *PAID], False) for name in ("SIGINT", "SIGTERM")),
    *(("SIGTERM", where, [*TABLES, *PAID], False) for where in ("pathlib.Path.rename", REMOVE)),
    # as by nohup; the signal of Ctrl-C is what a shell without job control has ignored
    *((name, CARRIED_OUT, [*GENERATE, *OUTPUTS], True) for name in ("SIGHUP", "SIGINT", "SIGTERM")),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "where", "command", "ignored"), DONE)
def test_a_signal_changes_nothing_between_outputs_behind_them_and_where_it_is_ignored(
    workdir, name, where, command, ignored
):
    code, out, err = signalled(name, where, *command, ignored=ignored)
    assert code == 0 and (ignored or (out, err) == ("", ""))
    outputs = ["out"] if command[:10] == TABLES else ["out.csv", "out.json"]
    ledger = ["l"] if "--ledger" in command else []
    assert sorted(os.listdir(workdir)) == sorted(["data.csv", *outputs, *ledger])


@pytest.mark.slow
@pytest.mark.parametrize(("command", "code"), [([*GENERATE, *OUTPUTS], 0), (["--version"], -signal.SIGTERM)])
def test_a_signal_behind_the_end_of_python_changes_nothing_once_all_is_done(workdir, command, code):
    """The C library calls kill(exit code, SIGTERM) last. To 0 it goes to the child and its group."""
    script = """if True:
        import ctypes, signal
        from smalldb.__main__ import run

        libc = ctypes.CDLL(None)
        assert libc.on_exit(libc.kill, signal.SIGTERM) == 0
        run()
    """
    child = subprocess.run([sys.executable, "-c", script, *command], start_new_session=True)
    assert child.returncode == code


@pytest.mark.slow
def test_a_signal_ends_what_has_yet_to_go_to_standard_output(workdir):
    """The record stands, the table does not: a retry writes it, and pays no second time."""
    options = [*GENERATE, "--record", "out.json", *PAID]
    assert signalled("SIGTERM", CARRIED_OUT, *options)[:2] == (143, "")
    assert main(options) == 0 and len(Ledger("l").read().records) == 1


@pytest.mark.parametrize("ledger", [[], ["--ledger", "l", "--budget", "1"]])
def test_too_little_memory_is_one_line_that_tells_no_size(workdir, monkeypatch, capsys, ledger):
    def short(*_, **__):
        raise MemoryError("Unable to allocate 987654 bytes")

    with monkeypatch.context() as patched:
        patched.setattr("smalldb.releasing.pipeline.carried_out", short)
        assert main([*GENERATE, *OUTPUTS, *ledger, "--quiet"]) == 3
    error = capsys.readouterr().err
    assert error.startswith("smalldb: this machine has too little memory")
    assert error.count("\n") == 1 and "987654" not in error
    assert ("the ledger is paid: the same command goes on from" in error) == bool(ledger)
    assert main([*GENERATE, *OUTPUTS, *ledger]) == 0
    if ledger:
        assert capsys.readouterr().err.startswith("ledger:    1 of 1 spent, this release was paid before\n")
        assert main([*GENERATE, *OUTPUTS, *ledger]) == 5  # another one is another release


BROKEN = {
    "numpy": "raise ImportError('\\n\\nIMPORTANT:\\nadvice') from OSError('libopenblas.so: no such file')",
    "pandas": "raise OSError('libarrow.so: cannot open shared object file')",
    "numba": "raise ImportError('Numba needs NumPy 2.9 or less')",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_a_library_that_cannot_be_loaded_is_named(workdir, name):
    (workdir / name).mkdir()
    (workdir / name / "__init__.py").write_text(BROKEN[name])
    command = [sys.executable, "-m", "smalldb", *GENERATE]
    if name == "pandas":  # yes/no files do without it, a schema does not
        (workdir / "s.toml").write_text('[columns.a]\nkind = "bool"\n\n[columns.b]\nkind = "bool"\n')
        command += ["--schema", "s.toml"]
    path = os.pathsep.join([str(workdir), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 3, done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"smalldb: {name} cannot be loaded (")
    assert done.stderr.endswith("): reinstall it\n")


@pytest.mark.parametrize(
    "command",
    [
        ["generate", "/dev/zero", "--epsilon", "1"],
        ["schema", "init", "/dev/zero"],
        ["schema", "init", "zero.jsonl"],
        ["evaluate", "/dev/zero", "/dev/zero"],
        ["census", "/dev/zero", "--rows", "2"],
        ["generate", "zero.jsonl", "--schema", "schema.toml", "--epsilon", "1"],
        ["generate", "/dev/zero", "--schema", "schema.toml", "--epsilon", "1"],
        ["generate", "many.csv", "--epsilon", "1"],
        ["generate", "data-line.csv", "--epsilon", "1"],
    ],
    ids=" ".join,
)
def test_input_without_an_end_is_refused(workdir, monkeypatch, capsys, command):
    monkeypatch.setattr(readers, "LONGEST", 1 << 16)
    monkeypatch.setattr(readers, "LONGEST_HEADER", 1 << 16)
    (workdir / "zero.jsonl").symlink_to("/dev/zero")
    (workdir / "schema.toml").write_text('columns.a.kind = "bool"\n')
    (workdir / "many.csv").write_text('"' + '","\n' * (1 << 15))  # one record of many lines, each short
    (workdir / "data-line.csv").write_text("a,b\n0,1\n" + "0" * (1 << 17))
    assert main(command) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1


def test_a_pipe_without_lines_is_not_copied_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "LONGEST", 1 << 10)
    cases = {"a.csv": b"", "b.csv": b"\n", "c.parquet": b"", "d.csv.gz": b""}
    for name, end in cases.items():
        pipe = tmp_path / name
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_bytes, args=[b"0" * 1000 + end + b"0" * 1000])
        writer.start()
        lines = has_lines(str(pipe))
        if name == "a.csv":
            with pytest.raises(ValueError, match="its first line is longer than"):
                rereadable(str(pipe), lines)
        else:
            assert Path(rereadable(str(pipe), lines)).read_bytes() == b"0" * 1000 + end + b"0" * 1000
        writer.join()


@pytest.mark.parametrize("name", ["x" * 250 + ".csv", "x" * 251 + ".csv", "\u00e9" * 125 + ".csv"])
def test_a_name_may_be_as_long_as_names_may_be(workdir, name):
    assert main([*GENERATE, "-o", name, "--record", "r" * 250 + ".json"]) == 0
    assert sorted(os.listdir(workdir)) == sorted([name, "data.csv", "r" * 250 + ".json"])


def test_files_take_their_places_in_order_and_the_folder_is_synced(tmp_path, monkeypatch):
    names, done = ["record", "page", "table"], []
    replace, fsync = os.replace, os.fsync

    def replacing(begun, place, **folders):
        done.append(place)
        return replace(begun, place, **folders)

    def syncing(handle):
        done.append(os.path.basename(os.readlink(f"/proc/self/fd/{handle}")))
        fsync(handle)

    with Outputs([str(tmp_path / name) for name in names]) as outputs:
        for name in names:
            outputs.write(str(tmp_path / name), "x")
        monkeypatch.setattr(os, "replace", replacing)
        monkeypatch.setattr(os, "fsync", syncing)
    assert done == [*names, tmp_path.name]


def test_the_table_comes_last(workdir, monkeypatch):
    placed, replace = [], os.replace

    def replacing(begun, place, **folders):
        placed.append(place)
        return replace(begun, place, **folders)

    monkeypatch.setattr(os, "replace", replacing)
    assert main([*GENERATE, *OUTPUTS, "--report", "out.html", "--quiet"]) == 0
    assert placed == ["out.json", "out.html", "out.csv"]


def test_a_ledger_that_is_held_is_waited_for_with_a_word(tmp_path, monkeypatch):
    path = tmp_path / "people.ledger"
    ledger, warn, letting = Ledger(path, 1), warnings.warn, []
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)

        def told(*given, **more):
            letting.append(threading.Timer(0.5, fcntl.flock, [held, fcntl.LOCK_UN]))
            letting[-1].start()
            warn(*given, **more)

        monkeypatch.setattr(warnings, "warn", told)
        clock, processor = time.monotonic(), time.process_time()
        with pytest.warns(RuntimeWarning, match="another process holds the ledger") as said:
            assert ledger.read().spent == 0
        assert len(said) == len(letting) == 1 and time.monotonic() - clock > 1.4
        assert time.process_time() - processor < 0.5
        letting[0].join()
    ledger.read()  # warnings are errors here
