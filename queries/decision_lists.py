"""Decision lists: one attribute after another is asked, until an answer decides."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from queries.domain import Domain
from queries.expressions import quote
from queries.query import Query
from queries.query_class import QueryClass

MOST_ATTRIBUTES = 5  # 15,036 lists; of six there are about 270,000


@dataclass(frozen=True, slots=True)
class DecisionLists(QueryClass):
    """All lists ``if l_1: b_1; ...; else b`` of literals l_i: 4, 14, 96, 1050, 15036 for d = 1..5.

    These are the 1-decision lists of Rivest (1987). Each is also a halfspace, whose weights halve from one
    literal to the next.

    Notes
    -----
    The label of a query is a predicate: ``if l: 1; else f`` is ``l | f``, and ``if l: 0; else f`` is
    ``~l & f``.

    Examples
    --------
    >>> DecisionLists().workload(Domain(["a", "b"])).labels
    ('a', 'b', 'a & b', 'a | b', 'a & ~b', 'a | ~b')
    >>> DecisionLists().workload(Domain(["a", "b", "c"])).size
    47
    """

    @property
    def text(self) -> str:
        """``decision-lists``."""
        return "decision-lists"

    def stated(self, domain: Domain) -> int:
        """Return how many there are on the whole cube; ValueError beyond 5 attributes."""
        return len(_lists(len(domain.attributes)))

    def vc_bounds(self, domain: Domain) -> tuple[int, int]:
        """
        Return d + 1 twice, or as the upper bound where some settings cannot exist.

        They are halfspaces, and the d + 1 rows with at most one attribute get all answers.
        """
        dimension = len(domain.attributes) + 1
        return (dimension if domain.free else 0), dimension

    def queries(self, domain: Domain) -> Iterator[Query]:
        """Yield them by length, each over the attributes that it asks."""
        names = [quote(name) for name in domain.attributes]
        for table, (asked, label) in _lists(len(names)).items():
            yield Query(label.format(*names), asked, _table(table, asked, len(names)))


@lru_cache(maxsize=MOST_ATTRIBUTES)
def _lists(d: int) -> dict[int, tuple[tuple[int, ...], str]]:
    """Return each list's answers on all 2^d cells, as bits, with the attributes it asks and its label."""
    if d > MOST_ATTRIBUTES:
        raise ValueError(f"decision-lists: at most {MOST_ATTRIBUTES} attributes, not {d}")
    cells, everywhere = range(1 << d), (1 << (1 << d)) - 1
    literals = []
    for i in range(d):
        where = sum(1 << cell for cell in cells if cell >> (d - 1 - i) & 1)
        literals += [(i, where, f"{{{i}}}"), (i, everywhere ^ where, f"~{{{i}}}")]
    found: dict[int, tuple[tuple[int, ...], str]] = {0: ((), "FALSE"), everywhere: ((), "TRUE")}
    found |= {where: ((i,), label) for i, where, label in literals}
    # A list in which an attribute decides nothing is a shorter one. So a list of k attributes asks one before
    # a list of k - 1 others. With a and b these are a & b, a | b, a & ~b, ...: 8 of them.
    longest = [*found][2:]
    for _ in range(1, d):
        longer = []
        for i, where, label in literals:
            for rest in longest:
                asked, others = found[rest]
                if i not in asked:
                    for sign, other, table in (("&", "|", where & rest), ("|", "&", where | rest)):
                        if table not in found:
                            inner = f"({others})" if other in others else others
                            found[table] = tuple(sorted((i, *asked))), f"{label} {sign} {inner}"
                            longer.append(table)
        longest = longer
    return found


def _table(table: int, asked: tuple[int, ...], d: int) -> tuple[int, ...]:
    """Return the answers by the settings of the attributes asked, the others 0."""
    return tuple(table >> cell & 1 for cell in _cells(asked, d))


@lru_cache(maxsize=1 << MOST_ATTRIBUTES)
def _cells(asked: tuple[int, ...], d: int) -> tuple[int, ...]:
    bits = product((0, 1), repeat=len(asked))
    return tuple(sum(bit << (d - 1 - i) for bit, i in zip(some, asked, strict=True)) for some in bits)
