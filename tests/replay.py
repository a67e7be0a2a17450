"""
Replay: a release from a table, and the same released integers forced upon a neighbour of it.

A release is a sequence of steps. Each takes private values and public parameters, draws, and releases integers;
whatever follows is a function of these and of public numbers. Replay holds a release to that, in two ways:

- *loss*: of each step, given what was released before it, how far the two laws of its outcome are apart. A step
  states its cost, and may lose no more; all of them together lose no more than the record states;
- *leaks*: with the same released integers, everything public is the same, bit by bit.

It replaces every draw at the doors where private values meet randomness: `NOISE`, `SELECTIONS`, `NUMBERS` and
`STEPS` below are all that it knows of the code. Noise is returned as `Noise`, which does nothing but wait for
the private value that it is added to. The first run (the recording) releases the sum; the second (the replay)
releases what the first did, whatever it was given. Noise comes from a source of its own, so that the source of
the release has the same bits for both runs wherever a seed or an order is drawn.

Losses are exact fractions. Those of selections have the logarithm of a sum in them, and are enclosed from
above. Two laws have a proof and no closed form, Wishart differences and cones: there it is checked that the
counts moved by what the proof is about, which is recomputed from the rows that differ.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction
from importlib import import_module
from inspect import signature
from itertools import chain
from math import exp, log, log1p
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from smalldb.accounting.concentrated import rho_of
from smalldb.answers.laws import LAWS
from smalldb.exact.bits import SeededBits

DIGITS = Context(prec=60)
SLACK = Fraction(1, 10**40)  # more than what rounding takes from the logarithm of a sum of exponentials


class Leak(AssertionError):
    """Something public differs between the two runs."""


class Loss(AssertionError):
    """A step, or all of them together, loses more than it states."""


# Laws: how far two outcomes' laws are apart, where the private values are `one` and `other`.


@dataclass(frozen=True)
class Change:
    """The rows in which two neighbours differ: +1 for those that only the second has, -1 for the first's."""

    signs: tuple[int, ...]
    places: tuple[tuple[int, ...], ...]


class Law:
    """
    A law of what is released, given private values.

    Attributes
    ----------
    concentrated
        Whether what it loses is stated as a rho; else as an epsilon.
    """

    concentrated: ClassVar[bool] = False

    def worst(self, one: Sequence[int], other: Sequence[int], change: Change) -> Fraction:
        """Return the largest log ratio of the probabilities of an outcome, or the rho of these two laws."""
        raise NotImplementedError

    def proved(self, one: Sequence[int], other: Sequence[int], change: Change) -> Fraction:
        """Return at least that: what the proof of the step says of values that moved so far."""
        return self.worst(one, other, change)

    def realised(self, one: Sequence[int], other: Sequence[int], drawn: Sequence[int]) -> Fraction | None:
        """Return the log ratio of the probabilities of what was drawn; None: it has no closed form."""
        return None


@dataclass(frozen=True)
class Geometric(Law):
    """Probability proportional to exp(-rate sum |z - x|)."""

    rate: Fraction

    def worst(self, one, other, change):
        return self.rate * sum(abs(a - b) for a, b in zip(one, other, strict=True))

    def realised(self, one, other, drawn):
        return self.rate * sum(abs(z - b) - abs(z - a) for a, b, z in zip(one, other, drawn, strict=True))


@dataclass(frozen=True)
class Cube(Law):
    """Probability proportional to exp(-rate max |z - x|)."""

    rate: Fraction

    def worst(self, one, other, change):
        return self.rate * max((abs(a - b) for a, b in zip(one, other, strict=True)), default=0)

    def realised(self, one, other, drawn):
        far = [max(abs(z - x) for z, x in zip(drawn, some, strict=True)) for some in (one, other)]
        return self.rate * (far[1] - far[0])


@dataclass(frozen=True)
class Gaussian(Law):
    """Probability proportional to exp(-sum (z - x)^2 / (2 variance)): a cost is a rho."""

    variance: Fraction
    concentrated: ClassVar[bool] = True

    def worst(self, one, other, change):
        return sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) / (2 * self.variance)

    def realised(self, one, other, drawn):
        squares = ((z - b) ** 2 - (z - a) ** 2 for a, b, z in zip(one, other, drawn, strict=True))
        return sum(squares) / (2 * self.variance)


