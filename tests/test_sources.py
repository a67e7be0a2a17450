"""The page on the sources: every call gives what the page says, and every test that it names is there."""

import ast
import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip().strip("`") for cell in line.strip("|").split(" | ")]
    for line in PAGE.splitlines()
    if re.match(r"\| (?!statement)", line)
]
DOCUMENTS = 5
_spec = importlib.util.spec_from_file_location("listing", ROOT / "tests" / "mutants" / "listing.py")
listing = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(listing)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def names():
    (preamble,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
    found = {}
    exec(preamble, found)
    return found


def plain(value):
    """A value as the page writes it: floats, integers, words and lists of them."""
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(each) for each in value]
    return value if isinstance(value, bool | int | str) else float(value)


def test_every_document_has_its_statements():
    parts = PAGE.split("\n## ")[1:]
    assert len(parts) == DOCUMENTS
    assert all(part.count("\n| ") > 10 for part in parts)
    assert all(len(row) == 4 for row in ROWS)


@pytest.mark.parametrize("statement, call, gives, held", ROWS, ids=range(len(ROWS)))
def test_a_call_gives_what_the_page_says(statement, call, gives, held, names):
    if call == "-":
        assert gives.startswith("not offered: ") and held == "-"
        return
    assert plain(eval(call, names)) == pytest.approx(ast.literal_eval(gives), rel=1e-5)


@pytest.mark.parametrize("held", sorted({row[3] for row in ROWS if row[3] != "-"}))
def test_the_test_that_holds_a_statement_is_there(held):
    file, name = held.split("::")
    text = (ROOT / "tests" / f"{file}.py").read_text(encoding="utf-8")
    assert f"\ndef test_{name}(" in text


def test_a_mutant_makes_the_test_of_each_statement_fail():
    """That they do is seen by `tests/mutants/run.py`; here, that there is one."""
    killers = {test.partition("[")[0] for mutant in listing.mutants() for test in mutant.tests}
    held = [row[3].split("::") for row in ROWS if row[3] != "-"]
    assert not {f"tests/{file}.py::test_{name}" for file, name in held} - killers
