"""Plans by the command, from schemas of many kinds: each answers or refuses within CPU seconds and memory."""

import io
import json
import os
import random
import resource
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from itertools import islice, product

import pytest
from yardstick import timed

from smalldb.cli import main
from smalldb.marginals.mechanism import STRATEGIES

MOST, MOST_BYTES = 9, 3 << 28  # seconds as of a quiet machine; beyond what the process had when it began


def bins(name, k, more=""):
    return f'[columns.{name}]\nkind = "cuts"\nrange = [0, {3 * k}]\nbins = {k}\n{more}'


def cuts(name, k):
    return f'[columns.{name}]\nkind = "cuts"\nrange = [0, {3 * k}]\ncuts = {[*range(3, 3 * k, 3)]}\n'


def labels(name, k, more=""):
    return f'[columns.{name}]\nkind = "categories"\nvalues = {[f"v{i}" for i in range(k)]}\n{more}'


def integers(name, k):
    return f'[columns.{name}]\nkind = "integers"\nrange = [1, {k}]\n'


def dates(name, k, more=""):
    return f'[columns.{name}]\nkind = "dates"\nrange = [1900, 2020]\nbins = {k}\n{more}'


def times(name, k):
    return f'[columns.{name}]\nkind = "times"\nbins = {k}\n'


def flags(d, rules=(), more=""):
    return valid(rules) + "".join(f'[columns.f{i}]\nkind = "bool"\n{more}' for i in range(d))


def alike(make, c, k, rules=()):
    return valid(rules) + "".join(make(f"c{i}", k) for i in range(c))


def valid(rules):
    return f"valid = {json.dumps([*rules])}\n" if rules else ""


def never(pairs):
    return [f"~(f{i} & f{j})" for i, j in pairs]


def some(start, width):
    return " | ".join(f"f{i}" for i in range(start, start + width))


def apart(d, width, signs=("",)):
    sign = partial(random.Random(29).choice, signs)
    ways = islice(product(range(1, d), range(d)), 1 << 14)
    return [" | ".join(f"{sign()}f{(i + j * k) % d}" for j in range(width)) for k, i in ways]


