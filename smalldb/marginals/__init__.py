"""Noisy measurements of tables and contrasts, an estimate that is fitted to them, and rows that match it."""

from smalldb.marginals.counted_rows import CountedRows, checked
from smalldb.marginals.strategies.choosing_tables import plan_tables
from smalldb.marginals.strategies.outcome import History, Outcome, release_tables
from smalldb.marginals.universe import Universe

__all__ = [
    "CountedRows",
    "History",
    "Outcome",
    "Universe",
    "checked",
    "plan_tables",
    "release_tables",
]
