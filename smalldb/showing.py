"""How values show themselves: what writes and draws them stands above, and is imported when asked for."""

from importlib import import_module
from typing import Any


def in_notebook(value: object) -> str:
    """Return a short table of a value, as HTML for a notebook; nothing confidential is in it."""
    written: str = import_module("smalldb.reporting.notebook").in_notebook(value)
    return written


def drawn(value: object, **choices: Any) -> Any:
    """Return a `smalldb.reporting.notebook.Picture` of a value."""
    return import_module("smalldb.reporting.notebook").drawn(value, **choices)


def reported(release: object, **choices: Any) -> str:
    """Return the page about a release, by `smalldb.reporting.page.page`."""
    reporting = import_module("smalldb.reporting.page")
    schema = choices.pop("schema", None)
    written: str = reporting.page(release, schema, about=reporting.About(**choices))
    return written
