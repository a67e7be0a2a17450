"""Exact SmallDB by rejection: what is counted, what is proposed, and the law of what is kept."""

from fractions import Fraction
from functools import cache
from itertools import chain, combinations, product
from math import comb, prod

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from margins import check_coins
from rejecting import (
    distance,
    force,
    gaps,
    instance,
    lane_of,
    shares_at,
    spelled,
    survivors,
    without_stars,
)

from queries import Conjunctions, Domain, Linear
from queries.spec import parse
from smalldb import census
from smalldb.exact.bits import SeededBits
from smalldb.exact.integers import uniform_below
from smalldb.exact.levels import draw_level
from smalldb.kernels.bitwise import unpack
from smalldb.kernels.nodes import scan_for
from smalldb.kernels.trials import OUT_OF_WORDS, PAUSED, subset
from smalldb.rejection import sampler
from smalldb.rejection.building import greedy, improve, pair_gains
from smalldb.rejection.layers import Envelope
from smalldb.rejection.relaxation import Counted, Relaxer, TooCostly
from smalldb.rejection.sampler import Factored, Sampler, tuple_sampler
from smalldb.rejection.target import Target
from smalldb.rejection.tree import Tree, scattered

PREDICATES = "predicates:a0 & a1 | a2; a1 ^ a2; (a0 | a3) & ~a1"
EXAMPLES = [
    "conjunctions:2",
    "marginals:2",
    "conjunctions:3",
    "parities:2",
    "conjunctions:2:negations",
    PREDICATES,
]
TREES = [
    scattered(4),
    Tree((2, 0, 1, 3), ((), (0,), (0,), (1,))),
    Tree((2, 0, 1, 3), ((), (0,), (0, 1), (1, 2))),
    Tree((3, 1, 0, 2), ((), (0,), (0, 1), (0, 1, 2))),
    Tree((3, 1, 0, 2), ((), (), (1,), (1, 2))),
]


@pytest.mark.parametrize("text", [*EXAMPLES, "weighted"])
@pytest.mark.parametrize("tree", TREES, ids=lambda tree: str(tree.parents))
def test_the_relaxed_set_is_counted_exactly(text, tree):
    """With weights answers come in steps of their common denominator, 3; bounds lie between."""
    rows, n = 3, 7
    workload, answers, data = instance(4, n, "conjunctions:2" if text == "weighted" else text, rows)
    if text == "weighted":
        weighted = Linear([[Fraction(b + 2 * c, 3) for _, b, c, _ in product((0, 1), repeat=4)]])
        workload = (Conjunctions(2) + weighted).workload(data.domain)
        answers = workload.answers(data)
        assert workload.denominator == 3
    relaxer = Relaxer(Target.build(workload, answers, n, rows))
    held = [
        any(set(query.attributes) <= set(clique) for clique in tree.cliques) for query in workload.queries
    ]
    found = gaps(workload, answers, n, rows)[held].max(axis=0, initial=0)
    thresholds = [0, 2, 3, 6, 9, 12, 21]
    together = relaxer.count_all(tree, thresholds, 1 << 40)
    for position, threshold in enumerate(thresholds):
        assert together.relaxation(position).size == (found <= threshold).sum()
        assert relaxer.count(tree, threshold, 1 << 40).size == (found <= threshold).sum()


def test_a_count_stops_at_its_budget():
    workload, answers, _ = instance(4, 7, "conjunctions:2", 3)
    relaxer = Relaxer(Target.build(workload, answers, 7, 3))
    cost = relaxer.count_all(TREES[2], [9], 1 << 40).cost
    assert relaxer.count(TREES[2], 9, cost).size == relaxer.count(TREES[2], 9, 1 << 40).size
    assert relaxer.count(TREES[2], 9, cost - 1) is None
    assert relaxer.count(TREES[2], 9, 3) is None
    cost = relaxer.count_all(TREES[2], [0, 7, 9], 1 << 40).cost
    assert isinstance(relaxer.count_all(TREES[2], [0, 7, 9], cost), Counted)
    given_up = relaxer.count_all(TREES[2], [0, 7, 9], cost - 1)
    assert isinstance(given_up, TooCostly)
    assert given_up.spent == cost < given_up.needed


