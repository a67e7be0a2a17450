"""Questions of analysts, in a few words: shares, means, sums, quantiles, and differences."""

import operator as op
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod

import numpy as np

from queries import Column, Domain
from queries.arrays import Booleans, Floats
from queries.expressions import MAX_LENGTH, NAME, Expression, parse, quote, shorten, suggestion
from queries.rule_tables import Truth, truth_of
from smalldb.exact.numbers import between_0_and_1
from smalldb.mechanisms.recorded_universe import Range, Ranges
from smalldb.schema.kinds.flags import USUAL, Flag

MAX_CELLS = 1 << 16  # of the columns that one question looks at
GRAMMAR = (
    "a question is like 'death', 'death | age>=80', 'mean(income) where sex=f' "
    "or 'married - married | age<40'; sum(income), median(income) and quantile(income, 0.9) are asked alike"
)

_CALLED = re.compile(r"[A-Za-z_]\w*\s*\(")
_COLUMN = rf"({NAME}|\w[\w ]*?)"
_MEAN = re.compile(rf"(mean|sum)\s*\(\s*{_COLUMN}\s*\)", re.I)
_BARE = re.compile(r"(?:mean|sum|median|quantile|count)\s+[\w`]", re.I)  # without parentheses
_QUANTILE = re.compile(rf"(?:median\s*\(\s*{_COLUMN}|quantile\s*\(\s*{_COLUMN}\s*,\s*([0-9./]+))\s*\)", re.I)
_MINUS, _CONDITION = re.compile(r"\s-\s"), re.compile(r"\||\bwhere\b", re.I)
_COUNT = re.compile(r"count\s*\((.*)\)", re.I | re.S)
_COMPARED = re.compile(r"(.*?)(>=|<=|=|<|>)(.*)", re.S)
_COMPARING = {"=": op.eq, "<": op.lt, "<=": op.le, ">": op.gt, ">=": op.ge}
_TIME = re.compile(r"(\d+):(\d\d)(?::(\d\d))?")
_DATE = re.compile(r"(\d{4})-(\d\d)(?:-(\d\d))?(?:T(.+))?")


