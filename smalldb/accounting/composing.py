"""What many releases from one table lose together, and what each may lose for a given total."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

from queries.arrays import pd
from smalldb.accounting.checked_arguments import (
    MOST_LISTED,
    MOST_RELEASES,
    checked_flag,
    checked_number,
    kinds_of,
)
from smalldb.accounting.methods import LARGEST, Items, Method, added, concentrated, methods_of
from smalldb.bounds.calculators import last_where, sweeping
from smalldb.exact.numbers import Number, as_fraction, float_below, positive, share, whole
from smalldb.noise.privacy_loss import Loss

ASSUMED = "the number of releases and their epsilons did not depend on anything released"
LEAST_SHARE = 2.0**-1000  # far above the floats that lose digits


@dataclass(frozen=True, slots=True, eq=False)
class Composition:
    """
    What releases lose together: (epsilon, delta)-differential privacy.

    Attributes
    ----------
    epsilon
        The least of the valid bounds, rounded up.
    method
        Which one it is.
    delta
        As given, and what the releases themselves had.
    table
        All methods: columns method, epsilon, valid, note. A row that is not valid is no bound here.
    added
        The sum of the epsilons, exact: what the method "addition" says.
    """

    epsilon: float
    method: str
    delta: Fraction
    table: pd.DataFrame
    added: Fraction

    @property
    def assumed(self) -> str | None:
        """What must be so for it to hold; None where there is no delta."""
        return ASSUMED if self.delta else None


def compose(
    *,
    epsilon: Number,
    releases: int | None = None,
    delta: Number,
    adaptive: bool = True,
    bounded_range: bool = False,
) -> Composition:
    """
    Bound what releases from one table lose together, by all methods that apply.

    Equations (18) to (21) and (23) to (25) of `docs/theory.md`. With a delta above 0, how many releases there
    are and the epsilon of each must be fixed before any result is seen; to make fewer of them is no harm. To
    count those that were made in the end is no bound: if somebody may stop anywhere among 400 randomised
    responses of epsilon 0.1, and then states the epsilon that `compose` gives at delta = 0.01, the true delta
    is 0.046 or more. At delta 0 epsilons add up, however many there are.

    Parameters
    ----------
    epsilon
        Of each release, exact; or one for each of them: any iterable.
    releases
        How many, where epsilon is one number.
    delta
        At least 0 and below 1; 0 leaves plain addition, as does one below 1e-300.
    adaptive
        Whether the queries or the mechanism of a release may have been chosen after earlier ones were seen.
        If False, all was fixed in advance.
    bounded_range
        Whether each release is epsilon-bounded-range, not only epsilon-DP: what its record says. One draw of
        the exponential mechanism is; marginals, noisy-max and permute-and-flip are not.

    Examples
    --------
    >>> total = compose(epsilon=0.5, releases=10, delta=1e-6, bounded_range=True)
    >>> total.method, round(total.epsilon, 4)
    ('Renyi, bounded range', 3.6323)
    """
    kinds = kinds_of(epsilon, releases)
    checked_flag(bounded_range, "bounded_range")
    items = Counter({_loss(value, bounded_range): count for value, count in kinds.items()})
    return composed(items, share(delta, "delta"), checked_flag(adaptive, "adaptive"))


# Proof: docs/proofs/losses.md, lemma 10.
def compose_losses(losses: Iterable[Loss], *, delta: Number, adaptive: bool = True) -> Composition:
    """
    Bound what releases from one table lose together, from what is known of each: its epsilon, rho and laws.

    Equations (18) to (21) and (23) to (25) of `docs/theory.md`, and their losses (`docs/proofs/losses.md`).
    Their number and their losses must not depend on anything released, as for `compose`; which mechanism of a
    loss is taken, and for which queries, may.

    Parameters
    ----------
    losses
        Of each release, such as `Loss.laplace(epsilon)`; they may be steps of one release as well.
    delta, adaptive
        As for `compose`; above 0 where a loss has a rho and no epsilon.

    Examples
    --------
    >>> noise = Loss.laplace(Fraction(1, 10))
    >>> total = compose_losses([noise] * 100, delta=1e-6)
    >>> round(total.epsilon, 3), round(compose(epsilon=0.1, releases=100, delta=1e-6).epsilon, 3)
    (4.701, 4.775)
    """
    listed = list(islice(losses, MOST_LISTED + 1))
    checked_number(len(listed), MOST_LISTED)
    for loss in listed:
        if not isinstance(loss, Loss):
            raise TypeError(f"losses must hold values of Loss, not {type(loss).__name__}")
        if loss.epsilon is None and loss.rho is None:
            raise ValueError("losses: one of them has neither an epsilon nor a rho")
    items, allowed = Counter(listed), share(delta, "delta")
    checked_flag(adaptive, "adaptive")
    if all(loss.epsilon is not None for loss in items):
        return composed(items, allowed, adaptive)
    if not allowed:
        raise ValueError("delta must be above 0: one of the losses has a rho and no epsilon")
    if not (methods := [*concentrated(items, allowed)]):
        raise ValueError(
            "where a loss has no epsilon, delta must be at least 1e-300, and each rho and epsilon between "
            "1e-80 and 1e80"
        )
    return best_of(methods, allowed, added(items))


@sweeping("epsilon", "releases", "delta")
def per_release(
    *,
    epsilon: Number,
    releases: int,
    delta: Number,
    adaptive: bool = True,
    bounded_range: bool = False,
) -> float:
    """
    Return the largest epsilon of each release for a total, rounded down: the inverse of `compose`.

    `epsilon`, `releases` and `delta` may be arrays, which are broadcast: an array is returned.
    All of the releases have it, whatever earlier ones show, and there are no more than `releases`.
    Equations (18) to (21), (24) and (25) of `docs/theory.md`. It is at most 1e-9 (relative) below the true
    one. Its shortest decimal text is below too, which is how a float epsilon is read. Cost: some 40
    evaluations of the methods that `compose` solves.

    Parameters
    ----------
    epsilon
        The total that all releases together may lose; exact, at most 1e300.
    releases
        How many there are at most.
    delta
        Of the total: at least 0 and below 1. 0 leaves plain addition.
    adaptive, bounded_range
        As for `compose`.

    Examples
    --------
    >>> per_release(epsilon=1, releases=10, delta=0)
    0.1
    >>> per_release(epsilon=[[1], [2]], releases=[10, 20], delta=0).tolist()
    [[0.1, 0.05], [0.2, 0.1]]
    """
    total, releases = positive(epsilon, "epsilon"), checked_number(whole(releases, "releases"))
    allowed = share(delta, "delta")
    checked_flag(adaptive, "adaptive")
    checked_flag(bounded_range, "bounded_range")
    if total > LARGEST:
        raise ValueError("epsilon must be at most 1e300")
    simple = float_below(total / releases, repr)
    if simple < LEAST_SHARE:
        raise ValueError("epsilon must be larger: a share of it is below 2^-1000")

    def enough(each: float) -> bool:
        exact = as_fraction(each, "epsilon")
        if exact * releases > LARGEST:
            return False
        items = Counter({_loss(exact, bounded_range): releases})
        return _within(items, total, allowed, adaptive)

    low, high = simple, 2 * simple
    while enough(high):  # at delta > 0 each may have more than all of them together
        low, high = high, 2 * high
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    return low


@sweeping("epsilon", "total", "delta")
def most_releases(
    *,
    epsilon: Number,
    total: Number,
    delta: Number,
    adaptive: bool = True,
    bounded_range: bool = False,
) -> int:
    """
    Return how many releases of one epsilon keep within a total, never too many; 0: not even one.

    `epsilon`, `total` and `delta` may be arrays, which are broadcast: an array is returned.
    Nobody may make more of them because of what they showed; fewer is no harm.
    Equations (18) to (21), (24) and (25) of `docs/theory.md`.

    Parameters
    ----------
    epsilon
        Of each release, exact.
    total, delta
        What all together may lose: (total, delta)-differential privacy.
    adaptive, bounded_range
        As for `compose`. Cost: some 2 log2 of the answer evaluations of its methods.

    Examples
    --------
    >>> [most_releases(epsilon=0.1, total=1, delta=d, bounded_range=True) for d in (0, 1e-6)]
    [10, 20]
    """
    each, goal = positive(epsilon, "epsilon"), positive(total, "total")
    allowed = share(delta, "delta")
    checked_flag(adaptive, "adaptive")
    checked_flag(bounded_range, "bounded_range")
    if goal > LARGEST:
        raise ValueError("total must be at most 1e300")

    def enough(releases: int) -> bool:
        if releases * each > LARGEST:
            return False
        return _within(Counter({_loss(each, bounded_range): releases}), goal, allowed, adaptive)

    return last_where(enough, MOST_RELEASES)


def composed(items: Items, delta: Fraction, adaptive: bool) -> Composition:
    """Evaluate all methods, for releases that each have an epsilon."""
    return best_of(methods_of(items, delta, adaptive), delta, added(items))


def best_of(methods: Iterable[Method], delta: Fraction, epsilons: Fraction) -> Composition:
    """Evaluate methods; the least epsilon of those that are valid is what releases lose together."""
    rows = [(method.name, method.value(), method.valid, method.note) for method in methods]
    table = pd.DataFrame(rows, columns=["method", "epsilon", "valid", "note"])
    best = min((row for row in rows if row[2]), key=lambda row: row[1])
    return Composition(best[1], best[0], delta, table, epsilons)


def _loss(epsilon: Fraction, bounded_range: bool) -> Loss:
    return Loss.ranged(epsilon) if bounded_range else Loss.pure(epsilon)


def _within(items: Items, total: Fraction, delta: Fraction, adaptive: bool) -> bool:
    """Return whether some valid method keeps items within a total."""
    return any(method.within(total) for method in methods_of(items, delta, adaptive) if method.valid)
