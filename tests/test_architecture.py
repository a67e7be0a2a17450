"""The rooms: a module imports its own room and lower ones; kernels import only kernels."""

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BY_NAME = {"import_module", "__import__", "exec_module", "resolve_name", "run_module"}
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
ROOMS = re.findall(r"^\| `(\w+)` \|", PAGE[: PAGE.index("## Two wings")], re.M)


@cache
def imports(text):
    """The modules that a source text imports anywhere, each with the name that it takes from it, or None.

    What is imported by its name as a text counts, too: as all of smalldb where the text is not known.
    """
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            found += [(node.module, alias.name) for alias in node.names]
        elif isinstance(node, ast.Call) and called(node) in BY_NAME:
            match node.args[0]:
                case ast.Constant(str(name)) | ast.JoinedStr([ast.Constant(str(name)), *_]):
                    package, _, own = name.rstrip(".").rpartition(".")
                    found.append((package, own) if package else (own, None))
                case _:
                    found.append(("smalldb", None))
    return found


def called(node):
    """The name of a function where it is called, without its module."""
    return getattr(node.func, "attr", getattr(node.func, "id", None))


def packages(path):
    return {module.split(".")[0] for module, _ in imports(source(path))}


def source(path):
    return path.read_text(encoding="utf-8")


def name_of(path):
    """The dotted name of a module inside smalldb."""
    return ".".join(path.relative_to(ROOT / "smalldb").with_suffix("").parts).removesuffix(".__init__")


def room(name):
    return name.split(".")[0]


def imported(text):
    """The modules of smalldb that a source text imports, by their names inside it; "" is smalldb itself."""
    for module, name in imports(text):
        if module.split(".")[0] != "smalldb":
            continue
        inner = ROOT.joinpath(*module.split("."), name or "")
        if name is None:  # binds all of smalldb, whichever module it names
            module = "smalldb"
        elif inner.is_dir() or inner.with_suffix(".py").exists():
            module = f"{module}.{name}"
        yield module.removeprefix("smalldb").removeprefix(".")


def ways_up(own, text):
    """What a module imports of smalldb from a room that does not stand above its own in the table."""
    for module in imported(text):
        if room(module) not in ROOMS or ROOMS.index(room(module)) > ROOMS.index(room(own)):
            yield module or "smalldb"


MODULES = sorted(p for p in (ROOT / "smalldb").rglob("*.py") if p != ROOT / "smalldb" / "__init__.py")


def test_modules_have_at_most_600_lines():
    paths = [*(ROOT / "smalldb").rglob("*.py"), *(ROOT / "queries").rglob("*.py")]
    long = {path.relative_to(ROOT).as_posix() for path in paths if source(path).count("\n") > 600}
    assert not long


def test_no_two_modules_have_one_name():
    """But the packages themselves, and what makes the strategy or the mechanism of a room."""
    names = Counter(path.name for folder in ("smalldb", "queries") for path in (ROOT / folder).rglob("*.py"))
    assert {name for name, times in names.items() if times > 1} <= {"__init__.py", "mechanism.py"}


def test_the_table_of_rooms_is_complete():
    assert sorted(ROOMS) == sorted({room(name_of(path)) for path in MODULES})


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_modules_import_only_their_own_room_and_lower_ones(path):
    assert not list(ways_up(name_of(path), source(path)))


def test_imports_form_no_circle():
    graph = {name_of(path): set(imported(source(path))) - {name_of(path)} for path in MODULES}
    assert len(tuple(TopologicalSorter(graph).static_order())) >= len(MODULES)


# what tests of no one room are about: the package, its papers, or releases from end to end
WHOLE = {"architecture", "delta", "docs", "habits", "importing", "lemmas", "machine_checked"}
WHOLE |= {"fuzz", "neighbours", "packaging", "persons", "related", "sources", "words", "wrong_uses"}


def test_tests_are_named_after_what_they_test():
    """A room, a folder, a module or a tool of the tests, with more words behind it or without."""
    code = [path for folder in ("smalldb", "queries") for path in (ROOT / folder).rglob("*")]
    tools = [path for path in (ROOT / "tests").iterdir() if not path.name.startswith("test_")]
    names = {path.stem for path in (*code, *tools) if path.is_dir() or path.suffix == ".py"} | WHOLE
    tests = [path.stem.removeprefix("test_") for path in (ROOT / "tests").glob("test_*.py")]
    unnamed = {test for test in tests if not any(f"{test}_".startswith(f"{name}_") for name in names)}
    assert not unnamed


