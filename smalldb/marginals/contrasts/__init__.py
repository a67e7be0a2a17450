"""The relaxed mechanism: the exponential mechanism over answers, then the nearest small table."""

from smalldb.marginals.contrasts.parity_bound import parity_sums
from smalldb.marginals.contrasts.parity_means import Measured
from smalldb.marginals.contrasts.parity_measurement import loss, measure
from smalldb.marginals.contrasts.parity_plan import ParityPlan, plan_parities, read_delta
from smalldb.marginals.rows.nearest_rows import synthesise

__all__ = [
    "Measured",
    "ParityPlan",
    "loss",
    "measure",
    "parity_sums",
    "plan_parities",
    "read_delta",
    "synthesise",
]
