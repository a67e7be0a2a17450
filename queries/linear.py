"""Queries of one's own: weights of the cells of a few columns, and predicates."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from math import prod

import numpy as np

from queries.domain import MAX_CELLS, MAX_TABLE_ATTRIBUTES, Domain
from queries.expressions import Expression, parse, shorten
from queries.query import Query
from queries.query_class import QueryClass
from queries.rows import MAX_TOTAL
from queries.rule_tables import Truth, truth_of

Weight = int | float | str | Fraction | Decimal


@dataclass(frozen=True, slots=True)
class Linear(QueryClass):
    """The queries of a matrix: one row a query, one column a cell of the domain, in cell order.

    Parameters
    ----------
    matrix
        Rational numbers in [0, 1], one row a query; a float is read through its shortest decimal text, so
        0.1 is 1/10.
    labels
        One a row; None: they are numbered.

    Examples
    --------
    >>> queries = Linear([[0, "1/3", 1, 0.5]], labels=["score"])
    >>> queries.workload(Domain(["a", "b"])).denominator
    6
    """

    weights: tuple[tuple[Fraction, ...], ...]
    labels: tuple[str, ...]

    def __init__(self, matrix: Iterable[Sequence[Weight]], labels: Iterable[str] | None = None) -> None:
        weights = tuple(tuple(_weight(w) for w in row) for row in matrix)
        if not weights:
            raise ValueError("linear: expected at least one row of weights")
        names = tuple(f"linear {j}" for j in range(len(weights))) if labels is None else tuple(labels)
        if len(names) != len(weights):
            raise ValueError(f"linear: expected {len(weights)} labels, one a row, not {len(names)}")
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "labels", names)

    @property
    def text(self) -> str:
        """``linear:`` and a digest of labels and weights, which are too many for a text."""
        exact = repr((self.labels, [[str(w) for w in row] for row in self.weights]))
        return f"linear:sha256={sha256(exact.encode()).hexdigest()[:16]}"

    def stated(self, domain: Domain) -> int:
        """Return how many rows were given."""
        return len(self.weights)

    def vc_bounds(self, domain: Domain) -> tuple[int, int]:
        """Return 0 and log2 of the number of rows; ValueError for weights other than 0 and 1."""
        if any(w not in (0, 1) for row in self.weights for w in row):
            raise ValueError("linear: a VC dimension is that of weights 0 and 1 only")
        return 0, len(self.weights).bit_length() - 1

    def queries(self, domain: Domain) -> Iterator[Query]:
        """Yield each row as a table over all columns (0 on cells that cannot exist)."""
        if domain.product > MAX_CELLS:
            limit = f"{MAX_TABLE_ATTRIBUTES} attributes" if domain.binary else "2^20 cells"
            raise ValueError(f"linear queries need a domain of at most {limit}")
        columns, sizes = tuple(range(len(domain.sizes))), None if domain.binary else domain.sizes
        for label, row in zip(self.labels, self.weights, strict=True):
            if len(row) != domain.size:
                raise ValueError(f"linear: query {label!r} has {len(row)} weights for {domain.size} cells")
            denominator = math.lcm(*(w.denominator for w in row))
            if denominator >= MAX_TOTAL:
                raise ValueError(f"linear: query {label!r} needs a common denominator of 2^62 or more")
            table = [0] * domain.product
            for cell, w in zip(domain.cells().tolist(), row, strict=True):
                table[cell] = w.numerator * (denominator // w.denominator)
            yield Query(label, columns, tuple(table), denominator, sizes)


def _weight(value: Weight) -> Fraction:
    try:
        weight = Fraction(repr(float(value)) if isinstance(value, float) else value)
    except (ValueError, TypeError, OverflowError, ZeroDivisionError) as error:
        raise ValueError("linear: weights must be rational numbers") from error
    if not 0 <= weight <= 1:
        raise ValueError("linear: weights must lie in [0, 1]")
    return weight


@dataclass(frozen=True, slots=True)
class Predicates(QueryClass):
    """The given predicates, such as ``"smoker & ~(older | married)"``.

    The grammar has ``& | ~ ^`` and parentheses; names that are not identifiers stand in backticks;
    nothing is evaluated as code. A name is an attribute, a category of a column (``job=part``), or a range
    of an ordered one (``age>=40``).

    >>> Predicates(["a & ~b", "~a | b"]).workload(Domain(["a", "b"])).labels
    ('a & ~b',)
    """

    texts: tuple[str, ...]

    def __init__(self, texts: Iterable[str]) -> None:
        predicates = (texts,) if isinstance(texts, str) else tuple(texts)
        if not predicates:
            raise ValueError("predicates: expected at least one")
        for text in predicates:
            parse(text)
        object.__setattr__(self, "texts", predicates)

    @property
    def text(self) -> str:
        """Such as ``predicates:a & b; ~c``."""
        return "predicates:" + "; ".join(self.texts)

    def stated(self, domain: Domain) -> int:
        """Return how many predicates were given."""
        return len(self.texts)

    def queries(self, domain: Domain) -> Iterator[Query]:
        """Yield each as a table over the attributes that it names, or over their columns."""
        for text in self.texts:
            yield _query(text, domain)


def _query(text: str, domain: Domain) -> Query:
    expression = parse(text)
    truths = {name: domain.find(name) for name in expression.names}
    for name, truth in truths.items():
        if truth is None:
            word = "attribute" if domain.binary else "attribute or category"
            raise ValueError(
                f"predicate {shorten(text)!r}: unknown {word} {shorten(name)!r}{domain.nearest(name)}"
            )
    if not set(expression.names) <= set(domain.attributes):
        return _of_categories(
            text, expression, {name: truth for name, truth in truths.items() if truth}, domain
        )
    attributes = tuple(sorted(domain.attributes.index(name) for name in expression.names))
    width = len(attributes)
    if width > MAX_TABLE_ATTRIBUTES:
        raise ValueError(
            f"predicate {shorten(text)!r} looks at {width} attributes, more than {MAX_TABLE_ATTRIBUTES}"
        )
    settings = np.arange(1 << width)
    columns = {
        domain.attributes[i]: (settings >> (width - 1 - position) & 1).astype(bool)
        for position, i in enumerate(attributes)
    }
    held = expression.evaluate(columns.__getitem__)
    return Query(text.strip(), attributes, tuple(held.astype(int).tolist()))


def _of_categories(text: str, expression: Expression, names: dict[str, Truth], domain: Domain) -> Query:
    """Make a predicate that names categories or ranges: a table over their columns."""
    columns = tuple(sorted({column for column, _ in names.values()}))
    sizes = tuple(domain.sizes[c] for c in columns)
    if prod(sizes) > MAX_CELLS:
        raise ValueError(
            f"predicate {shorten(text)!r} looks at {len(columns)} columns, which have {prod(sizes)} cells "
            "together, more than 2^20"
        )
    held = truth_of(expression, names, columns).reshape(-1)
    weights = tuple(held.astype(int).tolist())
    return Query(text.strip(), columns, weights, sizes=None if domain.binary else sizes)
