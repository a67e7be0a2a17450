"""The floors: a module imports only lower floors; kernels call only kernels of their own file."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FLOORS = [  # those of the design, each from its lowest module up
    {"version", "randomness", "kernels"},
    {"exact", "multisets", "enclosures"},
    {"arguments"},
    {"bounds"},
    {"counting"},
    {"planning"},
    {"recording"},
    {"releasing"},
    {"files", "tables"},
    {"cli"},
    {"__main__"},
]
FLOOR = {name: floor for floor, names in enumerate(FLOORS) for name in names}


def imports(path):
    """The modules that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def name_of(path):
    return path.relative_to(ROOT / "smalldb").parts[0].removesuffix(".py")


MODULES = sorted(p for p in (ROOT / "smalldb").rglob("*.py") if p != ROOT / "smalldb" / "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_modules_import_only_lower_floors(path):
    own = name_of(path)
    assert own in FLOOR, f"{own} stands on no floor"
    for imported in imports(path):
        parts = imported.split(".")
        if parts[0] == "smalldb" and len(parts) > 1 and parts[1] != own and parts[1] in FLOOR:
            assert FLOOR[parts[1]] < FLOOR[own], f"{own} imports {parts[1]}"


def test_queries_imports_nothing_of_smalldb():
    for path in (ROOT / "queries").rglob("*.py"):
        assert not [name for name in imports(path) if name.split(".")[0] == "smalldb"], path


@pytest.mark.parametrize("path", sorted((ROOT / "smalldb" / "kernels").glob("*.py")), ids=lambda p: p.name)
def test_kernels_are_self_contained(path):
    allowed = {"numba", "numpy", "typing", "collections", "__future__"}
    assert {name.split(".")[0] for name in imports(path)} <= allowed


def test_only_the_one_door_reaches_for_entropy():
    sources = {"os.urandom", "secrets", "random", "numpy.random"}
    for path in MODULES:
        if name_of(path) != "randomness":
            text = path.read_text(encoding="utf-8")
            assert not sources & set(imports(path)), path
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
