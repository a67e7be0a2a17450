"""Parquet files, by pyarrow."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, ClassVar, final

from queries import DataError
from queries.frames import from_arrow
from smalldb.schema.codebook import Described
from smalldb.schema.file_format import USUAL, FileFormat
from smalldb.schema.pieces import CHUNK, Piece
from smalldb.schema.readers.reader import Wanted, of_extra

WHAT = "Parquet files"


@final
class ParquetFiles:
    """Parquet."""

    name: ClassVar[str] = "parquet"
    suffixes: ClassVar[tuple[str, ...]] = (".parquet", ".pq")
    lines: ClassVar[bool] = False
    headed: ClassVar[bool] = True

    def columns(
        self, path: str, file: FileFormat = USUAL, known: Collection[str] = ()
    ) -> Mapping[str, object]:
        """Return the columns with the dtypes that the file declares."""
        with of_extra("pyarrow", "smalldb-dp[parquet]", WHAT):
            from pyarrow import ArrowException, parquet
        try:
            return declared(parquet.read_schema(path))
        except ArrowException as error:
            raise ValueError(f"{path} is not a Parquet file that can be read") from error

    def described(self, path: str, file: FileFormat = USUAL) -> Mapping[str, Described]:
        """Return nothing: Parquet has no code book."""
        return {}

    def pieces(
        self, path: str, wanted: Wanted, file: FileFormat = USUAL, progress: bool = False
    ) -> Iterator[Piece]:
        """Yield the columns batch by batch."""
        with of_extra("pyarrow", "smalldb-dp[parquet]", WHAT):
            from pyarrow import ArrowException, parquet
        try:
            opened = parquet.ParquetFile(path)
        except ArrowException as error:
            raise ValueError(f"{path} is not a Parquet file that can be read") from error
        with opened:
            names = opened.schema_arrow.names
            chosen = [names[i] for i in wanted.choose(names)]
            yield from pieces_of(opened.iter_batches(batch_size=CHUNK, columns=chosen), chosen, path)


def pieces_of(batches: Iterable[Any], chosen: list[str], path: str) -> Iterator[Piece]:
    """Yield columns of batches of Arrow; DataError: the file is broken further on."""
    from pyarrow import ArrowException

    broken = False
    try:
        for batch in batches:
            yield _piece(batch, chosen)
    except (ArrowException, OSError):
        broken = True
    if broken:  # not chained: nothing of the data may travel in an error
        raise DataError(f"{path} is broken: it cannot be read to its end")


def _piece(batch: Any, chosen: list[str]) -> Piece:
    """Return columns of a batch of Arrow."""
    from pyarrow import Table

    # without what pandas noted: its index is a column like any other
    frame = from_arrow(Table.from_batches([batch]).select(chosen), ignore_metadata=True)
    return [frame[name] for name in chosen], None


def declared(schema: Any) -> dict[str, object]:
    """Return the columns of a schema of Arrow with their dtypes in pandas."""
    from pyarrow import types

    dtypes = schema.empty_table().to_pandas(ignore_metadata=True).dtypes.items()
    texts = {each.name for each in schema if types.is_string(each.type) or types.is_large_string(each.type)}
    return {str(name): "string" if name in texts else dtype for name, dtype in dtypes}
