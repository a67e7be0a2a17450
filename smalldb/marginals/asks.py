"""What a strategy may ask of the data, by the mathematics that makes the answer private.

- `Noisy`: linear counts, with noise for how far a row moves them.
- `Worst`: the candidate that is furthest from what was foretold, by the exponential mechanism.
- `Number`: one function of the data, with noise for how far a row moves it.
- `SmallDatabase`: the exponential mechanism over all small databases.

Each has one proof: docs/proofs/curator.md. `Coins` and `Order` ask for random bits alone, and see no data.
"""

from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any, Protocol

import numpy as np

from queries import Rows
from queries.arrays import Booleans
from queries.domain import Integers
from smalldb.exact.bits import BitSource
from smalldb.exact.integers import uniform_permutation
from smalldb.marginals.counts import Answers, Counts, FinerBins, Linear, SumsOfOffsets
from smalldb.marginals.measuring import LIMIT, PrivacyMeasure
from smalldb.mechanisms import Dependence, Drawn, Guarantee, Marginal, Measurement, Offsets, Parity
from smalldb.noise.gaussian import moves
from smalldb.noise.noise_protocol import Moved, Noise
from smalldb.noise.privacy_loss import Amount
from smalldb.selection import select


@dataclass(frozen=True, eq=False)
class Ask(ABC):
    """What a strategy wants to know; public as a whole."""

    @abstractmethod
    def lost(self, replaced: bool, unit: int) -> Amount:
        """Return what the answer loses, from public numbers: what is protected weighs up to `unit`."""

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

    def measurements(self, answer: Any, cost: Fraction, selecting: Fraction | None) -> Sequence[Measurement]:
        """Return what is published of the answer; `selecting` paid for choosing what it is about."""
        return ()


@dataclass(frozen=True, eq=False)
class Noisy(Ask):
    """Linear counts with noise; the answer is the noisy numbers, one part after another."""

    of: Linear
    noises: tuple[tuple[Noise, int], ...]  # each with how many of the numbers have it, in order
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
        numbers: list[int] = answer.tolist()
        return numbers

    def unpack(self, packed: list[int]) -> Integers:
        """Return the numbers again."""
        return np.array(packed, dtype=np.int64)

    @property
    def parts(self) -> list[tuple[Any, ...]]:
        """What each noise is added to."""
        of: Any = self.of.of if isinstance(self.of, SumsOfOffsets) else self.of
        of = of if isinstance(of, Sequence) else (of,)
        ends = [*accumulate((part.size for part in of), initial=0)]
        at = [ends.index(end) for end in accumulate((many for _, many in self.noises), initial=0)]
        if at[-1] < len(of) or isinstance(self.of, Answers) == (self.at is None):
            raise AssertionError("there are numbers without noise of their own")
        return [tuple(of[start:end]) for start, end in pairwise(at)]

    # Proof: docs/proofs/curator.md, lemma 1.
    def lost(self, replaced: bool, unit: int) -> Amount:
        """Return what is lost by each noise for how far a row moves its numbers, where that is most."""
        noises, parts = [noise for noise, _ in self.noises], self.parts
        if not all(noise.fits(some) for noise, some in zip(noises, parts, strict=True)):
            raise AssertionError("a noise is for other counts")
        (concentrated,) = {noise.concentrated for noise in noises}
        of_parities = isinstance(parts[0][0], Parity)
        ways = (_moves if of_parities else _moved)(parts, replaced, unit)
        losses = [[noise.lost(moved) for noise, moved in zip(noises, way, strict=True)] for way in ways]
        most = max(sum(each, Fraction(0)) for each in losses)
        return Amount(rho=most) if concentrated else Amount(most)

    def measurements(self, answer: Integers, cost: Fraction, selecting: Fraction | None) -> list[Measurement]:
        """Return, for each noise, the parts that have it; nothing of the sums of queries."""
        if isinstance(self.of, Answers | FinerBins):
            return []
        values = np.split(answer, np.cumsum([many for _, many in self.noises])[:-1])
        costs = [cost, *[Fraction(0)] * (len(values) - 1)]
        released = zip(self.parts, values, self.noises, costs, strict=True)
        return [
            Measurement(some, numbers.copy(), noise, paid, selecting)
            for some, numbers, (noise, _), paid in released
        ]


# Proof: docs/proofs/rounds.md, lemma 1; docs/proofs/related.md, lemma 2.
def _moved(parts: Sequence[tuple[Any, ...]], replaced: bool, unit: int) -> Iterator[list[Moved]]:
    """Yield how far neighbours move tables and the like, for each noise; what is replaced may weigh less."""
    by_noise, rows, paired = list[Moved](), unit * (2 if replaced else 1), replaced and unit == 1
    for some in parts:
        each = [part.moved(replaced) for part in some]
        total, squares = sum(one.total for one in each), sum(one.squares for one in each)
        by_noise.append(Moved(unit * total, unit**2 * squares, rows, paired))
    yield by_noise


