"""Which columns are measured at once, by one noise, and what each costs: from public numbers alone."""

from collections.abc import Sequence
from fractions import Fraction
from math import inf, sqrt

from smalldb.marginals.strategies.first_tables import proportions

WIDEST = 128  # categories of a column that is measured together with others
MOST = 1 << 10  # categories of all such columns, less one of each
_FINE = 1 << 10  # to which shares are rounded


def column_groups(
    sizes: Sequence[int], among: Sequence[int], concentrated: bool
) -> tuple[tuple[int, ...], ...]:
    """
    Return groups of columns such that the sum of their expected errors is least.

    K-norm noise puts each column of a group off by about (categories of all - columns + 1) times (1 - 1 / its
    own categories), over the cost. With costs proportional to the root of a group's error, the sum of all is
    the square of the sum of these roots. Groups are of neighbours in size.
    """
    if concentrated:
        return tuple((c,) for c in among)
    pieces = _pieces(sizes, among)
    best: list[tuple[float, int]] = [(0.0, 0)]
    for end in range(1, len(pieces) + 1):
        found = (inf, 0)
        for start in range(end):
            group = [c for piece in pieces[start:end] for c in piece]
            if start == end - 1 or _may(sizes, group):
                found = min(found, (best[start][0] + sqrt(_error(sizes, group)), start))
        best.append(found)
    groups, end = list[tuple[int, ...]](), len(pieces)
    while end:
        start = best[end][1]
        groups.append(tuple(sorted(c for piece in pieces[start:end] for c in piece)))
        end = start
    return tuple(sorted(groups))


def shares_of_columns(
    sizes: Sequence[int], groups: Sequence[Sequence[int]], concentrated: bool
) -> list[Fraction]:
    """Return the shares of costs of all columns, each an equal part of its group's; 0: in no group."""
    parts = [Fraction(0)] * len(sizes)
    alone = proportions(sizes, concentrated)
    together = any(len(group) > 1 for group in groups)
    for group in groups:
        whole = round(sqrt(_error(sizes, group)) * _FINE) if together else alone[group[0]]
        for c in group:
            parts[c] = Fraction(whole, len(group))
    total = max(1, sum(parts))
    return [part / total for part in parts]


def _pieces(sizes: Sequence[int], among: Sequence[int]) -> list[list[int]]:
    """Return columns of one size together, as many as a group may have, from small to large."""
    pieces = list[list[int]]()
    for c in sorted(among, key=lambda c: (sizes[c], c)):
        if pieces and sizes[pieces[-1][0]] == sizes[c] and _may(sizes, [*pieces[-1], c]):
            pieces[-1].append(c)
        else:
            pieces.append([c])
    return pieces


def _may(sizes: Sequence[int], group: Sequence[int]) -> bool:
    """Tell whether columns may be measured at once."""
    own = [sizes[c] for c in group]
    return min(own) >= 2 and max(own) <= WIDEST and sum(own) - len(own) <= MOST


def _error(sizes: Sequence[int], group: Sequence[int]) -> float:
    """Return the expected error of a group's columns together, at a cost of 1."""
    dimensions = sum(sizes[c] - 1 for c in group)
    return (dimensions + 1) * sum(1 - 1 / sizes[c] for c in group) or 1.0
