"""All measurements of a release: told as a table, written as JSON, and read again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from queries import Domain
from queries.arrays import Floats, pd
from smalldb.exact.numbers import as_fraction, as_text, whole
from smalldb.files.inputs import record_in
from smalldb.mechanisms.known_pairs import KnownPair, known_pairs
from smalldb.mechanisms.measurement import Dependence, Marginal, MeasuredPart, Measurement, Offsets, Parity
from smalldb.mechanisms.recorded_universe import Ranges, domain_of, ranges_of, standing_ranges
from smalldb.noise.distributions import read as read_noise

SCHEMAS = (1, 2)  # of records that can be read: these differ in what they say of privacy
UNREADABLE = "its measurements cannot be read: it was changed, or is of another version"


class Weighed(NamedTuple):
    """How children are counted: one of s weighs 1 / max(s, `cap`) of a parent, in whole units."""

    column: int  # that holds s
    unit: int  # of which a parent has so many
    cap: int

    def rows_in(self, size: int, every: bool) -> Floats:
        """Return by number of children, from 0, how many of them a unit stands for; the last is for more.

        If not `every` child counts, those of a parent with more than `cap` stand for `cap` together.
        """
        rows: Floats = np.maximum(np.arange(size) if every else 0, np.full(size, self.cap)) / self.unit
        return rows


class Measurements(Sequence[Measurement]):
    """All that was released of the data, in order, but for bounds.

    Parameters
    ----------
    domain
        The columns, whose names and categories it is told by.
    items
        The measurements.
    n
        The rows of the data where they are public: under replace-one; else None.
    ranges
        Of columns of numbers: see `recorded_universe.Ranges`.
    weighed
        Of children of related tables: how they are counted. None: each row counts as one.

    Attributes
    ----------
    domain, n, ranges, weighed
        As given.
    """

    __slots__ = ("_items", "domain", "n", "ranges", "weighed")

    def __init__(
        self,
        domain: Domain,
        items: Sequence[Measurement],
        n: int | None = None,
        ranges: Ranges | None = None,
        weighed: Weighed | None = None,
    ) -> None:
        self.domain, self._items, self.n, self.weighed = domain, tuple(items), n, weighed
        self.ranges = standing_ranges(domain) if ranges is None else dict(ranges)

    def __repr__(self) -> str:
        tables = sum(len(each.of) for each in self._items)
        return f"<Measurements: {len(self._items)}, of {tables} tables and contrasts>"

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, key: Any) -> Any:
        return self._items[key]

    @classmethod
    def read(cls, path: str) -> Measurements:
        """
        Read the measurements in a record, or in what ``generate --measurements`` wrote: they are as released.

        Raises
        ------
        OSError
            The file cannot be read.
        ValueError
            It is no such file, or holds no measurements: says what to do.
        """
        record = record_in(path)
        try:
            return cls.from_record(record)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Measurements:
        """Return the measurements that a record holds; of related tables those of parents: `of_tables`.

        Raises
        ------
        ValueError
            It is no record of this schema, or holds no measurements: says what to do.
        """
        if isinstance(record, dict) and "tables" in record:
            return next(iter(cls.of_tables(record).values()))
        if not isinstance(record, dict) or "universe" not in record:
            raise ValueError(
                "not a record of smalldb: name what generate wrote with --measurements or --record"
            )
        if record.get("schema") not in SCHEMAS:
            raise ValueError("a record of another version: read it with the smalldb that its versions name")
        if "measurements" not in record:
            raise ValueError(
                "it holds no measurements: marginals alone make them, and generate --measurements FILE.json "
                "writes them whatever their size"
            )
        try:
            domain = domain_of(record["universe"])
            items = [_read(domain, entry) for entry in record["measurements"]]
            n = None if record.get("n") is None else whole(record["n"], "n")
            return cls(domain, items, n, ranges_of(record["universe"]))
        except (AttributeError, KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
            raise ValueError(UNREADABLE) from error

    @classmethod
    def of_tables(cls, record: Mapping[str, Any]) -> dict[str, Measurements]:
        """
        Return the measurements of each of related tables, parents first; those of children tell of walks.

        Columns of walks are named as by `short_names`. Errors as `from_record`.
        """
        try:
            (unit, parents), (child, children) = record["tables"].items()
            names = [column["name"] for column in children["columns"]]
            short = dict(zip(names, short_names(names), strict=True))
            walks = cls.from_record(_renamed(children, short, record["schema"], None))
            bare = {name: _bare(name) for name in names}
            of_parents = cls.from_record(_renamed(parents, bare, record["schema"], record.get("n")))
            weights = (whole(children["weights"][key], key) for key in ("unit", "cap"))
            weighed = Weighed(len(parents["columns"]) - 1, *weights)
            of_walks = cls(walks.domain, walks, None, walks.ranges, weighed)
            for each in (of_parents, of_walks):  # of the numbers of children the last is for more, too
                most = each.domain.sizes[weighed.column] - 1
                numbers = [*((float(k), float(k)) for k in range(most)), (float(most), None)]
                each.ranges[each.domain.names[weighed.column]] = tuple(numbers)
            return {unit: of_parents, child: of_walks}
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(UNREADABLE) from error

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each released number.

        Columns: `measurement`, its number from 0; `table`, its columns; `cell`, the categories of each;
        `value`; `noise`, its name; `deviation`, the standard deviation of the noise.
        """
        rows = []
        for number, each in enumerate(self._items):
            deviation = sqrt(each.noise.variance())
            for part, values in each.tables():
                table = " x ".join(self.domain.names[c] for c in part.columns)
                for cell, value in zip(self._cells(part), values.ravel().tolist(), strict=True):
                    rows.append((number, table, cell, value, each.noise.name, deviation))
        names = ["measurement", "table", "cell", "value", "noise", "deviation"]
        return pd.DataFrame(rows, columns=names)

    def pairs(self) -> tuple[KnownPair, ...]:
        """Return for each pair of columns whether it was measured, at which groups, and what that showed."""
        return known_pairs(self.domain, self._items, self.n)

    @property
    def marginals(self) -> list[Marginal]:
        """The tables of counts that were measured, in order."""
        return [part for each in self for part in each.of if isinstance(part, Marginal)]

    @property
    def numbers(self) -> int:
        """How many numbers it takes to write them: values, and the group of each category."""
        groups = sum(len(groups) for part in self.marginals for groups in part.groups)
        return sum(len(each.values) for each in self) + groups

    def as_json(self) -> list[dict[str, Any]]:
        """Return them as JSON can hold them: exact numbers are texts."""
        return [
            {
                "tables": [self._entry(part) for part in each.of],
                "values": each.values.tolist(),
                "noise": {"name": each.noise.name, **each.noise.parameters},
                "rho" if each.concentrated else "epsilon": as_text(each.cost),
                "selecting": None if each.selecting is None else as_text(each.selecting),
            }
            for each in self._items
        ]

    def labels(self, column: int, groups: Sequence[int]) -> list[str]:
        """Return what stands in each group of a column: its categories."""
        codes_of: list[list[int]] = [[] for _ in range(max(groups) + 1)]
        for code, group in enumerate(groups):
            codes_of[group].append(code)
        labels = self.domain.columns[column].labels
        return [" or ".join(labels[code] for code in codes) for codes in codes_of]

    def _entry(self, part: MeasuredPart) -> dict[str, Any]:
        names = [self.domain.names[c] for c in part.columns]
        if isinstance(part, Parity):
            entry = {"parity": names, "signed": part.signed}
            return entry if part.categories is None else entry | {"categories": list(part.categories)}
        if isinstance(part, Dependence):
            pairs = [[self.domain.names[c] for c in pair] for pair in part.pairs]
            entry = {"dependence": pairs, "tops": list(part.tops)}
            entry |= {} if part.groups is None else {"groups": part.groups}
            return {**entry, "of_start": True} if part.of_start else entry
        if isinstance(part, Offsets):
            return {"offsets": names[0], "bins": part.bins, "units": part.units}
        return {"columns": names, "groups": [list(groups) for groups in part.groups]}

    def _cells(self, part: MeasuredPart) -> list[str]:
        """Tell each cell of a table by the categories of its groups."""
        if isinstance(part, Parity):
            yes = "yes"
            if part.categories:
                columns = [self.domain.columns[c] for c in part.columns]
                held = zip(columns, part.categories, strict=True)
                yes = " and ".join(f"{column.name}={column.labels[code]}" for column, code in held)
            if not part.signed:
                return [f"rows with an odd number of {yes}"]
            return [f"sum of signs: -1 for an odd number of {yes}" if part.columns else "rows"]
        if isinstance(part, Dependence):
            return [f"{'distance from the start' if part.of_start else 'dependence'} of pairs, in rows"]
        if isinstance(part, Offsets):
            of = self.domain.columns[part.columns[0]]
            unit = f"sum of offsets from its middle, in 1/{part.units} of its width"
            return [f"{of.name}={label}: {unit}" for label in of.labels[: part.bins]]
        cells = [""]
        for c, groups in zip(part.columns, part.groups, strict=True):
            name, labels = self.domain.names[c], self.labels(c, groups)
            cells = [f"{cell}{', ' * bool(cell)}{name}={label}" for cell in cells for label in labels]
        return cells


