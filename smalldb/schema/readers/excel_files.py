"""Workbooks of Excel, by openpyxl: a sheet is a table, and its first row has the names."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, ClassVar, final

from queries import DataError
from queries.expressions import shorten, suggestion
from smalldb.schema.fields import as_field
from smalldb.schema.file_format import USUAL, FileFormat
from smalldb.schema.pieces import Piece, objects
from smalldb.schema.readers.reader import Wanted, WithoutCodeBook, of_extra
from smalldb.schema.records import CHUNK, check_header

_OLD = b"\xd0\xcf\x11\xe0"  # of Excel before 2007, and of workbooks with a password


@final
class ExcelFiles(WithoutCodeBook):
    """A `Reader` of Excel."""

    name: ClassVar[str] = "xlsx"
    suffixes: ClassVar[tuple[str, ...]] = (".xlsx", ".xlsm", ".xls")
    lines: ClassVar[bool] = False
    headed: ClassVar[bool] = True
    chosen_by: ClassVar[str] = "sheet"

    def columns(
        self, path: str, file: FileFormat = USUAL, known: Collection[str] = ()
    ) -> Mapping[str, object]:
        """Return the names in the first row of the sheet."""
        with _rows(path, file) as rows:
            return dict.fromkeys(_names(rows, path, known))

    def pieces(
        self, path: str, wanted: Wanted, file: FileFormat = USUAL, progress: bool = False
    ) -> Iterator[Piece]:
        """Yield the columns in pieces: a row without any value is none."""
        with _rows(path, file) as rows:
            names = _names(rows, path, wanted.names)
            positions, width = wanted.choose(names), len(names)
            while True:
                found = _next(rows, path)
                if not found:
                    return
                kept = [row for row in found if any(value is not None for value in row)]
                if any(value is not None for row in kept for value in row[width:]):
                    raise DataError(f"{path} has a value in a column without a name")
                yield [objects([row[i] if i < len(row) else None for row in kept]) for i in positions], None


@contextmanager
def _rows(path: str, file: FileFormat) -> Iterator[Iterator[Sequence[object]]]:
    """Open a sheet, row by row."""
    with of_extra("openpyxl", "smalldb-dp[excel]", "Excel files"):
        import openpyxl
    with open(path, "rb") as raw:
        if raw.read(4) == _OLD:
            raise ValueError(f"{path} is a workbook of old, or has a password: save it as .xlsx without one")
        raw.seek(0)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                book = openpyxl.load_workbook(raw, read_only=True, data_only=True)
        except Exception as error:  # which ones openpyxl raises for any bytes is not documented
            raise ValueError(f"{path} is not a workbook of Excel that can be read") from error
        sheet = _sheet(book.worksheets, path, file.sheet)
        sheet.reset_dimensions()  # what other programs note of them may be wrong
        yield sheet.iter_rows(values_only=True)


def _sheet(sheets: Sequence[Any], path: str, wanted: str | None) -> Any:
    named = {sheet.title: sheet for sheet in sheets}
    if wanted is None:
        if len(sheets) == 1:
            return sheets[0]
        titles = ", ".join(repr(shorten(title)) for title in named)
        raise ValueError(
            f"{path} has {len(sheets)} sheets, {titles}: say which (--sheet, or file.sheet of a schema)"
        )
    if wanted not in named:
        raise ValueError(f"{path} has no sheet {wanted!r}{suggestion(wanted, named)}")
    return named[wanted]


def _names(rows: Iterator[Sequence[object]], path: str, known: Collection[str]) -> list[str]:
    """Return the names in the first row that has any value."""
    found = _next(rows, path, 1)
    while found and all(value is None for value in found[0]):
        found = _next(rows, path, 1)
    names = [_field(value) for value in (found[0] if found else ())]
    while names and not names[-1]:
        names.pop()
    return check_header(names, path, known, USUAL)


def _next(rows: Iterator[Sequence[object]], path: str, count: int = CHUNK) -> list[Sequence[object]]:
    """Return the next rows; DataError: they are broken."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they name cells
            return [*islice(rows, count)]
    except Exception:  # which ones openpyxl raises for any bytes is not documented
        pass
    raise DataError(f"{path} is broken: it cannot be read to its end")  # not chained: nothing of the data


def _field(value: object) -> str:
    return "" if value is None else as_field(value)
