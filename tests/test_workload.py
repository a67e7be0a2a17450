"""Query classes against their definitions, reduction, and exact answers."""

from fractions import Fraction
from itertools import combinations, product
from math import comb

import numpy as np
import pandas as pd
import pytest
from builders import flags, leaving

from queries import (
    Conjunctions,
    Disjunctions,
    Domain,
    Linear,
    Marginals,
    Parities,
    Predicates,
    Rows,
    Workload,
)
from queries.workload import Query

NAMES = "abcdef"


def domain_of(d, valid=None):
    names = list(NAMES[:d])
    return Domain(names, leaving(names, valid) if isinstance(valid, set) else valid)


def functions(kind, width, d, exactly=False):
    """Every function of a class on {0,1}^d, by its definition, in the stated number."""
    cells = list(product((0, 1), repeat=d))
    found = []
    for size in range(width if exactly else 0, width + 1):
        for chosen in combinations(range(d), size):
            if kind == "conjunctions":
                found.append([int(all(c[i] for i in chosen)) for c in cells])
            elif kind == "disjunctions":
                found.append([int(any(c[i] for i in chosen)) for c in cells])
            elif kind == "parities":
                found.append([sum(c[i] for i in chosen) % 2 for c in cells])
            else:
                for pattern in product((1, 0), repeat=size):
                    found.append(
                        [int(all(c[i] == p for i, p in zip(chosen, pattern, strict=True))) for c in cells]
                    )
    return found


def reduced(found):
    """Equal up to sign and an added constant is one query; constants drop."""
    kept = []
    for f in found:
        shapes = [[v - f[0] for v in f], [f[0] - v for v in f]]
        if any(shapes[0]) and not any(shape in kept for shape in shapes):
            kept.append(shapes[0])
    return kept


CLASSES = {kind.__name__.lower(): kind for kind in (Conjunctions, Disjunctions, Parities, Marginals)}


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize(
    ("d", "width", "exactly"), [(1, 1, False), (3, 2, False), (4, 3, True), (4, 4, False)]
)
def test_classes_are_their_definitions(kind, d, width, exactly):
    expected = functions(kind, width, d, exactly)
    workload = CLASSES[kind](width, exactly=exactly).workload(domain_of(d))
    assert workload.stated == len(expected)
    assert [(row - row[0]).tolist() for row in workload.matrix()] == reduced(expected)
    assert workload.denominator == 1
    assert len(set(workload.labels)) == workload.size


def test_marginals_are_conjunctions_with_negations():
    domain = domain_of(4)
    assert Marginals(3).workload(domain).queries == Conjunctions(3, negations=True).workload(domain).queries


@pytest.mark.parametrize(("d", "width"), [(6, 2), (14, 2), (100, 2)])
def test_sizes_of_two_way_conjunctions(d, width):
    workload = Conjunctions(width).workload(flags(d))
    assert (workload.stated, workload.size) == (1 + d + comb(d, 2), d + comb(d, 2))


def test_union_keeps_each_function_once():
    domain = domain_of(4)
    union = Conjunctions(2) + Parities(2) + Predicates(["a ^ b", "~(c & d)", "a & (b | c)"])
    workload = union.workload(domain)
    assert workload.text == "conjunctions:2 + parities:2 + predicates:a ^ b; ~(c & d); a & (b | c)"
    assert workload.stated == 11 + 11 + 3
    assert workload.size == 10 + 6 + 1
    assert workload.labels[-1] == "a & (b | c)"


def test_predicates_shrink_to_the_attributes_that_matter():
    workload = (Conjunctions(1) + Predicates(["(a & b) | (a & ~b)", "a | ~a"])).workload(domain_of(3))
    assert workload.labels == ("a", "b", "c")


def test_wide_parities_need_no_table():
    domain = flags(40)
    workload = Parities(40, exactly=True).workload(domain)
    bits = np.random.default_rng(5).integers(0, 2, size=(50, 40))
    rows = Rows.from_frame(domain, pd.DataFrame(bits, columns=domain.attributes))
    assert workload.answers(rows).tolist() == [int((bits.sum(axis=1) % 2).sum())]


def test_structural_zeros_make_functions_equal():
    domain = domain_of(2, valid="~a | b")  # a implies b
    assert Conjunctions(2).workload(domain).labels == ("a", "b")
    lone = Conjunctions(1).workload(Domain(["a"], valid="a"))
    assert (lone.stated, lone.size, lone.denominator) == (2, 0, 1)


def test_linear_reads_rational_weights_exactly():
    queries = Linear([[0.1, "1/3", Fraction(1, 6), 1], [1, 1, 1, 1], [0, 0, 1, 1]], ["f", "one", "a"])
    workload = queries.workload(domain_of(2))
    assert workload.labels == ("f", "a")
    assert workload.denominator == 30
    assert workload.matrix().tolist() == [[3, 10, 5, 30], [0, 0, 30, 30]]
    assert (queries + Conjunctions(1)).workload(domain_of(2)).labels == ("f", "a", "b")


def test_answers_need_no_table_of_cells():
    domain = flags(100)
    bits = np.random.default_rng(1).integers(0, 2, size=(200, 100))
    rows = Rows.from_frame(domain, pd.DataFrame(bits, columns=domain.attributes))
    workload = Conjunctions(2).workload(domain)
    answers = dict(zip(workload.labels, workload.answers(rows).tolist(), strict=True))
    assert answers["x7"] == bits[:, 7].sum()
    assert answers["x3 & x98"] == (bits[:, 3] & bits[:, 98]).sum()
    with pytest.raises(ValueError, match="too large"):
        workload.matrix()


