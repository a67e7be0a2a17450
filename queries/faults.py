"""What is wrong with a domain or a schema: a text, and the path of what it is about."""

from __future__ import annotations

from collections.abc import Iterable

from queries.expressions import joined


class Fault(ValueError):
    """What is wrong, and where: of a column the path begins with ``"columns"`` and its name.

    >>> str(Fault("cuts must ascend, each above the one before", "columns", "age", "cuts"))
    "column 'age': cuts must ascend, each above the one before"
    """

    def __init__(self, said: str, *path: str) -> None:
        self.said, self.path = said, path
        super().__init__(f"column {path[1]!r}: {said}" if path[:1] == ("columns",) and path[1:] else said)

    @staticmethod
    def of(error: Exception, *path: str) -> Fault:
        """Return the fault that an error tells, of what stands below a path that it may state itself."""
        said, below = (error.said, error.path) if isinstance(error, Fault) else (str(error), ())
        whole = below if below[:1] == path[:1] else (*path, *below)
        return (TypeFault if isinstance(error, TypeError) else Fault)(said, *whole)


class TypeFault(Fault, TypeError):
    """A value of another type."""


class Faults(ValueError):
    """Several faults, told at once: one after another, or as `told` has it."""

    def __init__(self, faults: Iterable[Fault | str], told: str = "") -> None:
        self.each = tuple(each if isinstance(each, Fault) else Fault(each) for each in faults)
        super().__init__(told or joined([*map(str, self.each)]))
