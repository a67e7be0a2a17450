"""What the parts of a plan of parities share."""

from dataclasses import dataclass
from fractions import Fraction

from queries import Domain, Workload
from queries.domain import MAX_TABLE_ATTRIBUTES
from smalldb.marginals.contrasts.coding import coding
from smalldb.marginals.contrasts.spectrum import Spectrum


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """What a plan of parities is made for; public.

    Attributes
    ----------
    workload
        The reduced queries over the universe.
    n
        Rows of the data under replace-one; under add-remove a public guess, which only steers choices.
    epsilon
        The privacy parameter.
    replaced
        Whether neighbours have a row replaced, so that n is public.
    spectrum
        The queries as sums of parities.
    delta
        What the guarantee may have; None: it must be pure.
    """

    workload: Workload
    n: int
    epsilon: Fraction
    replaced: bool
    spectrum: Spectrum
    delta: Fraction | None

    @property
    def unit(self) -> int:
        """What the sum of chi_S moves by where the count that is released moves by 1.

        Under replace-one the odd rows are counted, and n - 2 odd is the sum.
        """
        return 2 if self.replaced else 1

    @property
    def domain(self) -> Domain:
        """The yes/no attributes whose parities are measured: the columns, or what they are coded as."""
        return coding(self.workload.domain).domain

    @property
    def tabled(self) -> bool:
        """Whether there is a table of all cells."""
        return len(self.domain.attributes) <= MAX_TABLE_ATTRIBUTES
