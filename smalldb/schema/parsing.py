"""Schemas as TOML files."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path as File
from typing import Any

from queries.expressions import joined, parse, shorten, suggestion
from smalldb.exact.numbers import as_fraction
from smalldb.schema.asked import ColumnToLearn, closest, filled
from smalldb.schema.derived import read_derived
from smalldb.schema.determined import Book, read_book, with_book
from smalldb.schema.file_format import FileFormat
from smalldb.schema.finer_bins import SHARE, FinerBins
from smalldb.schema.keys import (
    DERIVED,
    FILE,
    IDS,
    KEYS,
    LEARN,
    MAX_LEARNED,
    MOST_FAULTS,
    NEEDED,
    SHARED,
    SIGNS,
    TOP,
    UNKNOWN,
    Fault,
    faults_of,
    texts_of,
)
from smalldb.schema.kinds import Categories, Cuts, Dates, Flag, Integers, Kind, Times, Weekdays
from smalldb.schema.kinds.number_format import NumberFormat
from smalldb.schema.lines import MAX_TEXT, Faults, Path, item_lines, key_lines, toml_of, with_lines
from smalldb.schema.mapping import (
    MAX_CODED,
    MAX_COLUMNS,
    TOO_LARGE,
    Schema,
    coded_cells,
    too_many_columns,
)
from smalldb.schema.orders import is_order
from smalldb.schema.queries_and_rules import unreadable
from smalldb.schema.schema_columns import Column

MOST_LOCATED = 20  # faults of relations that are told with lines of their own: no more are shown
ID, MAX_ID = "id", 10**12  # of rows


def read_schema(path: str) -> Schema:
    """Read a schema from a TOML file.

    Raises
    ------
    OSError
        The file cannot be read.
    ValueError
        It is no TOML in UTF-8 or no schema: names the file, and each column, key and line that is wrong.
    """
    try:
        return parse_schema(schema_text_of(path), os.path.dirname(path))
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a text in UTF-8") from error
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from error


def schema_text_of(path: str) -> str:
    """Read the text of a schema's file, of one that is too long no more than shows that it is."""
    with File(path).open(encoding="utf-8-sig") as file:
        return file.read(MAX_TEXT + 1)


def parse_schema(text: str, folder: str = "") -> Schema:
    r"""Read a schema from the text of a TOML file; errors as `read_schema`, without the file.

    Files that it names are looked for in `folder`.

    >>> parse_schema('[columns.age]\nkind = "cuts"\ncuts = [18, 65]\nrange = [0, 99]').domain.attributes
    ('age>=18', 'age>=65')
    """
    schema, asked = parsed(text, folder=folder)
    if asked:
        raise ValueError(
            f"column {asked[0].column!r} learns its categories from the data, for a share of epsilon: "
            "that takes smalldb.release(data, schema=...) or generate, whose --schema-out writes them out"
        )
    return schema


def parsed(
    text: str,
    learned: Mapping[str, Sequence[str]] | None = None,
    folder: str = "",
    books: Mapping[str, Book] | None = None,
) -> tuple[Schema, tuple[ColumnToLearn, ...]]:
    """Read a schema, with what was learned or a stand-in for it, and which columns are to learn.

    Code books that were read before, by column, are not read again.
    """

    def lines() -> dict[Path, int]:
        return key_lines(text) | {("valid", str(i)): line for i, line in enumerate(item_lines(text, "valid"))}

    given = toml_of(text)
    if "unit" in given and "tables" in given:
        raise ValueError(
            "it is a schema of related tables, and one table is given: name both, such as "
            "households=h.csv persons=p.csv"
        )
    if "person" in given:
        raise ValueError(
            "person makes persons of rows, for smalldb.release(table, schema=...), generate and evaluate: "
            "leave out person and fixed for others"
        )
    return table_of(given, lines, learned, folder, books)


