"""What a strategy may ask of the data, by the mathematics that makes the answer private.

- `Noisy`: linear counts, with noise for how far a row moves them.
- `Worst`: the candidate that is furthest from what was foretold, by the exponential mechanism.
- `Number`: one function of the data, with noise for how far a row moves it.
- `SmallDatabase`: the exponential mechanism over all small databases.

Each has one proof: docs/proofs/curator.md. `Coins` and `Order` ask for random bits alone, and see no data.
"""

from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from queries import Rows
from queries.arrays import Booleans
from queries.domain import Integers
from smalldb.exact.bits import BitSource
from smalldb.exact.integers import uniform_permutation
from smalldb.marginals.counts import Counts, Linear, SumsOfOffsets
from smalldb.marginals.measuring import LIMIT, PrivacyMeasure
from smalldb.mechanisms import Dependence, Drawn, Marginal, Measurement, Offsets, Parity
from smalldb.noise.distributions import Noise
from smalldb.noise.privacy_loss import Loss
from smalldb.selection import select

NOTHING = Loss.none()


@dataclass(frozen=True, eq=False, kw_only=True)
class Ask(ABC):
    """What a strategy wants to know; public as a whole."""

    loss: Loss  # of the answer, from public numbers alone

    @abstractmethod
    def exact(self, data: Counts) -> Any:
        """Return what the answer is drawn from: private."""

    @abstractmethod
    def draw(self, exact: Any, coins: BitSource) -> Any:
        """Draw the answer."""

    def pack(self, answer: Any) -> Any:
        """Return the answer as JSON holds it exactly."""
        return answer

    def unpack(self, packed: Any) -> Any:
        """Return the answer again."""
        return packed

    def measurements(self, answer: Any, selecting: Fraction | None) -> Sequence[Measurement]:
        """Return what is published of the answer; `selecting` paid for choosing what it is about."""
        return ()


@dataclass(frozen=True, eq=False)
class Noisy(Ask):
    """Linear counts with noise; the answer is the noisy numbers, one part after another."""

    of: Linear
    noises: tuple[tuple[Noise, int], ...]  # each with how many of the numbers have it, in order
    cost: Fraction  # an epsilon, or a rho
    at: int | None = None  # the one number that is released; None: all of them

    def exact(self, data: Counts) -> Integers:
        """Return the counts without noise: private."""
        if self.at is not None:
            return data.count(self.of, often=True)[0][[self.at]]
        return np.concatenate([table.ravel() for table in data.count(self.of)])

    # Proof: docs/proofs/curator.md, lemma 1; docs/proofs/draw.md, lemma 7; docs/proofs/pairs.md, lemma 6;
    # docs/proofs/rounds.md, lemma 2.
    def draw(self, exact: Integers, coins: BitSource) -> Integers:
        """Add the noise."""
        noise = np.concatenate([noise.draw(many, coins) for noise, many in self.noises])
        # a function of the sum with the whole noise: what was cut off at CLIP is beyond LIMIT with any count
        return np.asarray(np.clip(exact + noise, -LIMIT, LIMIT))

    def pack(self, answer: Integers) -> list[int]:
        """Return the numbers."""
        found: list[int] = answer.tolist()
        return found

    def unpack(self, packed: list[int]) -> Integers:
        """Return the numbers again."""
        return np.array(packed, dtype=np.int64)

    def measurements(self, answer: Integers, selecting: Fraction | None) -> list[Measurement]:
        """Return, for each noise, the parts that have it; nothing of the sums of queries."""
        of: Any = self.of.of if isinstance(self.of, SumsOfOffsets) else self.of
        if not isinstance(of, Sequence):
            return []
        parts: Iterator[Marginal | Parity | Offsets] = iter(of)
        found, cost = list[Measurement](), self.cost
        ends = np.cumsum([many for _, many in self.noises])[:-1]
        for (noise, many), values in zip(self.noises, np.split(answer, ends), strict=True):
            some, left = list[Marginal | Parity | Offsets](), many
            while left > 0:
                some.append(next(parts))
                left -= some[-1].size
            concentrated = self.loss.epsilon is None
            found.append(Measurement(tuple(some), values.copy(), noise, cost, concentrated, selecting))
            cost = Fraction(0)
        return found


# Proof: docs/proofs/curator.md, lemma 1.
def one_table(of: Marginal, law: PrivacyMeasure, cost: Fraction) -> Noisy:
    """Ask for one table."""
    return Noisy((of,), ((law.noise(cost), of.size),), cost, loss=law.loss_of_table(cost))


# Proof: docs/proofs/k-norm.md, lemma 3; docs/proofs/curator.md, lemma 1.
def columns_at_once(of: Sequence[Marginal], law: PrivacyMeasure, cost: Fraction) -> Noisy:
    """Ask for columns at once, of a pure cost: a row stands in one category of each."""
    sizes = tuple(each.size for each in of)
    return Noisy(tuple(of), ((law.noise_of_columns(sizes, cost), sum(sizes)),), cost, loss=Loss.pure(cost))


