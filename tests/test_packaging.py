"""The distribution is called smalldb-dp; the modules and the command are not."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BUILT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = BUILT["project"]
TEXTS = {
    "", ".py", ".md", ".toml", ".yml", ".yaml", ".cff", ".json", ".ipynb", ".txt", ".html", ".css", ".js",
    ".tex",
}  # fmt: skip
OLD = re.compile(
    r"(?<![\w./-])smalldb(?:\[[a-z]|[=<>~!]=[0-9])"  # with an extra or a version
    r"|\binstall(?: -\S+)* ['\"]?smalldb(?![\w-])"
    r"|^name = \"smalldb\"",
    re.M,
)


def shipped():
    """All files of text that a source distribution holds, and what runs on the project's host."""
    for name in [
        *BUILT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"],
        "pyproject.toml",
        ".github",
    ]:
        path = ROOT / name
        files = path.rglob("*") if path.is_dir() else [path]
        yield from (file for file in files if file.is_file() and file.suffix in TEXTS)


def test_extras_ask_for_extras_that_are_there():
    extras = PROJECT["optional-dependencies"]
    own = [each for extra in extras.values() for each in extra if each.startswith("smalldb")]
    assert own
    assert {re.fullmatch(r"smalldb-dp\[(\w+)\]", each)[1] for each in own} <= set(extras)


@pytest.mark.slow
def test_whatever_is_installed_has_the_name_of_the_distribution():
    """`smalldb` on the package index is another project's."""
    files = list(shipped())
    assert len(files) > 400
    found = [str(file.relative_to(ROOT)) for file in files if OLD.search(file.read_text(encoding="utf-8"))]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "pip install 'small" + "db[plot]'",
        "the extra `small" + "db[parquet]`",
        "pip install small" + "db",
        "uv tool install -q small" + "db && true",
        "small" + "db==0.2.0",
        'name = "small' + 'db"',
    ],
)
def test_the_old_name_is_seen(text):
    assert OLD.search(text)
    assert not OLD.search(text.replace("smalldb", "smalldb-dp"))


def test_every_extra_that_a_message_names_is_there():
    named = {
        extra
        for file in (ROOT / "smalldb").rglob("*.py")
        for extra in re.findall(r'of_extra\("[^"]+", "(\w+)"', file.read_text(encoding="utf-8"))
    }
    assert {"parquet", "duckdb", "plot", "learn"} <= named <= set(PROJECT["optional-dependencies"])


def test_the_image_has_what_its_builds_need():
    """Its commands run without a network: what builds the package must stand among its wheels."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    (wheels,) = re.findall(r"^RUN pip wheel .*", text, re.M)
    assert all(f"'{requirement}'" in wheels for requirement in BUILT["build-system"]["requires"])
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^```sh$", readme, re.M)) == len({*re.findall(r"command[0-9]", text)}) == 2
    (version,) = re.findall(r"^FROM python:([0-9.]+)", text, re.M)
    assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]
