"""Reading the public arguments of a release: the workload and the neighbouring relation."""

from enum import StrEnum

from queries import Domain, QueryClass, Workload
from queries.expressions import suggestion
from queries.spec import default, parse

MAX_N = 1 << 40  # public cap on n under add-remove


class Neighbours(StrEnum):
    """Which tables are neighbours.

    ``replace-one``: one row is exchanged for another, and n is public.
    ``add-remove``: one row more or less, and n is private.
    """

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"


def workload_of(queries: QueryClass | Workload | str | None, domain: Domain) -> Workload:
    """Build the workload over a domain; by default all cells of 1- and 2-way tables."""
    if not isinstance(domain, Domain):
        raise TypeError(
            f"domain must be a queries.Domain, such as Domain(frame.columns), not {type(domain).__name__}"
        )
    if isinstance(queries, Workload):
        if queries.domain != domain:
            raise ValueError("the workload is over another domain than the table")
        return queries
    if queries is None:
        queries = default(domain)
    if isinstance(queries, str):
        queries = parse(queries)
    if not isinstance(queries, QueryClass):
        raise TypeError(f"queries must be a query class such as Marginals(2), not {type(queries).__name__}")
    return queries.workload(domain)


def relation_of(name: str) -> Neighbours:
    """Read the name of a neighbouring relation."""
    try:
        return Neighbours(name)
    except ValueError as error:
        known = " or ".join(repr(relation.value) for relation in Neighbours)
        raise ValueError(
            f"neighbours must be {known}{suggestion(str(name), [relation.value for relation in Neighbours])}"
        ) from error
