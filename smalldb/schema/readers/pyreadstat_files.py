"""Files of SPSS and of SAS, by pyreadstat."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, ClassVar, final

import numpy as np

from queries import DataError
from queries.late import pd
from smalldb.schema.codebook import Described
from smalldb.schema.file_format import USUAL, FileFormat
from smalldb.schema.pieces import Piece
from smalldb.schema.readers.compressed import parted
from smalldb.schema.readers.labels import Labelled, described
from smalldb.schema.readers.reader import Reader, Wanted, of_extra

CHUNK = 1 << 18  # rows that are read at a time: those before them are passed over each time
_MOST_GAPS = 64  # whole numbers of a range that means a gap which are listed
_DATES = re.compile("[AEJS]?DATE|MMDDYY|DDMMYY|YYMMDD|E8601D")
_TIMES = re.compile("D?TIME|MTIME|HHMM|E8601TM")


class _Statistical(Reader):
    """Files that pyreadstat reads: codes as codes, all missing values as gaps."""

    name: ClassVar[str]
    what: ClassVar[str]
    lines: ClassVar[bool] = False
    headed: ClassVar[bool] = True
    asking: ClassVar[Mapping[str, bool]] = {}  # options with which the head is read

    def reading(self, path: str) -> Callable[..., tuple[pd.DataFrame, Any]]:
        """Return what reads a file."""
        raise NotImplementedError

    def columns(
        self, path: str, file: FileFormat = USUAL, known: Collection[str] = ()
    ) -> Mapping[str, object]:
        """Return the columns with the types that the file declares."""
        head = self._head(path)
        kinds, forms = head.readstat_variable_types, head.original_variable_types
        return {name: _dtype(kinds[name], forms[name] or "") for name in head.column_names}

    def described(self, path: str, file: FileFormat = USUAL) -> Mapping[str, Described]:
        """Return the value labels of columns, their codes of missing values, and their own labels."""
        head = self._head(path)
        return described(
            {
                name: Labelled(
                    head.column_names_to_labels.get(name) or "",
                    head.variable_value_labels.get(name, {}),
                    _gaps(head.missing_ranges.get(name, []), head.variable_value_labels.get(name, {})),
                    head.variable_measure.get(name) == "scale",
                )
                for name in head.column_names
            },
        )

    def pieces(
        self, path: str, wanted: Wanted, file: FileFormat = USUAL, progress: bool = False
    ) -> Iterator[Piece]:
        """Yield the columns in pieces."""
        names = self._head(path).column_names
        chosen = [names[i] for i in wanted.choose(names)]
        read, rows, broken = self.reading(path), 0, False
        try:
            while len(frame := read(path, usecols=chosen, row_offset=rows, row_limit=CHUNK)[0]):
                yield [frame[name] for name in chosen], None
                rows += len(frame)
        except GeneratorExit:
            raise
        except Exception as error:  # a class of its own for each module
            if isinstance(error, DataError):
                raise
            broken = True
        if broken:  # not chained: nothing of the data may travel in an error
            raise DataError(f"{path} is broken: it cannot be read to its end")

    def _head(self, path: str) -> Any:
        read = self.reading(path)
        with open(path, "rb"):
            pass  # the usual error where it cannot be read
        try:
            return read(path, metadataonly=True, **self.asking)[1]
        except Exception as error:  # a class of its own for each module
            raise ValueError(f"{path} is no file of {self.what} that can be read") from error


@final
class SpssFiles(_Statistical):
    """SPSS."""

    name: ClassVar[str] = "sav"
    suffixes: ClassVar[tuple[str, ...]] = (".sav", ".zsav")
    what: ClassVar[str] = "SPSS"
    asking: ClassVar[Mapping[str, bool]] = {"user_missing": True}  # else missing codes are not told

    def reading(self, path: str) -> Callable[..., tuple[pd.DataFrame, Any]]:
        """Return what reads a file of SPSS."""
        with of_extra("pyreadstat", "smalldb-dp[stats]", "SPSS files"):
            import pyreadstat
        read: Callable[..., tuple[pd.DataFrame, Any]] = pyreadstat.read_sav
        return read


@final
class SasFiles(_Statistical):
    """SAS: data sets and transport files, without their catalogs of labels."""

    name: ClassVar[str] = "sas"
    suffixes: ClassVar[tuple[str, ...]] = (".sas7bdat", ".xpt")
    what: ClassVar[str] = "SAS"

    def reading(self, path: str) -> Callable[..., tuple[pd.DataFrame, Any]]:
        """Return what reads a file of SAS."""
        with of_extra("pyreadstat", "smalldb-dp[stats]", "SAS files"):
            import pyreadstat
        transport = parted(path)[0].lower().endswith(".xpt")
        read: Callable[..., tuple[pd.DataFrame, Any]]
        read = pyreadstat.read_xport if transport else pyreadstat.read_sas7bdat
        return read


def _dtype(kind: str, form: str) -> object:
    """Return the dtype that a column has in pandas; None: it tells none."""
    if kind == "string":
        return "string"
    if _DATES.match(form):
        return np.dtype("datetime64[s]")
    if _TIMES.match(form):
        return None
    return "Int64" if re.fullmatch(r"F[0-9]+(\.0)?", form) else np.dtype("float64")


def _gaps(ranges: list[Mapping[str, Any]], labels: Mapping[object, str]) -> list[object]:
    """Return the codes of missing values: single ones, and of ranges those that have labels or are few."""
    found: dict[object, None] = {}
    for each in ranges:
        low, high = each["lo"], each["hi"]
        if low == high:
            found[low] = None
            continue
        found.update((code, None) for code in labels if isinstance(code, float) and low <= code <= high)
        if isinstance(low, float) and low == low // 1 and high - low < _MOST_GAPS:
            found.update((low + step, None) for step in range(int(high - low) + 1))
    return [*found]
