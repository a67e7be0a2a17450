"""The mechanisms that there are; where several can do what is asked, the first in this list comes first."""

from smalldb.counting.mechanism import ByCensus
from smalldb.marginals.contrasts.mechanism import ByAnswers
from smalldb.marginals.mechanism import ByRounds
from smalldb.mechanisms import Mechanism
from smalldb.rejection.mechanism import ByRejection

MECHANISMS: tuple[type[Mechanism], ...] = (ByCensus, ByRejection, ByAnswers, ByRounds)


def names() -> tuple[str, ...]:
    """Return the names that the argument `mechanism` can have."""
    return ("auto", *(mechanism.name for mechanism in MECHANISMS))


def named(name: str) -> tuple[type[Mechanism], ...]:
    """Return the mechanism of this name; of "auto" all: ValueError for any other name."""
    if name not in names():
        raise ValueError(f"mechanism must be one of {', '.join(map(repr, names()))}, not {name!r}")
    return tuple(mechanism for mechanism in MECHANISMS if name in ("auto", mechanism.name))
