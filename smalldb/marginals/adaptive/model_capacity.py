"""Which tables may be selected in a round, and the exact selection of one of them."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import numpy.typing as npt

from queries.domain import Integers
from smalldb.exact.bits import BitSource
from smalldb.marginals.estimate.estimation import Estimator
from smalldb.marginals.estimate.junction import Scope
from smalldb.marginals.measuring import NoisyTable, choose
from smalldb.marginals.strategies.budgets import RoundsBudget


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


# Proof: docs/proofs/rounds.md, lemma 5.
def selected(
    plan: RoundsBudget,
    capacity: ModelCapacity,
    names: Sequence[Scope],
    weight: int,
    scores: Integers,
    payable: npt.NDArray[np.bool_],
    source: BitSource,
) -> Scope | None:
    """
    Select a candidate by an exponential mechanism, over those of two columns, and those for which is room.

    Whether there is room is looked at once a candidate was drawn, and all is drawn again if it is needed and
    there is none: the outcome has the law of a draw among the candidates that may be selected. What is finer
    than one without room has none either, and is left out before the next draw.
    """
    # Weights 1, 2 and 3, and no room for the third: drawn again until it is another, the first two have
    # probabilities 1/3 and 2/3, as if the third had never been there.
    left = payable.copy()
    while left.any():
        positions = np.nonzero(left)[0]
        chosen = names[int(positions[choose(scores[positions], plan.law, plan.selecting, weight, source)])]
        refused = None if len(chosen) == 2 else capacity.lacking(chosen)
        if refused is None:
            return chosen
        left &= np.array([not as_fine(name, refused) for name in names])
    return None


def as_fine(name: Scope, other: Scope) -> bool:
    """Tell whether a table is of the same columns as another, and at least as fine in each."""
    return len(name) == len(other) and all(
        a == b and m >= k for (a, m), (b, k) in zip(name, other, strict=True)
    )