class OtherKind(ValueError):
    """A question of a kind that measurements do not answer, such as a correlation."""

    def __init__(self, message: str, columns: tuple[int, ...]) -> None:
        super().__init__(message)
        self.columns = columns  # those it names, ascending


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A share or a mean: the sum of a number over some rows, divided by how many these are."""

    text: str  # as it was asked
    columns: tuple[int, ...]  # those it looks at, ascending
    numerator: Floats  # what each row counts, by its cell of these columns; shaped by their sizes
    rows: Booleans  # which rows count, alike
    # between which numbers the answer lies: of a share 0 and 1, of a mean its least and largest number
    bounds: tuple[float, float]
    condition: str | None  # its text; None: all rows count
    # the ends of the numbers of a mean where they are in bins, alike shaped; None: they are exact
    binned: tuple[Floats, Floats] | None = None
    # of a mean: the share of rows without a number among those that meet the condition; None: none can be
    gaps: "Term | None" = None
    counted: bool = False  # it is a number of rows or a sum, and is divided by nothing
    of: int | None = None  # the column whose numbers are added up; None: rows are counted
    # how far squares of numbers in bins may be above those of `numerator`, alike shaped; None: not at all
    spread: Floats | None = None
    note: str = ""  # on how it was read


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """One or two terms, of which two are subtracted; or a quantile."""

    text: str  # as it was asked
    terms: tuple[Term, ...]  # the first, and what is taken from it
    # of a quantile, what share of the rows is below it: each term is then the share of rows below a category
    # of a column of numbers, but for the first one
    quantile: Fraction | None = None


def read_question(text: str, domain: Domain, ranges: Ranges) -> Question:
    """Read a question about the columns of a domain.

    ``EVENT``, ``EVENT | CONDITION`` (or ``where``), ``mean(COLUMN)`` and ``count(EVENT)`` with a condition or
    without, and differences: `` - `` between spaces. Events and conditions are predicates with ``& ~ ^`` and,
    inside parentheses, ``|`` (or); ``COLUMN in (A, B)`` stands for several categories.
    """
    if not isinstance(text, str):
        raise TypeError(f"a question must be text, not {type(text).__name__}")
    if len(text) > MAX_LENGTH:
        raise ValueError(f"a question may have at most {MAX_LENGTH} characters")
    parts = list(_split(text, _MINUS))
    if not text.strip() or len(parts) > 2:
        raise ValueError(f"question {shorten(text)!r}: {GRAMMAR}")
    if len(parts) == 1 and (quantile := _quantile(text.strip(), domain, ranges)) is not None:
        return quantile
    terms = tuple(_term(part.strip(), domain, ranges) for part in parts)
    if len(terms) > 1 and any(term.counted for term in terms):
        raise ValueError(
            f"question {shorten(text)!r}: counts and sums stand alone: ask a difference of shares"
        )
    return Question(text.strip(), terms)


def _split_condition(text: str) -> tuple[str, str | None]:
    """Return what is asked and the condition, if there is one."""
    parts = list(_split(text, _CONDITION))
    if len(parts) > 2 or not all(part.strip() for part in parts):
        raise ValueError(
            f"question {shorten(text)!r}: {GRAMMAR}; | means 'given', and 'or' only inside parentheses"
        )
    return parts[0].strip(), parts[1].strip() if len(parts) == 2 else None


def _quantile(text: str, domain: Domain, ranges: Ranges) -> Question | None:
    """Return a quantile as the shares of rows below each bin; None: it is none."""
    quantity, condition = _split_condition(text)
    match = _QUANTILE.fullmatch(quantity)
    if match is None:
        return None
    name = (match[1] or match[2]).strip("`")
    share = between_0_and_1(match[3] or "1/2", f"question {shorten(text)!r}: the share below a quantile")
    c = _number_column(name, domain, ranges)
    ends = [None if each is None else (each[0] or 0.0, each[1] or 0.0) for each in ranges[name]]
    mean = _term(
        f"mean({quote(name)})" + (f" where {condition}" if condition else ""), domain, {**ranges, name: ends}
    )
    along = [-1 if column == c else 1 for column in mean.columns]
    codes = [code for code, each in enumerate(ends) if each is not None]
    first = replace(mean, text=text, binned=None, bounds=(0.0, 1.0))
    below = [(mean.rows & (np.arange(len(ends)) < code).reshape(along)) for code in codes[1:]]
    return Question(text, tuple(replace(first, numerator=each.astype(np.float64)) for each in below), share)


def _term(text: str, domain: Domain, ranges: Ranges) -> Term:
    quantity, condition = _split_condition(text)
    counted = _COUNT.fullmatch(quantity)
    if counted is not None:
        return _count(text, counted[1].strip(), condition, domain, ranges)
    mean = _MEAN.fullmatch(quantity)
    if mean is None and _CALLED.match(quantity):
        named = {name.strip("`") for name in re.findall(NAME, quantity[quantity.index("(") :])}
        raise OtherKind(
            f"question {shorten(text)!r}: shares, mean(), sum(), median(), quantile(), count() and "
            "differences are answered",
            tuple(c for c, name in enumerate(domain.names) if name in named),
        )
    if mean is None and _BARE.match(quantity):
        raise ValueError(f"question {shorten(text)!r}: {GRAMMAR}")
    truths: dict[str, Truth] = {}
    event = _predicate(quantity, domain, ranges, truths) if mean is None else None
    where = None if condition is None else _predicate(condition, domain, ranges, truths)
    note = "; ".join(note for name in truths if (note := _if_whole(name, domain, ranges)))
    column = None if mean is None else _number_column(mean[2].strip("`"), domain, ranges)
    columns = tuple(sorted({c for c, _ in truths.values()} | ({column} if column is not None else set())))
    shape = [domain.sizes[c] for c in columns]
    if prod(shape) > MAX_CELLS:
        raise ValueError(
            f"question {shorten(text)!r}: its columns have more than 2^16 cells together: ask less"
        )
    rows = np.ones(shape, dtype=bool)
    if where is not None:
        rows = rows & truth_of(where, truths, columns)
    if not (rows & domain.allowed(columns)).any():
        raise ValueError(f"question {shorten(text)!r}: no row can meet {condition!r}: use another condition")
    if event is not None:
        numerator = (truth_of(event, truths, columns) & rows).astype(np.float64)
        return Term(text, columns, numerator, rows, (0.0, 1.0), condition, note=note)
    assert column is not None and mean is not None
    term = _mean(text, domain, ranges[domain.names[column]], column, columns, rows, condition)
    if mean[1].lower() == "sum":
        term = replace(term, counted=True, bounds=(-np.inf, np.inf))
    return replace(term, note="; ".join(filter(None, [note, term.note])))


def _count(text: str, event: str, condition: str | None, domain: Domain, ranges: Ranges) -> Term:
    """Return how many rows meet an event and a condition; without an event, how many there are."""
    parts = [f"({part})" for part in (event, condition) if part]
    if parts:
        term = _term(" & ".join(parts), domain, ranges)
        columns, numerator, note = term.columns, term.numerator, term.note
    else:
        columns, numerator, note = (0,), np.ones(domain.sizes[0]), ""
    return Term(text, columns, numerator, numerator >= 0, (0.0, np.inf), condition, counted=True, note=note)


def _mean(
    text: str,
    domain: Domain,
    ranges: Sequence[Range],
    column: int,
    columns: tuple[int, ...],
    rows: Booleans,
    condition: str | None,
) -> Term:
    """Return the mean of a column of numbers over some rows; those with a gap do not count."""
    along = [-1 if c == column else 1 for c in columns]
    there = np.array([each is not None for each in ranges]).reshape(along)
    eligible, rows = rows, rows & there
    if not (rows & domain.allowed(columns)).any():
        raise ValueError(f"question {shorten(text)!r}: no row can have a number there: use another condition")
    used = np.flatnonzero(rows.any(axis=tuple(a for a, c in enumerate(columns) if c != column)))
    name, note = domain.names[column], ""
    ends = np.zeros((2, len(ranges)))
    for code in used.tolist():
        low, high = ranges[code] or (0.0, 0.0)
        if low is not None and high is None and not domain.columns[column].cuts:  # a number of children
            high, note = low, f"{domain.columns[column].labels[code]} count as {low:g}"
        if low is None or high is None:
            raise ValueError(
                f"question {shorten(text)!r}: the outer bins of {name!r} have no end, so there is no mean: "
                f"ask a share such as '{name}>={domain.columns[column].cuts[-1]}', or release with a schema "
                "that states a range"
            )
        ends[:, code] = low, high
    lows, highs = (part.reshape(along) * rows for part in ends)
    bounds = float(ends[0, used].min()), float(ends[1, used].max())
    binned = None if (ends[0] == ends[1]).all() else (lows, highs)
    lacking = (eligible & ~there).astype(np.float64)
    gaps = Term(text, columns, lacking, eligible, (0.0, 1.0), condition) if lacking.any() else None
    return Term(
        text, columns, (lows + highs) / 2, rows, bounds, condition, binned, gaps, of=column, note=note
    )


def _predicate(text: str, domain: Domain, ranges: Ranges, truths: dict[str, Truth]) -> Expression:
    """Parse a predicate, and note in which categories of which column its names hold."""
    expression = parse(text)
    truths |= {name: _holding(name, domain, ranges) for name in expression.names}
    return expression


def _holding(name: str, domain: Domain, ranges: Ranges) -> Truth:
    """Return the column that a name speaks of and where it holds, or say what comes near."""
    if (truth := domain.find(name)) is not None:
        return truth
    parts = _COMPARED.fullmatch(name)
    written, sign, value = (name, "", "") if parts is None else (part.strip() for part in parts.groups())
    if written not in domain.names:
        near = suggestion(written, domain.names) or domain.nearest(name)
        raise ValueError(f"no column or category {name!r}{near}: the columns are {_some(domain.names)}")
    c = domain.names.index(written)
    column, quoted = domain.columns[c], quote(written)
    yes_no = column.labels[:2] == Flag.labels
    if not sign and yes_no:  # one with gaps, of a record
        return c, np.arange(column.size) == 1
    if not sign:
        how = f"{quoted}=..." if column.size < 3 else f"a category of it, or mean({quoted})"
        raise ValueError(
            f"{name!r} is not a yes/no column: ask {how}; its categories are {_some(column.labels)}"
        )
    if sign == "=" and yes_no and (code := _yes_or_no(column, value)) is not None:
        return c, np.arange(column.size) == code
    numbers = () if column.spelled else ranges.get(written, ())  # what files write there are no numbers
    if sign == "=" and column.cuts and (codes := _of_one_value(numbers, value)):
        return c, np.arange(column.size) == codes[0]
    if numbers and not column.cuts and (holds := _compared(numbers, sign, value)) is not None:
        return c, holds
    at, cuts = _position(value), _cuts_written(column)
    if cuts and sign != "=":
        if "-" in value and at is None:
            raise ValueError(
                f"{name!r}: {value!r} is not a number, date or time; a difference has spaces around its minus"
            )
        raise ValueError(
            f"{name!r} parts a bin: {written!r} is known at the cuts {_some(cuts)}; "
            f"ask {quoted}{_nearest_cut(cuts, sign, at)}"
        )
    if cuts and at is not None:
        below = [cut for cut in cuts if (_position(cut) or 0.0) <= at]
        ends = [f"{quoted}>={cut}" for cut in below[-1:]]
        ends += [f"{quoted}<{cut}" for cut in cuts[len(below) : len(below) + 1]]
        raise ValueError(f"{name!r} parts a bin: ask {' & '.join(ends)}")
    if sign != "=" and not column.ordered:
        raise ValueError(f"{name!r}: the categories of {written!r} have no order: ask = or in (...)")
    label_near = suggestion(value.casefold(), [label.casefold() for label in column.labels])
    alike = [label for label in column.labels if label_near and label.casefold() == label_near.split("'")[1]]
    hint = f"; did you mean {alike[0]!r}?" if alike else ""
    raise ValueError(f"column {written!r} has no category {value!r}{hint}: it has {_some(column.labels)}")


def _yes_or_no(column: Column, value: str) -> int | None:
    """Return what a field says of a yes/no column: where files have a spelling of their own, by that."""
    for code, texts in enumerate(column.spelled):
        if value in texts:
            return code
    usual = not column.spelled or value.casefold() in ("false", "true")
    return USUAL.get(value.casefold()) if usual else None


def _of_one_value(numbers: Sequence[Range], value: str) -> tuple[int, bool] | None:
    """Return the bin of one value, if it is no other's, and whether that is so of fractions, too."""
    at = _position(value)
    for code, each in enumerate(numbers):
        if each is not None and each[0] == at is not None:
            if each[1] == at:
                return code, True
            if at == int(at) and each[1] == at + 1 and code < len(numbers) - 1:
                return code, False
    return None


