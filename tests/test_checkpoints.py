"""Work that is killed and started again: the same result; what is damaged or of another run is refused."""

import json
import os
import signal
import subprocess
import sys
from fractions import Fraction
from math import comb

import numpy as np
import pandas as pd
import pytest
from builders import same

import smalldb
from queries import Conjunctions, Domain
from smalldb.cli import main
from smalldb.counting.dynamic_engine import _pack, _unpack
from smalldb.counting.recursion import Cost
from smalldb.files.checkpoints import MARK, Checkpoint, finished, identity

FRAME = pd.DataFrame({"a": [0, 0, 1, 1, 1], "b": [0, 1, 1, 1, 0], "c": [1, 0, 1, 0, 0]})
AB = Domain(["a", "b"])
ENGINES = [("enumeration", "multisets"), ("dynamic", "multisets"), ("dynamic", "tuples")]


def census(folder=None, frame=FRAME, **given):
    chosen = {"rows": 6, "engine": "dynamic", "shards": 9, "threads": 1} | given
    return smalldb.census(frame, Conjunctions(2), checkpoint=folder, **chosen)


@pytest.fixture
def kept(tmp_path):
    """An empty folder for a checkpoint."""
    (tmp_path / "kept").mkdir(mode=0o700)
    return tmp_path / "kept"


def shards(folder):
    return sorted(path for path in folder.iterdir() if path.suffix == ".shard")


def twice(part):
    return 2 * part


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "base"), ENGINES)
def test_what_is_left_is_done_and_the_result_is_the_same(engine, base, tmp_path):
    chosen = {"engine": engine, "candidates": base}
    plain = census(**chosen)
    folder = tmp_path / "kept"
    assert same(census(folder, **chosen), plain)
    files = shards(folder)
    assert len(files) >= 9
    for path in files[::2]:
        path.unlink()
    before = {path: path.stat().st_mtime_ns for path in shards(folder)}
    again = census(folder, **chosen)
    assert same(again, plain)
    assert shards(folder) == files
    assert before == {path: path.stat().st_mtime_ns for path in before}
    level, count = again.levels[-1], again.counts[-1]
    assert again.candidate(level, count - 1).tolist() == plain.candidate(level, count - 1).tolist()


def test_finished_parts_are_not_done_again(tmp_path):
    kept = Checkpoint(tmp_path / "kept", "run")
    assert dict(finished(twice, [3, 4, 5], checkpoint=kept)) == {0: 6, 1: 8, 2: 10}

    def never(part):
        raise AssertionError("a finished part was done again")

    assert dict(finished(never, [3, 4, 5], checkpoint=kept)) == {0: 6, 1: 8, 2: 10}


def test_modes_and_marks(tmp_path):
    folder = tmp_path / "any" / "kept"
    mask = os.umask(0)
    try:
        census(folder)
    finally:
        os.umask(mask)
    assert folder.stat().st_mode & 0o777 == 0o700
    for path in folder.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
    for path in shards(folder):
        assert path.read_text().startswith(MARK)
        assert "CONFIDENTIAL" in MARK


def test_one_changed_byte_anywhere_is_found(tmp_path):
    kept = Checkpoint(tmp_path, "run")
    tmp_path.chmod(0o700)
    with kept.opened():
        kept.save(0, [1, 2, 3])
        path = tmp_path / "000000.shard"
        raw = path.read_bytes()
        damages = [raw[:i] + bytes([raw[i] ^ 1]) + raw[i + 1 :] for i in range(len(raw))]
        damages += [raw[:i] for i in range(len(raw))] + [raw + b"\n", raw + raw, b"\0" * len(raw)]
        for damaged in damages:
            path.write_bytes(damaged)
            with pytest.raises(ValueError, match=r"is damaged|is of another run"):
                kept.load(0)
        path.write_bytes(raw)
        assert kept.load(0) == [1, 2, 3]


@pytest.mark.parametrize(
    "other",
    [
        {"frame": FRAME[::-1].assign(a=1)}, {"rows": 5}, {"shards": 30}, {"candidates": "tuples"},
        {"engine": "enumeration"},
    ],
    ids=str,
)  # fmt: skip
def test_a_checkpoint_of_another_run_is_refused(other, kept):
    census(kept)
    with pytest.raises(ValueError, match="of another run"):
        census(kept, **other)


