"""
The rows of AIM or MST of dpmm, for `figures.py --peers PYTHON`.

    python -m venv peers && peers/bin/pip install dpmm==0.1.9
    peers/bin/python tests/benchmarks/peers.py GIVEN.npz MADE.npy mst|aim EPSILON SEED

GIVEN.npz has the arrays `codes` and `sizes`; MADE.npy gets as many rows of codes. Noise is for add-remove.
"""

import sys

# only what the peers' environment has
import numpy as np
import pandas as pd

DELTA = 1e-9
MST = {"n_iters": 1000}
AIM = {"max_model_size": 2, "n_iters": 100, "degree": 2, "max_cells": 10_000}
ROUNDS = 3  # of AIM, times the columns; its own default is 16
LAST_FIT = 1000  # iterations of AIM's last fit


def peer(way, codes, sizes, epsilon, seed):
    """Return rows of AIM or MST."""
    from dpmm.models.aim import AIMGM
    from dpmm.models.mst import MSTGM

    names = [f"c{c}" for c in range(len(sizes))]
    common = {"epsilon": epsilon, "delta": DELTA, "compress": True, "n_jobs": 1}
    if way == "mst":
        model = MSTGM(**common, **MST)
    else:
        model = AIMGM(**common, **AIM, rounds=ROUNDS * len(names))
        rounds = model.generator._fit

        def with_a_longer_last_fit(*given, **named):
            found = rounds(*given, **named)
            model.generator.n_iters = LAST_FIT
            return found

        model.generator._fit = with_a_longer_last_fit
    model.set_domain(dict(zip(names, sizes, strict=True)))
    model.set_random_state(np.random.RandomState(seed))
    model.fit(pd.DataFrame(codes, columns=names))
    return model.generate(n_records=len(codes))[names].to_numpy().astype(np.int64)


if __name__ == "__main__":
    given, made, way, epsilon, seed = sys.argv[1:]
    arrays = np.load(given)
    np.save(made, peer(way, arrays["codes"], arrays["sizes"].tolist(), float(epsilon), int(seed)))
