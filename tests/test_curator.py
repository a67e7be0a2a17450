"""The door: what an answer loses is computed from its noise, and refused before it is drawn if unpaid."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from builders import letters, universe
from losses import Change
from margins import ScriptedBits
from replay import of_noisy

import smalldb
from queries import Column, Domain, Marginals, Rows
from smalldb.accounting.concentrated import rho_of
from smalldb.exact.bits import SeededBits
from smalldb.marginals.asks import Noisy, Number, Worst, columns_at_once, offsets_at_once, one_table
from smalldb.marginals.counts import Answers, FinerBins, InMemory, SumsOfOffsets
from smalldb.marginals.curator import SHOWN, Curator, PrivacyFilter, Unpaid
from smalldb.marginals.families import Families, release_families
from smalldb.marginals.measuring import LIMIT, PrivacyMeasure
from smalldb.marginals.strategies.choosing_parities import alternatives
from smalldb.marginals.strategies.strategy import whole_table
from smalldb.marginals.walks import plan_walks
from smalldb.mechanisms import Dependence, Journal, Offsets, Parity
from smalldb.noise.distributions import ConeDifference, DiscreteGaussian, Geometric, WishartDifference
from smalldb.noise.gaussian import least_variances
from smalldb.noise.privacy_loss import Amount
from smalldb.planning.plans import MeansCost
from smalldb.schema.bin_shapes import FinerCost
from smalldb.schema.reading import Learned

COST = Fraction(1, 3)
LAWS = [PrivacyMeasure(*each) for each in [(False, False), (False, True), (True, False), (True, True)]]
TABLES = whole_table((0,), (3,)), whole_table((1,), (2,)), whole_table((0, 1), (3, 2))
WORKLOAD = smalldb.plan(Domain([Column("job", 3), "b"]), n=9, epsilon=1).workload
SETS = ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2))


def parities(signed):
    return tuple(Parity(some, signed) for some in (((),) if signed else ()) + SETS)


def asked_by(law):
    """One ask of each kind at that cost, of which the noise is made by the law."""
    scored = Worst(TABLES, None, 3 * law.moved, law, COST)
    bins = Offsets((0,), 4, 32), Offsets((2,), 3, 32)
    number = Number(TABLES, None, 5, law.noise_of_number(COST, law.moved * 5), Dependence(((0, 1),), (9,)))
    found = [one_table(TABLES[2], law, COST), offsets_at_once(bins, law, COST), scored, number]
    found.append(Noisy(FinerBins("pay", 7), ((law.noise(COST), 7),)))
    found.append(Noisy(Answers(WORKLOAD), ((law.noise_of_number(COST, WORKLOAD.denominator), 1),), at=2))
    signed = not law.replaced
    if law.concentrated:
        sizes = dict(enumerate((1, 3, 3, 1))) if signed else {1: 3, 2: 3, 3: 1}
        variances = least_variances(3, sizes, dict.fromkeys(sizes, 1.0), COST, law.replaced)
        noises = tuple((DiscreteGaussian(v), sizes[o]) for o, v in sorted(variances.items()))
        return [*found, Noisy(parities(signed), noises)]
    pairs = tuple((0, 0, *(a + 1 for a in part.columns))[-2:] for part in parities(signed)[:-1])
    noise = WishartDifference(3, COST / 4, COST * 3 / 4, pairs)
    cone = ConeDifference((3, 2), law.rate(COST), ((0, 1),))
    return [
        *found,
        columns_at_once(TABLES[:2], law, COST),
        Noisy(parities(signed)[:-1], ((noise, len(pairs)),)),
        Noisy(TABLES, ((cone, 11),)),
    ]


@pytest.mark.parametrize("law", LAWS)
def test_an_answer_loses_what_its_noise_was_made_for(law):
    for ask in asked_by(law):
        assert ask.lost(law.replaced, 1) == (Amount(rho=COST) if law.concentrated else Amount(COST))


@pytest.mark.parametrize("law", LAWS)
def test_noise_of_the_other_relation_loses_more_or_is_refused(law):
    """What was made for added rows loses twice as much where rows are replaced, or is for no such rows."""
    other, worse = not law.replaced, 0
    for ask in asked_by(law):
        try:
            lost = max(ask.lost(other, 1))
        except AssertionError:
            worse += 1
            continue
        one_sum = isinstance(getattr(ask, "of", None), Answers)  # moves by D under either relation
        assert one_sum or (lost > COST) == other
        worse += lost > COST
    assert worse == len(asked_by(law)) - 1 if other else worse >= 2


def test_weights_are_paid_by_the_unit():
    law = PrivacyMeasure(False, True, unit=12)
    for ask in [one_table(TABLES[2], law, COST), columns_at_once(TABLES[:2], law, COST)]:
        assert ask.lost(True, 12) == Amount(COST)
        assert ask.lost(True, 24) == Amount(2 * COST)
    with pytest.raises(AssertionError, match="another relation"):
        Worst(TABLES, None, 2, law, COST).lost(True, 1)
    columns = columns_at_once(TABLES[:2], PrivacyMeasure(False, True), COST)
    with pytest.raises(AssertionError, match="hides none that is added"):
        columns.lost(True, 2)  # a parent that replaces another may weigh less


def test_noise_that_is_for_other_counts_is_refused():
    pure = PrivacyMeasure(False, True)
    of_columns, _ = columns_at_once(TABLES[:2], pure, COST).noises[0]
    cone = ConeDifference((3, 2), COST, ((0, 1),))
    entries = WishartDifference(2, COST, COST, ((0, 1), (0, 1)))
    for of, noise in [
        (TABLES[1::-1], of_columns),
        ((TABLES[1], TABLES[0], TABLES[2]), cone),
        (parities(False)[:2], entries),
    ]:
        many = sum(part.size for part in of)
        with pytest.raises(AssertionError, match="for other counts"):
            Noisy(of, ((noise, many),)).lost(True, 1)
    with pytest.raises(AssertionError, match="of other neighbours"):
        Noisy(parities(True), ((Geometric(COST), 8),)).lost(True, 1)
    with pytest.raises(AssertionError, match="of other neighbours"):  # nothing is proved of weights
        Noisy(parities(False), ((Geometric(COST), 7),)).lost(True, 2)


def test_every_number_has_noise_of_its_own():
    noise = Geometric(COST)
    for ask in [
        Noisy(TABLES, ((noise, 3),)),
        Noisy(TABLES, ((noise, 1),)),
        Noisy(Answers(WORKLOAD), ((noise, 1),)),
        Noisy(FinerBins("pay", 7), ((noise, 1),)),
    ]:
        with pytest.raises((AssertionError, ValueError)):
            ask.lost(False, 1)


def curator_of(budget):
    rows = Rows.from_codes(Domain([Column("job", 3), "b"]), np.array([[0, 1], [2, 0]]))
    return Curator(InMemory(rows), Journal(ScriptedBits("")), budget)


@pytest.mark.parametrize("law", [*LAWS, PrivacyMeasure(False, True, unit=2), PrivacyMeasure(True, True, 2)])
def test_the_pair_of_rows_that_loses_most_loses_what_an_answer_says(law):
    """By the laws of all noise, over all rows that there are, of all weights up to the unit."""
    asks = asked_by(law) if law.unit == 1 else [one_table(each, law, COST) for each in TABLES]
    if law.unit > 1 and not law.concentrated:
        asks.append(columns_at_once(TABLES[:2], law, COST))
    for ask in asks:
        if not isinstance(ask, Noisy) or isinstance(ask.of, FinerBins | SumsOfOffsets):
            continue
        domain = letters(3) if isinstance(ask.parts[0][0], Parity) else WORKLOAD.domain
        some = [[row] * weight for row in domain.table().tolist() for weight in range(1, law.unit + 1)]
        codes = (np.array(each, dtype=np.int64).reshape(-1, len(domain.sizes)) for each in ([], *some))
        exact = (ask.exact(InMemory(Rows.from_codes(domain, each))) for each in codes)
        every, lost = [(rows, of_noisy(ask, own)) for rows, own in zip([[], *some], exact, strict=True)], []
        for (one, a), (other, b) in product(every[1:] if law.replaced else every[:1], every[1:]):
            change = Change((-1,) * len(one) + (1,) * len(other), (*one, *other), domain.sizes)
            lost.append(sum(x.law.worst(x.exact, y.exact, change) for x, y in zip(a, b, strict=True)))
        assert max(lost) == max(ask.lost(law.replaced, law.unit))


def test_what_nothing_is_proved_of_is_refused_before_a_bit_is_drawn():
    """Noise of other columns, of one number for several, and scores of other neighbours."""
    noise, law = columns_at_once(TABLES[:2], LAWS[1], COST).noises, LAWS[1]
    one = whole_table((0,), (1,))
    for ask in [
        Noisy(TABLES[1::-1], noise),
        Noisy((one, *TABLES), ((Geometric(COST), 1),)),
        Worst(TABLES, lambda counts: counts[2].ravel(), 2, LAWS[0], COST),
    ]:
        with pytest.raises(AssertionError):
            curator_of(PrivacyFilter(Amount(Fraction(9)), law.replaced)).answer(ask)


def test_what_is_beyond_all_answers_shows_in_none():
    for beyond in (LIMIT, LIMIT + 1, 3 * LIMIT):
        ask = Number(TABLES, lambda _, far=beyond: far, 5, Geometric(COST), Dependence(((0, 1),), (9,)))
        assert ask.exact(curator_of(None).data) == [LIMIT]


@pytest.mark.parametrize("law", LAWS)
def test_what_is_not_paid_is_refused_before_a_bit_is_drawn(law):
    short = COST * Fraction(99, 100)
    paid = Amount(rho=short) if law.concentrated else Amount(short)
    with pytest.raises(Unpaid, match="is paid"):
        curator_of(PrivacyFilter(paid, law.replaced)).answer(one_table(TABLES[2], law, COST))


def test_a_rho_is_not_paid_by_an_epsilon_nor_the_other_way_round():
    for paid, law in [(Amount(Fraction(9)), LAWS[3]), (Amount(rho=Fraction(9)), LAWS[1])]:
        with pytest.raises(Unpaid):
            curator_of(PrivacyFilter(paid, True)).answer(one_table(TABLES[2], law, COST))


def test_what_curators_of_one_release_answer_adds_up():
    budget = PrivacyFilter(Amount(COST), True)
    budget.spend(Amount(COST / 2))  # another curator's
    with pytest.raises(Unpaid):
        curator_of(budget).answer(one_table(TABLES[2], LAWS[1], COST))
    assert budget.spent == Amount(COST / 2) and budget.share == Fraction(1, 2)


def test_a_plan_pays_what_epsilon_and_delta_prove():
    """Beside a delta, what is pure is paid by a part of epsilon of its own."""
    domain, delta = Domain([*"abcdefgh"]), Fraction(1, 1000)
    given = {"n": 1000, "epsilon": 1, "mechanism": "marginals", "strategy": "contrasts"}
    plan = smalldb.plan(domain, Marginals(3), delta=delta, **given)
    public = {"n": 1000, "epsilon": Fraction(1), "delta": delta, "neighbours": "replace-one"}
    plans = alternatives(plan.workload, **public, certificate=Fraction(1, 10))
    certified = next(each for each in plans if each.delta and each.certifying)
    plan = replace(plan, chosen=replace(plan.chosen, strategy=certified))
    assert plan.budget().paid == Amount(Fraction(1, 10), rho_of(Fraction(9, 10), delta))
    pure = smalldb.plan(domain, Marginals(3), **given)
    assert pure.budget().paid == Amount(Fraction(1))
    assert pure.budget().replaced


def test_learned_categories_and_finer_bins_are_paid_for_as_well():
    plan = smalldb.plan(Domain([Column("job", 3), "b"]), n=300, epsilon="1/2", mechanism="marginals")
    learned = Learned("job", "values", Fraction(1, 4), Fraction(1, 1000)), Learned("b", "cuts", COST, None)
    plan = replace(plan, learned=learned, finer=(FinerCost("pay", (), Fraction(1, 8)),))
    assert plan.budget().paid == Amount(Fraction(7, 8) + COST, delta=Fraction(1, 1000))
    plan = replace(plan, learned=(), means=MeansCost((0,), Fraction(1, 8), Fraction(1, 9)))
    assert plan.budget().paid == Amount(Fraction(5, 8), Fraction(1, 9))
    assert replace(plan, means=MeansCost((0,), COST)).budget().paid == Amount(Fraction(5, 8) + COST)


def test_both_curators_of_related_tables_spend_what_is_paid_once():
    columns = universe((2, 3, 4))
    walks = plan_walks(columns, columns, Fraction(64), True, 60)
    codes = np.random.default_rng(0).integers(0, columns.sizes, (60, 3))
    families = Families(codes[:, :-1], codes, np.arange(60) // 3 * 3)
    shown = []
    budget = PrivacyFilter(walks.guarantee.paid, True)
    release_families(walks, families, Journal(SeededBits(0)), budget, None, lambda *done: shown.append(done))
    assert walks.parents.epsilon < budget.spent.epsilon <= budget.paid.epsilon == walks.epsilon == 64
    assert shown == sorted(shown) and walks.parents.epsilon / 64 * SHOWN < shown[-1][0] <= SHOWN
    dear = PrivacyFilter(Amount(walks.epsilon), True, Amount(walks.epsilon / 4))
    with pytest.raises(Unpaid):
        release_families(walks, families, Journal(SeededBits(0)), dear)
