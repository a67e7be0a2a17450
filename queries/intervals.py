"""Thresholds and intervals of the integer that the columns spell."""

from collections.abc import Iterator
from dataclasses import dataclass

from queries.domain import Domain
from queries.expressions import count_told
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

    @property
    def text(self) -> str:
        """``thresholds``."""
        return "thresholds"

    def stated(self, domain: Domain) -> int:
        """Return N + 1."""
        return self.functions(domain.size)

    @staticmethod
    def functions(size: int) -> int:
        """Return how many there are on so many values."""
        return size + 1

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

    @property
    def text(self) -> str:
        """``intervals``."""
        return "intervals"

    def stated(self, domain: Domain) -> int:
        """Return N (N + 1) / 2 + 1."""
        return self.functions(domain.size)

    @staticmethod
    def functions(size: int) -> int:
        """Return how many there are on so many values."""
        return size * (size + 1) // 2 + 1

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
                f"{queries.text}: {queries.stated(domain)} tables of {count_told(domain.product)} cells are "
                f"too large: up to {MAX_ENTRIES} entries are held; use fewer columns or categories"
            )
        most = max(i for i in range(1, 25) if queries.functions(1 << i) << i <= MAX_ENTRIES)
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
