"""Selecting from a list, as the sources tell it: which noise, how much of it, and what each claim is worth.

python examples/selection.py
"""

import math
from fractions import Fraction

import smalldb

# marital status of 32,561 people: the published counts of UCI "Adult" (Becker and Kohavi 1996, CC BY 4.0)
MARITAL = {
    "Married-civ-spouse": 14976,
    "Never-married": 10683,
    "Divorced": 4443,
    "Separated": 1025,
    "Widowed": 993,
    "Married-spouse-absent": 418,
    "Married-AF-spouse": 23,
}
METHODS = ("exponential", "permute-and-flip", "noisy-max")


def law(scores: list[object], **choices: object) -> dict[int, float]:
    """Return the probability of each position, as floats for printing."""
    exact = smalldb.selection_law(scores, **choices)
    return {position: float(low) for (position,), (low, _) in exact.items()}


def marital_status() -> None:
    print("The commonest marital status at epsilon 1: how often each would be named\n")
    names, counts = list(MARITAL), list(MARITAL.values())
    scaled = [Fraction(count, 1000) for count in counts]
    columns = {
        "count/1000, sens. 1": law(scaled, epsilon=1, sensitivity=1),
        "the same, noisy max": law(scaled, epsilon=1, sensitivity=1, method="noisy-max"),
        "count, sens. 1": law(counts, epsilon=1, sensitivity=1),
    }
    print(f"{'':24}" + "".join(f"{title:>22}" for title in columns))
    for position, name in enumerate(names):
        print(f"{name:24}" + "".join(f"{column[position]:22.6f}" for column in columns.values()))
    two = law(scaled[:2], epsilon=1, sensitivity=1)[0]
    print(f"\nBetween the first two alone: {two:.5f}. Dividing the counts by 1000 but not their sensitivity")
    print("is private, and a thousand times more careful than it need be.\n")


def half_of_the_noise() -> None:
    print(
        "Report-noisy-max with Laplace noise of scale sensitivity / epsilon, scores (0, 0) against (1, -1)\n"
    )
    for monotone, claim in ((True, "sensitivity / epsilon"), (False, "2 sensitivity / epsilon")):
        before, after = (
            law(scores, epsilon=1, sensitivity=1, monotone=monotone, method="noisy-max")
            for scores in ([0, 0], [1, -1])
        )
        print(f"scale {claim:24} loses {math.log(before[1] / after[1]):.7f} at epsilon 1")
    print(
        "\nThe smaller noise is for scores that all move the same way, such as counts when a row is added.\n"
    )


def laplace_from_exponential() -> None:
    print("The Laplace mechanism is the exponential mechanism with score -|answer - r|, of sensitivity 1\n")
    grid, answer, step = range(-24, 25), 3, Fraction(1, 2)
    exact = law([-abs(step * position - answer) for position in grid], epsilon=1, sensitivity=1)
    weights = {position: math.exp(-abs(float(step * r) - answer) / 2) for position, r in enumerate(grid)}
    total = sum(weights.values())
    gap = max(abs(exact[position] - weights[position] / total) for position in exact)
    print(f"on a grid of {len(grid)} points: Laplace noise of scale 2 / epsilon, to within {gap:.0e}")
    direct = law([-abs(step * position - answer) for position in grid], epsilon=1, range=2)
    same = max(abs(exact[position] - direct[position]) for position in exact)
    print(f"its range is 2, so nothing is gained by counting that instead: difference {same:.0e}")
    print("(a direct proof gives scale 1 / epsilon: the distance obeys the triangle inequality)\n")


def gumbel_against_laplace() -> None:
    print("One-shot top-k: Gumbel against Laplace noise, for the same (epsilon, delta)\n")
    print(f"{'candidates':>12}{'delta':>10}{'sigma ratio':>14}")
    for candidates, delta in ((10, 1e-6), (1000, 1e-6), (10**6, 1e-6), (10**6, 1e-9)):
        ratio = (
            math.pi
            / math.sqrt(6)
            * 2
            / (8 * math.sqrt(2))
            * math.sqrt(math.log(1 / delta) / math.log(candidates / delta))
        )
        print(f"{candidates:12,}{delta:10.0e}{ratio:14.5f}")
    listed = smalldb.selection_law([3, 1, 0, 2], epsilon=2, sensitivity=1, monotone=True, method="top-k", k=2)
    best = max(listed, key=lambda outcome: listed[outcome][0])
    print(f"\nThe commonest ranked pair of the scores (3, 1, 0, 2) is {best}: {float(listed[best][0]):.4f},")
    print("by two exponential draws or one shot of Gumbel noise: their laws are equal.\n")


def bounded_range() -> None:
    print("How far apart the log ratios lie for the scores (0, 0) against (1, 0), at epsilon 1\n")
    before, after = [0, 0, -200], [1, 0, -200]
    for method in METHODS:
        laws = [law(u, epsilon=1, sensitivity=1, monotone=True, method=method) for u in (before, after)]
        ratios = [math.log(laws[1][position] / laws[0][position]) for position in (0, 1)]
        print(f"{method:18} {max(ratios) - min(ratios):.6f}")
    print(f"\nPermute-and-flip reaches epsilon + ln(2 - 1/e) = {1 + math.log(2 - math.exp(-1)):.6f}:")
    print("it loses no more than epsilon, but may not be composed as the exponential mechanism may.")


if __name__ == "__main__":
    marital_status()
    half_of_the_noise()
    laplace_from_exponential()
    gumbel_against_laplace()
    bounded_range()
