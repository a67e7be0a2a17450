"""Halfspaces: weighted counts of attributes against a threshold."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np

from queries.domain import Domain
from queries.expressions import quote
from queries.query import Query
from queries.query_class import QueryClass

# |w_i| up to this give every halfspace of 1, 2, 3, 4 attributes (Muroga 1971), also of those against the last
LARGEST_WEIGHT = (1, 1, 2, 3)


@dataclass(frozen=True, slots=True)
class Halfspaces(QueryClass):
    """All functions ``w_1 x_1 + ... + w_d x_d >= t`` with real weights: 4, 14, 104, 1882 for d = 1..4.

    Every attribute is an input. If one attribute is a label z to be predicted, ``h(x) = z`` is no halfspace.
    It is the sum of two queries: ``h(x) and z``, and ``not h(x) and not z``.

    Parameters
    ----------
    last
        Only ``w_1 x_1 + ... + w_(d-1) x_(d-1) >= x_d``, with the last attribute on the right side: 1, 3, 16,
        185 for d = 1..4. These are the halfspaces of the encyclopaedia's article "Exponential mechanism".

    Notes
    -----
    The label of a query states whole weights with the least sum of absolute values. The label of a negated
    query states those of its complement.

    Examples
    --------
    >>> Halfspaces().workload(Domain(["a", "b"])).labels
    ('a >= 1', 'b >= 1', 'a + b >= 1', 'a + b >= 2', 'a - b >= 0', 'a - b >= 1')
    """

    last: bool = False

    @property
    def text(self) -> str:
        """``halfspaces``, or ``halfspaces:last``."""
        return "halfspaces:last" if self.last else "halfspaces"

    def stated(self, domain: Domain) -> int:
        """Return how many there are on the whole cube; ValueError beyond 4 attributes."""
        return len(_halfspaces(len(domain.attributes), self.last))

    def vc_bounds(self, domain: Domain) -> tuple[int, int]:
        """
        Return d + 1 twice (Radon), or as the upper bound where some settings cannot exist.

        Against the last attribute: d - 1, by the rows of one attribute besides the last, and d, because the
        threshold is 0.
        """
        dimension = len(domain.attributes) + 1 - self.last
        return (dimension - self.last if domain.free else 0), dimension

    def queries(self, domain: Domain) -> Iterator[Query]:
        """Yield them by the sum of their absolute weights, each over the attributes of weight not 0."""
        for weights, threshold in _halfspaces(len(domain.attributes), self.last):
            chosen = tuple(i for i, w in enumerate(weights) if w)
            table = tuple(
                int(sum(weights[i] for i, bit in zip(chosen, setting, strict=True) if bit) >= threshold)
                for setting in product((0, 1), repeat=len(chosen))
            )
            yield Query(_label(domain, weights, threshold), chosen, table)


@lru_cache(maxsize=2 * len(LARGEST_WEIGHT))
def _halfspaces(d: int, last: bool = False) -> tuple[tuple[tuple[int, ...], int], ...]:
    """Return weights and threshold of each halfspace, plainest first: few and positive weights."""
    if d > len(LARGEST_WEIGHT):
        raise ValueError(f"halfspaces: at most {len(LARGEST_WEIGHT)} attributes, not {d}")
    cells = np.array(list(product((0, 1), repeat=d)))
    largest = LARGEST_WEIGHT[d - 1]

    def plainness(weights: tuple[int, ...]) -> tuple[int, int, tuple[int, ...]]:
        return sum(map(abs, weights)), sum(w < 0 for w in weights), tuple(-w for w in weights)

    found: dict[bytes, tuple[tuple[int, ...], int]] = {}
    for weights in sorted(product(range(-largest, largest + 1), repeat=d), key=plainness):
        if last and weights[-1] >= 0:
            continue
        sums = cells @ weights
        for threshold in (0,) if last else (*np.unique(sums).tolist(), int(sums.max()) + 1):
            found.setdefault((sums >= threshold).tobytes(), (weights, threshold))
    return tuple(found.values())


def _label(domain: Domain, weights: tuple[int, ...], threshold: int) -> str:
    """Write a halfspace such as ``2 a - b >= 1``; the two constants as ``TRUE`` and ``FALSE``."""
    text = ""
    for name, w in zip(domain.attributes, weights, strict=True):
        if w:
            sign = (" + " if w > 0 else " - ") if text else "-" * (w < 0)
            text += sign + (f"{abs(w)} " if abs(w) > 1 else "") + quote(name)
    return f"{text} >= {threshold}" if text else ("TRUE" if threshold <= 0 else "FALSE")
