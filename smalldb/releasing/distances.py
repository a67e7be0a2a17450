"""How far a synthetic table and its rivals are off, by tables of few columns and in a few figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import combinations
from math import comb, prod
from typing import final

import numpy as np
import numpy.typing as npt

from queries import DataError, Domain, Rows, Workload
from queries.arrays import Codes, Floats, Integers, pd
from queries.rows import bincounted, tabulated
from smalldb.exact.bits import BitSource, SeededBits
from smalldb.exact.integers import uniform_permutation
from smalldb.files import of_extra
from smalldb.marginals.estimate.column_estimates import on_simplex
from smalldb.mechanisms import Neighbours
from smalldb.noise.geometric import Geometric

Columns = tuple[int, ...]

MAX_CELLS = 10_000  # of a table that is compared
MAX_VISITS = 1 << 30  # distinct rows times tables: some ten seconds

__all__ = ["Distances", "distances", "pair_distances", "visits"]


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Distances:
    """Tables of a few columns, real beside synthetic. Confidential: it is computed from the data."""

    domain: Domain  # the universe of both
    width: int  # how many columns each table has
    tables: tuple[Columns, ...]  # the columns of each table that is compared, ascending
    # total variation distance of each table: half the sum over its cells of how far the shares of rows are
    # apart. From 0 to 1, correctly rounded.
    tvd: Floats
    largest: Floats  # the largest such difference of a cell of each table, correctly rounded
    # the baseline: the total variation distance of the product of the real columns' own shares, to which no
    # noise was added
    independent: Floats
    left_out: int  # how many tables have too many cells

    def __repr__(self) -> str:
        return "<Distances: computed from the data>"

    def of_column(self, column: int) -> Floats:
        """Return the total variation distances of the tables that a column is in."""
        return self.tvd[[column in columns for columns in self.tables]]


def distances(real: Rows, synthetic: Rows, width: int, max_cells: int = MAX_CELLS) -> Distances:
    """Compare all tables of exactly `width` columns and at most `max_cells` cells; cost: `visits`."""
    domain = real.domain
    if synthetic.domain != domain:
        raise ValueError("the two tables are over different domains")
    if not 1 <= width <= len(domain.sizes):
        raise ValueError(f"width must be from 1 to the {len(domain.sizes)} columns, not {width}")
    n, m = real.n, synthetic.n
    if n == 0 or m == 0:
        raise DataError("a table has no rows")
    sets = list(combinations(range(len(domain.sizes)), width))
    chosen = [columns for columns in sets if prod(domain.sizes[c] for c in columns) <= max_cells]
    ours, theirs = _tables(real, chosen), _tables(synthetic, chosen)
    margins = [table / n for table in _tables(real, [(c,) for c in range(len(domain.sizes))])]
    exact = np.int64 if 2 * n * m < 1 << 62 else object
    figures = np.empty((3, len(chosen)))
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        off = np.abs(a.astype(exact) * m - b.astype(exact) * n)
        product = reduce(np.multiply.outer, (margins[c] for c in chosen[i])).reshape(-1)
        figures[0, i] = int(off.sum()) / (2 * n * m)  # Python divides whole numbers to the nearest float
        figures[1, i] = int(off.max()) / (n * m)
        figures[2, i] = np.abs(a / n - product).sum() / 2
    return Distances(
        domain, width, tuple(chosen), figures[0], figures[1], figures[2], len(sets) - len(chosen)
    )


def pair_distances(real: Rows, synthetic: Rows, columns: int | None = None) -> Floats:
    """Return the distance of each two of the first columns, in the diagonal of one; NaN: too large."""
    count = len(real.domain.sizes) if columns is None else columns
    off = np.full((count, count), np.nan)
    for width in (1, min(2, len(real.domain.sizes))):
        if visits(real, synthetic, width) <= MAX_VISITS:
            compared = distances(real, synthetic, width)
            for chosen, tvd in zip(compared.tables, compared.tvd.tolist(), strict=True):
                if chosen[-1] < count:
                    off[chosen[0], chosen[-1]] = off[chosen[-1], chosen[0]] = tvd
    return off


def visits(real: Rows, synthetic: Rows, width: int) -> int:
    """Return how many steps `distances` takes: distinct rows times tables."""
    return comb(len(real.domain.sizes), width) * (len(real.counts) + len(synthetic.counts))


def _tables(rows: Rows, sets: list[Columns]) -> Iterator[Integers]:
    """Yield the counts of the cells of each table, flat."""
    codes = np.asfortranarray(rows.codes())
    for columns in sets:
        yield tabulated(rows.domain, codes, rows.counts, columns)


def ordered_columns(domain: Domain) -> list[int]:
    """Return the columns whose categories are in an order; those of two categories are."""
    return [c for c, column in enumerate(domain.columns) if column.ordered or column.size == 2]


def rank_correlations(rows: Rows) -> Floats:
    """Return Spearman's rank correlation of each two ordered columns; NaN: one has one category in use."""
    codes, counts, n = rows.codes(), rows.counts, rows.n
    chosen = ordered_columns(rows.domain)
    ranks = np.empty((len(chosen), len(counts)))
    for i, c in enumerate(chosen):
        column = codes[:, c].astype(np.int64)
        share = bincounted(column, counts, rows.domain.sizes[c]) / n
        middle = np.cumsum(share) - share / 2 - 0.5  # less the mean rank, which is one half
        spread = np.sqrt((share * middle**2).sum())
        ranks[i] = (middle / spread if spread > 1e-12 else np.full_like(middle, np.nan))[column]
    correlations: Floats = (ranks * (counts / n)) @ ranks.T
    return correlations