def table_of(
    given: Mapping[str, Any],
    lines: Callable[[], Mapping[Path, int]],
    learned: Mapping[str, Sequence[str]] | None = None,
    folder: str = "",
    books: Mapping[str, Book] | None = None,
) -> tuple[Schema, tuple[ColumnToLearn, ...]]:
    """Read the schema of a table from its TOML, as `parsed`; `lines` tells where its keys stand."""
    rest = ""
    wrong: list[tuple[str, tuple[str, ...]]] = []  # with the path of the key
    wrong += [(said, (key or "",)) for said, key in faults_of(given, TOP, (("columns",),))]
    columns, asked, computed, ids = [], [], dict[str, Mapping[str, Any]](), list[Column]()
    tables = given.get("columns")
    if isinstance(tables, dict) and len(tables) > MAX_COLUMNS:
        raise ValueError(too_many_columns(len(tables)))
    cells = 0
    for name, described in tables.items() if isinstance(tables, dict) else ():
        if len(wrong) > MOST_FAULTS:
            rest = f"; columns from {shorten(name)!r} on were not read"
            break
        try:
            if isinstance(described, dict) and "derive" in described:
                if faults := [*faults_of(described, DERIVED, ())]:
                    raise _Wrong(*faults)
                computed[name] = described
                continue
            if isinstance(described, dict) and described.get("kind") == ID:
                ids.append(_id(name, described))
                continue
            if isinstance(described, dict) and (what := _what_learns(described)) is not None:
                asked.append(_asked(name, described, what))
                described = filled(described, what, (learned or {}).get(name))
            if name in (books or {}):
                described = with_book(described, (books or {})[name])
            columns.append(_column(name, described, folder))
            if asked and asked[-1].column == name and what == "cuts" and learned is None:
                _column(name, filled(described, what, closest(columns[-1])), folder)
            cells += coded_cells(columns[-1])
            if cells > MAX_CODED:
                raise ValueError(TOO_LARGE)
        except _Wrong as error:
            for said, key in error.faults:
                told = said.removeprefix(f"column {name!r}: ")
                wrong.append((told, ("columns", name, key or "")))
    if not wrong:
        derived, faulty = read_derived(columns, computed)
        wrong += [(said, ("columns", name, "derive")) for name, said in faulty]
    ignored, rules, first = (texts_of(given, key) for key in ("ignore", "valid", "measure_first"))
    wrong += [
        (f"{key} must be a list of texts", (key,))
        for key, texts in (("ignore", ignored), ("valid", rules), ("measure_first", first))
        if texts is None
    ]
    queries, valid = given.get("queries"), given.get("valid")
    file, faults = _file(given.get("file"))
    wrong += [(f"file: {said}", ("file", key or "")) for said, key in faults]
    each_person = given.get("rows_per_person")
    if isinstance(each_person, int) and each_person < 1:
        wrong.append(("rows_per_person must be a whole number of at least 1", ("rows_per_person",)))
    readable, count = not wrong, len(tables) - len(computed) - len(ids) if isinstance(tables, dict) else 0
    if isinstance(queries, str):
        wrong += [(said, ("queries",)) for said in unreadable(queries, (), count)]
    if readable:
        try:
            stated = valid if isinstance(valid, str) else rules
            queried = None if wrong else queries
            others = file, each_person, tuple(derived), first or (), tuple(ids)
            schema = Schema(tuple(columns), stated, queried, ignored or (), *others)
            if not wrong:
                return schema, tuple(asked)
        except ValueError as error:
            each = error.each if isinstance(error, Faults) else (str(error),)
            wrong += [(said, _path_of(said, tables, rules or ())) for said in each[:MOST_LOCATED]]
            wrong += [(said, ("valid",)) for said in each[MOST_LOCATED:]]
    else:
        unread = unreadable(None, rules or ())
        wrong += [(said, _path_of(said, {}, rules or ())) for said in unread[:MOST_LOCATED]]
        wrong += [(said, ("valid",)) for said in unread[MOST_LOCATED:]]
    raise ValueError(joined(with_lines(wrong, lines())) + rest)


