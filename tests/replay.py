"""
Replay: a release from a table, and the same released integers forced upon another one.

A release is a sequence of steps. Each takes private values and public parameters, draws, and releases
integers; whatever follows is a function of these and of public numbers. Replay holds a release to that:

- *Loss*. On a neighbour, given what was released before, the law of each step's outcome is no farther from
  what it was than the step's cost, and all steps together lose no more than the guarantee.
- *Leaks*. On any table, related to the first or not, the same released integers lead to the same steps, at
  the same costs, and everything public is the same, bit by bit.

Every draw is replaced at the doors where private values meet randomness. `NOISE`, `SELECTIONS`, `LEVELS`
and `STEPS` below are all that is known of the code. Noise becomes `Noise`, which can do nothing but
wait for the private value that it is added to. The first run, the recording, releases the sum; each other run
releases what the recording did. Noise comes from a source of its own, so that the source of a release has the
same bits in all runs wherever a seed or an order is drawn.

`losses` has the laws. Losses are exact fractions, those of selections but for `losses.SLACK`. Two laws have a
proof and no closed form, Wishart differences and cones: of them it is checked that the counts moved by what
the proof is about, made from the rows that differ.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import import_module
from inspect import signature
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from losses import (
    SLACK,
    Change,
    Cone,
    Cube,
    Exponential,
    Gaussian,
    Geometric,
    KNorm,
    Law,
    Loss,
    Wishart,
    holds,
)
from smalldb.marginals.contrasts.part_list import LAWS

from smalldb.accounting.concentrated import rho_of
from smalldb.exact.bits import SeededBits


class Leak(AssertionError):
    """Something public depends on the data otherwise than through released integers."""


@dataclass(frozen=True)
class Stated:
    """What a step states: its cost, whether that is a rho, and what else must not depend on the data."""

    cost: Fraction
    concentrated: bool
    public: tuple[Any, ...]


def _of_part(a: Any) -> Stated:
    budget = a.setting.epsilon if a.self.pure else rho_of(a.setting.epsilon, a.setting.delta)
    return Stated(budget * a.self.share, not a.self.pure, (a.self.law, a.self.sets))


# The hooks. Each names where a function is looked up: "module" or "module:class", and its name there. The
# functions behind them get the arguments, by name.

# Functions that return noise, which is then added to private values; and the law of what is released.
NOISE: list[tuple[str, str, Callable[[Any], Law]]] = [
    ("smalldb.noise.geometric:Geometric", "draw", lambda a: Geometric(a.self.rate)),
    ("smalldb.noise.gaussian:DiscreteGaussian", "draw", lambda a: Gaussian(a.self.scale)),
    ("smalldb.noise.cube:Cube", "draw", lambda a: Cube(a.self.rate)),
    ("smalldb.noise.k_norm:KNorm", "draw", lambda a: KNorm(a.self.sizes, a.self.rate, a.self.replaced)),
    (
        "smalldb.noise.wishart:WishartDifference",
        "draw",
        lambda a: Wishart(a.self.x + a.self.y, a.self.pairs),
    ),
    (
        "smalldb.noise.cone:ConeDifference",
        "draw",
        lambda a: Cone(a.self.rate, a.self.sizes, a.self.pairs),
    ),
]

# Functions that draw a candidate by its score, with an epsilon and a sensitivity.
SELECTIONS = [("smalldb.marginals.certificate", "select"), ("smalldb.marginals.measuring", "select")]

# Functions that draw a level of scores, and then one of the candidates at it.
LEVELS = [
    ("smalldb.marginals.contrasts.safeguard", "draw_level"),
    ("smalldb.marginals.contrasts.safeguard", "uniform_below"),
]

# Functions that are one step, and what it states.
STEPS: list[tuple[str, str, Callable[[Any], Stated]]] = [
    (
        "smalldb.releasing.finer_histograms",
        "measure",
        lambda a: Stated(a.cost, a.law.concentrated, (a.scope, np.shape(a.counts))),
    ),
    (
        "smalldb.marginals.strategies.outcome",
        "measure",
        lambda a: Stated(a.cost, a.law.concentrated, (a.scope, np.shape(a.counts))),
    ),
    (
        "smalldb.marginals.strategies.outcome",
        "measure_columns",
        lambda a: Stated(a.cost, False, (a.sizes,)),
    ),
    (
        "smalldb.marginals.strategies.adaptive",
        "selected",
        lambda a: Stated(
            a.plan.selecting, a.plan.law.concentrated, (tuple(a.names), a.weight, a.payable.tobytes())
        ),
    ),
    (
        "smalldb.marginals.strategies.dependence",
        "ask",
        lambda a: Stated(a.cost, False, tuple(a.noise.items())),
    ),
    ("smalldb.marginals.strategies.all_pairs", "measure_at_once", lambda a: Stated(a.cost, False, ())),
    (
        "smalldb.marginals.certificate",
        "certify",
        lambda a: Stated(
            a.cost, a.law.concentrated, (a.finished.words.tobytes(), a.finished.counts.tobytes(), a.total)
        ),
    ),
    *((f"{law.__module__}:{law.__name__}", "draw", _of_part) for law in LAWS),
]


# A step that draws among all candidates that can be paid for, and again where the model has no room for the
# one that was drawn. Its outcome has the law of one draw among those that can come out, and is taken for that
# (docs/proofs/rounds.md, lemma 5).
REDRAWN = "adaptive.selected"


def _possible(a: Any) -> list[int]:
    """Return the candidates that can come out of `REDRAWN`."""
    payable = np.flatnonzero(a.payable).tolist()
    return [k for k in payable if len(a.names[k]) == 2 or a.capacity.lacking(a.names[k]) is None]


@dataclass
class Draw:
    """One draw of a step: its law, the private values that it was about, and what was released."""

    law: Law
    exact: list[int]
    drawn: list[int]


@dataclass
class Step:
    """A step of a release: what it states, and its draws."""

    name: str
    stated: Stated
    draws: list[Draw] = field(default_factory=list)

    @property
    def public(self) -> tuple[Any, ...]:
        """What must not depend on the data."""
        return self.name, self.stated, [(draw.law, len(draw.exact), draw.drawn) for draw in self.draws]


class Noise:
    """
    Noise that waits for the private values that it is added to; whatever else is done with it is a leak.

    Parameters
    ----------
    add
        Releases the sum: what is given a law, private values, and their noise.
    pieces
        Noise by its law, one after another.
    """

    def __init__(self, add, pieces, shape):
        self._add, self._pieces, self._shape = add, pieces, shape

    def reshape(self, shape):
        return Noise(self._add, self._pieces, shape)

    def __array_ufunc__(self, ufunc, method, *inputs, **given):
        if ufunc is not np.add or method != "__call__" or given:
            raise Leak(f"noise goes through {ufunc.__name__}, and is not added to a private value")
        (exact,) = (part for part in inputs if part is not self)
        return self._released(np.broadcast_to(exact, self._shape)).reshape(self._shape)

    def __array_function__(self, function, types, args, given):
        if function is not np.concatenate or not all(isinstance(part, Noise) for part in args[0]):
            raise Leak(f"noise goes through {function.__name__}, and is not added to a private value")
        pieces = [piece for part in args[0] for piece in part._pieces]
        return Noise(self._add, pieces, (sum(len(values) for _, values in pieces),))

    def _released(self, exact):
        found, rest = [], [int(value) for value in exact.ravel()]
        for law, values in self._pieces:
            here, rest = rest[: len(values)], rest[len(values) :]
            found += self._add(law, here, values)
        assert not rest, "noise is added to more values than it is for"
        return np.array(found, dtype=np.int64)


def name_of(where: str, name: str) -> str:
    """Return the short name of a step: of its module or class, and its own."""
    return f"{re.split('[.:]', where)[-1]}.{name}"


def _door(true, by, more):
    """Return what stands for a function: it calls `by` with it, its arguments by name, and what is more."""
    parameters = signature(true)

    def door(*args, **given):
        bound = parameters.bind(*args, **given)
        bound.apply_defaults()
        return by(
            lambda **changed: true(**bound.arguments | changed), SimpleNamespace(**bound.arguments), more
        )

    return door


class Player:
    """
    One run of a release, whose steps it keeps.

    Parameters
    ----------
    script
        The steps of a recording, which are forced; None: this is the recording.
    seed
        Of the noise of a recording.
    """

    def __init__(self, script: Sequence[Step] | None = None, seed: int = 0) -> None:
        self.steps: list[Step] = []
        self._script, self._source = script, SeededBits(seed)
        self._step: Step | None = None  # that is going on, and its arguments
        self._arguments: Any = None

    @contextmanager
    def hooked(self):
        """Replace the doors."""
        doors = [(where, name, self._noise, law) for where, name, law in NOISE]
        doors += [(where, name, self._select, None) for where, name in SELECTIONS]
        doors += [(where, name, getattr(self, f"_{name}"), None) for where, name in LEVELS]
        doors += [
            (where, name, self._stepped, (name_of(where, name), stated)) for where, name, stated in STEPS
        ]
        with pytest.MonkeyPatch.context() as patch:
            for where, name, by, more in doors:
                module, _, owner = where.partition(":")
                holder = import_module(module)
                holder = getattr(holder, owner) if owner else holder
                patch.setattr(holder, name, _door(getattr(holder, name), by, more))
            yield self

    @property
    def _forced(self) -> Step | None:
        """The step of the recording that this one has to be; None: this is the recording."""
        return None if self._script is None else self._script[len(self.steps) - 1]

    def _stepped(self, call, arguments, more):
        name, stated = more
        assert self._step is None, "a step within a step"
        if self._script is not None and len(self.steps) >= len(self._script):
            raise Leak(f"a step more on other data: {name}")
        self._step, self._arguments = Step(name, stated(arguments)), arguments
        self.steps.append(self._step)
        if self._forced is not None and self._forced.name != name:
            raise Leak(f"another step on other data: {name}, which was {self._forced.name}")
        found = call()
        if name == REDRAWN and self._step.draws:
            self._draw_that_counts(found)
        self._step = self._arguments = None
        if self._forced is not None and self._forced.public != self.steps[-1].public:
            raise Leak(f"{name}: its cost, its noise, or what else is public of it depends on the data")
        return found

    def _draw(self, law, exact, draw):
        """Return what a draw of this step releases."""
        assert self._step is not None, "a draw outside of any step"
        if self._forced is None:
            drawn = draw()
        elif len(self._step.draws) < len(self._forced.draws):
            drawn = self._forced.draws[len(self._step.draws)].drawn
        else:
            raise Leak(f"{self._step.name} draws more often on other data")
        self._step.draws.append(Draw(law, exact, drawn))
        return drawn

    def _noise(self, call, arguments, law_of):
        law = law_of(arguments)
        if self._script is None:
            values = call(source=self._source)
        else:  # there is none: what is released is known
            values = np.zeros(arguments.count, dtype=np.int64)
        return Noise(self._added, [(law, values.tolist())], values.shape)

    def _added(self, law, exact, noise):
        return self._draw(law, exact, lambda: [a + b for a, b in zip(exact, noise, strict=True)])

    def _select(self, call, arguments, _):
        rate = Fraction(arguments.epsilon) / (2 * Fraction(arguments.sensitivity))
        law = Exponential(rate, self._step.stated.concentrated)
        scores = [int(score) for score in arguments.scores]

        def draw():
            return [call(rng=self._source).index]

        if self._step.name != REDRAWN:
            return SimpleNamespace(index=self._draw(law, scores, draw)[0])
        again, forced = bool(self._step.draws), self._forced and self._forced.draws
        if again and law != self._step.draws[0].law:
            raise Loss(f"{REDRAWN} draws again by another law")
        self._step.draws.append(Draw(law, scores, []))
        if again or not forced:
            return SimpleNamespace(index=draw()[0])
        payable = np.flatnonzero(self._arguments.payable).tolist()
        return SimpleNamespace(index=payable.index(_possible(self._arguments)[forced[0].drawn[0]]))

    def _draw_that_counts(self, found):
        """Keep one draw among the candidates that could come out, in place of those that were made."""
        first, possible = self._step.draws[0], _possible(self._arguments)
        scores = dict(zip(np.flatnonzero(self._arguments.payable).tolist(), first.exact, strict=True))
        self._step.draws = []
        if found is not None:
            position = [self._arguments.names[k] for k in possible].index(found)
            self._step.draws = [Draw(first.law, [scores[k] for k in possible], [position])]

    def _draw_level(self, call, arguments, _):
        gaps = np.abs(self._arguments.exact - self._arguments.predict()).tolist()
        if Counter(max(gaps) - gap for gap in gaps) != Counter(arguments.levels):
            raise Loss(
                "a safeguard is drawn by other scores than how far its sets are from what is predicted"
            )
        if self._forced is None:
            level = call(source=self._source)
        else:
            level = max(gaps) - gaps[self._forced.draws[0].drawn[0]]
        self._level = Exponential(Fraction(arguments.rate), False), gaps, max(gaps) - level
        return level

    def _uniform_below(self, call, arguments, _):
        law, gaps, chosen = self._level
        there = [position for position, gap in enumerate(gaps) if gap == chosen]
        return there.index(self._draw(law, gaps, lambda: [there[call(source=self._source)]])[0])


@dataclass(frozen=True)
class Found:
    """
    What a neighbour loses.

    Attributes
    ----------
    pure, rho
        Of all steps, given what was released before: the largest log likelihood ratios of those that state an
        epsilon, added up, and the rho of the others.
    realised
        The log likelihood ratio of what was released, of the steps of which it is known.
    ratio
        The part of the guarantee that is lost.
    """

    pure: Fraction
    rho: Fraction
    realised: Fraction
    ratio: float


class Recording:
    """
    A release from a table, to be replayed.

    Parameters
    ----------
    release
        Releases a table, each time with the same seed, and returns everything public by name.
    seed
        Of the noise.
    """

    def __init__(self, release: Callable[[Any], Mapping[str, Any]], table: Any, seed: int = 0) -> None:
        self._release = release
        with Player(seed=seed).hooked() as player:
            self.published = release(table)
        self.steps = player.steps

    def replayed(self, other: Any) -> list[Step]:
        """Release what was released from another table: everything public must be the same."""
        with Player(self.steps).hooked() as player:
            published = self._release(other)
        if len(player.steps) < len(self.steps):
            raise Leak("a step less on other data")
        for name in self.published.keys() | published.keys():
            if self.published.get(name) != published.get(name):
                raise Leak(f"{name} depends on the data otherwise than through what was released")
        return player.steps

    def lost(self, other: Any, change: Change, epsilon: Fraction, delta: Fraction | None) -> Found:
        """Replay on a neighbour: no step may lose more than it states, nor all of them than the guarantee."""
        return compared(self.steps, self.replayed(other), change, epsilon, delta)


def compared(
    one: Sequence[Step], other: Sequence[Step], change: Change, epsilon: Fraction, delta: Fraction | None
) -> Found:
    """Compare the same steps on two neighbours, each with its cost and all with the guarantee."""
    lost, proved, paid = (dict.fromkeys((False, True), Fraction(0)) for _ in range(3))
    realised = Fraction(0)
    for a, b in zip(one, other, strict=True):
        kind, here = a.stated.concentrated, Fraction(0)
        for x, y in zip(a.draws, b.draws, strict=True):
            if x.law.concentrated != kind:
                raise Loss(f"{a.name} loses an epsilon where it states a rho, or the other way round")
            here += x.law.proved(x.exact, y.exact, change)
            lost[kind] += x.law.worst(x.exact, y.exact, change)
            realised += x.law.realised(x.exact, y.exact, x.drawn) or 0
        if here > a.stated.cost:
            raise Loss(f"{a.name} loses {float(here)}, and states {float(a.stated.cost)}")
        proved[kind] += here
        if a.draws:  # where the budget pays for no candidate, none is drawn
            paid[kind] += a.stated.cost
    assert all(lost[kind] <= proved[kind] + SLACK for kind in lost)
    for word, sums in (("lose", proved), ("cost", paid)):
        if not holds(sums[False], sums[True], epsilon, delta):
            raise Loss(f"all steps {word} more than the guarantee allows: {sums}")
    rho = Fraction(0) if delta is None else rho_of(epsilon, delta)
    ratio = lost[False] / epsilon + (lost[True] / rho if rho else 0)
    return Found(lost[False], lost[True], realised, float(ratio))
