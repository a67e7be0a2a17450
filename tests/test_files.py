"""Output files appear whole or not at all."""

import os
import threading

import pytest

from smalldb.files import Outputs
from smalldb.unfinished import abandon


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


def test_places_that_cannot_be_written_are_found_at_once(tmp_path):
    for place in (tmp_path / "no" / "such" / "out", tmp_path):
        with pytest.raises(OSError) as caught:
            Outputs([str(tmp_path / "fine"), str(place)])
        assert caught.value.filename == str(place)
        assert os.listdir(tmp_path) == []


def test_a_pipe_is_written_in_place(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    with Outputs([str(pipe)]) as outputs:
        outputs.write(str(pipe), "text")
    reader.join(timeout=10)
    assert read == ["text"]
    assert os.listdir(tmp_path) == ["pipe"]
