"""The data's whole way: from a table to a synthetic table and its record."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any, TypeAlias, TypedDict, Unpack, overload

from queries import Domain, QueryClass, Workload
from queries.expressions import suggestion
from smalldb.exact.bits import BitSource, bit_source
from smalldb.files.checkpoints import Folder
from smalldb.planning import Plan, Settings
from smalldb.planning.related import links_of
from smalldb.releasing.budget_ledger import Ledger
from smalldb.releasing.pipeline import carry_out
from smalldb.releasing.released import Release
from smalldb.releasing.table_source import table_source
from smalldb.schema.mapping import finer_costs, measurable_columns
from smalldb.schema.reading import OpenSchema, SchemaLike, check_alone, read_any
from smalldb.schema.related_schema import RelatedSchema

Table: TypeAlias = Any
"""A table of pandas, Polars or Arrow, `queries.Rows`, or beside a schema a path; or two tables by names."""


class Drawing(TypedDict, total=False):
    """The keywords of `release` beside a plan."""

    schema: SchemaLike | None
    middle: bool
    rng: int | BitSource | None
    seed: int | None
    progress: bool
    executor: Executor | None
    checkpoint: Folder | None
    ledger: Ledger | None
    release_id: str


class Keywords(Settings, Drawing, total=False):
    """The keywords of `release` where it makes the plan."""

    domain: Domain | None


@overload
def release(plan: Plan, data: Table, /, **drawing: Unpack[Drawing]) -> Release: ...


@overload
def release(
    data: Table, queries: QueryClass | Workload | str | None = None, **settings: Unpack[Keywords]
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
    release_id: str = "",
    **settings: Any,
) -> Release:
    """Release a synthetic table, with its record; or two related tables.

    ``release(plan, data, seed=..., progress=...)`` carries out a plan that was made before; with a table in
    the first place, the plan is made by the way, from the settings and public numbers.

    SmallDB is the exponential mechanism over all databases of a small public size, with utility
    -max_f |f(x) - f(y)| (Blum, Ligett, Roth 2008; Algorithm 4 of Ligett's lecture), drawn exactly. Larger
    tables are made from noisy marginals: tables of columns, or contrasts of yes/no columns.

    With a mapping of two tables and a schema that has a `unit`, a table of parents and one of their children
    are released together, and a parent with all its children is protected (`docs/related-tables.md`).

    Parameters
    ----------
    data
        The table, of pandas or of a library whose tables have ``to_pandas()`` (Polars, Arrow); already
        counted rows; or, with `schema`, the path of a CSV, JSON lines or Parquet file. Its columns hold what
        `schema` says: numbers, categories, dates, yes/no, gaps. With `domain` they hold labels, and with
        neither bool or 0/1 integers, without gaps. Or two related tables by their names.
    queries
        What the synthetic table shall answer well: a query class such as ``Marginals(2)``, its text
        ("marginals:2"), or a workload; by default the schema's, or all cells of 1- and 2-way tables.
    domain
        The public universe; by default every column is a yes/no attribute and every cell can exist.
    schema
        In place of `domain`: a `smalldb.schema.Schema`, the path of its file, or its text. The synthetic
        table has the columns of the data again. Its rows are in random order, and a value is drawn from its
        bin, by the shape of all bins: both are post-processing. Columns with ``values = "learn"`` or
        ``cuts = "learn"`` spend their share of epsilon first, to learn their categories from the data.
    middle
        With a schema: whether each bin is its middle instead, and the rows stay in the mechanism's order.
    rng
        None: the operating system's entropy. Or a `BitSource`. An int is a seed.
    seed
        For experiments: makes the release repeatable, and the record says that it is not private.
    progress
        Show a bar on stderr.
    executor
        Of marginals: any `concurrent.futures.Executor`, to count tables in pieces of the data: the same
        integers (`docs/scale.md`); by default threads. Its workers see the data.
    checkpoint
        A private folder of this release alone, in which each step is kept that was drawn. Killed and started
        again with the same data and arguments, the release goes on, nothing is drawn or paid twice, and the
        table is the same (`docs/architecture.md`, decision 13). The folder is the caller's to remove, once
        the release is stored: it is confidential.
    ledger
        The data's privacy budget, a `smalldb.Ledger`. It is paid from before the first draw.
        Without a checkpoint, a folder beside it takes that one's place until the release is returned.
    release_id
        What the release is called in the ledger, such as "2026-11-28": letters, digits and ``. _ : + -``. It
        is paid once for each name. Give a checkpoint, too: from it a finished release is returned again.
    settings
        What `smalldb.plan` takes; where n is public, it is taken from the data:

        - ``epsilon``: the privacy parameter, exact: an int, Fraction, Decimal, text such as "1/2", or a
          float, which is read through its shortest decimal text;
        - ``delta``: exact, between 0 and 1: marginals may get Gaussian noise, and the guarantee may be
          (epsilon, delta): the record says it. None: pure epsilon-differential privacy;
        - ``alpha``, ``rows``, ``neighbours``, ``n_max``, ``mechanism``, ``strategy``, ``candidates``,
          ``certificate``, ``target``, ``measure_first``, ``beta``, ``rows_per_person``, ``calibrated``: what
          is asked for besides.

    Returns
    -------
    Release
        ``data``, a table of the input's library (its columns in its order; without a schema, numbers that
        have cuts become the labels of their bins), or several by their names, ``record``, and
        ``confidential``.

    Raises
    ------
    ValueError, TypeError
        An argument or column that cannot be taken, or a size beyond the budget: decided from public
        values alone.
    queries.DataError
        The table is not of the declared universe; for the curator.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [0, 0, 1, 1], "b": [True, False, True, True]})
    >>> made = release(frame, "conjunctions:2", epsilon=1, rows=3, rng=7)
    >>> made.data.shape, list(made.data.dtypes.astype(str)), made.record["private"]
    ((3, 2), ['int64', 'bool'], False)
    """
    how: dict[str, Any] = {"middle": middle, "bits": bit_source(rng, seed), "progress": progress}
    how |= {"executor": executor, "checkpoint": checkpoint, "ledger": ledger, "release_id": release_id}
    if not isinstance(data, Plan):
        _check(settings)
    check_alone(schema, domain)
    known = None if schema is None else read_any(schema)
    if middle and known is None:
        raise ValueError("middle is for tables with a schema: without one, a bin is its label")
    if not isinstance(data, Plan):
        return carry_out(table_source(data, domain, known), queries, settings, **how)
    if isinstance(known, OpenSchema):
        raise TypeError(
            "a plan cannot know categories that are learned: release(data, schema=..., epsilon=...)"
        )
    if domain is not None or settings:
        raise TypeError("a plan has its domain and settings: release(plan, data, seed=..., progress=...)")
    universe, links, finer = data.workload.domain, None, tuple[Any, ...]()
    unlike = known is not None and known.domain != universe
    if isinstance(known, RelatedSchema):
        links = links_of(known)
    elif known is not None:
        finer = finer_costs(known.columns, data.epsilon / data.rows_per_person)
        columns = set() if data.means is None else {*data.means.columns}
        unlike = unlike or not columns <= {*measurable_columns(known.columns)}
    if unlike or (links, finer) != (data.request.links, data.finer):
        raise ValueError("the plan was made for another schema")
    return carry_out(table_source(queries, universe if known is None else None, known), ready=data, **how)


def _check(settings: dict[str, Any]) -> None:
    """Refuse arguments that a plan does not have, and none for epsilon: TypeError."""
    known = Settings.__annotations__
    for name in settings:
        if name not in known:
            raise TypeError(f"unknown argument {name!r}{suggestion(name, known)}")
    if "epsilon" not in settings:
        raise TypeError("epsilon is missing: give the privacy parameter as an argument, such as epsilon=1")


def generate(
    data: Table, queries: QueryClass | Workload | str | None = None, **settings: Unpack[Keywords]
) -> Any:
    """Release a synthetic table, of the library of the given one: `release`, without its record.

    Parameters
    ----------
    data, queries, settings
        As `release`.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 1, 1]})
    >>> generate(frame, epsilon=1, rows=3).columns.tolist()
    ['a', 'b']
    """
    return release(data, queries, **settings).data
