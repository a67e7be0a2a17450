"""Answers to questions: an estimate, its interval, and how it is known."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import ceil, floor, sqrt
from typing import Any

import numpy as np

from queries import Rows, Workload
from queries.arrays import Booleans, Floats
from queries.expressions import shorten
from smalldb.exact.numbers import Number, as_fraction, number_told
from smalldb.inference.cells_asked import AskedCells, told_of
from smalldb.inference.coarser import coarser, otherwise, queries_of, tables_named, widened
from smalldb.inference.confidence_intervals import Interval, margin, of_difference, of_ratio
from smalldb.inference.known_limits import limits
from smalldb.inference.least_variance import Sums, least_variance
from smalldb.inference.means_of_bins import inside_bins, simulated
from smalldb.inference.questions import OtherKind, Question, Term, read_question
from smalldb.mechanisms.measurement_list import Measurements, Weighed
from smalldb.noise.simulating import Uniforms, binomials

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
        found = {**asdict(self), "of": "; ".join(self.of), "within_low": low, "within_high": high}
        del found["within"]
        return found


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
    if read.quantile is not None:
        return _quantile(_Asking(measurements, read, chance, population), read.quantile)
    count = None if bound is None or workload is None else queries_of(read, workload)
    known = None if bound is None or count is None or count * bound >= 1 else count * bound
    answer = _Asking(measurements, read, chance, population).answer(rows, known)
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
    own = [name.removeprefix(f"{child}.") for name in walks.domain.names[width:]]
    of_parents, of_walks = question, question
    for table, names, kept in ((unit, parents.domain.names, 0), (child, own, width)):
        for name, other in zip(names, walks.domain.names[kept:], strict=False):
            named = re.compile(rf"(?<![\w.]){re.escape(f'{table}.{name}')}(?![\w.])")
            of_parents = named.sub(name.replace("\\", r"\\"), of_parents)
            of_walks = named.sub(other.replace("\\", r"\\"), of_walks)
    how: dict[str, Any] = {"level": level, "population": population}
    try:
        read = read_question(of_walks, walks.domain, walks.ranges)
        children = any(c >= width for term in read.terms for c in term.columns)
    except OtherKind as error:
        children = any(c >= width for c in error.columns)
    except ValueError:
        with suppress(ValueError):
            return ask(parents, of_parents, rows=None if rows is None else rows[unit], **how)
        children = True
    if not children:
        return ask(parents, of_parents, rows=None if rows is None else rows[unit], **how)
    if population:
        raise ValueError(f"rows of {child} of one parent are not a random sample: ask for the table alone")
    return ask(walks, of_walks, rows=None if rows is None else rows[child], **how)


class _Asking:
    """A question at work: its cells, its sums, and their noise."""

    def __init__(
        self,
        measurements: Measurements,
        question: Question,
        level: Fraction,
        population: bool,
        assuming: bool = False,  # that bins have the same mean in all groups
        every: bool = True,  # child counts; else those of a large family as walks are weighed
    ) -> None:
        self.asked_for, self.assuming = question, assuming
        self.inside = [inside_bins(measurements, term, assuming) for term in question.terms]
        terms = [
            term if own is None else own.counting(term)
            for term, own in zip(question.terms, self.inside, strict=True)
        ]
        self.measurements, self.question = measurements, replace(question, terms=tuple(terms))
        self.level, self.population = level, population
        domain = measurements.domain
        weighed, self.every, counted = measurements.weighed, every, set[int]()
        factor = np.ones(1)
        if weighed is not None:
            factor = weighed.rows_in(domain.sizes[weighed.column], every)
            counted = {weighed.column} if np.ptp(factor) else counted
        self.columns = tuple(sorted({c for term in terms for c in term.columns} | counted))
        if counted:
            factor = factor.reshape([-1 if c in counted else 1 for c in self.columns])
        elif weighed is not None:
            factor = factor[:1]
        sides = [term.binned or (term.numerator, term.numerator) for term in terms]
        binned = any(term.binned is not None for term in terms)
        # a difference is least where the second term is most
        ends = [(0, 1), (1, 0)] if binned else [(0,) * len(terms)]
        arrays = [self._over(term, term.rows & (not term.counted)) for term in terms]
        arrays += [self._over(term, term.numerator) for term in terms]
        self.starts = list[int]()  # of each end, and of its products
        for end in ends:
            self.starts.append(len(arrays))
            for term, own, side in zip(terms, sides, end, strict=False):
                squares = own[side] ** 2 if term.spread is None else own[side] ** 2 + term.spread
                arrays += [self._over(term, one) for one in (own[side], squares * term.rows)]
        shape = [domain.sizes[c] for c in self.columns]
        self.arrays = [np.broadcast_to(one * factor, shape) for one in arrays]
        self.asked, cells = AskedCells.of(measurements, self.columns, self.arrays)
        if len(terms) == 2:
            g, h = cells[:, 0], cells[:, 1]
            for start in self.starts:
                x, y = cells[:, start], cells[:, start + 2]
                cells = np.column_stack([cells, x * y, x * h, g * y, g * h])
        self.products = len(arrays)
        self.sums: Sums = least_variance(told_of(measurements, self.asked), cells, measurements.n)
        self.values = self.sums.values.copy()
        for i, inside in enumerate(self.inside):
            if inside is not None:
                axes = tuple(a for a, c in enumerate(terms[i].columns) if c != terms[i].of)
                added, of_squares, guessed = inside.shifts(
                    terms[i].numerator.sum(axes) / np.maximum(terms[i].rows.sum(axes), 1)
                )
                self.values[self._numerators(i)] += added
                self.values[[at + 1 for at in self._numerators(i)]] += of_squares
                self.values[len(terms) + i] += guessed

    def _numerators(self, i: int) -> list[int]:
        """Return where the sums of a term's numbers stand, by each end."""
        return [start + 2 * i for start in self.starts]

    def noise(self) -> Floats:
        """Return the noise of all sums, simulated: shape (DRAWS, sums)."""
        noise = self.sums.noise()
        if any(own is not None for own in self.inside):
            noise, added = noise.copy(), simulated(self.inside)
            for i in range(len(self.inside)):
                noise[:, self._numerators(i)] += added[:, [i]]
        return noise

    def _over(self, term: Term, array: Floats | Booleans) -> Floats:
        """Lay an array over the columns of the whole question."""
        sizes = iter(array.shape)
        return np.asarray(array, dtype=np.float64).reshape(
            [next(sizes) if c in term.columns else 1 for c in self.columns]
        )

    def answer(self, rows: Rows | None, bound: float | None) -> Answer:
        """Return what is known."""
        text, level = self.question.text, float(self.level)
        lacking = self.lacking()
        if lacking:
            notes = [*dict.fromkeys(coarser(self.measurements, term) for term in lacking)]
            wider = [
                widened(self.measurements, term) if term in lacking else term.text
                for term in self.question.terms
            ]
            if None not in wider:
                notes.append(f"ask {' - '.join(map(str, wider))!r}")
            if self.measurements.weighed is not None and self.every:
                notes = [self._weighed(self.measurements.weighed) or "; ".join(notes)]
            note = "; ".join(notes)
            unknown = Answer(text, "not measured", None, None, None, level, self.population, note=note)
            assumed = None if rows is None else self._assumed(rows)
            return replace(unknown, assumed=assumed, bound=bound, within=self._within())
        of = tables_named(self.measurements, self.sums.used(), self.columns)
        noise = self.noise()
        found = [made for start in self.starts if (made := self._interval(start, noise)) is not None]
        if len(found) < len(self.starts):
            few = Answer(text, "measured", None, None, None, level, self.population, of, None, FEW_ROWS)
            return replace(few, within=self.known() if len(self.question.terms) == 1 else None)
        limits = self._limits()
        least, most = (min(max(end, limits[0]), limits[1]) for end in (found[0].low, found[-1].high))
        estimate = min(max(found[0].estimate, limits[0]), limits[1])
        notes = [note for term in self.question.terms for note in (self._gaps(term), term.note) if note]
        if self.measurements.weighed is not None and self.every:
            column, _, cap = self.measurements.weighed
            told = max(self.measurements.domain.sizes[column] - 1, cap)
            notes.append(f"more than {told} of a parent count as {told} together")
        if len(self.question.terms) > 1 and not least <= 0 <= most:
            notes += self._quiet()
        synthetic = None if rows is None or len(found) > 1 else self._assumed(rows)
        if synthetic is not None and not least <= synthetic <= most:
            notes.append(
                f"the synthetic table has {number_told(synthetic, (least, most))}, outside this interval"
            )
        if self.question.terms[0].counted and self.question.terms[0].of is None:  # rows are whole
            estimate = float(round(estimate))
            least, most = min(ceil(least - WHOLE), estimate), max(floor(most + WHOLE), estimate)
        answer = Answer(text, "measured", estimate, float(least), float(most), level, self.population, of)
        if len(found) > 1:
            guess = min(max(self._guess(), limits[0]), limits[1])
            if all(
                term.binned is None or own for term, own in zip(self.question.terms, self.inside, strict=True)
            ):
                answer = replace(answer, estimate=min(max(guess, float(least)), float(most)))
            else:  # numbers may lie anywhere in their bins
                answer = self._guessed(replace(answer, estimate=None, guess=guess))
                notes.append(MIDDLE if answer.guess_low is None else SAME)
        return replace(answer, note="; ".join(notes))

    def _guessed(self, answer: Answer) -> Answer:
        """Add what the answer is if bins have the same mean in all groups, where that is known."""
        same = _Asking(
            self.measurements, self.asked_for, self.level, self.population, assuming=True, every=self.every
        )
        if self.assuming or same.lacking() or (made := same.answer(None, None)).estimate is None:
            return answer
        return replace(answer, guess=made.estimate, guess_low=made.low, guess_high=made.high)

    def _weighed(self, how: Weighed) -> str:
        """Say what is known where children of large families count as fewer; empty: nothing is."""
        capped = _Asking(self.measurements, self.asked_for, self.level, False, every=False)
        found = None if capped.lacking() else capped.answer(None, None)
        if found is None or found.low is None or found.high is None:
            return ""
        number = self.measurements.domain.names[how.column]
        ends = found.low, found.high
        estimate, low, high = (number_told(value, ends) for value in (found.estimate, *ends))
        estimate += ", " * bool(estimate)
        return (
            f"{number} was not measured with these columns; if all of a parent with more than {how.cap} "
            f"count as {how.cap} together, the answer is {estimate}from {low} to {high}"
        )

    def lacking(self) -> list[Term]:
        """Return the terms that are not known."""
        return [
            term
            for i, term in enumerate(self.question.terms)
            if not self.sums.known[[i, *(start + 2 * i for start in self.starts)]].all()
        ]

    def _gaps(self, term: Term) -> str:
        """Say how many rows have no number, of a mean; empty: all have one."""
        if term.gaps is None:
            return ""
        found = _Asking(
            self.measurements, Question(term.text, (term.gaps,)), self.level, False, every=self.every
        )
        share = found.answer(None, None)
        said = "this is for the rows with a number"
        if share.estimate is None:
            return said
        return f"{said}; {share.estimate:.1%} ({share.low:.1%} to {share.high:.1%}) have none"

    def _quiet(self) -> list[str]:
        """Say of which pairs of columns that the question looks at together dependence was not seen."""
        together = {pair for term in self.question.terms for pair in combinations(term.columns, 2)}
        if not together:
            return []
        names = self.measurements.domain.names
        asked = {(names[a], names[b]) for a, b in together}
        chance = f"where there is none, one such interval in {float(1 / (1 - self.level)):.3g} leaves out 0"
        return [
            f"{' and '.join(pair.columns)}, over all cells: {pair.told}; {chance}"
            for pair in self.measurements.pairs()
            if pair.quiet and pair.columns in asked
        ]

    def known(self) -> tuple[float, float] | None:
        """Return between which numbers one term lies, by what was measured of its columns; None: nothing."""
        if any(self.inside):  # the arrays are not the ends of bins
            return None
        below, least, most = (self.arrays[at] for at in (0, self.starts[0], self.starts[-1]))
        bounds, how = self.question.terms[0].bounds, (self.level, self.population)
        found = limits(self.measurements, self.columns, below, least, most, bounds, *how)
        return None if found == bounds else found

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

    def _rows(self, i: int) -> float:
        """Return how many rows a term divides by."""
        return 1.0 if self.question.terms[i].counted else float(self.values[i])

    def _guess(self) -> float:
        """Return the answer if each number were the middle of its bin."""
        terms = range(len(self.question.terms))
        middles = [float(self.values[len(terms) + i]) / self._rows(i) for i in terms]
        return middles[0] - sum(middles[1:])

    def _interval(self, start: int, noise: Floats) -> Interval | None:
        """Return the interval of one end; None: a denominator may be 0."""
        parts = list[Interval]()
        for i in range(len(self.question.terms)):
            made = self.ratio(i, start + 2 * i, noise)
            if made is None:
                return None
            parts.append(made)
        return parts[0] if len(parts) == 1 else self._difference(start, parts, noise)

    def ratio(self, i: int, own: int, noise: Floats) -> Interval | None:
        """Return the interval of a term; None: its denominator may be 0."""
        sampling = self._sampling(i, own) if self.population else None
        sums = float(self.values[own]), self._rows(i)
        return of_ratio(sums, (noise[:, own], noise[:, i]), self.level, sampling)

    def _sampling(self, i: int, own: int) -> Callable[[float], Floats]:
        """Return what sampling adds to numerator - r denominator; exactly of a share."""
        if self._is_share(i):
            rows, uniform = max(1, round(self._rows(i))), Uniforms.sampling().numbers()

            def binomial(r: float) -> Floats:
                chance = min(max(r, 0.0), 1.0)
                return binomials(uniform, rows, chance) - rows * chance

            return binomial
        normal = Uniforms.sampling().normals()
        return lambda r: sqrt(self._sampled(i, own, r)) * normal

    def _is_share(self, i: int) -> bool:
        term = self.question.terms[i]
        return term.bounds == (0.0, 1.0) and term.binned is None

    def _sampled(self, i: int, own: int, r: float) -> float:
        """Return the variance of the sum of (x - r) over the rows of a term."""
        below = self._rows(i)
        if self._is_share(i):
            r = min(max(r, 0.0), 1.0)
            return max(below, 1.0) * r * (1 - r)
        above, squares = self.values[own : own + 2].tolist()
        return float(max(squares - 2 * r * above + r * r * below, 0.0))

    def _difference(self, start: int, parts: Sequence[Interval], noise: Floats) -> Interval:
        """Return the interval of the first term less the second."""
        one, other = parts
        below = [self._rows(i) for i in (0, 1)]
        influence = [(noise[:, start + 2 * i] - parts[i].estimate * noise[:, i]) / below[i] for i in (0, 1)]
        apart = influence[0] - influence[1]
        if not noise[:, :2].any() and not self.population:
            estimate, reach = one.estimate - other.estimate, margin(apart, self.level)
            return Interval(estimate, estimate - reach, estimate + reach)
        variances = [float(part.var()) for part in influence]
        shared = float(np.mean(influence[0] * influence[1]))
        if self.population:
            sampled = [self._sampled(i, start + 2 * i, parts[i].estimate) for i in (0, 1)]
            added = [b / c**2 for b, c in zip(sampled, below, strict=True)]
            together = self._sampled_together(start, one.estimate, other.estimate, sampled)
            together /= below[0] * below[1]
            variances, shared = [a + b for a, b in zip(variances, added, strict=True)], shared + together
            apart = apart + sqrt(max(sum(added) - 2 * together, 0.0)) * Uniforms.sampling().normals()
        most = sqrt(variances[0] * variances[1])
        found = of_difference(one, other, 0.0 if most == 0 else min(max(shared / most, -1.0), 1.0))
        # noise small beside one row is nothing like a normal number, and a row changes what it is divided by
        reach = margin(apart, self.level) * (1 + 1 / max(min(below), 1.0)) ** 2
        return Interval(
            found.estimate, min(found.low, found.estimate - reach), max(found.high, found.estimate + reach)
        )

    def _sampled_together(self, start: int, r: float, s: float, apart: Sequence[float]) -> float:
        """Return the covariance, by sampling, of both terms' sums of x - r over their rows.

        It is a sum over rows that count in both; if these were not measured, it is taken as low as it can be.
        """
        at = self.products + 4 * self.starts.index(start)
        if not self.sums.known[at : at + 4].all():
            return -sqrt(apart[0] * apart[1])
        both, first, second, rows = self.sums.values[at : at + 4].tolist()
        return float(both - s * first - r * second + r * s * rows)

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


