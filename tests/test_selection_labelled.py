"""Candidates with labels, ranked lists by every method, and the law with counts."""

from collections import Counter
from fractions import Fraction
from itertools import permutations

import pandas as pd
import pytest

import smalldb
from smalldb.accounting import Loss
from smalldb.exact.bits import SeededBits
from smalldb.selection import selection_law

SHOPS = {"north": 3, "south": 1, "west": 0}


@pytest.mark.parametrize("method", ["exponential", "permute-and-flip", "noisy-max"])
@pytest.mark.parametrize("k", [1, 2])
def test_labels_stand_for_positions(method, k):
    given = {"epsilon": 2, "sensitivity": 1, "method": method, "k": k}
    for scores in (SHOPS, pd.Series(SHOPS)):
        plain, named = (smalldb.select(u, rng=5, **given) for u in (list(SHOPS.values()), scores))
        assert plain.labels is None and plain.label is None
        assert named.indices == plain.indices
        assert named.labels == tuple(list(SHOPS)[i] for i in named.indices) and named.label == named.labels[0]
        law, expected = selection_law(scores, **given), selection_law(list(SHOPS.values()), **given)
        names = list(SHOPS)
        assert law == {tuple(names[i] for i in positions): p for positions, p in expected.items()}


def test_a_base_measure_is_read_by_label():
    weights = {"west": 5, "south": 0, "north": 1}
    given = {"epsilon": 1, "sensitivity": 1}
    expected = selection_law(list(SHOPS.values()), base_measure=[1, 0, 5], **given)
    for measure in (weights, pd.Series(weights)):
        law = selection_law(SHOPS, base_measure=measure, **given)
        assert law["west",] == expected[(2,)] and ("south",) not in law
    assert selection_law(SHOPS, base_measure=[1, 0, 5], **given)["west",] == expected[(2,)]
    with pytest.raises(ValueError, match="a weight for the label of each candidate"):
        selection_law(SHOPS, base_measure={"west": 1}, **given)
    with pytest.raises(ValueError, match="different labels"):
        selection_law(pd.Series([1, 2], index=["a", "a"]), **given)


@pytest.mark.parametrize("method", ["permute-and-flip", pytest.param("noisy-max", marks=pytest.mark.slow)])
def test_a_ranked_list_is_drawn_in_rounds(method):
    """The law is the product of the laws of one draw each, over those that are left; draws have that law."""
    # one that was drawn often stands below one that is left: it must not come again
    scores, names = [1, 0, 0, 0, 0], range(5)
    law = selection_law(scores, epsilon="1/2", sensitivity=1, monotone=True, method=method, k=2)
    assert set(law) == set(permutations(names, 2))
    one = {"epsilon": "1/4", "sensitivity": 1, "monotone": True, "method": method}
    for first, second in law:
        rest = [i for i in names if i != first]
        low, high = selection_law(scores, **one)[(first,)]
        lower, higher = selection_law([scores[i] for i in rest], **one)[(rest.index(second),)]
        assert law[first, second][0] <= high * higher and low * lower <= law[first, second][1]
    source, times = SeededBits(3), 1500
    given = {"epsilon": "1/2", "sensitivity": 1, "monotone": True, "method": method, "k": 2, "rng": source}
    drawn = Counter(smalldb.select(scores, **given).indices for _ in range(times))
    expected = {positions: float(low) * times for positions, (low, _) in law.items()}
    assert set(drawn) <= set(law)
    assert sum((drawn[o] - e) ** 2 / e for o, e in expected.items()) < 50  # of 19 degrees: 1e-4
    made = smalldb.select(scores, **given)
    loss = Loss.laplace(Fraction(1, 4)) if method == "permute-and-flip" else Loss.pure(Fraction(1, 4))
    assert made.loss == loss.together(loss) and made.convention.startswith("in each of 2 rounds, ")


def test_the_law_with_counts_is_that_of_half_of_epsilon():
    law = selection_law(SHOPS, epsilon=2, sensitivity=1, counts=True)
    assert law == selection_law(SHOPS, epsilon=1, sensitivity=1)
    with pytest.raises(ValueError, match="counts need a sensitivity"):
        selection_law(SHOPS, epsilon=2, range=1, counts=True)
