"""The recursion over the cells by which the dynamic program counts: keys, layers, and the way back.

A state is (rows used, running maximum rank, answers of the live queries), packed into a key of one or two
words; the states of one number of rows are a layer, sorted by key. States with the same future are joined.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import comb, prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from queries.arrays import Integers, Words
from smalldb.counting.scores import Candidates, Scores, base_measure, count

if TYPE_CHECKING:
    from smalldb.kernels.dynamic import Program, Step

MAX_KEY_BITS = 128

Layer = tuple[Words, Words]  # keys and counts of the states with the same number of rows used
History = list[list[Layer]]
Prefix = tuple[int, ...]
THREADED = 1 << 14  # states: settling fewer costs less than handing them to a thread


def key_bits(scores: Scores) -> int:
    """Return the bits of a key, from public numbers alone: weights, rows and lengths of the rank tables."""
    # beyond `MAX_KEY_BITS`: at least that many, from the fields that are in use at one time
    born, settled = lifetimes(scores.weights)
    used = np.flatnonzero(settled >= born)
    widths = np.array([field_bits(scores, j) for j in used.tolist()], dtype=np.int64)
    change = np.zeros(len(scores.cells) + 1, dtype=np.int64)
    np.add.at(change, born[used], widths)
    np.subtract.at(change, settled[used] + 1, widths)
    least = rank_bits(scores) + int(change.cumsum().max())
    return least if least > MAX_KEY_BITS else layout(scores)[1]


def state_bytes(scores: Scores, candidates: Candidates = "multisets") -> int:
    """Return the bytes of a state, its key and its count, from public numbers alone."""
    return 8 * (-(-key_bits(scores) // 64) + limbs(scores, candidates))


def limbs(scores: Scores, candidates: Candidates) -> int:
    """Return the uint64 words of a count: the number of all candidates fits, and no sum is larger."""
    return -(-count(len(scores.cells), scores.rows, candidates).bit_length() // 64)


def layout(scores: Scores) -> tuple[list[int], int]:
    """Place the fields of the queries in the key; also return the bits of the key."""
    # A field is as wide as the query's largest answer, does not cross a word, and is in use from the
    # cell where the query's weights start to differ to the cell after which they no longer do
    born, settled = lifetimes(scores.weights)
    positions = [0] * len(born)
    bits = least = rank_bits(scores)
    taken: dict[int, tuple[int, int]] = {}
    for cell in range(len(scores.cells)):
        taken = {j: span for j, span in taken.items() if settled[j] >= cell}
        for j in np.flatnonzero((born == cell) & (settled >= cell)).tolist():
            width = field_bits(scores, j)
            positions[j] = _gap([(0, least), *taken.values()], width)
            taken[j] = positions[j], positions[j] + width
            bits = max(bits, positions[j] + width)
    return positions, bits


def rank_bits(scores: Scores) -> int:
    """Return the bits of the running maximum rank."""
    return max(1, (len(scores.ranks) - 1).bit_length())


def field_bits(scores: Scores, query: int) -> int:
    """Return the bits of a query's field: its largest answer fits."""
    return int(scores.offsets[query + 1] - scores.offsets[query] - 1).bit_length()


def lifetimes(weights: Integers) -> tuple[Integers, Integers]:
    """Return the first cell whose weight is not that of cell 0, and the last that is not of cell N - 1."""
    # N and -1 for a query whose weights are all the same
    cells = len(weights)
    early, late = weights != weights[0], weights != weights[-1]
    born = np.where(early.any(axis=0), early.argmax(axis=0), cells)
    settled = np.where(late.any(axis=0), cells - 1 - late[::-1].argmax(axis=0), -1)
    return born, settled


