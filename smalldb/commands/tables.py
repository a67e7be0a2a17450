"""`tables`: several tables from the public files of a release."""

import argparse
import json
import os

from queries.late import pd
from smalldb.commands import HELP
from smalldb.commands.options import integer, whole_number
from smalldb.commands.parsers import Commands
from smalldb.exact.bits import bit_source
from smalldb.files.outputs import OutputFolder
from smalldb.inference import Measurements
from smalldb.inference.several_tables import HOW, PUBLIC, SCHEMA, Spelling, summary
from smalldb.mechanisms.measurement_list import released_total
from smalldb.releasing.imputed_tables import streamed, with_measured_means
from smalldb.releasing.record import read_record
from smalldb.releasing.table_source import file_source
from smalldb.reporting.escaping import visible
from smalldb.schema import Schema, read_schema
from smalldb.schema.table_writers import written

SEEN = 9  # rows, which say how yes and no are written


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "tables",
        help=HELP["tables"],
        description="Draw several tables (multiple imputations of the data) from the measurements of a "
        "release, in the format of its synthetic table. It reads nothing confidential and "
        "pays nothing.",
        epilog="example: smalldb tables measured.json synthetic.csv --schema s.toml --tables 20 -o tables",
    )
    command.add_argument("file", metavar="RECORD.json", help="a record with measurements")
    command.add_argument(
        "synthetic", metavar="NEW.csv", help="the synthetic table of that release, for its columns"
    )
    command.add_argument("--schema", metavar="SCHEMA.toml", help="what its columns hold (default: yes or no)")
    command.add_argument("--tables", type=whole_number, default=20, metavar="N", help="how many (20)")
    command.add_argument("--rows", type=whole_number, metavar="M", help="a random sample of M rows of each")
    command.add_argument("--seed", type=integer, metavar="S", help="repeatable draws")
    command.add_argument("-o", "--output", required=True, metavar="DIR", help="a new folder for the tables")
    command.set_defaults(run=run_tables)


def _content(table: pd.DataFrame, schema: Schema | None) -> bytes:
    """Write a table as the synthetic one is: of a schema, or of yes/no columns."""
    if schema is not None:
        return written(table, "csv", schema)
    text: str = table.map(lambda value: str(value).lower()).to_csv(index=False, lineterminator="\n")
    return text.encode()


def run_tables(arguments: argparse.Namespace) -> None:
    """Draw several tables into a folder."""
    record = read_record(arguments.file)
    try:
        measurements = Measurements.from_record(record)
    except ValueError as error:
        raise ValueError(f"{arguments.file}: {error}") from error
    schema = None if arguments.schema is None else read_schema(arguments.schema)
    if schema is not None and not isinstance(schema, Schema):
        raise ValueError(f"{arguments.schema}: tables are drawn of one table with all its categories")
    source = file_source(arguments.synthetic, schema)
    domain = source.domain
    if domain.names != measurements.domain.names or domain.sizes != measurements.domain.sizes:
        raise ValueError(f"{arguments.synthetic}: other columns or categories than those of {arguments.file}")
    n = measurements.n
    total = released_total(measurements) if n is None else n
    stream = streamed(
        measurements, n, count=arguments.tables, rows=arguments.rows, rng=bit_source(arguments.seed)
    )
    if schema is not None:
        schema = with_measured_means(schema, measurements, total)
    like = (
        pd.read_csv(arguments.synthetic, nrows=SEEN) if schema is None else pd.DataFrame(columns=source.names)
    )
    spelling = Spelling(domain, schema, like)
    folder = OutputFolder(arguments.output)
    try:
        folder.check_empty()
        digits = max(2, len(str(arguments.tables)))
        for number, (codes, seed) in enumerate(stream.draws, start=1):
            table = spelling.table(codes, seed)
            folder.write(f"table-{number:0{digits}}.csv", _content(table, schema))
            if number == arguments.tables:
                break
        assumed, told = summary(stream.made_by, measurements)
        how = {"tables": arguments.tables, "rows": arguments.rows or total, **assumed}
        folder.write(HOW, json.dumps(how, indent=2, ensure_ascii=False) + "\n")
        with open(arguments.file, encoding="utf-8") as file:
            folder.write(PUBLIC, file.read())
        if arguments.schema is not None and os.path.exists(arguments.schema):
            with open(arguments.schema, encoding="utf-8") as file:
                folder.write(SCHEMA, file.read())
        folder.place()
    finally:
        folder.close()
    print(visible(f"tables:    {arguments.tables} in {arguments.output}, {told}", kept="\n"))
