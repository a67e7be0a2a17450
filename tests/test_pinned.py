"""The draws of seeded releases do not change unless a commit means to change them."""

import json

import pinned
import pytest

EXPECTED = json.loads(pinned.HOME.read_text(encoding="utf-8"))
CASES = [
    # rows fitted to answers pass through BLAS, whose last bits differ between processors
    pytest.param(name, frame, arguments, id=name, marks=[pytest.mark.long] if "contrasts" in name else [])
    for name, frame, arguments in pinned.cases()
]


@pytest.mark.parametrize(("name", "frame", "arguments"), CASES)
def test_a_seeded_release_draws_what_it_drew(name, frame, arguments):
    assert pinned.drawn(frame, arguments) == EXPECTED[name]