def test_the_page_names_files_that_are_there():
    """By the ends of their paths; but what a new command would be called."""
    there = [f"/{path.relative_to(ROOT).as_posix()}" for path in ROOT.glob("*.*")]
    for folder in ("smalldb", "queries", "tests", "docs"):
        there += [f"/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / folder).rglob("*.*")]
    named = set(re.findall(r"`([\w/]+\.(?:py|json|toml|md|yml))`", PAGE)) - {"commands/NAME.py"}
    assert len(named) > 40
    assert not [name for name in named if not any(path.endswith(f"/{name}") for path in there)]


def test_the_page_tells_of_every_strategy():
    told = re.findall(r"^\| `(\w+)` \|", PAGE[PAGE.index("| strategy |") : PAGE.index("## Where")], re.M)
    files = (ROOT / "smalldb" / "marginals" / "strategies").glob("*.py")
    found = {path.stem for path in files if re.search(r"^    def steps\(", source(path), re.M)}
    assert sorted(told) == sorted(found - {"strategy"})


SECTION = PAGE[PAGE.index("## Who sees confidential rows") : PAGE.index("## The rooms")]
SEES = {
    what: {*re.findall(r"`([\w.]+)`", files)}
    for what, files in re.findall(r"^\| (.+) \| (`.+`) \|$", SECTION, re.M)
}
DOOR = SEES["to answer asks"]
KEPT = {"CountedRows", "Counts", "Families", "InMemory", "Linked", "Texts", "Histograms", "OffsetSums"}
KEPT |= {"Confidential", "Evaluation", "RelatedEvaluation", "NumberCounts", "Piece", "PrivateArray"}
HOLDERS = {"Counts", "InMemory", "Families", "Curator", "Journal", "BitSource", "SystemBits", "SeededBits"}
SEEING = {"marginals", "counting", "rejection", "planning", "inference", "releasing", "reporting", "commands"}


def held_by(text, finished="finished"):
    """The types of rows in a file: of what functions take and return, of fields, and imported by name.

    But what is named as released rows are; `Rows` may be imported by whoever makes a table.
    """
    tree, found = ast.parse(text), set()
    for node in ast.walk(tree):
        notes = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            taken = node.args
            every = [*taken.posonlyargs, *taken.args, *taken.kwonlyargs, taken.vararg, taken.kwarg]
            notes = [(one.arg, one.annotation) for one in every if one is not None] + [("", node.returns)]
        elif isinstance(node, ast.AnnAssign):
            notes = [(ast.unparse(node.target), node.annotation)]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("smalldb"):
            found |= KEPT & {alias.name for alias in node.names}
        words = (ast.unparse(note) for name, note in notes if note is not None and name != finished)
        found |= (KEPT | {"Rows"}) & {word for text in words for word in re.findall(r"\w+", text)}
    return found


def test_the_files_that_see_confidential_rows_are_these():
    """After reading, as the page has them."""
    found = {name_of(path) for path in MODULES if held_by(source(path))}
    found = {own for own in found if room(own) in SEEING}
    assert found - {"marginals"} == set().union(*SEES.values())
    assert sum(map(len, SEES.values())) == len(set().union(*SEES.values())) and len(SEES) == 5


def asks_of(texts):
    """The files that define kinds of asks, and those where one says what it sees or how it draws."""
    trees = [(own, ast.walk(ast.parse(text))) for own, text in texts.items()]
    classes = [(own, node) for own, nodes in trees for node in nodes if isinstance(node, ast.ClassDef)]
    bases = {node: {ast.unparse(base).split(".")[-1] for base in node.bases} for _, node in classes}
    known, asks = {"Ask"}, [(own, node) for own, node in classes if node.name == "Ask"]
    while more := [(own, node) for own, node in classes if bases[node] & known and (own, node) not in asks]:
        asks += more
        known |= {node.name for _, node in more}
    drawing = set()
    for own, node in asks:
        # by whatever statement: a method, an assignment, a field
        heads = [each.name if hasattr(each, "name") else ast.unparse(each) for each in node.body]
        if {"exact", "draw"} & {word for head in heads for word in re.findall(r"\w+", head)}:
            drawing.add(own)
    return {own for own, _ in asks}, drawing


def test_what_an_answer_is_drawn_from_and_how_is_said_in_these_files():
    """Learned categories have a proof of their own; a certificate is only packed in another way."""
    files, drawing = asks_of({name_of(path): source(path) for path in MODULES})
    assert files == {"marginals.asks", "marginals.certificate", "releasing.learned_categories"}
    assert drawing == {"marginals.asks", "releasing.learned_categories"}


def test_an_ask_that_draws_in_another_file_is_seen():
    asks = "class Ask:\n    def draw(self): ...\n\nclass Worst(Ask): ..."
    for says in ("def draw(self, exact, coins): ...", "exact = None", "draw: object = print"):
        _, drawing = asks_of({"plan": f"class Deep(asks.Worst):\n    {says}\n", "asks": asks})
        assert drawing == {"asks", "plan"}, says


def test_strategies_and_what_follows_hold_no_data_no_journal_and_no_random_bits():
    """They ask a curator: what they are sent was released. A rehearsal is one itself, of public rows."""
    holding = DOOR | {"marginals", "marginals.rehearsal"}
    for path in MODULES:
        own = name_of(path)
        if room(own) in {"marginals", "planning", "reporting"} and own not in holding:
            taken = {name for _, name in imports(source(path))}
            assert not taken & HOLDERS, own
            assert "journal" not in source(path), own


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def steps(self, rows: CountedRows) -> Steps: ...", {"CountedRows"}),
        ("def f(a, *, b: 'Rows | None' = None): ...", {"Rows"}),
        ("def bind(self, *data: PrivateArray): ...", {"PrivateArray"}),
        ("def read(path: str) -> Rows: ...", {"Rows"}),
        ("class Comparison:\n    real: Rows", {"Rows"}),
        ("from smalldb.releasing.evaluation import Evaluation", {"Evaluation"}),
        ("from queries import Rows", set()),
        ("def bound(self, finished: Rows) -> float: ...", set()),
        ("def f(rows: Codes): ...", set()),
    ],
)
def test_every_way_to_hold_rows_is_seen(text, found):
    assert held_by(text) == found


