"""What a page says beside the release: who publishes it, under which name, and what is left to spend."""

from dataclasses import dataclass
from typing import final

from smalldb.releasing.ledger_account import Account


@final
@dataclass(frozen=True, slots=True)
class About:
    """What the curator says about a release; it stands on the page, so it is public."""

    title: str | None = None  # of the page; None: how many rows there are
    publisher: str | None = None  # who publishes the table
    table: str | None = None  # the name of the data
    account: Account | None = None  # what the ledger of the data says after this release; None: none is kept
    contact: str | None = None  # whom to ask
    date: str | None = None  # of the publication, as it shall be shown
    licence: str | None = None  # under which the table may be used
    # how to cite the table; None: by publisher, date and title, if there is a publisher
    citation: str | None = None
