"""Contrasts of yes/no columns: parities with noise, their means, their bound, and rows near to them."""

from smalldb.marginals.contrasts.parity_bound import parity_sums
from smalldb.marginals.contrasts.parity_means import NoisyParities
from smalldb.marginals.contrasts.parity_measurement import loss, measure
from smalldb.marginals.contrasts.parity_plan import ParityPlan, read_delta
from smalldb.marginals.rows.nearest_rows import synthesise

__all__ = [
    "NoisyParities",
    "ParityPlan",
    "loss",
    "measure",
    "parity_sums",
    "read_delta",
    "synthesise",
]
