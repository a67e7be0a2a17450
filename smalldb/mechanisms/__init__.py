"""What a mechanism is to the rest of the house: what it is asked, what it tells, and what it draws."""

from smalldb.mechanisms.journal import LOST, Journal
from smalldb.mechanisms.known_pairs import KnownPair
from smalldb.mechanisms.measurement import Dependence, Marginal, Measurement, Offsets, Parity
from smalldb.mechanisms.measurement_list import Measurements
from smalldb.mechanisms.protocol import Drawn, Facts, Guarantee, Mechanism, Promise, Resumable
from smalldb.mechanisms.request import (
    MAX_N,
    UNPLANNED,
    Links,
    Neighbours,
    Request,
    column_named,
    columns_named,
    relation_of,
    workload_of,
)

__all__ = [
    "LOST",
    "MAX_N",
    "UNPLANNED",
    "Dependence",
    "Drawn",
    "Facts",
    "Guarantee",
    "Journal",
    "KnownPair",
    "Links",
    "Marginal",
    "Measurement",
    "Measurements",
    "Mechanism",
    "Neighbours",
    "Offsets",
    "Parity",
    "Promise",
    "Request",
    "Resumable",
    "column_named",
    "columns_named",
    "relation_of",
    "workload_of",
]
