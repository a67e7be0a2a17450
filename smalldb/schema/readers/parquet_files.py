"""Parquet files, folders and patterns of them, and Arrow files, by pyarrow."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, final
from urllib.parse import unquote

import numpy as np

from queries.frames import from_arrow
from smalldb.files import of_extra
from smalldb.files.inputs import PARQUET, files_of, folders_of
from smalldb.schema.fields import CHUNK, Piece
from smalldb.schema.file_format import FileFormat
from smalldb.schema.readers import Reader, Wanted, unbroken

_GAP = "__HIVE_DEFAULT_PARTITION__"


@final
class ParquetFiles(Reader):
    """A `Reader` of Parquet."""

    name: ClassVar[str] = "parquet"
    suffixes: ClassVar[tuple[str, ...]] = PARQUET

    def columns(self, path: str, file: FileFormat, known: Collection[str]) -> Mapping[str, object]:
        """Return the columns with the dtypes that the file declares."""
        first, *others = _parts(path)
        for part in others:
            if {*part.names} != {*first.names}:
                raise ValueError(f"{path}: its files do not all have the same columns")
        return first.declared()

    def pieces(self, path: str, wanted: Wanted, file: FileFormat, progress: bool) -> Iterator[Piece]:
        """Yield the columns batch by batch, of each file in turn."""
        for part in _parts(path):
            chosen = wanted.among(part.names)
            # a column at least tells how many rows there are
            read = [name for name in chosen if name not in part.folders] or [part.names[0]]
            with part.opened() as opened:
                batches = opened.iter_batches(batch_size=CHUNK, columns=read)
                for columns, times in pieces_of(batches, read, path):
                    fields = dict(zip(read, columns, strict=True))
                    for name, stated in part.folders.items():
                        fields[name] = np.full(len(columns[0]), stated, dtype=object)
                    yield [fields[name] for name in chosen], times


@final
@dataclass(frozen=True, slots=True)
class _Part:
    """A file of a table of Parquet."""

    path: str  # of the table: a file's own may hold values of the data
    file: str
    names: tuple[str, ...]  # its columns, and behind them those that folders state
    # by column, the value that a folder such as ``year=2020`` states for all rows of the file; None: a gap
    folders: Mapping[str, str | None]

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """Open it."""
        with _readable(self.path) as parquet:
            file = parquet.ParquetFile(self.file)
        with file:
            yield file

    def declared(self) -> dict[str, object]:
        """Return the columns with their dtypes in pandas."""
        with _readable(self.path) as parquet:
            dtypes = declared(parquet.read_schema(self.file))
        return dtypes | dict.fromkeys(self.folders, "string")


def _parts(path: str) -> list[_Part]:
    """Return the files of a table: one, or those of a folder or a pattern."""
    files = files_of(path)
    if not files:
        raise ValueError(f"{path}: there are no Parquet files")
    parts = list[_Part]()
    for file in files:
        stated = [folder.partition("=") for folder in folders_of(path, file) if "=" in folder]
        keys = {key: None if value == _GAP else unquote(value) for key, _, value in stated}
        with _readable(path) as parquet:
            names = parquet.read_schema(file).names
        if repeated := [key for key in keys if key in names]:
            raise ValueError(f"{path}: column {repeated[0]!r} is in the files and in the names of folders")
        parts.append(_Part(path, file, (*names, *keys), keys))
    return parts


@contextmanager
def _readable(path: str) -> Iterator[Any]:
    """Read by pyarrow's module of Parquet; ValueError: it is not installed, or cannot."""
    with of_extra("pyarrow", "parquet", "Parquet files"):
        from pyarrow import ArrowException, parquet
    try:
        yield parquet
    except ArrowException as error:
        raise ValueError(f"{path} is not a Parquet file that can be read") from error
    except OSError as error:  # pyarrow raises it for broken files, too, and may name the file
        if error.errno is None:
            raise ValueError(f"{path} is not a Parquet file that can be read") from None
        raise OSError(error.errno, os.strerror(error.errno), path) from None


def pieces_of(batches: Iterable[Any], chosen: list[str], path: str) -> Iterator[Piece]:
    """Yield columns of batches of Arrow."""
    from pyarrow import ArrowException, Table

    def piece(batch: Any) -> Piece:
        # without what pandas noted: its index is a column like any other
        frame = from_arrow(Table.from_batches([batch]).select(chosen), ignore_metadata=True)
        return [frame[name] for name in chosen], None

    return unbroken(map(piece, batches), (ArrowException, OSError), path)


def declared(schema: Any) -> dict[str, object]:
    """Return the columns of a schema of Arrow with their dtypes in pandas."""
    from pyarrow import types

    dtypes = schema.empty_table().to_pandas(ignore_metadata=True).dtypes.items()
    texts = {each.name for each in schema if types.is_string(each.type) or types.is_large_string(each.type)}
    return {str(name): "string" if name in texts else dtype for name, dtype in dtypes}


_MAGIC = b"ARROW1"


@final
class ArrowFiles(Reader):
    """A `Reader` of Arrow."""

    name: ClassVar[str] = "arrow"
    suffixes: ClassVar[tuple[str, ...]] = (".arrow", ".feather", ".ipc", ".arrows")

    def columns(self, path: str, file: FileFormat, known: Collection[str]) -> Mapping[str, object]:
        """Return the columns with the dtypes that the file declares."""
        with ExitStack() as stack:
            return declared(_opened(path, stack).schema)

    def pieces(self, path: str, wanted: Wanted, file: FileFormat, progress: bool) -> Iterator[Piece]:
        """Yield the columns batch by batch, of a mapped file."""
        with ExitStack() as stack:
            opened = _opened(path, stack)
            yield from pieces_of(_batches(opened), wanted.among(opened.schema.names), path)


def _opened(path: str, stack: ExitStack) -> Any:
    """Open a file of Arrow, for as long as `stack` is."""
    with of_extra("pyarrow", "parquet", "Arrow files"):
        from pyarrow import ArrowException, ipc, memory_map
    with open(path, "rb") as begun:
        in_file = begun.read(len(_MAGIC)) == _MAGIC
    try:
        mapped = stack.enter_context(memory_map(path))
        return stack.enter_context(ipc.open_file(mapped) if in_file else ipc.open_stream(mapped))
    except (ArrowException, EOFError) as error:
        raise ValueError(f"{path} is not an Arrow file that can be read") from error


def _batches(opened: Any) -> Iterator[Any]:
    """Yield the batches of a file or a stream, in slices."""
    many = hasattr(opened, "num_record_batches")
    for batch in map(opened.get_batch, range(opened.num_record_batches)) if many else opened:
        for begin in range(0, batch.num_rows, CHUNK):
            yield batch.slice(begin, CHUNK)
