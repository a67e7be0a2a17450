"""What is proved of the error where every query was measured: it is a sum of released cells."""

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from queries import Rows, Workload
from queries.arrays import Floats
from queries.domain import Integers
from queries.rows import MAX_TOTAL
from smalldb.noise.cone import quantile
from smalldb.noise.tails import noise_quantile

MOST_CELLS = 1 << 16  # that are looked at, one by one, in a plan
_SLACK = 1e-12  # more than what rounding takes from a sum of a few floats


# Proof: docs/proofs/certificate.md, "All cells".
def margins(workload: Workload, rate: Fraction, beta: Fraction) -> tuple[float, float]:
    """
    Return by how many rows no query's released sum is off, nor the released number of rows.

    But for a probability of beta in all, shared evenly (union bound). The noise of a query is a sum over
    cells, each with a weight from 0 to 1; the largest sum of weights stands for all. From public numbers.

    Parameters
    ----------
    rate
        Of two-sided geometric noise on every cell.
    """
    domain, each = workload.domain, beta / (workload.size + 1)
    every = Rows.from_places(domain, domain.table())
    most = int(workload.answers(every).max(initial=0))
    return (
        noise_quantile(rate, -(-most // workload.denominator), each),
        noise_quantile(rate, every.n, each),
    )


# Proof: docs/proofs/certificate.md, "All cells".
def direct_bound(
    workload: Workload, counts: Integers, rate: Fraction, n: int | None, finished: Rows, beta: Fraction
) -> float:
    """
    Return an error that no query's answer exceeds, with probability 1 - beta or more over the noise.

    With A the sum of a query over the data, A is within its margin of the released sum, and n is n, or within
    its own margin of the released number. |A / n - a| is at most max(A - a n, a n - A) / n at the ends.

    Parameters
    ----------
    counts
        The released counts of all cells, shaped by the columns' places.
    n
        The rows of the data where they are public, else None.
    finished
        The finished rows, at least one.
    """
    domain, scale = workload.domain, workload.denominator
    places = domain.table()
    released = counts[tuple(places.T)]
    if int(np.abs(released.astype(np.float64)).sum()) * scale >= MAX_TOTAL // 2:
        return 1.0
    of_query, of_rows = margins(workload, rate, beta)
    sums = np.zeros(workload.size)
    for sign in (1, -1):
        some = np.maximum(sign * released, 0)
        present = some > 0
        sums += sign * workload.answers(Rows.from_places(domain, places[present], some[present])) / scale
    return _bound(workload, sums, of_query, int(released.sum()), of_rows, n, finished)


# Proof: docs/proofs/pairs.md, lemma 8.
def margins_at_once(workload: Workload, rate: Fraction, beta: Fraction) -> tuple[Floats, float]:
    """
    Return the same where all tables of one and two columns were measured at once: for each query, and for n.

    Parameters
    ----------
    workload
        Cells of these tables alone: `measured_at_once`.
    rate
        Of `smalldb.noise.cone.cone_noise`.
    """
    sizes, each = workload.domain.sizes, beta / (workload.size + 1)
    found = []
    for block in workload.cells:
        places = sorted(sizes[c] for c in block.columns)
        found.append(np.full(block.size, float(quantile(sizes, rate, tuple(places), each))))
    return np.concatenate(found), _of_rows_at_once(sizes, rate, each)


def _of_rows_at_once(sizes: tuple[int, ...], rate: Fraction, failure: Fraction) -> float:
    """Return the margin of the number of rows: a sum of rounded counts of the first column's places."""
    return quantile(sizes, rate, (), failure) + sizes[0] / 2


def loudest(workload: Workload, rate: Fraction, beta: Fraction) -> float:
    """Return about the largest of these margins: that of n, or of columns with the fewest places."""
    sizes, each = workload.domain.sizes, beta / (workload.size + 1)
    fewest = sorted(sizes)[:2]
    of_cells = (quantile(sizes, rate, tuple(fewest[:width]), each) for width in (1, 2))
    return max(_of_rows_at_once(sizes, rate, each), *of_cells)


def measured_at_once(workload: Workload) -> bool:
    """Whether all its queries are cells of tables of one or two columns."""
    return not workload.listed and all(0 < len(block.columns) <= 2 for block in workload.cells)


# Proof: docs/proofs/pairs.md, lemma 8.
def bound_at_once(
    workload: Workload,
    tables: Mapping[tuple[int, ...], Integers],
    rate: Fraction,
    n: int | None,
    finished: Rows,
    beta: Fraction,
) -> float:
    """
    Return the same bound where all tables of one and two columns were measured at once.

    Parameters
    ----------
    tables
        The released counts, by columns.
    """
    columns = workload.domain.columns
    sums = []
    for block in workload.cells:
        yes_first = tuple(i for i, c in enumerate(block.columns) if columns[c].yes_no)
        sums.append(block.of_counts(np.flip(tables[block.columns], yes_first).ravel()))
    of_queries, of_rows = margins_at_once(workload, rate, beta)
    total = int(tables[0,].sum())
    return _bound(workload, np.concatenate(sums).astype(np.float64), of_queries, total, of_rows, n, finished)


# Proof: docs/proofs/certificate.md, "All cells".
def _bound(
    workload: Workload,
    sums: Floats,
    of_queries: Floats | float,
    total: int,
    of_rows: float,
    n: int | None,
    finished: Rows,
) -> float:
    """Return what no answer is off by more than, if released sums and the total are within their margins."""
    scale = workload.denominator
    fewest, most = (n, n) if n is not None else (total - of_rows, total + of_rows)
    if fewest <= 0:
        return 1.0
    answers = workload.answers(finished) / (scale * finished.n)
    # n = 10, a released sum of 4 with margin 2, a = 1/2: A lies between 2 and 6, so A - 5 and 5 - A are at
    # most 1 and 3, and the bound is 0.3. No share can be off by more than max(a, 1 - a) = 1/2.
    gaps = np.maximum(sums + of_queries - answers * fewest, answers * most - sums + of_queries)
    gaps += _SLACK * (np.abs(sums) + most)
    gaps = np.minimum(gaps / fewest, np.maximum(answers, 1 - answers))
    return min(1.0, float(gaps.max(initial=0.0)) * (1 + _SLACK))
