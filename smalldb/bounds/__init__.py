"""
What the theorems promise, from public numbers alone.

N = `cells` points, J = `queries` distinct queries, m = `rows` of the small database, |R| small
databases, n >= 1 rows of data, error max_f |f(x) - f(y)|; all logarithms are natural, and queries take
values in [0, 1]. A table of no rows has no error to bound.

Numbers are enclosed by decimal arithmetic that rounds outwards. A bound is the least float that is not
below the upper end at 50 digits, so never below the true number; a number of rows or of data gets more
digits until the enclosure decides its ceiling. No queries, or one cell, leave no error: 0. Bounds of 1
and above are vacuous (no error passes 1) and are returned as they are, never clipped. An argument out of
range is a ValueError, one of a wrong type (bool included) a TypeError; both name it.
"""

from smalldb.bounds.calculators import Infeasible, table
from smalldb.bounds.comparing import Bound, comparison
from smalldb.bounds.covering import covering_radius
from smalldb.bounds.inverse import sharp_data, sharp_epsilon, sharp_queries
from smalldb.bounds.lecture import (
    proposition_4_4,
    proposition_4_4_data,
    proposition_4_4_rows,
    theorem_4_5,
    theorem_4_5_data,
    theorem_4_5_epsilon,
    theorem_4_5_rows,
)
from smalldb.bounds.mechanism import failure, gibbs, mcsherry_talwar
from smalldb.bounds.optimum import class_method, opt, rows_for
from smalldb.bounds.packing_lower_bound import cells_apart, packing, packing_mean, packing_parities
from smalldb.bounds.promises import best_rows, expected, sharp, sharp_neighbourhood
from smalldb.bounds.rivals import (
    laplace_answers,
    laplace_answers_tail,
    laplace_histogram,
    laplace_histogram_tail,
    mwem,
    private_multiplicative_weights,
)
from smalldb.bounds.vc_dimension import sauer, vc_data, vc_proposition_4_4, vc_rows, vc_theorem_4_5

__all__ = [
    "Bound",
    "Infeasible",
    "best_rows",
    "cells_apart",
    "class_method",
    "comparison",
    "covering_radius",
    "expected",
    "failure",
    "gibbs",
    "laplace_answers",
    "laplace_answers_tail",
    "laplace_histogram",
    "laplace_histogram_tail",
    "mcsherry_talwar",
    "mwem",
    "opt",
    "packing",
    "packing_mean",
    "packing_parities",
    "private_multiplicative_weights",
    "proposition_4_4",
    "proposition_4_4_data",
    "proposition_4_4_rows",
    "rows_for",
    "sauer",
    "sharp",
    "sharp_data",
    "sharp_epsilon",
    "sharp_neighbourhood",
    "sharp_queries",
    "table",
    "theorem_4_5",
    "theorem_4_5_data",
    "theorem_4_5_epsilon",
    "theorem_4_5_rows",
    "vc_data",
    "vc_proposition_4_4",
    "vc_rows",
    "vc_theorem_4_5",
]
