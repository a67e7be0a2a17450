"""A release of one table, or of related ones, from its source to its end: `carry_out` has the steps."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np

from queries import DataError, Domain, QueryClass, Rows, Workload
from queries.encoding import merge, pack_codes
from queries.frames import in_library_of
from smalldb.exact.bits import BitSource
from smalldb.exact.integers import uniform_permutation
from smalldb.files.checkpoints import Folder, check_running
from smalldb.files.inputs import progress_bar
from smalldb.marginals.counts import InMemory
from smalldb.marginals.curator import SHOWN, Curator, PrivacyFilter, Progress
from smalldb.marginals.families import Families, release_families
from smalldb.marginals.walks import MOST_PARENTS, Walks
from smalldb.mechanisms import MAX_N, Drawn, Journal, Measurements, Neighbours, Resumable, relation_of
from smalldb.mechanisms.measurement_list import released_total
from smalldb.mechanisms.recorded_universe import schema_ranges
from smalldb.planning import Plan, plan
from smalldb.planning.arguments import agreed_rows
from smalldb.planning.starting import with_start
from smalldb.releasing.budget_ledger import Ledger
from smalldb.releasing.learned_categories import (
    Histograms,
    LearnedCategories,
    OffsetSums,
    digests,
    finer_asks,
    finer_variances,
    gather,
    gather_finer,
    learn,
    means_ask,
    no_offsets,
    shared,
)
from smalldb.releasing.ledger_account import Account
from smalldb.releasing.memory import check_memory
from smalldb.releasing.record import make_record, with_measurements, with_tables
from smalldb.releasing.record_keys import Record
from smalldb.releasing.rehearsing_draws import rehearse_draw
from smalldb.releasing.released import Confidential, Release
from smalldb.releasing.table_source import LinkedSource, Source, with_measured_means
from smalldb.releasing.transaction import Transaction, begun_beside, request_of
from smalldb.schema import Schema
from smalldb.schema.fields import Piece
from smalldb.schema.linked_rows import Linked
from smalldb.schema.reading import Learned
from smalldb.schema.related_schema import RelatedSchema

EMPTY = "the table has no rows: nothing to release (under add-remove it may be empty)"


class EmptyReleaseWarning(UserWarning):
    """Nothing useful is expected of a release, which will be paid all the same: `Plan.nothing_expected`."""


class Destination:
    """Where a release goes, for as long as it is entered; this one: to the caller, who needs no file."""

    def __enter__(self) -> Destination:
        return self

    def __exit__(self, *error: Any) -> None:
        """Bring what was written to its place, or remove it after an error."""

    def rehearse(self, source: Any) -> None:
        """Prove that whatever a release of a source can hold can be written; nothing depends on the data."""

    def spend_on_nothing(self, why: str) -> None:
        """Warn before anything is paid that nothing useful is expected; others ask, or refuse: ValueError."""
        warnings.warn(f"nothing useful is expected: {why}", EmptyReleaseWarning, stacklevel=5)

    def reserve(self, plan: Any) -> None:
        """Take the room that the release will need."""

    def begun(self, before: bool) -> None:
        """Take note whether an earlier run began this release; if not, no output may stand already."""

    def paid(self, account: Account, before: bool) -> None:
        """Take note of the account after the payment, and whether an earlier run had paid."""

    def write(self, release: Any) -> None:
        """Write the release; what follows is its end."""

    def standing(self) -> str:
        """Return a digest of what was written, as it stands now: of a named release, for the ledger."""
        return "returned"


def carry_out(
    source: Source | LinkedSource,
    queries: QueryClass | Workload | str | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    ready: Plan | None = None,
    middle: bool = False,
    bits: BitSource,
    progress: bool = False,
    executor: Executor | None = None,
    checkpoint: Folder | None = None,
    ledger: Ledger | Callable[[Record], Ledger] | None = None,
    release_id: str = "",
    unseen: bool = False,
    destination: Destination | None = None,
) -> Release:
    """Release what is like a source: check, read, bind, make room, pay, draw, write, forget."""
    destination, settings = destination or Destination(), settings or {}
    stated = None if source.schema is None else source.schema.rows_per_person
    if ready is None:
        settings = {**settings, "rows_per_person": agreed_rows(settings.get("rows_per_person"), stated)}
    elif stated not in (None, ready.rows_per_person):
        raise ValueError("the plan was made for another rows_per_person than the schema says")
    costs: tuple[Learned, ...] = ()
    learns, texts = source.learns, dict[str, Counter[str]]()
    if learns is not None:
        costs, left = shared(learns, settings)
        settings = {**settings, **left}
        if ledger is not None and left["delta"] is not None:
            raise ValueError("a ledger counts pure privacy of learned categories: leave out delta")
        if settings.get("start") is not None:
            raise ValueError("a start needs all categories: write out those that the schema learns")
    settings = with_start(settings, source.described, source.origin)
    queries = source.queries if queries is None else queries
    if settings.get("measure_first") is None:
        settings = {**settings, "measure_first": source.measure_first}
    if not source.has_values:  # of which nothing is known but their bins
        settings = {**settings, "means": 0}
        ready = replace(ready, means=None) if ready and ready.means else ready

    def planned(
        described: Schema | RelatedSchema | Domain, n: int | None, queries: QueryClass | Workload | str | None
    ) -> Plan:
        domain = described if isinstance(described, Domain) else None
        schema = None if isinstance(described, Domain) else described
        full_plan = ready or replace(plan(domain, queries, schema=schema, n=n, **settings), learned=costs)
        if full_plan.n != n:
            raise ValueError("the plan was made for another n")
        check_memory(full_plan)
        return full_plan

    def consider(full_plan: Plan) -> None:
        if full_plan.nothing_expected is not None:
            destination.spend_on_nothing(full_plan.nothing_expected)

    relation = ready.neighbours if ready else relation_of(settings.get("neighbours", Neighbours.REPLACE_ONE))
    public = relation is Neighbours.REPLACE_ONE
    # the transaction ends last: from what it keeps the release can go on until all of it is in its place
    with ExitStack() as kept, destination:
        # Whatever can be refused without the data is refused before they are read: it shows nothing of them,
        # and costs nothing. Where n is public, and not known before a file is read, that of an earlier
        # release of the data stands for it, or 1.
        check_running(executor, checkpoint)
        if public and source.n == 0:
            raise ValueError(EMPTY)
        n_or_placeholder = ready.n if ready else source.n or getattr(settings.get("refine"), "n", None) or 1
        foreseen = planned(source.described, n_or_placeholder if public else None, queries)
        known = not public or ready is not None or source.n is not None
        if known:
            consider(foreseen)
        destination.rehearse(source)
        if ledger is not None:
            if not bits.private:
                raise ValueError(
                    "a ledger is for private releases: what a seed makes is not private at any epsilon"
                )
            record = make_record(foreseen, private=True)
            if not isinstance(ledger, Ledger):
                if not callable(ledger):
                    raise TypeError("ledger: give a smalldb.Ledger(path, budget), not a path")
                ledger = ledger(record)
            if checkpoint is None and not begun_beside(ledger.path):  # else it may be paid already
                ledger.read().after(record, name=release_id)
        elif release_id:
            raise ValueError("release_id names a release in a ledger: give one")

        # What the data can be refused for is refused before the payment, too: who reads them all knows that
        # each row can be decoded. Categories are learned from texts that are counted on this same way.
        histograms: Histograms = {}
        offsets: OffsetSums = {}

        def watched(pieces: Iterator[Piece]) -> Iterator[Piece]:
            if isinstance(source.schema, Schema) and source.has_values:
                measured = foreseen.means is not None or (not known and settings.get("means") != 0)
                if source.learns is None and measured:
                    offsets.update(no_offsets(source.schema))
                pieces = gather_finer(source.schema, source.counts, histograms, pieces, offsets)
            return pieces if source.learns is None else gather(source.learns, texts, pieces)

        rows = source.read(progress, watched)
        check_size(rows, relation)
        if public and foreseen.n != rows.n:
            foreseen = planned(source.described, rows.n, foreseen.workload)
        if not known:
            consider(foreseen)
        destination.reserve(foreseen)
        if executor is not None and not isinstance(foreseen.chosen, Resumable):
            raise ValueError(f"executor is for marginals: {foreseen.mechanism} takes none; leave it out")

        # The release is bound to its data before it is paid, and paid before the first draw: a run that was
        # killed goes on with the same data alone, and with the one payment.
        transaction = Transaction(
            make_record(foreseen, private=bits.private),
            request_of(foreseen, "" if learns is None else learns.text),
            foreseen.chosen.public if isinstance(foreseen.chosen, Resumable) else (),
            checkpoint=checkpoint,
            ledger=ledger,
            name=release_id,
            outputs=destination.standing,
        )
        if ledger is not None:
            rehearse_draw(foreseen, source.schema)
            if learns is not None and foreseen.strategy not in (None, "adaptive"):
                rehearse_draw(foreseen, source.schema, "adaptive")
        journal = kept.enter_context(transaction.opened(bits))
        destination.begun(journal.begun)
        counted = [*histograms.values(), *offsets.values()]
        contents = (rows.words, rows.counts) if isinstance(rows, Rows) else rows.digest()
        transaction.bind(journal, *contents, *counted, *digests(texts))
        if (paid := transaction.pay(journal)) is not None:
            destination.paid(*paid)
        budget = foreseen.budget()
        if learns is not None and isinstance(source, Source):
            assert isinstance(rows, Rows)
            ask = LearnedCategories(learns, costs, relation)
            learned = Curator(InMemory(rows, texts=texts), journal, budget).answer(ask)
            schema, foreseen = learn(learns, learned, lambda complete: planned(complete, foreseen.n, queries))
            budget = replace(foreseen.budget(), spent=budget.spent)
            source = replace(source, domain=schema.domain, schema=schema, learns=None)
            texts.clear()
            histograms.clear()
            first, rows = rows, source.read(progress, watched)
            if not alike(first, rows, {to_learn.column for to_learn in learns.to_learn}):
                raise DataError("the table changed while it was read: start again with the one it was")
            transaction.bind(journal, rows.words, rows.counts, *histograms.values(), *offsets.values())

        # From here on nothing is refused for the data: what was paid is released.
        with progress_bar(progress, unit=" parts", total=SHOWN) as bar:

            def shown(done: int, most: int) -> None:
                bar.update(done - bar.n)

            if isinstance(source, Source):
                assert isinstance(rows, Rows)
                asks = {} if source.schema is None else finer_asks(foreseen, source.schema)
                data = InMemory(rows, executor, finer=histograms, offsets=offsets)
                curator = Curator(data, journal, budget, shown)
                finer = {name: curator.answer(each).tolist() for name, each in asks.items()} or None
                if finer is not None:
                    source = source.with_finer(finer, finer_variances(foreseen))
                release = carried_out(foreseen, source, rows, middle, curator, progress, finer)
            else:
                assert not isinstance(rows, Rows)
                families = Families(rows.parents, rows.children, rows.of)
                release = related(foreseen, source, families, middle, journal, budget, shown, executor)
        if transaction.line is not None:
            release.record["ledger"] = transaction.line
        if unseen:
            release.record["schema_unseen"] = True
        destination.write(release)
    return release


def carried_out(
    plan: Plan,
    source: Source,
    rows: Rows,
    middle: bool,
    curator: Curator,
    progress: bool,
    finer: Mapping[str, Sequence[int]] | None = None,
) -> Release:
    """Release by a plan that is paid and fits the rows; the synthetic table is like that of the source."""
    drawn = curator.run(plan.chosen, progress)
    if plan.means is not None and source.schema is not None:
        curator.answer(means_ask(plan, source.schema))
        total = released_total(curator.measurements) if plan.n is None else plan.n
        source = replace(source, schema=with_measured_means(source.schema, curator.measurements, total))
    schema, domain, codes = source.schema, source.domain, drawn.codes
    finishing = curator.journal.postprocessing_bits()
    if schema is not None:
        if not middle:
            codes = codes[uniform_permutation(len(codes), finishing)]
        synthetic = schema.decode(codes, middle=middle, rng=finishing)[[*source.names]]
    elif isinstance(source.table, str | Rows):
        synthetic = None  # of yes/no columns: the release makes it when it is asked
    else:
        synthetic = domain.decode(codes, like=source.table)
    confidential = Confidential(drawn.confidential, plan.workload, rows, Rows.from_codes(domain, codes))
    ranges = None if schema is None else schema_ranges(schema)
    earlier = () if plan.request.earlier is None else plan.request.earlier.measurements
    measurements = Measurements(domain, [*earlier, *curator.measurements], plan.n, ranges)
    record = make_record(
        plan, private=curator.journal.source.private, drawn=drawn, ranges=ranges, finer=finer
    )
    record = with_measurements(record, plan, measurements, Rows.from_codes(domain, codes))
    table = None if synthetic is None else in_library_of(synthetic, source.original)
    return Release(table, record, plan, codes, schema, confidential, measurements)


def related(
    plan: Plan,
    source: LinkedSource,
    families: Families,
    middle: bool,
    journal: Journal,
    budget: PrivacyFilter,
    progress: Progress,
    executor: Executor | None,
) -> Release:
    """Release related tables by a plan that is paid and fits them."""
    assert isinstance(plan.chosen, Walks)
    drawn = release_families(plan.chosen, families, journal, budget, executor, progress)
    parents, schema = drawn.parents.codes, source.schema
    record = make_record(plan, private=journal.source.private, drawn=Drawn(parents))
    record = with_tables(record, plan.chosen, schema, drawn)
    bits = journal.postprocessing_bits()
    data = source.written(parents[:, :-1].astype(np.int64), drawn.children, drawn.of, middle, bits)
    codes = {schema.unit: parents, schema.child: np.column_stack([parents[drawn.of], drawn.children])}
    return Release(data, record, plan, codes, schema, None, Measurements.of_tables(record), drawn.of)


def alike(one: Rows, other: Rows, learned: Collection[str]) -> bool:
    """Tell whether two readings are of one table: as many rows, and alike in what is not learned."""
    kept = [c for c, name in enumerate(one.domain.names) if name not in learned]
    sizes = [one.domain.sizes[c] for c in kept]
    if one.n != other.n or not kept:
        return one.n == other.n
    first, second = (merge(pack_codes(rows.codes()[:, kept], sizes), rows.counts) for rows in (one, other))
    return all(map(np.array_equal, first, second))


def check_size(table: Rows | Linked, relation: Neighbours) -> None:
    """Refuse a table without rows where n is public, and one that is too large where it is not."""
    if not isinstance(table, Rows) and table.n > MOST_PARENTS:
        raise DataError("the table of parents has more than 2^32 rows")
    if relation is Neighbours.REPLACE_ONE and table.n == 0:
        raise ValueError(EMPTY)
    if relation is Neighbours.ADD_REMOVE and table.n > MAX_N:
        raise DataError("the table has more than 2^40 rows")