@pytest.mark.parametrize("tree", TREES[1:], ids=lambda tree: str(tree.parents))
def test_counted_together_or_alone_states_have_the_same_values(tree):
    """Together, a state may be left that nothing leads to; none is left out that has a value."""
    workload, answers, _ = instance(4, 7, "conjunctions:2", 3)
    relaxer = Relaxer(Target.build(workload, answers, 7, 5))
    thresholds = [5, 6, 8, 12, 13, 20]
    together = relaxer.count_all(tree, thresholds, 1 << 40)
    for position, threshold in enumerate(thresholds):
        alone, found = relaxer.count(tree, threshold, 1 << 40), together.relaxation(position)
        assert found.log_size == alone.log_size > 0
        for field in ("lows", "highs"):
            assert getattr(found.nodes, field).tolist() == getattr(alone.nodes, field).tolist()
        for node in range(4):
            few, many = (valued(relaxation.states, node) for relaxation in (alone, found))
            assert few.items() <= many.items()


def valued(states, node):
    """The states of a node that have a value."""
    held = slice(states.start[node], states.start[node + 1])
    keys, values = states.keys[held].tolist(), states.values[held].tolist()
    return {tuple(key): value for key, value in zip(keys, values, strict=True) if value}


def ways_of(relaxation, clique, target, h):
    """All u within the boxes of a node, by trying each; the readable twin of a scan."""
    *parents, own = clique
    tables = [
        t for t in enumerate(target.tables) if own in t[1].attributes and set(t[1].attributes) <= set(clique)
    ]
    lows, highs = target.bounds(relaxation.threshold)
    for u in product(*(range(count + 1) for count in h)):
        rows = [
            {**{p: x >> bit & 1 for bit, p in enumerate(parents)}, own: int(one)}
            for x, (count, ones) in enumerate(zip(h, u, strict=True))
            for one in [False] * (count - ones) + [True] * ones
        ]
        sums = {
            j: sum(
                sum(row[a] for a in table.attributes) % 2 * target.unit
                if table.weights is None
                else int(table.weights[tuple(row[a] for a in table.attributes)])
                for row in rows
            )
            for j, table in tables
        }
        if all(lows[j] <= total <= highs[j] for j, total in sums.items()):
            yield u


def exact_counts(relaxation, target):
    """G of every state, by the recursion of the module, in integers."""
    tree = relaxation.tree

    @cache
    def count(node, h):
        ways = ways_of(relaxation, tree.cliques[node], target, h)
        return sum(completions(tree, node, h, u, count) for u in ways)

    return count


def completions(tree, node, h, u, exactly):
    """How many tables take the way u at a state h of a node; `exactly` counts those of each state below."""
    ways = 1
    for taken, of in zip(u, h, strict=True):
        ways *= comb(of, taken)
    for child in tree.children[node]:
        state = [0] * (1 << len(tree.parents[child]))
        for x, (taken, of) in enumerate(zip(u, h, strict=True)):
            for one, rows in ((0, of - taken), (1, taken)):
                bits = {p: x >> bit & 1 for bit, p in enumerate(tree.parents[node])} | {node: one}
                state[sum(bits[p] << q for q, p in enumerate(tree.parents[child]))] += rows
        ways *= exactly(child, tuple(state))
    return ways


@pytest.mark.slow
@pytest.mark.parametrize("text", ["conjunctions:2", "marginals:2", "predicates:a0 & a1 | a2; a1 ^ a2"])
@pytest.mark.parametrize("tree", TREES[1:], ids=lambda tree: str(tree.parents))
def test_shares_are_never_less_than_promised(text, tree, monkeypatch):
    """Each way's share is at least its exact part of 2^63, less 2^-19; together they are at most 2^63."""
    without_stars(monkeypatch)
    rows, n, threshold = 5, 11, 14
    workload, answers, _ = instance(4, n, text, 9)
    target = Target.build(workload, answers, n, rows)
    relaxation = Relaxer(target).count(tree, threshold, 1 << 40)
    exactly = exact_counts(relaxation, target)
    nodes, states = relaxation.nodes, relaxation.states
    checked = 0
    for node in range(4):
        for state in range(states.start[node], states.start[node + 1]):
            scan = scan_for(nodes)
            unpack(*states.keys[state], scan.h)
            h = tuple(scan.h[: nodes.cells[node]].tolist())
            total = exactly(node, h)
            value = Fraction(float(states.values[state])) / Fraction(nodes.shrink) ** depth(tree, node)
            assert value == total  # so small that doubles are exact
            if not total:
                continue
            found = {way: end - first for way, (first, end) in shares_at(nodes, states, node, state).items()}
            assert sum(found.values()) <= 1 << 63
            for u in ways_of(relaxation, tree.cliques[node], target, h):
                part = completions(tree, node, h, u, exactly)
                if part:
                    assert found[u] % prod(map(comb, h, u)) == 0  # so that each column has as much
                    assert found.pop(u) >= Fraction(part, total) * (1 << 63) * (1 - Fraction(1, 1 << 19))
                    checked += 1
            assert not found
    assert checked > 20


