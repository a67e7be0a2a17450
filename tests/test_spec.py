"""The text forms: workload specifications and predicates."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_query_class import classes

from queries import (
    Conjunctions,
    Disjunctions,
    Domain,
    Halfspaces,
    Intervals,
    Linear,
    Marginals,
    Parities,
    Predicates,
    Thresholds,
    Union,
    expressions,
    spec,
)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("marginals:2", Marginals(2)),
        ("marginals:=2", Marginals(2, exactly=True)),
        ("conjunctions:2:negations", Conjunctions(2, negations=True)),
        ("conjunctions:=3:negations", Conjunctions(3, negations=True, exactly=True)),
        (" Disjunctions : 12 ", Disjunctions(12)),
        ("conjunctions:2 + parities:2", Union((Conjunctions(2), Parities(2)))),
        ("thresholds", Thresholds()),
        (" Intervals ", Intervals()),
        ("halfspaces + marginals:1", Union((Halfspaces(), Marginals(1)))),
        ("predicates:smoker & ~older", Predicates(["smoker & ~older"])),
        (
            "predicates:a; `b + c; d` | a + parities:1",
            Union((Predicates(["a", "`b + c; d` | a"]), Parities(1))),
        ),
    ],
)
def test_texts_mean_their_classes(text, meaning):
    assert spec.parse(text) == meaning
    assert spec.parse(meaning.text) == meaning


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unknown query class ''"),
        ("marginal:2", "did you mean 'marginals'"),
        *((f"marginals{width}", "expected a width") for width in ("", ":", ":two", ":-1")),
        ("marginals:0", "at least 1"),
        ("marginals:2:negations", "takes no option 'negations'"),
        ("conjunctions:2:negation", "takes no option"),
        ("marginals:2 +", "unknown query class ''"),
        ("predicates:", "expected an attribute name"),
        ("linear", "unknown query class 'linear'"),
        ("thresholds:2", "thresholds takes no width and no option"),
        ("interval", "did you mean 'intervals'"),
        ("marginals:2" + " " * 100_000, "at most"),
    ],
)
def test_bad_texts_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        spec.parse(text)


def test_only_text_is_a_specification():
    with pytest.raises(TypeError, match="must be text"):
        spec.parse(2)


def test_default_is_at_most_two_way():
    assert spec.default(Domain(["a"])) == Marginals(1)
    assert spec.default(Domain(["a", "b", "c"])) == Marginals(2)


@given(st.lists(classes(4).filter(lambda queries: "linear" not in queries.text), min_size=1, max_size=4))
def test_what_a_class_writes_is_read_again(parts):
    queries = sum(parts[1:], parts[0])
    assert spec.parse(queries.text) == queries


@st.composite
def predicates(draw, depth=4):
    """A predicate in the grammar and the same in Python's."""
    if depth == 0 or draw(st.booleans()):
        name = draw(st.sampled_from("abc"))
        return (draw(st.sampled_from([name, f"`{name}`", f" {name} "])), name)
    if draw(st.booleans()):
        text, python = draw(predicates(depth=depth - 1))
        return (f"~({text})", f"(1 ^ ({python}))")
    sign = draw(st.sampled_from("&|^"))
    (left, left_python), (right, right_python) = (draw(predicates(depth=depth - 1)) for _ in range(2))
    if draw(st.booleans()):
        return (f"({left}){sign}({right})", f"({left_python}){sign}({right_python})")
    return (f"{left}{sign}{right}", f"{left_python}{sign}{right_python}")


@given(predicates())
def test_predicates_mean_what_they_mean_in_python(pair):
    text, python = pair
    cells = np.array(list(product((False, True), repeat=3)))
    held = expressions.parse(text).evaluate(dict(zip("abc", cells.T, strict=True)).__getitem__)
    expected = [bool(eval(python, dict(zip("abc", map(int, cell), strict=True)))) for cell in cells]
    assert held.tolist() == expected


WRONG = {1: ["", "`a", "& a"], 2: ["a)", "()"], 3: ["a b", "(a", "a ~ b", "a + b"], 4: ["a &"], 5: ["a & 1"]}


@pytest.mark.parametrize(
    ("text", "position"), [(text, position) for position, texts in WRONG.items() for text in texts]
)
def test_errors_say_where(text, position):
    with pytest.raises(ValueError, match=rf"at character {position}( \(a name with|$)"):
        expressions.parse(text)


def test_deep_nesting_is_no_recursion():
    depth = 4_000
    assert len(expressions.parse("(" * depth + "a" + ")" * depth).steps) == 1
    assert len(expressions.parse("~" * depth + "a").steps) == depth + 1
    with pytest.raises(ValueError, match="at most"):
        expressions.parse("~" * 10_001 + "a")
    with pytest.raises(TypeError, match="must be text"):
        expressions.parse(None)


def test_linear_has_no_text_form():
    one, other = Linear([[0, 1]]), Linear([[0, "1/2"]])
    assert one.text == Linear([["0", 1.0]]).text != other.text
    with pytest.raises(ValueError, match="unknown query class"):
        spec.parse(one.text)