# Proof: docs/proofs/delta.md, lemma 3; docs/proofs/answers.md, lemma 2.
def _moves(parts: Sequence[tuple[Parity, ...]], replaced: bool, unit: int) -> Iterator[list[Moved]]:
    """Yield how far neighbours move parities, for each noise, for each way in which they may differ."""
    every = [part for some in parts for part in some]
    if unit > 1 or any(part.signed == replaced for part in every):
        raise AssertionError("these parities are of other neighbours")
    attributes = {one for part in every for one in zip(part.columns, part.yes, strict=True)}
    sizes = (Counter(len(part.columns) for part in some) for some in parts)
    for way in zip(*(moves(len(attributes), by_order, replaced) for by_order in sizes), strict=True):
        totals = (sum(by_order.values()) for by_order in way)
        yield [Moved(total, total, 2 if replaced else 1, replaced) for total in totals]


# Proof: docs/proofs/curator.md, lemma 1.
def one_table(of: Marginal, law: PrivacyMeasure, cost: Fraction) -> Noisy:
    """Ask for one table."""
    return Noisy((of,), ((law.noise(cost), of.size),))


# Proof: docs/proofs/k-norm.md, lemma 3; docs/proofs/curator.md, lemma 1.
def columns_at_once(of: Sequence[Marginal], law: PrivacyMeasure, cost: Fraction) -> Noisy:
    """Ask for columns at once, of a pure cost: a row stands in one category of each."""
    sizes = tuple(each.size for each in of)
    return Noisy(tuple(of), ((law.noise_of_columns(sizes, cost), sum(sizes)),))


# Proof: docs/proofs/curator.md, lemma 5.
def offsets_at_once(of: Sequence[Offsets], law: PrivacyMeasure, cost: Fraction) -> Noisy:
    """Ask where numbers lie in the bins of columns: a row moves one sum of each by at most half a bin."""
    each, halves = cost / len(of), 2 if law.replaced else 1
    # a row that is replaced may move one sum by all of a bin: from its low end to its high end
    noises = tuple((law.noise_of_number(each, halves * part.units // 2), part.size) for part in of)
    return Noisy(SumsOfOffsets(tuple(of)), noises)


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
    law: PrivacyMeasure  # of the exponential mechanism, under which scores move so far
    cost: Fraction  # an epsilon, or a rho
    possible: Booleans | None = None  # None: all of them
    refused: Callable[[int], Booleans | None] = lambda _: None  # with one that is drawn in vain, others

    @property
    def epsilon(self) -> Fraction:
        """That of the exponential mechanism."""
        return self.law.selecting(self.cost)

    # Proof: docs/proofs/curator.md, lemma 2.
    def lost(self, replaced: bool, unit: int) -> Amount:
        """Return the cost, which the epsilon is made of."""
        if (self.law.replaced, self.law.unit) != (replaced, unit):
            raise AssertionError("scores move as they do under another relation")
        return Amount(rho=self.cost) if self.law.concentrated else Amount(self.cost)

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
    # how far a row that is added or removed moves the function, at most; or half of what a replaced one does
    moved: int
    noise: Noise
    part: Dependence  # as it is published

    # Proof: docs/proofs/curator.md, lemma 3.
    def lost(self, replaced: bool, unit: int) -> Amount:
        """Return what the noise loses."""
        far = self.moved * unit * (2 if replaced else 1)
        lost = self.noise.lost(Moved(far, far**2))
        return Amount(rho=lost) if self.noise.concentrated else Amount(lost)

    def exact(self, data: Counts) -> Integers:
        """Return the number without noise: private."""
        # like a count: where noise itself is cut off, nothing shows
        return np.array([min(LIMIT, self.function(data.count(self.of, often=True)))], dtype=np.int64)

    # Proof: docs/proofs/curator.md, lemma 3.
    def draw(self, exact: Integers, coins: BitSource) -> int:
        """Add the noise."""
        return int(np.clip(exact + self.noise.draw(1, coins), -LIMIT, LIMIT)[0])

    def measurements(self, answer: int, cost: Fraction, selecting: Fraction | None) -> list[Measurement]:
        """Return the number."""
        return [Measurement((self.part,), np.array([answer]), self.noise, cost)]


class DrawnAtOnce(Protocol):
    """SmallDB: a mechanism that draws a small database by its score, among all there are."""

    @property
    def guarantee(self) -> Guarantee:
        """What it loses."""

    def draw(self, table: Rows, source: BitSource, progress: bool) -> Drawn:
        """Draw one."""


@dataclass(frozen=True, eq=False)
class SmallDatabase(Ask):
    """The exponential mechanism over all small databases; the answer is what it drew."""

    mechanism: DrawnAtOnce
    progress: bool

    def lost(self, replaced: bool, unit: int) -> Amount:
        """Return what the mechanism states."""
        return self.mechanism.guarantee.paid

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


class Blind(Ask):
    """What looks at no data, and so costs nothing."""

    def lost(self, replaced: bool, unit: int) -> Amount:
        """Return nothing."""
        return Amount()

    def exact(self, data: Counts) -> None:
        """See nothing of the data."""


@dataclass(frozen=True, eq=False)
class Coins(Blind):
    """Random bits for what follows from released numbers: a whole number."""

    bits: int = 64

    def draw(self, exact: None, coins: BitSource) -> int:
        """Draw them."""
        return coins.bits(self.bits)


@dataclass(frozen=True, eq=False)
class Order(Blind):
    """A uniformly random order of so many rows; it is not kept, but drawn anew of the same bits."""

    rows: int

    def draw(self, exact: None, coins: BitSource) -> Integers:
        """Draw it."""
        return uniform_permutation(self.rows, coins)
