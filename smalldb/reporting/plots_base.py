"""What all pictures share: the canvas, its colours, readable ticks and the formats."""

import io
from fractions import Fraction
from typing import Any

from smalldb.exact.numbers import rounded_up
from smalldb.files.extras import of_extra
from smalldb.reporting.escaping import visible

FORMATS = ("png", "svg", "pdf")
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # Okabe and Ito
LABEL = 40  # characters
UNDATED = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}  # the same picture, byte for byte


def check_plotting(path: str) -> str:
    """Return the format that a path asks for; ValueError for another one, or without matplotlib."""
    form = path.rpartition(".")[2].lower()
    if form not in FORMATS:
        raise ValueError(f"a picture must be named .{', .'.join(FORMATS)}, not {path!r}")
    with of_extra("matplotlib", "plot", "pictures"):
        import matplotlib  # noqa: F401 - only whether it is there
    return form


def canvas(width: float = 8, height: float = 5) -> Any:
    """Return an empty figure that needs no screen, in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def rendered(figure: Any, form: str) -> bytes:
    """Return a figure in one of `FORMATS`; text stays text in SVG and PDF."""
    import matplotlib

    picture = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "smalldb", "pdf.fonttype": 42}):
        figure.savefig(picture, format=form, dpi=150, metadata=UNDATED[form])
    return picture.getvalue()


def readable(axis: Any) -> None:
    """Write the ticks of a logarithmic axis as plain numbers: 1, 2, 5 where they fit, else powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = sorted(axis.get_view_interval())
    decades = max(high / low, 1.0) if low > 0 else 10.0
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if decades < 3000 else (1,), numticks=30))
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    axis.set_minor_formatter(NullFormatter())


def short(label: str) -> str:
    """Return a label of at most `LABEL` characters, all seen: a long one without its middle.

    >>> short("the income of all people in the household, before taxes<1000")
    'the income of all p...before taxes<1000'
    """
    half, label = (LABEL - 3) // 2, visible(label)
    return (
        label if len(label) <= LABEL else f"{label[: LABEL - 3 - half].rstrip()}...{label[-half:].lstrip()}"
    )


def bound(value: float | Fraction) -> str:
    """Write a bound in three digits, never below itself.

    >>> bound(19.912), bound(0.0501), bound(1234.5)
    ('20', '0.0501', '1,240')
    """
    return number(float(rounded_up(value)))


def number(value: float) -> str:
    """Write a number of an axis or a legend: 0.05, 20,000, 1e9."""
    if 1000 <= abs(value) < 10**7:
        return f"{value:,.0f}"
    return f"{value:.3g}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
