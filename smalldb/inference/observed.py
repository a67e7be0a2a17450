"""Published measurements as what rows are held against: counts, and the density of the noise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from queries.arrays import Integers
from smalldb.inference.column_model import Rows, ragged
from smalldb.inference.tied_columns import INSTEAD, Blocks
from smalldb.kernels.imputing import ABSOLUTE, LARGEST, SQUARED, Counted, Signed, count_rows
from smalldb.mechanisms import Marginal, Measurement, Parity
from smalldb.noise.distributions import Cube, DiscreteGaussian, Geometric, KNorm, Noise, WishartDifference

MOST_PARITIES = 1 << 12


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """
    What was released, by blocks of columns.

    Attributes
    ----------
    sizes
        The number of categories of each block.
    tables
        Of each measured table, its blocks, and for each category of a block what it adds to the cell.
    counted, signed
        The released counts, negated: what the kernel adds the rows to.
    """

    sizes: Integers
    tables: tuple[dict[int, Integers], ...]
    counted: Counted
    signed: Signed

    @classmethod
    def of(cls, measurements: Sequence[Measurement], blocks: Blocks) -> Self:
        """Lay out what was released."""
        at = {c: (b, k) for b, columns in enumerate(blocks.columns) for k, c in enumerate(columns)}
        tables, values, densities = list[dict[int, Integers]](), list[Integers](), list[Density]()
        parities, common = list[tuple[Parity, int, Density]](), list[tuple[int, int]]()
        for each in measurements:
            if isinstance(each.noise, KNorm):
                common.append((len(tables), len(tables) + len(each.of)))
            for part, own in each.tables():
                if isinstance(part, Marginal):
                    if isinstance(each.noise, Cube):  # of tables only K-norm noise is looked at together
                        raise ValueError(
                            f"several tables cannot be drawn from counts with cube noise; {INSTEAD}"
                        )
                    tables.append(_codes(part, blocks, at))
                    values.append(own.ravel())
                    densities.append(density(each.noise))
                elif isinstance(part, Parity):
                    parities.append((part, int(own[0]), density(each.noise, len(part.columns))))
        if len({each.noise for each in measurements if isinstance(each.noise, Cube)}) > 1:
            raise ValueError(
                f"several tables cannot be drawn from several sets of numbers with cube noise; {INSTEAD}"
            )
        if len(parities) > MOST_PARITIES:
            raise ValueError(f"several tables are drawn from at most {MOST_PARITIES} contrasts; {INSTEAD}")
        return cls(
            blocks.sizes,
            tuple(tables),
            _counted(tables, values, densities, common, blocks),
            _signed(parities, blocks, at),
        )

    @property
    def together(self) -> list[dict[int, Integers]]:
        """All tables and parities: their blocks, with what tells the categories of each apart."""
        ends = np.cumsum([0, *map(int, self.sizes)]).tolist()
        found = list(self.tables)
        for mask in self.signed.masks:
            seen = np.bitwise_count(self.signed.bits & mask).sum(axis=1, dtype=np.int64) % 2
            own = {b: seen[start:end] for b, (start, end) in enumerate(pairwise(ends))}
            found.append({b: odd for b, odd in own.items() if odd.any()})
        return found

    def beside(self, rows: Rows) -> Self:
        """Return what was released beside the counts of some rows, for a chain of its own."""
        counted = self.counted._replace(beyond=self.counted.beyond.copy(), away=self.counted.away.copy())
        signed = self.signed._replace(beyond=self.signed.beyond.copy())
        starts = np.cumsum([0, *map(int, self.sizes)])
        signed.beyond[signed.scales < 0] += len(rows)  # a sum of signs: the rows, less twice the odd ones
        count_rows(rows, starts, counted, signed)
        if len(counted.origins):
            counted.away[:] = np.add.reduceat(np.abs(counted.beyond), counted.origins)
        return replace(self, counted=counted, signed=signed)

    @property
    def deviations(self) -> Integers:
        """Of the rows beside which it is: their counts of all cells and parities, less what was released."""
        return np.concatenate((self.counted.beyond, self.signed.beyond))


class Density(NamedTuple):
    """
    The log density of noise: -rate times the sum, or the largest, of a kind of deviations.

    Attributes
    ----------
    kind
        What is added up, a number of `smalldb.kernels.imputing`: `ABSOLUTE` or `SQUARED` deviations; or
        `LARGEST`, where the largest of all counts.
    rate
        Above 0.
    """

    kind: int
    rate: float


def density(noise: Noise, order: int = 1) -> Density:
    """
    Return the density of a noise; of the Wishart difference at a parity of some columns.

    That one has no density in closed form. Each of its entries adds up many products, and no two of them are
    correlated: normal numbers of the same variances stand for them.
    """
    if isinstance(noise, Geometric):
        return Density(ABSOLUTE, float(noise.rate))
    if isinstance(noise, DiscreteGaussian):
        return Density(SQUARED, 1 / (2 * float(noise.scale)))
    if isinstance(noise, Cube):
        return Density(LARGEST, float(noise.rate))
    if isinstance(noise, KNorm):  # what a column is off by: half of that if rows are replaced
        return Density(LARGEST, float(noise.rate) / (2 if noise.replaced else 1))
    if isinstance(noise, WishartDifference):
        return Density(SQUARED, 1 / (2 * noise.entry_variance(order)))
    raise ValueError(f"several tables cannot be drawn from numbers with {noise.name} noise; {INSTEAD}")


def _codes(part: Marginal, blocks: Blocks, at: Mapping[int, tuple[int, int]]) -> dict[int, Integers]:
    """Return what each category of each block adds to the cell of a table."""
    found, stride = dict[int, Integers](), 1
    for column, groups, size in reversed(list(zip(part.columns, part.groups, part.shape, strict=True))):
        b, k = at[column]
        own = stride * np.array(groups, dtype=np.int64)[blocks.cells[b][:, k]]
        found[b] = found.get(b, 0) + own
        stride *= size
    return found


def _counted(
    tables: Sequence[Mapping[int, Integers]],
    values: Sequence[Integers],
    densities: Sequence[Density],
    common: Sequence[tuple[int, int]],
    blocks: Blocks,
) -> Counted:
    count = len(blocks.columns)
    where, positions = list[Integers](), list[dict[int, int]]()
    end = 0
    for table in tables:
        positions.append({})
        for b, codes in table.items():
            positions[-1][b] = end
            where.append(codes)
            end += len(codes)
    first, members = ragged([list(table) for table in tables])
    own = [[t for t, table in enumerate(tables) if b in table] for b in range(count)]
    first_table, table_of = ragged(own)
    none = np.zeros(0, dtype=np.int64)
    return Counted(
        beyond=-np.concatenate([none, *values]),
        origins=np.cumsum([0, *map(len, values)])[:-1],
        kinds=np.array([one.kind for one in densities], dtype=np.int64),
        rates=np.array([one.rate for one in densities], dtype=np.float64),
        away=np.zeros(len(densities), dtype=np.int64),
        first_common=np.array([first for first, _ in common], dtype=np.int64),
        end_common=np.array([end for _, end in common], dtype=np.int64),
        codes=np.concatenate([none, *where]),
        first_member=first,
        members=members,
        member_codes=ragged([list(position.values()) for position in positions])[1],
        first_table=first_table,
        tables=table_of,
        own_codes=ragged([[positions[t][b] for t in some] for b, some in enumerate(own)])[1],
    )


def _signed(
    parities: Sequence[tuple[Parity, int, Density]],
    blocks: Blocks,
    at: Mapping[int, tuple[int, int]],
) -> Signed:
    seen = sorted({event for part, _, _ in parities for event in zip(part.columns, part.yes, strict=True)})
    bit_of = {event: bit for bit, event in enumerate(seen)}
    words = max(1, -(-len(seen) // 64))
    masks = np.zeros((len(parities), words), dtype=np.uint64)
    for p, (part, _, _) in enumerate(parities):
        for event in zip(part.columns, part.yes, strict=True):
            masks[p, bit_of[event] // 64] |= np.uint64(1 << bit_of[event] % 64)
    bits = np.zeros((int(blocks.sizes.sum()), words), dtype=np.uint64)
    starts = np.cumsum([0, *blocks.sizes.tolist()])
    for (c, category), bit in bit_of.items():
        b, k = at[c]
        own = (blocks.cells[b][:, k] == category).astype(np.uint64) << np.uint64(bit % 64)
        bits[starts[b] : starts[b + 1], bit // 64] |= own
    first, looking = ragged(
        [
            [p for p, (part, _, _) in enumerate(parities) if set(part.columns) & set(columns)]
            for columns in blocks.columns
        ]
    )
    return Signed(
        beyond=-np.array([value for _, value, _ in parities], dtype=np.int64),
        scales=np.array([-2 if part.signed else 1 for part, _, _ in parities], dtype=np.int64),
        masks=masks,
        bits=bits,
        kinds=np.array([one.kind for _, _, one in parities], dtype=np.int64),
        rates=np.array([one.rate for _, _, one in parities], dtype=np.float64),
        first_parity=first,
        parities=looking,
    )