def joint_shares(rows: Rows) -> Floats:
    """Return the share of rows in which two attributes both hold, shape (d, d); the diagonal has one."""
    bits = rows.bits().astype(np.float64)
    joint: Floats = (bits * rows.counts[:, None]).T @ bits / rows.n
    return joint


MOST_ROWS = 1 << 18  # of a table that is taken apart row by row
INDEPENDENT, CELLS = "independent columns", "noise on all cells"


def baselines(real: Rows, epsilon: Fraction, neighbours: Neighbours) -> dict[str, Rows]:
    """Return tables of simple ways at an epsilon, by name and by a fixed seed: they are not private."""
    domain, n, source = real.domain, real.n, SeededBits(0)
    rate = epsilon / (2 if neighbours is Neighbours.REPLACE_ONE else 1)
    rows = min(n, MOST_ROWS)
    codes = np.empty((rows, len(domain.sizes)), dtype=np.int64)
    for c, size in enumerate(domain.sizes):
        noisy = real.table((c,)) + Geometric(rate / len(domain.sizes)).draw(size, source)
        counts = on_simplex(noisy.astype(np.float64), n) * (rows / n)
        column = np.repeat(np.arange(size), whole(counts, rows))
        codes[:, c] = column[uniform_permutation(rows, source)]
    kept = codes[domain.contains(codes)]
    tables = {INDEPENDENT: Rows.from_codes(domain, kept)} if len(kept) else {}
    if domain.listable:
        cells = domain.table()
        noisy = real.histogram() + Geometric(rate).draw(len(cells), source)
        each = whole(on_simplex(noisy.astype(np.float64), n), n)
        tables[CELLS] = Rows.from_codes(domain, cells[each > 0], each[each > 0])
    return tables


def apart(rows: Rows, source: BitSource) -> Codes:
    """Return the rows one by one in a random order, shape (m, C); of more than 2^18 about so many."""
    counts = rows.counts
    if rows.n > MOST_ROWS:
        counts = whole(counts * (MOST_ROWS / rows.n), MOST_ROWS)
    codes = np.repeat(rows.codes(), counts, axis=0)
    return codes[uniform_permutation(len(codes), source)]


def whole(values: npt.NDArray[np.floating], total: int) -> Integers:
    """Round values that sum to `total` to whole numbers that do: what stands before each is rounded."""
    ends = np.minimum(np.floor(np.cumsum(values) + 0.5).astype(np.int64), total)
    ends[-1] = total
    return np.diff(ends, prepend=0)


REAL = "real"
_MOST_CATEGORIES = 255  # of a column that trees split by sets of categories


def check_classifying(instead: str = "") -> None:
    """Refuse where scikit-learn is missing, and say what else could be done: ValueError."""
    with of_extra("scikit-learn", "learn", "classifiers", instead):
        import sklearn.ensemble  # noqa: F401 - only whether it is there


def _of_classifiers(real: Rows, tables: Mapping[str, Rows], target: int) -> list[Line]:
    """Train boosted trees on each table and on half the real rows; test on the rest, by fixed seeds."""
    rows = apart(real, SeededBits(0))
    half = len(rows) // 2
    if not half:
        return []
    training = {REAL: rows[half:]} | {name: apart(table, SeededBits(0)) for name, table in tables.items()}
    truth, lines = rows[:half, target], list[Line]()
    for name, codes in training.items():
        right = _predicted(real.domain, codes, rows[:half], target) == truth
        by_category = [float(right[truth == code].mean()) for code in np.unique(truth)]
        lines.append((name, "accuracy", ALL, float(right.mean())))
        lines.append((name, "balanced_accuracy", ALL, float(np.mean(by_category))))
    return lines


