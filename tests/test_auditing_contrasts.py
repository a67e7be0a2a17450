"""The audit of measured contrasts: the exact loss of the measured integers, over all neighbours."""

from fractions import Fraction

import numpy as np
import pytest
from smalldb.marginals.contrasts.parity_measurement import counts
from smalldb.marginals.contrasts.parity_plan import alternatives

import smalldb
from queries import Conjunctions, Domain, Marginals, Rows
from smalldb.auditing import audit, contrasts_audit

ABC = Domain(["a", "b", "c"])
BOTH = pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("method", ["cube", "cells"])
@pytest.mark.parametrize("queries", [Conjunctions(1), Conjunctions(2), Marginals(3)])
def test_the_loss_is_epsilon_and_no_more(queries, method, neighbours):
    epsilon = Fraction(3, 7)
    found = audit(
        ABC, queries, n=3, epsilon=epsilon, mechanism="contrasts", method=method, neighbours=neighbours
    )
    assert found.loss == (epsilon, epsilon)
    assert found.range == (2 * epsilon, 2 * epsilon)  # no better than pure: nothing composes as bounded range
    assert found.cap == epsilon
    x, other, released = found.pair
    apart = np.abs(np.subtract(x, other)).sum()
    assert apart == (2 if neighbours == "replace-one" else 1)
    plans = alternatives(queries.workload(ABC), n=3, epsilon=epsilon, neighbours=neighbours)
    plan = min((plan for plan in plans if plan.method == method), key=lambda plan: plan.expected_error)
    frame = ABC.decode(ABC.table())
    assert tuple(counts(plan, Rows.from_counts(ABC, frame, x)).tolist()) == released


@BOTH
def test_what_cannot_exist_makes_the_loss_no_larger(neighbours):
    domain = Domain(["a", "b"], valid="~(a & b)")
    found = audit(
        domain, "conjunctions:2", n=4, epsilon=1, mechanism="contrasts", method="cube", neighbours=neighbours
    )
    assert found.loss[1] <= 1


def test_a_sensitivity_that_is_wrong_is_caught(monkeypatch):
    """Counts that move twice as far lose twice as much."""
    true = contrasts_audit.loss
    monkeypatch.setattr(contrasts_audit, "loss", lambda plan, x, other: 2 * true(plan, x, other))
    found = audit(ABC, "conjunctions:1", n=2, epsilon=1, mechanism="contrasts", method="cube")
    assert found.worst_loss > float(found.cap)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mechanism": "answers"}, "write mechanism contrasts"),
        ({"k": 2}, "method and k are for"),
        ({"rows": 3}, "rows and candidates are for the census"),
        ({"epsilon": None}, "epsilon must be given"),
        ({"method": "noisy-max"}, "method must be 'cube' or 'cells'"),
        ({"method": "wishart", "queries": "conjunctions:2"}, "Wishart noise, whose loss is proved"),
        ({"n": 1000}, "the largest n that can be audited is"),
        ({"checkpoint": "somewhere"}, "checkpoint is for"),
        ({"domain": Domain(["a"], valid=[0])}, "no query that differs between tables"),
    ],
)
def test_refusals(change, message):
    given = {
        "domain": ABC,
        "queries": "conjunctions:1",
        "n": 3,
        "epsilon": 1,
        "mechanism": "contrasts",
    } | change
    with pytest.raises(ValueError, match=message):
        audit(given.pop("domain"), given.pop("queries"), **given)


def test_the_plan_of_a_release_is_what_is_audited():
    found = smalldb.audit(Domain(["a"]), "conjunctions:1", n=5, epsilon="1/3", mechanism="contrasts")
    assert found.worst_loss == pytest.approx(1 / 3)
