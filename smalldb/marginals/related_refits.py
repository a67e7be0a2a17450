"""Several copies of related tables: parents are drawn from a refit, then children given these, from another.

As in `refits`, noise of the same distribution is added once more to what was released. All of it is
post-processing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from math import sqrt

import numpy as np

from queries import Domain
from queries.arrays import Floats, Integers
from smalldb.exact.bits import bit_source
from smalldb.exact.integers import uniform_permutation
from smalldb.marginals.refits import FIRST_SWEEPS, Refits, noisier
from smalldb.marginals.walks import Walks, known_columns, weights_of, with_children
from smalldb.mechanisms import Measurement
from smalldb.mechanisms.measurement import Marginal
from smalldb.noise.geometric import Geometric

FIRST = 1  # sample of walks, which predictions alone need


@dataclass(frozen=True, slots=True, eq=False)
class RelatedRefits:
    """What copies of related tables follow from."""

    plan: Walks
    cap: int  # by which walks were weighed
    domains: tuple[Domain, Domain]  # of parents with their numbers of children, and of walks
    of_parents: tuple[Measurement, ...]
    of_walks: tuple[Measurement, ...]
    parents: Refits

    @classmethod
    def of(
        cls,
        plan: Walks,
        cap: int,
        domains: Mapping[str, Domain],
        measurements: Mapping[str, Sequence[Measurement]],
        total: int,
    ) -> "RelatedRefits | None":
        """Lay out both models; None: something else than tables was measured, or in groups not nested."""
        (first, second), (parents, walks) = domains.values(), map(tuple, measurements.values())
        laid_out = Refits.of(first, parents, total, plan.parents.universe.rules)
        if laid_out is None or Refits.of(second, walks, total, plan.children.universe.rules) is None:
            return None
        return cls(plan, cap, (first, second), parents, walks, laid_out)

    def draws(self, seed: int) -> Iterator[tuple[Integers, Integers, Integers]]:
        """Yield copies without end: parents with their numbers, children, and the parent of each child."""
        width, coins = len(self.domains[0].sizes), bit_source(seed)

        def again(each: Measurement) -> Floats:
            return noisier(each, each.noise.draw(len(each.values), coins))

        while True:
            (drawn,) = islice(self.parents.draws(coins.bits(64)), 1)
            released = [
                replace(each, values=np.rint(again(each)).astype(np.int64)) for each in self.of_parents
            ]
            parents = with_children(drawn, released, self.plan.most)
            times = parents[:, -1]
            of = np.repeat(np.arange(len(times)), times)
            if not len(of):
                yield parents, np.zeros((0, len(self.domains[1].sizes) - width), dtype=np.int64), of
                continue
            known = known_columns(parents, times, weights_of(times, self.cap), self.domains[0].sizes, FIRST)
            known_tables = [
                _exactly([c for c, _ in table.scope], table.counts, table.variance) for table in known.tables
            ]
            measured = [*known_tables, *self.of_walks]
            model = Refits.of(
                self.domains[1], measured, known.total, self.plan.children.universe.rules, known.columns
            )
            assert model is not None
            values = [each.values.astype(np.float64) for each in known_tables]
            values += [again(each) for each in self.of_walks]
            rows = model.fitted(values, (), FIRST_SWEEPS).rows(len(of), coins.bits(64), known.rows)
            order = uniform_permutation(len(of), coins)
            yield parents, rows[width:, order].T.astype(np.int64), of[order]


def _exactly(columns: Sequence[int], counts: Integers, variance: float) -> Measurement:
    """Return a table that is known, as one that was measured with so little noise."""
    groups = tuple(tuple(range(size)) for size in counts.shape)
    noise = Geometric(Fraction(sqrt(2 / max(variance, 1.0))))
    return Measurement(
        (Marginal(tuple(columns), groups),), counts.ravel().astype(np.int64), noise, Fraction(0)
    )
