"""What follows from what was released: for analysts, who need no data and no curator."""

from smalldb.inference.answering import Answer, ask
from smalldb.inference.assumptions import Pooled, combine, interval
from smalldb.inference.confidence_intervals import share_intervals
from smalldb.inference.several_tables import Tables
from smalldb.mechanisms.known_pairs import KnownPair
from smalldb.mechanisms.measurement_list import Measurements

__all__ = [
    "Answer",
    "KnownPair",
    "Measurements",
    "Pooled",
    "Tables",
    "ask",
    "combine",
    "interval",
    "share_intervals",
]
