"""Wide tables in rounds: select a table, measure it, fit a model; then rows, and a certificate."""

from smalldb.marginals.plan_of_tables import RoundsPlan, plan_rounds
from smalldb.marginals.private_rows import PrivateRows, checked
from smalldb.marginals.releasing_tables import History, Outcome, release_rounds
from smalldb.marginals.universe import Universe

__all__ = [
    "History",
    "Outcome",
    "PrivateRows",
    "RoundsPlan",
    "Universe",
    "checked",
    "plan_rounds",
    "release_rounds",
]
