"""What a column can hold: each kind knows its categories, finds that of a field, and writes values for it.

A kind is one file with a class of `kind.Kind` and its `Spec`, and a line in `SPECS`.
"""

from smalldb.schema.kinds import bins, categories, dates, flags, times, weekdays, whole_numbers
from smalldb.schema.kinds.binned import Binned
from smalldb.schema.kinds.bins import Cuts
from smalldb.schema.kinds.categories import Categories
from smalldb.schema.kinds.dates import Dates
from smalldb.schema.kinds.flags import Flag
from smalldb.schema.kinds.kind import MAX_CATEGORIES, Comparable, Kind, Spec, Value
from smalldb.schema.kinds.times import Times
from smalldb.schema.kinds.weekdays import Weekdays
from smalldb.schema.kinds.whole_numbers import Integers

SPECS: dict[str, Spec] = {
    module.SPEC.name: module.SPEC
    for module in (flags, categories, bins, whole_numbers, dates, times, weekdays)
}

__all__ = [
    "MAX_CATEGORIES",
    "SPECS",
    "Binned",
    "Categories",
    "Comparable",
    "Cuts",
    "Dates",
    "Flag",
    "Integers",
    "Kind",
    "Spec",
    "Times",
    "Value",
    "Weekdays",
]
