"""CSV files of any separator, quote, decimal sign and encoding, and the records in them."""

from __future__ import annotations

import csv
import os
import re
from codecs import BOM_UTF8
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from io import TextIOWrapper
from itertools import chain, count, islice
from threading import Lock
from typing import Any, BinaryIO, ClassVar, TextIO, final

import numpy as np
import numpy.typing as npt

from queries import DataError
from queries.arrays import pd
from smalldb.files.inputs import progress_bar
from smalldb.schema.fields import CHUNK, Fields, Piece, is_text, looked_up
from smalldb.schema.file_format import (
    COMMA,
    SEPARATORS,
    USUAL,
    UTF_8,
    FileFormat,
    errors_of,
    is_separator,
    named,
)
from smalldb.schema.kinds.kind import without_zeros
from smalldb.schema.readers import Reader, Wanted
from smalldb.schema.readers.compressed import open_bytes, parted

LONGEST = 1 << 26  # characters of a field, so that a quote that is never closed does not take all memory
LONGEST_HEADER = 1 << 22
RECORDS = 1 << 13  # records that are read at a time

FIELDS = {"0": 0, "1": 1, "false": 0, "true": 1}  # what a yes/no field can hold

_STATED = re.compile('"?sep=([^"\r\n])"?[\r\n]*', re.IGNORECASE)  # how Excel is told the separator
NO_CSV = (
    "is not a CSV file: a quote is not closed, text follows a quote that closes a field, or a field has "
    "more than 2^26 characters"
)
_LIMIT = Lock()  # how long a field may be is a setting of the whole process


@final
@dataclass(frozen=True, slots=True)
class Heading:
    """What the first lines of a CSV file say."""

    names: list[str]  # in the first record, as they stand there
    separator: str  # of its fields


def open_text(path: str, encoding: str = UTF_8) -> TextIO:
    """Open a file of text, compressed or not; bytes that its encoding has not become surrogates."""
    codec = "utf-8-sig" if encoding == UTF_8 else encoding
    return TextIOWrapper(open_bytes(path), codec, errors_of(encoding), newline="")


def lines_of(file: TextIO, longest: int = LONGEST) -> Iterator[str]:
    """Yield the lines of a file; one that is longer in parts."""
    return iter(partial(file.readline, longest + 1), "")


def read_heading(file: TextIO, path: str, form: FileFormat = USUAL, known: Collection[str] = ()) -> Heading:
    """Read the first record of a CSV file, which holds the names, and a line such as ``sep=;`` before it."""
    length = 0

    def lines() -> Iterator[str]:
        nonlocal length
        for line in lines_of(file, LONGEST_HEADER):
            length += len(line)
            if length > LONGEST_HEADER:
                raise ValueError(f"{path}: its first line is longer than 2^22 characters: is this CSV?")
            yield line

    first = next((line for line in lines() if line.strip("\r\n")), "")
    separator = form.separator or COMMA
    if stated := _STATED.fullmatch(first):
        if not is_separator(stated[1]):
            raise ValueError(
                f"{path}: its first line states a separator that is a letter, a digit or a quote"
            )
        if form.separator not in (None, stated[1]):
            raise ValueError(f"{path}: its first line says sep={stated[1]}, not {named(separator)}")
        separator = stated[1]
        header = _first(records(lines(), separator, form.quote))
    else:
        header = _first(records(chain([first], lines()), separator, form.quote))
        names = [name.strip() for name in header or ()]
        check_names(names, path, form)
        if first and not (names and {*names} <= {*known}):
            _check_separator(first, len(names), path, form)
    return Heading(check_header(header, path, known, form), separator)


def records(lines: Iterable[str], separator: str = COMMA, quote: str = '"') -> Iterator[list[str]]:
    """Return the records that are not blank, which `next_records` reads."""
    return filter(None, csv.reader(lines, strict=True, **signs_of(separator, quote)))


def next_records(rows: Iterator[list[str]], count: int = RECORDS) -> list[list[str]] | None:
    """Return the next records, with fields of up to 2^26 characters; None: `csv` can read no further."""
    with _LIMIT:
        usual = csv.field_size_limit(LONGEST)
        try:
            return [*islice(rows, count)]
        except csv.Error:
            return None
        finally:
            csv.field_size_limit(usual)


