"""What commands do with two related tables, which are named: households=h.csv persons=p.csv."""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

from smalldb.commands.input_files import ledger_of
from smalldb.commands.options import keep_inputs
from smalldb.commands.output_files import Spoken
from smalldb.files.inputs import rereadable
from smalldb.files.outputs import OutputFolder
from smalldb.planning import Settings
from smalldb.releasing.related_evaluation import evaluate_related
from smalldb.releasing.related_record import written_related
from smalldb.releasing.related_release import RelatedRelease, refuse, related_schema, release_related
from smalldb.reporting.escaping import visible
from smalldb.reporting.related_page import related_page
from smalldb.reporting.words import CONFIDENTIAL, SEEDED, as_json
from smalldb.schema import Schema
from smalldb.schema.linked_rows import check_columns, check_names, coded_rows, linked_keys
from smalldb.schema.readers.compressed import parted
from smalldb.schema.readers.registry import has_lines
from smalldb.schema.rehearsing import rehearse
from smalldb.schema.related_draft import draft_related
from smalldb.schema.related_schema import RelatedSchema
from smalldb.schema.table_writers import form_like, written
from smalldb.schema.tables import read_columns

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
    "quiet",
    "json",
    "run",
    "title",
)
EVALUATED = ("real", "synthetic", "more", "schema", "json", "run")
DRAFTED = ("data", "more", "output", "run")
CHECKED = ("data", "more", "schema", "json", "run")


def related_of(path: str | None, given: Sequence[str | None]) -> RelatedSchema | None:
    """Return the schema of related tables that an option names; None: it is of one table."""
    found = None if path is None or not os.path.exists(path) else related_schema(Path(path))
    several = [text for text in given if text is not None]
    if found is None and len(several) > 1:
        raise ValueError(
            "several tables need a --schema with unit and [tables.NAME]: smalldb schema init drafts one"
        )
    return found


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


def generate_related(arguments: argparse.Namespace, schema: RelatedSchema) -> None:
    """Release two related tables into a new folder: the tables, the record and the page."""
    _refuse(arguments, (*OWN, *Settings.__annotations__))
    if arguments.output is None:
        raise ValueError("related tables need -o DIR: a new folder for both tables, the record and the page")
    tables = _files([arguments.data, *arguments.more], schema)
    if any(name in ("record", "report") for name in tables):
        raise ValueError("a table cannot be called record or report: these are names of other outputs")
    keep_inputs([*tables.values(), arguments.schema, arguments.ledger], [arguments.output])
    forms = {name: form_like(path) for name, path in tables.items()}
    schemas = schema.tables if schema.whole is None else dict.fromkeys(tables, schema.whole)
    sizes = {name: rehearse(own, forms[name], own.file) for name, own in schemas.items()}
    settings = {name: getattr(arguments, name) for name in Settings.__annotations__}
    tables = {name: rereadable(path, has_lines(path)) for name, path in tables.items()}
    release = release_related(
        tables if schema.whole is None else next(iter(tables.values())),
        schema,
        seed=arguments.seed,
        checkpoint=arguments.checkpoint,
        ledger=ledger_of(arguments),
        destination=RelatedFiles(arguments, forms, schemas, sizes),
        **settings,
    )
    if arguments.json:
        print(as_json(release.record))
    if not arguments.quiet:
        print(_told(release.record, schema, arguments.output), file=sys.stderr)
    if not release.record["private"]:
        print(SEEDED, file=sys.stderr)


class RelatedFiles(Spoken):
    """
    The folder of both tables, the record and the page.

    Parameters
    ----------
    arguments
        Of the command.
    forms, schemas, sizes
        By table: its format, what it holds, and the bytes of its longest row.
    """

    def __init__(
        self,
        arguments: argparse.Namespace,
        forms: Mapping[str, str],
        schemas: Mapping[str, Schema],
        sizes: Mapping[str, int],
    ) -> None:
        super().__init__(arguments)
        self._forms, self._schemas, self._sizes = forms, schemas, sizes

    def __enter__(self) -> "RelatedFiles":
        self._folder = OutputFolder(self._arguments.output, self.may_stand)
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        with closing(self._folder):
            if kind is None:
                self._folder.place()

    def reserve(self, plan: tuple[int, int]) -> None:
        """Take about the room that is needed, as if parents had half of the children that are told apart."""
        parents, most = plan
        for name, size in self._sizes.items():
            rows = parents if [*self._sizes].index(name) == 0 < len(self._sizes) - 1 else parents * most // 2
            self._folder.reserve(f"{name}.{self._forms[name]}", size * rows)
        self._folder.reserve("record.json", 1 << 18)
        self._folder.reserve("report.html", 1 << 18)

    def begun(self, before: bool) -> None:
        """Refuse a folder that is not empty, unless an earlier run may have placed it: ValueError."""
        if not before:
            self._folder.check_empty()

    def write(self, made: RelatedRelease, _: Any) -> None:
        """Write all files beside their place."""
        record = written_related(made.record) + "\n"
        if self._folder.stands({"record.json": record}):
            return
        data = made.data if isinstance(made.data, dict) else dict.fromkeys(self._forms, made.data)
        for name, table in data.items():
            content = written(table, self._forms[name], self._schemas[name])
            self._folder.write(f"{name}.{self._forms[name]}", content)
        self._folder.write("record.json", record)
        self._folder.write("report.html", related_page(made.record, made.schema, self._arguments.title))


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


def _told(record: dict[str, Any], schema: RelatedSchema, folder: str) -> str:
    """Tell a release, for people."""
    own, other = (record["tables"][name] for name in schema.tables)
    parent, children = schema.parent_said, schema.children_said
    many = f"{own['rows']:,} rows of {schema.unit}, " if schema.whole is None else ""
    return "\n".join(
        [
            f"privacy:   {record['privacy']['epsilon']}-DP of each {parent} with all its {children}, "
            f"{record['neighbours']}",
            f"tables:    {many}{other['rows']:,} {children}, in {folder}",
            f"epsilon:   {_short(own['epsilon'])} for each {parent} and its number of {children}, "
            f"{_short(other['epsilon'])} for {children}",
            "bound:     none is stated; the record has all numbers with noise, the page says what they are",
        ]
    )


def _short(text: str) -> str:
    """Write an exact number in few digits."""
    return f"{float(Fraction(text)):.3g}"


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
    if schema.whole is not None:
        raise ValueError("schema check does not know person and fixed: check a copy without these two keys")
    tables = named([arguments.data, *arguments.more])
    check_names([*tables], schema)
    check_columns(tables, schema)
    coded = {name: coded_rows(tables[name], own, schema.keys[name]) for name, own in schema.tables.items()}
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
        return
    lines = [CONFIDENTIAL]
    for name, own in found.items():
        lines.append(f"{name}: {own['rows']:,} rows")
        if own["keys_twice"] or own["keys_missing"]:
            lines.append(f"  keys: {own['keys_twice']:,} stand twice, {own['keys_missing']:,} are gaps")
        if name == schema.unit:
            lines.append(f"  with {schema.most} or more of {schema.child}: {own['at_most_or_more']:,}")
        elif own["orphans"]:
            dropped = "dropped" if schema.drop else 'refused; orphans = "drop" drops them'
            lines.append(f"  without a parent: {own['orphans']:,} ({dropped})")
        lines += [f"  {said}" for said in own["wrong"]]
    lines.append("the tables fit" if fits else "the tables do not fit: they would be refused")
    print("\n".join(lines))


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
    values = {name: value for name, value in vars(arguments).items() if name not in known}
    refuse([f"--{name.replace('_', '-')}" for name, value in values.items() if value])
