"""Which rules of a domain rows break: for the curator, whose data it is computed from."""

from collections.abc import Callable, Collection, Sequence

import numpy as np
import numpy.typing as npt

from queries.arrays import Booleans
from queries.encoding import DataError
from queries.expressions import parse, shorten
from queries.relations import Relation
from queries.rule_tables import Truth

MOST = 3  # rules that are told

Valid = str | Sequence[str] | Sequence[int] | None


class RuledOut(DataError):
    """Rows that cannot exist."""

    def __init__(self, message: str, numbers: Collection[int] = ()) -> None:
        super().__init__(message)
        self.numbers = frozenset(numbers)  # of the rules that they break, from 1


def rule_texts(valid: Valid) -> list[str]:
    """Return the rules as they are stated; none where cells are listed."""
    stated = [valid] if isinstance(valid, str) else valid or []
    return [rule for rule in stated if isinstance(rule, str)]


def broken(
    valid: Valid,
    find: Callable[[str], Truth | None],
    sizes: Sequence[int],
    codes: npt.NDArray[np.integer],
    relations: Sequence[Relation] = (),
) -> dict[int, Booleans]:
    """
    Tell which rows break each rule that some row breaks.

    Rules are read one by one, not from tables: give the rows that cannot exist, and no others.
    """
    inside = np.less(codes, np.array(sizes)).all(axis=1)
    within = np.where(inside[:, None], codes, 0)

    def truth(name: str) -> Booleans:
        found = find(name)
        if found is None:  # a domain knows the names of its rules
            raise ValueError(f"unknown attribute {shorten(name)!r}")
        column, table = found
        held: Booleans = table[within[:, column]]
        return held

    stated = {relation.text: relation for relation in relations}
    rows = {
        number: np.logical_and(
            inside, ~(stated[text].holds(within) if text in stated else parse(text).evaluate(truth))
        )
        for number, text in enumerate(rule_texts(valid), start=1)
    }
    return {number: found for number, found in rows.items() if found.any()}


def told(valid: Valid, numbers: Collection[int]) -> str:
    """Tell that rows cannot exist, and which rules they break, the first few with their texts.

    >>> told(["a | b", "~a", "b"], [1, 3])
    "rows break rule 1 ('a | b') and rule 3 ('b') of valid"
    """
    texts, shown = rule_texts(valid), sorted(numbers)
    if not shown:
        return "a row is in a cell that valid rules out"
    first = [f"rule {number} ({shorten(texts[number - 1])!r})" for number in shown[:MOST]]
    if len(shown) > MOST:
        first.append(f"{len(shown) - MOST} more")
    return f"rows break {' and '.join(first)} of valid"
