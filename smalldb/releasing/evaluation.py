"""What a synthetic table answers beside the real one, exactly; for the curator."""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
import numpy.typing as npt
import pandas as pd

from queries import DataError, Domain, QueryClass, Rows, Workload
from queries.frames import as_frame, rows_of, universe_of
from smalldb.planning import workload_of

Floats = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Evaluation:
    """Every query's answer on two tables. Confidential: it is computed from the data.

    Attributes
    ----------
    workload
        The queries after reduction: of those with equal errors on all tables, one.
    real, synthetic
        The share of rows that satisfies each query (the mean of its values), exact.
    """

    workload: Workload
    real: tuple[Fraction, ...]
    synthetic: tuple[Fraction, ...]

    def __repr__(self) -> str:
        return "<Evaluation: computed from the data>"

    @property
    def errors(self) -> tuple[Fraction, ...]:
        """|f(x) - f(y)| of each query, exact."""
        return tuple(abs(a - b) for a, b in zip(self.real, self.synthetic, strict=True))

    @property
    def max_error(self) -> Fraction:
        """The largest error; 0 where there is no query."""
        return max(self.errors, default=Fraction(0))

    @property
    def mean_error(self) -> Fraction:
        """The mean of the errors; 0 where there is no query."""
        return sum(self.errors, Fraction(0)) / max(1, len(self.errors))

    def worst(self, count: int = 10) -> pd.DataFrame:
        """Return the queries of largest error, largest first, as floats: query, real, synthetic, error."""
        errors = self.errors
        order = sorted(range(len(errors)), key=lambda j: -errors[j])[:count]
        table = [
            (self.workload.labels[j], float(self.real[j]), float(self.synthetic[j]), float(errors[j]))
            for j in order
        ]
        return pd.DataFrame(table, columns=["query", "real", "synthetic", "error"])


def evaluate(
    real: pd.DataFrame | Rows,
    synthetic: pd.DataFrame | Rows,
    queries: QueryClass | Workload | str | None = None,
    *,
    domain: Domain | None = None,
) -> Evaluation:
    """Answer every query on a real and on a synthetic table, exactly.

    Parameters
    ----------
    real, synthetic
        Tables of bool or 0/1 integer columns, or counted rows of one domain. The number of rows may differ.
    queries
        A query class, its text, or a workload; by default all cells of 1- and 2-way tables.
    domain
        The universe; by default every column of `real` is an attribute and every cell can exist.

    Raises
    ------
    ValueError, TypeError
        An argument or column that cannot be taken.
    queries.DataError
        A table without rows or outside the universe.

    Examples
    --------
    >>> real, made = pd.DataFrame({"a": [0, 0, 1], "b": [0, 1, 1]}), pd.DataFrame({"a": [0, 1], "b": [1, 1]})
    >>> evaluate(real, made, "conjunctions:2").max_error
    Fraction(1, 3)
    """
    real, synthetic = (table if isinstance(table, Rows) else as_frame(table) for table in (real, synthetic))
    universe = universe_of(real, domain)
    if universe_of(synthetic, universe) != universe:
        raise ValueError("the two tables are over different domains")
    workload = workload_of(queries, universe)
    return Evaluation(
        workload, *(_answers(rows_of(table, universe), workload) for table in (real, synthetic))
    )


def joint_shares(rows: Rows) -> Floats:
    """Return the share of rows in which two attributes both hold, shape (d, d); the diagonal has one."""
    bits = rows.bits().astype(np.float64)
    joint: Floats = (bits * rows.counts[:, None]).T @ bits / rows.n
    return joint


def _answers(rows: Rows, workload: Workload) -> tuple[Fraction, ...]:
    if rows.n == 0:
        raise DataError("a table has no rows")
    scale = rows.n * workload.denominator
    return tuple(Fraction(total, scale) for total in workload.answers(rows).tolist())
