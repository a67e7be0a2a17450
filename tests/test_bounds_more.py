"""The other calculators: the theory's figures, inversion, definitions in floats, and exact laws."""

import math
from fractions import Fraction
from math import comb

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import lambertw

import smalldb
from smalldb import bounds

ROWS = {  # d, |Q|, n, eps, beta -> the worked table of the theory
    (4, 10, 10**3, 1, "0.05"): (0.48506340, 40, 0.46559032, 0.44770934, 0.25961532, 0.19157577, 0.11779786),
    (8, 36, 10**4, 1, "0.05"): (0.32072845, 140, 0.31550311, 0.29995400, 0.17490335, 0.16043024, 0.10685947),
    (10, 56, 10**5, "0.5", "0.01"):
        (0.21027122, 365, 0.20628918, 0.19621803, 0.11241949, 0.10431261, 0.06653931),
    (16, 697, 10**6, "0.1", "0.01"):
        (0.22767149, 506, 0.22598672, 0.21410294, 0.14397380, 0.14356356, 0.14356356),
    (20, 211, 10**5, 1, "0.05"):
        (0.22888325, 409, 0.22779948, 0.21561814, 0.15833365, 0.15530244, 0.15530244),
    (32, 41449, 10**8, "0.1", "0.001"):
        (0.07243737, 8106, 0.07217546, 0.06828414, 0.04942013, 0.04808397, 0.04808397),
}  # fmt: skip


@pytest.mark.parametrize("case", ROWS, ids=str)
def test_the_worked_table(case, vectors):
    d, queries, n, epsilon, beta = case
    given = {"n": n, "cells": 2**d, "queries": queries, "epsilon": epsilon, "beta": beta}
    theorem, rows = bounds.theorem_4_5(**given), bounds.theorem_4_5_rows(**given)
    best = [bounds.best_rows(**given, method=method) for method in ("hoeffding", "least")]
    sharp = [
        bounds.sharp(**given, rows=m, method=method)
        for m, method in zip([rows, *best], ("hoeffding", "hoeffding", "least"), strict=True)
    ]
    printed = bounds.proposition_4_4(alpha=theorem / 2, **given), bounds.proposition_4_4(**given)
    assert (theorem, rows, *printed, *sharp) == pytest.approx(ROWS[case], abs=6e-9)
    if (name := f"bound_d{d}_J{queries}_n{n}") in vectors:
        value = vectors[name]["value"]
        assert (rows, best[1]) == (value["m_thm"], value["best_min_m"])
        digits = [value[key] for key in ("thm45_alpha", "prop44_at_half", "best_min")]
        assert (theorem, printed[0], sharp[2]) == pytest.approx(digits, rel=1e-8)
        data = bounds.theorem_4_5_data(error=0.1, **{k: v for k, v in given.items() if k != "n"})
        assert data == math.ceil(value["thm45_n_for_alpha_0_1"])


def vc_rows(dimension, alpha, method, cells=1024):
    """The rows for a deviation of alpha / 2, as the encyclopaedia writes it."""
    given = {"cells": cells} if method == "sauer" else {}
    return bounds.vc_rows(dimension=dimension, alpha=Fraction(alpha) / 2, method=method, **given)