def test_answers_are_guarded():
    domain = domain_of(1)
    workload = Linear([[0, f"1/{2**40}"]]).workload(domain)
    rows = Rows.from_counts(domain, pd.DataFrame({"a": [1]}), [2**22])
    with pytest.raises(ValueError, match="2\\^62"):
        workload.answers(rows)
    with pytest.raises(ValueError, match="different domains"):
        workload.answers(Rows.from_frame(Domain(["z"]), pd.DataFrame({"z": [1]})))
    with pytest.raises(ValueError, match="denominator of 2\\^62"):
        Linear([[0, f"1/{2**62}"]]).workload(domain)
    with pytest.raises(ValueError, match="common denominator of 2\\^62"):
        (Linear([[0, f"1/{2**31}"]]) + Linear([[0, f"1/{3**20}"]])).workload(domain)


def test_sign_and_constant_make_no_difference():
    domain = domain_of(2)
    flipped = Query("not a", (0,), (1, 0))
    shifted = Query("half a", (0,), (1, 2), 4)
    halved = Query("a / 4", (0, 1), (0, 0, 1, 1), 4)
    plain = Query("a", (0,), (0, 1))
    kept = Workload.reduced(domain, "", [flipped, plain, shifted, halved])
    assert kept.labels == ("not a", "half a")
    assert kept.stated == 4


@pytest.mark.parametrize("valid", [None, {0, 1, 2, 3}])
@pytest.mark.parametrize("reverse", [False, True])
def test_of_equal_queries_the_least_denominator_is_kept_in_the_first_place(reverse, valid):
    parts = [Linear([[0, 0, "1/2", "1/2"]], ["half"]), Linear([["1/3", "1/3", "5/6", "5/6"]], ["sixths"])]
    first, second = reversed(parts) if reverse else parts
    workload = (first + Conjunctions(2) + second).workload(domain_of(2, valid))
    assert workload.labels == ("half", "a", "b", "a & b")
    assert workload.denominator == 2
    assert workload.matrix()[0].tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("reverse", [False, True])
def test_equal_queries_of_one_denominator_keep_the_first(reverse):
    parts = [Linear([[0, "1/2"]], ["up"]), Linear([[1, "1/2"]], ["down"])]
    first, second = reversed(parts) if reverse else parts
    assert (first + second).workload(domain_of(1)).labels == first.labels


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *(((two, (0, 0, 0, 1)), "positions, ascending") for two in ((1, 0), (0, 0))),
        *((((one,), (0, 1)), "positions, ascending") for one in (-1, True, 0.0)),
        (((1, 0), None), "positions, ascending"),
        *((((0,), (0, 1), d), "denominator must be a whole number of at least 1") for d in (0, True, 1.0)),
        (((0, 1), None, 2), "a parity has denominator 1"),
        (((0,), (0, 1, 1)), r"expected 2\^1 whole weights from 0 to 1"),
        (((0, 1), (0, 1)), r"expected 2\^2 whole weights from 0 to 1"),
        (((), ()), r"expected 2\^0 whole weights from 0 to 1"),
        (((0,), (0, 4), 3), r"expected 2\^1 whole weights from 0 to 3"),
        *(
            (((0,), weights), r"expected 2\^1 whole weights from 0 to 1")
            for weights in ((-1, 1), (0, 1.0), (False, True), (0, Fraction(1, 2)))
        ),
    ],
)
def test_bad_queries_are_refused(arguments, message):
    with pytest.raises(ValueError, match=f"^query 'f': .*{message}"):
        Query("f", *arguments)


def test_queries_at_the_ends_of_what_is_allowed():
    for arguments in [((), (0,)), ((), None), ((3, 70), (0, 3, 3, 0), 3), ((0,), (0, 2**61), 2**61)]:
        assert Query("f", *arguments).label == "f"


@pytest.mark.parametrize(
    ("build", "kind", "message"),
    [
        (lambda: Conjunctions(0), ValueError, "width must be at least 1"),
        (lambda: Marginals(True), TypeError, "width must be a whole number"),
        (lambda: Parities(2.0), TypeError, "width must be a whole number"),
        (lambda: Conjunctions(3).workload(domain_of(2)), ValueError, "more than the 2 attributes"),
        (lambda: Parities(3).workload(domain_of(2)), ValueError, "more than the 2 attributes"),
        (lambda: Marginals(9).workload(flags(60)), ValueError, "states"),
        (lambda: Conjunctions(25, exactly=True).workload(flags(26)), ValueError, "at most 20"),
        (lambda: Predicates([]), ValueError, "at least one"),
        (lambda: Predicates(["a & "]), ValueError, "expected an attribute name"),
        (lambda: Predicates(["a & bb"]).workload(Domain(["a", "b"])), ValueError, "'bb'; did you mean 'b'"),
        (lambda: Linear([]), ValueError, "at least one row"),
        (lambda: Linear([[0, 2]]), ValueError, r"lie in \[0, 1\]"),
        (lambda: Linear([[0, float("nan")]]), ValueError, "rational"),
        (lambda: Linear([[0, "x"]]), ValueError, "rational"),
        (lambda: Linear([[0, 1]], ["f", "g"]), ValueError, "expected 1 labels"),
        (lambda: Linear([[0, 1]]).workload(domain_of(2)), ValueError, "2 weights for 4 cells"),
        (lambda: Conjunctions(1) + 1, TypeError, "unsupported operand"),
    ],
)
def test_bad_classes_are_refused(build, kind, message):
    with pytest.raises(kind, match=message):
        build()
