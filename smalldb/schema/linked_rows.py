"""Two related tables, read row by row, each child with its parent: for the curator, all faults at once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, final

import numpy as np
import numpy.typing as npt

from queries import DataError
from queries.arrays import Integers, pd
from queries.expressions import joined, suggestion
from queries.frames import as_frame
from queries.rule_tables import ruled_out_message
from smalldb.files import LibraryMissing
from smalldb.files.inputs import rereadable
from smalldb.files.outputs import unchanged
from smalldb.schema.fields import Fields, spelled
from smalldb.schema.kinds.kind import without_zeros
from smalldb.schema.mapping import Schema
from smalldb.schema.readers.registry import has_lines, reader_of
from smalldb.schema.related_schema import RelatedSchema
from smalldb.schema.table_readers import table_pieces

Texts = npt.NDArray[Any]


@final
@dataclass(frozen=True, slots=True)
class CodedTable:
    """A table row by row: codes of its columns, and the texts of its keys; and what is wrong with it."""

    codes: Integers  # shape (r, C)
    keys: tuple[Texts, ...]  # of each column of keys, the text of each row; empty: a gap
    wrong: tuple[str, ...]  # what it would be refused for


@final
@dataclass(frozen=True, slots=True)
class Linked:
    """Two related tables of which nothing is refused: codes of both, and the parent of each child."""

    # shapes (n, C) and (m, D): codes of the columns that are no keys
    parents: Integers
    children: Integers
    of: Integers  # shape (m,): which row of `parents` each child belongs to

    @property
    def n(self) -> int:
        """The number of parents."""
        return len(self.parents)

    def digest(self) -> tuple[npt.NDArray[Any]]:
        """Return what tells parents and their children from any others, in whatever order they were read."""
        order = np.lexsort((*self.children.T, self.of))
        children, ends = self.children[order], np.bincount(self.of, minlength=self.n).cumsum()
        parts = zip(self.parents, np.split(children, ends[:-1]), strict=True)
        families = sorted(parent.tobytes() + rows.tobytes() for parent, rows in parts)
        content = b"".join(len(family).to_bytes(8, "big") + family for family in families)
        return (np.frombuffer(sha256(content).digest(), np.uint8),)


@final
@dataclass(frozen=True, slots=True)
class LinkFaults:
    """How many rows have a key twice, a gap for a key, or no parent; confidential."""

    # by table
    twice: Mapping[str, int]
    gaps: Mapping[str, int]
    orphans: int  # children without a parent
    beyond: int  # parents with at least `most` children


def check_names(names: Sequence[str], schema: RelatedSchema) -> None:
    """Refuse other tables than the schema's: ValueError."""
    missing = [name for name in schema.tables if name not in names]
    wrong = [f"no table for {name!r}: give one, such as {name}={name}.csv" for name in missing]
    unknown = [name for name in names if name not in schema.tables]
    wrong += [f"the schema has no table {name!r}{suggestion(name, schema.tables)}" for name in unknown]
    if wrong:
        raise ValueError(joined(wrong))


def check_tables(tables: Any, schema: RelatedSchema) -> None:
    """Refuse other tables than the schema's, or other columns, from names alone: ValueError, all at once."""
    whole, wrong = schema.whole, list[str]()
    if whole is None:
        check_names([*tables], schema)
    for name, part in schema.tables.items() if whole is None else (("", whole),):
        table, keys = (tables[name], schema.keys[name]) if name else (tables, (schema.key,))
        where = f"table {name!r}" if name else "the table"
        try:
            if (names := columns_of(table, part)) is not None:
                part.chosen(names)
                lacking = [key for key in keys if key not in names]
                wrong += [f"{where} has no column {key!r}{suggestion(key, names)}" for key in lacking]
                wrong += [f"{where} has two columns {key!r}" for key in keys if names.count(key) > 1]
        except (DataError, LibraryMissing):
            raise  # no refusal of names: other classes, and another exit code
        except ValueError as error:
            wrong.append(f"{where}: {error}" if name else str(error))
    if wrong:
        raise ValueError(joined(wrong))


def columns_of(table: Any, schema: Schema) -> list[str] | None:
    """Return the names of a table's columns; None: rows must be read to know them."""
    if not isinstance(table, str | os.PathLike):
        return [str(name).strip() for name in as_frame(table).columns]
    path = os.fspath(table)
    reader = reader_of(path)
    if not reader.headed:
        return None
    return [name.strip() for name in reader.columns(path, schema.file, [*schema.names, *schema.unread])]


def read_linked(tables: Any, schema: RelatedSchema) -> Linked:
    """Read both tables, of pandas and its kin or paths of files, by their names; or the long one."""
    coded = coded_tables(tables, schema)
    faults, of = linked_keys(coded, schema)
    wrong = [(name, problem) for name, table in coded.items() for problem in table.wrong]
    if schema.whole is not None:
        if faults.orphans:
            wrong.append((schema.child, f"column {schema.key!r} has gaps: each row needs a person"))
        if wrong:
            raise DataError(f"{joined([problem for _, problem in wrong])}: smalldb schema check shows more")
    for name in schema.tables:
        key = schema.key if name == schema.unit else schema.child_key
        if faults.gaps[name]:
            wrong.append((name, f"column {key!r} has gaps: each row needs a key"))
        if faults.twice[name]:
            wrong.append((name, f"two rows have the same {key!r}: a key tells rows apart"))
    if faults.orphans and not schema.drop:
        problem = (
            f'a row has no parent in {schema.unit!r} by {schema.link!r}: add it, or write orphans = "drop"'
        )
        wrong.append((schema.child, problem))
    if wrong:
        problems = joined([f"table {name!r}: {problem}" for name, problem in wrong])
        raise DataError(f"{problems}: smalldb schema check says how many rows")
    parents, children = (coded[name].codes for name in schema.tables)
    kept = of >= 0
    return Linked(parents, children[kept], of[kept])


