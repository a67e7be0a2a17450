"""What releases lose together, from their records."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from typing import Any, NamedTuple

from smalldb.accounting.checked_arguments import MOST_LISTED, checked_flag, checked_number
from smalldb.accounting.composing import Composition, best_of
from smalldb.accounting.methods import added, concentrated, methods_of
from smalldb.exact.numbers import Number, positive, share, whole
from smalldb.noise.privacy_loss import Loss, read_laws


class RecordedLoss(NamedTuple):
    """What a record says of privacy."""

    # epsilon, delta: of the guarantee; a delta of 0: it is pure
    epsilon: Fraction
    delta: Fraction
    loss: Loss  # what it says besides; its epsilon is None where there is a delta


def loss_of_record(record: Mapping[str, Any]) -> RecordedLoss:
    """Read what a record says of privacy; records before schema 2 state neither a rho nor laws."""
    try:
        privacy, stated_delta, _, _ = (record[key] for key in ("privacy", "delta", "neighbours", "private"))
        epsilon, parameter = positive(privacy["epsilon"], "privacy.epsilon"), privacy["bounded_range"]
        rho, laws = privacy.get("rho"), privacy.get("laws")
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("records must be those of releases: a key is missing") from error
    stated = None if rho is None else positive(rho, "privacy.rho")
    allowed = Fraction(0) if stated_delta is None else share(stated_delta, "delta")
    if allowed:
        if parameter is not None:
            raise ValueError("records: a release with a delta has no bounded range")
        return RecordedLoss(epsilon, allowed, Loss(None, stated))
    loss = Loss.pure(epsilon) if stated is None else Loss(epsilon, stated)
    if laws is not None:
        loss = Loss.of(read_laws(laws))
        if loss.epsilon != epsilon:
            raise ValueError("records: the laws of a release do not add up to its epsilon")
    elif parameter is not None:
        ranged = Loss.ranged(positive(parameter, "privacy.bounded_range"))
        loss = Loss(epsilon, ranged.rho, ranged.laws)
    return RecordedLoss(epsilon, allowed, loss)


# Proof: docs/proofs/delta.md, lemma 6; docs/proofs/losses.md, lemma 10.
def compose_records(
    records: Iterable[Mapping[str, Any]], *, delta: Number, adaptive: bool = True
) -> Composition:
    """
    Bound what releases from one table lose together, from their records.

    Equations (18) to (21) and (23) to (25) of `docs/theory.md`. A release with a delta of its own behaves,
    but for an event of that probability, as one of pure epsilon (Kairouz, Oh and Viswanath 2015: for any two
    neighbours, it can be simulated from randomised response that fails so often). So it counts as that, and
    its delta is added. Where all records state a rho, it counts by that as well, and all of the delta is left
    for the total. With a delta, of the total or of a release, their number and their losses must not have
    depended on anything released, as for `compose`.

    Parameters
    ----------
    records
        As `smalldb.release` writes them; all of one neighbouring relation and one unit, none of them seeded.
    delta, adaptive
        As for `compose`; the deltas of the records are added to it.
    """
    listed = list(islice(records, MOST_LISTED + 1))
    checked_number(len(listed), MOST_LISTED)
    simulated, stated = Counter[Loss](), Counter[Loss]()
    relations, persons, units = set[str](), set[int](), set[str]()
    allowed = share(delta, "delta")
    spent = allowed
    for record in listed:
        read = loss_of_record(record)
        if not isinstance(record["neighbours"], str):
            raise ValueError("records must be those of releases: neighbours must be a text")
        if record["private"] is not True:
            raise ValueError("records: a seeded release is not private, whatever its epsilon")
        stated[read.loss] += 1
        simulated[Loss.pure(read.epsilon) if read.delta else read.loss] += 1
        relations.add(record["neighbours"])
        persons.add(whole(record["privacy"].get("rows_per_person", 1), "privacy.rows_per_person"))
        units.add(str(record["privacy"].get("unit", "")))
        spent += read.delta
    if len(relations) > 1:
        raise ValueError("records: all must be of one neighbouring relation")
    if len(persons) > 1:
        raise ValueError("records: all must be for the same number of rows of a person")
    if len(units) > 1:  # under add-remove another row of one table may be two changes of its parent
        raise ValueError(
            "records: all must protect the same: rows, or related tables by the same keys; "
            "keep a ledger for each"
        )
    if spent >= 1:
        raise ValueError("delta: all together reach 1")
    methods = [*methods_of(simulated, allowed, checked_flag(adaptive, "adaptive"))]
    if spent > allowed and all(loss.rho is not None for loss in stated):
        methods += [replace(method, name="Renyi, by rho") for method in concentrated(stated, spent)]
    return best_of(methods, spent, added(simulated))