def _gap(taken: list[tuple[int, int]], width: int) -> int:
    """Return the first bit of the first free gap of ``width`` bits within a word."""
    position = 0
    for start, end in [*sorted(taken), (1 << 62, 1 << 62)]:
        if position // 64 != (position + width - 1) // 64:
            position = (position // 64 + 1) * 64
        if position + width <= start:
            break
        position = max(position, end)
    return position


class Limit(NamedTuple):
    """The most that a run may take: operations, and bytes with all its layers kept."""

    operations: int
    memory: int


class BeyondLimit(Exception):
    """A run was stopped at its limit. Depends on the data: never for a user's eyes."""


@dataclass(slots=True)
class Cost:
    """What counting took. Confidential: it depends on the data."""

    operations: int = 0  # states touched in merging and settling
    states: int = 0  # states of all settled layers
    # the most bytes in use at a time, of one shard in one thread, without layers kept for later
    peak: int = 0
    limit: Limit | None = None  # where to stop; None: nowhere

    def check(self, memory: int) -> None:
        """Raise `BeyondLimit` if more was taken, or more bytes are in use, than the limit allows."""
        if self.limit and (self.operations > self.limit.operations or memory > self.limit.memory):
            raise BeyondLimit

    def add(self, other: "Cost") -> None:
        """Account for another run after this one."""
        self.operations += other.operations
        self.states += other.states
        self.peak = max(self.peak, other.peak)


# Proof: docs/proofs/census.md, lemma 7.
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Recursion:
    """The recursion over the cells for one census."""

    scores: Scores  # what is counted
    ordered: bool  # whether candidates are tuples
    limbs: int  # uint64 words of a count
    program: "Program"  # the queries, and their fields of keys
    deltas: Words  # shape (N, words): what one row in a cell adds to a key
    # least, most: shape (N, k): the least and the greatest weight of each query, from each cell on
    least: Integers
    most: Integers

    @classmethod
    def build(cls, scores: Scores, candidates: Candidates) -> "Recursion":
        """Lay out keys and counts."""
        from smalldb.kernels.dynamic import Program

        ordered = base_measure(candidates) == "tuples"
        weights, (cells, queries) = scores.weights, scores.weights.shape
        bits = key_bits(scores)
        if bits > MAX_KEY_BITS:
            raise ValueError(
                f"the dynamic program would need keys of {bits} bits, more than {MAX_KEY_BITS}: "
                "use fewer queries or rows, or the enumeration"
            )
        positions, _ = layout(scores)
        born, settled = lifetimes(weights)
        words = -(-bits // 64)
        deltas = np.zeros((cells, words), dtype=np.uint64)
        for j, position in enumerate(positions):
            live = slice(born[j], settled[j] + 1)
            deltas[live, position // 64] += weights[live, j].astype(np.uint64) << np.uint64(position % 64)
        program = Program(
            ranks=scores.ranks.astype(np.uint32),
            offsets=scores.offsets.copy(),
            best=np.array(
                [a + np.argmin(scores.ranks[a:b]) for a, b in pairwise(scores.offsets)],
                dtype=np.int64,
            ),
            opening=weights[0].copy(),
            born=born,
            settled=settled,
            positions=np.array(positions, dtype=np.int64),
            widths=np.array([field_bits(scores, j) for j in range(queries)], dtype=np.int64),
            words=words,
            rank_bits=rank_bits(scores),
        )
        return cls(
            scores,
            ordered,
            limbs(scores, candidates),
            program,
            deltas,
            np.minimum.accumulate(weights[::-1])[::-1],
            np.maximum.accumulate(weights[::-1])[::-1],
        )

    def run(self, prefix: Prefix, cost: Cost, threads: int = 1) -> Iterator[list[Layer]]:
        """Yield the layers of 0 .. m rows before the first cell after ``prefix``, and after each cell."""
        layers = self.opening(prefix)
        yield layers
        with ThreadPoolExecutor(threads) as pool:
            for cell in range(len(prefix), len(self.deltas) - 1):
                layers = self.advance(layers, cell, cost, threads, pool)
                yield layers

    def opening(self, prefix: Prefix) -> list[Layer]:
        """Return the layers that hold the one state of a prefix."""
        from smalldb.kernels.dynamic import settle

        words = self.deltas.shape[1]
        # in how many orders its rows can stand
        weight = prod(map(comb, accumulate(prefix), prefix)) if self.ordered else 1
        keys, counts = np.zeros((1, words), np.uint64), _digits(weight, 64, self.limbs)[None]
        keys, counts = settle(keys, counts, keys[0], self.step(-1, 0))
        for cell, taken in enumerate(prefix):
            delta = np.uint64(taken) * self.deltas[cell]
            keys, counts = settle(keys, counts, delta, self.step(cell, sum(prefix[: cell + 1])))
        empty = np.zeros((0, words), np.uint64), np.zeros((0, self.limbs), np.uint64)
        layers = [empty] * (self.scores.rows + 1)
        layers[sum(prefix)] = keys, counts
        return layers

    def step(self, cell: int, used: int, done: bool = True) -> "Step":
        """Say how the keys of ``used`` rows change after a cell, or while it is still open."""
        from smalldb.kernels.dynamic import plan_step

        later = cell + 1 if done else cell
        left = self.scores.rows - used
        return plan_step(self.program, cell, done, used, left, self.least[later], self.most[later])

    def ways(self, rows: int, copies: int) -> int:
        """Return in how many ways the copies of a cell can stand among the rows placed so far."""
        return comb(rows, copies) if self.ordered else 1

    def advance(
        self, layers: list[Layer], cell: int, cost: Cost, threads: int, pool: ThreadPoolExecutor
    ) -> list[Layer]:
        """Place any number of rows in a cell and settle each layer as soon as it is complete."""
        # The layer of one more row is the old one of that size and, with one more copy, the one
        # just made. Multisets settle the copies first, with the cell still open: what they join to
        # now they would join to after it (the reachable answers only narrow), and far fewer states
        # are merged.
        from smalldb.kernels.census_layers import merge
        from smalldb.kernels.dynamic import settle

        delta = self.deltas[cell]
        # the counts of tuples are not sums along the copies: only their keys are made here
        sources = [(keys, counts[:, :0].copy()) for keys, counts in layers] if self.ordered else layers
        results: list[Layer | Future[Layer]] = []
        waiting: deque[Future[Layer]] = deque()
        layer, largest, row = sources[0], 0, 8 * (self.deltas.shape[1] + self.limbs)
        kept = cost.states
        for used in range(len(layers)):
            # beside all settled layers: two merged ones, a copy of the keys and the counts, the table
            kept, largest = kept + len(layer[0]), max(largest, len(layer[0]))
            cost.check(kept * row + largest * (3 * row + 16))
            if threads == 1 or len(layer[0]) < THREADED:
                results.append(self.complete(layers, cell, used, layer))
            else:
                if len(waiting) == threads:
                    waiting.popleft().result()
                waiting.append(pool.submit(self.complete, layers, cell, used, layer))
                results.append(waiting[-1])
            cost.operations += len(layer[0])
            if self.ordered:
                cost.operations += sum(len(keys) for keys, _ in layers[: used + 1])
            if used + 1 < len(layers):
                keys, counts = layer
                if self.ordered:
                    keys = keys + delta
                else:
                    keys, counts = settle(keys, counts, delta, self.step(cell, used + 1, done=False))
                cost.operations += len(layer[0]) + len(keys) + len(sources[used + 1][0])
                layer = merge(*sources[used + 1], keys, counts)
        settled = [result.result() if isinstance(result, Future) else result for result in results]
        cost.states += sum(len(keys) for keys, _ in settled)
        cost.peak = max(cost.peak, _bytes(layers) + _bytes(settled) + largest * (3 * row + 16))
        return settled

    def complete(self, layers: list[Layer], cell: int, used: int, layer: Layer) -> Layer:
        """Settle a layer that is made; for tuples, count its states first."""
        from smalldb.kernels.census_layers import add_multiple
        from smalldb.kernels.dynamic import settle

        keys, counts = layer
        if self.ordered:
            counts = np.zeros((len(keys), self.limbs), np.uint64)
            for copies in range(used + 1):
                if not len(layers[used - copies][0]):
                    continue
                ways = self.ways(used, copies)
                digits = _digits(ways, 32, -(-ways.bit_length() // 32))
                raised = np.uint64(copies) * self.deltas[cell]
                add_multiple(keys, counts, *layers[used - copies], raised, digits)
        return settle(keys, counts, np.zeros_like(self.deltas[cell]), self.step(cell, used))

    def tally(self, layers: list[Layer]) -> list[int]:
        """Return how many candidates have each rank, from the layers before the last cell."""
        # it takes the rows that are left; nothing but the rank is left of a key
        counts = [0] * len(self.scores.levels)
        for used, (keys, numbers) in enumerate(layers):
            for rank, number in zip(keys[:, 0].tolist(), _integers(numbers), strict=True):
                counts[rank] += self.ways(self.scores.rows, used) * number
        return counts

    def trace(self, prefix: Prefix, history: History, rank: int, index: int) -> Integers:
        """Return the candidate at an index: choose the rows of the last cell, then of each one before it."""
        # A state's count is the sum over its predecessors' counts (times the arrangements of the
        # copies), so the index says which one it came from, and leaves an index for that one
        from smalldb.kernels.dynamic import predecessors

        placed = np.zeros(len(self.deltas), dtype=np.int64)
        placed[: len(prefix)] = prefix
        for used, (keys, counts) in enumerate(history[-1]):
            positions = np.flatnonzero(keys[:, 0] == rank)
            ways = self.ways(self.scores.rows, used)
            if index < (number := ways * sum(_integers(counts[positions]))):
                target = keys[positions[0]]
                break
            index -= number
        index //= ways
        placed[-1] = self.scores.rows - used
        for cell in range(len(self.deltas) - 2, len(prefix) - 1, -1):
            step = self.step(cell, used)
            for copies in range(used + 1):
                keys, counts = history[cell - len(prefix)][used - copies]
                positions = predecessors(keys, np.uint64(copies) * self.deltas[cell], target, step)
                ends = list(accumulate(_integers(counts[positions])))
                ways = self.ways(used, copies)
                if index < (number := ways * ends[-1] if ends else 0):
                    break
                index -= number
            index //= ways
            position = bisect_right(ends, index)
            index -= ends[position - 1] if position else 0
            target = keys[positions[position]]
            placed[cell] = copies
            used -= copies
        candidate = np.empty_like(placed)
        candidate[self.scores.cells] = placed
        return candidate


def _bytes(layers: list[Layer]) -> int:
    return sum(keys.nbytes + counts.nbytes for keys, counts in layers)


def _digits(number: int, bits: int, length: int) -> Words:
    """Return a number's digits in base 2^bits, least significant first."""
    raw = number.to_bytes(length * bits // 8, "little")
    return np.frombuffer(raw, dtype=f"<u{bits // 8}").astype(np.uint64)


def _integers(counts: Words) -> list[int]:
    """Return counts, shape (states, limbs), as Python ints."""
    totals: list[int] = counts[:, -1].tolist()
    for limb in range(counts.shape[1] - 2, -1, -1):
        totals = [total << 64 | low for total, low in zip(totals, counts[:, limb].tolist(), strict=True)]
    return totals
