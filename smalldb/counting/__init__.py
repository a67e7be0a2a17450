"""The census: how many small databases stand at each score level, exactly."""

from smalldb.counting.census import Census, census
from smalldb.counting.law import Law

__all__ = ["Census", "Law", "census"]
