"""The folder of related tables, or of several copies from one payment, and what they follow from."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from tqdm import tqdm

from smalldb.exact.bits import bit_source
from smalldb.files.outputs import OutputFolder
from smalldb.inference.several_tables import HOW, summary
from smalldb.planning import Plan
from smalldb.releasing.imputed_tables import check_drawable
from smalldb.releasing.record import written_record
from smalldb.releasing.released import Release, fully_measured

Contents = Callable[[str, Any, np.ndarray[Any, np.dtype[np.integer[Any]]]], bytes]
"""What a file holds, from the name of a table, the table (None: of yes/no columns) and its codes."""


class TablesFolder:
    """A folder with related tables or several copies; `forms`: endings by table (empty: it is the one)."""

    def __init__(self, arguments: argparse.Namespace, forms: Mapping[str, str], begun: bool) -> None:
        self._arguments, self._forms = arguments, forms
        self._folder = OutputFolder(arguments.output, begun)
        self.check_empty = self._folder.check_empty
        count = arguments.tables or 0
        digits = max(2, len(str(count)))
        self._copies = [
            {name: f"{name or 'table'}-{k + 1:0{digits}}.{form}" for name, form in forms.items()}
            for k in range(count)
        ]
        # why there are no several tables, although all else was released; None: they are there
        self.refused: str | None = None
        self.told = ""  # where they are, and how they were drawn

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
                self.told = f"tables:    {arguments.tables} in {arguments.output}, from an earlier run"
            elif self._copies:
                self.refused = f"the release is paid, and stands in {arguments.output} without several tables"
            return
        table = release.data if related or release.schema is not None else None
        for name, own in tables_of(table, self._forms).items():
            self._folder.write(self._best(name), contents(name, own, release.codes))
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
            for name, own in tables_of(table, self._forms).items():
                self._folder.write(names[name], contents(name, own, codes))
        measured: Any = release.measurements
        measured = [measured] if release.of is None else measured.values()
        assumed, drawn = summary(copies.made_by, *measured)
        self.told = f"tables:    {arguments.tables} in {arguments.output}, {drawn}"
        how = {"tables": arguments.tables, "rows": copies.rows, **assumed}
        self._folder.write(HOW, json.dumps(how, indent=2, ensure_ascii=False) + "\n")

    def place(self) -> None:
        """Move the folder to its place."""
        self._folder.place()

    def close(self) -> None:
        """Remove what was begun, unless it was placed."""
        self._folder.close()


def tables_of(table: Any, names: Iterable[str]) -> Mapping[str, Any]:
    """Return tables by their names: one of a single table, or of one long file, by the one name there is."""
    return table if isinstance(table, Mapping) else dict.fromkeys(names, table)
