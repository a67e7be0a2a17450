"""Classes of linear counting queries over tables of columns."""

from queries.columns import Column
from queries.conjunctions import Conjunctions, Disjunctions, Marginals, Parities
from queries.domain import DataError, Domain
from queries.halfspaces import DecisionLists, Halfspaces, Intervals, Thresholds
from queries.linear import Linear, Predicates
from queries.query import Query
from queries.query_class import QueryClass, Union, VCDimension
from queries.rows import Rows
from queries.rules import Rule
from queries.workload import Workload

__all__ = [
    "Column",
    "Conjunctions",
    "DataError",
    "DecisionLists",
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
    "Rule",
    "Thresholds",
    "Union",
    "VCDimension",
    "Workload",
]
