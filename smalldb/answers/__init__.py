"""The relaxed mechanism: the exponential mechanism over answers, then the nearest small table."""

from smalldb.answers.bounding import bound
from smalldb.answers.measuring import loss, measure
from smalldb.answers.released import Measured
from smalldb.answers.shares import AnswersPlan, plan_answers, read_delta
from smalldb.answers.synthesising import synthesise
from smalldb.answers.tails import radius_quantile

__all__ = [
    "AnswersPlan",
    "Measured",
    "bound",
    "loss",
    "measure",
    "plan_answers",
    "radius_quantile",
    "read_delta",
    "synthesise",
]