def depth(tree, node):
    """How many nodes lie below, itself included."""
    return 1 + sum(depth(tree, child) for child in tree.children[node])


@pytest.mark.parametrize("size, taken", [(1, 0), (1, 1), (5, 2), (7, 7), (8, 3), (9, 4), (12, 1)])
def test_subsets_are_reached_once_each(size, taken):
    rows = np.uint64(sum(1 << (3 * i + 1) for i in range(size)))
    found = {int(subset(rank, rows, size, taken)) for rank in range(comb(size, taken))}
    expected = {sum(1 << (3 * i + 1) for i in chosen) for chosen in combinations(range(size), taken)}
    assert found == expected


@pytest.mark.slow
def test_a_trial_does_not_depend_on_how_its_words_arrive():
    workload, answers, _ = instance(5, 40, "marginals:2", 2)
    made = tuple_sampler(workload, answers, 40, 12, Fraction(4))
    words = np.frombuffer(SeededBits(1).bits(64 * 5000).to_bytes(40_000, "big"), ">u8").astype(np.uint64)
    layers = made._mixture.choose(words[:600])

    def surviving(piece):
        found, end, lane = [], piece, lane_of(made, layers, words[:piece])
        while lane.status != OUT_OF_WORDS or end < len(words):
            for layer in survivors(lane):
                found.append((layer, lane.columns.tolist(), lane.shares.tolist()))
            if lane.status == PAUSED:
                return found
            end += piece
            lane.words = words[:end]
        raise AssertionError("too few words")

    whole = surviving(5000)
    assert len(whole) > 20
    assert surviving(13) == surviving(97) == whole


@settings(max_examples=20)
@given(st.fractions("1/1000", 3), st.integers(0, 50), st.lists(st.integers(1, 30), min_size=1, max_size=8))
def test_the_envelope_is_above_the_weights(rate, lowest, steps):
    thresholds = [lowest + sum(steps[: i + 1]) for i in range(len(steps))]
    envelope = Envelope.build(rate, lowest, thresholds)
    assert list(envelope.tops) == sorted(envelope.tops, reverse=True)
    assert sum(envelope.drops()) == 1
    for score in range(lowest, thresholds[-1] + 9):
        weight = naive.exp_minus(rate * (score - lowest))
        assert envelope.top(score) >= weight * (1 - Fraction(1, 10**30))
        layer = sum(t < score for t in thresholds)
        assert sum(envelope.drops()[layer:]) == envelope.top(score)


CASES = [  # attributes, rows, n, queries, c = epsilon n / (2 m), widest tree
    (4, 2, 20, "conjunctions:2", 5, 3),
    (4, 2, 27, "marginals:2", 8, 1),
    (4, 3, 34, "conjunctions:2", 10, 2),
    (5, 2, 41, "conjunctions:3", 5, 4),
    (5, 2, 41, "conjunctions:3", 30, 1),
    (4, 3, 48, "parities:2", 15, 2),
    (4, 3, 48, "parities:2", 5, 1),
    (4, 3, 55, "conjunctions:2:negations", 20, 3),
    (5, 2, 69, "marginals:2", 40, 2),
    (4, 2, 62, PREDICATES, 12, 1),
    (5, 3, 500, "conjunctions:2", 60, 3),
    (4, 3, 999, "marginals:2", 100, 3),
    (5, 2, 77, "conjunctions:2", 7, 4),
]


def forced(case):
    """A sampler all of whose layers have a tree of the given width."""
    attributes, rows, n, text, c, width = case
    workload, answers, _ = instance(attributes, n, text, rows)
    epsilon = Fraction(2 * rows * c, n)
    made = tuple_sampler(workload, answers, n, rows, epsilon)
    builder = made._builder
    thresholds = [layer.threshold for layer in builder._layers]
    middle = len(thresholds) // 2
    trees = (
        greedy(pair_gains(builder._target, threshold), width)
        for threshold in (*thresholds[middle:], *thresholds[:middle][::-1])
    )
    force(made, next(tree for tree in trees if max(map(len, tree.parents)) == width))
    return made, (workload, answers, n, rows, epsilon)


@pytest.mark.slow
@pytest.mark.parametrize(
    "case, draws",
    [
        *((case, 1_000) for case in CASES[1::2]),  # each form of queries, and each width
        *(pytest.param(case, 300_000, marks=pytest.mark.long) for case in CASES),
    ],
    ids=lambda value: str(value),
)
def test_draws_follow_the_law(case, draws, monkeypatch):
    if draws < 10_000:
        check_coins(monkeypatch, sampler)
    made, rest = forced(case)
    assert abs(distance(made, *rest, draws, seed=1)) < 4


