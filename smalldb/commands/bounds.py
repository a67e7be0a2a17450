"""`bounds`: what each theorem promises for public numbers, and what it needs."""

import argparse
from decimal import Decimal
from fractions import Fraction
from typing import Any

from queries import Domain, spec
from smalldb import bounds
from smalldb.commands.options import Commands, add_beta, universe, whole_number
from smalldb.exact.numbers import between_0_and_1, positive, whole
from smalldb.files.outputs import Outputs
from smalldb.planning import workload_of
from smalldb.reporting.plots import check_plotting, plot_bounds
from smalldb.reporting.words import as_csv, as_json, brief, rounded_up

MANY = 10**18  # queries: as far as `bounds.sharp_queries` looks
AXES = ("n", "epsilon", "rows")
FOR_TWO = "as for two queries: false for one"


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "bounds",
        help="what each theorem promises, and what it needs (reads no data)",
        description="Say what error each theorem promises with probability 1 - beta for public numbers, and "
        "what an error needs. All logarithms are natural; bounds are rounded up.",
        epilog="example: smalldb bounds --attributes 4 --size 10 --n 1000 --epsilon 1 --error 0.1",
    )
    command.add_argument(
        "--attributes", required=True, metavar="D|A,B,...", help="how many yes/no attributes, or their names"
    )
    command.add_argument("--valid", metavar="PREDICATE", help="which rows can exist at all")
    size = command.add_mutually_exclusive_group()
    size.add_argument(
        "--queries", metavar="SPEC", help=f"a query class (default marginals:2): {', '.join(spec.NAMES)}"
    )
    size.add_argument("--size", type=whole_number, metavar="J", help="or just how many distinct queries")
    command.add_argument("--n", type=whole_number, required=True, metavar="N", help="rows of the data")
    command.add_argument(
        "--epsilon", required=True, metavar="E", help="privacy parameter, exact: 1, 0.1 or 1/3"
    )
    add_beta(command)
    command.add_argument(
        "--rows", type=whole_number, metavar="M", help="rows of the small database (default: best)"
    )
    command.add_argument("--candidates", default="multisets", metavar="BASE", help="multisets or tuples")
    command.add_argument("--error", metavar="A", help="also say what this error needs")
    command.add_argument("--plot", metavar="FILE.png", help="draw the error (png, svg, pdf)")
    command.add_argument("--against", choices=AXES, help="what the axis of the picture is (default n)")
    how = command.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="everything, for machines")
    how.add_argument("--csv", action="store_true", help="what is promised and needed, as a table")
    command.set_defaults(run=run_bounds)


