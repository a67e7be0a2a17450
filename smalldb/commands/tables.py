"""`tables`: several tables from the public files of a release; the folder of tables of `generate`."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from queries.arrays import pd
from smalldb.commands import HELP, Commands
from smalldb.commands.options import integer, whole_number
from smalldb.exact.bits import bit_source
from smalldb.files.output_folders import OutputFolder
from smalldb.inference import Measurements
from smalldb.inference.several_tables import HOW, PUBLIC, SCHEMA, Spelling, summary
from smalldb.mechanisms.measurement_list import released_total
from smalldb.planning import Plan
from smalldb.releasing.imputed_tables import check_drawable, streamed
from smalldb.releasing.record import read_record, written_record
from smalldb.releasing.released import Release, fully_measured
from smalldb.releasing.table_source import file_source, with_measured_means
from smalldb.reporting import visible
from smalldb.schema import read_schema
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


def run_tables(arguments: argparse.Namespace) -> None:
    """Draw several tables into a folder."""
    record = read_record(arguments.file)
    try:
        measurements = Measurements.from_record(record)
    except ValueError as error:
        raise ValueError(f"{arguments.file}: {error}") from error
    schema = None if arguments.schema is None else read_schema(arguments.schema)
    source = file_source(arguments.synthetic, schema)
    domain = source.domain
    if domain.names != measurements.domain.names or domain.sizes != measurements.domain.sizes:
        raise ValueError(f"{arguments.synthetic}: other columns or categories than those of {arguments.file}")
    # a record states rules that relate columns for people alone: the schema has them
    measurements = Measurements(domain, [*measurements], measurements.n, measurements.ranges)
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
    with closing(OutputFolder(arguments.output)) as folder:
        digits = max(2, len(str(arguments.tables)))
        for number, (codes, seed) in enumerate(stream.draws, start=1):
            content = written(spelling.table(codes, seed), "csv", schema)
            folder.write(f"table-{number:0{digits}}.csv", content)
        assumed, text = summary(stream.made_by, measurements)
        folder.write(HOW, draws_json(arguments.tables, stream.rows, assumed))
        folder.write(PUBLIC, Path(arguments.file).read_bytes())
        if arguments.schema is not None and os.path.exists(arguments.schema):
            folder.write(SCHEMA, Path(arguments.schema).read_bytes())
        folder.place()
    print(visible(f"tables:    {arguments.tables} in {arguments.output}, {text}", kept="\n"))


def draws_json(tables: int, rows: int, assumed: Mapping[str, Any]) -> str:
    """Write how so many tables were drawn, each of so many rows, and what they assume."""
    return json.dumps({"tables": tables, "rows": rows, **assumed}, indent=2, ensure_ascii=False) + "\n"


Contents = Callable[[str, Any, np.ndarray[Any, np.dtype[np.integer[Any]]]], bytes]
"""What a file holds, from the name of a table, the table (None: of yes/no columns) and its codes."""


class TablesFolder:
    """A folder with related tables or several copies; `forms`: endings by table (empty: it is the one)."""

    def __init__(self, arguments: argparse.Namespace, forms: Mapping[str, str], begun: bool) -> None:
        self._arguments, self._forms = arguments, forms
        self._folder = folder = OutputFolder(arguments.output, begun)
        self.check_empty, self.place, self.close = folder.check_empty, folder.place, folder.close
        count = arguments.tables or 0
        digits = max(2, len(str(count)))
        self._copies = [
            {name: f"{name or 'table'}-{k + 1:0{digits}}.{form}" for name, form in forms.items()}
            for k in range(count)
        ]
        # why there are no several tables, although all else was released; None: they are there
        self.refused: str | None = None
        self.summary = ""  # where they are, and how they were drawn

    def _best(self, name: str) -> str:
        return f"{name or 'synthetic'}.{self._forms[name]}"

    def reserve(self, plan: Plan, sizes: Mapping[str, int]) -> None:
        """Take room for all tables; ValueError: it is known of the plan that they cannot be drawn."""
        if self._copies:
            check_drawable(plan)
        for name, size in sizes.items():
            for file in (self._best(name), *(names[name] for names in self._copies)):
                self._folder.reserve(file, size)
        if "" not in self._forms:
            self._folder.reserve("record.json", 1 << 18)
            self._folder.reserve("report.html", 1 << 18)

    def write(self, release: Release, contents: Contents, report: str | None) -> None:
        """Write all files; copies one after another, each as soon as it is drawn."""
        arguments, related = self._arguments, release.of is not None
        public = {"record.json": written_record(release.record) + "\n"}
        if not related:
            public["measurements.json"] = written_record(fully_measured(release)) + "\n"
        if self._folder.stands(public):
            if os.path.exists(os.path.join(arguments.output, HOW)):
                self.summary = f"tables:    {arguments.tables} in {arguments.output}, from an earlier run"
            elif self._copies:
                self.refused = f"the release is paid, and stands in {arguments.output} without several tables"
            return
        table = release.data if related or release.schema is not None else None
        for name, each in tables_of(table, self._forms).items():
            self._folder.write(self._best(name), contents(name, each, release.codes))
        for name, text in public.items():
            self._folder.write(name, text)
        if related and report is not None:
            self._folder.write("report.html", report)
        if self._copies:
            self._write_copies(release, contents)

    def _write_copies(self, release: Release, contents: Contents) -> None:
        """Write several tables, if they can be drawn; what is paid for is released all the same."""
        arguments = self._arguments
        shown = sys.stderr.isatty() and not arguments.quiet
        try:
            copies = release.copies(arguments.tables, arguments.table_rows, bit_source(arguments.seed))
        except ValueError as error:  # of released numbers
            self.refused = (
                f"the release is paid, and stands in {arguments.output} without several tables; another run "
                f"would pay again: {error}"
            )
            for file in (file for names in self._copies for file in names.values()):
                self._folder.remove(file)
            return
        bar = tqdm(copies.draws, total=arguments.tables, unit=" tables", disable=not shown)
        for names, (table, codes) in zip(self._copies, bar, strict=True):
            for name, each in tables_of(table, self._forms).items():
                self._folder.write(names[name], contents(name, each, codes))
        measured: Any = release.measurements
        measured = [measured] if release.of is None else measured.values()
        assumed, drawn = summary(copies.made_by, *measured)
        self.summary = f"tables:    {arguments.tables} in {arguments.output}, {drawn}"
        self._folder.write(HOW, draws_json(arguments.tables, copies.rows, assumed))


def tables_of(table: Any, names: Iterable[str]) -> Mapping[str, Any]:
    """Return tables by their names: one of a single table, or of one long file, by the one name there is."""
    return table if isinstance(table, Mapping) else dict.fromkeys(names, table)
