"""What commands do with two related tables, which are named: households=h.csv persons=p.csv."""

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any

from smalldb.commands import Unfit
from smalldb.commands.options import STATED, keep_inputs
from smalldb.commands.output_files import Spoken
from smalldb.files.inputs import rereadable
from smalldb.files.outputs import OutputFolder
from smalldb.planning import Plan, Settings
from smalldb.releasing.record import written_record
from smalldb.releasing.related_evaluation import evaluate_related
from smalldb.releasing.related_release import LinkedSource, RelatedRelease, linked_source
from smalldb.reporting.escaping import visible
from smalldb.reporting.page import About, page
from smalldb.reporting.words import CONFIDENTIAL, as_json
from smalldb.schema import Schema
from smalldb.schema.drafting import draft_related
from smalldb.schema.linked_rows import check_names, check_tables, coded_tables, linked_keys
from smalldb.schema.readers.compressed import parted
from smalldb.schema.readers.registry import has_lines
from smalldb.schema.related_schema import RelatedSchema
from smalldb.schema.table_readers import read_columns, rehearse
from smalldb.schema.table_writers import form_like, written

NAMED = "NAME=FILE"
OWN = (
    "data",
    "more",
    "schema",
    "output",
    "seed",
    "ledger",
    "budget",
    "budget_delta",
    "checkpoint",
    "even_if_empty",
    "release_id",
    "schema_unseen",
    "middle",
    "spreadsheet_safe",
    "verbose",
    "quiet",
    "json",
    "run",
    *STATED,
)
EVALUATED = ("real", "synthetic", "more", "schema", "json", "run")
DRAFTED = ("data", "more", "output", "run")
CHECKED = ("data", "more", "schema", "json", "run")


def named(given: Sequence[str | None]) -> dict[str, str]:
    """Read tables that are named, such as persons=p.csv; ValueError: one is not, or a name stands twice."""
    found = dict[str, str]()
    for text in given:
        name, sign, path = (text or "").partition("=")
        if not sign or not name or not path:
            raise ValueError(f"related tables are named: write {NAMED}, such as persons=p.csv")
        if name in found:
            raise ValueError(f"table {name!r} is named twice")
        found[name] = path
    return found


class RelatedFiles(Spoken):
    """The folder of related tables, their record and the page."""

    def __init__(self, arguments: argparse.Namespace, schema: RelatedSchema) -> None:
        super().__init__(arguments)
        _refuse(arguments, (*OWN, *Settings.__annotations__))
        if arguments.output is None:
            raise ValueError(
                "related tables need -o DIR: a new folder for the tables, the record and the page"
            )
        self._tables, self._schema = _files([arguments.data, *arguments.more], schema), schema
        if any(name in ("record", "report") for name in self._tables):
            raise ValueError("a table cannot be called record or report: these are names of other outputs")
        keep_inputs([*self._tables.values(), arguments.schema, arguments.ledger], [arguments.output])
        self._forms = {name: form_like(path) for name, path in self._tables.items()}
        whole = schema.whole
        self._schemas = schema.tables if whole is None else dict.fromkeys(self._tables, whole)

    def source(self) -> LinkedSource:
        """Find out what the tables hold, from names alone."""
        paths = {name: rereadable(path, has_lines(path)) for name, path in self._tables.items()}
        given = paths if self._schema.whole is None else next(iter(paths.values()))
        return linked_source(given, self._schema)

    def __enter__(self) -> "RelatedFiles":
        self._folder = OutputFolder(self._arguments.output, self.may_stand)
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        with closing(self._folder):
            if kind is None:
                self._folder.place()

    def rehearse(self, source: LinkedSource) -> None:
        """Write and read a row of each table."""
        own = self._schemas.items()
        self._sizes = {name: rehearse(schema, self._forms[name], schema.file) for name, schema in own}

    def reserve(self, plan: Plan) -> None:
        """Take about the room that is needed, as if parents had half of the children that are told apart."""
        parents, most = plan.foreseen_rows or 1, self._schema.most
        for name, size in self._sizes.items():
            own = self._schema.whole is None and name == self._schema.unit
            rows = parents if own else parents * most // 2
            self._folder.reserve(f"{name}.{self._forms[name]}", size * rows)
        self._folder.reserve("record.json", 1 << 18)
        self._folder.reserve("report.html", 1 << 18)

    def begun(self, before: bool) -> None:
        """Refuse a folder that is not empty, unless an earlier run may have placed it: ValueError."""
        if not before:
            self._folder.check_empty()

    def write(self, made: RelatedRelease) -> None:
        """Write all files beside their place."""
        record = written_record(made.record) + "\n"
        if self._folder.stands({"record.json": record}):
            return
        data = made.data if isinstance(made.data, dict) else dict.fromkeys(self._forms, made.data)
        for name, table in data.items():
            guard = self._arguments.spreadsheet_safe
            content = written(table, self._forms[name], self._schemas[name], guard=guard)
            self._folder.write(f"{name}.{self._forms[name]}", content)
        self._folder.write("record.json", record)
        about = About(**{name: getattr(self._arguments, name) for name in STATED}, account=self._account)
        self._folder.write("report.html", page(made, about=about))


def _files(given: Sequence[str | None], schema: RelatedSchema) -> dict[str, str]:
    """Return the tables of a schema by their names, the one long table by that of its file: ValueError."""
    if schema.whole is None:
        tables = named(given)
        check_names([*tables], schema)
        return tables
    paths = [path for path in given if path is not None]
    if len(paths) != 1:
        raise ValueError("person in a schema is for one table: name one file")
    stem = os.path.basename(parted(paths[0])[0])
    return {os.path.splitext(stem)[0]: paths[0]}


