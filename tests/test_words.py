"""The style of CONTRIBUTING.md, as far as a test can hold it: lengths, parts, terms, proofs."""

import ast
import inspect
import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import queries
import smalldb

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
PROOFS = [page for page in sorted((DOCS / "proofs").glob("*.md")) if page.name != "index.md"]
# not generated from code
WRITTEN = [page for page in PAGES if page.name not in ("commands.md", "reference.md")]
TERMS = re.findall(
    r"^\*\*(.+)\*\* \{#([\w-]+)\}\n: ", (DOCS / "glossary.md").read_text(encoding="utf-8"), re.M
)
# words that plain English has, too: pages link them where they stand for the term
PLAIN = set("level category plan public record rule model release report score parity start".split())
PLAIN |= set("budget interval strategy alpha beta mechanism reduction SmallDB".split())
PLAIN |= {"base measure", "differential privacy", "geometric noise"}
# pages of figures and citations point to the glossary once
WHOLE = {"performance.md", "sources.md", "installation.md", "index.md", "architecture.md"}


def name(path):
    return str(path.relative_to(ROOT))


def prose(text):
    """A page without code, formulas, headings, tables and links."""
    for pattern in (
        r"^```.*?^```",
        r"^\$\$.*?^\$\$",
        r"^(?:#|\||    ).*?$",
        r"`[^`]*`",
        r"^\*\*\d+\.[^*]*\*\*",
        r"!?\[[^\]]*\]\([^)]*\)",
    ):
        text = re.sub(pattern, "", text, flags=re.M | re.S)
    return text


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


@pytest.mark.parametrize("page", [*WRITTEN, ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=name)
def test_pages_are_wrapped(page):
    text = re.sub(r"^(?:```|~~~).*?^(?:```|~~~)", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    long = [line for line in text.splitlines() if len(line) > 120 and not line.startswith(("|", "    "))]
    assert not long, long[0]


def test_the_glossary_is_sorted_and_its_terms_are_used():
    names = [term.lower() for term, _ in TERMS]
    assert names == sorted(names)
    assert len(names) > 40
    linked = {
        anchor
        for page in WRITTEN
        for anchor in re.findall(r"glossary\.md#([\w-]+)\)", page.read_text(encoding="utf-8"))
    }
    assert linked <= {anchor for _, anchor in TERMS}


@pytest.mark.parametrize("page", [page for page in WRITTEN if page.name != "glossary.md"], ids=name)
def test_terms_are_linked(page):
    text = page.read_text(encoding="utf-8")
    if page.name in WHOLE:
        assert "glossary.md" in text
        return
    words = prose(text)
    for term, anchor in TERMS:
        if term in PLAIN or f"glossary.md#{anchor}" in text:
            continue
        found = re.search(rf"(?<![\w=/(-]){term}s?(?![\w=])(?!\)?\s*[/=*^])", words, re.I)
        assert not found, f"{term}: link it to the glossary where it first occurs"


def lemmas(page):
    """The lemmas of a proof page: its title, and the names of the code that it is about."""
    for part in re.split(r"^(?=\*\*)", page.read_text(encoding="utf-8"), flags=re.M)[1:]:
        number, title = re.match(r"\*\*(?:(\d+)\. )?([^*]+)\*\*", part).groups()
        label = f'"{title.rstrip(".")}"' if number is None else number
        for code in re.findall(r"\bCode:\s(.*?)(?=\s(?:Test|Tests):|\.\s|\.$|\Z)", part, re.S):
            for found in re.findall(r"`([^`]+)`", code):
                yield label, found


@cache
def definitions():
    """Each function and class of smalldb by its names, with its text and the comments above it."""
    found = {}
    for file in (ROOT / "smalldb").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        lines = text.splitlines()
        for above, node in nodes(ast.parse(text)):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)]) - 1
            while lines[first - 1].lstrip().startswith("#"):
                first -= 1
            own = "\n".join(lines[first : node.end_lineno])
            for said in (node.name, f"{above}.{node.name}", f"{file.stem}.{node.name}"):
                found.setdefault(said, []).append(own)
    return found


def nodes(tree, above=""):
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield above, node
            if isinstance(node, ast.ClassDef):
                yield from nodes(node, node.name)