@dataclass(frozen=True)
class Proved(Law):
    """A law of which it is proved what one row of a given shape loses; `one` and `other` are its counts."""

    rate: Fraction

    def row(self, places):
        """Return what a row adds to the counts."""
        raise NotImplementedError

    def worst(self, one, other, change):
        """Each row that is added or removed, times what its counts are multiplied by, loses the rate."""
        moved = np.array(other, dtype=object) - np.array(one, dtype=object)
        rows = sum(
            s * np.array(self.row(p), dtype=object) for s, p in zip(change.signs, change.places, strict=True)
        )
        for factor in (Fraction(1), Fraction(-1, 2)):  # signs of rows, or half of them: how many are odd
            if (moved == factor * rows).all():
                return self.rate * abs(factor) * len(change.signs)
        raise Loss(f"counts of {type(self).__name__} noise do not move as one row does")


@dataclass(frozen=True)
class Wishart(Proved):
    """The entries of a matrix to which a row adds u u^T, u = (1, signs): docs/proofs/wishart.md."""

    pairs: tuple[tuple[int, int], ...]

    @property
    def size(self):
        return len(self.pairs)

    def row(self, places):
        signs = [1, *(1 - 2 * place for place in places)]
        return [signs[a] * signs[b] for a, b in self.pairs]


@dataclass(frozen=True)
class Cone(Proved):
    """The tables of one and two columns, to which a row adds 1 in a cell each: docs/proofs/pairs.md."""

    sizes: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]

    @property
    def size(self):
        return sum(self.sizes) + sum(self.sizes[a] * self.sizes[b] for a, b in self.pairs)

    def row(self, places):
        marks = [
            [int(at == place) for at in range(size)] for size, place in zip(self.sizes, places, strict=True)
        ]
        pairs = ([a * b for a in marks[c] for b in marks[d]] for c, d in self.pairs)
        return list(chain(*marks, *pairs))


@dataclass(frozen=True)
class Exponential(Law):
    """Candidate i is drawn with probability proportional to exp(rate score_i): `one`, `other` are scores."""

    rate: Fraction
    concentrated: bool

    def worst(self, one, other, change):
        moves = self._moves(one, other)
        if self.concentrated:  # no candidate's loss is farther from another's than the range: range^2 / 8
            return (self.rate * (max(moves, default=0) - min(moves, default=0))) ** 2 / 8
        shift = self._log_sum(other) - self._log_sum(one)
        return max((abs(self.rate * move + shift) for move in moves), default=Fraction(0))

    def proved(self, one, other, change):
        """Return what the largest move of a score allows, whatever the other candidates are."""
        furthest = 2 * self.rate * max(map(abs, self._moves(one, other)), default=0)
        return furthest**2 / 8 if self.concentrated else furthest

    def _moves(self, one, other):
        return [a - b for a, b in zip(one, other, strict=True)]

    def realised(self, one, other, drawn):
        (place,) = drawn
        return self.rate * (one[place] - other[place]) + self._log_sum(other) - self._log_sum(one)

    def _log_sum(self, scores):
        """The logarithm of the sum of weights, to within a part of `SLACK`."""
        best = max(scores)
        total = Decimal(0)
        for score, times in Counter(scores).items():
            exponent = self.rate * (score - best)
            if exponent > -(10**4):
                rounded = DIGITS.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
                total = DIGITS.add(total, DIGITS.multiply(times, DIGITS.exp(rounded)))
        return self.rate * best + Fraction(DIGITS.ln(total))


# Hooks: the doors of the code. Each names where a function is looked up; issue by issue, they are all that
# has to follow a rearrangement.

# functions of (parameters, source) that return noise to be added: where, and the law of the arguments
NOISE = [
    ("smalldb.rounds.measuring", "two_sided_geometric", lambda a: Geometric(a.rate)),
    ("smalldb.rounds.measuring", "gaussian_noise", lambda a: Gaussian(a.variance)),
    ("smalldb.answers.laws.cells", "two_sided_geometric", lambda a: Geometric(a.rate)),
    ("smalldb.answers.laws.safeguard", "two_sided_geometric", lambda a: Geometric(a.rate)),
    ("smalldb.answers.laws.cube", "cube_noise", lambda a: Cube(a.rate)),
    ("smalldb.answers.laws.gaussian", "gaussian_noise", lambda a: Gaussian(a.variance)),
    ("smalldb.answers.laws.wishart", "wishart_noise", lambda a: Wishart(a.x + a.y, tuple(a.pairs))),
    ("smalldb.rounds.cone", "cone_noise", lambda a: Cone(a.rate, tuple(a.sizes), tuple(a.pairs))),
]

# functions that draw a candidate by its score
SELECTIONS = [("smalldb.rounds.measuring", "select"), ("smalldb.rounds.certificate", "select")]

# functions that make an int of noise at once: it waits for its number as an int, too
NUMBERS = [("smalldb.rounds.measuring:Law", "single")]


