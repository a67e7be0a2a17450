"""Whether a question is one of the queries that a release bounds the error of."""

import numpy as np

from queries import Workload
from smalldb.inference.questions import Question


def is_query(question: Question, workload: Workload) -> bool:
    """
    Tell whether a question is a query of a workload, up to sign and an added constant.

    It is one share of all rows then, of what the query counts. What bounds the error of every query of the
    workload bounds that of the question, too.
    """
    term, domain = question.terms[0], workload.domain
    allowed = domain.allowed(term.columns)
    asked = term.numerator[allowed]
    if len(question.terms) > 1 or term.counted:
        return False
    if not term.rows[allowed].all() or not np.isin(asked, (0.0, 1.0)).all():
        return False
    held = int(asked.sum())
    if held in (1, asked.size - 1) and term.columns in {block.columns for block in workload.cells}:
        return True
    for query in workload.listed:
        if query.columns(domain) == term.columns:
            own = query.over_columns(domain)[allowed] / query.denominator
            if min(np.ptp(own - asked), np.ptp(own + asked)) == 0:
                return True
    return False
