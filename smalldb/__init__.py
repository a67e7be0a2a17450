"""Synthetic tables under pure differential privacy: the SmallDB mechanism, sampled with exact integers."""

from functools import partial
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec
from typing import TYPE_CHECKING

import smalldb.showing as _showing
from smalldb.version import __version__

_queries = find_spec("queries")
if _queries and not PathFinder.find_spec("queries.workload", _queries.submodule_search_locations or []):
    # another package of this import name exists
    raise ImportError(f"smalldb needs its own package 'queries', but {_queries.origin} shadows it")

_showing.renderers.append(partial(import_module, "smalldb.reporting.notebook"))

__all__ = [
    "Audit",
    "BitSource",
    "Census",
    "EmptyReleaseWarning",
    "Evaluation",
    "Law",
    "Ledger",
    "Neighbours",
    "Plan",
    "RelatedRelease",
    "Release",
    "Selection",
    "__version__",
    "accounting",
    "audit",
    "auditing",
    "bounds",
    "census",
    "evaluate",
    "generate",
    "inference",
    "plan",
    "release",
    "select",
    "selection_law",
]

if TYPE_CHECKING:
    from smalldb import accounting, auditing, bounds, inference
    from smalldb.auditing.laws import Audit
    from smalldb.auditing.worst_case import audit
    from smalldb.counting.level_counts import Census, Law, census
    from smalldb.exact.bits import BitSource
    from smalldb.planning import Neighbours, Plan, plan
    from smalldb.releasing.budget_ledger import Ledger
    from smalldb.releasing.evaluation import Evaluation, evaluate
    from smalldb.releasing.pipeline import EmptyReleaseWarning
    from smalldb.releasing.release import generate, release
    from smalldb.releasing.released import RelatedRelease, Release
    from smalldb.selection import Selection, select, selection_law
else:
    # numpy and pandas take a second: they are imported with what needs them, after Ctrl-C is taken care of
    _HOMES = {
        "auditing": ("Audit", "audit"),
        "counting": ("Census", "Law", "census"),
        "releasing.evaluation": ("Evaluation", "evaluate"),
        "releasing.budget_ledger": ("Ledger",),
        "planning": ("Neighbours", "Plan", "plan"),
        "exact.bits": ("BitSource",),
        "releasing.pipeline": ("EmptyReleaseWarning",),
        "releasing.release": ("generate", "release"),
        "releasing.released": ("RelatedRelease", "Release"),
        "selection": ("Selection", "select", "selection_law"),
    }

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used (PEP 562)."""
        if name in ("accounting", "auditing", "bounds", "inference"):
            return import_module(f"smalldb.{name}")
        for module, names in _HOMES.items():
            if name in names:
                globals()[name] = getattr(import_module(f"smalldb.{module}"), name)
                return globals()[name]
        raise AttributeError(f"module 'smalldb' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
