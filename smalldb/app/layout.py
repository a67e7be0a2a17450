"""How the page is laid out: five steps, with what of them stands fixed."""

import re
import shlex
from functools import partial
from pathlib import Path
from typing import Any

from shiny import ui

from smalldb.app.workplace import Workplace
from smalldb.planning.mechanisms import names

HERE = Path(__file__).parent
TOML = "="  # in place of a key: all of the schema
DELTA = "1e-9"  # that pure plans are compared with
UNIT = {
    "rows_per_person": "the most rows that one person has (1: a row is a person)",
    "person": "or: the column that tells persons apart, who have any number of rows",
    "fixed": "with it: the columns that are the same in all rows of a person",
    "most": "with it: numbers of rows are told up to this one",
    "cap": "with it: the most rows of a person that are taken",
}
RULES = {"valid": "rules between columns, one a line: ~(child & married)", "queries": "queries (marginals:2)"}
FIRST = {"measure_first": "tables to measure first, one a line: age x sex"}
FILE = {name: name for name in ("separator", "encoding", "sheet", "query")}
ABOUT = {"title": "title, for its page", "publisher": "publisher, for its page"}
MORE = {name: f"{name}, for its page" for name in ("contact", "date", "licence", "citation")}
MORE |= {
    "tables": "several tables, for intervals (25 are usual)",
    "seed": "seed, for experiments: repeatable, NOT private, of no ledger",
}
NOISE = {
    "epsilon": "epsilon",
    "delta": f"delta (empty: pure; usual: {DELTA})",
    "n": "rows of the table, from public knowledge (replace-one)",
    "n_max": "about how many rows at most (add-remove)",
    "column_share": "share of epsilon for single columns beside tables (empty: as usual; 1: columns alone)",
    "means": "share of epsilon for means of numbers (empty: as usual; 0: none)",
}
START = {"start_is": "what the start is, and so why it is public: release of 2025, epsilon 1"}
LEDGER = {
    "ledger": "file of the ledger",
    "budget": "its budget, if it is new",
    "budget_delta": "delta of its budget, if it is new (optional)",
}
NONE, NO_COLUMN, NO_RELEASE = {"": "none yet"}, {"": "no column"}, {"": "no release"}
VALUES = {"epsilon": "1", "name": "release-1", "level": "0.95"}
PUBLIC = (
    "Say what each column can hold from public knowledge: a code book, a form, the law; never from a look at "
    "the data, which would give them away."
)


def texts(labels: dict[str, str]) -> list[Any]:
    """Make fields for texts."""
    return [ui.input_text(key, label, VALUES.get(key, ""), update_on="blur") for key, label in labels.items()]


def button(name: str, label: str, busy: str) -> Any:
    """Make a button of what takes a while, and room for its outcome."""
    return ui.TagList(ui.input_task_button(name, label, label_busy=busy), ui.output_ui(f"{name}_told"))


def act(name: str, label: str, release: str) -> Any:
    """Make a button that does something with a release."""
    element = ui.tags.button(label, {"data-act": name, "data-release": release}, id=f"{name}-{release}")
    return element.add_class("act btn btn-outline-primary me-2")


def more(label: str, *parts: Any) -> Any:
    """Make what is folded."""
    return ui.tags.details(ui.tags.summary(label), *parts, class_="mb-3")


