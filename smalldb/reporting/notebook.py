"""How results show themselves in a notebook: short tables with nothing confidential, and pictures."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from pathlib import Path
from typing import Any, final

from queries.frames import as_frame
from smalldb.auditing import Audit
from smalldb.counting import Census
from smalldb.counting.small import SmallDatabases
from smalldb.exact.numbers import Number, brief, positive, rounded_up, sized
from smalldb.mechanisms import Neighbours, Request
from smalldb.planning import Plan
from smalldb.releasing.evaluation import Evaluation
from smalldb.releasing.record import make_record
from smalldb.releasing.released import Release
from smalldb.reporting import visible
from smalldb.reporting.page import About, page
from smalldb.reporting.page.pictures import marginals
from smalldb.reporting.plots import plot_evaluation, plot_laws, plot_shares
from smalldb.reporting.plots_base import check_plotting
from smalldb.reporting.words import SEEDED, tell

CONFIDENTIAL = "computed from the data: it is shown by its methods alone, and is not for publication"
FIRST = 5  # rows
Facts = list[tuple[str, str]]


@final
@dataclass(frozen=True, slots=True, repr=False)
class Picture:
    """A picture that a notebook shows, as PNG. ``picture.png`` is its content."""

    png: bytes  # the content of a file
    confidential: bool  # whether it was computed from the data

    def __repr__(self) -> str:
        return f"<Picture: {'confidential, ' if self.confidential else ''}{len(self.png):,} bytes of PNG>"

    def _repr_png_(self) -> bytes:
        return self.png

    def save(self, path: str) -> None:
        """Write it to a file; its name must end in .png."""
        if not str(path).lower().endswith(".png"):
            raise ValueError(f"the picture is a PNG: its name must end in .png, not {str(path)!r}")
        Path(path).write_bytes(self.png)


def in_notebook(value: object) -> str:
    """Return a short table of a release, plan, census, audit or evaluation, as HTML."""
    match value:
        case Release():
            seeded = [("warning", SEEDED)] * (not value.record["private"])
            facts = tell(value.record, value.plan, value.measurements)
            return _table("Release", seeded + facts) + _rows(value)
        case Plan():
            return _table("Plan", tell(make_record(value, private=True), value))
        case Audit():
            return _table("Audit", audit_facts(value))
        case Census():
            methods = ".law(epsilon), .plot(epsilon), .levels, .counts"
            known = [("Candidates", f"{sized(value.total)} {value.candidates} of {value.rows} rows")]
            return _table("Census", [*known, ("Confidential", CONFIDENTIAL), ("Methods", methods)])
        case Evaluation():
            methods = ".worst(), .summary(epsilon=1), .by_column(epsilon=1), .plot()"
            return _table("Evaluation", [("Confidential", CONFIDENTIAL), ("Methods", methods)])
        case _:
            raise TypeError(f"no table is known for {type(value).__name__}")


def reported(release: Any, **choices: Any) -> str:
    """Write the page about a release; what is chosen is its schema, and the words of `About`."""
    schema = choices.pop("schema", None)
    return page(release, schema, about=About(**choices))


def audit_facts(audit: Audit) -> Facts:
    """Return what an audit says, in words; it is public."""
    return [
        ("Worst privacy loss", rounded_up(audit.loss[0], 16)),
        ("Allowed by theory", "unknown" if audit.cap is None else brief(audit.cap)),
        ("Range of the loss", rounded_up(audit.range[0], 6)),
        ("Databases", f"{audit.databases:,}"),
        ("Pairs of neighbours", f"{audit.pairs:,}"),
    ]


def drawn(value: object, epsilon: Number | Sequence[Number] = 1) -> Picture:
    """Draw a release, a census or an evaluation; `epsilon` is of a census: one or several."""
    check_plotting("it.png")
    match value:
        case Release():
            tables = [value.rows] if value.of is None else [*value.rows.values()]
            shown = [marginals(rows, value.plan.workload.domain.binary) for rows in tables]
            # walks begin with the columns of parents
            both = [*shown[0], *(each for of_table in shown[1:] for each in of_table[len(shown[0]) :])]
            return Picture(plot_shares(both, "png"), confidential=False)
        case Evaluation():
            return Picture(plot_evaluation(value.real_rows, value.synthetic_rows, "png"), confidential=True)
        case Census():
            several = epsilon if isinstance(epsilon, list | tuple) else [epsilon]
            candidates = [_candidates(value, positive(each, "epsilon")) for each in several]
            return Picture(plot_laws(value, candidates, "png"), confidential=True)
        case _:
            raise TypeError(f"no picture is known for {type(value).__name__}")


def _candidates(census: Census, epsilon: Fraction) -> SmallDatabases:
    """Return the candidates of a census as a mechanism that draws from them under replace-one."""
    request = Request(
        census.workload, census.n, None, epsilon, Fraction(1, 20), Neighbours.REPLACE_ONE, rows=census.rows
    )
    return SmallDatabases(request, census.rows, census.candidates)


def _rows(release: Release) -> str:
    tables = {"": release.data} if release.of is None or not isinstance(release.data, dict) else release.data
    return "".join(
        f"<p>The first rows{f' of {escape(visible(name))}' if name else ''}:</p>"
        + visible(as_frame(table)[:FIRST].to_html(index=False, border=0), "\n")
        for name, table in tables.items()
    )


def _table(title: str, facts: Facts) -> str:
    rows = [
        f'<tr><th scope="row" style="text-align: left">{escape(visible(name))}</th>'
        f'<td style="text-align: left">{escape(visible(value))}</td></tr>'
        for name, value in facts
    ]
    return f"<table><caption>{escape(visible(title))}</caption><tbody>{''.join(rows)}</tbody></table>"
