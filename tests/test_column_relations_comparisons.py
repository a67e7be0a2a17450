"""Comparisons within predicates and of computed columns: tables over categories that are true row by row."""

import itertools
import operator
import re

import numpy as np
import pandas as pd
import pytest
from calling import called

import smalldb
from queries import DataError
from smalldb.schema import parse_schema

WAGES = """
columns.age = { kind = "integers", range = [14, 22] }
columns.education = { kind = "integers", range = [6, 12], missing = true }
columns.tenure = { kind = "integers", range = [0, 4] }
columns.married = { kind = "bool" }
columns.experience = { derive = "age - education - 6", missing = true }
columns.share = { derive = "tenure / experience", decimals = 1, missing = true }
"""
NAMES = ("age", "education", "tenure", "married")
SIGNS = {">=": operator.ge, "<=": operator.le, "<": operator.lt, ">": operator.gt}


def every_row():
    ranges = (range(14, 23), [*range(6, 13), None], range(5), (False, True))
    return [dict(zip(NAMES, row, strict=True)) for row in itertools.product(*ranges)]


def with_computed(row):
    gap = row["education"] is None
    experience = None if gap else row["age"] - row["education"] - 6
    share = None if not experience else round(round(10 * row["tenure"] / experience + 0, 9)) / 10
    return {**row, "experience": experience, "share": share}


def holds(left, sign, right):
    """Beside a gap a comparison says nothing."""
    return left is None or right is None or SIGNS[sign](left, right)


RULES = {
    "experience >= 0": lambda r: holds(r["experience"], ">=", 0),
    "tenure <= experience": lambda r: holds(r["tenure"], "<=", r["experience"]),
    "tenure <= experience <= age": lambda r: (
        holds(r["tenure"], "<=", r["experience"]) and holds(r["experience"], "<=", r["age"])
    ),
    "~married | education < tenure": lambda r: not r["married"] or holds(r["education"], "<", r["tenure"]),
    "married ^ (age > education) | `education=missing`": lambda r: (
        r["married"] ^ holds(r["age"], ">", r["education"]) or r["education"] is None
    ),
    "~(experience > -3.5) & married | share <= 1": lambda r: (
        (not holds(r["experience"], ">", -3.5) and r["married"]) or holds(r["share"], "<=", 1)
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_the_table_of_all_rows_by_value(rule):
    schema = parse_schema(f"valid = ['{rule}']\n{WAGES}")
    table = every_row()
    codes = [
        schema.columns[c].encode(pd.Series([r[n] for r in table], dtype=object)) for c, n in enumerate(NAMES)
    ]
    expected = [RULES[rule](with_computed(row)) for row in table]
    assert 0 < sum(expected) < len(table)
    assert schema.domain.contains(np.stack(codes, axis=1)).tolist() == expected


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_no_released_row_breaks_one_and_none_of_the_data_may(rule, tmp_path, capfd):
    schema = parse_schema(f"rows_per_person = 1\nvalid = ['{rule}']\n{WAGES}")
    kept = [row for row in every_row() if RULES[rule](with_computed(row))]
    frame = pd.DataFrame(kept, columns=NAMES).sample(400, replace=True, random_state=1)
    made = smalldb.generate(frame, schema=schema, epsilon="1/2", rng=3)
    for row in made.astype(object).where(made.notna(), None).to_dict("records"):
        told = with_computed({name: row[name] for name in NAMES})
        assert RULES[rule](told)
        assert row["experience"] == told["experience"]
    broken = next(row for row in every_row() if not RULES[rule](with_computed(row)))
    with pytest.raises(DataError, match=r"rule 1"):
        schema.encode(pd.DataFrame([broken, kept[0]]))
    table, text = tmp_path / "t.csv", tmp_path / "s.toml"
    pd.DataFrame([kept[0], broken]).to_csv(table, index=False)
    text.write_text(f"valid = ['{rule}']\n{WAGES}")
    assert f"rule 1, '{rule[:40]}" in called(capfd, "schema", "check", table, "--schema", text)[1]


def test_only_if_may_compare_too():
    schema = parse_schema(
        "columns.a = { kind = 'integers', range = [0, 3] }\n"
        "columns.b = { kind = 'integers', range = [0, 3] }\n"
        "columns.c = { kind = 'bool', missing = true, only_if = 'a < b' }"
    )
    rows = [*itertools.product(range(4), range(4), range(3))]
    assert schema.domain.contains(np.array(rows)).tolist() == [a < b or c == 2 for a, b, c in rows]


def test_faults_of_relations_have_lines_of_their_own_and_are_told_at_once():
    text = """valid = [
  "age <= sex",          # line 2
  "ages < age & age",
  "~married | pay > age",
  "born <= died",
  "nobody",
]
columns.age = { kind = "integers", range = [0, 9] }
columns.pay = { kind = "cuts", cuts = [5], range = [0, 9] }
columns.sex = { kind = "bool" }
columns.married = { kind = "bool" }

[columns.born]
kind = "dates"
cuts = [1990]
range = [1980, 2000]
missing_with = "age"
missing = true

[columns.town]
kind = "categories"
values = ["Aix", "Bath"]
determines = { country = { Aix = "F" } }
"""
    with pytest.raises(ValueError) as caught:
        parse_schema(text)
    told = str(caught.value)
    assert "\n" not in told
    for said, line in {
        "column 'sex' has no numbers": 2,
        "unknown attribute or category 'ages<age'": 3,
        "column 'pay' is compared within a predicate": 4,
        "there is no column 'died'": 5,
        "unknown attribute or category 'nobody'": 6,
        "missing_with: column 'age' has no category for gaps": 17,
        "determines: there is no column 'country'": 23,
    }.items():
        assert said in told, said
        assert re.search(r"\(lines? (\d+)\)", told[told.index(said) :])[1] == str(line), said
    assert told.count("'pay") == 1


def test_a_comparison_of_too_many_categories_is_refused():
    columns = "".join(f'columns.{c} = {{ kind = "integers", range = [0, 1500] }}\n' for c in "ab")
    with pytest.raises(ValueError, match=r"looks at 3 columns of more than 2\^20 cells together"):
        parse_schema(f'valid = ["~c | a < b"]\n{columns}columns.c = {{ kind = "bool" }}')
