"""What a column can hold: each kind knows its places, finds that of a field, and writes values for it."""

from smalldb.schema.kinds.categories import Categories
from smalldb.schema.kinds.cuts import Cuts
from smalldb.schema.kinds.dates import Dates
from smalldb.schema.kinds.flags import Flag
from smalldb.schema.kinds.integers import Integers
from smalldb.schema.kinds.protocol import MAX_PLACES, Binned, Kind, Value
from smalldb.schema.kinds.times import Times

__all__ = [
    "MAX_PLACES",
    "Binned",
    "Categories",
    "Cuts",
    "Dates",
    "Flag",
    "Integers",
    "Kind",
    "Times",
    "Value",
]
