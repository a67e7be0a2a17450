"""Two related tables released together: a parent with all its children is what is protected."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from fractions import Fraction
from functools import partial
from hashlib import sha256
from inspect import signature
from itertools import combinations
from typing import Any, assert_never, final

import numpy as np
import numpy.typing as npt

from queries import DataError, Domain, Rows
from queries.expressions import joined
from queries.frames import as_given
from queries.late import pd
from smalldb.exact.bits import BitSource, bit_source
from smalldb.exact.numbers import Number, positive, whole
from smalldb.files.checkpoints import Folder, check_running, identity
from smalldb.inference.answering import Answer, ask
from smalldb.marginals.estimate.modelling import cells_of_rules
from smalldb.marginals.families import Families, release_families
from smalldb.marginals.mechanism import MOST_CELLS
from smalldb.marginals.universe import Universe
from smalldb.marginals.walks import MOST_PARENTS, Related, Walks, plan_walks
from smalldb.mechanisms import Measurements, Neighbours, relation_of
from smalldb.mechanisms.recorded_universe import schema_ranges
from smalldb.planning import Settings, plan
from smalldb.planning.choosing import MOST_EPSILON
from smalldb.planning.plans import column_noise, drowning
from smalldb.releasing.budget_ledger import Ledger
from smalldb.releasing.pipeline import EMPTY, Destination
from smalldb.releasing.rehearsing_draws import rehearse_walks
from smalldb.releasing.related_evaluation import RelatedEvaluation, evaluate_related
from smalldb.releasing.related_record import number_column, related_record
from smalldb.releasing.transaction import Transaction, begun_beside
from smalldb.schema.linked_rows import Linked, check_tables, columns_of, read_linked
from smalldb.schema.mapping import Schema
from smalldb.schema.reading import is_related, read_any, text_of
from smalldb.schema.related_schema import RelatedSchema

TAKEN = ("epsilon", "neighbours", "n_max")  # settings of a plan that related tables have
GUESS = 1 << 32  # of parents, at most


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
        record: dict[str, Any],
        schema: RelatedSchema,
        plan: Walks,
        made: Related,
    ) -> None:
        self.data, self.record, self.schema, self.plan = data, record, schema, plan
        self._made = made

    def __repr__(self) -> str:
        told = self.record["tables"].items()
        rows = ", ".join(f"{name} ({table['rows']} rows)" for name, table in told)
        return f"<RelatedRelease of {rows}>"

    def evaluate(self, tables: Any) -> RelatedEvaluation:
        """
        Compare with the data, which the release does not keep. Confidential: computed from the data.

        Errors as `smalldb.releasing.related_evaluation.evaluate_related`.
        """
        return evaluate_related(tables, self.linked, self.schema)

    def ask(self, question: str, *, level: Number = "0.95", population: bool = False) -> Answer:
        """
        Answer a question about parents and their numbers of children from what was released of them.

        As `smalldb.Release.ask`: ``"rent>=900 | town=A"``. Columns have the names of the schema, and the
        number of children is a column "number of persons". Of children nothing can be asked yet.

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
        domain = Domain([*self.schema.parents.domain.columns, number_column(self.schema)])
        parents, ranges = self._made.parents, schema_ranges(self.schema.parents)
        measured = Measurements(domain, self._made.of_parents, self.record.get("n"), ranges)
        rows = Rows.from_codes(domain, parents.codes)
        return ask(measured, question, level=level, population=population, rows=rows)

    @property
    def linked(self) -> Linked:
        """The synthetic tables as codes of their columns, and the parent of each child."""
        made = self._made
        parents = made.parents.codes[:, :-1].astype(np.int64)
        return Linked(parents, made.children.astype(np.int64), made.of)


def related_schema(given: object) -> RelatedSchema | None:
    """Return the schema of related tables: given, of a file or of a text; None: it is of one table."""
    if isinstance(given, RelatedSchema):
        return given
    if not isinstance(given, str | os.PathLike):
        return None
    try:
        inside, _ = text_of(given)
    except (ValueError, OSError):  # told where it is read
        return None
    found = read_any(given) if is_related(inside) else None
    return found if isinstance(found, RelatedSchema) else None


def persons_schema(given: object) -> RelatedSchema | None:
    """Return the schema of a long table, in which a person has several rows; None: it is of another."""
    found = related_schema(given)
    return None if found is None or found.whole is None else found


