"""The definitions, with itertools and Fractions: what every fast function must equal, exactly."""

from collections import Counter
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from math import factorial, floor, log, prod

import numpy as np

from smalldb.mechanisms import Marginal, Parity

ONE = 1 << 400  # the unit of fixed points


def multisets(cells, rows):
    """All small databases as counts over the cells, in the order of their sorted rows."""
    for chosen in combinations_with_replacement(range(cells), rows):
        counts = Counter(chosen)
        yield tuple(counts[cell] for cell in range(cells))


def score(matrix, answers, n, candidate):
    """s(y) = max_j |m b_j - n (A y)_j|, with m the rows of y."""
    rows = sum(candidate)
    return max(
        (
            abs(rows * int(b) - n * sum(int(w) * c for w, c in zip(weights, candidate, strict=True)))
            for weights, b in zip(matrix, answers, strict=True)
        ),
        default=0,
    )


def census(matrix, answers, n, cells, rows):
    """How many multisets of `rows` rows over `cells` cells have each score."""
    return Counter(score(matrix, answers, n, y) for y in multisets(cells, rows))


def ordered_census(matrix, answers, n, cells, rows):
    """The same over ordered rows."""
    found = Counter()
    for chosen in product(range(cells), repeat=rows):
        counts = Counter(chosen)
        found[score(matrix, answers, n, tuple(counts[cell] for cell in range(cells)))] += 1
    return found


def databases(cells, n, neighbours="replace-one"):
    """All databases of n rows, or under add-remove of up to n, as counts over the cells."""
    sizes = [n] if neighbours == "replace-one" else range(n + 1)
    return [x for size in sizes for x in multisets(cells, size)]


def scores(workload, rows, x):
    """Small database -> its score, where x are the data."""
    matrix = workload.matrix().tolist()
    answers = [sum(w * c for w, c in zip(weights, x, strict=True)) for weights in matrix]
    return {y: score(matrix, answers, sum(x), y) for y in multisets(len(x), rows)}


def law(workload, x, rows, epsilon, base="multisets"):
    """SmallDB by its definition: small database -> its probability, near a Fraction, where x are the data."""
    masses, rate = {}, Fraction(epsilon) / (2 * rows * workload.denominator)
    for y, level in scores(workload, rows, x).items():
        orders = factorial(rows) // prod(map(factorial, y)) if base == "tuples" else 1
        masses[y] = orders * exp_minus(rate * level)
    total = sum(masses.values())
    return {y: mass / total for y, mass in masses.items()}


def laws(workload, rows, epsilon, n, neighbours="replace-one", base="multisets"):
    """Of each database the probabilities of all small ones."""
    of = databases(workload.domain.size, n, neighbours)
    return {x: list(law(workload, x, rows, epsilon, base).values()) for x in of}


def neighbouring(laws, neighbours="replace-one"):
    """Yield the laws of all ordered pairs of neighbours."""
    for x, other in product(laws, repeat=2):
        apart = sum(abs(a - b) for a, b in zip(x, other, strict=True))
        if (apart, abs(sum(x) - sum(other))) == ((2, 0) if neighbours == "replace-one" else (1, 1)):
            yield laws[x], laws[other]


def worst(workload, rows, epsilon, n, neighbours="replace-one", base="multisets"):
    """Worst loss and range, over all ordered pairs of neighbours."""
    loss, widest = 0.0, 0.0
    for one, other in neighbouring(laws(workload, rows, epsilon, n, neighbours, base), neighbours):
        ratios = [log(p / q) for p, q in zip(one, other, strict=True)]
        loss, widest = max(loss, *ratios), max(widest, max(ratios) - min(ratios))
    return loss, widest


def conjunctions(attributes, width):
    """Monotone conjunctions of 1..width attributes as 0/1 rows over the cells in product order."""
    cells = list(product((0, 1), repeat=attributes))
    chosen = (some for size in range(1, width + 1) for some in combinations(range(attributes), size))
    return [[int(all(cell[i] for i in some)) for cell in cells] for some in chosen]


def fraction_law(census, rate):
    """Level -> a Fraction near its probability, by a long Taylor series (error below 1e-40)."""
    base = min(census)
    weights = {level: count * exp_minus(rate * (level - base)) for level, count in census.items()}
    total = sum(weights.values())
    return {level: weight / total for level, weight in weights.items()}


def exp_minus(r):
    """exp(-r) for a Fraction r >= 0, to about 1e-50 relative, by Taylor series and squaring."""
    r, halvings = Fraction(r), 0
    while r > 1:
        r, halvings = r / 2, halvings + 1
    r = floor(r * ONE)
    term = total = ONE
    for i in range(1, 60):
        term = term * -r // (i * ONE)
        total += term
    for _ in range(halvings):
        total = total * total // ONE
    return Fraction(total, ONE)


def offset_in_bin(value, low, high, units):
    """How far a number is above the middle of its bin, in units of its width; half a unit to even."""
    value, low, high = Fraction(value), Fraction(low), Fraction(high)
    inside = min(max(value, low), high)
    return 0 if low == high else round((inside - (low + high) / 2) / (high - low) * units)


def replaced_rows(rows, pool, picks, tables, beyond, weights):
    """Replace rows one by one where that lowers the weighted sum of squares; return them, cells, how many."""

    def cells(row):
        return [origin + int(row[a]) * stride + int(row[b]) for a, b, origin, stride in tables.tolist()]

    made = 0
    for i, pick in enumerate(picks.tolist()):
        after = beyond.copy()
        for cell in cells(rows[:, i]):
            after[cell] -= 1
        for cell in cells(pool[:, pick]):
            after[cell] += 1
        if (weights * after**2).sum() < (weights * beyond**2).sum() - 2e-9:
            rows[:, i], beyond, made = pool[:, pick], after, made + 1
    return rows, beyond, made


def distance(counts):
    """How far a table is from independent columns with its margins: sum of abs(cell - row x column / n)."""
    n = sum(map(sum, counts))
    if n == 0:
        return Fraction(0)
    sums = [sum(row) for row in counts], [sum(column) for column in zip(*counts, strict=True)]
    return sum(
        abs(Fraction(cell) - Fraction(a * b, n))
        for row, a in zip(counts, sums[0], strict=True)
        for cell, b in zip(row, sums[1], strict=True)
    )


def part_values(part, codes):
    """What a part of a measurement holds without noise, of codes of shape (rows, columns)."""
    if isinstance(part, Marginal):
        found = np.zeros(part.shape, dtype=np.int64)
        own = zip(part.columns, part.groups, strict=True)
        np.add.at(found, tuple(np.asarray(groups)[codes[:, c]] for c, groups in own), 1)
        return found
    if isinstance(part, Parity):
        odd = int(((codes[:, list(part.columns)] == part.yes).sum(axis=1) % 2).sum())
        return np.array([len(codes) - 2 * odd if part.signed else odd])
    return np.array([dependence(codes.tolist(), codes.max(axis=0) + 1, part.pairs, part.groups)])


def dependence(rows, sizes, pairs, groups):
    """The sum of these, each rounded down, of pairs of columns in up to so many runs of categories."""
    found = 0
    for a, b in pairs:
        own = [min(sizes[c], groups) for c in (a, b)]
        counts = [[0] * own[1] for _ in range(own[0])]
        for row in rows:
            counts[row[a] * own[0] // sizes[a]][row[b] * own[1] // sizes[b]] += 1
        found += floor(distance(counts))
    return found
