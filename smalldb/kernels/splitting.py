"""Fields of plain lines of CSV: without quotes, so split at each separator; and which fields are equal."""

import numpy as np
import numpy.typing as npt

from queries.arrays import Integers
from smalldb.kernels.compiling import kernel

Bytes = npt.NDArray[np.uint8]
Codes = npt.NDArray[np.int32]

NEWLINE, RETURN, HIGHEST = 10, 13, 39  # no quote is above


@kernel
def split(
    text: Bytes,
    sign: int,
    quote: int,
    width: int,
    slots: Integers,
    seen: Codes,
    codes: Codes,
    starts: Integers,
    ends: Integers,
    distinct: Integers,
) -> int:
    """
    Number the distinct fields of some columns, and say which of them each line has.

    Parameters
    ----------
    text
        Whole lines: the last byte is a newline. Blank lines are passed over.
    sign
        The byte between fields, neither a newline, a quote, a carriage return nor 0.
    quote
        The byte of quotes, up to `HIGHEST`; 0: there are none.
    width
        How many fields a line has.
    slots
        Shape (width,): where a column stands in what follows; -1: its fields are passed over.
    seen
        Shape (S, 2^b), -1: a hash table for each column, of at least twice as many entries as lines.
    codes
        Shape (S, R): receives the number of the field in each line.
    starts, ends
        Shape (S, R): receive where the first of each of the distinct fields stands in `text`.
    distinct
        Shape (S,), 0: receives how many distinct fields there are.

    Returns
    -------
    int
        How many lines; -1 where one has another number of fields, or holds a quote, a carriage return or a
        zero byte.
    """
    mask = seen.shape[1] - 1
    lines, column, start, line = 0, 0, 0, 0
    mixed = np.uint64(14695981039346656037)
    for at in range(len(text)):
        byte = text[at]
        if byte > HIGHEST and byte != sign:
            mixed = (mixed ^ np.uint64(byte)) * np.uint64(1099511628211)  # FNV-1a
            continue
        if byte in (0, RETURN, quote):
            return -1
        if byte != sign and byte != NEWLINE:
            mixed = (mixed ^ np.uint64(byte)) * np.uint64(1099511628211)
            continue
        if byte == NEWLINE and at == line:  # blank
            line = start = at + 1
            continue
        if column == width or (byte == NEWLINE and column != width - 1):
            return -1
        slot = slots[column]
        if slot >= 0:
            position = np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(mask))
            length = at - start
            while True:
                known = seen[slot, position]
                if known < 0:
                    known = distinct[slot]
                    seen[slot, position] = known
                    starts[slot, known] = start
                    ends[slot, known] = at
                    distinct[slot] += 1
                    break
                first = starts[slot, known]
                # one hash can stand for two texts: only equal bytes make them the same
                if ends[slot, known] - first == length:
                    same = True
                    for i in range(length):
                        if text[first + i] != text[start + i]:
                            same = False
                            break
                    if same:
                        break
                position = (position + 1) & mask
            codes[slot, lines] = known
        column += 1
        start = at + 1
        mixed = np.uint64(14695981039346656037)
        if byte == NEWLINE:
            lines += 1
            column = 0
            line = at + 1
    return lines
