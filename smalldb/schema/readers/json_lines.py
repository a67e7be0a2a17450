"""The records of a file of JSON lines: objects of single values, spelled as a CSV file spells them."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import ClassVar, final

import numpy as np

from queries import DataError
from smalldb.schema.fields import Piece, is_text
from smalldb.schema.file_format import FileFormat
from smalldb.schema.readers import Reader, Wanted
from smalldb.schema.readers.csv_files import RECORDS, check_names, lines_of, open_text


@final
class JsonLines(Reader):
    """A `Reader` of JSON lines: each row has the names as its keys, in any order."""

    name: ClassVar[str] = "jsonl"
    suffixes: ClassVar[tuple[str, ...]] = (".jsonl", ".ndjson")
    lines: ClassVar[bool] = True
    headed: ClassVar[bool] = False

    def columns(self, path: str, file: FileFormat, known: Collection[str]) -> Mapping[str, object]:
        """Return the names in the first record, sorted: the order in which a row has its keys is its own."""
        with open_text(path) as text:
            first = next(_records(lines_of(text)), None)
        if not first or not is_text("".join(first)):
            raise ValueError(
                f"{path} is empty, or is not JSON lines in UTF-8: an object in each line, each name in it "
                "once"
            )
        names = sorted(first)
        check_names(names, path)
        return dict.fromkeys(names)

    def pieces(self, path: str, wanted: Wanted, file: FileFormat, progress: bool) -> Iterator[Piece]:
        """Yield the columns as texts; each record is taken or refused by itself: what it lacks is a gap."""
        wanted.choose(wanted.names)
        comma = {name for name, sign in wanted.signs.items() if sign != "."}
        allowed = None if wanted.others is None else {*wanted.names, *wanted.others}
        with open_text(path) as text:
            records = _records(lines_of(text), _Number if comma else str)
            while piece := list(islice(records, RECORDS)):
                fields = [record for record in piece if record is not None]
                names = {name for record in fields for name in record}
                if len(fields) < len(piece) or (allowed is not None and not names <= allowed):
                    raise DataError(
                        f"{path} is not JSON lines in UTF-8: an object in each line, with a key for each "
                        "column once or not at all, and no key that is not expected"
                    )
                columns = [[record.get(name, "") for record in fields] for name in wanted.names]
                for name, column in zip(wanted.names, columns, strict=True):
                    if name in comma:
                        column[:] = [t.replace(".", ",") if isinstance(t, _Number) else t for t in column]
                yield [np.array(column, dtype=object) for column in columns], None


class _Number(str):
    """A number of JSON, as the line spells it."""

    __slots__ = ()


def _records(file: Iterable[str], number: type[str] = str) -> Iterator[dict[str, str] | None]:
    """Yield the records, spelled as in a CSV file; None for what is no record, and then no more."""
    broken = False
    try:
        for line in file:
            if line.strip():
                pairs = json.loads(
                    line, parse_int=number, parse_float=number, parse_constant=str, object_pairs_hook=tuple
                )
                if not isinstance(pairs, tuple):
                    raise TypeError("no object")
                record = {name.strip(): _field(value) for name, value in pairs}
                if len(record) < len(pairs):
                    raise ValueError("a name occurs more than once")
                yield record
    except (ValueError, TypeError, RecursionError):
        broken = True
    if broken:  # not chained: nothing of the data may travel in an error
        yield None


def _field(value: object) -> str:
    """Spell a value of JSON, whose numbers are texts already, as CSV does; TypeError: no single value."""
    if value is None or isinstance(value, bool):
        return {None: "", False: "false", True: "true"}[value]
    if not isinstance(value, str) or not is_text(value):
        raise TypeError("no single value")
    return value
