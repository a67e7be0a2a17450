"""Three made tables as people have them: relations hold in every released row, and make releases no worse."""

import pytest
from registers import REGISTERS, distance

import smalldb
from smalldb.schema.table_readers import read_table

ROWS, EPSILON, RELEASES = 1500, "1", 2
MARGIN = 0.01  # less than half of what relations gain where they gain least


@pytest.mark.parametrize("name", REGISTERS)
def test_the_made_tables_keep_what_they_state(name):
    register = REGISTERS[name]
    frame = register.make(ROWS)
    assert not any(register.breaks(frame).values())
    assert register.related.encode(frame).n == register.plain.encode(frame).n == ROWS
    assert frame.equals(register.make(ROWS)) and not frame.equals(register.make(ROWS, seed=2))
    assert len(register.valid) + len(register.keys) <= len(frame.columns)


@pytest.mark.slow
@pytest.mark.parametrize("name", REGISTERS)
def test_relations_hold_in_every_row_and_make_releases_no_worse(name):
    register = REGISTERS[name]
    without, broken = distance(register, ROWS, EPSILON, False, RELEASES)
    assert broken > ROWS / 10  # so that the count of what is broken can tell
    related, broken = distance(register, ROWS, EPSILON, True, RELEASES)
    assert broken == 0
    assert related <= without + MARGIN


WAYS = [{"epsilon": "1/10"}, {"epsilon": 4, "delta": "1e-6"}, {"epsilon": 1, "middle": True}]


@pytest.mark.parametrize(
    ("ways", "name"),
    [  # each table in one way, and all in every way
        pytest.param(ways, name, marks=[pytest.mark.slow] * (i % len(WAYS) != j))
        for i, name in enumerate(REGISTERS)
        for j, ways in enumerate(WAYS)
    ],
)
def test_they_hold_at_any_epsilon_and_through_files(name, ways, tmp_path):
    register = REGISTERS[name]
    made = smalldb.generate(register.make(300), schema=register.related, rng=4, **ways)
    assert not any(register.breaks(made).values())
    path = tmp_path / "out.csv"
    path.write_bytes(smalldb.schema.table_writers.written(made, "csv", register.related))
    assert read_table(str(path), register.related).n == 300
