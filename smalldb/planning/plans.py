"""What a release will do and promise, as far as public numbers tell."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import comb, inf, log, sqrt
from re import fullmatch
from typing import NamedTuple

from queries import Workload
from smalldb import bounds
from smalldb.accounting.concentrated import group_factor
from smalldb.exact.numbers import as_text, brief, rounded_up
from smalldb.marginals.asks import offsets_at_once
from smalldb.marginals.curator import PrivacyFilter
from smalldb.marginals.expected_error import mean_size
from smalldb.marginals.measuring import PrivacyMeasure
from smalldb.marginals.mechanism import ByMarginals
from smalldb.marginals.walks import Walks
from smalldb.mechanisms import Mechanism, Neighbours, Offsets, Request
from smalldb.noise.privacy_loss import Amount, Loss
from smalldb.schema.bin_shapes import UNITS, FinerCost
from smalldb.schema.reading import Learned
from smalldb.showing import in_notebook

MOST_NAMED = 4  # columns in a line
RELATED = "related"  # the strategy that measures related tables
USELESS = 1 / 2  # noise on the share of a category above which a table is empty of information


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """What a release will do and promise; a function of public numbers alone.

    Attributes
    ----------
    request
        What was asked for.
    chosen
        The mechanism that will do it, with its rows.
    runner_up
        The best plan with another mechanism, where the rows were left open.
    refused
        Why what would have been taken before could not be done.
    rows_per_person
        The most rows that one person has. What the request and the mechanism call epsilon protects one row;
        here epsilons and delta protect a person, all rows together: from one table to another step by step,
        the losses and their ranges add up, and deltas as `smalldb.accounting.concentrated` says.
    persons_stated
        Whether somebody said so; otherwise rows are protected, and nothing is said of people.
    learned
        The columns whose categories were learned from the data before, and what that cost. The mechanism gets
        the rest; `epsilon`, `privacy` and `delta` are those of all together. One row a person then.
    finer
        The finer bins that are measured beside what the mechanism measures, and what they cost; likewise.
    means
        The columns of which is measured where numbers lie in their bins, and what that costs; likewise. None:
        there are none, or the mechanism measures no counts that this would be added to.
    """

    request: Request
    chosen: Mechanism
    runner_up: "Plan | None" = None
    refused: tuple[str, ...] = ()
    rows_per_person: int = 1
    persons_stated: bool = False
    learned: tuple[Learned, ...] = ()
    finer: tuple[FinerCost, ...] = ()
    means: "MeansCost | None" = None

    def __repr__(self) -> str:
        rows = "rows as the release estimates" if self.rows is None else f"{self.rows} rows"
        what = f"{self.workload.text} over {len(self.workload.domain.columns)} columns"
        return (
            f"<Plan: {self.mechanism}, {rows}, {what}, epsilon {as_text(self.epsilon)}, "
            f"{self.neighbours.value} neighbours>"
        )

    def _repr_html_(self) -> str:
        return in_notebook(self)

    @property
    def workload(self) -> Workload:
        """The reduced queries over the universe."""
        return self.request.workload

    @property
    def n(self) -> int | None:
        """Rows of the data; None under add-remove, where it is private."""
        return self.request.n

    @property
    def epsilon(self) -> Fraction:
        """The epsilon that was asked for, exact; what is guaranteed: `privacy`."""
        of_row = self.request.epsilon + self.for_finer + self.for_means
        return of_row * self.rows_per_person + sum(each.epsilon for each in self.learned)

    @property
    def for_finer(self) -> Fraction:
        """What all finer bins cost, for each row."""
        return sum((each.epsilon for each in self.finer), Fraction(0))

    @property
    def for_means(self) -> Fraction:
        """What means cost of epsilon, for each row."""
        return Fraction(0) if self.means is None else self.means.epsilon

    @property
    def means_told(self) -> str | None:
        """Which columns have measured means, and for how much of epsilon of a person; None: none has."""
        if self.means is None:
            return None
        names = [self.workload.domain.names[c] for c in self.means.columns]
        columns = ", ".join(names) if len(names) <= MOST_NAMED else f"{len(names)} columns"
        return f"{brief(self.for_means * self.rows_per_person)} of epsilon is for means of {columns}"

    @property
    def beta(self) -> Fraction:
        """The failure probability of the bounds, exact."""
        return self.request.beta

    @property
    def neighbours(self) -> Neighbours:
        """The neighbouring relation."""
        return self.request.neighbours

    @property
    def mechanism(self) -> str:
        """The name of the mechanism: "census", "rejection" or "marginals"."""
        return self.chosen.name

    @property
    def strategy(self) -> str | None:
        """What marginals measure: "cells", "contrasts", "pairs", "adaptive" or "related"; None of others."""
        if self.request.links is not None:
            return RELATED
        return self.chosen.strategy.name if isinstance(self.chosen, ByMarginals) else None

    @property
    def rows(self) -> int | None:
        """m, the rows of the synthetic table; None: the release will tell."""
        return self.chosen.rows

    @property
    def foreseen_rows(self) -> int:
        """About how many rows there will be, from public numbers: `rows`, or as many as the data have."""
        return self.rows or self.n or self.request.n_max or 0

    @property
    def why(self) -> str | None:
        """Why this mechanism and no other, in one line; None where there was no choice."""
        if self.runner_up is not None:
            ours, theirs = (_figure(plan.chosen) for plan in (self, self.runner_up))
            return f"smallest expected error: {ours}; the next: {theirs}, by {self.runner_up.mechanism}"
        # without what would help: nothing is wrong
        reasons = dict.fromkeys(reason.partition(": ")[0] for reason in self.refused)
        return f"the others were ruled out: {'; '.join(_together(reasons))}" if reasons else None

    @property
    def candidates(self) -> str | None:
        """The base measure: "multisets" (Algorithm 4), or "tuples" (ordered rows); None: no candidates."""
        return self.chosen.candidates

    @property
    def candidate_count(self) -> int | None:
        """|R|, the number of candidates; None where there are none."""
        return self.chosen.candidate_count

    @property
    def privacy(self) -> Fraction:
        """The exact epsilon of the guarantee: that asked for, or less.

        Where categories are learned it is all of epsilon: it is paid before they are known, and a mechanism
        that states less for the categories foreseen might not for those that are learned.
        """
        of_row = self.chosen.guarantee.epsilon + self.for_finer + self.for_means
        return self.epsilon if self.learned else of_row * self.rows_per_person

    @property
    def delta(self) -> Fraction | None:
        """The delta of the guarantee; None: it is pure, also where a delta was allowed."""
        delta = self.chosen.guarantee.delta or Fraction(0)
        if delta and self.rows_per_person > 1:
            delta *= group_factor(self.request.epsilon + self.for_means, self.rows_per_person)
        return delta + sum(each.delta or 0 for each in self.learned) or None

    # Proof: docs/proofs/losses.md, lemmas 7 and 8; docs/proofs/learned.md, lemma 7; docs/proofs/curator.md,
    # lemma 5.
    @property
    def loss(self) -> Loss:
        """What all rows of a person lose together: beside epsilon a rho and laws, where they are known.

        What is learned decides what is measured: then only epsilon is known, and with a delta nothing.
        """
        if self.learned:
            return Loss.pure(self.privacy) if self.delta is None else Loss(None, None)
        loss = self.chosen.guarantee.stated
        for each in self.finer:
            loss = loss.together(finer_measure(self.neighbours).loss_of_table(each.epsilon))
        loss = loss if self.means is None else loss.together(self.means.loss)
        return loss.of_group(self.rows_per_person)

    # Proof: docs/proofs/curator.md, "Theorem".
    def budget(self) -> PrivacyFilter:
        """Return what is paid for a row, of which nothing is spent."""
        paid = self.chosen.guarantee.paid.plus(Amount(self.for_finer))
        for each in self.learned:
            paid = paid.plus(Amount(each.epsilon, delta=each.delta or Fraction(0)))
        if self.means is not None:
            paid = paid.plus(self.means.loss.amount)
        return PrivacyFilter(paid, self.neighbours is Neighbours.REPLACE_ONE)

    @property
    def bounded_range(self) -> Fraction | None:
        """A bound on the range of the privacy loss, which composes better; None: none is known."""
        return self.loss.bounded_range

    @property
    def bound(self) -> float | None:
        """The error that is not exceeded with probability 1 - beta; None: only the release will tell."""
        return self.chosen.promise.bound

    @property
    def expected_error(self) -> float | None:
        """A bound on the mean error, or an estimate of it; None where n is private and nothing is known."""
        return self.chosen.promise.expected_error

    @property
    def expected_range(self) -> tuple[float, float] | None:
        """From where to where an estimated error lies for about nine tables of ten; None: not known."""
        return self.chosen.expected_range if isinstance(self.chosen, ByMarginals) else None

    @property
    def expected_share(self) -> float | None:
        """About the mean error of a category's share by noise; None: it is not known."""
        rows, variances = self.request.rows_hint, self._column_variances
        return sum(map(mean_size, variances.values())) / len(variances) / rows if rows and variances else None

    @property
    def expected_mean(self) -> float | None:
        """About the mean error by noise of the mean of a number, as a share of its range; None: not known."""
        rows, variances, aside = self.request.rows_hint, self._column_variances, self.means
        if not rows or aside is None or not variances.keys() >= {*aside.columns}:
            return None
        sizes = self.workload.domain.sizes
        # bins of one width: noise on the count of each moves the mean, and noise on where numbers lie in it
        parts = [Offsets((c,), sizes[c], UNITS) for c in aside.columns]
        inside = offsets_at_once(parts, aside.law(self.neighbours), aside.cost).noises
        each = (
            variances[c] * sizes[c] / 12 + noise.variance() / UNITS**2 / sizes[c]
            for c, (noise, _) in zip(aside.columns, inside, strict=True)
        )
        return sum(map(mean_size, each)) / len(inside) / rows

    @property
    def _column_variances(self) -> Mapping[int, float]:
        return self.chosen.strategy.column_variances if isinstance(self.chosen, ByMarginals) else {}

    @property
    def column_noise(self) -> float | None:
        """About how far noise moves the share of a category, if all of the budget went to the columns alone.

        A standard deviation: Laplace noise on the counts of each column, with an equal part of epsilon, or
        Gaussian noise where a delta is allowed and less is needed. Of related tables it is of the columns of
        parents and their number of children, with what these get of epsilon. None: the rows are not known.
        """
        request, columns, epsilon = self.request, len(self.workload.domain.columns), self.request.epsilon
        if not request.rows_hint:
            return None
        if isinstance(self.chosen, Walks):
            columns, epsilon = len(self.chosen.parents.universe.sizes), self.chosen.parents.epsilon
        moved, rate = 1 if self.neighbours is Neighbours.ADD_REMOVE else 2, float(epsilon)
        if not rate:  # below all floats
            return inf
        noise = [moved * sqrt(2) * columns / rate]
        if request.delta is not None:
            least = log(request.delta.denominator) - log(request.delta.numerator)
            noise.append(sqrt(moved * columns / 2) * (sqrt(rate + least) + sqrt(least)) / rate)
        return min(noise) / request.rows_hint

    @property
    def nothing_expected(self) -> str | None:
        """Why nothing useful is expected of a release, in a clause; None: something is. Public."""
        noise = self.column_noise or 0.0
        if noise > USELESS:
            points = f"about {100 * noise:.0f} of 100" if noise < 1 else "more than 100"
            what = "all of epsilon" if self.request.links is None else "all that parents get of epsilon"
            return f"even if {what} went to single columns, noise would move each share by {points} points"
        if self.bound is not None and self.bound >= 1:
            return "the bound on the error will be 1 or more, which says nothing"
        return None

    @property
    def proposition_4_4(self) -> float | None:
        """The error of Proposition 4.4 at these rows; None where n is private."""
        return self.chosen.promise.theorems.get("proposition_4_4")

    @property
    def theorem_4_5(self) -> float | None:
        """The error that Theorem 4.5 states (for its own number of rows); None where n is private."""
        return self.chosen.promise.theorems.get("theorem_4_5")

    @property
    def alternatives(self) -> dict[str, float] | None:
        """Mean largest errors of plain Laplace noise, by what it is added to; None where n is private.

        "answers": to each of the |Q| answers, about |Q| ln |Q| / (epsilon n). "histogram": to each cell,
        answers added up; a bound.
        """
        if self.n is None:
            return None
        workload, n, epsilon = self.workload, self.n, self.request.epsilon
        # f and 1 - f err alike, so the lighter of the two is added up
        support = workload.mean_squares * workload.domain.product or None
        cells, queries = workload.domain.size, workload.size
        return {
            "answers": bounds.laplace_answers(n=n, queries=queries, epsilon=epsilon),
            "histogram": bounds.laplace_histogram(
                n=n, cells=cells, queries=queries, epsilon=epsilon, support=support
            ),
        }


