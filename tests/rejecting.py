"""What tests of rejection share: random instances, and how far draws are from the law."""

from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import pairwise
from math import sqrt

import numpy as np
import pandas as pd
from builders import flags

from queries import Rows
from queries.spec import parse
from smalldb.exact.bits import SeededBits
from smalldb.kernels.bitwise import unpack
from smalldb.kernels.nodes import MOST_ROWS, scan_for
from smalldb.kernels.trials import SURVIVED
from smalldb.kernels.ways import share_tables, tabulate
from smalldb.rejection import relaxation
from smalldb.rejection.sampler import Lane, tuple_sampler
from smalldb.rejection.tree import star


@cache
def instance(attributes, n, text, seed):
    """A workload over random data, and the data's answers."""
    draws = np.random.default_rng(seed)
    bits = (draws.random((n, attributes)) < draws.uniform(0.2, 0.8, attributes)).astype(np.uint8)
    domain = flags(attributes, name="a")
    workload = parse(text).workload(domain)
    rows = Rows.from_frame(domain, pd.DataFrame(bits, columns=list(domain.attributes)))
    return workload, workload.answers(rows), rows


def gaps(workload, answers, n, rows):
    """|m b - n a| of every query on every candidate, shape (k, candidates)."""
    positions = np.indices((workload.domain.size,) * rows).reshape(rows, -1)
    return np.abs(rows * answers[:, None] - n * workload.matrix()[:, positions].sum(axis=1))


def spelled(bits):
    """The number that ordered rows spell in base N."""
    return int("".join(map(str, bits.ravel().tolist())), 2)


def distance(made, workload, answers, n, rows, epsilon, draws, seed, most=1 << 62):
    """How far draws are from the definition, as `chi_square` has it."""
    scores = np.minimum(gaps(workload, answers, n, rows).max(axis=0), most)
    rate = float(epsilon) / (2 * rows * workload.denominator)
    found, source = Counter(), SeededBits(seed)
    for _ in range(draws):
        bits, score = made.draw(source)
        position = spelled(bits)
        assert scores[position] == score
        found[position] += 1
    return chi_square(found, dict(enumerate(np.exp(-rate * (scores - scores.min())).tolist())))


def chi_square(found, weights):
    """The chi-square statistic of counts, in standard deviations; outcomes that are rare go together."""
    draws, whole = found.total(), sum(weights.values())
    expected = np.array([float(draws * weight / whole) for weight in weights.values()])
    seen = np.array([found[outcome] for outcome in weights], dtype=float)
    assert seen.sum() == draws
    often = expected >= 5
    total, freedom = ((seen - expected)[often] ** 2 / expected[often]).sum(), often.sum() - 1
    if (rare := expected[~often].sum()) > 1:
        total, freedom = total + (seen[~often].sum() - rare) ** 2 / rare, freedom + 1
    return (total - freedom) / sqrt(2 * freedom)


def without_stars(monkeypatch):
    """Let stars be drawn from as any other tree is."""
    monkeypatch.setattr(relaxation, "has_own_trials", lambda target, tree: False)


def starred(attributes, rows, n, text, epsilon, hubs):
    """A sampler all of whose layers have one star."""
    workload, answers, _ = instance(attributes, n, text, rows)
    made = tuple_sampler(workload, answers, n, rows, Fraction(epsilon))
    force(made, star(hubs, attributes))
    return made, (workload, answers, n, rows, Fraction(epsilon))


def force(made, tree):
    """Let all layers of a sampler have this tree."""
    builder = made._builder
    thresholds = [layer.threshold for layer in builder._layers]
    counted = builder._relaxer.count_all(tree, thresholds, 1 << 40)
    layers = [counted.relaxation(position) for position in range(len(thresholds))]
    empty = sum(not layer.size for layer in layers)
    builder._lowest = max([builder._lowest, *(layer.threshold + 1 for layer in layers[:empty])])
    builder._layers[:] = layers[empty:]
    made._mixture, made._finished = builder.mixture(), True


def lane_of(made, layers, words):
    """One lane of trials of these layers, with these words."""
    layers = np.asarray(layers, dtype=np.int64)
    order = np.argsort(layers, kind="stable")
    (lane,) = Lane.several(made._target, made._mixture, layers, order, 1)
    lane.words = words
    return lane


def survivors(lane):
    """Yield the layer of each trial that survives, until words run out or all were made."""
    while True:
        lane.go_on(len(lane.order))
        if lane.status != SURVIVED:
            return
        yield int(lane.layers[lane.position])
        lane.turn += 1


def slot_of(tables, states, node, state):
    """The row of a state in the slots of the tables, by looking at each of its node's."""
    start, end = states.slot_start[node], states.slot_start[node + 1]
    (found,) = np.flatnonzero((tables.slots[start:end, :2] == states.keys[state]).all(axis=1))
    assert tables.slots[start + found, 2] == state
    return int(start + found)


def shares_at(nodes, states, node, state):
    """Where the share of each way at a state begins and ends; a way is what it takes of each cell."""
    tables, scan = share_tables(states, nodes.cells > 0, 1 << 12), scan_for(nodes)
    unpack(*states.keys[state], scan.h)
    slot = slot_of(tables, states, node, state)
    tabulate(nodes, node, slot, states, scan, np.empty(MOST_ROWS + 1), tables)
    found = {}
    for way, ends in zip(tables.ways, pairwise([0, *tables.sums[: tables.used[0]].tolist()]), strict=False):
        unpack(*way, scan.u)
        found[tuple(scan.u[: nodes.cells[node]].tolist())] = ends
    return found
