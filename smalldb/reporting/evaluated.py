"""How an evaluation is told: lines for people, JSON for machines. Confidential, as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb, isnan
from typing import Any

from queries.arrays import Floats, pd
from smalldb.exact.numbers import rounded_up
from smalldb.releasing.distances import MEASURES, Distances, summary
from smalldb.releasing.evaluation import Evaluation
from smalldb.reporting import visible
from smalldb.reporting.words import CONFIDENTIAL

LISTED, WORST = 10_000, 1_000  # queries: up to so many, JSON lists all; beyond, those farthest off
SHOWN = 60  # columns
ANSWER = ("query", "real", "synthetic", "error")


def evaluation_json(evaluation: Evaluation, bound: float | None, long: pd.DataFrame) -> dict[str, Any]:
    """Return all that an evaluation says; of many queries the answers that are farthest off."""
    size = evaluation.workload.size
    if size <= LISTED:
        answers = zip(
            evaluation.workload.labels, evaluation.real, evaluation.synthetic, evaluation.errors, strict=True
        )
    else:
        answers = zip(*(evaluation.worst(WORST)[column] for column in ANSWER), strict=True)
    return {
        "confidential": True,
        "queries": evaluation.workload.text,
        "max_error": float(evaluation.max_error),
        "mean_error": float(evaluation.mean_error),
        "bound": bound,
        "answers": [
            {"query": label, "real": float(real), "synthetic": float(synthetic), "error": float(error)}
            for label, real, synthetic, error in answers
        ],
        "answers_left_out": 0 if size <= LISTED else size - WORST,
        "distances": [_distances_json(distances) for distances in evaluation.distances()],
        "by_column": long.to_dict("records"),
        "numbers": None if evaluation.numbers is None else evaluation.numbers.to_dict("records"),
    }


def _distances_json(distances: Distances) -> dict[str, Any]:
    def both(values: Floats) -> dict[str, float | None]:
        return {"mean": _mean(values), "largest": _largest(values)}

    return {
        "columns": distances.width,
        "tables": len(distances.tables),
        "left_out": distances.left_out,
        **both(distances.tvd),
        "largest_cell": _largest(distances.largest),
        "independent_columns": both(distances.independent),
        "by_column": {name: both(distances.of_column(c)) for c, name in enumerate(distances.domain.names)},
    }


def evaluation_account(
    evaluation: Evaluation, bound: float | None, long: pd.DataFrame, simple: str | None
) -> str:
    """Tell an evaluation, for people."""
    worst = evaluation.worst()
    worst["query"] = [visible(label) for label in worst["query"]]
    width = max([len("query"), *map(len, worst["query"])])
    lines = [
        CONFIDENTIAL,
        f"{visible(evaluation.workload.text)}: {evaluation.workload.size} queries after reduction",
        f"largest error {float(evaluation.max_error):.4f}, mean {float(evaluation.mean_error):.4f}"
        + ("" if bound is None else f"; the record promises at most {rounded_up(bound)}"),
        "",
        f"{'query':{width}}{'real':>9}{'synthetic':>11}{'error':>9}",
    ]
    for row in worst.itertuples():
        lines.append(f"{row.query:{width}}{row.real:9.4f}{row.synthetic:11.4f}{row.error:9.4f}")
    lines += [*_distances_account(evaluation.distances()), *_summary_account(long, simple)]
    return "\n".join([*lines, *_numbers_account(evaluation.numbers)])


def _numbers_account(numbers: pd.DataFrame | None) -> list[str]:
    """Tell the means, standard deviations and quantiles of columns of numbers."""
    if numbers is None or numbers.empty:
        return []
    labels = [f"{visible(str(row.column))}, {row.measure}" for row in numbers.itertuples()]
    width = max(len("number"), *map(len, labels))
    lines = ["", f"{'number':{width}}{'real':>12}{'synthetic':>12}"]
    for label, row in zip(labels, numbers.itertuples(), strict=True):
        lines.append(f"{label:{width}}{row.real:12.5g}{row.synthetic:12.5g}")
    return lines


def pairs_account(pairs: Mapping[str, Sequence[object]] | None, columns: int) -> str | None:
    """Tell how many pairs of columns a record calls learned; None: it says nothing of pairs."""
    if pairs is None:
        return None
    learned, quiet, every = len(pairs["learned"]), len(pairs["quiet"]), comb(columns, 2)
    return (
        f"pairs of columns, by the record: {learned} learned, "
        f"{quiet} measured without a dependence that stands out, "
        f"{every - learned - quiet} not measured (independent in the synthetic table, by assumption)"
    )


def summary_rows(long: pd.DataFrame) -> list[tuple[str, ...]]:
    """Return the summary as texts: the tables in the head, then a row for each measure."""
    table = summary(long)
    rows = [tuple("" if isnan(v) else f"{v:.4f}" for v in values) for values in table.to_numpy().tolist()]
    return [
        ("", *table.columns),
        *((MEASURES[name], *row) for name, row in zip(table.index, rows, strict=True)),
    ]


def _summary_account(long: pd.DataFrame, simple: str | None) -> list[str]:
    head, *rows = summary_rows(long)
    first = max(len(row[0]) for row in rows)
    widths = [max(12, len(name) + 3) for name in head[1:]]
    beside = "" if simple is None else f", beside simple ways at epsilon {simple}"
    return [
        "",
        f"all columns together{beside}",
        *(
            f"{row[0]:{first}}" + "".join(f"{text:>{w}}" for text, w in zip(row[1:], widths, strict=True))
            for row in [head, *rows]
        ),
    ]


def _distances_account(distances: Sequence[Distances]) -> list[str]:
    """Tell the distances of tables: mean and largest, by column."""
    shown = [each for each in distances if each.tables]
    if not shown:
        return []
    names, rest = shown[0].domain.names, len(shown[0].domain.names) - SHOWN
    tables = ", ".join(f"{len(each.tables)} tables of {each.width}" for each in shown)
    rows = [(visible(name), [each.of_column(c) for each in shown]) for c, name in enumerate(names[:SHOWN])]
    rows += [("all", [each.tvd for each in shown])]
    rows += [("independent columns", [each.independent for each in shown])]
    width = max(len(name) for name, _ in rows)
    lines = [
        "",
        f"distance of tables, mean and largest: {tables} columns",
        "(total variation distance: half the sum over a table's cells of how far its shares differ;",
        "baseline: independent columns, the product of the real columns' own shares without noise)",
        f"{'tables with':{width}}" + "".join(f"{f'{each.width}: mean':>11}{'largest':>9}" for each in shown),
    ]
    for name, values in rows:
        figures = (f"{_figure(_mean(each)):>11}{_figure(_largest(each)):>9}" for each in values)
        lines.append(f"{name:{width}}" + "".join(figures))
    left = [f"{each.left_out} of {each.width}" for each in shown if each.left_out]
    lines += [f"and {rest} more columns"] if rest > 0 else []
    return lines + ([f"left out, for too many cells: {', '.join(left)} columns"] if left else [])


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None


def _largest(values: Floats) -> float | None:
    return float(values.max()) if len(values) else None


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
