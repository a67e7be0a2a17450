"""Mechanisms as values: laws over the scores of small databases, audited and judged as SmallDB itself."""

import math
import pickle
from fractions import Fraction

import naive
import pytest

import smalldb
from queries import Conjunctions, Domain, Linear, Marginals
from smalldb.auditing import accuracy, by_score, minimax, profile

A, AB = Domain(["a"]), Domain(["a", "b"])
CASES = [
    (AB, Conjunctions(2), 3, 2, 1),
    (A, Conjunctions(1), 5, 4, "1/3"),
    (AB, Linear([[0, "1/3", "1/2", 1], ["1/4", 1, 0, "3/4"]]), 3, 2, 3),
    (Domain(["a", "b"], valid="a | ~b"), Marginals(2), 3, 2, 40),
]


@pytest.mark.parametrize("law", ["permute-and-flip", "noisy-max"])
def test_laws_are_those_of_a_selection_by_the_score(law):
    made, workload = by_score(A, "conjunctions:1", rows=3, epsilon=2, law=law), Conjunctions(1).workload(A)
    for x in naive.multisets(2, 5):
        scores = naive.scores(workload, 3, x)
        law_of = smalldb.selection_law([-s for s in scores.values()], epsilon=2, sensitivity=3, method=law)
        assert made(x) == {y: law_of[(i,)] for i, y in enumerate(scores)}


@pytest.mark.slow
@pytest.mark.parametrize("prior, base", [(None, "multisets"), ("tuples", "tuples")])
@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_the_exponential_law_is_smalldb(case, prior, base):
    domain, queries, n, rows, epsilon = case
    made = by_score(domain, queries, rows=rows, epsilon=epsilon, prior=prior)
    given = {"n": n, "rows": rows, "epsilon": epsilon, "candidates": base}
    for neighbours in ("replace-one", "add-remove"):
        found = smalldb.audit(domain, n=n, mechanism=made, neighbours=neighbours)
        known = smalldb.audit(domain, queries, neighbours=neighbours, **given)
        assert float(found.loss[1]) == pytest.approx(float(known.loss[1]), rel=1e-15)
        assert float(found.range[1]) == pytest.approx(float(known.range[1]), rel=1e-15)
        found = profile(domain, n=n, mechanism=made, neighbours=neighbours)
        known = profile(domain, queries, neighbours=neighbours, **given)
        assert found.pairs == known.pairs
        for share in ("0", "0.3", "0.7", "1"):
            at = Fraction(share) * Fraction(epsilon)
            assert found.delta(at) == pytest.approx(known.delta(at), rel=1e-12, abs=1e-30)
    found, known = accuracy(domain, queries, n=n, mechanism=made), accuracy(domain, queries, **given)
    assert found.optimum == known.optimum
    assert found.databases == known.databases
    assert float(found.mean[1]) == pytest.approx(float(known.mean[1]), rel=1e-15)
    for error, (low, high) in zip(found.errors, found.exceedances, strict=True):
        assert low <= high
        position = known.errors.index(error)
        assert float(high) == pytest.approx(float(known.exceedances[position][1]), rel=1e-15)
    assert found.quantile("0.95") == known.quantile("0.95")
    assert found.failure("1/5") == pytest.approx(known.failure("1/5"), rel=1e-15)
    assert found.promised() == {name: known.promised()[name] for name in ("worst quantile", "worst mean")}


def test_a_prior_is_the_law_of_ordered_rows():
    workload, prior = Conjunctions(2).workload(AB), (1, 3, 0, 2)
    made = by_score(AB, "conjunctions:2", rows=3, epsilon=1, prior=prior)
    weights = {}
    for y, score in naive.scores(workload, 3, (2, 1, 0, 1)).items():
        orders = math.factorial(3) / math.prod(map(math.factorial, y))
        weights[y] = orders * math.prod(w**c for w, c in zip(prior, y, strict=True)) * math.exp(-score / 6)
    truth = {y: weight / sum(weights.values()) for y, weight in weights.items() if weight}
    assert {y: float(low) for y, (low, _) in made((2, 1, 0, 1)).items()} == pytest.approx(truth, rel=1e-12)
    assert smalldb.audit(AB, n=4, mechanism=made).worst_loss < 1


