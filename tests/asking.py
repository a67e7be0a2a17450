"""What a strategy makes of rows: a curator answers it, which the tests may look at afterwards."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from smalldb.marginals import certificate
from smalldb.marginals.asks import Noisy
from smalldb.marginals.counts import InMemory
from smalldb.marginals.curator import Curator, PrivacyFilter
from smalldb.marginals.measuring import NoisyTable
from smalldb.marginals.strategies import dependence
from smalldb.marginals.strategies.all_pairs import noise_at_once
from smalldb.mechanisms import Journal


@dataclass
class Made:
    """What was made, with the curator; what it lacks is that of the estimate."""

    estimate: Any
    curator: Curator

    def __getattr__(self, name):
        return getattr(self.estimate, name)

    @property
    def spent(self):
        return sum(self.curator.budget.spent)

    @property
    def measurements(self):
        return tuple(self.curator.measurements)


def asked(steps, rows, source, paid, replaced, executor=None):
    """Answer a strategy from rows and a source of bits, or a journal."""
    journal = source if isinstance(source, Journal) else Journal(source)
    curator = Curator(InMemory(rows, executor), journal, PrivacyFilter(paid.amount, replaced))
    return Made(curator.follow(steps), curator)


def release_tables(plan, rows, source, count=None, executor=None):
    """Release so many rows by a strategy."""
    return asked(plan.release(count), rows, source, plan.loss, plan.law.replaced, executor)


def certify(workload, rows, finished, total, law, cost, source):
    """Certify how far finished rows are off."""
    steps = certificate.certify(workload, finished, total, law, cost)
    return asked(steps, rows, source, law.loss_of_certificate(cost), law.replaced).estimate


def measure(counts, scope, law, cost, source):
    """Release a table of these counts."""
    noise = law.noise(cost)
    drawn = Noisy((), ((noise, np.size(counts)),)).draw(np.ravel(counts), source)
    return NoisyTable(scope, drawn.reshape(np.shape(counts)), cost, noise, noise.variance())


def measure_at_once(universe, counts, replaced, cost, source):
    """Release all tables of one and two columns."""
    exact = np.concatenate([table.ravel() for table in counts])
    noises = ((noise_at_once(universe, cost, replaced), exact.size),)
    return Noisy((), noises).draw(exact, source)


class Given:
    """Counts that are given: they stand for the data."""

    def __init__(self, counts):
        self.counts = counts

    def count(self, what, often=False):
        return self.counts


def ask(universe, counts, law, cost, source):
    """Release how far pairs of columns depend, by their tables."""
    asks = dependence.ask(universe, law, cost)
    return asks.draw(asks.exact(Given(counts)), source)
