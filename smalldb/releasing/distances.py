"""How far the tables of one, two, three, ... columns of a synthetic table are off; for the curator."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from math import comb, prod
from typing import final

import numpy as np

from queries import DataError, Domain, Rows
from queries.arrays import Floats, Integers
from queries.rows import tabulated

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
    """Compare all tables of exactly `width` columns, one by one.

    Cost: distinct rows of both times tables, see `visits`.

    Parameters
    ----------
    real, synthetic
        Counted rows of one domain, at least one each.
    width
        From 1 to the number of columns.
    max_cells
        Tables of more cells are left out.

    Raises
    ------
    ValueError
        Other domains, or a width that the domain has not.
    queries.DataError
        A table has no rows.

    Examples
    --------
    >>> domain = Domain(["a", "b"])
    >>> real, made = (Rows.from_bits(domain, np.array(rows)) for rows in ([[0, 1], [1, 1]], [[0, 0], [1, 1]]))
    >>> distances(real, made, 1).tvd.tolist()
    [0.0, 0.5]
    """
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
    found = np.empty((3, len(chosen)))
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        off = np.abs(a.astype(exact) * m - b.astype(exact) * n)
        product = reduce(np.multiply.outer, (margins[c] for c in chosen[i])).reshape(-1)
        found[0, i] = int(off.sum()) / (2 * n * m)  # Python divides whole numbers to the nearest float
        found[1, i] = int(off.max()) / (n * m)
        found[2, i] = np.abs(a / n - product).sum() / 2
    return Distances(domain, width, tuple(chosen), found[0], found[1], found[2], len(sets) - len(chosen))


def pair_distances(real: Rows, synthetic: Rows, columns: int | None = None) -> Floats:
    """Return the total variation distance of the table of each two of the first columns (None: of all).

    Shape (columns, columns); in the diagonal that of one column; not a number where there are too many cells
    or, of all, too many tables.
    """
    count = len(real.domain.sizes) if columns is None else columns
    off = np.full((count, count), np.nan)
    for width in (1, min(2, len(real.domain.sizes))):
        if visits(real, synthetic, width) <= MAX_VISITS:
            found = distances(real, synthetic, width)
            for chosen, tvd in zip(found.tables, found.tvd.tolist(), strict=True):
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
