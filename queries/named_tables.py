"""Tables that are named by their columns, such as "age x death"."""

import re
from collections.abc import Sequence

from queries.expressions import shorten, suggestion

_WORDS = re.compile(r"`[^`]*`|\S+")


def named_tables(texts: str | Sequence[str], names: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """
    Return the columns of each named table, by their numbers: ascending, no table twice.

    Columns stand between " x "; a name that holds one, or is "x", stands in backticks.

    Parameters
    ----------
    texts
        One table or several.
    names
        Of all columns.

    Raises
    ------
    ValueError, TypeError
        No texts, fewer than two columns, one that is not there, or one that stands twice.

    Examples
    --------
    >>> named_tables(["age x death", "sex x age x `a x b`"], ["sex", "age", "death", "a x b"])
    ((1, 2), (0, 1, 3))
    """
    several: Sequence[str] = (texts,) if isinstance(texts, str) else texts
    if not isinstance(several, Sequence) or not all(isinstance(text, str) for text in several):
        raise TypeError('tables to measure first must be texts such as "age x sex"')
    positions = {name: position for position, name in enumerate(names)}
    return tuple(dict.fromkeys(_columns(text, positions) for text in several))


def _columns(text: str, positions: dict[str, int]) -> tuple[int, ...]:
    """Return the numbers of the columns of one table, ascending."""
    named: list[list[str]] = [[]]
    for word in _WORDS.findall(text):
        if word == "x":
            named.append([])
        else:
            named[-1].append(word[1:-1] if word[0] == word[-1] == "`" and len(word) > 1 else word)
    found, said = [" ".join(words) for words in named], f"the table {shorten(text)!r}"
    if len(found) < 2 or not all(found):
        raise ValueError(f'{said} must name two columns or more, such as "age x sex"')
    for name in found:
        if name not in positions:
            raise ValueError(f"{said}: no column {name!r}{suggestion(name, positions)}")
    if len(set(found)) < len(found):
        raise ValueError(f"{said} names a column twice")
    return tuple(sorted(positions[name] for name in found))
