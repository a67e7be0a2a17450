"""Moves of many rows of a table at once: its columns in two parts, and how these are matched."""

from math import exp, lgamma, log
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from queries.arrays import Floats, Integers, Words
from smalldb.kernels.compiling import kernel
from smalldb.kernels.imputing import ABSOLUTE, LARGEST, SQUARED, Counted, Signed, uniform

Rows = npt.NDArray[np.int16]


class Cut(NamedTuple):
    """Columns in two parts, with the patterns of each part that tables and prior look at."""

    columns: Integers  # of the first part
    alone: bool  # whether it is one column, whose patterns are its categories: then rows may change theirs
    within: Integers  # of each pattern of the first part: rows change it only for one of the same number
    # first, second: what the categories of all columns add to the pattern of the first part, and of the
    # second
    first: Integers
    second: Integers
    # tables, table_first, table_second: the tables that look at both parts, or at a column alone,
    # shapes (T,), (T, patterns), (T, patterns): the cell of two patterns is the sum
    tables: Integers
    table_first: Integers
    table_second: Integers
    # signs, before, prior_first, prior_second: shapes (Q,), (cells,), (Q, patterns), (Q, patterns). The
    # log prior of a matching adds up ``signs[q]`` times the log gamma of each count and its rows
    # beforehand. The cell of two patterns is the sum.
    signs: Floats
    before: Floats
    prior_first: Integers
    prior_second: Integers
    # parities, odd_first, odd_second: the parities that look at both parts, or at a column alone, and
    # whether each pattern is odd in it
    parities: Integers
    odd_first: Integers
    odd_second: Integers


@kernel
def patterns(rows: Rows, starts: Integers, codes: Integers) -> Integers:
    """Return the pattern of each row: what its categories add up to."""
    found = np.zeros(len(rows), np.int64)
    for c in range(rows.shape[1]):
        own = codes[starts[c] : starts[c + 1]]
        if np.any(own != 0):
            for i in range(len(rows)):
                found[i] += own[rows[i, c]]
    return found


@kernel
def matching(first: Integers, second: Integers, sizes: tuple[int, int]) -> Integers:
    """Return how many rows have each pair of patterns, shape `sizes`."""
    found = np.zeros(sizes, np.int64)
    for i in range(len(first)):
        found[first[i], second[i]] += 1
    return found


@kernel
def sums_of(matched: Integers) -> tuple[Integers, Integers]:
    """Return how many rows have each first pattern, and each second one."""
    firsts, seconds = np.zeros(matched.shape[0], np.int64), np.zeros(matched.shape[1], np.int64)
    for a in range(matched.shape[0]):
        for b in range(matched.shape[1]):
            firsts[a] += matched[a, b]
            seconds[b] += matched[a, b]
    return firsts, seconds


