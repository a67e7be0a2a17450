"""The exact worst privacy loss of a small instance: over all its databases, and all neighbours of each."""

from smalldb.auditing.audit import audit
from smalldb.auditing.loss import Audit

__all__ = ["Audit", "audit"]