def _quantile(asking: _Asking, share: Fraction) -> Answer:
    """Return the bins in which a quantile lies: those that no interval of the share below them rules out."""
    measurements, terms, text = asking.measurements, asking.question.terms, asking.question.text
    first, level = terms[0], float(asking.level)
    if asking.lacking():
        note = coarser(measurements, first)
        return Answer(text, "not measured", None, None, None, level, asking.population, note=note)
    of, noise = tables_named(measurements, asking.sums.used(), asking.columns), asking.noise()
    known = Answer(text, "measured", None, None, None, level, asking.population, of)
    shares = [asking.ratio(i, asking.starts[0] + 2 * i, noise) for i in range(len(terms))]
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
    notes = [note for note in (asking._gaps(first), first.note) if note]
    if least is None or most is None:
        return replace(known, low=least, high=most, note="; ".join([*notes, "an outer bin has no end"]))
    if bins[at][0] == bins[at][1]:
        return replace(known, estimate=bins[at][0], low=least, high=most, note="; ".join(notes))
    start, end = bins[at]
    part = min(max((float(share) - below[at]) / max(below[at + 1] - below[at], 1e-9), 0.0), 1.0)
    guess = None if start is None or end is None else start + part * (end - start)
    notes.append("the guess assumes that rows are spread evenly over a bin")
    return replace(known, low=least, high=most, guess=guess, note="; ".join(notes))


def _term_within(
    measurements: Measurements, term: Term, level: Fraction, population: bool
) -> tuple[float, float]:
    """Return between which numbers a term lies: all that is known of it, at this level together."""
    asking = _Asking(measurements, Question(term.text, (term,)), level, population)
    if asking.lacking():
        found = asking.known()
    else:
        answer = asking.answer(None, None)
        found = answer.within
        if answer.low is not None and answer.high is not None:
            found = answer.low, answer.high
    return term.bounds if found is None else found
