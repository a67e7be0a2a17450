"""What a synthetic table answers beside the real one, exactly; for the curator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias, final, overload

import numpy as np

from queries import DataError, Domain, QueryClass, Rows, Workload
from queries.arrays import Integers, pd
from queries.frames import as_frame
from smalldb.exact.numbers import Number, positive
from smalldb.marginals.families import Families
from smalldb.mechanisms import Neighbours, column_named, relation_of
from smalldb.planning import workload_of
from smalldb.releasing.distances import (
    Distances,
    baselines,
    check_classifying,
    distances,
    feasible,
    overview,
    summary,
)
from smalldb.schema import Schema
from smalldb.schema.fields import Piece, occurrences
from smalldb.schema.kinds.kind import Comparable
from smalldb.schema.linked_rows import Linked, check_tables, read_linked
from smalldb.schema.reading import SchemaLike, check_alone, counted, read_any, read_schema
from smalldb.schema.related_schema import RelatedSchema
from smalldb.showing import drawn, in_notebook

SYNTHETIC = "synthetic"
QUANTILES = {
    "quantile .05": 0.05,
    "quartile": 0.25,
    "median": 0.5,
    "upper quartile": 0.75,
    "quantile .95": 0.95,
}
NumberCounts: TypeAlias = dict[str, Counter[float]]
"""By column of numbers, how often each number occurs. Private, where it is of the data."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Every query's answer on two tables. Confidential: it is computed from the data.

    Attributes
    ----------
    workload
        The queries after reduction: of those with equal errors on all tables, one.
    real_rows, synthetic_rows
        The two tables, at least one row each.
    real_sums, synthetic_sums
        The common denominator D of the queries times the sum of each over the rows: shape (size,).
    numbers
        Means, standard deviations and quantiles of the number columns of a schema, in both tables: columns
        `column`, `measure`, `real` and `synthetic`. None: the tables were counted rows, or have no schema.
    """

    workload: Workload
    real_rows: Rows
    synthetic_rows: Rows
    real_sums: Integers
    synthetic_sums: Integers
    numbers: pd.DataFrame | None = None

    def __repr__(self) -> str:
        return "<Evaluation: computed from the data>"

    def _repr_html_(self) -> str:
        return in_notebook(self)

    def plot(self) -> Any:
        """Draw the shares of both tables and how far pairs are off: confidential. Extra ``plot``."""
        return drawn(self)

    @property
    def real(self) -> tuple[Fraction, ...]:
        """The share of real rows that satisfies each query (the mean of its values), exact."""
        return self._shares(self.real_sums, self.real_rows)

    @property
    def synthetic(self) -> tuple[Fraction, ...]:
        """The share of synthetic rows that satisfies each query, exact."""
        return self._shares(self.synthetic_sums, self.synthetic_rows)

    @property
    def errors(self) -> tuple[Fraction, ...]:
        """|f(x) - f(y)| of each query, exact."""
        return tuple(Fraction(gap, self._scale) for gap in self._gaps.tolist())

    @property
    def max_error(self) -> Fraction:
        """The largest error; 0 where there is no query."""
        return Fraction(int(self._gaps.max(initial=0)), self._scale)

    @property
    def mean_error(self) -> Fraction:
        """The mean of the errors; 0 where there is no query."""
        return Fraction(sum(self._gaps.tolist()), self._scale * max(1, len(self._gaps)))

    def worst(self, count: int = 10) -> pd.DataFrame:
        """Return the queries of largest error, largest first, as floats: query, real, synthetic, error.

        No other query is named or listed, however many there are.
        """
        sums = (self.real_sums, self.real_rows), (self.synthetic_sums, self.synthetic_rows)
        table = []
        for j in np.argsort(-self._gaps, kind="stable")[:count].tolist():
            answers = (float(self._shares(each[j : j + 1], rows)[0]) for each, rows in sums)
            table.append((self.workload.label(j), *answers, int(self._gaps[j]) / self._scale))
        return pd.DataFrame(table, columns=["query", "real", "synthetic", "error"])

    def distances(self) -> tuple[Distances, ...]:
        """How far the tables of 1, 2 and 3 columns are off, as far as they can be compared in seconds."""
        return self._distances

    @cached_property
    def _distances(self) -> tuple[Distances, ...]:
        real, synthetic = self.real_rows, self.synthetic_rows
        return tuple(distances(real, synthetic, width) for width in feasible(real, synthetic))

    def by_column(
        self,
        *,
        epsilon: Number | None = None,
        neighbours: str = Neighbours.REPLACE_ONE,
        target: str | None = None,
    ) -> pd.DataFrame:
        """Measure the synthetic table column by column, beside what simple ways do at the same epsilon.

        Total variation distance and largest error of the tables of one, two and three columns, the errors of
        the queries, rank correlations of ordered columns, and, of a target, how well a classifier that is
        trained on each table tells it of real rows (scikit-learn, extra ``learn``).

        Parameters
        ----------
        epsilon
            Of the simple ways: independent columns, and noise on the count of every cell (up to 2^20 cells).
            None: without them.
        neighbours
            Their neighbouring relation.
        target
            A column's name; None: no classifier is trained.

        Returns
        -------
        DataFrame
            In long form: table ("synthetic", "independent columns", "noise on all cells", "real"), measure,
            of (a column, two of them, or "all") and value.

        Raises
        ------
        ValueError
            Arguments that cannot be taken, or a target without scikit-learn.
        """
        real, relation = self.real_rows, relation_of(neighbours)
        chosen = None if target is None else column_named(real.domain, target)
        if chosen is not None:
            check_classifying()
        tables = {SYNTHETIC: self.synthetic_rows}
        if epsilon is not None:
            tables |= baselines(real, positive(epsilon, "epsilon"), relation)
        return overview(real, tables, self.workload, chosen, {SYNTHETIC: self._distances})

    def summary(
        self,
        *,
        epsilon: Number | None = None,
        neighbours: str = Neighbours.REPLACE_ONE,
        target: str | None = None,
    ) -> pd.DataFrame:
        """Return what `by_column` says of all columns together: measures by tables; arguments as there.

        Parameters
        ----------
        epsilon, neighbours, target
            As `by_column`.
        """
        return summary(self.by_column(epsilon=epsilon, neighbours=neighbours, target=target))

    @property
    def _gaps(self) -> Integers:
        """The errors, times `_scale`; Python's integers where they pass int64."""
        n, m = self.real_rows.n, self.synthetic_rows.n
        kind = np.int64 if self._scale < 1 << 62 else object
        gaps: Integers = np.abs(self.real_sums.astype(kind) * m - self.synthetic_sums.astype(kind) * n)
        return gaps

    @property
    def _scale(self) -> int:
        return self.real_rows.n * self.synthetic_rows.n * self.workload.denominator

    def _shares(self, sums: Integers, rows: Rows) -> tuple[Fraction, ...]:
        scale = rows.n * self.workload.denominator
        return tuple(Fraction(total, scale) for total in sums.tolist())


