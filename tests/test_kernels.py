"""Kernels that Numba kept on disk are compiled anew once any kernel file has changed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

COMPILED = pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
ROOT = Path(__file__).parent.parent
HELPER = "from smalldb.kernels.compiling import kernel\n\n\n@kernel\ndef number():\n    return {}\n"
CALLER = """from smalldb.kernels.compiling import kernel
from smalldb.kernels.helper import number


@kernel
def call():
    return number()
"""
FOREIGN = "from numba import njit\n\n\n@njit(cache=True)\ndef own():\n    return 7\n"
CODE = "from smalldb.kernels.caller import call; print(call(), sum(call.stats.cache_hits.values()))"
OTHERS = "from foreign import own; print(own(), sum(own.stats.cache_hits.values()))"


@pytest.fixture
def tree(tmp_path):
    """A package with a kernel that calls one of another file, and the environment of its processes."""
    kernels = tmp_path / "tree" / "smalldb" / "kernels"
    kernels.mkdir(parents=True)
    (kernels.parent / "__init__.py").touch()
    for name in ("__init__.py", "compiling.py"):
        shutil.copy(ROOT / "smalldb" / "kernels" / name, kernels)
    (kernels / "caller.py").write_text(CALLER)
    (tmp_path / "tree" / "foreign.py").write_text(FOREIGN)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    home = str(tmp_path / "home")
    return tmp_path / "tree", environment | {
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": home,
        "XDG_CACHE_HOME": home,
        "LOCALAPPDATA": home,
    }


def run(folder, environment, code):
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment | {"PYTHONPATH": str(folder)},
        cwd=folder.parent,
        capture_output=True,
        text=True,
    )
    assert not done.stderr
    return [int(number) for number in done.stdout.split()]


def called(tree, environment, number, code=CODE):
    """What the kernel returns whose helper returns `number`, and how often it was found on disk."""
    (tree / "smalldb" / "kernels" / "helper.py").write_text(HELPER.format(number))
    return run(tree, environment, code)


@COMPILED
@pytest.mark.slow
def test_a_kernel_is_compiled_anew_when_another_file_changes(tree):
    both = CODE + ";" + OTHERS
    folder, environment = tree
    assert called(*tree, 1, both) == [1, 0, 7, 0]
    # code with checks of bounds is kept beside code without
    assert called(folder, environment | {"NUMBA_BOUNDSCHECK": "1"}, 1) == [1, 0]
    assert called(*tree, 1, both) == [1, 1, 7, 1]
    assert called(*tree, 2, both) == [2, 0, 7, 1]  # what other packages keep is theirs


@COMPILED
@pytest.mark.slow
@pytest.mark.parametrize(("named", "home", "hits"), [(True, False, 1), (False, True, 1), (False, False, 0)])
def test_where_kernels_are_kept_if_their_folder_cannot_be_written(tree, named, home, hits):
    folder, environment = tree
    (folder / "smalldb" / "kernels" / "__pycache__").touch()
    if named:
        environment = environment | {"NUMBA_CACHE_DIR": str(folder.parent / "named")}
    if not home:
        (folder.parent / "home").touch()
    assert called(folder, environment, 2) == [2, 0]
    assert called(folder, environment, 2) == [2, hits]


@COMPILED
@pytest.mark.slow
def test_kernels_of_an_archive_are_compiled_anew_when_another_file_changes(tree):
    folder, environment = tree
    for number in (1, 2):
        (folder / "smalldb" / "kernels" / "helper.py").write_text(HELPER.format(number))
        archive = shutil.make_archive(str(folder.parent / "packed"), "zip", folder)
        assert run(Path(archive), environment, CODE) == [number, 0]
