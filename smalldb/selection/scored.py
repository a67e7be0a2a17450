"""A finite scored set, grouped by how far each candidate lies below the best: exact, whatever its size."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from math import lcm
from typing import Any, final

import numpy as np
import numpy.typing as npt

from queries.arrays import Integers
from smalldb.exact.bits import BitSource
from smalldb.exact.integers import uniform_below, uniform_subset

Chunk = npt.NDArray[Any]

OCTAVES = 1024  # the last one takes all that lies further below
BLOCK = 1 << 20  # scores looked at together
MOST_EXPONENT = 4_000  # of a Decimal: a short text must not become an endless integer
LOG2_E = 1.4426950408889634  # rounded down
SAFE = 1 - 2.0**-40  # far more than what five roundings of 2^-53 can add
EXACT_LOG2_E = Fraction(LOG2_E)
FLOAT_RATES = Fraction(1, 10**290), Fraction(10**290)  # beyond, floats could lose their precision

Namer = Callable[[int], Any]


@final
class Scored:
    """Candidates with exact scores, seen from the best one that is left."""

    # Candidate i lies r_i = rate (best - u_i) below, and stands in an octave j with j ln 2 <= r_i: so
    # 2^-j is at least exp(-r_i), and at most about twice that (but for the last octave). Octaves of
    # whole arrays come from floats, rounded down; no law depends on which octave it is.

    def __init__(self, chunks: list[Chunk], rate: Fraction, weights: list[int] | None = None) -> None:
        if not FLOAT_RATES[0] < rate < FLOAT_RATES[1]:
            chunks = as_fractions(chunks)
        self._chunks, self._rate, self.weights = chunks, rate, weights
        self._gone = {i for i, weight in enumerate(weights or ()) if not weight}
        self.size = sum(map(len, chunks))
        self._look()

    def drop(self, indices: Iterable[int]) -> None:
        """Leave candidates out from now on."""
        self._gone.update(indices)
        self._look()

    def holds(self, index: int) -> bool:
        """Tell whether a candidate is left."""
        return index not in self._gone

    def located(self) -> tuple[Integers, npt.NDArray[np.int16]]:
        """Return the positions of the candidates that are left, and the octave of each."""
        blocks = [(index, self._octaves_of(block)) for index, block in self._blocks()]
        index, octaves = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        return index, octaves.astype(np.int16)  # of two bytes, which are sorted in one pass

    def score(self, index: int) -> Fraction:
        """Return the exact score of a candidate."""
        for chunk in self._chunks:
            if index < len(chunk):
                return exact(chunk[index])
            index -= len(chunk)
        raise IndexError("no such candidate")

    def depth(self, score: Fraction) -> Fraction:
        """Return r: how far a score lies below the best, times the rate."""
        return self._rate * (self.best - score)

    def levels(self) -> Iterator[tuple[Fraction, int]]:
        """Yield the scores from the best one down, and how many candidates have each; a pass each."""
        score: Fraction | None = self.best
        while score is not None:
            yield score, sum(int((block == _as_in(block, score)).sum()) for _, block in self._blocks())
            tops = (_top(block[block < _as_in(block, score)]) for _, block in self._blocks())
            score = max((top for top in tops if top is not None), default=None)

    def below(self, score: Fraction | None) -> dict[int, int]:
        """Count the candidates below a score (None: all), by octave."""
        counts: dict[int, int] = {}
        for index, block in self._blocks(score):
            octaves = self._octaves_of(block)
            tally = np.bincount(octaves)
            for octave in np.flatnonzero(tally).tolist():
                weight = int(tally[octave])
                if self.weights is not None:
                    weight = sum(self.weights[i] for i in index[octaves == octave].tolist())
                counts[octave] = counts.get(octave, 0) + weight
        return dict(sorted(counts.items()))

    def pick(self, octave: int, source: BitSource) -> int:
        """Draw a candidate of an octave by its weight."""
        position = uniform_below(self.octaves[octave], source)
        for index, block in self._blocks():
            members = index[self._octaves_of(block) == octave]
            if self.weights is None:
                if position < len(members):
                    return int(members[position])
                position -= len(members)
                continue
            for i in members.tolist():
                if position < self.weights[i]:
                    return int(i)
                position -= self.weights[i]
        raise IndexError("no candidate stands there")

    def pick_from(self, score: Fraction, source: BitSource, *, above: bool = False) -> int:
        """Draw a uniform one of the candidates of a score, or of that and all `above`."""
        held = [
            index[block >= _as_in(block, score) if above else block == _as_in(block, score)]
            for index, block in self._blocks()
        ]
        position = uniform_below(sum(map(len, held)), source)
        return int(np.concatenate(held)[position])

    def some(self, wanted: dict[int, int], below: Fraction | None, source: BitSource) -> dict[int, list[int]]:
        """Draw so many distinct candidates of each octave, below a score; each set of them alike (Floyd)."""
        sizes, drawn = self.below(below), {octave: list[int]() for octave in wanted}
        positions = {
            octave: sorted(uniform_subset(sizes[octave], count, source)) for octave, count in wanted.items()
        }
        passed = dict.fromkeys(wanted, 0)
        for index, block in self._blocks(below):
            octaves = self._octaves_of(block)
            for octave, chosen in positions.items():
                members = index[octaves == octave]
                start = passed[octave]
                passed[octave] += len(members)
                drawn[octave] += [int(members[i - start]) for i in chosen if start <= i < passed[octave]]
        return drawn

    def _look(self) -> None:
        """Find the best that is left, and count the octaves below it."""
        tops = (_top(block) for _, block in self._blocks())
        self.best = max(top for top in tops if top is not None)
        self.octaves = self.below(None)

    def _blocks(self, below: Fraction | None = None) -> Iterator[tuple[Integers, Chunk]]:
        """Yield the positions and scores of the candidates that are left, below a score, block by block."""
        start = 0
        gone = np.array(sorted(self._gone), dtype=np.int64)
        for chunk in self._chunks:
            for first in range(0, len(chunk), BLOCK):
                block = chunk[first : first + BLOCK]
                index = np.arange(start + first, start + first + len(block))
                out = gone[np.searchsorted(gone, index[0]) : np.searchsorted(gone, index[-1], "right")]
                if len(out) or below is not None:
                    kept = np.ones(len(block), dtype=bool) if below is None else block < _as_in(block, below)
                    kept[out - index[0]] = False
                    index, block = index[kept], block[kept]
                yield index, block
            start += len(chunk)

    # Proof: docs/proofs/select.md, lemma 1.
    def _octaves_of(self, block: Chunk) -> Integers:
        if block.dtype == object:
            octaves = [self.depth(score) * EXACT_LOG2_E // 1 for score in block]
            return np.array([min(octave, OCTAVES - 1) for octave in octaves], dtype=np.int64)
        # Rounding down leaves 2^j exp(-r) a probability, about 1/2 at least: r = 2 lies in octave 2, and the
        # last coin shows heads with 4 e^-2 = 0.54. One octave too high would ask for 8 e^-2 = 1.08.
        with np.errstate(over="ignore"):
            if block.dtype.kind == "f":
                gaps = float(self.best) - block.astype(np.float64)
            else:  # differences of one kind of integers are below 2^64: right modulo it
                gaps = (np.uint64(int(self.best) % (1 << 64)) - block.astype(np.uint64)).astype(np.float64)
            depths = gaps * (float(self._rate) * LOG2_E * SAFE)
        return np.minimum(depths, OCTAVES - 1).astype(np.int64)


def _top(block: Chunk) -> Fraction | None:
    return exact(block.max()) if len(block) else None


def _as_in(block: Chunk, score: Fraction) -> np.float64 | int | Fraction:
    """Write a score as a number that is compared with the block exactly."""
    if block.dtype.kind == "f":  # a Python float would be rounded to the type of a narrower block
        return np.float64(float(score))
    return int(score) if block.dtype.kind in "iu" else score


def read_scores(scores: object, most: int | None = None) -> tuple[list[Chunk], bool]:
    """Read scores as arrays: one list of numbers, or any iterable of chunks of them (looked at once)."""
    if isinstance(scores, str | bytes | dict | set) or not isinstance(scores, Iterable):
        raise TypeError(f"scores must be numbers, or chunks of numbers, not {type(scores).__name__}")
    parts = [scores] if _is_array(scores) else scores
    streamed = not isinstance(parts, list | tuple)
    numbers, chunks, size = list[Any](), list[Chunk](), 0
    for part in parts:
        held = _held(part)
        size += 1 if held is None else len(held)
        if most is not None and size > most:
            raise ValueError(f"an exact law is for up to {most} candidates")
        if held is None:
            numbers.append(part)
        else:
            chunk = _chunk(held)
            chunks.append(chunk.copy() if streamed else chunk)
    if numbers and chunks:
        raise TypeError("scores must be numbers, or chunks of numbers, not both")
    chunks = [chunk for chunk in chunks or [_chunk(numbers)] if len(chunk)]
    if not chunks:
        raise ValueError("scores must hold at least one candidate")
    integers = all(chunk.dtype.kind in "iu" or all(type(u) is int for u in chunk) for chunk in chunks)
    if len({chunk.dtype.kind for chunk in chunks}) > 1 or chunks[0].dtype.kind == "O":
        chunks = as_fractions(chunks)
    return chunks, integers


def _is_array(part: object) -> bool:
    return isinstance(part, np.ndarray) or hasattr(part, "to_numpy")


def as_fractions(chunks: list[Chunk]) -> list[Chunk]:
    """Turn arrays of numbers into arrays of Fractions."""
    return [np.array([exact(score) for score in chunk], dtype=object) for chunk in chunks]


def _held(part: Any) -> list[Any] | tuple[Any, ...] | Chunk | None:
    """Return what a chunk holds, or None if it is not one."""
    if isinstance(part, list | tuple):
        return part
    if not _is_array(part):
        return None
    array: Chunk = part if isinstance(part, np.ndarray) else part.to_numpy()
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError("scores must not be a masked array: leave the masked candidates out")
    if array.ndim != 1:
        raise ValueError("scores must be one-dimensional")
    return array


def _chunk(array: list[Any] | tuple[Any, ...] | Chunk) -> Chunk:
    """Read a chunk: an integer or float array as it is, anything else as Python numbers."""
    if isinstance(array, np.ndarray):
        if array.dtype.kind in "iu":
            return array
        if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
            if not np.isfinite(array).all():
                raise ValueError("scores must be finite")
            return array
    read = [exact(score) for score in array]
    whole = all(isinstance(score, int | np.integer) for score in array)
    return np.array([int(score) for score in read] if whole else read, dtype=object)


def exact(score: object) -> Fraction:
    """Read a score exactly: a float is the fraction that it is."""
    if isinstance(score, bool | np.bool_) or not isinstance(
        score, int | float | Fraction | Decimal | np.integer | np.floating
    ):
        raise TypeError(f"scores must be numbers, not {type(score).__name__}")
    if isinstance(score, Decimal) and abs(score.adjusted()) > MOST_EXPONENT:
        raise ValueError(f"scores must be finite, Decimals of exponents up to {MOST_EXPONENT}")
    try:
        if isinstance(score, np.integer):
            return Fraction(int(score))
        return Fraction(*score.as_integer_ratio()) if isinstance(score, np.floating) else Fraction(score)
    except (ValueError, OverflowError) as error:
        raise ValueError("scores must be finite") from error


def read_weights(weights: object, size: int) -> list[int] | None:
    """Read a base measure as integers: one number of at least 0 for each candidate, not all 0."""
    if weights is None:
        return None
    if isinstance(weights, str | bytes | dict | set) or not isinstance(weights, Iterable):
        raise TypeError(f"base_measure must be numbers, not {type(weights).__name__}")
    try:
        read = [exact(weight) for weight in islice(weights, size + 1)]
    except (TypeError, ValueError) as error:
        expected = f"base_measure must hold finite numbers, Decimals of exponents up to {MOST_EXPONENT}"
        raise type(error)(expected) from error
    if len(read) != size:
        raise ValueError("base_measure must hold one weight for each candidate")
    if min(read) < 0 or not any(read):
        raise ValueError("base_measure must hold weights of at least 0, and one above 0")
    unit = lcm(*(weight.denominator for weight in read))
    return [int(weight * unit) for weight in read]


def labelled(scores: object) -> tuple[object, Namer | None]:
    """Return the scores alone, and what tells the label of each candidate by its number."""
    # labels are public, and so is their order: that of the dict, or of the index of the Series
    if isinstance(scores, Mapping):
        names = list(scores)
        return list(scores.values()), names.__getitem__
    index = getattr(scores, "index", None)
    if hasattr(scores, "to_numpy") and index is not None and not callable(index):
        return scores, lambda i: index[i]
    return scores, None


def by_label(weights: object, namer: Namer | None, size: int) -> object:
    """Return a base measure in the order of the candidates: one that has labels as well is read by these."""
    values, names = labelled(weights)
    if names is None or namer is None:
        return values
    weight_of = dict(zip(map(names, range(len(values))), values, strict=True))  # type: ignore[arg-type, call-overload]
    try:
        return [weight_of[namer(i)] for i in range(size)]
    except KeyError as error:
        raise ValueError("base_measure must have a weight for the label of each candidate") from error
