"""`bounds`: what each theorem promises for public numbers, and what it needs."""

import argparse
from collections.abc import Callable
from dataclasses import asdict
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

from queries import Domain, spec
from smalldb import bounds
from smalldb.commands import HELP
from smalldb.commands.options import add_beta, add_formats, described, whole_number
from smalldb.commands.parsers import Commands
from smalldb.exact.numbers import between_0_and_1, positive
from smalldb.files.outputs import Outputs
from smalldb.planning import workload_of
from smalldb.reporting.plots_base import check_plotting
from smalldb.reporting.plots_bounds import Setting, plot_bounds
from smalldb.reporting.words import as_csv, as_json, brief, rounded_down, rounded_up

MANY = 10**18  # queries: as far as `bounds.sharp_queries` looks
AXES = ("n", "epsilon", "rows")
SHARP_DATA, SHARP_EPSILON = "n, by the sharp bound", "epsilon, by the sharp bound"
SHARP_QUERIES = "queries at most, by the sharp bound"
SHARP = SHARP_DATA, SHARP_EPSILON, SHARP_QUERIES
UP = Context(prec=3, rounding=ROUND_CEILING)
FOR_TWO = "as for two queries: false for one"


def add(commands: Commands) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "bounds",
        help=HELP["bounds"],
        description="Say what error each theorem promises with probability 1 - beta for public numbers, and "
        "what an error needs. All logarithms are natural; bounds are rounded up.",
        epilog="example: smalldb bounds --attributes 4 --size 10 --n 1000 --epsilon 1 --error 0.1",
    )
    what = command.add_mutually_exclusive_group(required=True)
    what.add_argument("--attributes", metavar="D|A,B,...", help="how many yes/no attributes, or their names")
    what.add_argument("--schema", metavar="SCHEMA.toml", help="or what the columns hold")
    command.add_argument("--valid", metavar="PREDICATE", help="which rows can exist at all")
    size = command.add_mutually_exclusive_group()
    size.add_argument(
        "--queries",
        metavar="SPEC",
        help=f"a query class (default: the schema's, or marginals:2): {', '.join(spec.NAMES)}",
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
    add_formats(command)
    command.set_defaults(run=run_bounds)


def run_bounds(arguments: argparse.Namespace) -> None:
    """Evaluate every bound, and the inverses for an error."""
    if arguments.against is not None and arguments.plot is None:
        raise ValueError("--against is for --plot")
    domain, stated = described(arguments)
    cells = domain.product if domain.valid is None else domain.size
    vc, method, apart = None, "least", 1
    if arguments.size is None:
        workload, vc = workload_of(stated, domain), vapnik(stated, domain)
        queries, text = workload.size, workload.text
        method, apart = bounds.class_method(domain, stated), bounds.cells_apart(workload)
    else:
        queries, text = arguments.size, "any class"
    beta, epsilon = between_0_and_1(arguments.beta, "beta"), positive(arguments.epsilon, "epsilon")
    given = {"n": arguments.n, "cells": cells, "queries": queries, "epsilon": epsilon, "beta": beta}
    error = None if arguments.error is None else between_0_and_1(arguments.error, "error")
    promised = promises(given, arguments.rows, arguments.candidates)
    setting = Setting(given, arguments.rows, arguments.candidates, method, apart, text)
    needed = None if error is None else needs(given, error, arguments.candidates, vc, arguments.rows)
    targets = [] if arguments.plot is None else [arguments.plot]
    form = None if arguments.plot is None else check_plotting(arguments.plot)
    axis = arguments.against or "n"
    with Outputs(targets) as outputs:
        if form is not None:
            outputs.write(arguments.plot, plot_bounds(setting, axis, form))
    if arguments.csv:
        kinds = (
            ("promise", "error", promised),
            ("beside", "error", besides(setting)),
            ("need", "value", needed or []),
        )
        found = [
            {"kind": row.get("kind", kind), "name": row["name"].strip(), "value": row[value]}
            | {"rows": row.get("rows"), "note": row.get("note")}
            for kind, value, rows in kinds
            for row in rows
        ]
        print(as_csv(found))
        return
    if arguments.json:
        said = {
            "cells": str(cells),
            "queries": queries,
            "beta": brief(beta),
            "vc": vc,
            "promises": [row | {"name": row["name"].strip()} for row in promised],
            "besides": besides(setting),
        }
        print(as_json(said if error is None else said | {"error": brief(error), "needs": needed}))
        return
    print(
        f"{text}: {queries} distinct queries on {Decimal(cells):.4g} cells; n = {arguments.n}, "
        f"epsilon {brief(epsilon)}"
    )
    print(f"\n{f'error, with probability 1 - {brief(beta)}':64}{'error':>14}{'rows':>10}")
    for row in promised:
        vacuous = "  vacuous" if row["error"] >= 1 else ""
        note = "" if row["note"] is None else f"  {row['note']}"
        rows = "" if row["rows"] is None else _whole(row["rows"])
        print(f"{row['name']:64}{rounded_up(row['error'], 8):>14}{rows:>10}{vacuous}{note}")
    print("\nbeside these, with the same probability")
    for row in besides(setting):
        vacuous = "  vacuous" if row["error"] >= 1 else ""
        rows = "" if row["rows"] is None else _whole(row["rows"])
        written = rounded_down(row["error"], 8) if row["kind"] == "lower" else rounded_up(row["error"], 8)
        print(f"{row['name']:64}{written:>14}{rows:>10}{vacuous}")
    if error is not None and needed is not None:
        print(f"\nwhat an error of {brief(error)} needs")
        for row in needed:
            value = _need(row["name"], row["value"])
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
    given: dict[str, Any], error: Fraction, candidates: str, vc: list[int] | None, rows: int | None = None
) -> list[dict[str, Any]]:
    """
    Return what an error needs, each with the other numbers as given; a note where that needs one.

    The sharp bound is taken at `rows`, by default at its best ones. A value is None where nothing will do.
    """
    rest = {name: value for name, value in given.items() if name not in ("n", "epsilon", "queries")}
    base: dict[str, Any] = {"error": error, "candidates": candidates, "rows": rows}
    n, epsilon, queries = given["n"], given["epsilon"], given["queries"]
    two = as_printed(given)["queries"]
    found: dict[str, Any] = {
        "n, by Theorem 4.5 (4.3)": bounds.theorem_4_5_data(error=error, queries=two, epsilon=epsilon, **rest),
        SHARP_DATA: _possible(bounds.sharp_data, queries=queries, epsilon=epsilon, **rest, **base),
        "epsilon, by Theorem 4.5": bounds.theorem_4_5_epsilon(error=error, n=n, queries=two, **rest),
        SHARP_EPSILON: _possible(bounds.sharp_epsilon, n=n, queries=queries, **rest, **base),
        SHARP_QUERIES: bounds.sharp_queries(n=n, epsilon=epsilon, **rest, **base),
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
    notes = {name: None if rows is None else f"with {_whole(rows)} rows" for name in SHARP}
    return [
        {"name": name, "value": value, "note": notes.get(name) or _note(name, given)}
        for name, value in found.items()
    ]


def _possible(calculated: Callable[..., Any], **given: Any) -> Any:
    """Return what a calculator says, or None where nothing will do."""
    try:
        return calculated(**given)
    except bounds.Infeasible:
        return None


def _need(name: str, value: float | int | None) -> str:
    """Write what an error needs: rounded up, but for how many queries it can serve."""
    if value is None:
        return "nothing will do"
    if name == SHARP_QUERIES:
        return "any number" if value >= MANY else str(value)
    if isinstance(value, int):
        return str(value) if value < MANY else f"{UP.create_decimal(value):.2e}"
    return rounded_up(value, 8) if value else "any"


def besides(setting: Setting) -> list[dict[str, Any]]:
    """Return what the class of the queries is promised, what other mechanisms promise, and what none can."""
    found = [
        bound
        for bound in setting.table()
        if bound.kind in ("other", "lower") or bound.name == f"sharp, {setting.method}"
    ]
    return [asdict(bound) for bound in found]


def _sharp(given: dict[str, Any], rows: int, method: str, base: dict[str, Any]) -> float:
    return bounds.sharp(**given, rows=rows, method=method, **base)


def _whole(rows: int) -> str:
    return str(rows) if rows < MANY else f"{Decimal(rows):.2e}"


def _note(name: str, given: dict[str, Any]) -> str | None:
    printed = "Theorem 4.5" in name or "as printed" in name
    return FOR_TWO if printed and given["queries"] == 1 else None
