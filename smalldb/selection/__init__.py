"""Selection from a finite scored set: exact draws, exact laws of short lists, and reference mechanisms."""

from smalldb.selection.law import selection_law
from smalldb.selection.references import laplace, randomised_response
from smalldb.selection.selecting import Selection, select
from smalldb.selection.sensitivity import Sensitivity, linear_sensitivity, score_sensitivity

__all__ = [
    "Selection",
    "Sensitivity",
    "laplace",
    "linear_sensitivity",
    "randomised_response",
    "score_sensitivity",
    "select",
    "selection_law",
]
