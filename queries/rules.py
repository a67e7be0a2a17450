"""Rules: which places of a few columns can stand together, and what several rules leave."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from queries.columns import Booleans
from queries.expressions import Expression, shorten

MAX_RULE_CELLS = 1 << 20  # of the columns that one rule looks at, and of each table on the way


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
    exact = np.int64 if prod(sizes) < 1 << 62 else object
    factors: list[Factor] = [(rule.columns, rule.allowed.astype(exact)) for rule in rules]
    seen = {c for columns, _ in factors for c in columns}
    left, whole = _eliminated(factors, sizes, seen)
    if not whole:
        return None
    free = prod(k for c, k in enumerate(sizes) if c not in seen)
    return int(reduce(lambda product, factor: product * int(factor[1]), left, free))


def projected(rules: Sequence[Rule], sizes: Sequence[int], keep: tuple[int, ...]) -> tuple[Booleans, bool]:
    """Return which settings of the columns `keep` some row that keeps all rules has; whether that is exact.

    Where a table on the way would pass 2^20 cells, rules are projected apart (mini-buckets): what is then
    ruled out is ruled out rightly, but more may be.
    """
    shape = tuple(sizes[c] for c in keep)
    factors: list[Factor] = [(rule.columns, rule.allowed) for rule in rules]
    seen = {c for columns, _ in factors for c in columns} - set(keep)
    left, whole = _eliminated(factors, sizes, seen)
    allowed = np.ones(shape, dtype=bool)
    for columns, table in left:
        allowed &= _over(table, columns, keep)
    return allowed, whole


def _eliminated(factors: list[Factor], sizes: Sequence[int], columns: set[int]) -> tuple[list[Factor], bool]:
    """Sum out columns, cheapest first; of tables that are bool, by OR. Tells whether all were joined."""
    whole, waiting, changed = True, set(columns), set[int]()

    def joint(c: int) -> tuple[int, ...]:
        return tuple(sorted({i for members, _ in factors if c in members for i in members}))

    cost = {c: prod(sizes[i] for i in joint(c)) for c in waiting}
    while waiting:
        c = min(waiting, key=lambda column: (cost[column], column))
        waiting.remove(c)
        touched = [factor for factor in factors if c in factor[0]]
        factors = [factor for factor in factors if c not in factor[0]]
        groups: list[tuple[tuple[int, ...], list[Factor]]] = []
        for factor in touched:
            for g, (members, parts) in enumerate(groups):
                together = tuple(sorted({*members, *factor[0]}))
                if prod(sizes[i] for i in together) <= MAX_RULE_CELLS:
                    groups[g] = (together, [*parts, factor])
                    break
            else:
                groups.append((factor[0], [factor]))
        whole = whole and len(groups) == 1
        changed.clear()
        for members, parts in groups:
            tables = [_over(table, columns, members) for columns, table in parts]
            product = np.broadcast_to(reduce(np.multiply, tables), [sizes[i] for i in members])
            axis = members.index(c)
            summed = product.any(axis) if product.dtype == bool else product.sum(axis)
            factors.append((tuple(i for i in members if i != c), np.asarray(summed)))
            changed.update(members)
        for i in changed & waiting:
            cost[i] = prod(sizes[j] for j in joint(i))
    return factors, whole


def _over(table: npt.NDArray[Any], columns: tuple[int, ...], members: tuple[int, ...]) -> npt.NDArray[Any]:
    """Lay a table over more columns, with an axis of length 1 for each that it does not see."""
    sizes = iter(table.shape)
    return table.reshape([next(sizes) if i in columns else 1 for i in members])
