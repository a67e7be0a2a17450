"""Any mechanism, by its laws: outcome by outcome, over all neighbours."""

from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Executor
from fractions import Fraction
from functools import partial
from itertools import islice
from math import inf, isfinite
from typing import Any, TypeAlias

import numpy as np

from smalldb.auditing.loss import Audit
from smalldb.counting.databases import Counts, Span, check_budget, databases, neighbours_of, shown, spans
from smalldb.exact.enclosures import Real
from smalldb.exact.numbers import as_fraction
from smalldb.files.checkpoints import Checkpoint, Folder, finished, identity
from smalldb.planning import Neighbours

Enclosure: TypeAlias = tuple[Fraction, Fraction]
Logs: TypeAlias = dict[Hashable, Enclosure]
Kept: TypeAlias = tuple[Folder, str]
"""Where laws are kept, and what tells the mechanism from any other."""
CustomMechanism: TypeAlias = Callable[[Counts], Mapping[Hashable, Any]]

DIGITS = 60
MOST_LAWS = 20_000  # databases of which a mechanism is asked for its law
MOST_STEPS = 1_000_000  # of 20 microseconds each, on laws and their ratios


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
    found = dict(
        shown(finished(find, parts, executor=executor, threads=1, checkpoint=checkpoint), parts, progress)
    )
    laws = dict(zip(tables, (law for position in range(len(parts)) for law in found[position]), strict=True))
    loss: tuple[Fraction | float, Fraction | float] = (Fraction(0), Fraction(0))
    spread: tuple[Fraction | float, Fraction | float] = (Fraction(0), Fraction(0))
    worst: tuple[Counts, Counts, Hashable] | None = None
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
    found = dict[Hashable, Enclosure]()
    least = most = Fraction(0)
    slack = Fraction(0)
    for outcome, given in law.items():
        low, high = given if isinstance(given, tuple) and len(given) == 2 else (given, given)
        low, high = _probability(low), _probability(high)
        if isinstance(given, float | np.floating):
            slack = Fraction(1, 10**9)
        if not 0 <= low <= high <= 1 + slack:
            raise ValueError("a mechanism's probabilities must lie from 0 to 1, enclosures in order")
        least, most = least + low, most + high
        if high:
            found[outcome] = low, high
    if not least - slack <= 1 <= most + slack:
        raise ValueError("a mechanism's probabilities must add up to 1")
    return found


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
