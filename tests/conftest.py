"""Shared fixtures."""

import gc
import json
import os
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded: its threads wait in loops

COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}  # a busy machine is no fault
settings.register_profile("all", derandomize=True, **COMMON)
settings.register_profile("quick", derandomize=True, max_examples=25, **COMMON)
settings.register_profile("random", **COMMON)
NAME = re.compile(r"^(?:def |class )?(\w+)(?=\(|:$| = (?!pytest\.importorskip))", re.M)


def pytest_configure(config):
    """Run the quick tier where no tests are named, and let hypothesis try the same examples in every run."""
    if not config.option.markexpr:  # a worker of xdist gets that of its controller
        named = config.args_source is pytest.Config.ArgsSource.ARGS
        config.option.markexpr = "not long" if named else "not slow and not long"
    if not config.getoption("--hypothesis-profile"):
        settings.load_profile("quick" if "not slow" in config.option.markexpr else "all")
    gc.set_threshold(50_000)  # modules, tests and Numba hold much, in which there is nothing to collect


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Look for no doctests here: a module that cannot be imported would be skipped with them, and unseen."""
    return [each for each in (yield) if type(each).__name__ != "DoctestModule"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark `optional` what needs packages that a test environment may lack: `.ci/run` runs it with all."""
    for item in items:
        if _asking(item.path) & {"", re.split(r"\W", item.location[2])[0]}:
            item.add_marker("optional")


@cache
def _asking(path):
    """Return the names of what asks for a package, itself or by what it uses; "" if the whole file does."""
    if "importorskip" not in (text := path.read_text("utf-8")):
        return set()
    pieces = re.split(r"\n{3}|\n(?=\w+ = )", text)
    words = [((NAME.findall(piece) or [""])[0], set(re.findall(r"\w+", piece))) for piece in pieces]
    found = {"importorskip", "ImportError"}
    while more := {name for name, used in words if used & found} - found:
        found |= more
    return found


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Let no other test be skipped for a package: nothing would run it with all of them."""
    report = yield
    if (
        report.skipped
        and "could not import" in str(report.longrepr)
        and not item.get_closest_marker("optional")
    ):
        report.outcome, report.longrepr = "failed", "what is skipped for a package must be marked optional"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Let only tests that are marked `slow` or `long` start processes."""
    if item.get_closest_marker("slow") or item.get_closest_marker("long"):
        return (yield)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "_execute_child", _refused)
        return (yield)


def _refused(*_, **__):
    raise PermissionError("a test that starts processes must be marked slow")


@pytest.fixture(scope="session")
def vectors():
    """The numbers that must come out, by their id."""
    entries = json.loads((Path(__file__).parent / "vectors.json").read_text(encoding="utf-8"))
    return {entry["id"]: entry for entry in entries}


@pytest.fixture
def workdir(tmp_path, monkeypatch):
    """An empty folder, in which the test works."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def examples():
    """The folder of examples."""
    return Path(__file__).parent.parent / "examples"


@pytest.fixture(scope="module")
def remembered():
    """What depends on a law alone is computed once, where tests draw from one law a thousand times."""
    from smalldb.exact import levels

    with pytest.MonkeyPatch.context() as patch:
        for name in ("_exp", "_power", "_family_weights"):
            patch.setattr(levels, name, cache(getattr(levels, name)))
        yield
