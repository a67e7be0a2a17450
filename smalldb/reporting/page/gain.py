"""A picture of what an attacker can gain: a curve above the diagonal, where nothing is learnt."""

from collections.abc import Callable
from fractions import Fraction

from smalldb.reporting.page.beliefs import after, right_share
from smalldb.reporting.page.markup import element, text

SIDE, LEFT, TOP, FOOT, STEPS = 200, 34, 26, 40, 80  # units of the picture; points of the curve


def beliefs_picture(epsilon: Fraction) -> str:
    """Draw how far a belief can rise, for every belief that was held before."""
    named = "The most that a belief can become, for each that was held before"
    return _curve(named, "believed before", "believed after, at most", 0.0, lambda x: after(x, epsilon))


def guesses_picture(epsilon: Fraction, delta: Fraction) -> str:
    """Draw how often a guess can be right, for every chance to be right without the table."""
    named = "How often a guess can be right, for each chance to be right without the table"
    return _curve(
        named,
        "right without the table",
        "right with it, at most",
        0.5,
        lambda x: right_share(x, epsilon, delta),
    )


def _curve(named: str, across: str, upwards: str, begin: float, most: Callable[[float], float]) -> str:
    """Draw the curve from `begin` to 1 on both axes."""

    def at(x: float, y: float) -> str:
        scale = SIDE / (1 - begin)
        return f"{LEFT + scale * (x - begin):.1f},{TOP + scale * (1 - y):.1f}"

    positions = [begin + (1 - begin) * i / STEPS for i in range(STEPS + 1)]
    curve = [at(x, min(1.0, most(x))) for x in positions]
    ends = at(begin, begin), at(1, 1)
    marks = [
        element("rect", x=LEFT, y=TOP, width=SIDE, height=SIDE, class_="ground"),
        element("polygon", points=" ".join([*curve, ends[0]]), class_="gained"),
        element("polyline", points=" ".join(curve), class_="most"),
        element("polyline", points=" ".join(ends), class_="nothing"),
    ]
    for share in (begin, (1 + begin) / 2, 1.0):
        x, y = at(share, share).split(",")
        label = text(f"{100 * share:g}")
        marks.append(element("text", label, x=x, y=TOP + SIDE + 16, class_="middle"))
        marks.append(element("text", label, x=LEFT - 6, y=f"{float(y) + 4:.1f}", class_="end"))
    marks.append(element("text", text(f"{across}, %"), x=LEFT + SIDE / 2, y=TOP + SIDE + 34, class_="middle"))
    marks.append(element("text", text(f"{upwards}, %"), x=0, y=14))
    told = f"{named}. The straight line: nothing is learnt. The area: what this release may add."
    picture = element(
        "svg",
        *marks,
        viewBox=f"0 0 {LEFT + SIDE + 14} {TOP + SIDE + FOOT}",
        role="img",
        aria_label=told,
    )
    return element("figure", picture, element("figcaption", text(told)), class_="gain")
