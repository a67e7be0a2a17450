"""The folder that `generate --tables` writes: several tables from one payment, and what they follow from."""

import argparse
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from tqdm import tqdm

from smalldb.exact.bits import bit_source
from smalldb.files.outputs import OutputFolder
from smalldb.inference.several_tables import HOW, Spelling, summary
from smalldb.mechanisms.measurement_list import released_total
from smalldb.planning import Plan
from smalldb.releasing.imputed_tables import check_drawable, streamed
from smalldb.releasing.record import with_measurements, written_record
from smalldb.releasing.released import Release

Contents = Callable[[Any, np.ndarray[Any, np.dtype[np.integer[Any]]]], bytes]
"""What a file holds, from a table (None: of yes/no columns) and its codes."""


class SeveralTables:
    """
    A folder with the tables, how they were drawn, the best single one, the record and the measurements.

    Parameters
    ----------
    arguments
        Of the command: its folder, and how many tables.
    form
        Of the tables: the ending of their names.
    begun
        Whether an earlier run may have placed the folder already.
    """

    def __init__(self, arguments: argparse.Namespace, form: str, begun: bool) -> None:
        self._arguments, self._form = arguments, form
        self._folder = OutputFolder(arguments.output, begun)
        self.check_empty = self._folder.check_empty
        digits = max(2, len(str(arguments.tables)))
        self._names = [f"table-{k + 1:0{digits}}.{form}" for k in range(arguments.tables)]
        # why there are no several tables, although all else was released; None: they are there
        self.refused: str | None = None
        self.told = ""  # where they are, and how they were drawn

    def reserve(self, plan: Plan, size: int) -> None:
        """Take room for all tables; ValueError: it is known of the plan that they cannot be drawn."""
        check_drawable(plan)
        for name in (*self._names, f"synthetic.{self._form}"):
            self._folder.reserve(name, size)

    def write(self, release: Release, contents: Contents) -> None:
        """Write all files; tables one after another, each as soon as it is drawn."""
        arguments = self._arguments
        whole = with_measurements(release.record, release.plan, release.measurements, release.rows, None)
        table = None if release.schema is None else release.data
        told = {"record.json": release.record, "measurements.json": whole}
        public = {name: written_record(record) + "\n" for name, record in told.items()}
        if self._folder.stands(public):
            if os.path.exists(os.path.join(arguments.output, HOW)):
                self.told = f"tables:    {arguments.tables} in {arguments.output}, from an earlier run"
            else:
                self.refused = f"the release is paid, and stands in {arguments.output} without several tables"
            return
        self._folder.write(f"synthetic.{self._form}", contents(table, release.codes))
        for name, text in public.items():
            self._folder.write(name, text)
        shown = sys.stderr.isatty() and not arguments.quiet
        total = released_total(release.measurements) if release.plan.n is None else release.plan.n
        rows = arguments.table_rows
        try:
            stream = streamed(
                release.measurements,
                release.plan.n,
                count=arguments.tables,
                rows=None if rows is None or rows >= total else rows,
                rng=bit_source(arguments.seed),
            )
        except ValueError as error:  # of released numbers; what is paid for is released all the same
            self.refused = (
                f"the release is paid, and stands in {arguments.output} without several tables; another run "
                f"would pay again: {error}"
            )
            for name in self._names:
                self._folder.remove(name)
            return
        spelling = Spelling(release.plan.workload.domain, release.schema, table)
        bar = tqdm(stream.draws, total=arguments.tables, unit=" tables", disable=not shown)
        for name, (codes, seed) in zip(self._names, bar, strict=True):
            one = None if table is None else spelling.table(codes, seed)
            self._folder.write(name, contents(one, codes))
        assumed, drawn = summary(stream.made_by, release.measurements)
        self.told = f"tables:    {arguments.tables} in {arguments.output}, {drawn}"
        how = {"tables": arguments.tables, "rows": total if rows is None else min(rows, total), **assumed}
        self._folder.write(HOW, json.dumps(how, indent=2, ensure_ascii=False) + "\n")

    def place(self) -> None:
        """Move the folder to its place."""
        self._folder.place()

    def close(self) -> None:
        """Remove what was begun, unless it was placed."""
        self._folder.close()