@pytest.mark.parametrize("page", PROOFS, ids=name)
def test_the_code_of_a_lemma_is_there_and_points_back(page):
    """What a lemma names exists, and a comment or docstring there names the page and the lemma."""
    given = list(lemmas(page))
    assert len(given) >= 3
    for label, said in given:
        texts = definitions().get(said) or definitions().get(said.rpartition(".")[2], [])
        pointers = [
            numbers
            for home in texts
            for numbers in re.findall(rf'docs/proofs/{page.name}`?,? (?:lemmas? )?([\d, and]+|"[^"]+")', home)
        ]
        assert any(label in re.findall(r'\d+|"[^"]+"', numbers) for numbers in pointers), (label, said)


@pytest.mark.parametrize("page", PROOFS, ids=name)
def test_a_pointer_leads_to_a_lemma(page):
    text = page.read_text(encoding="utf-8")
    for texts in definitions().values():
        for home in texts:
            for numbers in re.findall(rf"docs/proofs/{page.name}`?, lemmas? ([\d, and]+)", home):
                for number in re.findall(r"\d+", numbers):
                    assert re.search(rf"^\*\*{number}\. ", text, re.M), (page.name, number)


LABORATORY = ("accounting", "auditing", "bounds", "counting", "exact", "rejection", "selection")
PUBLIC = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (smalldb, queries, *(import_module(f"smalldb.{room}") for room in LABORATORY))
    for name in getattr(module, "__all__", [])
    if inspect.isroutine(getattr(module, name)) or inspect.isclass(getattr(module, name))
    if getattr(module, name)
    not in (smalldb.EmptyReleaseWarning, smalldb.bounds.Infeasible, smalldb.Neighbours)
}
SEVERAL = 3  # parameters or fields, from which each is described


def described(docstring):
    """The names that a docstring's sections of parameters and attributes describe."""
    parts = re.findall(
        r"^(?:Parameters|Attributes)\n-+\n(.*?)(?=^\w+\n-{3,}$|\Z)", docstring or "", re.M | re.S
    )
    heads = [head.partition(" : ")[0] for part in parts for head in re.findall(r"^\S.*", part, re.M)]
    return {name.strip().lstrip("*") for head in heads for name in head.split(",")}


def undescribed(public):
    """Parameters of a function, or a class and its methods, that no docstring describes, or that are gone.

    Those of a method may be described where its class inherits it.
    """
    parts = {"": [public]}
    if inspect.isclass(public):
        own = [name for name in vars(public) if inspect.isfunction(inspect.getattr_static(public, name))]
        parts |= {
            name: [getattr(base, name, None) for base in public.__mro__] for name in own if name[0] != "_"
        }
    for name, homes in parts.items():
        parameters = set(inspect.signature(homes[0]).parameters) - {"self", "cls"}
        parameters = {one for one in parameters if one[0] != "_"}
        left = parameters.difference(*(described(inspect.getdoc(home)) for home in homes))
        gone = set() if inspect.isclass(homes[0]) else described(inspect.getdoc(homes[0])) - parameters
        if gone or (len(parameters) >= SEVERAL and left):
            yield name, sorted(gone or left)


@pytest.mark.parametrize("name", PUBLIC)
def test_parameters_of_public_names_are_described(name):
    assert not list(undescribed(PUBLIC[name]))


class Base:
    def step(self, a, b, c):
        """Do.

        Parameters
        ----------
        a, b
            Numbers.
        """


class Derived(Base):
    """A step."""

    def step(self, a, b, c):
        """Do."""


def renamed(a):
    """Do.

    Parameters
    ----------
    b
        A number.
    """


def test_parameters_that_nothing_describes_are_seen():
    assert list(undescribed(Derived)) == [("step", ["c"])]
    assert list(undescribed(Base.step)) == [("", ["c"])]
    assert list(undescribed(renamed)) == [("", ["b"])]


@pytest.mark.slow
def test_no_text_of_the_sources_lacks_the_f_of_its_braces():
    """A part in braces that is a name, in a text that no f fills; docstrings may have them."""
    filled = {"{elapsed}", "{x}", "{file:path}", "{release}"}  # by tqdm, dialects of SQL, addresses
    for path in (path for folder in ("smalldb", "queries") for path in (ROOT / folder).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        homes = [
            node for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        ]
        described = {
            id(home.body[0].value) for home in homes if home.body and isinstance(home.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in described:
                found = {*re.findall(r"\{[A-Za-z_][^{}]*\}", node.value)} - filled
                assert not found, (path, node.lineno, found)
