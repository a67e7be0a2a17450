"""The measures of accuracy are their definitions, by hand and by what the package has of them."""

import accuracy_pins
import numpy as np
import pytest
from measures import Burt, corrected_v, figures

from queries import Rows
from smalldb.marginals.estimate.packed_pairs import cramers_v
from smalldb.releasing.distances import distances


def test_a_burt_matrix_holds_every_table():
    domain, codes = accuracy_pins.table("columns")
    real, made = Burt.of(codes[:400], domain.sizes), Burt.of(codes[300:], domain.sizes)
    ours, theirs = (Rows.from_codes(domain, some) for some in (codes[:400], codes[300:]))
    found = figures(real, made, 400)
    for width, measure in ((1, "1-way"), (2, "2-way")):
        assert found[measure] == pytest.approx(distances(ours, theirs, width).tvd.mean())
    weighted = Burt.of(ours.codes(), domain.sizes, ours.counts)
    np.testing.assert_allclose(weighted.shares, real.shares, atol=1e-15)
    assert figures(real, weighted, 400) == pytest.approx(dict.fromkeys(found, 0.0))


def test_measures_of_a_table_of_two_columns():
    # a: 60, 39 and 1 of 100 rows; b depends on it
    real = Burt.of([[0, 0]] * 45 + [[0, 1]] * 15 + [[1, 1]] * 39 + [[2, 0]], (3, 2))
    made = Burt.of([[0, 0]] * 30 + [[0, 1]] * 30 + [[1, 1]] * 40, (3, 2))
    found = figures(real, made, 100)
    assert found["1-way"] == pytest.approx((0.01 + 0.16) / 2)
    assert found["2-way"] == pytest.approx(0.16)
    of_b = (1 / 4 + 0 + 1) / 3  # no synthetic row has the third category
    of_a = ((45 / 46 - 1 + 0) * -1 + abs(15 / 54 - 30 / 70)) / 2
    assert found["conditional"] == pytest.approx((of_b + of_a) / 2)
    rare = Burt.of([[0, 0]] * 450 + [[0, 1]] * 150 + [[1, 1]] * 391 + [[2, 0]] * 9, (3, 2))
    assert figures(rare, made, 1000)["conditional"] == pytest.approx(
        ((1 / 4 + 0) / 2 + (1 - 450 / 459 + abs(150 / 541 - 3 / 7)) / 2) / 2
    )


def test_the_association_is_corrected_for_its_bias():
    rng = np.random.default_rng(1)
    table = rng.random((4, 7))
    assert corrected_v(table, 10**12) == pytest.approx(cramers_v(table), rel=1e-6)
    assert corrected_v(np.diag([0.2, 0.3, 0.5]), 50) == pytest.approx(1, abs=1e-3)
    independent = [rng.multinomial(500, np.full(28, 1 / 28)).reshape(4, 7) / 500 for _ in range(200)]
    squares = [corrected_v(one, 500) ** 2 for one in independent]
    biased = [cramers_v(one) ** 2 for one in independent]
    assert np.median(squares) < 0.003 < 0.01 < np.median(biased)
    assert corrected_v(np.array([[0.4, 0.6], [0.0, 0.0]]), 100) == 0
