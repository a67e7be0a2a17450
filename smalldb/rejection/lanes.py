"""Lanes: trials of a batch that are made one after the other, beside those of other lanes in threads."""

from dataclasses import dataclass

import numpy as np

from queries.arrays import Integers, Words
from smalldb.exact.bits import BitSource
from smalldb.kernels.stars import star_trials
from smalldb.kernels.trials import OUT_OF_WORDS, PAUSED, Leaves, tree_trials
from smalldb.kernels.ways import ShareTables
from smalldb.rejection.layers import Mixture
from smalldb.rejection.star_trees import StarRelaxation
from smalldb.rejection.target import Target, uniform_words

BATCH = 5_000_000  # work of one call of the kernel: a fraction of a second
WORDS, MOST_WORDS = 1 << 6, 1 << 14  # drawn from the source at a time, for a lane


@dataclass(slots=True, eq=False, repr=False)
class Lane:
    """Trials of some layers, made one after the other with words of their own."""

    # target, mixture, layers: what all lanes have: the layer of each trial
    target: Target
    mixture: Mixture
    layers: Integers
    # order, turn: the trials of this lane as they are made, and how many were made
    order: Integers
    # tables, leaves: the mixture's, with room that no other lane writes to; slots are those of its
    # layers
    tables: ShareTables
    leaves: Leaves
    ends: Integers  # where trials of other kinds begin: of other stars, or of trees
    # columns, shares, ways: what the last trial wrote
    columns: Words
    shares: Words
    ways: Integers
    # words, start: uniform words, and the first one that was not read
    words: Words
    state: int = 0  # the state of the hubs, if it was one of a star
    turn: int = 0
    start: int = 0
    # status, work: what the last call of the kernel returned, and what it cost
    status: int = PAUSED
    work: int = 0

    @classmethod
    def several(
        cls, target: Target, mixture: Mixture, layers: Integers, order: Integers, count: int
    ) -> list["Lane"]:
        """Return so many lanes for trials of these layers, in this order; without those that have none."""
        blank = np.zeros(target.attributes, dtype=np.uint64)
        rooms = mixture.rooms if count > 1 else [max(mixture.rooms, key=_left)]
        lanes = layers[order] % count
        return [
            cls(
                target,
                mixture,
                layers,
                mine,
                *rooms[lane],
                _ends(mixture, layers[mine]),
                blank.copy(),
                blank.copy(),
                blank.astype(np.int64),
                blank[:0],
            )
            for lane in range(count)
            if len(mine := order[lanes == lane])
        ]

    @property
    def position(self) -> int:
        """The trial whose turn it is."""
        return int(self.order[self.turn])

    def left(self, end: int) -> bool:
        """Whether trials below `end` are to be made."""
        return bool((self.order[self.turn :] < end).any())

    @property
    def star(self) -> StarRelaxation | None:
        """The star of the trial whose turn it is, if it is one of a star."""
        return self.mixture.stars.get(int(self.layers[self.position]))

    def chosen(self) -> tuple[list[int], list[int]]:
        """Return the shares of the survivor, whose turn it is, and how many columns have them."""
        star = self.star
        return (self.shares.tolist(), self.ways.tolist()) if star is None else star.chosen(self.state)

    # Proof: docs/proofs/rejection.md, lemma 7.
    def go_on(self, end: int) -> None:
        """Make trials below `end` until a candidate survives, words run out, or it was a batch's work."""
        if self.status == OUT_OF_WORDS and self.position >= end:  # no trial reads what another has looked at
            self.start = len(self.words)
        self.status, self.work = PAUSED, 0
        while self.status == PAUSED and self.turn < len(self.order) and self.work <= BATCH:
            stop = int(self.ends[np.searchsorted(self.ends, self.turn, side="right")])
            star = self.star
            self.work += self._tree_trials(stop, end) if star is None else self._star_trials(star, stop, end)

    def _star_trials(self, star: StarRelaxation, stop: int, end: int) -> int:
        self.status, self.turn, self.start, work, state = star_trials(
            star.star, self.order, self.turn, stop, end, self.words, self.start, self.columns, BATCH
        )
        self.state = int(state)
        return int(work)

    def _tree_trials(self, stop: int, end: int) -> int:
        self.status, self.turn, self.start, work = tree_trials(
            self.mixture.nodes,
            self.mixture.states,
            self.target.queries,
            self.mixture.checks,
            self.tables,
            self.leaves,
            len(self.mixture.sums) - 1,
            self.layers,
            self.order[:stop],
            self.turn,
            end,
            self.words,
            self.start,
            self.target.everyone,
            self.columns,
            self.shares,
            self.ways,
            BATCH,
        )
        return int(work)

    def add(self, source: BitSource) -> None:
        """Draw further words: enough for most trials left, or as many again as the present one has had."""
        left, had = (len(self.order) - self.turn) * self.target.attributes // 2, self.words[self.start :]
        fresh = uniform_words(source, max(min(max(WORDS, left), MOST_WORDS), len(had)))
        self.words, self.start = np.concatenate([had, fresh]), 0


def _ends(mixture: Mixture, layers: Integers) -> Integers:
    """Return where trials of other kinds than those before begin, and the end."""
    kinds = np.where(np.isin(layers, list(mixture.stars)), layers, -1)
    return np.append(np.flatnonzero(np.diff(kinds)) + 1, len(layers))


def _left(room: tuple[ShareTables, Leaves]) -> int:
    """Return how many entries a lane may still write."""
    tables, _ = room
    return len(tables.sums) - int(tables.used[0])
