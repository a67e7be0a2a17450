"""Limits of CPU seconds that hold on a loaded machine, too: a fixed piece of work tells how slow it is."""

from contextlib import contextmanager
from functools import lru_cache
from time import monotonic, process_time
from types import SimpleNamespace

import numpy as np

QUIET = 0.04  # CPU seconds of `work` on the machine that the limits were set on, when nothing else ran


def work():
    """Do what plans and readers do: words and dicts in Python, small and large arrays in numpy."""
    found = {}
    for i in range(50_000):
        found[f"x{i % 997}"] = i * i % 7
    small = np.arange(64) % 3 == 0
    for _ in range(5_000):
        small = np.logical_xor(small, small[::-1]).reshape(8, 8).any(axis=0).repeat(8)
    return len(found) + int(np.sort(np.arange(1 << 19) * 40_503 % 65_537)[-1])


@lru_cache(maxsize=1)
def slowness(_second):
    """How many times as long as on the quiet machine work takes in this second of the clock; at least 1."""
    started = process_time()
    work()
    return max(1, (process_time() - started) / QUIET)


@contextmanager
def timed():
    """Find out the CPU seconds that a block takes of this process: `seconds`, as of the quiet machine."""
    found = SimpleNamespace()
    before, started = slowness(int(monotonic())), process_time()
    yield found
    took = process_time() - started
    found.seconds = took / max(before, slowness(int(monotonic())))


@contextmanager
def within(seconds):
    """Assert that a block takes fewer CPU seconds of this process, as of the quiet machine."""
    with timed() as found:
        yield
    assert found.seconds < seconds
