"""
Replay at the door: a release from a table, and the same answers forced upon another one.

A strategy asks, and a curator answers (`smalldb.marginals.curator`); what follows is a function of the
answers and of public numbers. Replay holds every release to that, by one hook: `Curator.draw`, where alone
the data meet random bits.

- *Loss*. On a neighbour, given what was released before, counts, columns and scores move by what their
  noise is for and never by more: no answer loses more than its ask states, and all of them no more than the
  guarantee.
- *Leaks*. On any table, related to the first or not, the same answers lead to the same asks, and everything
  public is the same, bit by bit.

The first run, the recording, draws; each other run answers what the recording did. Answers are drawn from
a source of their own, so that the source of a release has the same bits in all runs wherever a seed or an
order is drawn. `losses` has the laws. Losses are exact fractions, those of selections but for
`losses.SLACK`. Two laws have a proof and no closed form, Wishart differences and cones: of them it is checked
that the counts moved by what the proof is about, made from the rows that differ.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from losses import SLACK, Change, Cone, Exponential, Gaussian, Geometric, KNorm, Law, Loss, Wishart, holds

from smalldb.accounting.concentrated import rho_of
from smalldb.exact.bits import SeededBits
from smalldb.marginals import asks
from smalldb.marginals.curator import Curator
from smalldb.marginals.measuring import LIMIT
from smalldb.noise import distributions as noise
from smalldb.noise.noise_protocol import Moved
from smalldb.noise.privacy_loss import Amount
from smalldb.releasing.learned_categories import LearnedCategories
from smalldb.selection import select

# where, below smalldb: estimates that are worse and quick, made from the same
HASTY = {
    "marginals.estimate.estimation.PREDICTING": 1 << 9,
    "marginals.estimate.estimation.LAST_SWEEPS": 8,
    "marginals.estimate.estimation.SWEEPS": 3,
    "marginals.estimate.cell_estimates.ITERATIONS": 5,
}


class Leak(AssertionError):
    """Something public depends on the data otherwise than through answers."""


def law_of(distribution: Any, of: Sequence[Any] = ()) -> Law:
    """The law of counts with noise."""
    match distribution:
        case noise.Geometric():
            return Geometric(distribution.rate)
        case noise.DiscreteGaussian():
            return Gaussian(distribution.scale)
        case noise.KNorm():
            return KNorm(distribution.sizes, distribution.rate, distribution.replaced)
        case noise.WishartDifference():
            return Wishart(distribution.x + distribution.y, distribution.pairs)
        case noise.ConeDifference():
            columns = of[: len(distribution.sizes)]
            groups = tuple(column.groups[0] for column in columns)
            return Cone(distribution.rate, distribution.sizes, distribution.pairs, groups)
    return Stated(distribution, distribution.concentrated)


@dataclass(frozen=True)
class Stated(Law):
    """What a noise says it loses for how far independent numbers moved: its own tests hold it to that."""

    noise: Any
    concentrated: bool

    def worst(self, one, other, change):
        far = [abs(a - b) for a, b in zip(one, other, strict=True)]
        return self.noise.lost(Moved(sum(far), sum(each * each for each in far)))


@dataclass
class Draw:
    """One draw: its law, and the private values that it was about."""

    law: Law
    exact: list[int]


@dataclass
class Step:
    """A step of a release: an ask, what it was drawn from, and its answer."""

    ask: asks.Ask
    lost: Amount  # what the curator takes for it
    exact: Any
    answer: Any

    @property
    def draws(self) -> list[Draw]:
        """Its draws, by what the ask says of itself; none of what has proofs of its own."""
        return known(self.ask).draws(self.ask, self.exact)

    @property
    def public(self) -> tuple[Any, ...]:
        """What must not depend on the data, but functions: these are compared by what they say."""
        ask = self.ask
        of = repr(getattr(ask, "of", None)) if isinstance(ask, asks.Noisy) else None
        told = [getattr(ask, name, None) for name in ("noises", "noise", "law", "moved", "cost", "part")]
        possible = could_come_out(ask, len(self.exact)) if isinstance(ask, asks.Worst) else None
        return (
            type(ask),
            self.lost,
            of,
            *told,
            getattr(ask, "at", None),
            getattr(ask, "about", None),
            possible,
        )


def could_come_out(ask: asks.Worst, many: int) -> list[int]:
    """The candidates that may be the answer: others are drawn in vain, and then again."""
    possible = range(many) if ask.possible is None else np.flatnonzero(ask.possible).tolist()
    return [candidate for candidate in possible if ask.refused(candidate) is None]


def of_noisy(ask: asks.Noisy, exact: Any) -> list[Draw]:
    parts = np.split(exact, np.cumsum([many for _, many in ask.noises])[:-1])
    laws = [law_of(noise, of) for (noise, _), of in zip(ask.noises, ask.parts, strict=True)]
    return [Draw(law, part.tolist()) for law, part in zip(laws, parts, strict=True)]


def noisy(ask: asks.Noisy, exact: Any, coins: Any) -> Any:
    parts = [one.draw(many, coins) for one, many in ask.noises]
    return np.clip(exact + np.concatenate(parts), -LIMIT, LIMIT)


def of_worst(ask: asks.Worst, exact: Any) -> list[Draw]:
    law = Exponential(ask.epsilon / (2 * ask.moved), ask.law.concentrated)
    return [Draw(law, exact[could_come_out(ask, len(exact))].tolist())]


def worst(ask: asks.Worst, exact: Any, coins: Any) -> Any:
    left = [k for k in range(len(exact)) if ask.possible is None or ask.possible[k]]
    while True:
        scores = exact[left]
        drawn = select(scores, epsilon=ask.epsilon, sensitivity=ask.moved, rng=coins).index
        if (others := ask.refused(left[drawn])) is None:
            return left[drawn]
        left = [k for k in left if not others[k]]


def of_number(ask: asks.Number, exact: Any) -> list[Draw]:
    return [Draw(law_of(ask.noise), exact.tolist())]


def number(ask: asks.Number, exact: Any, coins: Any) -> Any:
    return np.clip(exact + ask.noise.draw(1, coins), -LIMIT, LIMIT)[0]


class Known(NamedTuple):
    """What replay knows of a kind of ask: its draws, and an answer by the definition of what it states."""

    draws: Callable[[Any, Any], list[Draw]] = lambda ask, exact: []
    defined: Callable[[Any, Any, Any], Any] = lambda ask, exact, coins: None


KNOWN: dict[type[asks.Ask], Known] = {
    asks.Noisy: Known(of_noisy, noisy),
    asks.Worst: Known(of_worst, worst),
    asks.Number: Known(of_number, number),
    # these have proofs and tests of their own
    asks.SmallDatabase: Known(),
    LearnedCategories: Known(),
}


def known(ask: asks.Ask) -> Known:
    """What replay knows of an ask: of another kind it must know what it loses."""
    for kind in type(ask).__mro__:
        if kind in KNOWN:
            return KNOWN[kind]
    raise NotImplementedError(type(ask).__name__)


class Player:
    """One run of a release, whose steps it keeps; those of a script are forced."""

    def __init__(self, script: Sequence[Step] | None = None, seed: int = 0) -> None:
        self.steps: list[Step] = []
        self._script, self._seed = script, seed

    @contextmanager
    def hooked(self):
        """Stand at the door."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Curator, "draw", lambda curator, ask, coins: self._drawn(curator, ask, coins))
            yield self

    def _drawn(self, curator: Curator, ask: asks.Ask, coins: Any) -> Any:
        if isinstance(ask, asks.Coins):
            return ask.draw(None, coins)
        lost = ask.lost(curator.budget.replaced, curator.data.unit)
        exact = ask.exact(curator.data)
        if self._script is None:
            answer, again = (
                draw(exact, SeededBits(1_000_003 * self._seed + len(self.steps)))
                for draw in (ask.draw, lambda exact, coins: known(ask).defined(ask, exact, coins))
            )
            if again is not None and not np.array_equal(answer, again):
                raise Loss(f"{type(ask).__name__} is not drawn as it states")
            step = Step(ask, lost, exact, answer)
        elif len(self.steps) >= len(self._script):
            raise Leak(f"an ask more on other data: {type(ask).__name__}")
        else:
            forced = self._script[len(self.steps)]
            step = Step(ask, lost, exact, forced.answer)
            if step.public != forced.public:
                raise Leak(
                    f"{type(ask).__name__}: its cost, its noise, or what else is public depends on data"
                )
            self._same_function(curator, ask, forced)
        self.steps.append(step)
        return step.answer

    def _same_function(self, curator: Curator, ask: asks.Ask, forced: Step) -> None:
        """What an ask makes of counts is made by public numbers alone: the same of the same counts."""
        if isinstance(ask, asks.Worst | asks.Number) and not np.array_equal(
            ask.exact(curator.data), forced.ask.exact(curator.data)
        ):
            raise Leak(f"{type(ask).__name__}: what it is about depends on data")