@overload
def evaluate(
    real: Mapping[str, Any], synthetic: Mapping[str, Any], *, schema: SchemaLike
) -> RelatedEvaluation: ...


@overload
def evaluate(
    real: pd.DataFrame | Rows,
    synthetic: pd.DataFrame | Rows,
    queries: QueryClass | Workload | str | None = None,
    *,
    domain: Domain | None = None,
    schema: SchemaLike | None = None,
) -> Evaluation: ...


def evaluate(
    real: Any,
    synthetic: Any,
    queries: QueryClass | Workload | str | None = None,
    *,
    domain: Domain | None = None,
    schema: SchemaLike | None = None,
) -> Evaluation | RelatedEvaluation:
    """Answer every query on a real and on a synthetic table, exactly; or compare related tables.

    Parameters
    ----------
    real, synthetic
        Tables of the domain's columns, or counted rows of one domain. The number of rows may differ.
    queries
        A query class, its text, or a workload; by default the schema's, or all cells of the tables of 1 and 2
        columns.
    domain
        The universe; by default every column of `real` is a yes/no attribute and every cell can exist.
    schema
        In place of `domain`: a `smalldb.schema.Schema`, the path of its file, or its text. Both tables have
        its columns then, as people write them. With one of related tables, both are mappings of tables by
        their names, or long tables, and a `RelatedEvaluation` is returned.

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
    check_alone(schema, domain)
    read = None if schema is None else read_any(schema)
    if isinstance(read, RelatedSchema):
        if queries is not None:
            raise ValueError("related tables do not take queries yet: leave them out")
        return evaluate_related(real, synthetic, read)
    known = None if read is None else read_schema(read)
    numbers: tuple[NumberCounts, NumberCounts] = {}, {}
    ours = _counted(real, domain, known, numbers[0])
    if isinstance(synthetic, Rows) and synthetic.domain != ours.domain:
        raise ValueError("the two tables are over different domains")
    stated = None if known is None else known.queries
    workload = workload_of(stated if queries is None else queries, ours.domain)
    theirs = _counted(synthetic, None if known is not None else ours.domain, known, numbers[1])
    if ours.n == 0 or theirs.n == 0:
        raise DataError("a table has no rows")
    rows = isinstance(real, Rows) or isinstance(synthetic, Rows)
    summaries = None if known is None or rows else number_summaries(*numbers)
    return replace(_evaluated(workload, ours, theirs), numbers=summaries)


def _counted(data: Any, domain: Domain | None, schema: Schema | None, numbers: NumberCounts) -> Rows:
    """Count the rows of a table, and of a schema's columns on the way which numbers they hold."""
    if schema is None or isinstance(data, Rows):
        return counted(data, domain, schema)
    pieces = schema.mended(schema.pieces(as_frame(data)))
    return schema.count(gather_numbers(schema, None, numbers, pieces))


