"""The types of arrays, each under one name."""

from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Booleans: TypeAlias = npt.NDArray[np.bool_]
Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]
Codes: TypeAlias = npt.NDArray[np.integer]  # of categories, a column each, of any width
Objects: TypeAlias = npt.NDArray[np.object_]
Words: TypeAlias = npt.NDArray[np.uint64]
Numbers = TypeVar("Numbers", Integers, Floats)
