"""Spark as an executor."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar, final

P = ParamSpec("P")
R = TypeVar("R")


@final
class SparkExecutor(Executor):
    """Runs each call as a task of Spark, whose workers need this package, and see what they are given."""

    def __init__(self, session: Any) -> None:
        self._context = session.sparkContext
        self._threads = ThreadPoolExecutor(max(1, self._context.defaultParallelism))  # each waits for a task

    def submit(self, function: Callable[P, R], /, *arguments: P.args, **named: P.kwargs) -> Future[R]:
        """Send a call to the cluster, as `concurrent.futures.Executor.submit` does."""
        return self._threads.submit(_run, self._context, partial(function, *arguments, **named))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls."""
        self._threads.shutdown(wait, cancel_futures=cancel_futures)


def _run(context: Any, call: Callable[[], R]) -> R:
    (result,) = context.parallelize([None], 1).map(lambda _: call()).collect()
    return result  # type: ignore[no-any-return]
