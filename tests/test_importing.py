"""The package is light until it is used, shows all its names, and can be left by Ctrl-C from the start."""

import ast
import pickle
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import smalldb

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parent.parent / "examples"
SURVEY, TITANIC = EXAMPLES / "survey.toml", EXAMPLES / "titanic.csv"
INTERRUPTED = (130, "smalldb: interrupted; unfinished files were removed\n")


def shown():
    """The names that type checkers see, with their modules."""
    for node in ast.walk(ast.parse(Path(smalldb.__file__).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("smalldb"):
            yield from ((alias.name, node.module) for alias in node.names)


def fresh(code):
    """What a new process prints."""
    return subprocess.check_output([sys.executable, "-c", code], text=True, timeout=120).strip()


def test_names_are_found_where_type_checkers_see_them():
    homes = dict(shown())
    assert sorted(homes) == sorted(smalldb.__all__)
    assert {*smalldb.__all__} <= {*dir(smalldb)}
    for name, module in homes.items():
        assert getattr(smalldb, name) is getattr(import_module(module), name)
    with pytest.raises(AttributeError, match="module 'smalldb' has no attribute 'plam'"):
        _ = smalldb.plam


@pytest.mark.parametrize(
    "code",
    [
        "import smalldb; print(smalldb.bounds.rows_for.__name__, smalldb.accounting.compose.__name__)",
        "from smalldb import *; print(bounds.rows_for.__name__, accounting.compose.__name__)",
        "import smalldb.bounds; from smalldb import accounting as a; "
        "print(smalldb.bounds.rows_for.__name__, a.compose.__name__)",
    ],
)
def test_names_are_found_however_they_are_imported(code):
    assert fresh(code) == "rows_for compose"


def test_what_is_sent_elsewhere_is_found_there():
    sent = (smalldb.census, smalldb.Plan, smalldb.Neighbours.ADD_REMOVE)
    code = f"import pickle; f, c, e = pickle.loads({pickle.dumps(sent)!r}); print(f.__name__, c.__name__, e)"
    assert fresh(code) == "census Plan add-remove"


@pytest.mark.parametrize("name", ["smalldb.cli", "smalldb.commands.plan", "queries", "numpy"])
def test_an_interrupt_at_an_import_leaves_one_line(tmp_path, name):
    (tmp_path / "interrupted.py").write_text(
        "import os, runpy, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {name!r} and ('smalldb.cli' in sys.modules or name == 'smalldb.cli'):\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "sys.argv = ['smalldb', 'plan']\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "runpy.run_module('smalldb', run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "interrupted.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == INTERRUPTED


def imported(given, names):
    """Which of these a command imports, in their order."""
    code = (
        "import sys; from smalldb.cli import main\n"
        f"try:\n    assert main({given!r}) == {0 if given else 2}\nexcept SystemExit:\n    pass\n"
        f"print('imported', *(name for name in {names!r} if name in sys.modules))"
    )
    return fresh(code).splitlines()[-1].split()[1:]


HEAVY = ("pandas", "scipy", "numba", "matplotlib", "duckdb", "sklearn", "polars")
LIBRARIES = ("numpy", "queries", *HEAVY)
LATE = ("tqdm", "multiprocessing")
LATE += ("smalldb.reporting.page", "smalldb.inference", "smalldb.releasing.evaluation")
PUBLIC = "--n 5000 --epsilon 1"
SMALL = f"generate {TITANIC} --columns female,child,survived --epsilon 1"


@pytest.mark.parametrize(
    ("line", "names", "needed"),
    [
        *((line, LIBRARIES, "") for line in ("--version", "--help", "")),
        (f"plan --attributes 10 {PUBLIC} --rows 3", HEAVY, ""),
        (f"plan --attributes 40 {PUBLIC} --delta 1e-9", HEAVY, "scipy"),  # simulates noise
        (f"plan --schema {SURVEY} {PUBLIC}", HEAVY, "pandas scipy"),  # and a schema names dtypes of pandas
        (f"bounds --attributes 6 {PUBLIC}", HEAVY, ""),
        (f"schema init {TITANIC} -o draft.toml", HEAVY, ""),
        # numba asks for the version of scipy
        (f"{SMALL} --rows 4 --quiet", HEAVY, "scipy numba"),
        ("audit --attributes 2 --n 2 --rows 2 --epsilon 1", HEAVY, ""),
        # nothing for bars, pages, answers and related tables
        (f"generate {EXAMPLES / 'autoworkers.csv'} --epsilon 1 -o new.csv --record new.json", LATE, ""),
    ],
)
def test_a_command_imports_what_it_needs(line, names, needed, workdir):
    assert imported(line.split(), names) == needed.split()


def test_nothing_is_searched_for_cycles_when_a_command_ends():
    code = (
        "import atexit, gc, sys; from smalldb.__main__ import run\n"
        "atexit.register(lambda: print(gc.get_freeze_count() > 0))\n"  # what is registered first runs last
        "sys.argv = ['smalldb', '--version']; run()"
    )
    assert fresh(code).endswith("True")


def test_the_list_of_commands_is_theirs():
    from smalldb.cli import parser
    from smalldb.commands import HELP

    every = next(action for action in parser()._actions if action.choices)
    one = next(action for action in parser("plan")._actions if action.choices)
    assert list(every.choices) == list(one.choices) == list(HELP)
    assert parser("plan").format_help() == parser().format_help()
    assert one.choices["plan"].format_help() == every.choices["plan"].format_help()
    assert "--epsilon" not in one.choices["generate"].format_help()


AT_THE_PAYMENT = """
import sys
from numba.core.caching import Cache
from smalldb.cli import main
from smalldb.releasing.budget_ledger import Ledger
spend = Ledger.spend
def spending(*given):
    global before
    found = spend(*given)
    before = {{*sys.modules}}
    Cache.load_overload = loading
    return found
kernels, load = [], Cache.load_overload
def loading(cache, *given):
    kernels.append(cache._py_func.__name__ + '()')
    return load(cache, *given)
Ledger.spend = spending
assert main({given}) == 0
print(*sorted({{*sys.modules}} - before), *kernels)
"""
HOMES = ["homes=homes.csv", "persons=persons.csv", "--schema", str(EXAMPLES / "homes.toml"), "-o", "out"]
PAY = ["pay.csv", "--schema", "pay.toml"]
PRIVATE = ["--neighbours", "add-remove", "--n-max", "2000"]
SCHEMA = """
columns.pay = { kind = "cuts", cuts = [10, 20], range = [0, 40] }
columns.town = { kind = "categories", values = ["A", "B", "C"] }
columns.flag.kind = "bool"
"""
TWO = """
columns.a = { kind = "categories", values = [0, 1] }
columns.b = { kind = "dates", cuts = ["2020-06-01"], range = ["2020-01-01", "2020-12-31"] }
"""
FLAGS = ["flags.csv", "-o", "out.csv", "--record", "out.json"]


@pytest.mark.parametrize(
    "given",
    [
        [*FLAGS, "--rows", "3"],
        [*FLAGS, "--rows", "3", "--mechanism", "rejection"],
        [*FLAGS, "--mechanism", "marginals", "--report", "out.html"],
        [*PAY, "-o", "out", "--strategy", "adaptive", "--tables", "2", *PRIVATE],
        [
            *PAY,
            "-o",
            "out.csv",
            "--strategy",
            "adaptive",
            *"--report out.html --confidential --target flag".split(),
        ],
        [*PAY, "-o", "out.parquet", "--start", "public.csv", "--start-is", "last year's table"],
        ["pay.csv", "--schema", "learned.toml", "-o", "out.csv", "--schema-out", "out.toml"],
        ["pay.duckdb", "--query", "pay", "--count-in-database", *PAY[1:], "-o", "out.csv"],
        ["two.csv", "--schema", "two.toml", "-o", "out.csv"],
        HOMES,
    ],
    ids=[
        *("census", "rejection", "page", "tables", "confidential", "start"),
        *("learned", "database", "two cells", "related"),
    ],
)
def test_nothing_is_first_loaded_behind_the_payment(workdir, given):
    """What cannot be loaded or compiled, or does not fit in memory, is noticed while nothing is spent."""
    if "pay.duckdb" in given:
        duckdb = pytest.importorskip("duckdb")
    Path("flags.csv").write_text("a,b,c\n" + "0,1,1\n1,1,0\n" * 60)
    Path("pay.csv").write_text("pay,town,flag\n" + "5,A,1\n25,B,0\n12,C,1\n" * 500)
    Path("pay.toml").write_text(SCHEMA)
    Path("learned.toml").write_text(
        SCHEMA.replace("cuts = [10, 20]", 'cuts = "learn", bins = 3, share = 0.2')
    )
    Path("two.csv").write_text("a,b\n" + "1,2020-01-01\n0,2020-11-01\n" * 300)
    Path("two.toml").write_text(TWO)
    Path("public.csv").write_text("pay,town,flag\n" + "5,B,1\n25,B,0\n" * 50)
    if "pay.duckdb" in given:
        with duckdb.connect("pay.duckdb") as made:
            made.execute("CREATE TABLE pay AS SELECT * FROM 'pay.csv'")
    if given is HOMES:
        subprocess.run([sys.executable, EXAMPLES / "make_homes.py", "homes.csv", "persons.csv"], check=True)
    options = ["generate", *given, "--epsilon", "1", "--ledger", "l", "--budget", "1", "--quiet"]
    options.append("--even-if-empty")
    late = fresh(AT_THE_PAYMENT.format(given=options)).split()
    assert [name for name in late if "multiprocessing" not in name and name != "__mp_main__"] == []
