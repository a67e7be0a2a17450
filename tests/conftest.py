"""Shared fixtures."""

import json
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("shared machine", deadline=None)
settings.load_profile("shared machine")


@pytest.fixture(scope="session")
def vectors():
    """The numbers that must come out, by their id."""
    entries = json.loads((Path(__file__).parent / "vectors.json").read_text(encoding="utf-8"))
    return {entry["id"]: entry for entry in entries}


@pytest.fixture(scope="session")
def examples():
    """The folder of examples."""
    return Path(__file__).parent.parent / "examples"