def layout(work: Workplace) -> Any:
    """Lay out the steps; of the folder names of files alone."""
    shown, tables, wide = ui.output_ui, ["", *work.files()], partial(ui.input_checkbox, width="100%")
    area = ui.tags.textarea({"data-key": TOML}, id="toml", class_="answer form-control", rows="24")
    table = [
        ui.h2("Which table"),
        ui.input_select("table", "table of this folder", tables),
        ui.input_select("second", "its second table, linked by a key (optional)", tables),
        ui.input_select("book", "code book (optional)", ["", *work.files((".csv", ".json"))]),
        more("how the file is written", *texts(FILE)),
        ui.p("The first line of a CSV file must hold the names: they are shown here, and released."),
        button("draft", "Draft its schema: only names are read", "Reading names"),
        shown("unit"),
    ]
    schema = [
        shown("rules"),
        shown("problem"),
        ui.tags.label("the schema, as TOML", {"for": "toml"}),
        area,
        ui.h2("Does the table fit?"),
        ui.p("The answer is computed from the data: it is confidential."),
        button("check", "Check the table, for my eyes only", "Reading the table"),
    ]
    spending = [
        *texts(NOISE),
        ui.input_select("neighbours", "neighbours", ["replace-one", "add-remove"]),
        ui.input_selectize("target", "columns to predict (optional)", [], multiple=True),
        ui.input_select("mechanism", "mechanism", [*names()]),
        shown("first"),
        ui.input_select("start", "a PUBLIC table to start from, of other people (optional)", tables),
        *texts(START),
        ui.input_select("refine", "an earlier release of the same data to combine (optional)", NO_RELEASE),
        ui.h2("Ledger of the folder"),
        *texts(LEDGER),
        shown("account"),
    ]
    release = [
        *texts({"name": "name of the release: its folder"} | ABOUT),
        more("more", *texts(MORE)),
        wide("schema_unseen", "the schema was written without a look at the data: the record states it"),
        wide("even_if_empty", "release also where nothing useful is expected"),
        shown("spends"),
        button("release", "Spend it, and release", "Beginning"),
        ui.h2("Releases of this folder"),
        shown("status"),
        shown("released"),
    ]
    ask = [
        ui.p("Answers come from the released numbers alone. The data are not read."),
        ui.input_select("asked", "release", NONE),
        ui.input_text_area("questions", "questions, or columns, one a line", width="100%", rows=4),
        *texts({"level": "level of the intervals"}),
        wide("population", "for the population of which the rows are a random sample"),
        wide("table1", "Table 1 of a paper: shares, means, medians of all columns, or of those above"),
        ui.input_select("by", "a table of the answers, by the categories of", NO_COLUMN),
        button("ask", "Ask", "Computing"),
    ]
    columns = [ui.p(PUBLIC), ui.div(ui.div(shown("part"), shown("rows")), ui.div(*schema), class_="grid")]
    planned = ui.div(shown("planned"), button("draw", "Draw the error along epsilon", "Planning"))
    budget = [ui.div(ui.div(*spending), planned, class_="grid")]
    steps = {"Table": table, "Columns": columns, "Budget": budget, "Release": release, "Ask": ask}
    panels = [
        ui.nav_panel(f"{i} {step}", *parts, shown(f"same_{step.lower()}"))
        for i, (step, parts) in enumerate(steps.items(), start=1)
    ]
    return ui.page_fluid(
        ui.include_css(HERE / "page.css", method="inline"),
        ui.include_js(HERE / "page.js", method="inline"),
        ui.h1("smalldb: from a table about people to a private release"),
        ui.p(f"Folder: {work.folder.resolve()}. The page is for this machine, and sends nothing anywhere."),
        ui.navset_pill(*panels),
        title="smalldb",
        lang="en",
    )


def fault(message: object) -> Any:
    """Show what is wrong, in the library's words."""
    return ui.p(str(message) or repr(message), class_="bad", role="alert")


def good(message: str) -> Any:
    """Show what went well."""
    return ui.p(message, class_="good", role="status")


def table(printed: str) -> Any:
    """Show a table that a command printed as Markdown, and what it says below."""
    lines, _, below = printed.partition("\n\n")
    head, _, *body = [re.split(r" ?(?<!\\)\| ?", line)[1:-1] for line in lines.splitlines()]
    th, plain = ui.tags.th, [[cell.replace("\\|", "|") for cell in row] for row in body]
    rows = (ui.tags.tr(th(name, scope="row"), *map(ui.tags.td, cells)) for name, *cells in plain)
    columns = ui.tags.tr(*(th(name.replace("\\|", "|"), scope="col") for name in head))
    return ui.div(ui.tags.table(columns, *rows), ui.p(below), class_="scroll", tabindex="0")


def alike(command: list[str], *python: str) -> Any:
    """Show a command line and lines of Python, to copy."""
    copy = ui.tags.button("copy", type="button", class_="copy btn btn-sm btn-outline-secondary")
    title = ui.h2("The same in a terminal, and in Python")
    return ui.div(title, copy, ui.pre(shlex.join(command)), copy, ui.pre("\n".join(python)), class_="same")
