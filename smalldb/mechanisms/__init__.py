"""What a mechanism is to the rest of the house: what it is asked, what it tells, and what it draws."""

from smalldb.mechanisms.protocol import Drawn, Guarantee, Mechanism, Promise
from smalldb.mechanisms.relations import MAX_N, Neighbours, relation_of
from smalldb.mechanisms.request import UNPLANNED, Request, workload_of

__all__ = [
    "MAX_N",
    "UNPLANNED",
    "Drawn",
    "Guarantee",
    "Mechanism",
    "Neighbours",
    "Promise",
    "Request",
    "relation_of",
    "workload_of",
]
