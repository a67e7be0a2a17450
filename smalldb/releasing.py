"""The data's whole way: from a table to a synthetic table and its record."""

from dataclasses import dataclass
from typing import final

import numpy as np
import pandas as pd

from queries import DataError, Domain, QueryClass, Rows, Workload
from smalldb.counting.census import Census, count_candidates, rows_of, universe_of
from smalldb.counting.scores import Integers
from smalldb.exact import draw_level, uniform_below
from smalldb.planning import MAX_N, Neighbours, plan
from smalldb.randomness import BitSource, bit_source
from smalldb.recording import Record, make_record


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Confidential:
    """What the curator may look at and must not publish: computed from the data, on access.

    Attributes
    ----------
    census
        How many candidates stand at each score.
    drawn
        The small database that was drawn, as counts over the cells.
    level
        Its score.
    """

    census: Census
    drawn: Integers
    level: int
    _answers: Integers

    def __repr__(self) -> str:
        return "<Confidential: computed from the data>"

    @property
    def max_error(self) -> float:
        """The error of the release: max over the queries of |f(x) - f(y)|."""
        return float(self.census.error(self.level))

    @property
    def errors(self) -> "pd.Series[float]":
        """|f(x) - f(y)| of each query kept, by its label (0 where n = 0)."""
        workload, n, rows = self.census.workload, self.census.n, self.census.rows
        gaps = np.abs(rows * self._answers - n * (workload.matrix() @ self.drawn))
        errors = [float(self.census.error(gap)) for gap in gaps]
        return pd.Series(errors, index=list(workload.labels), dtype=float)


@final
class Release:
    """A synthetic table with its public record.

    Attributes
    ----------
    data
        The synthetic table. May be published.
    record
        What was done, guaranteed and provable. May be published.
    """

    __slots__ = ("__confidential", "data", "record")

    def __init__(self, data: pd.DataFrame, record: Record, confidential: Confidential | None = None) -> None:
        self.data = data
        self.record = record
        self.__confidential = confidential

    def __repr__(self) -> str:
        public = ("mechanism", "rows", "epsilon", "neighbours", "private")
        return f"<Release: {', '.join(f'{key} {self.record[key]}' for key in public)}>"

    def __reduce__(self) -> tuple[type["Release"], tuple[pd.DataFrame, Record]]:
        return Release, (self.data, self.record)  # what is private does not travel

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
    alpha: object = None,
    rows: int | None = None,
    domain: Domain | None = None,
    neighbours: str = "replace-one",
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
        The table: bool or 0/1 integer columns (no gaps, no floats), or already counted rows.
    queries
        What the synthetic table shall answer well: a query class such as ``Marginals(2)``, its text
        ("marginals:2"), or a workload; by default all cells of 1- and 2-way tables.
    epsilon
        The privacy parameter, exact: an int, Fraction, Decimal, text such as "1/2", or a float,
        which is read through its shortest decimal text.
    alpha, rows
        The size of the synthetic table: `rows`, or ``ceil(ln max(2, |Q|) / alpha^2)``. Neither: the
        rows of least provable error within a fixed budget (replace-one only).
    domain
        The public universe; by default every column is an attribute and every cell can exist.
    neighbours
        "replace-one": n is public. "add-remove": n is private, `rows` or `alpha` must be given.
    mechanism
        "auto" or "census", which is all that there is yet.
    candidates
        The base measure: "multisets" (Algorithm 4, the default), or "tuples": ordered rows, as in the
        encyclopaedia's account; the rows of the table then come in the order that was drawn.
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
    universe = universe_of(data, domain)
    n = (data.n if isinstance(data, Rows) else len(data)) if neighbours == "replace-one" else None
    if n == 0:
        raise ValueError("the table has no rows: nothing to release (under add-remove it may be empty)")
    planned = plan(
        universe,
        queries,
        n=n,
        epsilon=epsilon,
        alpha=alpha,
        rows=rows,
        neighbours=neighbours,
        mechanism=mechanism,
        candidates=candidates,
        beta=beta,
    )
    table = rows_of(data, universe)
    if table.n > MAX_N and planned.neighbours is Neighbours.ADD_REMOVE:
        raise DataError("the table has more than 2^40 rows")

    census = count_candidates(
        planned.workload,
        table,
        planned.rows,
        planned.candidates,
        planned.work.engine,
        keep_layers=True,
        progress=progress,
    )
    counts = dict(zip(census.levels.tolist(), census.counts, strict=True))
    level = draw_level(counts, planned.rate, source)
    drawn = census.candidate(level, uniform_below(counts[level], source))

    places = np.repeat(np.arange(len(drawn)), drawn)
    if planned.candidates == "tuples":
        places = arranged(places, source)
    synthetic = universe.decode(
        universe.table()[places], like=data if isinstance(data, pd.DataFrame) else None
    )
    confidential = Confidential(census, drawn, level, planned.workload.answers(table))
    return Release(synthetic, make_record(planned, private=source.private), confidential)


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
    alpha: object = None,
    rows: int | None = None,
    domain: Domain | None = None,
    neighbours: str = "replace-one",
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
        alpha=alpha,
        rows=rows,
        domain=domain,
        neighbours=neighbours,
        mechanism=mechanism,
        candidates=candidates,
        beta=beta,
        rng=rng,
        progress=progress,
    ).data
