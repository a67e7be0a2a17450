"""The five steps of the page: each does what the command beside it does."""

import base64
from asyncio import to_thread
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from inspect import isawaitable
from typing import Any

from shiny import App, Inputs, Session, reactive, render, ui

from queries.expressions import Faults
from smalldb.app import layout, workplace
from smalldb.app.column_forms import field, row
from smalldb.exact.numbers import brief
from smalldb.files.open_folders import opened_below
from smalldb.inference import Measurements
from smalldb.planning import Plan, plan
from smalldb.planning.starting import check_start
from smalldb.releasing.record import make_record
from smalldb.reporting.plots_base import plot_plan
from smalldb.reporting.words import CONFIDENTIAL, laid_out, tell
from smalldb.schema import Schema
from smalldb.schema.answers import Place, changed, columns_of
from smalldb.schema.parsing import toml_of
from smalldb.schema.reading import OpenSchema, read_any
from smalldb.schema.related_schema import RelatedSchema

MOST_ROWS = 40  # forms of columns that are shown at once
SHOWN = (
    *("unit", "part", "rows", "rules", "problem", "planned", "first", "account", "spends", "status"),
    *("released", "same_table", "same_columns", "same_budget", "same_release", "same_ask"),
)
# what is clicked and chosen, and where it is told what came of it
CLICKS = {name: name for name in ("draft", "check", "draw", "release", "ask")}
CLICKS |= {"table": "draft", "answer": "draft", "asked": "ask", "go_on": "release", "why": "release"}
FAULTS = (ValueError, TypeError, OSError, LookupError, AttributeError, RecursionError, MemoryError)


def shiny_app(work: workplace.Workplace) -> App:
    """Make the page for a folder."""
    return App(lambda _: layout.layout(work), lambda input, _, session: Steps(work, input, session).follow())


def guarded(do: Callable[[], Any], tell: Callable[[Any], Any] = lambda fault: fault) -> Callable[[], Any]:
    """Have a fault told where it would end the session."""

    async def done() -> Any:
        try:
            result = do()
            return await result if isawaitable(result) else result
        except FAULTS as error:
            return tell(layout.fault(error))

    return done


