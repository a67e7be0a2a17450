"""What a column can hold: each kind knows its categories, finds that of a field, and writes values for it."""

from smalldb.schema.kinds.bins import Cuts
from smalldb.schema.kinds.categories import Categories
from smalldb.schema.kinds.dates import Dates
from smalldb.schema.kinds.flags import Flag
from smalldb.schema.kinds.kind import MAX_CATEGORIES, Binned, Comparable, Kind, Ranged, Value
from smalldb.schema.kinds.times import Times
from smalldb.schema.kinds.weekdays import Weekdays
from smalldb.schema.kinds.whole_numbers import Integers

__all__ = [
    "MAX_CATEGORIES",
    "Binned",
    "Categories",
    "Comparable",
    "Cuts",
    "Dates",
    "Flag",
    "Integers",
    "Kind",
    "Ranged",
    "Times",
    "Value",
    "Weekdays",
]
