"""`calibrated`: the internal epsilon at which SmallDB's exact worst loss is the epsilon that is stated."""

from queries import Domain, QueryClass, Workload
from smalldb.auditing.worst_case import EPSILONS
from smalldb.counting.calibration import Calibration, calibration
from smalldb.exact.numbers import Number, positive, whole
from smalldb.planning import Neighbours, relation_of, workload_of


def calibrated(
    domain: Domain,
    queries: QueryClass | Workload | str | None = None,
    *,
    n: int | None = None,
    epsilon: Number,
    rows: int,
    neighbours: str = "replace-one",
    candidates: str | None = None,
) -> Calibration:
    """
    Return the internal epsilon at which SmallDB loses at worst just the epsilon that is stated.

    At an internal epsilon e it loses at most e (Theorem 4.5), and less where the rows of the small database
    grow with n: one yes/no column with m = n loses .714 at e = 1. So it may be run at a larger one: at 1.556
    this column loses 1, and errs by 3/5 as much. The range of its loss grows, too: see `Calibration.range`.

    Parameters
    ----------
    domain, queries
        The universe and the workload.
    n
        Rows of the databases: all of n rows under replace-one, all of up to n under add-remove. None, under
        add-remove: databases of any number of rows, by the range of the score.
    epsilon
        What is to be lost; exact, from 1e-20 to 1e9.
    rows, candidates, neighbours
        As for `smalldb.audit`.

    Raises
    ------
    ValueError
        An argument out of range, or an instance that is too large (says the largest n that would do). One
        yes/no column whose `rows` are a multiple of n has a closed form, and may be of any size.

    Examples
    --------
    >>> found = calibrated(Domain(["a"]), "conjunctions:1", n=40, rows=40, epsilon=1)
    >>> float(found.internal), found.loss[1] <= 1
    (1.55637312, True)
    """
    relation, exact = relation_of(neighbours), positive(epsilon, "epsilon")
    if not EPSILONS[0] <= exact <= EPSILONS[1]:
        raise ValueError("epsilon must be from 1e-20 to 1e9 for a calibration")
    if n is None and relation is Neighbours.REPLACE_ONE:
        raise ValueError("n must be given under replace-one: the loss is that of tables of n rows")
    known = None if n is None else whole(n, "n")
    return calibration(workload_of(queries, domain), exact, whole(rows, "rows"), candidates, known, relation)
