"""The arguments of a plan, read and checked; and the mechanisms that they leave."""

from collections.abc import Sequence
from fractions import Fraction

from queries.expressions import suggestion
from smalldb.counting.scores import base_measure
from smalldb.exact.numbers import Number, positive, whole
from smalldb.marginals.counted_rows import MOST as MOST_MEASURED
from smalldb.marginals.mechanism import STRATEGIES
from smalldb.mechanisms import Mechanism, Neighbours, Request
from smalldb.planning.mechanisms import named
from smalldb.planning.plans import finer_measure
from smalldb.schema.bin_shapes import FinerCost

USUAL_BETA = "0.05"
MOST_EPSILON = 1 << 1000  # what follows from it is a float


def exact_epsilon(epsilon: Number) -> Fraction:
    """Read epsilon."""
    exact = positive(epsilon, "epsilon")
    if exact > MOST_EPSILON:
        raise ValueError("epsilon must be at most 2^1000")
    return exact


def sizes_of(relation: Neighbours, n: int | None, n_max: int | None) -> tuple[int | None, int | None]:
    """Check the number of rows, which is public or not, and the guess of it."""
    if relation is Neighbours.REPLACE_ONE:
        if n is None:
            raise TypeError(
                "n must be a whole number: the number of people, which is public under replace-one"
            )
        n = whole(n, "n")
        if n_max is not None:
            raise ValueError("n_max is for add-remove: under replace-one n itself is public")
    elif n is not None:
        raise ValueError("n is private under add-remove: leave it out")
    return n, None if n_max is None else whole(n_max, "n_max")


def agreed_rows(argument: int | None, schema: int | None) -> int | None:
    """Return how many rows a person has, as an argument or a schema states; ValueError: they state two."""
    if None not in (argument, schema) and argument != schema:
        raise ValueError(f"rows_per_person: the schema says {schema}, not {argument}")
    return schema if argument is None else argument


def check_finer(finer: Sequence[FinerCost], request: Request) -> None:
    """Refuse finer bins whose counts would be lost in noise, or of more rows than are measured."""
    if finer and request.largest_n >= MOST_MEASURED:
        raise ValueError("finer bins are measured of less than 2^53 rows: leave out finer")
    for each in finer:
        if finer_measure(request.neighbours).drowns(each.epsilon):
            raise ValueError(
                f"column {each.column!r}: noise on finer bins would be above 2^40: give them a larger share"
            )


def starting(mechanisms: tuple[type[Mechanism], ...], strategy: str | None) -> tuple[type[Mechanism], ...]:
    """Return the mechanisms that start from a public table; ValueError: none of them."""
    left = tuple(each for each in mechanisms if each.takes_start)
    if not left or strategy not in (None, "adaptive"):
        takers = " and ".join(each.name for each in named("auto") if each.takes_start)
        raise ValueError(
            f"a start is for {takers}, strategy adaptive, and so are an earlier release and column_share: "
            "leave out the other"
        )
    return left


def taking(
    mechanism: str, strategy: str | None, candidates: str | None, aimed: bool, calibrated: bool
) -> tuple[type[Mechanism], ...]:
    """Return the mechanisms that the arguments leave, the first choice first."""
    left = named(mechanism)
    if strategy is not None:
        if strategy not in STRATEGIES:
            near = suggestion(strategy, STRATEGIES) if isinstance(strategy, str) else ""
            known = ", ".join(map(repr, STRATEGIES))
            raise ValueError(f"strategy must be one of {known}, not {strategy!r}{near}")
        left = tuple(each for each in left if each.name == "marginals")
        if not left:
            raise ValueError(f"a strategy is for marginals: {mechanism} has none; leave it out")
    if aimed:
        left = tuple(each for each in left if each.takes_target)
        if not left:
            takers = " and ".join(each.name for each in named("auto") if each.takes_target)
            raise ValueError(
                f"a target is for {takers}, and so are tables to measure first: {mechanism} would take no "
                "notice of them; leave them out"
            )
    if calibrated:
        left = tuple(each for each in left if each.name == "census")
        if not left:
            raise ValueError("calibrated is for the census: leave it out, or strategy, target and delta")
    if candidates is None:
        return left
    base_measure(candidates)
    taking = tuple(each for each in left if each.takes_candidates)
    if not taking:
        raise ValueError(f"{mechanism} have no candidates: leave them out")
    return taking
