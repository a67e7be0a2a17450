"""
Several tables from one payment: draws of the confidential table, given what was released of it.

The confidential table is what is missing, the measurements are what was observed. Rows move, one column at a
time, by Metropolis steps: a move is proposed from a model of the columns, which is drawn anew from the rows
before each sweep, and is taken with the ratio of the likelihoods of the noise. So each table is a draw from
the distribution of the data given the measurements and the model, and estimates from several of them are
combined by Rubin's rule (`smalldb.inference.combining`). All of it is post-processing.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from typing import TypeAlias

import numpy as np

from queries import Domain
from queries.arrays import Integers
from queries.domain import Bits
from queries.mixing import splitmix64
from smalldb.files.progress_bar import progress_bar
from smalldb.inference.column_model import ColumnModel, Rows
from smalldb.inference.convergence import split_r_hat
from smalldb.inference.cuts import cuts
from smalldb.inference.observed import Observed
from smalldb.inference.tied_columns import INSTEAD, Blocks
from smalldb.kernels.imputing import sweep
from smalldb.kernels.matching import Cut, deal, matching, move, patterns
from smalldb.mechanisms import Marginal, Measurement, Parity

CHAINS = 4
FIRST = 100  # sweeps of a chain before it is judged, and as many that are
MOST = 3200
AGREEING = 1.05  # a potential scale reduction below which chains are taken to be mixed
STUCK = 1e-3  # of the entries, moved in a sweep: chains that stand still tell nothing
MOVES = 16  # of many rows, for each pair of patterns
MOST_MOVES = 1 << 15
ROWS = 1 << 13  # whose entries a sweep offers moves, at most: it goes on with others
HOPE = 2  # times as many sweeps as are allowed: chains that seem to need more are given up
PSEUDO_ROWS = 5.0

Tick: TypeAlias = Callable[[int], object]


@dataclass(frozen=True, slots=True)
class Mixing:
    """
    How well the chains behind several tables had mixed when the first was drawn.

    Attributes
    ----------
    r_hat
        The largest potential scale reduction of all measured cells and contrasts.
    sweeps
        Of each chain, before the first table.
    moved
        The share of entries that a sweep changes.
    """

    r_hat: float
    sweeps: int
    moved: float


class NotMixed(ValueError):
    """The chains do not agree with each other: no table that they give may be relied on."""


def impute(
    domain: Domain,
    measurements: Sequence[Measurement],
    total: int,
    near: Bits,
    seed: int,
    *,
    pseudo_rows: float = PSEUDO_ROWS,
    most_sweeps: int = MOST,
    progress: bool = False,
) -> tuple[Mixing, Iterator[Integers]]:
    """Return tables without end, each a draw of the data given what was released."""
    blocks = Blocks.of(domain)
    observed = Observed.of(measurements, blocks)
    start = blocks.merged(near)
    sizes = blocks.sizes.tolist()
    shares = [np.bincount(own, minlength=size) + 1 / size for own, size in zip(start.T, sizes, strict=True)]
    shares = [own / own.sum() for own in shares]
    model = ColumnModel.of(sizes, observed.together, shares, pseudo_rows)
    found = cuts(model, observed)
    chains = [
        _Chain(model, observed, found, start, total, int(word), apart=k % 2 == 1)
        for k, word in enumerate(splitmix64(CHAINS, seed))
    ]
    with ThreadPoolExecutor() as threads:
        mixing, window = _mixed(chains, threads, most_sweeps, progress)
    gap = max(1, window // 8)
    return mixing, map(blocks.split, _later(chains, gap))


def released_total(measurements: Sequence[Measurement]) -> int:
    """Return about how many rows the data have: the mean of what was released of it, by inverse variances."""
    weight = total = 0.0
    for each in measurements:
        for part, values in each.tables():
            count = isinstance(part, Parity) and part.signed and not part.columns
            if isinstance(part, Marginal) or count:
                own = 1 / max(each.noise.variance() * part.size, 1e-9)
                weight, total = weight + own, total + own * float(values.sum())
    return round(total / weight) if weight else 0


class _Chain:
    """Rows on their walk, with their deviations from what was released."""

    def __init__(
        self,
        model: ColumnModel,
        observed: Observed,
        found: Sequence[Cut],
        near: Rows,
        total: int,
        seed: int,
        apart: bool,
    ) -> None:
        self._model, self._layout, self._cuts = model, model.layout(), found
        self._state = np.array([seed], dtype=np.uint64)
        self._next = 0
        words = splitmix64(total * (near.shape[1] if apart else 1), seed ^ 1).reshape(-1, total)
        # rows of the synthetic table; or each column from another one of them
        self.rows: Rows = np.empty((total, near.shape[1]), dtype=np.int16)
        for b, own in enumerate(near.T):
            self.rows[:, b] = own[words[b if apart else 0] % np.uint64(len(near))]
        self._observed = observed.beside(self.rows)

    def walk(self, sweeps: int, tick: Tick | None = None) -> tuple[Integers, float]:
        """Make so many sweeps; return the deviations after each one, and the share of entries that moved."""
        observed, traces, moved, offered = self._observed, [], 0, 0
        for _ in range(sweeps):
            for cut in self._cuts:
                self._match(cut)
            self._model.draw(self.rows, self._state, self._layout)
            some = self.rows[self._next : self._next + ROWS]
            self._next = self._next + ROWS if self._next + ROWS < len(self.rows) else 0
            moved += sweep(some, self._state, self._layout, observed.counted, observed.signed)
            offered += some.size
            traces.append(observed.deviations.astype(np.int32))
            if tick is not None:
                tick(1)
        return np.array(traces, dtype=np.int32), moved / offered

    def _match(self, cut: Cut) -> None:
        """Move rows between patterns of both parts of the columns, many at once."""
        counted, signed, starts = self._observed.counted, self._observed.signed, self._layout.starts
        first, second = (patterns(self.rows, starts, codes) for codes in (cut.first, cut.second))
        matched = matching(first, second, (cut.prior_first.shape[1], cut.prior_second.shape[1]))
        # how many steps there are must not depend on what they move
        own = len(matched) if cut.alone else np.count_nonzero(matched.any(axis=1))
        pairs = int(own) * int(np.count_nonzero(matched.any(axis=0)))
        steps = min(MOVES * (8 + pairs), MOST_MOVES)
        move(matched, self._state, steps, cut, counted, signed)
        deal(self.rows, self._state, matched, first, second, cut)


def _walked(
    chains: Sequence[_Chain], threads: Executor, sweeps: int, tick: Tick | None = None
) -> tuple[Integers, float]:
    """Let all chains walk: return their deviations, shape (chains, sweeps, numbers), and what share moved."""
    found = list(threads.map(_Chain.walk, chains, repeat(sweeps), [tick, *[None] * (len(chains) - 1)]))
    return np.array([traces for traces, _ in found]), float(np.mean([moved for _, moved in found]))


def _mixed(chains: Sequence[_Chain], threads: Executor, most: int, progress: bool) -> tuple[Mixing, int]:
    """Walk until the chains agree: twice as far each time."""
    window = FIRST
    with progress_bar(progress, total=2 * window, unit=" sweeps") as bar:
        _walked(chains, threads, window, bar.update)
        while True:
            traces, share = _walked(chains, threads, window, bar.update)
            r_hat = float(split_r_hat(traces).max(initial=1.0))
            if r_hat < AGREEING and share > STUCK:
                return Mixing(r_hat, 2 * window, share), window
            # the means of a chain that has mixed come nearer as the root of their number
            needed = 2 * window * (r_hat**2 - 1) / (AGREEING**2 - 1)
            if 2 * window > most or (window > FIRST and needed > HOPE * most):
                why = f"the chains differ (R-hat {r_hat:.2f})"
                if r_hat < AGREEING:
                    why = "the chains stand still, for there is hardly any noise"
                raise NotMixed(
                    f"after {2 * window} sweeps {why}: several tables cannot be drawn from these "
                    f"measurements; {INSTEAD}"
                )
            window *= 2
            bar.total = 2 * window
            bar.refresh()


def _later(chains: Sequence[_Chain], gap: int) -> Iterator[Rows]:
    """Yield the rows of each chain after so many more sweeps, again and again."""
    with ThreadPoolExecutor() as threads:
        while True:
            _walked(chains, threads, gap)
            for chain in chains:
                yield chain.rows
