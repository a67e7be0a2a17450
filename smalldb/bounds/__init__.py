"""
What the theorems promise, from public numbers alone.

N = `cells` points, J = `queries` distinct queries, m = `rows` of the small database, |R| small
databases, error max_f |f(x) - f(y)|; all logarithms are natural, and queries take values in [0, 1].
Numbers are enclosed by decimal arithmetic that rounds outwards. A bound is the least float that is not
below the upper end at 50 digits, so never below the true number; a number of rows or of data gets more
digits until the enclosure decides its ceiling. Bounds above 1 say nothing and are returned as they are.
An argument out of range is a ValueError, one of a wrong type (bool included) a TypeError.
"""

from smalldb.bounds.around import neighbourhood
from smalldb.bounds.general import failure, gibbs, mcsherry_talwar
from smalldb.bounds.inverse import sharp_attributes, sharp_data, sharp_epsilon, sharp_queries
from smalldb.bounds.lecture import (
    proposition_4_4,
    proposition_4_4_best,
    proposition_4_4_rows,
    theorem_4_5,
    theorem_4_5_data,
    theorem_4_5_epsilon,
    theorem_4_5_rows,
)
from smalldb.bounds.noise import laplace_answers, laplace_histogram
from smalldb.bounds.sampling import opt, rows_for
from smalldb.bounds.tight import best_rows, expected, sharp
from smalldb.bounds.vapnik import encyclopaedia_data, sauer, vc_rows

__all__ = [
    "best_rows",
    "encyclopaedia_data",
    "expected",
    "failure",
    "gibbs",
    "laplace_answers",
    "laplace_histogram",
    "mcsherry_talwar",
    "neighbourhood",
    "opt",
    "proposition_4_4",
    "proposition_4_4_best",
    "proposition_4_4_rows",
    "rows_for",
    "sauer",
    "sharp",
    "sharp_attributes",
    "sharp_data",
    "sharp_epsilon",
    "sharp_queries",
    "theorem_4_5",
    "theorem_4_5_data",
    "theorem_4_5_epsilon",
    "theorem_4_5_rows",
    "vc_rows",
]
