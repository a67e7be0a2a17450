"""The progress of work whose length is private: the time elapsed, and nothing else."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def clock(shown: bool) -> Iterator[Callable[[], object]]:
    """Show the time elapsed on stderr, brought up to date by each call of what this yields."""
    if not shown:
        yield bool
        return
    from tqdm import tqdm

    with tqdm(bar_format="{elapsed} elapsed") as bar:
        yield bar.refresh
