"""The data's whole way: from a table to a synthetic table and its record."""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
import pandas as pd

from queries import DataError, Domain, QueryClass, Rows, Workload
from queries.domain import Bits
from queries.frames import as_frame, rows_of, universe_of
from smalldb.answers import bound, measure, synthesise
from smalldb.counting.census import Census, count_candidates
from smalldb.counting.scores import Integers
from smalldb.exact.bits import BitSource, bit_source
from smalldb.exact.integers import uniform_below
from smalldb.exact.levels import draw_level
from smalldb.planning import MAX_N, Neighbours, Plan, plan
from smalldb.rejection import head_and_tail
from smalldb.rejection.clock import clock
from smalldb.releasing.evaluation import evaluate
from smalldb.releasing.record import Record, make_record


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Confidential:
    """What the curator may look at and must not publish: computed from the data, on access.

    Attributes
    ----------
    census
        How many candidates stand at each score; None for other mechanisms.
    trials
        Trials that rejection took; None for other mechanisms.
    """

    census: Census | None
    trials: int | None
    _workload: Workload
    _real: Rows
    _synthetic: Rows

    def __repr__(self) -> str:
        return "<Confidential: computed from the data>"

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
    """

    __slots__ = ("__confidential", "data", "plan", "record")

    def __init__(
        self, data: pd.DataFrame, record: Record, plan: Plan, confidential: Confidential | None = None
    ) -> None:
        self.data = data
        self.record = record
        self.plan = plan
        self.__confidential = confidential

    def __repr__(self) -> str:
        public = ("mechanism", "rows", "epsilon", "neighbours", "private")
        return f"<Release: {', '.join(f'{key} {self.record[key]}' for key in public)}>"

    def __reduce__(self) -> tuple[type["Release"], tuple[pd.DataFrame, Record, Plan]]:
        return Release, (self.data, self.record, self.plan)  # what is private does not travel

    def __getstate__(self) -> None:
        return None

    @property
    def confidential(self) -> Confidential:
        """Numbers computed from the data, for the curator's eyes only; not in pickles and copies."""
        if self.__confidential is None:
            raise ValueError("the confidential part stays with the original release: this one is a copy")
        return self.__confidential


def release(
    data: pd.DataFrame | Rows,
    queries: QueryClass | Workload | str | None = None,
    *,
    epsilon: object,
    delta: object = None,
    alpha: object = None,
    rows: int | None = None,
    domain: Domain | None = None,
    neighbours: str = "replace-one",
    n_max: int | None = None,
    mechanism: str = "auto",
    candidates: str | None = None,
    beta: object = "0.05",
    rng: int | BitSource | None = None,
    progress: bool = False,
) -> Release:
    """Release a synthetic table by the SmallDB mechanism, with its record.

    The exponential mechanism over all databases of a small public size, with utility
    -max_f |f(x) - f(y)| (Blum, Ligett, Roth 2008; Algorithm 4 of Ligett's lecture), drawn exactly.

    Parameters
    ----------
    data
        The table: bool or 0/1 integer columns (no gaps, no floats), of pandas or of a library whose tables
        have ``to_pandas()`` (Polars, Arrow); or already counted rows.
    queries
        What the synthetic table shall answer well: a query class such as ``Marginals(2)``, its text
        ("marginals:2"), or a workload; by default all cells of 1- and 2-way tables.
    epsilon
        The privacy parameter, exact: an int, Fraction, Decimal, text such as "1/2", or a float,
        which is read through its shortest decimal text.
    delta
        Exact, between 0 and 1: answers may get Gaussian noise, and the guarantee may be (epsilon, delta): the
        record says it. None: pure epsilon-differential privacy.
    alpha, rows
        The size of the synthetic table: `rows`, or ``ceil(ln max(2, |Q|) / alpha^2)``. Neither: the
        mechanism and rows of least public expected error (replace-one only).
    domain
        The public universe; by default every column is an attribute and every cell can exist.
    neighbours
        "replace-one": n is public. "add-remove": n is private, `rows` or `alpha` must be given.
    n_max
        Under add-remove, about how many rows there are at most, from public knowledge; only choices
        depend on it, and a larger table is not refused.
    mechanism
        "census" or "rejection": SmallDB, drawn exactly from counted candidates or by rejection.
        "answers": the exponential mechanism over answers, or Gaussian noise, and the nearest table to those.
        "auto": with the size given, SmallDB if it can be done, else answers; without, what `plan` expects to
        err least.
    candidates
        The base measure: "multisets" (Algorithm 4, the default of a census), or "tuples": ordered rows, as
        in the encyclopaedia's account (the default of rejection); the rows of the table then come in the
        order that was drawn. Answers have none.
    beta
        Failure probability of the bounds in the record.
    rng
        None: the operating system's entropy. An int is a seed, for experiments: the record then says
        that the release is not private. Or a `BitSource`.
    progress
        Show a bar over the candidates on stderr.

    Returns
    -------
    Release
        ``data`` (columns, order and dtypes of the input), ``record``, and ``confidential``.

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
    data = data if isinstance(data, Rows) else as_frame(data)
    universe = universe_of(data, domain)
    n = (data.n if isinstance(data, Rows) else len(data)) if neighbours == "replace-one" else None
    if n == 0:
        raise ValueError("the table has no rows: nothing to release (under add-remove it may be empty)")
    planned = plan(
        universe,
        queries,
        n=n,
        epsilon=epsilon,
        delta=delta,
        alpha=alpha,
        rows=rows,
        neighbours=neighbours,
        n_max=n_max,
        mechanism=mechanism,
        candidates=candidates,
        beta=beta,
    )
    table = rows_of(data, universe)
    check_size(table, planned.neighbours)

    made = _DRAW[planned.mechanism](planned, table, source, progress)
    synthetic = universe.decode(made.bits, like=data if isinstance(data, pd.DataFrame) else None)
    confidential = Confidential(
        made.census,
        made.trials,
        planned.workload,
        table,
        Rows.from_bits(universe, made.bits),
    )
    record = make_record(planned, private=source.private, bound=made.bound)
    return Release(synthetic, record, planned, confidential)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A synthetic table as 0/1, shape (m, d), and what else came with it."""

    bits: Bits
    census: Census | None = None
    trials: int | None = None
    bound: float | None = None


