"""Stars of rejection: one table of the hubs' states, rows sorted by them, columns drawn until they fit."""

from fractions import Fraction
from math import comb, factorial, log, prod

import numpy as np
import pandas as pd
import pytest
from builders import flags
from margins import check_coins
from rejecting import distance, gaps, instance, lane_of, starred, survivors, without_stars

from queries import Rows, Workload
from queries.spec import parse
from queries.workload import Query
from smalldb.exact.bits import SeededBits
from smalldb.kernels.stars import ATTRIBUTE, EXCESS, LEAST, SIZE, column_of, star_trials
from smalldb.kernels.trials import OUT_OF_WORDS, PAUSED, SURVIVED
from smalldb.kernels.ways import SHARE
from smalldb.rejection import sampler, star_trees
from smalldb.rejection.relaxation import Relaxation, Relaxer
from smalldb.rejection.star_trees import StarRelaxation, has_own_trials, in_any_order
from smalldb.rejection.target import Target, uniform_words
from smalldb.rejection.tree import Tree, star

EXAMPLES = ["conjunctions:2", "marginals:2", "conjunctions:3", "conjunctions:2:negations", "disjunctions:2"]
NO_STAR = Tree((1, 4, 0, 2, 3, 5), ((), (0,), (0, 1), *[(0, 1, 2)] * 2, (1, 2, 3)))
HUBS = [((5, 2, 3, 0), EXAMPLES[0]), *(((1, 4, 0), text) for text in EXAMPLES)]
CASES = [
    (5, 2, 41, "conjunctions:2", 40, (4, 1, 2)),
    (5, 2, 41, "conjunctions:2", 12, (4, 1, 2, 0)),
    (5, 2, 69, "marginals:2", 60, (0, 3, 1)),
    (4, 3, 48, "conjunctions:3", 30, (3, 1, 0)),
    (5, 1, 30, "conjunctions:2:negations", 12, (2, 1, 4)),
]


def relaxations(hubs, text, rows, thresholds):
    workload, answers, _ = instance(6, 31, text, 8)
    counts = Relaxer(Target.build(workload, answers, 31, rows)).count_all(star(hubs, 6), thresholds, 1 << 40)
    return [counts.relaxation(position) for position in range(len(thresholds))]


@pytest.mark.parametrize("hubs, text", HUBS, ids=str)
@pytest.mark.parametrize("rows", [1, 5, pytest.param(6, marks=pytest.mark.slow)])
def test_a_star_has_the_size_of_its_tree(hubs, text, rows, monkeypatch):
    """The same candidates, whether their states are walked node by node or stand in one table."""
    thresholds = [20, 45, 62, 90]
    found = relaxations(hubs, text, rows, thresholds)
    without_stars(monkeypatch)
    walked = relaxations(hubs, text, rows, thresholds)
    compared = 0
    for layer, tree in zip(found, walked, strict=True):
        assert isinstance(tree, Relaxation)
        assert layer.size == tree.size  # so few rows that nothing is rounded
        assert layer.log_size == pytest.approx(tree.log_size)
        compared += isinstance(layer, StarRelaxation)
        assert isinstance(layer, StarRelaxation) == bool(tree.size)
    assert compared > 0


def tried(layer, words, columns, start=0, trials=1):
    """Trials of one star, from a word on: what the kernel returns, and the columns in place."""
    order = np.arange(trials)
    return star_trials(layer.star, order, 0, trials, trials, words, start, columns, 1 << 40)


def columns_of(layer, leaf, target):
    """All columns that a leaf's are drawn from: by the ones of the high half, then of the low."""
    low_bits = (target.rows + 1) // 2
    lows, highs = target.bounds(layer.threshold)
    alone = [j for j, table in enumerate(target.tables) if table.attributes == (leaf,)]

    def allowed(ones):
        answers = [target.on_cells(j, [leaf]) @ [target.rows - ones, ones] for j in alone]
        return all(lows[j] <= answer <= highs[j] for j, answer in zip(alone, answers, strict=True))

    low, high = (sorted(range(1 << bits), key=int.bit_count) for bits in (low_bits, target.rows - low_bits))
    return [
        lower | upper << low_bits
        for upper in high
        for lower in low
        if allowed(lower.bit_count() + upper.bit_count())
    ]


