"""CSV files of any separator, quote, decimal sign and encoding."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, final

import numpy as np

from queries import DataError
from queries.late import pd
from smalldb.files.progress_bar import progress_bar
from smalldb.schema.file_format import COMMA, SEPARATORS, USUAL, FileFormat
from smalldb.schema.pieces import Fields, Piece
from smalldb.schema.readers.compressed import open_bytes, parted
from smalldb.schema.readers.reader import Wanted, WithoutCodeBook, of_extra
from smalldb.schema.records import Heading, field_count, lines_of, open_text, read_heading

BLOCK = 1 << 22  # bytes that are read at a time: the longest record
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


@final
class CsvFiles(WithoutCodeBook):
    """A `Reader` of CSV; its first line has the names."""

    name: ClassVar[str] = "csv"
    suffixes: ClassVar[tuple[str, ...]] = (".csv",)
    lines: ClassVar[bool] = True
    headed: ClassVar[bool] = True

    def columns(
        self, path: str, file: FileFormat = USUAL, known: Collection[str] = ()
    ) -> Mapping[str, object]:
        """Read the names; those that are `known` are not taken for those of another separator."""
        return dict.fromkeys(name.strip() for name in heading(path, file, known).names)

    def pieces(
        self, path: str, wanted: Wanted, file: FileFormat = USUAL, progress: bool = False
    ) -> Iterator[Piece]:
        """Yield the columns as texts, by pyarrow."""
        if file.decimal == ".":
            yield from _pieces(path, wanted, file, progress)
            return
        gaps = [wanted.numbers.get(name) for name in wanted.names]
        for columns, times in _pieces(path, wanted, file, progress):
            yield (
                [
                    column if texts is None else _with_points(column, texts)
                    for column, texts in zip(columns, gaps, strict=True)
                ],
                times,
            )


def heading(path: str, file: FileFormat = USUAL, known: Collection[str] = ()) -> Heading:
    """Read the first record of a CSV file, which may be compressed; errors as `read_heading`."""
    with open_text(path, file.codec) as text:
        return read_heading(text, path, file, known)


def sniffed(path: str, file: FileFormat = USUAL) -> FileFormat:
    """Return what is stated of a CSV file, and what its first line alone says of the rest.

    A mark of UTF-16 says the encoding. If the names are one field by commas, and several by one other sign,
    this is the separator.
    """
    if file.encoding is None:
        with open_bytes(path) as raw:
            if raw.read(2) in _UTF_16:
                file = replace(file, encoding="utf-16")
    if file.separator is None:
        with open_text(path, file.codec) as text:
            first = next((line for line in lines_of(text, 1 << 22) if line.strip("\r\n")), "")
        counts = {sign: field_count(first, sign, file.quote) for sign in SEPARATORS if sign != " "}
        several = [sign for sign, count in counts.items() if count > 1]
        if len(several) == 1 and not first.lstrip().startswith("#"):
            file = replace(file, separator=several[0])
    found = heading(path, file).separator
    return replace(file, separator=None if found == COMMA else found)


def _pieces(path: str, wanted: Wanted, file: FileFormat, progress: bool) -> Iterator[Piece]:
    """Yield the columns block by block: of each the distinct texts, and the number of each field among them."""
    with of_extra("pyarrow", "smalldb-dp[parquet]", "CSV files"):
        from pyarrow import ArrowInvalid, csv, dictionary, int32, string, system_memory_pool
    header = heading(path, file, [*wanted.names, *(wanted.others or ())])
    positions, names = wanted.choose(header.names), [str(i) for i in range(len(header.names))]
    chosen, wrong = [names[i] for i in positions], ""
    reading = csv.ReadOptions(
        use_threads=False,
        block_size=BLOCK,
        skip_rows=header.lines,
        column_names=names,
        encoding=file.codec,
    )
    parsing = csv.ParseOptions(
        delimiter=header.separator, quote_char=file.quote or False, newlines_in_values=bool(file.quote)
    )
    texts = dict.fromkeys(chosen, dictionary(int32(), string()))
    kept = csv.ConvertOptions(column_types=texts, strings_can_be_null=False, include_columns=[*texts])
    size = os.path.getsize(path) if os.path.isfile(path) and not parted(path)[1] else None
    with progress_bar(progress, total=size, unit="B", unit_scale=True) as bar, open_bytes(path) as raw:
        try:
            blocks = csv.open_csv(raw, reading, parsing, kept, system_memory_pool())
            for block in blocks:
                yield [_fields(block.column(name)) for name in chosen], None
                bar.update(raw.tell() - bar.n)
        except (ArrowInvalid, UnicodeDecodeError) as error:
            wrong = str(error)
    if wrong:  # not chained: nothing of the data may travel in an error
        coded = "UTF8" in wrong or "codec" in wrong
        fields = f"with as many fields in every line as names: {len(names)}"
        raise DataError(f"{path} is not a CSV file {f'in {file.told}' if coded else fields}")


def _fields(column: Any) -> Fields:
    texts = pd.Index(column.dictionary.to_pylist(), dtype=object)
    return pd.Series(pd.Categorical.from_codes(column.indices.to_numpy(), texts, validate=False))


def _with_points(column: Fields, gaps: frozenset[str]) -> Fields:
    """Return numbers that have a decimal comma as programs write them; one with a point is no number."""

    def respelled(text: str) -> str:
        if text.strip() in gaps:
            return text
        return f"\0{text}" if "." in text else text.replace(",", ".")

    if isinstance(column, np.ndarray):
        return np.array([respelled(text) for text in column.tolist()], dtype=object)
    fields: Any = column.array
    texts = pd.Index([respelled(text) for text in fields.categories], dtype=object)
    return pd.Series(pd.Categorical.from_codes(fields.codes, texts, validate=False))