# Proof: docs/proofs/curator.md, lemma 5.
def offsets_at_once(of: Sequence[Offsets], law: PrivacyMeasure, cost: Fraction) -> Noisy:
    """Ask where numbers lie in the bins of columns: a row moves one sum of each by at most half a bin."""
    each, halves = cost / len(of), 2 if law.replaced else 1
    # a row that is replaced may move one sum by all of a bin: from its low end to its high end
    noises = tuple((law.noise_of_number(each, halves * part.units // 2), part.size) for part in of)
    return Noisy(SumsOfOffsets(tuple(of)), noises, cost, loss=law.loss_of_number(cost))


@dataclass(frozen=True, eq=False)
class Worst(Ask):
    """The candidate that is furthest from what was foretold, less a public penalty; the answer is its number.

    Some candidates are not possible. Others are only found not to be when they are drawn: then another one is
    drawn, as if they had never been there. One must be left in the end.
    """

    # Weights 1, 2 and 3, and the third is refused: drawn again until it is another, the first two have
    # probabilities 1/3 and 2/3.

    of: Linear
    scores: Callable[[list[Integers]], Integers]
    moved: int  # how far a score moves between neighbours, at most
    epsilon: Fraction  # of the exponential mechanism
    cost: Fraction  # an epsilon, or a rho
    possible: Booleans | None = None  # None: all of them
    refused: Callable[[int], Booleans | None] = lambda _: None  # with one that is drawn in vain, others

    def exact(self, data: Counts) -> Integers:
        """Return the scores: private."""
        return self.scores(data.count(self.of, often=True))

    # Proof: docs/proofs/curator.md, lemma 2; docs/proofs/rounds.md, lemmas 4 and 5;
    # docs/proofs/safeguard.md, lemma 3; docs/proofs/related.md, lemma 3.
    def draw(self, exact: Integers, coins: BitSource) -> int:
        """Draw a candidate by the exact exponential mechanism."""
        left = np.ones(len(exact), dtype=bool) if self.possible is None else self.possible.copy()
        while True:
            at = np.flatnonzero(left)
            chosen = int(at[select(exact[at], epsilon=self.epsilon, sensitivity=self.moved, rng=coins).index])
            others = self.refused(chosen)
            if others is None:
                return chosen
            left &= ~others


@dataclass(frozen=True, eq=False)
class Number(Ask):
    """One function of linear counts, with noise; the answer is a whole number."""

    of: Linear
    function: Callable[[list[Integers]], int]
    noise: Noise  # for how far a row moves the function
    cost: Fraction
    part: Dependence  # as it is published

    def exact(self, data: Counts) -> Integers:
        """Return the number without noise: private."""
        # like a count: where noise itself is cut off, nothing shows
        return np.array([min(LIMIT, self.function(data.count(self.of, often=True)))], dtype=np.int64)

    # Proof: docs/proofs/curator.md, lemma 3.
    def draw(self, exact: Integers, coins: BitSource) -> int:
        """Add the noise."""
        return int(np.clip(exact + self.noise.draw(1, coins), -LIMIT, LIMIT)[0])

    def measurements(self, answer: int, selecting: Fraction | None) -> list[Measurement]:
        """Return the number."""
        return [Measurement((self.part,), np.array([answer]), self.noise, self.cost)]


class DrawnAtOnce(Protocol):
    """SmallDB: a mechanism that draws a small database by its score, among all there are."""

    def draw(self, table: Rows, source: BitSource, progress: bool) -> Drawn:
        """Draw one."""


@dataclass(frozen=True, eq=False)
class SmallDatabase(Ask):
    """The exponential mechanism over all small databases; the answer is what it drew."""

    mechanism: DrawnAtOnce
    progress: bool

    def exact(self, data: Counts) -> Rows:
        """Return the rows: private."""
        return data.table

    # Proof: docs/proofs/curator.md, lemma 4.
    def draw(self, exact: Rows, coins: BitSource) -> Drawn:
        """Draw a database."""
        return self.mechanism.draw(exact, coins, self.progress)

    def pack(self, answer: Drawn) -> dict[str, Any]:
        """Return what is public of it; what is confidential is then gone."""
        codes = np.ascontiguousarray(answer.codes)
        return {
            "places": b64encode(codes.tobytes()).decode("ascii"),
            "dtype": codes.dtype.str,
            "shape": codes.shape,
            "bound": None if answer.bound is None else float(answer.bound).hex(),
            "covers": list(answer.covers),
        }

    def unpack(self, packed: dict[str, Any]) -> Drawn:
        """Return it again."""
        codes = np.frombuffer(b64decode(packed["places"]), np.dtype(packed["dtype"]))
        bound = None if packed["bound"] is None else float.fromhex(packed["bound"])
        return Drawn(codes.reshape(packed["shape"]).copy(), bound, tuple(packed["covers"]))


@dataclass(frozen=True, eq=False)
class Coins(Ask):
    """Random bits for what follows from released numbers: a whole number."""

    bits: int = 64
    loss: Loss = field(default=NOTHING, kw_only=True)

    def exact(self, data: Counts) -> None:
        """See nothing of the data."""

    def draw(self, exact: None, coins: BitSource) -> int:
        """Draw them."""
        return coins.bits(self.bits)


@dataclass(frozen=True, eq=False)
class Order(Ask):
    """A uniformly random order of so many rows; it is not kept, but drawn anew of the same bits."""

    rows: int
    loss: Loss = field(default=NOTHING, kw_only=True)

    def exact(self, data: Counts) -> None:
        """See nothing of the data."""

    def draw(self, exact: None, coins: BitSource) -> Integers:
        """Draw it."""
        return uniform_permutation(self.rows, coins)
