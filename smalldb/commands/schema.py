"""`schema`: draft what the columns of a table can hold, show what a schema makes of them, check a table."""

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from queries.expressions import shorten
from queries.frames import is_index
from queries.rule_tables import rule_texts
from smalldb.commands import HELP, Commands, Unfit
from smalldb.commands.input_files import (
    as_tables,
    named,
    refuse_others,
    related_files,
    schema_of,
    table_of,
)
from smalldb.commands.options import add_common, add_file_format, file_format, keep_inputs
from smalldb.exact.numbers import sized
from smalldb.files.inputs import rereadable
from smalldb.files.outputs import Outputs, unchanged
from smalldb.reporting import visible
from smalldb.reporting.words import CONFIDENTIAL, as_json
from smalldb.schema import Schema, draft_schema, read_schema
from smalldb.schema.answers import answered
from smalldb.schema.checking import SHOWN as SHOWN_ROWS
from smalldb.schema.checking import Check, check_table
from smalldb.schema.codebook import read_codebook
from smalldb.schema.counting_sql import DIALECTS, counting_query
from smalldb.schema.drafting import column_text, draft_related, file_line, toml
from smalldb.schema.file_format import USUAL, FileFormat, agreed
from smalldb.schema.kinds import SPECS
from smalldb.schema.linked_rows import check_tables, coded_tables, linked_keys
from smalldb.schema.readers.registry import has_lines
from smalldb.schema.reading import parse_schema, read_any
from smalldb.schema.related_schema import RelatedSchema
from smalldb.schema.row_rules import OUTCOMES
from smalldb.schema.table_readers import read_columns, read_described, read_form, table_pieces


def ask_schema(
    columns: Iterable[str],
    ask: Callable[[str], str],
    tell: Callable[[str], object],
    file: FileFormat = USUAL,
) -> str:
    """Ask what each column can hold, and return the schema as TOML text."""
    ignored, described, kinds = [], "", f"kind ({', '.join(SPECS)}; empty: ignore the column)"
    for name in columns:
        while True:
            tell(f"\n{name}")
            kind = ask(f"  {kinds}: ").strip()
            if not kind:
                ignored.append(name)
                break
            text = column_text(name, "\n".join(_answers(kind, ask)))
            try:
                parse_schema(text)
            except ValueError as error:
                tell(f"  {error}")
                continue
            described += text
            break
    if not described:
        raise ValueError("a schema needs at least one column")
    return f"ignore = [{', '.join(map(toml, ignored))}]\n{file_line(file)}{described}"


def _answers(kind: str, ask: Callable[[str], str]) -> Iterable[str]:
    yield f"kind = {toml(kind)}"
    for name, question in SPECS[kind].questions if kind in SPECS else ():
        answer = ask(f"  {question}: ").strip()
        if answer or name not in ("format", "unknown"):
            key, value = answered(kind, name, answer or ("0" if name == "decimals" else ""))
            yield f"{key} = {toml(value)}"
    if kind in SPECS and (gaps := ask("  gaps (empty: none; yes; or texts that mean one): ").strip()):
        yield f"missing = {toml(answered(kind, 'missing', gaps)[1])}"


SHOWN = 24  # categories of a column that are listed

