"""
Noise distributions: each draws, tells the variance and the quantiles of any linear combination, and its loss.

A value of one is public, frozen and hashable. `parameters` are what a record holds of it, and `read` gives it
back. Variances of Wishart and cone differences are those of the ideal noise, before it is rounded to
integers; quantiles count the rounding.
"""

from collections.abc import Mapping
from typing import Any

from smalldb.exact.numbers import as_fraction
from smalldb.noise.cone import ConeDifference
from smalldb.noise.gaussian import DiscreteGaussian
from smalldb.noise.geometric import Geometric
from smalldb.noise.k_norm import KNorm
from smalldb.noise.noise_protocol import Noise
from smalldb.noise.wishart import WishartDifference

KINDS: tuple[type[Noise], ...] = (Geometric, DiscreteGaussian, KNorm, WishartDifference, ConeDifference)


def read(name: str, parameters: Mapping[str, Any]) -> Noise:
    """Return the noise of that name and those parameters."""
    if name == "cube":
        raise ValueError("cube noise was drawn before version 0.3: read the record with the version it names")
    for kind in KINDS:
        if kind.name == name:
            try:
                return kind(**{key: _field(value) for key, value in parameters.items()})
            except TypeError as error:
                raise ValueError(f"{name} noise has other parameters") from error
    raise ValueError(f"no noise is called {name!r}: use one of {[kind.name for kind in KINDS]}")


def _field(value: Any) -> Any:
    """Return a parameter from its value in a record."""
    if isinstance(value, str):
        return as_fraction(value, "a parameter of noise")
    return tuple(map(_field, value)) if isinstance(value, list) else value
