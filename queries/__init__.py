"""Classes of linear counting queries over tables of yes/no attributes."""

from queries.conjunctions import Conjunctions, Disjunctions, Marginals
from queries.domain import DataError, Domain
from queries.halfspaces import Halfspaces
from queries.intervals import Intervals, Thresholds
from queries.linear import Linear
from queries.parities import Parities
from queries.predicates import Predicates
from queries.rows import Rows
from queries.vc import VCDimension
from queries.workload import Query, QueryClass, Union, Workload

__all__ = [
    "Conjunctions",
    "DataError",
    "Disjunctions",
    "Domain",
    "Halfspaces",
    "Intervals",
    "Linear",
    "Marginals",
    "Parities",
    "Predicates",
    "Query",
    "QueryClass",
    "Rows",
    "Thresholds",
    "Union",
    "VCDimension",
    "Workload",
]
