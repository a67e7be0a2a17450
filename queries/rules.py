"""Rules: which categories of a few columns can stand together, and what several rules leave."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from math import prod
from typing import Any, final

import numpy as np
import numpy.typing as npt

from queries.arrays import Booleans

MAX_RULE_CELLS = 1 << 20  # of the columns that one rule looks at, and of each table on the way
MAX_RULES_CELLS = 1 << 24  # of the tables of all rules
MAX_NUMBERED = 1 << 62  # cells, where these have numbers: int64
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

    def holds(self, codes: npt.NDArray[np.integer]) -> Booleans:
        """Tell which rows, shape (r, C), keep the rule."""
        held: Booleans = self.allowed[tuple(codes[:, c] for c in self.columns)]
        return held


Factor = tuple[tuple[int, ...], npt.NDArray[Any]]  # columns, and a table over them


def count(rules: Sequence[Rule], sizes: Sequence[int]) -> int | None:
    """Count the rows that keep all rules, by variable elimination; None: beyond 2^20 cells on the way."""
    order, joints = _order(rules, sizes, ())
    widest = _widest(joints, sizes)
    if widest > MAX_RULE_CELLS:
        return None
    exact = np.int64 if prod(sizes) < 1 << 62 else object
    left = _eliminated([(rule.columns, rule.allowed.astype(exact)) for rule in rules], sizes, order, widest)
    free = prod(k for c, k in enumerate(sizes) if c not in order)
    return int(reduce(lambda product, factor: product * int(factor[1]), left, free))


def projected(rules: Sequence[Rule], sizes: Sequence[int], keep: tuple[int, ...]) -> Booleans:
    """Return which settings of some columns a row that keeps all rules can have; perhaps more."""
    # where a table would pass 2^20 cells, rules are projected apart (mini-buckets)
    rules = _meeting(rules, keep) if keep else rules
    order, joints = _order(rules, sizes, keep)
    widest = _widest(joints, sizes)
    largest = widest if widest <= MAX_RULE_CELLS else MAX_BUCKET
    left = _eliminated([(rule.columns, rule.allowed) for rule in rules], sizes, order, largest)
    allowed = np.ones([sizes[c] for c in keep], dtype=bool)
    for columns, table in left:
        allowed &= _over(table, columns, keep)
    return allowed


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Rules that meet, one with another or through others; rules of two parts share no column."""

    rules: Sequence[Rule]
    columns: tuple[int, ...]  # all columns that they look at, ascending
    sizes: Sequence[int]  # their numbers of categories: those of the whole domain
    # where all of them hold, shaped by the sizes of the columns; None beyond 2^20 cells
    table: Booleans | None

    @classmethod
    def of(cls, rules: Sequence[Rule], sizes: Sequence[int]) -> "Part":
        """Join rules that meet."""
        columns = tuple(sorted({c for rule in rules for c in rule.columns}))
        shape = [sizes[c] for c in columns]
        if prod(shape) > MAX_RULE_CELLS:
            return cls(rules, columns, sizes, None)
        table = np.ones(shape, dtype=bool)
        for rule in rules:
            table &= _over(rule.allowed, rule.columns, columns)
        return cls(rules, columns, sizes, table)

    def projected(self, keep: tuple[int, ...]) -> Booleans:
        """Return which settings of some of its columns can exist, as the function `projected` does."""
        if self.table is None:
            return projected(self.rules, self.sizes, keep)
        left, axis = self.table, 0
        for c in self.columns:  # from the first on: the rest of the table is in one piece
            if c in keep:
                axis += 1
            else:
                left = np.asarray(left.any(axis))
        return left

    def steps(self, sets: Collection[tuple[int, ...]]) -> int:
        """Return how long it takes to project it on each of some sets of its columns, in steps of 20 us."""
        if self.table is not None:
            return len(sets) * (1 + len(self.columns) // 4 + (self.table.size >> 17))
        joints = _order(self.rules, self.sizes, ())[1]
        each = len(self.rules) + len(joints) + sum(len(joint) ** 2 for joint in joints) // 16
        cells = sum(prod(self.sizes[c] for c in joint) for joint in joints)
        most = len(joints) * MAX_RULE_CELLS
        return sum(each + (min(most, cells * prod(self.sizes[c] for c in columns)) >> 16) for columns in sets)


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """All rules of a domain, by what they meet; each part is projected by itself."""

    of_column: Mapping[int, Part]  # the part of each column that some rule looks at
    sizes: Sequence[int]  # the numbers of categories of all columns

    @classmethod
    def of(cls, rules: Sequence[Rule], sizes: Sequence[int]) -> "Parts":
        """Find out which rules meet."""
        parts: dict[int, Part] = {}
        for rule in rules:
            if rule.columns and rule.columns[0] not in parts:
                part = Part.of(_meeting(rules, rule.columns), sizes)
                parts |= dict.fromkeys(part.columns, part)
        return cls(parts, sizes)

    def allowed(self, columns: tuple[int, ...]) -> Booleans:
        """Return which settings of these columns can exist: bool, shaped by their sizes."""
        allowed = np.ones([self.sizes[c] for c in columns], dtype=bool)
        for part, core in self._cores(columns).items():
            allowed &= _over(_projection(part, tuple(core)), tuple(core), columns)
        return allowed

    def steps(self, sets: Iterable[tuple[int, ...]]) -> int:
        """Return how long `allowed` takes on all of some sets of columns, in steps as those of a part."""
        cores: dict[Part, set[tuple[int, ...]]] = {}
        for columns in sets:
            for part, core in self._cores(columns).items():
                cores.setdefault(part, set()).add(tuple(core))
        return sum(part.steps(some) for part, some in cores.items())

    def _cores(self, columns: tuple[int, ...]) -> dict[Part, list[int]]:
        """Return what each part sees of some columns."""
        cores: dict[Part, list[int]] = {}
        for c in columns:
            if c in self.of_column:
                cores.setdefault(self.of_column[c], []).append(c)
        return cores


@lru_cache(maxsize=4096)
def _projection(part: Part, keep: tuple[int, ...]) -> Booleans:
    return part.projected(keep)


def listed(rules: Sequence[Rule], sizes: Sequence[int]) -> npt.NDArray[np.int64] | None:
    """List the cells of the rows that keep all rules, column by column; None: they are too many."""
    if prod(sizes) > MAX_NUMBERED:
        return None
    cells = np.zeros(1, dtype=np.int64)
    for c, k in enumerate(sizes):
        if len(cells) > MAX_RULE_CELLS // k:
            return None
        cells = (k * cells[:, None] + np.arange(k)).reshape(-1)
        for rule in rules:
            if c in rule.columns:
                known = tuple(i for i in rule.columns if i <= c)
                later = tuple(a for a, i in enumerate(rule.columns) if i > c)
                prefix = np.asarray(rule.allowed.any(axis=later))
                if not prefix.all():
                    cells = cells[
                        prefix[tuple(cells // prod(sizes[i + 1 : c + 1]) % sizes[i] for i in known)]
                    ]
    return cells


def _meeting(rules: Sequence[Rule], keep: tuple[int, ...]) -> Sequence[Rule]:
    """Return the rules that say something of the columns `keep`, alone or through rules between."""
    of_column = _by_column(tuple(rules))
    met, known, open_ = set[int](), {*keep}, [*keep]
    while open_:
        new = {i for i in of_column.get(open_.pop(), ()) if i not in met}
        met |= new
        beyond = {c for i in new for c in rules[i].columns} - known
        known |= beyond
        open_ += beyond
    return [rules[i] for i in sorted(met)]


@lru_cache(maxsize=32)
def _by_column(rules: tuple[Rule, ...]) -> dict[int, list[int]]:
    """Return the rules of each column, by their positions."""
    of_column: dict[int, list[int]] = {}
    for i, rule in enumerate(rules):
        for c in rule.columns:
            of_column.setdefault(c, []).append(i)
    return of_column


def _order(
    rules: Sequence[Rule], sizes: Sequence[int], keep: tuple[int, ...]
) -> tuple[list[int], list[set[int]]]:
    """Order the columns to be summed out, cheapest first; with the columns of each table on the way."""
    near: dict[int, set[int]] = {c: set() for rule in rules for c in rule.columns}
    for rule in rules:
        for c in rule.columns:
            near[c].update(rule.columns)
    order, joints = list[int](), list[set[int]]()
    cost = {c: prod(sizes[i] for i in joint) for c, joint in near.items() if c not in keep}
    while cost:
        c = min(cost, key=lambda column: (cost[column], column))
        if cost[c] > MAX_RULE_CELLS:  # nothing is exact from here on: the rest as it stands
            rest = sorted(cost, key=lambda column: (cost[column], column))
            return order + rest, joints + [near[column] for column in rest]
        del cost[c]
        order.append(c)
        joints.append(near.pop(c))
        joined = joints[-1] - {c}
        for i in joined:
            near[i] = near[i] - {c} | joined
            if i in cost:
                cost[i] = prod(sizes[j] for j in near[i])
    return order, joints


def _widest(joints: Iterable[Iterable[int]], sizes: Sequence[int]) -> int:
    return max((prod(sizes[c] for c in joint) for joint in joints), default=1)


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
        groups: list[tuple[int, int, list[Factor]]] = []  # columns, as bits, and how many cells they have
        for factor in touched:
            seen = sum(1 << i for i in factor[0])
            for g, (joined, cells, parts) in enumerate(groups):
                if cells << (seen & ~joined).bit_count() > largest:  # each has two categories or more
                    continue
                together = cells * prod([sizes[i] for i in factor[0] if not joined >> i & 1])
                if together <= largest:
                    groups[g] = (joined | seen, together, [*parts, factor])
                    break
            else:
                groups.append((seen, factor[1].size, [factor]))
        for _, _, parts in groups:
            members = tuple(sorted({i for columns, _ in parts for i in columns}))
            tables = [_over(table, columns, members) for columns, table in parts]
            product = reduce(np.multiply, tables)
            axis = members.index(c)
            if product.dtype != bool:
                put((members[:axis] + members[axis + 1 :], np.asarray(product.sum(axis))))
            elif not (left := np.asarray(product.any(axis))).all():  # what rules out nothing is dropped
                put((members[:axis] + members[axis + 1 :], left))
    return buckets[-1]


def _over(table: npt.NDArray[Any], columns: tuple[int, ...], members: tuple[int, ...]) -> npt.NDArray[Any]:
    """Lay a table over more columns, with an axis of length 1 for each that it does not see."""
    sizes = iter(table.shape)
    return table.reshape([next(sizes) if i in columns else 1 for i in members])


@final
@dataclass(frozen=True, slots=True, init=False)
class Relation:
    """A rule of `Domain.valid` whose meaning is given: which settings of a few columns can exist."""

    text: str
    tables: tuple[tuple[tuple[int, ...], tuple[int, ...], bytes], ...]  # columns, sizes, truth: compared

    def __init__(self, text: str, rules: Iterable[Rule]) -> None:
        object.__setattr__(self, "text", text)
        tables = tuple((rule.columns, rule.allowed.shape, rule.allowed.tobytes()) for rule in rules)
        object.__setattr__(self, "tables", tables)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of which all must hold."""
        return tuple(
            Rule(columns, np.frombuffer(truth, dtype=bool).reshape(shape))
            for columns, shape, truth in self.tables
        )

    def holds(self, codes: npt.NDArray[np.integer]) -> Booleans:
        """Tell which rows of codes, shape (r, C), keep it."""
        held = np.ones(len(codes), dtype=bool)
        for rule in self.rules:
            held &= rule.holds(codes)
        return held
