"""The audit: exact worst losses as defined, never above the caps; and it catches what is wrong."""

import math
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from fractions import Fraction

import naive
import numpy as np
import pytest
from builders import flags
from hypothesis import given, settings
from hypothesis import strategies as st

from queries import Column, Conjunctions, Domain, Linear, Marginals, Parities
from smalldb.auditing import audit
from smalldb.counting import databases
from smalldb.selection import selection_law

AB = Domain(["a", "b"])
ONE = {"domain": Domain(["a"]), "queries": "conjunctions:1"}
TINY = Linear([[0, 1, Fraction(1, 10**17), Fraction(1, 2)]])


def by_decimals(workload, rows, epsilon, n):
    """The worst loss of multisets under replace-one, with 90 digits."""
    rate = epsilon / (2 * rows * workload.denominator)
    with localcontext() as context:
        context.prec, context.Emin, context.Emax = 90, MIN_EMIN, MAX_EMAX

        def law(x):
            exponents = [-rate * score for score in naive.scores(workload, rows, x).values()]
            logs = [Decimal(e.numerator) / e.denominator for e in exponents]
            top = max(logs)
            ln_z = sum((e - top).exp() for e in logs).ln() + top
            return [e - ln_z for e in logs]

        laws = {x: law(x) for x in naive.multisets(workload.domain.size, n)}
        pairs = naive.neighbouring(laws)
        return max(Fraction(p - q) for one, other in pairs for p, q in zip(one, other, strict=True))


