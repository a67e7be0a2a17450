"""A noise, a strategy and an ask are a class and a line of a list each: toy ones go through the house."""

import json
from collections.abc import Generator
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib import util
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import replay
from losses import Change, Law, Loss
from records import check_record

import smalldb
from queries import Column, Conjunctions, Domain, Rows
from smalldb.exact.bits import SeededBits
from smalldb.marginals import mechanism
from smalldb.marginals.asks import Ask, Noisy
from smalldb.marginals.counts import Linear
from smalldb.marginals.strategies import choosing_parities, choosing_tables
from smalldb.marginals.strategies.all_cells import AllCells
from smalldb.marginals.strategies.contrasts import sets_of
from smalldb.marginals.strategies.strategy import whole_table
from smalldb.mechanisms import Measurements
from smalldb.noise import distributions
from smalldb.noise.distributions import Geometric
from smalldb.noise.noise_protocol import Noise
from smalldb.noise.privacy_loss import Amount
from smalldb.noise.privacy_loss import Loss as PureLoss
from smalldb.planning import arguments
from smalldb.reporting.page import page

DOMAIN, N = Domain([Column("job", 3), "flag"]), 60


@dataclass(frozen=True, slots=True)
class Toyish(Noise):
    """Two-sided geometric noise under another name."""

    name: ClassVar[str] = "toyish"
    word: ClassVar[str] = name

    rate: Fraction
    weights: tuple[int, ...] = ()

    def draw(self, count, source):
        return Geometric(self.rate).draw(count, source)

    def variance(self, weights=None):
        return Geometric(self.rate).variance(weights)

    def quantile(self, weights, failure):
        return Geometric(self.rate).quantile(weights, failure)

    def lost(self, moved):
        return self.rate * moved.total


@dataclass(frozen=True, eq=False)
class Parted(Ask):
    """Whether the first cell has an odd number of rows: the truth, but with a probability."""

    of: Linear
    epsilon: Fraction

    def lost(self, replaced, unit):
        return Amount(self.epsilon)

    def exact(self, data):
        return data.count(self.of)[0].ravel()[:1] % 2

    def draw(self, exact, coins):
        return int(exact[0] ^ (coins.bits(2) == 0))  # a quarter: the odds are 3, and ln 3 < 11/10


@dataclass(frozen=True, slots=True, kw_only=True)
class Toy(AllCells):
    """All cells with toyish noise, and a part of epsilon for a question that nobody needs."""

    name: ClassVar[str] = "toy"
    described: ClassVar[str] = f"the counts of all cells, with {Toyish.word} noise"
    asking: ClassVar[Fraction] = Fraction(11, 10)

    @classmethod
    def planned(cls, setting):
        found = AllCells.planned.__func__(cls, setting)
        return None if found is None else replace(found, measuring=found.measuring - cls.asking)

    @property
    def loss(self):
        return AllCells.loss.fget(self).together(PureLoss.pure(self.asking))

    def steps(self) -> Generator:
        table = whole_table((0, 1), self.universe.sizes)
        yield Parted((table,), self.asking)
        noise = Toyish(self.law.rate(self.measuring), (1, 2))
        usual = AllCells.steps(self)
        next(usual)
        try:
            usual.send((yield Noisy((table,), ((noise, table.size),))))
        except StopIteration as end:
            return end.value


class Odds(Law):
    """The true answer is three times as likely as the other one."""

    def worst(self, one, other, change):
        return Toy.asking if one != other else Fraction(0)


def draws(ask, exact):
    return [replay.Draw(Odds(), exact.tolist())]


@pytest.fixture(autouse=True)
def _lists(monkeypatch):
    """The one line of each: a list of noises, of strategies, and of what replay knows of asks."""
    monkeypatch.setattr(distributions, "KINDS", (*distributions.KINDS, Toyish))
    monkeypatch.setattr(choosing_tables, "AT_ONCE", (*choosing_tables.AT_ONCE, Toy))
    names = (*mechanism.STRATEGIES, Toy.name)  # made of that list where the package is imported
    for module in (mechanism, arguments):
        monkeypatch.setattr(module, "STRATEGIES", names)
    known = replay.Known(draws, lambda ask, exact, coins: ask.draw(exact, coins))
    monkeypatch.setitem(replay.KNOWN, Parted, known)


