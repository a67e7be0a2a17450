"""The relaxed mechanism: the exponential mechanism over answers, then the nearest small table."""

from smalldb.answers.bounding import bound, radius_quantile
from smalldb.answers.measuring import Measured, loss, measure
from smalldb.answers.shares import AnswersPlan, Measurement, plan_answers
from smalldb.answers.synthesising import synthesise

__all__ = [
    "AnswersPlan",
    "Measured",
    "Measurement",
    "bound",
    "loss",
    "measure",
    "plan_answers",
    "radius_quantile",
    "synthesise",
]
