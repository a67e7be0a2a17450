"""The census: how many small databases stand at each score level, exactly."""

from smalldb.counting.census import Census, census

__all__ = ["Census", "census"]
