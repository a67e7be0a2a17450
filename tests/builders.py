"""Domains, tables and scores of small instances, as many tests build them."""

from itertools import combinations

import numpy as np
import pandas as pd

from queries import Domain, Rows
from smalldb.counting.scores import Scores
from smalldb.marginals.counted_rows import checked
from smalldb.marginals.universe import Universe


def flags(d, valid=None, name="x"):
    """A domain of d yes/no columns."""
    names = [f"{name}{i}" for i in range(d)]
    return Domain(names) if valid is None else Domain(names, valid)


def letters(d, cells=None):
    """A domain of yes/no columns a, b, ..., of which only these cells exist, if some are given."""
    names = list("abcdefgh"[:d])
    return Domain(names, None if cells is None else leaving(names, cells))


def leaving(names, cells):
    """A predicate that holds in some cells of yes/no columns, given by their numbers."""
    d = len(names)
    held = [
        " & ".join(name if cell >> (d - 1 - i) & 1 else f"~{name}" for i, name in enumerate(names))
        for cell in sorted(cells)
    ]
    return " | ".join(f"({each})" for each in held)


def latent(d, n, seed, classes=4):
    """A frame of d yes/no columns that depend on each other by a few classes of rows alone."""
    generator = np.random.default_rng(seed)
    rates = generator.beta(1, 1, (classes, d))[generator.integers(0, classes, n)]
    return pd.DataFrame(
        (generator.random((n, d)) < rates).astype(np.int64), columns=[f"a{i}" for i in range(d)]
    )


def tied(sizes, n, seed=0, loose=0.5):
    """Codes of columns that all follow one hidden number, the looser the less; shape (n, columns)."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(n)
    columns = [((hidden + loose * rng.random(n)) / (1 + loose) * k).astype(np.int64) for k in sizes]
    return np.stack(columns, axis=1)


def counted(domain, histogram):
    """The table with so many rows in each cell."""
    return Rows.from_counts(domain, domain.decode(domain.table()), histogram)


def universe(sizes, tables=2, ordered=False, rules=(), **more):
    """Columns of so many categories, and their tables: all of so many columns, or these."""
    if isinstance(tables, int):
        tables = tuple(combinations(range(len(sizes)), tables))
    return Universe(tuple(sizes), (ordered,) * len(sizes), tables, rules, **more)


def each_once(codes, sizes):
    """Rows of codes, shape (rows, columns), once each."""
    return checked(codes, np.ones(len(codes), dtype=np.int64), sizes)


def posed(matrix, data, rows):
    """The scores of counts over the cells, and their naive arguments: matrix, answers, n, cells, rows."""
    matrix = np.array(matrix, dtype=np.int64).reshape(len(matrix), len(data))
    answers, n = matrix @ np.array(data, dtype=np.int64), sum(data)
    return Scores.build(matrix, answers, n, rows), (matrix.tolist(), answers.tolist(), n, len(data), rows)


def census_of(scores, counted):
    """How many candidates have each score that any has."""
    return {int(level): count for level, count in zip(scores.levels, counted.counts, strict=True) if count}


def same(found, expected):
    """Whether two censuses are the same to the last count."""
    return found.levels.tolist() == expected.levels.tolist() and found.counts == expected.counts
