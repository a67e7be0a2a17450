"""The floors: a module imports only lower floors; kernels call only kernels of their own file."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FLOORS = [  # those of the design, each from its lowest module up
    {"version", "unfinished", "randomness", "kernels"},
    {"exact", "multisets", "enclosures", "files"},
    {"arguments", "sampling", "checkpoints"},
    {"bounds.reading", "bounds.candidates", "bounds.search", "bounds.binomial", "bounds.noise"},
    {"bounds.optimum", "bounds.mechanism", "bounds.lecture"},
    {"bounds.promises", "bounds.vc"},
    {"bounds.inverse", "bounds.neighbourhood"},
    {"bounds"},
    {"accounting.curves", "accounting.concentrated"},
    {"accounting.composing"},
    {"accounting"},
    {"selection.scored"},
    {"selection.drawing"},
    {"selection.selecting"},
    {"selection.law"},
    {"selection"},
    {"answers.parities", "answers.drawing"},
    {"answers.newton", "answers.normals", "answers.priors", "answers.gaussian"},
    {"answers.wishart"},
    {"answers.tails"},
    {"answers.parts"},
    {"answers.shares", "answers.rounding", "answers.searching"},
    {"answers.released"},
    {"answers.fitting", "answers.bounding"},
    {"answers.measuring", "answers.histogram"},
    {"answers.synthesising"},
    {"answers"},
    {"rounds.grouping", "rounds.universe", "rounds.counting"},
    {"rounds.junction"},
    {"rounds.measuring", "rounds.passing"},
    {
        "rounds.fitting",
        "rounds.rows",
        "rounds.reading",
        "rounds.expecting",
        "rounds.searching",
    },
    {"rounds.targets"},
    {"rounds.modelling", "rounds.selecting"},
    {"rounds.cells"},
    {"rounds.plan"},
    {"rounds.certificate", "rounds.reader"},
    {"rounds.rounds"},
    {"rounds"},
    {"counting.scores"},
    {"counting.recursion"},
    {"counting.law", "counting.enumeration", "counting.dynamic"},
    {"counting.cost"},
    {"counting.census"},
    {"counting"},
    {"rejection.clock", "rejection.target", "rejection.tree"},
    {"rejection.multisets", "rejection.relaxation", "rejection.factored", "rejection.flat"},
    {"rejection.layers", "rejection.search"},
    {"rejection.building"},
    {"rejection.sampler", "rejection.capability"},
    {"rejection"},
    {"planning.reading"},
    {"planning.plans"},
    {"planning.ways"},
    {"planning.choosing"},
    {"planning"},
    {"recording", "evaluating"},
    {"releasing", "auditing.databases"},
    {"auditing.loss"},
    {"auditing.census", "auditing.laws", "auditing.answers"},
    {"auditing.measuring"},
    {"auditing"},
    {"schema.codings", "schema.kinds", "schema.pieces"},
    {"schema.columns", "schema.sources", "schema.drafting"},
    {"schema.mapping"},
    {"schema.reading"},
    {"schema"},
    {"tables", "report", "ledger"},
    {"commands"},
    {"commands.options", "commands.telling"},
    {"commands.sources", "page.markup", "page.shares"},
    {"page.pictures"},
    {"page.describing"},
    {"page.comparing"},
    {"page.writing"},
    {"page"},
    {f"commands.{name}" for name in ("generate", "plan", "bounds", "account", "census", "audit")},
    {"commands.schema", "commands.evaluate", "commands.ledger"},
    {"cli"},
    {"__main__"},
]
FLOOR = {name: floor for floor, names in enumerate(FLOORS) for name in names}


def imports(text):
    """The modules that a source text imports anywhere, each with the name that it takes from it, or None."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            yield from ((node.module, alias.name) for alias in node.names)


def packages(path):
    return {module.split(".")[0] for module, _ in imports(source(path))}


def source(path):
    return path.read_text(encoding="utf-8")


def standing(module):
    """The name in `FLOORS` of a module of smalldb; all kernels are one."""
    name = module.removeprefix("smalldb.")
    return "kernels" if name.startswith("kernels.") else name


def name_of(path):
    return standing(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))