LABORATORY = {"bounds", "accounting", "selection", "rejection", "auditing"}
TAKEN = {"bounds", "accounting", "selection", "rejection.mechanism"}  # by the product, of the laboratory
SHOWING = {"commands", "reporting", "showing"}  # these have a part of each wing


def taken_of_the_laboratory(text):
    """What a source text imports of the laboratory beyond what the product may: modules inside smalldb."""
    found = {module for module in imported(text) if room(module) in LABORATORY}
    return {module for module in found if room(module) not in TAKEN and module not in TAKEN}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_product_takes_of_the_laboratory_what_the_page_says(path):
    own = room(name_of(path))
    if own not in LABORATORY | SHOWING:
        assert not taken_of_the_laboratory(source(path))
        assert own == "planning" or "rejection" not in {room(m) for m in imported(source(path))}


def test_the_page_names_what_is_taken_of_the_laboratory():
    wings = PAGE[PAGE.index("## Two wings") : PAGE.index("## A mechanism")]
    assert set(re.findall(r"^\| `([\w.]+)` \|", wings, re.M)) == TAKEN
    assert taken_of_the_laboratory("from smalldb.auditing import audit") == {"auditing"}  # it is seen
    assert not taken_of_the_laboratory("from smalldb import bounds")


@pytest.mark.parametrize(
    ("own", "text", "found"),
    [
        ("version", "from smalldb import release", ["smalldb"]),
        ("version", "from smalldb import *", ["smalldb"]),
        ("cli", "import smalldb", ["smalldb"]),
        ("cli", "def run():\n    import smalldb.version as v", ["smalldb"]),
        ("counting.scores", "import smalldb.counting.level_counts", ["smalldb"]),
        ("counting.scores", "from smalldb.counting import census", []),
        ("counting.census", "from smalldb.planning.choosing import plan", ["planning.choosing"]),
        ("counting.census", "from smalldb import planning, kernels", ["planning"]),
        ("bounds", "from smalldb.anything import x", ["anything"]),
        ("bounds", "import_module('smalldb.reporting.notebook').drawn()", ["reporting.notebook"]),
        ("bounds", "importlib.import_module(f'smalldb.commands.{name}')", ["commands"]),
        ("bounds", "__import__(name)", ["smalldb"]),
        ("bounds", "import_module('numpy')", []),
        ("bounds", "import os.path\nfrom smalldb.exact import enclosures", []),
        ("counting", "from smalldb.counting import census, law\nfrom smalldb.kernels.dynamic import f", []),
    ],
)
def test_every_way_up_is_seen(own, text, found):
    assert list(ways_up(own, text)) == found


def test_only_the_parser_imports_modules_by_their_names():
    calls = {
        name_of(path): called(node)
        for path in MODULES
        for node in ast.walk(ast.parse(source(path)))
        if isinstance(node, ast.Call) and called(node) in BY_NAME
    }
    assert calls == {"cli": "import_module"}


def test_queries_imports_nothing_of_smalldb():
    for path in (ROOT / "queries").rglob("*.py"):
        assert "smalldb" not in packages(path), path


@pytest.mark.parametrize("path", sorted((ROOT / "smalldb" / "kernels").glob("*.py")), ids=lambda p: p.name)
def test_all_that_kernels_are_compiled_from_is_in_their_folder(path):
    """The stamp of what Numba keeps covers that folder alone; `queries.arrays` has nothing but types."""
    if path.name == "compiling.py":
        return
    text = source(path)
    assert all(room(name) == "kernels" for name in imported(text))
    ours = {module for module, _ in imports(text) if module.split(".")[0] in ("queries", "smalldb")}
    assert {module for module in ours if not module.startswith("smalldb.kernels.")} <= {"queries.arrays"}
    assert packages(path) <= {"math", "numpy", "queries", "smalldb", "typing"}


def test_only_the_one_door_reaches_for_entropy():
    sources = {"os.urandom", "secrets", "random", "numpy.random"}
    for path in (path for path in MODULES if name_of(path) != "exact.bits"):
        text = source(path)
        assert not sources & {m for module, name in imports(text) for m in (module, f"{module}.{name}")}, path
        assert "urandom" not in text and "np.random" not in text, path


def test_only_slow_tests_start_processes():
    with pytest.raises(PermissionError, match="must be marked slow"):
        subprocess.run([sys.executable, "--version"])


@pytest.mark.slow
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
