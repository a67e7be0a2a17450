"""Arrays in place of numbers: what is asked of many settings at once."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from smalldb.bounds.calculators import each_setting

Function = TypeVar("Function", bound=Callable[..., Any])


def sweeping(*names: str) -> Callable[[Function], Function]:
    """Let arguments of these names be arrays or lists, which are broadcast as numpy does."""
    # The result is an array of their shape; of a function that returns several numbers a tuple of
    # arrays. With numbers alone the function is what it was. Exact numbers and texts in arrays are kept
    # as they are.

    def wide_one(function: Function) -> Function:
        @wraps(function)
        def wide(**given: Any) -> Any:
            swept = {name: given[name] for name in names if name in given and np.ndim(given[name])}
            if not swept:
                return function(**given)
            settings, shape = each_setting(swept)
            found = [function(**given | setting) for setting in settings]
            if found and isinstance(found[0], tuple):
                return tuple(np.array(part).reshape(shape) for part in zip(*found, strict=True))
            return np.array(found).reshape(shape)

        return cast(Function, wide)

    return wide_one