def planned(**given):
    given = {"n": N, "epsilon": 8, "mechanism": "marginals", "strategy": "toy", "certificate": 0, **given}
    return smalldb.plan(DOMAIN, "marginals:2", **given)


def released(plan, codes):
    made = smalldb.release(plan, Rows.from_codes(DOMAIN, codes), rng=SeededBits(1))
    return {"rows": made.codes.tobytes(), "record": json.dumps(made.record), "made": made}


def table(seed=0):
    return np.random.default_rng(seed).integers(0, DOMAIN.sizes, (N, 2))


def test_they_go_through_the_house():
    plan = planned()
    made = released(plan, table())["made"]
    assert (plan.strategy, plan.budget().paid) == ("toy", Amount(Fraction(8)))
    (measured,) = made.measurements
    assert measured.noise == Toyish((8 - Toy.asking) / 2, (1, 2)) and measured.cost == 8 - Toy.asking
    (again,) = Measurements.from_record(made.record)
    assert again.noise == measured.noise and again.values.tolist() == measured.values.tolist()
    assert "with toyish noise" in plan.chosen.facts.described
    with pytest.raises(ValueError, match="'toy'"):
        planned(strategy="none")


def test_the_schema_of_records_has_them():
    spec = util.spec_from_file_location("written", Path(__file__).parent.parent / "docs" / "record_schema.py")
    made = util.module_from_spec(spec)
    spec.loader.exec_module(made)
    schema = json.loads(made.written(made.HOME.read_text(encoding="utf-8")))
    last = schema["$defs"]["noise"]["oneOf"][-1]
    assert last["properties"]["name"]["const"] == "toyish" and last["required"] == ["name", "rate", "weights"]
    assert '"toy"' in json.dumps(schema) and "toyish" not in made.HOME.read_text(encoding="utf-8")


def replayed():
    """Replay on a neighbour, whose first cell has a row less, and on an unrelated table."""
    codes = np.sort(table(), axis=0)
    other, old, new = codes.copy(), tuple(codes[0].tolist()), (2, 1)
    other[0] = new
    plan = planned()
    recording = replay.Recording(lambda one: released(plan, one) | {"made": None}, codes)
    recording.replayed(table(1))
    return recording.lost(other, Change((-1, 1), (old, new), DOMAIN.sizes), Fraction(8), None)


def test_replay_knows_what_they_lose():
    assert replayed().pure == 8


@pytest.mark.parametrize(("kind", "less"), [(Parted, Amount(Toy.asking / 2)), (Noisy, Amount(Fraction(1)))])
def test_replay_catches_what_loses_more_than_the_curator_takes(monkeypatch, kind, less):
    monkeypatch.setattr(kind, "lost", lambda ask, replaced, unit: less)
    with pytest.raises(Loss, match=f"{kind.__name__} loses"):
        replayed()


def test_replay_knows_no_ask_of_another_kind(monkeypatch):
    monkeypatch.delitem(replay.KNOWN, Parted)
    with pytest.raises(NotImplementedError, match="Parted"):
        replayed()


ABC = Domain(["a", "b", "c"])


def toy(bare):
    """Each of k counts with geometric noise of its own, for epsilon / k."""
    sets = sets_of(bare.spectrum, 1, 9)
    sets = sets if bare.replaced else ((), *sets)
    noise = Geometric(bare.epsilon / len(sets))
    deviation = (2 if bare.replaced else 1) * noise.variance() ** 0.5
    deviations = dict.fromkeys(map(len, sets), deviation)
    return replace(bare, sets=sets, noises=((noise, len(sets)),), deviations=deviations)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_a_toy_goes_through_the_house(neighbours, monkeypatch):
    monkeypatch.setattr(choosing_parities, "_columns", lambda bare: None)
    monkeypatch.setattr(choosing_parities, "_wishart", toy)
    frame = pd.DataFrame(ABC.table().repeat(25, axis=0), columns=list("abc"))
    public = {"n_max": 200, "rows": 50} if neighbours == "add-remove" else {}
    made = smalldb.release(
        frame, Conjunctions(2), epsilon=40, neighbours=neighbours, strategy="contrasts", rng=1, **public
    )
    assert isinstance(made.measurements[0].noise, Geometric)
    assert made.data.shape == (public.get("rows", 200), 3)
    check_record(made.record)
    assert made.confidential.max_error <= made.record["bounds"]["released"] < 0.3
    assert made.plan.chosen.strategy.described in page(made)
