"""Value labels and missing codes of statistical files: a public code book that stands beside the data."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import final

from queries.expressions import shorten
from smalldb.schema.codebook import Described
from smalldb.schema.fields import as_field


@final
@dataclass(frozen=True, slots=True)
class Labelled:
    """What a statistical file says of a column."""

    title: str = ""  # what the column is, for people
    labels: Mapping[object, str] = field(default_factory=dict)  # by code, what it means
    # codes and texts that mean a gap; the labels of such codes are among `labels`
    gaps: Collection[object] = ()
    # whether the file says that it holds numbers, which a few labels do not make categories
    measured: bool = False


def described(columns: Mapping[str, Labelled]) -> dict[str, Described]:
    """Return what labels say that columns can hold: each label a category, with its code beside it."""
    found = {}
    for name, given in columns.items():
        fault = ""
        gaps = {as_field(gap): None for gap in given.gaps}
        codes: dict[str, str | int] = {}
        for code, text in given.labels.items():
            spelled, label = as_field(code), " ".join(text.split()) or as_field(code)
            if spelled in gaps:
                gaps[label] = None
                continue
            if label in codes:
                fault = f"the label {shorten(label)!r} stands for the codes {codes[label]} and {spelled}"
            codes[label] = int(spelled) if spelled.lstrip("-").isdecimal() else spelled
        others = {str(code): label for label, code in codes.items()}
        for label in codes:
            if others.get(label, label) != label:
                fault = f"the label {shorten(label)!r} of the code {codes[label]} is the code of another"
        if given.measured or fault:
            codes = {}
        groups = {label: (code,) for label, code in codes.items() if label not in gaps}
        missing = tuple(["", *gaps] if gaps else ())
        found[name] = Described(label=given.title, groups=groups, gaps=missing, fault=fault)
    return found
