"""Rules: which places of a few columns can stand together, and what several rules leave."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from queries.arrays import Booleans
from queries.expressions import Expression, shorten

MAX_RULE_CELLS = 1 << 20  # of the columns that one rule looks at, and of each table on the way
MAX_BUCKET = 1 << 12  # cells of the parts that larger tables are made in


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """Which settings of a few columns are allowed.

    Attributes
    ----------
    columns
        Positions of the columns in the domain, ascending.
    allowed
        Shaped by the sizes of these columns, bool (read-only).
    """

    columns: tuple[int, ...]
    allowed: Booleans

    def __post_init__(self) -> None:
        self.allowed.setflags(write=False)

    def holds(self, places: npt.NDArray[np.integer]) -> Booleans:
        """Tell which rows, shape (r, C), keep the rule."""
        held: Booleans = self.allowed[tuple(places[:, c] for c in self.columns)]
        return held


Truth = tuple[int, Booleans]  # a column, and at which of its places a name holds


def compiled(parts: Iterable[tuple[Expression, dict[str, Truth]]], sizes: Sequence[int]) -> tuple[Rule, ...]:
    """Make the tables of predicates, each given with the truth of its names; one table a set of columns.

    Raises
    ------
    ValueError
        A predicate looks at columns with more than 2^20 cells: says how many.
    """
    found: dict[tuple[int, ...], Booleans] = {}
    for expression, names in parts:
        columns = tuple(sorted({column for column, _ in names.values()}))
        cells = prod(sizes[c] for c in columns)
        if cells > MAX_RULE_CELLS:
            raise ValueError(
                f"valid: rule {shorten(expression.text)!r} looks at {len(columns)} columns, which have "
                f"{cells} cells together: a rule may look at up to 2^20; split it into rules of fewer columns"
            )
        shape = tuple(sizes[c] for c in columns)
        allowed = truth_of(expression, names, columns, shape)
        found[columns] = found[columns] & allowed if columns in found else allowed
    return tuple(Rule(columns, allowed) for columns, allowed in found.items())


def truth_of(
    expression: Expression, names: dict[str, Truth], columns: tuple[int, ...], shape: tuple[int, ...]
) -> Booleans:
    """Return where a predicate holds over the cells of the columns, as an array of that shape."""

    def along(name: str) -> Booleans:
        column, truth = names[name]
        axis = columns.index(column)
        return truth.reshape([-1 if i == axis else 1 for i in range(len(shape))])

    return np.ascontiguousarray(np.broadcast_to(expression.evaluate(along), shape))


Factor = tuple[tuple[int, ...], npt.NDArray[Any]]  # columns, and a table over them


def count(rules: Sequence[Rule], sizes: Sequence[int]) -> int | None:
    """Return how many rows keep all rules, exactly; None where a table on the way passes 2^20 cells.

    Columns are summed out one by one, the cheapest first (variable elimination).
    """
    order, widest = _order(rules, sizes, ())
    if widest > MAX_RULE_CELLS:
        return None
    exact = np.int64 if prod(sizes) < 1 << 62 else object
    left = _eliminated([(rule.columns, rule.allowed.astype(exact)) for rule in rules], sizes, order, widest)
    free = prod(k for c, k in enumerate(sizes) if c not in order)
    return int(reduce(lambda product, factor: product * int(factor[1]), left, free))


def projected(rules: Sequence[Rule], sizes: Sequence[int], keep: tuple[int, ...]) -> tuple[Booleans, bool]:
    """Return which settings of the columns `keep` some row that keeps all rules has; whether that is exact.

    Where a table on the way would pass 2^20 cells, rules are projected apart (mini-buckets): what is then
    ruled out is ruled out rightly, but more may be.
    """
    order, widest = _order(rules, sizes, keep)
    exact = widest <= MAX_RULE_CELLS
    largest = widest if exact else MAX_BUCKET
    left = _eliminated([(rule.columns, rule.allowed) for rule in rules], sizes, order, largest)
    allowed = np.ones([sizes[c] for c in keep], dtype=bool)
    for columns, table in left:
        allowed &= _over(table, columns, keep)
    return allowed, exact


def listed(rules: Sequence[Rule], sizes: Sequence[int]) -> npt.NDArray[np.integer] | None:
    """List the rows that keep all rules, column by column, shape (r, C); None: beyond 2^20 on the way."""
    places = np.zeros((1, 0), dtype=np.min_scalar_type(max(sizes) - 1))
    for c, k in enumerate(sizes):
        if len(places) > MAX_RULE_CELLS // k:
            return None
        grown = np.repeat(places, k, axis=0)
        places = np.column_stack([grown, np.tile(np.arange(k, dtype=places.dtype), len(places))])
        for rule in rules:
            if c in rule.columns:
                known = tuple(i for i in rule.columns if i <= c)
                later = tuple(a for a, i in enumerate(rule.columns) if i > c)
                prefix = np.asarray(rule.allowed.any(axis=later))
                places = places[prefix[tuple(places[:, i] for i in known)]]
    return places


def closure(rules: Sequence[Rule], sizes: Sequence[int]) -> tuple[Rule, ...]:
    """Return what all rules together say of each column, and of each pair beyond that."""
    members = sorted({c for rule in rules for c in rule.columns})
    alone = {c: projected(rules, sizes, (c,))[0] for c in members}
    found = [Rule((c,), allowed) for c, allowed in alone.items() if not allowed.all()]
    for a, b in combinations(members, 2):
        allowed, _ = projected(rules, sizes, (a, b))
        if (allowed != np.logical_and.outer(alone[a], alone[b])).any():
            found.append(Rule((a, b), allowed))
    return tuple(found)


def _order(rules: Sequence[Rule], sizes: Sequence[int], keep: tuple[int, ...]) -> tuple[list[int], int]:
    """Order the columns to be summed out, cheapest first; with the cells of the largest table on the way."""
    left, order, widest = [set(rule.columns) for rule in rules], list[int](), 1
    waiting = {c for scope in left for c in scope} - set(keep)
    cost: dict[int, int] = {}

    def joint(c: int) -> set[int]:
        return set().union(*(scope for scope in left if c in scope))

    stale = set(waiting)
    while waiting:
        cost |= {c: prod(sizes[i] for i in joint(c)) for c in stale & waiting}
        c = min(waiting, key=lambda column: (cost[column], column))
        waiting.remove(c)
        order.append(c)
        widest = max(widest, cost[c])
        stale = joint(c) - {c}
        left = [scope for scope in left if c not in scope] + [stale]
    return order, widest


def _eliminated(
    factors: list[Factor], sizes: Sequence[int], order: Iterable[int], largest: int
) -> list[Factor]:
    """Sum out columns in order (of bool tables, by OR); no joint table has more than `largest` cells."""
    for c in order:
        touched = [factor for factor in factors if c in factor[0]]
        factors = [factor for factor in factors if c not in factor[0]]
        groups: list[tuple[tuple[int, ...], list[Factor]]] = []
        for factor in touched:
            for g, (members, parts) in enumerate(groups):
                together = tuple(sorted({*members, *factor[0]}))
                if prod(sizes[i] for i in together) <= largest:
                    groups[g] = (together, [*parts, factor])
                    break
            else:
                groups.append((factor[0], [factor]))
        for members, parts in groups:
            tables = [_over(table, columns, members) for columns, table in parts]
            product = np.broadcast_to(reduce(np.multiply, tables), [sizes[i] for i in members])
            axis = members.index(c)
            summed = product.any(axis) if product.dtype == bool else product.sum(axis)
            factors.append((tuple(i for i in members if i != c), np.asarray(summed)))
    return factors


def _over(table: npt.NDArray[Any], columns: tuple[int, ...], members: tuple[int, ...]) -> npt.NDArray[Any]:
    """Lay a table over more columns, with an axis of length 1 for each that it does not see."""
    sizes = iter(table.shape)
    return table.reshape([next(sizes) if i in columns else 1 for i in members])
