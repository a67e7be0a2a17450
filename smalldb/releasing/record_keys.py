"""What stands in the public record of a release, key by key."""

from typing import Any, NotRequired, TypedDict


class Privacy(TypedDict):
    """What is guaranteed to a person, exactly; without a delta, it is pure."""

    # of all that one person's rows change; no delta: it is 0
    epsilon: str
    delta: NotRequired[str]
    # of a release that is one step of bounded range, its parameter: the width of the interval in which the
    # loss lies. None: it is no such step.
    bounded_range: str | None
    # of zero-concentrated privacy, for the worst of the ways that the release may have gone
    rho: NotRequired[str]
    # those of the losses of its steps, where these were fixed in advance
    laws: NotRequired[list[dict[str, Any]]]
    # of each row, where SmallDB was calibrated: what the exponential mechanism was run with
    internal_epsilon: NotRequired[str]
    rows_per_person: NotRequired[int]  # where a person can have more than one row: how many at most
    unit: NotRequired[str]  # of related tables: parents by their key, with children by their link


class Queries(TypedDict):
    """What was to be answered."""

    text: str  # as `queries.spec` reads it
    stated: int  # how many queries that text states
    # how many are left of them: of those that always have one answer, or that of another one, none is
    reduced: int


class RecordedColumn(TypedDict):
    """A column and what its categories are called; of one with an order, what orders them."""

    name: str  # of the column
    places: list[str]  # what each category is called
    # whether it is a yes/no column, or another one whose categories have an order; left out: it is not
    yes_no: NotRequired[bool]
    ordered: NotRequired[bool]
    cuts: NotRequired[list[str]]  # where bins begin, but for the first
    # the least and the largest number of each category; None: a gap, or no end
    ranges: NotRequired[list[list[float | None] | None]]


class RecordedPairs(TypedDict):
    """Which pairs of columns were measured, by whether dependence stands out of the noise."""

    learned: list[list[str]]
    quiet: list[list[str]]


class Universe(TypedDict):
    """Which rows can exist."""

    attributes: list[str]  # the names of all yes/no attributes by which columns are coded
    columns: NotRequired[list[RecordedColumn]]  # where they are not all yes/no
    valid: str | list[str] | None  # rules; None: all rows can exist


class RecordedLearning(TypedDict):
    """A column whose categories were learned from the data, and what that cost of the whole."""

    column: str  # its name
    what: str  # "values" or "cuts"
    # what was paid for them, of the guarantee of all
    epsilon: str
    delta: str | None


RecordedStart = TypedDict(
    "RecordedStart",
    {
        "is": str,  # what the public start is, as the curator says
        "sha256": str,  # of its rows as codes
        "rows": str,  # "start": synthetic rows are rows of the start; "model": they are made from its tables
        "believed": NotRequired[bool],  # whether a released number said that it is near; left out in a plan
        "left_out": NotRequired[str],  # a column that the data relate to others otherwise than the start does
    },
)


class RecordedFiner(TypedDict):
    """The finer bins of a column: what their counts cost, and these, with noise, once they are released."""

    column: str  # its name
    cuts: list[str]  # where the finer bins begin, but for the first
    epsilon: str  # what was paid for their counts, of the guarantee of all
    noise: NotRequired[dict[str, Any]]  # of a count: its name and its parameters
    values: NotRequired[list[int]]  # the counts with noise


class RecordedTable(TypedDict):
    """One of several related tables, and what was measured of it; of children by walks from their parent."""

    rows: int  # of the synthetic table
    key: NotRequired[str]  # of parents, the column that tells them apart
    # of children: their parent's table, the column that holds its key, and how many are told apart
    parent: NotRequired[str]
    link: NotRequired[str]
    most: NotRequired[int]
    weights: NotRequired[dict[str, int]]  # a child of s weighs `unit` / max(s, `cap`)
    # its part of the guarantee, and what was measured by which strategy
    epsilon: str
    strategy: str
    columns: NotRequired[list[RecordedColumn]]
    measurements: NotRequired[list[dict[str, Any]]]


class RecordedLine(TypedDict):
    """Which line of a ledger paid for a release: by it an old copy of the ledger is known."""

    checksum: str  # of that line and all before it
    release_id: NotRequired[str]  # what the caller named the release


class Versions(TypedDict):
    """The version of the program that made the release."""

    smalldb: str


class Record(TypedDict):
    """The public record of a release."""

    schema: int  # the version of this form
    # what made the release; a strategy is of marginals, candidates are of SmallDB
    mechanism: str
    strategy: NotRequired[str]
    candidates: str | None
    # what was asked for, of each row; delta None: it must be pure
    epsilon: str
    delta: str | None
    neighbours: str  # "replace-one" or "add-remove"
    privacy: Privacy  # what is guaranteed
    rows: int | None  # of the synthetic table; None in a plan where only the release will tell
    n: NotRequired[int | None]  # rows of the data, where they are public; left out where they are not
    # what was to be answered, and which rows can exist
    queries: Queries
    universe: Universe
    # the columns and tables that were measured before others, where some were asked for
    target: NotRequired[str | list[str]]
    measure_first: NotRequired[list[list[str]]]
    # the columns whose categories were learned, or that have finer bins
    learned: NotRequired[list[RecordedLearning]]
    finer: NotRequired[list[RecordedFiner]]
    # the release of the same data that is refined: its epsilon (not in this one's guarantee), a digest of its
    # measurements, and how many of the first ones here are its own
    refines: NotRequired[dict[str, Any]]
    start: NotRequired[RecordedStart]  # the public table that the release starts from
    # the columns of which was measured where numbers lie in their bins, and what was paid for that: an
    # epsilon or a rho, of the guarantee of all
    means: NotRequired[dict[str, Any]]
    # what is proved or estimated of the error, and beta, with which it may fail
    bounds: NotRequired[dict[str, Any] | None]
    # all numbers with noise, in the order of their release, and which pairs of columns they tell of; left out
    # where there are none, or too many
    measurements: NotRequired[list[dict[str, Any]]]
    pairs: NotRequired[RecordedPairs]
    tables: NotRequired[dict[str, RecordedTable]]  # of related tables: each of them, parents first
    ledger: NotRequired[RecordedLine]  # where one paid
    schema_unseen: NotRequired[
        bool
    ]  # true where the curator states that no look at the data went into the schema
    private: bool  # false where the randomness came from a seed or a script
    warning: NotRequired[str]  # where epsilon is large
    versions: Versions  # of the program
