"""The public universe: the product of columns, and which of its rows can exist."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod

import numpy as np

from queries.arrays import Booleans, Codes, Integers, pd
from queries.columns import Bits, Column
from queries.encoding import DataError, check_columns, codes_dtype, read_column, write_column
from queries.expressions import count_text, joined
from queries.rule_tables import (
    Truth,
    broken,
    compiled,
    finder,
    nearest,
    owners,
    repeated,
    rule_texts,
    ruled_out_message,
    unknown,
)
from queries.rules import Parts, Relation, Rule, count, listed, projected

MAX_TABLE_ATTRIBUTES = 20  # a table of all cells is made up to 2^20
MAX_CELLS = 1 << MAX_TABLE_ATTRIBUTES
FEW_CELLS = 1 << 10  # that rules leave: what stands together is read off these, whatever rules there are

__all__ = ["MAX_CELLS", "MAX_TABLE_ATTRIBUTES", "Bits", "DataError", "Domain", "Integers"]


@dataclass(frozen=True, slots=True)
class Domain:
    """The universe of rows: the product of the columns' categories, or the part of it that can exist.

    Cells are numbered in the order of ``itertools.product``: the first column is the most significant
    digit. A column of a name alone is a yes/no attribute, so a list of names is the universe {0,1}^d.

    Parameters
    ----------
    columns
        Columns, or the names of yes/no columns. Names of columns and of attributes are distinct. Or how many
        yes/no columns, which are called x1, x2, ...
    valid
        Which rows can exist: a predicate text such as ``"~(child & married)"``, or several of them (rules,
        which all must hold); None: all. An AND is taken apart, so each of up to 2^14 rules is a table over
        the few columns that it looks at: none lists the universe.
    relations
        What those texts of `valid` mean that are no predicates.

    Attributes
    ----------
    attributes
        Names of the yes/no attributes of all columns, in order.
    sizes
        The number of categories of each column.
    binary
        Whether every column is one yes/no attribute.

    Examples
    --------
    >>> Domain(["a", "b"]).table().tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> Domain(["a", "b"], valid="a | ~b").cells().tolist()
    [0, 2, 3]
    >>> domain = Domain([Column("job", ["none", "part", "full"]), "smoker"], valid="~(`job=none` & smoker)")
    >>> domain.size, domain.attributes
    (5, ('job=none', 'job=part', 'job=full', 'smoker'))
    """

    columns: tuple[Column, ...]
    valid: str | tuple[str, ...] | None = None
    relations: tuple[Relation, ...] = field(default=(), repr=False)
    attributes: tuple[str, ...] = field(init=False, compare=False, repr=False)
    sizes: tuple[int, ...] = field(init=False, compare=False, repr=False)
    binary: bool = field(init=False, compare=False, repr=False)
    _owners: tuple[tuple[int, int], ...] = field(init=False, compare=False, repr=False)

    def __init__(
        self,
        columns: Iterable[Column | str] | int,
        valid: str | Iterable[str] | None = None,
        relations: Iterable[Relation] = (),
    ) -> None:
        if isinstance(columns, str | Column):
            raise TypeError("attributes must be a list of names, or of columns, not one alone")
        if isinstance(columns, bool):
            raise TypeError("attributes must be a list of names, or of columns, not a bool")
        if isinstance(columns, int):
            if not 1 <= columns <= 9999:
                raise ValueError("a domain has from 1 to 9999 yes/no attributes that are only counted")
            columns = [f"x{i + 1}" for i in range(columns)]
        if isinstance(columns, Mapping):
            raise TypeError("a domain takes a list: Domain([Column(name, categories), ...]), not a mapping")
        every_column = tuple(c if isinstance(c, Column) else Column(c) for c in columns)
        if not every_column:
            raise ValueError("a domain needs at least one attribute")
        fields = {
            "columns": every_column,
            "attributes": tuple(a for c in every_column for a in c.attributes),
            "sizes": tuple(c.size for c in every_column),
            "binary": all(c.yes_no for c in every_column),
            "_owners": owners(every_column),
            "relations": tuple(relations),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        texts = rule_texts(valid)
        if any(not isinstance(rule, str) for rule in texts):
            raise TypeError("valid must be a predicate text, or several")
        wrong = [
            *repeated(every_column),
            *unknown(every_column, texts, [relation.text for relation in self.relations]),
        ]
        if wrong:
            raise ValueError(joined(wrong))
        object.__setattr__(self, "valid", valid if isinstance(valid, str) else tuple(texts) or None)
        if texts and not (self.size if self.valid_decided else projected(self.rules, self.sizes, ()).any()):
            raise ValueError("valid leaves no cell: no row could exist")

    def __hash__(self) -> int:
        return hash((self.sizes, self.valid))  # columns are large: they are compared where these agree

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def free(self) -> bool:
        """Whether the universe is all of {0,1}^d."""
        return self.binary and self.valid is None

    @property
    def product(self) -> int:
        """The number of cells of all columns, those included that cannot exist."""
        return prod(self.sizes)

    @property
    def size(self) -> int:
        """N, the number of cells that can exist; ValueError if the rules are too many to count it."""
        if self.valid is None:
            return self.product
        if self.product <= MAX_CELLS:
            return len(self.cells())
        if (size := _count(self)) is None:
            raise ValueError(
                "valid: the rows that the rules leave cannot be counted: use fewer rules that meet"
            )
        return size

    @property
    def valid_decided(self) -> bool:
        """Whether it is known that some row keeps all rules (and how many: `size`)."""
        return self.valid is None or self.product <= MAX_CELLS or _count(self) is not None

    @property
    def unlike_binary(self) -> str | None:
        """What stands against a universe of yes/no columns, for what needs one; None: nothing.

        >>> Domain(["smoker", Column("job", ["none", "part", "full"])]).unlike_binary
        "columns of two categories: column 'job' has 3"
        """
        for column in self.columns:
            if column.size > 2:
                return f"columns of two categories: column {column.name!r} has {column.size}"
        others = [column.name for column in self.columns if not column.yes_no]
        return f"yes/no columns: column {others[0]!r} has two categories with labels" if others else None

    @property
    def listable(self) -> bool:
        """Whether the universe is small enough for a table of its cells: N <= 2^20."""
        if self.product <= MAX_CELLS:
            return True
        return self.valid_decided and self.size <= MAX_CELLS and _joined(self) is not None

    @property
    def rules(self) -> tuple[Rule, ...]:
        """What `valid` rules out, as tables over few columns; one table a set of columns."""
        return _rules(self)

    @property
    def ruled(self) -> frozenset[int]:
        """The columns that `valid` looks at."""
        return frozenset(c for rule in self.rules for c in rule.columns)

    def allowed(self, columns: Sequence[int]) -> Booleans:
        """Return which settings of these columns, ascending, can exist: bool, shaped by their sizes."""
        return _allowed(self, tuple(columns))

    def enforced(self, sets: Collection[tuple[int, ...]]) -> int:
        """Return in how many steps `allowed` is found for some sets of columns, a step some 20 us."""
        codes = _few(self)
        return _parts(self).steps(sets) if codes is None else len(sets) * (1 + (len(codes) >> 10))

    def cells(self) -> Integers:
        """Return the numbers of the cells that can exist, ascending, shape (N,), int64 (read-only).

        ValueError beyond 2^20 cells.
        """
        return _cells(self)

    def table(self) -> Codes:
        """Return the cells that can exist as codes, shape (N, C); of yes/no columns 0/1, uint8."""
        return self.codes_of(self.cells())

    def codes_of(self, cells: Integers) -> Codes:
        """Return the codes of cells given by their numbers, shape (r, C)."""
        codes = np.empty((len(cells), len(self.sizes)), dtype=codes_dtype(self.sizes))
        for c in range(len(self.sizes) - 1, -1, -1):
            cells, codes[:, c] = np.divmod(cells, self.sizes[c])
        return codes

    def cells_of(self, codes: Codes, columns: Sequence[int] | None = None) -> Integers:
        """Number the settings of some columns (None: all) in rows of codes (r, C): int64, shape (r,)."""
        cells = np.zeros(len(codes), dtype=np.int64)
        for c in range(len(self.sizes)) if columns is None else columns:
            cells *= self.sizes[c]
            cells += codes[:, c]
        return cells

    def bits(self, codes: Codes, attributes: Sequence[int] | None = None) -> Bits:
        """Tell which attributes (None: all) hold in rows of codes: 0/1, shape (r, attributes), uint8."""
        if self.binary:
            return codes if attributes is None else codes[:, list(attributes)]
        chosen = range(len(self.attributes)) if attributes is None else attributes
        held = np.empty((len(codes), len(chosen)), dtype=np.uint8)
        for i, attribute in enumerate(chosen):
            column, within = self.column_of(attribute)
            held[:, i] = self.columns[column].table[codes[:, column], within]
        return held

    def column_of(self, attribute: int) -> tuple[int, int]:
        """Return the column that an attribute (by its position) belongs to, and its position there."""
        return self._owners[attribute] if not self.binary else (attribute, 0)

    def find(self, name: str) -> Truth | None:
        """Return the column that a name speaks of, and in which of its categories it holds; None: unknown.

        Names are attributes, categories (``job=part``), and of ordered columns ranges (``age>=40``).
        """
        return finder(self.columns)(name)

    def nearest(self, name: str) -> str:
        """Return ``"; did you mean ...?"`` where an attribute or a category has a name like this."""
        return nearest(self.columns, name)

    def contains(self, codes: Codes) -> Booleans:
        """Tell which rows of codes (shape (r, C)) are cells that can exist."""
        sizes = np.array(self.sizes)
        if len(codes) and (codes.max(axis=0) < sizes).all():  # nearly always, and in a quarter of the time
            inside: Booleans = np.ones(len(codes), dtype=bool)
        else:
            inside = np.less(codes, sizes).all(axis=1)
        if self.valid is None:
            return inside
        clipped = codes if inside.all() else np.where(inside[:, None], codes, 0)
        for rule in self.rules:
            inside = np.logical_and(inside, rule.holds(clipped))
        return inside

    def broken(self, codes: Codes) -> dict[int, Booleans]:
        """Tell which of some rows that cannot exist break which rule, by its number."""
        return broken(self.valid, self.find, self.sizes, codes, self.relations)

    def encode(self, frame: pd.DataFrame) -> Codes:
        """Read a table as codes, shape (n, C), columns as here; of yes/no columns 0/1, uint8.

        The frame's columns may stand in any order but must be the domain's, no more and no less. A yes/no
        column is bool or 0/1 integers; see `queries.encoding.read_column` for the others.

        Raises
        ------
        ValueError, TypeError
            Wrong columns or dtypes (seen without looking at a value).
        DataError
            A value that is none of its column's categories, a gap, or a row that `valid` rules out.
        """
        check_columns(frame, self.names, "an attribute" if self.binary else "a column")
        codes = np.empty((len(frame), len(self.columns)), dtype=codes_dtype(self.sizes), order="F")
        for c, column in enumerate(self.columns):
            codes[:, c] = read_column(frame[column.name], column)
        if self.valid is not None and not (kept := self.contains(codes)).all():
            raise DataError(ruled_out_message(self.valid, self.broken(codes[~kept])))
        return codes

    def decode(self, codes: Codes, like: pd.DataFrame | None = None) -> pd.DataFrame:
        """Write rows of codes as a table, in the columns, order and dtypes of `like` where it is given.

        Yes/no columns and integers are int64, other columns their labels (bins, too: what is inside a
        bin is not known).
        """
        columns = {
            column.name: write_column(codes[:, c], column, None if like is None else like[column.name])
            for c, column in enumerate(self.columns)
        }
        frame = pd.DataFrame(columns, columns=list(self.names))
        return frame if like is None else frame[list(like.columns)]


@lru_cache(maxsize=32)
def _rules(domain: Domain) -> tuple[Rule, ...]:
    if domain.valid is None:
        return ()
    stated = {relation.text for relation in domain.relations}
    texts = [text for text in rule_texts(domain.valid) if text not in stated]
    of_relations = [rule for relation in domain.relations for rule in relation.rules]
    return compiled(texts, domain.find, domain.sizes, of_relations)


@lru_cache(maxsize=32)
def _parts(domain: Domain) -> Parts:
    return Parts.of(domain.rules, domain.sizes)


@lru_cache(maxsize=32)
def _count(domain: Domain) -> int | None:
    number = count(domain.rules, domain.sizes)
    if number is None and (cells := _joined(domain)) is not None:
        number = len(cells)
    return number


@lru_cache(maxsize=4)
def _few(domain: Domain) -> Codes | None:
    """Return the cells if what stands together is read off them one by one; None: off the rules."""
    return domain.table() if domain.listable and domain.size <= FEW_CELLS else None


@lru_cache(maxsize=4096)
def _allowed(domain: Domain, columns: tuple[int, ...]) -> Booleans:
    if (codes := _few(domain)) is not None:
        allowed = np.zeros([domain.sizes[c] for c in columns], dtype=bool)
        allowed[tuple(codes[:, c] for c in columns)] = True
    else:
        allowed = _parts(domain).allowed(columns)
    allowed.setflags(write=False)
    return allowed


@lru_cache(maxsize=32)
def _cells(domain: Domain) -> Integers:
    if domain.product <= MAX_CELLS:
        cells = np.arange(domain.product, dtype=np.int64)
        if domain.valid is not None:
            held = np.ones(domain.sizes, dtype=bool)
            for rule in domain.rules:
                shape = [k if c in rule.columns else 1 for c, k in enumerate(domain.sizes)]
                held &= rule.allowed.reshape(shape)
            cells = np.flatnonzero(held)
    elif domain.listable and (joined := _joined(domain)) is not None:
        cells = joined
    elif domain.binary:
        raise ValueError(
            f"a table of all cells is made for at most {MAX_TABLE_ATTRIBUTES} attributes, "
            f"not {len(domain.attributes)}"
        )
    else:
        many = count_text(domain.size if domain.valid_decided else domain.product)
        raise ValueError(f"a table of all cells is made for at most 2^20 cells, not {many}")
    cells.setflags(write=False)
    return cells


@lru_cache(maxsize=32)
def _joined(domain: Domain) -> Integers | None:
    """List the cells that rules leave of a universe of more than 2^20; None: too many on the way."""
    return listed(domain.rules, domain.sizes)
