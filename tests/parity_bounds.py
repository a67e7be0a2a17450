"""What is planned of parities, and the bound on a release of them, as a strategy puts it together."""

from fractions import Fraction

from queries import Rows
from smalldb.exact.numbers import as_fraction
from smalldb.marginals import noise_bound
from smalldb.marginals.contrasts import parity_sums, read_delta
from smalldb.marginals.strategies.contrasts import plan_contrasts


def planned(workload, *, epsilon, delta=None, **given):
    """The parities that are measured where nothing is set apart for a certificate."""
    given |= {"epsilon": as_fraction(epsilon, "epsilon"), "delta": read_delta(delta)}
    return plan_contrasts(workload, certificate=Fraction(0), **given).parities


def bound(plan, measured, bits, beta):
    """Return an error that no query's answer on these rows exceeds, but with probability beta."""
    rows = Rows.from_bits(plan.workload.domain, bits)
    return noise_bound.bound(plan.workload, rows, parity_sums(plan, measured, beta))
