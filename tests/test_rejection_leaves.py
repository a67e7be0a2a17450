"""Broad leaves of rejection: counted together, drawn again until they fit, and proposed alike."""

from fractions import Fraction
from itertools import combinations, product
from math import comb, prod

import numpy as np
import pytest
from rejecting import gaps, instance, lane_of, starred, survivors, without_stars

from queries import Conjunctions, Linear
from smalldb.exact.bits import SeededBits
from smalldb.kernels.bitwise import unpack
from smalldb.kernels.checks import answers_of
from smalldb.kernels.leaves import weigh_leaves
from smalldb.kernels.nodes import MOST_CELLS
from smalldb.kernels.trials import PAUSED
from smalldb.rejection import relaxation
from smalldb.rejection.building import held_gain, pair_gains, richest_star
from smalldb.rejection.relaxation import Counted, Relaxer, TooCostly
from smalldb.rejection.sampler import tuple_sampler
from smalldb.rejection.target import Target, uniform_words
from smalldb.rejection.tree import star

EXAMPLES = ["conjunctions:2", "marginals:2", "conjunctions:3", "conjunctions:2:negations"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "hubs, text", [((5, 2, 3, 0), EXAMPLES[0]), *(((1, 4, 0), text) for text in EXAMPLES)], ids=str
)
def test_leaves_weighed_together_have_the_product_of_their_values(hubs, text, monkeypatch):
    workload, answers, _ = instance(6, 31, text, 8)
    relaxer = Relaxer(Target.build(workload, answers, 31, 5))
    tree, thresholds = star(hubs, 6), [20, 45, 50, 62, 90]
    assert tree.broad == tuple(range(len(hubs), 6))
    together = relaxer.count_all(tree, thresholds, 1 << 40)
    alone = each_leaf_alone(relaxer, tree, thresholds, monkeypatch)
    assert together.log_sizes.tolist() == alone.log_sizes.tolist()
    first = tree.broad[0]
    for hub in range(first):
        assert np.array_equal(values(together, hub), values(alone, hub))
    product = prod(values(alone, leaf) for leaf in tree.broad)
    assert np.array_equal(values(together, first), product)  # few rows: nothing is rounded
    assert not values(together, tree.broad[1]).size
    assert (np.diff(together.values, axis=1) > 0).any(axis=0).all()
    assert ((product == 0) & (values(alone, first) > 0)).any()


@pytest.mark.parametrize("text", [*EXAMPLES, "weighted"])
def test_a_star_of_broad_leaves_holds_what_its_queries_allow(text):
    """By looking at every candidate; with weights, answers come in steps of 3, and bounds lie between."""
    rows, n, tree, thresholds = 3, 7, star((1, 4, 0), 5), range(22)
    workload, answers, data = instance(5, n, EXAMPLES[0] if text == "weighted" else text, rows)
    if text == "weighted":
        weighted = Linear([[Fraction(b + 2 * c, 3) for _, b, c, *_ in product((0, 1), repeat=5)]])
        workload = (Conjunctions(2) + weighted).workload(data.domain)
        answers = workload.answers(data)
    held = [any(set(q.attributes) <= set(clique) for clique in tree.cliques) for q in workload.queries]
    found = gaps(workload, answers, n, rows)[held].max(axis=0)
    counts = Relaxer(Target.build(workload, answers, n, rows)).count_all(tree, thresholds, 1 << 40)
    sizes = [counts.relaxation(threshold).size for threshold in thresholds]
    assert sizes == [(found <= threshold).sum() for threshold in thresholds]


def each_leaf_alone(relaxer, tree, thresholds, monkeypatch):
    """Count with states of their own for all leaves."""
    monkeypatch.setattr(relaxation, "_alike", lambda tree, blocks, broad: [])
    return relaxer.count_all(tree, thresholds, 1 << 40)


def values(counts, node):
    """The values of one node's states, shape (states, thresholds), in the order of the states."""
    held = slice(*counts.states.start[node : node + 2].tolist())
    return counts.values[held][np.lexsort(counts.states.keys[held].T)]


def test_without_positions_leaves_are_weighed_as_other_nodes_are(monkeypatch):
    workload, answers, _ = instance(6, 31, "conjunctions:2", 8)
    relaxer, tree = Relaxer(Target.build(workload, answers, 31, 5)), star((1, 4, 0), 6)
    monkeypatch.setattr(relaxation, "weigh_leaves", lambda *rest: -1)
    found = relaxer.count_all(tree, [62], 1 << 40)
    assert found.values.tolist() == each_leaf_alone(relaxer, tree, [62], monkeypatch).values.tolist()


