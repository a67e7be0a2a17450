"""The columns of a schema, each read from its table in TOML: its keys, and what it is to learn."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from typing import Any, final

from queries.expressions import Fault, Faults, suggestion
from smalldb.schema.bin_shapes import SHARE, FinerBins, as_share
from smalldb.schema.column_relations import read_book
from smalldb.schema.file_format import FileFormat
from smalldb.schema.kinds import SPECS, Cuts
from smalldb.schema.kinds.kind import SIGNS
from smalldb.schema.kinds.kind import Type as Type
from smalldb.schema.schema_columns import Column

TOP: dict[str, Type] = {
    **{"columns": dict, "valid": (str, list), "queries": str, "ignore": (str, list)},
    **{"file": dict, "rows_per_person": int, "measure_first": (str, list)},
    "breaks": (dict, str),
}
FILE: dict[str, Type] = {each.name: str for each in fields(FileFormat)}
SHARED: dict[str, Type] = {
    **{"kind": str, "missing": (bool, list), "unknown": str, "dtype": str},
    **{"missing_with": (str, list), "only_if": str, "determines": (str, dict)},
    **{"description": str, "unit": str},
}
IDS: dict[str, Type] = {"kind": str, "dtype": str}
DERIVED: dict[str, Type] = {
    **{"derive": str, "decimals": int, "missing": (bool, list), "dtype": str},
    **{"description": str, "unit": str},
    **SIGNS,
}
EXAMPLES = {
    "columns": "[columns.age]",
    "values": 'values = ["north", "south"]',
    "cuts": "cuts = [18, 65]",
    "range": "range = [0, 110]",
}
NAMED: dict[Type, str] = {
    dict: "a table",
    str: "a text",
    int: "a whole number",
    list: "a list, in square brackets",
    (bool, list): "true, false or a list of texts",
    (str, dict): 'a file, or such as { country = { Leeds = "UK" } }',
    (dict, str): '"missing" or "drop", or a table of them by rule',
    (str, list): "a text or a list of texts",
    (int, str): 'a whole number, or such as "quarter"',
    (str, int, Decimal): 'a share of epsilon, such as "1/20"',
}
LEARN, MAX_LEARNED = "learn", 64  # bins
MOST_FAULTS = 200  # that are looked for before the rest is left unread
MOST_NEAR = 8  # unknown keys of a table for which a near one is looked for


def texts_of(table: Mapping[str, Any], key: str, wrong: list[Fault]) -> tuple[str, ...]:
    """Return a list of texts (or one), stripped; a fault: it holds others."""
    value = table.get(key)
    texts = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    if not all(isinstance(text, str) for text in texts):
        wrong.append(Fault(f"{key} must be a list of texts", key))
        return ()
    return tuple(text.strip() for text in texts)


def faults_of(table: Mapping[str, Any], keys: Mapping[str, Type]) -> Iterator[Fault]:
    """Tell of an unknown key, or a value of another type."""
    unknown = 0
    for key, value in table.items():
        if key not in keys:
            unknown += 1
            near = suggestion(key, keys) if unknown <= MOST_NEAR else ""
            yield Fault(f"unknown key {key!r}{near}: expected one of {', '.join(keys)}", key)
        elif not isinstance(value, keys[key]) or (isinstance(value, bool) and keys[key] is int):
            yield Fault(f"{key} must be {NAMED[keys[key]]}", key)


def lacking(table: Mapping[str, Any], needed: Sequence[Sequence[str]]) -> Iterator[Fault]:
    """Tell of a key that is missing."""
    for choice in needed:
        if not any(key in table for key in choice):
            others = "".join(f" (or {key})" for key in choice[1:])
            yield Fault(f"{choice[0]} is missing: write, for example, {EXAMPLES[choice[0]]}{others}")


@final
@dataclass(frozen=True, slots=True)
class ColumnToLearn:
    """A column that is to learn its categories."""

    column: str  # its name
    what: str  # "values" or "cuts"
    share: Fraction  # of epsilon, and for values of delta
    bins: int = 0  # how many, of cuts


def filled(table: Mapping[str, Any], what: str, categories: Sequence[object] | None) -> dict[str, Any]:
    """Return the table of a column with its categories in place of the wish to learn them."""
    filled = {key: value for key, value in table.items() if key not in ("share", what)}
    if what == "values":
        listed = ["?", "??"] if categories is None else [*categories]
        if len(listed) == 1 and table["unknown"] != "other":
            listed += ["??" if listed == ["?"] else "?"]  # a column has two categories
        return {**filled, "values": listed}
    if categories is not None:
        filled.pop("bins", None)
        return {**filled, "cuts": [*categories]}
    return filled


def closest(column: Column) -> list[Decimal]:
    """Return cuts that are as near to each other, and as large, as any that can be learned."""
    kind = column.kind
    if not isinstance(kind, Cuts):
        return []
    first, last = kind.steps(0)[0], kind.steps(kind.size - 1)[1]
    steps = sorted({first + 1, min(first + 2, last), max(last - 1, first + 1), last})
    return [Decimal(step).scaleb(-kind.decimals) for step in steps]


ID, MAX_ID = "id", 10**12  # of rows


def what_learns(table: Mapping[str, Any]) -> str | None:
    """Tell what a column learns: "values", "cuts" or None."""
    kind = table.get("kind")
    what = SPECS[kind].learns if isinstance(kind, str) and kind in SPECS else None
    return what if what is not None and isinstance(table.get(what), str) else None


def column_to_learn(name: str, table: Mapping[str, Any], what: str) -> ColumnToLearn:
    """Read what a column is to learn."""
    values, bins = what == "values", table.get("bins", 0)
    few = isinstance(bins, int) and not isinstance(bins, bool) and 2 <= bins <= MAX_LEARNED
    unlisted = values and table.get("unknown") not in ("other", "missing")
    grouped, learned = values and "groups" in table, f'{what} = "{LEARN}"'
    for wrong, problem, key in (
        (table[what] != LEARN, f'{what} must be a list, in square brackets, or "{LEARN}"', what),
        ("share" not in table, f'{learned} spends a share of epsilon: for example share = "1/20"', what),
        (unlisted, f'{learned} needs unknown = "other" (or "missing"), for other values', what),
        (grouped, f"{learned} and groups do not go together: list the values", "groups"),
        ("finer" in table, f"{learned} and finer do not go together: learn more bins", "finer"),
        (not values and not few, f"{learned} needs bins: how many, from 2 to {MAX_LEARNED}", what),
    ):
        if wrong:
            raise Fault(problem, key)
    if not 0 < (spent := as_share(table["share"])) < 1:
        raise Fault("share must be above 0 and below 1", "share")
    return ColumnToLearn(name, what, spent, 0 if values else bins)


def column_of(name: str, table: Mapping[str, Any], folder: str = "") -> Column:
    """Read a column whose categories are known."""
    every = SHARED | {key: form for spec in SPECS.values() for key, form in spec.keys.items()}
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in SPECS:
        near = suggestion(kind, [*SPECS, ID]) if isinstance(kind, str) else ""
        problem = f"kind must be one of {', '.join([*SPECS, ID])}{near}"
        if kind == "":
            problem = f"fill in the draft: {problem}; or list the column in ignore, without a table"
        raise Faults([*faults_of(table, every), Fault(problem, "kind")])
    spec = SPECS[kind]
    keys = {**SHARED, **spec.keys}
    empty = [key for key in ("values", "cuts", "range", "decimals") if key in keys and table.get(key) == []]
    wrong = [*faults_of({key: value for key, value in table.items() if key not in empty}, keys)]
    wrong += [Fault(f"fill in the draft: {key} is empty", key) for key in empty]
    wrong += lacking(table, spec.needed)
    if "cuts" in table and "bins" in table and "bins" in keys:
        wrong.append(Fault("state cuts or bins, not both", "bins"))
    choices, unknown = spec.unknown, table.get("unknown")
    if isinstance(unknown, str) and unknown not in choices:
        problem = f"unknown must be {' or '.join(map(repr, choices))}, or left out to refuse such values"
        wrong.append(Fault(problem + suggestion(unknown, choices), "unknown"))
    gaps, together = (texts_of(table, key, wrong) for key in ("missing", "missing_with"))
    if wrong:
        raise Faults(wrong)
    if "share" in table and "finer" not in table:
        raise Fault('share is for categories that are learned, as in cuts = "learn", or for finer', "share")
    built = spec.build(table)
    finer = FinerBins.of(built, table["finer"], table.get("share", SHARE)) if "finer" in table else None
    determined = read_book(name, table["determines"], folder) if "determines" in table else ()
    return Column(
        name,
        built,
        coding=table.get("coding"),
        missing=table.get("missing", False) is not False,
        gaps=gaps,
        unknown=unknown == "missing",
        dtype=table.get("dtype"),
        missing_with=together,
        only_if=table.get("only_if"),
        determines=determined,
        description=table.get("description", ""),
        unit=table.get("unit", ""),
        finer=finer,
    )


def id_column(name: str, table: Mapping[str, Any]) -> Column:
    """Return the column of fresh numbers: it is not read, and not measured."""
    if faults := [*faults_of(table, IDS)]:
        raise Faults(faults)
    return Column(name, Cuts([2], 1, MAX_ID), dtype=table.get("dtype"))