def run_bounds(arguments: argparse.Namespace) -> None:
    """Evaluate every bound, and the inverses for an error."""
    if arguments.against is not None and arguments.plot is None:
        raise ValueError("--against is for --plot")
    domain = universe(arguments)
    cells = 1 << len(domain.attributes) if domain.valid is None else domain.size
    vc = None
    if arguments.size is None:
        workload, vc = workload_of(arguments.queries, domain), vapnik(arguments.queries, domain)
        queries, text = workload.size, workload.text
    else:
        queries, text = arguments.size, "any class"
    beta, epsilon = between_0_and_1(arguments.beta, "beta"), positive(arguments.epsilon, "epsilon")
    given = {"n": arguments.n, "cells": cells, "queries": queries, "epsilon": epsilon, "beta": beta}
    error = None if arguments.error is None else between_0_and_1(arguments.error, "error")
    promised = promises(given, arguments.rows, arguments.candidates)
    needed = None if error is None else needs(given, error, arguments.candidates, vc)
    targets = [] if arguments.plot is None else [arguments.plot]
    form = None if arguments.plot is None else check_plotting(arguments.plot)
    axis = arguments.against or "n"
    with Outputs(targets) as outputs:
        if form is not None:
            lines = curves(given, arguments.rows, arguments.candidates, axis)
            outputs.write(arguments.plot, plot_bounds(*lines, axis, form))
    if arguments.csv:
        empty = {"name": "", "error": "", "rows": "", "value": "", "note": ""}
        print(as_csv([empty | row for row in [*promised, *(needed or [])]]), end="")
        return
    if arguments.json:
        said = {
            "cells": str(cells),
            "queries": queries,
            "beta": brief(beta),
            "vc": vc,
            "promises": promised,
        }
        print(as_json(said if error is None else said | {"error": brief(error), "needs": needed}))
        return
    print(
        f"{text}: {queries} distinct queries on {Decimal(cells):.4g} cells; n = {arguments.n}, "
        f"epsilon {brief(epsilon)}"
    )
    print(f"\n{f'error, with probability 1 - {brief(beta)}':64}{'error':>14}{'rows':>10}")
    for row in promised:
        vacuous = "  says nothing" if row["error"] >= 1 else ""
        note = "" if row["note"] is None else f"  {row['note']}"
        rows = "" if row["rows"] is None else _whole(row["rows"])
        print(f"{row['name']:64}{rounded_up(row['error'], 8):>14}{rows:>10}{vacuous}{note}")
    if error is not None and needed is not None:
        print(f"\nwhat an error of {brief(error)} needs")
        for row in needed:
            value = "any number" if row["value"] >= MANY else f"{row['value']:.8g}"
            print(f"{row['name']:64}{value:>20}{'' if row['note'] is None else '  ' + row['note']}")


def vapnik(queries: str | None, domain: Domain) -> list[int] | None:
    """Return what is known of the VC dimension, or None where the class has none."""
    chosen = spec.default(domain) if queries is None else spec.parse(queries)
    try:
        found = chosen.vc_dimension(domain)
    except ValueError:
        return None
    return [found.low, found.high]


def promises(given: dict[str, Any], rows: int | None, candidates: str) -> list[dict[str, Any]]:
    """Return the errors that are promised, and for how many rows; a note where that needs one."""
    printed = as_printed(given)
    theorem, own = bounds.theorem_4_5(**printed), bounds.theorem_4_5_rows(**printed)
    base: dict[str, Any] = {"candidates": candidates}
    found: list[tuple[str, float, int | None]] = [("Theorem 4.5 (4.2), as printed", theorem, own)]
    if 0 < theorem < 1:  # alpha must be below 1/2 to say anything
        half = bounds.proposition_4_4(alpha=Fraction(theorem) / 2, **printed)
        found.append(("Proposition 4.4 as printed, alpha half of that", half, None))
    found += [
        ("Proposition 4.4 as printed, at its best alpha", bounds.proposition_4_4(**printed), None),
        ("sharp, Hoeffding, at the theorem's rows", _sharp(given, own, "hoeffding", base), own),
    ]
    for method, name in (("hoeffding", "sharp, Hoeffding, best rows"), ("least", "sharp, best rows")):
        best = bounds.best_rows(**given, **base, method=method)
        found.append((name, _sharp(given, best, method, base), best))
    chosen = best if rows is None else rows
    if rows is not None:
        found.append(("sharp, at these rows", _sharp(given, rows, "least", base), rows))
    if candidates == "multisets":
        found.append(
            ("  with the neighbourhood of the best", bounds.sharp_neighbourhood(**given, rows=chosen), chosen)
        )
    found.append(
        ("Proposition 4.4 for whole rows", bounds.proposition_4_4_rows(**given, rows=chosen, **base), chosen)
    )
    no_beta = {name: value for name, value in given.items() if name != "beta"}
    found.append(("bound on the mean error", bounds.expected(**no_beta, rows=chosen, **base), chosen))
    noise = {name: value for name, value in no_beta.items() if name != "cells"}
    found.append(("Laplace noise on each answer instead: mean", bounds.laplace_answers(**noise), None))
    found.append(
        ("Laplace noise on each cell instead: bound on the mean", bounds.laplace_histogram(**no_beta), None)
    )
    return [{"name": name, "error": error, "rows": m, "note": _note(name, given)} for name, error, m in found]


