"""What contrasts ask of the data: counts of parities with noise, and which parity was predicted worst."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from queries import Rows
from queries.domain import Integers
from smalldb.marginals.contrasts.coding import Coding
from smalldb.marginals.contrasts.spectrum import Positions
from smalldb.marginals.curator import Curator
from smalldb.marginals.measuring import LIMIT
from smalldb.noise.distributions import Noise
from smalldb.selection import select


@dataclass(frozen=True, slots=True, eq=False)
class Parities:
    """How many rows are odd on each of some sets; under add-remove sums of signs (of no set: rows)."""

    coding: Coding
    sets: tuple[Positions, ...]
    noises: tuple[tuple[Noise, int], ...]  # each, and of how many of the sets, in order
    cost: Fraction

    def counts(self, curator: Curator) -> Integers:
        """Return them without noise: private."""
        codes, counts = curator.rows.codes, curator.rows.counts
        bits = (codes[:, list(self.coding.columns)] == np.array(self.coding.categories)).astype(np.uint8)
        odd = odd_counts(Rows.from_codes(self.coding.domain, bits, counts), self.sets)
        return odd if curator.law.replaced else int(counts.sum()) - 2 * odd

    # Proof: docs/proofs/wishart.md, lemma 4; docs/proofs/delta.md, lemma 2; docs/proofs/rounds.md, lemma 10.
    def answer(self, curator: Curator) -> Integers:
        """Release them."""

        def draw(coins: Any) -> Integers:
            noise = np.concatenate([noise.draw(many, coins) for noise, many in self.noises])
            values: Integers = np.clip(self.counts(curator) + noise, -LIMIT, LIMIT)
            return values

        return curator.journal.step(
            draw, lambda values: values.tolist(), lambda kept: np.array(kept, np.int64)
        )


@dataclass(frozen=True, slots=True, eq=False)
class WorstParity:
    """The rank of the set whose count is furthest from its prediction: the exact exponential mechanism."""

    coding: Coding
    sets: tuple[Positions, ...]
    predicted: Integers
    cost: Fraction

    # Proof: docs/proofs/safeguard.md, lemmas 2, 3 and 4.
    def answer(self, curator: Curator) -> int:
        """Release the rank; a row moves each score by at most 1."""
        exact = Parities(self.coding, self.sets, (), Fraction(0))

        def draw(coins: Any) -> int:
            scores = np.abs(exact.counts(curator) - self.predicted)
            return select(scores, epsilon=self.cost, sensitivity=1, rng=coins).index

        return curator.journal.step(draw)


def odd_counts(rows: Rows, sets: tuple[Positions, ...]) -> Integers:
    """
    Count the rows with an odd number of ones on each set of attributes, exactly: int64, shape (k,).

    Columns are packed bit by bit over the distinct rows, and so are the binary digits of the counts.
    Cost: k (distinct rows / 64) (digits of the largest count) words.
    """
    columns = _packed(rows.bits().T)
    digits = int(rows.counts.max(initial=0)).bit_length()
    planes = _packed(rows.counts >> np.arange(digits)[:, None] & 1)
    counts = np.empty(len(sets), dtype=np.int64)
    for position, chosen in enumerate(sets):
        odd = np.bitwise_xor.reduce(columns[list(chosen)], axis=0)
        ones = np.bitwise_count(planes & odd).sum(axis=1, dtype=np.int64)
        counts[position] = (ones << np.arange(digits)).sum()
    return counts


def _packed(bits: npt.NDArray[np.integer]) -> npt.NDArray[np.uint64]:
    """Pack rows of 0/1, shape (r, n), into words, shape (r, ceil(n / 64)); padded with 0."""
    rows, length = bits.shape
    padded = np.zeros((rows, -(-length // 64) * 64), dtype=np.uint8)
    padded[:, :length] = bits
    return np.packbits(padded, axis=1).view(np.uint64)