def test_a_law_of_ones_own():
    def law(scores, rate):
        weights = [math.exp(-2 * rate * score) for score in scores]
        return [weight / sum(weights) for weight in weights]

    own = by_score(A, "conjunctions:1", rows=4, epsilon=1, law=law)
    twice = by_score(A, "conjunctions:1", rows=4, epsilon=2)
    losses = [smalldb.audit(A, n=4, mechanism=made).worst_loss for made in (own, twice)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-12)


@pytest.mark.slow
def test_permute_and_flip_errs_less_and_keeps_epsilon():
    """The figures of docs/theory.md."""
    made = [
        by_score(AB, "conjunctions:2", rows=2, epsilon=1, law=law)
        for law in ("exponential", "permute-and-flip")
    ]
    errors = [accuracy(AB, "conjunctions:2", n=4, mechanism=each).worst_mean for each in made]
    losses = [smalldb.audit(AB, n=4, mechanism=each).worst_loss for each in made]
    assert errors == pytest.approx([0.52218, 0.50426], abs=5e-6)
    assert losses[0] < losses[1] <= 1


def test_the_error_of_the_best_mechanism_is_what_it_says():
    for rows in (2, None):
        best = minimax(AB, "conjunctions:2", n=3, epsilon=1, rows=rows)
        assert accuracy(AB, "conjunctions:2", n=3, mechanism=best.mechanism).mean == (best.upper, best.upper)


def test_a_profile_of_laws_by_definition():
    """All outcomes, both ways round; an outcome of one table alone costs its probability at any epsilon."""
    laws = {(2, 0): {0: 0.5, 1: 0.5}, (1, 1): {0: 0.25, 1: 0.7, 2: 0.05}, (0, 2): {1: 0.5, 3: 0.5}}
    found = profile(A, n=2, mechanism=laws.__getitem__)
    for epsilon in (0, 0.1, 1, 5):
        truth = max(
            sum(max(laws[x].get(o, 0) - math.exp(epsilon) * laws[y].get(o, 0), 0) for o in range(4))
            for a, b in (((2, 0), (1, 1)), ((1, 1), (0, 2)))
            for x, y in ((a, b), (b, a))
        )
        assert found.delta(str(epsilon)) == pytest.approx(truth, rel=1e-12)
    assert found.delta(600) >= 0.5 > found.delta(600) - 1e-9
    with pytest.raises(ValueError, match="no epsilon"):
        found.epsilon_for("0.1")
    with pytest.raises(ValueError, match="leave them out"):
        profile(A, "conjunctions:1", n=2, mechanism=laws.__getitem__)
    with pytest.raises(ValueError, match="from 0 to 600"):
        found.delta(700)


def test_values_can_be_pickled_and_compared():
    made = by_score(AB, "conjunctions:2", rows=2, epsilon=1)
    made((1, 0, 0, 0))
    assert pickle.loads(pickle.dumps(made))((1, 0, 0, 0)) == made((1, 0, 0, 0))
    assert made == by_score(AB, "conjunctions:2", rows=2, epsilon=Fraction(1))


OWN = by_score(AB, "conjunctions:2", rows=2, epsilon=1)


@pytest.mark.parametrize(
    "call, change, said",
    [
        *(
            (by_score, change, said)
            for change, said in (
                ({"law": "gaussian"}, "law must be one of"),
                ({"prior": "uniform"}, "prior must be 'tuples'"),
                ({"prior": [1, 2]}, "each of the 4 cells"),
                ({"prior": [0, 0, 0, 0]}, "more than 0"),
                ({"prior": "tuples", "law": "noisy-max"}, "leave it out"),
                ({"rows": 100}, "use fewer rows"),
                ({"epsilon": 0}, "epsilon"),
            )
        ),
        (accuracy, {"n": 3, "mechanism": OWN}, "brings its own"),
        (accuracy, {"n": 3, "rows": None, "epsilon": None}, "must be given"),
        (accuracy, {"n": 300, "rows": None, "epsilon": None, "mechanism": OWN}, "largest n"),
    ],
)
def test_what_is_refused(call, change, said):
    given = {"rows": 2, "epsilon": 1} | change
    with pytest.raises(ValueError, match=said):
        call(AB, "conjunctions:2", **{name: value for name, value in given.items() if value is not None})


def test_outcomes_that_are_no_tables_are_refused():
    with pytest.raises(TypeError, match="an outcome must be"):
        accuracy(AB, "conjunctions:2", n=3, mechanism=lambda x: {"small": 1})
