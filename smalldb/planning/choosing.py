"""Choosing the mechanism and the rows, before any data is read."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import inf
from typing import Any, Required, TypedDict

from queries import Column, Domain, QueryClass, Workload
from queries.spec import named_tables
from smalldb import bounds
from smalldb.accounting.checked_arguments import checked_flag
from smalldb.accounting.concentrated import group_factor, rho_of
from smalldb.accounting.methods import LEAST_DELTA
from smalldb.exact.numbers import Number, as_fraction, between_0_and_1, rounded_down, share, whole
from smalldb.marginals.mechanism import ByMarginals
from smalldb.marginals.strategies.adaptive import Adaptive
from smalldb.mechanisms import (
    MAX_N,
    Mechanism,
    Neighbours,
    Request,
    columns_named,
    relation_of,
    workload_of,
)
from smalldb.mechanisms.request import read_delta
from smalldb.planning.arguments import (
    USUAL_BETA,
    agreed_rows,
    check_finer,
    exact_epsilon,
    sizes_of,
    starting,
    taking,
)
from smalldb.planning.mechanisms import named
from smalldb.planning.plans import MeansCost, Plan
from smalldb.planning.related import plan_related
from smalldb.planning.starting import refined, with_start
from smalldb.schema import Schema
from smalldb.schema.bin_shapes import MEANS_SHARE, MOST_SHARE
from smalldb.schema.mapping import finer_costs, measurable_columns
from smalldb.schema.reading import SchemaLike, check_alone, read_any, read_schema
from smalldb.schema.related_schema import RelatedSchema

LEAST_BETA = Fraction(1, 10**300)  # what follows from it is a float
HIDDEN = 8  # deviations of the noise of a bin: of so few rows, little would be known of where numbers lie


class Settings(TypedDict, total=False):
    """The keywords of `plan` that do not come from the data."""

    epsilon: Required[Number]
    delta: Number | None
    alpha: Number | None
    rows: int | None
    neighbours: str
    n_max: int | None
    mechanism: str
    strategy: str | None
    candidates: str | None
    certificate: Number | None
    column_share: Number | None
    target: str | Sequence[str] | None
    measure_first: Sequence[str] | None
    beta: Number
    rows_per_person: int | None
    calibrated: bool
    means: Number | None
    start: Any
    start_is: str | None
    start_rows: str | None
    refine: Any


def plan(
    domain: Domain | Sequence[Column | str] | int | None = None,
    queries: QueryClass | Workload | str | None = None,
    *,
    schema: SchemaLike | None = None,
    n: int | None = None,
    epsilon: Number,
    delta: Number | None = None,
    alpha: Number | None = None,
    rows: int | None = None,
    neighbours: str = "replace-one",
    n_max: int | None = None,
    mechanism: str = "auto",
    strategy: str | None = None,
    candidates: str | None = None,
    certificate: Number | None = None,
    column_share: Number | None = None,
    target: str | Sequence[str] | None = None,
    measure_first: Sequence[str] | None = None,
    beta: Number = USUAL_BETA,
    rows_per_person: int | None = None,
    calibrated: bool = False,
    means: Number | None = None,
    start: Any = None,
    start_is: str | None = None,
    start_rows: str | None = None,
    refine: Any = None,
) -> Plan:
    """Decide what a release would do, and what it can promise, without any data.

    Parameters
    ----------
    domain
        The universe, or what `Domain` makes one of: columns, names, or how many yes/no attributes.
    queries
        The query class, its text such as "marginals:2", or a workload; by default the schema's, or all cells
        of 1- and 2-way tables.
    schema
        In place of `domain`: a `smalldb.schema.Schema`, the path of its file, or its text. One of related
        tables is for marginals, with `epsilon`, `n` or `n_max`, which are of parents, and `neighbours` alone.
    n
        Rows of the data: needed under replace-one, where it is public; refused under add-remove.
    epsilon, beta
        Exact numbers: an int, Fraction, Decimal, text such as "1/2", or a float, which is read
        through its shortest decimal text.
    delta
        Exact, between 0 and 1: allows marginals to take Gaussian noise, if its expected error is the
        smallest. The guarantee is then (epsilon, delta), see `Plan.delta`. None: everything is pure.
    alpha, rows
        The size of the synthetic table: `rows`, or ``ceil(ln max(2, |Q|) / alpha^2)``. Neither: the
        mechanism and rows of least public expected error; under add-remove marginals, with `n_max`.
    neighbours
        Which tables are neighbours. "replace-one": those that differ in one row, and n is public.
        "add-remove": those of which one has a row more, and n is private.
    n_max
        Under add-remove, about how many rows the data have at most, from public knowledge: what can be
        done, and what marginals measure, is chosen by it. The guarantee does not depend on it.
    mechanism
        "census", "rejection", "marginals", or "auto": with the size given, SmallDB of that size, by a census
        if it fits, else by rejection, else marginals of that size; without, the one of least expected error.
    strategy
        What marginals measure: "cells", "contrasts", "pairs" or "adaptive"; by default what is expected to
        have the smallest error.
    candidates
        The base measure: "multisets" (the default of a census) or "tuples" (ordered rows, the default of
        rejection). Marginals have none.
    certificate
        The share of the budget that marginals spend on a bound for every query, measured or not: from 0,
        for none, to below 1. None: a twentieth.
    column_share
        Where marginals measure tables in rounds, the share of the budget (less the certificate) that single
        columns get, above 0: more brings single columns nearer, less brings tables of several columns nearer.
        1: columns alone. None: more where noise is loud, from .1 to .75, or with a delta to .3.
    target
        The column that classifiers of the synthetic table will predict, or several: adaptive marginals
        measure its tables with each other column of the workload first, and never group its categories. What
        measures everything alike refuses a target. None: no column comes first.
    measure_first
        Tables such as "age x death" or "education x wage x sex", which adaptive marginals measure first,
        whether the queries need them or not. A column whose name has an x between spaces stands in backticks.
        None: the schema's.
    rows_per_person
        K, the most rows that one person has in the table, from public knowledge; by default the schema's.
        `epsilon` and `delta` protect all of them: each row gets a K-th of epsilon, and so much of delta that
        it is delta for K rows together (`smalldb.accounting.concentrated`). None: nothing is said of people,
        and what is protected is one row.
    calibrated
        Run a census at a larger internal epsilon, such that what it loses at worst is just `epsilon`: it errs
        less. Under replace-one the loss is looked up over all tables of n rows, so it is for small universes
        and tables. A single release gains by it; several lose more together, because the range of the loss
        grows with the internal epsilon (`smalldb.auditing.worst_case`). Under add-remove it costs nothing.
    means
        The share of epsilon that marginals spend on where numbers lie in the bins of a schema's columns, so
        that means have intervals and values are drawn by them: from 0, for none, to 1/2. None: 1/25, where
        noise of so much would not hide it. Columns with finer bins have no need of it.
    start, start_is
        A public table of the same columns to start from (a frame, a path, or `Rows`), and in words what it
        is: of other people, or released under differential privacy. It must not hold the private rows.
    start_rows
        "start": rows of the synthetic table are rows of the start; "model": they are made from its tables.
    refine
        An earlier release of the same data, or its record: its measurements are used beside the new ones.

    Raises
    ------
    ValueError, TypeError
        An argument out of range, or a size that cannot be done: says what could.

    Examples
    --------
    >>> from queries import Conjunctions
    >>> plan(Domain(["a", "b", "c"]), Conjunctions(2), n=1000, epsilon=1, rows=8).candidate_count
    6435
    """
    check_alone(schema, domain)
    read = None if schema is None else read_any(schema)
    if isinstance(read, RelatedSchema):
        others: dict[str, Any] = {"delta": delta, "alpha": alpha, "rows": rows, "candidates": candidates}
        others |= {"certificate": certificate, "column_share": column_share}
        others |= {"rows_per_person": rows_per_person, "beta": None if beta == USUAL_BETA else beta}
        others |= {"calibrated": calibrated or None, "means": means or None, "start": start}
        others |= {"start_is": start_is, "start_rows": start_rows, "refine": refine}
        first = target, measure_first, strategy
        sizes = relation_of(neighbours), n, n_max
        return plan_related(read, epsilon, *sizes, mechanism, queries, first, others)
    known = None if read is None else read_schema(read)
    if known is not None:
        domain, queries = known.domain, known.queries if queries is None else queries
        rows_per_person = agreed_rows(rows_per_person, known.rows_per_person)
        measure_first = known.measure_first if measure_first is None else measure_first
    relation = relation_of(neighbours)
    if known is not None and relation is not Neighbours.ADD_REMOVE and known.drops:
        raise ValueError('breaks = "drop" makes the number of rows private: take neighbours "add-remove"')
    if start is not None and domain is not None and not isinstance(domain, Domain):
        domain = Domain(domain)
    settings = {"start": start, "start_is": start_is, "start_rows": start_rows}
    start = with_start(settings, domain if known is None else known)["start"]
    certifying = None if certificate is None else share(certificate, "certificate")
    epsilon = exact_epsilon(epsilon)
    each_person = 1 if rows_per_person is None else whole(rows_per_person, "rows_per_person")
    finer = () if known is None else finer_costs(known.columns, epsilon / each_person)
    left = epsilon / each_person - sum(each.epsilon for each in finer)
    spent = MEANS_SHARE if means is None else as_fraction(means, "means")
    if not 0 <= spent <= MOST_SHARE:
        raise ValueError(f"means must be a share of epsilon from 0, for none, to {MOST_SHARE}")
    exact_beta = between_0_and_1(beta, "beta")
    if exact_beta < LEAST_BETA:
        raise ValueError("beta must be at least 1e-300")
    allowed = read_delta(delta)
    if allowed is not None and each_person > 1:
        allowed /= group_factor(left, each_person)
        if allowed < LEAST_DELTA:
            raise ValueError(
                "rows_per_person: of delta less than 1e-300 is left to each row: leave out delta"
            )
    aimed = target is not None or bool(measure_first)
    checked_flag(calibrated, "calibrated")
    mechanisms = taking(mechanism, strategy, candidates, aimed=aimed, calibrated=calibrated)
    earlier = None if refine is None else refined(refine, workload_of(queries, domain).domain, n)
    if None not in (earlier, start):
        raise ValueError("pass start or refine, not both")
    of_columns = None if column_share is None else as_fraction(column_share, "column_share")
    if of_columns is not None and not 0 < of_columns <= 1:
        raise ValueError("column_share must be above 0 and at most 1")
    if None not in (earlier, of_columns):
        raise ValueError("an earlier release has measured the columns: pass column_share or refine, not both")
    if any(each is not None for each in (earlier, start, of_columns)):
        mechanisms = starting(mechanisms, strategy)
    if allowed is not None and not any(each.takes_delta for each in mechanisms):
        takers = " and ".join(each.name for each in named("auto") if each.takes_delta)
        raise ValueError(f"delta is for {takers}: SmallDB itself is purely epsilon-private; leave it out")
    n, n_max = sizes_of(relation, n, n_max)
    if rows is not None and alpha is not None:
        raise ValueError("pass rows or alpha, not both")
    rows = None if rows is None else whole(rows, "rows")
    error = None if alpha is None else between_0_and_1(alpha, "alpha")
    workload = workload_of(queries, domain)
    if error is not None:
        rows = bounds.rows_for(alpha=error, queries=max(1, workload.size))
    request = Request(
        workload,
        n,
        n_max,
        left,
        exact_beta,
        relation,
        allowed,
        rows,
        candidates,
        certifying,
        of_columns,
        named=mechanism != "auto",
        targets=columns_named(workload.domain, target),
        first=named_tables(measure_first or (), workload.domain.names),
        strategy=strategy,
        calibrated=calibrated,
        start=start,
        earlier=earlier,
    )
    check_finer(finer, request)
    choose = _least_error if rows is None else _first
    aside = None if known is None or not spent else _means(known, request, spent)
    best: Plan | None = None
    if aside is not None and ByMarginals in mechanisms:
        beside = choose(replace(request, epsilon=left - aside.epsilon), mechanisms)
        if isinstance(beside.chosen, ByMarginals):
            best = replace(beside, means=_concentrated(aside, beside, request))
    if best is None:
        best = choose(request, mechanisms)
    if each_person > 1:
        best = _in_halves(best)
    stated = rows_per_person is not None
    return replace(best, rows_per_person=each_person, persons_stated=stated, finer=finer)


def _in_halves(plan: Plan) -> Plan:
    """Return the plan for persons of several rows: rounds that would drown give way to pairs in halves."""
    # halves err more in the mean of all tables than columns alone, but show which columns depend
    request, chosen = plan.request, plan.chosen
    decided = request.strategy or request.delta or request.start or request.earlier
    if decided or not isinstance(chosen, ByMarginals) or not isinstance(chosen.strategy, Adaptive):
        return plan
    strategy = Adaptive.shared(chosen.strategy, halves=True)
    if not strategy.halved:
        return plan
    return replace(plan, chosen=replace(chosen, strategy=strategy), runner_up=None, refused=())


def _means(schema: Schema, request: Request, share: Fraction) -> MeansCost | None:
    """Return what is measured of where numbers lie in bins; None: nothing, or noise would hide it."""
    columns = measurable_columns(schema.columns)
    rows = request.rows_hint
    if not columns or not rows or request.largest_n > MAX_N:
        return None
    halves = 2 if request.neighbours is Neighbours.REPLACE_ONE else 1
    scale = halves * len(columns) / (2 * share * request.epsilon)  # of Laplace noise, in widths of bins
    return MeansCost(columns, share * request.epsilon) if 2 * (HIDDEN * scale) ** 2 < rows**2 else None


# Proof: docs/proofs/curator.md, lemma 5.
def _concentrated(aside: MeansCost, plan: Plan, request: Request) -> MeansCost:
    """Return the cost of means beside a mechanism: a rho, if that of the mechanism is one."""
    rho, delta = plan.chosen.guarantee.stated.rho, plan.chosen.guarantee.delta
    if rho is None or delta is None:
        return aside
    left = rho_of(request.epsilon, delta) - rho
    return replace(aside, rho=left) if left > 0 else aside


def _first(request: Request, mechanisms: tuple[type[Mechanism], ...]) -> Plan:
    """Return the plan of the first mechanism that can do the rows asked for."""
    reasons: list[str] = []
    for each in mechanisms:
        mechanism = each.planned(request)
        if not isinstance(mechanism, str):
            return Plan(request, mechanism, refused=tuple(reasons))
        reasons.append(mechanism)
    remedies = (each.remedy(request) for each in mechanisms)
    raise ValueError("; ".join(map("".join, zip(reasons, remedies, strict=True))))


def _least_error(request: Request, mechanisms: tuple[type[Mechanism], ...]) -> Plan:
    """Return the plan of least public expected error, with the next best beside it; ties to the first."""
    plans, reasons, least = list[Plan](), list[str](), inf
    # to rehearse a census takes seconds: it is asked last, and only if it could win
    floors = {each: each.least_error(request) for each in mechanisms}
    for each in sorted(mechanisms, key=lambda each: (floors[each], mechanisms.index(each))):
        if floors[each] > least:
            reasons.append(f"{each.name} promises no mean error below {rounded_down(floors[each], 2)}")
            continue
        mechanism = each.planned(request)
        if isinstance(mechanism, str):
            reasons.append(mechanism)
        else:
            plans.append(Plan(request, mechanism))
            least = min(least, _error(plans[-1]))
    if not plans:
        raise ValueError("; ".join(dict.fromkeys(reasons)))
    # expected errors follow from public numbers: neighbours have the same plan
    plans.sort(key=lambda plan: (_error(plan), mechanisms.index(type(plan.chosen))))
    if len(plans) == 1:
        return replace(plans[0], refused=tuple(dict.fromkeys(reasons)))
    return replace(plans[0], runner_up=plans[1])


def _error(plan: Plan) -> float:
    return inf if plan.expected_error is None else plan.expected_error
