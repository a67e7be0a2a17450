"""Where values lie inside bins: the distribution of all bins, inverted, and tails of outer ones."""

import numpy as np
import pytest
from scipy.interpolate import PchipInterpolator

from smalldb.exact.bits import SeededBits
from smalldb.schema import Column, Cuts
from smalldb.schema.bin_shapes import BinShape

UNIFORM = (np.arange(4000) + 0.5) / 4000
WIDTHS, COUNTS = np.array([2.0, 1.0, 3.0, 10.0]), np.array([40.0, 100.0, 150.0, 20.0])


def test_inner_bins_invert_the_monotone_cubic_through_all_edges():
    edges, below = np.append(0, np.cumsum(WIDTHS)), np.append(0, np.cumsum(COUNTS))
    for code in (1, 2):
        at = BinShape(WIDTHS, COUNTS).positions(code, UNIFORM)
        there = PchipInterpolator(edges, below)(edges[code] + at * WIDTHS[code])
        assert there == pytest.approx(below[code] + UNIFORM * COUNTS[code], abs=0.02)


def test_a_tail_has_the_density_of_its_inner_edge_and_falls_by_a_constant_factor():
    at = BinShape(WIDTHS, COUNTS).positions(3, UNIFORM)
    dense, denser = COUNTS[3] / 10, COUNTS[2] / 3
    edge = (3 * dense + 10 * denser) / 13
    slopes = COUNTS[3] * np.diff(UNIFORM) / np.diff(at * WIDTHS[3])
    assert slopes[0] == pytest.approx(edge, rel=0.01)
    per_width = np.diff(np.log(slopes[::100])) / np.diff(((at[1:] + at[:-1]) / 2)[::100])
    assert per_width == pytest.approx(np.full(len(per_width), per_width[0]), rel=0.01)
    assert per_width[0] < -1


def test_a_mirrored_column_has_mirrored_values():
    for code in range(4):
        at = BinShape(WIDTHS, COUNTS).positions(code, UNIFORM)
        mirrored = BinShape(WIDTHS[::-1], COUNTS[::-1]).positions(3 - code, 1 - UNIFORM)
        assert at == pytest.approx(1 - mirrored, abs=1e-3)


@pytest.mark.parametrize(
    "counts", [[1, 0, 0], [0, 1, 0], [0, 0, 1], [3, 0, 2], [1, 10**12, 1], [10**12, 1, 10**12]]
)
def test_positions_are_inside_of_the_bin_whatever_the_counts_are(counts):
    shape = BinShape(np.array([1.0, 1e9, 2.0]), np.array(counts, dtype=float))
    for code in np.flatnonzero(counts):
        at = shape.positions(code, np.array([2.0**-54, 0.3, 0.5, 1 - 2.0**-53]))
        assert ((at >= 0) & (at <= 1)).all()
        assert (np.diff(at) >= 0).all()


def test_values_of_skewed_data_are_nearer_than_uniform_ones():
    """Of incomes with a wide last bin: the mean is off by a fifth of what middles are off, or less."""
    real = np.sort(np.random.default_rng(3).exponential(20, 20_000))
    column = Column("income", Cuts([5, 10, 20, 40, 80], 0, 1000, decimals=1))
    codes = np.searchsorted([5, 10, 20, 40, 80], real, side="right")
    made = np.sort(column.decode(codes, SeededBits(1)).to_numpy(dtype=float))
    middles = np.sort(column.decode(codes).to_numpy(dtype=float))
    assert abs(made.mean() - real.mean()) < abs(middles.mean() - real.mean()) / 5
    assert np.abs(made - real).mean() < 0.6
    assert np.quantile(made, 0.99) == pytest.approx(np.quantile(real, 0.99), rel=0.1)


def test_gaps_tell_nothing_of_the_shape():
    kind = Cuts([10, 20], 0, 40)
    with_gaps = BinShape.of(kind, np.array([0, 1, 1, 2, 3, 3, 3]))
    assert with_gaps.counts.tolist() == [1, 2, 1]
    assert with_gaps.widths.tolist() == [10, 10, 21]
