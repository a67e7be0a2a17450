"""A folder where a curator works: its tables, and releases, whose commands run by themselves and go on."""

import fcntl
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, final

from smalldb.files.open_folders import opened_below, stands_below
from smalldb.files.outputs import Outputs
from smalldb.inference.several_tables import HOW
from smalldb.planning import Settings
from smalldb.releasing.budget_ledger import Ledger
from smalldb.releasing.ledger_account import Account
from smalldb.releasing.transaction import begun_beside, unfinished_releases
from smalldb.reporting.page import About
from smalldb.schema.fields import is_text
from smalldb.schema.readers.compressed import parted
from smalldb.schema.readers.registry import SUFFIXES

# the files in the folder of a release: the first two are this page's own, the others public
COMMAND, LOG, SEVERAL = "command", "log", "tables"
PUBLIC = ["measurements.json", "record.json", "report.html", "schema.toml", "table.csv"]
MEASURED, RECORD, PAGE, SCHEMA, TABLE = PUBLIC
ASKED = (MEASURED, RECORD)  # and refined
PLACED = ("--schema", "--record", "--measurements", "--report", "--output")  # options of files in it
GIVEN = ("tables", "seed", "ledger", "budget", "budget_delta", "release_id", "schema_unseen", "even_if_empty")
NAMES = {*Settings.__annotations__, *About.__dataclass_fields__, *GIVEN}
OPTIONS = {*PLACED, *(f"--{name.replace('_', '-')}" for name in NAMES)}
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
SMALLDB = [sys.executable, "-P", "-m", "smalldb"]  # -P: no file of the folder is imported
BEGUN: list[subprocess.Popen[bytes]] = []  # nobody waits for them
MOST_BYTES = 1 << 16  # of a command or a log that are read, each second
FINISHED, UNFINISHED = "finished", "unfinished"


