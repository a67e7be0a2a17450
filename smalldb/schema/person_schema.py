"""A schema of one long table in which a person has several rows: persons are the parents of their rows."""

from collections.abc import Mapping
from typing import Any

from queries.expressions import suggestion
from queries.faults import Faults
from smalldb.schema.column_parsing import TOP, Type, faults_of, texts_of
from smalldb.schema.mapping import Schema
from smalldb.schema.parsing import key_lines, table_of
from smalldb.schema.related_schema import MOST, NAME, NOT_HERE, RelatedSchema, numbers_of

ROWS = "rows"  # what the table of children is called
PERSON: dict[str, Type] = {"person": str, "fixed": (str, list), "most": int, "cap": int}


def person_schema(given: Mapping[str, Any], text: str, folder: str = "") -> RelatedSchema:
    """
    Read the schema of a long table from its TOML.

    `person` names the column of ids. The columns in `fixed` are the same in all rows of a person.
    """
    known = {key: value for key, value in TOP.items() if key not in NOT_HERE}
    wrong = [f"{key} does not go with person yet: leave it out" for key in NOT_HERE if key in given]
    rest = {key: value for key, value in given.items() if key not in NOT_HERE}
    wrong += map(str, faults_of(rest, {**known, **PERSON}))
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
    table = {key: value for key, value in rest.items() if key in known}
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
        wrong.append("fixed names all columns: one at least must differ between rows of a person")
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
        raise Faults(["a rule ties a fixed column and another one, which is not there yet: leave it out"])
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
