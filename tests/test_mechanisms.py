"""A mechanism is a class and a line in a list: a toy one goes through plan, release, record and words."""

import inspect
import json
from contextlib import nullcontext
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, get_args, get_type_hints

import numpy as np
import pandas as pd
import pytest
from calling import FOR_FLAGS, way
from records import check_record

import smalldb
from queries import Conjunctions, Domain, Rows
from smalldb.commands.plan import plan_account, plan_json
from smalldb.marginals.strategies.all_cells import AllCells
from smalldb.mechanisms import Drawn, Facts, Guarantee, Neighbours, Request
from smalldb.noise.privacy_loss import Loss
from smalldb.planning import Settings, mechanisms
from smalldb.releasing import record_keys
from smalldb.releasing.budget_ledger import Ledger
from smalldb.releasing.record import record_schema
from smalldb.reporting.page import page
from smalldb.reporting.words import laid_out, tell

FRAME = pd.DataFrame({"a": [0, 1, 1], "b": [True, False, True]})
MOST = 5


@dataclass(frozen=True)
class Toy:
    """Rows that are all 1, as many as were asked for, or as many as a coin says."""

    name: ClassVar[str] = "toy"
    takes_candidates: ClassVar[bool] = False
    takes_delta: ClassVar[bool] = True
    takes_target: ClassVar[bool] = False

    request: Request
    candidates: ClassVar[None] = None
    candidate_count: ClassVar[None] = None
    bound: ClassVar[None] = None
    expected_error: ClassVar[None] = None
    proved: ClassVar[bool] = False
    theorems: ClassVar[dict] = {}
    cost: ClassVar[None] = None
    facts: ClassVar[Facts] = Facts("a toy", "nothing", "A toy that sees nothing", "nothing")

    @classmethod
    def planned(cls, request):
        if not request.named:
            return "toys are asked for by name"
        return f"a toy has at most {MOST} rows" if (request.rows or 1) > MOST else cls(request)

    @classmethod
    def least_error(cls, request):
        return 0.0

    @classmethod
    def remedy(cls, request):
        return f"; {MOST} would do"

    @property
    def rows(self):
        return self.request.rows

    @property
    def guarantee(self):
        return Guarantee(self.request.epsilon / 2, self.request.delta)

    @property
    def promise(self):
        return self

    def recorded(self, drawn):
        if drawn is None:
            return {"beta": "0.05", "released": None}
        return {"beta": "0.05", "released": drawn.bound, "covers": list(drawn.covers)}

    def draw(self, table, source, progress):
        rows = self.rows or 1 + source.bits(1)
        codes = np.ones((rows, len(table.domain.attributes)), dtype=np.uint8)
        return Drawn(codes, 1.0, ("every query that toys like",), {"n": table.n})


def test_what_loses_more_than_is_charged_is_refused(monkeypatch):
    """The curator serves a strategy as far as it says that it loses: never beyond what the record states."""
    assert Guarantee(Fraction(1), loss=Loss.pure(Fraction(1))).stated.epsilon == 1
    with pytest.raises(AssertionError, match="2 is lost where 1 is paid"):
        Guarantee(Fraction(1), loss=Loss.pure(Fraction(2)))
    monkeypatch.setattr(AllCells, "loss", property(lambda cells: Loss.pure(2 * cells.measuring)))
    with pytest.raises(AssertionError, match="2 is lost where 1 is paid"):
        smalldb.release(FRAME, epsilon=1, mechanism="marginals", strategy="cells", certificate=0)


@pytest.fixture
def _toy(monkeypatch):
    monkeypatch.setattr(mechanisms, "MECHANISMS", (*mechanisms.MECHANISMS, Toy))


@pytest.mark.usefixtures("_toy")
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("rows", [None, 4])
def test_a_toy_goes_through_the_house(neighbours, rows):
    """Rows left open, too, where n is private: how many there are is told by the release."""
    made = smalldb.release(FRAME, epsilon=1, rows=rows, neighbours=neighbours, mechanism="toy", rng=3)
    assert made.data.to_numpy().all()
    assert (made.plan.mechanism, made.plan.rows, made.plan.privacy) == ("toy", rows, 0.5)
    assert made.record["rows"] == len(made.data) == (rows or len(made.data))
    assert made.record["privacy"]["epsilon"] == "0.5"
    assert made.record["bounds"]["covers"] == ["every query that toys like"]
    check_record(made.record)
    assert made.confidential.parts == {"n": 3}
    assert (made.confidential.census, made.confidential.trials) == (None, None)
    told = laid_out(tell(made.record, made.plan)).splitlines()
    assert told[:2] == [f"mechanism: a toy, {made.record['rows']} rows", "details:   nothing"]
    bounds = [line for line in told if line.startswith("bound: ")]
    assert bounds[0].startswith("bound:     at most 1 (vacuous) on every query that toys like, with")
    assert plan_account(made.plan, "none").endswith("cost:      nothing")
    assert plan_json(made.plan, "none")["rows"] == rows
    json.dumps(plan_json(made.plan, "none"))
    assert "A toy that sees nothing" in page(made)


@pytest.mark.usefixtures("_toy")
def test_a_toy_that_loses_more_than_it_charges_draws_nothing(monkeypatch, tmp_path):
    loss = property(lambda toy: Guarantee(toy.request.epsilon / 2, loss=Loss.ranged(toy.request.epsilon)))
    monkeypatch.setattr(Toy, "guarantee", loss)
    monkeypatch.setattr(Toy, "draw", None)
    ledger = Ledger(str(tmp_path / "l"), 5)
    with pytest.raises(AssertionError, match="1 is lost where 1/2 is paid"):
        smalldb.release(FRAME, epsilon=1, rows=2, mechanism="toy", ledger=ledger)
    assert not ledger.read().records


