"""The exact worst privacy loss of a small instance: over all its databases, and all neighbours of each."""

from smalldb.auditing.loss import Audit
from smalldb.auditing.measuring import audit

__all__ = ["Audit", "audit"]
