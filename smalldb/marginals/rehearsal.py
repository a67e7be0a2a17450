"""A release that is rehearsed on a public table: what it would be off by on data like that."""

from dataclasses import replace

import numpy as np

from queries.arrays import splitmix64
from queries.domain import Integers
from smalldb.exact.bits import SeededBits
from smalldb.marginals.counted_rows import CountedRows
from smalldb.marginals.counts import InMemory
from smalldb.marginals.curator import Curator, PrivacyFilter
from smalldb.marginals.strategies.from_start import FromStart, apart, start_tables
from smalldb.marginals.strategies.strategy import Strategy
from smalldb.marginals.universe import Universe
from smalldb.mechanisms import Journal
from smalldb.mechanisms.start import Start

MOST = 1 << 16  # rows
SEED = 7  # which is public


def rehearse(strategy: Strategy, universe: Universe, law: Start, rows: int) -> float:
    """Return the mean distance of tables of two columns of a release of so many rows, drawn from a start."""
    rows = min(rows, MOST)
    upto = np.cumsum(law.counts)
    uniform = splitmix64(rows, SEED + 1) / 2.0**64  # people differ by chance from their law, as a draw does
    drawn = law.codes[np.searchsorted(upto[:-1], uniform * upto[-1], side="right")]
    budget = PrivacyFilter(strategy.loss.amount, strategy.law.replaced)
    curator = Curator(_counted(drawn), Journal(SeededBits(SEED)), budget)
    released = curator.follow(strategy.release(rows)).codes.astype(np.int64)
    tables = start_tables(universe)
    distance = apart(_counted(released).count(tables), _counted(drawn).count(tables))
    return distance / (2 * rows * len(tables))


def rehearse_from(strategy: FromStart, rows: int) -> float | None:
    """Return the same from a start, half of whose rows are taken for the data's law; None: it has too few."""
    start = strategy.start
    odd = (splitmix64(len(start.counts), SEED) & np.uint64(1)).astype(np.int64)
    law = start.counts // 2 + start.counts % 2 * odd
    halves = [start.of(counts) for counts in (law, start.counts - law)]
    if any(len(half.counts) < 2 for half in halves):
        return None
    return rehearse(replace(strategy, start=halves[1]), strategy.universe, halves[0], rows)


def _counted(codes: Integers) -> InMemory:
    return InMemory(CountedRows(np.asfortranarray(codes), np.ones(len(codes), dtype=np.int64)))
