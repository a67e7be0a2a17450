"""A schema of two related tables, parents with all their children; or of a long table of persons."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, final

from queries import Column, Domain
from queries.expressions import Fault, Faults, suggestion
from smalldb.schema.column_parsing import ID, TOP, Type, faults_of, texts_of
from smalldb.schema.mapping import Schema
from smalldb.schema.parsing import Path, key_lines, table_of

MOST = 8  # children that are told apart where the schema does not say how many
NAME = re.compile(r"\w[\w -]*")  # of a table, and of its file in a release
_SIGN = re.compile(r"[^\w -]")
MOST_MOST, MOST_CAP = 1 << 10, 1 << 10
RELATED: dict[str, Type] = {"unit": str, "tables": dict, "file": dict}
LINKS: dict[str, Type] = {
    **{"key": str, "parent": str, "link": str},
    **{"most": int, "cap": int, "orphans": str},
}
OF_CHILDREN = ("link", "most", "cap", "orphans")  # keys of a table with a parent
NOT_HERE = ("queries", "measure_first", "rows_per_person", "breaks")  # keys of one table alone
ID_COLUMN = {"kind": ID}
KNOWN = {key: value for key, value in TOP.items() if key not in NOT_HERE}


@final
@dataclass(frozen=True)
class RelatedSchema:
    """What two related tables can hold, and how they are linked: public choices."""

    # the names of the tables of parents and of children: a parent with all its children is protected
    unit: str
    child: str
    # their schemas; keys and links are columns of fresh numbers in them
    parents: Schema
    children: Schema
    key: str  # the column that tells parents apart
    link: str  # the column of children that holds their parent's key
    child_key: str | None = None  # the column that tells children apart; None: there is none
    most: int = MOST  # the number of children is told up to this one: so many, or more
    # children weigh 1 / max(their number, cap); None: the mean number of released parents that have some
    cap: int | None = None
    drop: bool = False  # whether children without a parent are dropped; otherwise they are refused
    whole: Schema | None = None  # the schema of one long table, which holds both; None: there are two tables
    rows_per_person: ClassVar[None] = None

    def __post_init__(self) -> None:
        number = re.compile(rf"{re.escape(self.number)}(>.*)?", re.DOTALL)
        if taken := [name for name in self.parents.names if number.fullmatch(name)]:
            raise ValueError(f"column {taken[0]!r} has the name of the number of children: give it another")
        for column in (*self.parents.columns, *self.children.columns):
            if column.finer:
                raise ValueError(
                    f"column {column.name!r}: related tables cannot have finer bins: leave it out"
                )

    @property
    def number(self) -> str:
        """The name of the column of parents that holds the number of their children."""
        return f"number of {self.child}"

    @cached_property
    def number_column(self) -> Column:
        """The column of parents that holds the number of their children: 0, 1, and so on, or more."""
        labels = [*map(str, range(self.most)), f"{self.most} or more"]
        attributes = [f"{self.number}>={i}" for i in range(1, self.most + 1)]
        table = [[int(code >= i) for i in range(1, self.most + 1)] for code in range(self.most + 1)]
        return Column.coded(self.number, labels, attributes, table, ordered=True)

    @cached_property
    def domains(self) -> dict[str, Domain]:
        """What is measured, by table: parents with their number of children, and walks to a child."""
        of_parents, of_children = (
            [_named(column, name) for column in table.domain.columns] for name, table in self.tables.items()
        )
        of_parents.append(self.number_column)
        return {self.unit: Domain(of_parents), self.child: Domain([*of_parents, *of_children])}

    @property
    def domain(self) -> Domain:
        """The universe of walks, from a parent to one of its children."""
        return self.domains[self.child]

    @property
    def protected(self) -> str:
        """What is protected, as records state it: parents by their key, with children by their link."""
        # signs that no name of a table has are numbers, so other tables or keys have another text
        names = (self.unit, self.key, self.child, self.link)
        return "{}/{}, {}/{}".format(*(_SIGN.sub(lambda sign: f"%{ord(sign[0])};", name) for name in names))

    @property
    def least(self) -> int:
        """The number of children that a parent has at least: in a long table each person has a row."""
        return 0 if self.whole is None else 1

    @property
    def parent_words(self) -> str:
        """What a parent is called in words."""
        return f"row of {self.unit}" if self.whole is None else self.unit

    @property
    def children_words(self) -> str:
        """What children are called in words."""
        return f"rows of {self.child}" if self.whole is None else "rows"

    @property
    def tables(self) -> dict[str, Schema]:
        """The schemas of both tables by their names, parents first."""
        return {self.unit: self.parents, self.child: self.children}

    @property
    def keys(self) -> dict[str, tuple[str, ...]]:
        """The columns of each table by which rows are told apart or linked: a key of its own first."""
        child_keys = () if self.child_key is None else (self.child_key,)
        return {self.unit: (self.key,), self.child: (*child_keys, self.link)}


def _named(column: Column, table: str) -> Column:
    """Return a column named after its table, too."""
    name = f"{table}.{column.name}"
    if column.yes_no:
        return Column(name).spelled_as(column.spelled)
    attributes = [f"{table}.{each}" for each in column.attributes]
    ordered, cuts = column.ordered, column.cuts
    renamed = Column.coded(name, column.labels, attributes, column.table, ordered=ordered, cuts=cuts)
    return renamed.spelled_as(column.spelled)


def tables_schema(document: Mapping[str, Any], text: str, folder: str = "") -> RelatedSchema:
    """Read the schema of two tables from its TOML."""
    wrong: list[Fault | str] = [*faults_of(document, RELATED)]
    lacking = [key for key in ("unit", "tables") if key not in document]
    wrong += [f'{key} is missing: related tables have unit = "NAME" and [tables.NAME]' for key in lacking]
    if wrong:
        raise Faults(wrong)
    tables, unit, positions = document["tables"], document["unit"], key_lines(text)
    wrong += _links(tables, unit)
    read = dict[str, Schema]()
    key: Any = tables[unit].get("key") if isinstance(tables.get(unit), dict) else None
    for name, table in tables.items():
        if not NAME.fullmatch(name):
            wrong.append(f"table {name!r}: a name of letters, digits, _, - and spaces is needed")
        if not isinstance(table, dict):
            wrong.append(f"table {name!r}: expected a table that describes it")
            continue
        if "parent" in table and key is not None:
            table = {"link": key, **table}
        try:
            read[name] = _schema(name, table, document.get("file"), positions, folder)
        except Faults as error:
            wrong += error.each
    if wrong:
        raise Faults(wrong)
    (child,) = (name for name in tables if name != unit)
    table = tables[child]
    links = table.get("link", key), table.get("key"), table.get("most", MOST), table.get("cap")
    return RelatedSchema(unit, child, read[unit], read[child], key, *links, table.get("orphans") == "drop")


def numbers_of(table: Mapping[str, Any]) -> list[str]:
    """Tell what is wrong with `most` and `cap`."""
    return [
        f"{key} must be a whole number from 1 to {most}"
        for key, most in (("most", MOST_MOST), ("cap", MOST_CAP))
        if isinstance(value := table.get(key, 1), int) and not 1 <= value <= most
    ]


def _links(tables: Mapping[str, Any], unit: str) -> list[str]:
    """Tell what is wrong with how tables are linked."""
    if unit not in tables:
        return [f"unit: no table {unit!r}{suggestion(unit, tables)}"]
    parents = {name: table.get("parent") for name, table in tables.items() if isinstance(table, dict)}
    if parents.get(unit) is not None:
        return [f"unit: table {unit!r} has a parent, and the root is protected: name that table"]
    wrong = [
        f"table {name!r} has no parent: write parent = {unit!r}"
        if parent is None
        else f"table {name!r}: parent must be {unit!r}, the unit, and no other"
        for name, parent in parents.items()
        if name != unit != parent
    ]
    if not wrong and len(tables) != 2:
        wrong.append("related tables are two for now: a table of parents, and one of their children")
    return wrong


def _schema(
    name: str, table: Mapping[str, Any], file: object, positions: Mapping[Path, int], folder: str
) -> Schema:
    """Read the schema of a table; Faults: what is wrong with it."""
    wrong = [Fault(f"{key} is of one table alone: leave it out") for key in table if key in NOT_HERE]
    rest = {key: value for key, value in table.items() if key not in (*NOT_HERE, "parent")}
    wrong += faults_of(rest, {**KNOWN, **LINKS})
    if "parent" in table:
        wrong += map(Fault, numbers_of(table))
        if table.get("orphans", "drop") != "drop":
            wrong.append(Fault('orphans must be "drop", or left out to refuse children without a parent'))
    else:
        wrong += [Fault(f"{key} is of a table with a parent") for key in OF_CHILDREN if key in table]
        if "key" not in table:
            problem = 'key is missing: name the column that tells its rows apart, such as key = "id"'
            wrong.append(Fault(problem))
    alone = {key: value for key, value in rest.items() if key in KNOWN}
    if isinstance(file, dict):
        alone["file"] = {**file, **alone.get("file", {})}
    if isinstance(columns := table.get("columns"), dict):
        keys = [table.get("key"), table.get("link")]
        if keys[0] is not None and keys[0] == keys[1]:
            problem = f"column {keys[0]!r} is the key and the link: a child needs a key of its own, or none"
            wrong.append(Fault(problem))
        for key in (key for key in keys if isinstance(key, str)):
            if not _is_id(columns, key):
                problem = f'column {key!r} links rows and is written anew: give it no table, or kind = "id"'
                wrong.append(Fault(problem))
        alone["columns"] = {**columns, **{key: ID_COLUMN for key in keys if key and key not in columns}}
    lines = {path[2:]: line for path, line in positions.items() if path[:2] == ("tables", name)}
    if not wrong:
        try:
            schema, to_learn = table_of(alone, lambda: lines, folder=folder)
            if not to_learn:
                return schema
            problem = f"column {to_learn[0].column!r}: related tables learn no categories: write them out"
            wrong.append(Fault(problem))
        except ValueError as error:
            path = error.each[0].path if isinstance(error, Faults) else ()
            wrong.append(Fault(str(error), *path))
    raise Faults([Fault(f"table {name!r}: {each.message}", "tables", name, *each.path) for each in wrong])


def _is_id(columns: Mapping[str, Any], key: str) -> bool:
    """Tell whether a column has no table, or one that says that it holds ids."""
    stated = columns.get(key, ID_COLUMN)
    return isinstance(stated, dict) and stated.get("kind") == ID


ROWS = "rows"  # what the table of children is called
PERSON: dict[str, Type] = {"person": str, "fixed": (str, list), "most": int, "cap": int}


def person_schema(document: Mapping[str, Any], text: str, folder: str = "") -> RelatedSchema:
    """Read the schema of a long table: `person` is its column of ids, and `fixed` are those of persons."""
    wrong = [f"{key} does not go with person yet: leave it out" for key in NOT_HERE if key in document]
    rest = {key: value for key, value in document.items() if key not in NOT_HERE}
    wrong += map(str, faults_of(rest, {**KNOWN, **PERSON}))
    wrong += numbers_of(document)
    person, fixed = document.get("person"), texts_of(document, "fixed", [])
    if not isinstance(person, str) or not NAME.fullmatch(person):
        wrong.append("person must be the name of the column of ids: letters, digits, _, - and spaces")
    elif person == ROWS:
        wrong.append(f"person: {ROWS!r} is the name of the table of rows: give the column another name")
    if not fixed:
        wrong.append('fixed is missing: name the columns that are the same in all rows of a person, ["sex"]')
    if wrong or not isinstance(person, str):
        raise Faults(wrong)
    columns = document.get("columns")
    table = {key: value for key, value in rest.items() if key in KNOWN}
    if isinstance(columns, dict):
        if not _is_id(columns, person):
            raise Faults([f'column {person!r} is written anew: give it no table, or kind = "id"'])
        table["columns"] = {**columns, person: columns.get(person, ID_COLUMN)}
    whole, to_learn = table_of(table, lambda: key_lines(text), folder=folder)
    if to_learn:
        wrong.append(f"column {to_learn[0].column!r}: persons' tables learn no categories: write them out")
    lacking = [name for name in fixed if name not in whole.names]
    wrong += [f"fixed: no column {name!r}{suggestion(name, whole.names)}" for name in lacking]
    if not wrong and len(fixed) == len(whole.columns):
        wrong.append("fixed names all columns: at least one must differ between rows of a person")
    if wrong:
        raise Faults(wrong)
    limits = document.get("most", MOST), document.get("cap")
    return RelatedSchema(
        person, ROWS, *_parts(whole, fixed, person), person, person, None, *limits, whole=whole
    )


def _parts(whole: Schema, fixed: tuple[str, ...], person: str) -> tuple[Schema, Schema]:
    """Return the schemas of persons and of their rows."""
    of_person = tuple(column for column in whole.columns if column.name in fixed)
    others = tuple(column for column in whole.columns if column.name not in fixed)
    ids = tuple(column for column in whole.ids if column.name == person)
    sides = [{whole.names[c] in fixed for c in rule.columns} for rule in whole.domain.rules]
    stated = (whole.valid,) if isinstance(whole.valid, str) else whole.valid or ()
    kept = [tuple(rule for rule in stated if _is_of(columns, rule)) for columns in (of_person, others)]
    # the domain may split a rule into several, each of one side: the text is of neither
    if any(len(side) > 1 for side in sides) or not {*stated} <= {*kept[0], *kept[1]}:
        raise Faults(["a rule ties a fixed column and another one, which is not supported yet: leave it out"])
    parents, children = (
        Schema(columns, rules, None, ("*",), whole.file, ids=ids)
        for columns, rules in zip((of_person, others), kept, strict=True)
    )
    return parents, children


def _is_of(columns: tuple[Any, ...], rule: str) -> bool:
    """Tell whether a rule is about some columns alone."""
    try:
        Schema(columns, (rule,))
    except ValueError:
        return False
    return True