CASES = [
    (AB, Conjunctions(2), 2, 1, 4),
    (AB, Conjunctions(1), 3, "1/3", 3),
    (AB, Parities(2), 1, 4, 4),
    (Domain(["a"]), Conjunctions(1), 4, "0.1", 6),
    (Domain(["a", "b"], valid="a | ~b"), Marginals(2), 2, 2, 4),
    (AB, Linear([[0, "1/3", "1/2", 1], ["1/4", 1, 0, "3/4"]]), 2, 3, 3),
    (Domain(["a", "b", "c"]), Conjunctions(2), 1, 2, 2),
    (Domain(["a", Column("b", 3), Column("c", 5)]), Marginals(2), 1, 2, 1),
    (Domain(["a", Column("b", 3)], "~(a & `b=2`)"), Marginals(2), 2, 1, 2),
]


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("base", ["multisets", "tuples"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{len(case[0].attributes)}-{case[1].text[:20]}")
def test_it_is_the_definition(case, base, neighbours):
    domain, queries, rows, epsilon, n = case
    made = audit(domain, queries, rows=rows, epsilon=epsilon, n=n, neighbours=neighbours, candidates=base)
    worst, widest = naive.worst(queries.workload(domain), rows, epsilon, n, neighbours, base)
    assert made.worst_loss == pytest.approx(worst, rel=1e-12)
    assert float(made.range[1]) == pytest.approx(widest, rel=1e-12)
    assert made.range[0] == made.range[1]
    assert 0 <= made.loss[1] - made.loss[0] < Fraction(1, 10**40)
    assert made.loss[0] <= made.range[1] <= made.cap
    x, other, y = made.pair
    assert (sum(x) == sum(other)) == (neighbours == "replace-one")
    assert sum(y) == rows


@pytest.mark.parametrize(
    "domain, vector, rows, epsilon",
    [
        (Domain(["a"]), "privacy_d1_point", 2, 1),
        (AB, "privacy_d2_conj", 2, 1),
        (AB, "privacy_d2_conj_m1", 1, 4),
    ],
)
def test_vectors(vectors, domain, vector, rows, epsilon):
    value = vectors[vector]["value"]
    for name, neighbours in (("replace", "replace-one"), ("addrem", "add-remove")):
        queries = f"conjunctions:{len(domain.attributes)}"
        made = audit(domain, queries, rows=rows, epsilon=epsilon, n=6, neighbours=neighbours)
        assert made.worst_loss == pytest.approx(value[name]["loss"], abs=1e-12)
        assert float(made.range[1]) / epsilon == pytest.approx(value[name]["range_over_eps"], rel=1e-12)


def test_one_query_tends_to_the_cap(vectors):
    made = audit(Domain(["a"]), "conjunctions:1", rows=3, epsilon=1, n=150, neighbours="add-remove")
    assert made.worst_loss == pytest.approx(vectors["addrem_loss_single_n1000_m3_eps1"]["value"], rel=1e-10)
    assert made.worst_loss <= float(made.cap) + 1e-15
    assert made.cap == Fraction(5, 6)


def test_the_loss_tends_to_epsilon_for_few_rows_only():
    """The figures of docs/theory.md: m must not grow with n."""

    def losses(rows):
        made = [audit(Domain(["a"]), "conjunctions:1", rows=rows(n), epsilon=1, n=n) for n in (5, 20, 80)]
        return [math.ceil(1000 * each.worst_loss - 1e-9) / 1000 for each in made]

    assert losses(lambda n: 2) == [0.621, 0.989, 1.0]
    assert losses(lambda n: n) == [0.697, 0.715, 0.715]


@settings(max_examples=30)
@given(
    st.lists(st.lists(st.integers(0, 4), min_size=4, max_size=4), min_size=1, max_size=3),
    st.integers(1, 4),
    st.fractions(Fraction(1, 20), 6, max_denominator=20),
    st.integers(1, 4),
    st.sampled_from(["multisets", "tuples"]),
)
def test_never_above_the_cap(matrix, rows, epsilon, n, base):
    queries = Linear([[Fraction(w, 4) for w in weights] for weights in matrix])
    for neighbours in ("replace-one", "add-remove"):
        made = audit(AB, queries, rows=rows, epsilon=epsilon, n=n, neighbours=neighbours, candidates=base)
        assert made.loss[0] <= made.range[1] <= made.cap <= epsilon


def test_numbers_of_databases_and_pairs():
    made = audit(AB, "conjunctions:2", rows=2, epsilon=1, n=6)
    assert (made.databases, made.pairs) == (84, 56 * 6)
    made = audit(AB, "conjunctions:2", rows=2, epsilon=1, n=6, neighbours="add-remove")
    assert (made.databases, made.pairs) == (210, 126 * 4)


@pytest.mark.parametrize("method", ["exponential", "permute-and-flip", "noisy-max"])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_selections_keep_epsilon(method, neighbours):
    made = audit(
        AB, "conjunctions:2", epsilon=1, n=3, neighbours=neighbours, mechanism="select", method=method
    )
    assert 0.4 < made.worst_loss <= 1 + 1e-15
    assert made.cap == 1
    if method == "exponential":
        assert made.range[1] <= 1 + Fraction(1, 10**50)
    else:
        assert made.range[0] > 1  # not bounded-range


def test_a_ranked_list_keeps_epsilon():
    made = audit(AB, "conjunctions:2", epsilon=1, n=3, mechanism="select", method="top-k", k=2)
    assert 0.4 < made.worst_loss <= 1
    assert len(made.pair[2]) == 2


@pytest.mark.slow
def test_the_forgotten_half_is_found():
    workload = Conjunctions(2).workload(AB)
    made = audit(AB, "conjunctions:2", n=6, epsilon=1, mechanism=lambda x: naive.law(workload, x, 2, 2))
    assert made.cap == 1 < made.worst_loss


def test_the_notebooks_noisy_max_is_found():
    def mechanism(x):
        counts = [x[2] + x[3], x[0] + x[1]]  # one goes up where the other goes down
        return selection_law(counts, epsilon=1, sensitivity=1, monotone=True, method="noisy-max")

    made = audit(AB, "conjunctions:1", n=4, epsilon=1, mechanism=mechanism)
    assert made.worst_loss > 1.3068 > made.cap == 1


def test_floats_that_underflow_are_found():
    """The weight of a candidate becomes exactly 0 for one neighbour only: an infinite loss."""

    def mechanism(x):
        mass = np.exp(-np.array([0.0, 124.2 * x[1]]))
        return dict(enumerate((mass / mass.sum()).tolist()))

    made = audit(Domain(["a"]), "conjunctions:1", n=6, mechanism=mechanism)
    assert made.worst_loss == math.inf
    assert made.pair == ((1, 5), (0, 6), 1)
    assert made.range[1] == math.inf


def test_rows_chosen_from_the_data_are_found():
    workload = Conjunctions(2).workload(AB)
    made = audit(
        AB,
        "conjunctions:2",
        n=3,
        neighbours="add-remove",
        mechanism=lambda x: naive.law(workload, x, 1 + sum(x) // 3, 1),
    )
    assert made.worst_loss == math.inf and made.cap is None
    assert {sum(made.pair[0]), sum(made.pair[1])} == {2, 3}


def test_enclosures_are_kept():
    def mechanism(x):
        p = Fraction(1 + x[0], 10)
        wide = Fraction(1, 10**6)
        return {"yes": (p - wide, p + wide), "no": (1 - p - wide, 1 - p + wide)}

    made = audit(Domain(["a"]), "conjunctions:1", n=3, mechanism=mechanism)
    assert made.loss[0] < Fraction(math.log(2)) < made.loss[1]
    assert made.loss[1] - made.loss[0] < Fraction(1, 10**4)
    assert made.pair[2] == "yes"


@pytest.mark.parametrize(
    "law, message",
    [
        ({"a": Fraction(1, 2)}, "add up to 1"),
        ({"a": 0.5, "b": 0.6}, "add up to 1"),
        ({"a": math.nan}, "finite"),
        ({"a": Fraction(3, 2), "b": Fraction(-1, 2)}, "from 0 to 1"),
        ({"a": (Fraction(1), Fraction(1, 2))}, "in order"),
        *((law, "must") for law in ([0.5, 0.5], {"a": "1"}, {"a": True})),
    ],
    ids=str,
)
def test_laws_that_are_none(law, message):
    with pytest.raises((ValueError, TypeError), match=message):
        audit(AB, "conjunctions:1", n=2, mechanism=lambda x: law)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"epsilon": None}, "epsilon must be given"),
        ({"rows": None}, "rows must be given"),
        ({"method": "noisy-max"}, "method and k are for"),
        ({"mechanism": lambda x: {0: 1}, "rows": None, "k": 2}, "method and k are for"),
        *(({"epsilon": extreme}, "epsilon must be from 1e-20 to 1e9") for extreme in ("1e400", "1e-400")),
        ({"mechanism": "select", "rows": None, "epsilon": 10**5}, "epsilon x n"),
        ({"n": 2**61}, r"scores would reach 2\^62"),
        ({"rows": 2**61}, r"scores would reach 2\^62"),
        # with D = 10^17 they would wrap round, and the loss come out too small
        ({"queries": TINY, "rows": 20, "n": 20}, r"scores would reach 2\^62"),
        ({"domain": flags(20), "n": 10**9}, "fewer attributes or rows"),
        ({"domain": flags(20), "rows": 10**9}, "fewer attributes or rows"),
        (ONE | {"n": 10**6}, "largest n"),
        (ONE | {"rows": 10**6}, "fewer attributes or rows"),
        (ONE | {"rows": 9999, "candidates": "tuples"}, "fewer"),
        ({"epsilon": 0}, "epsilon"),
        ({"rows": 0}, "rows"),
        ({"n": 0}, "n must"),
        ({"neighbours": "both"}, "neighbours"),
        ({"candidates": "sets"}, "candidates"),
        ({"mechanism": "gauss"}, "mechanism must be"),
        ({"mechanism": "contrasts"}, "the loss of contrasts is proved and not computed"),
        ({"mechanism": "select"}, "for the census"),
        ({"mechanism": "select", "rows": None, "epsilon": None}, "epsilon"),
        ({"n": 1000}, "largest n that can be audited is"),
        ({"domain": Domain(list("abcdefgh"))}, "beyond the budget"),
        ({"domain": Domain(["a"], valid="~a"), "queries": "conjunctions:1"}, "nothing to replace"),
    ],
)
def test_refusals(arguments, message):
    given = {"domain": AB, "queries": "conjunctions:2", "rows": 2, "epsilon": 1, "n": 3} | arguments
    with pytest.raises(ValueError, match=message):
        audit(given.pop("domain"), given.pop("queries"), **given)