@pytest.mark.slow
def test_many_forms_need_more_positions_than_a_word_can_tell():
    """The number of positions once wrapped round to a small one, and counts were written beyond their end."""
    workload, answers, _ = instance(4, 37, "halfspaces", 3)
    made = tuple_sampler(workload, answers, 37, 3, Fraction(25))
    starred = [layer.tree for layer in made._builder._layers if layer.tree.broad]
    assert starred
    blocks = [made._builder._relaxer._block(clique) for clique in starred[0].cliques]
    assert 4 ** len(blocks[3].forms) >= 1 << 64
    for seed in range(20):
        bits, score = made.draw(SeededBits(seed))
        assert bits.shape == (3, 4)
        assert score <= made._target.largest_score


def test_a_count_whose_parts_end_before_their_time_is_given_up(monkeypatch):
    """The first part may foretell too little; what other parts left out must not be taken for empty."""
    workload, answers, _ = instance(6, 31, "conjunctions:2", 8)
    relaxer, tree = Relaxer(Target.build(workload, answers, 31, 12)), star((1, 4, 0), 6)
    weigh, seen = weigh_leaves, []

    def foretells_nothing(*arguments):
        cost, (budget, part, _) = weigh(*arguments), arguments[-3:]
        seen.append((budget, cost))
        return cost if part else 0

    monkeypatch.setattr(relaxation, "weigh_leaves", foretells_nothing)
    whole = relaxer.count_all(tree, [62], 1 << 40)
    before, most = (1 << 40) - seen[0][0], max(cost for _, cost in seen)
    assert most > 20
    outcomes = set()
    for left in (1, most // 2, most - 1, most):
        found = relaxer.count_all(tree, [62], before + left)
        outcomes.add((left < most, type(found)))
        if isinstance(found, Counted):
            assert found.log_sizes.tolist() == whole.log_sizes.tolist()
    assert (True, Counted) not in outcomes
    assert (True, TooCostly) in outcomes


@pytest.fixture(scope="module")
def made():
    with pytest.MonkeyPatch.context() as monkeypatch:
        without_stars(monkeypatch)
        return starred(5, 6, 60, "conjunctions:2", 4, (3, 0, 2))[0]


@pytest.mark.slow
def test_a_broad_leaf_is_as_likely_as_it_has_columns(made):
    """What the coin is told of a leaf is the number of columns that its hubs allow, by trying each."""
    target, mixture = made._target, made._mixture
    layers = mixture.choose(uniform_words(SeededBits(2), 2_000))
    checked, lane = 0, lane_of(made, layers, uniform_words(SeededBits(3), 40_000))
    for layer in survivors(lane):
        if layer == len(mixture.sums) - 1:
            continue
        columns, shares, ways = lane.columns, lane.shares, lane.ways
        tree = made._builder._layers[layer].tree
        lows, highs = target.bounds(made._builder._layers[layer].threshold)
        for node in tree.broad:
            queries = made._builder._relaxer._block(tree.cliques[node]).queries
            tried, fitting = columns.copy(), set()
            for column in range(1 << target.rows):
                tried[tree.order[node]] = column
                found = answers_of(target.queries, tried, target.everyone)[queries]
                if (lows[queries] <= found).all() and (found <= highs[queries]).all():
                    fitting.add(column)
            assert int(columns[tree.order[node]]) in fitting
            assert (int(shares[node]), int(ways[node])) == (1 << 63, len(fitting))
            checked += 1 < len(fitting) < 1 << target.rows
    assert lane.status == PAUSED
    assert checked > 20


@pytest.mark.slow
def test_a_narrow_leaf_has_as_much_of_its_table_as_columns(made):
    source = SeededBits(4)
    for _ in range(20):
        made.draw(source)
    leaves = made._mixture.rooms[-1][1]  # its tables end with those of all lanes
    nodes, tables = leaves.nodes, leaves.tables
    checked, h, u = 0, np.zeros(MOST_CELLS, np.int64), np.zeros(MOST_CELLS, np.int64)
    for first, second, _, table in tables.slots.tolist():
        end, size = table >> 32, table & ((1 << 32) - 1)
        unpack(np.uint64(first), np.uint64(second), h)
        sums = [0, *tables.sums[end - size : end].tolist()]
        for way, before, after in zip(tables.ways[end - size : end], sums, sums[1:], strict=False):
            unpack(*way, u)
            assert after - before == prod(map(comb, h.tolist(), u.tolist()))
            checked += after - before > 1
    assert checked > 20
    assert (nodes.cells <= 4).all()


def test_the_star_of_most_gain_is_taken():
    workload, answers, _ = instance(6, 31, "conjunctions:2", 8)
    gains = pair_gains(Target.build(workload, answers, 31, 5), 45)
    held = {hubs: held_gain(gains, star(hubs, 6)) for hubs in combinations(range(6), 3)}
    most = max(held.values())
    best = [star(hubs, 6) for hubs, gain in held.items() if gain > most - 1e-9]
    assert len(best) < len(held)
    assert richest_star(gains, 3, most - 1e-9) in best
    assert richest_star(gains, 3, most + 1e-9) is None
    assert richest_star(gains[:3, :3], 3, -1) is None  # no attribute is left to hang on the hubs
