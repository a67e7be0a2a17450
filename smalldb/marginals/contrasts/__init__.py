"""The relaxed mechanism: the exponential mechanism over answers, then the nearest small table."""

from smalldb.marginals.contrasts.parity_bound import bound
from smalldb.marginals.contrasts.parity_means import Measured
from smalldb.marginals.contrasts.parity_measurement import loss, measure
from smalldb.marginals.contrasts.parity_plan import ParityPlan, plan_parities, read_delta
from smalldb.marginals.rows.nearest_rows import synthesise
from smalldb.noise.tails import radius_quantile

__all__ = [
    "Measured",
    "ParityPlan",
    "bound",
    "loss",
    "measure",
    "plan_parities",
    "radius_quantile",
    "read_delta",
    "synthesise",
]