def test_the_largest_n_that_is_named_is_done(monkeypatch):
    with pytest.raises(ValueError, match="largest n") as refused:
        audit(AB, "conjunctions:2", rows=2, epsilon=1, n=5000, neighbours="add-remove")
    largest = int(str(refused.value).rsplit(" ", 1)[1])
    named = f"largest n that can be audited is {largest}$"
    with pytest.raises(ValueError, match=named):
        audit(AB, "conjunctions:2", rows=2, epsilon=1, n=largest + 1, neighbours="add-remove")
    monkeypatch.setattr(databases, "databases", lambda *_: iter([]))
    with pytest.raises(ValueError, match=r"^(?!.*budget)"):  # it passes, and then finds no databases
        audit(AB, "conjunctions:2", rows=2, epsilon=1, n=largest, neighbours="add-remove")


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["1e-20", "1e-12", "1e-6", 40, 10**9])
def test_losses_at_every_scale(epsilon):
    """Exact at either end: far below 1 the loss is epsilon times what it is to first order."""
    made = audit(AB, "conjunctions:2", rows=2, epsilon=epsilon, n=6)
    worst = by_decimals(Conjunctions(2).workload(AB), 2, Fraction(epsilon), 6)
    assert made.loss[0] <= worst * (1 + Fraction(1, 10**25))
    assert worst <= made.loss[1] * (1 + Fraction(1, 10**25))
    assert 0 < made.loss[0] <= made.cap


def test_orders_of_many_rows():
    made = audit(Domain(["a"]), "conjunctions:1", rows=1100, n=2, epsilon=1, candidates="tuples")
    assert 0 < made.loss[1] <= 1


@pytest.mark.parametrize("method, size", [("noisy-max", 64), ("permute-and-flip", 64), ("top-k", 20)])
def test_dear_laws_are_refused_in_time(method, size):
    queries = Linear([[0, Fraction(i + 1, size)] for i in range(size)])
    k = {"k": 2} if method == "top-k" else {}
    with pytest.raises(ValueError, match="largest n that can be audited is"):
        audit(Domain(["a"]), queries, n=5000, epsilon=1, mechanism="select", method=method, **k)
