"""The list of readers: which one reads a file is told by its name."""

from __future__ import annotations

import os

from smalldb.files.inputs import is_url
from smalldb.schema.readers import Reader
from smalldb.schema.readers.compressed import inner_name, parted
from smalldb.schema.readers.csv_files import CsvFiles
from smalldb.schema.readers.database_files import DuckDbFiles, SqliteFiles
from smalldb.schema.readers.excel_files import ExcelFiles
from smalldb.schema.readers.json_lines import JsonLines
from smalldb.schema.readers.parquet_files import ArrowFiles, ParquetFiles
from smalldb.schema.readers.sql_databases import SqlDatabases
from smalldb.schema.readers.statistical_files import SasFiles, SpssFiles, StataFiles

CSV: Reader = CsvFiles()
PARQUET: Reader = ParquetFiles()
SQL: Reader = SqlDatabases()
READERS: tuple[Reader, ...] = (
    *(CSV, JsonLines(), PARQUET, ArrowFiles()),
    *(ExcelFiles(), StataFiles(), SpssFiles(), SasFiles()),
    *(SqliteFiles(), DuckDbFiles()),
)
SUFFIXES: dict[str, Reader] = {suffix: reader for reader in READERS for suffix in reader.suffixes}


def reader_of(path: str) -> Reader:
    """Return what reads a file of this name (else CSV), a folder (Parquet), or a database at a URL."""
    if is_url(path):
        return SQL
    if os.path.isdir(path):
        return PARQUET
    packed = parted(path)[1]
    reader = SUFFIXES.get(os.path.splitext(inner_name(path))[1].lower(), CSV)
    if packed and not reader.lines:
        raise ValueError(f"{path}: {reader.name} is compressed inside: unpack the {packed} file")
    return reader


def has_lines(path: str) -> bool:
    """Tell whether the bytes of a file of this name are text in lines; errors as `reader_of`."""
    return reader_of(path).lines and not parted(path)[1]
