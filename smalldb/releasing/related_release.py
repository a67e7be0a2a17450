"""Two related tables released together: a parent with all its children is what is protected."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from queries import Rows
from queries.frames import as_given
from queries.late import pd
from smalldb.exact.bits import BitSource
from smalldb.exact.numbers import Number
from smalldb.inference.answering import Answer, ask_related
from smalldb.marginals.curator import PrivacyFilter, Progress
from smalldb.marginals.families import Families, release_families
from smalldb.marginals.walks import Related, Walks
from smalldb.mechanisms import Drawn, Journal, Measurements
from smalldb.planning import Plan
from smalldb.releasing.record import Record, make_record, with_tables
from smalldb.releasing.related_evaluation import RelatedEvaluation, evaluate_related
from smalldb.schema.linked_rows import Linked, check_tables, columns_of, read_linked
from smalldb.schema.mapping import Schema
from smalldb.schema.related_schema import RelatedSchema
from smalldb.showing import in_notebook, reported


@final
class RelatedRelease:
    """
    Two related tables that were released, with their record.

    Parameters
    ----------
    data, record, schema, plan
        As below.
    made
        What was released, as codes: questions are answered from it.

    Attributes
    ----------
    data
        The synthetic tables by name, each of the library of the given one; parents first. Of a long table
        the one synthetic table.
    record
        What was done and is guaranteed, with all numbers with noise; public.
    schema, plan
        What the tables can hold, and what was measured at which cost.
    """

    def __init__(
        self,
        data: Any,
        record: Record,
        schema: RelatedSchema,
        plan: Plan,
        made: Related,
    ) -> None:
        self.data, self.record, self.schema, self.plan = data, record, schema, plan
        self._made = made

    def __repr__(self) -> str:
        told = self.record["tables"].items()
        rows = ", ".join(f"{name} ({table['rows']} rows)" for name, table in told)
        return f"<RelatedRelease of {rows}>"

    def _repr_html_(self) -> str:
        return in_notebook(self)

    def report(self, **choices: Any) -> str:
        """
        Write the page about the release: HTML, for publication.

        Parameters
        ----------
        choices
            The words of `smalldb.reporting.page.About`, such as `title` and `publisher`.
        """
        return reported(self, **choices)

    def evaluate(self, tables: Any) -> RelatedEvaluation:
        """
        Compare with the data, which the release does not keep. Confidential: computed from the data.

        Errors as `smalldb.releasing.related_evaluation.evaluate_related`.
        """
        return evaluate_related(tables, self.linked, self.schema)

    def ask(self, question: str, *, level: Number = "0.95", population: bool = False) -> Answer:
        """
        Answer a question from what was released: about children if it names a column of theirs, else parents.

        As `smalldb.Release.ask`: ``"rent>=900 | town=A"``, ``"age>=65"``. Columns have the names of the
        schema, or those with their table's before a point, and the number of children is a column "number of
        persons".

        Parameters
        ----------
        question
            A share, a mean or a difference, as in `docs/asking.md`.
        level
            The probability with which the interval covers: an exact number in (0, 1).
        population
            Whether the interval is about a population of which the parents are a random sample.

        Raises
        ------
        TypeError, ValueError
            The question cannot be read, names what is not there, or cannot be met: in one line.
        """
        tables, made = Measurements.of_tables(self.record), self._made
        parents = made.parents.codes
        walks = np.column_stack([parents[made.of], made.children])
        codes = zip(tables, (parents, walks), strict=True)
        rows = {name: Rows.from_codes(tables[name].domain, own) for name, own in codes}
        return ask_related(tables, question, level=level, population=population, rows=rows)

    @property
    def linked(self) -> Linked:
        """The synthetic tables as codes of their columns, and the parent of each child."""
        made = self._made
        parents = made.parents.codes[:, :-1].astype(np.int64)
        return Linked(parents, made.children.astype(np.int64), made.of)


@final
@dataclass(frozen=True, slots=True, repr=False)
class LinkedSource:
    """Two related tables, or a long one, of any library or of files: as `table_source.Source`."""

    given: Any  # by their names; or the long one
    schema: RelatedSchema
    learns: ClassVar[None] = None
    queries: ClassVar[None] = None
    measure_first: ClassVar[tuple[str, ...]] = ()
    n: ClassVar[None] = None  # known when the tables are read

    @property
    def described(self) -> RelatedSchema:
        """What says how rows are."""
        return self.schema

    def read(self, progress: bool = False, watch: object = None) -> Linked:
        """Read the tables, each child with its parent; errors as `read_linked`."""
        return read_linked(self.given, self.schema)

    def released(
        self,
        plan: Plan,
        linked: Linked,
        middle: bool,
        journal: Journal,
        budget: PrivacyFilter,
        progress: Progress,
        executor: Executor | None,
    ) -> RelatedRelease:
        """Release by a plan that is paid and fits the tables."""
        walks, schema, given = plan.chosen, self.schema, self.given
        assert isinstance(walks, Walks)
        families = Families(linked.parents, linked.children, linked.of)
        made = release_families(walks, families, journal, budget, executor, progress)
        record = make_record(plan, private=journal.source.private, drawn=Drawn(made.parents.codes))
        record, finishing = with_tables(record, walks, schema, made), journal.postprocessing_bits()
        if schema.whole is not None:
            data = as_given(long_table(schema, schema.whole, made, given, middle, finishing), given)
        else:
            synthetic = synthetic_tables(schema, made, given, middle, finishing)
            data = {name: as_given(table, given[name]) for name, table in synthetic.items()}
        return RelatedRelease(data, record, schema, plan, made)


def linked_source(tables: Any, schema: RelatedSchema) -> LinkedSource:
    """Find out what tables hold, from the names of tables and columns alone: ValueError."""
    check_tables(tables, schema)
    return LinkedSource(tables, schema)


def long_table(
    schema: RelatedSchema, whole: Schema, released: Related, table: Any, middle: bool, bits: BitSource
) -> pd.DataFrame:
    """Write released persons and their rows as one table; persons are 1, 2, and so on."""
    parents = released.parents.codes[:, :-1][released.of]
    codes = np.empty((len(released.of), len(whole.columns)), dtype=np.int64)
    for names, own in ((schema.parents.names, parents), (schema.children.names, released.children)):
        codes[:, [whole.names.index(name) for name in names]] = own
    frame = whole.decode(codes, middle=middle, rng=bits)
    (person,) = (column for column in whole.ids if column.name == schema.key)
    frame[schema.key] = person.holding(np.minimum(released.of, 1), (released.of + 1).tolist())
    return frame[_in_order([*frame.columns], table, whole)]


def synthetic_tables(
    schema: RelatedSchema, made: Related, tables: Mapping[str, Any], middle: bool, bits: BitSource
) -> dict[str, pd.DataFrame]:
    """
    Write released codes as tables, with the columns of the given ones; keys are 1, 2, and so on.

    Rows are in uniformly random order, and so keys say nothing.
    """
    parents = schema.parents.decode(made.parents.codes[:, :-1], middle=middle, rng=bits)
    children = schema.children.decode(made.children, middle=middle, rng=bits)
    (link,) = (column for column in schema.children.ids if column.name == schema.link)
    numbers = made.of + 1
    children[schema.link] = link.holding(np.minimum(made.of, 1), numbers.tolist())
    found = {schema.unit: parents, schema.child: children}
    return {
        name: table[_in_order([*table.columns], tables[name], schema.tables[name])]
        for name, table in found.items()
    }


def _in_order(names: list[str], table: Any, schema: Schema) -> list[str]:
    """Return the columns of a released table in the order of the given one; others are the last."""
    given = columns_of(table, schema)
    if given is None:
        return names
    positions = {name: i for i, name in enumerate(given)}
    return sorted(names, key=lambda name: positions.get(name, len(positions)))
