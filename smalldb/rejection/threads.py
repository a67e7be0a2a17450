"""Kernels at work in threads, one a processor: they do not hold the interpreter's lock."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")


def in_threads(function: Callable[[_Part], _Result], parts: Sequence[_Part]) -> list[_Result]:
    """Apply a function to each part; the results are in the order of the parts."""
    if len(parts) < 2:
        return [function(part) for part in parts]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(function, parts))
