"""Workbooks of Excel, by openpyxl: a sheet is a table, and its first row has the names."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from typing import Any, ClassVar, TypeAlias, final

from queries import DataError
from queries.expressions import shorten, suggestion
from smalldb.files import of_extra
from smalldb.schema.fields import Piece, as_field, objects
from smalldb.schema.file_format import USUAL, FileFormat
from smalldb.schema.readers import Reader, Wanted, unbroken
from smalldb.schema.readers.csv_files import RECORDS, check_header

Rows: TypeAlias = Iterator[Sequence[Any]]  # of cells of openpyxl
_OLD = b"\xd0\xcf\x11\xe0"  # of Excel before 2007, and of workbooks with a password


@final
class ExcelFiles(Reader):
    """A `Reader` of Excel."""

    name: ClassVar[str] = "xlsx"
    suffixes: ClassVar[tuple[str, ...]] = (".xlsx", ".xlsm", ".xls")
    chosen_by: ClassVar[str] = "sheet"

    def columns(self, path: str, file: FileFormat, known: Collection[str]) -> Mapping[str, object]:
        """Return the names in the first row of the sheet."""
        with _rows(path, file) as rows:
            return dict.fromkeys(_names(rows, path, known)[0])

    def pieces(self, path: str, wanted: Wanted, file: FileFormat, progress: bool) -> Iterator[Piece]:
        """Yield the columns in pieces: a row without any value is none."""
        formulas: Rows | None = None
        with _rows(path, file) as rows, ExitStack() as stack:
            names, read = _names(rows, path, wanted.names)
            positions, width = wanted.choose(names), len(names)
            while batch := _next(rows, path):
                if formulas is None and any(_is_empty(row, i) for row in batch for i in positions):
                    formulas = stack.enter_context(_rows(path, file, stored=False))
                    for _ in range(read):
                        _next(formulas, path, 1)
                if formulas is not None:
                    _check_stored(path, names, positions, batch, _next(formulas, path))
                read += len(batch)
                kept = [row for row in batch if any(cell.value is not None for cell in row)]
                if any(cell.value is not None for row in kept for cell in row[width:]):
                    raise DataError(f"{path} has a value in a column without a name")
                values = [[row[i].value if i < len(row) else None for row in kept] for i in positions]
                yield [*map(objects, values)], None


def _is_empty(row: Sequence[Any], i: int) -> bool:
    """Tell whether a cell has no value; a formula may have an empty text."""
    return i < len(row) and row[i].value is None and row[i].data_type != "str"


def _check_stored(
    path: str, names: Sequence[str], positions: Sequence[int], batch: Sequence[Any], formulas: Sequence[Any]
) -> None:
    """Refuse formulas whose values are not stored: DataError. They would be taken for gaps."""
    for row, stated in zip(batch, formulas, strict=True):
        for i in positions:
            if _is_empty(row, i) and stated[i].data_type == "f":
                raise DataError(
                    f"{path}: column {names[i]!r} has a formula whose value is not stored: open the workbook "
                    "in a spreadsheet program and save it, which stores the values of formulas"
                )


@contextmanager
def _rows(path: str, file: FileFormat, stored: bool = True) -> Iterator[Rows]:
    """Open a sheet, row by row, with the values that are stored or the formulas."""
    with of_extra("openpyxl", "excel", "Excel files"):
        import openpyxl
    with open(path, "rb") as raw:
        if raw.read(4) == _OLD:
            raise ValueError(
                f"{path} is an old workbook (.xls), or has a password: save it as .xlsx without one"
            )
        raw.seek(0)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                book = openpyxl.load_workbook(raw, read_only=True, data_only=stored)
        except Exception as error:  # which ones openpyxl raises for any bytes is not documented
            raise ValueError(f"{path} is not a workbook of Excel that can be read") from error
        sheet = _sheet(book.worksheets, path, file.sheet)
        sheet.reset_dimensions()  # what other programs note of them may be wrong
        yield sheet.iter_rows()


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


def _names(rows: Rows, path: str, known: Collection[str]) -> tuple[list[str], int]:
    """Return the names in the first row that has any value, and how many rows were read."""
    batch, read = _next(rows, path, 1), 1
    while batch and all(cell.value is None for cell in batch[0]):
        batch, read = _next(rows, path, 1), read + 1
    cells = batch[0] if batch else ()
    names = ["" if cell.value is None else as_field(cell.value) for cell in cells]
    while names and not names[-1]:
        names.pop()
    return check_header(names, path, known, USUAL), read


def _next(rows: Rows, path: str, count: int = RECORDS) -> list[Sequence[Any]]:
    """Return the next rows; DataError: they are broken."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they name cells
        # which errors openpyxl raises for any bytes is not documented
        return [*unbroken(islice(rows, count), (Exception,), path)]
