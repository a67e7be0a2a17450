"""What a page says of the data beside the release: confidential."""

from dataclasses import dataclass
from typing import final

from queries import Rows
from smalldb.planning import Plan
from smalldb.releasing.distances import pair_distances
from smalldb.releasing.evaluation import Evaluation, joint_shares
from smalldb.reporting.evaluated import summary_rows
from smalldb.reporting.page.contents import cards
from smalldb.reporting.page.markup import element, facts, paragraph, section, table, text
from smalldb.reporting.page.pictures import MAX_COLUMNS, marginals, pairs
from smalldb.schema import Schema


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison:
    """The data, and how far a release is off. Confidential: it is computed from the data."""

    real: Rows  # the rows of the data
    # the answers of the release's queries on both tables; None where the data have no rows
    evaluation: Evaluation | None
    target: str | None = None  # a column that classifiers are trained to tell; None: none are

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
        *_summary(made, plan, comparison.target),
        _pairs(real, synthetic),
    )


def _summary(made: Evaluation, plan: Plan, target: str | None) -> list[str]:
    """Show what the release gets right beside what simple ways do at the same epsilon."""
    long = made.by_column(
        epsilon=plan.privacy / plan.rows_per_person, neighbours=plan.neighbours, target=target
    )
    head, *rows = summary_rows(long)
    told = "" if target is None else f"; the target is {target}"
    said = (
        "The distance of two tables is half the sum over their cells of how far the shares are apart. The "
        "simple ways spend the same epsilon: on each column's own counts, or on the count of every cell."
    )
    return [table(f"Beside simple ways at the same epsilon{told}", head, rows), paragraph(said)]


def _pairs(real: Rows, synthetic: Rows) -> str:
    """Show how far each two columns are off together."""
    domain = real.domain
    if domain.binary:
        title = "Rows with both of two attributes, synthetic less real, in percentage points"
        off = joint_shares(synthetic) - joint_shares(real)
        return pairs(title, domain.attributes, off, signed=True)
    names = domain.names[:MAX_COLUMNS]
    off = pair_distances(real, synthetic, len(names))
    title = "Distance of the table of each two columns (in the diagonal, of one), in percent"
    return pairs(title, names, off, most=MAX_COLUMNS)