def related_account(schema: RelatedSchema, account: Callable[[Schema], str]) -> str:
    """Tell a schema of related tables, for people: the unit, the columns, the link and the numbers."""
    least, most = schema.least, schema.most
    fewer = f"{least} to {most - 1}, " if most - least > 1 else f"{least}, " if most > least else ""
    lines = [
        f"unit: a {visible(schema.parent_said)} with all its {visible(schema.children_said)} is protected"
    ]
    for name, own in schema.tables.items():
        lines += ["", f"table {visible(name)}", *(f"  {line}" for line in account(own).splitlines())]
    if schema.whole is None:
        told = f"{schema.link} of {schema.child} is {schema.key} of {schema.unit}"
        lines += ["", f"link: {visible(told)}"]
    return "\n".join([*lines, f"{visible(schema.number)}: {fewer}{most} or more"])


def check_related(arguments: argparse.Namespace, schema: RelatedSchema) -> None:
    """Count what of two related tables would be refused; confidential."""
    _refuse(arguments, CHECKED)
    tables = _files([arguments.data, *arguments.more], schema)
    given = tables if schema.whole is None else next(iter(tables.values()))
    check_tables(given, schema)
    coded = coded_tables(given, schema)
    faults, _ = linked_keys(coded, schema)
    found: dict[str, Any] = {
        name: {
            "rows": len(coded[name].codes),
            "keys_twice": faults.twice[name],
            "keys_missing": faults.gaps[name],
            "wrong": list(coded[name].wrong),
        }
        for name in schema.tables
    }
    found[schema.unit]["at_most_or_more"] = faults.beyond
    found[schema.child]["orphans"] = faults.orphans
    bad = any(own["keys_twice"] or own["keys_missing"] or own["wrong"] for own in found.values())
    fits = not bad and (schema.drop or not faults.orphans)
    if arguments.json:
        print(as_json({"confidential": True, "tables": found, "fits": fits}))
    else:
        print(_checked(found, schema, fits))
    if not fits:
        raise Unfit("the tables do not fit: they would be refused")


def _checked(found: Mapping[str, Any], schema: RelatedSchema, fits: bool) -> str:
    """Tell what was counted, for people."""
    lines = [CONFIDENTIAL]
    for name, own in found.items():
        lines.append(f"{name}: {own['rows']:,} rows")
        if own["keys_twice"] or own["keys_missing"]:
            lines.append(f"  keys: {own['keys_twice']:,} stand twice, {own['keys_missing']:,} are gaps")
        if name == schema.unit:
            lines.append(f"  with {schema.most} or more of {schema.child}: {own['at_most_or_more']:,}")
        elif own["orphans"]:
            dropped = "dropped" if schema.drop else 'refused; orphans = "drop" drops them'
            if schema.whole is None:
                lines.append(f"  without a parent: {own['orphans']:,} ({dropped})")
            else:
                lines.append(f"  without a {schema.unit}: {own['orphans']:,} (refused)")
        lines += [f"  {said}" for said in own["wrong"]]
    return "\n".join([*lines, *["the tables fit"] * fits])


def evaluate_folder(arguments: argparse.Namespace, schema: RelatedSchema) -> None:
    """Compare the tables in a folder with the data; confidential."""
    _refuse(arguments, EVALUATED)
    real: list[str] = [arguments.real, arguments.synthetic, *arguments.more]
    folder = real.pop()
    tables = _files(real, schema)
    synthetic = {name: os.path.join(folder, f"{name}.{form_like(path)}") for name, path in tables.items()}
    both: list[Any] = [tables, synthetic] if schema.whole is None else [*tables.values(), *synthetic.values()]
    evaluation = evaluate_related(both[0], both[1], schema)
    long = evaluation.to_frame()
    if arguments.json:
        summary = {"confidential": True, "tables": long.to_dict("records"), "rows": dict(evaluation.rows)}
        print(as_json(summary | {"number_similarity": evaluation.number_similarity}))
        return
    lines = [
        CONFIDENTIAL,
        "mean total variation distance of tables; baseline: independent columns of the data, without noise",
        f"{'tables':12}{'released':>10}{'baseline':>10}",
    ]
    lines += [f"{row.tables:12}{row.tvd:10.3f}{row.independent:10.3f}" for row in long.itertuples()]
    lines.append(f"similarity of numbers of {schema.child}: {evaluation.number_similarity:.3f} (1: the same)")
    print("\n".join(lines))


def draft_of_files(arguments: argparse.Namespace) -> str:
    """Draft the schema of two related tables from the names of their columns alone."""
    _refuse(arguments, DRAFTED)
    tables = named([arguments.data, *arguments.more])
    if len(tables) != 2:
        raise ValueError("related tables are two for now: a table of parents, and one of their children")
    return draft_related({name: read_columns(path) for name, path in tables.items()})


def _refuse(arguments: argparse.Namespace, known: Sequence[str]) -> None:
    """Refuse options that related tables do not have yet: ValueError."""
    others = [name for name, value in vars(arguments).items() if value and name not in known]
    if others:
        given = ", ".join(f"--{name.replace('_', '-')}" for name in others)
        raise ValueError(f"related tables do not take {given} yet: leave out what they do not take")