def _stated(cost, concentrated, *public):
    return SimpleNamespace(cost=cost, concentrated=concentrated, public=public)


def _of_part(a):
    if a.self.pure:
        return _stated(a.setting.epsilon * a.self.share, False, a.self.law, a.self.sets)
    return _stated(a.self.share * rho_of(a.setting.epsilon, a.setting.delta), True, a.self.law, a.self.sets)


# functions that are one step: what its cost is, whether that is a rho, and what else is public of it
STEPS = [
    (
        "smalldb.rounds.rounds",
        "measure",
        lambda a: _stated(a.cost, a.law.concentrated, a.scope, np.shape(a.counts)),
    ),
    (
        "smalldb.rounds.rounds",
        "selected",
        lambda a: _stated(
            a.plan.selecting, a.plan.law.concentrated, tuple(a.names), a.weight, tuple(a.payable.tolist())
        ),
    ),
    ("smalldb.rounds.rounds", "ask", lambda a: _stated(a.cost, False, tuple(a.noise.items()))),
    ("smalldb.rounds.rounds", "measure_at_once", lambda a: _stated(a.cost, False, a.replaced)),
    (
        "smalldb.rounds.certificate",
        "certify",
        lambda a: _stated(
            a.cost, a.law.concentrated, a.finished.words.tobytes(), a.finished.counts.tobytes(), a.total
        ),
    ),
    *((f"{law.__module__}:{law.__name__}", "draw", _of_part) for law in LAWS),
]


@dataclass
class Draw:
    """One draw of a step: its law, what it was about, and what was released."""

    law: Any
    exact: list[int]
    drawn: list[int]


@dataclass
class Step:
    """A step of a release: what it states, and its draws."""

    name: str
    stated: SimpleNamespace
    arguments: SimpleNamespace
    draws: list[Draw] = field(default_factory=list)

    @property
    def public(self):
        """What must not depend on the data: what it states, and of its draws how, how many and what came out."""
        stated = (self.name, self.stated.cost, self.stated.concentrated, *self.stated.public)
        return stated, [(draw.law, len(draw.exact), draw.drawn) for draw in self.draws]


class Noise:
    """Noise that was drawn and waits for the private value that it is added to; nothing else can be done."""

    def __init__(self, player, pieces, shape):
        self._player, self._pieces, self._shape = player, pieces, shape

    def reshape(self, *shape):
        return Noise(self._player, self._pieces, shape[0] if len(shape) == 1 else shape)

    def __array_ufunc__(self, ufunc, method, *inputs, **given):
        if ufunc is not np.add or method != "__call__" or given:
            raise Leak(f"noise goes through {ufunc.__name__}, and is not added to a private value")
        (exact,) = (part for part in inputs if part is not self)
        return self._added(np.broadcast_to(exact, self._shape)).reshape(self._shape)

    def __array_function__(self, function, types, args, kwargs):
        if function is not np.concatenate or not all(isinstance(part, Noise) for part in args[0]):
            raise Leak(f"noise goes through {function.__name__}, and is not added to a private value")
        pieces = [piece for part in args[0] for piece in part._pieces]
        return Noise(self._player, pieces, (sum(len(values) for _, values in pieces),))

    def __radd__(self, exact):
        return int(self._added(np.array([exact], dtype=object))[0])

    __add__ = __radd__

    def _added(self, exact):
        found, start = [], 0
        for law, values in self._pieces:
            some = [int(x) for x in exact.ravel()[start : start + len(values)]]
            found += self._player.drawn(
                law, some, lambda some=some, values=values: [a + v for a, v in zip(some, values)]
            )
            start += len(values)
        assert start == exact.size, "noise is added to another number of values"
        return np.array(found, dtype=np.int64)


