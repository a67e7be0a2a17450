"""Noisy measurements of tables and contrasts, an estimate that is fitted to them, and rows that match it."""

from smalldb.marginals.counted_rows import CountedRows, checked
from smalldb.marginals.counts import InMemory
from smalldb.marginals.curator import Curator, PrivacyFilter
from smalldb.marginals.strategies.choosing_tables import plan_tables
from smalldb.marginals.strategies.strategy import Estimate
from smalldb.marginals.universe import Universe

__all__ = [
    "CountedRows",
    "Curator",
    "Estimate",
    "InMemory",
    "PrivacyFilter",
    "Universe",
    "checked",
    "plan_tables",
]
