"""What a page says of the data beside the release: confidential."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from queries import Rows
from smalldb.planning import Plan
from smalldb.releasing.distances import Distances, pair_distances
from smalldb.releasing.evaluation import Evaluation, joint_shares
from smalldb.reporting.evaluated import summary_rows
from smalldb.reporting.page.describing import cards
from smalldb.reporting.page.markup import element, facts, paragraph, section, table, text
from smalldb.reporting.page.pictures import MAX_COLUMNS, pairs
from smalldb.reporting.page.shares import marginals
from smalldb.schema import Schema


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison:
    """The data, and how far a release is off. Confidential: it is computed from the data.

    Attributes
    ----------
    real
        The rows of the data.
    evaluation
        The answers of the release's queries on both tables; None where the data have no rows.
    target
        A column that classifiers are trained to tell; None: none are.
    """

    real: Rows
    evaluation: Evaluation | None
    target: str | None = None

    def __repr__(self) -> str:
        return "<Comparison: computed from the data>"


BANNER = "CONFIDENTIAL: a part of this page was computed from the data. Not for publication."


def compared(comparison: Comparison, synthetic: Rows, schema: Schema | None, plan: Plan) -> str:
    """Show the release beside the data."""
    real, made = comparison.real, comparison.evaluation
    title, lead = "Beside the data", element("strong", text("CONFIDENTIAL. "))
    if made is None:
        none = text("The data have no rows: there is nothing to compare.")
        return section(title, "compared", element("p", lead, none))
    worst = [
        (row.query, f"{row.real:.4f}", f"{row.synthetic:.4f}", f"{row.error:.4f}")
        for row in made.worst().itertuples()
    ]
    key = [element("span", text(name), class_=f"key{i}") for i, name in enumerate(("real", "synthetic"))]
    return section(
        title,
        "compared",
        element("p", lead, text("This section shows the data.")),
        facts(
            [
                ("Largest error", f"{float(made.max_error):.4f}"),
                ("Mean error", f"{float(made.mean_error):.4f}"),
            ]
        ),
        table("The queries that are farthest off", ("query", "real", "synthetic", "error"), worst),
        element("p", *key, class_="key"),
        cards(("real", marginals(real, schema is None)), ("synthetic", marginals(synthetic, schema is None))),
        _summary(made, plan, comparison.target),
        *_tables(made.distances()),
        _pairs(real, synthetic),
    )


def _summary(made: Evaluation, plan: Plan, target: str | None) -> str:
    """Show what the release gets right beside what simple ways do at the same epsilon."""
    long = made.by_column(epsilon=plan.privacy, neighbours=plan.neighbours, target=target)
    head, *rows = summary_rows(long)
    told = "" if target is None else f"; the target is {target}"
    return table(f"Beside simple ways at the same epsilon{told}", head, rows)


def _tables(found: Sequence[Distances]) -> list[str]:
    """Show how far the tables of one, two and three columns are apart."""
    rows = [
        (f"{each.width} ({len(each.tables):,} tables)", *(f"{figure:.4f}" for figure in _figures(each)))
        for each in found
        if each.tables
    ]
    head = ("columns", "mean", "largest", "yardstick")
    said = "Total variation distance: half the sum over a table's cells of how far its shares are apart. The "
    said += "yardstick is the mean for independent columns with the data's own shares."
    return [table("Distance of tables", head, rows), paragraph(said)] if rows else []


def _figures(found: Distances) -> list[float]:
    return [float(found.tvd.mean()), float(found.tvd.max()), float(found.independent.mean())]


def _pairs(real: Rows, synthetic: Rows) -> str:
    """Show how far each two columns are off together."""
    domain = real.domain
    if domain.binary:
        title = "Rows with both of two attributes, synthetic less real, in points of a percent"
        off = joint_shares(synthetic) - joint_shares(real)
        return pairs(title, domain.attributes, off, signed=True)
    names = domain.names[:MAX_COLUMNS]
    off = pair_distances(real, synthetic, len(names))
    title = "Distance of the table of each two columns (in the diagonal, of one), in percent"
    return pairs(title, names, off, most=MAX_COLUMNS)