CHECKED = ("data", "more", "schema", "json", "run")  # options of related tables


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "schema",
        help=HELP["schema"],
        description="A schema says what the columns of a table can hold, from public knowledge. It is never "
        "made from the values of the data.",
        epilog="example: smalldb schema init people.csv -o people.toml",
    )
    actions = command.add_subparsers(title="actions", metavar="ACTION", required=True)
    init = actions.add_parser(
        "init",
        help="draft one from a table's column names",
        description="Draft a schema from the column names of a table, the types that a Parquet file or a "
        "DuckDB database declares, and a code book. No value of the data is read: you fill in"
        " what each column can hold.",
        epilog="example: smalldb schema init people.csv --codebook codes.csv -o people.toml",
    )
    init.add_argument("data", metavar="DATA", help="a file of any format, or the URL of a database")
    add_common(init, "more NAME=FILE")
    init.add_argument("--table", metavar="NAME", help="the table of a DuckDB database")
    init.add_argument(
        "--codebook",
        metavar="FILE",
        help="what columns can hold, from public knowledge: CSV (column, value), JSON (lists of values by "
        "column), or a Table Schema (Frictionless)",
    )
    add_file_format(init)
    init.add_argument("--interactive", action="store_true", help="ask what each column can hold")
    init.add_argument(
        "-o", "--output", metavar="SCHEMA.toml", help="a new file for the schema (default: stdout)"
    )
    init.set_defaults(run=run_init)
    show = actions.add_parser(
        "show",
        help="check one, and show the categories of its columns (reads no data)",
        description="Check a schema, and show what each of its columns can hold. No data is read.",
        epilog="example: smalldb schema show people.toml",
    )
    show.add_argument("schema", metavar="SCHEMA.toml")
    show.set_defaults(run=run_show)
    sql = actions.add_parser(
        "sql",
        help="write the query that counts a table by its bins, inside a database (reads no data)",
        description="Write a query that counts the rows of a table by the bins of a schema, inside a "
        "database. Its result is read with --counts n, and gives the same release as the "
        "rows. No data is read.",
        epilog="example: smalldb schema sql people.toml --dialect duckdb --query people",
    )
    sql.add_argument("schema", metavar="SCHEMA.toml")
    sql.add_argument("--dialect", metavar="NAME", required=True, help=", ".join(DIALECTS))
    sql.add_argument(
        "--query", metavar="SQL", help="the table, or a query (default: file.query of the schema)"
    )
    sql.add_argument("--counts", metavar="COLUMN", default="n", help="the name of the column of counts (n)")
    sql.set_defaults(run=run_sql)
    check = actions.add_parser(
        "check",
        help="for the curator: how many fields of a table it does not cover (confidential)",
        description="Count, for each column, the gaps, the fields that the schema does not cover, and the"
        " values beyond a range and outside the cuts; count the rows that break each rule, "
        "and name the first ones. Computed from the data: CONFIDENTIAL.",
        epilog="example: smalldb schema check people.csv --schema people.toml",
    )
    check.add_argument(
        "data",
        metavar="DATA",
        nargs="?",
        help="a file of any format, or the URL of a database (default: file.url of the schema); - for "
        "standard input",
    )
    add_common(check, "more NAME=FILE")
    check.add_argument("--schema", metavar="SCHEMA.toml", required=True, help="what its columns hold")
    add_file_format(check)
    check.add_argument("--json", action="store_true", help="everything, for machines")
    check.set_defaults(run=run_check)


def run_init(arguments: argparse.Namespace) -> None:
    """Draft a schema."""
    targets = [] if arguments.output is None else [arguments.output]
    keep_inputs([arguments.data, arguments.codebook], targets)
    for target in targets:
        # perhaps a schema that was filled in, or a link to a file that is not there
        if os.path.isfile(target) or (os.path.islink(target) and not os.path.exists(target)):
            raise ValueError(f"{target} exists already: name another file")
    with Outputs(targets) as outputs:
        text = _drafted(arguments)
        for target in targets:
            outputs.write(target, text)
    if not targets:
        sys.stdout.write(text)


def _drafted(arguments: argparse.Namespace) -> str:
    if arguments.more:
        refuse_others(arguments, ("data", "more", "output", "run"))
        tables = named([arguments.data, *arguments.more])
        if len(tables) != 2:
            raise ValueError("related tables are two for now: a table of parents, and one of their children")
        return draft_related({name: read_columns(path) for name, path in tables.items()})
    path, file = arguments.data, file_format(arguments)
    if arguments.table is not None:
        file = replace(file, query=arguments.table)
    file = read_form(path, file)
    columns = read_columns(path, file)
    columns = {name: dtype for name, dtype in [*columns.items()][is_index([*columns]) :]}
    if not arguments.interactive:
        book = read_described(path, file)
        if arguments.codebook is not None:
            book |= read_codebook(arguments.codebook)
        return draft_schema(columns, book, file)
    if arguments.codebook is not None:
        raise ValueError("--interactive asks for what a code book says: leave one out")
    try:
        return ask_schema(columns, _answer_to, lambda text: print(visible(text, "\n"), file=sys.stderr), file)
    except EOFError as error:
        raise ValueError("the answers ended before the columns did: nothing was written") from error


