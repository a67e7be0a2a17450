"""Candidates that have names: scores as a dict or as a pandas Series, and labels in place of numbers."""

from collections.abc import Callable, Mapping
from typing import Any

Namer = Callable[[int], Any]


def labelled(scores: object) -> tuple[object, Namer | None]:
    """Return the scores alone, and what tells the label of each candidate by its number."""
    # labels are public, and so is their order: that of the dict, or of the index of the Series
    if isinstance(scores, Mapping):
        names = list(scores)
        return list(scores.values()), names.__getitem__
    index = getattr(scores, "index", None)
    if hasattr(scores, "to_numpy") and index is not None and not callable(index):
        return scores, lambda i: index[i]
    return scores, None


def by_label(weights: object, namer: Namer | None, size: int) -> object:
    """Return a base measure in the order of the candidates: one that has labels as well is read by these."""
    found, names = labelled(weights)
    if names is None or namer is None:
        return found
    weight_of = dict(zip(map(names, range(len(found))), found, strict=True))  # type: ignore[arg-type, call-overload]
    try:
        return [weight_of[namer(i)] for i in range(size)]
    except KeyError as error:
        raise ValueError("base_measure must have a weight for the label of each candidate") from error
