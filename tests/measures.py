"""How far a synthetic table is off where analysts look: shares, conditional shares and associations.

All tables of one and two columns of counted rows stand in one matrix, the Burt matrix of the table: block
(a, b) holds the counts of the categories of column a with those of column b.
"""

from itertools import combinations
from math import sqrt

import numpy as np

RARE = 0.01  # of the rows: categories below it are not conditioned on
STRONGEST = 0.1  # of all pairs of columns
NEAR = 0.2  # of its value, by which an association may be off


class Burt:
    """All tables of one and two columns, as shares of the rows; shape (sum of sizes, sum of sizes)."""

    def __init__(self, sizes, shares):
        self.sizes, self.shares = tuple(sizes), shares
        self.starts = np.concatenate([[0], np.cumsum(sizes)])

    @classmethod
    def of(cls, codes, sizes, counts=None):
        """Count rows of codes, shape (rows, columns), each `counts` times."""
        codes = np.asarray(codes, dtype=np.int64)
        counts = np.ones(len(codes)) if counts is None else np.asarray(counts, dtype=np.float64)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        sums = np.zeros((starts[-1], starts[-1]))
        for first in range(0, len(codes), 1 << 14):
            ones = np.zeros((len(codes[first : first + (1 << 14)]), starts[-1]))
            np.put_along_axis(ones, codes[first : first + (1 << 14)] + starts[:-1], 1.0, axis=1)
            sums += (ones * counts[first : first + (1 << 14), None]).T @ ones
        return cls(sizes, sums / counts.sum())

    def table(self, a, b):
        """Return the shares of a table of two columns, shape (size of a, size of b)."""
        return self.shares[self.starts[a] : self.starts[a + 1], self.starts[b] : self.starts[b + 1]]

    def column(self, c):
        """Return the shares of a column's categories."""
        return np.diagonal(self.table(c, c))

    def replaced(self, tables, columns):
        """Return the same with other tables of pairs, by their columns, and other columns."""
        shares = self.shares.copy()
        for (a, b), table in tables.items():
            shares[self.starts[a] : self.starts[a + 1], self.starts[b] : self.starts[b + 1]] = table
            shares[self.starts[b] : self.starts[b + 1], self.starts[a] : self.starts[a + 1]] = table.T
        for c, column in enumerate(columns):
            shares[self.starts[c] : self.starts[c + 1], self.starts[c] : self.starts[c + 1]] = np.diag(column)
        return Burt(self.sizes, shares)


def figures(real, made, n):
    """
    Return the measures of a synthetic table beside the real one of n rows, by name; 0 is best.

    "1-way", "2-way"
        Mean total variation distance (TVD) of the tables of one and of two columns.
    "conditional"
        The TVD of P(b | a): mean over the categories of a that at least 1 % of the real rows have, then over
        ordered pairs of columns. It is 1 where no synthetic row has the category.
    "association"
        Mean error of bias-corrected Cramer's V, over pairs.
    "missed"
        Of the strongest tenth of the pairs, the share whose V is off by more than a fifth of it.
    """
    width = len(real.sizes)
    one = [np.abs(real.column(c) - made.column(c)).sum() / 2 for c in range(width)]
    two, conditional, strength, errors = [], [], [], []
    for a, b in combinations(range(width), 2):
        ours, theirs = real.table(a, b), made.table(a, b)
        two.append(np.abs(ours - theirs).sum() / 2)
        conditional += [_conditional(ours, theirs), _conditional(ours.T, theirs.T)]
        strength.append(corrected_v(ours, n))
        errors.append(abs(corrected_v(theirs, n) - strength[-1]))
    strongest = np.argsort(strength, kind="stable")[::-1][: max(1, round(STRONGEST * len(strength)))]
    missed = [errors[i] > NEAR * strength[i] for i in strongest]
    return {
        "1-way": float(np.mean(one)),
        "2-way": float(np.mean(two)),
        "conditional": float(np.mean(conditional)),
        "association": float(np.mean(errors)),
        "missed": float(np.mean(missed)),
    }


def pairs_off(one, other, sizes):
    """Return the mean distance of the tables of two columns of two tables of codes."""
    return figures(Burt.of(one, sizes), Burt.of(other, sizes), len(one))["2-way"]


def _conditional(ours, theirs):
    given, made = ours.sum(axis=1), theirs.sum(axis=1)
    often = given >= RARE * given.sum()
    off = np.ones(np.count_nonzero(often))
    some = np.flatnonzero(often)
    seen = made[some] > 0
    here = some[seen]
    apart = ours[here] / given[here, None] - theirs[here] / made[here, None]
    off[seen] = np.abs(apart).sum(axis=1) / 2
    return float(off.mean())


def corrected_v(shares, n):
    """
    Return Cramer's V of a table, corrected for its bias (Bergsma 2013).

    Of independent columns phi^2 = chi^2 / n is (r - 1) (k - 1) / (n - 1) in the mean, which is taken off; as
    many categories as noise makes of r are taken off r, too. Categories without rows are left out. If one
    column has one category in use, V is 0.
    """
    shares = np.maximum(shares, 0.0) / np.maximum(shares, 0.0).sum()
    rows, columns = shares.sum(axis=1), shares.sum(axis=0)
    shares, rows, columns = shares[np.ix_(rows > 0, columns > 0)], rows[rows > 0], columns[columns > 0]
    r, k = len(rows), len(columns)
    if min(r, k) < 2:
        return 0.0
    independent = np.outer(rows, columns)
    squares = ((shares - independent) ** 2 / independent).sum() - (r - 1) * (k - 1) / (n - 1)
    least = min(r - (r - 1) ** 2 / (n - 1), k - (k - 1) ** 2 / (n - 1)) - 1
    return sqrt(max(0.0, squares) / least) if least > 0 else 0.0
