"""Files of Stata, by pandas."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar, final

import numpy as np

from queries import DataError
from queries.late import pd
from smalldb.schema.codebook import Described
from smalldb.schema.file_format import USUAL, FileFormat
from smalldb.schema.pieces import CHUNK, Piece
from smalldb.schema.readers.labels import Labelled, described
from smalldb.schema.readers.reader import Reader, Wanted

_LAST = 2147483620  # of the codes that are values: the missing values of Stata come behind it
_DATES = ("%tc", "%tC", "%td", "%d", "%tw", "%tm", "%tq", "%th", "%ty")


@final
class StataFiles(Reader):
    """Stata: labelled codes are read as codes, and all its missing values as gaps."""

    name: ClassVar[str] = "dta"
    suffixes: ClassVar[tuple[str, ...]] = (".dta",)
    lines: ClassVar[bool] = False
    headed: ClassVar[bool] = True

    def columns(
        self, path: str, file: FileFormat = USUAL, known: Collection[str] = ()
    ) -> Mapping[str, object]:
        """Return the columns with the types that the file declares."""
        with _opened(path) as reader:
            return {
                name: _dtype(dtype, form)
                for name, dtype, form in zip(reader._varlist, reader._dtyplist, reader._fmtlist, strict=True)
            }

    def described(self, path: str, file: FileFormat = USUAL) -> Mapping[str, Described]:
        """Return the value labels of columns, and their own."""
        with _opened(path) as reader:
            try:
                sets, titles = reader.value_labels(), reader.variable_labels()
            except (ValueError, KeyError, OSError, UnicodeDecodeError) as error:
                raise ValueError(f"{path}: its value labels cannot be read") from error
            # pandas tells which set is a column's in no other way, but with the data
            named = dict(zip(reader._varlist, reader._lbllist, strict=True))
        return described({name: _labelled(titles[name], sets.get(of, {})) for name, of in named.items()})

    def pieces(
        self, path: str, wanted: Wanted, file: FileFormat = USUAL, progress: bool = False
    ) -> Iterator[Piece]:
        """Yield the columns in pieces."""
        with _opened(path) as reader:
            names = [*reader._varlist]
            chosen, broken = [names[i] for i in wanted.choose(names)], False
            try:
                while len(frame := _read(reader, chosen)):
                    yield [frame[name] for name in chosen], None
            except (ValueError, KeyError, OSError, OverflowError, UnicodeDecodeError):
                broken = True
            if broken:  # not chained: nothing of the data may travel in an error
                raise DataError(f"{path} is broken: it cannot be read to its end")


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


def _dtype(dtype: object, form: str) -> object:
    if form.startswith(_DATES):
        return np.dtype("datetime64[s]")
    return dtype if isinstance(dtype, np.dtype) and dtype.kind in "iuf" else "string"


def _labelled(title: str, labels: Mapping[int, str]) -> Labelled:
    gaps = [text for code, text in labels.items() if code > _LAST]
    return Labelled(title, {code: text for code, text in labels.items() if code <= _LAST}, gaps)
