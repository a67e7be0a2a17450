"""How wide the keys and the counts of states are, and where the fields of a key lie: public numbers alone."""

import numpy as np

from queries.arrays import Integers
from smalldb.counting.scores import Candidates, Scores, count

MAX_KEY_BITS = 128


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
