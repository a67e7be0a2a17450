"""The data's whole way: from a table to a synthetic table and its record."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, TypeAlias, Unpack, assert_never, overload

import numpy as np

from queries import DataError, Domain, QueryClass, Rows, Workload
from queries.expressions import suggestion
from queries.frames import as_frame, as_given, universe_of
from queries.late import pd
from smalldb.exact.bits import BitSource, bit_source
from smalldb.exact.integers import uniform_permutation
from smalldb.files.checkpoints import Folder
from smalldb.mechanisms import MAX_N, Journal, Neighbours, Running, relation_of
from smalldb.planning import Plan, Settings, plan
from smalldb.releasing.lasting import Going, drawn_by, running_of
from smalldb.releasing.learning import learn, shared
from smalldb.releasing.ledger import Ledger
from smalldb.releasing.memory import check_memory
from smalldb.releasing.record import make_record
from smalldb.releasing.released import Confidential, Release
from smalldb.schema import Schema
from smalldb.schema.arguments import SchemaLike, counted, open_or_none
from smalldb.schema.learned import OpenSchema

Table: TypeAlias = Any
"""A table of pandas, Polars or Arrow, or `queries.Rows`."""

EMPTY = "the table has no rows: nothing to release (under add-remove it may be empty)"


@overload
def release(
    plan: Plan,
    data: Table,
    /,
    *,
    schema: SchemaLike | None = None,
    middle: bool = False,
    rng: int | BitSource | None = None,
    seed: int | None = None,
    progress: bool = False,
    executor: Executor | None = None,
    checkpoint: Folder | None = None,
    ledger: Ledger | None = None,
) -> Release: ...


@overload
def release(
    data: Table,
    queries: QueryClass | Workload | str | None = None,
    *,
    domain: Domain | None = None,
    schema: SchemaLike | None = None,
    middle: bool = False,
    rng: int | BitSource | None = None,
    seed: int | None = None,
    progress: bool = False,
    executor: Executor | None = None,
    checkpoint: Folder | None = None,
    ledger: Ledger | None = None,
    **settings: Unpack[Settings],
) -> Release: ...


def release(
    data: Any,
    queries: Any = None,
    *,
    domain: Domain | None = None,
    schema: SchemaLike | None = None,
    middle: bool = False,
    rng: int | BitSource | None = None,
    seed: int | None = None,
    progress: bool = False,
    executor: Executor | None = None,
    checkpoint: Folder | None = None,
    ledger: Ledger | None = None,
    **settings: Any,
) -> Release:
    """Release a synthetic table, with its record.

    ``release(plan, data, seed=..., progress=...)`` carries out a plan that was made before; with a table in
    the first place, the plan is made by the way, from the settings and public numbers.

    SmallDB is the exponential mechanism over all databases of a small public size, with utility
    -max_f |f(x) - f(y)| (Blum, Ligett, Roth 2008; Algorithm 4 of Ligett's lecture), drawn exactly. Larger
    tables are made from noisy answers, or from noisy tables of columns.

    Parameters
    ----------
    data
        The table, of pandas or of a library whose tables have ``to_pandas()`` (Polars, Arrow); or already
        counted rows. Its columns hold what `schema` says: numbers, categories, dates, yes/no, gaps. With
        `domain` they hold labels, and with neither bool or 0/1 integers, without gaps.
    queries
        What the synthetic table shall answer well: a query class such as ``Marginals(2)``, its text
        ("marginals:2"), or a workload; by default the schema's, or all cells of 1- and 2-way tables.
    epsilon
        The privacy parameter, exact: an int, Fraction, Decimal, text such as "1/2", or a float,
        which is read through its shortest decimal text.
    delta
        Exact, between 0 and 1: answers and rounds may get Gaussian noise, and the guarantee may be
        (epsilon, delta): the record says it. None: pure epsilon-differential privacy.
    alpha, rows
        The size of the synthetic table: `rows`, or ``ceil(ln max(2, |Q|) / alpha^2)``. Neither: the
        mechanism and rows of least public expected error; under add-remove rounds, with `n_max`.
    domain
        The public universe; by default every column is a yes/no attribute and every cell can exist.
    schema
        In place of `domain`: a `smalldb.schema.Schema`, the path of its file, or its text. The synthetic
        table has the columns of the data again. Its rows are in random order, and a value is drawn from its
        bin, uniformly: both are post-processing. Columns with ``values = "learn"`` or ``cuts = "learn"``
        spend their share of epsilon first, to learn their places from the data.
    middle
        With a schema: whether each bin is its middle instead, and the rows stay in the mechanism's order.
    neighbours
        "replace-one": n is public. "add-remove": n is private; SmallDB needs `rows` or `alpha`, answers need
        these and `n_max`, rounds need `n_max`.
    n_max
        Under add-remove, about how many rows there are at most, from public knowledge; only choices
        depend on it, and a larger table is not refused.
    mechanism
        "census" or "rejection": SmallDB, drawn exactly from counted candidates or by rejection.
        "answers": the exponential mechanism over answers, or Gaussian noise, and the nearest table to those.
        "rounds": tables of columns selected, measured and modelled; rows are drawn from the model.
        "auto": with the size given, SmallDB if it can be done, else answers or rounds; without, what `plan`
        expects to err least.
    candidates
        The base measure: "multisets" (Algorithm 4, the default of a census), or "tuples": ordered rows, as
        in the encyclopaedia's account (the default of rejection); the rows of the table then come in the
        order that was drawn. Answers and rounds have none.
    certificate
        The share of the privacy budget that rounds spend on a bound for every query, measured or not: from 0,
        for none, to below 1. None: a twentieth.
    target
        The column that classifiers of the synthetic table will predict: rounds measure its tables with each
        other column of the workload first, and other mechanisms take no notice. None: no column comes first.
    beta
        Failure probability of the bounds in the record.
    rng
        None: the operating system's entropy. Or a `BitSource`. An int is a seed.
    seed
        For experiments: makes the release repeatable, and the record says that it is not private.
    progress
        Show a bar on stderr.
    executor
        Of rounds: any `concurrent.futures.Executor`, to count tables in pieces of the data: the same integers
        (`docs/scale.md`); by default threads. Its workers see the data.
    checkpoint
        A private folder of this release alone, in which each step is kept that was drawn. Killed and started
        again with the same data and arguments, the release goes on, nothing is drawn or paid twice, and the
        table is the same (`docs/decisions/0013-checkpoints.md`). The folder is the caller's to remove, once
        the release is stored: it is confidential.
    ledger
        The data's privacy budget, a `smalldb.releasing.ledger.Ledger`. It is paid from before the first draw.
        Without a checkpoint, a folder beside it takes that one's place until the release is returned.

    Returns
    -------
    Release
        ``data``, a table of the input's library (its columns in its order; without a schema, numbers that
        have cuts become the labels of their bins), ``record``, and ``confidential``.

    Raises
    ------
    ValueError, TypeError
        An argument or column that cannot be taken, or a size beyond the budget: decided from public
        values alone.
    queries.DataError
        The table is not of the declared universe; for the curator.

    Examples
    --------
    >>> frame = pd.DataFrame({"a": [0, 0, 1, 1], "b": [True, False, True, True]})
    >>> made = release(frame, "conjunctions:2", epsilon=1, rows=3, rng=7)
    >>> made.data.shape, list(made.data.dtypes.astype(str)), made.record["private"]
    ((3, 2), ['int64', 'bool'], False)
    """
    source = bit_source(rng, seed)
    how = {"progress": progress, "executor": executor, "checkpoint": checkpoint, "ledger": ledger}
    if not isinstance(data, Plan):
        _check(settings)
    wished = open_or_none(schema, domain)
    if isinstance(wished, OpenSchema):
        if isinstance(data, Plan):
            raise TypeError(
                "a plan cannot know places that are learned: release(data, schema=..., epsilon=...)"
            )
        return _learning(data, queries, wished, middle, source, how, settings)
    known = wished
    if middle and known is None:
        raise ValueError("middle is for tables with a schema: without one, a bin is its label")
    if isinstance(data, Plan):
        if domain is not None or settings:
            raise TypeError("a plan has its domain and settings: release(plan, data, seed=..., progress=...)")
        return _carry_out(data, queries, known, middle, source, how)
    table = _table(data)
    universe = universe_of(table, domain) if known is None else known.domain
    public = settings.get("neighbours", Neighbours.REPLACE_ONE) == Neighbours.REPLACE_ONE
    n = (table.n if isinstance(table, Rows) else len(table)) if public else None
    if n == 0:
        raise ValueError(EMPTY)
    if queries is None and known is not None:
        queries = known.queries
    return _carry_out(plan(universe, queries, n=n, **settings), data, known, middle, source, how)


def _check(settings: dict[str, Any]) -> None:
    """Refuse arguments that a plan does not have, and none for epsilon: TypeError."""
    known = Settings.__annotations__
    for name in settings:
        if name not in known:
            raise TypeError(f"unknown argument {name!r}{suggestion(name, known)}")
    if "epsilon" not in settings:
        raise TypeError("epsilon is missing: give the privacy parameter as an argument, such as epsilon=1")


def _learning(
    data: object,
    queries: Any,
    schema: OpenSchema,
    middle: bool,
    source: BitSource,
    how: dict[str, Any],
    settings: dict[str, Any],
) -> Release:
    """Learn the places that the schema asks for, then release with what is left of the privacy."""
    if isinstance(data, Rows):
        raise TypeError("places are learned from a table: give the table, not its counted rows")
    table, relation = as_frame(data), relation_of(settings.get("neighbours", Neighbours.REPLACE_ONE))
    n = len(table) if relation is Neighbours.REPLACE_ONE else None
    outline = schema.outline
    rows = outline.encode(table)
    check_size(rows, relation)  # what would be refused after learning is refused before
    queries = outline.queries if queries is None else queries
    costs, left = shared(schema, settings)
    if how["ledger"] is not None and left["delta"] is not None:
        raise ValueError("a ledger counts pure privacy: leave out delta")
    settings = settings | left

    def fits(found: Schema) -> Plan:
        made = plan(found.domain, queries, n=n, **settings)
        check_memory(made)
        return made

    # what can be refused without the data is refused here, and all of it is paid before anything is learned
    foreseen = replace(fits(outline), learned=costs)
    going, running = _going(foreseen, source, how, schema.text)
    with going.opened(source) as journal:
        going.bind(journal, rows)
        going.pay(journal)
        made, planned = learn(
            schema, outline.pieces(table), costs, neighbours=relation, source=journal, fits=fits
        )
        planned = replace(planned, learned=costs)
        rows = counted(table, None, made)
        going.bind(journal, rows)
        return carried_out(planned, data, rows, made, middle, journal, running)


def _going(plan: Plan, source: BitSource, how: dict[str, Any], asked: str = "") -> tuple[Going, Running]:
    """Say how a release is paid and how it runs; nothing of it depends on the data."""
    running = running_of(plan, how["progress"], how["executor"])
    ledger, checkpoint = how["ledger"], how["checkpoint"]
    going = Going(plan, private=source.private, ledger=ledger, checkpoint=checkpoint, asked=asked)
    return going, running


def _table(data: object) -> pd.DataFrame | Rows:
    return data if isinstance(data, Rows) else as_frame(data)


def _carry_out(
    plan: Plan, data: object, schema: Schema | None, middle: bool, source: BitSource, how: dict[str, Any]
) -> Release:
    """Release by a plan: the plan was made from public numbers, and here the data come in."""
    check_memory(plan)
    going, running = _going(plan, source, how)
    universe, table = plan.workload.domain, _table(data)
    if schema is not None and schema.domain != universe:
        raise ValueError("the plan was made for another schema")
    rows = counted(table, universe if schema is None else None, schema)
    check_size(rows, plan.neighbours)
    if plan.n not in (None, rows.n):
        raise ValueError("the plan was made for another n")
    with going.opened(source) as journal:
        going.bind(journal, rows)
        going.pay(journal)
        return carried_out(plan, data, rows, schema, middle, journal, running)


def carried_out(
    plan: Plan,
    data: object,
    rows: Rows,
    schema: Schema | None,
    middle: bool,
    journal: Journal,
    running: Running,
) -> Release:
    """Release by a plan that is paid and fits the rows; `data` is the table that the released one is like."""
    drawn = drawn_by(plan, rows, journal, running)
    universe, places, finishing = plan.workload.domain, drawn.places, journal.finishing()
    if schema is not None and not middle:
        places = places[uniform_permutation(len(places), finishing)]
    like = None if isinstance(data, Rows) else as_frame(data)
    synthetic: pd.DataFrame | None = None  # of rows without a schema: the release makes it when it is asked
    if schema is not None:
        synthetic = schema.decode(places, middle=middle, rng=finishing)
        if like is not None:
            synthetic = synthetic[[schema.names[i] for i in np.argsort(schema.chosen(list(like.columns)))]]
    elif like is not None:
        synthetic = universe.decode(places, like=like)
    given = None if synthetic is None else as_given(synthetic, data)
    confidential = Confidential(drawn.confidential, plan.workload, rows, Rows.from_bits(universe, places))
    record = make_record(plan, private=journal.source.private, drawn=drawn)
    return Release(given, record, plan, places, schema, confidential)


def check_size(table: Rows, relation: Neighbours) -> None:
    """Refuse a table without rows where n is public, and one larger than plans are made for where it is not.

    Raises
    ------
    ValueError
        No rows under replace-one.
    queries.DataError
        More than 2^40 rows under add-remove.
    """
    match relation:
        case Neighbours.REPLACE_ONE:
            if table.n == 0:
                raise ValueError(EMPTY)
        case Neighbours.ADD_REMOVE:
            if table.n > MAX_N:
                raise DataError("the table has more than 2^40 rows")
        case _:
            assert_never(relation)


def generate(
    data: Table,
    queries: QueryClass | Workload | str | None = None,
    *,
    domain: Domain | None = None,
    schema: SchemaLike | None = None,
    middle: bool = False,
    rng: int | BitSource | None = None,
    seed: int | None = None,
    progress: bool = False,
    **settings: Unpack[Settings],
) -> Any:
    """Release a synthetic table, of the library of the given one: `release`, without its record.

    Takes the arguments of `release`.

    >>> frame = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 1, 1]})
    >>> generate(frame, epsilon=1, rows=3).columns.tolist()
    ['a', 'b']
    """
    return release(
        data,
        queries,
        domain=domain,
        schema=schema,
        middle=middle,
        rng=rng,
        seed=seed,
        progress=progress,
        **settings,
    ).data
