"""The data's whole way: from a table to a synthetic table and its record."""

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Unpack, assert_never, final, overload

import pandas as pd

from queries import DataError, Domain, QueryClass, Rows, Workload
from queries.domain import Bits
from queries.frames import as_frame, rows_of, universe_of
from smalldb.counting import Census
from smalldb.exact.bits import BitSource, bit_source
from smalldb.files.checkpoints import Folder
from smalldb.mechanisms import MAX_N, Lasting, Neighbours
from smalldb.planning import Plan, Settings, plan
from smalldb.releasing.evaluation import evaluate
from smalldb.releasing.lasting import running_of
from smalldb.releasing.ledger import Ledger
from smalldb.releasing.record import Record, make_record

EMPTY = "the table has no rows: nothing to release (under add-remove it may be empty)"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Confidential:
    """What the curator may look at and must not publish: computed from the data, on access.

    Attributes
    ----------
    parts
        What the mechanism tells, by name.
    """

    parts: Mapping[str, Any]
    _workload: Workload
    _real: Rows
    _synthetic: Rows

    def __repr__(self) -> str:
        return "<Confidential: computed from the data>"

    @property
    def census(self) -> Census | None:
        """How many candidates stand at each score; None for other mechanisms."""
        return self.parts.get("census")

    @property
    def trials(self) -> int | None:
        """Trials that rejection took; None for other mechanisms."""
        return self.parts.get("trials")

    @property
    def max_error(self) -> float:
        """The error of the release: max over the queries of |f(x) - f(y)|."""
        return float(max(self._errors(), default=Fraction(0)))

    @property
    def errors(self) -> "pd.Series[float]":
        """|f(x) - f(y)| of each query kept, by its label (0 where n = 0)."""
        return pd.Series(list(map(float, self._errors())), index=list(self._workload.labels), dtype=float)

    def _errors(self) -> tuple[Fraction, ...]:
        if self._real.n == 0:  # such a table answers nothing
            return (Fraction(0),) * self._workload.size
        return evaluate(self._real, self._synthetic, self._workload).errors


@final
class Release:
    """A synthetic table with its public record.

    Attributes
    ----------
    data
        The synthetic table. May be published.
    record
        What was done, guaranteed and provable. May be published.
    plan
        What was decided before the data were read, from public numbers alone.
    places
        The rows of `data` as places of the universe's columns, shape (m, C).
    """

    __slots__ = ("__confidential", "data", "places", "plan", "record")

    def __init__(
        self,
        data: pd.DataFrame,
        record: Record,
        plan: Plan,
        places: Bits,
        confidential: Confidential | None = None,
    ) -> None:
        self.data = data
        self.record = record
        self.plan = plan
        self.places = places
        self.__confidential = confidential

    def __repr__(self) -> str:
        public = ("mechanism", "rows", "epsilon", "neighbours", "private")
        return (
            f"<Release: {', '.join(f'{key} {value}' for key, value in self.record.items() if key in public)}>"
        )

    def __reduce__(self) -> tuple[type["Release"], tuple[pd.DataFrame, Record, Plan, Bits]]:
        return Release, (self.data, self.record, self.plan, self.places)  # what is private does not travel

    def __getstate__(self) -> None:
        return None

    @property
    def rows(self) -> Rows:
        """The synthetic table as counted rows."""
        return Rows.from_bits(self.plan.workload.domain, self.places)

    @property
    def confidential(self) -> Confidential:
        """Numbers computed from the data, for the curator's eyes only; not in pickles and copies."""
        if self.__confidential is None:
            raise ValueError("the confidential part stays with the original release: this one is a copy")
        return self.__confidential


@overload
def release(
    plan: Plan,
    data: pd.DataFrame | Rows,
    /,
    *,
    rng: int | BitSource | None = None,
    progress: bool = False,
    executor: Executor | None = None,
    checkpoint: Folder | None = None,
    ledger: Ledger | None = None,
) -> Release: ...


@overload
def release(
    data: pd.DataFrame | Rows,
    queries: QueryClass | Workload | str | None = None,
    *,
    domain: Domain | None = None,
    rng: int | BitSource | None = None,
    progress: bool = False,
    executor: Executor | None = None,
    checkpoint: Folder | None = None,
    ledger: Ledger | None = None,
    **settings: Unpack[Settings],
) -> Release: ...