def signs_of(separator: str, quote: str) -> dict[str, Any]:
    """Return the options of `csv` for the signs of a file."""
    if not quote:
        return {"delimiter": separator, "quoting": csv.QUOTE_NONE, "quotechar": None}
    return {"delimiter": separator, "quotechar": quote}


def check_names(names: list[str], path: str, form: FileFormat = USUAL) -> None:
    """Refuse column names that cannot be shown."""
    together = "".join(names)
    if not is_text(together):
        advice = "save it as UTF-8, or say its encoding, such as cp1252"
        if together.startswith(("\udcff\udcfe", "\udcfe\udcff")):
            advice = "it is in UTF-16: take encoding utf-16"
        advice += " (--encoding, or file.encoding of a schema)"
        raise ValueError(f"{path} is not a CSV file in {form.encoding_in_words}: {advice}")
    for position, name in enumerate(names, start=1):
        if control := re.search(r"[\x00-\x08]", name):
            raise ValueError(
                f"{path} is not a table with names: the name of column {position} holds a control "
                f"character (U+{ord(control[0]):04X})"
            )


def _first(rows: Iterator[list[str]]) -> list[str] | None:
    """Return the first record, empty if there is none; None: it is broken."""
    first = next_records(rows, 1)
    return None if first is None else next(iter(first), [])


def check_header(header: list[str] | None, path: str, known: Collection[str], form: FileFormat) -> list[str]:
    """Return the names of the first record."""
    if header is None:
        raise ValueError(f"{path} {NO_CSV} (in the first line)")
    check_names(header, path, form)
    if not header:
        raise ValueError(f"{path} is empty: expected a first line with column names")
    unknown = {name.strip() for name in header} - {*known}
    if unknown and all(without_zeros(name.strip()).lower() in FIELDS for name in header):
        raise ValueError(f"{path}: the first line must hold column names, not data")
    times = Counter(name.strip() for name in header)
    if repeated := [name for name in times if name and times[name] > 1]:
        raise ValueError(f"{path}: column name {repeated[0]!r} occurs more than once")
    return header


def _check_separator(first: str, count: int, path: str, form: FileFormat) -> None:
    """Refuse a first line that another separator takes into more fields, if none was stated: ValueError."""
    # Spaces are usual in names: they count only where nothing else finds two fields. Beside a separator that
    # was stated, others count where it finds one field; beside commas none: so one says: there is one column.
    stated = form.separator
    if stated == COMMA or (stated is not None and count > 1):
        return
    sign = COMMA if stated is None else stated
    if stated is None and count < 2 and first.lstrip().startswith("#"):
        raise ValueError(
            f"{path}: its first line is a comment (#): delete the lines above the column names; "
            f"or take separator {named(COMMA)} (--separator) if it is the one name"
        )
    fields_by = _field_counts(first, form.quote)
    others = [other for other in SEPARATORS if other not in (sign, " ")]
    best = max(others, key=fields_by.__getitem__)
    if fields_by[best] <= count < 2:
        best = " "
    if fields_by[best] > count:
        by = SEPARATORS.get(sign, f"the sign {sign!r}")
        how = f"{count or 'no'} field{'s' if count != 1 else ''} separated by {by}"
        title = "; delete a title above the names" if best == " " else ""
        raise ValueError(
            f"{path}: its first line has {how}, and {fields_by[best]} by {SEPARATORS[best]}: take separator "
            f"{named(best)} (--separator, or file.separator of a schema), or {named(COMMA)} if it is "
            f"right{title}"
        )


def _field_counts(line: str, quote: str) -> dict[str, int]:
    """Count the fields of a line by each usual separator."""
    return {sign: len(_first(records([line], sign, quote)) or ()) for sign in SEPARATORS}


NEAR = 1 << 11  # records that the caches of a processor hold
BLOCK = 1 << 22  # bytes that pyarrow reads at a time
SLOW = "pip install pyarrow reads faster"
LEAST = 1 << 20  # bytes of a file for which it is worth loading
FEW = 1 << 15  # fields of a column that are texts again: it is not worth loading pandas
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