def test_vectors(vectors):
    def value(name):
        return vectors[name]["value"]

    near = {"n": 50, "cells": 4, "queries": 4, "rows": 22, "epsilon": 1}
    total = comb(25, 22)
    # the vector counts the best small database among the bad ones: the same as these odds
    odds = Fraction(19) * Fraction(total, total - 1)
    found = bounds.sharp_neighbourhood(**near, beta=1 / (1 + odds))
    assert found == pytest.approx(value("sharp_nbhd_n50_N4_J4_eps1_b.05_m22"), rel=1e-8)
    assert bounds.sharp_neighbourhood(**near, beta=0.05) < found
    data = {"error": 0.1, "cells": 16, "queries": 11, "epsilon": 1, "beta": 0.05}
    assert bounds.sharp_data(**data) == value("inv_n_a0.1_N16_J11_eps1_b.05")
    assert bounds.sharp_data(**data, method="hoeffding") == value("inv_n_hoeff_only")
    names = {"wiki": "encyclopaedia", "safe_dev_a_half": "standard", "sauer_hoeffding_1024pts": "sauer"}
    for vector, dimension, alpha in (("vc_m_V1_a0.5", 1, "1/2"), ("vc_m_V5_a0.25", 5, "1/4")):
        for key, method in names.items():
            assert vc_rows(dimension, alpha, method) == value(vector)[key]
    wiki = bounds.vc_data(attributes=10, rows=430, error=0.5, epsilon=1, beta=0.05)
    assert wiki == math.ceil(value("wiki_n"))


def test_figures_of_the_theory():
    given = {"error": 0.1, "n": 5000, "cells": 256, "queries": 37, "beta": 0.05}
    assert bounds.sharp_epsilon(**given) == pytest.approx(2.2379666, abs=1e-7)
    many = bounds.sharp_queries(error=0.2, n=10**4, cells=256, epsilon=1, beta=0.05, method="hoeffding")
    assert math.log(many) == pytest.approx(10.474167, abs=1 / many)
    for d, queries, rows, expected in ((16, 697, 450, 0.0756), (20, 211, 306, 0.0817)):
        found = bounds.opt(cells=2**d, queries=queries, rows=rows, method="binomial")
        assert found == pytest.approx(expected, abs=5e-5)
    sizes = [vc_rows(5, "0.1", "sauer", 2**d) for d in (10, 20)]
    assert sizes == [6112, 13045]  # deviation 0.05
    assert vc_rows(5, "0.1", "encyclopaedia") == 40559
    assert vc_rows(5, "0.1", "standard") == 195108
    for v, alpha, factor in ((1, "0.5", 82.2), (1, "0.25", 50.3), (1, "0.1", 37.4), (1, "0.05", 32.8)):
        rows, a = vc_rows(v, alpha, "encyclopaedia"), float(alpha)
        assert rows * a * a / (v * math.log(1 / a)) == pytest.approx(factor, abs=0.06)


def test_the_small_example_of_the_general_theorems():
    """Monotone conjunctions on two attributes, x = (3, 1, 0, 2), m = 3, epsilon 2: true mean .3112."""
    given = {"n": 6, "epsilon": 2, "optimum": Fraction(3, 18), "total": 20}
    assert bounds.gibbs(**given, best=2) == pytest.approx(0.5504, abs=5e-5)
    near = bounds.mcsherry_talwar(**given, near=10, within="1/6")  # levels 3 and 6
    assert near == pytest.approx(1.04, abs=5e-3)
    assert bounds.mcsherry_talwar(**given, near=2) > near
    census = {3: 2, 6: 8, 9: 6, 12: 4}
    law = naive.fraction_law(census, Fraction(2, 6))
    assert float(sum(s * p for s, p in law.items()) / 18) == pytest.approx(0.3112, abs=5e-5)
    for s in (6, 9, 12):
        true = sum(p for level, p in law.items() if level >= s)
        bad = sum(count for level, count in census.items() if level >= s)
        bound = bounds.failure(good=2, bad=bad, gap=Fraction(s - 3, 18), n=6, epsilon=2)
        assert float(true) <= bound < 1


def mean_of_mcsherry_talwar(n, epsilon, optimum, total, near):
    """opt + 3 t, t the root of t L = ln((1 - opt) |R| / (t N_opt)), by Lambert's function."""
    strength = n * epsilon / 2
    return optimum + 3 * float(lambertw(strength * (1 - optimum) * total / near).real) / strength


