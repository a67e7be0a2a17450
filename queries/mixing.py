"""Numbers that look random, for what must be scattered and not secret."""

import numpy as np

from queries.arrays import Words

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
