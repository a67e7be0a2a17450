"""Categories learned from the data, paid for: cuts at quantiles, and the categories that occur often.

Cuts. Candidate c among the numbers of a public grid has the score -|(B - i) L - i U|, where L values lie
below c and U do not, for the i-th of B - 1 cuts. A row moves it by at most B, under either relation, and the
exact exponential mechanism draws each cut with its part of epsilon (Smith 2011, of one quantile). It is pure.

Categories. The count of each text that occurs gets two-sided geometric noise of rate r; texts whose noisy
count reaches T are kept. A row of a text that others have moves one count by 1. One of a text that nobody
else has is seen only if 1 + noise reaches T, which has probability at most p = exp(-r (T - 1)). Under
add-remove r = epsilon and p = delta. Replacing a row is two such steps: r = epsilon / 2 and p = delta / 2
(Korolova et al. 2009; Wilson et al. 2020).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from itertools import accumulate, pairwise
from math import ceil, floor
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from queries import DataError
from queries.arrays import Integers
from queries.expressions import parse
from queries.rows import MAX_TOTAL
from smalldb.exact.bits import BitSource
from smalldb.exact.integers import uniform_below
from smalldb.exact.levels import exp_enclosure
from smalldb.exact.numbers import positive
from smalldb.marginals.asks import Ask, Noisy, offsets_at_once
from smalldb.marginals.counts import Counts, FinerBins, Texts
from smalldb.mechanisms import Neighbours, Offsets
from smalldb.mechanisms.request import read_delta
from smalldb.noise.geometric import Geometric
from smalldb.noise.privacy_loss import Amount
from smalldb.planning import Plan
from smalldb.planning.plans import finer_measure
from smalldb.schema.bin_shapes import HALF, UNITS, InBins
from smalldb.schema.column_parsing import ColumnToLearn
from smalldb.schema.fields import Piece, occurrences
from smalldb.schema.kinds import MAX_CATEGORIES, Cuts
from smalldb.schema.mapping import Schema, measurable_columns
from smalldb.schema.reading import Learned, OpenSchema
from smalldb.selection import select

F = TypeVar("F")
_ORDERS: Mapping[str, Callable[[str], Any]] = {"values": str, "cuts": Decimal}


# Proof: docs/proofs/learned.md, lemma 6.
def shared(
    schema: OpenSchema, settings: Mapping[str, Any]
) -> tuple[tuple[Learned, ...], dict[str, Fraction | None]]:
    """Share out the privacy of a release: what learning costs, and what it leaves; public."""
    if settings.get("rows_per_person") not in (None, 1):
        raise ValueError(
            "rows_per_person: learned categories protect one row each; list the categories instead"
        )
    epsilon, delta = positive(settings["epsilon"], "epsilon"), read_delta(settings.get("delta"))
    costs, spent, gone = [], Fraction(0), Fraction(0)
    for to_learn in schema.to_learn:
        chance = None
        if to_learn.what == "values":
            if delta is None:
                raise ValueError(
                    'values = "learn" needs a delta: a rare text may be seen with that probability'
                )
            chance = to_learn.share * delta
            gone += chance
        spent += to_learn.share * epsilon
        costs.append(Learned(to_learn.column, to_learn.what, to_learn.share * epsilon, chance))
    return tuple(costs), {"epsilon": epsilon - spent, "delta": None if delta is None else delta - gone}


# Proof: docs/proofs/learned.md, lemma 5.
def learn(
    schema: OpenSchema, categories: Mapping[str, list[str]], fits: Callable[[Schema], F]
) -> tuple[Schema, F]:
    """Put learned categories into a schema, without rarer ones where that makes the release possible."""
    orders = {to_learn.column: _ORDERS[to_learn.what] for to_learn in schema.to_learn}
    while True:
        try:
            learned = schema.learned(
                {name: sorted(kept, key=orders[name]) for name, kept in categories.items() if kept}
            )
            return learned, fits(learned)
        except ValueError:
            if not any(categories.values()):  # the outline, which was found to fit
                raise
            categories = _fewer(schema, categories)


def _fewer(schema: OpenSchema, categories: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Leave out the rarer half of each column's categories; where there are none left, every second cut."""
    texts = {to_learn.column for to_learn in schema.to_learn if to_learn.what == "values"}
    if any(categories[name] for name in texts):
        return {name: kept[: len(kept) // 2] if name in texts else kept for name, kept in categories.items()}
    return {name: kept[1::2] for name, kept in categories.items()}


@dataclass(frozen=True, eq=False)
class LearnedCategories(Ask):
    """Ask for the categories of each column that learns: one release."""

    schema: OpenSchema
    costs: Sequence[Learned]
    neighbours: Neighbours

    # Proof: docs/proofs/learned.md, lemmas 1 to 6.
    def lost(self, replaced: bool, unit: int) -> Amount:
        """Return what all columns cost; a delta is for what is seen of a rare text."""
        if replaced != (self.neighbours is Neighbours.REPLACE_ONE):
            raise AssertionError("categories are learned under another relation")
        return Amount(
            sum((cost.epsilon for cost in self.costs), Fraction(0)),
            delta=sum((cost.delta or Fraction(0) for cost in self.costs), Fraction(0)),
        )

    # Proof: docs/proofs/learned.md, lemma 6.
    def exact(self, data: Counts) -> Texts:
        """Return how often each text occurs: private."""
        return data.texts

    def draw(self, exact: Texts, coins: BitSource) -> dict[str, list[str]]:
        """Draw the categories of one column after another."""
        categories: dict[str, list[str]] = {}
        for to_learn, cost in zip(self.schema.to_learn, self.costs, strict=True):
            occur = exact.get(to_learn.column, Counter())
            if to_learn.what == "cuts":
                kind = self.schema.outline.columns[self.schema.names.index(to_learn.column)].kind
                assert isinstance(kind, Cuts)
                categories[to_learn.column] = quantiles(occur, kind, to_learn.bins, cost.epsilon, coins)
            else:
                delta = cost.delta or Fraction(0)
                categories[to_learn.column] = frequent(occur, cost.epsilon, delta, self.neighbours, coins)
        return categories


# Proof: docs/proofs/learned.md, lemmas 1 and 2.
def quantiles(
    counts: Mapping[str, int], kind: Cuts, bins: int, epsilon: Fraction, source: BitSource
) -> list[str]:
    """Draw cuts near the quantiles, by the exponential mechanism: ascending texts, at most bins - 1."""
    scale = 10**kind.decimals
    low, high = ceil(Fraction(kind.low) * scale), floor(Fraction(kind.high) * scale)
    at: Counter[int] = Counter()
    for text, times in counts.items():
        number = kind.numbers.read(text)
        if number is not None:  # beyond the range they count as its ends
            floored = _floor(min(max(number, kind.low), kind.high), kind.decimals)
            at[min(max(floored, low), high)] += times
    values = sorted({low, high, *at})
    below = list(accumulate(at[value] for value in values))
    total = below[-1]
    widths = [after - value for value, after in pairwise(values)]  # candidates value + 1 .. after
    cuts = set()
    for i in range(1, bins):
        scores = [-abs((bins - i) * reached - i * (total - reached)) for reached in below[:-1]]
        chosen = select(
            scores, epsilon=epsilon / (bins - 1), sensitivity=bins, base_measure=widths, rng=source
        ).index
        cuts.add(values[chosen] + 1 + uniform_below(widths[chosen], source))
    return [_plain(cut, kind.decimals) for cut in sorted(cuts)]


# Proof: docs/proofs/learned.md, lemmas 3, 4 and 5.
def frequent(
    counts: Mapping[str, int], epsilon: Fraction, delta: Fraction, neighbours: Neighbours, source: BitSource
) -> list[str]:
    """Keep the texts whose noisy counts reach the threshold, the most frequent first; not too many."""
    steps = 1 if neighbours is Neighbours.ADD_REMOVE else 2
    rate = epsilon / steps
    least = threshold(rate, delta / steps)
    texts = sorted(counts)
    noise = Geometric(rate).draw(len(texts), source).tolist()
    noisy = [(counts[text] + each, text) for text, each in zip(texts, noise, strict=True)]
    kept = sorted((pair for pair in noisy if pair[0] >= least), reverse=True)
    return [text for _, text in kept[: MAX_CATEGORIES - 2]]


# Proof: docs/proofs/learned.md, lemma 3.
def threshold(rate: Fraction, chance: Fraction) -> int:
    """Return the least T >= 2 with exp(-rate (T - 1)) <= chance, or one more: exactly, by enclosures."""
    # A text of one row is seen only if its noise reaches T - 1. At rate 1 and chance 1/1000 that is 7:
    # exp(-6) = 0.0025 is too much, exp(-7) = 0.0009 is not (noise is above 6 with probability 0.0007).
    precision = 64 + chance.denominator.bit_length()

    def enough(steps: int) -> bool:
        return Fraction(exp_enclosure(rate * steps, precision)[1], 1 << precision) <= chance

    most = 1
    while not enough(most):
        most *= 2
    least = most // 2
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if enough(middle) else (middle, most)
    return most + 1


def gather(schema: OpenSchema, texts: dict[str, Counter[str]], pieces: Iterator[Piece]) -> Iterator[Piece]:
    """Hand on the pieces of a table; count in `texts` what columns that learn hold, but for gaps."""
    for fields, times in pieces:
        for to_learn in schema.to_learn:
            counts = texts.setdefault(to_learn.column, Counter())
            c = schema.names.index(to_learn.column)
            for text, number in schema.outline.columns[c].occurring(fields[c], times):
                if _can_stand(text, to_learn):
                    counts[text] += number
        yield fields, times


def digests(texts: Texts) -> list[npt.NDArray[np.uint8]]:
    """Return a digest of the texts of each column, and how often each occurs."""
    contents = (repr((name, sorted(counts.items()))).encode() for name, counts in sorted(texts.items()))
    return [np.frombuffer(sha256(text).digest(), np.uint8) for text in contents]


def _can_stand(text: str, to_learn: ColumnToLearn) -> bool:
    """Tell whether a text can be a category: of cuts any; others need a name in backticks."""
    if to_learn.what == "cuts":
        return True
    if text in ("other", "missing") or not text.isprintable() or len(text) > 200:
        return False
    try:
        parse(f"`{to_learn.column}={text}`")
    except ValueError:
        return False
    return "`" not in text


def _floor(number: Decimal, decimals: int) -> int:
    """Return the floor of a number in units of 10^-decimals; an exponent far below is never written out."""
    if abs(number) < Decimal(1).scaleb(-decimals):
        return -1 if number < 0 else 0
    whole: int = floor(Fraction(number) * 10**decimals)
    return whole


def _plain(scaled: int, decimals: int) -> str:
    """Write a number of the grid, given in units of 10^-decimals."""
    if not decimals:
        return str(scaled)
    whole, rest = divmod(abs(scaled), 10**decimals)
    return f"{'-' if scaled < 0 else ''}{whole}.{rest:0{decimals}}"


Histograms: TypeAlias = dict[str, Integers]
"""By column with finer bins, how many rows are in each. Private."""

OffsetSums: TypeAlias = dict[int, Integers]
"""By the number of a column, for each bin the sum of how far numbers are from its middle. Private."""


def no_offsets(schema: Schema) -> OffsetSums:
    """Return sums of nothing, of the columns of which it can be measured where numbers lie in their bins."""
    return {
        c: np.zeros(schema.columns[c].kind.size, dtype=np.int64) for c in measurable_columns(schema.columns)
    }


def finer_sizes(schema: Schema) -> dict[str, int]:
    """Return how many finer bins each column with such has."""
    return {column.name: column.finer.kind.size for column in schema.columns if column.finer}


def gather_finer(
    schema: Schema,
    counts: str | None,
    histograms: Histograms,
    pieces: Iterator[Piece],
    offsets: OffsetSums | None = None,
) -> Iterator[Piece]:
    """Hand on the pieces of a table, and count what finer bins hold, and the sums of `offsets` in bins."""
    sizes = finer_sizes(schema)
    finer = [(c, column.name) for c, column in enumerate(schema.columns) if column.finer]
    histograms |= {name: np.zeros(size, dtype=np.int64) for name, size in sizes.items()}
    inside = {c: InBins.of(schema.columns[c].kind) for c in offsets or {}}
    memos = {c: schema.columns[c].memo(kind) for c, kind in inside.items()}
    for fields, times in pieces:
        weights = occurrences(fields, times, counts)
        occur = [1] * len(fields[0]) if weights is None else [int(count) for count in weights]
        if sum(occur) >= MAX_TOTAL:
            raise DataError("counts add up to 2^62 or more")
        each = np.array(occur, dtype=np.int64)
        for c, name in finer:
            codes = schema.columns[c].encode_finer(fields[c])
            kept = (codes >= 0) & (codes < sizes[name])
            np.add.at(histograms[name], codes[kept], each[kept])
        for c, sums in (offsets or {}).items():
            codes = schema.columns[c].encode(fields[c], memos[c])
            kept = (codes >= 0) & (codes < inside[c].size)
            code, offset = np.divmod(codes[kept], UNITS + 1)
            np.add.at(sums, code, (offset - HALF) * each[kept])
        yield fields, times


# Proof: docs/proofs/learned.md, lemma 7.
def finer_asks(plan: Plan, schema: Schema) -> dict[str, Noisy]:
    """Return what is asked about finer bins, by column: a row stands in one of them, or in none."""
    law, sizes = finer_measure(plan.neighbours), finer_sizes(schema)
    return {
        name: Noisy(FinerBins(name, sizes[name]), ((law.noise(epsilon), sizes[name]),))
        for name, epsilon in ((each.column, each.epsilon) for each in plan.finer)
    }


# Proof: docs/proofs/curator.md, lemma 5.
def means_ask(plan: Plan, schema: Schema) -> Noisy:
    """Return what is asked about where numbers lie in their bins."""
    assert plan.means is not None
    parts = [Offsets((c,), schema.columns[c].kind.size, UNITS) for c in plan.means.columns]
    return offsets_at_once(parts, plan.means.law(plan.neighbours), plan.means.cost)


def finer_variances(plan: Plan) -> dict[str, float]:
    """Return the variance of the noise of each count of finer bins, by column."""
    law = finer_measure(plan.neighbours)
    return {each.column: law.noise(each.epsilon).variance() for each in plan.finer}