def ways_up(own, text):
    """What a module imports of smalldb that does not stand on a lower floor, `smalldb` itself above all."""
    for module, name in imports(text):
        if module.split(".")[0] != "smalldb":
            continue
        inner = ROOT.joinpath(*module.split("."), name or "")
        if name is None:  # binds all of smalldb, whichever module it names
            module = "smalldb"
        elif inner.is_dir() or inner.with_suffix(".py").exists():
            module = f"{module}.{name}"
        if FLOOR.get(standing(module), len(FLOORS)) >= FLOOR[own]:
            yield standing(module)


MODULES = sorted(p for p in (ROOT / "smalldb").rglob("*.py") if p != ROOT / "smalldb" / "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_modules_import_only_lower_floors(path):
    own = name_of(path)
    assert own in FLOOR, f"{own} stands on no floor"
    assert not list(ways_up(own, source(path)))


@pytest.mark.parametrize(
    ("own", "text", "found"),
    [
        ("version", "from smalldb import release", ["smalldb"]),
        ("version", "from smalldb import *", ["smalldb"]),
        ("cli", "import smalldb", ["smalldb"]),
        ("cli", "def run():\n    import smalldb.version as v", ["smalldb"]),
        ("counting.scores", "import smalldb.counting.census", ["smalldb"]),
        ("counting.scores", "from smalldb.counting import census", ["counting.census"]),
        ("counting.scores", "from smalldb.counting.law import Law", ["counting.law"]),
        ("counting.law", "from smalldb.counting.enumeration import prepare", ["counting.enumeration"]),
        ("counting.cost", "from smalldb.counting import Census", ["counting"]),
        ("counting.census", "from smalldb import planning, multisets", ["planning"]),
        ("bounds", "from smalldb.anything import x", ["anything"]),
        ("bounds", "import os.path\nfrom smalldb import enclosures\nfrom smalldb.exact import Log", []),
        ("counting", "from smalldb.counting import census, law\nfrom smalldb.kernels.dynamic import f", []),
    ],
)
def test_every_way_up_is_seen(own, text, found):
    assert list(ways_up(own, text)) == found


def test_queries_imports_nothing_of_smalldb():
    for path in (ROOT / "queries").rglob("*.py"):
        assert "smalldb" not in packages(path), path


@pytest.mark.parametrize("path", sorted((ROOT / "smalldb" / "kernels").glob("*.py")), ids=lambda p: p.name)
def test_kernels_are_self_contained(path):
    allowed = {"math", "numba", "numpy", "typing", "collections", "__future__"}
    assert packages(path) <= allowed


@pytest.mark.parametrize("given", [{}, {"NUMBA_CACHE_DIR": "elsewhere"}])
def test_checked_kernels_have_a_cache_of_their_own(given):
    code = "import os, sys, conftest; print('numba' in sys.modules, os.environ.get('NUMBA_CACHE_DIR'))"
    plain = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")} | given

    def run(environment):
        command, folder = [sys.executable, "-c", code], Path(__file__).parent
        return subprocess.check_output(command, cwd=folder, env=environment, text=True).strip()

    assert run(plain) == f"False {given.get('NUMBA_CACHE_DIR')}"
    assert re.fullmatch(r"False .*\Wboundscheck", run(plain | {"NUMBA_BOUNDSCHECK": "1"}))


def test_only_the_one_door_reaches_for_entropy():
    sources = {"os.urandom", "secrets", "random", "numpy.random"}
    for path in MODULES:
        if name_of(path) != "randomness":
            text = source(path)
            assert not sources & {
                m for module, name in imports(text) for m in (module, f"{module}.{name}")
            }, path
            assert "urandom" not in text, path
            assert "np.random" not in text, path


def test_importing_compiles_nothing_and_loads_no_heavy_package():
    code = (
        "import sys, smalldb; print([m for m in ('numba', 'matplotlib', 'scipy.stats') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_foreign_package_queries_is_noticed(tmp_path):
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "__init__.py").write_text("")
    done = subprocess.run(
        [sys.executable, "-c", "import smalldb"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert done.returncode == 1
    assert "shadows it" in done.stderr.splitlines()[-1]
