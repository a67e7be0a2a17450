"""The private rows of related tables, and their release: parents first, then the walks to children."""

from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np

from queries.domain import Integers
from smalldb.marginals.counted_rows import CountedRows, checked
from smalldb.marginals.counts import InMemory
from smalldb.marginals.curator import Curator, PrivacyFilter, Progress
from smalldb.marginals.walks import UNIT, Related, Walks, weights_of, with_children
from smalldb.mechanisms import Journal


@dataclass(frozen=True, slots=True, eq=False)
class Families:
    """The private rows: parents, and their children."""

    parents: Integers  # codes of their columns, shape (n, P)
    children: Integers  # codes, shape (m, C)
    of: Integers  # the parent of each child, a number from 0 to n - 1, shape (m,)

    # Proof: docs/proofs/related.md, lemma 4.
    def counts(self) -> Integers:
        """Return the number of children of each parent."""
        return np.bincount(self.of, minlength=len(self.parents))

    # Proof: docs/proofs/related.md, lemma 4.
    def with_counts(self, most: int) -> Integers:
        """Return the codes of parents with one column more: their numbers of children, `most` or more."""
        return np.column_stack([self.parents, np.minimum(self.counts(), most)])

    # Proof: docs/proofs/related.md, lemma 1.
    def walks(self, most: int, cap: int) -> CountedRows:
        """Return the walks: columns of a parent, its number of children, a child's columns; with weights."""
        weights = weights_of(self.counts(), cap)[self.of]
        codes = np.concatenate([self.with_counts(most)[self.of], self.children], axis=1)
        return CountedRows(np.asfortranarray(codes), weights)


# Proof: docs/proofs/related.md, lemmas 5 and 6.
def release_families(
    plan: Walks,
    families: Families,
    journal: Journal,
    budget: PrivacyFilter,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Related:
    """Release parents, then children of these."""
    ones = np.ones(len(families.parents), dtype=np.int64)
    rows = checked(families.with_counts(plan.most), ones, plan.parents.universe.sizes)
    curator = Curator(InMemory(rows, executor), journal, budget, progress)
    parents = curator.follow(plan.parents.release(None))
    codes = with_children(parents.codes.astype(np.int64), curator.measurements, plan.most)
    parents = replace(parents, codes=codes.astype(parents.codes.dtype))
    walks = InMemory(families.walks(plan.most, plan.cap_after(parents)), executor, unit=UNIT)
    walking = Curator(walks, journal, budget, progress)
    related: Related = walking.follow(plan.steps(parents))
    return replace(related, of_parents=tuple(curator.measurements), measurements=tuple(walking.measurements))