@dataclass(frozen=True, slots=True)
class MeansCost:
    """Columns of which it is measured where numbers lie in their bins, and what that costs a row; public."""

    columns: tuple[int, ...]  # their numbers
    epsilon: Fraction  # what it takes of epsilon
    # what it costs beside a mechanism that is concentrated: what delta and all of epsilon prove, less what
    # they prove without this epsilon; None: it is pure
    rho: Fraction | None = None

    @property
    def cost(self) -> Fraction:
        """An epsilon or a rho."""
        return self.epsilon if self.rho is None else self.rho

    def law(self, relation: Neighbours) -> PrivacyMeasure:
        """Return how it is measured."""
        return PrivacyMeasure(self.rho is not None, relation is Neighbours.REPLACE_ONE)

    @property
    def loss(self) -> Loss:
        """What it loses."""
        return Loss.pure(self.epsilon) if self.rho is None else Loss.concentrated(self.rho)


class Pairs(NamedTuple):
    """Pairs of columns that are expected to be measured together, those that can be at most, and all."""

    expected: int
    most: int
    every: int


def tables_reached(plan: Plan) -> int:
    """Return how many tables of counts will be measured at most, those of columns too; parities are none."""
    return plan.chosen.strategy.most_tables if isinstance(plan.chosen, ByMarginals) else 0


