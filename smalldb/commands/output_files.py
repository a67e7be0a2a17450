"""The files that `generate` writes: rehearsed before anything is paid, and moved to their places together."""

import argparse
import os
import sys
import warnings
from contextlib import ExitStack, suppress
from functools import partial
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from queries.domain import Bits
from smalldb.commands import without_password
from smalldb.commands.input_files import related_files
from smalldb.commands.options import STATED, keep_inputs, put
from smalldb.exact.numbers import brief
from smalldb.files.outputs import Outputs
from smalldb.marginals.mechanism import ByMarginals
from smalldb.marginals.walks import Walks
from smalldb.planning import Plan, Settings
from smalldb.releasing.budget_ledger import Ledger
from smalldb.releasing.ledger_account import Account
from smalldb.releasing.pipeline import Destination
from smalldb.releasing.record import read_record, written_record
from smalldb.releasing.released import Release, fully_measured
from smalldb.releasing.table_source import LinkedSource, Source
from smalldb.releasing.transaction import begun_beside, sweep_ended
from smalldb.schema import Schema
from smalldb.schema.file_format import USUAL, FileFormat
from smalldb.schema.readers.compressed import parted
from smalldb.schema.reading import OpenSchema
from smalldb.schema.related_schema import RelatedSchema
from smalldb.schema.table_readers import rehearse
from smalldb.schema.table_writers import SPELLED, Spelled, form_like, form_of, spelled_out, written

if TYPE_CHECKING:
    from smalldb.commands.tables import TablesFolder
    from smalldb.reporting.page import Comparison


OUTPUTS = ("record", "measurements", "schema_out", "report", "output")  # options; the table last
# options that change nothing in the outputs, or only what these show: who repeats a release may change them
FREE = (
    *("run", "schema", "ledger", "budget", "budget_delta", "release_id", "checkpoint", "even_if_empty"),
    *("quiet", "verbose", "json"),
)
TAKEN = (  # options that related tables take, but for `columns` and such, which their schema says
    *FREE,
    *OUTPUTS,
    *("data", "more", "tables", "seed", "schema_unseen", "middle", "spreadsheet_safe"),
    *("queries", *STATED, *Settings.__annotations__),
)
MANY = 10**7  # distinct rows, which take about 1.1 GB if a database counts them


