"""Release a synthetic table of the car workers, and look at what may be published about it.

python examples/quickstart.py
"""

import json
from pathlib import Path

import pandas as pd

import smalldb
from queries import Conjunctions, Domain

frame = pd.read_csv(Path(__file__).parent / "autoworkers.csv")
workload = Conjunctions(2)

# before any data is read: what will run, and what it promises
plan = smalldb.plan(Domain(frame.columns), workload, n=len(frame), epsilon=1, rows=6)
print(f"{plan.candidate_count:,} small databases of {plan.rows} rows; provable error {plan.bound:.2f}\n")

# the release: a table and a record, both public
release = smalldb.release(frame, workload, epsilon=1, rows=6)
print(release.data, "\n")
print(json.dumps(release.record, indent=2), "\n")

# for the curator's eyes only: it is computed from the data
print(f"confidential: the largest error over all queries is {release.confidential.max_error:.3f}")
