"""A plan counts what it costs first: it refuses at once what would take long, and answers extreme numbers.

`test_plans_of_schemas` has plans of many kinds.
"""

import random
from itertools import combinations
from math import prod

import pytest
from builders import flags
from yardstick import timed, within

import smalldb
from queries import Column, Domain
from queries.conjunctions import count_subsets, count_weights
from smalldb.cli import main
from smalldb.marginals.mechanism import STRATEGIES

MOST = 5  # CPU seconds of a quiet machine


def columns(c, k):
    return Domain([Column(f"c{i}", k) for i in range(c)])


def chained(rules):
    """Rules that look at one attribute after the other, in pairs."""
    return [f"~(x{i} & x{i + 1})" for i in range(rules)]


def took(domain, text, **settings):
    """How many CPU seconds a plan takes; it may be refused, in a line."""
    with timed() as found:
        try:
            made = smalldb.plan(domain, text, **settings)
            assert made.privacy <= made.epsilon
        except ValueError as error:
            assert 0 < len(str(error)) < 2000
    return found.seconds


@pytest.mark.parametrize(
    ("domain", "text"),
    [
        (flags(20), "conjunctions:20"),
        (flags(20), "disjunctions:10"),
        (flags(30), "parities:6"),
        (flags(9999), "parities:9999"),
        (columns(3, 100), "conjunctions:2"),
        (columns(1000, 5), "marginals:2"),
        (columns(300, 100), "marginals:2"),
    ],
    ids=str,
)
def test_what_would_take_long_is_refused_at_once(domain, text):
    assert took(domain, text, n=1000, epsilon=1) < 1
    with pytest.raises(ValueError, match=r"states (.* )?more than [0-9]+( tables.*)?: use fewer"):
        smalldb.plan(domain, text, n=1000, epsilon=1)


def test_rules_that_meet_are_counted_before_they_are_enforced():
    chain = flags(200, chained(100))
    assert took(chain, "marginals:2", n=1000, epsilon=1) < 1
    with pytest.raises(ValueError, match=r"20101 sets of columns in 1164126 steps, more than 100000: use"):
        smalldb.plan(chain, "marginals:2", n=1000, epsilon=1)


@pytest.mark.slow
def test_figures_beyond_the_floats_are_no_error():
    made = smalldb.plan(columns(1000, 100), "marginals:1", n=1000, epsilon=1)
    assert made.mechanism == "marginals"
    assert made.alternatives["histogram"] > 1e100


@pytest.mark.parametrize("exactly", [False, True])
@pytest.mark.parametrize("base", [1, 2])
@pytest.mark.parametrize("width", [1, 2, 3])
def test_what_is_counted_is_what_is_built(width, base, exactly):

    domain = Domain(["a", Column("b", ["x", "y", "z"]), Column("c", 4)])
    sizes = range(width if exactly else 0, width + 1)
    chosen = [some for size in sizes for some in combinations(range(len(domain.attributes)), size)]
    cells = [prod(domain.sizes[c] for c in {domain.column_of(a)[0] for a in some}) for some in chosen]
    assert count_subsets(domain, width, exactly, base) == sum(base ** len(some) for some in chosen)
    expected = sum(base ** len(some) * table for some, table in zip(chosen, cells, strict=True))
    assert count_weights(domain, width, exactly, base) == expected


EXTREME = (
    ("4", "14", "25", "40"),
    ("marginals:2", "conjunctions:2", "marginals:1"),
    ("auto", "census", "rejection", *STRATEGIES),
    (*(f"1e{k}" for k in (-300, -160, -100, -30, -18, -12, -6, 0, 3, 6, 16, 100, 300, 310, 3999)), "7/3"),
    (None, "1e-300", "1e-9", "1/2", "0.999999999"),
    (1, 2, 1000, 10**6, 2**40, 2**53 + 1, 10**18 - 1),
    (None, "0", "1e-300", "1e-12", "1/2", "0.999999999999"),
    (None, 1, 10**6, 2**53 + 1, 10**18 - 1),
    (None, "1e-300", "0.999999999"),
    ("replace-one", "add-remove"),
)


def extreme(number, seed):
    """So many of all combinations."""
    choice = random.Random(seed).choice
    return [[choice(some) for some in EXTREME] for _ in range(number)]


def check_extreme(arguments, capsys):
    d, queries, mechanism, epsilon, delta, n, certificate, rows, beta, neighbours = arguments
    given = {"attributes": d, "queries": queries, "mechanism": mechanism, "epsilon": epsilon}
    given |= {"delta": delta, "certificate": certificate, "rows": rows, "beta": beta}
    given["neighbours"] = neighbours
    given |= {"n" if neighbours == "replace-one" else "n-max": n}
    with within(MOST):
        code = main(["plan", *(f"--{name}={value}" for name, value in given.items() if value is not None)])
    said = capsys.readouterr()
    assert (code, said.err) == (0, "") or (code == 2 and said.err.startswith("smalldb: "))
    assert said.err.count("\n") == (code == 2)
    for bare in ("math domain", "math range", "result too large", "int too large", "division"):
        assert bare not in said.err


@pytest.mark.parametrize(
    "number", [pytest.param(100, marks=pytest.mark.slow), pytest.param(5000, marks=pytest.mark.long)]
)
def test_plans_of_extreme_numbers_answer_or_refuse(number, capsys):
    for arguments in extreme(number, seed=5):
        check_extreme(arguments, capsys)
