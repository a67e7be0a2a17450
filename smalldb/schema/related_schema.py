"""A schema of two related tables, parents with all their children; or of a long table of persons."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, final

from queries import Column, Domain
from queries.expressions import Fault, Faults, suggestion
from smalldb.schema.column_parsing import TOP, Type, faults_of, texts_of
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
        own, other = (
            [_named(column, name) for column in table.domain.columns] for name, table in self.tables.items()
        )
        own.append(self.number_column)
        return {self.unit: Domain(own), self.child: Domain([*own, *other])}

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
    def parent_said(self) -> str:
        """What a parent is called in words."""
        return f"row of {self.unit}" if self.whole is None else self.unit

    @property
    def children_said(self) -> str:
        """What children are called in words."""
        return f"rows of {self.child}" if self.whole is None else "rows"

    @property
    def tables(self) -> dict[str, Schema]:
        """The schemas of both tables by their names, parents first."""
        return {self.unit: self.parents, self.child: self.children}

    @property
    def keys(self) -> dict[str, tuple[str, ...]]:
        """The columns of each table by which rows are told apart or linked: a key of its own first."""
        own = () if self.child_key is None else (self.child_key,)
        return {self.unit: (self.key,), self.child: (*own, self.link)}


def _named(column: Column, table: str) -> Column:
    """Return a column named after its table, too."""
    name = f"{table}.{column.name}"
    if column.yes_no:
        return Column(name).spelled_as(column.spelled)
    attributes = [f"{table}.{each}" for each in column.attributes]
    ordered, cuts = column.ordered, column.cuts
    made = Column.coded(name, column.labels, attributes, column.table, ordered=ordered, cuts=cuts)
    return made.spelled_as(column.spelled)


def tables_schema(given: Mapping[str, Any], text: str, folder: str = "") -> RelatedSchema:
    """Read the schema of two tables from its TOML."""
    wrong: list[Fault | str] = [*faults_of(given, RELATED)]
    wrong += [
        f'{needed} is missing: related tables have unit = "NAME" and [tables.NAME]'
        for needed in ("unit", "tables")
        if needed not in given
    ]
    tables, unit = given.get("tables"), given.get("unit", "")
    if wrong or not isinstance(tables, dict):
        raise Faults(wrong)
    wrong += _links(tables, unit)
    read, positions = dict[str, Schema](), key_lines(text)
    key: Any = tables[unit].get("key") if isinstance(tables.get(unit), dict) else None
    for name, described in tables.items():
        if not NAME.fullmatch(name):
            wrong.append(f"table {name!r}: a name of letters, digits, _, - and spaces is needed")
        if not isinstance(described, dict):
            wrong.append(f"table {name!r}: expected a table that describes it")
            continue
        if "parent" in described and key is not None:
            described = {"link": key, **described}
        faults, schema = _schema(name, described, given.get("file"), positions, folder)
        wrong += faults
        if schema is not None:
            read[name] = schema
    if wrong:
        raise Faults(wrong)
    (child,) = (name for name in tables if name != unit)
    own = tables[child]
    links = own.get("link", key), own.get("key"), own.get("most", MOST), own.get("cap")
    return RelatedSchema(unit, child, read[unit], read[child], key, *links, own.get("orphans") == "drop")


def numbers_of(given: Mapping[str, Any]) -> list[str]:
    """Tell what is wrong with `most` and `cap`."""
    return [
        f"{key} must be a whole number from 1 to {most}"
        for key, most in (("most", MOST_MOST), ("cap", MOST_CAP))
        if isinstance(value := given.get(key, 1), int) and not 1 <= value <= most
    ]


def _links(tables: Mapping[str, Any], unit: str) -> list[str]:
    """Tell what is wrong with how tables are linked."""
    if unit not in tables:
        return [f"unit: no table {unit!r}{suggestion(unit, tables)}"]
    parents = {name: own.get("parent") for name, own in tables.items() if isinstance(own, dict)}
    if parents.get(unit) is not None:
        return [f"unit: table {unit!r} has a parent, and the root is protected: name that table"]
    wrong = [
        f"table {name!r} has no parent: write parent = {unit!r}"
        if parent is None
        else f"table {name!r}: parent must be {unit!r}, the unit, and no other"
        for name, parent in parents.items()
        if parent != unit and name != unit
    ]
    if not wrong and len(tables) != 2:
        wrong.append("related tables are two for now: a table of parents, and one of their children")
    return wrong


def _schema(
    name: str, described: Mapping[str, Any], file: object, positions: Mapping[Path, int], folder: str
) -> tuple[list[Fault], Schema | None]:
    """Read the schema of a table, and tell what is wrong with it."""
    wrong = list[Fault]()
    wrong += [Fault(f"{key} is of one table alone: leave it out") for key in described if key in NOT_HERE]
    rest = {key: value for key, value in described.items() if key not in (*NOT_HERE, "parent")}
    wrong += faults_of(rest, {**KNOWN, **LINKS})
    if "parent" in described:
        wrong += map(Fault, numbers_of(described))
        if described.get("orphans", "drop") != "drop":
            wrong.append(Fault('orphans must be "drop", or left out to refuse children without a parent'))
    else:
        wrong += [Fault(f"{key} is of a table with a parent") for key in OF_CHILDREN if key in described]
        if "key" not in described:
            said = 'key is missing: name the column that tells its rows apart, such as key = "id"'
            wrong.append(Fault(said))
    table = {key: value for key, value in rest.items() if key in KNOWN}
    if isinstance(file, dict):
        table["file"] = {**file, **table.get("file", {})}
    columns = described.get("columns")
    if isinstance(columns, dict):
        keys = [described.get("key"), described.get("link")]
        if keys[0] is not None and keys[0] == keys[1]:
            said = f"column {keys[0]!r} is the key and the link: a child needs a key of its own, or none"
            wrong.append(Fault(said))
        for key in (key for key in keys if isinstance(key, str)):
            if key in columns and (not isinstance(columns[key], dict) or columns[key].get("kind") != "id"):
                said = f'column {key!r} links rows and is written anew: give it no table, or kind = "id"'
                wrong.append(Fault(said))
        table["columns"] = {**columns, **{key: {"kind": "id"} for key in keys if key and key not in columns}}
    lines = {path[2:]: line for path, line in positions.items() if path[:2] == ("tables", name)}
    schema = None
    if not wrong:
        try:
            schema, asked = table_of(table, lambda: lines, folder=folder)
            if asked:
                said = f"column {asked[0].column!r}: related tables learn no categories: write them out"
                wrong.append(Fault(said))
        except ValueError as error:
            path = error.each[0].path if isinstance(error, Faults) else ()
            wrong.append(Fault(str(error), *path))
    faults = [Fault(f"table {name!r}: {each.message}", "tables", name, *each.path) for each in wrong]
    return faults, None if wrong else schema


ROWS = "rows"  # what the table of children is called
PERSON: dict[str, Type] = {"person": str, "fixed": (str, list), "most": int, "cap": int}


def person_schema(given: Mapping[str, Any], text: str, folder: str = "") -> RelatedSchema:
    """Read the schema of a long table: `person` is its column of ids, and `fixed` are those of persons."""
    wrong = [f"{key} does not go with person yet: leave it out" for key in NOT_HERE if key in given]
    rest = {key: value for key, value in given.items() if key not in NOT_HERE}
    wrong += map(str, faults_of(rest, {**KNOWN, **PERSON}))
    wrong += numbers_of(given)
    person, fixed = given.get("person"), texts_of(given, "fixed")
    if not isinstance(person, str) or not NAME.fullmatch(person):
        wrong.append("person must be the name of the column of ids: letters, digits, _, - and spaces")
    elif person == ROWS:
        wrong.append(f"person: {ROWS!r} is the name of the table of rows: give the column another name")
    if not fixed:
        wrong.append('fixed is missing: name the columns that are the same in all rows of a person, ["sex"]')
    if wrong or not isinstance(person, str) or not fixed:
        raise Faults(wrong)
    columns = given.get("columns")
    table = {key: value for key, value in rest.items() if key in KNOWN}
    if isinstance(columns, dict):
        own = columns.get(person, {"kind": "id"})
        if not isinstance(own, dict) or own.get("kind") != "id":
            raise Faults([f'column {person!r} is written anew: give it no table, or kind = "id"'])
        table["columns"] = {**columns, person: own}
    whole, asked = table_of(table, lambda: key_lines(text), folder=folder)
    if asked:
        wrong.append(f"column {asked[0].column!r}: persons' tables learn no categories: write them out")
    lacking = [name for name in fixed if name not in whole.names]
    wrong += [f"fixed: no column {name!r}{suggestion(name, whole.names)}" for name in lacking]
    if not wrong and len(fixed) == len(whole.columns):
        wrong.append("fixed names all columns: at least one must differ between rows of a person")
    if wrong:
        raise Faults(wrong)
    parents, children = _parts(whole, fixed, person)
    most = given.get("most", MOST)
    return RelatedSchema(
        person, ROWS, parents, children, person, person, None, most, given.get("cap"), whole=whole
    )


def _parts(whole: Schema, fixed: tuple[str, ...], person: str) -> tuple[Schema, Schema]:
    """Return the schemas of persons and of their rows."""
    own = tuple(column for column in whole.columns if column.name in fixed)
    others = tuple(column for column in whole.columns if column.name not in fixed)
    ids = tuple(column for column in whole.ids if column.name == person)
    sides = [{whole.names[c] in fixed for c in rule.columns} for rule in whole.domain.rules]
    stated = (whole.valid,) if isinstance(whole.valid, str) else whole.valid or ()
    kept = [tuple(rule for rule in stated if _is_of(columns, rule)) for columns in (own, others)]
    # the domain may split a rule into several, each of one side: the text is of neither
    if any(len(side) > 1 for side in sides) or not {*stated} <= {*kept[0], *kept[1]}:
        raise Faults(["a rule ties a fixed column and another one, which is not supported yet: leave it out"])
    parts = [
        Schema(columns, rules, None, ("*",), whole.file, ids=ids)
        for columns, rules in zip((own, others), kept, strict=True)
    ]
    return parts[0], parts[1]


def _is_of(columns: tuple[Any, ...], rule: str) -> bool:
    """Tell whether a rule is about some columns alone."""
    try:
        Schema(columns, (rule,))
    except ValueError:
        return False
    return True