@pytest.mark.usefixtures("_toy")
def test_a_toy_is_taken_where_nothing_else_can_choose_the_rows(monkeypatch):
    monkeypatch.setattr(Toy, "planned", classmethod(lambda cls, request: cls(request)))
    made = smalldb.plan(Domain(["a"]), epsilon=1, neighbours="add-remove")
    assert (made.mechanism, made.rows, made.runner_up) == ("toy", None, None)
    assert made.why.count("rows cannot be planned") == 1


@pytest.mark.usefixtures("_toy")
def test_a_toy_says_what_it_cannot_do():
    with pytest.raises(ValueError, match=r"^a toy has at most 5 rows; 5 would do$"):
        smalldb.plan(Domain(["a"]), n=3, epsilon=1, rows=6, mechanism="toy")
    with pytest.raises(ValueError, match="toy have no candidates"):
        smalldb.plan(Domain(["a"]), n=3, epsilon=1, rows=2, mechanism="toy", candidates="tuples")
    with pytest.raises(ValueError, match="delta is for marginals and toy"):
        smalldb.plan(Domain(["a"]), n=3, epsilon=1, rows=2, mechanism="census", delta="1e-6")
    assert smalldb.plan(Domain(["a"]), n=3, epsilon=1, rows=2).mechanism == "census"
    assert smalldb.plan(Domain(["a"]), n=3, epsilon=1).mechanism == "marginals"


def test_an_unknown_mechanism_is_refused():
    with pytest.raises(ValueError, match="one of 'auto', 'census', 'rejection', 'marginals', not 'toy'"):
        smalldb.plan(Domain(["a"]), n=3, epsilon=1, rows=2, mechanism="toy")


@pytest.mark.parametrize(
    ("mechanism", "epsilon"),
    [
        *((name, 1) for name in ("census", *FOR_FLAGS)),
        ("rejection", "1/2"),  # so little that any candidate may be tried
        pytest.param("rejection", 1, marks=pytest.mark.slow),  # from trees
    ],
)
@pytest.mark.parametrize("neighbours", [relation.value for relation in Neighbours])
def test_a_plan_is_carried_out(mechanism, epsilon, neighbours):
    public = {"n": 3} if neighbours == "replace-one" else {"n_max": 3}
    settings = {"epsilon": epsilon, "rows": 4, "neighbours": neighbours} | way(mechanism)
    plan = smalldb.plan(Domain(["a", "b"]), Conjunctions(2), **settings, **public)
    made = smalldb.release(plan, FRAME, rng=5)
    public.pop("n", None)
    other = smalldb.release(FRAME, Conjunctions(2), **settings, **public, rng=5)
    assert made.data.equals(other.data)
    assert made.record == other.record
    assert made.plan is plan
    assert (made.codes == made.data.to_numpy()).all()
    rows = smalldb.release(plan, Rows.from_frame(Domain(["a", "b"]), FRAME), rng=5)
    assert (rows.data == made.data).all(axis=None)


def test_a_plan_is_for_one_table_and_has_its_settings():
    plan = smalldb.plan(Domain(["a", "b"]), n=4, epsilon=1, rows=2)
    with pytest.raises(ValueError, match="the plan was made for another n"):
        smalldb.release(plan, FRAME)
    with pytest.raises(ValueError, match="no column 'b'"):
        smalldb.release(plan, FRAME[["a"]])
    with pytest.raises(ValueError, match="domain"):
        smalldb.release(plan, Rows.from_frame(Domain(["a"]), FRAME[["a"]]))
    with pytest.raises(TypeError, match="a plan has its domain and settings"):
        smalldb.release(plan, FRAME, epsilon=2)


@pytest.mark.parametrize("mechanism", FOR_FLAGS)
def test_no_record_states_another_n_than_that_of_the_data(mechanism):
    """A plan under replace-one is for tables of its n, which its losses and bounds are of."""
    plan = smalldb.plan(Domain(["a", "b"]), n=3, epsilon=1, rows=2, **way(mechanism))
    for n in range(1, 6):
        rows = Rows.from_counts(Domain(["a", "b"]), FRAME[:1], [n])
        with nullcontext() if n == 3 else pytest.raises(ValueError, match="another n"):
            assert smalldb.release(plan, rows, rng=1).record["n"] == n


def test_settings_are_the_keywords_of_plan():
    keywords = inspect.signature(smalldb.plan).parameters
    assert list(get_type_hints(Settings)) == [
        name for name in keywords if name not in ("domain", "queries", "schema", "n")
    ]
    assert Settings.__required_keys__ == {"epsilon"}


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (record_keys.Record, ()),
        (record_keys.Privacy, ("privacy",)),
        (record_keys.Queries, ("queries",)),
        (record_keys.Universe, ("universe",)),
        (record_keys.Versions, ("versions",)),
    ],
)
def test_the_type_of_a_record_and_its_schema_agree(kind, path):
    """Keys, which of them may be missing, and which may be null, but for the rows that a plan leaves open."""
    stated = record_schema()
    for key in path:
        stated = stated["properties"][key]
    hints = get_type_hints(kind)
    assert hints.keys() == stated["properties"].keys()
    # under replace-one n and bounds are there, too
    assert kind.__required_keys__ == set(stated["required"]) - {"n", "bounds"}
    for key, hint in hints.items():
        if key not in ("rows", "n", "bounds"):
            null = any(part.get("type") == "null" for part in stated["properties"][key].get("oneOf", []))
            null |= None in stated["properties"][key].get("enum", [])
            assert (type(None) in get_args(hint)) == null, key
