"""The census by enumeration: every small database is looked at once."""

from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from queries.arrays import Integers
from smalldb.counting import multisets
from smalldb.counting.databases import shown
from smalldb.counting.recursion import lifetimes
from smalldb.counting.scores import Scores
from smalldb.files.checkpoints import Checkpoint, Folder, finished, identity

if TYPE_CHECKING:
    from smalldb.kernels.enumeration import Walk

SHARD = 20_000_000  # candidates: some tens of milliseconds of one thread
MAX_SHARDS = 1 << 12
TALLIES = 1 << 24  # entries of the kept histograms, at most 128 MiB
TABLE_BYTES = 1 << 25
LEAF_COST = 30  # to visit a leaf takes about as long as to fill this many table entries


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Enumeration:
    """How many small databases have each rank, and which they are."""

    # for each of ``Scores.levels``, how many candidates have that score (zeros included)
    counts: tuple[int, ...]
    _walk: "Walk"
    _scores: Scores
    _bounds: Integers  # (shards + 1,): shard i is the candidates bounds[i] .. bounds[i + 1] - 1
    _tallies: Integers  # (shards, levels)

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave the tables of the walk behind, which are many megabytes and made anew in a moment."""
        return _restored, (self.counts, self._scores, self._bounds, self._tallies)

    def candidate(self, rank: int, index: int) -> Integers:
        """Return the index-th candidate of a rank, as counts (N,) over the domain's cells."""
        # the order is that of `multisets` over the cells in processing order; one shard is walked
        # again
        if not (0 <= rank < len(self.counts) and 0 <= index < self.counts[rank]):
            raise IndexError("rank must be that of a level, and index below the count of that level")
        from smalldb.kernels.enumeration import visit

        ends = np.cumsum(self._tallies[:, rank])
        shard = int(np.searchsorted(ends, index, side="right"))
        before = int(ends[shard] - self._tallies[shard, rank])
        start, stop = self._bounds[shard : shard + 2].tolist()
        cells = self._scores.cells
        head = head_counts(self._walk, len(cells), start)
        unused = np.zeros((1, 0), dtype=np.int64)
        passed = int(visit(self._walk, head, stop - start, rank, index - before, unused))
        candidate = np.empty_like(cells)
        candidate[cells] = multisets.unrank(start + passed, len(cells), self._walk.rows)
        return candidate


def _restored(counts: tuple[int, ...], scores: Scores, bounds: Integers, tallies: Integers) -> Enumeration:
    return Enumeration(counts, prepare(scores), scores, bounds, tallies)


