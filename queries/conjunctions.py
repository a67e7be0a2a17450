"""Conjunctions and disjunctions of up to `width` attributes, and marginals of up to `width` columns."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from typing import ClassVar

from queries.domain import MAX_TABLE_ATTRIBUTES, Domain
from queries.expressions import quote
from queries.query import Cells, Query
from queries.query_class import QueryClass


class _OfWidth(QueryClass):
    """What classes of up to (or exactly) `width` attributes or columns share."""

    __slots__ = ()
    name: ClassVar[str]  # as `queries.spec` reads it
    literals: ClassVar[int] = 1  # of each attribute: itself, or its negation, too
    width: int
    exactly: bool

    def __post_init__(self) -> None:
        if isinstance(self.width, bool) or not isinstance(self.width, int):
            raise TypeError(f"width must be a whole number, not {type(self.width).__name__}")
        if self.width < 1:
            raise ValueError(f"width must be at least 1, not {self.width}")

    @property
    def text(self) -> str:
        """Such as ``marginals:2``, or ``marginals:=2`` for exactly 2."""
        return f"{self.name}:{'=' * self.exactly}{self.width}"

    def stated(self, domain: Domain) -> int:
        """Return how many queries there are."""
        return count_subsets(domain, self.width, self.exactly, self.literals)

    def stated_weights(self, domain: Domain) -> int:
        """Return how many cells the tables of all queries have."""
        return count_weights(domain, self.width, self.exactly, self.literals)


@dataclass(frozen=True, slots=True)
class Conjunctions(_OfWidth):
    """
    ANDs of up to `width` attributes (with `negations`: of attributes or their negations).

    Without `exactly`, the empty conjunction TRUE is stated too: sum over i <= width of C(d, i)
    queries, or C(d, i) 2^i with negations.

    Parameters
    ----------
    width
        The most attributes of a query, at least 1.
    negations
        Whether literals may be negated.
    exactly
        Whether each query has `width` attributes, and no fewer.

    Examples
    --------
    >>> Conjunctions(2).workload(Domain(["a", "b"])).labels
    ('a', 'b', 'a & b')
    """

    name: ClassVar[str] = "conjunctions"

    width: int
    negations: bool = False
    exactly: bool = False

    @property
    def text(self) -> str:
        """Such as ``conjunctions:2:negations``."""
        return super(Conjunctions, self).text + ":negations" * self.negations

    @property
    def literals(self) -> int:  # type: ignore[override]
        """How many literals each attribute has."""
        return 2 if self.negations else 1

    def vc_bounds(self, domain: Domain) -> tuple[int, int]:
        """Return the bounds of `vc_of_subsets`; with negations, also log2 of the literals as a lower bound.

        At most d: those of all widths shatter no more (Natschlaeger and Schmitt 1996).
        """
        d = len(domain.attributes)
        low, high = vc_of_subsets(domain, self.width, self.exactly, self.stated(domain))
        if self.exactly:  # all cells of a shattered set satisfy one conjunction: d - width attributes vary
            high = min(high, 1 << (d - self.width))
        if self.negations and domain.free:
            # 2^v literals and their negations give 1 + v cells every pattern, beside width - 1 fixed ones
            low = max(low, (d - self.width + 1 if self.exactly else d).bit_length())
        return low, high

    def queries(self, domain: Domain) -> Iterator[Query]:
        """Yield them by width, then in the order of the attributes."""
        names = [quote(name) for name in domain.attributes]
        for chosen in subsets(domain, self.width, self.exactly):
            patterns = product((1, 0), repeat=len(chosen)) if self.negations else [(1,) * len(chosen)]
            for pattern in patterns:
                yield _cell(names, chosen, pattern)


@dataclass(frozen=True, slots=True)
class Disjunctions(_OfWidth):
    """
    ORs of up to `width` attributes; without `exactly`, the empty disjunction FALSE is stated too.

    Parameters
    ----------
    width, exactly
        As for `Conjunctions`.

    Examples
    --------
    >>> Disjunctions(2, exactly=True).workload(Domain(["a", "b"])).labels
    ('a | b',)
    """

    name: ClassVar[str] = "disjunctions"

    width: int
    exactly: bool = False

    def vc_bounds(self, domain: Domain) -> tuple[int, int]:
        """Return the bounds of conjunctions: a disjunction is one with cells and values negated."""
        return Conjunctions(self.width, exactly=self.exactly).vc_bounds(domain)

    def queries(self, domain: Domain) -> Iterator[Query]:
        """Yield them by width, then in the order of the attributes."""
        names = [quote(name) for name in domain.attributes]
        for chosen in subsets(domain, self.width, self.exactly):
            label = " | ".join([names[i] for i in chosen])
            yield Query(label or "FALSE", chosen, _any_table(len(chosen)))


@dataclass(frozen=True, slots=True)
class Marginals(_OfWidth):
    """
    All cells of every table of up to `width` columns (`exactly`: of that width alone).

    Of yes/no columns the cells of a table are the conjunctions with negations, so the class is then
    ``Conjunctions(width, negations=True)`` under the name that statistics gives it.

    Parameters
    ----------
    width
        The most columns of a table, at least 1.
    exactly
        Whether each table has `width` columns, and no fewer.

    Examples
    --------
    >>> Marginals(1).workload(Domain(["a", "b"])).labels
    ('a', 'b')
    >>> Marginals(2, exactly=True).workload(Domain(["a", "b"])).labels
    ('a & b', 'a & ~b', '~a & b', '~a & ~b')
    >>> from queries import Column
    >>> Marginals(1).workload(Domain([Column("job", ["none", "part", "full"]), "a"])).labels
    ('`job=none`', '`job=part`', '`job=full`', 'a')
    """

    name: ClassVar[str] = "marginals"
    literals: ClassVar[int] = 2  # of yes/no columns: no and yes

    width: int
    exactly: bool = False

    def stated(self, domain: Domain) -> int:
        """Return how many cells there are in all."""
        if domain.binary:
            return super(Marginals, self).stated(domain)
        if self.width > len(domain.sizes):
            raise ValueError(f"width {self.width} is more than the {len(domain.sizes)} columns of the domain")
        cells = [1] + [0] * self.width  # of all tables of 0, 1, ... columns
        for k in domain.sizes:
            for w in range(self.width, 0, -1):
                cells[w] += cells[w - 1] * k
        return cells[-1] if self.exactly else sum(cells)

    def vc_bounds(self, domain: Domain) -> tuple[int, int]:
        """Return the bounds of conjunctions with negations; of other columns log2 of the number stated."""
        if domain.binary:
            return self._conjunctions.vc_bounds(domain)
        return 0, self.stated(domain).bit_length() - 1

    def queries(self, domain: Domain) -> Iterator[Query]:
        """Yield them table by table."""
        if domain.binary:
            yield from self._conjunctions.queries(domain)
        else:
            for columns in self.tables(domain):
                yield from Cells.of(domain, columns).queries(domain)

    def tables(self, domain: Domain) -> Iterator[tuple[int, ...]]:
        """Yield the sets of columns, by size, then in order."""
        for size in range(self.width if self.exactly else 0, self.width + 1):
            yield from combinations(range(len(domain.sizes)), size)

    @property
    def _conjunctions(self) -> Conjunctions:
        return Conjunctions(self.width, negations=True, exactly=self.exactly)


def subsets(domain: Domain, width: int, exactly: bool) -> Iterator[tuple[int, ...]]:
    """Yield the sets of up to (or exactly) `width` attributes, by size, as ascending positions."""
    for size in range(width if exactly else 0, width + 1):
        yield from combinations(range(len(domain.attributes)), size)


def count_subsets(
    domain: Domain, width: int, exactly: bool, base: int, largest: int = MAX_TABLE_ATTRIBUTES
) -> int:
    """Return the sum over the sets of `subsets` of ``base^size``."""
    d = len(domain.attributes)
    if width > d:
        raise ValueError(f"width {width} is more than the {d} attributes of the domain")
    if width > largest:
        raise ValueError(f"width {width} is too large: queries are tables over at most {largest} attributes")
    each, counts = 1, []  # so wide parities are counted quickly, too
    for i in range(width + 1):
        counts.append(each)
        each = each * (d - i) * base // (i + 1)
    return counts[-1] if exactly else sum(counts)


def count_weights(domain: Domain, width: int, exactly: bool, base: int) -> int:
    """Count the cells of the tables of the columns of all queries, over all their categories."""
    weights = [1] + [0] * width  # of all queries over 0, 1, ... attributes
    for column in domain.columns:
        alone = [math.comb(len(column.attributes), j) * base**j * column.size for j in range(width + 1)]
        weights = [
            weights[w] + sum(alone[j] * weights[w - j] for j in range(1, w + 1) if alone[j])
            for w in range(width + 1)
        ]
    return weights[-1] if exactly else sum(weights)


def vc_of_subsets(domain: Domain, width: int, exactly: bool, stated: int) -> tuple[int, int]:
    """Return bounds on the VC dimension of ANDs, ORs or XORs of up to (or exactly) `width` attributes."""
    # The lower one: cut the attributes into `width` groups and take one of each group, or (without `exactly`)
    # none. A group of 2^v attributes, the missing one included, shatters v cells, and the other groups do not
    # see those: at least k floor(log2(d / k)) (Littlestone 1988), and for ANDs of up to k attributes it is
    # conjectured to be exact (Frein, Leveque and Sebo 2008). It is 0 where some settings cannot exist.
    d = len(domain.attributes)
    choices = d if exactly else d + width
    each = (choices // width).bit_length() - 1
    low = width * (each - 1) + (choices >> each)
    return (low if domain.free else 0), min(d, stated.bit_length() - 1)


def _cell(names: list[str], chosen: tuple[int, ...], pattern: tuple[int, ...]) -> Query:
    if all(pattern):
        literals = [names[i] for i in chosen]
    else:
        literals = [names[i] if wanted else "~" + names[i] for i, wanted in zip(chosen, pattern, strict=True)]
    return Query(" & ".join(literals) or "TRUE", chosen, _one_cell_table(pattern))


@lru_cache(maxsize=1024)
def _one_cell_table(pattern: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(setting == pattern) for setting in product((0, 1), repeat=len(pattern)))


@lru_cache(maxsize=32)
def _any_table(size: int) -> tuple[int, ...]:
    return tuple(int(setting > 0) for setting in range(1 << size))


@dataclass(frozen=True, slots=True)
class Parities(_OfWidth):
    """
    XORs of up to `width` attributes; without `exactly`, the empty parity (constant 0) is stated too.

    Parameters
    ----------
    width, exactly
        As for `Conjunctions`.

    Examples
    --------
    >>> Parities(2).workload(Domain(["a", "b"])).labels
    ('a', 'b', 'a ^ b')
    """

    name: ClassVar[str] = "parities"

    width: int
    exactly: bool = False

    def stated(self, domain: Domain) -> int:
        """Return how many parities there are (no table is kept, so any width is possible)."""
        return count_subsets(domain, self.width, self.exactly, 1, largest=len(domain.attributes))

    def stated_weights(self, domain: Domain) -> int:
        """Return how many cells the tables of all queries have: of yes/no columns none is kept."""
        return 0 if domain.binary else super(Parities, self).stated_weights(domain)

    def vc_bounds(self, domain: Domain) -> tuple[int, int]:
        """Return the bounds of `vc_of_subsets`; at most d, the dimension over GF(2).

        The value is the most check bits of a linear code of length d and covering radius `width`.
        """
        return vc_of_subsets(domain, self.width, self.exactly, self.stated(domain))

    def queries(self, domain: Domain) -> Iterator[Query]:
        """Yield them by width, then in the order of the attributes."""
        names = [quote(name) for name in domain.attributes]
        for chosen in subsets(domain, self.width, self.exactly):
            label = " ^ ".join([names[i] for i in chosen])
            yield Query(label or "FALSE", chosen, None)
