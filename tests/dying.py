"""A release that dies at a chosen moment."""

import pytest

from smalldb.files.checkpoints import Checkpoint


class Killed(BaseException):
    """No error that anything could take care of."""


def stop_after(patch, parts):
    """Have a release die as soon as so many parts are saved."""
    save = Checkpoint.save

    def dying(self, index, result):
        save(self, index, result)
        if index + 1 == parts:
            raise Killed

    patch.setattr(Checkpoint, "save", dying)


def killed_after(parts, call, *given, **more):
    """Let a call die as soon as so many parts are saved."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        stop_after(patch, parts)
        call(*given, **more)
