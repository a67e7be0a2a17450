"""What a page says of uses: what the table is for, what it is not for, and what is left to spend."""

from smalldb.mechanisms.known_pairs import NOT_MEASURED
from smalldb.releasing.ledger_account import Account
from smalldb.releasing.record import stated_bound
from smalldb.releasing.released import Release
from smalldb.reporting.page.markup import element, facts, paragraph, section, text
from smalldb.reporting.words import brief

ASKED = (
    "Take shares, conditional shares, means and differences from the published measurements, each with its "
    "interval (smalldb ask)."
)
TOO_SMALL = "Standard errors computed as if these rows were people are too small."
INSTEAD = (
    "Take intervals from the measurements (smalldb ask), or ask the curator for several tables of this "
    "release (smalldb generate --tables), and combine what you compute (smalldb.inference.combine)."
)
OTHERS = "This release has none that count the noise; its bound stands below."
UNKNOWN = "Do not study relations of columns that were not measured together: the rows assume them away."


UNMEASURED_BOUND = (
    " For pairs of columns that were not measured together, only the bound on all queries holds: a share "
    "that is smaller than this bound may be entirely wrong."
)


def _lacking(release: Release) -> bool:
    """Tell whether some pair of columns was not measured, and a bound covers it nevertheless."""
    covered = stated_bound(release.record) is not None
    return covered and any(pair.known == NOT_MEASURED for pair in release.measurements.pairs())


def uses(release: Release, confidential: bool) -> str:
    """Say what the table may be used for, and what not; `confidential`: the page is not for publication."""
    record, measured = release.record, bool(len(release.measurements))
    asked = record["queries"]["text"]
    publish = "Publish the table, but not this page" if confidential else "Publish it and pass it on"
    may = [
        f"{publish}: no use of the table costs the people in the data any more privacy.",
        f"Read from it what it was made to answer ({asked}), with the error that stands below."
        + (UNMEASURED_BOUND if _lacking(release) else ""),
        *([ASKED] if measured else []),
        "Try out programs and questions on it, teach with it, prepare a study of the data themselves.",
    ]
    may_not = [
        "Do not look for people in it: no row belongs to anybody, and any resemblance is coincidental.",
        "Do not decide about single people by it.",
        "Do not take it for the data in other analyses: of means over rare groups, models, or what was not "
        "asked for, nothing is promised.",
        f"{TOO_SMALL} {INSTEAD if measured else OTHERS}",
        *([UNKNOWN] if measured else []),
    ]
    if not record["private"]:
        may = ["Experiments with made-up or public data alone: this release is not private."]
    return section(
        "What it may be used for",
        "uses",
        _listed("Suitable uses:", may),
        _listed("Unsuitable uses:", may_not),
    )


def spent(account: Account | None) -> str:
    """Say what was spent of the data's budget, and what is left."""
    if account is None:
        inner = paragraph(
            "No ledger is kept with this release. Somebody has to add up the epsilons of all releases from "
            "the same data."
        )
    else:
        number = len(account.records)
        budget, spent_so_far, left = (
            f"epsilon {brief(account.budget)}",
            brief(account.spent),
            brief(account.left),
        )
        adding = "Epsilons add up, however releases were chosen."
        if account.delta is not None:
            rho, spent_rho, left_rho = account.in_rho
            budget = f"(epsilon, delta) = {account.stated}, or rho {rho},"
            spent_so_far, left = f"rho {spent_rho}", f"rho {left_rho}"
            adding = "Rhos add up, however releases were chosen."
        inner = facts(
            [
                ("Budget", f"{budget} for all releases together"),
                ("Spent", f"{spent_so_far}, this release included, by {number} in all"),
                ("Left", left),
            ]
        ) + paragraph(f"The state right after this release. {adding}")
    return section("The privacy budget of the data", "budget", inner)


def _listed(said: str, points: list[str]) -> str:
    return element("p", text(said)) + element("ul", *(element("li", text(point)) for point in points))
