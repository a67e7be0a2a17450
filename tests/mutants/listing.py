"""The list of mutants: small wrong changes of the source, each with the tests that must notice it.

One TOML file a room. A table of it is named after a file of `smalldb`, and holds for each mutant its `name`,
the text `was` that occurs once in the file, what it `becomes`, and `tests`, node ids below `tests`.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of one place of one file."""

    name: str  # what is wrong, in words
    file: str  # from the root of the tree
    was: str
    becomes: str
    tests: tuple[str, ...]  # node ids that must fail

    def __str__(self) -> str:
        return f"{self.file.removeprefix('smalldb/')}: {self.name}"

    @property
    def room(self) -> str:
        """The room of smalldb that it is in."""
        return self.file.split("/")[1]

    def applied(self, text: str) -> str:
        """Return the text of the file with the change in it."""
        if text.count(self.was) != 1:
            raise ValueError(f"{self}: its text occurs {text.count(self.was)} times, not once")
        return text.replace(self.was, self.becomes)


def mutants() -> list[Mutant]:
    """Return all of them, by file."""
    return [
        Mutant(
            each["name"],
            f"smalldb/{file}",
            each["was"],
            each["becomes"],
            tuple(f"tests/{test}" for test in each["tests"]),
        )
        for path in sorted(HERE.glob("*.toml"))
        for file, some in tomllib.loads(path.read_text(encoding="utf-8")).items()
        for each in some
    ]
