"""Files of statistics programs: of Stata by pandas, of SPSS and SAS by pyreadstat, and the labels in both."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import count, takewhile
from typing import Any, ClassVar, final

import numpy as np

from queries.arrays import pd
from queries.expressions import shorten
from smalldb.files import of_extra
from smalldb.schema.codebook import Described
from smalldb.schema.fields import CHUNK, Piece, as_field
from smalldb.schema.file_format import FileFormat
from smalldb.schema.readers import Reader, Wanted, unbroken
from smalldb.schema.readers.compressed import parted


def labelled(
    title: str, labels: Mapping[object, str], gaps: Collection[object] = (), measured: bool = False
) -> Described:
    """Return what labels by code say that a column can hold: each a category, but for what means a gap."""
    fault, missing = "", {as_field(gap): None for gap in gaps}
    codes: dict[str, str | int] = {}
    for code, text in labels.items():
        spelled, label = as_field(code), " ".join(text.split()) or as_field(code)
        if spelled in missing:
            missing[label] = None
            continue
        if label in codes:
            fault = f"the label {shorten(label)!r} stands for the codes {codes[label]} and {spelled}"
        codes[label] = int(spelled) if spelled.lstrip("-").isdecimal() else spelled
    others = {str(code): label for label, code in codes.items()}
    for label in codes:
        if others.get(label, label) != label:
            fault = f"the label {shorten(label)!r} of the code {codes[label]} is the code of another"
    if measured or fault:
        codes = {}
    groups = {label: (code,) for label, code in codes.items() if label not in missing}
    return Described(label=title, groups=groups, gaps=tuple(["", *missing] if missing else ()), fault=fault)


_LAST = 2147483620  # of the codes that are values: the missing values of Stata come behind it
_STATA_DATES = ("%tc", "%tC", "%td", "%d", "%tw", "%tm", "%tq", "%th", "%ty")


@final
class StataFiles(Reader):
    """Stata: labelled codes are read as codes, and all its missing values as gaps."""

    name: ClassVar[str] = "dta"
    suffixes: ClassVar[tuple[str, ...]] = (".dta",)

    def columns(self, path: str, file: FileFormat, known: Collection[str]) -> Mapping[str, object]:
        """Return the columns with the types that the file declares."""
        with _opened(path) as reader:
            dtypes: dict[str, object] = dict(zip(reader._varlist, reader._dtyplist, strict=True))
            forms = dict(zip(reader._varlist, reader._fmtlist, strict=True))
        for name, dtype in dtypes.items():
            if forms[name].startswith(_STATA_DATES):
                dtypes[name] = np.dtype("datetime64[s]")
            elif not isinstance(dtype, np.dtype) or dtype.kind not in "iuf":
                dtypes[name] = "string"
        return dtypes

    def described(self, path: str, file: FileFormat) -> Mapping[str, Described]:
        """Return the value labels of columns, and their own."""
        with _opened(path) as reader:
            try:
                sets, titles = reader.value_labels(), reader.variable_labels()
            except (ValueError, KeyError, OSError, UnicodeDecodeError) as error:
                raise ValueError(f"{path}: its value labels cannot be read") from error
            # pandas tells which set is a column's in no other way, but with the data
            named = dict(zip(reader._varlist, reader._lbllist, strict=True))
        described = {}
        for name, of in named.items():
            labels = {code: text for code, text in sets.get(of, {}).items() if code <= _LAST}
            gaps = [text for code, text in sets.get(of, {}).items() if code > _LAST]
            described[name] = labelled(titles[name], labels, gaps)
        return described

    def pieces(self, path: str, wanted: Wanted, file: FileFormat, progress: bool) -> Iterator[Piece]:
        """Yield the columns in pieces."""
        with _opened(path) as reader:
            chosen = wanted.among([*reader._varlist])
            errors = ValueError, KeyError, OSError, OverflowError, UnicodeDecodeError
            frames = (_read(reader, chosen) for _ in count())
            for frame in takewhile(len, unbroken(frames, errors, path)):
                yield [frame[name] for name in chosen], None


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    with ExitStack() as stack:
        raw = stack.enter_context(open(path, "rb"))
        try:
            reader = stack.enter_context(pd.io.stata.StataReader(raw, convert_categoricals=False))
            reader.variable_labels()  # reads the head of the file
        except Exception as error:  # which ones pandas raises for any bytes is not documented
            raise ValueError(f"{path} is not a Stata file that can be read") from error
        yield reader


def _read(reader: Any, names: list[str]) -> pd.DataFrame:
    try:
        frame: pd.DataFrame = reader.read(CHUNK, columns=names, convert_categoricals=False)
        return frame
    except StopIteration:
        return pd.DataFrame()


ROWS = 1 << 18  # rows that are read at a time: those before them are passed over each time
_MOST_GAPS = 64  # whole numbers of a range that means a gap which are listed
_DATES = re.compile("[AEJS]?DATE|MMDDYY|DDMMYY|YYMMDD|E8601D")
_TIMES = re.compile("D?TIME|MTIME|HHMM|E8601TM")


class _Statistical(Reader):
    """Files that pyreadstat reads: codes as codes, all missing values as gaps."""

    name: ClassVar[str]
    what: ClassVar[str]
    reading: ClassVar[Mapping[str, str]]  # by suffix, the function of pyreadstat
    asking: ClassVar[Mapping[str, bool]] = {}  # options with which the head is read

    def columns(self, path: str, file: FileFormat, known: Collection[str]) -> Mapping[str, object]:
        """Return the columns with the types that the file declares."""
        head = self._head(path)
        kinds, forms = head.readstat_variable_types, head.original_variable_types
        return {name: _dtype(kinds[name], forms[name] or "") for name in head.column_names}

    def described(self, path: str, file: FileFormat) -> Mapping[str, Described]:
        """Return the value labels of columns, their codes of missing values, and their own labels."""
        head = self._head(path)
        described = {}
        for name in head.column_names:
            labels = head.variable_value_labels.get(name, {})
            gaps = _gaps(head.missing_ranges.get(name, []), labels)
            measured = head.variable_measure.get(name) == "scale"
            described[name] = labelled(head.column_names_to_labels.get(name) or "", labels, gaps, measured)
        return described

    def pieces(self, path: str, wanted: Wanted, file: FileFormat, progress: bool) -> Iterator[Piece]:
        """Yield the columns in pieces."""
        chosen = wanted.among(self._head(path).column_names)
        read, starts = self._reading(path), count(step=ROWS)
        frames = (read(path, usecols=chosen, row_offset=row, row_limit=ROWS)[0] for row in starts)
        # of errors each module has a class of its own
        for frame in takewhile(len, unbroken(frames, (Exception,), path)):
            yield [frame[name] for name in chosen], None

    def _reading(self, path: str) -> Callable[..., tuple[pd.DataFrame, Any]]:
        with of_extra("pyreadstat", "stats", f"{self.what} files"):
            import pyreadstat
        name = self.reading[os.path.splitext(parted(path)[0])[1].lower()]
        read: Callable[..., tuple[pd.DataFrame, Any]] = getattr(pyreadstat, name)
        return read

    def _head(self, path: str) -> Any:
        read = self._reading(path)
        with open(path, "rb"):
            pass  # the usual error where it cannot be read
        try:
            return read(path, metadataonly=True, **self.asking)[1]
        except Exception as error:  # a class of its own for each module
            raise ValueError(f"{path} is not a file of {self.what} that can be read") from error


@final
class SpssFiles(_Statistical):
    """SPSS."""

    name: ClassVar[str] = "sav"
    what: ClassVar[str] = "SPSS"
    reading: ClassVar[Mapping[str, str]] = {".sav": "read_sav", ".zsav": "read_sav"}
    suffixes: ClassVar[tuple[str, ...]] = (*reading,)
    asking: ClassVar[Mapping[str, bool]] = {"user_missing": True}  # else missing codes are not told


@final
class SasFiles(_Statistical):
    """SAS: data sets and transport files, without their catalogs of labels."""

    name: ClassVar[str] = "sas"
    what: ClassVar[str] = "SAS"
    reading: ClassVar[Mapping[str, str]] = {".sas7bdat": "read_sas7bdat", ".xpt": "read_xport"}
    suffixes: ClassVar[tuple[str, ...]] = (*reading,)


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
    codes: dict[object, None] = {}
    for each in ranges:
        low, high = each["lo"], each["hi"]
        if low == high:
            codes[low] = None
            continue
        codes.update((code, None) for code in labels if isinstance(code, float) and low <= code <= high)
        if isinstance(low, float) and low == low // 1 and high - low < _MOST_GAPS:
            codes.update((low + step, None) for step in range(int(high - low) + 1))
    return [*codes]