def _path_of(said: str, tables: object, rules: Sequence[str]) -> tuple[str, ...]:
    """Return the path of the key that a fault of the whole schema is about."""
    for name, given in tables.items() if isinstance(tables, dict) else ():
        if said.startswith(f"column {name!r}: "):
            key = said.removeprefix(f"column {name!r}: ").split(" ")[0].rstrip(":")
            return ("columns", name, *([key] if key in given else []))
    if said.startswith("measure_first"):
        return ("measure_first",)
    for i, rule in enumerate(rules):
        named = [] if is_order(rule) or unreadable(None, [rule]) else parse(rule).names
        if any(repr(shorten(word)) in said for word in (rule, *named)):
            return ("valid", str(i))
    return ("valid",)


def _file(given: object) -> tuple[FileFormat, list[Fault]]:
    """Read how files are written, and what is wrong with that, each key by itself."""
    stated = given if isinstance(given, dict) else {}
    wrong = [*faults_of(stated, FILE, ())]
    if wrong:
        return FileFormat(), wrong
    for key, value in stated.items():
        try:
            FileFormat(**{key: value})
        except ValueError as error:
            wrong.append(Fault(str(error), key))
    try:
        return FileFormat() if wrong else FileFormat(**stated), wrong
    except ValueError as error:  # of two keys together
        return FileFormat(), [Fault(str(error))]


