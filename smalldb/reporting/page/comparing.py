"""What a page says of the data beside the release: confidential."""

from dataclasses import dataclass
from typing import final

from queries import Rows
from smalldb.releasing.evaluation import Evaluation, joint_shares
from smalldb.reporting.page.describing import cards
from smalldb.reporting.page.markup import element, facts, section, table, text
from smalldb.reporting.page.pictures import pairs
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
    """

    real: Rows
    evaluation: Evaluation | None

    def __repr__(self) -> str:
        return "<Comparison: computed from the data>"


BANNER = "CONFIDENTIAL: a part of this page was computed from the data. Not for publication."


def compared(comparison: Comparison, synthetic: Rows, schema: Schema | None) -> str:
    """Show the release beside the data."""
    real, made = comparison.real, comparison.evaluation
    title, lead = "Beside the data", element("strong", text("CONFIDENTIAL. "))
    if made is None:
        none = text("The data have no rows: there is nothing to compare.")
        return section(title, "compared", element("p", lead, none))
    names = real.domain.attributes
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
        cards(("real", marginals(real, schema)), ("synthetic", marginals(synthetic, schema))),
        pairs(
            "Rows with both of two attributes, synthetic less real, in points of a percent",
            names,
            joint_shares(synthetic) - joint_shares(real),
            signed=True,
        ),
    )
