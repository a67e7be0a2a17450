"""Files of Arrow, also named Feather: of its file format and its stream format, by pyarrow."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from typing import Any, ClassVar, final

from smalldb.schema.file_format import USUAL, FileFormat
from smalldb.schema.pieces import CHUNK, Piece
from smalldb.schema.readers.parquet_files import declared, pieces_of
from smalldb.schema.readers.reader import Wanted, WithoutCodeBook, of_extra

WHAT = "Arrow files"
_MAGIC = b"ARROW1"


@final
class ArrowFiles(WithoutCodeBook):
    """A `Reader` of Arrow."""

    name: ClassVar[str] = "arrow"
    suffixes: ClassVar[tuple[str, ...]] = (".arrow", ".feather", ".ipc", ".arrows")
    lines: ClassVar[bool] = False
    headed: ClassVar[bool] = True

    def columns(
        self, path: str, file: FileFormat = USUAL, known: Collection[str] = ()
    ) -> Mapping[str, object]:
        """Return the columns with the dtypes that the file declares."""
        with ExitStack() as stack:
            return declared(_opened(path, stack).schema)

    def pieces(
        self, path: str, wanted: Wanted, file: FileFormat = USUAL, progress: bool = False
    ) -> Iterator[Piece]:
        """Yield the columns batch by batch, of a mapped file."""
        with ExitStack() as stack:
            opened = _opened(path, stack)
            names = opened.schema.names
            chosen = [names[i] for i in wanted.choose(names)]
            yield from pieces_of(_batches(opened), chosen, path)


def _opened(path: str, stack: ExitStack) -> Any:
    """Open a file of Arrow, for as long as `stack` is."""
    with of_extra("pyarrow", "smalldb-dp[parquet]", WHAT):
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
