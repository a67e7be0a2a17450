"""Drafts from data classes and from files that describe a table: what they declare, and nothing else."""

import json
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Literal, Optional

import pandas as pd
import pytest

from smalldb.schema import parse_schema
from smalldb.schema.drafting import draft
from smalldb.schema.parsing import toml_of


class Region(Enum):
    NORTH = "north"
    SOUTH = "south"


class Grade(IntEnum):
    LOW = 1
    HIGH = 2


class Odd(Enum):
    A = 1
    B = "b"


@dataclass
class Person:
    person_id: int
    age: int
    pay: Decimal | None
    region: Region
    grade: Grade | None
    job: Literal["none", "part", "full"]
    ward: Optional[Literal[1, 2]]  # noqa: UP045
    state: Literal["a", "b", None]
    smoker: bool
    joined: date
    shift: time
    stay: timedelta | None
    town: str
    odd: Odd
    mixed: int | str
    other: list[int]


EXPECTED = {
    "age": {"kind": "cuts", "cuts": [], "range": [], "decimals": 0},
    "pay": {"kind": "cuts", "cuts": [], "range": [], "decimals": 0, "missing": True},
    "region": {"kind": "categories", "values": ["north", "south"]},
    "grade": {"kind": "categories", "values": [1, 2], "missing": True},
    "job": {"kind": "categories", "values": ["none", "part", "full"]},
    "ward": {"kind": "categories", "values": [1, 2], "missing": True},
    "state": {"kind": "categories", "values": ["a", "b"], "missing": True},
    "smoker": {"kind": "bool"},
    "joined": {"kind": "dates", "cuts": [], "range": []},
    "shift": {"kind": "times", "cuts": []},
    "stay": {"kind": "times", "cuts": [], "missing": True},
    "town": {"kind": "categories", "values": []},
    "odd": {"kind": "categories", "values": []},
    "mixed": {"kind": ""},
    "other": {"kind": ""},
}


def test_a_data_class_declares_its_columns():
    given = toml_of(draft(Person))
    assert given["columns"] == EXPECTED
    assert given["ignore"] == ["person_id"]


def test_a_finished_data_class_is_a_finished_schema():
    @dataclass
    class Answer:
        smoker: bool | None
        job: Literal["none", "full"]

    schema = parse_schema(draft(Answer))
    frame = pd.DataFrame({"smoker": [True, None], "job": ["full", "none"]})
    assert schema.encode(frame).n == 2 and schema.domain.sizes == (3, 2)


def test_the_file_of_a_table_schema(tmp_path):
    path = tmp_path / "people.json"
    fields = [
        {"name": "id", "type": "integer"},
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 110}},
        {"name": "job", "type": "string", "constraints": {"enum": ["none", "full"]}},
        {"name": "joined", "type": "date", "constraints": {"minimum": "1990-01-01", "maximum": "2020-12-31"}},
    ]
    path.write_text(json.dumps({"fields": fields}))
    for given in (str(path), path):
        schema = parse_schema(draft(given))
        assert schema.names == ("age", "job", "joined") and schema.ignored == ("id",)
        assert schema.domain.sizes == (10, 2, 10)
    for content in ("[]", '{"job": ["none", "full"]}', "{", '{"fields": 3}', '{"resources": []}'):
        path.write_text(content)
        with pytest.raises(ValueError, match="is not a Table Schema"):
            draft(path)
    with pytest.raises(OSError):
        draft(tmp_path / "none.json")
    with pytest.raises(TypeError):
        draft(int)
    with pytest.raises(TypeError):
        draft(Person(*[None] * 16))
