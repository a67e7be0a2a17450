"""Exact results for small instances: the worst privacy loss and the worst error over all databases."""

from smalldb.auditing.accuracy import Accuracy, accuracy
from smalldb.auditing.loss import Audit
from smalldb.auditing.minimax import Minimax, minimax
from smalldb.auditing.profile import Profile, profile
from smalldb.auditing.worst_case import audit

__all__ = ["Accuracy", "Audit", "Minimax", "Profile", "accuracy", "audit", "minimax", "profile"]
