"""Metropolis moves of the rows of a table that is known by noisy counts, and by a model of its columns."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from queries.arrays import Floats, Integers, Words
from smalldb.kernels.bitwise import ONE, ones
from smalldb.kernels.compiling import kernel

ABSOLUTE, SQUARED, LARGEST = 0, 1, 2  # what the log density of a set of deviations is a multiple of


class Cliques(NamedTuple):
    """Conditional distributions of columns given others, by groups of their categories."""

    # shape (B + 1,): the categories of column b are entries ``starts[b]:starts[b + 1]`` of what follows
    starts: Integers
    groups: Integers  # the group of each category
    shares: Floats  # the probability of each category within its group
    probabilities: Floats  # of all cliques, one after another
    origins: Integers  # shape (K,): where those of clique k begin
    # first_member, members, strides: the columns of clique k, and what a group of each adds to the
    # cell, are entries ``first_member[k]:first_member[k + 1]``
    first_member: Integers
    members: Integers
    strides: Integers
    # first_clique, cliques, own_strides: the cliques that have column b, and its stride there, in the
    # same way
    first_clique: Integers
    cliques: Integers
    own_strides: Integers


class Counted(NamedTuple):
    """Noisy counts of tables."""

    beyond: Integers  # of all cells, counts of the rows less what was released
    origins: Integers  # shape (T,): where the cells of table t begin
    # kinds, rates: shape (T,): of the log density. Of tables of the kind `LARGEST` with one noise in
    # common, it is -rate times the largest of their sums of absolute deviations.
    kinds: Integers
    rates: Floats
    away: Integers  # shape (T,): the sum of absolute deviations of such a table
    # first_common, end_common: shape (G,): the tables with common noise g are tables
    # ``first_common[g]:end_common[g]``
    first_common: Integers
    end_common: Integers
    codes: Integers  # what categories of columns add to cells
    # first_member, members, member_codes: the columns of table t, and where their `codes` begin, are
    # entries ``first_member[t]:first_member[t + 1]``
    first_member: Integers
    members: Integers
    member_codes: Integers
    # first_table, tables, own_codes: the tables that have column b, and where its codes for them begin,
    # in the same way
    first_table: Integers
    tables: Integers
    own_codes: Integers


class Signed(NamedTuple):
    """Noisy counts of rows that have an odd number of yes among some columns."""

    beyond: Integers  # shape (P,): those of the rows, times `scales`, less what was released
    scales: Integers  # shape (P,): 1; or -2, where sums of signs were released
    masks: Words  # shape (P, W): which bits are looked at
    bits: Words  # shape (categories, W): the yes/no columns that are yes, of each category of each column
    # kinds, rates: shape (P,): of the log density. Those of the kind `LARGEST` have one noise in
    # common.
    kinds: Integers
    rates: Floats
    # first_parity, parities: the parities that look at column b are entries
    # ``first_parity[b]:first_parity[b + 1]``
    first_parity: Integers
    parities: Integers


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
def gammas(shapes: Floats, state: Words) -> Floats:
    """Draw a gamma number of each shape, at least 1e-300: by rejection from cubes of normal numbers."""
    # Marsaglia and Tsang, "A simple method for generating gamma variables" (2000). Shapes below 1 are
    # drawn one higher, times the power 1 / shape of a uniform number.
    found = np.empty(len(shapes))
    for i in range(len(shapes)):
        shape = shapes[i]
        scale = 1.0
        if shape < 1.0:
            scale = uniform(state) ** (1.0 / shape)
            shape += 1.0
        middle = shape - 1.0 / 3.0
        step = 1.0 / np.sqrt(9.0 * middle)
        while True:
            normal = np.sqrt(-2.0 * np.log(uniform(state))) * np.cos(2.0 * np.pi * uniform(state))
            cube = (1.0 + step * normal) ** 3
            most = normal * normal / 2 + middle * (1 - cube + np.log(max(cube, 1e-300)))
            if cube > 0.0 and np.log(uniform(state)) < most:
                break
        found[i] = max(1e-300, middle * cube * scale)
    return found


@kernel
def cell(rows: npt.NDArray[np.int16], row: int, table: int, counted: Counted) -> int:
    """Return the cell of a row in a table."""
    found = int(counted.origins[table])
    for m in range(counted.first_member[table], counted.first_member[table + 1]):
        found += int(counted.codes[counted.member_codes[m] + rows[row, counted.members[m]]])
    return found


@kernel
def count_rows(rows: npt.NDArray[np.int16], starts: Integers, counted: Counted, signed: Signed) -> None:
    """Add the rows to the deviations of tables and parities."""
    words = signed.masks.shape[1]
    has = np.zeros(words, np.uint64)
    for row in range(len(rows)):
        for table in range(len(counted.origins)):
            counted.beyond[cell(rows, row, table, counted)] += 1
        has[:] = np.uint64(0)
        for b in range(rows.shape[1]):
            for w in range(words):
                has[w] ^= signed.bits[starts[b] + rows[row, b], w]
        for p in range(len(signed.beyond)):
            together = np.uint64(0)
            for w in range(words):
                together ^= has[w] & signed.masks[p, w]
            if ones(together) & ONE:
                signed.beyond[p] += signed.scales[p]


# Proof: docs/proofs/imputation.md, lemma 2.
@kernel
def sweep(
    rows: npt.NDArray[np.int16],
    state: Words,
    cliques: Cliques,
    counted: Counted,
    signed: Signed,
) -> int:
    """Offer each entry a move, and return how many were made."""
    # A category is drawn from the column's distribution given the others, and is taken with the ratio
    # of the likelihoods of the noise: a Metropolis step of the distribution of the rows given the noisy
    # counts and the model
    columns, words = rows.shape[1], signed.masks.shape[1]
    most_categories = 0
    for b in range(columns):
        most_categories = max(most_categories, cliques.starts[b + 1] - cliques.starts[b])
    odds, weights = np.empty(most_categories), np.empty(most_categories)
    moved = np.zeros(len(signed.beyond), np.int64)
    shifts = np.zeros(len(counted.origins), np.int64)
    has = np.zeros(words, np.uint64)
    changed = np.zeros(words, np.uint64)
    largest_rate = 0.0
    for p in range(len(moved)):
        if signed.kinds[p] == LARGEST:
            largest_rate = signed.rates[p]
    made = 0
    for row in range(len(rows)):
        if len(moved):
            has[:] = np.uint64(0)
            for b in range(columns):
                for w in range(words):
                    has[w] ^= signed.bits[cliques.starts[b] + rows[row, b], w]
        for b in range(columns):
            start, size, old = cliques.starts[b], cliques.starts[b + 1] - cliques.starts[b], rows[row, b]
            most = 0
            for v in range(size):
                most = max(most, cliques.groups[start + v])
            weights[: most + 1] = 1.0
            for q in range(cliques.first_clique[b], cliques.first_clique[b + 1]):
                k, stride = cliques.cliques[q], cliques.own_strides[q]
                origin = cliques.origins[k]
                for m in range(cliques.first_member[k], cliques.first_member[k + 1]):
                    other = cliques.members[m]
                    if other != b:
                        position = cliques.starts[other] + rows[row, other]
                        origin += cliques.strides[m] * cliques.groups[position]
                for g in range(most + 1):
                    weights[g] *= cliques.probabilities[origin + stride * g]
            total = 0.0
            for v in range(size):
                total += weights[cliques.groups[start + v]] * cliques.shares[start + v]
                odds[v] = total
            new, wanted = 0, uniform(state) * total
            while new < size - 1 and odds[new] <= wanted:
                new += 1
            if new == old or not total > 0.0:
                continue
            cost, together = 0.0, False
            for q in range(counted.first_table[b], counted.first_table[b + 1]):
                table, codes = counted.tables[q], counted.own_codes[q]
                step = counted.codes[codes + new] - counted.codes[codes + old]
                if step:
                    here = cell(rows, row, table, counted)
                    left, joined = counted.beyond[here], counted.beyond[here + step]
                    if counted.kinds[table] == SQUARED:
                        cost += counted.rates[table] * 2.0 * (joined - left + 1)
                    else:
                        away = abs(left - 1) - abs(left) + abs(joined + 1) - abs(joined)
                        if counted.kinds[table] == ABSOLUTE:
                            cost += counted.rates[table] * away
                        else:
                            shifts[table], together = away, True
            if together:
                for g in range(len(counted.first_common)):
                    first, before, after = counted.first_common[g], 0, 0
                    for table in range(first, counted.end_common[g]):
                        before = max(before, counted.away[table])
                        after = max(after, counted.away[table] + shifts[table])
                    cost += counted.rates[first] * float(after - before)
            if len(moved):
                for w in range(words):
                    changed[w] = signed.bits[start + old, w] ^ signed.bits[start + new, w]
                for q in range(signed.first_parity[b], signed.first_parity[b + 1]):
                    p = signed.parities[q]
                    flips, stands = np.uint64(0), np.uint64(0)
                    for w in range(words):
                        flips ^= changed[w] & signed.masks[p, w]
                        stands ^= has[w] & signed.masks[p, w]
                    if ones(flips) & ONE:
                        moved[p] = -signed.scales[p] if ones(stands) & ONE else signed.scales[p]
                        to = signed.beyond[p] + moved[p]
                        if signed.kinds[p] == SQUARED:
                            cost += signed.rates[p] * float(to * to - signed.beyond[p] * signed.beyond[p])
                        elif signed.kinds[p] == ABSOLUTE:
                            cost += signed.rates[p] * float(abs(to) - abs(signed.beyond[p]))
                if largest_rate:
                    before, after = 0, 0
                    for p in range(len(moved)):
                        if signed.kinds[p] == LARGEST:
                            before = max(before, abs(signed.beyond[p]))
                            after = max(after, abs(signed.beyond[p] + moved[p]))
                    cost += largest_rate * float(after - before)
            if cost > 0.0 and uniform(state) >= np.exp(-cost):
                for q in range(signed.first_parity[b], signed.first_parity[b + 1]):
                    moved[signed.parities[q]] = 0
                for q in range(counted.first_table[b], counted.first_table[b + 1]):
                    shifts[counted.tables[q]] = 0
                continue
            for q in range(counted.first_table[b], counted.first_table[b + 1]):
                table, codes = counted.tables[q], counted.own_codes[q]
                step = counted.codes[codes + new] - counted.codes[codes + old]
                if step:
                    here = cell(rows, row, table, counted)
                    counted.beyond[here] -= 1
                    counted.beyond[here + step] += 1
                    counted.away[table] += shifts[table]
                    shifts[table] = 0
            if len(moved):
                for q in range(signed.first_parity[b], signed.first_parity[b + 1]):
                    p = signed.parities[q]
                    signed.beyond[p] += moved[p]
                    moved[p] = 0
                for w in range(words):
                    has[w] ^= changed[w]
            rows[row, b] = new
            made += 1
    return made
