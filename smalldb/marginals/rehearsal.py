"""A release that is rehearsed on a public table: what it would be off by on data like that."""

import numpy as np

from queries.arrays import splitmix64
from queries.domain import Integers
from smalldb.exact.bits import SeededBits
from smalldb.marginals.counted_rows import CountedRows
from smalldb.marginals.counts import InMemory
from smalldb.marginals.curator import Curator, PrivacyFilter
from smalldb.marginals.strategies.from_start import FromStart, asked_tables
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
    made = curator.follow(strategy.release(rows)).codes
    asked = asked_tables(universe)
    tables = zip(_counted(drawn).count(asked), _counted(made.astype(np.int64)).count(asked), strict=True)
    return sum(float(np.abs(one - two).sum()) for one, two in tables) / (2 * rows * len(asked))


def rehearse_from(strategy: FromStart, rows: int) -> float | None:
    """
    Return the same from a start; None: it has too few rows.

    Half of the start's rows, at random, are taken for the law of the data, and the others for the start. So
    it says what to expect where the data are like the start; else a release says it itself.
    """
    start = strategy.start
    odd = (splitmix64(len(start.counts), SEED) & np.uint64(1)).astype(np.int64)
    law = start.counts // 2 + start.counts % 2 * odd
    halves = [strategy.start.of(counts) for counts in (law, start.counts - law)]
    if any(len(half.counts) < 2 for half in halves):
        return None
    return rehearse(strategy.from_other(halves[1]), strategy.universe, halves[0], rows)


def _counted(codes: Integers) -> InMemory:
    return InMemory(CountedRows(np.asfortranarray(codes), np.ones(len(codes), dtype=np.int64)))
