"""Points of the polytope of what rows do to a column's counts, simulated for intervals."""

import numpy as np

from queries.arrays import Floats, Integers, Words
from smalldb.kernels.compiling import kernel


@kernel
def uniform(state: Words) -> float:
    """Return the next number of a stream, above 0 and below 1: splitmix64 (Steele, Lea and Flood 2014)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    mixed = state[0]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return (float(mixed >> np.uint64(12)) + 0.5) * 2.0**-52


@kernel
def draw_subset(count: int, most: int, state: Words) -> Integers:
    """Draw `count` of the integers 1..most, uniformly, in ascending order (Floyd's algorithm)."""
    subset = np.zeros(count, np.int64)
    for i in range(count):
        last = most - count + 1 + i
        drawn = min(last, 1 + int(uniform(state) * last))
        for j in range(i):
            if subset[j] == drawn:
                drawn = last
                break
        place = i
        while place > 0 and subset[place - 1] > drawn:
            subset[place] = subset[place - 1]
            place -= 1
        subset[place] = drawn
    return subset


@kernel
def draw_points(size: int, up: Integers, down: Integers, state: Words) -> Floats:
    """Draw points for pairs of radii, as `noise.column_polytope.draw_point`, by pseudo-random numbers."""
    free = size - 1
    points = np.zeros((len(up), size))
    odds = np.empty(size)
    for i in range(len(up)):
        logs, largest, most = 0.0, 0.0, min(free, up[i])
        odds[0] = 0.0
        for j in range(most):
            rest = free - j
            logs += np.log(float(rest) * float(up[i] - j) * rest / ((j + 1.0) ** 2 * (down[i] + rest)))
            odds[j + 1] = logs
            largest = max(largest, logs)
        total = 0.0
        for j in range(most + 1):
            total += np.exp(odds[j] - largest)
            odds[j] = total
        wanted, positive = uniform(state) * total, 0
        while positive < most and odds[positive] <= wanted:
            positive += 1
        signs = draw_subset(positive, free, state)
        rises = draw_subset(positive, up[i], state)
        falls = draw_subset(free - positive, down[i] + free - positive, state)
        rise, fall, total_of_row = 0, 0, 0
        for position in range(free):
            if rise < positive and signs[rise] == position + 1:
                value = rises[rise] - (rises[rise - 1] if rise else 0)
                rise += 1
            else:
                value = 1 - falls[fall] + (falls[fall - 1] if fall else 0)
                fall += 1
            points[i, position] = value
            total_of_row += value
        points[i, free] = up[i] - down[i] - total_of_row
    return points
