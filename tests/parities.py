"""Contrasts by hand: what is planned, asked of two tables and released, and what follows from it."""

from fractions import Fraction

import asking
import numpy as np

from queries import Rows
from smalldb.exact.numbers import as_fraction
from smalldb.marginals.contrasts.parity_fit import fit
from smalldb.marginals.counts import InMemory
from smalldb.marginals.curator import Curator, PrivacyFilter
from smalldb.marginals.strategies import choosing_parities
from smalldb.mechanisms import Journal
from smalldb.mechanisms.request import read_delta


def _read(given):
    given["epsilon"] = as_fraction(given["epsilon"], "epsilon")
    return {"certificate": Fraction(0)} | given | {"delta": read_delta(given.get("delta"))}


def planned(workload, **given):
    """The contrasts that are measured, if pairs are."""
    plans = alternatives(workload, **given)
    return min(plans, key=lambda plan: plan.worst_expected if plan.tabled else plan.expected)


def alternatives(workload, **given):
    """All designs that they are chosen from, but that of columns alone."""
    return [plan for plan in choosing_parities.alternatives(workload, **_read(given)) if not plan.columns]


def columns_alone(workload, **given):
    """The design of columns alone."""
    return choosing_parities.alternatives(workload, **_read(given))[0]


def exact(plan, rows, sets=None):
    """The numbers that noise is added to."""
    of = plan.parities(plan.sets if sets is None else sets)
    return InMemory(rows).count(of)[0]


def estimated(plan, rows, source):
    """What is released of a table, as an estimate."""
    return asking.asked(plan.steps(), rows, source, plan.loss, plan.replaced).estimate


def values(estimate):
    """All numbers of the parities, without the guard."""
    return np.concatenate([measured.values for measured in estimate.parities])


def means(estimate):
    """The means of all parities as they were released."""
    return estimate.means(*estimate.parities, *estimate.guard)


def fitted(estimate):
    """The distribution that is fitted to the parities alone."""
    return fit(estimate.strategy, estimate.means(*estimate.parities))


def bound(estimate, bits, beta):
    """An error that no query's answer on these rows exceeds, but with probability beta."""
    workload = estimate.strategy.workload
    return estimate.bound(workload, None, Rows.from_codes(workload.domain, bits), as_fraction(beta, "beta"))


def max_error(estimate, rows, bits):
    """The largest error of a query on these rows."""
    workload = estimate.strategy.workload
    finished = Rows.from_codes(workload.domain, bits)
    apart = workload.answers(rows) / rows.n - workload.answers(finished) / finished.n
    return np.abs(apart).max() / workload.denominator


def asked(plan, rows, other, source):
    """Follow a plan on a table; yield each ask, and its exact counts on this table and on the other one."""
    found = []

    class Twin(Curator):
        def draw(self, ask, coins):
            found.append((ask, *(ask.exact(InMemory(one)) for one in (rows, other))))
            return super().draw(ask, coins)

    budget = PrivacyFilter(plan.loss.amount, plan.replaced)
    Twin(InMemory(rows), Journal(source), budget).follow(plan.steps())
    return found