def _evaluated(workload: Workload, ours: Rows, theirs: Rows) -> Evaluation:
    return Evaluation(workload, ours, theirs, workload.answers(ours), workload.answers(theirs))


@final
@dataclass(frozen=True, slots=True, repr=False)
class RelatedEvaluation:
    """Tables of one and two columns, real beside synthetic. Confidential: it is computed from the data."""

    tables: Mapping[str, Evaluation]  # parents with their numbers of children, and walks to a child
    # by group, the mean total variation distance of its tables, from 0 to 1: those of two columns of parents
    # and their number of children ("parents"); that number ("number"); two columns of children ("children");
    # a column of parents or the number with one of children, over children ("joined")
    tvd: Mapping[str, float]
    # the same of the baseline: the product of the real columns' own shares, to which no noise was added
    independent: Mapping[str, float]
    # 1 less the largest difference of the shares of parents with at most so many children, over all numbers
    # (Kolmogorov and Smirnov)
    number_similarity: float
    rows: Mapping[str, tuple[int, int]]  # of each table, in the data and in what was released

    def __repr__(self) -> str:
        return "<RelatedEvaluation: computed from the data>"

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each group: its distance, and that of the baseline."""
        groups = [*self.tvd]
        return pd.DataFrame({"tables": groups, "tvd": self.tvd, "independent": self.independent}, groups)


def evaluate_related(real: Any, synthetic: Any, schema: RelatedSchema) -> RelatedEvaluation:
    """Compare released tables with the data."""
    (ours, counted_ours), (theirs, counted_theirs) = (_read(each, schema) for each in (real, synthetic))
    tables = {
        name: _evaluated(workload_of(None, domain), counted_ours[name], counted_theirs[name])
        for name, domain in schema.domains.items()
    }
    parents, walks = tables.values()
    number = len(schema.parents.columns)

    def apart(evaluation: Evaluation, width: int) -> Distances:
        return distances(evaluation.real_rows, evaluation.synthetic_rows, width)

    joint = apart(walks, 2)
    inner = [columns[0] > number for columns in joint.tables]
    groups: dict[str, tuple[Distances, Any]] = {
        "parents": (apart(parents, 2), slice(None)),
        "number": (apart(parents, 1), [number]),
        "children": (joint, inner) if any(inner) else (apart(walks, 1), [-1]),
        "joined": (joint, [columns[0] <= number < columns[1] for columns in joint.tables]),
    }
    pair = parents.real_rows, parents.synthetic_rows
    shares_up_to = [np.cumsum(rows.table((number,))) / rows.n for rows in pair]
    return RelatedEvaluation(
        tables,
        {group: float(compared.tvd[some].mean()) for group, (compared, some) in groups.items()},
        {group: float(compared.independent[some].mean()) for group, (compared, some) in groups.items()},
        1 - float(np.abs(shares_up_to[0] - shares_up_to[1]).max()),
        {schema.unit: (ours.n, theirs.n), schema.child: (len(ours.children), len(theirs.children))},
    )


def _read(tables: Any, schema: RelatedSchema) -> tuple[Linked, dict[str, Rows]]:
    """Read related tables, and count parents with their numbers of children, and walks."""
    if not isinstance(tables, Linked):
        check_tables(tables, schema)
        tables = read_linked(tables, schema)
    if not tables.n or not len(tables.children):
        raise DataError("a table has no rows")
    parents = Families(tables.parents, tables.children, tables.of).with_counts(schema.most)
    codes = parents, np.column_stack([parents[tables.of], tables.children])
    items = zip(schema.domains.items(), codes, strict=True)
    return tables, {name: Rows.from_codes(domain, rows) for (name, domain), rows in items}


def gather_numbers(
    schema: Schema, counts: str | None, numbers: NumberCounts, pieces: Iterator[Piece]
) -> Iterator[Piece]:
    """Hand on the pieces of a table, and count on the way which numbers the columns of numbers hold."""
    kinds = [column.kind for column in schema.columns]
    columns = [(c, k) for c, k in enumerate(kinds) if isinstance(k, Comparable) and k.measure == "numbers"]
    numbers |= {schema.columns[c].name: Counter() for c, _ in columns}
    for fields, times in pieces:
        occur = occurrences(fields, times, counts)
        for c, kind in columns:
            column = schema.columns[c]
            for text, weight in column.occurring(fields[c], occur):
                if (value := kind.value(text)) is not None:
                    numbers[column.name][float(value)] += weight
        yield fields, times


def number_summaries(real: NumberCounts, synthetic: NumberCounts) -> pd.DataFrame:
    """Return, of each column of numbers, its measures in both tables: column, measure, real, synthetic."""
    rows = []
    for name in real:
        if real[name] and synthetic.get(name):
            ours, theirs = _measures(real[name]), _measures(synthetic[name])
            rows += [(name, measure, ours[measure], theirs[measure]) for measure in ours]
    return pd.DataFrame(rows, columns=["column", "measure", "real", "synthetic"])


def _measures(numbers: Counter[float]) -> dict[str, float]:
    values = np.array(sorted(numbers))
    counts = np.array([numbers[value] for value in values.tolist()], dtype=np.float64)
    mean = float(values @ counts / counts.sum())
    deviation = float(np.sqrt((values - mean) ** 2 @ counts / counts.sum()))
    below = np.cumsum(counts) / counts.sum()
    quantiles = {name: float(values[np.searchsorted(below, p - 1e-12)]) for name, p in QUANTILES.items()}
    return {"mean": mean, "standard deviation": deviation, **quantiles}
