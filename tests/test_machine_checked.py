"""The algebra of the proofs for all numbers at once: z3 finds no counterexample, and finds one to each twin.

Over all reals, or integers where that is said; what is left to the proofs is integration and induction. Needs
z3 (the extra ``proofs``).
"""

from fractions import Fraction
from itertools import product

import pytest

z3 = pytest.importorskip("z3")


def follows(claim, *premises):
    """Whether no numbers keep the premises and break the claim; an error if z3 cannot tell."""
    solver = z3.Solver()
    solver.set("timeout", 60_000)
    solver.add(*premises, z3.Not(claim))
    found = solver.check()
    assert found != z3.unknown, solver.reason_unknown()
    return found == z3.unsat


def absolute(x):
    return z3.If(x >= 0, x, -x)


def least(x, y):
    return z3.If(x <= y, x, y)


def most(x, y):
    return z3.If(x >= y, x, y)


def test_the_range_lemma():
    """Lemmas 2 to 4 of docs/proofs/census.md, for all m, n, D, all sums and every row.

    m b - n a is a gap; top = m D, moved = m D f(z): products are numbers of their own once a < m D is known.
    """
    a, b, m, n, largest = z3.Reals("a b m n D")
    sums = [m >= 1, n >= 1, largest >= 1, a >= 0, b >= 0, b <= n * largest]
    assert follows(a < m * largest, n * a < m * b, *sums)
    assert follows(a > 0, m * b < n * a, *sums)
    assert not follows(a < m * largest - 1, n * a < m * b, *sums)

    a, gap, top, moved = z3.Ints("a gap top moved")
    row = [moved >= 0, moved <= top, top >= 1, a >= 0, a <= top]
    after = gap + moved - a
    rises = absolute(after) - absolute(gap)
    assert follows(rises <= top, *row)
    assert not follows(rises <= top - 1, *row)
    falls = [
        z3.Implies(gap > 0, a <= top - 1),
        z3.Implies(gap < 0, a >= 1),
    ]  # of D - D f, with the other sign
    assert follows(z3.Implies(gap != 0, -rises <= top - 1), *row, *falls)
    assert follows(z3.Implies(gap == 0, rises >= 0), *row)
    assert not follows(z3.Implies(gap != 0, -rises <= top - 2), *row, *falls)
    assert not follows(z3.Implies(gap != 0, -rises <= top - 1), *row)
    replaced = absolute(gap + moved - z3.Int("other")) - absolute(gap)
    other = [z3.Int("other") >= 0, z3.Int("other") <= top]
    assert follows(absolute(replaced) <= top, *row, *other)
    assert not follows(absolute(replaced) <= top - 1, *row, *other)


def test_the_largest_gap_moves_as_gaps_do():
    """And so does what is cut off at n_max m D: lemma 1 of docs/proofs/rejection.md."""
    before, after = z3.Reals("p q"), z3.Reals("r s")
    up, down, cut = z3.Reals("up down cut")
    moves = [z3.And(-down <= y - x, y - x <= up) for x, y in zip(before, after, strict=True)]
    score, moved = most(*before), most(*after)
    assert follows(z3.And(-down <= moved - score, moved - score <= up), *moves)
    assert not follows(moved - score <= up, *moves[:1])
    x, y = z3.Reals("x y")
    change = least(y, cut) - least(x, cut)
    assert follows(z3.And(absolute(change) <= absolute(y - x), change * (y - x) >= 0))
    assert not follows(absolute(change) < absolute(y - x), x != y)


def test_a_range_of_moves_bounds_the_loss():
    """Lemma 6 of docs/proofs/census.md, for three candidates: weights w become k w, low <= k <= high."""
    weights, moves, (low, high) = z3.Reals("u v w"), z3.Reals("k l m"), z3.Reals("low high")
    premises = [w > 0 for w in weights] + [z3.And(low <= k, k <= high) for k in moves] + [low > 0]
    total = sum(weights)
    moved = sum(k * w for k, w in zip(moves, weights, strict=True))
    assert follows(moves[0] * total * low <= high * moved, *premises)  # P' <= P high / low
    assert follows(moves[0] * total * high >= low * moved, *premises)
    assert not follows(moves[0] * total <= moved, *premises)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_cone(d):
    """Lemmas 1, 3 and 4 of docs/proofs/wishart.md: x A x >= 0 for all x, with a diagonal b, a, ..., a."""
    at = z3.Reals(" ".join(f"x{i}" for i in range(d + 1)))

    def matrix(name):
        b, a = z3.Reals(f"b{name} a{name}")
        entries = {(i, j): z3.Real(f"{name}{i}{j}") for i in range(d + 1) for j in range(i)}
        return {**entries, **{(i, i): a if i else b for i in range(d + 1)}}

    def form(of):
        return sum((2 if i != j else 1) * v * at[i] * at[j] for (i, j), v in of.items())

    one, other = matrix("A"), matrix("D")
    added = {position: one[position] + other[position] for position in one}
    assert follows(form(added) == form(one) + form(other))  # so the sum is in the cone
    x, y = z3.Reals("x y")
    cost = [x * of[0, 0] + y * of[1, 1] for of in (one, other, added)]
    assert follows(cost[2] == cost[0] + cost[1])  # l is linear: g(A + D) = g(A) e^(-l(D)) on the cone
    for signs in product((-1, 1), repeat=d):
        row = (1, *signs)
        held = {(i, j): z3.RealVal(row[i] * row[j]) for i, j in one}
        assert follows(form(held) == sum(s * t for s, t in zip(row, at, strict=True)) ** 2)
        assert follows(x * held[0, 0] + y * held[1, 1] == x + y)
    assert not follows(form(added) == form(one))


def test_the_coin():
    """Lemma 6 of docs/proofs/rejection.md, for a candidate that three layers can propose."""
    unit, weight = z3.Reals("unit weight")
    chances, steps = z3.Reals("p q r"), z3.Reals("d e f")
    top = sum(steps)
    premises = [unit > 0, weight >= 0, weight <= top]
    premises += [z3.And(step > 0, p > 0, p >= unit * step) for p, step in zip(chances, steps, strict=True)]
    coin = unit * steps[0] * weight / (chances[0] * top)
    assert follows(z3.And(coin >= 0, coin <= 1), *premises)
    assert not follows(coin <= 1, *premises[:2], *premises[3:])  # a weight above the envelope
    ends = sum(p * (unit * step / p) * (weight / top) for p, step in zip(chances, steps, strict=True))
    assert follows(ends == unit * weight, *premises)


def test_the_margins_of_the_coin():
    """Lemmas 4, 5 and 8 there: exact fractions at the largest sizes."""
    half = Fraction(1, 2)
    assert (1 - half**53) ** 72_000 >= 1 - half**36
    assert (1 - half**20) ** 2001 * (1 - half**30) >= 1 - Fraction(2001, 1 << 20) - half**30 >= 1 - half**9
    assert 2**63 * (1 - half**20) * (1 + half**30) + 2**22 < 2**63
    assert not 2**63 * (1 + half**30) + 2**22 < 2**63