def coded_tables(tables: Any, schema: RelatedSchema) -> dict[str, CodedTable]:
    """Read both tables row by row; of a long one, persons with what all their rows say of them, and rows."""
    whole = schema.whole
    if whole is None:
        return {
            name: coded_rows(tables[name], part, schema.keys[name]) for name, part in schema.tables.items()
        }
    coded = coded_rows(tables, whole, (schema.key,))
    of, distinct = pd.factorize(coded.keys[0])
    fixed, others = (
        [whole.names.index(name) for name in part.names] for part in (schema.parents, schema.children)
    )
    parents = coded.codes[first_rows(of, len(distinct))][:, fixed]
    unlike = (coded.codes[:, fixed] != parents[of]).any(axis=0)
    wrong = tuple(
        f"column {whole.names[c]!r} is fixed, and differs between rows of one {schema.key!r}: mend the rows, "
        "or take it out of fixed from public knowledge"
        for c, differs in zip(fixed, unlike.tolist(), strict=True)
        if differs
    )
    return {
        schema.unit: CodedTable(parents, (distinct,), wrong),
        schema.child: CodedTable(coded.codes[:, others], coded.keys, coded.wrong),
    }


def linked_keys(coded: Mapping[str, CodedTable], schema: RelatedSchema) -> tuple[LinkFaults, Integers]:
    """Return what is wrong with keys, and the number of the parent of each child, -1: none."""
    parents, links = coded[schema.unit].keys[0], coded[schema.child].keys[-1]
    child_keys = coded[schema.child].keys[0] if schema.child_key is not None else links[:0]
    keys = {schema.unit: parents, schema.child: child_keys}
    texts = {name: each[each != ""].tolist() for name, each in keys.items()}
    gaps = {name: len(each) - len(texts[name]) for name, each in keys.items()}
    twice = {name: len(each) - len({*each}) for name, each in texts.items()}
    numbers, _ = pd.factorize(np.concatenate([parents, links]))
    first = first_rows(numbers[: len(parents)], numbers.max(initial=-1) + 1)
    of = np.where(links != "", first[numbers[len(parents) :]], -1)
    beyond = int((np.bincount(of[of >= 0], minlength=1) >= schema.most).sum())
    return LinkFaults(twice, gaps, int((of < 0).sum()), beyond), of


def first_rows(numbers: Integers, size: int) -> Integers:
    """Return the first row that each of so many numbers stands in; -1: none."""
    first = np.full(size, -1)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]
    return first


def coded_rows(table: Any, schema: Schema, keys: Sequence[str]) -> CodedTable:
    """Read a table row by row; what is wrong with its rows is in the result."""
    held: AbstractContextManager[object] = nullcontext()
    if isinstance(table, str | os.PathLike):
        path = rereadable(os.fspath(table), has_lines(os.fspath(table)))
        held, pieces = unchanged(path), table_pieces(path, schema, keys=keys)
    else:
        pieces = schema.pieces(as_frame(table), keys=keys)
    wrong, outside, refused = dict[str, str](), set[int](), False
    codes, texts = list[Integers](), [list[Texts]() for _ in keys]
    domain, width, memos = schema.domain, len(schema.columns), schema.memos()
    with held:
        for fields, _ in pieces:
            block = np.column_stack(schema.coded(fields[:width], wrong, outside, memos))
            if not wrong:
                kept = domain.contains(block)
                if not kept.all():
                    refused = True
                    outside.update(domain.broken(block[~kept]))
            codes.append(block)
            for texts_of_key, values, key in zip(texts, fields[width:], keys, strict=True):
                texts_of_key.append(_texts(values, key))
    problems = [*wrong.values()]
    if refused or outside:
        problems.append(ruled_out_message(domain.valid, outside))
    empty = np.zeros((0, width), dtype=np.int64)
    return CodedTable(
        np.concatenate([empty, *codes]),
        tuple(np.concatenate([np.zeros(0, dtype=object), *texts_of_key]) for texts_of_key in texts),
        tuple(problems),
    )


def _texts(fields: Fields, key: str) -> Texts:
    """Return the text of each key; a whole number is one, however it is written."""
    if _are_rounded(fields):
        raise DataError(
            f"column {key!r} holds floats that may stand for several whole numbers: give keys as integers or "
            "texts"
        )
    codes, distinct = spelled(fields, key)
    texts = np.array([without_zeros(text) for text in distinct], dtype=object)
    return texts[codes] if len(texts) else np.zeros(len(codes), dtype=object)


def _are_rounded(fields: Fields) -> bool:
    """Tell whether some key is a float beyond those that tell whole numbers apart, such as 2^53."""
    column: Any = fields.array if isinstance(fields, pd.Series) else fields
    if isinstance(column, pd.Categorical):
        column = column.categories.array
    if column.dtype.kind == "f":
        dtype = getattr(column.dtype, "subtype", column.dtype)  # of a sparse column, that of its values
        bound = 1 << min(53, np.finfo(f"f{dtype.itemsize}").nmant + 1)
        return bool((pd.Series(column).abs() >= bound).any())
    if column.dtype.kind != "O":
        return False
    floats: list[Any] = [value for value in column if isinstance(value, float | np.floating)]
    kinds = [kind for kind in {*map(type, floats)} if issubclass(kind, np.floating)]
    bounds: dict[type, int] = {kind: 1 << min(53, np.finfo(kind).nmant + 1) for kind in kinds}
    return any(bool(abs(value) >= bounds.get(type(value), 1 << 53)) for value in floats)
