"""The public table that a release starts from, with what its user says it is; and a rehearsal on it."""

import filecmp
import hashlib
import json
import os
from collections.abc import Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from queries import DataError, Domain, Rows
from queries.frames import as_frame, rows_of
from smalldb.files.inputs import files_of, record_in
from smalldb.marginals.mechanism import ByMarginals
from smalldb.marginals.rehearsal import rehearse_from
from smalldb.marginals.strategies.from_start import FromStart
from smalldb.mechanisms import Measurements
from smalldb.mechanisms.start import ROWS, Earlier, Start
from smalldb.planning.plans import Plan
from smalldb.schema import Schema
from smalldb.schema.fields import is_text
from smalldb.schema.related_schema import RelatedSchema
from smalldb.schema.table_readers import read_csv, read_table

MUST_BE_PUBLIC = (
    "a start must be PUBLIC: rows of other people that are published, or a release under differential "
    "privacy. A start that holds rows of the data breaks the guarantee. Say what it is with start_is "
    "(--start-is), which the record and the page repeat: 'release of 2025, epsilon 1'"
)
MOST_WORDS = 300


def with_start(settings: Mapping[str, Any], described: Any, data: object = None) -> dict[str, Any]:
    """Return settings whose start, stated to be public, and earlier release are read once."""
    start, words, refine = (settings.get(name) for name in ("start", "start_is", "refine"))
    rows, read = settings.get("start_rows"), dict(settings)
    if start is None and (words is not None or rows is not None):
        raise ValueError("start_is and start_rows are about a start: give the public table as start")
    if isinstance(described, RelatedSchema):
        return read  # `plan` refuses both
    if refine is not None:
        read["refine"] = earlier_of(refine)
    if start is not None:
        check_start(start, data)
        if not isinstance(start, Start):
            start = start_of(start, words, described, rows or ROWS[0])
        read |= {"start": start, "start_is": None, "start_rows": None}
    return read


def check_start(start: object, data: object, *, copies: bool = True) -> None:
    """Refuse a start that is the data, or shares a file with them, or is a copy that is read: ValueError."""
    if isinstance(start, str | os.PathLike) and isinstance(data, str | os.PathLike):
        files = [filter(os.path.exists, files_of(os.fspath(path))) for path in (start, data)]
        alike = partial(filecmp.cmp, shallow=False)
        same = any(os.path.samefile(*pair) or (copies and alike(*pair)) for pair in product(*files))
    else:
        same = start is data
    if same:
        raise ValueError(f"the start is the data, or a copy of them: {MUST_BE_PUBLIC}")


def start_of(start: object, words: object, described: Schema | Domain, rows: str) -> Start:
    """Read a public table, by the schema or the domain of the data; ValueError: it does not fit."""
    if not isinstance(words, str) or not words.strip():
        raise ValueError(MUST_BE_PUBLIC)
    if len(words) > MOST_WORDS or not is_text(words):
        raise ValueError(f"start_is must be a text of at most {MOST_WORDS} characters")
    if rows not in ROWS:
        raise ValueError(f"start_rows must be {' or '.join(map(repr, ROWS))}, not {rows!r}")
    try:
        table = _read(start, described)
    except DataError as error:  # of a public table
        raise ValueError(f"the start does not fit the columns of the data: {error}") from error
    if not table.n:
        raise ValueError("the start has no rows")
    return Start(table.codes().astype(np.int64), table.counts, words.strip(), digest_of(table), rows)


def _read(start: object, described: Schema | Domain) -> Rows:
    """Count the rows of a public table."""
    domain = described if isinstance(described, Domain) else described.domain
    if isinstance(start, str | os.PathLike):
        path = os.fspath(start)
        return read_csv(path, domain) if isinstance(described, Domain) else read_table(path, described)
    if isinstance(start, Rows):
        if start.domain != domain:
            raise ValueError("the start is over another domain than the data")
        return start.checked()
    frame = as_frame(start)
    if isinstance(described, Domain):
        return rows_of(frame[[*domain.names]], domain)
    return described.encode(frame)


def earlier_of(refine: object) -> Earlier:
    """Read an earlier release of the same data: a release, its record, or the path of that."""
    if isinstance(refine, Earlier):
        return refine
    record = getattr(refine, "record", refine)
    measurements = getattr(refine, "measurements", None)
    if isinstance(record, str | os.PathLike):
        record = record_in(record)
    if not isinstance(record, Mapping):
        raise TypeError("refine must be a release, its record, or the path of that")
    if measurements is None:
        measurements = Measurements.from_record(record)
    digest = hashlib.sha256(json.dumps(measurements.as_json(), sort_keys=True).encode()).hexdigest()
    epsilon = str(record["privacy"]["epsilon"])
    return Earlier(tuple(measurements), measurements.domain, measurements.n, epsilon, digest)


def refined(refine: object, domain: Domain, n: int | None) -> Earlier:
    """Read an earlier release, of these columns and as many rows; ValueError: it is of others."""
    earlier = earlier_of(refine)
    now, before = ([(c.name, c.labels) for c in each.columns] for each in (domain, earlier.domain))
    if now != before or (n is not None and earlier.n not in (None, n)):
        raise ValueError(
            "refine: the earlier release is of other columns, categories or rows than these data"
        )
    return earlier


def digest_of(finished: Rows) -> str:
    """Return the SHA-256 of public rows as codes, and of how often each is there."""
    return hashlib.sha256(finished.words.tobytes() + finished.counts.tobytes()).hexdigest()


def rehearsed(plan: Plan) -> float | None:
    """Return the mean distance of tables of two columns in a rehearsal on the start; None: there is none."""
    chosen = plan.chosen
    if not isinstance(chosen, ByMarginals) or not isinstance(chosen.strategy, FromStart):
        return None
    return rehearse_from(chosen.strategy, plan.foreseen_rows)
