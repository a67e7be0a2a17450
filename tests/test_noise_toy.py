"""A noise of contrasts is a design and a line in a list: a toy one goes all the way, from plan to page."""

from dataclasses import replace

import pandas as pd
import pytest
from records import check_record

import smalldb
from queries import Conjunctions, Domain
from smalldb.marginals.strategies import choosing_parities
from smalldb.marginals.strategies.contrasts import sets_of
from smalldb.noise.distributions import Geometric
from smalldb.reporting.page import page

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
        frame,
        Conjunctions(2),
        epsilon=40,
        neighbours=neighbours,
        mechanism="marginals",
        strategy="contrasts",
        rng=1,
        **public,
    )
    assert isinstance(made.measurements[0].noise, Geometric)
    assert made.data.shape == (public.get("rows", 200), 3)
    check_record(made.record)
    assert made.confidential.max_error <= made.record["bounds"]["released"] < 0.3
    assert made.plan.chosen.strategy.described in page(made)
