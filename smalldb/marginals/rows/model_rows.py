"""Rows of a model on a junction tree: conditional systematic rounding, bucket by bucket from the roots."""

from collections.abc import Sequence

import numpy as np

from queries.arrays import Codes, Floats
from queries.mixing import splitmix64
from smalldb.marginals.estimate.belief_propagation import Tree

_TINY = 1e-12  # of all mass, what a category of known columns has at least


# Proof: docs/proofs/rounds.md, lemma 7; docs/proofs/related.md, lemma 5.
def model_rows(
    tree: Tree, tables: Sequence[Floats], rows: int, seed: int, known: Codes | None = None
) -> Codes:
    """
    Return rows as codes, int32, shape (C, rows): the counts of each bucket's cells are met to about one row.

    From the roots down, each bucket refines the groups of one column, given its other columns. Rows that
    agree in what is given are taken in a random order, and get their groups by systematic rounding.

    Cost: rows times the columns of all buckets.
    """
    from smalldb.kernels.nearby_rows import refine

    columns = len(tree.groupings)
    level = [0] * columns
    groups = np.zeros((columns, rows), dtype=np.int32)  # of each column at its present level
    for position in reversed(range(len(tree.buckets))):
        bucket = tree.buckets[position]
        column, levels = bucket.column, dict(bucket.scope)
        grouping, fine = tree.groupings[column], levels[column]
        if known is not None and column < len(known):
            groups[column], level[column] = grouping.of_categories(fine)[known[column]], fine
            continue
        context = np.zeros(rows, dtype=np.int32)
        for c, lev in bucket.scope:
            if c != column:
                other = tree.groupings[c]
                at = groups[c] if level[c] == lev else other.parents(lev, level[c])[groups[c]]
                context *= other.groups(lev)
                context += at.astype(np.int32)
        axis = [c for c, _ in bucket.scope].index(column)
        weights = tables[position]
        if known is not None:  # which may be where the model has no mass: others then keep their own law
            given = tuple(a for a, (c, _) in enumerate(bucket.scope) if c < len(known))
            weights = weights + _TINY * weights.sum(axis=given, keepdims=True)
        table = np.moveaxis(weights, axis, -1).reshape(-1, grouping.groups(fine))
        starts = np.append(grouping.inside(level[column], fine), grouping.groups(fine))
        own = (seed + 2 * position) % (1 << 64)
        words = splitmix64(len(table) * (len(starts) - 1), (own + 1) % (1 << 64)) >> np.uint64(11)
        offsets = words.astype(np.float64).reshape(len(table), -1) * 2.0**-53
        table = np.maximum(table, 0.0, order="C")  # of one order: another has a kernel of its own
        refine(context, groups[column], table, starts, splitmix64(rows, own), offsets)
        level[column] = fine
    for c, grouping in enumerate(tree.groupings):
        groups[c] = grouping.order[groups[c]]
    return groups
