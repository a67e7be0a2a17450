"""Large CSV files: as long as lines are plain, each is split at its separators, and equal fields are one.

A line is plain without quotes, lone carriage returns and zero bytes: its fields are then what stands between
its separators. Where a line is not, all from its block on is left to the reader of any CSV. Both read a row
the same, so what one row holds does not change what another is read as.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from queries import DataError
from queries.late import pd
from smalldb.schema.file_format import COMMA, USUAL, FileFormat
from smalldb.schema.pieces import Piece

BLOCK = 1 << 22  # bytes
LEAST = 1 << 20  # bytes of a file for which the kernel is worth loading


def begin(file: BinaryIO, lines: int, quote: str = '"') -> bool:
    """
    Go behind the first lines of a file, in which the names end.

    Parameters
    ----------
    file
        Open, at its beginning.
    lines
        How many of its lines these are.
    quote
        The sign of its quotes; empty: it has none.

    Returns
    -------
    bool
        Whether all of them are plain, and end.
    """
    first = [file.readline() for _ in range(lines)]
    bodies = [line.removesuffix(b"\n").removesuffix(b"\r") for line in first]
    return all(line.endswith(b"\n") for line in first) and not {*b"\r\x00", *quote.encode()} & {
        *b"".join(bodies)
    }


def plain_pieces(
    file: BinaryIO,
    width: int,
    chosen: Sequence[int],
    path: str,
    separator: str = COMMA,
    form: FileFormat = USUAL,
) -> Iterator[Piece]:
    """
    Yield the chosen columns, in this order, of the lines from here on, while they are plain.

    The file is left where the first block begins that is not plain, or at its end.

    Parameters
    ----------
    file
        Open, behind the names.
    width
        How many fields each line has.
    chosen
        Positions of columns, in the order in which they are handed on.
    path
        Its name, for errors.
    separator
        Between fields.
    form
        The quotes and the encoding of the file.

    Raises
    ------
    DataError
        A field that is not of the file's encoding.
    """
    columns = sorted({*chosen})
    slots = np.full(width, -1, dtype=np.int64)
    slots[columns] = np.arange(len(columns))
    while True:
        here = file.tell()
        block = file.read(BLOCK)
        if not block:
            return
        if len(block) == BLOCK and not block.endswith(b"\n"):
            block += file.readline(BLOCK)
        raw = len(block)
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n")
        if not block.endswith(b"\n"):
            if file.read(1):  # a line without an end in sight
                file.seek(here)
                return
            block += b"\n"
        found = _split(block, width, slots, len(columns), separator, form.quote)
        if found is None:
            file.seek(here)
            return
        file.seek(here + raw)
        try:
            texts = [_column(block, found[slots[c]], form.codec) for c in chosen]
        except UnicodeDecodeError:
            texts = []
        if not texts:  # not chained: nothing of the data may travel in an error
            raise DataError(f"{path} is not a CSV file in {form.told}")
        yield texts, None


Split = tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int64]]


def _split(
    block: bytes,
    width: int,
    slots: npt.NDArray[np.int64],
    columns: int,
    separator: str = COMMA,
    quote: str = '"',
) -> list[Split] | None:
    """Return, for each column, the number of each line's field, and where the distinct ones begin and end."""
    from smalldb.kernels.splitting import split

    most = block.count(b"\n")
    seen = np.full((columns, 1 << (2 * most).bit_length()), -1, dtype=np.int32)
    codes = np.empty((columns, most), dtype=np.int32)
    starts, ends = np.empty((2, columns, most), dtype=np.int64)
    distinct = np.zeros(columns, dtype=np.int64)
    text = np.frombuffer(block, dtype=np.uint8)
    lines = split(text, ord(separator), ord(quote or "\0"), width, slots, seen, codes, starts, ends, distinct)
    if lines < 0:
        return None
    return [(codes[s, :lines], starts[s, :k], ends[s, :k]) for s, k in enumerate(distinct.tolist())]


def _column(block: bytes, found: Split, codec: str) -> pd.Series[Any]:
    codes, starts, ends = found
    texts = [block[a:b].decode(codec) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    return pd.Series(pd.Categorical.from_codes(codes, pd.Index(texts, dtype=object), validate=False))
