"""The list of mutants fits the source: `tests/mutants/run.py`, run by hand, applies them."""

import importlib.util
from pathlib import Path

HERE = Path(__file__).parent
_spec = importlib.util.spec_from_file_location("listing", HERE / "mutants" / "listing.py")
listing = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(listing)


def test_the_text_of_each_mutant_occurs_once():
    mutants = listing.mutants()
    for mutant in mutants:
        text = (listing.ROOT / mutant.file).read_text(encoding="utf-8")
        assert mutant.applied(text) != text
    assert len({str(mutant) for mutant in mutants}) == len(mutants) >= 100


def test_the_tests_of_each_mutant_exist():
    for mutant in listing.mutants():
        for test in mutant.tests:
            path, name = test.split("::")
            source = (listing.ROOT / path).read_text(encoding="utf-8")
            assert f"\ndef {name.partition('[')[0]}(" in source
