"""Arrays in place of numbers: what is asked of many settings at once."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])


def sweeping(*names: str) -> Callable[[Function], Function]:
    """
    Let arguments of these names be arrays or lists, which are broadcast against each other as numpy does.

    The result is an array of their shape; of a function that returns several numbers a tuple of arrays. With
    numbers alone the function is what it was. Exact numbers and texts in arrays are kept as they are.
    """

    def wide_one(function: Function) -> Function:
        @wraps(function)
        def wide(**given: Any) -> Any:
            swept = {name: given[name] for name in names if name in given and np.ndim(given[name])}
            if not swept:
                return function(**given)
            spread = np.broadcast_arrays(
                *(np.array(_listed(value), dtype=object) for value in swept.values())
            )
            settings = zip(*(array.ravel().tolist() for array in spread), strict=True)
            found = [function(**given | dict(zip(swept, setting, strict=True))) for setting in settings]
            shape = spread[0].shape
            if found and isinstance(found[0], tuple):
                return tuple(np.array(part).reshape(shape) for part in zip(*found, strict=True))
            return np.array(found).reshape(shape)

        return cast(Function, wide)

    return wide_one


def _listed(value: Any) -> Any:
    """Return lists of Python numbers: those of an array, too, so that floats are read by their texts."""
    return value.tolist() if hasattr(value, "tolist") else value