@settings(max_examples=40)
@given(
    st.integers(1, 10**5), st.floats(0.01, 8), st.floats(0, 0.99), st.integers(1, 10**9), st.integers(1, 50)
)
def test_general_theorems_by_definition(n, epsilon, opt, count, optimal):
    optimal = min(optimal, count)
    given = {"n": n, "epsilon": epsilon, "optimum": opt, "total": count}
    expected = opt + math.log(count / optimal) / (n * epsilon / 2)
    assert bounds.gibbs(**given, best=optimal) == pytest.approx(expected, rel=1e-12, abs=1e-15)
    found, expected = (
        bounds.mcsherry_talwar(**given, near=optimal),
        mean_of_mcsherry_talwar(**given, near=optimal),
    )
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-12)


@pytest.mark.slow
@settings(max_examples=30)
@given(
    st.integers(2, 60),
    st.integers(1, 60),
    st.integers(5, 10**5),
    st.sampled_from(["1/10", "1/5", "1/2", "9/10"]),
    st.sampled_from(["1/100", "1/20", "1/2"]),
    st.sampled_from(["multisets", "tuples"]),
    st.sampled_from(["least", "hoeffding", "rounding"]),
)
def test_inverses_invert(cells, queries, n, error, beta, candidates, method):
    given = {"n": n, "cells": cells, "queries": queries, "beta": beta}
    chosen = {"candidates": candidates, "method": method}
    epsilon = bounds.sharp_epsilon(error=error, **given, **chosen)

    def best(epsilon):
        rows = bounds.best_rows(**given, epsilon=epsilon, **chosen)
        return bounds.sharp(**given, rows=rows, epsilon=epsilon, **chosen)

    if epsilon > 0:
        assert best(Fraction(epsilon)) <= float(Fraction(error))
        assert best(Fraction(epsilon * (1 - 1e-9))) > float(Fraction(error)) * (1 - 1e-12)
    data = bounds.sharp_data(error=error, cells=cells, queries=queries, epsilon=1, beta=beta, **chosen)
    if epsilon * n > 2:
        assert data == pytest.approx(epsilon * n, abs=1.001)
    if epsilon > 0:  # a float is read through its shortest text
        rows = bounds.best_rows(**given, epsilon=epsilon, **chosen)
        assert bounds.sharp(**given, rows=rows, epsilon=epsilon, **chosen) <= float(Fraction(error))
    theorem = bounds.theorem_4_5_epsilon(error=error, n=n, cells=cells, queries=queries, beta=beta)
    assert bounds.theorem_4_5(**given, epsilon=Fraction(theorem)) <= float(Fraction(error)) * (1 + 1e-15)


def test_an_epsilon_as_its_text_is_read_needs_no_more_data():
    given = {"error": "1/10", "cells": 16, "queries": 11, "beta": "0.05"}
    fixed = given | {"rows": 500, "method": "hoeffding"}
    for n in range(1, 100):
        assert bounds.sharp_data(epsilon=bounds.sharp_epsilon(n=n, **fixed), **fixed) == n
        assert bounds.theorem_4_5_data(epsilon=bounds.theorem_4_5_epsilon(n=n, **given), **given) == n


@pytest.mark.slow
@pytest.mark.parametrize("method", ["least", "hoeffding"])
def test_the_largest_number_of_queries(method):
    given = {"n": 2000, "cells": 64, "epsilon": 1, "beta": 0.05}
    for error in ("0.15", "0.2", "0.3"):
        most = bounds.sharp_queries(error=error, **given, method=method)
        for queries, serves in ((most, True), (most + 1, False)):
            if queries:
                rows = bounds.best_rows(queries=queries, **given, method=method)
                found = bounds.sharp(queries=queries, rows=rows, **given, method=method)
                assert (found <= float(error)) is (serves or most == 10**18)
    assert bounds.sharp_queries(error="0.001", **given) == 0
    assert bounds.sharp_queries(error="0.2", n=10**4, cells=256, epsilon=1, beta=0.05) == 10**18


