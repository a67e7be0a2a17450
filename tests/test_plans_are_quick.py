"""A plan answers or refuses within seconds, whatever it is asked for: what it costs is counted first."""

import random

import pytest
from builders import flags
from calling import way
from yardstick import timed, within

import smalldb
from queries import Column, Domain, Marginals
from queries.conjunctions import count_subsets, count_weights
from smalldb.cli import main
from smalldb.marginals.mechanism import STRATEGIES

MOST = 5  # CPU seconds of a quiet machine


def columns(c, k, labels=False, valid=None):
    categories = [f"p{j}" for j in range(k)] if labels else k
    return Domain([Column(f"c{i}", categories) for i in range(c)], valid)


def mixed(sizes):
    return Domain([Column(f"c{i}", k) for i, k in enumerate(sizes)])


def chained(rules):
    """Rules that look at one attribute after the other, in pairs."""
    return [f"~(x{i} & x{i + 1})" for i in range(rules)]


FLAGS = [
    *((d, f"conjunctions:{w}") for d, w in ((20, 20), (16, 16), (48, 4), (200, 3), (256, 2), (10_000, 2))),
    *((d, f"parities:{w}") for d, w in ((30, 6), (20, 20), (18, 18), (62, 4), (9999, 9999), (500, 2))),
    *((d, f"marginals:{w}") for d, w in ((20, 8), (20, 4), (64, 3), (256, 2), (300, 2), (1000, 2), (99, 9))),
    *((d, f"disjunctions:{w}") for d, w in ((20, 10), (14, 14), (40, 4))),
    *((d, "intervals") for d in (7, 8, 20, 62)),
    *((d, "thresholds") for d in (10, 11, 20, 62)),
    (30, "marginals:3 + parities:4 + conjunctions:3"),
    (48, "conjunctions:2:negations + parities:4"),
    *((d, "decision-lists") for d in (4, 5, 6, 200)),
    *((d, text) for d in (3, 5, 62) for text in ("halfspaces", "halfspaces:2")),
]
WIDE = [
    *((100, k, "marginals:3") for k in (4, 10)),
    *((c, 100, "marginals:2") for c in (100, 300, 1000)),
    *((c, k, "marginals:2") for c, k in ((1000, 2), (1000, 5), (700, 3), (2, 1000))),
    *((c, k, "marginals:1") for c, k in ((1000, 100), (10_000, 3), (1, 1 << 20))),
    *((c, k, "marginals:5") for c, k in ((10, 10), (5, 16), (60, 2))),
    *((c, k, f"marginals:{w}") for c, k, w in ((60, 4, 3), (60, 8, 3), (3, 100_000, 2), (14, 42, 3))),
    *(
        (c, k, f"conjunctions:{w}")
        for c, k, w in ((6, 10, 3), (3, 100, 2), (5, 10, 3), (2, 1000, 2), (1, 99, 4))
    ),
    *((c, k, f"parities:{w}") for c, k, w in ((40, 8, 2), (4, 5, 3), (20, 8, 2), (12, 2, 12))),
    *((1, k, "thresholds") for k in (5000, 5792, 1 << 20)),
    *((1, k, "intervals") for k in (150, 400, 1 << 20)),
]
MIXED = [
    *(((1 << 20, 1000, 100), text) for text in ("marginals:1", "marginals:2")),
    *(((100_000,) * 20, text) for text in ("marginals:1", "marginals:2")),
    *(((85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2), f"marginals:{w}") for w in (2, 3, 4)),
    *(((1000, 500, 2, 2, 2), text) for text in ("marginals:2", "parities:2", "thresholds")),
]
RULED = [
    *((d, f"marginals:{w}") for d, w in ((20, 2), (20, 4), (16, 3), (30, 2), (60, 3))),
    *((d, f"conjunctions:{w}") for d, w in ((20, 4), (14, 14))),
]
RULED_COLUMNS = [
    *((c, k, f"marginals:{w}") for c, k, w in ((5, 16, 3), (10, 4, 4), (13, 3, 4), (60, 4, 3), (100, 10, 2))),
    *((c, k, "conjunctions:2") for c, k in ((6, 6), (14, 8))),
]
MANY_RULES = [
    *(
        (d, rules, text)
        for d, rules in ((20, 19), (60, 59), (200, 100))
        for text in ("marginals:2", "marginals:3")
    ),
    (40, 39, "conjunctions:3"),
]
KINDS = [
    {"n": 1000, "epsilon": 1},
    {"n": 10**9, "epsilon": "1/1000"},
    {"n": 10**6, "epsilon": 10, "delta": "1e-9"},
    {"n": 10**6, "epsilon": 1, "rows": 50},
    {"n": 10**6, "epsilon": 1, "alpha": "1/100"},
    {"n": 10**18, "epsilon": 10**6, "beta": "1e-300"},
    {"n": 1, "epsilon": "1e-9", "alpha": "1/1000000", "rows_per_person": 10**6},
    {"neighbours": "add-remove", "n_max": 10**6, "epsilon": 1},
]
GRID = [
    *((f"{d} flags", lambda d=d: flags(d), text) for d, text in FLAGS),
    *((f"{c} x {k}", lambda c=c, k=k: columns(c, k), text) for c, k, text in WIDE),
    *((f"columns of {sizes}", lambda sizes=sizes: mixed(sizes), text) for sizes, text in MIXED),
    *(
        (f"{d} flags, {many} rules", lambda d=d, many=many: flags(d, chained(many)), text)
        for d, many, text in MANY_RULES
    ),
    *((f"{c} x {k} labels", lambda c=c, k=k: columns(c, k, True), text) for c, k, text in WIDE if k < 99),
    *((f"{d} flags, a rule", lambda d=d: flags(d, "~(x0 & x1)"), text) for d, text in RULED),
    *(
        (f"{c} x {k}, a rule", lambda c=c, k=k: columns(c, k, valid="~(`c0=1` & `c1=1`)"), text)
        for c, k, text in RULED_COLUMNS
    ),
]


