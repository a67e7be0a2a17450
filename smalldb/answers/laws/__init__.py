"""The laws of noise that answers may get; of plans that are expected to err alike, the first is taken."""

from smalldb.answers.laws.cells import Cells
from smalldb.answers.laws.cube import Cube
from smalldb.answers.laws.gaussian import Gaussian
from smalldb.answers.laws.safeguard import Safeguard
from smalldb.answers.laws.wishart import Wishart
from smalldb.answers.parts import Part

__all__ = ["AUDITED", "LAWS", "Cells", "Cube", "Gaussian", "Safeguard", "Wishart"]

LAWS: tuple[type[Part], ...] = (Cube, Wishart, Cells, Gaussian, Safeguard)
AUDITED = tuple(law.law for law in LAWS if law.unaudited is None)  # whose loss can be computed
