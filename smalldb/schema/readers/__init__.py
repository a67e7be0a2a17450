"""What a reader of files is to the rest of the house."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, TypeVar, final

from queries import DataError
from smalldb.schema.codebook import Described
from smalldb.schema.fields import Piece
from smalldb.schema.file_format import FileFormat

T = TypeVar("T")
Choose = Callable[[Sequence[str]], Sequence[int]]
"""Tells, from the names of a table's columns, which of them are read."""


@final
@dataclass(frozen=True, slots=True)
class Wanted:
    """Which columns of a file are read, and how they are written there."""

    names: tuple[str, ...]  # of the columns, in the order in which they are handed on
    choose: Choose  # tells where they stand among those of the file
    others: tuple[str, ...] | None = ()  # columns that the file may have beside them; None: any
    # by column, the decimal sign of its numbers, where the column states one
    signs: Mapping[str, str] = field(default_factory=dict)
    # columns of plain numbers, each with the texts that mean a gap: a decimal sign of the file is theirs
    numbers: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def among(self, names: Sequence[str]) -> list[str]:
        """Return those of the names in a file that are read."""
        return [names[i] for i in self.choose(names)]


class Reader(Protocol):
    """Files of one format."""

    name: ClassVar[str]  # of the format; the suffix by which it is written
    # of the names of its files, in lower case; the first is the usual one
    suffixes: ClassVar[tuple[str, ...]]
    lines: ClassVar[bool] = False  # whether it is text in lines, which may be compressed
    headed: ClassVar[bool] = True  # whether its columns are known before any row is read
    # what of `FileFormat` says which of several tables is meant: "query", "sheet"; empty: there is one
    chosen_by: ClassVar[str] = ""

    def columns(self, path: str, file: FileFormat, known: Collection[str]) -> Mapping[str, object]:
        """Return the names of the columns, each with its declared dtype or None; no data."""

    def described(self, path: str, file: FileFormat) -> Mapping[str, Described]:
        """Return what the file's own code book says of columns, if it has one: no data."""
        return {}

    def pieces(self, path: str, wanted: Wanted, file: FileFormat, progress: bool) -> Iterator[Piece]:
        """Yield the wanted columns, in constant memory."""


def unbroken(pieces: Iterable[T], errors: tuple[type[Exception], ...], error: DataError | str) -> Iterator[T]:
    """Hand on pieces; in place of an error raise another, or that a path is broken: nothing of the data."""
    try:
        yield from pieces
        return
    except errors:
        pass  # what is raised below is not chained
    raise DataError(f"{error} is broken: it cannot be read to its end") if isinstance(error, str) else error