def release(
    data: pd.DataFrame | Rows | Plan,
    queries: Any = None,
    *,
    domain: Domain | None = None,
    rng: int | BitSource | None = None,
    progress: bool = False,
    executor: Executor | None = None,
    checkpoint: Folder | None = None,
    ledger: Ledger | None = None,
    **settings: Any,
) -> Release:
    """Release a synthetic table, with its record.

    ``release(plan, data, rng=..., progress=...)`` carries out a plan that was made before; with a table in
    the first place, the plan is made by the way, from the settings and public numbers.

    SmallDB is the exponential mechanism over all databases of a small public size, with utility
    -max_f |f(x) - f(y)| (Blum, Ligett, Roth 2008; Algorithm 4 of Ligett's lecture), drawn exactly. Larger
    tables are made from noisy answers, or from noisy tables of columns.

    Parameters
    ----------
    data
        The table, without gaps, of pandas or of a library whose tables have ``to_pandas()`` (Polars, Arrow);
        or already counted rows. Without `domain` its columns are bool or 0/1 integers; with `domain` they
        hold what that says. Gaps and dates take a schema, whose ``encode`` counts the rows.
    queries
        What the synthetic table shall answer well: a query class such as ``Marginals(2)``, its text
        ("marginals:2"), or a workload; by default all cells of 1- and 2-way tables.
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
    beta
        Failure probability of the bounds in the record.
    rng
        None: the operating system's entropy. An int is a seed, for experiments: the record then says
        that the release is not private. Or a `BitSource`.
    progress
        Show a bar on stderr.
    executor
        Of rounds: any `concurrent.futures.Executor`, to count tables in pieces of the data: the same integers
        (`docs/scale.md`); by default threads. Its workers see the data.
    checkpoint
        Of rounds: a private folder of this release alone, in which released integers are kept. Killed and
        started again with the same data and arguments, the release goes on, and nothing is drawn twice
        (`docs/decisions/0013-checkpoints.md`). The folder is the caller's to remove.
    ledger
        The data's privacy budget, a `smalldb.releasing.ledger.Ledger`. It is paid from before the first draw,
        and not again where a checkpoint goes on.

    Returns
    -------
    Release
        ``data`` (columns, order and dtypes of the input; numbers that have cuts become the labels of their
        bins), ``record``, and ``confidential``.

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
    source = bit_source(rng)
    if isinstance(data, Plan):
        if domain is not None or settings:
            raise TypeError("a plan has its domain and settings: release(plan, data, rng=..., progress=...)")
        return _carry_out(data, _table(queries), source, progress, executor, checkpoint, ledger)
    table = _table(data)
    universe = universe_of(table, domain)
    public = settings.get("neighbours", Neighbours.REPLACE_ONE) == Neighbours.REPLACE_ONE
    n = (table.n if isinstance(table, Rows) else len(table)) if public else None
    if n == 0:
        raise ValueError(EMPTY)
    planned = plan(universe, queries, n=n, **settings)
    return _carry_out(planned, table, source, progress, executor, checkpoint, ledger)


def _table(data: object) -> pd.DataFrame | Rows:
    return data if isinstance(data, Rows) else as_frame(data)


def _carry_out(
    plan: Plan,
    data: pd.DataFrame | Rows,
    source: BitSource,
    progress: bool,
    executor: Executor | None,
    checkpoint: Folder | None,
    ledger: Ledger | None,
) -> Release:
    """Release by a plan: the plan was made from public numbers, and here the data come in."""
    running = running_of(
        plan,
        private=source.private,
        progress=progress,
        executor=executor,
        checkpoint=checkpoint,
        ledger=ledger,
    )
    universe = universe_of(data, plan.workload.domain)
    table = rows_of(data, universe)
    check_size(table, plan.neighbours)
    if plan.n not in (None, table.n):
        raise ValueError("the plan was made for another n")
    if isinstance(plan.chosen, Lasting):
        drawn = plan.chosen.draw_lasting(table, source, running)
    else:
        if running.payment is not None:
            running.payment.made()
        drawn = plan.chosen.draw(table, source, progress)
    synthetic = universe.decode(drawn.places, like=data if isinstance(data, pd.DataFrame) else None)
    made = Rows.from_bits(universe, drawn.places)
    confidential = Confidential(drawn.confidential, plan.workload, table, made)
    record = make_record(plan, private=source.private, drawn=drawn)
    return Release(synthetic, record, plan, drawn.places, confidential)


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
    data: pd.DataFrame | Rows,
    queries: QueryClass | Workload | str | None = None,
    *,
    domain: Domain | None = None,
    rng: int | BitSource | None = None,
    progress: bool = False,
    **settings: Unpack[Settings],
) -> pd.DataFrame:
    """Release a synthetic table: `release`, without its record.

    Takes the arguments of `release`.

    >>> frame = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 1, 1]})
    >>> generate(frame, epsilon=1, rows=3).columns.tolist()
    ['a', 'b']
    """
    return release(data, queries, domain=domain, rng=rng, progress=progress, **settings).data
