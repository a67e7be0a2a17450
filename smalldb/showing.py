"""How values show themselves in notebooks: `renderers` names the module that draws and writes them."""

from collections.abc import Callable
from typing import Any

renderers: list[Callable[[], Any]] = []  # one, which imports and returns `smalldb.reporting.notebook`


def in_notebook(value: object) -> str:
    """Return a short table of a value, as HTML for a notebook; nothing confidential is in it."""
    written: str = renderers[0]().in_notebook(value)
    return written


def drawn(value: object, **choices: Any) -> Any:
    """Return a `smalldb.reporting.notebook.Picture` of a value."""
    return renderers[0]().drawn(value, **choices)


def reported(release: object, **choices: Any) -> str:
    """Return the page about a release, by `smalldb.reporting.page.page`."""
    written: str = renderers[0]().reported(release, **choices)
    return written
