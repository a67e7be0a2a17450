"""A schema: the public columns of a table, the universe that they make, and the way there and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import final

import numpy as np

from queries import DataError, Domain, Rows
from queries.arrays import Booleans, Codes, Integers, pd
from queries.encoding import codes_dtype
from queries.expressions import Fault, suggestion
from queries.frames import as_frame, is_index
from queries.rule_tables import rule_texts
from queries.spec import named_tables
from smalldb.exact.bits import BitSource, bit_source
from smalldb.exact.numbers import whole
from smalldb.schema.bin_shapes import FinerCost, measurable
from smalldb.schema.derived import Derived
from smalldb.schema.fields import CHUNK, Coded, Fields, Memo, Piece, in_threads, occurrences, tally
from smalldb.schema.file_format import USUAL, FileFormat
from smalldb.schema.ordered_values import ordered_steps
from smalldb.schema.orders import Orders
from smalldb.schema.row_rules import DROP, Breaking, domain_of, read_breaks
from smalldb.schema.schema_columns import UNKNOWN, Column


def finer_costs(columns: Sequence[Column], epsilon: Fraction) -> tuple[FinerCost, ...]:
    """Return what the finer bins cost of each column that has some, of an epsilon in all."""
    return tuple(
        FinerCost(column.name, tuple(column.finer.kind.cut_texts), column.finer.share * epsilon)
        for column in columns
        if column.finer
    )


def measurable_columns(columns: Sequence[Column]) -> tuple[int, ...]:
    """Return the numbers of columns of which it is measured where numbers lie in their bins."""
    return tuple(c for c, column in enumerate(columns) if measurable(column.kind))


MAX_COLUMNS = 1 << 12
MAX_CODED = 1 << 28  # categories by attributes, of all columns: a byte each
STEP = ": smalldb schema check says how many rows, and which; mend them, or the schema"
OR_GAPS = STEP + ', or give it breaks = "missing", which makes gaps of them'
TOO_LARGE = (
    "the columns have more than 2^28 categories by attributes together: "
    'coding = "bits" makes fewer attributes; or join categories'
)


def too_many_columns(count: int) -> str:
    """Tell that there are too many columns."""
    return f"a schema may have up to {MAX_COLUMNS} columns, not {count}: list others under ignore"


def coded_cells(column: Column) -> int:
    """Count the cells of a column's table of categories by attributes."""
    return column.universe.size * len(column.universe.attributes)


