"""
Composition: the total privacy loss of several releases from one table.

A single release is purely epsilon-DP and needs none of this. All bounds are for public parameters, and are
rounded up. Unless said otherwise the queries and mechanisms of a release may have been chosen after earlier
ones were seen. With a delta above 0, the number of releases and their epsilons may not: who stops where much
was lost, or goes on where little was, loses more. Addition alone has no such condition.
"""

from smalldb.accounting.composing import Composition, compose, compose_losses, most_releases, per_release
from smalldb.accounting.deltas import adaptive_delta, delta, gaussian_limit
from smalldb.accounting.recorded_losses import compose_records
from smalldb.accounting.top_k import OneShot, UnknownDomain, one_shot_top_k, unknown_domain_top_k
from smalldb.noise.privacy_loss import KaryResponse, Loss

__all__ = [
    "Composition",
    "KaryResponse",
    "Loss",
    "OneShot",
    "UnknownDomain",
    "adaptive_delta",
    "compose",
    "compose_losses",
    "compose_records",
    "delta",
    "gaussian_limit",
    "most_releases",
    "one_shot_top_k",
    "per_release",
    "unknown_domain_top_k",
]
