"""The public record of a release: what was done, what is guaranteed, what is provable."""

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any

from smalldb.exact.numbers import as_text
from smalldb.planning import Neighbours, Plan
from smalldb.version import __version__

Record = dict[str, Any]


def make_record(plan: Plan, *, private: bool, bound: float | None = None) -> Record:
    """Write the record of a release: public numbers only.

    Under add-remove it holds neither n nor anything computed from it, but for the bound of released answers.

    Parameters
    ----------
    plan
        What was released.
    private
        False where the randomness came from a seed or a script.
    bound
        Of released answers: the error that is not exceeded with probability 1 - beta.
    """
    domain = plan.workload.domain
    bounded_range = None if plan.bounded_range is None else as_text(plan.bounded_range)
    delta = None if plan.delta is None else as_text(plan.delta)
    spent = {} if delta is None else {"delta": delta}
    described = [{"name": column.name, "places": list(column.labels)} for column in domain.columns]
    columns = {} if domain.binary else {"columns": described}
    record: Record = {
        "schema": 1,
        "mechanism": plan.mechanism,
        "candidates": plan.candidates,
        "epsilon": as_text(plan.epsilon),
        "delta": delta,
        "neighbours": plan.neighbours.value,
        "privacy": {"epsilon": as_text(plan.privacy), **spent, "bounded_range": bounded_range},
        "rows": plan.rows,
        "n": plan.n,
        "queries": {
            "text": plan.workload.text,
            "stated": plan.workload.stated,
            "reduced": plan.workload.size,
        },
        "universe": {
            "attributes": list(domain.attributes),
            **columns,
            "valid": list(domain.valid) if isinstance(domain.valid, tuple) else domain.valid,
        },
        "bounds": bounds_of(plan, bound),
        "private": private,
        "versions": {"smalldb": __version__},
    }
    if plan.neighbours is Neighbours.ADD_REMOVE:
        del record["n"]
    if plan.answers is None and plan.neighbours is Neighbours.ADD_REMOVE:
        del record["bounds"]
    return record


def bounds_of(plan: Plan, bound: float | None = None) -> Record:
    """Return what is provable about the error, as a record states it."""
    if plan.answers is not None:
        return {"beta": as_text(plan.beta), "released": bound}
    return {
        "beta": as_text(plan.beta),
        "sharp": plan.bound,
        "proposition_4_4": plan.proposition_4_4,
        "theorem_4_5": plan.theorem_4_5,
    }


@lru_cache(maxsize=1)
def record_schema() -> Record:
    """Return the JSON schema of a record."""
    text = files("smalldb.releasing").joinpath("record.schema.json").read_text(encoding="utf-8")
    schema: Record = json.loads(text)
    return schema
