"""Reading what is asked of the accountant, by the name of the argument."""

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from itertools import islice

import numpy as np

from smalldb.exact.numbers import positive, whole

MOST_LISTED = 100_000  # epsilons or records that are listed one by one
MOST_RELEASES = 10**15


def kinds_of(epsilon: object, releases: object) -> Counter[Fraction]:
    """Read epsilons: one number for so many releases, or one for each; how many there are of each."""
    if isinstance(epsilon, np.ndarray) and not epsilon.ndim:
        epsilon = epsilon.item()
    if isinstance(epsilon, Iterable) and not isinstance(epsilon, str | bytes):
        kinds = Counter(positive(value, "epsilon") for value in islice(epsilon, MOST_LISTED + 1))
        if releases is not None and whole(releases, "releases") != kinds.total():
            raise ValueError("releases must be the number of epsilons, or left out")
        checked_number(kinds.total(), MOST_LISTED)
        return kinds
    if releases is None:
        raise ValueError("releases must say how many there are")
    return Counter({positive(epsilon, "epsilon"): checked_number(whole(releases, "releases"))})


def checked_number(releases: int, most: int = MOST_RELEASES) -> int:
    """Check how many releases there are."""
    if releases < 1:
        raise ValueError("there must be at least one release")
    if releases > most:
        raise ValueError(f"releases must be at most {most}" + (", if listed" if most < MOST_RELEASES else ""))
    return releases


def checked_flag(value: object, name: str) -> bool:
    """Read True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {type(value).__name__}")
    return value