@pytest.mark.parametrize("queries, rows", [(1, 1), (1, 7), (3, 20), (10, 70), (50, 33)])
def test_the_binomial_opt_is_that_of_its_rows(queries, rows):
    alpha = bounds.opt(cells=2**20, queries=queries, rows=rows, method="binomial")
    assert (
        alpha <= bounds.opt(cells=2**20, queries=queries, rows=rows, method="hoeffding") + 1e-12 or alpha == 1
    )
    if alpha < 1:
        worst = max(
            sum(
                comb(rows, i) * p**i * (1 - p) ** (rows - i)
                for i in range(rows + 1)
                if abs(Fraction(i, rows) - Fraction(p)) > Fraction(alpha)
            )
            for p in np.linspace(0, 1, 301)
        )
        assert queries * worst < 1


@pytest.mark.parametrize("dimension", [1, 2, 6])
@pytest.mark.parametrize("alpha", ["1/2", "0.2", "0.07"])
def test_vc_sizes_are_the_least(dimension, alpha):
    a, v = float(Fraction(alpha)), dimension
    forms = {
        "encyclopaedia": lambda m: math.log(2) + v * math.log(math.e * m / v) - a * a * m / 8,
        "standard": lambda m: math.log(4 * bounds.sauer(cells=2 * m, dimension=v)) - m * a * a / 32,
    }
    for method, excess in forms.items():
        rows = vc_rows(v, alpha, method)
        assert excess(rows) < 0 <= excess(rows - 1)
        assert all(excess(m) < 0 for m in (rows + 1, 2 * rows, 50 * rows))
    points = 300
    rows = vc_rows(v, alpha, "sauer", points)
    functions = sum(comb(points, i) for i in range(v + 1))
    assert functions == bounds.sauer(cells=points, dimension=v)
    assert (
        2 * functions * math.exp(-2 * rows * (a / 2) ** 2)
        <= 1
        < 2 * functions * math.exp(-2 * (rows - 1) * (a / 2) ** 2)
    )


