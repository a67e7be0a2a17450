"""The universe: encoding, decoding, structural zeros, and every refusal."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from builders import flags
from hypothesis import given
from hypothesis import strategies as st

from queries import DataError, Domain


def test_a_predicate_leaves_the_cells_in_which_it_holds():
    by_text = Domain(["a", "b", "c"], valid="~(a & b) | c")
    expected = [i for i, (a, b, c) in enumerate(product((0, 1), repeat=3)) if not (a and b) or c]
    assert by_text.cells().tolist() == expected
    assert by_text.size == 7
    everything = Domain(["a", "b", "c"]).table()
    assert np.flatnonzero(by_text.contains(everything)).tolist() == expected


BITS = st.sampled_from(["bool", "int8", "uint64", "boolean", "Int16", "Int64"])


@given(st.lists(st.tuples(*[st.booleans()] * 3), max_size=20), st.tuples(*[BITS] * 3))
def test_decode_undoes_encode(rows, dtypes):
    frame = pd.DataFrame(rows, columns=["x", "y", "z"]).astype(dict(zip("xyz", dtypes, strict=True)))
    domain = Domain(["z", "x", "y"])
    codes = domain.encode(frame)
    assert codes.tolist() == [[z, x, y] for x, y, z in rows]
    pd.testing.assert_frame_equal(domain.decode(codes, like=frame), frame)


@pytest.mark.parametrize(
    ("frame", "kind", "message"),
    [
        (pd.DataFrame({"a": [0.0, 1.0], "b": 1}), TypeError, "'a' has dtype float64"),
        (pd.DataFrame({"a": ["0", "1"], "b": 1}), TypeError, "'a' has dtype"),
        (pd.DataFrame({"a": [0, 31337], "b": 1}), DataError, "'a' has values that are none"),
        (pd.DataFrame({"a": [0, -1], "b": 1}, dtype="Int8"), DataError, "'a' has values that are none"),
        (pd.DataFrame({"a": [True, None]}, dtype="boolean").assign(b=1), DataError, "'a' has missing values"),
        (pd.DataFrame({"a": [1, None], "b": 1}, dtype="Int64"), DataError, "'a' has missing values"),
        (pd.DataFrame({"a": [1]}), ValueError, "no column 'b'"),
        (pd.DataFrame({"a": [1], "bb": [1]}), ValueError, "no column 'b'; did you mean 'bb'"),
        (pd.DataFrame({"a": [1], "b": [1], "c": [1]}), ValueError, "column 'c' is not an attribute"),
        (pd.DataFrame([[1, 1, 1]], columns=["a", "b", "a"]), ValueError, "two columns of one name"),
    ],
)
def test_other_columns_are_refused_by_name(frame, kind, message):
    with pytest.raises(kind, match=message) as caught:
        Domain(["a", "b"]).encode(frame)
    assert ("looked at the data" in str(caught.value)) == (kind is DataError)
    assert "31337" not in str(caught.value)


SPARSE = [pd.SparseDtype("int64", 31337), pd.SparseDtype("bool", False)]


@pytest.mark.parametrize("dtype", ["category", "object", *SPARSE, "string", "float64"])
@pytest.mark.parametrize("values", [[0, 1, 1], [0, 0, 0], [0, 31337, 1], []])
def test_a_dtype_is_refused_before_a_value_is_seen(dtype, values):
    """A dtype may list the values that occur (categories), or hold anything: no word on them."""
    column = pd.Series(values, dtype="int64").astype(dtype)
    with pytest.raises(TypeError) as caught:
        Domain(["a"]).encode(pd.DataFrame({"a": column}))
    kind = column.dtype if isinstance(column.dtype, np.dtype) else type(column.dtype).__name__
    expected = "bool or 0/1 integers (others: schema=..., or domain=Domain([Column(name, categories), ...]))"
    assert str(caught.value) == f"column 'a' has dtype {kind}: expected {expected}"
    assert "31337" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (("ab",), TypeError, "list of names"),
        (([],), ValueError, "at least one attribute"),
        (([1],), TypeError, "must be text"),
        ((["a", " "],), ValueError, "not empty"),
        ((["a`"],), ValueError, "backticks"),
        ((["a", "b", "a"],), ValueError, "'a' occurs more than once"),
        ((["a"], "b"), ValueError, "unknown attribute 'b'"),
        ((["a"], "a &"), ValueError, "expected an attribute name"),
        ((["a"], "a & ~a"), ValueError, "no cell"),
        ((["a"], [2]), TypeError, "predicate text, or several"),
        ((["a"], [True]), TypeError, "predicate text, or several"),
    ],
)
def test_bad_domains_are_refused(arguments, kind, message):
    with pytest.raises(kind, match=message):
        Domain(*arguments)


def test_a_table_of_cells_ends_at_20_attributes_and_cannot_be_changed():
    assert flags(21).size == 2**21
    with pytest.raises(ValueError, match="at most 20 attributes"):
        flags(21).cells()
    with pytest.raises(ValueError, match="read-only"):
        Domain(["a"]).cells()[0] = 1


def test_many_unknown_names_are_counted_and_the_first_are_told():
    names = ["`" + "\0" * 50 + f"{i}`" for i in range(20)]
    with pytest.raises(ValueError, match=r"^valid names an unknown attribute .*; and 1[0-9] more$") as caught:
        Domain(["a"], " | ".join(names))
    assert len(str(caught.value)) < 2_000
