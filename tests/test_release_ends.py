"""A release ends within ten times what its plan foretells, whatever the table holds and n_max says."""

from itertools import product
from time import process_time

import numpy as np
import pytest
from calling import way

import smalldb
from queries import Column, Conjunctions, Domain, Linear, Marginals, Parities, Rows

FORETOLD = 1  # CPU seconds, where a plan says "seconds" and no more
TABLES = {
    "zeros": lambda n, sizes, draws: np.zeros((n, len(sizes)), dtype=np.int64),
    "last categories": lambda n, sizes, draws: np.tile(np.array(sizes) - 1, (n, 1)),
    "uniform": lambda n, sizes, draws: draws.integers(0, sizes, (n, len(sizes))),
    "two rows": lambda n, sizes, draws: np.arange(n)[:, None] % 2 * (np.array(sizes) - 1),
    "rare": lambda n, sizes, draws: (draws.random((n, len(sizes))) < 0.01).astype(np.int64),
    "a heavy row and all others": lambda n, sizes, draws: np.where(
        np.arange(n)[:, None] < n // 2, 0, draws.integers(0, sizes, (n, len(sizes)))
    ),
}
EXTREME = [[0, "1/997", 1, "996/997"] * 4, ["1/997"] * 15 + [1]]  # weights on the cells of four attributes
FLAGS = Domain(4)
MIXED = Domain([Column("a", 5), Column("b", ["x", "y", "z"]), "c", Column("d", 40)])
CASES = [
    *((FLAGS, queries, "census", 3) for queries in (Conjunctions(2), Linear(EXTREME), Marginals(2))),
    (Domain(3), Parities(3), "census", 6),
    *((FLAGS, queries, "rejection", 6) for queries in (Conjunctions(2), Linear(EXTREME), Conjunctions(1))),
    *((Domain(d), Marginals(2), "contrasts", rows) for d in (3, 8) for rows in (None, 20)),
    (FLAGS, Linear(EXTREME), "contrasts", None),
    *((Domain(d), Marginals(2), "adaptive", None) for d in (8, 24)),
    *((MIXED, Marginals(w), "adaptive", rows) for w, rows in ((2, None), (3, 20))),
]
SIZES = (
    (1000, None), (1000, 1000), (1000, 100), (2000, 1), (3, 1000), (0, 50),
)  # fmt: skip  # n, and n_max if n is private


@pytest.mark.long
@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize(
    ("domain", "queries", "mechanism", "rows"), CASES, ids=lambda part: getattr(part, "text", part) or "own"
)
def test_a_release_ends_within_ten_times_what_is_foretold(domain, queries, mechanism, rows, kind):
    draws, tried = np.random.default_rng(4), 0
    for n, n_max in SIZES:
        data = Rows.from_codes(domain, TABLES[kind](n, domain.sizes, draws))
        public = {"n": n} if n_max is None else {"n_max": n_max, "neighbours": "add-remove"}
        for epsilon, named in product(("1/1000", 1, 10), ("auto", mechanism)):
            try:
                made = smalldb.plan(domain, queries, epsilon=epsilon, rows=rows, **way(named), **public)
            except ValueError:
                continue
            if made.mechanism == named == "rejection":
                continue  # whoever names it waits
            foretold = (made.chosen.cost or {}).get("seconds", 0)
            started = process_time()
            smalldb.release(made, data, rng=3)
            took = process_time() - started
            assert took < 10 * max(FORETOLD, foretold), (made, n, took, foretold)
            tried += 1
    assert tried
