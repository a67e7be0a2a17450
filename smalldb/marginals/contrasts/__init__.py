"""The relaxed mechanism: the exponential mechanism over answers, then the nearest small table."""

from smalldb.marginals.contrasts.parity_bound import parity_sums
from smalldb.marginals.contrasts.parity_means import Measured
from smalldb.marginals.contrasts.parity_measurement import loss, measure
from smalldb.marginals.contrasts.parity_plan import AnswersPlan, plan_answers, read_delta
from smalldb.marginals.rows.nearest_rows import synthesise

__all__ = [
    "AnswersPlan",
    "Measured",
    "loss",
    "measure",
    "parity_sums",
    "plan_answers",
    "read_delta",
    "synthesise",
]