@final
@dataclass(frozen=True, slots=True)
class Schema:
    """What the columns of a table can hold: public choices, made without a look at the data.

    Parameters
    ----------
    columns
        In the order in which a decoded table has them.
    valid
        Which rows can exist: a predicate over attributes and categories, or an order between columns such as
        ``exit >= injection``; or several (rules, which all must hold).
    queries
        What a release shall answer well if nobody says otherwise, as `queries.spec` reads it.
    ignored
        Columns of the data that are left out; "*": all that the schema does not have.
    file
        How its files are written.
    rows_per_person
        The most rows that one person has, from public knowledge: 1 says that a row is a person. None: nothing
        is said of people, and a release protects rows.
    derived
        Columns that are computed from the released ones, each behind those that it is computed from. They are
        not measured; a table that is read may have them, and they are passed over.
    measure_first
        Tables that a release shall measure before others if nobody says otherwise, as `queries.spec`
        reads them.
    ids
        Columns of fresh numbers, 1, 2, and so on: a release numbers its rows by them. A table that is read
        may have them, and they are passed over.
    breaks
        What becomes of a row of data that breaks a rule: "missing" (the columns of the rule that can have a
        gap get one) or "drop" (it is left out; under add-remove alone); of all rules, or by the text of a
        rule. Rows that break others are refused.

    Attributes
    ----------
    domain
        The universe: the categories of each column in turn, and as rules all that the schema says of rows.
    orders
        The orders between columns.
    breaking
        By the number of a rule, from 1, what becomes of rows that break it.

    Raises
    ------
    ValueError
        No columns, a name twice, queries or rules that cannot be read, rules that leave no row: all at once,
        joined by semicolons.
    """

    columns: tuple[Column, ...]
    valid: str | tuple[str, ...] | None = None
    queries: str | None = None
    ignored: tuple[str, ...] = ()
    file: FileFormat = USUAL
    rows_per_person: int | None = None
    derived: tuple[Derived, ...] = ()
    measure_first: tuple[str, ...] = ()
    ids: tuple[Column, ...] = ()
    breaks: str | Mapping[str, str] = field(default="", hash=False)
    domain: Domain = field(init=False, repr=False, compare=False)
    orders: Orders = field(init=False, repr=False, compare=False)
    breaking: Mapping[int, Breaking] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("columns", "ignored", "measure_first"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if self.valid is not None and not isinstance(self.valid, str):
            object.__setattr__(self, "valid", tuple(self.valid) or None)
        wrong = list[Fault]() if self.columns else [Fault("a schema needs at least one column")]
        if len(self.columns) > MAX_COLUMNS:
            raise ValueError(too_many_columns(len(self.columns)))
        if sum(map(coded_cells, self.columns)) > MAX_CODED:
            raise ValueError(TOO_LARGE)
        if self.rows_per_person is not None:
            whole(self.rows_per_person, "rows_per_person")
        for name, times in Counter(column.name for column in self.released).items():
            if times > 1:
                wrong.append(Fault(f"column {name!r} occurs more than once"))
            if name in self.ignored:
                wrong.append(Fault(f"column {name!r} is described and ignored", "ignore"))
        for text in self.measure_first:
            try:
                named_tables([text], self.names)
            except ValueError as error:
                wrong.append(Fault(f"measure_first: {error}", "measure_first"))
        domain, orders = domain_of(self.columns, self.derived, self.valid, self.queries, wrong)
        object.__setattr__(self, "orders", orders)
        object.__setattr__(self, "domain", domain)
        breaking = read_breaks(self.breaks, self.columns, domain, orders) if self.breaks else {}
        object.__setattr__(self, "breaking", breaking)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def released(self) -> tuple[Column, ...]:
        """The columns of a released table: the measured ones, those that are computed, and fresh numbers."""
        return (*self.columns, *(each.column for each in self.derived), *self.ids)

    @property
    def unread(self) -> tuple[str, ...]:
        """The names of columns that a table may have and a release does not read."""
        computed = (each.column.name for each in self.derived)
        return (*self.ignored, *computed, *(column.name for column in self.ids))

    @property
    def drops(self) -> bool:
        """Whether rows of data that break some rule are left out."""
        return any(each.how == DROP for each in self.breaking.values())

    def with_derived(self, names: Collection[str]) -> Schema:
        """Return the schema, without its rules, that reads also what a table has of computed columns."""
        read = tuple(each.column for each in self.derived if each.column.name in names)
        others = tuple(each for each in self.derived if each.column.name not in names)
        return replace(self, columns=(*self.columns, *read), derived=others, valid=None, breaks="")

    def chosen(self, names: Sequence[str], counts: str | None = None, keys: Sequence[str] = ()) -> list[int]:
        """Tell where columns (then counts, then keys) stand in a table; ValueError: it has other columns."""
        stripped = [str(name).strip() for name in names]
        wanted = [*self.names, *([] if counts is None else [counts])]
        positions, times = {name: i for i, name in enumerate(stripped)}, Counter(stripped)
        if counts in self.names:
            raise ValueError(f"column {counts!r} cannot hold counts: it is in the schema")
        for name in wanted:
            if name not in positions:
                raise ValueError(f"the table has no column {name!r}{suggestion(name, stripped)}")
            if times[name] > 1:
                raise ValueError(f"the table has two columns {name!r}")
        if "*" not in self.ignored:
            known = {*wanted, *self.unread}
            for name in stripped[is_index(stripped) :]:
                if name not in known:
                    raise ValueError(
                        f"the schema has no column {name!r}{suggestion(name, self.names)}: "
                        "describe it, or list it under ignore"
                    )
        return [positions[name] for name in (*wanted, *keys)]

    def encode(self, frame: pd.DataFrame, counts: str | None = None) -> Rows:
        """Count the rows of a table.

        Parameters
        ----------
        frame
            Of pandas, or of a library whose tables have ``to_pandas()``.
        counts
            Column that says how often each row occurs; None: once.

        Raises
        ------
        ValueError, TypeError
            Other columns than the schema's (seen without looking at a value).
        DataError
            A field that its column does not cover, a row that `valid` rules out, a count that is none.
        """
        return self.count(self.mended(self.pieces(as_frame(frame), counts)), counts)

    def mended(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """Hand on the pieces of a table, with what becomes of rows that break a rule; each row by itself."""
        for fields, times in pieces:
            if not self.breaking:
                yield fields, times
                continue
            before = np.stack([column.encode(fields[c]) for c, column in enumerate(self.columns)], axis=1)
            codes, left_out = self.mended_codes(fields, before)
            columns = list(fields)
            for c, column in enumerate(self.columns):
                columns[c] = column.with_gaps(fields[c], codes[:, c] != before[:, c])
            if left_out.any():
                columns = [each[~left_out] for each in columns]
                times = (
                    None if times is None else [t for t, out in zip(times, left_out, strict=True) if not out]
                )
            yield columns, times

    def mended_codes(self, fields: Sequence[Fields], codes: Integers) -> tuple[Integers, Booleans]:
        """Return codes with gaps for what breaks rules, until none is new; and which rows are left out."""
        left_out = np.zeros(len(codes), dtype=bool)
        while self.breaking:
            before, codes = codes, codes.copy()
            for number, rows in self.broken(fields, before).items():
                if number in self.breaking:
                    left_out[rows] |= self.breaking[number].how == DROP
                    for c in self.breaking[number].columns:
                        codes[rows, c] = self.columns[c].kind.size
            if (codes == before).all():
                break
        return codes, left_out

    def refused(self, codes: Integers) -> Booleans:
        """Tell which codes, shape (r, C), are refused: of unknown values, and of gaps without a category."""
        gaps = np.array([UNKNOWN if column.missing else column.kind.size for column in self.columns])
        refused: Booleans = (codes == UNKNOWN) | (codes == gaps)
        return refused

    def broken(self, fields: Sequence[Fields], codes: Integers) -> dict[int, Integers]:
        """Return which covered rows break each rule that some row breaks, by its number."""
        covered = np.flatnonzero(~self.refused(codes).any(axis=1))
        outside = covered[~self.domain.contains(codes[covered])]
        broken = {number: outside[which] for number, which in self.domain.broken(codes[outside]).items()}
        for number, which in self.disordered(fields, [*codes.T]).items():
            by_value = np.intersect1d(covered, np.flatnonzero(which))
            if len(by_value):
                broken[number] = np.union1d(broken.get(number, by_value), by_value)
        return dict(sorted(broken.items()))

    def pieces(
        self, frame: pd.DataFrame, counts: str | None = None, keys: Sequence[str] = ()
    ) -> Iterator[Piece]:
        """Return the columns, and one of counts and `keys` behind them, as pieces of a table of pandas."""
        positions = self.chosen(list(frame.columns), counts, keys)
        chunks = (frame.iloc[i : i + CHUNK] for i in range(0, len(frame), CHUNK))
        return (([chunk.iloc[:, j] for j in positions], None) for chunk in chunks)

    def count(self, pieces: Iterable[Piece], counts: str | None = None) -> Rows:
        """Count the rows of a table that comes in pieces; memory grows with the distinct rows only.

        Parameters
        ----------
        pieces
            Each the schema's columns in their order, and how often each of their rows occurs.
        counts
            Name of one more column behind them, whose counts multiply these; None: there is none.

        Raises
        ------
        DataError
            As `encode`.
        """
        outside = set[int]()
        return tally(self.domain, self._counted_pieces(pieces, counts, outside), OR_GAPS, outside)

    def memos(self) -> list[Memo]:
        """Return what finds the codes of texts, by column, for `coded`."""
        return [column.memo() for column in self.columns]

    def coded(
        self, fields: Sequence[Fields], wrong: dict[str, str], outside: set[int], memos: Sequence[Memo]
    ) -> list[Integers]:
        """Return the codes of a piece by column; note problems of columns, and orders that rows break."""
        codes = [column.encode(fields[c], memos[c]) for c, column in enumerate(self.columns)]
        for column, each in zip(self.columns, codes, strict=True):
            if (problem := column.problem(each)) is not None:
                wrong.setdefault(column.name, problem)
        outside.update(self.disordered(fields, codes))
        return codes

    def disordered(self, fields: Sequence[Fields], codes: Sequence[Integers]) -> dict[int, Booleans]:
        """Tell which rows of data break each order by value, by its number among all rules, from 1."""
        numbers = {text: number for number, text in enumerate(rule_texts(self.domain.valid), start=1)}
        broken = self.orders.broken(fields, codes)
        return {numbers[text]: rows for text, rows in broken.items()}

    def decode(
        self, codes: Codes, *, middle: bool = False, rng: int | BitSource | None = None
    ) -> pd.DataFrame:
        """Write rows of codes, shape (r, C), as a table: the schema's columns with their dtypes.

        Parameters
        ----------
        codes
            Released codes.
        middle
            Whether a bin is its middle. Otherwise it is a value of the bin, drawn by the shape of all bins of
            the column (`bin_shapes`), of columns in an order uniformly: numbers of some digits, days, or
            times; see the kinds of columns. Both are post-processing.
        rng
            Where draws come from, as in `smalldb.release`.

        Raises
        ------
        ValueError
            A code that its column does not have, or another number of columns; a row in whose categories no
            values keep the orders between columns.
        """
        if codes.ndim != 2 or codes.shape[1] != len(self.columns):
            raise ValueError(f"rows must be codes of shape (r, {len(self.columns)})")
        source = None if middle else bit_source(rng)
        steps = ordered_steps(self.orders, codes, source)
        values = {
            column.name: column.holding(codes[:, c], steps[c])
            if c in steps
            else column.decode(codes[:, c], source)
            for c, column in enumerate(self.columns)
        }
        known = {column.name: column for column in self.released}
        for each in self.derived:
            values[each.column.name] = each.written(each.of(values, known))
        numbers = np.arange(1, len(codes) + 1)
        for column in self.ids:
            values[column.name] = column.holding(np.minimum(numbers - 1, 1), numbers.tolist())
        return pd.DataFrame(values)

    def _counted_pieces(
        self, pieces: Iterable[Piece], counts: str | None, outside: set[int]
    ) -> Iterator[Coded]:
        """Yield the counted pieces, and note orders that rows break; DataError at the end: all problems."""
        wrong: dict[str, str] = {}
        memos, dtype = self.memos(), codes_dtype(self.domain.sizes)

        def coded(piece: Piece) -> tuple[Coded | None, dict[str, str], set[int]]:
            (fields, times), problems, broken = piece, dict[str, str](), set[int]()
            columns = self.coded(fields, problems, broken, memos)
            if problems:
                return None, problems, broken
            return (np.array(columns, dtype=dtype).T, occurrences(fields, times, counts)), problems, broken

        for part, problems, broken in in_threads(coded, pieces):
            outside.update(broken)
            wrong = problems | wrong
            if part is not None and not wrong:
                yield part
        if wrong:
            raise DataError("; ".join(wrong[name] for name in self.names if name in wrong) + STEP)