@final
@dataclass(frozen=True, slots=True)
class Workplace:
    """The folder. All that is known of releases stands in it: a page that is opened anew finds it there."""

    folder: Path

    def files(self, suffixes: Sequence[str] = (*SUFFIXES,), inside: str = "") -> list[str]:
        """Return the names of files, no links, by their suffixes: by default of tables, compressed or not."""
        paths = (self.folder / inside).glob("[!.-]*")
        names = sorted(path.name for path in paths if not path.is_symlink() and is_text(path.name))
        return [name for name in names if os.path.splitext(parted(name)[0])[1].lower() in suffixes]

    def write(self, name: str, text: str) -> None:
        """Write a file whole, or not at all; ValueError: it would be written elsewhere."""
        confidential = [name] if os.path.basename(name) == COMMAND else []  # for nobody else to write
        with Outputs([name], confidential, below=self.folder) as outputs:
            outputs.write(name, text)

    def run(self, command: Sequence[str]) -> tuple[int, str, str]:
        """Run a command of smalldb; return its exit code, and what it wrote on both outputs."""
        texts: Any = {"capture_output": True, "encoding": "utf-8", "errors": "replace"}
        done = subprocess.run([*SMALLDB, *command[1:]], cwd=self.folder, stdin=subprocess.DEVNULL, **texts)
        return done.returncode, done.stdout, done.stderr

    def account(self, ledger: str) -> tuple[Account, list[str]] | None:
        """Return what a ledger says, and its releases that are not finished; None: there is none yet."""
        path = os.fspath(self.folder / ledger)
        if not os.path.exists(path):
            return None
        account = Ledger(path).read()
        return account, [account.names[number - 1] for number, _ in unfinished_releases(path, account)]

    def releases(self) -> dict[str, str]:
        """Return the releases that were begun here, the newest first, and how far each is."""
        begun = dict[str, float]()
        for name in filter(NAME.fullmatch, os.listdir(self.folder)):
            with suppress(OSError), opened_below(self.folder, f"{name}/{COMMAND}") as file:
                begun[name] = os.fstat(file.fileno()).st_mtime
        return {name: self._state(name) for name in sorted(begun, key=lambda name: -begun[name])}

    def _state(self, release: str) -> str:
        """Return how far a release is; one that cannot be read is none of the others' business."""
        try:
            return self._progress(release)
        except (OSError, ValueError) as error:
            return f"cannot be read: {error}"

    def _progress(self, release: str) -> str:
        if not self._runs(release):
            return FINISHED if self._finished(release) else UNFINISHED
        began = (self.folder / release / COMMAND).stat().st_mtime
        ledger = options(self._command(release)).get("--ledger")
        folders = begun_beside(os.fspath(self.folder / ledger)) if ledger else []
        steps = sum(len([*folder.glob("*.shard")]) for folder in folders)
        return f"running for {time.time() - began:.0f} s, {steps} steps are saved"

    def _runs(self, release: str) -> bool:
        """Tell whether the command of a release runs, whoever started it: it holds the lock of its log."""
        try:
            with self._open(release, LOG) as log:
                fcntl.flock(log, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            return isinstance(error, BlockingIOError)
        return False

    def _open(self, release: str, file: str, mode: str = "rb") -> BinaryIO:
        """Open a file of a release; what is run and locked must be nobody else's: OSError."""
        return opened_below(self.folder, f"{release}/{file}", mode, owned=file in (COMMAND, LOG))

    def _stands(self, release: str, file: str) -> bool:
        return stands_below(self.folder, f"{release}/{file}")

    def _finished(self, release: str) -> bool:
        """Tell whether a release has written its table, or folder of several, and ended: both come last."""
        there = self._stands(release, TABLE) or self._stands(release, f"{SEVERAL}/{RECORD}")
        ledger = self.folder / options(self._command(release)).get("--ledger", COMMAND)
        known = self.account(os.fspath(ledger)) if there and begun_beside(os.fspath(ledger)) else None
        return there and (known is None or release not in known[1])

    def _command(self, release: str) -> list[str]:
        with suppress(ValueError):  # it is no command
            return shlex.split(self.text(release, COMMAND))
        return []

    def _check(self, release: str, command: Sequence[str]) -> None:
        """Refuse a command that this page does not write for a release of this folder: ValueError."""
        chosen, home = options(command), Path(os.path.realpath(self.folder)) / release
        places = {f"{release}/{file}" for file in (*PUBLIC, SEVERAL)}
        tables = ({w, w.partition("=")[2]} for w in command[2:] if not re.match("-(?!-start=)", w))
        if (
            [*command[:2]] != ["smalldb", "generate"]
            or not {*chosen} <= OPTIONS
            or not {chosen[name] for name in PLACED if name in chosen} <= places
            or chosen.get("--release-id", release if "--seed" in chosen else "") != release
            or any(names.isdisjoint(self.files()) for names in tables)
            or any(os.path.islink(home / file) for file in ("", *PUBLIC, SEVERAL, COMMAND))
        ):
            raise ValueError(f"{release}: its command is none of this page, or a link stands in its folder")
        if chosen.get("--refine", "") not in ("", *self.offered(*ASKED)):
            raise ValueError("refine: take a finished release of this folder")
        above = Path(os.path.realpath(self.folder / chosen.get("--ledger", "ledger"))).parents
        if home.parent not in above or any(each == home or (each / COMMAND).exists() for each in above):
            raise ValueError("ledger: take a file of this folder, outside of the folders of releases")

    def begin(self, release: str, command: Sequence[str], schema: str) -> None:
        """Begin a release in a folder of its own, or anew, if it was not paid; ValueError: it is taken."""
        if not NAME.fullmatch(release):
            raise ValueError("name: take letters and digits, and - or _ between them")
        self._check(release, command)
        self._check_free(release, command)
        (self.folder / release).mkdir(mode=0o700, exist_ok=True)
        with self._locked(release) as log:
            self._check_free(release, command)  # another process may have begun one meanwhile
            self.write(f"{release}/{SCHEMA}", schema)
            self.write(f"{release}/{COMMAND}", shlex.join(command) + "\n")
            self._start(command, log)

    def _check_free(self, release: str, command: Sequence[str]) -> None:
        """Refuse a folder in which there is more than a release that was not paid: ValueError."""
        left = {path.name for path in (self.folder / release).glob("[!.]*")}
        anew = "--release-id" in options(command) and COMMAND in left and not self._finished(release)
        ledger = options(self._command(release)).get("--ledger", "")
        known = self.account(ledger) if anew and ledger else None
        # without a command, a page was killed before it wrote that
        if left - {LOG, SCHEMA} and (not anew or (known is not None and release in known[0].names)):
            raise ValueError(f"name: {release} is in this folder already: continue with it, or take another")

    def go_on(self, release: str) -> None:
        """Run the command of a release, which goes on where it was; ValueError: it runs, or is finished."""
        if release not in self.releases():
            raise ValueError("no such release in this folder")
        with self._locked(release) as log:
            if self._finished(release):
                raise ValueError(f"{release} is finished")
            command = self._command(release)
            self._check(release, command)
            self._start(command, log)

    @contextmanager
    def _locked(self, release: str) -> Iterator[BinaryIO]:
        """Hold the lock of a release, and its log; ValueError: its command holds it, and runs."""
        with self._open(release, LOG, "ab") as log:
            try:
                fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ValueError(f"{release} is running") from error
            os.fchmod(log.fileno(), 0o600)  # it may tell of the data
            yield log

    def _start(self, command: Sequence[str], log: BinaryIO) -> None:
        log.truncate(0)
        # in a session of its own it outlives this page, and by its stderr it keeps the lock
        closed: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "start_new_session": True}
        BEGUN.append(subprocess.Popen([*SMALLDB, *command[1:]], cwd=self.folder, stderr=log, **closed))

    def text(self, release: str, file: str) -> str:
        """Return the text of a file of a release, of a long one its end; empty: there is none, or a link."""
        with suppress(OSError), self._open(release, file) as opened:
            opened.seek(max(0, os.fstat(opened.fileno()).st_size - MOST_BYTES))
            return str(opened.read(MOST_BYTES), "utf-8", "replace").strip()
        return ""

    def outputs(self, release: str) -> list[str]:
        """Return the public files of a release that is finished: those that releases write, and no others."""
        known = NAME.fullmatch(release) and self._stands(release, COMMAND)
        if not known or self._state(release) != FINISHED:
            return []
        several = (MEASURED, RECORD, PAGE, HOW, *self.files(inside=f"{release}/{SEVERAL}"))
        names = [*PUBLIC, *(f"{SEVERAL}/{name}" for name in several)]
        return [name for name in names if self._stands(release, name)]

    def offered(self, *names: str) -> list[str]:
        """Return the files of finished releases that have one of these names, the newest first."""
        files = (f"{name}/{file}" for name in self.releases() for file in self.outputs(name))
        return [file for file in files if os.path.basename(file) in names]

    async def download(self, request: Any) -> Any:
        """Serve a public file of a release, and nothing else of the folder."""
        from starlette.background import BackgroundTask
        from starlette.responses import FileResponse, PlainTextResponse

        release, file = request.path_params["release"], request.path_params["file"]
        try:
            if file not in self.outputs(release):
                raise FileNotFoundError(file)
            opened = self._open(release, file)
        except OSError:
            return PlainTextResponse("smalldb: no such file of a release\n", 404)
        name = os.path.basename(file)
        kind = "inline" if name == PAGE else "attachment"
        # of what is open: whatever stands under this name meanwhile
        path, done = f"/dev/fd/{opened.fileno()}", BackgroundTask(opened.close)
        return FileResponse(path, filename=name, content_disposition_type=kind, background=done)


def stem(table: str) -> str:
    """Return the name of a table's file without its suffixes, for the files that go with it."""
    return os.path.splitext(parted(os.path.basename(table))[0])[0]


def command_line(*words: str, **settings: object) -> list[str]:
    """Write a command: words, and behind them settings as options."""
    line = ["smalldb", *words]
    for key, value in settings.items():
        for each in value if isinstance(value, list) else [value]:
            if each not in (None, False, ""):  # a value may begin with a dash
                line.append(f"--{key.replace('_', '-')}" + ("" if each is True else f"={each}"))
    return line


def options(command: Sequence[str]) -> dict[str, str]:
    """Read the options of a `command_line`."""
    return {name: value for name, _, value in (word.partition("=") for word in command) if name[:1] == "-"}


def call(function: str, *arguments: str, **settings: object) -> str:
    """Write a call of Python with the same settings."""
    named = [f"{key}={value!r}" for key, value in settings.items() if value not in (None, False, "", [])]
    return f"{function}({', '.join([*arguments, *named])})"


def number(text: str) -> int | str:
    """Return a whole number; what is none stays a text, which the library refuses in its own words."""
    return int(text) if re.fullmatch("-?[0-9]{1,1000}", text) else text
