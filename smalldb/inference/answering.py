"""Answers to questions: an estimate, its interval, and how it is known."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import combinations
from math import ceil, floor
from typing import Any

from queries import Rows, Workload
from queries.expressions import shorten
from smalldb.exact.numbers import Number, as_fraction, number_told
from smalldb.inference.coarser import coarser, otherwise, queries_of, tables_named, widened
from smalldb.inference.question_sums import QuestionSums
from smalldb.inference.questions import OtherKind, Question, Term, read_question
from smalldb.mechanisms.measurement_list import Measurements, Weighed

LEVELS = Fraction(1, 2), Fraction(999, 1000)
WHOLE = 1e-6  # more than what rounding takes from a number of rows
FEW_ROWS = "so few rows meet the condition that noise hides them: use a wider condition"
MIDDLE = "the guess assumes that numbers are in the middle of their bins"
SAME = "the guess assumes the same mean of a bin in every group"


@dataclass(frozen=True, slots=True)
class Answer:
    """What is known of a question; public.

    Attributes
    ----------
    question
        As it was asked.
    known
        "measured": the estimate follows from released numbers, and the interval is that of their noise. "not
        measured": there is no estimate.
    estimate, low, high
        The estimate and the ends of its interval; None: it is not known. A mean of numbers in bins has an
        estimate where it was measured where they lie in their bins; otherwise it has none, and its interval
        holds wherever they do. A quantile lies from the least number to the largest of the bins of its
        interval.
    level
        The probability that an interval made in this way covers the true value; of this answer alone.
    population
        Whether the true value is that of the population of which the rows are a random sample; otherwise it
        is that of the confidential table.
    of
        The tables and contrasts that were combined, with their groups: those of most of its columns first.
    guess
        Of a mean of numbers in bins without an estimate: what it would be under the assumption that `note`
        names; otherwise None.
    guess_low, guess_high
        The ends of the interval of the guess under that assumption; None: no level holds for it.
    note
        What else is to be known, or what could be asked instead; empty: nothing.
    assumed
        If it was not measured: the value in the synthetic table, where this is at hand. It rests on the
        assumption that columns which were not measured together are independent, given others.
    within
        If it was not measured, or noise hides its condition: between which numbers it lies at this level, by
        all that was measured of its columns and by rules; None: these tell nothing.
    bound
        If it was not measured and is a query of the release, or a sum of some: what the synthetic table is
        off by at most. None: no bound holds for this question.
    """

    question: str
    known: str
    estimate: float | None
    low: float | None
    high: float | None
    level: float
    population: bool
    of: tuple[str, ...] = ()
    guess: float | None = None
    note: str = ""
    assumed: float | None = None
    bound: float | None = None
    within: tuple[float, float] | None = None
    guess_low: float | None = None
    guess_high: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return asdict(self)

    def flat(self) -> dict[str, Any]:
        """Return it as a row of a table."""
        low, high = self.within or (None, None)
        entry = {**asdict(self), "of": "; ".join(self.of), "within_low": low, "within_high": high}
        del entry["within"]
        return entry


FROM_START = "its value in the synthetic table is from the start (public), not from these data: {}"


def ask(
    measurements: Measurements,
    question: str,
    *,
    level: Number = "0.95",
    population: bool = False,
    rows: Rows | None = None,
    bound: float | None = None,
    workload: Workload | None = None,
    start: str | None = None,
) -> Answer:
    """Answer a question from what was released.

    Parameters
    ----------
    measurements
        Of a release: `Release.measurements`, or `Measurements.read` of a file.
    question
        As `smalldb.inference.questions.read_question` has it: ``"death | age>=80"``.
    level
        The probability that the interval covers, from 0.5 to 0.999.
    population
        Whether sampling counts, too.
    rows
        The synthetic table, for what was not measured, and for a warning where it contradicts an interval.
    bound, workload
        What its queries are off by at most, and which these are.
    start
        What the public table is that `rows` were made from; None: they were not.

    Raises
    ------
    TypeError, ValueError
        The question cannot be read, names what is not there, or cannot be met: in one line.
    """
    chance = as_fraction(level, "level")
    if not LEVELS[0] <= chance <= LEVELS[1]:
        raise ValueError("level must be from 0.5 to 0.999: 0.95 is usual")
    try:
        read = read_question(question, measurements.domain, measurements.ranges)
    except OtherKind as error:
        raise ValueError(f"{error}; {otherwise(measurements, error.columns)}") from error
    if population and any(term.counted for term in read.terms):
        raise ValueError(f"question {shorten(question)!r}: a population has no count: ask a share")
    sums = QuestionSums(measurements, read, chance, population)
    if read.quantile is not None:
        return _quantile(sums, read.quantile)
    count = None if bound is None or workload is None else queries_of(read, workload)
    known = None if bound is None or count is None or count * bound >= 1 else count * bound
    answer = _answer(sums, rows, known)
    if start is None or answer.assumed is None:
        return answer
    return replace(answer, note="; ".join(filter(None, [answer.note, FROM_START.format(start)])))


def ask_related(
    tables: Mapping[str, Measurements],
    question: str,
    *,
    level: Number = "0.95",
    population: bool = False,
    rows: Mapping[str, Rows] | None = None,
) -> Answer:
    """Answer a question about related tables, as `ask`: about children if it names a column of theirs."""
    (unit, parents), (child, walks) = tables.items()
    width = len(parents.domain.names)
    of_children = [name.removeprefix(f"{child}.") for name in walks.domain.names[width:]]
    of_parents, of_walks = question, question
    for table, names, start in ((unit, parents.domain.names, 0), (child, of_children, width)):
        for name, other in zip(names, walks.domain.names[start:], strict=False):
            named = re.compile(rf"(?<![\w.]){re.escape(f'{table}.{name}')}(?![\w.])")
            of_parents = named.sub(name.replace("\\", r"\\"), of_parents)
            of_walks = named.sub(other.replace("\\", r"\\"), of_walks)
    drawn = rows or {}
    ask_parents = partial(ask, parents, of_parents, rows=drawn.get(unit), level=level, population=population)
    try:
        read = read_question(of_walks, walks.domain, walks.ranges)
        children = any(c >= width for term in read.terms for c in term.columns)
    except OtherKind as error:
        children = any(c >= width for c in error.columns)
    except ValueError:
        with suppress(ValueError):
            return ask_parents()
        children = True
    if not children:
        return ask_parents()
    if population:
        raise ValueError(f"rows of {child} of one parent are not a random sample: ask for the table alone")
    return ask(walks, of_walks, rows=drawn.get(child), level=level)


def _blank(sums: QuestionSums) -> Answer:
    """Return an answer without an estimate: how it is known."""
    text, level, population = sums.question.text, float(sums.level), sums.population
    if sums.lacking():
        return Answer(text, "not measured", None, None, None, level, population)
    of = tables_named(sums.measurements, sums.sums.used(), sums.columns)
    return Answer(text, "measured", None, None, None, level, population, of)


def _answer(sums: QuestionSums, rows: Rows | None, bound: float | None) -> Answer:
    """Return what is known of one or two terms."""
    question, measurements = sums.question, sums.measurements
    if sums.lacking():
        note = "; ".join(_notes_on_lacking(sums))
        assumed = None if rows is None else _in_table(question.terms, rows)
        return replace(_blank(sums), note=note, assumed=assumed, bound=bound, within=_within(sums))
    answer, noise = _blank(sums), sums.noise()
    intervals = [interval for start in sums.starts if (interval := sums.interval(start, noise)) is not None]
    if len(intervals) < len(sums.starts):
        within = sums.known_limits() if len(question.terms) == 1 else None
        return replace(answer, note=FEW_ROWS, within=within)
    limits = sums.limits()
    least, most = (min(max(end, limits[0]), limits[1]) for end in (intervals[0].low, intervals[-1].high))
    estimate = min(max(intervals[0].estimate, limits[0]), limits[1])
    notes = [note for term in question.terms for note in (_gaps(sums, term), term.note) if note]
    if measurements.weighed is not None and sums.every:
        column, _, cap = measurements.weighed
        together = max(measurements.domain.sizes[column] - 1, cap)
        notes.append(f"more than {together} of a parent count as {together} together")
    if len(question.terms) > 1 and not least <= 0 <= most:
        notes += _quiet(sums)
    synthetic = None if rows is None or len(intervals) > 1 else _in_table(question.terms, rows)
    if synthetic is not None and not least <= synthetic <= most:
        notes.append(
            f"the synthetic table has {number_told(synthetic, (least, most))}, outside this interval"
        )
    if question.terms[0].counted and question.terms[0].of is None:  # rows are whole
        estimate = float(round(estimate))
        least, most = min(ceil(least - WHOLE), estimate), max(floor(most + WHOLE), estimate)
    answer = replace(answer, estimate=estimate, low=float(least), high=float(most))
    if len(intervals) > 1:
        guess = min(max(sums.guess(), limits[0]), limits[1])
        if all(term.binned is None or bins for term, bins in zip(question.terms, sums.inside, strict=True)):
            answer = replace(answer, estimate=min(max(guess, float(least)), float(most)))
        else:  # numbers may lie anywhere in their bins
            answer = _guessed(sums, replace(answer, estimate=None, guess=guess))
            notes.append(MIDDLE if answer.guess_low is None else SAME)
    return replace(answer, note="; ".join(notes))


def _notes_on_lacking(sums: QuestionSums) -> list[str]:
    """Say what was measured of terms that are not known, and what could be asked instead."""
    lacking, weighed = sums.lacking(), sums.measurements.weighed
    if weighed is not None and sums.every and (capped := _weighed(sums, weighed)):
        return [capped]
    notes = [*dict.fromkeys(coarser(sums.measurements, term) for term in lacking)]
    wider = [
        widened(sums.measurements, term) if term in lacking else term.text for term in sums.question.terms
    ]
    return notes if None in wider else [*notes, f"ask {' - '.join(map(str, wider))!r}"]


def _guessed(sums: QuestionSums, answer: Answer) -> Answer:
    """Add what the answer is if bins have the same mean in all groups, where that is known."""
    if sums.assuming or (same := sums.again(assuming=True)).lacking():
        return answer
    guess = _answer(same, None, None)
    if guess.estimate is None:
        return answer
    return replace(answer, guess=guess.estimate, guess_low=guess.low, guess_high=guess.high)


def _weighed(sums: QuestionSums, how: Weighed) -> str:
    """Say what is known where children of large families count as fewer; empty: nothing is."""
    capped = sums.again(population=False, every=False)
    known = None if capped.lacking() else _answer(capped, None, None)
    if known is None or known.low is None or known.high is None:
        return ""
    number = sums.measurements.domain.names[how.column]
    ends = known.low, known.high
    estimate, low, high = (number_told(value, ends) for value in (known.estimate, *ends))
    estimate += ", " * bool(estimate)
    return (
        f"{number} was not measured with these columns; if all of a parent with more than {how.cap} "
        f"count as {how.cap} together, the answer is {estimate}from {low} to {high}"
    )


def _gaps(sums: QuestionSums, term: Term) -> str:
    """Say how many rows have no number, of a mean; empty: all have one."""
    if term.gaps is None:
        return ""
    share = _answer(sums.again(Question(term.text, (term.gaps,)), population=False), None, None)
    text = "this is for the rows with a number"
    if share.estimate is None:
        return text
    return f"{text}; {share.estimate:.1%} ({share.low:.1%} to {share.high:.1%}) have none"


def _quiet(sums: QuestionSums) -> list[str]:
    """Say of which pairs of columns that the question looks at together dependence was not seen."""
    names = sums.measurements.domain.names
    together = {
        (names[a], names[b]) for term in sums.question.terms for a, b in combinations(term.columns, 2)
    }
    if not together:
        return []
    chance = f"where there is none, one such interval in {float(1 / (1 - sums.level)):.3g} leaves out 0"
    return [
        f"{' and '.join(pair.columns)}, over all cells: {pair.told}; {chance}"
        for pair in sums.measurements.pairs()
        if pair.quiet and pair.columns in together
    ]


def _within(sums: QuestionSums) -> tuple[float, float] | None:
    """Return between which numbers the answer lies nevertheless; None: nothing is known of it."""
    terms = sums.question.terms
    level = 1 - (1 - sums.level) / len(terms)  # of each, so that of all it is as stated
    ends = [_term_within(sums.again(Question(term.text, (term,)), level=level)) for term in terms]
    low, high = ends[0]
    if len(ends) == 2:
        low, high = low - ends[1][1], high - ends[1][0]
    return None if (low, high) == sums.limits() else (low, high)


def _term_within(sums: QuestionSums) -> tuple[float, float]:
    """Return between which numbers one term lies: all that is known of it, at this level together."""
    if sums.lacking():
        ends = sums.known_limits()
    else:
        answer = _answer(sums, None, None)
        ends = answer.within
        if answer.low is not None and answer.high is not None:
            ends = answer.low, answer.high
    return sums.question.terms[0].bounds if ends is None else ends


def _in_table(terms: Sequence[Term], rows: Rows) -> float | None:
    """Return the answer of the synthetic table; None: no row of it meets a condition."""
    codes, values = rows.codes(), []
    for term in terms:
        if term.counted:
            return None
        at = tuple(codes[:, c] for c in term.columns)
        below = float(rows.counts @ term.rows[at])
        if below == 0:
            return None
        values.append(float(rows.counts @ (term.numerator * term.rows)[at]) / below)
    return values[0] - sum(values[1:])


def _quantile(sums: QuestionSums, share: Fraction) -> Answer:
    """Return the bins in which a quantile lies: those that no interval of the share below them rules out."""
    measurements, terms, known = sums.measurements, sums.question.terms, _blank(sums)
    first = terms[0]
    if sums.lacking():
        return replace(known, note=coarser(measurements, first))
    noise = sums.noise()
    shares = [sums.ratio(i, sums.starts[0], noise) for i in range(len(terms))]
    assert first.of is not None
    bins = [each for each in measurements.ranges[measurements.domain.names[first.of]] if each is not None]
    low = high = 0
    while low < len(shares) and (one := shares[low]) is not None and one.high < share:
        low += 1
    while high < len(shares) and (one := shares[-1 - high]) is not None and one.low > share:
        high += 1
    least, most = bins[low][0], bins[len(bins) - 1 - high][1]
    if None in shares:
        return replace(known, note=FEW_ROWS)
    below = [0.0, *(one.estimate for one in shares if one is not None), 1.0]
    at = max(k for k in range(len(bins)) if k == 0 or below[k] <= share)
    notes = [note for note in (_gaps(sums, first), first.note) if note]
    if least is None or most is None:
        return replace(known, low=least, high=most, note="; ".join([*notes, "an outer bin has no end"]))
    if bins[at][0] == bins[at][1]:
        return replace(known, estimate=bins[at][0], low=least, high=most, note="; ".join(notes))
    start, end = bins[at]
    part = min(max((float(share) - below[at]) / max(below[at + 1] - below[at], 1e-9), 0.0), 1.0)
    guess = None if start is None or end is None else start + part * (end - start)
    notes.append("the guess assumes that rows are spread evenly over a bin")
    return replace(known, low=least, high=most, guess=guess, note="; ".join(notes))
