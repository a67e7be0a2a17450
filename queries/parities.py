"""Parities: XORs of up to `width` attributes."""

from collections.abc import Iterator
from dataclasses import dataclass

from queries.conjunctions import check_width, count_subsets, count_weights, subsets, vc_of_subsets, width_text
from queries.domain import Domain
from queries.expressions import quote
from queries.query import Query
from queries.query_class import QueryClass


@dataclass(frozen=True, slots=True)
class Parities(QueryClass):
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

    width: int
    exactly: bool = False

    def __post_init__(self) -> None:
        check_width(self.width)

    @property
    def text(self) -> str:
        """Such as ``parities:2``."""
        return f"parities:{width_text(self.width, self.exactly)}"

    def stated(self, domain: Domain) -> int:
        """Return how many parities there are (no table is kept, so any width is possible)."""
        return count_subsets(domain, self.width, self.exactly, 1, largest=len(domain.attributes))

    def stated_weights(self, domain: Domain) -> int:
        """Return how many cells the tables of all queries have: of yes/no columns none is kept."""
        return 0 if domain.binary else count_weights(domain, self.width, self.exactly, 1)

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
