"""Which tables the model has room for, and so may be selected in a round."""

from itertools import product

from smalldb.marginals.estimate.estimation import Estimator
from smalldb.marginals.estimate.junction import Scope
from smalldb.marginals.measuring import NoisyTable


class ModelCapacity:
    """
    For which candidates the model has room, in one round.

    There is room for a table where the model, with it or with any coarser candidate of its columns, stays
    within its memory. That follows from released numbers alone, whichever candidates are looked at.
    """

    def __init__(self, estimator: Estimator, tables: list[NoisyTable]) -> None:
        self._estimator, self.tables = estimator, tables
        self._known: dict[Scope, bool] = {}

    # Proof: docs/proofs/rounds.md, lemma 5.
    def lacking(self, name: Scope) -> Scope | None:
        """Return the first table, from the coarsest to the given one, that has no room; None: all have."""
        for levels in product(*[range(1, level + 1) for _, level in name]):
            coarser = tuple((c, level) for (c, _), level in zip(name, levels, strict=True))
            if coarser not in self._known:
                self._known[coarser] = self._estimator.fits(self.tables, coarser)
            if not self._known[coarser]:
                return coarser
        return None


def as_fine(name: Scope, other: Scope) -> bool:
    """Tell whether a table is of the same columns as another, and at least as fine in each."""
    return len(name) == len(other) and all(
        a == b and m >= k for (a, m), (b, k) in zip(name, other, strict=True)
    )
