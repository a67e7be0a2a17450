"""The public plan of a release in rounds: what each step costs, and how many there are."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from smalldb.accounting.concentrated import rho_of
from smalldb.rounds.measuring import Law
from smalldb.rounds.universe import Universe

MEMORY = 1 << 17  # cells of all tables of the model
CERTIFICATE = Fraction(1, 20)
SELECTING = Fraction(1, 4)  # of a round
MOST_ROUNDS = 100
_FINE = 1 << 10  # to which shares are rounded


@dataclass(frozen=True, slots=True)
class RoundsPlan:
    """
    What is done, and what each step costs: all of it from public numbers.

    Attributes
    ----------
    universe
        The columns, the rules and the workload.
    epsilon, delta
        The guarantee; delta is None for a pure one.
    law
        How costs are counted and noise is drawn. Costs are epsilons, or parts of a rho.
    rows
        The public n under replace-one; under add-remove a public guess, which steers choices only.
    columns
        The cost of each column.
    rounds
        How many tables are selected and measured, at most.
    selecting, measuring
        What each round costs in its two parts.
    certifying
        What the certificate costs: half for its selection, half for its size; 0 for none.
    memory
        How many cells all tables of the model have, at most; what the rules need is never refused.
    """

    universe: Universe
    epsilon: Fraction
    delta: Fraction | None
    law: Law
    rows: int
    columns: tuple[Fraction, ...]
    rounds: int
    selecting: Fraction
    measuring: Fraction
    certifying: Fraction
    memory: int

    @property
    def budget(self) -> Fraction:
        """The sum that all costs must not exceed: epsilon, or the rho that proves (epsilon, delta)."""
        return budget_of(self.epsilon, self.delta)

    @property
    def cost(self) -> Fraction:
        """What all steps cost together, exactly: never more than the budget."""
        return sum(self.columns, self.certifying) + self.rounds * (self.selecting + self.measuring)


def budget_of(epsilon: Fraction, delta: Fraction | None) -> Fraction:
    """Return epsilon, or with a delta the largest rho that is proved to be enough."""
    return epsilon if delta is None else rho_of(epsilon, delta)


def plan_rounds(
    universe: Universe,
    epsilon: Fraction,
    delta: Fraction | None,
    replaced: bool,
    rows: int,
    *,
    memory: int = MEMORY,
    certificate: Fraction = CERTIFICATE,
) -> RoundsPlan:
    """
    Share a budget among columns, rounds and the certificate, from public numbers alone.

    Columns are shared so that the sum of their errors (as total variation distance) is least: costs
    proportional to k^(1/2) pure, k^(2/3) under rho. What they get in all grows with the error that they would
    have if they got everything; rounds get fewer as that grows.

    Parameters
    ----------
    rows
        The public n under replace-one, else a public guess of it.
    certificate
        The share of the budget for the certificate, 0 for none.
    """
    if not 0 <= certificate < 1:
        raise ValueError("certificate must be a share of at least 0 and below 1")
    if rows < 1:
        raise ValueError("rows must be at least 1")
    law = Law(concentrated=delta is not None, replaced=replaced)
    budget = budget_of(epsilon, delta)
    left = budget * (1 - certificate)
    parts = [round(k ** (2 / 3 if law.concentrated else 1 / 2) * _FINE) for k in universe.sizes]
    # mean distance of the columns if everything were spent on them
    blur = sum(
        k * law.size(left * part / sum(parts)) for k, part in zip(universe.sizes, parts, strict=True)
    ) / (2 * rows * len(parts))
    pairs = len({pair for table in universe.tables for pair in combinations(table, 2)})
    share = Fraction(round(_FINE * _column_share(blur, law.concentrated)), _FINE) if pairs else Fraction(1)
    rounds = _rounds(blur, pairs, law.concentrated)
    each = left * (1 - share) / max(1, rounds)
    return RoundsPlan(
        universe,
        epsilon,
        delta,
        law,
        rows,
        tuple(left * share * part / sum(parts) for part in parts),
        rounds,
        each * SELECTING,
        each * (1 - SELECTING),
        budget * certificate,
        memory,
    )


def _column_share(blur: float, concentrated: bool) -> float:
    """Return the share of columns; fitted to tables of 8 to 14 columns."""
    middle = 0.25 if concentrated else 0.35
    return min(0.75, max(0.1, middle * (max(blur, 1e-12) / 0.0043) ** 0.4))


def _rounds(blur: float, pairs: int, concentrated: bool) -> int:
    """Return how many rounds are worth their noise."""
    wanted = (4.0 if concentrated else 2.6) / max(blur, 1e-12) ** 0.5
    return min(MOST_ROUNDS, pairs + pairs // 2, max(3, round(wanted))) if pairs else 0
