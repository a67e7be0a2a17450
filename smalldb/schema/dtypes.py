"""The dtypes that a released column may have: a list, so that nothing depends on what pandas can be told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from queries.late import pd

_PLAIN = (
    "bool",
    "object",
    "float32",
    "float64",
    *(f"datetime64[{unit}]" for unit in ("s", "ms", "us", "ns")),
)


def dtype_of(name: str) -> Any | None:
    """Return the dtype of a name; None: `docs/schema.md` does not list it.

    >>> dtype_of("int8"), dtype_of("period[D]"), dtype_of("no such dtype")
    (dtype('int8'), None, None)
    """
    types = pd.api.types  # before the try: that pandas cannot be loaded is told as such
    try:
        dtype: Any = types.pandas_dtype(name)
    except Exception:  # which ones pandas raises for any text is not documented
        return None
    if isinstance(dtype, np.dtype):
        fits = dtype.kind in "iu" or dtype.name in _PLAIN or name == "str"
    elif isinstance(dtype, pd.ArrowDtype):
        fits = _is_allowed_arrow(dtype.pyarrow_dtype)
    else:
        whole = types.is_integer_dtype(dtype) and not isinstance(dtype, pd.SparseDtype)
        floats, others = pd.Float32Dtype | pd.Float64Dtype, pd.StringDtype | pd.CategoricalDtype
        fits = whole or isinstance(dtype, pd.BooleanDtype | floats | others | pd.DatetimeTZDtype)
    return dtype if fits else None


def as_series(values: Sequence[object], dtype: Any) -> pd.Series[Any]:
    """Return values, None for a gap, in a dtype of `dtype_of`.

    Moments are of the clock of the dtype's zone. An hour that the zone skips is read as the next
    one; an hour that it has twice, as the first of the two.
    """
    zone = _zone(dtype)
    if zone is None:
        return pd.Series(list(values), dtype=dtype)
    clock: pd.Series[Any] = pd.Series(list(values), dtype=f"datetime64[{_unit(dtype)}]")
    first = np.ones(len(clock), dtype=bool)
    moments = clock.dt.tz_localize(zone, ambiguous=first, nonexistent="shift_forward")
    made: pd.Series[Any] = moments.astype(dtype)
    return made


def _is_allowed_arrow(arrow: Any) -> bool:
    from pyarrow import types

    number = types.is_integer(arrow) or types.is_float32(arrow) or types.is_float64(arrow)
    text = types.is_string(arrow) or types.is_large_string(arrow)
    moment = types.is_date32(arrow) or types.is_timestamp(arrow)
    return bool(types.is_boolean(arrow) or number or text or moment)


def _zone(dtype: Any) -> Any | None:
    if isinstance(dtype, pd.ArrowDtype):
        return getattr(dtype.pyarrow_dtype, "tz", None)
    return dtype.tz if isinstance(dtype, pd.DatetimeTZDtype) else None


def _unit(dtype: Any) -> str:
    return str(dtype.pyarrow_dtype.unit if isinstance(dtype, pd.ArrowDtype) else dtype.unit)