# Proof: docs/proofs/imputation.md, lemma 4.
@kernel
def move(
    matched: Integers,
    state: Words,
    steps: int,
    cut: Cut,
    counted: Counted,
    signed: Signed,
) -> int:
    """Move rows between pairs of patterns, many at once, and return how many moves were taken."""
    # A Metropolis step of the distribution of the matching given the noisy counts: k rows of the
    # patterns (a, b) and k of (c, d) exchange their second parts; or k rows of (a, b) become (c, b)
    firsts, seconds = sums_of(matched)
    some, others = np.flatnonzero(firsts), np.flatnonzero(seconds)
    if cut.alone:
        some = np.arange(matched.shape[0])
    counts = np.zeros(len(cut.before), np.int64)
    for q in range(len(cut.signs)):
        for x in some:
            for y in others:
                counts[cut.prior_first[q, x] + cut.prior_second[q, y]] += matched[x, y]
    together = False  # parities with one noise in common
    for p in range(len(cut.parities)):
        together = together or signed.kinds[cut.parities[p]] == LARGEST
    odd = np.zeros(len(signed.beyond), np.int64)
    xs, ys, signs = np.empty(4, np.int64), np.empty(4, np.int64), np.array([-1, 1, -1, 1])
    longest, made = log(firsts.sum() + 1.0), 0
    for _ in range(steps):
        a, c = some[int(uniform(state) * len(some))], some[int(uniform(state) * len(some))]
        b, d = others[int(uniform(state) * len(others))], others[int(uniform(state) * len(others))]
        k = int(exp(uniform(state) * longest))
        shift = cut.alone and uniform(state) < 0.5
        if a == c or cut.within[a] != cut.within[c] or matched[a, b] < k:
            continue
        if not shift and (b == d or matched[c, d] < k):
            continue
        cells = 2 if shift else 4
        xs[0], ys[0], xs[1], ys[1] = a, b, c, b
        xs[2], ys[2], xs[3], ys[3] = c, d, a, d
        gain = 0.0
        for i in range(cells):
            here, more = matched[xs[i], ys[i]], signs[i] * k
            gain += lgamma(here + 1.0) - lgamma(here + more + 1.0)
        for q in range(len(cut.signs)):
            of, by = cut.prior_first[q], cut.prior_second[q]
            if of[a] != of[c] and (shift or by[b] != by[d]):
                for i in range(cells):
                    cell = of[xs[i]] + by[ys[i]]
                    has, more = counts[cell] + cut.before[cell], signs[i] * k
                    gain += cut.signs[q] * (lgamma(has + more) - lgamma(has))
        for t in range(len(cut.tables)):
            of, by, table = cut.table_first[t], cut.table_second[t], cut.tables[t]
            if of[a] != of[c] and (shift or by[b] != by[d]):
                away = 0
                for i in range(cells):
                    here, more = counted.beyond[of[xs[i]] + by[ys[i]]], signs[i] * k
                    if counted.kinds[table] == SQUARED:
                        away += more * (2 * here + more)
                    else:
                        away += abs(here + more) - abs(here)
                if counted.kinds[table] != LARGEST:
                    gain -= counted.rates[table] * float(away)
                    continue
                for g in range(len(counted.first_common)):
                    begin, end = counted.first_common[g], counted.end_common[g]
                    if begin <= table < end:
                        was, now = 0, 0
                        for other in range(begin, end):
                            was = max(was, counted.away[other])
                            now = max(now, counted.away[other] + (away if other == table else 0))
                        gain -= counted.rates[table] * float(now - was)
        for q in range(len(cut.parities)):
            of, by, p = cut.odd_first[q], cut.odd_second[q], cut.parities[q]
            odd[p] = 0
            if of[a] != of[c] and (shift or by[b] != by[d]):
                for i in range(cells):
                    odd[p] += signed.scales[p] * signs[i] * k * (of[xs[i]] ^ by[ys[i]])
                here, to = signed.beyond[p], signed.beyond[p] + odd[p]
                if signed.kinds[p] == SQUARED:
                    gain -= signed.rates[p] * float(to * to - here * here)
                elif signed.kinds[p] == ABSOLUTE:
                    gain -= signed.rates[p] * float(abs(to) - abs(here))
        if together:
            was, now, rate = 0, 0, 0.0
            for p in range(len(odd)):
                if signed.kinds[p] == LARGEST:
                    was, rate = max(was, abs(signed.beyond[p])), signed.rates[p]
                    now = max(now, abs(signed.beyond[p] + odd[p]))
            gain -= rate * float(now - was)
        if gain < 0.0 and uniform(state) >= exp(gain):
            continue
        made += 1
        for i in range(cells):
            x, y, more = xs[i], ys[i], signs[i] * k
            matched[x, y] += more
            for q in range(len(cut.signs)):
                counts[cut.prior_first[q, x] + cut.prior_second[q, y]] += more
            for t in range(len(cut.tables)):
                cell = cut.table_first[t, x] + cut.table_second[t, y]
                here = counted.beyond[cell]
                counted.beyond[cell] += more
                counted.away[cut.tables[t]] += abs(here + more) - abs(here)
        for q in range(len(cut.parities)):
            signed.beyond[cut.parities[q]] += odd[cut.parities[q]]
    return made


@kernel
def below(count: int, state: Words) -> int:
    """Return a uniform number below another."""
    return min(int(uniform(state) * count), count - 1)


# Proof: docs/proofs/imputation.md, lemma 4.
@kernel
def deal(rows: Rows, state: Words, matched: Integers, first: Integers, second: Integers, cut: Cut) -> None:
    """Match the parts of rows anew, uniformly among all ways with so many rows of each pair of patterns."""
    left, (_, rest) = matched.copy(), sums_of(matched)
    to = np.empty(len(rows), np.int64)  # the pattern of the first part that each row gets
    for i in range(len(rows)):
        b = second[i]
        position, a = below(rest[b], state), 0
        while position >= left[a, b]:
            position -= left[a, b]
            a += 1
        left[a, b] -= 1
        rest[b] -= 1
        to[i] = a
    if cut.alone:
        for i in range(len(rows)):
            rows[i, cut.columns[0]] = to[i]
        return
    starts = np.zeros(matched.shape[0] + 1, np.int64)
    for i in range(len(rows)):
        starts[first[i] + 1] += 1
    starts = np.cumsum(starts)
    having = np.empty(len(rows), np.int64)  # the rows that had each pattern, those not taken yet in front
    there = np.zeros(matched.shape[0], np.int64)
    parts = np.empty((len(rows), len(cut.columns)), np.int16)
    for i in range(len(rows)):
        a = first[i]
        having[starts[a] + there[a]] = i
        there[a] += 1
        for m in range(len(cut.columns)):
            parts[i, m] = rows[i, cut.columns[m]]
    for i in range(len(rows)):
        a = to[i]
        position = starts[a] + below(there[a], state)
        there[a] -= 1
        taken = having[position]
        having[position] = having[starts[a] + there[a]]
        for m in range(len(cut.columns)):
            rows[i, cut.columns[m]] = parts[taken, m]
