"""Predicates: yes/no questions in a small boolean grammar."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from queries.domain import MAX_CELLS, MAX_TABLE_ATTRIBUTES, Domain
from queries.expressions import Expression, parse, shorten
from queries.query import Query
from queries.query_class import QueryClass
from queries.rule_tables import Truth, truth_of


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
        given = (texts,) if isinstance(texts, str) else tuple(texts)
        if not given:
            raise ValueError("predicates: expected at least one")
        for text in given:
            parse(text)
        object.__setattr__(self, "texts", given)

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
    found = {name: domain.find(name) for name in expression.names}
    for name, truth in found.items():
        if truth is None:
            word = "attribute" if domain.binary else "attribute or category"
            raise ValueError(
                f"predicate {shorten(text)!r}: unknown {word} {shorten(name)!r}{domain.nearest(name)}"
            )
    if not set(expression.names) <= set(domain.attributes):
        return _of_categories(
            text, expression, {name: truth for name, truth in found.items() if truth}, domain
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
