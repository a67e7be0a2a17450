"""Columns with codings of their own, and fields of several types."""

import numpy as np
import pandas as pd
import pytest

from queries import Column, DataError, Domain


def test_a_coded_column_of_bins_knows_its_ranges():
    """Categories below and from a cut, exactly as decimals; a gap is on neither side."""
    table = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 0, 1]]
    names = ("a", "b", "gap")
    column = Column.coded("x", ["low", "mid", "high", "gap"], names, table, cuts=["0.1", "1e2"])
    assert column.category_names == ("low", "mid", "high", "x=gap")
    assert column.holds(">=", "100").tolist() == [False, False, True, False]
    assert column.holds("<", "0.10").tolist() == [True, False, False, False]
    assert column.holds(">=", "1e-1").tolist() == [False, True, True, False]
    for sign, value in ((">=", "5"), (">", "0.1"), ("<", "nan"), ("<", "gap"), (">=", "1e999999999")):
        assert column.holds(sign, value) is None
    assert column.holds("=", "gap").tolist() == [False, False, False, True]
    for cuts in ([2, 1], [1, 1], [1, 2, 3, 4]):
        with pytest.raises(ValueError, match="cuts must ascend, and be fewer than the categories"):
            Column.coded("x", ["low", "mid", "high", "gap"], names, table, cuts=cuts)


def test_equal_objects_of_several_types_are_spelled_apart():
    domain = Domain([Column("x", ["1", "True", "other"])])
    values = [True, 1, "1", "True", np.int64(1), "other"]
    for order in (values, values[::-1]):
        for value in order:
            alone = domain.encode(pd.DataFrame({"x": pd.Series([value], dtype=object)}))
            assert alone.tolist() == [[["1", "True", "other"].index(str(value))]]
        together = domain.encode(pd.DataFrame({"x": pd.Series(order, dtype=object)}))
        assert together.tolist() == [[["1", "True", "other"].index(str(value))] for value in order]
    # 1 + 0j == 1 and is no category: it does not borrow one from its neighbour
    with pytest.raises(DataError, match="none of its categories"):
        domain.encode(pd.DataFrame({"x": pd.Series([1, 1 + 0j], dtype=object)}))


@pytest.mark.parametrize(
    "dtype", ["int64", "uint64", "Int64", "UInt64", "float64", "int8", "bool", "float32"]
)
def test_numbers_are_compared_with_cuts_exactly(dtype):
    """Doubles would take 2^53 + 1 for 2^53."""
    cuts = [-(2**70), 1, 2**53 + 1, 2**63, 2**64 - 1]
    values = [0, 1, 2**53, 2**53 + 1, 2**63 - 1]
    if dtype in ("uint64", "UInt64"):
        values += [2**63, 2**64 - 2, 2**64 - 1]
    if dtype.startswith("float"):
        values = [float(value) for value in values if float(value) == value] + [2.0**54, 2.0**64]
    if dtype in ("int8", "bool"):
        values = values[:2]
    domain = Domain([Column("x", cuts=cuts)])
    codes = domain.encode(pd.DataFrame({"x": pd.Series(values, dtype=dtype)}))
    assert codes[:, 0].tolist() == [sum(value >= cut for cut in cuts) for value in values]


@pytest.mark.parametrize("kind", [object, "category"])
def test_labels_that_are_numbers_are_read_from_mixed_numbers(kind):
    domain = Domain([Column("x", ["1", "2.5", "3"])])
    frame = pd.DataFrame({"x": pd.Series([1, 2.5, 3.0, 1.0], dtype=object).astype(kind)})
    assert domain.encode(frame)[:, 0].tolist() == [0, 1, 2, 0]
