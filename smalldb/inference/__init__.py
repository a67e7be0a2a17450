"""What follows from published measurements: several tables, and estimates with intervals from them."""

from smalldb.inference.combining import Pooled, combine, interval

__all__ = ["Pooled", "combine", "interval"]
