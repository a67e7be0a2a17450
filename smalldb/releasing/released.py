"""A release: the synthetic table with its public record, and what is for the curator alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import numpy as np

from queries import Rows, Workload
from queries.arrays import Integers, pd
from smalldb.counting import Census
from smalldb.exact.bits import BitSource, bit_source
from smalldb.exact.numbers import Number
from smalldb.mechanisms import Measurements
from smalldb.mechanisms.measurement_list import released_total
from smalldb.planning import Plan
from smalldb.releasing.record import stated_bound, stated_start, with_measurements
from smalldb.releasing.record_keys import Record
from smalldb.schema.linked_rows import Linked
from smalldb.showing import drawn as picture_of
from smalldb.showing import in_notebook, reported

if TYPE_CHECKING:
    from smalldb.inference import Answer
    from smalldb.inference.several_tables import Spelling
    from smalldb.releasing.evaluation import Evaluation, RelatedEvaluation
    from smalldb.releasing.imputed_tables import Copies


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Confidential:
    """What the curator may look at and must not publish: computed from the data, on access."""

    parts: Mapping[str, Any]  # what the mechanism tells, by name
    _workload: Workload
    real: Rows
    _synthetic: Rows

    def __repr__(self) -> str:
        return "<Confidential: computed from the data>"

    @property
    def census(self) -> Census | None:
        """How many candidates stand at each score; None for other mechanisms."""
        return self.parts.get("census")

    @property
    def trials(self) -> int | None:
        """Trials that rejection took; None for other mechanisms."""
        return self.parts.get("trials")

    @property
    def max_error(self) -> float:
        """The error of the release: max over the queries of |f(x) - f(y)|."""
        return float(max(self._errors(), default=Fraction(0)))

    @property
    def errors(self) -> pd.Series[float]:
        """|f(x) - f(y)| of each query kept, by its label (0 where n = 0)."""
        return pd.Series(list(map(float, self._errors())), index=list(self._workload.labels), dtype=float)

    def _errors(self) -> tuple[Fraction, ...]:
        if self.real.n == 0:  # such a table answers nothing
            return (Fraction(0),) * self._workload.size
        from smalldb.releasing.evaluation import evaluate

        return evaluate(self.real, self._synthetic, self._workload).errors


@final
class Release:
    """A synthetic table, or related ones, with the public record.

    Parameters
    ----------
    data, record, plan, codes, schema, measurements, of
        As below; no `data`: the codes as a table, which is made when it is asked for.
    confidential
        What is known of the data besides, for the curator; None: nothing. It does not travel with a copy.

    Attributes
    ----------
    data
        The synthetic table; of related tables, each by its name, parents first. May be published.
    record
        What was done, guaranteed and provable. May be published.
    plan
        What was decided before the data were read, from public numbers alone.
    codes
        The rows of `data` as codes of the universe's columns, shape (m, C). Of related tables, by name:
        parents with their numbers of children, and walks from a parent to a child.
    of
        Of related tables, the parent of each child, shape (m,); None: there is one table.
    schema
        What `data` was written by; None: the codes are their own labels.
    measurements
        The numbers with noise that were released on the way, in order: of all that is published, they say
        most of the data. Empty for mechanisms that draw a table at once; of related tables, by name. May be
        published.
    """

    __slots__ = ("__confidential", "__data", "codes", "measurements", "of", "plan", "record", "schema")

    def __init__(
        self,
        data: Any,
        record: Record,
        plan: Plan,
        codes: Any,
        schema: Any = None,
        confidential: Confidential | None = None,
        measurements: Any = None,
        of: Integers | None = None,
    ) -> None:
        self.__data = data  # None: the codes as a table, which is made when it is asked for
        self.record, self.plan, self.codes, self.schema, self.of = record, plan, codes, schema, of
        self.measurements = Measurements(plan.workload.domain, ()) if measurements is None else measurements
        self.__confidential = confidential

    def __repr__(self) -> str:
        if tables := self.record.get("tables"):
            sizes = ", ".join(f"{name} ({table['rows']} rows)" for name, table in tables.items())
            return f"<Release of {sizes}>"
        public = ("mechanism", "rows", "epsilon", "neighbours", "private")
        facts = ", ".join(f"{key} {value}" for key, value in self.record.items() if key in public)
        return f"<Release: {facts}>"

    def _repr_html_(self) -> str:
        return in_notebook(self)

    def __reduce__(self) -> tuple[type[Release], tuple[Any, ...]]:
        # what is private does not travel
        public = (self.data, self.record, self.plan, self.codes, self.schema)
        return Release, (*public, None, self.measurements, self.of)

    def __getstate__(self) -> None:
        return None

    def ask(self, question: str, *, level: Number = "0.95", population: bool = False) -> Answer:
        """
        Answer a question from what was released: an estimate, its interval, and how it is known. Public.

        Parameters
        ----------
        question
            A share, a conditional share, a mean or a difference: ``"death"``, ``"death | age>=80"``,
            ``"mean(income) where sex=f"``, ``"married - married | age<40"`` (`docs/asking.md`). Of related
            tables it is about children if it names a column of theirs; a column may be written with its
            table, as ``homes.rent``, and the number of children is a column such as "number of persons".
        level
            The probability that the interval covers the value of the confidential table.
        population
            Whether the interval is for the population of which the rows are a random sample.

        Raises
        ------
        TypeError, ValueError
            The question cannot be read, names what is not there, or cannot be met: in one line.
        """
        from smalldb.inference.answering import ask, ask_related

        how: dict[str, Any] = {"level": level, "population": population, "rows": self.rows}
        if self.of is not None:
            return ask_related(self.measurements, question, **how)  # type: ignore[arg-type]  # by table
        how |= {"bound": stated_bound(self.record), "start": stated_start(self.record)}
        return ask(self.measurements, question, workload=self.plan.workload, **how)

    def evaluate(self, real: Any) -> Evaluation | RelatedEvaluation:
        """Compare with the data, which the release does not keep. Confidential: computed from the data.

        Parameters
        ----------
        real
            The table, or the related ones by their names, as they were given to `smalldb.release`.
        """
        from smalldb.releasing.evaluation import evaluate, evaluate_related

        if self.of is not None:
            return evaluate_related(real, self.linked, self.schema)
        domain = self.plan.workload.domain if self.schema is None else None
        return evaluate(real, self.data, self.plan.workload, domain=domain, schema=self.schema)

    def plot(self) -> Any:
        """Draw the shares of the synthetic rows: a picture that a notebook shows. Extra ``plot``."""
        return picture_of(self)

    def report(self, **choices: Any) -> str:
        """Write the page about the release: HTML, for publication.

        Parameters
        ----------
        choices
            `title`, `publisher` and `table`, texts; `schema`, what the codes stand for; `account`, what a
            ledger says (`smalldb.reporting.page.About`).
        """
        return reported(self, **choices)

    def tables(
        self,
        count: int = 25,
        *,
        rows: int | None = None,
        rng: int | BitSource | None = None,
    ) -> Any:
        """
        Draw several tables from what was released, so that what is computed from them has an interval.

        They are draws of the confidential table given the published measurements: multiple imputations, at no
        cost of privacy. Compute the same from each, and combine by Rubin's rule:
        `smalldb.inference.combine` or ``interval``, ``mitools`` in R, ``mi estimate`` in Stata. The
        one synthetic table of the release is the best estimate, and no draw.

        Columns that were not measured together are independent in them, given the columns in between: that
        is an assumption, and intervals of what looks across such columns do not count it.

        Parameters
        ----------
        count
            How many tables. Each has n rows, or about as many where n is private. Of related tables, so many
            times both tables by their names, in a list.
        rows
            At most n: a random sample of so many rows of each draw, where whole tables are too large. What is
            computed from them is less exact, and their intervals tell it. None: all rows.
        rng
            None, a seed, or a `BitSource`; the same seed gives the same tables.

        Raises
        ------
        ValueError
            No measurements were released; `rows` are given of related tables; or intervals would be too
            narrow, because most cells of three and more columns that were measured together are empty, or
            contrasts have so much noise that hardly any table has them.

        Examples
        --------
        >>> import pandas as pd, smalldb
        >>> from smalldb.inference import interval
        >>> people = pd.DataFrame({"smoker": [1, 0, 0, 0] * 50, "ill": [1, 1, 0, 0] * 50})
        >>> release = smalldb.release(people, "marginals:2", epsilon=5, mechanism="marginals", seed=1)
        >>> tables = release.tables(25, rng=1)
        >>> low, high = interval(lambda table: table.ill.mean(), tables)
        >>> low <= 0.5 <= high
        True
        """
        from smalldb.releasing.imputed_tables import imputed, streamed

        if self.of is not None:
            return [table for table, _ in self.copies(count, rows, bit_source(rng)).draws]
        stream = streamed(self.measurements, self.plan.n, count=count, rows=rows, rng=rng)
        return imputed(self._spelling, stream, self.measurements)

    def copies(self, count: int, rows: int | None, coins: BitSource) -> Copies:
        """Draw several tables one at a time, as they are written to files: see `tables`.

        Parameters
        ----------
        count, rows, coins
            As there, but `rows` may be more than there are; and what they are drawn by.
        """
        from smalldb.releasing.imputed_tables import related_copies, streamed

        if self.of is not None:
            return related_copies(self, count, rows, coins)
        total = released_total(self.measurements) if self.plan.n is None else self.plan.n
        some = None if rows is None or rows >= total else rows
        stream, spelling = streamed(self.measurements, self.plan.n, count=count, rows=some, rng=coins), None
        if self.schema is not None:  # those of yes/no columns are written from their codes
            spelling = self._spelling
        draws = ((spelling and spelling.table(codes, seed), codes) for codes, seed in stream.draws)
        return stream._replace(draws=draws)

    @property
    def _spelling(self) -> Spelling:
        from smalldb.inference.several_tables import Spelling

        return Spelling(self.plan.workload.domain, self.schema, self.data)

    @property
    def data(self) -> Any:
        """The synthetic table. May be published."""
        if self.__data is None:
            self.__data = self.plan.workload.domain.decode(self.codes)
        return self.__data

    @property
    def rows(self) -> Any:
        """The synthetic table as counted rows; of related tables, by name."""
        if self.of is None:
            return Rows.from_codes(self.plan.workload.domain, self.codes)
        return {
            name: Rows.from_codes(self.measurements[name].domain, codes) for name, codes in self.codes.items()
        }

    @property
    def linked(self) -> Linked:
        """Related tables as codes of their columns, and the parent of each child."""
        parents, walks = (codes.astype(np.int64) for codes in self.codes.values())
        assert self.of is not None
        return Linked(parents[:, :-1], walks[:, parents.shape[1] :], self.of)

    @property
    def confidential(self) -> Confidential:
        """Numbers computed from the data, for the curator's eyes only; not in pickles and copies."""
        if self.__confidential is None:
            raise ValueError(
                "there is no confidential part: it stays with the original release of one table; "
                "release.evaluate(data) compares with the data"
            )
        return self.__confidential


def fully_measured(release: Release) -> Record:
    """Return the record with all measurements, however many: that of related tables has them."""
    if release.of is not None:
        return release.record
    return with_measurements(release.record, release.plan, release.measurements, release.rows, None)


RelatedRelease = Release
"""The former name of a release of related tables."""