class Player:
    """
    One run of a release: it records the steps, or forces those of a recording.

    Parameters
    ----------
    script
        The steps of the recording; None: this is the recording.
    """

    def __init__(self, script=None):
        self.script, self.steps, self.step = script, [], None
        self._source, self._plain = SeededBits(404), False

    @contextmanager
    def hooked(self):
        """Replace the doors."""
        with pytest.MonkeyPatch.context() as patch:
            for where, name, law_of in NOISE:
                self._replace(patch, where, name, self._noise, law_of)
            for where, name in SELECTIONS:
                self._replace(patch, where, name, self._select, None)
            for where, name in NUMBERS:
                self._replace(patch, where, name, self._number, None)
            for where, name, stated in STEPS:
                self._replace(patch, where, name, self._stepped, stated)
            for name in ("draw_level", "uniform_below"):
                self._replace(patch, "smalldb.answers.laws.safeguard", name, self._leveled, name)
            yield self

    def _replace(self, patch, where, name, by, more):
        module, _, owner = where.partition(":")
        holder = import_module(module)
        holder = getattr(holder, owner) if owner else holder
        true = getattr(holder, name)
        names = signature(true)

        def door(*args, **kwargs):
            bound = names.bind(*args, **kwargs)
            bound.apply_defaults()
            return by(true, SimpleNamespace(**bound.arguments), more, f"{owner or module.rpartition('.')[2]}.{name}")

        patch.setattr(holder, name, door)

    @property
    def forced(self):
        """The step of the recording that is played now; None: this is the recording."""
        if self.script is None:
            return None
        if len(self.steps) > len(self.script):
            raise Leak("the neighbour's release has more steps")
        return self.script[len(self.steps) - 1]

    def drawn(self, law, exact, draw):
        """Return what a draw releases, and keep it."""
        if self.step is None:
            raise Leak("a draw belongs to no step")
        if self.forced is None:
            drawn = draw()
        else:
            if len(self.step.draws) >= len(self.forced.draws):
                raise Leak(f"{self.step.name} draws more often on a neighbour")
            drawn = self.forced.draws[len(self.step.draws)].drawn
        self.step.draws.append(Draw(law, exact, drawn))
        return drawn

    def _stepped(self, true, arguments, stated, name):
        assert self.step is None, "a step within a step"
        self.step = Step(name, stated(arguments), arguments)
        self.steps.append(self.step)
        if self.forced is not None and self.forced.name != name:
            raise Leak(f"{name} stands where {self.forced.name} was")
        self._given = arguments
        found = true(**_as_called(arguments))
        if name.endswith(".selected"):
            self._among_possible(arguments, found)
        self.step = None
        return found

    def _noise(self, true, arguments, law_of, name):
        law = law_of(arguments)
        if self.script is None:
            values = true(**_as_called(arguments, source=self._source))
        else:  # what is released is forced, whatever noise there is
            values = np.zeros(arguments.count if "count" in vars(arguments) else law.size, dtype=np.int64)
        if self._plain:
            self._pending = (law, values.tolist())
            return values
        return Noise(self, [(law, values.tolist())], values.shape)

    def _number(self, true, arguments, _, name):
        self._plain = True
        true(**_as_called(arguments, source=self._source))
        self._plain = False
        return Noise(self, [self._pending], (1,))

    def _select(self, true, arguments, _, name):
        concentrated = self.step is not None and self.step.stated.concentrated
        rate = Fraction(arguments.epsilon) / (2 * Fraction(arguments.sensitivity))
        scores = [int(score) for score in np.asarray(arguments.scores)]

        def draw():
            return [true(**_as_called(arguments, rng=self._source)).index]

        if self.step is not None and self.step.name.endswith(".selected"):
            return SimpleNamespace(index=self._of_payable(Exponential(rate, concentrated), scores, draw))
        return SimpleNamespace(index=self.drawn(Exponential(rate, concentrated), scores, draw)[0])

    # A selection may be drawn again where the model has no room for what was drawn: the outcome has the law of
    # a draw among the candidates that may be selected (docs/proofs/rounds.md, lemma 5), and is one draw.

    def _of_payable(self, law, scores, draw):
        """Draw among all candidates that are left, of which some may be refused."""
        first = not self.step.draws
        if first:
            self._payable = np.flatnonzero(self.step.arguments.payable).tolist()
            self.step.draws.append(Draw(law, scores, []))
        if self.forced is None or not self.forced.draws or not first:
            return draw()[0]
        return self._payable.index(self._possible(self.step.arguments)[self.forced.draws[0].drawn[0]])

    def _possible(self, arguments):
        room, names = arguments.room, arguments.names
        payable = np.flatnonzero(arguments.payable).tolist()
        return [k for k in payable if len(names[k]) == 2 or room.lacking(names[k]) is None]

    def _among_possible(self, arguments, found):
        """Keep, of the draws of a selection, the one that counts."""
        if not self.step.draws:
            return
        (draw,), possible = self.step.draws, self._possible(arguments)
        self.step.draws = []
        if found is not None:
            scores = dict(zip(self._payable, draw.exact, strict=True))
            place = [arguments.names[k] for k in possible].index(found)
            self.step.draws.append(Draw(draw.law, [scores[k] for k in possible], [place]))

    # A safeguard draws a level of its scores, then one of the sets that stand there.

    def _leveled(self, true, arguments, name, _):
        if name == "draw_level":
            given = self.step.arguments
            gaps = np.abs(given.exact - given.predict()).tolist()
            below = Counter(max(gaps) - gap for gap in gaps)
            if dict(below) != dict(arguments.levels):
                raise Loss("a safeguard is drawn by other scores than how far its sets are from predictions")
            place = self.forced.draws[0].drawn[0] if self.forced is not None else None
            level = (
                true(arguments.levels, arguments.rate, self._source)
                if place is None
                else max(gaps) - gaps[place]
            )
            self._there = [i for i, gap in enumerate(gaps) if gap == max(gaps) - level]
            self._selecting = Exponential(Fraction(arguments.rate), False), gaps
            return level
        place = true(arguments.n, self._source) if self.forced is None else None
        law, gaps = self._selecting
        chosen = self.drawn(law, gaps, lambda: [self._there[place]])[0]
        return self._there.index(chosen)


