"""Seeded releases of every mechanism, law, relation and base measure: what each draws, to the byte.

A change that means to leave the draws alone must leave `pinned.json` alone. After a change that alters them
on purpose, ``python tests/pinned.py`` writes the file anew, and the commit says why.
"""

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import smalldb

HOME = Path(__file__).with_suffix(".json")

SMALL = {"rows": 6, "epsilon": 1}
BASES: dict[str, dict[str, Any]] = {
    "census multisets": {**SMALL, "mechanism": "census"},
    "census tuples": {**SMALL, "mechanism": "census", "candidates": "tuples"},
    "rejection tuples": {**SMALL, "mechanism": "rejection"},
    "rejection multisets": {**SMALL, "mechanism": "rejection", "candidates": "multisets"},
}
CONTRASTS: dict[str, tuple[int, int, dict[str, Any]]] = {
    "columns": (3, 400, {"queries": "marginals:1", "epsilon": 1}),
    "wishart": (9, 2000, {"queries": "conjunctions:2", "epsilon": "1/2"}),
    "wishart, wide": (22, 900, {"queries": "conjunctions:2", "epsilon": 1}),
    "safeguard": (8, 30000, {"queries": "marginals:3", "epsilon": 2}),
    "gaussian": (24, 900, {"queries": "conjunctions:2", "epsilon": 1, "delta": "1e-4"}),
    "parities": (6, 700, {"queries": "parities:3", "epsilon": 1, "delta": "1e-4"}),
}


def table(attributes: int, rows: int) -> pd.DataFrame:
    """Rows of dependent attributes, made without a random generator."""
    positions = np.arange(rows, dtype=np.uint64)[:, None] * np.uint64(2654435761) >> np.uint64(7)
    bits = positions * (np.arange(attributes, dtype=np.uint64) * np.uint64(40503) + np.uint64(12289))
    ones = (bits >> np.uint64(9)) % np.uint64(5) < np.uint64(2)
    ones[:, 1:] |= ones[:, :-1] & (bits[:, 1:] % np.uint64(3) == 0)
    return pd.DataFrame(ones.astype(np.int64), columns=[f"a{i}" for i in range(attributes)])


def cases() -> Iterator[tuple[str, pd.DataFrame, dict[str, Any]]]:
    """Yield a name, a table and the arguments of its release."""
    for relation in ("replace-one", "add-remove"):
        for name, arguments in BASES.items():
            yield f"{name}, {relation}", table(4, 60), {**arguments, "neighbours": relation}
        for name, (attributes, rows, arguments) in CONTRASTS.items():
            public = {"rows": rows, "n_max": rows} if relation == "add-remove" else {}
            chosen = {**arguments, **public, "strategy": "contrasts", "neighbours": relation}
            yield f"contrasts, {name}, {relation}", table(attributes, rows), chosen
    yield "rejection tuples, wide", table(12, 200), {"epsilon": "1/2", "rows": 12, "mechanism": "rejection"}
    yield "auto", table(4, 500), {"epsilon": 1}


def drawn(frame: pd.DataFrame, arguments: dict[str, Any]) -> dict[str, str]:
    """Release with a fixed seed: a digest of the rows, and the record but for the version."""
    public = {"n_max": 60} if arguments.get("neighbours") == "add-remove" else {}
    release = smalldb.release(frame, rng=7, **{**public, **arguments})
    record = {key: value for key, value in release.record.items() if key != "versions"}
    text = json.dumps(record, sort_keys=True)
    return {
        "mechanism": str(record["mechanism"]),
        "rows": hashlib.sha256(release.data.to_csv(index=False).encode()).hexdigest(),
        "record": hashlib.sha256(text.encode()).hexdigest(),
    }


if __name__ == "__main__":
    found = {name: drawn(frame, arguments) for name, frame, arguments in cases()}
    HOME.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{len(found)} releases\n")
