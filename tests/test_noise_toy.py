"""A law of noise is a class and a line in a list: a toy one goes all the way, from plan to audit."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from parity_bounds import bound
from records import check_record
from smalldb.marginals.contrasts.parity_means import estimates
from smalldb.marginals.contrasts.parity_plan import alternatives
from smalldb.marginals.contrasts.part_list import LAWS
from smalldb.marginals.contrasts.parts import Counted, each_margin, sets_of

import smalldb
from queries import Conjunctions, Domain, Rows
from smalldb.exact.bits import SeededBits
from smalldb.marginals.contrasts import loss, measure, synthesise
from smalldb.marginals.contrasts import parity_plan as shares
from smalldb.noise.distributions import Geometric
from smalldb.noise.tails import radius_quantile
from smalldb.reporting.page import page

ABC = Domain(["a", "b", "c"])
BOTH = pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])


@dataclass(frozen=True, eq=False)
class Toy(Counted):
    """Each of k counts with geometric noise of its own, for epsilon / k."""

    law: ClassVar[str] = "toy"
    pure: ClassVar[bool] = True
    unaudited: ClassVar[None] = None

    sets: tuple
    share: Fraction
    deviations: Mapping

    @classmethod
    def designs(cls, setting):
        sets = sets_of(setting.spectrum, 1, 9)
        sets = sets if setting.replaced else ((), *sets)
        deviation = setting.unit * Geometric(setting.epsilon / len(sets)).variance() ** 0.5
        yield (cls(sets, Fraction(1), dict.fromkeys(map(len, sets), deviation)),)

    def rate(self, setting):
        return setting.epsilon / len(self.sets)

    def noise(self, setting):
        return (Geometric(self.rate(setting)),)

    def draw(self, setting, exact, source, predict):
        return exact + self.noise(setting)[0].draw(len(exact), source)

    def margins(self, setting, failure):
        radius = radius_quantile(1, self.rate(setting), failure / len(self.sets))
        return each_margin(setting, self.sets, dict.fromkeys(map(len, self.sets), radius))

    def loss(self, setting, gap, moved):
        return self.rate(setting) * int(gap.sum())


@BOTH
def test_a_toy_goes_through_the_house(neighbours, monkeypatch):
    monkeypatch.setattr(shares, "LAWS", (Toy,))
    frame = pd.DataFrame(ABC.table().repeat(25, axis=0), columns=list("abc"))
    public = {"n_max": 200, "rows": 50} if neighbours == "add-remove" else {}
    made = smalldb.release(
        frame,
        Conjunctions(2),
        epsilon=40,
        neighbours=neighbours,
        mechanism="marginals",
        strategy="contrasts",
        rng=1,
        **public,
    )
    assert made.plan.chosen.strategy.parities.method == "toy"
    assert made.data.shape == (public.get("rows", 200), 3)
    check_record(made.record)
    assert made.confidential.max_error <= made.record["bounds"]["released"] < 0.3
    assert "an estimate is fitted to them, and rows are chosen to match it" in page(made)


@BOTH
def test_a_toy_is_audited(neighbours, monkeypatch):
    monkeypatch.setattr(shares, "LAWS", (*LAWS, Toy))
    found = smalldb.audit(
        ABC,
        "conjunctions:1",
        n=3,
        epsilon=1,
        mechanism="contrasts",
        method="toy",
        neighbours=neighbours,
    )
    assert found.loss == (1, 1)
    monkeypatch.setattr(Toy, "unaudited", "a toy has no loss")
    with pytest.raises(ValueError, match="a toy has no loss"):
        smalldb.audit(ABC, "conjunctions:1", n=3, epsilon=1, mechanism="contrasts", method="toy")


def test_an_unknown_law_fails_everywhere():
    """Once it was drawn as Wishart noise."""

    @dataclass(frozen=True)
    class Unknown:
        law = "unknown"
        sets: tuple
        share: Fraction
        deviations: Mapping

    rows = Rows.from_counts(ABC, ABC.decode(ABC.table()), [3] * 8)
    plan = alternatives(Conjunctions(1).workload(ABC), n=24, epsilon=1, neighbours="replace-one")[0]
    measured, bits = measure(plan, rows, SeededBits(1)), ABC.table()
    known = plan.parts[0]
    other = replace(plan, parts=(Unknown(known.sets, known.share, known.deviations),))
    for run in (
        lambda plan: measure(plan, rows, SeededBits(1)),
        lambda plan: estimates(plan, measured),
        lambda plan: synthesise(plan, measured, 5),
        lambda plan: bound(plan, measured, bits, "0.1"),
        lambda plan: loss(plan, rows, rows),
        lambda plan: plan.rate(plan.parts[0]),
    ):
        run(plan)
        with pytest.raises(AttributeError, match="'Unknown' object has no attribute"):
            run(other)


def test_laws_are_told_apart():
    names = [law.law for law in LAWS]
    assert len(set(names)) == len(names)
    assert np.all([isinstance(law.pure, bool) for law in LAWS])
