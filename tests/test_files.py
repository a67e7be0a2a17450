"""Output files appear whole or not at all."""

import os
import tempfile

import pytest

from smalldb.files import outputs as files
from smalldb.files.output_folders import OutputFolder
from smalldb.files.outputs import Outputs, beside, create
from smalldb.files.unfinished import abandon


def test_files_appear_together_at_the_end(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("old")
    one.chmod(0o640)
    with Outputs([str(one), str(two)]) as outputs:
        outputs.write(str(one), "new\n")
        outputs.write(str(two), "\u00e9\n")
        assert one.read_text() == "old"
        assert not two.exists()
    assert (one.read_text(), two.read_text(encoding="utf-8")) == ("new\n", "\u00e9\n")
    assert one.stat().st_mode & 0o777 == 0o640
    mask = os.umask(0)
    os.umask(mask)
    assert two.stat().st_mode & 0o777 == 0o666 & ~mask
    assert sorted(os.listdir(tmp_path)) == ["one", "two"]


def test_what_is_confidential_is_for_the_owner_alone(tmp_path):
    paths = [str(tmp_path / name) for name in ("one", "two", "page", "old")]
    (tmp_path / "old").write_text("old")
    (tmp_path / "old").chmod(0o666)
    mask = os.umask(0)
    try:
        with Outputs(paths, confidential=paths[2:]) as outputs:
            modes = sorted(path.stat().st_mode & 0o777 for path in tmp_path.glob(".*"))
            assert modes == [0o600] * 2 + [0o666] * 2
            for path in paths:
                outputs.write(path, "new")
    finally:
        os.umask(mask)
    assert [os.stat(path).st_mode & 0o777 for path in paths] == [0o666] * 2 + [0o600] * 2


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_error_leaves_everything_as_it_was(tmp_path, error):
    one = tmp_path / "one"
    one.write_text("old")
    with pytest.raises(error), Outputs([str(one), str(tmp_path / "two")]) as outputs:
        outputs.write(str(one), "new")
        raise error
    assert one.read_text() == "old"
    assert os.listdir(tmp_path) == ["one"]


def test_what_was_begun_can_be_abandoned(tmp_path):
    with pytest.raises(FileNotFoundError), Outputs([str(tmp_path / "one")]):
        assert len(os.listdir(tmp_path)) == 1
        abandon()
        assert os.listdir(tmp_path) == []
    assert os.listdir(tmp_path) == []


def test_a_link_stays_a_link(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    link.symlink_to(real)
    with Outputs([str(link)]) as outputs:
        outputs.write(str(link), "new")
    assert link.is_symlink()
    assert real.read_text() == "new"


@pytest.fixture
def planted(tmp_path):
    """A folder to write in, a file outside, and links to it and its folder that another one plants."""
    inside, outside = tmp_path / "in", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
    (outside / "out").write_text("other")

    def file():
        (inside / "out").unlink(missing_ok=True)
        (inside / "out").symlink_to(outside / "out")

    def folder():
        inside.rename(tmp_path / "moved")
        inside.symlink_to(outside)

    def begun():
        (part,) = inside.glob(".*")
        part.unlink()
        part.symlink_to(outside / "out")

    yield inside, {"file": file, "folder": folder, "begun": begun}
    assert (outside / "out").read_text() == "other" and os.listdir(outside) == ["out"]


@pytest.mark.parametrize("link", ["file", "folder", "begun"])
def test_a_link_that_is_planted_while_a_file_is_written_is_not_followed(planted, link):
    inside, plant = planted
    path = str(inside / "out")
    with Outputs([path]) as outputs:
        plant[link]()
        outputs.write(path, "own")
    if link != "begun":  # what stood beside its place is the other one's
        written = inside.parent / ("moved" if link == "folder" else "in") / "out"
        assert written.read_text() == "own" and not written.is_symlink()


def test_nor_is_one_that_is_planted_while_a_ledger_is_made(planted, monkeypatch):
    (inside, _), fill = planted, files.fill
    new = inside.parent / "outside" / "new"
    monkeypatch.setattr(files, "fill", lambda *given: (fill(*given), (inside / "out").symlink_to(new)))
    create(str(inside / "out"), b"ledger")
    assert os.listdir(inside) == ["out"]


@pytest.mark.parametrize("link", ["file", "folder", "begun"])
def test_nor_is_one_that_is_planted_while_a_folder_is_written(planted, link):
    inside, plant = planted
    folder = OutputFolder(str(inside / "out"))
    (begun,) = inside.iterdir()
    if link == "begun":
        begun.rename(inside / "gone")
        begun.symlink_to(inside.parent / "outside")
    else:
        plant[link]()
    folder.write("out", "own")
    if link == "file":
        with pytest.raises(OSError):
            folder.place()
    elif link == "folder":
        folder.place()
        assert (inside.parent / "moved" / "out" / "out").read_text() == "own"
    folder.close()


def test_below_a_folder_no_link_is_followed(planted):
    inside, plant = planted
    plant["file"]()
    with pytest.raises(ValueError, match="is a link"), Outputs(["out"], below=inside):
        pass
    (inside / "deep").symlink_to(inside.parent / "outside")
    with pytest.raises(OSError), Outputs(["deep/out"], below=inside):
        pass
    with Outputs(["new"], below=inside) as outputs:
        outputs.write("new", "own")
    assert (inside / "new").read_text() == "own" and sorted(os.listdir(inside)) == ["deep", "new", "out"]


def test_places_that_cannot_be_written_are_found_at_once(tmp_path):
    for target in (tmp_path / "no" / "such" / "out", tmp_path):
        with pytest.raises(OSError) as caught:
            Outputs([str(tmp_path / "fine"), str(target)])
        assert caught.value.filename == str(target)
        assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no disk in memory")
def test_a_file_on_a_disk_in_memory_is_replaced():
    with tempfile.NamedTemporaryFile(dir="/dev/shm", delete=False) as file:
        file.write(b"old")
    try:
        with Outputs([file.name], confidential=[file.name]) as outputs:
            outputs.write(file.name, "new")
        with open(file.name) as written:
            assert written.read() == "new"
    finally:
        os.unlink(file.name)


def test_a_pipe_is_written_after_all_files_are_in_place(tmp_path, monkeypatch):
    pipe, file = tmp_path / "pipe", tmp_path / "file"
    os.mkfifo(pipe)
    handle = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="No space"), Outputs([str(pipe), str(file)]) as outputs:
        outputs.write(str(pipe), "released")
        outputs.write(str(file), "record")
    assert os.read(handle, 100) == b""
    os.close(handle)
    assert os.listdir(tmp_path) == ["pipe"]


def test_what_a_killed_process_has_begun_is_removed_by_the_next_and_by_no_other(tmp_path):
    fcntl = pytest.importorskip("fcntl")
    target, mine = str(tmp_path / "out"), tmp_path / ".out.x.part"
    dead = [tmp_path / ".out.1-2-3.part", tmp_path / ".out.a-bc-0.part"]
    alive, other = tmp_path / ".out.7-8-9.part", tmp_path / ".outer.1-2.part"
    for path in (*dead, alive, other, mine):
        path.write_text("x")
    with alive.open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with Outputs([target]) as outputs, Outputs([target]) as twice:  # two at once leave each other's alone
            outputs.write(target, "first")
            twice.write(target, "second")
    assert sorted(os.listdir(tmp_path)) == sorted(["out", alive.name, other.name, mine.name])
    assert (tmp_path / "out").read_text() == "first"
    (tmp_path / "long").mkdir()
    for length in (3, 100, 190, 224, 230, 254, 255):  # so it is for names of any length
        target = str(tmp_path / "long" / ("x" * length))
        left = beside(target, "7f2a-18b4c5d6e7f80912-31.part")
        assert len(left.name) <= 255
        left.write_text("x")
        with Outputs([target]) as outputs:
            outputs.write(target, "whole")
        assert not left.exists() and os.path.exists(target)
    assert len(os.listdir(tmp_path / "long")) == 7


def test_what_a_killed_night_began_is_swept_by_the_next_under_another_date(tmp_path):
    """Files and folders; not what another process holds, or what has another name."""
    left = tmp_path / ".out-2026-11-27.csv.1f-17ab-0.part"
    left.touch()
    folder = tmp_path / ".tables-2026-11-27.1f-17ab-0.parts"
    folder.mkdir()
    (folder / "table-01.csv").touch()
    other = tmp_path / ".out-2026-11-27.csv.part"
    other.touch()
    with Outputs([str(tmp_path / "held.csv")]):
        (held,) = tmp_path.glob(".held.csv.*.part")
        with Outputs([str(tmp_path / "out-2026-11-28.csv")]):
            assert held.exists() and other.exists() and not left.exists()
    OutputFolder(str(tmp_path / "tables-2026-11-28")).close()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == [other.name]
