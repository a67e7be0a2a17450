"""What a release is asked for, from public numbers alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple

from queries import Column, Domain, QueryClass, Workload
from queries.expressions import suggestion
from queries.spec import default, parse
from smalldb.exact.numbers import between_0_and_1
from smalldb.mechanisms.start import Earlier, Start

MAX_N = 1 << 40  # public cap on n under add-remove
LEAST_DELTA = Fraction(1, 10**300)
UNPLANNED = "under add-remove n is private, so rows cannot be planned from it: give rows or alpha"


class Neighbours(StrEnum):
    """Which tables are neighbours.

    ``replace-one``: one row is exchanged for another, and n is public.
    ``add-remove``: one row more or less, and n is private.
    """

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"


def relation_of(name: str) -> Neighbours:
    """Read the name of a neighbouring relation."""
    try:
        return Neighbours(name)
    except ValueError as error:
        known = " or ".join(repr(relation.value) for relation in Neighbours)
        raise ValueError(
            f"neighbours must be {known}{suggestion(str(name), [relation.value for relation in Neighbours])}"
        ) from error


class Links(NamedTuple):
    """How related tables hang together, by whose walks they are known; public.

    The names of its fields are part of what a paid release is known by (`transaction.request_of`): keep them.
    """

    unit: str  # what is protected, as records state it
    said: tuple[str, str]  # what a parent and children are called
    parents: int  # how many columns of a walk are those of parents; the last is their number of children
    most: int  # so many children are told apart
    least: int  # so many each parent has at least
    cap: int | None  # by which walks are weighed; None: it follows from released parents
    drop: bool  # whether children without a parent are dropped


@dataclass(frozen=True, slots=True)
class Request:
    """What a mechanism is asked for; public."""

    workload: Workload  # the reduced queries over the universe
    n: int | None  # rows of the data; None under add-remove, where it is private
    n_max: int | None  # then, about how many there are at most, if the user says so
    # the privacy parameter, and the failure probability of the bounds; exact
    epsilon: Fraction
    beta: Fraction
    neighbours: Neighbours  # the neighbouring relation
    delta: Fraction | None = None  # what the guarantee may have; None: it must be pure
    rows: int | None = None  # m, the rows of the synthetic table; None: the mechanism chooses them
    candidates: str | None = None  # the base measure that is wanted; None: any
    # the share of the budget for a bound on what was not measured; None: the mechanism's own
    certificate: Fraction | None = None
    # the share of all but that for columns, where tables are selected in rounds; None: by expected errors
    column_share: Fraction | None = None
    named: bool = False  # whether the user asks for this mechanism by name
    # the numbers of the columns that classifiers of the synthetic table will predict, ascending
    targets: tuple[int, ...] = ()
    # the numbers of the columns of each table that is to be measured first, ascending
    first: tuple[tuple[int, ...], ...] = ()
    # what `marginals` measure, by its name; None: that of smallest expected error
    strategy: str | None = None
    earlier: Earlier | None = None  # a release of the same data, whose measurements are used, too
    start: Start | None = None  # a public table from which marginals start
    calibrated: bool = False  # whether SmallDB is to lose just what is stated (`counting.calibration`)
    links: Links | None = None  # of related tables; None: there is one table

    @property
    def aimed(self) -> bool:
        """Whether some tables come first: then what measures all alike is not asked."""
        return bool(self.targets or self.first)

    @property
    def rows_hint(self) -> int | None:
        """The rows of the data as far as something public tells."""
        return self.n_max if self.n is None else self.n

    @property
    def largest_n(self) -> int:
        """The most rows that the data can have."""
        return MAX_N if self.n is None else self.n

    @property
    def cap(self) -> str:
        """What `largest_n` is, in words."""
        return "2^40 (the cap on n under add-remove)" if self.n is None else "n"


def workload_of(
    queries: QueryClass | Workload | str | None, domain: Domain | Sequence[Column | str] | int | None
) -> Workload:
    """Build the workload over a domain, or what makes one; by default all cells of 1- and 2-way tables."""
    if isinstance(domain, list | tuple | int):
        domain = Domain(domain)
    if not isinstance(domain, Domain):
        raise TypeError(
            f"domain must be a queries.Domain, such as Domain(frame.columns), not {type(domain).__name__}"
        )
    if isinstance(queries, Workload):
        if queries.domain != domain:
            raise ValueError("the workload is over another domain than the table")
        varied = tuple(query for query in queries.listed if not query.constant)  # it may be made by hand
        return queries if len(varied) == len(queries.listed) else replace(queries, listed=varied)
    if queries is None:
        queries = default(domain)
    if isinstance(queries, str):
        queries = parse(queries)
    if not isinstance(queries, QueryClass):
        raise TypeError(f"queries must be a query class such as Marginals(2), not {type(queries).__name__}")
    return queries.workload(domain)


def columns_named(domain: Domain, target: str | Sequence[str] | None) -> tuple[int, ...]:
    """Return the numbers of one or several target columns, ascending; none where it is None."""
    if target is None:
        return ()
    several: Sequence[str] = (target,) if isinstance(target, str) else target
    if not isinstance(several, Sequence):
        raise TypeError(f"target must be the name of a column, not {type(target).__name__}")
    return tuple(sorted({column_named(domain, name) for name in several}))


def column_named(domain: Domain, target: str) -> int:
    """Return the number of a column; ValueError where there is none, or no other column beside it."""
    if not isinstance(target, str):
        raise TypeError(f"target must be the name of a column, not {type(target).__name__}")
    if target not in domain.names:
        raise ValueError(f"target: no column {target!r}{suggestion(target, domain.names)}")
    if len(domain.names) == 1:
        raise ValueError("target: a classifier needs at least one other column")
    return domain.names.index(target)


def read_delta(value: object) -> Fraction | None:
    """Read a delta that a release may have; None stands for itself."""
    delta = None if value is None else between_0_and_1(value, "delta")
    if delta is not None and delta < LEAST_DELTA:
        raise ValueError("delta must be at least 1e-300: leave it out for pure privacy")
    return delta
