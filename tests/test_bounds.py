import math
import random
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smalldb import bounds
from smalldb.bounds.optimum import tails
from smalldb.exact import enclosures

PROMISES = (bounds.sharp, bounds.proposition_4_4_rows)
SIZES = {"n": 1000, "cells": 16, "queries": 10, "epsilon": 1, "beta": "0.05"}


# The definitions once more, with plain decimals of 200 digits


def ln(x):
    x = Fraction(x)
    return (Decimal(x.numerator) / x.denominator).ln()


def number(x):
    x = Fraction(x)
    return Decimal(x.numerator) / x.denominator


def count(cells, rows, candidates):
    return cells**rows if candidates == "tuples" else math.comb(cells + rows - 1, rows)


def naive_rounding(cells, queries, rows):
    support = min(cells, queries + 1)
    raised = min(rows, support // 2)
    return Fraction(raised * (support - raised), support * rows)


def naive_opt(cells, queries, rows):
    return min((ln(2 * queries) / (2 * rows)).sqrt(), number(naive_rounding(cells, queries, rows)))


def naive_sharp(n, cells, queries, rows, epsilon, beta, candidates="multisets"):
    beta = Fraction(beta)
    excess = ln((count(cells, rows, candidates) - 1) * (1 - beta) / beta)
    return naive_opt(cells, queries, rows) + 2 * max(Decimal(0), excess) / number(Fraction(epsilon) * n)


def naive_expected(n, cells, queries, rows, epsilon, candidates="multisets"):
    whole = ln(count(cells, rows, candidates))
    return naive_opt(cells, queries, rows) + 2 * whole / number(Fraction(epsilon) * n)


def naive_proposition_rows(n, cells, queries, rows, epsilon, beta, candidates="multisets"):
    excess = ln(count(cells, rows, candidates) / Fraction(beta))
    return (ln(max(2, queries)) / rows).sqrt() + 2 * excess / number(Fraction(epsilon) * n)


def naive_proposition(alpha, n, cells, queries, epsilon, beta):
    excess = ln(cells) * ln(queries) / number(alpha) ** 2 + ln(1 / Fraction(beta))
    return number(alpha) + 2 * excess / number(Fraction(epsilon) * n)


def naive_theorem_cubed(n, cells, queries, epsilon, beta):
    return (16 * ln(cells) * ln(queries) + 4 * ln(1 / Fraction(beta))) / number(Fraction(epsilon) * n)


def naive_binomial_rows(alpha, queries):
    """The least m of the binomial method, with fractions alone."""
    rows = 1
    while True:
        worst = 0
        for k in range(math.floor(rows * (1 - alpha)) + 1):
            p, above = Fraction(k, rows) + alpha, k + math.floor(2 * rows * alpha)
            worst = max(
                worst,
                sum(
                    math.comb(rows, i) * p**i * (1 - p) ** (rows - i)
                    for i in range(rows + 1)
                    if i <= k or i > above
                ),
            )
        if queries * worst < 1:
            return rows
        rows += 1


def is_least_float_above(found, truth):
    """Whether `found` is the least float that is not below the decimal `truth`."""
    return Decimal(math.nextafter(found, -math.inf)) < truth <= Decimal(found)


@pytest.fixture(autouse=True)
def many_digits():
    with localcontext(prec=200):
        yield


# Oracles


@pytest.mark.parametrize("queries", [2, 10])
def test_rows_of_each_method(queries, vectors):
    expected = vectors[f"m_J{queries}_a1/10"]["value"]
    assert bounds.rows_for(alpha=0.1, queries=queries) == expected["lecture"]
    assert bounds.rows_for(alpha="1/10", queries=queries, method="hoeffding") == expected["hoeffding"]
    assert bounds.rows_for(alpha=0.1, queries=queries, method="binomial") == expected["exact_binomial"]


def test_the_logarithm_of_the_number_of_small_databases(vectors):
    # epsilon n = 2: the bound on the mean is OPT + ln |R|
    sizes = {"cells": 16, "queries": 10, "rows": 40}
    found = bounds.expected(n=2, epsilon=1, **sizes)
    assert is_least_float_above(found, naive_expected(n=2, epsilon=1, **sizes))
    assert found - bounds.opt(**sizes) == pytest.approx(float(vectors["lnR_16_40"]["value"]), rel=1e-12)


# Rounding: the result is the least float that is not below the truth

COUNTS = st.sampled_from([1, 2, 3, 4, 7, 16, 100, 101, 102, 103, 250, 1024])
QUERIES = st.sampled_from([1, 2, 3, 10, 1000, 10**9, 2**100])
BASES = st.sampled_from(["multisets", "tuples"])
EPSILONS = st.fractions(Fraction(1, 100), 20, max_denominator=1000)
CHANCES = st.fractions(Fraction(1, 10**6), Fraction(999, 1000), max_denominator=10**6)
N = st.integers(1, 10**9)


@pytest.mark.slow
@settings(max_examples=100)
@given(
    n=N,
    cells=COUNTS.filter(lambda c: c > 1) | st.just(2**100),
    queries=QUERIES,
    rows=COUNTS,
    base=BASES,
    epsilon=EPSILONS,
    beta=CHANCES,
)
def test_bounds_at_given_rows_are_rounded_up(n, cells, queries, rows, base, epsilon, beta):
    sizes = {"n": n, "cells": cells, "queries": queries, "rows": rows, "epsilon": epsilon}
    with localcontext(prec=80):
        chances = {**sizes, "beta": beta, "candidates": base}
        assert is_least_float_above(bounds.sharp(**chances), naive_sharp(**chances))
        assert is_least_float_above(bounds.proposition_4_4_rows(**chances), naive_proposition_rows(**chances))
        assert bounds.sharp(**chances) <= bounds.proposition_4_4_rows(**chances)
        mean = bounds.expected(**sizes, candidates=base)
        assert is_least_float_above(mean, naive_expected(**sizes, candidates=base))
        assert is_least_float_above(
            bounds.opt(cells=cells, queries=queries, rows=rows), naive_opt(cells, queries, rows)
        )


@pytest.mark.slow
@settings(max_examples=100)
@given(n=N, cells=COUNTS, queries=QUERIES, epsilon=EPSILONS, beta=CHANCES, alpha=CHANCES)
def test_printed_forms_are_rounded_up(n, cells, queries, epsilon, beta, alpha):
    sizes = {"n": n, "cells": cells, "queries": queries, "epsilon": epsilon, "beta": beta}
    with localcontext(prec=200):
        cubed = naive_theorem_cubed(**sizes)
        found = bounds.theorem_4_5(**sizes)
        assert Decimal(math.nextafter(found, 0)) ** 3 < cubed <= Decimal(found) ** 3
        # m = ceil(4 ln J / cubed^(2/3)), at least 1
        rows = bounds.theorem_4_5_rows(**sizes)
        assert (4 * ln(queries)) ** 3 <= rows**3 * cubed**2
        assert rows == 1 or (4 * ln(queries)) ** 3 > (rows - 1) ** 3 * cubed**2
        assert is_least_float_above(
            bounds.proposition_4_4(alpha=alpha, **sizes), naive_proposition(alpha=alpha, **sizes)
        )


def test_stirling_agrees_with_the_exact_count():
    # beyond 100 rows and cells the count is enclosed by Stirling's series, or by powers of the cells
    beyond_floats = [(2**400, 102), (2**10000, 101)]
    for cells, rows in [(102, 101), (5000, 4000), (2**40, 200), (2**64, 1500), (10**60, 101), *beyond_floats]:
        sizes = {"n": 2, "cells": cells, "queries": 5, "rows": rows, "epsilon": 1}
        assert is_least_float_above(bounds.expected(**sizes), naive_expected(**sizes))


# Integers: decided exactly


@settings(max_examples=100)
@given(queries=QUERIES, alpha=CHANCES)
def test_rows_are_the_exact_ceiling(queries, alpha):
    with localcontext(prec=200):
        rows = bounds.rows_for(alpha=alpha, queries=queries)
        assert rows - 1 < ln(max(2, queries)) / number(alpha) ** 2 < rows
        rows = bounds.rows_for(alpha=alpha, queries=queries, method="hoeffding")
        assert rows - 1 < ln(2 * queries) / (2 * number(alpha) ** 2) < rows


HOEFFDING = partial(bounds.rows_for, queries=10), 10, 1
VC = partial(bounds.vc_rows, dimension=1, method="standard"), 4 * (1 + 2 * 231), 8


@pytest.mark.parametrize("digits", [20, 49, 80, 150])
@pytest.mark.parametrize("rows, count, factor", [HOEFFDING, VC], ids=["Hoeffding", "VC"])
def test_a_near_tie_is_decided(digits, rows, count, factor):
    with localcontext(prec=digits):
        below = (factor * Decimal(count).ln() / 231).sqrt()
        step = below.scaleb(-digits + 3)
        above, below = below + step, below - step
    assert rows(alpha=above) == 231
    assert rows(alpha=below) == 232


@pytest.mark.parametrize("queries", [1, 2, 3, 7])
@pytest.mark.parametrize("alpha", ["1/8", "1/7", "0.3", "1/2", "0.83", "0.97"])
def test_binomial_rows_equal_the_definition(queries, alpha):
    expected = naive_binomial_rows(Fraction(alpha), queries)
    found = bounds.rows_for(alpha=alpha, queries=queries, method="binomial")
    assert found == min(expected, bounds.rows_for(alpha=alpha, queries=queries, method="hoeffding"))
    assert found == expected


@pytest.mark.parametrize("rows, alpha", [(20, "0.3"), (400, "1/10"), (1200, "0.04")])
def test_the_floats_of_the_binomial_method_are_far_better_than_its_margin(rows, alpha):
    alpha = Fraction(alpha)
    for k in range(0, math.floor(rows * (1 - alpha)) + 1, max(1, rows // 10)):
        p, above = number(Fraction(k, rows) + alpha), k + math.floor(2 * rows * alpha)
        terms = (
            math.comb(rows, i) * p**i * (1 - p) ** (rows - i)
            for i in (*range(k + 1), *range(above + 1, rows + 1))
        )
        (found,) = tails(np.array([rows]), np.array([k]), alpha)
        assert found == pytest.approx(float(sum(terms)), rel=1e-11, abs=0)


@pytest.mark.slow
@settings(max_examples=60)
@given(cells=st.integers(1, 300), queries=QUERIES, epsilon=EPSILONS, beta=CHANCES, error=CHANCES)
def test_data_of_the_theorem_invert_it(cells, queries, epsilon, beta, error):
    sizes = {"cells": cells, "queries": queries, "epsilon": epsilon, "beta": beta}
    n = bounds.theorem_4_5_data(error=error, **sizes)
    with localcontext(prec=200):
        assert naive_theorem_cubed(n=n, **sizes) <= number(error) ** 3
        assert n == 1 or naive_theorem_cubed(n=n - 1, **sizes) > number(error) ** 3


# The best rows, and the least data


@pytest.mark.slow
@settings(max_examples=100)
@given(
    n=st.integers(1, 10**5),
    cells=st.integers(2, 60),
    queries=st.integers(1, 80),
    epsilon=EPSILONS,
    beta=CHANCES,
    base=BASES,
    max_rows=st.integers(1, 50),
)
def test_best_rows_are_the_best_of_all(n, cells, queries, epsilon, beta, base, max_rows):
    sizes = {"n": n, "cells": cells, "queries": queries, "epsilon": epsilon, "beta": beta, "candidates": base}
    with localcontext(prec=60):
        best = min(range(1, max_rows + 1), key=lambda rows: naive_sharp(rows=rows, **sizes))
    assert bounds.best_rows(max_rows=max_rows, **sizes) == best


def test_best_rows_with_beta_near_one():
    """Up to some rows nothing is paid for their number, so the bound has another valley."""
    sizes = {"n": 5, "cells": 10, "queries": 7, "epsilon": "1337/600", "candidates": "tuples"}
    beta = Fraction(805607, 807457)
    heights = {rows: bounds.sharp(rows=rows, beta=beta, **sizes) for rows in range(1, 30)}
    assert bounds.best_rows(beta=beta, **sizes) == min(heights, key=heights.__getitem__) == 2
    large = bounds.best_rows(n=5, cells=2, queries=1, epsilon=1, beta=1 - Fraction(1, 10**9))
    assert large == 10**9 - 1


@pytest.mark.slow
@settings(max_examples=25)
@given(
    error=st.fractions(Fraction(1, 20), Fraction(9, 10), max_denominator=100),
    cells=st.integers(2, 40),
    queries=st.integers(1, 40),
    epsilon=EPSILONS,
    beta=CHANCES,
    base=BASES,
)
def test_the_least_data_invert_the_sharp_bound(error, cells, queries, epsilon, beta, base):
    sizes = {"cells": cells, "queries": queries, "epsilon": epsilon, "beta": beta, "candidates": base}
    n = bounds.sharp_data(error=error, **sizes)
    with localcontext(prec=60):

        def least(n):
            return naive_sharp(n=n, rows=bounds.best_rows(n=n, **sizes), **sizes)

        assert least(n) <= number(error) * (1 + Decimal("1e-50"))
        assert n == 1 or least(n - 1) > number(error)


# The promises, against exact laws of small instances


def small_instances(how_many, seed):
    """Random tables and queries with values in {0, .., D} / D, and both kinds of candidates."""
    rng = random.Random(seed)
    for _ in range(how_many):
        cells, queries, rows = rng.randint(2, 4), rng.randint(1, 4), rng.randint(1, 4)
        unit = rng.choice((1, 1, 2))
        matrix = [[rng.randint(0, unit) for _ in range(cells)] for _ in range(queries)]
        # tables on few cells, and many rows, are where the bounds are near the truth
        data = [rng.choice((0, 0, 1, 5, 40, 200)) for _ in range(cells)]
        data[0] += 1
        yield matrix, data, rows, unit, Fraction(rng.randint(1, 8), rng.choice((1, 4, 20)))


def law_of(matrix, data, rows, unit, epsilon, candidates):
    """Errors -> candidates, and their probabilities, exactly by enumeration (exp to 1e-50)."""
    n, cells = sum(data), len(data)
    answers = [sum(w * c for w, c in zip(weights, data, strict=True)) for weights in matrix]
    census = naive.ordered_census if candidates == "tuples" else naive.census
    counts = dict(sorted(census(matrix, answers, n, cells, rows).items()))
    law = naive.fraction_law(counts, epsilon / (2 * rows * unit))
    errors = [Fraction(level, n * rows * unit) for level in counts]
    return dict(zip(errors, counts.values(), strict=True)), dict(zip(errors, law.values(), strict=True))


def failure_of(law, bound):
    return sum(probability for error, probability in law.items() if error > Fraction(bound))


@pytest.mark.slow
@pytest.mark.parametrize("candidates", ["multisets", "tuples"])
def test_no_small_instance_breaks_a_promise(candidates):
    telling = 0
    for matrix, data, rows, unit, epsilon in small_instances(150, seed=7):
        counts, law = law_of(matrix, data, rows, unit, epsilon, candidates)
        sizes = {"cells": len(data), "queries": len(matrix), "rows": rows}
        public = {"n": sum(data), "epsilon": epsilon}
        release = public | {"candidates": candidates}
        (best, good), *others = counts.items()
        assert best <= Fraction(bounds.opt(**sizes))
        mean = sum(error * probability for error, probability in law.items())
        assert mean <= Fraction(bounds.expected(**sizes, **release))
        for beta in (Fraction(1, 1000), Fraction(1, 20), Fraction(1, 2), Fraction(9, 10)):
            promises = [bound(**sizes, **release, beta=beta) for bound in PROMISES]
            if candidates == "multisets":
                promises.append(bounds.sharp_neighbourhood(**sizes, **public, beta=beta))
            for promised in map(Fraction, promises):
                assert failure_of(law, promised) <= beta
                telling += promised < max(law)
        # and what follows from its census
        known, total = public | {"optimum": best}, sum(counts.values())
        assert mean <= Fraction(bounds.gibbs(**known, total=total, best=good))
        assert mean <= Fraction(bounds.mcsherry_talwar(**known, total=total, near=good))
        for worse, _ in others[:1]:
            failed = bounds.failure(good=good, bad=total - good, gap=worse - best, **public)
            assert 1 - law[best] <= Fraction(failed)
    assert telling > 200


def point_query(n, cells, rows, epsilon, candidates):
    """Error -> probability for one point query and a table that lies on the point."""
    weights = {
        Fraction(off, rows): (
            math.comb(rows, off) * (cells - 1) ** off
            if candidates == "tuples"
            else math.comb(cells - 2 + off, off)
        )
        * naive.exp_minus(Fraction(epsilon) * n * off / (2 * rows))
        for off in range(rows + 1)
    }
    return {error: weight / sum(weights.values()) for error, weight in weights.items()}


def test_proposition_4_4_is_false_for_one_query():
    sizes = {"n": 16, "cells": 1024, "queries": 1, "epsilon": 1, "beta": 0.05}
    printed = bounds.proposition_4_4(alpha=0.5, **sizes)
    assert printed == pytest.approx(0.8745, abs=1e-4)
    # m = max(1, ceil(ln 1 / alpha^2)) = 1
    law = point_query(16, 1024, 1, 1, "multisets")
    assert float(failure_of(law, printed)) == pytest.approx(0.2555, abs=1e-4)
    assert bounds.theorem_4_5_rows(**sizes) == 1
    assert bounds.theorem_4_5(**sizes) < 1
    assert all(bound(rows=1, **sizes) >= 1 for bound in PROMISES)


def test_the_count_of_multisets_is_false_for_tuples():
    sizes = {"n": 40, "cells": 16, "queries": 1, "rows": 8, "epsilon": 1, "beta": 0.05}
    wrong, right = bounds.sharp(**sizes), bounds.sharp(**sizes, candidates="tuples")
    law = point_query(40, 16, 8, 1, "tuples")
    assert wrong < 1
    assert float(failure_of(law, wrong)) == pytest.approx(0.0645, abs=1e-4)
    assert failure_of(law, right) <= Fraction(1, 20)
    assert failure_of(point_query(40, 16, 8, 1, "multisets"), wrong) <= Fraction(1, 20)


# Edges


def test_no_queries_have_no_error():
    none = SIZES | {"queries": 0}
    data = {key: value for key, value in none.items() if key != "n"}
    mean = {key: value for key, value in none.items() if key != "beta"}
    errors = [
        bounds.theorem_4_5(**none),
        bounds.proposition_4_4(alpha=0.1, **none),
        bounds.proposition_4_4_rows(rows=3, **none),
        bounds.opt(cells=16, queries=0, rows=3),
        bounds.sharp(rows=3, **none),
        bounds.expected(rows=3, **mean),
    ]
    assert errors == [0.0] * 6
    rows = [bounds.best_rows(**none), bounds.theorem_4_5_rows(**none)]
    least = [bounds.sharp_data(error=0.1, **data), bounds.theorem_4_5_data(error=0.1, **data)]
    methods = [bounds.rows_for(alpha=0.1, queries=0, method=method) for method in ("hoeffding", "binomial")]
    assert rows + least + methods == [1] * 6
    assert bounds.rows_for(alpha=0.1, queries=0) == bounds.rows_for(alpha=0.1, queries=2) == 70


def test_one_cell_has_no_error():
    one = SIZES | {"cells": 1}
    data = {key: value for key, value in one.items() if key != "n"}
    assert bounds.sharp(rows=3, **one) == bounds.opt(cells=1, queries=10, rows=3) == 0.0
    assert bounds.expected(n=5, cells=1, queries=10, rows=3, epsilon=1) == 0.0
    assert bounds.best_rows(**one) == bounds.sharp_data(error=0.1, **data) == 1


def test_high_failure_probabilities_do_not_go_below_opt():
    sizes = {"cells": 2, "queries": 1, "rows": 2}
    assert bounds.sharp(n=5, epsilon=1, beta="2/3", **sizes) == bounds.opt(**sizes) == 0.25
    assert bounds.sharp_data(error="1/4", cells=2, queries=1, epsilon="1/1000", beta="2/3") == 1


def test_astronomic_sizes_are_answered():
    sizes = {"n": 10**40, "cells": 2, "queries": 1, "epsilon": 1, "beta": 0.05}
    rows = bounds.best_rows(**sizes)
    # OPT = 1 / (2 m) and ln |R| rises by 1 / m: they balance near m = epsilon n / 4
    assert rows == pytest.approx(10**40 / 4, rel=1e-3)


def test_the_surrounding_decimal_context_does_not_matter():
    sizes = {"n": 1000, "cells": 500, "queries": 10, "rows": 300, "epsilon": 1, "beta": 0.05}
    expected = bounds.sharp(**sizes)
    for clear in (enclosures._ln, enclosures._ln_factorial, enclosures._stirling):
        clear.cache_clear()
    with localcontext(prec=3, Emin=-5, Emax=5):
        assert bounds.sharp(**sizes) == expected