def short_names(names: Sequence[str]) -> list[str]:
    """Return the names of columns of walks: their own where one table alone has it, else with the table's."""
    times = Counter(map(_bare, names))
    return [_bare(name) if times[_bare(name)] == 1 else name for name in names]


def _bare(name: str) -> str:
    """Return the name of a column without that of its table."""
    return name.partition(".")[2] or name


def _renamed(table: Mapping[str, Any], names: Mapping[str, str], schema: object, n: object) -> dict[str, Any]:
    """Return what a record says of one of related tables as of a single one, with other names of columns."""
    columns = [{**column, "name": names[column["name"]]} for column in table["columns"]]
    measurements = [
        {**each, "tables": [_part_renamed(part, names) for part in each["tables"]]}
        for each in table["measurements"]
    ]
    universe = {"columns": columns, "attributes": [], "valid": None}
    return {"schema": schema, "n": n, "universe": universe, "measurements": measurements}


def _part_renamed(part: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    lists = {key: [names[name] for name in part[key]] for key in ("columns", "parity") if key in part}
    pairs = {key: [[names[a], names[b]] for a, b in part[key]] for key in ("dependence",) if key in part}
    return {**part, **lists, **pairs}


def _read(domain: Domain, entry: Mapping[str, Any]) -> Measurement:
    """Return the measurement that was written; ValueError and its kin: it is none."""
    parameters, selecting = dict(entry["noise"]), entry["selecting"]
    noise = read_noise(parameters.pop("name"), parameters)
    values = np.array(entry["values"], dtype=np.int64)
    if values.ndim != 1 or values.tolist() != entry["values"]:
        raise ValueError("values must be whole numbers")
    return Measurement(
        tuple(_part(domain, part) for part in entry["tables"]),
        values,
        noise,
        as_fraction(entry["rho" if noise.concentrated else "epsilon"], "a cost"),
        None if selecting is None else as_fraction(selecting, "a cost"),
    )


def _part(domain: Domain, entry: Mapping[str, Any]) -> MeasuredPart:
    """Return what was measured, from how it was written."""
    at = {name: c for c, name in enumerate(domain.names)}
    if "parity" in entry:
        positions, categories = tuple(at[name] for name in entry["parity"]), entry.get("categories")
        if categories is None:
            return Parity(positions, bool(entry["signed"]))
        yes = tuple(int(category) for category in categories)
        if any(not 0 <= category < domain.sizes[c] for c, category in zip(positions, yes, strict=True)):
            raise ValueError("a parity needs a category of each of its columns")
        return Parity(positions, bool(entry["signed"]), yes)
    if "dependence" in entry:
        pairs = tuple((at[a], at[b]) for a, b in entry["dependence"])
        tops, groups = tuple(int(top) for top in entry["tops"]), entry.get("groups")
        return Dependence(pairs, tops, bool(entry.get("of_start")), None if groups is None else int(groups))
    if "offsets" in entry:
        return Offsets((at[entry["offsets"]],), whole(entry["bins"], "bins"), whole(entry["units"], "units"))
    columns = tuple(at[name] for name in entry["columns"])
    partitions = tuple(tuple(int(group) for group in groups) for groups in entry["groups"])
    for c, groups in zip(columns, partitions, strict=True):
        if len(groups) != domain.sizes[c] or {*groups} != {*range(len({*groups}))}:
            raise ValueError("each category needs a group, numbered from 0")
    return Marginal(columns, partitions)


def released_total(measurements: Sequence[Measurement]) -> int:
    """Return about how many rows the data have: the mean of what was released of it, by inverse variances."""
    weight = total = 0.0
    for each in measurements:
        for part, values in each.tables():
            count = isinstance(part, Parity) and part.signed and not part.columns
            if isinstance(part, Marginal) or count:
                precision = 1 / max(each.noise.variance() * part.size, 1e-9)
                weight, total = weight + precision, total + precision * float(values.sum())
    return round(total / weight) if weight else 0
