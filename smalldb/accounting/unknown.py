"""Top-k where the candidates are not listed in public: only the largest counts are known."""

from dataclasses import dataclass
from fractions import Fraction

from smalldb.accounting.checked_arguments import checked_delta
from smalldb.accounting.composing import compose
from smalldb.exact.enclosures import Log, Real, round_up
from smalldb.exact.numbers import Number, positive, whole


@dataclass(frozen=True, slots=True)
class UnknownDomain:
    """
    What top-k among the `known` largest counts needs and loses; public numbers alone.

    Attributes
    ----------
    margin
        How far above the largest count that is not known the sentinel stands, rounded up.
    epsilon, delta
        Of the ranked list: (epsilon, delta)-differential privacy, epsilon rounded up.
    """

    margin: float
    epsilon: float
    delta: Fraction


def unknown_domain_top_k(*, k: int, known: int, epsilon: Number, delta: Number) -> UnknownDomain:
    """
    Account for top-k of an unknown domain: limited-domain peeling (Durfee and Rogers 2019).

    Equation (34) of `docs/theory.md`, where the proof is.

    A row adds at most 1 to each count, of any elements; neighbours add or remove a row. The `known` largest
    counts get Gumbel noise of scale 1/epsilon, and so does a sentinel at `margin` above the next count. What
    is above the sentinel is released in order, up to k of it; exact noise is assumed. `smalldb.select` is
    for candidates that are listed, and needs no delta.

    Parameters
    ----------
    k, known
        How many are released at most, and among how many.
    epsilon
        Of each draw, exact.
    delta
        Of all together, exact, above 0: half for elements that only one of two neighbours knows, half for the
        composition of k draws.

    Examples
    --------
    >>> found = unknown_domain_top_k(k=10, known=100, epsilon="0.1", delta="1e-6")
    >>> round(found.margin, 2), round(found.epsilon, 4)
    (192.14, 0.6709)
    """
    k, known = whole(k, "k"), whole(known, "known")
    if k > known:
        raise ValueError("k must be at most the number of known counts")
    each, spent = positive(epsilon, "epsilon"), positive(checked_delta(delta), "delta")
    ln, seen = Log(), spent / 2
    drawn = compose(epsilon=each, releases=k, delta=seen, bounded_range=True).epsilon
    total = Real.of(Fraction(drawn), ln.digits) + k * ln(1 + seen)
    return UnknownDomain(round_up(ln(known / seen) / each + 1), round_up(total), spent)
