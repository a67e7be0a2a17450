"""The same count, asked k times: fresh noise averages away, and with it the privacy.

python examples/averaging.py
"""

import math

from smalldb.accounting import compose, per_release
from smalldb.selection import laplace

TRUTH, EPSILON, TIMES = 711, 1, (1, 10, 100, 1000)  # survivors of the Titanic


def asked(times: int, epsilon: object, rng: int) -> list[int]:
    """Return answers with fresh noise each; seeded here, so that the example prints the same every time."""
    return [laplace(TRUTH, epsilon=epsilon, rng=rng + i) for i in range(times)]


def main() -> None:
    print(f"A count of {TRUTH}, asked k times at epsilon {EPSILON} each\n")
    print(f"{'k':>6}{'mean of answers':>18}{'its error':>12}{'epsilon spent':>16}")
    for k in TIMES:
        mean = sum(asked(k, EPSILON, rng=10_000)) / k
        spent = compose(epsilon=EPSILON, releases=k, delta=0).epsilon
        print(f"{k:6}{mean:18.3f}{abs(mean - TRUTH):12.3f}{spent:16.0f}")
    print("\nWho asks often enough knows the count. Its price is k epsilon: that is what was spent.")
    print(f"\nThe same, at epsilon {EPSILON} for all k answers together\n")
    print(f"{'k':>6}{'epsilon each':>14}{'error of one':>14}{'of their mean':>15}")
    for k in TIMES:
        each = per_release(epsilon=EPSILON, releases=k, delta=0)
        answers = asked(k, each, rng=20_000)
        first, mean = abs(answers[0] - TRUTH), abs(sum(answers) / k - TRUTH)
        print(f"{k:6}{each:14.4g}{first:14}{mean:15.3f}")
    print("\nNow the noise of each grows with k, and averaging wins back only its root: the mean is off by")
    print(f"about sqrt(k) times what one answer at epsilon {EPSILON} is, {noise(EPSILON):.2f}.")
    print("An answer that is released once and used again costs epsilon once: so does a synthetic table,")
    print("for all its queries.")


def noise(epsilon: float) -> float:
    """Return the standard deviation of two-sided geometric noise."""
    return math.sqrt(2 * math.exp(-epsilon)) / -math.expm1(-epsilon)


if __name__ == "__main__":
    main()