@pytest.mark.slow
def test_refining_between_trials_leaves_the_law_alone(monkeypatch):
    monkeypatch.setattr(sampler, "FIRST", 1)
    refine = Sampler._refine  # by at most 3000 ways at a time
    monkeypatch.setattr(Sampler, "_refine", lambda self, budget: refine(self, min(budget, 3000)))
    attributes, rows, n, epsilon = 4, 3, 34, Fraction(2)
    workload, answers, _ = instance(attributes, n, "marginals:2", rows)
    made = tuple_sampler(workload, answers, n, rows, epsilon)
    widths = max(len(p) for layer in made._builder._layers for p in layer.tree.parents)
    assert widths == 0
    assert abs(distance(made, workload, answers, n, rows, epsilon, 2_000, seed=2)) < 4
    assert max(len(p) for layer in made._builder._layers for p in layer.tree.parents) > 1


def test_one_way_workloads_are_drawn_without_rejection():
    """A level by its weight, and then one of its candidates: as the census counts them."""
    workload, answers, data = instance(3, 17, "conjunctions:1", 4)
    counted = census(data, workload, rows=4, candidates="tuples")
    made, source, again = tuple_sampler(workload, answers, 17, 4, Fraction(1)), SeededBits(1), SeededBits(1)
    assert isinstance(made, Factored)
    assert made._levels == dict(zip(counted.levels.tolist(), counted.counts, strict=True))
    for _ in range(20):
        level = draw_level(made._levels, Fraction(1, 8), again)
        expected = made.candidate(level, uniform_below(made._levels[level], again))
        bits, score = made.draw(source)
        assert score == level and bits.tolist() == expected.tolist()


def test_every_position_of_a_level_is_another_candidate():
    workload, answers, _ = instance(3, 17, "conjunctions:1", 4)
    made = tuple_sampler(workload, answers, 17, 2, Fraction(1))
    for score, count in made._levels.items():
        found = {spelled(made.candidate(score, position)) for position in range(count)}
        assert len(found) == count


def test_without_data_every_candidate_is_alike():
    workload, *_ = instance(4, 7, "marginals:2", 3)
    made = tuple_sampler(workload, np.zeros(workload.size, dtype=np.int64), 0, 2, Fraction(1))
    answers = np.zeros(workload.size, dtype=np.int64)
    assert abs(distance(made, workload, answers, 0, 2, 1, 4_000, seed=1)) < 4


def test_queries_that_are_all_constant_leave_every_candidate_alike():
    domain = Domain(["a", "b"])
    workload = parse("predicates:a | ~a").workload(domain)
    made = tuple_sampler(workload, np.zeros(0, dtype=np.int64), 5, 3, Fraction(1))
    assert made.draw(SeededBits(1))[0].shape == (3, 2)


def test_parents_must_lie_in_a_clique():
    with pytest.raises(ValueError, match="earlier clique"):
        Tree((0, 1, 2, 3), ((), (0,), (0,), (1, 2)))


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_the_search_never_makes_a_tree_worse(width):
    workload, answers, _ = instance(6, 60, "conjunctions:2", 2)
    relaxer = Relaxer(Target.build(workload, answers, 60, 6))
    first = greedy(pair_gains(relaxer.target, 60), width)
    assert sorted(first.order) == list(range(6))
    assert max(map(len, first.parents)) == width
    best, spent = improve(relaxer, first, width, 60, 400_000)
    assert 0 < spent < 800_000
    assert relaxer.count(best, 60, 1 << 40).size <= relaxer.count(first, 60, 1 << 40).size
    assert improve(relaxer, first, width, 60, 400_000)[0] == best  # the same data, the same tree


def test_a_relaxation_holds_every_candidate_of_its_score():
    rows, n = 3, 34
    workload, answers, _ = instance(4, n, "marginals:2", 1)
    target = Target.build(workload, answers, n, rows)
    scores = gaps(workload, answers, n, rows).max(axis=0)
    assert target.least_score() <= scores.min()
    cells = workload.domain.table()
    positions = np.indices((16,) * rows).reshape(rows, -1).T
    for position in chain(range(0, 4096, 97), [int(scores.argmin())]):
        bits = cells[positions[position]]
        columns = (bits.astype(np.uint64) << np.arange(rows, dtype=np.uint64)[:, None]).sum(
            axis=0, dtype=np.uint64
        )
        assert target.score(columns) == scores[position]


def test_what_is_private_is_not_shown():
    workload, answers, _ = instance(4, 34, "marginals:2", 3)
    made = tuple_sampler(workload, answers, 34, 3, Fraction(2))
    assert isinstance(made, Sampler)
    assert repr(made) == "<Sampler: computed from the data>"