CENSUS = "".join(
    [
        bins("age", 85),
        labels("work", 9),
        integers("weight", 100),
        labels("school", 16),
        labels("marital", 7, "missing = true\n"),
        labels("job", 15, 'unknown = "other"\n'),
        labels("relation", 6),
        labels("race", 5),
        '[columns.sex]\nkind = "bool"\n',
        bins("gain", 100),
        bins("loss", 100),
        cuts("hours", 99),
        labels("country", 42),
    ]
)
CENSUS_RULES = ["~(`relation=v0` & `marital=v1`)", "~(sex & `relation=v1`)", "hours>=21 | `work=v2`"]
MOMENTS = dates("a", 120) + times("b", 96) + dates("c", 40, "missing = true\n") + times("d", 24)
SCHEMAS = {
    "census": CENSUS,
    "census with rules": valid(CENSUS_RULES) + CENSUS,
    "moments": MOMENTS,
    "an integer": integers("a", 1 << 16),
    "two integers": integers("a", 10_000) + integers("b", 10_000),
    "an integer and flags": integers("a", 1000) + integers("b", 500) + flags(3),
    **{
        f"{c} labels of {k}": alike(labels, c, k)
        for c, k in ((13, 4), (30, 10), (100, 5), (300, 2), (300, 30), (1000, 5))
    },
    **{f"{c} cuts of {k}": alike(cuts, c, k) for c, k in ((5, 16), (3, 100), (20, 10), (60, 17))},
    "bits": "".join(bins(f"c{i}", 32, 'coding = "bits"\n') for i in range(4)),
    **{f"{d} flags": flags(d) for d in (1, 4, 7, 10, 20, 21, 48, 100, 256, 999)},
    "60 flags with gaps": flags(60, more="missing = true\n"),
    "20 flags, a chain": flags(20, never((i, i + 1) for i in range(19))),
    "999 flags, a chain": flags(999, never((i, i + 1) for i in range(998))),
    "100 flags, a ring": flags(100, never((i, (i + 1) % 100) for i in range(100))),
    "14 flags, one at most": flags(14, never((i, j) for i in range(14) for j in range(i))),
    "40 flags, one at most": flags(40, never((i, j) for i in range(40) for j in range(i))),
    "300 flags, 2^14 rules": flags(300, never((i, j) for i in range(300) for j in range(i))[: 1 << 14]),
    "300 flags, 2^14 wide rules": flags(300, apart(300, 4)),
    "300 flags, 2^14 signed rules": flags(300, apart(300, 4, ("", "~"))),
    "80 flags, the widest rules": flags(80, [some(start, 20) for start in range(16)]),
    "200 flags, rules apart": flags(200, never((i, i + 1) for i in range(0, 200, 2))),
    "20 flags, a wide rule": flags(20, [some(0, 18)]),
    "60 flags, a wide rule": flags(60, [some(0, 20)]),
    "60 flags, wide rules": flags(60, [some(start, 16) for start in range(45)]),
    "60 flags, copies": flags(60, [f"f{i} & f{i - 19} | ~f{i} & ~f{i - 19}" for i in range(19, 60)]),
    "100 labels, a star": alike(labels, 100, 5, [f"~(`c0=v0` & `c{i}=v1`)" for i in range(1, 100)]),
    "13 cuts, a chain": alike(cuts, 13, 30, [f"~(c{i}>=30 & c{i + 1}<30)" for i in range(12)]),
    "50 wide labels, rules": alike(
        labels, 50, 1000, [f"~(`c{i}=v0` & `c{i + 1}=v1`)" for i in range(0, 50, 2)]
    ),
}
WORKLOADS = [
    *(f"marginals:{w}" for w in ("1", "2", "3", "4", "=3")),
    *(f"conjunctions:{w}" for w in ("1", "2", "3", "2:negations", "=4")),
    *(f"disjunctions:{w}" for w in ("2", "3")),
    *(f"parities:{w}" for w in ("1", "2", "3", "4")),
    *("thresholds", "intervals", "decision-lists", "halfspaces", "halfspaces:last"),
    "marginals:2 + parities:3",
    "marginals:1 + thresholds + intervals",
]
SETTINGS = [
    "--n 1000 --epsilon 1",
    "--n 1 --epsilon 1",
    "--n 1000000000 --epsilon 1e-9",
    "--n 1000000000 --epsilon 1000000",
    "--n 1000000 --epsilon 1 --delta 1e-9",
    "--n 1000 --epsilon 1000000 --delta 1e-300 --certificate 0",
    "--n 1000 --epsilon 1 --rows 1",
    "--n 100000 --epsilon 1/3 --rows 50",
    "--n 1000 --epsilon 1 --rows 100000000000000000",
    "--n 1000000 --epsilon 1 --alpha 0.001",
    "--n 100000 --epsilon 1 --rows-per-person 1000000",
    "--n 999999999 --epsilon 1000000007/998244353998244353 --beta 1e-300",
    "--neighbours add-remove --epsilon 1",
    "--neighbours add-remove --n-max 1000 --epsilon 1",
    "--neighbours add-remove --n-max 1000000000 --epsilon 1/1000 --delta 1e-6 --certificate 0",
    "--neighbours add-remove --n-max 1 --epsilon 10 --rows 20",
    "--n 1000 --epsilon 1 --mechanism census",
    "--n 1000 --epsilon 1 --mechanism rejection",
    "--n 100000 --epsilon 1 --mechanism rejection --rows 40 --candidates multisets",
    "--n 1000000000 --epsilon 1 --mechanism marginals --strategy contrasts",
    "--n 1000000 --epsilon 1 --mechanism marginals",
    *(f"--n 1000000 --epsilon 10 --mechanism marginals --strategy {name}" for name in STRATEGIES),
]
EVERY = [*product(SCHEMAS, WORKLOADS, SETTINGS)]
HARD = [
    ("7 flags", "intervals", SETTINGS[0]),
    ("48 flags", "conjunctions:=4", SETTINGS[0]),
    ("256 flags", "conjunctions:2:negations", SETTINGS[4]),
    ("60 flags, a wide rule", "marginals:3", SETTINGS[13]),
    ("40 flags, one at most", "marginals:=3", SETTINGS[9]),
    ("40 flags, one at most", "marginals:4", SETTINGS[14]),
    ("60 flags, copies", "marginals:1", SETTINGS[0]),
    ("20 flags, a wide rule", "marginals:4", SETTINGS[19]),
    ("300 flags, 2^14 rules", "marginals:2", SETTINGS[0]),
    ("300 flags, 2^14 wide rules", "marginals:2", SETTINGS[0]),
    ("300 flags, 2^14 signed rules", "marginals:2", SETTINGS[0]),
    ("80 flags, the widest rules", "marginals:2", SETTINGS[0]),
]
ALIKE = (  # to others of these
    "300 flags, 2^14 rules",
    "300 flags, 2^14 wide rules",
    "80 flags, the widest rules",
    "60 flags, copies",
    "48 flags",
)


@pytest.fixture(scope="module", autouse=True)
def imported():
    """Import what plans need: the processes of the tests start with it."""
    main(["plan", "--attributes", "4", "--n", "9", "--epsilon", "1"])
    main(["plan", "--attributes", "30", "--n", "9", "--epsilon", "1", "--delta", "1e-9"])


def most_memory():
    """The peak of this process in bytes; a fork begins with what its parent holds."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def planned(folder, schema, workload, settings):
    """Plan in a process of its own; return its CPU seconds, the memory that it took, and what it says."""
    path, told = folder / "schema.toml", folder / "told"
    path.write_text(SCHEMAS[schema])
    child = os.fork()
    if not child:
        try:
            said, had = io.StringIO(), most_memory()
            with timed() as found, redirect_stdout(said), redirect_stderr(said):
                code = main(["plan", "--schema", str(path), "--queries", workload, *settings.split()])
            told.write_text(json.dumps([found.seconds, most_memory() - had, code, said.getvalue()]))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    return json.loads(told.read_text())


def check(folder, schema, workload, settings):
    used, taken, code, said = planned(folder, schema, workload, settings)
    assert used < MOST
    assert taken < MOST_BYTES
    assert code in (0, 2)
    if code:  # one line that begins with the name of the program
        assert said.startswith("smalldb: ")
        assert said.count("\n") == 1
        assert len(said) < 2000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schema", "workload", "settings"),
    [pytest.param(*case, marks=[pytest.mark.long] * (case[0] in ALIKE)) for case in HARD],
)
def test_hard_ones_take_seconds(schema, workload, settings, tmp_path):
    check(tmp_path, schema, workload, settings)


@pytest.mark.long
@pytest.mark.parametrize(("schema", "workload", "settings"), random.Random(23).sample(EVERY, 400))
def test_any_takes_seconds(schema, workload, settings, tmp_path):
    check(tmp_path, schema, workload, settings)
