"""What plain Laplace noise would do instead."""

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
    support = workload.mean_squares * workload.domain.product or None
    cells, queries, epsilon = workload.domain.size, workload.size, request.epsilon
    return {
        "answers": bounds.laplace_answers(n=n, queries=queries, epsilon=epsilon),
        "histogram": bounds.laplace_histogram(
            n=n, cells=cells, queries=queries, epsilon=epsilon, support=support
        ),
    }
