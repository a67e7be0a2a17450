"""The census by dynamic programming: partial candidates with the same future are counted together."""

import os
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from math import comb
from typing import Any

from queries.arrays import Integers
from smalldb.counting.databases import advancing
from smalldb.counting.recursion import Cost, History, Layer, Limit, Prefix, Recursion
from smalldb.counting.scores import Candidates, Scores
from smalldb.files.checkpoints import Checkpoint, Folder, finished, identity


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Dynamic:
    """How many candidates have each rank, and which they are. Confidential."""

    # for each of ``Scores.levels``, how many candidates have that score (zeros included)
    counts: tuple[int, ...]
    cost: Cost  # what counting took
    _recursion: Recursion
    _prefixes: list[Prefix]
    _tallies: list[list[int]]
    _histories: dict[int, History] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave the kept layers behind: they are large, and counted again where they are needed."""
        return Dynamic, (self.counts, self.cost, self._recursion, self._prefixes, self._tallies)

    def candidate(self, rank: int, index: int) -> Integers:
        """Return the index-th candidate with that rank, as counts (N,) over the domain's cells."""
        # Multisets: a bijection, fixed for a number of shards. Tuples: each multiset stands at as
        # many indices as it has ordered rows, so its rows in uniform order are a uniform candidate.
        # Unless its layers are kept, one shard is counted again.
        if not (0 <= rank < len(self.counts) and 0 <= index < self.counts[rank]):
            raise IndexError("no candidate has that rank and index")
        shard = 0
        while index >= self._tallies[shard][rank]:
            index -= self._tallies[shard][rank]
            shard += 1
        prefix = self._prefixes[shard]
        if shard not in self._histories:
            self._histories.clear()
            self._histories[shard] = list(self._recursion.run(prefix, Cost()))
        return self._recursion.trace(prefix, self._histories[shard], rank, index)


def count_scores(
    scores: Scores,
    *,
    candidates: Candidates = "multisets",
    keep_layers: bool = False,
    threads: int | None = None,
    executor: Executor | None = None,
    shards: int = 1,
    checkpoint: Folder | None = None,
    limit: Limit | None = None,
    progress: bool = False,
) -> Dynamic:
    """Count the candidates at each score, exactly, without looking at each of them."""
    # A maximum needs the order of the scores, not their sizes, so keys hold ranks among all that can occur.
    # With n = 4, m = 2 and b = 1 and 3, the answers 0, 1, 2 score 2, 2, 6 and 6, 2, 2: two levels, hence one
    # bit for the running maximum, and as many for scores a million times as large.
    recursion = Recursion.build(scores, candidates)
    parts = prefixes(scores, shards)
    tallies: list[list[int]] = []
    histories: dict[int, History] = {}
    cost = Cost(limit=limit)
    with advancing(len(scores.cells) * len(parts), " cells", progress) as advance:
        if executor is not None or checkpoint is not None:
            kept = None
            if checkpoint is not None:
                run = identity("dynamic", candidates, parts, *scores.parts)
                kept = Checkpoint(checkpoint, run, _pack, _unpack)
            count_part = partial(count_shard, scores, candidates=candidates)
            results = finished(count_part, parts, executor=executor, threads=threads, checkpoint=kept)
            by_shard: dict[int, list[int]] = {}
            for shard, (tally, spent) in results:
                by_shard[shard] = tally
                cost.add(spent)
                advance(len(scores.cells))
            tallies = [by_shard[shard] for shard in range(len(parts))]
            return Dynamic(_totals(tallies), cost, recursion, parts, tallies)
        if threads is None:
            threads = os.cpu_count() or 1
        for shard, prefix in enumerate(parts):
            history: History = []
            for layers in recursion.run(prefix, cost, threads):
                history = [*history, layers] if keep_layers else [layers]
                advance(1)
            advance(len(prefix))
            tallies.append(recursion.tally(history[-1]))
            if keep_layers:
                histories[shard] = history
    return Dynamic(_totals(tallies), cost, recursion, parts, tallies, histories)


def count_shard(
    scores: Scores, prefix: Prefix, candidates: Candidates = "multisets"
) -> tuple[list[int], Cost]:
    """Count the candidates whose first cells hold the rows of ``prefix``, for each of ``scores.levels``."""
    recursion = Recursion.build(scores, candidates)
    cost = Cost()
    layers: list[Layer] = []
    for layers in recursion.run(prefix, cost):  # noqa: B007 - the last layers are wanted
        pass
    return recursion.tally(layers), cost


def prefixes(scores: Scores, shards: int) -> list[Prefix]:
    """Split all candidates into parts by the rows in the first cells of the processing order."""
    # Each candidate starts with exactly one of the prefixes, which are in lexicographic order. There
    # are at least ``shards``, or one for each multiset if those are fewer.
    cells = len(scores.cells)
    parts: list[Prefix] = [()]
    while len(parts) < shards:
        left = [scores.rows - sum(part) for part in parts]
        sizes = [comb(cells - len(part) + rows - 1, rows) for part, rows in zip(parts, left, strict=True)]
        largest = max(range(len(parts)), key=sizes.__getitem__)
        if sizes[largest] == 1:
            break
        part = parts[largest]
        parts[largest : largest + 1] = [(*part, rows) for rows in range(left[largest] + 1)]
    return parts


def _totals(tallies: list[list[int]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*tallies, strict=True)))


def _pack(counted: tuple[list[int], Cost]) -> list[Any]:
    """Write numbers in base 16: Python reads no decimal number of more than 4300 digits."""
    tally, spent = counted
    return [[f"{number:x}" for number in tally], spent.operations, spent.states, spent.peak]


def _unpack(packed: list[Any]) -> tuple[list[int], Cost]:
    return [int(number, 16) for number in packed[0]], Cost(*packed[1:])
