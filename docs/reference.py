"""Write the list of public names from their docstrings.

python docs/reference.py
"""

import importlib
import inspect
from pathlib import Path

HEAD = """\
# Public names

What each is in one sentence; `help(smalldb.release)`, for one, says the rest: arguments, shapes, errors.
Written by `docs/reference.py` from the docstrings.
"""
MODULES = {
    "smalldb": "Releases, plans, the census and the audit",
    "queries": "Universes, rows and query classes",
    "smalldb.inference": "Answers with intervals",
    "smalldb.schema": "Real columns",
    "smalldb.schema.tables": "Files that are read",
    "smalldb.schema.table_writers": "Files that are written",
    "smalldb.releasing.evaluation": "Beside the data, for the curator",
    "smalldb.releasing.distances": "Distances of tables, for the curator",
    "smalldb.reporting.page": "The report",
    "smalldb.selection": "Selection, and what it is measured against",
    "smalldb.bounds": "What the theorems promise",
    "smalldb.accounting": "Many releases",
    "smalldb.auditing": "Small instances, exactly",
}


def public(module):
    """Return the public names of a module that it defines itself, or lists."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return [name for name in listed if name != "__version__"]
    return [
        name
        for name, thing in vars(module).items()
        if not name.startswith("_")
        and getattr(thing, "__module__", None) == module.__name__
        and callable(thing)
    ]


def text():
    """Return the page."""
    parts = [HEAD]
    for name, title in MODULES.items():
        module = importlib.import_module(name)
        parts.append(f"\n## {title}: `{name}`\n\n| | |\n|---|---|\n")
        for own in public(module):
            said = inspect.getdoc(getattr(module, own)).split("\n")[0].replace("|", "\\|")
            parts.append(f"| `{own}` | {said} |\n")
    return "".join(parts)


if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(text(), encoding="utf-8")
