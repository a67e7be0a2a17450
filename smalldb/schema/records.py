"""The records of a CSV file, the names in the first of them, and the sign that separates their fields."""

import csv
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from io import TextIOWrapper
from itertools import chain, islice
from threading import Lock
from typing import Any, TextIO, final

from smalldb.schema.fields import is_text
from smalldb.schema.file_format import (
    COMMA,
    SEPARATORS,
    USUAL,
    UTF_8,
    FileFormat,
    errors_of,
    is_separator,
    named,
    spoken,
)
from smalldb.schema.kinds.number_format import without_zeros
from smalldb.schema.readers.compressed import open_bytes

LONGEST = 1 << 26  # characters of a field, so that a quote that is never closed does not take all memory
LONGEST_HEADER = 1 << 22
CHUNK = 1 << 13  # records that are read at a time

FIELDS = {"0": 0, "1": 1, "false": 0, "true": 1}  # what a yes/no field can hold

_STATED = re.compile('"?sep=([^"\r\n])"?[\r\n]*', re.IGNORECASE)  # how Excel is told the separator


NO_CSV = (
    "is not a CSV file: a quote is not closed, text stands behind one that closes a field, or a field has "
    "more than 2^26 characters"
)
_LIMIT = Lock()  # how long a field may be is a setting of the whole process


@final
@dataclass(frozen=True, slots=True)
class Heading:
    """What the first lines of a CSV file say."""

    names: list[str]  # in the first record, as they stand there
    separator: str  # of its fields
    lines: int  # how many these are


def open_text(path: str, encoding: str = UTF_8) -> TextIO:
    """Open a file of text, compressed or not; errors as `open_bytes`.

    Bytes that its encoding has not become surrogates, which no name and no field may hold.
    """
    codec = "utf-8-sig" if encoding == UTF_8 else encoding
    return TextIOWrapper(open_bytes(path), codec, errors_of(encoding), newline="")


def lines_of(file: TextIO, longest: int = LONGEST) -> Iterator[str]:
    """Yield the lines of a file; one that is longer in parts."""
    return iter(partial(file.readline, longest + 1), "")


def read_heading(file: TextIO, path: str, form: FileFormat = USUAL, known: Collection[str] = ()) -> Heading:
    """Read the first record of a CSV file, which holds the names; the file is left behind it.

    A line of its own may state the separator before, as Excel writes it: ``sep=;``.
    """
    read = length = 0

    def lines() -> Iterator[str]:
        nonlocal read, length
        for line in lines_of(file, LONGEST_HEADER):
            read, length = read + 1, length + len(line)
            if length > LONGEST_HEADER:
                raise ValueError(f"{path}: its first line is longer than 2^22 characters: is this CSV?")
            yield line

    first = next((line for line in lines() if line.strip("\r\n")), "")
    stated, separator = _STATED.fullmatch(first), form.separator
    if stated is not None:
        sign = stated[1]
        if not is_separator(sign):
            raise ValueError(
                f"{path}: its first line states a separator that is a letter, a digit or a quote"
            )
        if separator not in (None, sign):
            raise ValueError(f"{path}: its first line says sep={sign}, not {named(separator or '')}")
        names = check_header(_first(records(lines(), sign, form.quote)), path, known, form)
    else:
        sign = COMMA if separator is None else separator
        found = _first(records(chain([first] if first else [], lines()), sign, form.quote))
        given = found or []
        check_names(given, path, form)
        if first and not ({name.strip() for name in given} <= {*known} and given):
            _check_separator(first, len(given), path, form)
        names = check_header(found, path, known, form)
    return Heading(names, sign, read)


def records(lines: Iterable[str], separator: str = COMMA, quote: str = '"') -> Iterator[list[str]]:
    """Return the records that are not blank, which `next_records` reads."""
    return filter(None, csv.reader(lines, strict=True, **signs_of(separator, quote)))


def next_records(found: Iterator[list[str]], count: int = CHUNK) -> list[list[str]] | None:
    """Return the next records, with fields of up to 2^26 characters; None: `csv` can read no further."""
    with _LIMIT:
        usual = csv.field_size_limit(LONGEST)
        try:
            return [*islice(found, count)]
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
        wide = together.startswith(("\udcff\udcfe", "\udcfe\udcff"))
        named_in = "--encoding, or file.encoding of a schema"
        said = f"save it as UTF-8, or say its encoding, such as cp1252 ({named_in})"
        if wide:
            said = f"it is in UTF-16: take encoding utf-16 ({named_in})"
        raise ValueError(f"{path} is not a CSV file in {form.told}: {said}")
    for position, name in enumerate(names, start=1):
        if found := re.search(r"[\x00-\x08]", name):
            raise ValueError(
                f"{path} is not a table with names: the name of column {position} holds a control "
                f"character (U+{ord(found[0]):04X})"
            )


def _first(found: Iterator[list[str]]) -> list[str] | None:
    """Return the first record, empty if there is none; None: it is broken."""
    first = next_records(found, 1)
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
    repeated = [
        name for name, times in Counter(name.strip() for name in header).items() if times > 1 and name
    ]
    if repeated:
        raise ValueError(f"{path}: column name {repeated[0]!r} stands more than once")
    return header


def _check_separator(first: str, count: int, path: str, form: FileFormat) -> None:
    """Refuse a first line that another separator takes into more fields, if none was stated: ValueError.

    Spaces are usual in names: they count only where nothing else finds two fields. If a separator was stated,
    others count where it finds one field; beside commas none do: so one says that there is one column.
    """
    stated = form.separator
    if stated == COMMA or (stated is not None and count > 1):
        return
    sign = COMMA if stated is None else stated
    if stated is None and count < 2 and first.lstrip().startswith("#"):
        raise ValueError(
            f"{path}: its first line is a comment (#): delete what stands above the column names; "
            f"or take separator {named(COMMA)} (--separator) if it is the one name"
        )
    found = {other: field_count(first, other, form.quote) for other in SEPARATORS}
    others = [other for other in SEPARATORS if other not in (sign, " ")]
    best = max(others, key=found.__getitem__)
    if found[best] <= count < 2:
        best = " "
    if found[best] > count:
        how = f"{count or 'no'} field{'s' if count != 1 else ''} separated by {spoken(sign)}"
        title = "; a title above the names must be deleted" if best == " " else ""
        raise ValueError(
            f"{path}: its first line has {how}, and {found[best]} by {SEPARATORS[best]}: take separator "
            f"{named(best)} (--separator, or file.separator of a schema), or {named(COMMA)} if it is "
            f"right{title}"
        )


def field_count(line: str, separator: str, quote: str = '"') -> int:
    """Count the fields of a line."""
    return len(_first(records([line], separator, quote)) or ())
