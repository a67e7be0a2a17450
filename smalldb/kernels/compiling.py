"""How kernels are compiled, and when those that Numba kept on disk are compiled anew.

Kernels copy arrays in loops: of ``one[:] = other`` Numba compiles what would format an error, for 3 seconds.
So they do with ``sum(axis=0)``, ``diff`` and ``sort``, each of which takes a second.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, TypeVar, cast

from numba import config, njit
from numba.core.caching import FunctionCache

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile a function on its first call without the interpreter's lock, or take what is kept of it."""
    return _compiled(function, "never")


def inlined(function: Function) -> Function:
    """Do what `kernel` does, and compile the function anew into each kernel that calls it."""
    return _compiled(function, "always")


def _compiled(function: Function, inline: Any) -> Function:
    compiled: Any = njit(nogil=True, inline=inline)(function)
    if compiled is not function:  # as it is with NUMBA_DISABLE_JIT
        with suppress(RuntimeError):  # no folder can be written: each process compiles its own
            compiled._cache = _Cache(function)
    return cast(Function, compiled)


class _Cache(FunctionCache):
    """Numba's cache of a function, which would look at the function's own file alone."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file._source_stamp = (self._cache_file._source_stamp, _stamp())

    def _index_key(self, *which: Any) -> tuple[Any, ...]:
        """Keep code with checks of bounds beside code without."""
        return (*super()._index_key(*which), vars(config)["BOUNDSCHECK"])


@cache
def _stamp() -> str:
    """Return a hash of all kernel files, read once a process."""
    mixed = sha256()
    for file in sorted(files(__package__).iterdir(), key=lambda file: file.name):
        if file.name.endswith(".py"):
            mixed.update(f"{file.name}:".encode() + sha256(file.read_bytes()).digest())
    return mixed.hexdigest()
