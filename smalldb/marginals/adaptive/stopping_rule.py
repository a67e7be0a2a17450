"""What rounds do where a table told nothing: the next ones are measured better, and in the end they stop."""

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

from queries.arrays import Floats
from smalldb.marginals.measuring import Measured

QUIET = 4  # tables one after another that tell nothing, at least, when rounds end
TIMES = 3  # as many of them as tables that told something, at least
RAISED = Fraction(2)  # times the cost of a round, after each table that told nothing; once one did
MOST_RAISED = Fraction(64)
LEAST = Fraction(1, 8)  # of what columns cost, what is worth measuring them again
_DEVIATIONS = 2.0
_LEAST = 1e-9  # a variance below which noise does not count
_SPREAD = {False: 5.0, True: 2.0}  # variance of squared noise, by its squared variance: geometric, Gaussian


@dataclass(frozen=True, slots=True)
class Heard:
    """
    What tables have told so far.

    Attributes
    ----------
    told
        How many told something.
    quiet
        How many after the last of these told nothing.
    rounds
        How many there were.
    times
        How many times what the plan says the next round costs: noise hid what the tables tell, if anything.
    """

    told: int = 0
    quiet: int = 0
    times: Fraction = Fraction(1)
    rounds: int = 0

    def after(self, tells: bool) -> "Heard":
        """Return what is known after one more table."""
        if tells:
            return Heard(self.told + 1, 0, self.times, self.rounds + 1)
        raised = min(MOST_RAISED, self.times * RAISED) if self.told else self.times
        return Heard(self.told, self.quiet + 1, raised, self.rounds + 1)

    @property
    def enough(self) -> bool:
        """Whether little is to be gained of more tables."""
        return self.quiet >= max(QUIET, TIMES * self.told)


def tells(table: Measured, expected: Floats, concentrated: bool) -> bool:
    """
    Whether a released table is farther from what was expected than noise alone would be.

    Of N cells, the sum of squares over the variance of the noise is N in the mean; it is looked at whether
    it is larger by more than two of its deviations.

    Parameters
    ----------
    expected
        Counts that follow from what was released before, of the shape of the table.
    concentrated
        Whether the noise is Gaussian; else it is geometric.
    """
    squares = float(((table.counts - expected) ** 2).sum()) / max(table.variance, _LEAST)
    return squares - expected.size > _DEVIATIONS * sqrt(_SPREAD[concentrated] * expected.size)
