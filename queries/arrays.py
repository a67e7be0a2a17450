"""The types of arrays, each under one name; pandas, imported when first used; words that look random."""

from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas as pd
else:

    class _Late:
        """Stands for pandas, whose import takes as long as a command on CSV files of yes/no columns."""

        def __getattr__(self, name: str) -> object:
            import pandas

            return getattr(pandas, name)

    pd = _Late()

__all__ = ["Booleans", "Codes", "Floats", "Integers", "Numbers", "Objects", "Words", "pd", "splitmix64"]

Booleans: TypeAlias = npt.NDArray[np.bool_]
Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]
Codes: TypeAlias = npt.NDArray[np.integer]  # of categories, a column each, of any width
Objects: TypeAlias = npt.NDArray[np.object_]
Words: TypeAlias = npt.NDArray[np.uint64]
Numbers = TypeVar("Numbers", Integers, Floats)


STEP = 0x9E3779B97F4A7C15  # of splitmix64 (Steele, Lea and Flood 2014)


def splitmix64(count: int, seed: int = 0) -> Words:
    """Return the first words of the stream of a seed, shape (count,).

    >>> [hex(word) for word in splitmix64(2).tolist()]
    ['0xe220a8397b1dcdaf', '0x6e789e6aa1b965f4']
    """
    mixed = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(STEP)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ mixed >> np.uint64(shift)) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return mixed
