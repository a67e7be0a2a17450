"""Pieces of HTML: texts are escaped where they enter, hidden signs shown; markup is put together."""

from collections.abc import Iterable, Sequence
from html import escape

from smalldb.reporting import visible


def element(name: str, *inside: str, **attributes: object) -> str:
    """Write an element around markup; attributes are escaped, ``class_`` is class and ``_`` is ``-``."""
    named = {
        key.removesuffix("_").replace("_", "-"): escape(visible(str(v), "\n"))
        for key, v in attributes.items()
    }
    opening = " ".join([name, *(f'{key}="{value}"' for key, value in named.items())])
    return f"<{opening}>{''.join(inside)}</{name}>"


def text(value: object) -> str:
    """Write a text."""
    return escape(visible(str(value), "\n\t"), quote=False)


def paragraph(content: str) -> str:
    """Write a paragraph of text."""
    return element("p", text(content))


def section(title: str, anchor: str, *inside: str) -> str:
    """Write a section under a heading that can be linked to."""
    return element("section", element("h2", text(title), id=anchor), *inside, aria_labelledby=anchor)


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Write named facts."""
    inner = [element("dt", text(name)) + element("dd", text(value)) for name, value in pairs]
    return element("dl", *(element("div", pair) for pair in inner))


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write a table that scrolls where it is wider than the page; a row's first field is its heading."""
    first = element("tr", *(element("th", text(name), scope="col") for name in head))
    body = [
        element("tr", element("th", text(row[0]), scope="row"), *(element("td", text(v)) for v in row[1:]))
        for row in rows
    ]
    whole = element(
        "table", element("caption", text(caption)), element("thead", first), element("tbody", *body)
    )
    return scrolling(whole, caption)


def scrolling(inside: str, label: str) -> str:
    """Write a region that scrolls sideways on its own."""
    return element("div", inside, class_="scroll", role="region", aria_label=label, tabindex="0")


def folded(title: str, *inside: str) -> str:
    """Write what is shown on demand."""
    return element("details", element("summary", text(title)), *inside)