@dataclass(frozen=True)
class Found:
    """What a neighbour loses."""

    pure: Fraction  # of all asks that state an epsilon: the largest log likelihood ratios, added up
    rho: Fraction  # of the others
    ratio: float  # the part of the guarantee that is lost


class Recording:
    """A release from a table, to be replayed: by its function with one seed, which returns what is public."""

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
            raise Leak("an ask less on other data")
        for name in self.published.keys() | published.keys():
            if self.published.get(name) != published.get(name):
                raise Leak(f"{name} depends on the data otherwise than through what was released")
        return player.steps

    def lost(self, other: Any, change: Change, epsilon: Fraction, delta: Fraction | None) -> Found:
        """Replay on a neighbour: no answer may lose more than it states, nor all than the guarantee."""
        return compared(self.steps, self.replayed(other), change, epsilon, delta)


def compared(
    one: Sequence[Step], other: Sequence[Step], change: Change, epsilon: Fraction, delta: Fraction | None
) -> Found:
    """Compare the same asks on two neighbours, each with its cost and all with the guarantee."""
    lost, proved, paid = (dict.fromkeys((False, True), Fraction(0)) for _ in range(3))
    for a, b in zip(one, other, strict=True):
        kind, here, name = a.lost.rho > 0, Fraction(0), type(a.ask).__name__
        for x, y in zip(a.draws, b.draws, strict=True):
            if x.law.concentrated != kind:
                raise Loss(f"{name} loses an epsilon where it states a rho, or the other way round")
            here += x.law.proved(x.exact, y.exact, change)
            lost[kind] += x.law.worst(x.exact, y.exact, change)
        stated = a.lost.rho if kind else a.lost.epsilon
        if here > stated:
            raise Loss(f"{name} loses {float(here)}, and states {float(stated)}")
        if isinstance(a.ask, asks.Worst):
            moved = np.abs(a.exact - b.exact).max(initial=0)
            if moved > a.ask.moved:
                raise Loss(f"a score moves by {moved}, and states {a.ask.moved}")
        proved[kind] += here
        paid[kind] += stated
    assert all(lost[kind] <= proved[kind] + SLACK for kind in lost)
    for word, sums in (("lose", proved), ("cost", paid)):
        if not holds(sums[False], sums[True], epsilon, delta):
            raise Loss(f"all asks {word} more than the guarantee allows: {sums}")
    rho = Fraction(0) if delta is None else rho_of(epsilon, delta)
    ratio = lost[False] / epsilon + (lost[True] / rho if rho else 0)
    return Found(lost[False], lost[True], float(ratio))


def letter(step: Step) -> str:
    """The kind of a step: of tables m, of columns at once k, of pairs p, contrasts W and G; s, a, c and n."""
    match step.ask:
        case asks.Worst():
            return "c" if hasattr(step.ask, "about") else "s"
        case asks.Number():
            return "a"
        case asks.Noisy(of=of, noises=((first, _), *_)):
            if not isinstance(of, Sequence):
                return "n" if step.ask.at is not None else "f"
            if len(of[0].columns) and not hasattr(of[0], "groups"):
                return {"WishartDifference": "W", "DiscreteGaussian": "G"}.get(type(first).__name__, "g")
            if not hasattr(of[0], "groups"):  # the number of rows
                return {"WishartDifference": "W", "DiscreteGaussian": "G"}[type(first).__name__]
            return {"KNorm": "k", "ConeDifference": "p"}.get(type(first).__name__, "m")
    return "?"