def _answer_to(question: str) -> str:
    print(question, end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not answer:
        raise EOFError
    return answer


def run_check(arguments: argparse.Namespace) -> None:
    """Count what of a table its schema does not cover, or what of two related tables."""
    read = schema_of(arguments, [arguments.data, *arguments.more])
    if isinstance(read, RelatedSchema):
        return check_related(arguments, read)
    schema = read_schema(read or arguments.schema)
    data = table_of(arguments, schema)
    path = rereadable(data, has_lines(data))
    with unchanged(path):
        form, names = file_format(arguments), list[str]()
        if schema.derived:  # a table may lack them
            known = [*schema.names, *schema.unread]
            names = [*read_columns(path, file=agreed(form, schema.file), known=known)]
        derived = [each for each in schema.derived if each.column.name in names]
        check = check_table(schema, table_pieces(path, schema.with_derived(names), file=form), derived)
    computed = [f"column {each.column.name!r}: derive = {each.text!r}" for each in derived]
    texts = [*rule_texts(schema.domain.valid), *computed]
    if arguments.json:
        columns = [
            {"column": name, **counts, "rows": check.first.get(name, [])}
            for name, counts in check.counts.items()
        ]
        rules = [
            {"rule": number, "text": text, "broken": check.broken[number], "rows": check.first[number]}
            for number, text in enumerate(texts, start=1)
            if number in check.broken
        ]
        summary = {"confidential": True, "rows": check.rows, "columns": columns, "ruled_out": check.ruled_out}
        summary["refused"] = check.refused
        print(as_json(summary | {"rules": rules, "fits": check.fits}))
    else:
        print(check_account(check, texts))
    if not check.fits:
        raise Unfit("the table does not fit: it would be refused")


def check_account(check: Check, texts: Sequence[str] = ()) -> str:
    """Tell what fits, for people; counts and numbers of rows alone. `texts` are those of the rules."""
    columns = check.columns
    names = [visible(column.name) for column in columns]
    width = max(len("column"), *map(len, names))
    lines = [
        CONFIDENTIAL,
        f"{check.rows:,} rows",
        f"{'column':{width}}{'gaps':>12}{'not covered':>12}",
    ]
    for name, column in zip(names, columns, strict=True):
        counts = check.counts[column.name]
        refused = counts["gaps"] and not column.missing
        note = "  missing = true gives gaps a category" if refused else ""
        note += f"  {column.kind.spelling}" if counts["not_covered"] else ""
        if counts.get("below_range") or counts.get("above_range"):
            note += f"  beyond range: {counts['below_range']:,} below, {counts['above_range']:,} above"
        if "before_cuts" in counts:
            note += f"  {counts['before_cuts']:,} before the first cut, "
            note += f"{counts['behind_cuts']:,} from the last on"
        if counts.get("fractions"):
            note += "  fractions that are read as whole numbers, for want of decimals: "
            note += f"{counts['fractions']:,}"
        note += _where(check.first.get(column.name, []))
        lines.append(f"{name:{width}}{counts['gaps']:12,}{counts['not_covered']:12,}{note}")
    if check.ruled_out:
        lines.append(f"ruled out by valid: {check.ruled_out:,} row{'s' * (check.ruled_out != 1)}")
    texts = texts or rule_texts(check.schema.domain.valid)
    for number, times in sorted(check.broken.items()):
        line = f"  rule {number}, {shorten(texts[number - 1])!r}: {times:,} row{'s' * (times != 1)}"
        if number in check.schema.breaking:
            line += f", which {OUTCOMES[check.schema.breaking[number].how]}"
        lines.append(line + _where(check.first[number]))
    lines += ["the table fits"] * check.fits
    return "\n".join(lines)


def _where(rows: Sequence[int]) -> str:
    """Say in which rows something is to be mended, the first of them; as many may follow."""
    if not rows:
        return ""
    more = ", ..." if len(rows) == SHOWN_ROWS else ""
    return f"  (row{'s' if len(rows) > 1 else ''} {', '.join(map(str, rows))}{more})"


def run_sql(arguments: argparse.Namespace) -> None:
    """Write the query that counts a table by the bins of a schema."""
    schema = read_schema(Path(arguments.schema))
    table = schema.file.query if arguments.query is None else arguments.query
    if table is None:
        raise ValueError("name the table: --query, or file.query of the schema")
    sys.stdout.write(counting_query(schema, arguments.dialect, table, arguments.counts))


def run_show(arguments: argparse.Namespace) -> None:
    """Show the attributes of a schema."""
    read = read_any(Path(arguments.schema))
    print(related_account(read) if isinstance(read, RelatedSchema) else schema_account(read_schema(read)))


def schema_account(schema: Schema) -> str:
    """Tell a schema, for people."""
    width = max(len(visible(column.name)) for column in schema.released)
    domain = schema.domain
    lines = [
        f"{visible(column.name):{width}}  {', '.join(map(visible, _shown(column.labels)))}"
        for column in domain.columns
    ]
    for each in schema.derived:
        lines.append(f"{visible(each.column.name):{width}}  computed: {visible(each.text)}")
    lines += [f"{visible(column.name):{width}}  fresh numbers" for column in schema.ids]
    size = sized(domain.size) if domain.valid_decided else f"up to {sized(domain.product)}"
    lines.append(
        f"{len(domain.columns)} columns, {sum(domain.sizes)} categories, {size} cells that can exist"
    )
    if schema.queries is not None:
        lines.append(f"queries: {visible(schema.queries)}")
    return "\n".join(lines)


def _shown(labels: Sequence[str]) -> Sequence[str]:
    """Return the labels of a column's categories, or the first and the last of many."""
    return labels if len(labels) <= SHOWN else [*labels[: SHOWN - 2], "...", labels[-1]]


def related_account(schema: RelatedSchema) -> str:
    """Tell a schema of related tables, for people: the unit, the columns, the link and the numbers."""
    least, most = schema.least, schema.most
    fewer = f"{least} to {most - 1}, " if most - least > 1 else f"{least}, " if most > least else ""
    lines = [
        f"unit: a {visible(schema.parent_words)} with all its {visible(schema.children_words)} is protected"
    ]
    for name, table_schema in schema.tables.items():
        account = schema_account(table_schema).splitlines()
        lines += ["", f"table {visible(name)}", *(f"  {line}" for line in account)]
    if schema.whole is None:
        link = f"{schema.link} of {schema.child} is {schema.key} of {schema.unit}"
        lines += ["", f"link: {visible(link)}"]
    return "\n".join([*lines, f"{visible(schema.number)}: {fewer}{most} or more"])


def check_related(arguments: argparse.Namespace, schema: RelatedSchema) -> None:
    """Count what of two related tables would be refused; confidential."""
    tables = as_tables(related_files(arguments, schema, CHECKED), schema)
    check_tables(tables, schema)
    coded = coded_tables(tables, schema)
    faults, _ = linked_keys(coded, schema)
    faults_of: dict[str, Any] = {
        name: {
            "rows": len(coded[name].codes),
            "keys_twice": faults.twice[name],
            "keys_missing": faults.gaps[name],
            "wrong": list(coded[name].wrong),
        }
        for name in schema.tables
    }
    faults_of[schema.unit]["at_most_or_more"] = faults.beyond
    faults_of[schema.child]["orphans"] = faults.orphans
    bad = any(table["keys_twice"] or table["keys_missing"] or table["wrong"] for table in faults_of.values())
    fits = not bad and (schema.drop or not faults.orphans)
    if arguments.json:
        print(as_json({"confidential": True, "tables": faults_of, "fits": fits}))
    else:
        print(_checked(faults_of, schema, fits))
    if not fits:
        raise Unfit("the tables do not fit: they would be refused")


def _checked(tables: Mapping[str, Any], schema: RelatedSchema, fits: bool) -> str:
    lines = [CONFIDENTIAL]
    for name, table in tables.items():
        lines.append(f"{name}: {table['rows']:,} rows")
        if table["keys_twice"] or table["keys_missing"]:
            lines.append(f"  keys: {table['keys_twice']:,} stand twice, {table['keys_missing']:,} are gaps")
        if name == schema.unit:
            lines.append(f"  with {schema.most} or more of {schema.child}: {table['at_most_or_more']:,}")
        elif table["orphans"]:
            dropped = "dropped" if schema.drop else 'refused; orphans = "drop" drops them'
            what, how = ("parent", dropped) if schema.whole is None else (schema.unit, "refused")
            lines.append(f"  without a {what}: {table['orphans']:,} ({how})")
        lines += [f"  {fault}" for fault in table["wrong"]]
    return "\n".join([*lines, *["the tables fit"] * fits])