def test_a_checkpoint_of_another_version_is_refused(kept, monkeypatch):
    census(kept)
    monkeypatch.setattr("smalldb.files.checkpoints.__version__", "0.0.0")
    with pytest.raises(ValueError, match=r"is of smalldb .*, and this is smalldb 0\.0\.0"):
        census(kept)


def test_folders_that_are_refused(tmp_path, monkeypatch):
    open_to_others = tmp_path / "open"
    open_to_others.mkdir(mode=0o755)
    with pytest.raises(ValueError, match="others may enter"):
        census(open_to_others)
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    (other / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="holds other things"):
        census(other)
    with pytest.raises(FileExistsError):
        census(other / "notes.txt")
    for wrong, error in ((7, TypeError), ("", ValueError)):
        with pytest.raises(error, match="checkpoint"):
            census(wrong)
    with monkeypatch.context() as patched, pytest.raises(ValueError, match="another user's"):
        patched.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
        census(tmp_path / "anothers")
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with pytest.raises(ValueError, match="no file locks"):
        census(tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


@pytest.mark.slow
def test_two_calls_do_not_share_a_folder(tmp_path):
    folder = tmp_path / "kept"
    code = "import smalldb.files.checkpoints as c, sys\nwith c.Checkpoint(sys.argv[1], 'run').opened(): pass"

    def said():
        command = [sys.executable, "-c", code, folder]
        return subprocess.run(command, capture_output=True, text=True, check=False).stderr

    with Checkpoint(folder, "run").opened():
        assert "another process works in" in said()
        with pytest.raises(ValueError, match="another call works in"):
            census(folder)
        assert "another process works in" in said()
    assert said() == ""


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_link_in_place_of_a_part_is_not_written_through(link, kept, tmp_path):
    target = tmp_path / "precious"
    target.write_text("precious")
    link(target, kept / "000000.part")
    census(kept)
    assert target.read_text() == "precious"


@pytest.mark.parametrize(
    ("place", "make", "message"),
    [
        ("000001.shard", lambda first, path: os.mkfifo(path), r"000001\.shard is not a regular file"),
        ("000001.shard", lambda first, path: os.mkdir(path), r"000001\.shard is not a regular file"),
        ("000001.shard", lambda first, path: path.write_bytes(first.read_bytes()), "of another run"),
        ("0000001.shard", os.link, "holds other things"),
    ],
)
def test_what_is_no_part_of_its_own_place_is_refused(place, make, message, tmp_path):
    kept, folder = Checkpoint(tmp_path / "kept", "run"), tmp_path / "kept"
    list(finished(twice, [3, 4], checkpoint=kept))
    (folder / "000001.shard").unlink()
    make(folder / "000000.shard", folder / place)
    with pytest.raises(ValueError, match=message):
        list(finished(twice, [3, 4], checkpoint=kept))


def test_a_lock_that_is_a_link_or_a_pipe_is_refused(kept, tmp_path):
    (kept / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic link"):
        census(kept)
    assert not (tmp_path / "elsewhere").exists()
    (kept / "lock").unlink()
    os.mkfifo(kept / "lock")
    with pytest.raises(OSError, match="lock"):
        census(kept)
    reader = os.open(kept / "lock", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(ValueError, match="lock is not a regular file"):
        census(kept)
    os.close(reader)


def test_an_old_part_does_not_open_what_replaces_it(kept):
    (kept / "000000.part").touch(mode=0o644)
    census(kept)
    assert {path.stat().st_mode & 0o777 for path in kept.iterdir()} == {0o600}


def test_a_full_disk_leaves_nothing_half_written(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        census(tmp_path / "kept")
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["lock"]


def test_counts_of_many_digits_are_kept():
    counted = [10**5000 + 7, 0, 1], Cost(3, 2, 1)
    assert _unpack(json.loads(json.dumps(_pack(counted)))) == counted


AUDITS = [
    {"rows": 2, "neighbours": "add-remove"},
    {"rows": 3, "candidates": "tuples"},
    {"mechanism": "select", "method": "permute-and-flip"},
    {"mechanism": "select", "method": "top-k", "k": 2, "neighbours": "add-remove"},
]


@pytest.mark.slow
@pytest.mark.parametrize("given", AUDITS, ids=str)
def test_audits_go_on(given, tmp_path):
    folder = tmp_path / "kept"
    chosen = {"n": 4, "epsilon": Fraction(1, 3)} | given
    plain = smalldb.audit(AB, "conjunctions:2", **chosen)
    assert smalldb.audit(AB, "conjunctions:2", **chosen, checkpoint=folder) == plain
    files = shards(folder)
    assert len(files) > 4
    for path in files[1::2]:
        path.unlink()
    assert smalldb.audit(AB, "conjunctions:2", **chosen, checkpoint=folder) == plain
    assert shards(folder) == files
    with pytest.raises(ValueError, match="of another run"):
        smalldb.audit(AB, "conjunctions:2", **chosen | {"epsilon": 1}, checkpoint=folder)


def test_a_mechanism_of_ones_own_has_no_checkpoint(tmp_path):
    with pytest.raises(ValueError, match="checkpoint is for"):
        smalldb.audit(AB, n=2, mechanism=lambda x: {0: 1}, checkpoint=tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_what_tells_runs_apart(tmp_path):
    values = [
        ("a",), ("b",), ("a", "b"), ("ab",), (1,), ("1",), (np.arange(4),), (np.arange(4).reshape(2, 2),),
    ]  # fmt: skip
    values += [(np.arange(4, dtype=np.int32),), (np.arange(4)[::-1],), (np.arange(4), np.arange(4))]
    assert len({identity(*each) for each in values}) == len(values)
    assert identity(np.arange(8)[::2]) == identity(np.array([0, 2, 4, 6]))


def test_the_commands(workdir, capfd):
    FRAME.to_csv("data.csv", index=False)
    arguments = ["census", "data.csv", "--rows", "4", "--json", "--checkpoint", "kept"]
    assert main(arguments) == 0
    first = capfd.readouterr().out
    assert json.loads(first)["total"] == str(comb(11, 4))
    assert main(arguments) == 0
    assert capfd.readouterr().out == first
    FRAME.assign(a=0).to_csv("data.csv", index=False)
    assert main(arguments) == 2
    assert "of another run" in capfd.readouterr().err
    arguments = ["audit", "--attributes", "2", "--rows", "2", "--epsilon", "1", "--n", "4", "--json"]
    assert main(arguments) == 0
    plain = capfd.readouterr().out
    for _ in range(2):
        assert main([*arguments, "--checkpoint", "audits"]) == 0
        assert capfd.readouterr().out == plain
    assert sorted(os.listdir("audits")) == ["add-remove", "replace-one"]
    for refused in (("--n", "1000000"), ("--mechanism", "contrasts"), ("--neighbours", "none")):
        assert main([*arguments, *refused, "--checkpoint", "unmade/audits"]) == 2
        assert json.loads(capfd.readouterr().out)["exit_code"] == 2
        assert not os.path.exists("unmade")
    for command in arguments, ["census", "data.csv", "--rows", "4"]:
        assert main([*command, "--checkpoint", ""]) == 2
        assert capfd.readouterr().err == "smalldb: checkpoint needs a folder's name\n"


@pytest.mark.slow
def test_killed_again_and_again(tmp_path):
    """Killed within every eleventh part, until it comes to its end."""
    folder, states, fsync, written = tmp_path / "kept", [], os.fsync, []
    whole = census()  # compiled here, not in each child

    def dying(handle):
        written.extend(["a part"] * os.readlink(f"/proc/self/fd/{handle}").endswith(".part"))
        if len(written) == 11:
            os.kill(os.getpid(), signal.SIGKILL)
        fsync(handle)

    def killed():
        if not (child := os.fork()):
            code = 1
            try:
                os.fsync = dying
                census(folder, shards=40)
                code = 0
            finally:
                os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    while ended := killed():
        assert ended == -signal.SIGKILL
        states.append([sum(name.endswith(end) for name in os.listdir(folder)) for end in (".shard", ".part")])
    assert states == [[10, 1], [20, 1], [30, 1]]
    assert same(census(folder, shards=40), whole)
