"""
Composition: what many releases from one table lose together.

A single release is purely epsilon-DP and needs none of this. All bounds are for public parameters, hold for
adaptively chosen releases unless said otherwise, and are rounded up.
"""

from smalldb.accounting.composing import Composition, compose, compose_records, per_release

__all__ = ["Composition", "compose", "compose_records", "per_release"]
