"""The census: how many small databases stand at each score level, exactly."""

from smalldb.counting.level_counts import Census, Law, census

__all__ = ["Census", "Law", "census"]
