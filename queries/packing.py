"""Rows of codes packed into words, and equal rows brought together."""

from collections.abc import Sequence

import numpy as np

from queries.arrays import Codes, Integers, Words
from queries.columns import Bits


def codes_dtype(sizes: Sequence[int]) -> np.dtype[np.unsignedinteger]:
    """Return the narrowest unsigned integers that hold every code: uint8 for up to 256."""
    return np.min_scalar_type(max(sizes) - 1)


def pack(bits: Bits) -> Words:
    """Pack 0/1 rows (r, d) into words (r, ceil(d / 64)): the row as a big-endian integer.

    >>> pack(np.array([[1, 0, 1]], dtype=np.uint8)).tolist()
    [[5]]
    """
    rows, d = bits.shape
    words = -(-d // 64)
    padded = np.zeros((rows, 64 * words), dtype=np.uint8)
    padded[:, 64 * words - d :] = bits
    return np.packbits(padded, axis=1).view(">u8").astype(np.uint64)


def unpack(words: Words, d: int) -> Bits:
    """Undo `pack`."""
    bytes_ = np.ascontiguousarray(words.astype(">u8")).view(np.uint8)
    return np.unpackbits(bytes_, axis=1)[:, bytes_.shape[1] * 8 - d :]


def width(sizes: Sequence[int]) -> int:
    """Return the words of a row: each column takes the bits of its largest code."""
    return -(-sum((k - 1).bit_length() for k in sizes) // 64)


def pack_codes(codes: Codes, sizes: Sequence[int]) -> Words:
    """Pack rows of codes (r, C) into words: big-endian, the first column first, so words are in row order.

    For columns of two categories it is `pack`.

    >>> pack_codes(np.array([[2, 1]], dtype=np.uint8), [3, 2]).tolist()
    [[5]]
    """
    if max(sizes) == 2:
        return pack(codes.astype(np.uint8, copy=False))
    words = np.zeros((len(codes), width(sizes)), dtype=np.uint64)
    for c, (word, shift, bits) in enumerate(_fields(sizes)):
        values = codes[:, c].astype(np.uint64)
        words[:, word] |= values << np.uint64(shift)
        if shift + bits > 64:
            words[:, word - 1] |= values >> np.uint64(64 - shift)
    return words


def unpack_codes(words: Words, sizes: Sequence[int]) -> Codes:
    """Undo `pack_codes`."""
    if max(sizes) == 2:
        return unpack(words, len(sizes))
    codes = np.empty((len(words), len(sizes)), dtype=codes_dtype(sizes))
    for c, (word, shift, bits) in enumerate(_fields(sizes)):
        values = words[:, word] >> np.uint64(shift)
        if shift + bits > 64:
            values = values | words[:, word - 1] << np.uint64(64 - shift)
        codes[:, c] = values & np.uint64((1 << bits) - 1)
    return codes


def _fields(sizes: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return the word of each column's lowest bit, the shift in it, and the bits."""
    at, found = 0, []
    words = width(sizes)
    for k in reversed(sizes):
        bits = (k - 1).bit_length()
        found.append((words - 1 - at // 64, at % 64, bits))
        at += bits
    return found[::-1]


def merge(words: Words, counts: Integers | None = None) -> tuple[Words, Integers]:
    """Bring equal rows together, in ascending order; without counts each row occurs once."""
    if words.shape[1] == 1:
        if counts is None:
            distinct, found = np.unique(words[:, 0], return_counts=True)
            return distinct[:, None], found.astype(np.int64)
        order = np.argsort(words[:, 0], kind="stable")
    else:
        order = np.lexsort(words.T[::-1])
    ordered, taken = words[order], None if counts is None else counts[order]
    del words, counts, order  # of tens of millions of rows: what no caller holds is free from here on
    new = np.ones(len(ordered), dtype=bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    starts = np.flatnonzero(new)
    if taken is None:
        merged = np.diff(starts, append=len(ordered))
    else:
        merged = np.add.reduceat(taken, starts) if len(starts) else taken
    del new, taken
    return ordered[starts], merged.astype(np.int64, copy=False)
