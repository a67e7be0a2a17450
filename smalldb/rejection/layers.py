"""Layers: nested relaxations whose mixture proposes every candidate with at least its weight.

Thresholds t_1 < t_2 < ..., and for each an envelope Q_i >= exp(-rate s) for all scores s > t_{i-1}. Layer i
is drawn in proportion to (Q_i - Q_{i+1}) |R_i|, where R_i holds all candidates of score at most t_i; the last
one is everything. A candidate of score s in (t_{i-1}, t_i] is thus proposed in proportion to Q_i, whatever
trees the layers use, and kept with probability exp(-rate s) / Q_i.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from math import ceil, prod
from typing import Any, TypeVar

import numpy as np

from queries.arrays import Integers, Words
from smalldb.exact.levels import exp_enclosure
from smalldb.kernels.checks import Checks
from smalldb.kernels.nodes import Nodes
from smalldb.kernels.states import States
from smalldb.kernels.trials import Leaves
from smalldb.kernels.ways import SHARE, ShareTables, share_tables
from smalldb.rejection.relaxation import Layer
from smalldb.rejection.star_trees import StarRelaxation

_T = TypeVar("_T", Nodes, States, Checks)
LANES = 8  # of trials: draws are the same on any number of processors
_BITS = 64
_UNIT = 1 << 63  # what the kernels divide among layers and among ways
_SHARE = int(SHARE)
_SLACK = Fraction((1 << 30) - 1, 1 << 30)  # more than all rounding of one trial, see `Mixture`


@dataclass(frozen=True, slots=True)
class Envelope:
    """Thresholds, and what is above exp(-rate (s - lowest)) beyond each: dyadic fractions, falling."""

    rate: Fraction  # a candidate of score s has weight ``exp(-rate s)``
    lowest: int  # no score is below it; weights are relative to it
    thresholds: tuple[int, ...]  # t_1 < t_2 < ... of all layers but the last.
    tops: tuple[Fraction, ...]  # Q_1 = 1, Q_2, ... of all layers, the last too.

    # Proof: docs/proofs/rejection.md, lemma 2.
    @classmethod
    def build(cls, rate: Fraction, lowest: int, thresholds: Sequence[int]) -> "Envelope":
        """Enclose the weight of the first score beyond each threshold, rounded up."""
        tops = [Fraction(1)]
        for threshold in thresholds:
            drop = rate * (threshold + 1 - lowest)
            precision = _BITS + ceil(drop * 3 / 2)
            tops.append(Fraction(exp_enclosure(drop, precision)[1], 1 << precision))
        return cls(rate, lowest, tuple(thresholds), tuple(tops))

    def top(self, score: int) -> Fraction:
        """Return Q of the least layer that holds this score."""
        return self.tops[bisect_left(self.thresholds, score)]

    def drops(self) -> list[Fraction]:
        """Return Q_i - Q_{i+1} of each layer; of the last, Q."""
        return [here - beyond for here, beyond in zip(self.tops, (*self.tops[1:], Fraction(0)), strict=True)]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Mixture:
    """A fixed choice of layers, ready for trials."""

    # A trial proposes by integer shares out of 2^63: of the layer, and at each node of u, or of a star
    # of the state of its hubs. A share is rounded up from what it should be times 1 - 2^-20, so that
    # those of a state never exceed 2^63; what is left over ends the trial. The coin of `factor` makes
    # the law exact whatever the doubles were (`docs/proofs/rejection.md`, lemmas 3 to 6).

    envelope: Envelope  # thresholds and envelope
    candidates: int  # the size of the last layer
    # what each layer's proposals are to be kept at, over the chance of the layer
    factors: tuple[Fraction, ...]
    sums: Integers  # running sums of the shares of the layers
    # nodes, states, checks: of all layers but the last, one after the other; those of stars have no
    # states
    nodes: Nodes
    states: States
    checks: Checks
    stars: dict[int, StarRelaxation]  # the layers that are stars with trials of their own, by their position
    # their tables and leaves, once for each lane: with the same slots, and a part of the room to write
    # to
    rooms: tuple[tuple[ShareTables, Leaves], ...]

    # Proof: docs/proofs/rejection.md, lemma 5.
    @classmethod
    def build(
        cls,
        envelope: Envelope,
        relaxations: Sequence[Layer],
        checks: Sequence[Checks],
        again: Sequence[Checks],
        candidates: int,
        room: int,
    ) -> "Mixture":
        """Weigh the layers."""
        sizes = [*(relaxation.size for relaxation in relaxations), Fraction(candidates)]
        drops = envelope.drops()
        # The layers add up to the envelope. One candidate of score 0, ten of score 3, rate 1, threshold 2:
        # masses are 1 - e^-3 (one candidate) and 11 e^-3 (everything). Score 0 is proposed with density
        # (1 - e^-3) + e^-3 = 1, score 3 with e^-3: nothing is rejected. Without layers 86% would be.
        masses = [size * drop for size, drop in zip(sizes, drops, strict=True)]
        total = sum(masses)
        shares = tuple(ceil(mass * _SHARE / total) for mass in masses)
        if sum(shares) > _UNIT:
            raise ArithmeticError("the shares of the layers exceed their whole: this must not happen")
        nodes = len(relaxations[0].tree.order)
        unit = Fraction(_SHARE, _UNIT) ** (nodes + 1) * _SLACK / total
        states = _joined([relaxation.states for relaxation in relaxations], nodes)
        narrow = [relaxation.narrow or relaxation for relaxation in relaxations]
        narrow_states = _joined([relaxation.states for relaxation in narrow], nodes)
        broad = np.array(
            [
                relaxation.narrow is not None and node in relaxation.tree.broad
                for relaxation in relaxations
                for node in range(nodes)
            ],
            dtype=np.bool_,
        )
        leaves = Leaves(
            broad,
            _joined([relaxation.nodes for relaxation in narrow], nodes),
            narrow_states,
            share_tables(narrow_states, broad, room),
            _joined(again, nodes),
        )
        tables = share_tables(states, ~broad, room)
        rooms = (
            (hubs, leaves._replace(tables=others))
            for hubs, others in zip(_divided(tables), _divided(leaves.tables), strict=True)
        )
        return cls(
            envelope,
            candidates,
            tuple(unit * drop * _UNIT / share for drop, share in zip(drops, shares, strict=True)),
            np.array(list(accumulate(shares)), dtype=np.int64),
            _joined([relaxation.nodes for relaxation in relaxations], nodes),
            states,
            _joined(checks, nodes),
            {i: layer for i, layer in enumerate(relaxations) if isinstance(layer, StarRelaxation)},
            tuple(rooms),
        )

    # Proof: docs/proofs/rejection.md, lemma 7.
    def choose(self, words: Words) -> Integers:
        """Return the layer that each word chooses by its share; beyond the last: none, the slack."""
        return np.searchsorted(self.sums, (words >> np.uint64(1)).astype(np.int64), side="right")

    # Proof: docs/proofs/rejection.md, lemma 6.
    def factor(self, layer: int, score: int, shares: Sequence[int], ways: Sequence[int]) -> Fraction:
        """The coin that decides on a proposal shows heads with ``factor exp(-rate (score - lowest))``."""
        if layer == len(self.factors) - 1:
            part = Fraction(self.candidates)
        else:
            part = Fraction(prod(ways) << 63 * len(shares), prod(shares))
        return self.factors[layer] * part / self.envelope.top(score)


def _divided(tables: ShareTables) -> list[ShareTables]:
    """Return the tables once for each lane: entries are written to its own part of the room alone."""
    ends = [len(tables.sums) * lane // LANES for lane in range(LANES + 1)]
    return [
        tables._replace(sums=tables.sums[:end], ways=tables.ways[:end], used=np.array([start]))
        for start, end in pairwise(ends)
    ]


def _joined(parts: Sequence[_T], nodes: int) -> _T:
    """Put what belongs to several layers of so many nodes one after the other; positions count on."""
    fields: dict[str, Any] = {}
    for name in parts[0]._fields:
        arrays = [getattr(part, name) for part in parts]
        if name.endswith("start"):
            ends = list(accumulate((int(array[-1]) for array in arrays), initial=0))
            pieces: list[Any] = [array[:-1] + end for array, end in zip(arrays, ends, strict=False)]
            fields[name] = np.concatenate([*pieces, ends[-1:]])
        elif name == "children":
            fields[name] = np.concatenate([array + nodes * layer for layer, array in enumerate(arrays)])
        else:
            fields[name] = arrays[0] if name in ("n", "shrink") else np.concatenate(arrays)
    return type(parts[0])(**fields)
