"""Whether the rows of a release fit in memory: known from public numbers, before anything is paid."""

import os
from contextlib import suppress
from pathlib import Path

from smalldb.planning import Plan

BYTES_PER_FIELD = 64  # measured: values of the costliest kinds, decoded and written (52), and the rows before

CHILDREN = 8  # of a parent, at most, that memory is foreseen for


def check_memory(plan: Plan) -> None:
    """Refuse a release with more rows than this machine can hold."""
    rows, columns = plan.foreseen_rows, len(plan.workload.domain.columns)
    if plan.request.links is not None:  # as if parents had half of the children that are told apart, or four
        rows *= 1 + min(plan.request.links.most, CHILDREN) // 2
    limit = memory_limit()
    if limit is not None and rows * columns * BYTES_PER_FIELD > limit:
        raise ValueError(
            f"rows: {rows} rows of {columns} columns need about {_giga(rows * columns * BYTES_PER_FIELD)} of "
            f"memory, and there are {_giga(limit)}: take at most {limit // (columns * BYTES_PER_FIELD)} rows"
        )


def memory_limit() -> int | None:
    """Return the bytes that this process may have: of the machine, its group or itself; None: not known."""
    limits = []
    with suppress(AttributeError, OSError, ValueError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, ValueError):
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    with suppress(ImportError):
        import resource

        limits += [
            limit for limit in resource.getrlimit(resource.RLIMIT_AS) if limit != resource.RLIM_INFINITY
        ]
    return min((limit for limit in limits if limit > 0), default=None)


def _giga(size: int) -> str:
    return f"{size / 1e9:.3g} GB"
