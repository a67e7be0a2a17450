"""
The codes of a table's rows by a schema, as the benchmarks of wide tables read them.

    python tests/benchmarks/codes.py diamonds.csv tests/benchmarks/diamonds.toml diamonds
    python examples/make_survey.py survey.csv
    python tests/benchmarks/codes.py survey.csv examples/survey.toml survey

The last argument is NAME. NAME.csv.gz gets a column of codes, integers from 0, for each column; NAME.json
the number of categories of each. Printed: which columns have an order.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from smalldb.schema import read_schema
from smalldb.schema.table_readers import read_table


def main():
    table, schema, name = sys.argv[1:]
    rows = read_table(table, read_schema(schema))
    columns = rows.domain.columns
    codes = np.repeat(rows.codes(), rows.counts, axis=0)
    pd.DataFrame(codes, columns=[column.name for column in columns]).to_csv(f"{name}.csv.gz", index=False)
    sizes = {column.name: column.size for column in columns}
    Path(f"{name}.json").write_text(json.dumps(sizes) + "\n", encoding="utf-8")
    print("--ordered", *(column.name for column in columns if column.ordered))


if __name__ == "__main__":
    main()
