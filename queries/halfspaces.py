"""Classes of learning theory: thresholds, intervals, halfspaces and decision lists."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import ClassVar

import numpy as np

from queries.domain import Domain
from queries.expressions import count_text, quote
from queries.query import Query
from queries.query_class import QueryClass

MAX_ENTRIES = 1 << 22  # entries of the tables of all queries together: a plan of them takes seconds


@dataclass(frozen=True, slots=True)
class Thresholds(QueryClass):
    """Whether the integer that the columns spell, first column most significant, is below a cut.

    The integer is the number of the row's cell: yes/no columns are its bits, and one ordered column alone is
    its code. On the N values that can exist these are N + 1 functions with the two constants.

    >>> Thresholds().workload(Domain(["a", "b"])).labels
    ('value < 1', 'value < 2', 'value < 3')
    """

    text: ClassVar[str] = "thresholds"

    def stated(self, domain: Domain) -> int:
        """Return N + 1."""
        return domain.size + 1

    def vc_bounds(self, domain: Domain) -> tuple[int, int]:
        """Return 1 twice: of two cells only the smaller can be below a cut alone."""
        return 1, 1

    def queries(self, domain: Domain) -> Iterator[Query]:
        """Yield them by their cut, each a table over all columns."""
        values = _values(self, domain)
        yield Query("FALSE", (), (0,))
        for cut in values[1:]:
            yield _between(domain, f"value < {cut}", 0, cut)
        yield Query("TRUE", (), (1,))


@dataclass(frozen=True, slots=True)
class Intervals(QueryClass):
    """Whether the integer that the columns spell, first column most significant, is in an interval.

    On the N values that can exist these are N (N + 1) / 2 + 1 functions with the empty interval.

    >>> Intervals().workload(Domain(["a", "b"])).labels
    ('value == 0', 'value <= 1', 'value <= 2', 'value == 1', '1 <= value <= 2', 'value == 2')
    """

    text: ClassVar[str] = "intervals"

    def stated(self, domain: Domain) -> int:
        """Return N (N + 1) / 2 + 1."""
        return domain.size * (domain.size + 1) // 2 + 1

    def vc_bounds(self, domain: Domain) -> tuple[int, int]:
        """Return 2 twice (1 on a single cell): of three cells no interval leaves out only the middle."""
        value = min(2, domain.size)
        return value, value

    def queries(self, domain: Domain) -> Iterator[Query]:
        """Yield them by their least value, then by their largest, each a table over all columns."""
        values = _values(self, domain)
        yield Query("FALSE", (), (0,))
        for position, least in enumerate(values):
            for largest in values[position:]:
                if least == values[0] and largest == values[-1]:
                    yield Query("TRUE", (), (1,))
                    continue
                if least == largest:
                    label = f"value == {least}"
                elif least == values[0]:
                    label = f"value <= {largest}"
                elif largest == values[-1]:
                    label = f"value >= {least}"
                else:
                    label = f"{least} <= value <= {largest}"
                yield _between(domain, label, least, largest + 1)


def _values(queries: Thresholds | Intervals, domain: Domain) -> list[int]:
    """Return the values that can exist, ascending; ValueError where the tables would be too large."""
    d = len(domain.attributes)
    if queries.stated(domain) * domain.product > MAX_ENTRIES:
        if not domain.binary:
            raise ValueError(
                f"{queries.text}: {queries.stated(domain)} tables of {count_text(domain.product)} cells are "
                f"too large: up to {MAX_ENTRIES} entries are held; use fewer columns or categories"
            )
        most = max(i for i in range(1, 25) if queries.stated(Domain(i)) << i <= MAX_ENTRIES)
        raise ValueError(
            f"{queries.text}: {queries.stated(domain)} tables over {d} attributes are too large: "
            f"use up to {most} attributes"
        )
    values: list[int] = domain.cells().tolist()
    return values


def _between(domain: Domain, label: str, least: int, end: int) -> Query:
    weights = (0,) * least + (1,) * (end - least) + (0,) * (domain.product - end)
    sizes = None if domain.binary else domain.sizes
    return Query(label, tuple(range(len(domain.sizes))), weights, sizes=sizes)


# |w_i| up to this give every halfspace of 1, 2, 3, 4 attributes (Muroga 1971), also of those against the last
LARGEST_WEIGHT = (1, 1, 2, 3)


@dataclass(frozen=True, slots=True)
class Halfspaces(QueryClass):
    """All functions ``w_1 x_1 + ... + w_d x_d >= t`` with real weights: 4, 14, 104, 1882 for d = 1..4.

    Every attribute is an input. If one attribute is a label z to be predicted, ``h(x) = z`` is no halfspace.
    It is the sum of two queries: ``h(x) and z``, and ``not h(x) and not z``.

    Parameters
    ----------
    last
        Only ``w_1 x_1 + ... + w_(d-1) x_(d-1) >= x_d``, with the last attribute on the right side: 1, 3, 16,
        185 for d = 1..4. These are the halfspaces of the encyclopaedia's article "Exponential mechanism".

    Notes
    -----
    The label of a query states whole weights with the least sum of absolute values. The label of a negated
    query states those of its complement.

    Examples
    --------
    >>> Halfspaces().workload(Domain(["a", "b"])).labels
    ('a >= 1', 'b >= 1', 'a + b >= 1', 'a + b >= 2', 'a - b >= 0', 'a - b >= 1')
    """

    last: bool = False

    @property
    def text(self) -> str:
        """``halfspaces``, or ``halfspaces:last``."""
        return "halfspaces:last" if self.last else "halfspaces"

    def stated(self, domain: Domain) -> int:
        """Return how many there are on the whole cube; ValueError beyond 4 attributes."""
        return len(_halfspaces(len(domain.attributes), self.last))

    def vc_bounds(self, domain: Domain) -> tuple[int, int]:
        """
        Return d + 1 twice (Radon), or as the upper bound where some settings cannot exist.

        Against the last attribute: d - 1, by the rows of one attribute besides the last, and d, because the
        threshold is 0.
        """
        dimension = len(domain.attributes) + 1 - self.last
        return (dimension - self.last if domain.free else 0), dimension

    def queries(self, domain: Domain) -> Iterator[Query]:
        """Yield them by the sum of their absolute weights, each over the attributes of weight not 0."""
        for weights, threshold in _halfspaces(len(domain.attributes), self.last):
            chosen = tuple(i for i, w in enumerate(weights) if w)
            table = tuple(
                int(sum(weights[i] for i, bit in zip(chosen, setting, strict=True) if bit) >= threshold)
                for setting in product((0, 1), repeat=len(chosen))
            )
            yield Query(_label(domain, weights, threshold), chosen, table)


@lru_cache(maxsize=2 * len(LARGEST_WEIGHT))
def _halfspaces(d: int, last: bool = False) -> tuple[tuple[tuple[int, ...], int], ...]:
    """Return weights and threshold of each halfspace, plainest first: few and positive weights."""
    if d > len(LARGEST_WEIGHT):
        raise ValueError(f"halfspaces: at most {len(LARGEST_WEIGHT)} attributes, not {d}")
    cells = np.array(list(product((0, 1), repeat=d)))
    largest = LARGEST_WEIGHT[d - 1]

    def plainness(weights: tuple[int, ...]) -> tuple[int, int, tuple[int, ...]]:
        return sum(map(abs, weights)), sum(w < 0 for w in weights), tuple(-w for w in weights)

    halfspaces: dict[bytes, tuple[tuple[int, ...], int]] = {}
    for weights in sorted(product(range(-largest, largest + 1), repeat=d), key=plainness):
        if last and weights[-1] >= 0:
            continue
        sums = cells @ weights
        for threshold in (0,) if last else (*np.unique(sums).tolist(), int(sums.max()) + 1):
            halfspaces.setdefault((sums >= threshold).tobytes(), (weights, threshold))
    return tuple(halfspaces.values())


def _label(domain: Domain, weights: tuple[int, ...], threshold: int) -> str:
    """Write a halfspace such as ``2 a - b >= 1``; the two constants as ``TRUE`` and ``FALSE``."""
    text = ""
    for name, w in zip(domain.attributes, weights, strict=True):
        if w:
            sign = (" + " if w > 0 else " - ") if text else "-" * (w < 0)
            text += sign + (f"{abs(w)} " if abs(w) > 1 else "") + quote(name)
    return f"{text} >= {threshold}" if text else ("TRUE" if threshold <= 0 else "FALSE")


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

    text: ClassVar[str] = "decision-lists"

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
        for table, (attributes, label) in _lists(len(names)).items():
            answers = tuple(table >> cell & 1 for cell in _cells(attributes, len(names)))
            yield Query(label.format(*names), attributes, answers)


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
    lists: dict[int, tuple[tuple[int, ...], str]] = {0: ((), "FALSE"), everywhere: ((), "TRUE")}
    lists |= {where: ((i,), label) for i, where, label in literals}
    # A list in which an attribute decides nothing is a shorter one. So a list of k attributes asks one before
    # a list of k - 1 others. With a and b these are a & b, a | b, a & ~b, ...: 8 of them.
    longest = [*lists][2:]
    for _ in range(1, d):
        longer = []
        for i, where, label in literals:
            for rest in longest:
                attributes, others = lists[rest]
                if i not in attributes:
                    for sign, other, table in (("&", "|", where & rest), ("|", "&", where | rest)):
                        if table not in lists:
                            inner = f"({others})" if other in others else others
                            lists[table] = tuple(sorted((i, *attributes))), f"{label} {sign} {inner}"
                            longer.append(table)
        longest = longer
    return lists


@lru_cache(maxsize=1 << MOST_ATTRIBUTES)
def _cells(attributes: tuple[int, ...], d: int) -> tuple[int, ...]:
    """Return the cells of the settings of these attributes, the others 0."""
    bits = product((0, 1), repeat=len(attributes))
    return tuple(sum(bit << (d - 1 - i) for bit, i in zip(some, attributes, strict=True)) for some in bits)
