"""A folder where a curator works: its tables, and releases, whose commands run by themselves and go on."""

import fcntl
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from smalldb.files.outputs import Outputs
from smalldb.releasing.budget_ledger import Ledger
from smalldb.releasing.ledger_account import Account
from smalldb.releasing.transaction import begun_beside, unfinished_releases
from smalldb.schema.readers.compressed import parted
from smalldb.schema.readers.registry import SUFFIXES

# the files in the folder of a release: the first two are this page's own
COMMAND, LOG, SCHEMA = "command", "log", "schema.toml"
RECORD, MEASURED, PAGE, SEVERAL = "record.json", "measurements.json", "report.html", "tables"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
SMALLDB = [sys.executable, "-P", "-m", "smalldb"]  # -P: no file of the folder is imported
BEGUN: list[subprocess.Popen[bytes]] = []  # nobody waits for them
FINISHED, UNFINISHED = "finished", "unfinished"


@final
@dataclass(frozen=True, slots=True)
class Workplace:
    """The folder. All that is known of releases stands in it: a page that is opened anew finds it there."""

    folder: Path

    def files(self, suffixes: Sequence[str] = (*SUFFIXES,)) -> list[str]:
        """Return the names of files by their suffixes: by default of tables, compressed or not."""
        names = sorted(path.name for path in self.folder.iterdir() if not path.name.startswith((".", "-")))
        return [name for name in names if os.path.splitext(parted(name)[0])[1].lower() in suffixes]

    def write(self, name: str, text: str) -> None:
        """Write a file whole, or not at all."""
        path = os.fspath(self.folder / name)
        with Outputs([path]) as outputs:
            outputs.write(path, text)

    def run(self, command: Sequence[str]) -> tuple[int, str, str]:
        """Run a command of smalldb; return its exit code, and what it wrote on both outputs."""
        done = subprocess.run(
            [*SMALLDB, *command[1:]],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
        )
        return done.returncode, done.stdout, done.stderr

    def account(self, ledger: str) -> tuple[Account, list[int]] | None:
        """Return what a ledger says, and which of its releases are not finished; None: there is none yet."""
        path = os.fspath(self.folder / ledger)
        if not os.path.exists(path):
            return None
        found = Ledger(path).read()
        return found, [number for number, _ in unfinished_releases(path, found)]

    def releases(self) -> dict[str, str]:
        """Return the releases that were begun here, the newest first, and how far each is."""
        begun = [path for path in self.folder.glob(f"*/{COMMAND}") if NAME.fullmatch(path.parent.name)]
        names = [path.parent.name for path in sorted(begun, key=lambda path: -path.stat().st_mtime)]
        return {name: self._progress(name) for name in names}

    def _progress(self, release: str) -> str:
        home = self.folder / release
        if not self._runs(home):
            done = (home / RECORD).exists() or (home / SEVERAL / RECORD).exists()
            return FINISHED if done else UNFINISHED
        ledger, began = self._ledger(release), (home / COMMAND).stat().st_mtime
        folders = begun_beside(os.fspath(self.folder / ledger)) if ledger else []
        steps = sum(len([*folder.glob("*.shard")]) for folder in folders)
        return f"running for {time.time() - began:.0f} s, {steps} steps are saved"

    @staticmethod
    def _runs(home: Path) -> bool:
        """Tell whether the command of a release runs, whoever started it: it holds the lock of its log."""
        try:
            with (home / LOG).open("rb") as log:
                fcntl.flock(log, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            return isinstance(error, BlockingIOError)
        return False

    def _ledger(self, release: str) -> str:
        words = shlex.split(self.text(release, COMMAND))
        return words[words.index("--ledger") + 1] if "--ledger" in words else ""

    def begin(self, release: str, command: Sequence[str], schema: str) -> None:
        """Begin a release in a folder of its own, or anew, if it was not paid; ValueError: it is taken."""
        if not NAME.fullmatch(release):
            raise ValueError("name: take letters and digits, and - or _ between them")
        home = self.folder / release
        if home.exists():
            unfinished = self.releases().get(release) == UNFINISHED and "--release-id" in command
            known = self.account(self._ledger(release)) if unfinished else None
            if not unfinished or (known is not None and release in known[0].names):
                said = "stands in this folder already: go on with it, or take another"
                raise ValueError(f"name: {release} {said}")
        home.mkdir(mode=0o700, exist_ok=True)
        self.write(f"{release}/{SCHEMA}", schema)
        self.write(f"{release}/{COMMAND}", shlex.join(command) + "\n")
        self.go_on(release)

    def go_on(self, release: str) -> None:
        """Run the command of a release, which goes on where it was; ValueError: it runs already."""
        if release not in self.releases():
            raise ValueError("no such release in this folder")
        with (self.folder / release / LOG).open("ab") as log:
            try:
                fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ValueError(f"{release} is running") from error
            log.truncate(0)
            # in a session of its own it outlives this page, and by its stderr it keeps the lock
            words = [*SMALLDB, *shlex.split(self.text(release, COMMAND))[1:]]
            closed = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "start_new_session": True}
            BEGUN.append(subprocess.Popen(words, cwd=self.folder, stderr=log, **closed))  # type: ignore[call-overload]

    def text(self, release: str, file: str) -> str:
        """Return the text of a file of a release; empty: there is none."""
        path = self.folder / release / file
        return path.read_text(encoding="utf-8", errors="replace").strip() if path.exists() else ""

    def outputs(self, release: str) -> list[str]:
        """Return the public files of a release that is finished."""
        if self.releases().get(release) != FINISHED:
            return []
        home = self.folder / release
        found = [path for path in sorted(home.rglob("*")) if path.is_file()]
        return [path.relative_to(home).as_posix() for path in found if path.name not in (COMMAND, LOG)]

    async def download(self, request: Any) -> Any:
        """Serve a public file of a release, and nothing else of the folder."""
        from starlette.responses import FileResponse, PlainTextResponse

        release, file = request.path_params["release"], request.path_params["file"]
        if file not in self.outputs(release):
            return PlainTextResponse("smalldb: no such file of a release\n", 404)
        path = self.folder / release / file
        kind = "inline" if path.name == PAGE else "attachment"
        return FileResponse(path, filename=path.name, content_disposition_type=kind)


def stem(table: str) -> str:
    """Return the name of a table's file without its suffixes, for the files that go with it."""
    return os.path.splitext(parted(os.path.basename(table))[0])[0]


def command_line(*words: str, **settings: object) -> list[str]:
    """Write a command: words, and behind them settings as options."""
    line = ["smalldb", *words]
    for key, value in settings.items():
        for each in value if isinstance(value, list) else [value]:
            if each not in (None, False, ""):
                line += [f"--{key.replace('_', '-')}", *([] if each is True else [str(each)])]
    return line


def call(function: str, *given: str, **settings: object) -> str:
    """Write a call of Python with the same settings."""
    named = [f"{key}={value!r}" for key, value in settings.items() if value not in (None, False, "", [])]
    return f"{function}({', '.join([*given, *named])})"


def filled(given: Mapping[str, str]) -> dict[str, str]:
    """Return what was filled in."""
    return {name: value.strip() for name, value in given.items() if value.strip()}


def number(text: str) -> int | str:
    """Return a whole number; what is none stays a text, which the library refuses in its own words."""
    return int(text) if re.fullmatch("[0-9]{1,18}", text) else text
