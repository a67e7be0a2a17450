"""Domains, tables and scores of small instances, as many tests build them."""

import numpy as np

from queries import Domain, Rows
from smalldb.counting.scores import Scores


def flags(d, valid=None, name="x"):
    """A domain of d yes/no columns."""
    names = [f"{name}{i}" for i in range(d)]
    return Domain(names) if valid is None else Domain(names, valid)


def counted(domain, histogram):
    """The table with so many rows in each cell."""
    return Rows.from_counts(domain, domain.decode(domain.table()), histogram)


def posed(matrix, data, rows):
    """The scores of counts over the cells, and their naive arguments: matrix, answers, n, cells, rows."""
    matrix = np.array(matrix, dtype=np.int64).reshape(len(matrix), len(data))
    answers, n = matrix @ np.array(data, dtype=np.int64), sum(data)
    return Scores.build(matrix, answers, n, rows), (matrix.tolist(), answers.tolist(), n, len(data), rows)
