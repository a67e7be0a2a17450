"""Who a person is: stated by the schema or an argument, told if nobody states it, and exact with a delta."""

import json
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from calling import called
from hypothesis import given
from hypothesis import strategies as st

import smalldb
from smalldb.accounting.concentrated import group_factor
from smalldb.exact.numbers import as_text
from smalldb.schema import parse_schema

SCHEMA = "rows_per_person = 3\n" + "\n".join(f'columns.{c} = {{ kind = "bool" }}' for c in "abcdef")
UNSAID = SCHEMA.removeprefix("rows_per_person = 3\n")
FRAME = pd.DataFrame(np.random.default_rng(1).integers(0, 2, (3000, 6)), columns=list("abcdef"))
GAUSSIAN = {"mechanism": "marginals", "strategy": "adaptive", "epsilon": 3, "delta": "1e-3"}


@given(st.fractions(Fraction(1, 10**6), 3), st.integers(1, 150))
def test_the_factor_of_a_delta_is_above_the_sum_of_its_powers_and_hardly(epsilon, rows):
    with localcontext(prec=90):
        ratio = (Decimal(epsilon.numerator) / epsilon.denominator).exp()
        true = Fraction(sum(ratio**i for i in range(rows)))  # each neighbour on the way adds one
    found = group_factor(epsilon, rows)
    assert true * (1 - Fraction(1, 10**80)) <= found <= true * (1 + Fraction(1, 10**36))


def test_a_delta_covers_all_rows_of_a_person():
    made = smalldb.plan(schema=SCHEMA, n=3000, **GAUSSIAN)
    row = smalldb.plan(schema=UNSAID, n=3000, **GAUSSIAN | {"epsilon": 1, "delta": made.request.delta})
    assert made.delta == Fraction(1, 1000) == row.delta * group_factor(Fraction(1), 3)
    assert (made.privacy, row.privacy) == (3, 1)
    assert made.chosen.guarantee == row.chosen.guarantee
    record = smalldb.release(FRAME, schema=SCHEMA, rng=1, **GAUSSIAN).record
    assert record["privacy"] == {
        "epsilon": "3",
        "delta": "0.001",
        "bounded_range": None,
        "rho": as_text(9 * made.chosen.guarantee.loss.rho),
        "rows_per_person": 3,
    }


def test_what_a_schema_and_an_argument_say_of_persons_must_agree():
    with pytest.raises(ValueError, match="rows_per_person: the schema says 3, not 2"):
        smalldb.plan(schema=SCHEMA, n=9, epsilon=1, rows_per_person=2)
    with pytest.raises(ValueError, match="rows_per_person: the schema says 3, not 1"):
        smalldb.release(FRAME, schema=SCHEMA, epsilon=1, rng=1, rows_per_person=1)
    with pytest.raises(ValueError, match="another rows_per_person than the schema says"):
        plan = smalldb.plan(parse_schema(SCHEMA).domain, n=3000, epsilon=1)
        smalldb.release(plan, FRAME, schema=SCHEMA, rng=1)
    for given_rows in (None, 3):
        assert smalldb.plan(schema=SCHEMA, n=9, epsilon=1, rows_per_person=given_rows).rows_per_person == 3
    with pytest.raises(ValueError, match=r"rows_per_person must be a whole number.*line 1"):
        parse_schema(SCHEMA.replace("3", "0", 1))


@pytest.mark.slow
def test_where_nobody_says_who_a_person_is_rows_are_protected_and_that_is_told(tmp_path, capfd):
    path, table = tmp_path / "s.toml", tmp_path / "t.csv"
    FRAME.to_csv(table, index=False)
    told = "for each row: how many rows a person has is not stated (rows_per_person)"
    for text, more, unsaid in (
        (UNSAID, (), True),
        (UNSAID, ("--rows-per-person", 1), False),
        ("rows_per_person = 1\n" + UNSAID, (), False),
        (SCHEMA, (), False),
    ):
        path.write_text(text)
        asked = ("--schema", path, "--epsilon", 1, *more)
        code, out, err = called(capfd, "plan", *asked, "--n", 3000)
        assert (code, told in out) == (0, unsaid), err
        code, out, err = called(capfd, "generate", table, *asked, "-o", tmp_path / "out.csv")
        assert (code, told in err) == (0, unsaid), err


def test_a_plan_warns_before_anything_is_spent_if_nothing_useful_is_expected(capfd):
    few = ("plan", "--attributes", 8, "--n", 800, "--epsilon", 1)
    warned = "nothing useful is expected"
    assert warned in called(capfd, *few, "--rows-per-person", 35)[1]
    assert warned not in called(capfd, *few, "--rows-per-person", 1)[1]
    code, out, _ = called(capfd, *few, "--rows-per-person", 35, "--json")
    assert (code, json.loads(out)["privacy"]["rows_per_person"]) == (0, 35)


def test_a_large_epsilon_leaves_no_delta_to_a_row():
    with pytest.raises(ValueError, match="leave out delta"):
        smalldb.plan(3, n=100, epsilon=1000, delta="1e-9", rows_per_person=2)