class _Wrong(ValueError):
    """Errors of one column."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__(*faults)
        self.faults = faults


def _what_learns(given: Mapping[str, Any]) -> str | None:
    """Tell what a column learns: "values", "cuts" or None."""
    for kind, what in (("categories", "values"), ("cuts", "cuts")):
        if given.get("kind") == kind and isinstance(given.get(what), str):
            return what
    return None


def _asked(name: str, given: Mapping[str, Any], what: str) -> ColumnToLearn:
    if given[what] != LEARN:
        raise _Wrong(Fault(f'{what} must be a list, in square brackets, or "{LEARN}"', what))
    if "share" not in given:
        example = 'say which, for example share = "1/20"'
        raise _Wrong(Fault(f'{what} = "{LEARN}" spends a share of epsilon: {example}', what))
    if what == "values" and given.get("unknown") not in ("other", "missing"):
        raise _Wrong(
            Fault('values = "learn" needs unknown = "other" (or "missing"), for those not learned', what)
        )
    if what == "values" and "groups" in given:
        raise _Wrong(Fault('values = "learn" and groups do not go together: list the values', "groups"))
    if "finer" in given:
        raise _Wrong(Fault(f'{what} = "{LEARN}" and finer do not go together: learn more bins', "finer"))
    bins = given.get("bins", 0)
    if what == "cuts" and (
        not isinstance(bins, int) or isinstance(bins, bool) or not 2 <= bins <= MAX_LEARNED
    ):
        raise _Wrong(Fault(f'cuts = "learn" needs bins: how many, from 2 to {MAX_LEARNED}', what))
    try:
        spent = as_fraction(given["share"], "share")
    except (ValueError, TypeError) as error:
        raise _Wrong(Fault(str(error), "share")) from error
    if not 0 < spent < 1:
        raise _Wrong(Fault("share must be above 0 and below 1", "share"))
    return ColumnToLearn(name, what, spent, bins)


def _column(name: str, given: object, folder: str = "") -> Column:
    if not isinstance(given, dict):
        raise _Wrong(Fault("expected a table of what it can hold"))
    every = SHARED | {key: form for keys in KEYS.values() for key, form in keys.items()}
    kind = given.get("kind")
    if not isinstance(kind, str) or kind not in KEYS:
        near = suggestion(kind, [*KEYS, ID]) if isinstance(kind, str) else ""
        said = f"kind must be one of {', '.join([*KEYS, ID])}{near}"
        if kind == "":
            said = f"fill in the draft: {said}; or list the column in ignore, without a table"
        raise _Wrong(*faults_of(given, every, ()), Fault(said, "kind"))
    keys = SHARED | KEYS[kind]
    wrong = [*faults_of(given, keys, ())]
    empty = [key for key in ("values", "cuts", "range") if key in keys and given.get(key) == []]
    wrong += [Fault(f"fill in the draft: {key} is empty", key) for key in empty]
    wrong += [fault for fault in faults_of(given, keys, NEEDED[kind]) if fault not in wrong]
    if "cuts" in given and "bins" in given and "bins" in keys:
        wrong.append(Fault("give cuts or bins, not both", "bins"))
    choices, unknown = UNKNOWN.get(kind, ("missing",)), given.get("unknown")
    if isinstance(unknown, str) and unknown not in choices:
        said = f"unknown must be {' or '.join(map(repr, choices))}, or left out: refused then"
        wrong.append(Fault(said + suggestion(unknown, choices), "unknown"))
    gaps = () if isinstance(given.get("missing"), bool) else texts_of(given, "missing")
    if gaps is None:
        wrong.append(Fault("missing must be a list of texts", "missing"))
    together = texts_of(given, "missing_with")
    if together is None:
        wrong.append(Fault("missing_with must be a list of texts", "missing_with"))
    if wrong:
        raise _Wrong(*wrong)
    if "share" in given and "finer" not in given:
        raise _Wrong(
            Fault('share is for categories that are learned, as in cuts = "learn", or for finer', "share")
        )
    try:
        made = _BUILD[kind](given)
        finer = FinerBins.of(made, given["finer"], given.get("share", SHARE)) if "finer" in given else None
        return Column(
            name,
            made,
            coding=given.get("coding"),
            missing=given.get("missing", False) is not False,
            gaps=gaps or (),
            unknown=unknown == "missing",
            dtype=given.get("dtype"),
            missing_with=together or (),
            only_if=given.get("only_if"),
            determines=read_book(name, given["determines"], folder) if "determines" in given else (),
            description=given.get("description", ""),
            unit=given.get("unit", ""),
            finer=finer,
        )
    except (ValueError, TypeError) as error:
        said = str(error)
        first = said.removeprefix(f"column {name!r}: ").split(" ")[0].rstrip(":")
        raise _Wrong(Fault(said, first if first in given else None)) from error


def _id(name: str, given: Mapping[str, Any]) -> Column:
    """Return the column of fresh numbers: it is not read, and not measured."""
    if faults := [*faults_of(given, IDS, ())]:
        raise _Wrong(*faults)
    try:
        return Column(name, Cuts([2], 1, MAX_ID), dtype=given.get("dtype"))
    except (ValueError, TypeError) as error:
        raise _Wrong(Fault(str(error), "dtype")) from error


def _range(given: Mapping[str, Any]) -> tuple[Any, Any]:
    ends: list[Any] = given["range"]
    if len(ends) != 2:
        raise ValueError("range must be a list of two, the lowest and the highest")
    return ends[0], ends[1]


def _numbers(given: Mapping[str, Any]) -> NumberFormat:
    return NumberFormat(**{key: given[key] for key in SIGNS if key in given})


def _cuts(given: Mapping[str, Any]) -> Cuts:
    low, high = _range(given)
    options = given.get("decimals"), _numbers(given)
    if "bins" in given:
        return Cuts.of_bins(given["bins"], low, high, *options)
    return Cuts(given["cuts"], low, high, *options)


def _dates(given: Mapping[str, Any]) -> Dates:
    low, high = _range(given)
    if "bins" in given:
        return Dates.of_bins(given["bins"], low, high, given.get("format"))
    return Dates(given["cuts"], low, high, given.get("format"))


def _times(given: Mapping[str, Any]) -> Times:
    low, high = _range(given) if "range" in given else ("00:00", "23:59")
    return Times.of_bins(given["bins"], low, high) if "bins" in given else Times(given["cuts"], low, high)


def _integers(given: Mapping[str, Any]) -> Integers:
    low, high = _range(given)
    return Integers(low, high, given.get("unknown") == "nearest", _numbers(given))


_BUILD: dict[str, Callable[[Mapping[str, Any]], Kind]] = {
    "bool": lambda given: Flag(given.get("true", ()), given.get("false", ())),
    "categories": lambda given: Categories(
        given.get("values", ()), given.get("unknown") == "other", given.get("groups")
    ),
    "cuts": _cuts,
    "integers": _integers,
    "dates": _dates,
    "weekdays": lambda given: Weekdays(given.get("format")),
    "times": _times,
}
