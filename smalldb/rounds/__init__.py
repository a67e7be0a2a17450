"""Wide tables in rounds: select a table, measure it, fit a model; then rows, and a certificate."""

from smalldb.rounds.counting import PrivateRows, checked
from smalldb.rounds.plan import RoundsPlan, plan_rounds
from smalldb.rounds.rounds import History, Outcome, release_rounds
from smalldb.rounds.universe import Universe

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
