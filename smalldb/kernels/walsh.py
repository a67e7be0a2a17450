"""The Walsh-Hadamard transform, in place."""

from typing import Any

import numpy.typing as npt

from smalldb.kernels.compiling import kernel


@kernel
def walsh(values: npt.NDArray[Any]) -> None:
    """Replace values over {0,1}^d, shape (2^d,), by their 2^d signed sums."""
    # Entry s becomes the sum over x of (-1)^|s & x| values[x]; |.| counts ones. Equivalent to
    # ``values[:] = scipy.linalg.hadamard(len(values)) @ values``. Applied twice it multiplies by 2^d.
    # Cost: d 2^d additions.
    half = 1
    while half < len(values):
        for start in range(0, len(values), 2 * half):
            for i in range(start, start + half):
                left, right = values[i], values[i + half]
                values[i] = left + right
                values[i + half] = left - right
        half *= 2
