"""Accounting over arrays: each element is the number."""

from fractions import Fraction

import numpy as np
import pytest

from smalldb.accounting import adaptive_delta, delta, gaussian_limit, most_releases, per_release


@pytest.mark.parametrize(
    ("function", "swept", "fixed"),
    [
        (per_release, {"epsilon": [[1], ["1/2"]], "releases": [3, 30]}, {"delta": 0}),
        (
            most_releases,
            {"total": [1, 2.5], "delta": [[0], ["1e-6"]]},
            {"epsilon": 0.1, "bounded_range": True},
        ),
        (delta, {"total": np.array([0.5, 1.0]), "releases": np.array([[5], [20]])}, {"epsilon": "0.1"}),
        (gaussian_limit, {"releases": [1, 4, 9]}, {"epsilon": Fraction(1, 10)}),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_each_element_is_the_number(function, swept, fixed):
    found = function(**swept, **fixed)
    spread = np.broadcast_arrays(*(np.array(value, dtype=object) for value in swept.values()))
    assert found.shape == spread[0].shape
    for position in np.ndindex(found.shape):
        one = {name: values[position] for name, values in zip(swept, spread, strict=True)}
        assert found[position] == function(**one, **fixed)


def test_several_numbers_make_several_arrays():
    low, high = adaptive_delta(total=[0, 1], epsilon=[[1], [2]], releases=2, steps=20)
    assert low.shape == high.shape == (2, 2) and (low <= high).all()
    assert (low[1, 0], high[1, 0]) == adaptive_delta(total=0, epsilon=2, releases=2, steps=20)


def test_lists_of_epsilons_are_still_releases():
    assert delta(total=1, epsilon=["0.1"] * 20) == delta(total=1, epsilon="0.1", releases=20)
    assert gaussian_limit(epsilon=[3, 4]) == 5


def test_what_is_wrong_is_said_as_of_numbers():
    with pytest.raises(ValueError, match="epsilon"):
        per_release(epsilon=[1, -1], releases=3, delta=0)
    with pytest.raises(ValueError, match="broadcast"):
        most_releases(epsilon=[1, 2], total=[1, 2, 3], delta=0)
