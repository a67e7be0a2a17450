"""The small cores of the proofs (`docs/proofs/`), checked exactly over tiny cases: no float."""

import re
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from rejecting import instance

from smalldb.exact.bits import SeededBits
from smalldb.rejection.sampler import tuple_sampler

CELLS = 3
# D and D f on the three cells; in the last two every value is 1 modulo 2, or 0 modulo 3
CLASSES = [
    (1, [[0, 1, 1], [0, 0, 1]]),
    (2, [[0, 1, 2], [2, 0, 1]]),
    (3, [[1, 3, 3], [3, 1, 1]]),
    (6, [[0, 3, 6], [6, 0, 3]]),
]


def test_every_test_that_a_proof_names_is_there():
    home = Path(__file__).parent
    text = "".join(page.read_text(encoding="utf-8") for page in (home.parent / "docs/proofs").glob("*.md"))
    code = "".join(file.read_text(encoding="utf-8") for file in home.glob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", text))
    assert len(named) > 60
    assert not {name for name in named if f"def {name}(" not in code}


def tables(n):
    """All tables of at most n rows, as counts."""
    return [np.array(x) for x in product(range(n + 1), repeat=CELLS) if sum(x) <= n]


def scores(matrix, table, rows, most):
    """The score of every multiset of rows, by the definition; cut off at a largest one."""
    small = [np.array(y) for y in product(range(rows + 1), repeat=CELLS) if sum(y) == rows]
    n = int(table.sum())
    found = [np.abs(rows * (matrix @ table) - n * (matrix @ y)).max() for y in small]
    return np.minimum(found, most)


def moves(matrix, rows, n, most=1 << 62):
    """What scores move by when a row is added: all tables of up to n rows."""
    for table in tables(n):
        before = scores(matrix, table, rows, most)
        for cell in range(CELLS):
            yield scores(matrix, table + (np.arange(CELLS) == cell), rows, most) - before


@pytest.mark.parametrize(("denominator", "matrix"), CLASSES)
@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("n_max", [1, 2, 3, 100])
def test_the_range_lemma_by_exact_enumeration(denominator, matrix, rows, n_max):
    """Whether scores are cut off at n_max m D, or not."""
    unit = rows * denominator
    found = [(int(m.max()), int(-m.min())) for m in moves(np.array(matrix), rows, 5, n_max * unit)]
    assert max(up for up, _ in found) <= unit
    assert max(down for _, down in found) <= unit - 1
    assert max(up + down for up, down in found) <= 2 * unit - 1


def test_the_range_lemma_is_tight():
    """Nothing smaller would do: a twin of it for 2 m D - 2 fails."""
    found = max(int(move.max() - move.min()) for move in moves(np.array(CLASSES[0][1]), 2, 6))
    assert found == 2 * 2 - 1


@pytest.mark.parametrize(("denominator", "matrix"), CLASSES)
def test_coarser_values_have_a_smaller_range(denominator, matrix):
    rows, up, down = 2, 0, 0
    for weights in matrix:
        width = max(weights) - min(weights)
        step = np.gcd.reduce(np.array(weights) - min(weights))
        up, down = max(up, rows * width), max(down, rows * width - int(step))
    found = [(int(move.max()), int(-move.min())) for move in moves(np.array(matrix), rows, 5)]
    assert max(most for most, _ in found) <= up
    assert max(least for _, least in found) <= down
    assert up + down <= 2 * rows * denominator - 1


@pytest.mark.slow
def test_what_must_not_happen_is_an_error():
    """Values that are too small make shares that are too large; a state that was not counted is met."""
    workload, answers, _ = instance(4, 34, "conjunctions:2", 3)
    for spoil in (
        lambda mixture: mixture.states.values.__imul__(0.25),
        lambda mixture: mixture.rooms[0][0].slots.fill(0),
        lambda mixture: object.__setattr__(mixture, "factors", tuple(3 * f / 2 for f in mixture.factors)),
    ):
        made = tuple_sampler(workload, answers, 34, 3, Fraction(2))
        made._finished = True
        spoil(made._mixture)
        source = SeededBits(1)
        with pytest.raises(ArithmeticError, match="must not happen"):
            for _ in range(50):
                made.draw(source)