class Steps:
    """What one tab shows. Nothing but choices is kept here: what was done stands in the folder."""

    def __init__(self, work: workplace.Workplace, input: Inputs, session: Session) -> None:
        self.work, self.input, self.session = work, input, session
        self.text = reactive.value("")  # the schema's TOML
        self.anew = reactive.value(0)  # how often forms had to be written anew
        self.why = reactive.value("")  # the release whose log is asked for, which may tell of the data
        self.outcomes = {name: reactive.value[Any](None) for name in CLICKS.values()}
        self.places: dict[Place, int] = {}  # the columns whose forms are shown

    def follow(self) -> None:
        """Show what is to be shown, and do what is clicked."""
        self.read = reactive.calc(self._schema_read)
        self.releases = reactive.poll(self.work.releases, 1)(self.work.releases)
        for name in SHOWN:
            self.session.output(id=name)(render.ui(guarded(getattr(self, f"_{name}"))))
        for name, outcome in self.outcomes.items():
            self.session.output(id=f"{name}_told")(render.ui(outcome.get))
        for name, place in CLICKS.items():
            done = guarded(getattr(self, f"_on_{name}"), self.outcomes[place].set)
            reactive.effect(reactive.event(self.input[name])(done))
        for effect in (self._faults_shown, self._names_offered, self._releases_offered):
            reactive.effect(guarded(effect, self.outcomes["draft"].set))

    # what several steps know

    def _schema_read(self) -> tuple[dict[str, Any], Any, Exception | None]:
        """Return the TOML, the schema that it is (None: none), and what is wrong with it."""
        entries: dict[str, Any] = {}
        try:
            entries = toml_of(self.text())
            return entries, read_any(f"{self.text()}\n"), None
        except FAULTS as error:
            return entries, None, error

    def _entries(self) -> dict[str, Any]:
        """Return the TOML when forms are written anew."""
        self.anew()
        with reactive.isolate():
            return self.read()[0]

    def _texts(self, *labels: Mapping[str, str]) -> dict[str, str]:
        return {name: text for each in labels for name in each if (text := self.input[name]().strip())}

    def _schema_file(self) -> str:
        return f"{workplace.stem(self.input.table() or 'DATA')}.toml"

    def _tables(self) -> dict[str, str]:
        """Return the files of tables by the names of these, which hold no sign that parts them."""
        files = filter(None, (self.input.table() or "DATA", self.input.second()))
        return {workplace.stem(file).replace("=", "_"): file for file in files}

    def _data(self) -> list[str]:
        """Return how a command names the tables."""
        named = [f"{name}={file}" for name, file in self._tables().items()]
        return named if self.input.second() else [*self._tables().values()]

    def _settings(self) -> dict[str, Any]:
        """Return what was chosen for a release and its plan; what is as usual is left out."""
        noise = {name: label for name, label in layout.NOISE.items() if name != "n"}
        chosen: dict[str, Any] = self._texts(noise)
        usual = {"neighbours": "replace-one", "mechanism": "auto", "target": (), "start": "", "refine": ""}
        values = {name: self.input[name]() for name in usual}
        chosen |= {name: value for name, value in values.items() if value != usual[name]}
        chosen |= self._texts(layout.START)
        if "target" in chosen:
            chosen["target"] = [*chosen["target"]]
        return {name: workplace.number(value) if name == "n_max" else value for name, value in chosen.items()}

    def _keep(self, text: str, *, forms: bool) -> None:
        """Take another TOML: into the forms, if need be, and its file."""
        self.text.set(text)
        self.anew.set(self.anew.get() + forms)
        if self.input.table():
            self.work.write(self._schema_file(), text)

    def _taken(self, message: str) -> None:
        """Take the schema that stands beside the table; where there is none, an empty one."""
        text = ""
        with suppress(FileNotFoundError), opened_below(self.work.folder, self._schema_file()) as file:
            text = file.read().decode("utf-8", "replace")
        self.text.set(text)
        self.anew.set(self.anew.get() + 1)
        self.outcomes["draft"].set(layout.good(message) if text else None)

    def _fields(self, labels: Mapping[str, str]) -> Any:
        """Make fields for keys of the whole schema; related tables have none of them."""
        entries = self._entries()
        if "columns" not in entries:
            return None
        return [field(label, None, 0, key, entries.get(key)) for key, label in labels.items()]

    # 1

    def _drafting(self) -> list[str]:
        chosen = {"codebook": self.input.book()} | self._texts(layout.FILE) | {"output": self._schema_file()}
        return workplace.command_line("schema", "init", *self._data(), **chosen)

    def _on_table(self) -> None:
        if self.input.table():
            ui.update_text("ledger", value=f"{workplace.stem(self.input.table())}.ledger")
        self._taken(f"{self._schema_file()} is taken as it is in the folder.")

    async def _on_draft(self) -> None:
        code, _, errors = await to_thread(self.work.run, self._drafting())
        if code:
            raise ValueError(errors)
        self._taken("Drafted. Say who is protected; then continue with 2.")

    def _unit(self) -> Any:
        entries = self._entries()
        if "tables" in entries:
            return ui.p(f"Protected: a row of {entries.get('unit')} with all its rows of the other table.")
        fields = self._fields(layout.UNIT)
        return fields and ui.TagList(ui.h2("Who is protected: what is one person?"), *fields)

    def _same_table(self) -> Any:
        read = {name: f"read_columns({file!r})" for name, file in self._tables().items()}
        draft, argument = "draft_schema", next(iter(read.values()))
        if self.input.second():
            each = ", ".join(f"{name!r}: {call}" for name, call in read.items())
            draft, argument = "draft_related", f"{{{each}}}"
        needed = [("drafting", draft), ("table_readers", "read_columns")]
        lines = (f"from smalldb.schema.{module} import {function}" for module, function in needed)
        return layout.alike(self._drafting(), *lines, "", f"text = {draft}({argument})")

    # 2

    def _part(self) -> Any:
        many = len(columns_of(self._entries()))
        parts = {str(i): f"{i} to {min(i + MOST_ROWS - 1, many)}" for i in range(1, many + 1, MOST_ROWS)}
        return ui.input_select("first_row", "columns", parts) if many > MOST_ROWS else None

    def _rows(self) -> Any:
        columns = columns_of(self._entries())
        first = int(self.input.first_row()) if len(columns) > MOST_ROWS and "first_row" in self.input else 1
        items = [*enumerate(columns.items(), start=1)][first - 1 : first - 1 + MOST_ROWS]
        self.places = {place: i for i, (place, _) in items}
        return [row(i, place, entries) for i, (place, entries) in items]

    def _rules(self) -> Any:
        return self._fields(layout.RULES)

    def _first(self) -> Any:
        return self._fields(layout.FIRST)

    def _on_answer(self) -> None:
        answer = self.input.answer()
        if answer["key"] == layout.TOML:
            return self._keep(answer["value"], forms=True)
        place = Place(answer["table"], answer["column"]) if "column" in answer else None
        self._keep(changed(self.text(), place, answer["key"], answer["value"]), forms=answer["key"] == "kind")

    async def _faults_shown(self) -> None:
        """Show faults beside the fields that they are about."""
        self.anew()
        error, beside = self.read()[2], dict[str, str]()
        self.outcomes["check"].set(None)
        for each in error.each if isinstance(error, Faults) else ():
            path, table = each.path, ""
            if path[:1] == ("tables",) and path[1:]:
                table, path = path[1], path[2:]
            column = path[1] if path[:1] == ("columns",) and path[1:] else ""
            number = self.places.get(Place(table, column), 0)
            key = (*(path[2:] if number and column else path), "")[0]
            mark = f"fault-{number}-{key}"
            beside[mark] = "; ".join(filter(None, [beside.get(mark), each.message]))
        await self.session.send_custom_message("schema", {"text": self.text(), "faults": beside})

    def _problem(self) -> Any:
        if not self.text():
            return layout.fault("Choose a table, and draft its schema: see 1.")
        fault = self.read()[2]
        return layout.fault(fault) if fault else layout.good("The schema has no faults.")

    def _checking(self) -> list[str]:
        return workplace.command_line("schema", "check", *self._data(), schema=self._schema_file())

    async def _on_check(self) -> None:
        """Check the table: confidential, also where it is refused."""
        _, printed, errors = await to_thread(self.work.run, self._checking())
        marked = None if CONFIDENTIAL in printed else ui.p(CONFIDENTIAL)
        self.outcomes["check"].set(ui.div(marked, ui.pre(printed + errors), class_="confidential"))

    def _same_columns(self) -> Any:
        read = f"schema = read_any({self._schema_file()!r})"
        return layout.alike(self._checking(), "from smalldb.schema.reading import read_any", "", read)

    # 3

    def _planner(self) -> Callable[..., Plan]:
        """Return what plans the release as it is chosen, with other settings; ValueError: none can be."""
        schema = self._ready()
        known = schema.outline if isinstance(schema, OpenSchema) else schema
        return partial(plan, schema=known, **{"epsilon": ""} | self._planning())

    def _ready(self) -> Any:
        """Return the schema; ValueError: it is not complete, or the data themselves are named as public."""
        if self.read()[1] is None:
            raise ValueError("the schema is not complete: see 2")
        for file in self._tables().values():
            check_start(self.input.start(), file, copies=False)  # the data are read by their release alone
        return self.read()[1]

    def _planning(self) -> dict[str, Any]:
        return {"n": workplace.number(self.input.n().strip()) or None} | self._settings()

    def _names_offered(self) -> None:
        schema = self.read()[1]
        if isinstance(schema, Schema | OpenSchema):
            with reactive.isolate():
                ui.update_selectize("target", choices=[*schema.names], selected=[*self.input.target()])

    async def _planned(self) -> Any:
        self.outcomes["draw"].set(None)
        planner = self._planner()
        planned = await to_thread(planner)
        try:
            delta = None if planned.request.delta else layout.DELTA
            other: Plan | str = await to_thread(planner, delta=delta)
        except ValueError as error:
            other = f"none: {error}"
        return ui.pre(laid_out(tell(make_record(planned, private=True), planned, other=other)))

    async def _on_draw(self) -> None:
        planner = self._planner()
        planned = await to_thread(planner)
        picture = await to_thread(plot_plan, planned, lambda epsilon: planner(epsilon=epsilon), "png")
        at = f"at epsilon {brief(planned.epsilon)}: {planned.expected_error:.2g}"
        caption = f"Expected error along epsilon; {at}"
        source = f"data:image/png;base64,{base64.b64encode(picture).decode()}"
        self.outcomes["draw"].set(ui.img(src=source, alt=caption))

    def _account(self) -> Any:
        self.releases()
        reactive.invalidate_later(2)
        known = self.work.account(self.input.ledger().strip())
        if known is None:
            return ui.p("There is no such ledger yet: the first release makes it, with its budget.")
        account, begun = known
        more = f" ({len(begun)} not finished)" if begun else ""
        spent = f"releases {len(account.records)}{more}, spent {brief(account.spent)}"
        return ui.p(f"budget {account.stated}, {spent}, left {brief(account.left)}")

    def _same_budget(self) -> Any:
        chosen = {"schema": self._schema_file()} | self._planning()
        python = f"plan = {workplace.call('smalldb.plan', **chosen)}"
        return layout.alike(workplace.command_line("plan", **chosen), "import smalldb", "", python)

    # 4

    def _releasing(self) -> list[str]:
        home, about = self.input.name().strip(), self._texts(layout.ABOUT, layout.MORE)
        paid = {} if "seed" in about else self._texts(layout.LEDGER)
        chosen = {"schema": f"{home}/{workplace.SCHEMA}"} | self._settings() | paid
        chosen |= {name: self.input[name]() for name in ("schema_unseen", "even_if_empty")}
        chosen["release_id"] = home if paid else ""
        several = {"output": f"{home}/{workplace.SEVERAL}"}
        if isinstance(self.read()[1], RelatedSchema):
            about = {key: file for key, file in about.items() if key != "tables"} | several
        else:
            about["report"] = f"{home}/{workplace.PAGE}"
            files = {"record": workplace.RECORD, "output": workplace.TABLE}
            if self.input.mechanism() in ("auto", "marginals"):  # others measure nothing
                files["measurements"] = workplace.MEASURED
            about |= several if "tables" in about else {key: f"{home}/{file}" for key, file in files.items()}
        return workplace.command_line("generate", *self._data(), **chosen | about)

    def _spends(self) -> Any:
        about = self._texts(layout.MORE, layout.LEDGER)
        seeded, epsilon = "seed" in about, self.input.epsilon().strip()
        of = "no ledger: the seed makes it NOT private" if seeded else about.get("ledger", "")
        return ui.p(ui.tags.strong(f"This spends epsilon {epsilon} of {of}. It cannot be taken back."))

    def _on_release(self) -> None:
        self._ready()
        if not self._texts(layout.LEDGER, layout.MORE).keys() & {"ledger", "seed"}:
            raise ValueError("name a ledger (see 3): what a release spends must be written down")
        self.work.begin(self.input.name().strip(), self._releasing(), self.text())
        self.outcomes["release"].set(layout.good("The release is begun."))

    def _on_go_on(self) -> None:
        self.why.set("")
        self.work.go_on(self.input.go_on())
        self.outcomes["release"].set(layout.good("The release goes on."))

    def _on_why(self) -> None:
        self.why.set(self.input.why())

    def _status(self) -> Any:
        parts: list[Any] = []
        for name, state in self.releases().items():
            log = ui.pre(self.work.text(name, workplace.LOG) or "It said nothing.")
            why = layout.act("why", "Why has it stopped? For my eyes only", name)
            if self.why() == name:  # a refusal may depend on the data
                why = ui.div(ui.p(CONFIDENTIAL), log, class_="confidential")
            stopped = [layout.act("go_on", f"Go on with {name}", name), why]
            files, link = self.work.outputs(name), partial(ui.tags.a, target="_blank")
            links = [link(file, href=f"released/{name}/{file}") for file in files]
            parts += [
                ui.tags.h3(f"{name}: {state}"),
                ui.pre(self.work.text(name, workplace.COMMAND)),
                *{workplace.FINISHED: [log], workplace.UNFINISHED: stopped}.get(state, []),
                ui.p(*links, class_="links"),
            ]
        return parts or ui.p("None yet.")

    def _released(self) -> Any:
        self.releases()
        pages = self.work.offered(workplace.PAGE)
        title = "page of the newest release"  # it runs no script, whoever wrote it
        return ui.tags.iframe(src=f"released/{pages[0]}", title=title, sandbox="") if pages else None

    def _same_release(self) -> Any:
        about = self._texts(layout.LEDGER, layout.MORE)
        chosen = {"schema": self._schema_file()} | self._settings()
        budget = {"budget": about.get("budget"), "delta": about.get("budget_delta")}
        kept = workplace.call("smalldb.Ledger", repr(about.get("ledger", "")), **budget)
        last = f"seed={workplace.number(about['seed'])!r}" if "seed" in about else f"ledger={kept}"
        table = self._tables() if self.input.second() else self._data()[0]
        python = workplace.call("smalldb.release", repr(table), **chosen)[:-1]
        return layout.alike(self._releasing(), "import smalldb", "", f"release = {python}, {last})")

    # 5

    def _releases_offered(self) -> None:
        """Offer finished releases to be asked and refined, and a name for the next one."""
        self.releases()
        files = self.work.offered(*workplace.ASKED)
        with reactive.isolate():
            for name, none in (("asked", {} if files else layout.NONE), ("refine", layout.NO_RELEASE)):
                kept = self.input[name]() if self.input[name]() in files else None
                ui.update_select(name, choices=none | {file: file for file in files}, selected=kept)
            if self.releases().get(self.input.name()) == workplace.FINISHED:
                ui.update_text("name", value=f"release-{len(self.releases()) + 1}")

    def _asking(self) -> list[str]:
        questions = filter(None, map(str.strip, self.input.questions().splitlines()))
        chosen = {name: self.input[name]() for name in ("population", "table1", "by")}
        chosen |= {"level": self.input.level().strip(), "markdown": chosen["table1"] or chosen["by"] != ""}
        line, file = workplace.command_line("ask", **chosen), self.input.asked() or "RECORD.json"
        return [*line, "--", file, *questions]

    async def _on_ask(self) -> None:
        command = self._asking()
        _, printed, errors = await to_thread(self.work.run, command)
        show = layout.table if "--markdown" in command else ui.pre
        self.outcomes["ask"].set([printed and show(printed), errors and layout.fault(errors)])

    def _on_asked(self) -> None:
        """Offer the columns that were measured: what a mechanism has drawn at once has no measurements."""
        names: tuple[str, ...] = ()
        with suppress(OSError, ValueError):
            names = Measurements.read(self.input.asked()).domain.names
        ui.update_select("by", choices=layout.NO_COLUMN | dict(zip(names, names, strict=True)))

    def _same_ask(self) -> Any:
        command = self._asking()
        file, *questions = command[command.index("--") + 1 :]
        settings = {"level": self.input.level().strip(), "population": self.input.population()}
        read = f"measured = Measurements.read({file!r})"
        names = ["from smalldb.inference import Measurements, ask", "", read]
        if "--markdown" not in command:
            answer = workplace.call("ask", "measured", repr((*questions, "QUESTION")[0]), **settings)
            return layout.alike(command, *names, f"answer = {answer}")
        names.insert(0, "from functools import partial")
        names.insert(2, "from smalldb.inference.cross_tables import cross_table")
        answers = workplace.call("partial", "ask", "measured", **settings)
        of = f"measured, {questions!r}, {self.input.by() or None!r}, {answers}"
        return layout.alike(command, *names, f"groups, lines = cross_table({of})")