def release_related(
    tables: Any,
    schema: RelatedSchema,
    *,
    rng: int | BitSource | None = None,
    seed: int | None = None,
    checkpoint: Folder | None = None,
    ledger: Ledger | Callable[[Any], Ledger] | None = None,
    destination: Destination | None = None,
    **settings: Any,
) -> RelatedRelease:
    """Release two related tables: check, read, bind, make room, pay, draw, write, forget."""
    bits, destination = bit_source(rng, seed), destination or Destination()
    if ledger is not None and not bits.private:
        raise ValueError("a ledger is for private releases: what a seed makes is not private at any epsilon")
    epsilon, relation, guess = _asked(settings)
    check_tables(tables, schema)
    public = relation is Neighbours.REPLACE_ONE
    foreseen = plan_related(schema, epsilon, relation, 1 if guess is None else guess)
    record_of = partial(related_record, schema, epsilon=epsilon, neighbours=relation, private=bits.private)
    columns = len(schema.parents.domain.columns) + 1 + len(schema.children.domain.columns)

    def consider(rows: int) -> None:
        if (why := drowning(column_noise(columns, rows, epsilon, relation))) is not None:
            destination.spend_on_nothing(why)

    # the transaction ends last: from what it keeps the release can go on until all of it is in its place
    with ExitStack() as kept, destination:
        check_running(None, checkpoint)
        if guess is not None:
            consider(guess)
        if ledger is not None:
            record = record_of(foreseen, n=1 if public else None)
            ledger = ledger if isinstance(ledger, Ledger) else ledger(record)
            if checkpoint is None and not begun_beside(ledger.path):  # else it may be paid already
                ledger.read().after(record)

        linked = read_linked(tables, schema)
        n = len(linked.parents)
        if public and n == 0:
            raise ValueError(EMPTY)
        if n > MOST_PARENTS:
            raise DataError(f"table {schema.unit!r} has more than 2^32 rows")
        final, known = foreseen, None
        if public:
            final, known = plan_related(schema, epsilon, relation, n), n
            consider(n)
        destination.reserve((known or guess or 1, schema.most))
        if ledger is not None:
            rehearse_walks(schema.parents, schema.children)
        transaction = Transaction(
            record_of(final, n=known),
            identity(epsilon, relation, guess, *_shape_of(schema)),
            (known,),
            checkpoint=checkpoint,
            ledger=ledger,
        )
        journal = kept.enter_context(transaction.opened(bits))
        destination.begun(journal.begun)
        transaction.bind(journal, *digest_of(linked))
        if (paid := transaction.pay(journal)) is not None:
            destination.paid(*paid)

        # from here on nothing is refused for the data
        released = release_families(final, Families(linked.parents, linked.children, linked.of), journal)
        record, finishing = record_of(final, n=known, released=released), journal.postprocessing_bits()
        if schema.whole is not None:
            data = as_given(long_table(schema, schema.whole, released, tables, finishing), tables)
        else:
            synthetic = synthetic_tables(schema, released, tables, finishing)
            data = {name: as_given(table, tables[name]) for name, table in synthetic.items()}
        made = RelatedRelease(data, record, schema, final, released)
        destination.write(made, linked)
    return made


def digest_of(linked: Linked) -> list[npt.NDArray[Any]]:
    """Return what binds a release to its parents and their children, in whatever order they were read."""
    order = np.lexsort((*linked.children.T, linked.of))
    children, ends = linked.children[order], np.bincount(linked.of, minlength=len(linked.parents)).cumsum()
    parts = zip(linked.parents, np.split(children, ends[:-1]), strict=True)
    families = sorted(parent.tobytes() + own.tobytes() for parent, own in parts)
    digest = sha256()
    for family in families:
        digest.update(len(family).to_bytes(8, "big") + family)
    return [np.frombuffer(digest.digest(), np.uint8)]


def _shape_of(schema: RelatedSchema) -> list[object]:
    """Return what tells a schema of related tables from any other, as far as codes know it."""
    columns = [
        (
            name,
            column.name,
            column.labels,
            column.ordered,
            [(r.columns, r.allowed.tolist()) for r in own.domain.rules],
        )
        for name, own in schema.tables.items()
        for column in own.domain.columns
    ]
    return [schema.protected, schema.most, schema.least, schema.cap, schema.drop, columns]


