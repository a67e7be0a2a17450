"""The census: how many small databases stand at each score level, exactly."""

from smalldb.counting.census_law import Law
from smalldb.counting.level_counts import Census, census

__all__ = ["Census", "Law", "census"]
