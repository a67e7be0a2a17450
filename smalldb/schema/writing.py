"""Writing decoded tables as files."""

import io

import numpy as np
import pandas as pd

# the suffix of a file's name -> its format; a name without one is that of a CSV file
SUFFIXES = {"": "csv", ".csv": "csv", ".jsonl": "jsonl", ".parquet": "parquet", ".pq": "parquet"}
FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))
NAMED = f".{', .'.join(FORMATS[:-1])} or .{FORMATS[-1]}"


def written(frame: pd.DataFrame, form: str) -> bytes:
    """Write a decoded table: the content of a file in the format "csv", "jsonl" (JSON lines) or "parquet".

    Gaps are empty fields in CSV and null in JSON lines; truth is true/false in both, dates are in ISO 8601.

    Raises
    ------
    ValueError
        Another format, or Parquet without pyarrow (the extra ``parquet``).
    """
    if form == "parquet":
        try:
            return frame.to_parquet(engine="pyarrow", index=False)
        except ImportError as error:
            raise ValueError("Parquet files need pyarrow: pip install 'smalldb-dp[parquet]'") from error
    if form not in FORMATS:
        raise ValueError(f"a table is written as {', '.join(FORMATS)}, not {form!r}")
    plain = frame.copy()
    for name, column in frame.items():
        if isinstance(column.dtype, np.dtype | pd.DatetimeTZDtype) and column.dtype.kind == "M":
            plain[name] = column.dt.strftime("%Y-%m-%d")
        elif column.dtype in ("bool", "boolean") and form == "csv":
            plain[name] = column.map({True: "true", False: "false"})
    if form == "csv":
        return plain.to_csv(index=False, lineterminator="\n").encode()
    return plain.to_json(orient="records", lines=True, force_ascii=False).encode()


def to_csv(frame: pd.DataFrame, spelling: str = "0/1") -> str:
    """Write a table as CSV text, its fields spelled "0/1" or "true/false"."""
    spelled = frame.astype(int) if spelling == "0/1" else frame.replace({0: "false", 1: "true"})
    buffer = io.StringIO()
    spelled.to_csv(buffer, index=False, lineterminator="\n")
    return buffer.getvalue()
