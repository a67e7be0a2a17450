"""Selection from a finite scored set: exact draws, and the exact law of small ones."""

from smalldb.selection.law import selection_law
from smalldb.selection.selecting import Selection, select

__all__ = ["Selection", "select", "selection_law"]
