"""The neighbouring relations."""

from enum import StrEnum

from queries.expressions import suggestion

MAX_N = 1 << 40  # public cap on n under add-remove


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
