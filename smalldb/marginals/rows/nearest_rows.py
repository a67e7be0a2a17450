"""From released integers to synthetic rows: post-processing, without entropy."""

import numpy as np

from queries.domain import Bits
from queries.rows import pack
from smalldb.exact.numbers import whole
from smalldb.marginals.contrasts.maximum_entropy import guarded_fit, read_all_cells
from smalldb.marginals.contrasts.parity_means import NoisyParities, masks
from smalldb.marginals.contrasts.parity_plan import ParityPlan
from smalldb.marginals.rows.query_search import search
from smalldb.marginals.rows.rounding import rounded

PRECISION = 50  # the search ends where it is so much more exact than the release


def synthesise(plan: ParityPlan, measured: NoisyParities, rows: int, *, progress: bool = False) -> Bits:
    """
    Return synthetic rows whose answers are near to the released ones: 0/1, shape (rows, d), in cell order.

    A distribution over the cells is fitted, rounded to rows, and the rows are moved towards its answers: for
    up to 20 attributes.

    The same released integers give the same rows. No row is made that `domain.valid` rules out.

    Parameters
    ----------
    plan, measured
        What was planned, with a table of all cells, and what its parts released.
    rows
        How many are made.
    progress
        Whether a bar is shown.
    """
    from smalldb.kernels.walsh import walsh

    rows = whole(rows, "rows")
    series = plan.spectrum
    distribution = guarded_fit(plan, measured).q if plan.cells is None else read_all_cells(plan, measured)
    start = rounded(plan.workload.domain, distribution, rows)
    walsh(distribution)
    wanted = series.answers(distribution[masks(plan)])
    enough = plan.expected_error / PRECISION
    bits = search(plan.workload, start, wanted, enough=enough, progress=progress)
    return bits[np.lexsort(pack(bits).T[::-1])]
