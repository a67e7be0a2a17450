"""Answers to questions: an estimate, its interval, and how it is known."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import sqrt
from typing import Any

import numpy as np

from queries import Rows, Workload
from queries.arrays import Floats
from queries.expressions import shorten
from smalldb.exact.numbers import Number, as_fraction
from smalldb.inference.bounds_within import below_and_above
from smalldb.inference.cells_asked import AskedCells, told_of
from smalldb.inference.coarser import coarser, otherwise, tables_named, widened
from smalldb.inference.confidence_intervals import Interval, margin, of_difference, of_ratio
from smalldb.inference.least_variance import Sums, least_variance
from smalldb.inference.queries_asked import is_query
from smalldb.inference.questions import OtherKind, Question, Term, read_question
from smalldb.mechanisms.known_pairs import QUIET
from smalldb.mechanisms.measurement_list import Measurements
from smalldb.noise.simulating import Uniforms

LEVELS = Fraction(1, 2), Fraction(999, 1000)
MIDDLES = "numbers count as the middle of their bin"


@dataclass(frozen=True, slots=True)
class Answer:
    """
    What is known of a question; public.

    Attributes
    ----------
    question
        As it was asked.
    known
        "measured": the estimate follows from released numbers, and the interval is that of their noise. "not
        measured": there is no estimate.
    estimate, low, high
        The estimate and the ends of its interval; None: it is not known. Numbers in bins count as the middle
        of their bin.
    level
        The probability that an interval made in this way covers the true value; of this answer alone.
    population
        Whether the true value is that of the population of which the rows are a random sample; otherwise it
        is that of the confidential table.
    of
        The tables and contrasts that were combined, with their groups: those of most of its columns first.
    ends
        Of a mean of bins: between which numbers the mean lies if numbers may lie anywhere in their bins, the
        noise included; otherwise None.
    note
        What else is to be known, or what could be asked instead; empty: nothing.
    assumed
        If it was not measured: the value in the synthetic table, where this is at hand. It rests on the
        assumption that columns which were not measured together are independent, given others.
    within
        If it was not measured: between which numbers it lies at this level, by groups that were measured and
        by rules between columns; None: these tell nothing.
    bound
        If it was not measured and is a query of the release: what the synthetic table is off by at most.
        None: no bound holds for this question.
    """

    question: str
    known: str
    estimate: float | None
    low: float | None
    high: float | None
    level: float
    population: bool
    of: tuple[str, ...] = ()
    ends: tuple[float, float] | None = None
    note: str = ""
    assumed: float | None = None
    bound: float | None = None
    within: tuple[float, float] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return asdict(self)


def ask(
    measurements: Measurements,
    question: str,
    *,
    level: Number = "0.95",
    population: bool = False,
    rows: Rows | None = None,
    bound: float | None = None,
    workload: Workload | None = None,
) -> Answer:
    """
    Answer a question from what was released.

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
    covered = bound is not None and workload is not None and is_query(read, workload)
    return _Asking(measurements, read, chance, population).answer(rows, bound if covered else None)


