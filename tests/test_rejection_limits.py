"""No release runs for ever: what n_max steers is cut off there, and a law below it stays what it was."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from builders import flags
from calling import FOR_FLAGS, way
from rejecting import distance, instance
from yardstick import within

import smalldb
from queries import Conjunctions, Linear, Parities, Rows, Workload
from queries.query import Query
from smalldb.exact.bits import SeededBits
from smalldb.rejection.head_and_tail import multiset_sampler
from smalldb.rejection.sampler import tuple_sampler
from smalldb.rejection.target import Target

GUESSED = {"neighbours": "add-remove"}


@pytest.mark.slow
def test_a_table_far_beyond_n_max_is_drawn():
    """Uncut, a uniform candidate is kept with probability e^-100 there."""
    zeros = pd.DataFrame(np.zeros((1000, 6), dtype=np.int64), columns=list(flags(6).attributes))
    keywords = {"epsilon": "1/5", "rows": 30, "n_max": 100, "candidates": "multisets", **GUESSED}
    with within(30):
        made = smalldb.release(zeros, "conjunctions:2", rng=1, **keywords)
    assert (made.record["mechanism"], len(made.data)) == ("rejection", 30)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["conjunctions:2", "conjunctions:1", "marginals:2"])
@pytest.mark.parametrize("c", [3, 10])
def test_up_to_n_max_the_same_bits_draw_the_same_rows(text, c):
    rows, n = 5, 40
    workload, answers, _ = instance(4, n, text, 3)
    epsilon = Fraction(2 * rows * c, n)
    for n_max in (n, n + 1, 10**9):
        drawn = [
            tuple_sampler(workload, answers, n, rows, epsilon, n_max=most).draw(SeededBits(5))
            for most in (None, n_max)
        ]
        assert (drawn[0][0] == drawn[1][0]).all()
        made = [multiset_sampler(workload, answers, n, rows, epsilon, n_max=most) for most in (None, n_max)]
        drawn = [sampler.draw(SeededBits(5)) for sampler in made]
        assert (drawn[0][0] == drawn[1][0]).all()


@pytest.mark.slow
@pytest.mark.parametrize("text", ["conjunctions:2", "conjunctions:1"])
@pytest.mark.parametrize("n_max", [1, 4, 11, 27])
def test_beyond_n_max_the_law_is_that_of_the_score_cut_off(text, n_max):
    rows, n, epsilon = 2, 34, Fraction(1)
    workload, answers, _ = instance(3, n, text, 2)
    made = tuple_sampler(workload, answers, n, rows, epsilon, n_max=n_max)
    cut = n_max * rows
    assert abs(distance(made, workload, answers, n, rows, epsilon, 2_000, seed=1, most=cut)) < 4


def test_a_threshold_at_the_cut_holds_every_candidate():
    workload, answers, _ = instance(3, 34, "conjunctions:2", 2)
    target = Target.build(workload, answers, 34, 2, n_max=5)
    low, high = target.bounds(10)
    assert (low <= 0).all()
    assert (high >= 2).all()
    assert (target.bounds(9)[0] > low).any()
    found, plain = (multiset_sampler(workload, answers, 34, 2, Fraction(4), n_max=most) for most in (5, None))
    assert found.scores.levels.max() == 5 * 2 < plain.scores.levels.max()


def test_unasked_rejection_is_taken_under_add_remove_only_where_it_is_sure_to_end():
    keywords = {"rows": 20, "epsilon": 1, "candidates": "tuples"}

    def planned(n_max, **named):
        return smalldb.plan(flags(12), Conjunctions(2), n_max=n_max, **keywords, **GUESSED, **named).mechanism

    assert planned(24) == planned(400, mechanism="rejection") == "rejection"
    for n_max in (25, 400):
        with pytest.raises(ValueError, match="sure to be quick on any table up to epsilon n_max = 24"):
            planned(n_max)


@pytest.mark.slow
def test_who_names_what_may_take_long_is_told():
    frame = pd.DataFrame(np.zeros((50, 8), dtype=np.int64), columns=list(flags(8).attributes))
    keywords = {"mechanism": "rejection", "rows": 4, "rng": 1}
    with pytest.warns(UserWarning, match="on most up to 250; so this may take from less than a second"):
        made = smalldb.release(frame, "conjunctions:2", epsilon=50, **keywords)
    assert len(made.data) == 4
    smalldb.release(frame, "conjunctions:2", epsilon=1, **keywords)  # warnings are errors here


CONSTANTS = [
    Query("one", (0, 1), (1,) * 4),
    Query("c", (), (1,)),
    Query("p", (), None),
    Query("no", (0,), (0, 0)),
]


@pytest.mark.parametrize("constant", CONSTANTS, ids=lambda query: query.label)
@pytest.mark.parametrize(
    "mechanism", ["census", pytest.param("rejection", marks=pytest.mark.slow), *FOR_FLAGS]
)
def test_a_constant_query_in_a_workload_made_by_hand_does_no_harm(constant, mechanism):
    both, some = flags(2), (Query("a", (0,), (0, 1)), Query("ab", (0, 1), (0, 0, 0, 1)))
    frame = pd.DataFrame({"x0": [0, 1, 1, 0] * 5, "x1": [0, 0, 1, 1] * 5})
    for others in ((), some) if mechanism in ("census", "rejection") else (some,):
        keywords = {"epsilon": 1, "rows": 4, "rng": 3} | way(mechanism)
        drawn = [
            smalldb.release(frame, Workload(both, "by hand", 1, queries), **keywords).data
            for queries in (others, (constant, *others))
        ]
        pd.testing.assert_frame_equal(*drawn)


KINDS = {
    "zeros": lambda n, d, draws: np.zeros((n, d), dtype=np.int64),
    "ones": lambda n, d, draws: np.ones((n, d), dtype=np.int64),
    "coins": lambda n, d, draws: draws.integers(0, 2, (n, d)),
    "two rows": lambda n, d, draws: np.arange(n)[:, None] * np.ones(d, dtype=np.int64) % 2,
    "rare": lambda n, d, draws: (draws.random((n, d)) < 0.01).astype(np.int64),
}
EXTREME = [[0, "1/997", 1, "996/997"] * 4, ["1/997"] * 15 + [1]]  # weights on the cells of four attributes


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=pytest.mark.slow if kind == "zeros" else pytest.mark.long) for kind in KINDS],
)
def test_no_release_runs_for_ever(kind):
    """Unasked, every release of a search over hostile tables and guesses ends within seconds."""
    draws = np.random.default_rng(4)
    for d, rows, epsilon, queries in (
        (4, 40, 1, Conjunctions(2)),
        (4, 6, 10, Linear(EXTREME)),
        (5, 20, 10, Conjunctions(2)),
        (6, 11, 100, Conjunctions(2)),
        (6, 30, "1/5", Parities(2)),
        (8, 20, "1/4", Conjunctions(2)),
    ):
        for n, n_max in ((1000, 1000), (1000, 100), (960, 96), (1000, 1), (3, 100)):
            for candidates in (None, "multisets", "tuples"):
                frame = pd.DataFrame(KINDS[kind](n, d, draws), columns=list(flags(d).attributes))
                rows_of = Rows.from_frame(flags(d), frame)
                keywords = {"epsilon": epsilon, "rows": rows, "n_max": n_max, "candidates": candidates}
                try:
                    planned = smalldb.plan(flags(d), queries, **keywords, **GUESSED)
                except ValueError:
                    continue
                with within(30):
                    smalldb.release(planned, rows_of, rng=3)