def _by_census(plan: Plan, table: Rows, source: BitSource, progress: bool) -> _Drawn:
    assert plan.work is not None and plan.candidates is not None
    census = count_candidates(
        plan.workload,
        table,
        plan.rows,
        plan.candidates,
        plan.work.engine,
        keep_layers=True,
        progress=progress,
    )
    counts = dict(zip(census.levels.tolist(), census.counts, strict=True))
    level = draw_level(counts, plan.rate, source)
    drawn = census.candidate(level, uniform_below(counts[level], source))
    places = np.repeat(np.arange(len(drawn)), drawn)
    if plan.candidates == "tuples":
        places = arranged(places, source)
    return _Drawn(plan.workload.domain.table()[places], census=census)


def _by_rejection(plan: Plan, table: Rows, source: BitSource, progress: bool) -> _Drawn:
    answers = plan.workload.answers(table)
    if plan.candidates == "multisets":
        head = head_and_tail.prepare(
            plan.workload, answers, table.n, plan.rows, plan.epsilon, progress=progress
        )
        counts, _ = head.draw(source)
        return _Drawn(plan.workload.domain.table()[np.repeat(np.arange(len(counts)), counts)])
    from smalldb.rejection.sampler import prepare

    with clock(progress) as tick:
        sampler = prepare(plan.workload, answers, table.n, plan.rows, plan.epsilon, tick)
        bits, _ = sampler.draw(source)
    return _Drawn(bits, trials=sampler.trials)


def _by_answers(plan: Plan, table: Rows, source: BitSource, progress: bool) -> _Drawn:
    assert plan.answers is not None
    measured = measure(plan.answers, table, source)
    bits = synthesise(plan.answers, measured, plan.rows, progress=progress)
    return _Drawn(bits, bound=bound(plan.answers, measured, bits, plan.beta))


_DRAW = {"census": _by_census, "rejection": _by_rejection, "answers": _by_answers}


def check_size(table: Rows, relation: Neighbours) -> None:
    """Refuse a table larger than any that a plan is made for where n is private: `queries.DataError`."""
    if table.n > MAX_N and relation is Neighbours.ADD_REMOVE:
        raise DataError("the table has more than 2^40 rows")


def arranged(places: Integers, source: BitSource) -> Integers:
    """Put rows in a uniformly drawn order, exactly (Fisher and Yates)."""
    order = places.copy()
    for last in range(len(order) - 1, 0, -1):
        other = uniform_below(last + 1, source)
        order[last], order[other] = order[other], order[last]
    return order


def generate(
    data: pd.DataFrame | Rows,
    queries: QueryClass | Workload | str | None = None,
    *,
    epsilon: object,
    delta: object = None,
    alpha: object = None,
    rows: int | None = None,
    domain: Domain | None = None,
    neighbours: str = "replace-one",
    n_max: int | None = None,
    mechanism: str = "auto",
    candidates: str | None = None,
    beta: object = "0.05",
    rng: int | BitSource | None = None,
    progress: bool = False,
) -> pd.DataFrame:
    """Release a synthetic table by the SmallDB mechanism: `release`, without its record.

    Takes the arguments of `release`.

    >>> frame = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 1, 1]})
    >>> generate(frame, epsilon=1, rows=3).columns.tolist()
    ['a', 'b']
    """
    return release(
        data,
        queries,
        epsilon=epsilon,
        delta=delta,
        alpha=alpha,
        rows=rows,
        domain=domain,
        neighbours=neighbours,
        n_max=n_max,
        mechanism=mechanism,
        candidates=candidates,
        beta=beta,
        rng=rng,
        progress=progress,
    ).data
