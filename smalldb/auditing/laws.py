"""What an audit finds; and any mechanism by its laws: outcome by outcome, over all neighbours."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import islice
from math import inf, isfinite, nan
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np

from queries.arrays import pd
from smalldb.counting.databases import Histogram, Span, check_budget, databases, neighbours_of, shown, spans
from smalldb.exact.enclosures import Real
from smalldb.exact.numbers import Number, as_fraction, float_above, positive
from smalldb.files.checkpoints import Checkpoint, Folder, finished, identity
from smalldb.mechanisms import Neighbours
from smalldb.showing import in_notebook

Enclosure: TypeAlias = tuple[Fraction, Fraction]
Logs: TypeAlias = dict[Hashable, Enclosure]
Kept: TypeAlias = tuple[Folder, str]
"""Where laws are kept, and what tells the mechanism from any other."""
CustomMechanism: TypeAlias = Callable[[Histogram], Mapping[Hashable, Any]]
DIGITS = 60
EPSILONS = Fraction(1, 10**20), Fraction(10**9)  # beyond, 60 digits would not tell the losses
MOST_LAWS = 20_000  # databases of which a mechanism is asked for its law
MOST_STEPS = 1_000_000  # of 20 microseconds each, on laws and their ratios


@dataclass(frozen=True, slots=True)
class Audit:
    """
    The worst privacy loss of a mechanism on one instance; nothing here depends on anybody's data.

    Attributes
    ----------
    loss
        (low, high), which agree to at least 25 digits: the largest |ln P(o | x) - ln P(o | x')| over
        neighbours x, x' and outcomes o. Infinite where an outcome is possible for one of them only.
    pair
        x and x' as counts over the cells, the more likely one first, and the outcome o.
    range
        (low, high) of the largest difference of two such log ratios for one pair: the bounded-range
        parameter that is realised.
    cap
        What theory allows for the loss; None for a mechanism of the caller's without an epsilon.
    databases, pairs
        How many were compared.
    """

    loss: tuple[Fraction | float, Fraction | float]
    pair: tuple[Histogram, Histogram, Hashable]
    range: tuple[Fraction | float, Fraction | float]
    cap: Fraction | None
    databases: int
    pairs: int

    def _repr_html_(self) -> str:
        return in_notebook(self)

    @property
    def worst_loss(self) -> float:
        """The loss, rounded up."""
        return _up(self.loss[1])

    @property
    def worst_range(self) -> float:
        """The bounded-range parameter that is realised, rounded up."""
        return _up(self.range[1])

    def to_frame(self) -> pd.DataFrame:
        """
        Return the audit as a table of one row, so that several can be put together.

        Columns: loss and range, rounded up; cap, NaN where there is none; databases and pairs compared.
        """
        cap = nan if self.cap is None else float_above(self.cap)
        row = {"loss": self.worst_loss, "range": self.worst_range, "cap": cap}
        return pd.DataFrame([row | {"databases": self.databases, "pairs": self.pairs}])


def audited(epsilon: Number, use: str = "an audit") -> Fraction:
    """Read the epsilon of a mechanism whose loss is worked out."""
    exact = positive(epsilon, "epsilon")
    if not EPSILONS[0] <= exact <= EPSILONS[1]:
        raise ValueError(f"epsilon must be from 1e-20 to 1e9 for {use}")
    return exact


def _up(x: Fraction | float) -> float:
    return x if isinstance(x, float) else float_above(x)


def audit_laws(
    mechanism: CustomMechanism,
    cells: int,
    epsilon: Fraction | None,
    n: int,
    relation: Neighbours,
    progress: bool,
    cost: int = 1,
    outcomes: int = 1,
    executor: Executor | None = None,
    kept: Kept | None = None,
) -> Audit:
    """Compare the laws of all neighbours, outcome by outcome; what `kept` keeps is the laws."""

    def fits(databases: int, pairs: int) -> bool:
        return databases <= MOST_LAWS and databases * cost + pairs * (outcomes + cells) // 8 <= MOST_STEPS

    check_budget(cells, n, relation, fits)
    tables = list(databases(cells, n, relation))
    parts = spans(len(tables))
    checkpoint = None
    if kept is not None:
        folder, run = kept
        checkpoint = Checkpoint(folder, identity(run, cells, n, relation.value, parts), _pack, _unpack)
    find = partial(_find, mechanism, cells, n, relation)
    results = finished(find, parts, executor=executor, threads=1, checkpoint=checkpoint)
    by_part = sorted(shown(results, parts, progress), key=itemgetter(0))
    laws = dict(zip(tables, (law for _, part in by_part for law in part), strict=True))
    loss: tuple[Fraction | float, Fraction | float] = (Fraction(0), Fraction(0))
    spread: tuple[Fraction | float, Fraction | float] = (Fraction(0), Fraction(0))
    worst: tuple[Histogram, Histogram, Hashable] | None = None
    pairs = 0
    for x in tables:
        for other in neighbours_of(x, n, relation):
            pairs += 1
            ratios = [
                (outcome, _ratio(laws[x].get(outcome), laws[other].get(outcome)))
                for outcome in laws[x].keys() | laws[other].keys()
            ]
            lows, highs = ([ratio[end] for _, ratio in ratios] for end in (0, 1))
            spread = max(spread[0], max(lows) - min(highs)), max(spread[1], max(highs) - min(lows))
            for outcome, (low, high) in ratios:
                pair = (x, other, outcome) if low + high >= 0 else (other, x, outcome)
                least, most = (low, high) if low + high >= 0 else (-high, -low)
                if worst is None or most > loss[1]:
                    worst = pair
                loss = max(loss[0], least), max(loss[1], most)
    if worst is None:
        raise ValueError("domain: one cell alone has no neighbours to compare")
    return Audit(loss, worst, spread, epsilon, len(tables), pairs)


def _find(mechanism: CustomMechanism, cells: int, n: int, relation: Neighbours, span: Span) -> list[Logs]:
    """Ask a mechanism for its laws on the databases of a span."""
    return [_logs(mechanism(x)) for x in islice(databases(cells, n, relation), *span)]


def _pack(laws: list[Logs]) -> Any:
    """Write laws whose outcomes are tuples of whole numbers."""
    return [[(outcome, str(low), str(high)) for outcome, (low, high) in law.items()] for law in laws]


def _unpack(packed: Any) -> list[Logs]:
    def end(text: str) -> Any:
        return -inf if text == "-inf" else Fraction(text)

    return [{tuple(outcome): (end(low), end(high)) for outcome, low, high in law} for law in packed]


def _logs(law: Mapping[Hashable, Any]) -> Logs:
    """Enclose the logarithms of the probabilities of the outcomes that are possible; -inf at the low end."""
    logs: dict[Hashable, Any] = {}
    for outcome, (low, high) in enclosed(law).items():
        logs[outcome] = Fraction(_ln(low).low) if low else -inf, Fraction(_ln(high).high)
    return logs


def enclosed(law: Mapping[Hashable, Any]) -> dict[Hashable, Enclosure]:
    """Enclose the probabilities of the outcomes that are possible; they add up to 1, or it is an error."""
    if not isinstance(law, Mapping):
        raise TypeError(f"a mechanism must return outcome -> probability, not {type(law).__name__}")
    possible = dict[Hashable, Enclosure]()
    least = most = slack = Fraction(0)
    for outcome, value in law.items():
        ends = value if isinstance(value, tuple) and len(value) == 2 else (value, value)
        low, high = map(_probability, ends)
        if isinstance(value, float | np.floating):
            slack = Fraction(1, 10**9)
        if not 0 <= low <= high <= 1 + slack:
            raise ValueError("a mechanism's probabilities must lie from 0 to 1, enclosures in order")
        least, most = least + low, most + high
        if high:
            possible[outcome] = low, high
    if not least - slack <= 1 <= most + slack:
        raise ValueError("a mechanism's probabilities must add up to 1")
    return possible


def _probability(value: object) -> Fraction:
    if isinstance(value, bool | np.bool_) or not isinstance(
        value, int | float | Fraction | np.integer | np.floating
    ):
        raise TypeError(f"a probability must be an int, float or Fraction, not {type(value).__name__}")
    if isinstance(value, float | np.floating) and not isfinite(value):
        raise ValueError("a mechanism's probabilities must be finite")
    return (
        Fraction(float(value))
        if isinstance(value, float | np.floating)
        else as_fraction(value, "probability")
    )


def _ln(x: Fraction) -> Real:
    return Real.of(x, DIGITS).ln()


def _ratio(here: Enclosure | None, there: Enclosure | None) -> tuple[Any, Any]:
    """Enclose ln P(o | x) - ln P(o | x'); None: not possible."""
    if here is None:
        return -inf, -inf
    if there is None:
        return inf, inf
    return here[0] - there[1], here[1] - there[0]