def as_printed(given: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers for the lecture's bounds: for one query, where they are false, those for two."""
    return given | {"queries": 2} if given["queries"] == 1 else given


def needs(
    given: dict[str, Any], error: Fraction, candidates: str, vc: list[int] | None
) -> list[dict[str, Any]]:
    """Return what an error needs, each with the other numbers as given; a note where that needs one."""
    rest = {name: value for name, value in given.items() if name not in ("n", "epsilon", "queries")}
    base: dict[str, Any] = {"error": error, "candidates": candidates}
    n, epsilon, queries = given["n"], given["epsilon"], given["queries"]
    two = as_printed(given)["queries"]
    found: dict[str, Any] = {
        "n, by Theorem 4.5 (4.3)": bounds.theorem_4_5_data(error=error, queries=two, epsilon=epsilon, **rest),
        "n, by the sharp bound": bounds.sharp_data(queries=queries, epsilon=epsilon, **rest, **base),
        "epsilon, by Theorem 4.5": bounds.theorem_4_5_epsilon(error=error, n=n, queries=two, **rest),
        "epsilon, by the sharp bound": bounds.sharp_epsilon(n=n, queries=queries, **rest, **base),
        "queries at most, by the sharp bound": bounds.sharp_queries(n=n, epsilon=epsilon, **rest, **base),
        "n, by Proposition 4.4 as printed, alpha half of it": bounds.proposition_4_4_data(
            error=error, alpha=error / 2, queries=two, epsilon=epsilon, **rest
        ),
        "rows for OPT, lecture": bounds.rows_for(alpha=error, queries=queries),
        "rows for OPT, Hoeffding": bounds.rows_for(alpha=error, queries=queries, method="hoeffding"),
    }
    if vc is not None and vc[1]:
        for method in ("encyclopaedia", "standard", "sauer"):
            cells = given["cells"] if method == "sauer" else None
            name = f"rows for a deviation of half that by VC dimension {vc[1]}, {method}"
            found[name] = bounds.vc_rows(dimension=vc[1], alpha=error / 2, method=method, cells=cells)
    return [{"name": name, "value": value, "note": _note(name, given)} for name, value in found.items()]


def curves(
    given: dict[str, Any], rows: int | None, candidates: str, against: str
) -> tuple[list[float], dict[str, list[float]]]:
    """Return places along an axis, from a tenth to ten times what was given, and the errors there."""
    base: dict[str, Any] = {"candidates": candidates}
    centre = rows or bounds.best_rows(**given, **base) if against == "rows" else given[against]
    steps = [Fraction(round(10 ** (i / 20) * 1000), 1000) for i in range(-20, 21)]
    places = sorted({max(1, round(centre * s)) if against != "epsilon" else centre * s for s in steps})
    lines: dict[str, list[float]] = {"Theorem 4.5, its own rows": [], "sharp": [], "bound on the mean": []}
    for place in places:
        here = given if against == "rows" else given | {against: place}
        m = whole(place, "rows") if against == "rows" else rows or bounds.best_rows(**here, **base)
        no_beta = {name: value for name, value in here.items() if name != "beta"}
        lines["Theorem 4.5, its own rows"].append(bounds.theorem_4_5(**as_printed(here)))
        lines["sharp"].append(bounds.sharp(**here, rows=m, **base))
        lines["bound on the mean"].append(bounds.expected(**no_beta, rows=m, **base))
    return [float(place) for place in places], lines


def _sharp(given: dict[str, Any], rows: int, method: str, base: dict[str, Any]) -> float:
    return bounds.sharp(**given, rows=rows, method=method, **base)


def _whole(rows: int) -> str:
    return str(rows) if rows < MANY else f"{Decimal(rows):.2e}"


def _note(name: str, given: dict[str, Any]) -> str | None:
    printed = "Theorem 4.5" in name or "as printed" in name
    return FOR_TWO if printed and given["queries"] == 1 else None