def answer(target, j, columns):
    """D times a query's sum over the rows of these columns, row by row."""
    attributes = target.tables[j].attributes
    weights = target.tables[j].weights
    return sum(int(weights[tuple(columns[a] >> row & 1 for a in attributes)]) for row in range(target.rows))


def trial(layer, target, words):
    """One trial of a star, by its definition: the columns, or None; the state; how many words were read."""
    lows, highs = target.bounds(layer.threshold)

    def holds(queries, columns):
        return all(lows[j] <= answer(target, j, columns) <= highs[j] for j in queries)

    position = words[0] >> 1
    if position >= layer.star.sums[-1]:
        return None, None, 1
    state = next(i for i, end in enumerate(layer.star.sums.tolist()) if position < end)
    cells = [x for x, count in enumerate(layer.histograms[state].tolist()) for _ in range(count)]
    columns = {
        layer.tree.order[hub]: sum((cell >> hub & 1) << row for row, cell in enumerate(cells))
        for hub in layer.tree.hubs
    }
    hubs, read = set(columns), 0
    halves = iter([half for word in words[1:] for half in (word & 0xFFFFFFFF, word >> 32)])
    for leaf in layer.tree.order[len(hubs) :]:
        known = {*columns, leaf}
        mine = [
            j for j, t in enumerate(target.tables) if leaf in t.attributes and known.issuperset(t.attributes)
        ]
        fits = [j for j in mine if {*hubs, leaf}.issuperset(target.tables[j].attributes)]
        choices = columns_of(layer, leaf, target)
        while True:
            read += 1
            position, left = divmod(next(halves) * len(choices), 1 << 32)
            if left >= (1 << 32) % len(choices):
                columns[leaf] = choices[position]
                if holds(fits, columns):
                    break
        if not holds(set(mine) - set(fits), columns):
            return None, state, 1 + (read + 1) // 2
    return columns, state, 1 + (read + 1) // 2


