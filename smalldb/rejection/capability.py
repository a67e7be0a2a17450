"""What rejection is accepted for, from public numbers alone (`docs/decisions/0008-rejection.md`).

How long a draw takes depends on the data, and most of all on c = epsilon n / (2 m), the nats that a unit of
answer count costs. The guarantee is for the output alone: nothing is refused once the data were seen, and
there is no time limit. What is accepted was therefore measured on tables of many shapes, with a margin.
"""

from bisect import bisect_left
from fractions import Fraction

from queries import Workload
from smalldb.counting.scores import Candidates
from smalldb.exact import as_text
from smalldb.rejection import multisets

MOST_ROWS = 64  # bits of a word
MOST_ENTRIES = 2000  # of a candidate, rows x attributes: so far the counts stay within the doubles
MOST_COLUMNS = 50_000  # kinds of columns of a workload that factors: attributes x (rows + 1)
# attributes -> rows -> the largest c
PAIRS = {
    6: {10: 60, 20: 60, 40: 30},
    8: {10: 40, 20: 40, 40: 30},
    10: {10: 40, 20: 30, 40: 20},
    14: {10: 30, 20: 25, 40: 15},
    24: {10: 20, 20: 15, 40: 10},
    48: {10: 15, 20: 10, 40: 8},
}
WIDER = Fraction(1, 2)  # of that, where queries look at more than two attributes


def refusal(
    workload: Workload, *, n: int | None, rows: int, epsilon: Fraction, candidates: Candidates
) -> str | None:
    """Return why a small database of so many rows is not drawn by rejection; None: it is.

    Parameters
    ----------
    n
        The rows of the data, or about how many there are; public. None: nothing is known.
    """
    domain = workload.domain
    d = len(domain.attributes)
    if candidates == "multisets":
        if n is not None and multisets.capable(workload, n, rows, epsilon):
            return None
        return f"rejection is not known to be quick for multisets of {rows} rows over {d} attributes"
    if domain.valid is not None:
        return "rejection knows no structural zeros"
    if _factors(workload):
        return None if d * (rows + 1) <= MOST_COLUMNS else f"{d} attributes of {rows} rows are too many"
    if rows > MOST_ROWS:
        return f"rejection draws at most {MOST_ROWS} rows, not {rows}"
    if d * rows > MOST_ENTRIES:
        return f"rejection draws at most {MOST_ENTRIES} entries, not {d} attributes x {rows} rows"
    most = largest_c(workload, rows)
    if most is None:
        return f"rejection is not known to be quick for {d} attributes"
    if n is None:
        return "rejection under add-remove needs n_max, a public guess of the rows"
    if epsilon * n <= 2 * rows * most:
        return None
    enough = as_text(Fraction(int(200 * rows * most / n), 100))
    return (
        f"rejection of {rows} rows over {d} attributes is known to be quick up to epsilon n / (2 rows) = "
        f"{as_text(most)}: epsilon up to {enough} would do"
    )


def largest_c(workload: Workload, rows: int) -> Fraction | None:
    """Return the largest c = epsilon n / (2 rows) that is accepted; None: no c is."""
    d = len(workload.domain.attributes)
    place = bisect_left(list(PAIRS), d)
    if place == len(PAIRS):
        return None
    table = list(PAIRS.values())[place]
    sizes = list(table)
    above = min(bisect_left(sizes, rows), len(sizes) - 1)
    found = Fraction(min(table[sizes[above]], table[sizes[max(0, above - 1)]]))
    wide = any(len(query.attributes) > 2 for query in workload.queries)
    return found * WIDER if wide else found


def _factors(workload: Workload) -> bool:
    """Tell whether each query looks at one attribute."""
    return all(len(query.attributes) < 2 for query in workload.queries)