def enumerate_scores(
    scores: Scores,
    *,
    threads: int | None = None,
    executor: Executor | None = None,
    shards: int = 1,
    checkpoint: Folder | None = None,
    progress: bool = False,
    shard: int = SHARD,
) -> Enumeration:
    """Count the small databases at each score by looking at every one of them."""
    cells, levels = len(scores.cells), len(scores.levels)
    total = multisets.count(cells, scores.rows)
    walk = prepare(scores)
    # by the number of ranks, which is public, not by that of levels, which is not
    most = max(1, min(MAX_SHARDS, TALLIES // max(1, len(scores.ranks))))
    shard = max(min(shard, -(-total // shards)), -(-total // most))
    starts = [leaf_start(walk, cells, position) for position in range(0, total, shard)]
    bounds = np.unique([*starts, total])
    parts = list(pairwise(bounds.tolist()))
    tallies = np.empty((len(parts), levels), dtype=np.int64)
    kept = None
    if checkpoint is not None:
        run = identity("enumeration", bounds, *scores.parts)
        kept = Checkpoint(checkpoint, run, np.ndarray.tolist, partial(np.array, dtype=np.int64))
    count_part = partial(tally_shard, walk, cells, levels)
    results = finished(count_part, parts, executor=executor, threads=threads, checkpoint=kept)
    for i, tally in shown(results, parts, progress, " candidates", scale=True):
        tallies[i] = tally
    return Enumeration(tuple(tallies.sum(axis=0).tolist()), walk, scores, bounds, tallies)


def tally_shard(walk: "Walk", cells: int, levels: int, shard: tuple[int, int]) -> Integers:
    """Count the candidates of each rank in a shard; all arguments are picklable."""
    from smalldb.kernels.enumeration import visit

    start, stop = shard
    banks = np.zeros((4 if levels < 1 << 12 else 1, levels), dtype=np.int64)
    visit(walk, head_counts(walk, cells, start), stop - start, -1, 0, banks)
    tally: Integers = banks.sum(axis=0)
    return tally


def head_counts(walk: "Walk", cells: int, position: int) -> Integers:
    """Return the counts on the head of the candidate at a position."""
    counts = multisets.unrank(position, cells, walk.rows)
    return np.array(counts[: len(walk.touch_starts) - 1], dtype=np.int64)


def leaf_start(walk: "Walk", cells: int, position: int) -> int:
    """Return the position of the first candidate in the leaf of the candidate at a position."""
    return position - multisets.rank(
        multisets.unrank(position, cells, walk.rows)[len(walk.touch_starts) - 1 :]
    )


def prepare(scores: Scores, tail: int | None = None) -> "Walk":
    """Tabulate what the walk reads, with the last ``tail`` cells as its tail (default: `tail_cells`)."""
    from smalldb.kernels.enumeration import Walk, fill

    weights, rows, origins = scores.weights, scores.rows, scores.offsets[:-1]
    ranks = scores.ranks.astype(np.uint8) if len(scores.ranks) <= 1 << 8 else scores.ranks
    settled = lifetimes(weights)[1] + 1  # after how many cells all that follow have the same weight
    if tail is None:
        tail = tail_cells(weights, settled, rows, ranks.itemsize)
    head = len(weights) - tail
    position = np.arange(head)[:, None]
    touch_starts, touch_cells, touch_queries = entries((weights[:head] > 0) & (settled > position))
    settle_starts, _, settle_queries = entries(settled == position + 1)
    floor = int(ranks[origins[settled == 0]].max(initial=0))

    live = np.flatnonzero(settled > head)
    ways = np.array([multisets.count(tail, left) for left in range(rows + 1)], dtype=np.int64)
    used = np.arange(rows, -1, -1)[:, None]
    least, most = weight_range(weights[:head, live])
    lows: Integers = origins[live] + used * least
    highs: Integers = origins[live] + used * most
    if not head:  # all rows are left
        highs[:-1] = lows[:-1] - 1
    lengths = (highs - lows + 1) * ways[:, None]
    starts = lengths.cumsum().reshape(lengths.shape) - lengths - lows * ways[:, None]
    table = np.empty(lengths.sum(), dtype=ranks.dtype)
    if len(live):
        fill(np.ascontiguousarray(weights[head:, live]), lows, highs, ways, starts, ranks, table)
    return Walk(
        rows=rows,
        floor=floor,
        origins=origins,
        touch_starts=touch_starts,
        touch_queries=touch_queries,
        touch_weights=weights[touch_cells, touch_queries],
        settle_starts=settle_starts,
        settle_queries=settle_queries,
        settle_weights=weights[-1, settle_queries],
        ranks=ranks,
        live=live,
        ways=ways,
        starts=starts,
        table=table,
    )


def entries(mask: npt.NDArray[np.bool_]) -> tuple[Integers, Integers, Integers]:
    """List the true entries row by row: where each row starts (rows + 1,), their rows and columns."""
    rows, columns = np.nonzero(mask)
    starts = np.concatenate(([0], np.cumsum(mask.sum(axis=1))))
    # one memory layout, so that one compiled kernel serves all
    return starts, np.ascontiguousarray(rows), np.ascontiguousarray(columns)


def weight_range(weights: Integers) -> tuple[Integers, Integers]:
    """Return the least and largest weight of each query; 0 and 0 over no cells."""
    if not len(weights):
        weights = np.zeros((1, weights.shape[1]), dtype=np.int64)
    return weights.min(axis=0), weights.max(axis=0)


def tail_cells(weights: Integers, settled: Integers, rows: int, itemsize: int) -> int:
    """Choose how many cells are tabulated: least work with tables of at most `TABLE_BYTES`."""
    spreads = np.maximum.accumulate(weights) - np.minimum.accumulate(weights)
    best, chosen = None, 1  # one cell: no query is live
    for tail in range(1, len(weights) + 1):
        head = len(weights) - tail
        live = settled > head
        size = int(live.sum()) * comb(rows + tail - 1, rows)
        if size * itemsize > TABLE_BYTES:
            break
        if head:  # sum over the rows left of (positions of all live queries) * ways
            spread = int(spreads[head - 1, live].sum())
            size = int(live.sum()) * comb(rows + tail, tail) + spread * comb(rows + tail, tail + 1)
        work = LEAF_COST * comb(head + rows, rows) + size
        if size * itemsize <= TABLE_BYTES and (best is None or work < best):
            best, chosen = work, tail
    return chosen
