"""Full disks and places that cannot be written: a clear error, nothing half-written, the ledger true."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from calling import called
from test_ledger import record

from smalldb.cli import main
from smalldb.releasing.budget_ledger import Ledger

pytestmark = pytest.mark.slow

SMALL = "a,b\n" + "0,0\n0,1\n1,1\n1,1\n" * 500

RECORD = record("1/1000")


@pytest.fixture
def data(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "data.csv").write_text(SMALL)
    return tmp_path / "home"


@pytest.fixture
def mounted(tmp_path):
    """Mount a file system of 64 KiB in memory; needs root."""
    folders = []

    def mount(name, *options):
        folder = tmp_path / name
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", ",".join(("size=256k", *options)), "tmpfs", folder]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        except FileNotFoundError:
            pytest.skip("there is no mount")
        if done.returncode:
            pytest.skip(f"a tmpfs needs root: {done.stderr.strip()}")
        folders.append(folder)
        return folder

    yield mount
    for folder in folders:
        subprocess.run(["umount", "-l", folder], check=True, timeout=60)


def fill(folder, left=0):
    """Fill a file system but for so many bytes, a multiple of 4096."""
    with (folder / "filler").open("wb", buffering=0) as file:
        try:
            while file.write(b"0" * 4096):
                pass
        except OSError:
            pass
        file.truncate(file.tell() - left)


def content(folder):
    return {target.name: target.read_bytes() for target in folder.iterdir() if target.name != "filler"}


def generate(data, *arguments, stdout=subprocess.PIPE, **more):
    """Run `generate` in a process of its own."""
    given = ["data.csv", "--epsilon", "0.1", "--rows", "2", *arguments]
    return subprocess.run(
        [sys.executable, "-m", "smalldb", "generate", *given],
        cwd=data,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=200,
        **more,
    )


@pytest.fixture
def generated(data, capsys, monkeypatch):
    """Run `generate` here, where no file may grow beyond a limit, which needs no root."""
    monkeypatch.chdir(data)

    def done(*arguments, name="data.csv", limit=resource.RLIM_INFINITY):
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
        try:
            return called(capsys, "generate", *name.split(), "--epsilon", "0.1", *arguments)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return done


def test_a_full_disk(data, mounted, generated):
    disk = mounted("disk")
    kept, ledger = disk / "out.csv", disk / "l"
    kept.write_text("precious")
    first = Ledger(ledger, 1)
    fill(disk)
    before = content(disk)
    targets = ("--rows", 2, "-o", kept, "--record", disk / "out.json")

    # no room for the table and its record: nothing is spent, in a ledger elsewhere
    code, _, err = generated(*targets, "--ledger", "l", "--budget", 1)
    assert code == 3
    assert err == f"smalldb: {disk / 'out.json'}: no space left on device\n"
    assert content(disk) == before
    assert Ledger(data / "l").read().records == ()

    # no room for a new ledger
    code, out, err = generated("--rows", 2, "--ledger", disk / "new", "--budget", 1)
    assert (code, out) == (3, "")
    assert err == f"smalldb: {disk / 'new'}: no space left on device\n"
    assert content(disk) == before

    # a ledger takes lines to the end of its page, and then none: each that it took was spent
    spent = 0
    while True:
        try:
            first.spend(RECORD)
        except OSError as error:
            assert error.filename == str(ledger)
            break
        spent += 1
    assert spent >= 10
    account = Ledger(ledger).read()
    assert (len(account.records), account.torn) == (spent, False)
    code, out, err = generated("--rows", 2, "--ledger", ledger)
    assert (code, out) == (3, "")
    assert err.startswith(f"smalldb: {disk}/.l.")  # what is kept beside the ledger comes first
    assert err.endswith(": no space left on device\n")
    assert Ledger(ledger).read() == account
    assert sorted(content(disk)) == ["l", "out.csv"]
    assert content(disk)["out.csv"] == b"precious"

    # with room again all goes on
    (disk / "filler").unlink()
    assert generated(*targets, "--ledger", ledger)[0] == 0
    assert len(Ledger(ledger).read().records) == spent + 1
    assert sorted(content(disk)) == ["l", "out.csv", "out.json"]


def test_a_disk_that_fills_up_under_stdout(data, mounted):
    disk = mounted("disk")
    fill(disk)
    with (disk / "out.csv").open("w") as file:
        done = generate(data, "--quiet", stdout=file)
    assert done.returncode == 3
    assert done.stderr == "smalldb: output: no space left on device\n"


def test_a_disk_that_cannot_be_written(data, mounted, generated):
    disk = mounted("disk")
    Ledger(disk / "l", 1)
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True, timeout=60)
    before = content(disk)
    cases = [["-o", disk / "out.csv"], ["--ledger", disk / "l"], ["--ledger", disk / "m", "--budget", 1]]
    for arguments in cases:
        code, out, err = generated("--rows", 2, *arguments)
        assert (code, out) == (3, "")
        target = arguments[1]
        if target == disk / "l":  # what is kept beside the ledger comes first
            assert err.startswith(f"smalldb: {disk}/.l.")
        else:
            assert err.startswith(f"smalldb: {target}: ")
        assert err.endswith(": read-only file system\n")
        assert content(disk) == before


def test_a_file_that_cannot_grow(data, generated):
    for rows in (2, 9):  # compiled code is cached in files, too
        assert generated("--rows", rows)[0] == 0
    ledger = Ledger(data / "l", 1)
    for _ in range(30):  # larger than what is kept beside it
        account = ledger.spend(RECORD)
    room = (data / "l").stat().st_size
    told = f"smalldb: {data / 'l'}: file too large\n"
    for size in (room, room + 1, room + 100):
        assert generated("--rows", 2, "--ledger", data / "l", limit=size) == (3, "", told)
        assert ledger.read() == account
        assert sorted(os.listdir(data)) == ["data.csv", "l"]
    before = sorted(os.listdir(data))
    code, _, err = generated("--rows", 9, "-o", "out.csv", limit=30)
    assert code == 3
    assert err == "smalldb: out.csv: file too large\n"
    assert sorted(os.listdir(data)) == before


def test_places_that_cannot_be(data, capsys, monkeypatch):
    monkeypatch.chdir(data)
    before = content(data)
    for target, said in (
        ("none/l", "no such folder"),
        ("data.csv/l", "not a directory"),
        (".", "is a directory"),
        ("x" * 300, "name too long"),
    ):
        for option in ("--ledger", "-o", "--record"):
            more = ["--budget", "1"] if option == "--ledger" else []
            code = main(["generate", "data.csv", "--epsilon", "1", "--rows", "2", option, target, *more])
            out, err = capsys.readouterr()
            assert (code, out, len(err.splitlines())) == (2, "", 1)
            assert err.startswith(f"smalldb: {target}")
            assert said in err or "is not a ledger: it is not a regular file" in err
            assert content(data) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_places_without_permission(data, capsys, monkeypatch):
    monkeypatch.chdir(data)
    Ledger("l", 1)
    Path("l").chmod(0o444)
    locked = data / "locked"
    locked.mkdir(mode=0o555)
    for option, target in (("--ledger", "l"), ("-o", "locked/out.csv"), ("--record", "locked/out.json")):
        assert main(["generate", "data.csv", "--epsilon", "1", "--rows", "2", option, target]) == 3
        assert capsys.readouterr() == ("", f"smalldb: {target}: permission denied\n")
    assert Ledger("l").read().records == ()
    assert os.listdir(locked) == []


def test_a_cache_of_compiled_code_that_cannot_grow_is_named(data, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(data / "cache"))
    done = generate(
        data, "-o", "out.csv", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
    )
    assert (done.returncode, done.stdout) == (3, "")
    told = "the cache of compiled code (NUMBA_CACHE_DIR names another place)"
    assert done.stderr == f"smalldb: {told}: file too large\n"
    assert sorted(os.listdir(data)) == ["cache", "data.csv"]


HOMES = """
unit = "homes"
tables.homes = { key = "home", columns = { owned = { kind = "bool" } } }
tables.persons = { parent = "homes", most = 3, columns = { works = { kind = "bool" } } }
"""


def test_no_room_for_related_tables_costs_nothing(data, mounted, generated):
    (data / "homes.csv").write_text("home,owned\n" + "".join(f"{i},{i % 2}\n" for i in range(2000)))
    (data / "persons.csv").write_text("home,works\n" + "".join(f"{i},{i % 3 % 2}\n" for i in range(2000)))
    (data / "s.toml").write_text(HOMES)
    disk = mounted("disk")
    fill(disk, 8192)
    given = ["--schema", "s.toml", "--quiet", "--even-if-empty", "--ledger", "l", "--budget", 1]
    name = "homes=homes.csv persons=persons.csv"
    before = content(disk)
    code, _, err = generated(*given, "-o", disk / "out", name=name)
    assert code == 3 and err.endswith(": no space left on device\n"), err
    assert content(disk) == before and Ledger(data / "l").read().records == ()
    code, _, err = generated(*given, "-o", "out", name=name, limit=1 << 14)
    assert code == 3 and err.endswith(": file too large\n"), err
    assert Ledger(data / "l").read().records == () and not [*data.glob(".*out*")]
    code, _, err = generated(*given, "-o", "out", name=name)
    assert code == 0 and len(Ledger(data / "l").read().records) == 1, err