def pairs_reached(plan: Plan) -> Pairs | None:
    """Return how many pairs will be measured together; columns of others are independent, given others."""
    if not isinstance(plan.chosen, ByMarginals):
        return None
    strategy, every = plan.chosen.strategy, comb(len(plan.workload.domain.sizes), 2)
    return Pairs(min(strategy.expected_pairs, every), min(strategy.most_pairs, every), every)


def finer_measure(relation: Neighbours) -> PrivacyMeasure:
    """Return how the counts of finer bins are measured: they are pure, whatever else there is."""
    return PrivacyMeasure(concentrated=False, replaced=relation is Neighbours.REPLACE_ONE)


def _together(reasons: Iterable[str]) -> list[str]:
    """Say once what several mechanisms need.

    >>> _together(["a census needs luck", "rejection needs time", "marginals need time"])
    ['a census needs luck', 'rejection and marginals need time']
    """
    alike: dict[tuple[str, str], list[str]] = {}
    for reason in reasons:
        match = fullmatch("(.+?) (need|promise)s? (.+)", reason)
        subject, *what = match.groups() if match else (reason, "", "")
        alike.setdefault((what[0], what[1] or reason), []).append(subject)
    return [
        f"{' and '.join(subjects)} {verb}{'s' * (len(subjects) == 1)} {what}" if verb else what
        for (verb, what), subjects in alike.items()
    ]


def _figure(mechanism: Mechanism) -> str:
    """Write the public expected error of a mechanism, in few digits."""
    expected = mechanism.promise.expected_error
    if expected is None:
        return "unknown"
    error = f"at most {rounded_up(expected, 2)}" if mechanism.promise.proved else f"{expected:.2g}"
    count = mechanism.rows
    rows = "" if count is None else f" with {count} row{'s' * (count != 1)}"
    return error + rows