def test_ties_and_huge_numbers():
    assert bounds.sharp_data(error="1/10", cells=2, queries=1, epsilon="1/1000", beta="5/6") == 1
    assert bounds.sharp_queries(error="1/10", n=5, cells=2, epsilon="1/1000", beta="5/6") >= 1
    huge = bounds.mcsherry_talwar(optimum=0, total=comb(2**32 + 999, 1000), n=10**6, epsilon=1)
    assert 0 < huge < 1
    assert bounds.laplace_answers(n=10**15, queries=10**12, epsilon=1) == pytest.approx(0.0282082, rel=1e-5)
    many = sum(Fraction(1, i) for i in range(1, 1002)) * Fraction(1001, 10**6)
    assert bounds.laplace_answers(n=10**6, queries=1001, epsilon=1) == pytest.approx(float(many), rel=1e-6)
    assert Fraction(bounds.laplace_answers(n=10**6, queries=1001, epsilon=1)) >= many


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: bounds.opt(cells=4, queries=2, rows=10**6, method="binomial"), "rows must be at most"),
        (lambda: bounds.vc_rows(dimension=1, alpha=0.1, method="sauer"), "cells"),
        (lambda: bounds.gibbs(n=5, epsilon=1, optimum=0, total=3, best=4), "best"),
        (lambda: bounds.rows_for(alpha="1e-4", queries=10, method="binomial"), "alpha must be larger"),
        (lambda: bounds.failure(good=1, bad=1, gap=1, epsilon=1), "n must be given, or a sensitivity"),
    ],
)
def test_refusals(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def every_swap(n, cells, queries, rows, epsilon, beta):
    """The neighbourhood bound by its definition: the least price over all numbers of swaps, in floats."""
    unit, odds = 2 / (epsilon * n), (1 - beta) / beta
    excess = max(0.0, math.log((math.comb(cells + rows - 1, rows) - 1) * odds))
    layer = mass = 1.0
    least = excess * unit
    for swaps in range(1, rows + 1):
        layer *= math.exp(-1 / (unit * rows)) * (cells + swaps - 2) / swaps
        mass += layer
        least = min(least, max((excess - math.log(mass)) * unit, swaps / rows))
    return bounds.opt(cells=cells, queries=queries, rows=rows) + least


@pytest.mark.slow
@pytest.mark.parametrize("cells", [2, 4, 33])
@pytest.mark.parametrize("n", [1, 20, 50, 3000])
@pytest.mark.parametrize("rows", [1, 5, 40, 300])
@pytest.mark.parametrize("beta", [0.001, 0.05, 0.5, 0.999])
def test_the_neighbourhood_is_the_least_over_all_swaps(cells, n, rows, beta):
    given = {"n": n, "cells": cells, "queries": 4, "rows": rows, "epsilon": 1, "beta": beta}
    found, slow = bounds.sharp_neighbourhood(**given), every_swap(**given)
    assert found == pytest.approx(slow, rel=1e-9)
    assert bounds.opt(cells=cells, queries=4, rows=rows) <= found <= bounds.sharp(**given)


@pytest.mark.parametrize("epsilon", ["1e-400", "1e400"])
def test_the_neighbourhood_at_the_ends_of_floats(epsilon):
    given = {"n": 5, "cells": 8, "queries": 4, "rows": 3, "epsilon": epsilon, "beta": "0.05"}
    assert bounds.sharp_neighbourhood(**given) <= bounds.sharp(**given)


@pytest.mark.parametrize("cells, dimension", [(2, 1), (16, 2), (1024, 5)])
def test_vc_forms_are_those_of_sauers_count(cells, dimension):
    given = {"n": 10**4, "cells": cells, "epsilon": "1/2", "beta": 0.05}
    size = {"queries": bounds.sauer(cells=cells, dimension=dimension)}
    for alpha in (None, "0.3"):
        found = bounds.vc_proposition_4_4(**given, dimension=dimension, alpha=alpha)
        assert found == bounds.proposition_4_4(**given, **size, alpha=alpha)
    assert bounds.vc_theorem_4_5(**given, dimension=dimension) == bounds.theorem_4_5(**given, **size)
    printed = (16 * math.log(cells) * dimension + 4 * math.log(20)) / 5000
    found = bounds.vc_theorem_4_5(**given, dimension=dimension, form="printed")
    assert found == pytest.approx(printed ** (1 / 3), rel=1e-14)


def test_the_encyclopaedias_data_by_how_tables_are_counted():
    sizes = {"error": "1/2", "attributes": 4, "rows": 30, "epsilon": 2, "beta": "1/20"}
    logs = {"printed": 120, "tuples": 120 * math.log(2), "multisets": math.log(comb(45, 30))}
    for counted, log in logs.items():
        assert bounds.vc_data(**sizes, counted=counted) == math.ceil(4 * (log + math.log(20)))


@pytest.mark.parametrize("sensitivity", ["1/3", 1, 5])
@pytest.mark.parametrize("scores", [[0, -1, -2, -7], [3, 3, 0], [-5, -5, -6, -6, -20]], ids=str)
def test_general_utilities_obey_the_general_bounds(scores, sensitivity):
    """The exact law of the exponential mechanism, against what holds for any utility."""
    law = smalldb.selection_law(scores, epsilon=2, sensitivity=sensitivity)
    top, given = max(scores), {"epsilon": 2, "sensitivity": sensitivity}
    mean = float(sum(high * -scores[i] for (i,), (_, high) in law.items()))
    for level in sorted(set(scores)):
        near = sum(u >= level for u in scores)
        found = bounds.gibbs(optimum=-level, best=near, total=len(scores), **given)
        assert mean <= found
        if level < top:
            worse = sum(u <= level for u in scores)
            true = float(sum(high for (i,), (_, high) in law.items() if scores[i] <= level))
            assert true <= bounds.failure(good=scores.count(top), bad=worse, gap=top - level, **given)
    two = [0, -4]
    law = smalldb.selection_law(two, **given)
    assert bounds.failure(good=1, bad=1, gap=4, **given) == pytest.approx(float(law[(1,)][1]), rel=1e-14)
    n = 7
    assert bounds.gibbs(optimum=0, total=3, n=n, epsilon=1) == bounds.gibbs(
        optimum=0, total=3, sensitivity=Fraction(1, n), epsilon=1
    )


# Other mechanisms

OF_RIVALS = {"n": 10**5, "cells": 1024, "queries": 1000, "epsilon": 1, "beta": "0.05"}
BOTH = [bounds.mwem, bounds.private_multiplicative_weights]


def written_out(n, cells, queries, epsilon, beta, rounds):
    """Both errors in floats, from the scales of the noise."""
    each = epsilon / (2 * rounds)

    def learned(noise):
        return math.sqrt(4 * math.log(cells) / rounds + (noise / n) ** 2)

    selected = 2 / each * math.log(queries * 2 * rounds / beta)
    mwem = learned(math.log(2 * rounds / beta) / each) + selected / n
    compared = 2 / each * math.log(3 * rounds / beta) + 4 / each * math.log(3 * (queries + rounds) / beta)
    return mwem, learned(math.log(3 * rounds / beta) / each) + 2 * compared / n


@pytest.mark.parametrize("rounds", [1, 7, 400])
@pytest.mark.parametrize("n, cells, queries", [(100, 2, 1), (10**6, 2**20, 5000)])
def test_the_formulas(rounds, n, cells, queries):
    given = {"n": n, "cells": cells, "queries": queries, "epsilon": 0.5, "beta": 0.01, "rounds": rounds}
    for method, expected in zip(BOTH, written_out(**given), strict=True):
        assert method(**given) == pytest.approx(expected, rel=1e-12)
        assert method(**given) >= expected * (1 - 1e-14)


@pytest.mark.parametrize("method", BOTH)
def test_the_best_rounds(method):
    least = min(method(rounds=rounds, **OF_RIVALS) for rounds in range(1, 300))
    assert method(**OF_RIVALS) == least
    assert method(**OF_RIVALS | {"cells": 1}) == 0 == method(**OF_RIVALS | {"queries": 0})


@pytest.mark.parametrize("beta", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("queries", [1, 2, 300])
def test_the_tail_of_noise_on_answers_is_exact(queries, beta):
    found = bounds.laplace_answers_tail(n=50, queries=queries, epsilon=2, beta=beta)
    scale = queries / 100
    assert (1 - math.exp(-found / scale)) ** queries == pytest.approx(1 - beta, rel=1e-12)
    assert bounds.laplace_answers_tail(n=50, queries=0, epsilon=2, beta=beta) == 0


def test_the_tail_of_noise_on_many_answers():
    given = {"n": 1, "queries": 10**60, "epsilon": 1, "beta": "1e-9"}
    assert bounds.laplace_answers_tail(**given) == pytest.approx(10**60 * math.log(1e69), rel=1e-12)


def test_the_tail_of_noise_on_cells_holds():
    rng = np.random.default_rng(9)
    queries = rng.integers(0, 2, (30, 16))
    support = int(queries.sum(axis=1).max())
    given = {"n": 100, "cells": 16, "queries": 30, "epsilon": 1, "support": support}
    errors = np.abs(rng.laplace(scale=2, size=(4000, 16)) @ queries.T).max(axis=1) / 100
    assert errors.mean() <= bounds.laplace_histogram(**given) <= 4 * errors.mean()
    for beta in (0.5, 0.05, 0.01):
        found = bounds.laplace_histogram_tail(beta=beta, **given)
        assert np.quantile(errors, 1 - beta) <= found <= 4 * np.quantile(errors, 1 - beta)
    sizes = {"n": 100, "cells": 16, "epsilon": 1, "beta": 0.05}
    assert bounds.laplace_histogram_tail(queries=0, **sizes) == 0
    assert bounds.laplace_histogram(n=100, cells=2, queries=0, epsilon=1) == 0
    assert bounds.laplace_answers(n=100, queries=0, epsilon=1) == 0
