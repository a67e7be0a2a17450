"""Synthetic tables under pure differential privacy: the SmallDB mechanism, exact to the last bit."""

import queries

if not hasattr(queries, "Workload"):  # another package of this import name exists
    raise ImportError(f"smalldb needs its own package 'queries', but {queries.__file__} shadows it")

from smalldb import accounting, bounds
from smalldb.auditing import Audit, audit
from smalldb.counting import Census, Law, census
from smalldb.ledger import Ledger
from smalldb.planning import Neighbours, Plan, plan
from smalldb.randomness import BitSource
from smalldb.releasing import Release, generate, release
from smalldb.selection import Selection, select, selection_law
from smalldb.version import __version__

__all__ = [
    "Audit",
    "BitSource",
    "Census",
    "Law",
    "Ledger",
    "Neighbours",
    "Plan",
    "Release",
    "Selection",
    "__version__",
    "accounting",
    "audit",
    "bounds",
    "census",
    "generate",
    "plan",
    "release",
    "select",
    "selection_law",
]
