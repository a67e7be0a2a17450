"""When rounds end: where tables are no more than noise, the next are measured better, and then none."""

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

from queries.arrays import Floats
from smalldb.marginals.measuring import NoisyTable

LEAST_UNINFORMATIVE = 4  # tables one after another without information, at least, when rounds end
PER_INFORMATIVE = 3  # as many of them as informative tables, at least
RAISED = Fraction(2)  # times the cost of a round, after each table without information; once one had some
MOST_RAISED = Fraction(64)
LEAST = Fraction(1, 8)  # of what columns cost, what is worth measuring them again
_DEVIATIONS = 2.0
_LEAST = 1e-9  # a variance below which noise does not count
_SPREAD = {False: 5.0, True: 2.0}  # variance of squared noise, by its squared variance: geometric, Gaussian


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """What decides whether rounds go on: how many released tables were informative, that is beyond noise."""

    informative: int = 0  # how many were
    uninformative: int = 0  # how many after the last of these were not
    # how many times what the plan says the next round costs: noise hid what the tables hold, if anything
    cost_factor: Fraction = Fraction(1)
    rounds: int = 0  # how many there were

    def after(self, informative: bool) -> "StoppingRule":
        """Return the state after one more table."""
        if informative:
            return StoppingRule(self.informative + 1, 0, self.cost_factor, self.rounds + 1)
        raised = min(MOST_RAISED, self.cost_factor * RAISED) if self.informative else self.cost_factor
        return StoppingRule(self.informative, self.uninformative + 1, raised, self.rounds + 1)

    @property
    def met(self) -> bool:
        """Whether little is to be gained of more tables."""
        return self.uninformative >= max(LEAST_UNINFORMATIVE, PER_INFORMATIVE * self.informative)


def beyond_noise(table: NoisyTable, expected: Floats, concentrated: bool) -> bool:
    """
    Whether a released table is farther from what was expected than noise alone would be.

    Of N cells, the sum of squares over the variance of the noise is N in the mean; it is looked at whether
    it is larger by more than two of its deviations.
    """
    squares = float(((table.counts - expected) ** 2).sum()) / max(table.variance, _LEAST)
    return squares - expected.size > _DEVIATIONS * sqrt(_SPREAD[concentrated] * expected.size)
