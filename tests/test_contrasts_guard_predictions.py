"""What a safeguard predicts is a function of the released integers, whatever else the machine does."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from parities import exact, planned

from queries import Domain, Marginals, Rows
from smalldb.exact.bits import SeededBits
from smalldb.marginals.contrasts.parity_fit import fit


def released(seed, d=8, n=3000):
    """A plan with a safeguard, and what is released of a table that a seed makes; predictions see a part."""
    domain = Domain([f"a{i}" for i in range(d)])
    workload = Marginals(3, exactly=True).workload(domain)
    plan = planned(workload, n=n, epsilon=1, neighbours="replace-one")
    assert plan.guarded
    rows = Rows.from_codes(domain, np.random.default_rng(seed).integers(0, 2, (n, d)).astype(np.uint8))
    (noise, many), *_ = plan.noises
    return plan, exact(plan, rows) + noise.draw(many, SeededBits(seed))


def floats(plan, values):
    """The fitted means before they are rounded, and the rounded predictions."""
    estimate = plan.estimate(values)
    means = fit(plan, estimate.means(*estimate.parities)).chi
    return means.tobytes().hex(), estimate.predicted(plan.triples).tolist()


def test_predictions_depend_on_released_integers_alone():
    """The same floats to the last bit, wherever the integers lie in memory and whatever was allocated."""
    plan, values = released(1)
    expected, held = floats(plan, values), []
    for offset in range(1, 8):
        raw = np.zeros(8 * len(values) + 64, dtype=np.uint8)
        moved = raw[offset : offset + 8 * len(values)].view(np.int64)
        moved[:] = values
        held.append(np.random.default_rng(offset).random(10 ** (offset % 5)))
        assert floats(plan, moved) == expected
        strided = np.zeros(3 * len(values), dtype=np.int64)[::3]
        strided[:] = values
        assert floats(plan, strided) == expected
    other = values.copy()
    other[0] += 1
    assert floats(plan, other)[0] != expected[0]


@pytest.mark.slow
def test_predictions_do_not_depend_on_threads_or_the_allocator():
    here = Path(__file__).parent
    code = "import json, test_contrasts_guard_predictions as t; print(json.dumps(t.floats(*t.released(2))))"
    other = {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2", "NUMBA_NUM_THREADS": "2"}
    other |= {"PYTHONMALLOC": "malloc", "MALLOC_PERTURB_": "171", "MALLOC_TOP_PAD_": "1000003"}
    path = os.pathsep.join([str(here), str(here.parent)])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path, **other},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == [*floats(*released(2))]