def took(domain, text, **settings):
    """How many CPU seconds a plan takes; it may be refused, in a line."""
    with timed() as found:
        try:
            made = smalldb.plan(domain, text, **settings)
            assert made.privacy <= made.epsilon
        except ValueError as error:
            assert 0 < len(str(error)) < 2000
    return found.seconds


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "make", "text"), GRID, ids=lambda part: part if isinstance(part, str) else ""
)
def test_a_plan_answers_or_refuses_in_seconds(name, make, text):
    domain = make()
    for settings in KINDS:
        assert took(domain, text, **settings) < MOST, settings


@pytest.mark.long
@pytest.mark.parametrize("mechanism", ["census", "rejection", *STRATEGIES])
@pytest.mark.parametrize(
    ("d", "text"), [(4, "marginals:2"), (8, "marginals:3"), (14, "conjunctions:3"), (48, "marginals:2")]
)
def test_by_name_too(mechanism, d, text):
    for settings in KINDS:
        assert took(flags(d), text, **way(mechanism), **settings) < MOST, settings


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
def test_as_many_rules_of_which_no_two_meet_are_enforced():
    apart = flags(200, [f"~(x{i} & x{i + 1})" for i in range(0, 200, 2)])
    assert Marginals(2).workload(apart).size


@pytest.mark.slow
def test_figures_beyond_the_floats_are_no_error():
    made = smalldb.plan(columns(1000, 100), "marginals:1", n=1000, epsilon=1)
    assert made.mechanism == "marginals"
    assert made.alternatives["histogram"] > 1e100


@pytest.mark.parametrize("exactly", [False, True])
@pytest.mark.parametrize("base", [1, 2])
@pytest.mark.parametrize("width", [1, 2, 3])
def test_what_is_counted_is_what_is_built(width, base, exactly):
    from itertools import combinations
    from math import prod

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