@pytest.mark.parametrize("hubs, text", HUBS, ids=str)
@pytest.mark.parametrize("rows", [1, pytest.param(4, marks=pytest.mark.slow), 5])
def test_trials_are_those_of_their_definition(hubs, text, rows):
    workload, answers, _ = instance(6, 31, text, 8)
    target = Target.build(workload, answers, 31, rows)
    (layer,) = relaxations(hubs, text, rows, [62])
    words = uniform_words(SeededBits(rows), 3_000)
    words[::3] = 0  # a half of zeros is passed over, unless 2^32 can be split evenly
    start, survived, refused, columns = 0, 0, 0, np.zeros(6, dtype=np.uint64)
    for _ in range(200):
        expected, state, read = trial(layer, target, words[start:].tolist())
        status, turn, end, _, found = tried(layer, words, columns, start)
        assert end == start + read
        if expected is None:
            assert (status, turn) == (PAUSED, 1)
            refused += 1
        else:
            assert (status, turn, found) == (SURVIVED, 0, state)
            assert columns.tolist() == [expected[a] for a in range(6)]
            survived += 1
        for less in (1, (read + 1) // 2, read):  # whatever words are missing, the trial is made again
            assert tried(layer, words[: end - less], columns, start)[:3] == (OUT_OF_WORDS, 0, start)
        start = end
    assert survived > 3
    assert refused > 2 or len(hubs) == 4 or rows == 1


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_density_of_each_candidate_is_what_the_coin_is_told(case):
    """By looking at every candidate: what is proposed adds up to the shares, and no density is too small."""
    made, (workload, answers, n, rows, _) = starred(*case)
    target, checked = made._target, 0
    positions = np.indices((workload.domain.size,) * rows).reshape(rows, -1).T
    scores = gaps(workload, answers, n, rows).max(axis=0)
    table = workload.domain.table().astype(int)
    for layer in list(made._mixture.stars.values())[:: max(1, len(made._mixture.stars) // 4)]:
        lows, highs = target.bounds(layer.threshold)
        shares = np.diff(layer.star.sums.astype(np.int64), prepend=0).tolist()
        seen = np.zeros(len(shares), dtype=object)
        known = {tuple(counts): state for state, counts in enumerate(layer.histograms.tolist())}
        hubs = [layer.tree.order[hub] for hub in layer.tree.hubs]
        cliques = [{*hubs, leaf} for leaf in layer.tree.order[len(hubs) :]]
        tables = enumerate(target.tables)
        held = [j for j, t in tables if any(clique.issuperset(t.attributes) for clique in cliques)]
        for position, score in zip(positions, scores, strict=True):
            bits = table[position]
            columns = [int("".join(map(str, column[::-1])), 2) for column in bits.T]
            if not all(lows[j] <= answer(target, j, columns) <= highs[j] for j in held):
                assert score > layer.threshold
                continue
            cells = (bits[:, hubs] << np.arange(len(hubs))).sum(axis=1)
            state = known[tuple(np.bincount(cells, minlength=1 << len(hubs)).tolist())]
            share, ways = layer.chosen(state)
            assert share == [shares[state]]
            density = Fraction(share[0], (1 << 63) * prod(ways))
            assert density >= (1 - Fraction(1, 1 << 19)) / layer.size
            seen[state] += density
            checked += 1
        assert seen.tolist() == [Fraction(share, 1 << 63) for share in shares]
        assert sum(shares) <= 1 << 63
    assert checked > 3


@pytest.mark.parametrize("draws", [2_000, pytest.param(200_000, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "case", [*CASES[:2], *(pytest.param(case, marks=pytest.mark.slow) for case in CASES[2:])], ids=str
)
def test_draws_of_stars_follow_the_law(case, draws, monkeypatch):
    if draws < 10_000:
        check_coins(monkeypatch, sampler)
    made, rest = starred(*case)
    assert made._mixture.stars
    assert abs(distance(made, *rest, draws, seed=6)) < 4


def test_rows_come_in_any_order():
    bits = np.eye(3, dtype=np.uint8)
    found = {in_any_order(bits, SeededBits(seed)).tobytes() for seed in range(100)}
    assert len(found) == factorial(3)


def test_half_words_that_would_favour_some_columns_are_passed_over():
    """Of 2^32 half words, 2^32 mod N are refused, and the others say each column equally often."""
    (layer,) = relaxations((1, 4, 0), "conjunctions:2", 5, [62])
    size, excess = (int(layer.star.leaves[0, field]) for field in (SIZE, EXCESS))
    assert excess == (1 << 32) % size > 0
    assert size & size - 1
    first, columns = int(layer.star.leaves[0, ATTRIBUTE]), np.zeros(6, dtype=np.uint64)

    def column(half):
        words = np.array([0, half | half << 32, *[half | half << 32] * 3], dtype=np.uint64)
        columns[first] = 99
        tried(layer, words, columns)
        return int(columns[first])

    halves = [-(-position * (1 << 32) // size) for position in range(size)]  # the first of each position
    refused = [half for half in halves if half * size % (1 << 32) < excess]
    assert 0 in refused
    assert all(column(half) == 99 for half in refused)
    assert any(column(half + 1) < 32 for half in refused)
    kept = sum(
        -(-(position + 1) * (1 << 32) // size) - halves[position] - (half in refused)
        for position, half in enumerate(halves)
    )
    assert kept == (1 << 32) - excess


@pytest.mark.slow
@pytest.mark.parametrize("rows", [20, 31, 32])
def test_every_column_with_as_many_ones_has_a_position(rows):
    workload, answers, _ = instance(5, 40, "conjunctions:2", 2)
    target = Target.build(workload, answers, 40, rows)
    counts = Relaxer(target).count_all(star((0, 1, 2), 5), [60], 1 << 40)
    layer = counts.relaxation(0)
    assert isinstance(layer, StarRelaxation)
    for position, leaf in enumerate((3, 4)):
        j = next(j for j, table in enumerate(target.tables) if table.attributes == (leaf,))
        lows, highs = (int(bound[j]) for bound in target.bounds(60))
        allowed = [comb(rows, ones) for ones in range(max(0, lows), highs + 1)]
        size = int(layer.star.leaves[position, SIZE])
        assert size == sum(allowed) <= 1 << 32
        ranks = np.linspace(0, size - 1, 2_000).astype(np.uint64)
        found = [int(column_of(layer.star, position, rank)) for rank in np.unique(ranks)]
        assert len(set(found)) == len(found)
        assert all(lows <= column.bit_count() <= highs and column < 1 << rows for column in found)


@pytest.mark.parametrize(
    ("text", "rows", "tree", "taken"),
    [
        ("conjunctions:2", 32, star((1, 4, 0), 6), True),
        ("conjunctions:2", 33, star((1, 4, 0), 6), False),
        ("conjunctions:2", 12, star((1, 4, 0, 2), 6), True),
        ("conjunctions:2", 12, star((1, 4), 6), False),
        ("conjunctions:2", 12, NO_STAR, False),
        ("parities:2", 12, star((1, 4, 0), 6), False),
        ("predicates:a0 ^ a1; a4 & a5", 12, star((1, 4, 0), 6), True),  # only hubs are in another query
        ("predicates:a0 ^ a2; a4 & a5", 12, star((1, 4, 0), 6), False),
    ],
)
def test_what_is_a_star_with_trials_of_its_own(text, rows, tree, taken):
    workload, answers, _ = instance(6, 31, text, 8)
    assert has_own_trials(Target.build(workload, answers, 31, rows), tree) == taken


@pytest.mark.slow
def test_leaves_that_hardly_ever_fit_are_drawn_as_those_of_a_tree():
    """Copies of a hub but for few errors: at a low threshold, one column in thousands fits."""
    draws = np.random.default_rng(1)
    bits = (draws.random((200, 1)) < 0.4) ^ (draws.random((200, 6)) < 0.05)
    domain = flags(6, name="a")
    workload = parse("conjunctions:2").workload(domain)
    frame = pd.DataFrame(bits.astype(np.uint8), columns=list(domain.attributes))
    target = Target.build(workload, workload.answers(Rows.from_frame(domain, frame)), 200, 20)
    thresholds = [160, 200, 240, 520, 640]
    counts = Relaxer(target).count_all(star((1, 4, 0), 6), thresholds, 1 << 40)
    found = [counts.relaxation(position) for position in range(len(thresholds))]
    assert counts.starred
    assert isinstance(found[0], Relaxation)
    assert isinstance(found[-1], StarRelaxation)
    assert found[0].log_size > 0
    assert found[0].narrow is not None


CONSTANTS = [
    (Query("one", (0, 1), (1,) * 4), 31),
    (Query("c", (), (1,)), 31),
    (Query("p", (), None), 0),
    (Query("no", (5,), (0, 0)), 0),
]


@pytest.mark.parametrize(("constant", "answer"), CONSTANTS, ids=lambda value: getattr(value, "label", ""))
def test_a_constant_query_in_a_workload_made_by_hand_leaves_a_star_as_it_is(constant, answer):
    workload, answers, _ = instance(6, 31, "conjunctions:2", 8)
    found = []
    for queries, told in ((), ()), ((constant,), (answer,)):
        made = Workload(workload.domain, "by hand", 1, (*queries, *workload.queries))
        target = Target.build(made, np.array([*told, *answers], dtype=np.int64), 31, 5)
        found.append(Relaxer(target).count_all(star((1, 4, 0), 6), [62], 1 << 40).relaxation(0))
    without, with_it = found
    assert isinstance(with_it, StarRelaxation)
    assert with_it.size == without.size
    for one, other in zip(without.star, with_it.star, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.slow
def test_many_leaves_stay_within_the_doubles(monkeypatch):
    """The sum over the states of the hubs was beyond them once, where that of the tree was not."""
    attributes, rows = 254, 7
    workload, answers, _ = instance(attributes, 9, "conjunctions:1", 1)
    target = Target.build(workload, answers, 9, rows)
    tree = star((0, 1, 2), attributes)
    layer = Relaxer(target).count_all(tree, [target.largest_score], 1 << 40).relaxation(0)
    assert isinstance(layer, StarRelaxation)
    assert layer.size == 1 << attributes * rows
    assert layer.log_size == pytest.approx(attributes * rows * log(2))


def weighed(change=1.0):
    """A star whose first state has another value than it should."""
    workload, answers, _ = instance(6, 31, "conjunctions:2", 8)
    tree = star((1, 4, 0), 6)
    counts = Relaxer(Target.build(workload, answers, 31, 5)).count_all(tree, [62], 1 << 40)
    found = slice(*counts.states.start[3:5])
    values = counts.values[found, 0].copy()
    values *= 2.0**500
    values[np.flatnonzero(values)[0]] *= change
    return StarRelaxation.build(
        counts.target, tree, 62, counts.relaxation(0).nodes, counts.states.keys[found], values
    )


def test_a_state_of_hardly_any_weight_is_drawn_now_and_then():
    for change in (1.0, 2.0**-80, 2.0**-1070):  # the last quotient underflows
        shares = np.diff(weighed(change).star.sums.astype(np.int64), prepend=0)
        assert shares.min() >= 1


@pytest.mark.parametrize("change", [2.0**-power for power in (58, 60, 61, 62, 63, 65, 1070)])
def test_the_share_of_a_rare_state_is_at_least_its_part(change):
    layer, usual = weighed(change), weighed()
    shares = [np.diff(found.star.sums.astype(np.int64), prepend=0).tolist() for found in (layer, usual)]
    total = sum(shares[1][1:]) + shares[1][0] * Fraction(change)
    assert shares[0][0] >= shares[1][0] * Fraction(change) / total * int(SHARE) * (1 - Fraction(1, 1 << 40))


def test_shares_beyond_their_whole_are_an_error(monkeypatch):
    monkeypatch.setattr(star_trees, "SHARE", 2.0**63 * 1.01)
    with pytest.raises(ArithmeticError, match="must not happen"):
        weighed()


def test_the_first_and_last_position_of_the_shares():
    """The last position is the last state's; what is behind it is slack."""
    layer = weighed()
    end = int(layer.star.sums[-1])
    seen = []
    for position in (end - 1, end):
        words = np.array([position << 1, *uniform_words(SeededBits(1), 50).tolist()], dtype=np.uint64)
        columns = np.full(6, 99, dtype=np.uint64)
        found = tried(layer, words, columns)
        seen.append(columns[layer.star.hubs].tolist())
    assert seen == [layer.star.hub_columns[-1].tolist(), [99] * 3]
    assert found[:3] == (PAUSED, 1, 1)


def test_a_threshold_that_no_count_meets_refuses_every_candidate():
    """Two rows of five are wanted of each attribute, one of each pair, and of a pair of leaves a half."""
    workload, _, _ = instance(6, 31, "conjunctions:2", 8)
    wanted = [3 if q.attributes == (2, 3) else 13 if len(q.attributes) == 1 else 6 for q in workload.queries]
    target = Target.build(workload, np.array(wanted, dtype=np.int64), 31, 5)
    layer = Relaxer(target).count_all(star((1, 4, 0), 6), [5], 1 << 40).relaxation(0)
    assert isinstance(layer, StarRelaxation)
    (pair,) = target.by_attributes[2, 3]
    lows, highs = target.bounds(5)
    assert lows[pair] > highs[pair]
    assert target.rows + 1 in layer.star.conjunctions[:, LEAST]
    words, columns = uniform_words(SeededBits(1), 20_000), np.zeros(6, dtype=np.uint64)
    assert tried(layer, words, columns, trials=500)[:2] == (PAUSED, 500)


@pytest.mark.slow
def test_lanes_change_between_stars_and_trees(monkeypatch):
    """Trials of all layers survive in the order of their layers, however their words arrive."""
    made, _ = starred(*CASES[0])
    mixture, last = made._mixture, len(made._mixture.sums) - 1
    layers = np.array([last, *mixture.stars, last + 1, *mixture.stars, last] * 8)
    words = uniform_words(SeededBits(3), 20_000)

    def seen(piece):
        found, lane = [], lane_of(made, layers, words[:0])
        while lane.turn < len(layers):
            lane.words = words[: len(lane.words) + piece]
            found += [(layer, lane.position, lane.columns.tolist()) for layer in survivors(lane)]
        return found

    whole = seen(20_000)
    assert [layer for layer, _, _ in whole] == sorted(layer for layer, _, _ in whole)
    assert {last} < {layer for layer, _, _ in whole}
    assert seen(1) == seen(7) == whole


def test_a_lane_of_neighbouring_stars_makes_the_trials_of_each():
    made, _ = starred(5, 6, 60, "conjunctions:2", 4, (3, 0, 2))
    first, *_, second = sorted(made._mixture.stars)
    words = uniform_words(SeededBits(4), 2_000)
    lane = lane_of(made, [first] * 40 + [second] * 40, words)
    found = [(layer, lane.state, lane.columns.tolist()) for layer in survivors(lane)]
    expected, start = [], 0
    for layer in (first, second):
        turn, columns = 0, np.zeros(5, dtype=np.uint64)
        while turn < 40:
            status, turn, start, _, state = star_trials(
                made._mixture.stars[layer].star, np.arange(40), turn, 40, 40, words, start, columns, 1 << 40
            )
            if status == SURVIVED:
                expected.append((layer, state, columns.tolist()))
                turn += 1
    assert found == expected
    assert {layer for layer, _, _ in found} == {first, second}


def test_a_star_begins_where_the_one_before_ends_in_vain():
    made, _ = starred(5, 6, 60, "conjunctions:2", 4, (3, 0, 2))
    first, *_, second = sorted(made._mixture.stars)
    slack, words = np.full(1, (1 << 64) - 1, dtype=np.uint64), uniform_words(SeededBits(4), 200)
    alone, both = lane_of(made, [second], words), lane_of(made, [first, second], np.append(slack, words))
    found = [(lane.go_on(2), lane.start, lane.state, lane.columns.tolist()) for lane in (alone, both)]
    assert found[1] == (None, found[0][1] + 1, *found[0][2:])


def test_what_a_trial_that_is_left_out_has_read_is_not_read_again():
    """A trial runs out of words, and another lane keeps an earlier one: the next trial reads other words."""
    made, _ = starred(5, 6, 60, "conjunctions:2", 4, (3, 0, 2))
    first, *_, second = sorted(made._mixture.stars)
    words, more = uniform_words(SeededBits(4), 10), uniform_words(SeededBits(5), 2_000)
    lane = lane_of(made, [second, first], words[:2])
    lane.order = np.array([1, 0])  # the trial that was drawn last is made first
    lane.go_on(2)
    assert (lane.status, lane.position, lane.start) == (OUT_OF_WORDS, 1, 0)
    lane.words = words
    lane.go_on(1)
    assert (lane.status, lane.position, lane.start) == (OUT_OF_WORDS, 0, len(words))
    lane.words = np.concatenate([words, more])
    lane.go_on(1)
    alone = lane_of(made, [second], more)
    alone.go_on(1)
    assert (lane.status, lane.start) == (alone.status, len(words) + alone.start)
    assert lane.columns.tolist() == alone.columns.tolist()


def test_a_batch_of_work_pauses_between_trials(monkeypatch):
    made, _ = starred(5, 6, 60, "conjunctions:2", 4, (3, 0, 2))
    layers = np.full(2_000, max(made._mixture.stars))
    words, whole = uniform_words(SeededBits(3), 20_000), lane_of(made, layers, np.zeros(0, np.uint64))
    whole.words = words
    expected = [(whole.position, whole.columns.tolist()) for _ in survivors(whole)]
    monkeypatch.setattr(sampler, "BATCH", 2)
    lane, found, pauses = lane_of(made, layers, words), [], 0
    while lane.turn < len(layers):
        lane.go_on(len(layers))
        if lane.status == SURVIVED:
            found.append((lane.position, lane.columns.tolist()))
            lane.turn += 1
        else:
            assert lane.status == PAUSED
            pauses += 1
    assert found == expected
    assert pauses > 3