class _Asking:
    """A question at work: its cells, its sums, and their noise."""

    def __init__(
        self, measurements: Measurements, question: Question, level: Fraction, population: bool
    ) -> None:
        self.measurements, self.question = measurements, question
        self.level, self.population = level, population
        terms, domain = question.terms, measurements.domain
        self.columns = tuple(sorted({c for term in terms for c in term.columns}))
        arrays, self.starts = list[Floats](), list[int]()
        for term in terms:
            self.starts.append(len(arrays))
            low, high = term.binned or (term.numerator, term.numerator)
            rows = np.zeros_like(term.rows) if term.counted else term.rows
            for one in (term.numerator, rows, term.numerator**2 * term.rows, low, high):
                arrays.append(self._over(term, np.asarray(one, dtype=np.float64)))
        shape = [domain.sizes[c] for c in self.columns]
        self.asked, cells = AskedCells.of(
            measurements, self.columns, [np.broadcast_to(one, shape) for one in arrays]
        )
        if len(terms) == 2:
            (x, g, *_), (y, h, *_) = (cells[:, start : start + 5].T for start in self.starts)
            cells = np.column_stack([cells, x * y, x * h, g * y, g * h])
        self.sums: Sums = least_variance(told_of(measurements, self.asked), cells, measurements.n)

    def _over(self, term: Term, array: Floats) -> Floats:
        """Lay an array over the columns of the whole question."""
        sizes = iter(array.shape)
        return array.reshape([next(sizes) if c in term.columns else 1 for c in self.columns])

    def answer(self, rows: Rows | None, bound: float | None) -> Answer:
        """Return what is known."""
        text, level = self.question.text, float(self.level)
        lacking = [
            term
            for term, start in zip(self.question.terms, self.starts, strict=True)
            if not self.sums.known[start : start + 2].all()
        ]
        if lacking:
            notes = [*dict.fromkeys(coarser(self.measurements, term) for term in lacking)]
            wider = [
                widened(self.measurements, term) if term in lacking else term.text
                for term in self.question.terms
            ]
            if None not in wider:
                notes.append(f"ask {' - '.join(map(str, wider))!r}")
            note = "; ".join(notes)
            unknown = Answer(text, "not measured", None, None, None, level, self.population, note=note)
            assumed = None if rows is None else self._assumed(rows)
            return replace(unknown, assumed=assumed, bound=bound, within=self._within())
        of = tables_named(self.measurements, self.sums.used(), self.columns)
        noise = self.sums.noise()
        found = [self._ratio(i, noise) for i in range(len(self.question.terms))]
        if None in found:
            note = "so few rows meet the condition that noise hides them: ask a wider condition"
            return Answer(text, "measured", None, None, None, level, self.population, of, None, note)
        known = [one for one in found if one is not None]
        made = known[0] if len(known) == 1 else self._difference(known, noise)
        low, high = self._limits()
        ends = self._ends(noise) if len(found) == 1 else None
        estimate, least, most = (min(max(value, low), high) for value in made)
        notes = [note for term in self.question.terms if (note := self._gaps(term))]
        if any(term.binned is not None for term in self.question.terms):
            notes.append(MIDDLES)
        if len(found) > 1 and not least <= 0 <= most:
            notes += self._quiet()
        synthetic = None if rows is None else self._assumed(rows)
        if synthetic is not None and not least <= synthetic <= most:
            notes.append(
                f"the synthetic table has {synthetic:.4g}, outside of this interval: trust the interval"
            )
        note = "; ".join(notes)
        return Answer(text, "measured", estimate, least, most, level, self.population, of, ends, note)

    def _gaps(self, term: Term) -> str:
        """Say how many rows have no number, of a mean; empty: all have one."""
        if term.gaps is None:
            return ""
        found = _Asking(self.measurements, Question(term.text, (term.gaps,)), self.level, False)
        share = found.answer(None, None)
        said = "the mean is of the rows with a number"
        if share.estimate is None:
            return said
        return f"{said}; {share.estimate:.1%} ({share.low:.1%} to {share.high:.1%}) have none"

    def _quiet(self) -> list[str]:
        """Say which pairs of columns that the question looks at together are measured and quiet."""
        together = {pair for term in self.question.terms for pair in combinations(term.columns, 2)}
        if not together:
            return []
        names = self.measurements.domain.names
        asked = {(names[a], names[b]) for a, b in together}
        quiet = [
            pair.columns
            for pair in self.measurements.pairs()
            if pair.known == QUIET and pair.columns in asked
        ]
        said = "over all cells, dependence does not stand out of the noise; where there is none, one such "
        said += f"interval in {float(1 / (1 - self.level)):.3g} leaves out 0 by chance"
        return [f"{' and '.join(pair)} are quiet: {said}" for pair in quiet]

    def _within(self) -> tuple[float, float] | None:
        """Return between which numbers the answer lies nevertheless; None: nothing is known of it."""
        level = 1 - (1 - self.level) / len(self.question.terms)  # of each, so that of all it is as stated
        ends = [_term_within(self.measurements, term, level, self.population) for term in self.question.terms]
        low, high = ends[0]
        if len(ends) == 2:
            low, high = low - ends[1][1], high - ends[1][0]
        return None if (low, high) == self._limits() else (low, high)

    def _limits(self) -> tuple[float, float]:
        """Return between which numbers the answer lies, whatever the data."""
        bounds = [term.bounds for term in self.question.terms]
        if len(bounds) == 1:
            return bounds[0]
        return bounds[0][0] - bounds[1][1], bounds[0][1] - bounds[1][0]

    def _pair(self, start: int, numerator: int = 0) -> tuple[float, float]:
        """Return the estimates of a numerator and of its denominator."""
        counted = self.question.terms[self.starts.index(start)].counted
        below = 1.0 if counted else float(self.sums.values[start + 1])
        return float(self.sums.values[start + numerator]), below

    def _ratio(self, i: int, noise: Floats, numerator: int = 0) -> Interval | None:
        """Return the interval of a term; None: its denominator may be 0."""
        start = self.starts[i]
        pair = noise[:, start + numerator], noise[:, start + 1]
        sampling = self._sampling(i) if self.population else None
        return of_ratio(self._pair(start, numerator), pair, self.level, sampling)

    def _sampling(self, i: int) -> Callable[[float], Floats]:
        """Return what sampling adds to numerator - r denominator: a normal number of the variance at r."""
        normal = Uniforms.sampling().normals()
        return lambda r: sqrt(self._sampled(i, r)) * normal

    def _sampled(self, i: int, r: float) -> float:
        """Return the variance of the sum of (x - r) over the rows of a term."""
        start, term = self.starts[i], self.question.terms[i]
        above, below = self._pair(start)
        if term.bounds == (0.0, 1.0) and term.binned is None:
            r = min(max(r, 0.0), 1.0)
            return max(below, 1.0) * r * (1 - r)
        squares = float(self.sums.values[start + 2])
        return max(squares - 2 * r * above + r * r * below, 0.0)

    def _difference(self, found: Sequence[Interval], noise: Floats) -> Interval:
        """Return the interval of the first term less the second."""
        one, other = found
        below = [float(self.sums.values[start + 1]) for start in self.starts]
        influence = [
            (noise[:, start] - part.estimate * noise[:, start + 1]) / rows
            for start, part, rows in zip(self.starts, found, below, strict=True)
        ]
        exact = not any(noise[:, start + 1].any() for start in self.starts)
        if exact and not self.population:
            estimate, reach = one.estimate - other.estimate, margin(influence[0] - influence[1], self.level)
            return Interval(estimate, estimate - reach, estimate + reach)
        variances = [float(part.var()) for part in influence]
        shared = float(np.mean(influence[0] * influence[1]))
        if self.population:
            sampled = [self._sampled(i, part.estimate) for i, part in enumerate((one, other))]
            variances = [a + b / c**2 for a, b, c in zip(variances, sampled, below, strict=True)]
            shared += self._sampled_together(one.estimate, other.estimate, sampled) / (below[0] * below[1])
        most = sqrt(variances[0] * variances[1])
        return of_difference(one, other, 0.0 if most == 0 else min(max(shared / most, -1.0), 1.0))

    def _sampled_together(self, r: float, s: float, apart: Sequence[float]) -> float:
        """
        Return the covariance, by sampling, of both terms' sums of x - r over their rows.

        It is a sum over rows that count in both; if these were not measured, it is taken as low as it can be.
        """
        if not self.sums.known[-4:].all():
            return -sqrt(apart[0] * apart[1])
        both, first, second, rows = self.sums.values[-4:].tolist()
        return float(both - s * first - r * second + r * s * rows)

    def _ends(self, noise: Floats) -> tuple[float, float] | None:
        """Return between which numbers a mean of bins lies, wherever in its bin each number is."""
        (term,) = self.question.terms
        if term.binned is None or not self.sums.known[3:5].all():
            return None
        low, high = (self._ratio(0, noise, numerator) for numerator in (3, 4))
        if low is None or high is None:
            return None
        return max(low.low, term.bounds[0]), min(high.high, term.bounds[1])

    def _assumed(self, rows: Rows) -> float | None:
        """Return the answer of the synthetic table; None: no row of it meets a condition."""
        codes, values = rows.codes(), []
        for term in self.question.terms:
            if term.counted:
                return None
            at = tuple(codes[:, c] for c in term.columns)
            below = float(rows.counts @ term.rows[at])
            if below == 0:
                return None
            values.append(float(rows.counts @ (term.numerator * term.rows)[at]) / below)
        return values[0] - sum(values[1:])


def _term_within(
    measurements: Measurements, term: Term, level: Fraction, population: bool
) -> tuple[float, float]:
    """Return between which numbers a term lies: all that is known of it, at this level together."""

    def asked(one: Term) -> _Asking:
        return _Asking(measurements, Question(one.text, (one,)), level, population)

    tables = [(asked(term),) * 2]
    if not tables[0][0].sums.known[:2].all():
        bounded = ((asked(low), asked(high)) for low, high in below_and_above(measurements, term))
        tables = [both for both in bounded if all(one.sums.known[:2].all() for one in both)]
    low, high = term.bounds
    for both in tables:
        for one in both:
            one.level = 1 - (1 - level) / len(tables)
        below, above = (one.answer(None, None) for one in both)
        low = low if below.low is None else max(low, below.low)
        high = high if above.high is None else min(high, above.high)
    return (low, high) if low <= high else term.bounds
