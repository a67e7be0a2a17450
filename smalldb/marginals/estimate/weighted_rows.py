"""Rows of a public start, with weights that agree with what was released: the nearest distribution to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from queries.arrays import Codes, Floats, splitmix64
from queries.domain import Integers
from smalldb.marginals.counted_rows import CountedRows, PackedTables, count
from smalldb.marginals.estimate.column_estimates import on_simplex
from smalldb.marginals.estimate.estimation import (
    affordable,
    beyond_targets,
    exchanged,
    fitted_margins,
    shrunken,
)
from smalldb.marginals.measuring import NoisyTable
from smalldb.marginals.universe import Universe
from smalldb.mechanisms import Marginal
from smalldb.mechanisms.start import Start, systematic

SWEEPS = 12  # of a fit of weights
# what the true difference of a column may be, by its own category and by its neighbours: what the start
# expects times these, squares of shares, at these reaches of the column's rows
ALONE = (1.0, 4.0, 16.0, 64.0, 256.0, 1024.0)
SMOOTH = (0.02, 0.1, 0.5)
REACHES = (0.3, 2.0)
PRICE = 2.0  # of each step away from what sampling alone would do, in logarithms of likelihood
MOST_CATEGORIES = 400  # of a column that is read by all of these
_HALVES = 3  # a seed, which is public
_UNIT = 1 << 40  # what all weights are in counts
_LEAST = 1e-6  # of an equal share, what a category is expected to hold at least


# Proof: docs/proofs/start.md, lemma 3.
def believed(expected: Floats, released: Sequence[tuple[Floats, float]], ordered: bool) -> Floats:
    """
    Return expected counts of a column: the start's, moved towards what was released by signal to noise.

    The true difference is normal with one of several variances; what each makes of the released counts is
    averaged by its likelihood. What noise cannot tell stays as public.
    """
    total, size = float(expected.sum()), len(expected)
    expected = np.maximum(expected, _LEAST * total / size)
    precisions = sum(1 / max(variance, 1e-9) for _, variance in released)
    noise = 1 / precisions
    beyond = sum(counts / max(variance, 1e-9) for counts, variance in released) * noise - expected
    beyond -= beyond.mean()
    if size > MOST_CATEGORIES:
        signals = max(float((beyond**2 - noise).sum()), 0.0) * expected / total + expected
        return on_simplex(expected + beyond * signals / (signals + noise), total)
    at = (np.cumsum(expected) - expected / 2) / total
    apart = np.abs(at[:, None] - at[None, :])
    kinds: list[tuple[float, float]] = [(0.0, 1.0)]
    if ordered and size > 3:
        kinds += [(smooth, reach) for reach in REACHES for smooth in SMOOTH]
    moves, likely = [], []
    for smooth, reach in kinds:
        for price, alone in enumerate(ALONE):
            signals = np.diag(alone * expected) + smooth * np.exp(-apart / reach) * np.outer(
                expected, expected
            )
            sums = signals.sum(axis=0)
            signals = signals - np.outer(sums, sums) / sums.sum()
            lower = np.linalg.cholesky(signals + noise * np.eye(size))
            white = np.linalg.solve(lower, beyond)
            likely.append(
                -0.5 * white @ white - np.log(np.diag(lower)).sum() - PRICE * (price + bool(smooth))
            )
            moves.append(signals @ np.linalg.solve(lower.T, white))
    weights = np.exp(np.array(likely) - max(likely))
    return on_simplex(expected + (weights / weights.sum()) @ np.array(moves), total)


@dataclass(frozen=True, slots=True, eq=False)
class Started:
    """Rows with weights, and what they are fitted to."""

    codes: Integers  # shape (r, C)
    weights: Floats  # they sum to 1
    sizes: tuple[int, ...]
    total: int  # the number of rows of the data, public or released
    targets: Mapping[tuple[tuple[int, ...], ...], tuple[Integers, Floats]]  # cells of rows, and their shares
    start: Start

    @staticmethod
    def of(start: Start, universe: Universe, total: int, shares: Sequence[Floats] | None = None) -> "Started":
        """Return the start itself, mixed with independent rows, of whose columns shares may be known."""

        def possible(rows: Integers) -> Integers:
            allowed = np.ones(len(rows), dtype=bool)
            for columns, where in universe.rules:
                allowed &= where[tuple(rows[:, c] for c in columns)]
            return allowed

        codes, weights = start.mixed(universe.sizes, possible, shares)
        return Started(codes, weights, universe.sizes, total, {}, start)

    def table(self, columns: Sequence[int]) -> Floats:
        """Return the expected counts of a table at all categories."""
        shape = tuple(self.sizes[c] for c in columns)
        cells = np.ravel_multi_index(tuple(self.codes[:, c] for c in columns), shape)
        return self._counted(cells, shape)

    def _counted(self, cells: Integers, shape: tuple[int, ...]) -> Floats:
        """Return the expected counts of a table, by the cell of each row."""
        held: Floats = np.bincount(cells, self.weights, prod(shape)).astype(np.float64)
        return held.reshape(shape) * self.total

    # Proof: docs/proofs/start.md, lemma 2.
    def halves(self) -> list["Started"]:
        """Return each half of the rows, at random."""
        odd = splitmix64(len(self.codes), _HALVES) & np.uint64(1)
        each = [self.weights * (odd == side) for side in (0, 1)]
        return [replace(self, weights=half / max(half.sum(), 1e-9)) for half in each]

    # Proof: docs/proofs/start.md, lemma 3.
    def with_columns(self, columns: Sequence[Sequence[NoisyTable]], ordered: Sequence[bool]) -> "Started":
        """Return the nearest weights to these that agree with columns, each of which was measured or more."""
        targets = dict(self.targets)
        for c, measured in enumerate(columns):
            seen = [(table.counts.astype(np.float64), table.variance) for table in measured]
            expected = self.table((c,))
            targets[((c,),)] = self.codes[:, c], believed(expected, seen, ordered[c]) / self.total
        return replace(self, targets=targets).fitted()

    # Proof: docs/proofs/start.md, lemma 3.
    def after(self, table: NoisyTable, groups: Sequence[Integers]) -> "Started":
        """Return the nearest weights that agree with one more table, of groups of each column."""
        shape, columns = table.counts.shape, [c for c, _ in table.scope]
        here = tuple(group[self.codes[:, c]] for c, group in zip(columns, groups, strict=True))
        cells = np.ravel_multi_index(here, shape)
        expected = self._counted(cells, shape)
        least = _LEAST * self.total / expected.size
        wanted = np.maximum(shrunken(table, expected), least)
        if len(columns) == 2:  # rare cells that noise made less than none would be cut off, and move columns
            wanted = np.maximum(fitted_margins(wanted, expected.sum(axis=1), expected.sum(axis=0)), least)
        key = tuple(columns), *(tuple(group.tolist()) for group in groups)
        return replace(self, targets={**self.targets, key: (cells, wanted.ravel() / wanted.sum())}).fitted()

    # Proof: docs/proofs/start.md, lemma 3.
    def fitted(self) -> "Started":
        """Return weights that agree with all that was released (iterative proportional fitting)."""
        weights = self.weights
        for _ in range(SWEEPS):
            for cells, wanted in self.targets.values():
                held = np.bincount(cells, weights, len(wanted))
                weights = weights * np.divide(wanted, held, out=np.ones_like(held), where=held > 0)[cells]
                weights /= weights.sum()
        return replace(self, weights=weights)

    def predicted(self, of: Sequence[Marginal] | PackedTables) -> list[Floats]:
        """Return what the weights expect of every candidate table at its finest levels."""
        rows = CountedRows(self.codes, np.rint(self.weights * _UNIT).astype(np.int64))
        share = self.total / max(1, int(rows.counts.sum()))
        return [table.astype(np.float64) * share for table in count(of, rows)]

    def rows(self, pairs: Sequence[tuple[int, int]], fixed: frozenset[int], many: int, seed: int) -> Codes:
        """Return rows whose tables of pairs of columns are near to those of the weights."""
        share, sweeps = many / self.total, affordable(many, len(pairs))
        targets = {pair: self.table(pair) * share for pair in pairs} if sweeps else {}
        order = np.lexsort(self.codes.T[::-1])
        codes = self.codes[order[systematic(self.weights[order], many)]].T
        if self.start.rows == "model":
            for c in set(range(len(self.sizes))) - fixed:
                codes[c] = codes[c][np.argsort(splitmix64(many, seed ^ c))]
            return exchanged(codes, self.sizes, targets, fixed, sweeps, seed)
        return replaced(codes, self.codes, self.weights, self.sizes, targets, sweeps, seed)


# Proof: docs/proofs/rounds.md, lemma 9.
def replaced(
    rows: Codes,
    pool: Integers,
    weights: Floats,
    sizes: Sequence[int],
    targets: Mapping[tuple[int, int], Floats],
    sweeps: int,
    seed: int,
) -> Codes:
    """Return rows nearer to targets, as `exchanged` does; of these some are replaced by others of a pool."""
    from smalldb.kernels.nearby_rows import replace_rows

    rows, many = np.array(rows, dtype=np.int32, order="C"), rows.shape[1]
    if not targets:
        return rows
    beyond, importance, origins = beyond_targets(rows, sizes, targets)
    tables = np.array([(a, b, origin, sizes[b]) for (a, b), origin in origins.items()])
    ends, others = np.cumsum(weights), np.ascontiguousarray(pool.T, dtype=np.int32)
    for sweep in range(sweeps):
        at = splitmix64(many, (seed + sweep * 0x1_0000_0001) % (1 << 64)) / 2.0**64
        picks = np.minimum(np.searchsorted(ends, at * ends[-1], side="right"), len(ends) - 1)
        if not replace_rows(rows, others, picks, tables, beyond, importance):
            break
    return rows
