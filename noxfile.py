"""The tests with the oldest and with the newest versions of the dependencies: `nox`, or `nox -s oldest`."""

import re
import tomllib
from pathlib import Path

import nox

nox.options.default_venv_backend = "venv"
PYTHONS = ["3.11", "3.12", "3.13"]
EXTRAS = "-e.[test,parquet,duckdb]"


def oldest_versions():
    """Pin each dependency to the lowest version that pyproject.toml allows."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [re.sub(">=", "==", requirement) for requirement in project["dependencies"]]


@nox.session(python="3.11")
def oldest(session):
    """The lowest versions, on the lowest Python (they have no wheels for later ones)."""
    session.install(EXTRAS, *oldest_versions())
    session.run("python", "-m", "pytest", "-q", *session.posargs)


@nox.session(python=PYTHONS)
def newest(session):
    """The newest versions."""
    session.install("--upgrade", EXTRAS)
    session.run("python", "-m", "pytest", "-q", *session.posargs)


@nox.session(python="3.11")
def scale(session):
    """The tests on Dask."""
    session.install("-e.[test,dask]")
    session.run("python", "-m", "pytest", "-q", "tests/test_executors.py", *session.posargs)
