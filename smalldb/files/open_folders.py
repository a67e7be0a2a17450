"""Folders that stay open: whatever becomes of their names, and of links on the way, is not followed."""

import errno
import os
from contextlib import ExitStack, suppress
from pathlib import Path
from stat import S_ISREG
from types import TracebackType
from typing import BinaryIO, Self, cast, final

POSIX = hasattr(os, "O_DIRECTORY")  # Windows opens no folders, and moves no open files
UNWAITING = getattr(os, "O_NONBLOCK", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


@final
class OpenFolder:
    """A folder by its path, or by its name in another one; there a link is refused: OSError."""

    def __init__(self, path: str | os.PathLike[str], outer: "OpenFolder | None" = None) -> None:
        self.path: Path = Path(path) if outer is None else outer.path / path
        self.handle: int | None = None
        if not POSIX:
            return
        flags, where = (os.O_DIRECTORY, None) if outer is None else (os.O_DIRECTORY | _NO_LINK, outer.handle)
        try:
            self.handle = os.open(path, os.O_RDONLY | flags, dir_fd=where)
        except PermissionError:  # it may be entered, and not listed
            if not hasattr(os, "O_PATH"):
                raise
            self.handle = os.open(path, os.O_PATH | flags, dir_fd=where)

    @classmethod
    def below(cls, folder: Path, *names: str) -> Self:
        """Open a folder below another one; OSError: it is missing, a link, or for others to write."""
        opened = cls(folder)
        try:
            opened.check_owner()
            for name in names:
                with opened:
                    opened = cls(name, opened)
                opened.check_owner()
        except BaseException:
            opened.close()
            raise
        return opened

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of it."""
        if self.handle is not None:
            os.close(self.handle)
            self.handle = None

    def check_owner(self, path: Path | None = None) -> None:
        """Refuse a folder of another user, or in which others may write: PermissionError (POSIX)."""
        if self.handle is not None:
            check_owner(self.handle, os.fspath(path or self.path))

    def at(self, name: str) -> str:
        """Return what names a file in it beside `dir_fd`."""
        return name if self.handle is not None else os.fspath(self.path / name)

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        """Open a file in it, no link."""
        return os.open(self.at(name), flags | _NO_LINK, mode, dir_fd=self.handle)

    def stat(self, name: str) -> os.stat_result | None:
        """Return the state of a file in it, or of a link; None: there is none."""
        with suppress(FileNotFoundError):
            return os.stat(self.at(name), dir_fd=self.handle, follow_symlinks=False)
        return None

    def replace(self, name: str, other: str) -> None:
        """Give a file in it the name of another, which goes; so does a link, and what that leads to stays."""
        os.replace(self.at(name), self.at(other), src_dir_fd=self.handle, dst_dir_fd=self.handle)

    def link(self, name: str, other: str) -> None:
        """Give a file in it another name, too, unless something has it."""
        one, two, follows = self.at(name), self.at(other), not POSIX
        with suppress(FileExistsError):
            os.link(one, two, src_dir_fd=self.handle, dst_dir_fd=self.handle, follow_symlinks=follows)

    def unlink(self, name: str) -> None:
        """Remove a file in it, if it is there."""
        with suppress(FileNotFoundError):
            os.unlink(self.at(name), dir_fd=self.handle)

    def sync(self) -> None:
        """Wait until the disk has the names of its files, where the file system can tell."""
        if self.handle is not None:
            try:
                os.fsync(self.handle)
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.EBADF):  # EBADF: it cannot be listed
                    raise


def stands_below(folder: Path, path: str) -> bool:
    """Tell whether a file stands below a folder, and neither it nor a folder on the way is a link."""
    with suppress(OSError):
        opened_below(folder, path).close()
        return True
    return False


def opened_below(folder: Path, path: str, mode: str = "rb", *, owned: bool = False) -> BinaryIO:
    """Open a file below a folder (POSIX); OSError: as `OpenFolder.below`, and so for one to be `owned`."""
    # a device, and what has other names, too, is refused like a link
    *above, name = path.split("/")
    with OpenFolder.below(folder, *above) as inside, ExitStack() as stack:
        opener = lambda _, flags: inside.open(name, flags | UNWAITING)  # noqa: E731
        file = stack.enter_context(open(path, mode, opener=opener))
        state = os.fstat(file.fileno())
        if not S_ISREG(state.st_mode) or state.st_nlink > 1:
            raise OSError(errno.EMLINK, "no file, or it has another name elsewhere: put a copy there", path)
        if owned:
            check_owner(file.fileno(), path)
        stack.pop_all()
        return cast(BinaryIO, file)


def check_owner(handle: int, path: str) -> None:
    """Refuse a file or folder of another user (but for root), or that others may write: PermissionError."""
    state = os.fstat(handle)
    others = 0o002 if _is_private_group(state.st_gid) and not _lists_others(handle) else 0o022
    if state.st_uid not in (os.geteuid(), 0) or state.st_mode & others:
        message = (
            "belongs to another user, or others may write there: take a folder of your own, and chmod go-w it"
        )
        raise PermissionError(errno.EPERM, message, path)


def _lists_others(handle: int) -> bool:
    """Tell whether a list may let others write, where the mode of the group says so (Linux)."""
    try:
        return "system.posix_acl_access" in getattr(os, "listxattr", lambda _: ())(handle)
    except OSError:
        return True


def _is_private_group(number: int) -> bool:
    """Tell whether a group is this user's alone: where each user has one, it may often write."""
    from grp import getgrgid
    from pwd import getpwuid

    with suppress(KeyError):  # no name is known
        user, group = getpwuid(os.geteuid()), getgrgid(number)
        return number == user.pw_gid and group.gr_name == user.pw_name and {*group.gr_mem} <= {user.pw_name}
    return False
