"""What a page says beside the release: who publishes it, under which name, and what is left to spend."""

from dataclasses import dataclass
from typing import final

from smalldb.releasing.ledger_account import Account


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
    contact
        Whom to ask.
    date
        Of the publication, as it shall be shown.
    licence
        Under which the table may be used.
    citation
        How to cite the table; None: by publisher, date and title, if there is a publisher.
    account
        What the ledger of the data says after this release; None: none is kept.
    """

    title: str | None = None
    publisher: str | None = None
    table: str | None = None
    account: Account | None = None
    contact: str | None = None
    date: str | None = None
    licence: str | None = None
    citation: str | None = None
