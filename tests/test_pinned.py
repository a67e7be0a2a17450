"""The draws of seeded releases do not change unless a commit means to change them."""

import json

import pinned
import pytest

EXPECTED = json.loads(pinned.HOME.read_text(encoding="utf-8"))
MARKS = {
    # rows fitted to answers pass through BLAS, whose last bits differ between processors
    "contrasts": pytest.mark.long,
    "tuples, wide": pytest.mark.slow,  # from trees
}
CASES = [
    pytest.param(name, *release, id=name, marks=[mark for part, mark in MARKS.items() if part in name])
    for name, *release in pinned.cases()
]


@pytest.mark.parametrize(("name", "frame", "arguments"), CASES)
def test_a_seeded_release_draws_what_it_drew(name, frame, arguments):
    assert pinned.drawn(frame, arguments) == EXPECTED[name]
