"""The mechanisms that there are; where several can do what is asked, the first in this list comes first."""

from queries.expressions import suggestion
from smalldb.counting.mechanism import ByCensus
from smalldb.marginals.mechanism import ByMarginals
from smalldb.mechanisms import Mechanism
from smalldb.rejection.mechanism import ByRejection

MECHANISMS: tuple[type[Mechanism], ...] = (ByCensus, ByRejection, ByMarginals)

FORMER = {  # names of version 0.1, and what to write instead
    "answers": "write mechanism marginals, strategy contrasts",
    "rounds": "write mechanism marginals, strategy adaptive",
}


def names() -> tuple[str, ...]:
    """Return the names that the argument `mechanism` can have."""
    return ("auto", *(mechanism.name for mechanism in MECHANISMS))


def named(name: str) -> tuple[type[Mechanism], ...]:
    """Return the mechanism of this name; of "auto" all: ValueError for any other name."""
    if name in FORMER:
        raise ValueError(f"mechanism {name!r} is a strategy of 'marginals' now: {FORMER[name]}")
    if name not in names():
        near = suggestion(name, names()) if isinstance(name, str) else ""
        raise ValueError(f"mechanism must be one of {', '.join(map(repr, names()))}, not {name!r}{near}")
    return tuple(mechanism for mechanism in MECHANISMS if name in ("auto", mechanism.name))
