"""Local search on the rows of a small table: attributes are flipped where that helps."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from queries.arrays import Floats, Integers
from smalldb.kernels.compiling import inlined, kernel


class Tables(NamedTuple):
    """Queries as tables: the code of a row is the XOR of the masks of the attributes that it has.

    Attributes
    ----------
    groups
        Shape (J,): queries of one group have the same codes; groups follow each other.
    starts
        Shape (groups + 1,): the attributes of group g are entries ``starts[g]:starts[g + 1]``.
    attributes, masks
        For each entry, an attribute and what it contributes to the code.
    origins
        Shape (J,): code c of query j has the value ``values[origins[j] + c]``.
    values
        Integer values, in units of the query's own denominator.
    scales
        Shape (J,): 1 / (denominator times rows).
    targets
        Shape (J,): the answers that are wanted.
    """

    groups: Integers
    starts: Integers
    attributes: Integers
    masks: Integers
    origins: Integers
    values: Integers
    scales: Floats
    targets: Floats


@inlined
def code_of(bits: npt.NDArray[np.uint8], row: int, group: np.int64, tables: Tables) -> np.int64:
    """Return the code of a row under the queries of a group.

    Parameters
    ----------
    bits
        The rows, 0/1, shape (m, d).
    row, group
        Their numbers.
    tables
        The queries.
    """
    code = np.int64(0)
    for entry in range(tables.starts[group], tables.starts[group + 1]):
        if bits[row, tables.attributes[entry]]:
            code ^= tables.masks[entry]
    return code


@kernel
def add_up(bits: npt.NDArray[np.uint8], tables: Tables) -> Integers:
    """Return the sum of each query's values over the rows, shape (J,)."""
    totals = np.zeros(len(tables.origins), np.int64)
    for row in range(len(bits)):
        last, code = np.int64(-1), np.int64(0)
        for j in range(len(totals)):
            if tables.groups[j] != last:
                last = tables.groups[j]
                code = code_of(bits, row, last, tables)
            totals[j] += tables.values[tables.origins[j] + code]
    return totals


@kernel
def flip(
    bits: npt.NDArray[np.uint8],
    flips: Integers,
    allowed: npt.NDArray[np.bool_],
    queries: Integers,
    toggles: Integers,
    tables: Tables,
    totals: Integers,
    unit: float,
    squarings: int,
) -> int:
    """Flip some attributes in each row in turn where that lowers the objective; return how often.

    The objective is the sum over the queries of (error / unit)^(2^(squarings + 1)). Cost: rows times queries
    times their width.

    Parameters
    ----------
    bits
        The rows, 0/1, shape (m, d); written.
    flips
        The attributes that are flipped together.
    allowed
        Shape (m,): whether each row may be flipped.
    queries, toggles
        The queries that see these attributes, and how their codes change then, by XOR.
    tables
        All queries, with what they are to be.
    totals
        Shape (J,): the sum of each query's values over the rows; written.
    unit
        The error of an answer that counts 1.
    squarings
        How often squared errors are squared again, at least 0.
    """
    changes = np.empty(len(queries), np.int64)
    inverse, flipped = 1 / unit, 0
    for row in range(len(bits)):
        if not allowed[row]:
            continue
        gain, last, code = 0.0, np.int64(-1), np.int64(0)
        for t in range(len(queries)):
            j = queries[t]
            if tables.groups[j] != last:
                last = tables.groups[j]
                code = code_of(bits, row, last, tables)
            origin = tables.origins[j]
            change = tables.values[origin + (code ^ toggles[t])] - tables.values[origin + code]
            changes[t] = change
            if change != 0:
                before = (totals[j] * tables.scales[j] - tables.targets[j]) * inverse
                after = before + change * tables.scales[j] * inverse
                before *= before
                after *= after
                # one squaring: an error of 2 units counts as much as 16 of 1 unit; the largest go first
                for _ in range(squarings):
                    before *= before
                    after *= after
                gain += before - after
        if gain > 1e-12:  # above rounding: two flips that undo each other would never end
            flipped += 1
            for t in range(len(queries)):
                totals[queries[t]] += changes[t]
            for i in flips:
                bits[row, i] ^= 1
    return flipped
