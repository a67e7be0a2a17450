"""Files of lines that are compressed: ``.gz``, ``.zst``, and ``.zip`` of one file."""

from __future__ import annotations

import gzip
import io
import os
import zipfile
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, cast, final

from queries import DataError
from smalldb.files import of_extra
from smalldb.files.inputs import name_of

_MAGIC = {".gz": b"\x1f\x8b", ".zst": b"\x28\xb5\x2f\xfd", ".zip": b""}  # how such files begin
_BLOCK = 1 << 20
_LEVEL = 6


def parted(path: str) -> tuple[str, str]:
    """Part a file's name from what it is compressed by.

    >>> parted("people.csv.GZ"), parted("people.csv")
    (('people.csv', '.gz'), ('people.csv', ''))
    """
    name = name_of(path)
    stem, suffix = os.path.splitext(name)
    return (stem, suffix.lower()) if suffix.lower() in _MAGIC else (name, "")


def inner_name(path: str) -> str:
    """Return the name of a file without its compression; of ``table.zip`` that of the file inside."""
    stem, packed = parted(path)
    if packed == ".zip" and not os.path.splitext(stem)[1] and os.path.isfile(path):
        with _archive(path) as archive:
            return _only(archive, path)
    return stem


def open_bytes(path: str) -> BinaryIO:
    """Open a file, which may be compressed by its name; what is read of it can be sought."""
    packed = parted(path)[1]
    if not packed or not os.path.isfile(path):
        return Path(path).open("rb")
    with Path(path).open("rb") as file:
        if not file.read(4).startswith(_MAGIC[packed]):
            raise ValueError(f"{path} is not a {packed} file")
    return cast(BinaryIO, io.BufferedReader(_Unpacked(partial(_OPEN[packed], path), path, packed), _BLOCK))


def compress(content: bytes, packed: str, name: str = "table") -> bytes:
    """Compress the content of a file as its suffix says; the same bytes from the same content."""
    match packed:
        case ".gz":
            return gzip.compress(content, _LEVEL, mtime=0)
        case ".zst":
            compressed: bytes = zstandard().ZstdCompressor().compress(content)
            return compressed
        case ".zip":
            buffer = io.BytesIO()
            with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
                archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
            return buffer.getvalue()
    return content


@final
class _Unpacked(io.RawIOBase):
    """A compressed file as one that is not; who seeks back has it read anew from its beginning."""

    def __init__(self, begin: Callable[[], IO[bytes]], path: str, packed: str) -> None:
        self._begin, self._path, self._packed = begin, path, packed
        self._file, self._at = begin(), 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        content: bytes | None = None
        try:
            content = self._file.read(len(buffer))
        except (EOFError, zlib.error, zipfile.BadZipFile, gzip.BadGzipFile, RuntimeError):
            pass
        except Exception as error:
            if type(error).__name__ != "ZstdError":
                raise
        if content is None:  # not chained: nothing of the data may travel in an error
            raise DataError(
                f"{self._path} is broken: it is not a {self._packed} file that can be read to its end"
            )
        buffer[: len(content)] = content
        self._at += len(content)
        return len(content)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_END:
            raise io.UnsupportedOperation("the length of what is compressed is not known")
        target = offset + (self._at if whence == io.SEEK_CUR else 0)
        if target < self._at:
            self._file.close()
            self._file, self._at = self._begin(), 0
        waste = bytearray(_BLOCK)
        while self._at < target and self.readinto(memoryview(waste)[: min(_BLOCK, target - self._at)]):
            pass
        return self._at

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def zstandard() -> Any:
    """Return the module for .zst files; ValueError: it is not installed."""
    with of_extra("zstandard", "zstd", ".zst files"):
        import zstandard as module
    return module


def _zstd(path: str) -> IO[bytes]:
    reading = zstandard().ZstdDecompressor().stream_reader
    return cast(IO[bytes], reading(Path(path).open("rb"), read_across_frames=True, closefd=True))


def _archive(path: str) -> zipfile.ZipFile:
    with Path(path).open("rb"):
        pass  # the usual error where it cannot be read
    try:
        return zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path} is not a .zip file") from error


def _only(archive: zipfile.ZipFile, path: str) -> str:
    files = [each for each in archive.infolist() if not each.is_dir()]
    files = [each for each in files if not each.filename.startswith("__MACOSX/")]
    if len(files) != 1:
        raise ValueError(f"{path} holds {len(files)} files, not one: unpack it, and name the table")
    if files[0].flag_bits & 1:
        raise ValueError(f"{path} needs a password: unpack it first")
    return files[0].filename


def _zip(path: str) -> IO[bytes]:
    with _archive(path) as archive:  # an open entry keeps the archive's file open
        return archive.open(_only(archive, path))


_OPEN: Mapping[str, Callable[[str], Any]] = {".gz": gzip.open, ".zst": _zstd, ".zip": _zip}