@final
class CsvFiles(Reader):
    """A `Reader` of CSV; its first line has the names."""

    name: ClassVar[str] = "csv"
    suffixes: ClassVar[tuple[str, ...]] = (".csv",)
    lines: ClassVar[bool] = True

    def columns(self, path: str, file: FileFormat, known: Collection[str]) -> Mapping[str, object]:
        """Read the names; those that are `known` are not taken for those of another separator."""
        return dict.fromkeys(name.strip() for name in heading(path, file, known).names)

    def pieces(self, path: str, wanted: Wanted, file: FileFormat, progress: bool) -> Iterator[Piece]:
        """Yield the columns as texts."""
        gaps = [None if file.decimal == "." else wanted.numbers.get(name) for name in wanted.names]
        for columns, times in _pieces(path, wanted, file, progress):
            yield [*map(_with_points, columns, gaps)], times


def heading(path: str, file: FileFormat = USUAL, known: Collection[str] = ()) -> Heading:
    """Read the first record of a CSV file, which may be compressed; errors as `read_heading`."""
    with open_text(path, file.codec) as text:
        return read_heading(text, path, file, known)


def sniffed(path: str, file: FileFormat = USUAL) -> FileFormat:
    """Return what is stated of a CSV file, and what a mark of UTF-16 and the first line say of the rest."""
    if file.encoding is None:
        with open_bytes(path) as raw:
            if raw.read(2) in _UTF_16:
                file = replace(file, encoding="utf-16")
    if file.separator is None:
        with open_text(path, file.codec) as text:
            first = next((line for line in lines_of(text, LONGEST_HEADER) if line.strip("\r\n")), "")
        counts = _field_counts(first, file.quote)
        several = [sign for sign, count in counts.items() if count > 1 and sign != " "]
        if len(several) == 1 and not first.lstrip().startswith("#"):
            file = replace(file, separator=several[0])
    separator = heading(path, file).separator
    return replace(file, separator=None if separator == COMMA else separator)


def _pieces(path: str, wanted: Wanted, file: FileFormat, progress: bool) -> Iterator[Piece]:
    """Yield the columns: of each the distinct texts, and the number of each field among them.

    pyarrow, where it is installed, reads whole blocks of a large file that `csv` would read the same. From
    the first block on that it might not, `csv` reads, and tells what is wrong.
    """
    regular = os.path.isfile(path)
    size = os.path.getsize(path) if regular else 0
    total = None if parted(path)[1] else size  # bytes are told as they are read, behind the compression
    slow = SLOW if size >= LEAST and find_spec("pyarrow") is None else None
    with (
        progress_bar(progress and regular, desc=slow, total=total, unit="B", unit_scale=True) as bar,
        open_text(path, file.codec) as text,
    ):
        header = read_heading(text, path, file, [*wanted.names, *(wanted.others or ())])
        positions, width, sign = wanted.choose(header.names), len(header.names), header.separator
        if regular and size >= LEAST and file.splits_as_bytes and sign.isascii():
            at = text.tell()
            if at < 1 << 64:  # else it is not a place between bytes: a line might end in two parts
                text.buffer.seek(at)
                for columns, read in _by_pyarrow(text.buffer, width, positions, sign, file):
                    yield columns, None
                    at += read
                    bar.update(at - bar.n)
                text.seek(at)
        for columns in _by_csv(text, path, width, positions, sign, file):
            yield columns, None
            bar.update(text.buffer.tell() - bar.n)


