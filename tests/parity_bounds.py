"""The bound on a release of parities, as a strategy puts it together."""

from queries import Rows
from smalldb.marginals import noise_bound
from smalldb.marginals.contrasts import parity_sums


def bound(plan, measured, bits, beta):
    """Return an error that no query's answer on these rows exceeds, but with probability beta."""
    rows = Rows.from_bits(plan.workload.domain, bits)
    return noise_bound.bound(plan.workload, rows, parity_sums(plan, measured, beta))
