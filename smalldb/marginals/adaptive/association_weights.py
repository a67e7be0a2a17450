"""How many columns a table would tell about: where there are far more pairs than rounds, that counts."""

from collections.abc import Sequence

import numpy as np

from queries.arrays import Floats
from queries.domain import Integers
from smalldb.marginals.adaptive.candidate_tables import MOST_WEIGHT, Candidates
from smalldb.marginals.adaptive.packed_pairs import PackedPairs
from smalldb.marginals.measuring import NoisyTable


# Proof: docs/proofs/rounds.md, lemma 3.
def association_weights(
    layout: Candidates | PackedPairs, predicted: Sequence[Floats], measured: Sequence[NoisyTable]
) -> tuple[int, ...]:
    """
    Return the weights of all candidate tables, from what was released: integers from 1 to `MOST_WEIGHT`.

    Say that the model has two trees of columns, and that a table joins a column of one with a column of the
    other. Then it tells something of other columns of both trees, too: the more these depend on its own two.
    The reach of a column is 1 plus the sum of Cramer's V, in the model, of all columns of its tree with it.
    The weight of such a table is multiplied by the reach of both columns. Rounds then grow one tree with
    hubs, rather than many pairs and long chains.
    """
    packed, candidates = (layout, layout.candidates) if isinstance(layout, PackedPairs) else (None, layout)
    part = np.arange(len(candidates.groupings))
    for table in measured:
        joined = [part[c] for c, _ in table.scope]
        part[np.isin(part, joined)] = joined[0]
    gains = _one_by_one(candidates, predicted, part) if packed is None else _at_once(packed, predicted, part)
    gains = gains * np.array(candidates.weights)
    return tuple(np.maximum(1, np.rint(MOST_WEIGHT * gains / gains.max())).astype(int).tolist())


def _one_by_one(candidates: Candidates, predicted: Sequence[Floats], part: Integers) -> Floats:
    """Return, for each table, the largest product of reaches of two columns that are not connected, or 1."""
    reach = np.ones(len(part))
    for columns, cells in zip(candidates.tables, predicted, strict=True):
        if len(columns) == 2 and part[columns[0]] == part[columns[1]]:
            reach[list(columns)] += cramers_v(cells)
    return np.array(
        [
            max([1.0, *(reach[a] * reach[b] for a in columns for b in columns if part[a] < part[b])])
            for columns in candidates.tables
        ]
    )


def _at_once(packed: PackedPairs, predicted: Sequence[Floats], part: Integers) -> Floats:
    """Return the same where all tables are of two columns."""
    first, second = np.array(packed.candidates.tables).T
    connected = part[first] == part[second]
    values = np.where(connected, packed.associations(predicted, connected), 0.0)
    reach = 1 + np.bincount(first, values, len(part)) + np.bincount(second, values, len(part))
    return np.where(connected, 1.0, reach[first] * reach[second])


def cramers_v(table: Floats) -> float:
    """
    Return Cramer's V of a table of two columns: 0 for independent ones, 1 where one tells the other.

    V is the root of chi^2 / (n (k - 1)), where k is the lesser number of categories that occur. If one column
    has one category in use, it is 0.

    Examples
    --------
    >>> cramers_v(np.array([[2.0, 2.0], [1.0, 1.0]])), cramers_v(np.array([[5.0, 0.0], [0.0, 3.0]]))
    (0.0, 1.0)
    """
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    least = min(np.count_nonzero(rows > 0), np.count_nonzero(columns > 0)) - 1
    if least < 1:
        return 0.0
    independent = np.outer(rows, columns) / rows.sum()
    squares = np.divide(
        (table - independent) ** 2, independent, out=np.zeros_like(independent), where=independent > 0
    )
    return min(1.0, float(np.sqrt(squares.sum() / (rows.sum() * least))))
