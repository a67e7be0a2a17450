"""What is proved of the error where every query was measured: it is a sum of released numbers."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from queries import Rows, Workload
from queries.arrays import Floats
from queries.domain import Integers
from queries.rows import MAX_TOTAL
from smalldb.marginals.measuring import NoisyTable
from smalldb.noise.cone import ConeDifference, quantile
from smalldb.noise.geometric import Geometric
from smalldb.noise.tails import noise_quantile

MOST_CELLS = 1 << 16  # that are looked at, one by one, in a plan
_SLACK = 1e-12  # more than what rounding takes from a sum of a few floats


class Sums(NamedTuple):
    """Between which numbers the sums of all queries over the data lie, and the rows of the data."""

    # the ends of each query, shape (J,)
    low: Floats
    high: Floats
    rows: tuple[float, float]  # the ends of n; equal where n is public
    slack: Floats  # what rounding adds to the ends, in rows

    @classmethod
    def within(cls, released: Floats, margins: Floats | float, rows: tuple[float, float]) -> "Sums":
        """Return the sums that are within margins of released ones."""
        return cls(released - margins, released + margins, rows, _SLACK * (np.abs(released) + rows[1]))


# Proof: docs/proofs/certificate.md, "All cells"; docs/proofs/answers.md, lemma 5.
def bound(workload: Workload, finished: Rows, sums: Sums) -> float:
    """
    Return an error that no query's answer exceeds, if the sums lie between their ends; rounded up.

    With A the sum of a query over the data, and a its answer on the finished rows, |A / n - a| is at most
    max(A - a n, a n - A) / n at the ends.
    """
    fewest, most = sums.rows
    if fewest <= 0:
        return 1.0
    answers = workload.answers(finished) / (workload.denominator * finished.n)
    # n = 10, a released sum of 4 with margin 2, a = 1/2: A lies between 2 and 6, so A - 5 and 5 - A are at
    # most 1 and 3, and the bound is 0.3. No share can be off by more than max(a, 1 - a) = 1/2.
    gaps = np.maximum(sums.high - answers * fewest, answers * most - sums.low) + sums.slack
    gaps = np.minimum(gaps / fewest, np.maximum(answers, 1 - answers))
    return min(1.0, float(gaps.max(initial=0.0)) * (1 + 2.0**-49))


def _rows(released: Integers, margin: float, n: int | None) -> tuple[float, float]:
    """Return the ends of n, which is public, or within a margin of the sum of released counts."""
    total = int(released.sum())
    return (total - margin, total + margin) if n is None else (n, n)


# Proof: docs/proofs/certificate.md, "All cells".
def margins(workload: Workload, noise: Geometric, beta: Fraction) -> tuple[float, float]:
    """
    Return by how many rows no query's released sum is off, nor the released number of rows.

    But for a probability of beta in all, shared evenly (union bound). The noise of a query is a sum over
    cells, each with a weight from 0 to 1; the largest sum of weights stands for all. From public numbers.
    """
    domain, each = workload.domain, beta / (workload.size + 1)
    every = Rows.from_codes(domain, domain.table())
    most = int(workload.answers(every).max(initial=0))
    return (
        noise_quantile(noise.rate, -(-most // workload.denominator), each),
        noise_quantile(noise.rate, every.n, each),
    )


# Proof: docs/proofs/certificate.md, "All cells".
def sums_of_cells(
    workload: Workload, counts: Integers, noise: Geometric, n: int | None, beta: Fraction
) -> Sums:
    """Return between which numbers all sums lie, but for a probability of at most beta over the noise."""
    domain, scale = workload.domain, workload.denominator
    codes = domain.table()
    released = counts[tuple(codes.T)]
    sums = np.zeros(workload.size)
    if int(np.abs(released.astype(np.float64)).sum()) * scale >= MAX_TOTAL // 2:
        return Sums.within(sums, 0.0, (0, 0))  # nothing is known
    of_query, of_rows = margins(workload, noise, beta)
    for sign in (1, -1):
        some = np.maximum(sign * released, 0)
        present = some > 0
        sums += sign * workload.answers(Rows.from_codes(domain, codes[present], some[present])) / scale
    return Sums.within(sums, of_query, _rows(released, of_rows, n))


# Proof: docs/proofs/certificate.md, "Columns".
def sums_of_columns(
    workload: Workload, measured: Sequence[NoisyTable], n: int | None, beta: Fraction
) -> Sums:
    """Return the same where every column was measured by itself, and every query is a cell of one."""
    each, columns = beta / (workload.size + 1), workload.domain.columns
    sums, reach = list[Floats](), list[Floats]()
    for block in workload.cells:
        (c,) = block.columns
        counts = np.flip(measured[c].counts, 0) if columns[c].yes_no else measured[c].counts
        sums.append(block.of_counts(counts).astype(np.float64))
        reach.append(np.full(block.size, measured[c].noise.quantile(None, each)))
    of_rows = [one.noise.quantile(one.noise.summed(one.counts.size), each) for one in measured]
    least = int(np.argmin(of_rows))  # which sum tells best how many rows there are is public
    rows = _rows(measured[least].counts, of_rows[least], n)
    return Sums.within(np.concatenate(sums), np.concatenate(reach), rows)


# Proof: docs/proofs/pairs.md, lemma 8.
def margins_at_once(workload: Workload, noise: ConeDifference, beta: Fraction) -> tuple[Floats, float]:
    """Return the same, for each query and n, where tables of one and two columns were measured at once."""
    sizes, each = noise.sizes, beta / (workload.size + 1)
    found = []
    for block in workload.cells:
        shape = sorted(sizes[c] for c in block.columns)
        found.append(np.full(block.size, float(quantile(sizes, noise.rate, tuple(shape), each))))
    return np.concatenate(found), _of_rows_at_once(noise, each)


def _of_rows_at_once(noise: ConeDifference, failure: Fraction) -> float:
    """Return the margin of the number of rows: a sum of rounded counts of the first column's categories."""
    return quantile(noise.sizes, noise.rate, (), failure) + noise.sizes[0] / 2


def loudest(workload: Workload, noise: ConeDifference, beta: Fraction) -> float:
    """Return about the largest of these margins: that of n, or of columns with the fewest categories."""
    each, fewest = beta / (workload.size + 1), sorted(noise.sizes)[:2]
    of_cells = (quantile(noise.sizes, noise.rate, tuple(fewest[:width]), each) for width in (1, 2))
    return max(_of_rows_at_once(noise, each), *of_cells)


def measured_at_once(workload: Workload) -> bool:
    """Whether all its queries are cells of tables of one or two columns."""
    return not workload.listed and all(0 < len(block.columns) <= 2 for block in workload.cells)


# Proof: docs/proofs/pairs.md, lemma 8.
def sums_at_once(
    workload: Workload,
    tables: Mapping[tuple[int, ...], Integers],
    noise: ConeDifference,
    n: int | None,
    beta: Fraction,
) -> Sums:
    """Return the same where all tables of one and two columns were measured at once."""
    columns = workload.domain.columns
    sums = []
    for block in workload.cells:
        yes_first = tuple(i for i, c in enumerate(block.columns) if columns[c].yes_no)
        sums.append(block.of_counts(np.flip(tables[block.columns], yes_first).ravel()))
    of_queries, of_rows = margins_at_once(workload, noise, beta)
    return Sums.within(np.concatenate(sums).astype(np.float64), of_queries, _rows(tables[0,], of_rows, n))
