"""Predicates: yes/no questions in a small boolean grammar."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from queries.domain import MAX_TABLE_ATTRIBUTES, Domain
from queries.expressions import parse, shorten, suggestion
from queries.workload import Query, QueryClass


@dataclass(frozen=True, slots=True)
class Predicates(QueryClass):
    """The given predicates, such as ``"smoker & ~(older | married)"``.

    The grammar has ``& | ~ ^`` and parentheses; names that are not identifiers stand in backticks;
    nothing is evaluated as code.

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
        """Yield each as a table over the attributes that it names."""
        for text in self.texts:
            yield _query(text, domain)


def _query(text: str, domain: Domain) -> Query:
    expression = parse(text)
    for name in expression.names:
        if name not in domain.attributes:
            raise ValueError(
                f"predicate {shorten(text)!r}: unknown attribute {shorten(name)!r}"
                f"{suggestion(name, domain.attributes)}"
            )
    attributes = tuple(sorted(domain.attributes.index(name) for name in expression.names))
    width = len(attributes)
    if width > MAX_TABLE_ATTRIBUTES:
        raise ValueError(
            f"predicate {shorten(text)!r} looks at {width} attributes, more than {MAX_TABLE_ATTRIBUTES}"
        )
    settings = np.arange(1 << width)
    columns = {
        domain.attributes[i]: (settings >> (width - 1 - place) & 1).astype(bool)
        for place, i in enumerate(attributes)
    }
    held = expression.evaluate(columns.__getitem__)
    return Query(text.strip(), attributes, tuple(held.astype(int).tolist()))
