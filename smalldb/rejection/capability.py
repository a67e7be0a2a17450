"""What rejection is accepted for, from public numbers alone (`docs/decisions/0008-rejection.md`).

How long a draw takes depends on the data, and most of all on c = epsilon n / (2 m), the nats that a unit of
answer count costs. The guarantee is for the output alone: nothing is refused once the data were seen, and
there is no time limit. What is chosen unasked was therefore measured on tables of many kinds. Whoever names
rejection is told so, and waits.
"""

from bisect import bisect_left
from fractions import Fraction

from queries import Workload
from smalldb.counting.scores import Candidates
from smalldb.exact.numbers import as_text
from smalldb.rejection import head_and_tail

MOST_ROWS = 64  # bits of a word
MOST_ENTRIES = 2000  # of a candidate, rows x attributes: so far the counts stay within the doubles
MOST_COLUMNS = 50_000  # kinds of columns of a workload that factors: attributes x (rows + 1)
LARGEST_C = 10**6  # beyond, the layers below the least score are too many to be looked through
# attributes -> rows -> the largest c: where every kind of table that was tried was quick, and where most were
PAIRS = {
    6: {20: (150, 250), 40: (100, 250), 64: (50, 100)},
    8: {20: (100, 250), 40: (20, 100), 64: (8, 30)},
    10: {20: (20, 30), 40: (10, 20), 64: (5, 10)},
    14: {20: (12, 25), 40: (5, 15), 64: (3, 6)},
    24: {20: (5, 10), 40: (3, 6), 64: (2, 3)},
    48: {20: (5, 8), 40: (2, 4), 64: (2, 4)},
}
WIDER = Fraction(1, 4)  # of that where queries look at more than two attributes


def impossible(
    workload: Workload, *, n: int | None, rows: int, epsilon: Fraction, candidates: Candidates
) -> str | None:
    """Return why rejection cannot draw a small database of so many rows, however long it may take."""
    domain = workload.domain
    d = len(domain.attributes)
    if domain.unlike_binary is not None:
        return f"rejection needs {domain.unlike_binary}"
    if candidates == "multisets":
        if not head_and_tail.possible(workload, rows):
            return f"rejection has no room for multisets of {rows} rows over {d} attributes"
    elif domain.valid is not None:
        return "rejection knows no structural zeros: leave out valid"
    elif _factors(workload):
        return None if d * (rows + 1) <= MOST_COLUMNS else f"{d} attributes of {rows} rows are too many"
    elif rows > MOST_ROWS:
        return f"rejection draws at most {MOST_ROWS} rows, not {rows}"
    elif d * rows > MOST_ENTRIES:
        return f"rejection draws at most {MOST_ENTRIES} entries, not {d} attributes x {rows} rows"
    if n is None:
        return "rejection under add-remove needs n_max, a public guess of the rows"
    if candidates == "tuples" and epsilon * n > 2 * rows * LARGEST_C:
        most = _short(Fraction(2 * rows * LARGEST_C, n))
        return (
            f"rejection of {rows} rows draws up to epsilon n / (2 rows) = {LARGEST_C}: epsilon up to {most}"
        )
    return None


# Proof: docs/proofs/rejection.md, lemma 8.
def slow(
    workload: Workload,
    *,
    n: int,
    rows: int,
    epsilon: Fraction,
    candidates: Candidates,
    guessed: bool,
    most: bool = False,
) -> str | None:
    """Return why what is possible may take long on some table; None: it was quick on all that were tried."""
    d = len(workload.domain.attributes)
    if candidates == "multisets":
        if head_and_tail.capable(workload, n, rows, epsilon):
            return None
        return f"rejection is not known to be quick for multisets of {rows} rows over {d} attributes"
    if _factors(workload):
        return None
    if guessed and not most:
        if epsilon * n <= 2 * head_and_tail.SURE:
            return None
        return (
            "rejection under add-remove is sure to be quick on any table up to epsilon n_max = "
            f"{2 * head_and_tail.SURE}"
        )
    if d > max(PAIRS):
        return f"rejection is not known to be quick for {d} attributes"
    sure, usual = largest_c(workload, rows)
    if epsilon * n <= 2 * rows * (usual if most else sure):
        return None
    return (
        f"rejection of {rows} rows over {d} attributes was quick on all kinds of tables up to "
        f"epsilon n / (2 rows) = {_short(sure)}, on most up to {_short(usual)}"
    )


def largest_c(workload: Workload, rows: int) -> tuple[Fraction, Fraction]:
    """Return the largest c = epsilon n / (2 rows) that was quick on all tables, and on most."""
    d = len(workload.domain.attributes)
    table = next(table for attributes, table in PAIRS.items() if d <= attributes)
    sizes = list(table)
    above = min(bisect_left(sizes, rows), len(sizes) - 1)
    part = Fraction(0)
    if above and rows < sizes[above]:
        part = Fraction(sizes[above] - rows, sizes[above] - sizes[above - 1])
    sure, most = (
        (1 - part) * here + part * fewer
        for here, fewer in zip(table[sizes[above]], table[sizes[above - 1]], strict=True)
    )
    wide = any(len(query.attributes) > 2 for query in workload.queries)
    return (sure * WIDER, most * WIDER) if wide else (sure, most)


def _short(number: Fraction) -> str:
    """Write a number in few digits, rounded down."""
    digits = 10 ** max(0, 3 - len(str(int(number))))
    while number * digits < 10:
        digits *= 10
    return as_text(Fraction(int(number * digits), digits))


def _factors(workload: Workload) -> bool:
    """Tell whether each query looks at one attribute."""
    return all(len(query.attributes) < 2 for query in workload.queries)