def _if_whole(name: str, domain: Domain, ranges: Ranges) -> str:
    """Say of `children=2` that a bin from 2 to 3 is taken for it; empty: nothing is to be said."""
    parts = _COMPARED.fullmatch(name)
    if domain.find(name) is not None or parts is None or parts[2] != "=":
        return ""
    column, value = parts[1].strip(), parts[3].strip()
    bin_of_value = _of_one_value(ranges.get(column, ()), value)
    if bin_of_value is None or bin_of_value[1]:
        return ""
    after = domain.columns[domain.names.index(column)].cuts[bin_of_value[0]]
    counted = f"{name} counts {value}<={column}<{after}"
    return f"{counted}: the schema does not state that numbers are whole (decimals = 0)"


def _compared(numbers: Sequence[Range], sign: str, value: str) -> Booleans | None:
    """Compare exact numbers with one; None: it is no number, or they are in bins."""
    if any(each is not None and (each[0] is None or each[0] != each[1]) for each in numbers):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    holds = np.array([each is not None and _COMPARING[sign](each[0] or 0.0, number) for each in numbers])
    return holds if sign != "=" or holds.any() else None


def _cuts_written(column: Column) -> list[str]:
    """Return the cuts of a column as they are written, where the labels of its bins tell it."""
    return [
        label.rpartition("<")[2] if "<" in label else str(cut)
        for label, cut in zip(column.labels, column.cuts, strict=False)
    ]


