"""The style of CONTRIBUTING.md, as far as a test can hold it: lengths, parts, terms, proofs."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
PROOFS = [page for page in sorted((DOCS / "proofs").glob("*.md")) if page.name != "index.md"]
RECORDS = sorted((DOCS / "decisions").glob("0*.md"))
# not generated from code
WRITTEN = [
    page for page in PAGES if page.parent.name != "api" and page.name not in ("commands.md", "reference.md")
]
TERMS = re.findall(
    r"^\*\*(.+)\*\* \{#([\w-]+)\}\n: ", (DOCS / "glossary.md").read_text(encoding="utf-8"), re.M
)
# words that plain English has, too: pages link them where they stand for the term
PLAIN = {
    "level",
    "category",
    "plan",
    "public",
    "record",
    "rule",
    "model",
    "release",
    "report",
    "score",
    "parity",
}
PLAIN |= {
    "alpha",
    "beta",
    "mechanism",
    "reduction",
    "base measure",
    "differential privacy",
    "geometric noise",
    "SmallDB",
}
# pages of figures and citations point to the glossary once
WHOLE = {"performance.md", "sources.md", "installation.md", "index.md", "architecture.md"}
# how earlier versions said it: verbs at the end, history, sentences that hide who does what
COMPRESSED = [
    r"Name none",
    r"expected to err least",
    r"[Ss]een are",
    r"[Rr]eleased are",
    r"[Rr]ead are both",
    r"[Ww]ho reaches",
    r"\bsitting\b",
    r"\bformerly\b",
    r"used to be",
    r"exact to the last bit",
    r"\(says nothing\)",
    r"\byardstick\b",
    r"nobody can tell",
    r"points of a percent",
]


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


WRAPPED = [page for page in WRITTEN if page.name != "performance.md"]  # a notebook of figures


@pytest.mark.parametrize("page", [*WRAPPED, ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=name)
def test_pages_are_wrapped(page):
    text = re.sub(r"^(?:```|~~~).*?^(?:```|~~~)", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    long = [line for line in text.splitlines() if len(line) > 120 and not line.startswith(("|", "    "))]
    assert not long, long[0]


@pytest.mark.parametrize("record", RECORDS, ids=name)
def test_records_have_their_parts(record):
    text = record.read_text(encoding="utf-8")
    assert re.search(r"^\*\*Status:\*\* .* \*\*Date:\*\* \d{4}-\d\d-\d\d\.$", text, re.M)
    assert re.findall(r"^## (.*)$", text, re.M) == ["Context", "Decision", "Alternatives", "Consequences"]
    assert len(text.split()) <= 600


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


@pytest.mark.parametrize("phrase", COMPRESSED)
def test_sentences_are_plain(phrase):
    files = [*WRITTEN, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    files += [file for folder in ("smalldb", "queries", "examples") for file in (ROOT / folder).rglob("*.py")]
    assert [name(file) for file in files if re.search(phrase, file.read_text(encoding="utf-8"))] == []


def lemmas(page):
    """The lemmas of a proof page: its title, and the names of the code that it is about."""
    for part in re.split(r"^(?=\*\*)", page.read_text(encoding="utf-8"), flags=re.M)[1:]:
        number, title = re.match(r"\*\*(?:(\d+)\. )?([^*]+)\*\*", part).groups()
        label = f'"{title.rstrip(".")}"' if number is None else number
        for code in re.findall(r"\bCode:\s(.*?)(?=\s(?:Test|Tests):|\.\s|\.$|\Z)", part, re.S):
            for found in re.findall(r"`([^`]+)`", code):
                yield label, found


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


CODE = definitions()


@pytest.mark.parametrize("page", PROOFS, ids=name)
def test_the_code_of_a_lemma_is_there_and_points_back(page):
    """What a lemma names exists, and a comment or docstring there names the page and the lemma."""
    given = list(lemmas(page))
    assert len(given) >= 3
    for label, said in given:
        texts = CODE.get(said) or CODE.get(said.rpartition(".")[2], [])
        pointers = [
            numbers
            for home in texts
            for numbers in re.findall(rf'docs/proofs/{page.name}`?,? (?:lemmas? )?([\d, and]+|"[^"]+")', home)
        ]
        assert any(label in re.findall(r'\d+|"[^"]+"', numbers) for numbers in pointers), (label, said)


@pytest.mark.parametrize("page", PROOFS, ids=name)
def test_a_pointer_leads_to_a_lemma(page):
    text = page.read_text(encoding="utf-8")
    for texts in CODE.values():
        for home in texts:
            for numbers in re.findall(rf"docs/proofs/{page.name}`?, lemmas? ([\d, and]+)", home):
                for number in re.findall(r"\d+", numbers):
                    assert re.search(rf"^\*\*{number}\. ", text, re.M), (page.name, number)


SEVERAL = 3  # parameters or fields, from which each is described


def section(node, title):
    """The names that a section of a docstring describes: of parameters, or of attributes."""
    text = ast.get_docstring(node) or ""
    part = re.search(rf"^{title}\n-+\n(.*?)(?=^\w+\n-{{3,}}$|\Z)", text, re.M | re.S)
    heads = re.findall(r"^\S.*", part[1], re.M) if part else []
    return {said.strip() for head in heads for said in head.partition(" : ")[0].split(",")}


def members(node):
    body = [] if isinstance(node, ast.FunctionDef) else node.body
    return {one.name: one for one in body if isinstance(one, ast.FunctionDef)}


def homes(*trees):
    """The classes and functions at the top of modules, by their names."""
    found = {}
    for tree in trees:
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.setdefault(node.name, []).append(node)
    return found


def undescribed(tree, everywhere):
    """What is public in a module, and has several parameters or fields, one of which nothing describes.

    Those of a method may be described where its class extends or names another one, in backticks, that has a
    method of the same name; those of fields in a class or function that their own class extends or names.
    """
    near = everywhere | homes(tree)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            if "overload" not in map(ast.unparse, node.decorator_list):
                yield from missing(node, node.name, [node])
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            said = re.findall(r"`([\w.]+)`", ast.get_docstring(node) or "")
            names = {full.rpartition(".")[2] for full in (*map(ast.unparse, node.bases), *said)}
            others = [one for called in names - {node.name} for one in near.get(called, [])]
            for method in members(node).values():
                alike = [members(one)[method.name] for one in others if method.name in members(one)]
                yield from missing(method, f"{node.name}.{method.name}", [method, *alike])
            fields = [
                one.target.id
                for one in node.body
                if isinstance(one, ast.AnnAssign) and "ClassVar" not in ast.unparse(one.annotation)
            ]
            public = {field for field in fields if not field.startswith("_")}
            known = set()
            for one in (node, *others):
                known |= section(one, "Attributes") | section(one, "Parameters") | {*members(one)}
            if len(public) >= SEVERAL and public - known:
                yield node.name, sorted(public - known)


def missing(function, said, alike):
    """A public function with several parameters, and those that none of some docstrings describes.

    Also any function whose docstring describes a parameter that it has not.
    """
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    names = {one.arg for one in every} - {"self", "cls"}
    more = {one.arg for one in (arguments.vararg, arguments.kwarg) if one is not None}
    gone = section(function, "Parameters") - names - more
    left = names.difference(*(section(one, "Parameters") for one in alike))
    if gone or (not function.name.startswith("_") and len(names) >= SEVERAL and left):
        yield said, sorted(gone or left)


TREES = {
    file: ast.parse(file.read_text(encoding="utf-8"))
    for folder in ("queries", "smalldb")
    for file in (ROOT / folder).rglob("*.py")
}
ROOMS = {"/".join(file.relative_to(ROOT).with_suffix("").parts[:2]) for file in TREES}


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_parameters_are_described(room):
    """In every room of smalldb, and every module of queries."""
    everywhere = homes(*TREES.values())
    for file, tree in TREES.items():
        if name(file).removesuffix(".py").startswith(room):
            assert not list(undescribed(tree, everywhere)), name(file)


UNDESCRIBED = '''
def told(a, b, c=None):
    """Do.

    Parameters
    ----------
    a, b
        Numbers.
    c : int, optional
        Another.
    """

def silent(a, b, *, c):
    """Do with `told`."""

def few(a, b):
    """Do."""

def renamed(a, *b):
    """Do.

    Parameters
    ----------
    b, c
        Others.
    """

class Base:
    def step(self, a, b, c):
        """Do.

        Parameters
        ----------
        a, b
            Numbers.
        """

class Own(Base):
    """A step."""

    def step(self, a, b, c):
        """Do."""

class Alike:
    """A `Base`, and no more."""

    a: int
    b: int
    c: int
    step: ClassVar[int]

    def step(self, a, b):
        """Do."""
'''


def test_parameters_that_nothing_describes_are_seen():
    assert list(undescribed(ast.parse(UNDESCRIBED), {})) == [
        ("silent", ["a", "b", "c"]),
        ("renamed", ["c"]),
        ("Base.step", ["c"]),
        ("Own.step", ["c"]),
        ("Alike", ["a", "b", "c"]),
    ]
