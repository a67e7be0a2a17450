"""The command line; where streams, signals and exit codes are looked at, in real processes."""

import fcntl
import json
import math
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from functools import partial

import pandas as pd
import pytest
from calling import called

import smalldb
from queries import Marginals
from smalldb.cli import WELCOME, main

pytestmark = pytest.mark.slow

SMALL = "a,b\n" + "0,0\n0,1\n1,1\n1,1\n" * 50


def in_a_process(*arguments, cwd, stdin=None):
    """Run a command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "smalldb", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        input=stdin,
    )


@pytest.fixture
def folder(tmp_path):
    """A folder with a small table."""
    (tmp_path / "data.csv").write_text(SMALL)
    return tmp_path


@pytest.fixture
def run(folder, monkeypatch, capfd):
    """Run a command in this process and in the folder; returns its exit code, stdout and stderr."""
    monkeypatch.chdir(folder)
    return partial(called, capfd)


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_standard_input_is_a_table_like_a_file(folder, run, name):
    arguments = ("--epsilon", 1, "--rows", 2, "--seed", 3, "--quiet")
    _, told, _ = run("generate", "data.csv", *arguments)
    piped = in_a_process("generate", name, *arguments, cwd=folder, stdin=SMALL)
    assert (piped.returncode, piped.stdout) == (0, told)
    compared = in_a_process("evaluate", name, "data.csv", "--json", cwd=folder, stdin=SMALL)
    assert json.loads(compared.stdout)["max_error"] == 0


def test_quiet_is_quiet_but_never_about_a_seed(run):
    arguments = ("generate", "data.csv", "--epsilon", 1, "--rows", 3, "--quiet")
    assert run(*arguments)[2] == ""
    _, table, told = run(*arguments, "--seed", 7)
    assert told == "NOT PRIVATE: the randomness came from a seed; for experiments only\n"
    assert table == run(*arguments, "--seed", 7)[1]


def test_alpha_valid_and_columns(folder, run):
    code, out, err = run(
        *("generate", "data.csv", "--epsilon", 1, "--alpha", 0.4, "--columns", "b,a", "--valid", "~a | b"),
        *("--queries", "predicates:a & b; a + parities:2", "--record", "out.json"),
    )
    assert code == 0, err
    record = json.loads((folder / "out.json").read_text())
    assert record["universe"] == {"attributes": ["b", "a"], "valid": "~a | b"}
    assert record["queries"] == {"text": "predicates:a & b; a + parities:2", "stated": 6, "reduced": 3}
    assert record["rows"] == math.ceil(math.log(3) / 0.16)
    assert out.startswith("b,a\n")


def test_the_spelling_of_the_output_is_a_public_choice(folder, run):
    (folder / "words.csv").write_text("a,b\ntrue,0\nFalse,1\n")
    arguments = ("generate", "words.csv", "--epsilon", 1, "--rows", 2, "--seed", 1)
    zero_one, words = (run(*arguments, *more)[1] for more in ((), ("--spelling", "true/false")))
    assert words == zero_one.replace("0", "false").replace("1", "true")
    (folder / "none.csv").write_text("a,b\n")
    (folder / "one.csv").write_text("a,b\ntrue,false\n")
    for name in ("none.csv", "one.csv"):
        _, out, _ = run("generate", name, "--epsilon", 1, "--rows", 2, "--neighbours", "add-remove")
        assert set("".join(out.splitlines()[1:])) <= set("01,")


def test_columns_with_commas_and_an_index_column(folder, run):
    (folder / "odd.csv").write_text(',"x, y", b\n' + "7,0,1\n8,1,1\n" * 50)
    code, out, err = run("generate", "odd.csv", "--epsilon", 1, "--rows", 2, "--columns", '"x, y",b')
    assert code == 0, err
    assert out.splitlines()[0] == '"x, y", b'


def test_devices_and_pipes_are_written_in_place(folder):
    done = in_a_process(
        *("generate", "data.csv", "--epsilon", 1, "--rows", 2, "-o", "/dev/stdout"),
        *("--record", "/dev/null"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3
    command = (
        f"(echo head; {sys.executable} -m smalldb generate data.csv --epsilon 1 --rows 2 -o /dev/stdout)"
    )
    subprocess.run(f"{command} > log", shell=True, cwd=folder, check=True, capture_output=True)
    assert len((folder / "log").read_text().splitlines()) == 4


def test_closed_streams_are_no_traceback(folder):
    command = f"{sys.executable} -m smalldb generate data.csv --epsilon 1 --rows 2"
    no_out = subprocess.run(f"{command} >&-", shell=True, cwd=folder, capture_output=True, text=True)
    assert (no_out.returncode, no_out.stderr) == (
        2,
        "smalldb: standard output is closed: name a file with -o\n",
    )
    no_err = subprocess.run(f"{command} -o out.csv 2>&-", shell=True, cwd=folder, capture_output=True)
    assert no_err.returncode == 0
    assert (folder / "out.csv").exists()
    piped = subprocess.run(
        f"{command} --quiet | true", shell=True, cwd=folder, capture_output=True, text=True
    )
    assert "Traceback" not in piped.stderr


def test_ctrl_c_leaves_nothing_behind(examples, tmp_path):
    frame = pd.read_csv(examples / "titanic.csv")[["first_class", "female", "child", "survived"]]
    for engine in ("enumeration", "dynamic"):  # so that the process below finds its kernels compiled
        smalldb.census(frame, Marginals(2), rows=4, engine=engine)
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "smalldb", "generate", examples / "titanic.csv", "--epsilon", "1"),
            *("--columns", ",".join(frame.columns), "--rows", "18", "-o", "out.csv"),
        ],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # may be ignored here
    )
    deadline = time.monotonic() + 60
    while not os.listdir(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)  # the census takes some 2 s
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert errors == "smalldb: interrupted; unfinished files were removed\n"
    assert os.listdir(tmp_path) == []


def test_progress_shows_candidates_on_a_terminal_only(folder):
    reader, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "smalldb", "generate", "data.csv", "--epsilon", "1", "--rows", "3"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=terminal,
    )
    os.close(terminal)
    shown = b""
    while True:
        try:
            piece = os.read(reader, 4096)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        shown += piece
    os.close(reader)
    assert process.wait(timeout=60) == 0
    assert b"20.0/20.0" in shown  # C(4 + 3 - 1, 3) candidates


def test_alone_it_shows_three_commands_that_work(folder, monkeypatch):
    done = in_a_process(cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", WELCOME)
    monkeypatch.chdir(folder)
    shown = re.findall("^  smalldb (.*?)  ", WELCOME, re.M)
    assert [main(command.split()) for command in shown] == [0, 0, 0]


def test_the_version_is_told(folder, run):
    assert run("--version")[1].startswith("smalldb ")
    script = os.path.join(os.path.dirname(sys.executable), "smalldb")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, cwd=folder, check=True)
    assert done.stdout.startswith("smalldb ")


@pytest.mark.parametrize(
    "given", [["nowhere.csv", "--epsilon", "1", "-o", "o.csv"], ["d.csv", "--foo"], ["d.csv"]]
)
def test_with_json_a_failure_is_a_line_for_machines_too(capfd, given):
    code, out, err = called(capfd, "generate", *given, "--json")
    said = json.loads(out)
    assert (code, said) == (2, {"error": said["error"], "exit_code": 2, "paid": False})
    if given[0] == "nowhere.csv":
        assert said["error"] == "nowhere.csv: no such file in this folder"
        assert err == f"smalldb: {said['error']}\n"
    else:
        assert err == f"{said['error']}\n"  # of the parser


def test_an_error_of_smalldb_itself_has_a_code_of_its_own(capsys, monkeypatch):
    """Python would end with 1, as a question without an answer does; what is to be reported is printed."""

    def wrong(*_):
        raise KeyError("inside")

    monkeypatch.setattr("smalldb.commands.generate._check", wrong)
    assert main(["generate", "data.csv", "--epsilon", "1", "-o", "out.csv", "--json"]) == 70
    shown = capsys.readouterr()
    assert json.loads(shown.out)["exit_code"] == 70
    assert "Traceback" in shown.err and "KeyError: 'inside'" in shown.err and "report" in shown.err
