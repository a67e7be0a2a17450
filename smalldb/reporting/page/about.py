"""What a page says beside the release: who publishes it, under which name, and what is left to spend."""

from dataclasses import dataclass
from typing import final

from smalldb.releasing.budget_ledger import Account


@final
@dataclass(frozen=True, slots=True)
class About:
    """What the curator says about a release; it stands on the page, so it is public.

    Attributes
    ----------
    title
        Of the page; None: how many rows there are.
    publisher
        Who publishes the table.
    table
        The name of the data.
    account
        What the ledger of the data says after this release; None: none is kept.
    """

    title: str | None = None
    publisher: str | None = None
    table: str | None = None
    account: Account | None = None
