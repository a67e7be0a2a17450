"""Which bound on OPT the class of the queries allows."""

from queries import Domain, Intervals, QueryClass, Thresholds, spec


def class_method(domain: Domain, queries: QueryClass | str | None = None) -> str:
    """
    Return the `method` of `opt` and `sharp` that is best for a class: its own, or "least".

    Equation (7) of `docs/theory.md`.

    Its own where the class is thresholds, intervals, or tables of single columns of a universe without rules
    ("one-way" if each query is of one yes/no attribute; else "intervals", whose constant covers a table of
    fewer categories).

    Examples
    --------
    >>> [class_method(Domain(["a", "b"]), name) for name in ("thresholds", "marginals:1", "marginals:2")]
    ['thresholds', 'one-way', 'least']
    """
    chosen = spec.parse(queries) if isinstance(queries, str) else queries or spec.default(domain)
    if isinstance(chosen, Thresholds):
        return "thresholds"
    if isinstance(chosen, Intervals):
        return "intervals"
    # a rule could forbid the rows that single columns add up to
    if domain.valid is not None:
        return "least"
    workload = chosen.workload(domain)
    if any(len(columns) > 1 for columns in workload.tables):
        return "least"
    if any(not domain.columns[query.columns(domain)[0]].yes_no for query in workload.listed):
        return "least"  # any set of categories
    return "intervals" if workload.cells else "one-way"
