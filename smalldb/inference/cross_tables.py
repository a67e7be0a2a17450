"""Tables of answers: questions by the categories of a column, the first table of a paper, what is known."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from queries import Column
from queries.expressions import quote
from smalldb.inference.answering import Answer
from smalldb.inference.questions import column_of
from smalldb.mechanisms.known_pairs import NOT_MEASURED
from smalldb.mechanisms.measurement import Marginal, Offsets, Parity
from smalldb.mechanisms.measurement_list import Measurements
from smalldb.schema.kinds.flags import Flag

ERROR = "error"  # what is known of a question that could not be read
ALL = "all"
SHOWN = (
    *("known", "estimate", "low", "high", "guess", "guess_low", "guess_high"),
    *("within_low", "within_high", "assumed", "note"),
)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a table: its label, and for each group the answer."""

    label: str
    percent: bool  # whether it is a share of rows
    answers: tuple[Answer, ...]

    def as_json(self, groups: Sequence[str]) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        cells = zip(groups, self.answers, strict=True)
        return {"row": self.label, "groups": {group: answer.as_json() for group, answer in cells}}

    def flat(self, groups: Sequence[str]) -> Iterator[dict[str, object]]:
        """Return a row of a long table for each group."""
        for group, answer in zip(groups, self.answers, strict=True):
            entry = answer.flat()
            yield {"row": self.label, "group": group, **{name: entry[name] for name in SHOWN}}


def questions_of(column: Column, numbers: bool) -> list[tuple[str, str, bool]]:
    """Return what the first table of a paper has of a column: label, question, whether it is a share."""
    name = quote(column.name)
    if column.yes_no:
        return [(column.name, name, True)]
    if numbers:
        return [(f"{column.name}, {what}", f"{what}({name})", False) for what in ("mean", "median")]
    return [(f"{column.name}: {label}", f"`{column.name}={label}`", True) for label in column.labels]


def cross_table(
    measurements: Measurements, questions: Sequence[str], by: str | None, ask: Callable[[str], Answer]
) -> tuple[list[str], list[Line]]:
    """Return the groups and the lines of a table of questions, or of columns; without any, of all."""
    domain, groups, conditions = measurements.domain, [ALL], [""]
    of_groups = None if by is None else column_of(by, domain)
    if of_groups is not None:
        column = domain.columns[of_groups]
        cases = [(f"{column.name}={label}", f"`{column.name}={label}`") for label in column.labels]
        if column.yes_no:
            cases = [(f"not {column.name}", f"~{quote(column.name)}"), (column.name, quote(column.name))]
        groups += [label for label, _ in cases]
        conditions += [condition for _, condition in cases]
    rows = list[tuple[str, str, bool]]()
    for text in questions or [name for c, name in enumerate(domain.names) if c != of_groups]:
        if text in domain.names:
            column = domain.columns[domain.names.index(text)]
            rows += questions_of(column, is_number(measurements, column))
        else:
            rows.append((text, text, False))

    def answer(question: str, condition: str) -> Answer:
        where = f" & ({condition})" if condition and ("|" in question or " where " in question) else ""
        text = f"{question}{where}" if where or not condition else f"{question} where {condition}"
        try:
            return ask(text)
        except ValueError as error:
            return replace(Answer(text, ERROR, None, None, None, 0.0, False), note=str(error))

    return groups, [
        Line(label, percent, tuple(answer(question, condition) for condition in conditions))
        for label, question, percent in rows
    ]


def is_number(measurements: Measurements, column: Column) -> bool:
    """Tell whether the numbers of a column are known by its categories."""
    return column.name in measurements.ranges and column.labels[:2] != Flag.labels


def known_of(measurements: Measurements) -> dict[str, Any]:
    """Return the columns with their kinds, and what is known of which pairs at which groups."""
    domain, columns = measurements.domain, []
    offsets = {part.columns[0] for each in measurements for part in each.of if isinstance(part, Offsets)}
    alone = dict[int, int]()
    for part in (part for each in measurements for part in each.of):
        if isinstance(part, Marginal | Parity):
            for at, c in enumerate(part.columns):
                alone[c] = max(alone.get(c, 0), part.shape[at] if isinstance(part, Marginal) else 2)
    for c, column in enumerate(domain.columns):
        kind = "in order" if column.ordered else "categories"
        kind = "bins" if column.cuts else "numbers" if is_number(measurements, column) else kind
        kind = "yes/no" if column.labels[:2] == Flag.labels else kind
        columns.append(
            {
                "column": column.name,
                "kind": kind,
                "categories": [*column.labels],
                "measured_groups": alone.get(c, 0),
                "means": c in offsets,
            }
        )
    pairs = [
        {
            "columns": [*pair.columns],
            "known": pair.told,
            "groups": [[max(first) + 1, max(second) + 1] for first, second in pair.groups],
        }
        for pair in measurements.pairs()
        if pair.known != NOT_MEASURED
    ]
    apart = sum(pair.known == NOT_MEASURED for pair in measurements.pairs())
    return {"columns": columns, "pairs": pairs, "pairs_not_measured": apart}
