"""What plain Laplace noise would do instead."""

from fractions import Fraction

from queries.workload import Query
from smalldb import bounds
from smalldb.mechanisms.request import Request


def plain_noise(request: Request) -> dict[str, float] | None:
    """Return the mean largest errors of plain Laplace noise, by what it is added to; None where n is private.

    "answers": to each of the |Q| answers, about |Q| ln |Q| / (epsilon n). "histogram": to each cell,
    answers added up; a bound.
    """
    if request.n is None:
        return None
    workload, n = request.workload, request.n
    # f and 1 - f err alike, so the lighter of the two is added up
    squares = max((min(_squares(q), _squares(q, True)) for q in workload.queries), default=Fraction(0))
    support = squares * 2 ** len(workload.domain.attributes) or None
    cells, queries, epsilon = workload.domain.size, workload.size, request.epsilon
    return {
        "answers": bounds.laplace_answers(n=n, queries=queries, epsilon=epsilon),
        "histogram": bounds.laplace_histogram(
            n=n, cells=cells, queries=queries, epsilon=epsilon, support=support
        ),
    }


def _squares(query: Query, negated: bool = False) -> Fraction:
    """Return the mean of f^2 over all settings, or of (1 - f)^2."""
    if query.weights is None:
        return Fraction(1, 2)
    unit = query.denominator
    total = sum((unit - w if negated else w) ** 2 for w in query.weights)
    return Fraction(total, unit * unit * len(query.weights))