def _by_csv(
    text: TextIO, path: str, width: int, positions: Sequence[int], sign: str, file: FileFormat
) -> Iterator[list[Fields]]:
    """Yield the columns of the rest of a file, in pieces."""
    records_left, rows = records(lines_of(text), sign, file.quote), [[""]]
    while rows:
        memos = [defaultdict[str, int](count().__next__) for _ in positions]
        texts = dict[int, list[str]]()  # of columns in which texts hardly ever occur again
        codes: list[list[npt.NDArray[np.int32]]] = [[] for _ in positions]
        for _ in range(max(1, CHUNK // NEAR)):
            read = next_records(records_left, NEAR)
            if read is None:  # not chained: nothing of the data may travel in an error
                raise DataError(f"{path} {NO_CSV}")
            rows = read
            if not rows:
                break
            if {*map(len, rows)} - {width}:
                raise DataError(
                    f"{path} is not a CSV file with as many fields in every line as names: {width}"
                )
            fields = [*zip(*rows, strict=True)]
            for c, i in enumerate(positions):
                if c in texts:
                    texts[c] += fields[i]
                    continue
                codes[c].append(looked_up(memos[c], fields[i]))
                if len(codes[c]) == 1 and len(memos[c]) > NEAR // 2:
                    texts[c] = [*fields[i]]
        if not all(is_text("".join(texts.get(c, memo))) for c, memo in enumerate(memos)):
            raise DataError(f"{path} is not a CSV file in {file.encoding_in_words}")
        if any(codes):
            yield [
                np.array(texts[c], dtype=object)
                if c in texts
                else _categorical(np.concatenate(code_parts), [*memo])
                for c, (memo, code_parts) in enumerate(zip(memos, codes, strict=True))
            ]


def _by_pyarrow(
    raw: BinaryIO, width: int, positions: Sequence[int], sign: str, file: FileFormat
) -> Iterator[tuple[list[Fields], int]]:
    """Yield the columns of one block after the other, and its bytes, up to one that `csv` must read."""
    try:
        from pyarrow import ArrowInvalid, binary, csv, dictionary, int32, py_buffer, system_memory_pool
    except ImportError:
        return
    names = [str(i) for i in range(width)]
    chosen = {names[i]: dictionary(int32(), binary()) for i in positions}
    reading = csv.ReadOptions(use_threads=False, block_size=2 * BLOCK, column_names=names)
    parsing = csv.ParseOptions(delimiter=sign, quote_char=file.quote or False, newlines_in_values=True)
    typed = csv.ConvertOptions(column_types=chosen, strings_can_be_null=False, include_columns=[*chosen])
    block = b""
    while block := block + raw.read(BLOCK - len(block)):
        end = _whole(block, sign, file.quote, len(block) < BLOCK)
        if not end or block.startswith(BOM_UTF8):  # which pyarrow would leave out
            return
        try:
            content = py_buffer(memoryview(block)[:end])
            table = csv.read_csv(content, reading, parsing, typed, system_memory_pool())
            columns = [table.column(names[i]).chunk(0) for i in positions]
            texts = [[text.decode(file.codec) for text in each.dictionary.to_pylist()] for each in columns]
            codes = [each.indices.to_numpy() for each in columns]
            yield [*map(_categorical, codes, texts)], end
        except (ArrowInvalid, UnicodeDecodeError):
            return
        block = block[end:]


def _whole(block: bytes, sign: str, quote: str, last: bool) -> int:
    """Return how many bytes of a block are whole records; 0: it has none, or `csv` might refuse a quote.

    Of the quotes in whole records, every second one opens: a field begins there, or the one before is of the
    same pair, which stands for a quote. All others close.
    """
    end = len(block) if last else block.rfind(b"\n") + 1
    if not quote or quote.encode() not in block:
        return end
    text = np.frombuffer(b"\n" + block + b"\n", dtype=np.uint8)
    marks = np.flatnonzero(text == ord(quote)) - 1
    while not last and (before := int(np.searchsorted(marks, end))) % 2:
        end = block.rfind(b"\n", 0, marks[before - 1]) + 1
    marks = marks[marks < end]
    if len(marks) % 2:
        return 0
    opening, closing = marks[::2], marks[1::2]
    ends = np.isin(np.arange(256), [*b"\r\n", ord(sign)])
    begins, stops = ends[text[opening]], ends[text[closing + 2]]
    pairs = closing[:-1] + 1 == opening[1:]
    begins[1:] |= pairs
    stops[:-1] |= pairs
    return end if begins.all() and stops.all() else 0


def _categorical(codes: npt.NDArray[np.integer], texts: list[str]) -> Fields:
    if len(codes) <= FEW:
        fields: npt.NDArray[Any] = np.array(texts, dtype=object)[codes]
        return fields
    return pd.Series(pd.Categorical.from_codes(codes, pd.Index(texts, dtype=object), validate=False))


def _with_points(column: Fields, gaps: frozenset[str] | None) -> Fields:
    """Respell numbers of a decimal comma, but for gaps; one with a point is none. None: it has no numbers."""
    if gaps is None:
        return column

    def respelled(text: str) -> str:
        if text.strip() in gaps:
            return text
        return f"\0{text}" if "." in text else text.replace(",", ".")

    if isinstance(column, np.ndarray):
        return np.array([respelled(text) for text in column], dtype=object)
    fields: Any = column.array
    return _categorical(fields.codes, [respelled(text) for text in fields.categories])
