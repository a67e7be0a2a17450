"""
The linear program of the best private mechanism: solved by floats, and its answers made exact.

The probabilities P(y | x) are at most exp(epsilon) apart between neighbours, add up to 1 for each table x,
and the mean cost of each x is at most t; t is least. The solver works in floats, so its word is not taken:
its dual variables are rounded to fractions, and every dual solution bounds t from below; its laws are mixed
with one that looks at no table until they keep epsilon, and each such mechanism bounds t from above.
"""

from fractions import Fraction

import numpy as np

from queries.arrays import Floats, Integers
from smalldb.exact.levels import exp_enclosure

BITS = 60  # of a dual variable, and of exp(epsilon)
TIMED_OUT = 1  # the status of a program that ran out of time
WHOLE = 1 << 80  # the probability 1 of a mechanism
NEGLIGIBLE = 1e-9  # an outcome that no table has with more probability is left out
LEAST_SHARE = 1e-12  # of the law that looks at no table


def solve(
    costs: Integers, pairs: Integers, epsilon: float, seconds: float | None = None
) -> tuple[float, Floats, Floats, Floats]:
    """Solve the linear program by floats; return t, the law of each table, and the dual variables."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    tables, outcomes = costs.shape
    last = tables * outcomes  # t; P(y | x) is number x outcomes + y
    each = np.arange(last)
    scale = max(1, int(costs.max()))
    here = (pairs[:, :1] * outcomes + np.arange(outcomes)).ravel()
    there = (pairs[:, 1:] * outcomes + np.arange(outcomes)).ravel()
    ratios = tables + np.arange(len(here))
    # P(y | x) exp(-epsilon) <= P(y | x'): no coefficient above 1
    entries = np.concatenate(
        [costs.ravel() / scale, -np.ones(tables), np.full(len(here), np.exp(-epsilon)), -np.ones(len(here))]
    )
    lines = np.concatenate([each // outcomes, np.arange(tables), ratios, ratios])
    columns = np.concatenate([each, np.full(tables, last), here, there])
    above = coo_array((entries, (lines, columns)), shape=(tables + len(here), last + 1)).tocsr()
    sums = coo_array((np.ones(last), (each // outcomes, each)), shape=(tables, last + 1)).tocsr()
    for method in ("highs-ipm", "highs-ds"):
        found = linprog(
            np.eye(1, last + 1, last)[0],
            A_ub=above,
            b_ub=np.zeros(tables + len(here)),
            A_eq=sums,
            b_eq=np.ones(tables),
            bounds=(0, None),
            method=method,
            options={} if seconds is None else {"time_limit": seconds},
        )
        if found.success:
            break
        if found.status == TIMED_OUT:
            raise ValueError(
                f"the linear program of {len(here)} constraints was not solved in {seconds:g} seconds: "
                "allow more of them, or use a smaller instance"
            )
    else:
        raise ValueError("the linear program was not solved: use a smaller instance or another epsilon")
    duals = np.maximum(-found.ineqlin.marginals, 0)
    flows = duals[tables:].reshape(len(pairs), outcomes) * np.exp(-epsilon) * scale
    return float(found.fun) * scale, found.x[:last].reshape(costs.shape), duals[:tables], flows


def certified(
    costs: Integers, pairs: Integers, epsilon: Fraction, weights: Floats, flows: Floats
) -> Fraction:
    """Return a proved lower bound on the program's t from any `weights` and `flows` that are not below 0."""
    # With weights w of sum 1, flows u >= 0 and v_x = min over y of w_x cost(x, y) + (sum of u out of x)
    # - exp(epsilon) (sum of u into x): every mechanism has t >= sum of w_x (mean cost at x) >= sum of
    # v_x, since each pair's term u (P(y | x) - exp(epsilon) P(y | x')) is at most 0. exp(epsilon) is
    # rounded up.
    whole_weights = [round(w * (1 << BITS)) for w in weights.tolist()]
    low, _ = exp_enclosure(epsilon, BITS)
    growth = Fraction(1 << BITS, low)  # at least exp(epsilon)
    total = sum(whole_weights)
    if not total:
        return Fraction(0)
    over, under = growth.numerator, growth.denominator
    out = [[0] * costs.shape[1] for _ in range(len(costs))]
    for (here, there), flow in zip(pairs.tolist(), flows.tolist(), strict=True):
        for outcome, amount in enumerate(flow):
            if amount > 0:
                rounded = round(amount * (1 << BITS))
                out[here][outcome] += rounded * under
                out[there][outcome] -= rounded * over
    least = sum(
        min(weight * cost * under + flow for cost, flow in zip(line, flows_of, strict=True))
        for weight, line, flows_of in zip(whole_weights, costs.tolist(), out, strict=True)
    )
    return Fraction(least, under * total)


def made_private(laws: Floats, pairs: Integers, epsilon: Fraction) -> list[list[int]]:
    """Return laws near to those of the solver that are exactly epsilon-DP, in units of `WHOLE`."""
    # they are mixed with one law for all tables, by as little as will do, which is looked up in
    # integers
    _, high = exp_enclosure(epsilon, BITS)  # exp(epsilon) is at least 2^BITS / high
    kept = np.maximum(laws, 0) * (laws.max(axis=0) > NEGLIGIBLE)
    kept /= kept.sum(axis=1)[:, None]
    used = kept.any(axis=0)
    common = (kept.mean(axis=0) + used / used.sum()) / 2
    share = 0.0
    while True:
        mixed = ((1 - share) * kept + share * common) * float(WHOLE)
        whole = np.array([[int(weight) for weight in law] for law in mixed.tolist()], dtype=object)
        for law in whole:
            law[law.argmax()] += WHOLE - law.sum()
        if (whole[pairs[:, 0]] * high <= whole[pairs[:, 1]] << BITS).all():
            return [law.tolist() for law in whole]
        share = min(1.0, max(LEAST_SHARE, 2 * share))
