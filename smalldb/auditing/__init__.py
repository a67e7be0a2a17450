"""Exact results for small instances: the worst privacy loss and the worst error over all databases."""

from smalldb.auditing.accuracy import Accuracy, accuracy
from smalldb.auditing.by_score import ByScore, by_score
from smalldb.auditing.laws import Audit
from smalldb.auditing.minimax import Minimax, minimax
from smalldb.auditing.profile import LawProfile, Profile, profile
from smalldb.auditing.worst_case import audit, calibrated
from smalldb.counting.calibration import Calibration

__all__ = [
    "Accuracy",
    "Audit",
    "ByScore",
    "Calibration",
    "LawProfile",
    "Minimax",
    "Profile",
    "accuracy",
    "audit",
    "by_score",
    "calibrated",
    "minimax",
    "profile",
]
