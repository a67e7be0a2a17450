"""What the public record of a release holds; `record.schema.json` says the same to other programs."""

from typing import Any, NotRequired, TypedDict


class Privacy(TypedDict):
    """What is guaranteed to a person, exactly; without a delta, it is pure.

    Attributes
    ----------
    epsilon, delta
        Of all that one person's rows change; no delta: it is 0.
    bounded_range
        Of a release that is one step of bounded range, its parameter: the width of the interval in which the
        loss lies. None: it is no such step.
    rho
        Of zero-concentrated privacy, for the worst of the ways that the release may have gone.
    laws
        Those of the losses of its steps, where these were fixed in advance.
    internal_epsilon
        Of each row, where SmallDB was calibrated: what the exponential mechanism was run with.
    rows_per_person
        Where a person can have more than one row: how many at most.
    """

    epsilon: str
    delta: NotRequired[str]
    bounded_range: str | None
    rho: NotRequired[str]
    laws: NotRequired[list[dict[str, Any]]]
    internal_epsilon: NotRequired[str]
    rows_per_person: NotRequired[int]


class Queries(TypedDict):
    """What was to be answered.

    Attributes
    ----------
    text
        As `queries.spec` reads it.
    stated
        How many queries that text states.
    reduced
        How many are left of them: of those that always have one answer, or that of another one, none is.
    """

    text: str
    stated: int
    reduced: int


class RecordedColumn(TypedDict):
    """A column and what its categories are called; of one with an order, what orders them.

    Attributes
    ----------
    name
        Of the column.
    places
        What each category is called.
    yes_no, ordered
        Whether it is a yes/no column, or another one whose categories have an order; left out: it is not.
    cuts
        Where bins begin, but for the first.
    ranges
        The least and the largest number of each category; None: a gap, or no end.
    """

    name: str
    places: list[str]
    yes_no: NotRequired[bool]
    ordered: NotRequired[bool]
    cuts: NotRequired[list[str]]
    ranges: NotRequired[list[list[float | None] | None]]


class RecordedPairs(TypedDict):
    """Which pairs of columns were measured, by whether dependence stands out of the noise."""

    learned: list[list[str]]
    quiet: list[list[str]]


class Universe(TypedDict):
    """Which rows can exist.

    Attributes
    ----------
    attributes
        The names of all yes/no attributes by which columns are coded.
    columns
        Where they are not all yes/no.
    valid
        Rules, or the numbers of the cells that can exist; None: all can.
    """

    attributes: list[str]
    columns: NotRequired[list[RecordedColumn]]
    valid: str | list[str | int] | None


class RecordedLearning(TypedDict):
    """A column whose categories were learned from the data, and what that cost of the whole.

    Attributes
    ----------
    column
        Its name.
    what
        "values" or "cuts".
    epsilon, delta
        What was paid for them, of the guarantee of all.
    """

    column: str
    what: str
    epsilon: str
    delta: str | None


class RecordedFiner(TypedDict):
    """The finer bins of a column: what their counts cost, and these, with noise, once they are released.

    Attributes
    ----------
    column
        Its name.
    cuts
        Where the finer bins begin, but for the first.
    epsilon
        What was paid for their counts, of the guarantee of all.
    noise
        Of a count: its name and its parameters.
    values
        The counts with noise.
    """

    column: str
    cuts: list[str]
    epsilon: str
    noise: NotRequired[dict[str, Any]]
    values: NotRequired[list[int]]


class Versions(TypedDict):
    """The version of the program that made the release."""

    smalldb: str


class Record(TypedDict):
    """The public record of a release.

    Attributes
    ----------
    schema
        The version of this form.
    mechanism, strategy, candidates
        What made the release; a strategy is of marginals, candidates are of SmallDB.
    epsilon, delta
        What was asked for, of each row; delta None: it must be pure.
    neighbours
        "replace-one" or "add-remove".
    privacy
        What is guaranteed.
    rows
        Of the synthetic table; None in a plan where only the release will tell.
    n
        Rows of the data, where they are public; left out where they are not.
    queries, universe
        What was to be answered, and which rows can exist.
    target, measure_first
        The columns and tables that were measured before others, where some were asked for.
    learned, finer
        The columns whose categories were learned, or that have finer bins.
    bounds
        What is proved or estimated of the error, and beta, with which it may fail.
    measurements, pairs
        All numbers with noise, in the order of their release, and which pairs of columns they tell of; left
        out where there are none, or too many.
    private
        False where the randomness came from a seed or a script.
    warning
        Where epsilon is large.
    versions
        Of the program.
    """

    schema: int
    mechanism: str
    strategy: NotRequired[str]
    candidates: str | None
    epsilon: str
    delta: str | None
    neighbours: str
    privacy: Privacy
    rows: int | None
    n: NotRequired[int | None]
    queries: Queries
    universe: Universe
    target: NotRequired[str | list[str]]
    measure_first: NotRequired[list[list[str]]]
    learned: NotRequired[list[RecordedLearning]]
    finer: NotRequired[list[RecordedFiner]]
    bounds: NotRequired[dict[str, Any] | None]
    measurements: NotRequired[list[dict[str, Any]]]
    pairs: NotRequired[RecordedPairs]
    private: bool
    warning: NotRequired[str]
    versions: Versions
