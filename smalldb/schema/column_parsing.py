"""The columns of a schema, each read from its table in TOML."""

from collections.abc import Mapping
from typing import Any

from queries.expressions import suggestion
from queries.faults import Fault, Faults
from smalldb.schema.asked import ColumnToLearn
from smalldb.schema.determined import read_book
from smalldb.schema.finer_bins import SHARE, FinerBins, as_share
from smalldb.schema.keys import IDS, LEARN, MAX_LEARNED, SHARED, faults_of, lacking, texts_of
from smalldb.schema.kinds import SPECS, Cuts
from smalldb.schema.schema_columns import Column

ID, MAX_ID = "id", 10**12  # of rows


def _of_column(name: str, *faults: Exception) -> Faults:
    """Return the faults of one column, each below its path."""
    return Faults(Fault.of(fault, "columns", name) for fault in faults)


def what_learns(given: Mapping[str, Any]) -> str | None:
    """Tell what a column learns: "values", "cuts" or None."""
    kind = given.get("kind")
    what = SPECS[kind].learns if isinstance(kind, str) and kind in SPECS else None
    return what if what is not None and isinstance(given.get(what), str) else None


def column_to_learn(name: str, given: Mapping[str, Any], what: str) -> ColumnToLearn:
    """Read what a column is to learn."""
    if given[what] != LEARN:
        raise _of_column(name, Fault(f'{what} must be a list, in square brackets, or "{LEARN}"', what))
    if "share" not in given:
        example = 'say which, for example share = "1/20"'
        raise _of_column(name, Fault(f'{what} = "{LEARN}" spends a share of epsilon: {example}', what))
    if what == "values" and given.get("unknown") not in ("other", "missing"):
        raise _of_column(
            name,
            Fault('values = "learn" needs unknown = "other" (or "missing"), for those not learned', what),
        )
    if what == "values" and "groups" in given:
        raise _of_column(
            name, Fault('values = "learn" and groups do not go together: list the values', "groups")
        )
    if "finer" in given:
        said = f'{what} = "{LEARN}" and finer do not go together: learn more bins'
        raise _of_column(name, Fault(said, "finer"))
    bins = given.get("bins", 0)
    if what == "cuts" and (
        not isinstance(bins, int) or isinstance(bins, bool) or not 2 <= bins <= MAX_LEARNED
    ):
        raise _of_column(name, Fault(f'cuts = "learn" needs bins: how many, from 2 to {MAX_LEARNED}', what))
    try:
        spent = as_share(given["share"])
    except (ValueError, TypeError) as error:
        raise _of_column(name, error) from error
    if not 0 < spent < 1:
        raise _of_column(name, Fault("share must be above 0 and below 1", "share"))
    return ColumnToLearn(name, what, spent, bins)


def column_of(name: str, given: object, folder: str = "") -> Column:
    """Read a column whose categories are known."""
    if not isinstance(given, dict):
        raise _of_column(name, Fault("expected a table of what it can hold"))
    every = SHARED | {key: form for spec in SPECS.values() for key, form in spec.keys.items()}
    kind = given.get("kind")
    if not isinstance(kind, str) or kind not in SPECS:
        near = suggestion(kind, [*SPECS, ID]) if isinstance(kind, str) else ""
        said = f"kind must be one of {', '.join([*SPECS, ID])}{near}"
        if kind == "":
            said = f"fill in the draft: {said}; or list the column in ignore, without a table"
        raise _of_column(name, *faults_of(given, every), Fault(said, "kind"))
    spec = SPECS[kind]
    keys = {**SHARED, **spec.keys}
    wrong = [*faults_of(given, keys)]
    empty = [key for key in ("values", "cuts", "range") if key in keys and given.get(key) == []]
    wrong += [Fault(f"fill in the draft: {key} is empty", key) for key in empty]
    wrong += lacking(given, spec.needed)
    if "cuts" in given and "bins" in given and "bins" in keys:
        wrong.append(Fault("give cuts or bins, not both", "bins"))
    choices, unknown = spec.unknown, given.get("unknown")
    if isinstance(unknown, str) and unknown not in choices:
        said = f"unknown must be {' or '.join(map(repr, choices))}, or left out: refused then"
        wrong.append(Fault(said + suggestion(unknown, choices), "unknown"))
    gaps = () if isinstance(given.get("missing"), bool) else texts_of(given, "missing")
    if gaps is None:
        wrong.append(Fault("missing must be a list of texts", "missing"))
    together = texts_of(given, "missing_with")
    if together is None:
        wrong.append(Fault("missing_with must be a list of texts", "missing_with"))
    if wrong:
        raise _of_column(name, *wrong)
    if "share" in given and "finer" not in given:
        raise _of_column(
            name,
            Fault('share is for categories that are learned, as in cuts = "learn", or for finer', "share"),
        )
    try:
        made = spec.build(given)
        finer = FinerBins.of(made, given["finer"], given.get("share", SHARE)) if "finer" in given else None
        determined = read_book(name, given["determines"], folder) if "determines" in given else ()
    except (ValueError, TypeError) as error:
        raise _of_column(name, error) from error
    return Column(
        name,
        made,
        coding=given.get("coding"),
        missing=given.get("missing", False) is not False,
        gaps=gaps or (),
        unknown=unknown == "missing",
        dtype=given.get("dtype"),
        missing_with=together or (),
        only_if=given.get("only_if"),
        determines=determined,
        description=given.get("description", ""),
        unit=given.get("unit", ""),
        finer=finer,
    )


def id_column(name: str, given: Mapping[str, Any]) -> Column:
    """Return the column of fresh numbers: it is not read, and not measured."""
    if faults := [*faults_of(given, IDS)]:
        raise _of_column(name, *faults)
    return Column(name, Cuts([2], 1, MAX_ID), dtype=given.get("dtype"))
