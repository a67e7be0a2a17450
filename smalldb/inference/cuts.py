"""Where the columns of a model are cut in two, so that many rows can exchange their parts at once."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Self

import numpy as np

from queries.arrays import Integers
from smalldb.inference.column_model import WITHIN, ColumnModel
from smalldb.inference.observed import Observed
from smalldb.kernels.matching import Cut

MOST_PAIRS = 1 << 16  # of patterns: where there are more, most have no row, and few rows move at once


# Proof: docs/proofs/imputation.md, lemma 4.
def cuts(model: ColumnModel, observed: Observed) -> tuple[Cut, ...]:
    """
    Return the cuts of a model: each column alone, and each column of a clique with all that hangs on it.

    A column whose categories stand in groups is cut from its own groups, too. Where too many columns meet
    there is no cut: then rows move one by one alone.
    """
    near: dict[int, set[int]] = {clique[0]: set() for clique in model.cliques}
    for clique in model.cliques:
        for c in clique:
            near[c] |= {*clique} - {c}
    found, parted = list[Cut | None](), set[frozenset[int]]()
    for column, own in enumerate(model.groups):
        found.append(_cut([column], model, observed, alone=True))
        if 1 < int(own.max()) + 1 < len(own):
            found.append(_inside(column, model, observed))
        if int(own.max()) + 1 == len(own):
            parted.add(frozenset([column]))  # alone, it changes its partners as well
    for clique in model.cliques:
        for column in clique if len(clique) > 1 else ():
            part = _hanging(column, near, {*clique} - {column})
            part = min(part, _hanging(column, near, set()) - part, key=lambda some: (len(some), min(some)))
            if part not in parted:
                parted.add(part)
                found.append(_cut(sorted(part), model, observed, alone=False))
    return tuple(cut for cut in found if cut is not None)


def _hanging(column: int, near: Mapping[int, set[int]], without: set[int]) -> frozenset[int]:
    """Return a column and those that are joined to it by ways without some others."""
    found, last = {column}, {column}
    while last:
        last = {c for one in last for c in near[one]} - found - without
        found |= last
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class _Part:
    """What tables look at of some columns.

    Attributes
    ----------
    size
        The number of patterns.
    codes
        What the categories of all columns add to the pattern.
    categories
        Of each column a category that each pattern stands for.
    """

    size: int
    codes: Integers
    categories: dict[int, Integers]

    @classmethod
    def of(cls, columns: Sequence[int], groups: Sequence[Integers]) -> Self:
        """Tell apart the groups of some columns."""
        sizes = [int(groups[c].max()) + 1 for c in columns]
        codes = [np.zeros(len(own), dtype=np.int64) for own in groups]
        numbers, categories, stride = np.arange(prod(sizes)), {}, 1
        for c, size in zip(columns, sizes, strict=True):
            codes[c] = stride * groups[c]
            first = np.unique(groups[c], return_index=True)[1]
            categories[c] = first[numbers // stride % size]
            stride *= size
        return cls(len(numbers), np.concatenate(codes), categories)

    def sums(self, parts: dict[int, Integers]) -> Integers:
        """Return for each pattern what its categories add up to."""
        found = np.zeros(self.size, dtype=np.int64)
        for c, own in parts.items():
            if c in self.categories:
                found += own[self.categories[c]]
        return found


def _inside(column: int, model: ColumnModel, observed: Observed) -> Cut:
    """Cut a column from its groups: rows change categories that only its own tables tell apart."""
    own = model.groups[column]
    tables = [t for t, table in enumerate(observed.tables) if table.keys() == {column}]
    codes = [observed.counted.origins[t] + observed.tables[t][column] for t in tables]
    scopes = _scopes(model, observed)
    parities = [p for p, scope in enumerate(scopes) if scope.keys() == {column}]
    odd = [scopes[p][column] for p in parities]
    second = [np.zeros(len(each), dtype=np.int64) for each in model.groups]
    second[column] = own
    first = [np.zeros(len(each), dtype=np.int64) for each in model.groups]
    first[column] = np.arange(len(own))
    size = int(own.max()) + 1
    return Cut(
        columns=np.array([column]),
        alone=True,
        within=own,
        first=np.concatenate(first),
        second=np.concatenate(second),
        tables=np.array(tables, dtype=np.int64),
        table_first=np.array(codes, dtype=np.int64).reshape(-1, len(own)),
        table_second=np.zeros((len(tables), size), dtype=np.int64),
        signs=np.ones(1),
        before=np.full(len(own), WITHIN),
        prior_first=np.arange(len(own))[None],
        prior_second=np.zeros((1, size), dtype=np.int64),
        parities=np.array(parities, dtype=np.int64),
        odd_first=np.array(odd, dtype=np.int64).reshape(-1, len(own)),
        odd_second=np.zeros((len(odd), size), dtype=np.int64),
    )


def _scopes(model: ColumnModel, observed: Observed) -> list[dict[int, Integers]]:
    """Return for each parity its columns, and which categories of each are odd in it."""
    ends = np.cumsum([0, *map(len, model.groups)]).tolist()
    found = []
    for mask in observed.signed.masks:
        odd = np.bitwise_count(observed.signed.bits & mask).sum(axis=1, dtype=np.int64) % 2
        own = {c: odd[start:end] for c, (start, end) in enumerate(pairwise(ends))}
        found.append({c: some for c, some in own.items() if some.any()})
    return found


def _cut(columns: Sequence[int], model: ColumnModel, observed: Observed, alone: bool) -> Cut | None:
    """Cut some columns off; None: too many others are looked at together with them."""
    own = {*columns}

    def cut_by(scope: Collection[int]) -> bool:
        return bool(own & {*scope}) and (alone or bool({*scope} - own))

    seen = {c for clique in model.cliques if cut_by(clique) for c in clique}
    groups = list(model.groups)
    if alone:
        groups[columns[0]] = np.arange(len(groups[columns[0]]))
    counts = [int(each.max()) + 1 for each in groups]
    if prod(counts[c] for c in seen | own if alone or c in seen) > MOST_PAIRS:
        return None
    parts = [_Part.of(sorted(some), groups) for some in ((seen | own if alone else seen) & own, seen - own)]

    def both(codes: dict[int, Integers]) -> list[Integers]:
        return [part.sums(codes) for part in parts]

    tables = [t for t, table in enumerate(observed.tables) if cut_by(table)]
    of_tables = [both(observed.tables[t]) for t in tables]
    for t, (first, _) in zip(tables, of_tables, strict=True):
        first += observed.counted.origins[t]
    signs, before, of_prior = list[float](), list[np.ndarray](), list[list[Integers]]()

    def add(sign: float, codes: dict[int, Integers], beforehand: np.ndarray) -> None:
        of_prior.append(both(codes))
        of_prior[-1][0] += sum(map(len, before))
        signs.append(sign)
        before.append(beforehand)

    ends = np.cumsum([*map(len, model.groups)])[:-1]
    for (column, *others), mass, codes in zip(model.cliques, model.before, model.codes, strict=True):
        if cut_by((column, *others)):
            of_columns, size = np.split(codes, ends), int(model.groups[column].max()) + 1
            add(1.0, {c: of_columns[c] for c in (column, *others)}, mass)
            if cut_by(others):
                add(-1.0, {c: of_columns[c] // size for c in others}, mass.reshape(-1, size).sum(axis=1))
    if alone:
        within = model.groups[columns[0]]
        add(1.0, {columns[0]: np.arange(len(within))}, np.full(len(within), WITHIN))
        add(-1.0, {columns[0]: within}, WITHIN * np.bincount(within))

    parities, of_parities = list[int](), list[list[Integers]]()
    for p, scope in enumerate(_scopes(model, observed)):
        if cut_by(scope):
            parities.append(p)
            of_parities.append([each % 2 for each in both(scope)])
    return Cut(
        columns=np.array(columns, dtype=np.int64),
        alone=alone,
        within=np.zeros(parts[0].size, dtype=np.int64),
        first=parts[0].codes,
        second=parts[1].codes,
        tables=np.array(tables, dtype=np.int64),
        table_first=_stacked(of_tables, 0, parts),
        table_second=_stacked(of_tables, 1, parts),
        signs=np.array(signs),
        before=np.concatenate(before).astype(np.float64),
        prior_first=_stacked(of_prior, 0, parts),
        prior_second=_stacked(of_prior, 1, parts),
        parities=np.array(parities, dtype=np.int64),
        odd_first=_stacked(of_parities, 0, parts),
        odd_second=_stacked(of_parities, 1, parts),
    )


def _stacked(found: Sequence[Sequence[Integers]], position: int, parts: Sequence[_Part]) -> Integers:
    """Return those of one part, one a row."""
    return np.array([both[position] for both in found], dtype=np.int64).reshape(-1, parts[position].size)