def _nearest_cut(cuts: list[str], sign: str, position: float | None) -> str:
    sign = {">": ">=", "<=": "<"}.get(sign, sign)
    if position is None:
        return sign + cuts[0]
    return sign + min(cuts, key=lambda cut: abs((_position(cut) or 0.0) - position))


def _position(value: str) -> float | None:
    """Return where a number, a date in years or a time in hours lies; None: it is none of them."""
    with suppress(ValueError):
        return float(value)
    if (time := _TIME.fullmatch(value)) is not None:
        return int(time[1]) + int(time[2]) / 60 + int(time[3] or 0) / 3600
    if (date := _DATE.fullmatch(value)) is not None:
        clock = _position(date[4]) if date[4] else 0.0
        days = 31 * int(date[2]) + int(date[3] or 1) - 32 + (clock or 0.0) / 24
        return int(date[1]) + days / 372
    return None


def _number_column(name: str, domain: Domain, ranges: Ranges) -> int:
    c = column_of(name, domain)
    if name not in ranges:
        raise ValueError(
            f"{name!r} holds dates or times, not numbers: ask a share, {name}>=..."
            if domain.columns[c].cuts
            else f"{name!r} holds categories, not numbers: ask the share of one, {name}=..."
        )
    return c


def column_of(name: str, domain: Domain) -> int:
    """Return the number of a column; ValueError: there is none of that name."""
    if name not in domain.names:
        near = suggestion(name, domain.names)
        raise ValueError(f"no column {name!r}{near}: the columns are {_some(domain.names)}")
    return domain.names.index(name)


def _split(text: str, sign: re.Pattern[str]) -> Iterator[str]:
    """Split at a sign outside of parentheses, braces, quotes and backticks."""
    depth, quoted, start, at = 0, "", 0, 0
    while at < len(text):
        letter = text[at]
        if quoted:
            quoted = "" if letter == quoted else quoted
        elif letter in "`\"'":
            quoted = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif depth == 0 and (match := sign.match(text, at)):
            yield text[start:at]
            start = at = match.end()
            continue
        at += 1
    yield text[start:]


def _some(names: Sequence[str], most: int = 12) -> str:
    """List names, but not too many."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
