"""The small cores of the proofs (`docs/proofs/`), checked exactly over tiny cases: no float."""

import re
from fractions import Fraction
from itertools import product
from math import prod
from pathlib import Path

import numpy as np
import pytest
from rejecting import gaps, instance, shares_at

from smalldb.exact.bits import SeededBits
from smalldb.kernels.nodes import BINOMIALS
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


def proposals(made, bits):
    """The layers that propose a candidate, with the shares and ways of its nodes; by looking each way up."""
    mixture, d = made._mixture, made._target.attributes
    nodes, states = mixture.nodes, mixture.states
    columns = [sum(int(bit) << row for row, bit in enumerate(column)) for column in bits.T]
    for layer in range(len(mixture.factors) - 1):
        shares, ways = [], []
        for position in range(d):
            i = layer * d + position
            cells = [0] * nodes.cells[i]
            ones = [0] * nodes.cells[i]
            for row in range(len(bits)):
                x = sum(
                    (columns[parent] >> row & 1) << q
                    for q, parent in enumerate(nodes.parents[i].tolist())
                    if parent >= 0 and 1 << q < nodes.cells[i]
                )
                cells[x] += 1
                ones[x] += columns[nodes.attributes[i]] >> row & 1
            key = [sum(c << 8 * (x % 8) for x, c in enumerate(cells) if x // 8 == half) for half in (0, 1)]
            start, end = states.start[i], states.start[i + 1]
            (state,) = start + np.flatnonzero(
                (states.keys[start:end] == np.array(key, np.uint64)).all(axis=1)
            )
            found = shares_at(nodes, states, i, state)
            if tuple(ones) not in found:
                break
            first, end = found[tuple(ones)]
            shares.append(end - first)
            ways.append(prod(int(BINOMIALS[h, u]) for h, u in zip(cells, ones, strict=True)))
        else:
            yield layer, shares, ways


@pytest.mark.slow
def test_every_candidate_ends_a_trial_by_its_weight():
    """Over all layers: the probability to be proposed times the coin, but for its exponential, is one."""
    rows, n = 2, 20
    workload, answers, _ = instance(3, n, "conjunctions:2", rows)
    made = tuple_sampler(workload, answers, n, rows, Fraction(2))
    mixture, target = made._mixture, made._target
    assert len(mixture.factors) > 2
    layers = np.diff(mixture.sums, prepend=0).tolist()
    last, found, several = len(layers) - 1, set(), 0
    scored = gaps(workload, answers, n, rows).max(axis=0)
    table = workload.domain.table()
    for position in range(64):
        bits = table[[position // 8, position % 8]]
        score = int(scored[position])
        top = mixture.envelope.top(score)
        checks = proposals(made, bits)
        held = [
            (layer, Fraction(prod(shares), prod(ways) << 63 * len(ways)), shares, ways)
            for layer, shares, ways in checks
            if mixture.envelope.thresholds[layer] >= score  # what is looked up after each column
        ]
        held.append((last, Fraction(1, 64), [], []))
        several += len(held) > 2
        total = Fraction(0)
        for layer, density, shares, ways in held:
            factor = mixture.factor(layer, score, shares, ways)
            assert 0 < factor * top <= 1  # exp(-rate (s - lowest)) is at most top
            total += Fraction(layers[layer], 1 << 63) * density * factor
        found.add(total)
        assert (
            target.score(np.array([int("".join(map(str, c[::-1])), 2) for c in bits.T], np.uint64)) == score
        )
    assert several > 10
    assert len(found) == 1


@pytest.mark.slow
def test_what_must_not_happen_is_an_error():
    """Values that are too small make shares that are too large; a state that was not counted is met."""
    workload, answers, _ = instance(4, 34, "conjunctions:2", 3)
    for spoil in (
        lambda mixture: mixture.states.values.__imul__(0.25),
        lambda mixture: mixture.rooms[0][0].slots.fill(0),
    ):
        made = tuple_sampler(workload, answers, 34, 3, Fraction(2))
        made._finished = True
        spoil(made._mixture)
        source = SeededBits(1)
        with pytest.raises(ArithmeticError, match="must not happen"):
            for _ in range(50):
                made.draw(source)