def long_table(
    schema: RelatedSchema, whole: Schema, released: Related, table: Any, bits: BitSource
) -> pd.DataFrame:
    """Write released persons and their rows as one table; persons are 1, 2, and so on."""
    parents = released.parents.codes[:, :-1][released.of]
    codes = np.empty((len(released.of), len(whole.columns)), dtype=np.int64)
    for names, own in ((schema.parents.names, parents), (schema.children.names, released.children)):
        codes[:, [whole.names.index(name) for name in names]] = own
    frame = whole.decode(codes, rng=bits)
    (person,) = (column for column in whole.ids if column.name == schema.key)
    frame[schema.key] = person.holding(np.minimum(released.of, 1), (released.of + 1).tolist())
    return frame[_in_order([*frame.columns], table, whole)]


def synthetic_tables(
    schema: RelatedSchema, made: Related, tables: Mapping[str, Any], bits: BitSource
) -> dict[str, pd.DataFrame]:
    """
    Write released codes as tables, with the columns of the given ones; keys are 1, 2, and so on.

    Rows are in uniformly random order, and so keys say nothing.
    """
    parents = schema.parents.decode(made.parents.codes[:, :-1], rng=bits)
    children = schema.children.decode(made.children, rng=bits)
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


def plan_related(schema: RelatedSchema, epsilon: Fraction, relation: Neighbours, rows: int) -> Walks:
    """Plan a release from public values alone; `rows` is the number of parents, or a public guess of it."""
    wrong = [
        f"table {name!r}: its rules meet in tables of more than 2^21 cells: use fewer that meet"
        for name, own in schema.tables.items()
        if own.domain.rules and cells_of_rules(_universe(own.domain)) > MOST_CELLS
    ]
    if wrong:
        raise ValueError(joined(wrong))
    match relation:
        case Neighbours.REPLACE_ONE:
            replaced = True
        case Neighbours.ADD_REMOVE:
            replaced = False
        case _:
            assert_never(relation)
    parents = _universe(schema.parents.domain, schema.most, schema.least)
    children = _universe(schema.children.domain)
    return plan_walks(parents, children, epsilon, replaced, rows, cap=schema.cap)


def _universe(domain: Domain, most: int | None = None, least: int = 0) -> Universe:
    """Return the columns of a table and its rules; and of a number from `least` to `most`, behind them."""
    sizes, ordered = domain.sizes, tuple(column.ordered for column in domain.columns)
    if most is not None:
        sizes, ordered = (*sizes, most + 1), (*ordered, True)
    pairs = tuple(combinations(range(len(sizes)), 2)) or ((0,),)
    rules = tuple((rule.columns, rule.allowed) for rule in domain.rules)
    if most is not None and least:
        rules = (*rules, ((len(sizes) - 1,), np.arange(most + 1) >= least))
    return Universe(sizes, ordered, pairs, (1,) * len(pairs), rules)


def refuse(given: Sequence[str]) -> None:
    """Refuse arguments and options that related tables do not have yet: ValueError."""
    if given:
        raise ValueError(
            f"related tables do not take {', '.join(given)} yet: leave out what they do not take"
        )


def _asked(settings: Mapping[str, Any]) -> tuple[Fraction, Neighbours, int | None]:
    """Return epsilon, the relation, and under add-remove the guess of n; refuse what related tables lack."""
    unknown = [name for name in settings if name not in Settings.__annotations__]
    if unknown:
        raise TypeError(f"unknown argument {unknown[0]!r}")
    if settings.get("mechanism") not in (None, "auto", "marginals"):
        raise ValueError("mechanism: related tables are made by marginals: leave it out")
    usual = signature(plan).parameters
    given = [
        name
        for name, value in settings.items()
        if name not in (*TAKEN, "mechanism") and value not in (None, usual[name].default)
    ]
    refuse(given)
    if settings.get("epsilon") is None:
        raise TypeError("epsilon is missing: give the privacy parameter as an argument, such as epsilon=1")
    epsilon = positive(settings["epsilon"], "epsilon")
    if epsilon > MOST_EPSILON:
        raise ValueError("epsilon is too large: at most 2^1000")
    relation = relation_of(settings.get("neighbours") or Neighbours.REPLACE_ONE)
    guess: Number | None = settings.get("n_max")
    if relation is Neighbours.REPLACE_ONE:
        if guess is not None:
            raise ValueError("n_max is for add-remove: under replace-one the number of parents is public")
        return epsilon, relation, None
    if guess is None:
        raise ValueError("n_max is missing: under add-remove give a public guess of the number of parents")
    return epsilon, relation, min(GUESS, whole(guess, "n_max"))