def _predicted(domain: Domain, training: Codes, testing: Codes, target: int) -> Codes:
    """Return the codes that a model of the training rows tells of the testing rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    codes = training[:, target]
    if (codes == codes[0]).all():
        return np.full(len(testing), codes[0])
    others = [c for c in range(len(domain.sizes)) if c != target]
    named = [not domain.columns[c].ordered and 2 < domain.sizes[c] <= _MOST_CATEGORIES for c in others]
    model = HistGradientBoostingClassifier(
        random_state=0, early_stopping=False, categorical_features=np.array(named)
    )
    model.fit(training[:, others], codes)
    predicted: Codes = model.predict(testing[:, others])
    return predicted


WIDTHS = (1, 2, 3)  # columns of the tables that are compared
MOST_TABLES = 5_000  # of a width, for each of the tables beside one another: all triples of 30 columns
ALL = "all"  # columns together
FIELDS = ("table", "measure", "of", "value")
Line = tuple[str, str, str, float]


MEASURES = {  # the rows of the summary, by their names in the long table
    f"{kind}_{width}": text.format(width, "" if width == 1 else "s")
    for width in WIDTHS
    for kind, text in (
        ("tvd_mean", "tables of {} column{}: distance, mean"),
        ("tvd_largest", "tables of {} column{}: distance, largest"),
        ("cell_largest", "tables of {} column{}: largest error of a cell"),
    )
} | {
    "query_mean": "queries: mean error",
    "query_largest": "queries: largest error",
    "correlation_mean": "rank correlations: mean error",
    "correlation_largest": "rank correlations: largest error",
    "accuracy": "target predicted correctly on unseen real rows",
    "balanced_accuracy": "the same, mean over its categories",
}


def overview(
    real: Rows,
    tables: Mapping[str, Rows],
    workload: Workload,
    target: int | None = None,
    known: Mapping[str, Sequence[Distances]] | None = None,
) -> pd.DataFrame:
    """Measure tables beside the real one: a row for each table, measure and column. Confidential."""
    # `known`: by table, distances that were computed before
    lines: list[Line] = []
    answers, correlated = workload.answers(real), rank_correlations(real)
    for name, table in tables.items():
        widths = feasible(real, table, MOST_TABLES)
        for compared in (known or {}).get(name) or (distances(real, table, width) for width in widths):
            lines += _of_distances(name, compared) if compared.width in widths else []
        lines += _of_queries(name, workload, answers, real.n, table)
        lines += _of_correlations(name, real.domain, correlated, table)
    if target is not None:
        lines += _of_classifiers(real, tables, target)
    return pd.DataFrame(lines, columns=list(FIELDS))


def summary(long: pd.DataFrame) -> pd.DataFrame:
    """Return what `overview` says of all columns together: measures that are known by tables."""
    pivoted = long[long["of"] == ALL].pivot(index="measure", columns="table", values="value")
    order = [name for name in MEASURES if name in pivoted.index]
    return pivoted.loc[order, list(dict.fromkeys(long["table"]))].rename_axis(index=None, columns=None)


def feasible(real: Rows, synthetic: Rows, tables: int | None = None) -> list[int]:
    """Return the widths of the tables that can be compared in seconds, where there are at most so many."""
    columns = len(real.domain.sizes)
    return [
        width
        for width in WIDTHS
        if width <= columns
        and visits(real, synthetic, width) <= MAX_VISITS
        and (tables is None or comb(columns, width) <= tables)
    ]


def _of_distances(name: str, compared: Distances) -> list[Line]:
    if not compared.tables:
        return []
    among, width, lines = np.array(compared.tables), compared.width, []
    parts = {column: (among == c).any(axis=1) for c, column in enumerate(compared.domain.names)}
    for of, chosen in {**parts, ALL: np.ones(len(among), dtype=bool)}.items():
        if chosen.any():
            tvd = compared.tvd[chosen]
            lines += [
                (name, f"tvd_mean_{width}", of, float(tvd.mean())),
                (name, f"tvd_largest_{width}", of, float(tvd.max())),
                (name, f"cell_largest_{width}", of, float(compared.largest[chosen].max())),
            ]
    return lines


def _of_queries(name: str, workload: Workload, answers: Integers, n: int, table: Rows) -> list[Line]:
    if not workload.size:
        return []
    apart = np.abs(answers / n - workload.answers(table) / table.n) / workload.denominator
    return [
        (name, "query_mean", ALL, float(apart.mean())),
        (name, "query_largest", ALL, float(apart.max())),
    ]


def _of_correlations(name: str, domain: Domain, correlated: Floats, table: Rows) -> list[Line]:
    chosen = ordered_columns(domain)
    first, second = np.triu_indices(len(chosen), 1)
    # a column with one category in use goes together with nothing
    off = np.abs(np.nan_to_num(correlated) - np.nan_to_num(rank_correlations(table)))[first, second]
    if not len(off):
        return []
    names = [domain.names[c] for c in chosen]
    pairs = zip(first.tolist(), second.tolist(), off.tolist(), strict=True)
    return [
        *((name, "correlation_error", f"{names[i]} x {names[j]}", value) for i, j, value in pairs),
        (name, "correlation_mean", ALL, float(off.mean())),
        (name, "correlation_largest", ALL, float(off.max())),
    ]