def _as_called(arguments, **changed):
    return vars(arguments) | changed


# Losses of a recording and its replay.


@dataclass(frozen=True)
class Found:
    """
    What was lost.

    Attributes
    ----------
    pure, rho
        Of all steps, at worst, given what was released before: what is stated as an epsilon, and as a rho.
    realised
        The log likelihood ratio of the transcript, of the steps of which it is known.
    ratio
        Of the guarantee, how much was lost.
    kinds
        How often each step was made.
    """

    pure: Fraction
    rho: Fraction
    realised: Fraction
    ratio: float
    kinds: Counter[str]


def compared(one: Sequence[Step], other: Sequence[Step], change: Change, epsilon, delta) -> Found:
    """Compare the steps of a recording and its replay, each with its cost and all with the guarantee."""
    if len(one) != len(other):
        raise Leak("the neighbour's release has fewer steps")
    lost, proved, paid, realised = Counter(), Counter(), Counter(), Fraction(0)
    for a, b in zip(one, other, strict=True):
        if a.public != b.public:
            raise Leak(f"{a.name}: its cost, its noise, or what else is public of it depends on the data")
        here, kind = Counter(), a.stated.concentrated
        for x, y in zip(a.draws, b.draws, strict=True):
            lost[kind] += x.law.worst(x.exact, y.exact, change)
            here[x.law.concentrated] += x.law.proved(x.exact, y.exact, change)
            realised += x.law.realised(x.exact, y.exact, x.drawn) or 0
        if here[not kind]:
            raise Loss(f"{a.name} loses an epsilon where it states a rho, or the other way round")
        if here[kind] > a.stated.cost:
            raise Loss(f"{a.name} loses {float(here[kind])}, and states {float(a.stated.cost)}")
        proved += here
        if a.draws:  # where no candidate can be paid for, none is drawn
            paid[kind] += a.stated.cost
    assert lost[False] <= proved[False] + SLACK and lost[True] <= proved[True]
    for word, sums in (("lose", proved), ("cost", paid)):
        if not holds(sums[False], sums[True], epsilon, delta):
            raise Loss(f"all steps {word} more than the record states: {dict(sums)}")
    rho = Fraction(0) if delta is None else rho_of(epsilon, delta)
    ratio = max(float(lost[False] / epsilon), float(lost[True] / rho) if rho else 0.0)
    return Found(lost[False], lost[True], realised, ratio, Counter(step.name for step in one))


def holds(pure, rho, epsilon, delta) -> bool:
    """Tell whether a pure loss and a rho are (epsilon, delta)-private: Canonne, Kamath, Steinke 2020, Prop. 12."""
    if not rho or delta is None:
        return not rho and pure <= epsilon
    left = float(epsilon - pure)
    if left <= 0:
        return False

    def log_delta(gap):  # of an order 1 + gap
        return gap * ((1 + gap) * float(rho) - left) + gap * (log(gap) - log1p(gap)) - log1p(gap)

    return min(log_delta(exp(step / 64)) for step in range(-20 * 64, 20 * 64)) <= log(delta) + 1e-3


def replayed(release: Callable[[Any], dict[str, Any]], one, other, change, epsilon, delta) -> Found:
    """
    Release from a table, force what was released upon a neighbour, and compare.

    Parameters
    ----------
    release
        Releases a table with the same seed each time, and returns everything public, by name.
    one, other
        The table, and its neighbour.
    """
    with Player().hooked() as recording:
        first = release(one)
    with Player(recording.steps).hooked() as replay:
        second = release(other)
    found = compared(recording.steps, replay.steps, change, epsilon, delta)
    for name in first.keys() | second.keys():
        if first.get(name) != second.get(name):
            raise Leak(f"{name} differs between neighbours, with the same released integers")
    return found
