"""Rules: which places of a few columns can stand together, and what several rules leave."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
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
    ruled out is ruled out rightly, but more may be. Rules that do not meet these columns, over others either,
    must leave some row, and are passed over.
    """
    rules = _meeting(rules, keep) if keep else rules
    order, widest = _order(rules, sizes, keep)
    exact = widest <= MAX_RULE_CELLS
    largest = widest if exact else MAX_BUCKET
    left = _eliminated([(rule.columns, rule.allowed) for rule in rules], sizes, order, largest)
    allowed = np.ones([sizes[c] for c in keep], dtype=bool)
    for columns, table in left:
        allowed &= _over(table, columns, keep)
    return allowed, exact


def steps(rules: Sequence[Rule], sets: Iterable[tuple[int, ...]]) -> int:
    """Return about how many tables are made where the rules are projected on each of some sets of columns."""
    part: dict[int, int] = {}  # the columns that meet, by the first rule of theirs
    weight: dict[int, int] = {}
    for first, rule in enumerate(rules):
        if rule.columns and rule.columns[0] not in part:
            met = _meeting(rules, rule.columns)
            part |= {c: first for each in met for c in each.columns}
            weight[first] = len(met)
    return sum(weight[i] for columns in sets for i in {part[c] for c in columns if c in part})


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


def _meeting(rules: Sequence[Rule], keep: tuple[int, ...]) -> Sequence[Rule]:
    """Return the rules that say something of the columns `keep`, alone or through rules between."""
    of_column = _by_column(tuple(rules))
    met, open_ = set[int](), [*keep]
    while open_:
        for i in of_column.get(open_.pop(), ()):
            if i not in met:
                met.add(i)
                open_ += rules[i].columns
    return [rules[i] for i in sorted(met)]


@lru_cache(maxsize=32)
def _by_column(rules: tuple[Rule, ...]) -> dict[int, list[int]]:
    """Return the rules of each column, by their places."""
    found: dict[int, list[int]] = {}
    for i, rule in enumerate(rules):
        for c in rule.columns:
            found.setdefault(c, []).append(i)
    return found


def _order(rules: Sequence[Rule], sizes: Sequence[int], keep: tuple[int, ...]) -> tuple[list[int], int]:
    """Order the columns to be summed out, cheapest first; with the cells of the largest table on the way."""
    near: dict[int, set[int]] = {c: set() for rule in rules for c in rule.columns}
    for rule in rules:
        for c in rule.columns:
            near[c].update(rule.columns)
    order, widest = list[int](), 1
    cost = {c: prod(sizes[i] for i in joint) for c, joint in near.items() if c not in keep}
    while cost:
        c = min(cost, key=lambda column: (cost[column], column))
        widest = max(widest, cost.pop(c))
        order.append(c)
        joined = near.pop(c) - {c}
        for i in joined:
            near[i] = near[i] - {c} | joined
            if i in cost:
                cost[i] = prod(sizes[j] for j in near[i])
    return order, widest


def _eliminated(
    factors: list[Factor], sizes: Sequence[int], order: Iterable[int], largest: int
) -> list[Factor]:
    """Sum out columns in order (of bool tables, by OR); no joint table has more than `largest` cells."""
    turns = {c: turn for turn, c in enumerate(order)}
    buckets: list[list[Factor]] = [[] for _ in range(len(turns) + 1)]  # by the first column to go; the rest

    def put(factor: Factor) -> None:
        buckets[min((turns[c] for c in factor[0] if c in turns), default=-1)].append(factor)

    for factor in factors:
        put(factor)
    for c, touched in zip(turns, buckets, strict=False):
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
            put((tuple(i for i in members if i != c), np.asarray(summed)))
    return buckets[-1]


def _over(table: npt.NDArray[Any], columns: tuple[int, ...], members: tuple[int, ...]) -> npt.NDArray[Any]:
    """Lay a table over more columns, with an axis of length 1 for each that it does not see."""
    sizes = iter(table.shape)
    return table.reshape([next(sizes) if i in columns else 1 for i in members])
