"""The tests with the oldest and with the newest versions of the dependencies: `nox`, or `nox -s oldest`.

Without arguments the quick tier runs; `nox -- -m "not long"` runs more. A Python that is not there is
skipped, but not in CI. Environments stay in `.nox`, with their compiled kernels: the first run takes longest.
"""

import tomllib
from pathlib import Path

import nox

nox.options.default_venv_backend = "venv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["oldest", "newest"]
PYTHONS = ["3.11", "3.12", "3.13"]
EXTRAS = ["plot", "parquet", "duckdb", "learn", "completion"]
ALSO_READ = ["polars", "pytz"]  # tables and time zones


def lowest_versions():
    """Pin what users install to the lowest versions that pyproject.toml allows."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    allowed = [*project["dependencies"], *(line for extra in EXTRAS for line in optional[extra])]
    return [requirement.replace(">=", "==") for requirement in allowed]


def tests(session, *arguments):
    """Run tests on kernels that were compiled here: Numba's caches do not know of other versions of NumPy."""
    kernels = Path(session.virtualenv.location, "kernels")
    session.run("python", "-m", "pytest", "-q", *arguments, env={"NUMBA_CACHE_DIR": str(kernels)})


@nox.session(python="3.11")
def oldest(session):
    """The lowest versions, on the lowest Python (they have no wheels for later ones)."""
    session.install(f"-e.[test,{','.join(EXTRAS)}]", *ALSO_READ, *lowest_versions())
    tests(session, *session.posargs)


@nox.session(python=PYTHONS)
def newest(session):
    """The newest versions."""
    session.install("--upgrade", "--upgrade-strategy=eager", f"-e.[test,{','.join(EXTRAS)}]", *ALSO_READ)
    tests(session, *session.posargs)
