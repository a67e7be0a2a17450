"""Newton's method for convex functions of a few thousand unknowns."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from queries.arrays import Floats

_STEPS = 100
_SHORTEST = 1e-6
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, eq=False)
class Point(Generic[Found]):
    """A function at one place.

    Attributes
    ----------
    place
        The K unknowns.
    value
        Infinite outside the domain.
    slope
        The first derivatives, shape (K,).
    curvature
        Makes the second derivatives, or a positive definite matrix that is near to them; shape (K, K).
    found
        What else was computed there.
    """

    place: Floats
    value: float
    slope: Floats
    curvature: Callable[[], Floats]
    found: Found


def newton(
    function: Callable[[Floats], Point[Found]],
    start: Point[Found],
    enough: float | Floats = 0.0,
    close: float = 0.0,
    most: int = 2000,
) -> Point[Found]:
    """
    Minimise by steps that are halved until they help.

    Slopes up to `enough`, (K,) or one, are left, or what a step would save if that is not more than `close`.
    It ends after `most` places at the latest, wherever it is then.
    """
    now, tried = start, 0
    for _ in range(_STEPS):
        if (np.abs(now.slope) <= enough).all():
            break
        step = np.linalg.solve(now.curvature(), now.slope)
        if now.slope @ step / 2 <= close:
            break
        length, new = 1.0, now
        while tried < most:
            tried += 1
            new = function(now.place - length * step)
            if new.value <= now.value or length <= _SHORTEST:
                break
            length /= 2
        if not new.value < now.value:
            break
        now = new
    return now
