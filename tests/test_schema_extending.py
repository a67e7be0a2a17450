"""A kind of column, a format and a card of the page: each is what stands here, and a line in a list."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from calling import called

from smalldb.reporting.page import assembly
from smalldb.reporting.page.markup import paragraph, section, text
from smalldb.schema import draft_schema, read_schema
from smalldb.schema.fields import objects
from smalldb.schema.kinds import SPECS, Kind
from smalldb.schema.kinds.kind import Spec
from smalldb.schema.readers import Reader
from smalldb.schema.readers.registry import SUFFIXES
from smalldb.schema.table_writers import WRITERS, Writer


@dataclass(frozen=True, slots=True)
class Grades(Kind):
    """A letter from A to the last one."""

    codings: ClassVar = ("thermometer", "bits")
    spelling: ClassVar = "a grade is a letter"
    dtype: ClassVar = "str"
    ordered: ClassVar = True

    last: str

    @property
    def labels(self):
        return [chr(letter) for letter in range(ord("A"), ord(self.last) + 1)]

    @property
    def size(self):
        return len(self.labels)

    def code(self, text):
        return self.labels.index(text) if text in self.labels else None

    def values(self):
        return self.labels


GRADES = Spec("grades", lambda given: Grades(given["last"]), {"last": str}, 'last = "F"')


class Lists(Reader):
    """A JSON object of a list for each column."""

    name, suffixes, lines, headed = "lists", (".lists",), False, True

    def columns(self, path, file=None, known=()):
        return dict.fromkeys(json.loads(Path(path).read_text()))

    def pieces(self, path, wanted, file=None, progress=False):
        columns = [*json.loads(Path(path).read_text()).items()]
        chosen = wanted.choose([name for name, _ in columns])
        yield [objects(columns[i][1]) for i in chosen], None


def written_lists(frame, *_):
    return json.dumps({name: frame[name].tolist() for name in frame}).encode()


def card(shown):
    return section("Grades", "grades", paragraph(text(f"{len(shown.release.data)} pupils have grades.")))


@pytest.fixture
def added(monkeypatch):
    """One line each."""
    monkeypatch.setitem(SPECS, "grades", GRADES)
    monkeypatch.setitem(SUFFIXES, ".lists", Lists())
    monkeypatch.setitem(WRITERS, "lists", Writer(written_lists))
    monkeypatch.setattr(assembly, "CARDS", (*assembly.CARDS, card))


SCHEMA = """
[columns.maths]
kind = "grades"
last = "D"

[columns.music]
kind = "grades"
last = "C"
"""


@pytest.mark.usefixtures("added")
def test_what_is_added_is_read_released_written_and_shown(workdir, capfd):
    rng = np.random.default_rng(1)
    table = {
        name: [*map(str, rng.choice([*letters], 200))]
        for name, letters in (("maths", "ABCD"), ("music", "ABC"))
    }
    Path("pupils.lists").write_text(json.dumps(table))
    Path("pupils.toml").write_text(SCHEMA)
    given = ["pupils.lists", "--schema", "pupils.toml", "--epsilon", 1, "--seed", 1, "--quiet"]
    code, _, err = called(capfd, "generate", *given, "-o", "made.lists", "--report", "made.html")
    assert code == 0, err
    made = json.loads(Path("made.lists").read_text())
    assert {*made} == {*table} and {*made["maths"]} <= {*"ABCD"} and len(made["music"]) == 200
    page = Path("made.html").read_text(encoding="utf-8")
    assert (
        '<h2 id="grades">Grades</h2>' in page
        and 'href="#grades"' in page
        and "200 pupils have grades." in page
    )
    assert called(capfd, "schema", "check", "pupils.lists", "--schema", "pupils.toml")[0] == 0


@pytest.mark.usefixtures("added")
def test_a_new_kind_is_asked_for_and_its_faults_are_told():
    schema = read_schema(f"valid = ['maths >= B | music=A']\n{SCHEMA}")
    assert schema.domain.attributes == ("maths>=B", "maths>=C", "maths>=D", "music>=B", "music>=C")
    assert schema.domain.size == 10
    with pytest.raises(
        ValueError, match=r"column 'maths': unknown key 'lst'; did you mean 'last'.*\(line 4\)"
    ):
        read_schema(SCHEMA.replace("last", "lst", 1))
    with pytest.raises(ValueError, match=r"kind must be one of .*grades"):
        read_schema(draft_schema(["maths"]))
