"""The workload: the queries that are left of classes after reduction."""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate

import numpy as np

from queries.arrays import Integers
from queries.domain import MAX_CELLS, MAX_TABLE_ATTRIBUTES, Domain
from queries.expressions import count_text
from queries.query import Cells, Query, odd, settings, sums_of_cells
from queries.reduction import check_rules, in_cells, key_of, marks_for, reduced_cells
from queries.rows import MAX_TOTAL, Rows, bincounted

MAX_QUERIES = 1 << 18  # of one workload that is listed, before reduction
LESS = "use fewer columns, or a smaller width where the class has one"
MAX_MATRIX = 1 << 27  # entries of the table queries x cells, 1 GiB

__all__ = ["MAX_MATRIX", "MAX_QUERIES", "Query", "Workload"]


@dataclass(frozen=True, slots=True)
class Workload:
    """The queries that a release answers, reduced: queries that cannot differ in error are kept once.

    Queries that are equal up to sign and an added constant have the same error on every table, so one
    of them stands for all (the first, or the first with a smaller denominator); constants drop. (On a
    universe with structural zeros, equal means equal on the cells that can exist.)

    Queries are numbered: first those of `cells`, table by table, then those of `listed`.

    Attributes
    ----------
    domain
        The universe.
    text
        The workload as its class writes it, for records.
    stated
        How many queries the class states, before reduction.
    listed
        Those kept that are held one by one.
    cells
        Those kept that are cells of tables, and are never held one by one.
    size
        |Q|: the number of queries kept.
    denominator
        D: the least common denominator of the weights of the queries kept.
    """

    domain: Domain
    text: str
    stated: int
    listed: tuple[Query, ...]
    cells: tuple[Cells, ...] = ()
    size: int = field(init=False, compare=False, repr=False)
    denominator: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", sum(block.size for block in self.cells) + len(self.listed))
        object.__setattr__(self, "denominator", math.lcm(*{query.denominator for query in self.listed}))

    @classmethod
    def reduced(
        cls,
        domain: Domain,
        text: str,
        queries: Iterable[Query],
        tables: Iterable[tuple[int, ...]] = (),
    ) -> "Workload":
        """
        Keep one of each group of queries with equal errors, in the first one's place, and no constant.

        Parameters
        ----------
        domain
            The universe.
        text
            The workload as its class writes it.
        queries
            Those that are held one by one.
        tables
            Sets of columns, of whose tables every cell is a query, too; they come before `queries`.

        Raises
        ------
        ValueError
            Rules that take long to enforce on these columns, or a common denominator of 2^62 or more.
        """
        sets, listed = list(tables), list(queries)
        looked_at = () if domain.valid is None else (query.columns(domain) for query in listed)
        compared = {*sets, *looked_at}
        marks = marks_for(domain, compared)
        if marks is None:
            check_rules(domain, compared, text)
        blocks = reduced_cells(domain, sets, marks)
        stated = sum(math.prod(domain.sizes[c] for c in columns) for columns in sets) + len(listed)
        key, dropped = key_of(domain, marks), in_cells(domain, blocks, marks) if blocks and listed else None
        kept: dict[Hashable, Query] = {}
        for query in listed:
            identity = key(query)
            if identity is None or (dropped is not None and dropped(query)):
                continue
            # of several, the least denominator: the guarantee under add-remove depends on it
            if query.denominator < kept.setdefault(identity, query).denominator:
                kept[identity] = query
        workload = cls(domain, text, stated, tuple(kept.values()), blocks)
        if workload.denominator >= MAX_TOTAL:
            raise ValueError("the weights of the queries need a common denominator of 2^62 or more")
        return workload

    @property
    def queries(self) -> tuple[Query, ...]:
        """The queries kept, one by one; ValueError where they are too many to list."""
        if not self.cells:
            return self.listed
        self._check_listing()
        if sum(block.size * block.cells for block in self.cells) > MAX_MATRIX:
            raise ValueError(f"{self.text}: the queries have too many weights to list one by one: {LESS}")
        return (*(query for block in self.cells for query in block.queries(self.domain)), *self.listed)

    @property
    def labels(self) -> tuple[str, ...]:
        """Readable names of the queries kept; ValueError where they are too many to list (see `label`)."""
        if not self.cells:
            return tuple(query.label for query in self.listed)
        self._check_listing()
        cells = (
            block.label(self.domain, cell)
            for block in self.cells
            for cell in np.flatnonzero(block.kept).tolist()
        )
        return (*cells, *(query.label for query in self.listed))

    def label(self, number: int) -> str:
        """Name one query, by its number."""
        starts = list(accumulate((block.size for block in self.cells), initial=0))
        if not 0 <= number < self.size:
            raise ValueError(f"there are {self.size} queries: no query {number}")
        if number >= starts[-1]:
            return self.listed[number - starts[-1]].label
        at = bisect_right(starts, number) - 1
        block, within = self.cells[at], number - starts[at]
        cell = within if block.dropped is None else np.flatnonzero(block.kept)[within]
        return block.label(self.domain, int(cell))

    @property
    def tables(self) -> tuple[tuple[int, ...], ...]:
        """The sets of columns that queries look at, each once, by their number of columns, then in order."""
        sets = dict.fromkeys(block.columns for block in self.cells)
        sets.update(dict.fromkeys(query.columns(self.domain) for query in self.listed))
        return tuple(sorted(sorted(sets), key=len))

    @property
    def mean_squares(self) -> Fraction:
        """The largest mean of f^2 or of (1 - f)^2, whichever is less, over the cells of all columns."""
        cells = (Fraction(1, block.cells) for block in self.cells)
        listed = (min(_mean_square(self.domain, q), _mean_square(self.domain, q, True)) for q in self.listed)
        return max((*cells, *listed), default=Fraction(0))

    def answers(self, rows: Rows) -> Integers:
        """Return D times the sum of each query over the rows: int64, shape (size,), exact.

        Cost: distinct rows times distinct attribute sets, and the cells of tables. No table of all cells
        is needed.

        Raises
        ------
        ValueError
            The rows are of another domain, or n D reaches 2^62.
        """
        if rows.domain != self.domain:
            raise ValueError("the rows and the workload are over different domains")
        denominator = self.denominator
        if rows.n * denominator >= MAX_TOTAL:
            raise ValueError("rows of the data times the common denominator of the queries reach 2^62")
        codes, answers = rows.codes(), np.zeros(self.size, dtype=np.int64)
        sums = sums_of_cells(self.domain, self.cells, codes, rows.counts)
        at = len(sums)
        answers[:at] = denominator * sums
        groups: dict[tuple[tuple[int, ...], bool], list[int]] = defaultdict(list)
        for j, query in enumerate(self.listed):
            groups[query.attributes, query.sizes is not None].append(j)
        for (attributes, of_columns), members in groups.items():
            if of_columns:
                sizes = [self.domain.sizes[c] for c in attributes]
                cells = self.domain.cells_of(codes, attributes)
                table = bincounted(cells, rows.counts, math.prod(sizes))
            else:
                chosen = self.domain.bits(codes, attributes)
                if any(self.listed[j].weights is not None for j in members):
                    table = np.zeros(1 << len(attributes), dtype=np.int64)
                    np.add.at(table, settings(chosen), rows.counts)
            for j in members:
                weights = self.listed[j].weights
                if weights is None:
                    total = int(rows.counts[odd(chosen)].sum())
                else:
                    total = int(np.array(weights, dtype=np.int64) @ table)
                answers[at + j] = total * (denominator // self.listed[j].denominator)
        return answers

    def matrix(self) -> Integers:
        """Return D times each query on each cell: int64, shape (size, N), cells in domain order.

        ValueError beyond 2^20 cells or 2^27 entries.
        """
        domain = self.domain
        if not domain.listable or self.size * domain.size > MAX_MATRIX:
            if domain.binary:
                raise ValueError(
                    f"a table of {self.size} queries by 2^{len(domain.attributes)} cells is too large: "
                    f"at most {MAX_TABLE_ATTRIBUTES} attributes and {MAX_MATRIX} entries"
                )
            many = count_text(domain.size if domain.valid_decided else domain.product)
            raise ValueError(
                f"a table of {self.size} queries by {many} cells is too large: "
                f"at most 2^{MAX_TABLE_ATTRIBUTES} cells and {MAX_MATRIX} entries"
            )
        cells, denominator, at = domain.table(), self.denominator, 0
        table = np.empty((self.size, len(cells)), dtype=np.int64)
        for block in self.cells:
            held = np.flatnonzero(block.kept)[:, None] == block.cells_of(domain, cells)
            table[at : at + block.size] = held * denominator
            at += block.size
        for j, query in enumerate(self.listed, start=at):
            table[j] = query.on(domain, cells) * (denominator // query.denominator)
        return table

    def _check_listing(self) -> None:
        if self.size > MAX_QUERIES:
            raise ValueError(f"{self.text}: {self.size} queries are too many to list one by one: {LESS}")


def _mean_square(domain: Domain, query: Query, negated: bool = False) -> Fraction:
    """Return the mean of f^2 over all cells, or of (1 - f)^2."""
    columns = query.columns(domain)
    wide = math.prod(domain.sizes[c] for c in columns) > MAX_CELLS and query.weights is None
    if wide or (query.weights is None and all(domain.columns[c].yes_no for c in columns)):
        weights: Iterable[int] = (0, 1)  # of a wide parity a bound: f^2 + (1 - f)^2 is at most 1
    elif query.weights is not None and (domain.binary or query.sizes is not None):
        weights = query.weights
    else:
        weights = query.over_columns(domain).reshape(-1).tolist()
    unit, squares = query.denominator, [(query.denominator - w if negated else w) ** 2 for w in weights]
    return Fraction(sum(squares), unit * unit * len(squares))
