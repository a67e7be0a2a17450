"""The kinds of parts that a plan may have; of plans that are expected to err alike, the first is taken."""

from smalldb.marginals.contrasts.part_of_cells import Cells
from smalldb.marginals.contrasts.part_of_cube import Cube
from smalldb.marginals.contrasts.part_of_gaussian import Gaussian
from smalldb.marginals.contrasts.part_of_wishart import Wishart
from smalldb.marginals.contrasts.parts import Part
from smalldb.marginals.contrasts.safeguard import Safeguard

__all__ = ["AUDITED", "LAWS", "Cells", "Cube", "Gaussian", "Safeguard", "Wishart"]

LAWS: tuple[type[Part], ...] = (Cube, Wishart, Cells, Gaussian, Safeguard)
AUDITED = tuple(law.law for law in LAWS if law.unaudited is None)  # whose loss can be computed