class Files(Destination):
    """The tables, their record, the page and the learned schema, as the options of `generate` say."""

    folder: "TablesFolder | None" = None  # of related tables, or of several copies; None: there is none

    def __init__(
        self, arguments: argparse.Namespace, schema: Schema | OpenSchema | RelatedSchema | None
    ) -> None:
        self._arguments = arguments
        self._account: Account | None = None
        self._related = schema if isinstance(schema, RelatedSchema) else None
        tables = {"": arguments.data}
        if self._related is not None:
            tables = related_files(arguments, self._related, TAKEN)
            if arguments.output is None:
                needed = "a new folder for the tables, the record and the page"
                raise ValueError(f"related tables need -o DIR: {needed}")
            if {"record", "report"} & {*tables}:
                raise ValueError(
                    "a table cannot be called record or report: these are names of other outputs"
                )
        self._in_folder = self._related is not None or arguments.tables is not None
        like = {name: form_like(path) for name, path in tables.items()} if self._in_folder else {}
        self._forms = like or {"": form_of(arguments.output)}
        # the table last: whoever finds it finds its record
        named = [getattr(arguments, name) for name in OUTPUTS[: -1 if self._in_folder else None]]
        self._paths = [path for path in named if path is not None]
        inputs = [*tables.values(), arguments.schema, arguments.ledger, arguments.start, arguments.refine]
        keep_inputs(inputs, self._paths)

    @property
    def may_stand(self) -> bool:
        """Whether an earlier run may have begun this release, and killed at its end left all outputs."""
        ledger, checkpoint = self._arguments.ledger, self._arguments.checkpoint
        if checkpoint is not None:
            return os.path.isdir(checkpoint) and bool(os.listdir(checkpoint))
        return ledger is not None and os.path.exists(ledger) and bool(begun_beside(ledger))

    def finished(self) -> bool:
        """Tell whether a named release stands already; ValueError: it ended, and something is other now."""
        name, path = self._arguments.release_id, self._arguments.ledger
        if not name or not os.path.exists(path):
            return False
        account = Ledger(path).read()
        if name not in account.ended:
            return False
        with suppress(OSError):
            if account.ended[name] == self.standing():
                sweep_ended(Ledger(path))
                return True
        if account.ended[name]:
            raise ValueError(
                f"release {name} is finished, and its outputs, its options or the name of its data are not "
                "those that it had: restore them, or take another name"
            )
        raise ValueError(f"release {name} {account.outcome(name)}")

    def spend_on_nothing(self, why: str) -> None:
        """Refuse, unless an option or an answer on the terminal says yes: ValueError."""
        if self._arguments.even_if_empty:
            return
        message = f"nothing useful is expected: {why}"
        if sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty():
            question = f"{message}\nrelease, and spend epsilon, all the same? [y/N] "
            print(question, end="", file=sys.stderr, flush=True)
            if sys.stdin.readline().strip().lower() in ("y", "yes"):
                return
        raise ValueError(
            f"{message}: take more rows or a larger epsilon, or add --even-if-empty to spend it all the same"
        )

    def paid(self, account: Account, before: bool) -> None:
        """Tell what is spent: it stays so if the release fails."""
        self._account = account
        spent, budget, number = brief(account.spent), brief(account.budget), len(account.records)
        if account.delta is not None:
            rho, spent_rho, _ = account.in_rho
            budget, spent = f"{rho}", f"epsilon {spent}, and of rho {spent_rho}"
        which = "this release was paid before" if before else f"with this release, number {number}"
        lines = [f"ledger:    {spent} of {budget} spent, {which}"]
        if account.torn:
            lines.append("           (an unfinished line of a run that released nothing was removed)")
        if not self._arguments.quiet:
            print("\n".join(lines), file=sys.stderr)

    def standing(self) -> str:
        """Return a digest of what was asked for, and of the outputs as they stand: public ones only."""
        options = vars(self._arguments)
        # what is not given is left out: a later version may add an option
        values = sorted((name, value) for name, value in options.items() if name not in (*FREE, *OUTPUTS))
        chosen = [
            (name, without_password(value if isinstance(value, str) else repr(value)))
            for name, value in values
            if value is not None and value is not False
        ]
        digest = sha256(repr(chosen).encode())
        if options["schema"] is not None:
            digest.update(sha256(Path(options["schema"]).read_bytes()).digest())
        for name in OUTPUTS:
            path = None if name == "report" and options["confidential"] else options[name]
            if path is None:
                continue
            # a file, or the files of a folder
            for file in sorted(filter(Path.is_file, Path(path).rglob("*"))) or [Path(path)]:
                digest.update(f"{name} {file.name} ".encode() + sha256(file.read_bytes()).digest())
        return digest.hexdigest()

    def standing_record(self) -> dict[str, Any]:
        """Return the record of a named release that stands, or what the ledger knows of it."""
        arguments, account = self._arguments, Ledger(self._arguments.ledger).read()
        record, name = arguments.record or os.path.join(arguments.output, "record.json"), arguments.release_id
        if os.path.exists(record):
            return read_record(record)
        return {"ledger": {"checksum": account.checksums[account.names.index(name)], "release_id": name}}

    def __enter__(self) -> "Files":
        report = [self._arguments.report] if self._arguments.confidential else []
        if self._arguments.report is not None or self._related is not None:  # not behind the payment
            from smalldb.reporting import page  # noqa: F401
        if report:
            # of the comparison
            import pandas.core.reshape.reshape  # type: ignore[import-not-found]  # noqa: F401

            from smalldb.releasing import evaluation  # noqa: F401
        with ExitStack() as stack:
            if self._in_folder:
                # what draws tables takes a moment to import
                from smalldb.commands.tables import TablesFolder

                self.folder = TablesFolder(self._arguments, self._forms, self.may_stand)
                stack.callback(self.folder.close)
            self._outputs = stack.enter_context(Outputs(self._paths, confidential=report, last=True))
            if self.folder is not None:
                self._outputs.then(self.folder.place)
            self._open = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.__exit__(*error)

    def rehearse(self, source: Source | LinkedSource) -> None:
        """Write and read what a release can hold; errors as `smalldb.schema.table_readers.rehearse`."""
        self._source = source
        if self._arguments.count_in_database and isinstance(source.schema, Schema):
            columns = source.schema.columns
            cells = prod(c.universe.size if c.finer is None else c.finer.kind.size for c in columns)
            if cells > (self._arguments.n_max or MANY):
                warnings.warn(
                    f"--count-in-database: the schema has {cells:.1e} cells; if the table has not many more "
                    "rows, most of them differ, and counts take more memory than rows: leave it out",
                    stacklevel=2,
                )
        self._row_bytes = dict[str, int]()
        for name, form in self._forms.items():
            if (schema := self._schema(name, source.schema)) is not None:
                self._row_bytes[name] = rehearse(schema, form, source.file)
            elif isinstance(source, Source):
                none = np.zeros((1, len(source.domain.sizes)), dtype=np.uint8)
                self._row_bytes[name] = len(self._flags(none, "true/false"))

    def _schema(self, name: str, schema: Schema | RelatedSchema | None) -> Schema | None:
        """Return what a table is written by; None: it has yes/no columns without a schema."""
        if isinstance(schema, RelatedSchema):
            return schema.tables[name] if schema.whole is None else schema.whole
        return schema

    def reserve(self, plan: Plan) -> None:
        """Take about the room on the disk that the outputs need; ValueError: nothing will be measured."""
        if self._arguments.measurements is not None and not isinstance(plan.chosen, ByMarginals | Walks):
            raise ValueError(
                f"--measurements is for marginals: {plan.mechanism} draws a table and measures nothing; "
                "leave it out, or add --mechanism marginals"
            )
        rows, related = plan.foreseen_rows, self._related
        tables = {name: size * rows for name, size in self._row_bytes.items()}
        if related is not None:  # as if parents had half of the children that are told apart
            apart = related.unit if related.whole is None else None
            tables |= {name: size * related.most // 2 for name, size in tables.items() if name != apart}
        if self.folder is not None:
            self.folder.reserve(plan, tables)
        sizes = {
            "record": 1 << 16,
            "measurements": 1 << 18,
            "schema_out": 1 << 14,
            "report": 1 << 18,
            "output": sum(tables.values()),
        }
        for name, size in sizes.items():
            if getattr(self._arguments, name) in self._paths:
                self._outputs.reserve(getattr(self._arguments, name), size)

    def begun(self, before: bool) -> None:
        """Refuse a folder that is not empty, unless an earlier run may have placed it: ValueError."""
        if self.folder is not None and not before:
            self.folder.check_empty()

    def write(self, release: Release) -> None:
        """Write the outputs beside their places; CSV is written as was stated for reading."""
        arguments, source = self._arguments, self._source
        if arguments.schema_out is not None and source.learns is not None:
            self._outputs.write(arguments.schema_out, source.learns.written(release.schema))
        if arguments.record is not None:
            self._outputs.write(arguments.record, written_record(release.record) + "\n")
        if arguments.measurements is not None:
            self._outputs.write(arguments.measurements, written_record(fully_measured(release)) + "\n")
        report = None
        if arguments.report is not None or self._related is not None:
            from smalldb.reporting.page import About, page

            about = About(**{name: getattr(arguments, name) for name in STATED}, account=self._account)
            shown = self._compared(release) if arguments.confidential else None
            report = page(release, None, shown, about)
        if arguments.report is not None and report is not None:
            self._outputs.write(arguments.report, report)
        contents = partial(self._contents, release.schema)
        if self.folder is not None:
            self.folder.write(release, contents, report)
            return
        content = contents("", None if release.schema is None else release.data, release.codes)
        if arguments.output is None:
            self._outputs.then(lambda: put(content))
        else:
            self._outputs.write(arguments.output, content)

    def _contents(self, schema: Schema | RelatedSchema | None, name: str, table: Any, codes: Bits) -> bytes:
        """Write a table of a schema, or the codes of yes/no columns, as the content of a file."""
        file, guard = self._source.file, self._arguments.spreadsheet_safe
        if (columns := self._schema(name, schema)) is None:
            return self._flags(codes, self._arguments.spelling, file, guard)
        return written(table, self._forms[name], columns, file=file, guard=guard)

    def _flags(
        self, bits: Bits, spelling: str | None, file: FileFormat = USUAL, guard: bool = False
    ) -> bytes:
        """Write yes/no columns; without pandas where the format allows."""
        assert isinstance(self._source, Source)
        domain, form, words = self._source.domain, self._forms[""], spelling == "true/false"
        if parted(form)[0] not in SPELLED:
            return written(domain.decode(bits).astype(bool if words else int), form)
        fields = ("false", "true") if words else ("0", "1")
        columns = (Spelled(name, column, fields) for name, column in zip(domain.names, bits.T, strict=True))
        return spelled_out(columns, form, file=file, guard=guard)

    def _compared(self, release: Release) -> "Comparison":
        from smalldb.releasing.evaluation import evaluate
        from smalldb.reporting.page import Comparison

        rows = release.confidential.real
        # an empty table is a neighbour of one that can be compared: neither may be refused
        evaluation = evaluate(rows, release.rows, release.plan.workload) if rows.n else None
        return Comparison(rows, evaluation, (self._arguments.target or [None])[0])
