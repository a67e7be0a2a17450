"""The exact worst error of any mechanism, by its laws."""

from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from typing import Any

from queries import Workload
from smalldb.auditing.laws import MOST_LAWS, CustomMechanism, Enclosure, enclosed
from smalldb.counting.databases import Counts, check_budget, databases
from smalldb.planning import Neighbours

Errors = Mapping[Fraction, Enclosure]
"""The probability of each error, enclosed."""


def errors_of_laws(mechanism: CustomMechanism, workload: Workload, n: int) -> dict[Counts, Errors]:
    """Return the law of the error of each table of n rows."""
    # an outcome is a small database, as counts over the cells, or the answers to the queries of the
    # reduced workload, as Fractions
    cells = workload.domain.size
    check_budget(cells, n, Neighbours.REPLACE_ONE, lambda tables, pairs: tables <= MOST_LAWS)
    error = _error_of(workload, n)
    found = dict[Counts, Errors]()
    for x in databases(cells, n, Neighbours.REPLACE_ONE):
        law = dict[Fraction, Enclosure]()
        for outcome, (low, high) in enclosed(mechanism(x)).items():
            wrong = error(x, outcome)
            before = law.get(wrong, (Fraction(0), Fraction(0)))
            law[wrong] = before[0] + low, before[1] + high
        found[x] = law
    return found


def _error_of(workload: Workload, n: int) -> Callable[[Counts, Hashable], Fraction]:
    """Return what tells the error of an outcome for a table."""
    weights, unit, cells = workload.matrix().tolist(), workload.denominator, workload.domain.size

    def shares(counts: Counts) -> list[Fraction]:
        size = sum(counts) * unit
        return [Fraction(sum(w * c for w, c in zip(query, counts, strict=True)), size) for query in weights]

    def error(x: Counts, outcome: Any) -> Fraction:
        told = isinstance(outcome, tuple)
        if told and len(outcome) == len(weights) and all(isinstance(each, Fraction) for each in outcome):
            answers = list(outcome)
        elif told and len(outcome) == cells and all(isinstance(each, int) for each in outcome):
            answers = shares(outcome)
        else:
            raise TypeError(
                "an outcome must be a small database, as whole counts over the cells, or the answers to the "
                "reduced queries, as Fractions"
            )
        return max((abs(a - b) for a, b in zip(shares(x), answers, strict=True)), default=Fraction(0))

    return error
