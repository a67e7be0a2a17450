"""The sums that a question is made of: their estimates, their noise, and the intervals of their ratios."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np

from queries.arrays import Booleans, Floats
from smalldb.inference.confidence_intervals import Interval, margin, of_difference, of_ratio
from smalldb.inference.evidence import QuestionCells, evidence_of
from smalldb.inference.known_limits import limits
from smalldb.inference.least_variance import Sums, least_variance
from smalldb.inference.means_of_bins import inside_bins, simulated
from smalldb.inference.questions import Question, Term
from smalldb.mechanisms.measurement_list import Measurements
from smalldb.noise.simulating import Uniforms, binomials


class QuestionSums:
    """The sums of a question over the cells of its columns, as they follow from what was measured."""

    def __init__(
        self,
        measurements: Measurements,
        question: Question,
        level: Fraction,
        population: bool,
        assuming: bool = False,  # that bins have the same mean in all groups
        every: bool = True,  # child counts; else those of a large family as walks are weighed
    ) -> None:
        self.measurements, self.original = measurements, question
        self.level, self.population, self.assuming, self.every = level, population, assuming, every
        self.inside = [inside_bins(measurements, term, assuming) for term in question.terms]
        terms = [
            term if inside is None else inside.counting(term)
            for term, inside in zip(question.terms, self.inside, strict=True)
        ]
        self.question = replace(question, terms=tuple(terms))
        domain, weighed, counted, factor = measurements.domain, measurements.weighed, set[int](), np.ones(1)
        if weighed is not None:
            factor = weighed.rows_in(domain.sizes[weighed.column], every)
            counted = {weighed.column} if np.ptp(factor) else counted
        self.columns = tuple(sorted({c for term in terms for c in term.columns} | counted))
        if counted:
            factor = factor.reshape([-1 if c in counted else 1 for c in self.columns])
        elif weighed is not None:
            factor = factor[:1]
        binned = any(term.binned is not None for term in terms)
        # a difference is least where the second term is most
        ends = [(0, 1), (1, 0)] if binned else [(0,) * len(terms)]
        arrays = [self._over(term, term.rows & (not term.counted)) for term in terms]
        arrays += [self._over(term, term.numerator) for term in terms]
        self.starts = list[int]()  # of each end, and of its products
        for end in ends:
            self.starts.append(len(arrays))
            for term, side in zip(terms, end, strict=False):
                numbers = term.numerator if term.binned is None else term.binned[side]
                squares = numbers**2 if term.spread is None else numbers**2 + term.spread
                arrays += [self._over(term, numbers), self._over(term, squares * term.rows)]
        shape = [domain.sizes[c] for c in self.columns]
        self.arrays = [np.broadcast_to(array * factor, shape) for array in arrays]
        distinct, cells = QuestionCells.of(measurements, self.columns, self.arrays)
        if len(terms) == 2:
            g, h = cells[:, 0], cells[:, 1]
            for start in self.starts:
                x, y = cells[:, start], cells[:, start + 2]
                cells = np.column_stack([cells, x * y, x * h, g * y, g * h])
        self.products = len(arrays)
        self.sums: Sums = least_variance(evidence_of(measurements, distinct), cells, measurements.n)
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

    def again(self, question: Question | None = None, **changed: Any) -> "QuestionSums":
        """Return those of another question, or of the same one under other assumptions."""
        how = {"level": self.level, "population": self.population, "every": self.every} | changed
        return QuestionSums(self.measurements, question or self.original, **how)

    def _numerators(self, i: int) -> list[int]:
        """Return where the sums of a term's numbers stand, by each end."""
        return [start + 2 * i for start in self.starts]

    def _over(self, term: Term, array: Floats | Booleans) -> Floats:
        """Lay an array over the columns of the whole question."""
        sizes = iter(array.shape)
        return np.asarray(array, dtype=np.float64).reshape(
            [next(sizes) if c in term.columns else 1 for c in self.columns]
        )

    def noise(self) -> Floats:
        """Return the noise of all sums, simulated: shape (DRAWS, sums)."""
        noise = self.sums.noise()
        if any(inside is not None for inside in self.inside):
            noise, added = noise.copy(), simulated(self.inside)
            for i in range(len(self.inside)):
                noise[:, self._numerators(i)] += added[:, [i]]
        return noise

    def lacking(self) -> list[Term]:
        """Return the terms that are not known."""
        return [
            term
            for i, term in enumerate(self.question.terms)
            if not self.sums.known[[i, *self._numerators(i)]].all()
        ]

    def known_limits(self) -> tuple[float, float] | None:
        """Return between which numbers one term lies, by what was measured of its columns; None: nothing."""
        if any(self.inside):  # the arrays are not the ends of bins
            return None
        below, least, most = (self.arrays[at] for at in (0, self.starts[0], self.starts[-1]))
        bounds, how = self.question.terms[0].bounds, (self.level, self.population)
        ends = limits(self.measurements, self.columns, below, least, most, bounds, *how)
        return None if ends == bounds else ends

    def limits(self) -> tuple[float, float]:
        """Return between which numbers the answer lies, whatever the data."""
        bounds = [term.bounds for term in self.question.terms]
        if len(bounds) == 1:
            return bounds[0]
        return bounds[0][0] - bounds[1][1], bounds[0][1] - bounds[1][0]

    def guess(self) -> float:
        """Return the answer if each number were the middle of its bin."""
        terms = range(len(self.question.terms))
        middles = [float(self.values[len(terms) + i]) / self._rows(i) for i in terms]
        return middles[0] - sum(middles[1:])

    def _rows(self, i: int) -> float:
        """Return how many rows a term divides by."""
        return 1.0 if self.question.terms[i].counted else float(self.values[i])

    def interval(self, start: int, noise: Floats) -> Interval | None:
        """Return the interval of one end; None: a denominator may be 0."""
        parts = list[Interval]()
        for i in range(len(self.question.terms)):
            interval = self.ratio(i, start, noise)
            if interval is None:
                return None
            parts.append(interval)
        return parts[0] if len(parts) == 1 else self._difference(start, parts, noise)

    def ratio(self, i: int, start: int, noise: Floats) -> Interval | None:
        """Return the interval of a term at one end; None: its denominator may be 0."""
        above = start + 2 * i
        sampling = self._sampling(i, above) if self.population else None
        sums = float(self.values[above]), self._rows(i)
        return of_ratio(sums, (noise[:, above], noise[:, i]), self.level, sampling)

    def _sampling(self, i: int, above: int) -> Callable[[float], Floats]:
        """Return what sampling adds to numerator - r denominator; exactly of a share."""
        if self._is_share(i):
            rows, uniform = max(1, round(self._rows(i))), Uniforms.sampling().numbers()

            def binomial(r: float) -> Floats:
                chance = min(max(r, 0.0), 1.0)
                return binomials(uniform, rows, chance) - rows * chance

            return binomial
        normal = Uniforms.sampling().normals()
        return lambda r: sqrt(self._sampled(i, above, r)) * normal

    def _is_share(self, i: int) -> bool:
        term = self.question.terms[i]
        return term.bounds == (0.0, 1.0) and term.binned is None

    def _sampled(self, i: int, at: int, r: float) -> float:
        """Return the variance of the sum of (x - r) over the rows of a term."""
        below = self._rows(i)
        if self._is_share(i):
            r = min(max(r, 0.0), 1.0)
            return max(below, 1.0) * r * (1 - r)
        above, squares = self.values[at : at + 2].tolist()
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
        correlation = 0.0 if most == 0 else min(max(shared / most, -1.0), 1.0)
        estimate, low, high = of_difference(one, other, correlation)
        # noise small beside one row is nothing like a normal number, and a row changes what it is divided by
        reach = margin(apart, self.level) * (1 + 1 / max(min(below), 1.0)) ** 2
        return Interval(estimate, min(low, estimate - reach), max(high, estimate + reach))

    def _sampled_together(self, start: int, r: float, s: float, apart: Sequence[float]) -> float:
        """Return the covariance, by sampling, of both terms' sums of x - r over their rows.

        It is a sum over rows that count in both; if these were not measured, it is taken as low as it can be.
        """
        at = self.products + 4 * self.starts.index(start)
        if not self.sums.known[at : at + 4].all():
            return -sqrt(apart[0] * apart[1])
        both, first, second, rows = self.sums.values[at : at + 4].tolist()
        return float(both - s * first - r * second + r * s * rows)
