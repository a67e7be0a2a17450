"""Where values lie inside bins: the distribution of all bins, inverted; tails; finer bins, what they cost."""

import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from calling import called
from records import check_record
from scipy.interpolate import PchipInterpolator

import smalldb
from queries import DataError, Rows
from smalldb.exact.bits import SeededBits
from smalldb.exact.numbers import as_text
from smalldb.noise.privacy_loss import RandomisedResponse
from smalldb.releasing.learned_categories import gather_finer
from smalldb.schema import Column, Cuts, Dates, parse_schema
from smalldb.schema.bin_shapes import BinShape, FinerBins
from smalldb.schema.related_schema import RelatedSchema

UNIFORM = (np.arange(4000) + 0.5) / 4000
WIDTHS, COUNTS = np.array([2.0, 1.0, 3.0, 10.0]), np.array([40.0, 100.0, 150.0, 20.0])


def test_inner_bins_invert_the_monotone_cubic_through_all_edges():
    edges, below = np.append(0, np.cumsum(WIDTHS)), np.append(0, np.cumsum(COUNTS))
    for code in (1, 2):
        at = BinShape(WIDTHS, COUNTS).positions(code, UNIFORM)
        there = PchipInterpolator(edges, below)(edges[code] + at * WIDTHS[code])
        assert there == pytest.approx(below[code] + UNIFORM * COUNTS[code], abs=0.02)


def test_a_tail_has_the_density_of_its_inner_edge_and_falls_by_a_constant_factor():
    at = BinShape(WIDTHS, COUNTS).positions(3, UNIFORM)
    dense, denser = COUNTS[3] / 10, COUNTS[2] / 3
    edge = (3 * dense + 10 * denser) / 13
    slopes = COUNTS[3] * np.diff(UNIFORM) / np.diff(at * WIDTHS[3])
    assert slopes[0] == pytest.approx(edge, rel=0.01)
    per_width = np.diff(np.log(slopes[::100])) / np.diff(((at[1:] + at[:-1]) / 2)[::100])
    assert per_width == pytest.approx(np.full(len(per_width), per_width[0]), rel=0.01)
    assert per_width[0] < -1


def test_a_mirrored_column_has_mirrored_values():
    for code in range(4):
        at = BinShape(WIDTHS, COUNTS).positions(code, UNIFORM)
        mirrored = BinShape(WIDTHS[::-1], COUNTS[::-1]).positions(3 - code, 1 - UNIFORM)
        assert at == pytest.approx(1 - mirrored, abs=1e-3)


@pytest.mark.parametrize(
    "counts", [[1, 0, 0], [0, 1, 0], [0, 0, 1], [3, 0, 2], [1, 10**12, 1], [10**12, 1, 10**12]]
)
def test_positions_are_inside_of_the_bin_whatever_the_counts_are(counts):
    shape = BinShape(np.array([1.0, 1e9, 2.0]), np.array(counts, dtype=float))
    for code in np.flatnonzero(counts):
        at = shape.positions(code, np.array([2.0**-54, 0.3, 0.5, 1 - 2.0**-53]))
        assert ((at >= 0) & (at <= 1)).all()
        assert (np.diff(at) >= 0).all()


def test_values_of_skewed_data_are_nearer_than_uniform_ones():
    """Of incomes with a wide last bin: the mean is off by a fifth of what middles are off, or less."""
    real = np.sort(np.random.default_rng(3).exponential(20, 20_000))
    column = Column("income", Cuts([5, 10, 20, 40, 80], 0, 1000, decimals=1))
    codes = np.searchsorted([5, 10, 20, 40, 80], real, side="right")
    made = np.sort(column.decode(codes, SeededBits(1)).to_numpy(dtype=float))
    middles = np.sort(column.decode(codes).to_numpy(dtype=float))
    assert abs(made.mean() - real.mean()) < abs(middles.mean() - real.mean()) / 5
    assert np.abs(made - real).mean() < 0.6
    assert np.quantile(made, 0.99) == pytest.approx(np.quantile(real, 0.99), rel=0.1)


def test_gaps_tell_nothing_of_the_shape():
    kind = Cuts([10, 20], 0, 40)
    with_gaps = BinShape.of(kind, np.array([0, 1, 1, 2, 3, 3, 3]))
    assert with_gaps.counts.tolist() == [1, 2, 1]
    assert with_gaps.widths.tolist() == [10, 10, 21]


RELATIONS = pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
SCHEMA = """
columns.pay = { kind = "cuts", cuts = [100], range = [0, 1000], finer = 10, share = "1/10", missing = ["NA"] }
columns.day = { kind = "dates", cuts = ["2001-01-01"], range = ["2000-01-01", "2001-12-31"], finer = 4 }
columns.ill = { kind = "bool" }
"""
PLAIN = SCHEMA.replace(', finer = 10, share = "1/10"', "").replace(", finer = 4", "")


def people(n=2000, seed=1):
    """Pay in two spikes, one in each bin; days early in both years."""
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2000-01-01") + pd.to_timedelta(rng.choice([10, 20, 380], n), unit="D")
    pay = rng.choice([15, 250, 950], n, p=[0.5, 0.4, 0.1]).astype(object)
    pay[rng.random(n) < 0.05] = "NA"
    return pd.DataFrame({"pay": pay, "day": days.astype(str), "ill": rng.random(n) < 0.3})


def test_finer_bins_part_each_bin_by_its_steps():
    """A bin of three steps has three parts at most; each cut of the column is a cut of the finer bins."""
    cuts = FinerBins.of(Cuts([3, 10], 0, 29), 4)
    assert cuts.parts == (3, 4, 4)
    assert cuts.kind.cut_texts == ["1", "2", "3", "4", "6", "8", "10", "15", "20", "25"]
    tenths = FinerBins.of(Cuts(["0.25", "0.5"], 0, 1, decimals=1), 2)
    assert tenths.kind.cut_texts == ["0.1", "0.25", "0.4", "0.5", "0.8"]
    days = FinerBins.of(Dates([2001], 2000, 2001), 2)
    assert days.kind.cut_texts == ["2000-07-02", "2001", "2001-07-02"]
    hours = FinerBins.of(Dates(["2001-01-01T12:00"], "2001-01-01T00:00", "2001-01-01T23:59"), 2)
    assert hours.kind.cut_texts == ["2001-01-01T06:00:00", "2001-01-01T12:00", "2001-01-01T18:00:00"]
    written = FinerBins.of(Dates([2001], 2000, 2001, "%d.%m.%Y"), 2)
    assert written.kind.code("01.07.2000") == 0 and written.kind.code("02.07.2000") == 1


UP = 'columns.up = { kind = "integers", range = [0, 9], finer = 2 }'
TAX = 'valid = "pay <= tax"\ncolumns.tax = { kind = "cuts", cuts = [5], range = [0, 9] }'


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (("finer = 10", "finer = 1"), "finer must be a whole number from 2 to 64"),
        (("finer = 10", "finer = 65"), "finer must be a whole number from 2 to 64"),
        (('share = "1/10"', "share = 0.6"), "share must be above 0 and at most 1/2"),
        (("finer = 10, ", ""), r"share is for categories that are learned.*or for finer"),
        (('share = "1/10"', "share = 0.5"), "the shares of all columns may add up to 1/2"),
        (("cuts = [100]", 'cuts = "learn", bins = 3'), "finer do not go together"),
        (('kind = "bool"', 'kind = "bool", finer = 2'), "unknown key 'finer'"),
        (("columns.ill", f"{UP}\ncolumns.ill"), "'finer'"),
        (("range = [0, 1000]", "range = [99, 100]"), "finer: every bin has one value"),
        (("\ncolumns.pay", f"\n{TAX}\ncolumns.pay"), "column 'pay': finer is not for columns of an order"),
    ],
)
def test_what_cannot_be_finer_is_refused(changed, said):
    with pytest.raises(ValueError, match=said):
        parse_schema(SCHEMA.replace(*changed))


def test_what_has_no_finer_bins_or_too_many_rows_in_them_is_refused():
    schema = parse_schema(SCHEMA)
    with pytest.raises(ValueError, match="column 'pay': related tables cannot have finer bins"):
        RelatedSchema("a", "b", schema, parse_schema(PLAIN), "x", "y")
    rows = Rows.from_codes(schema.domain, np.zeros((9, 3), dtype=np.uint8))
    with pytest.raises(TypeError, match="finer bins are counted from a table"):
        smalldb.release(rows, schema=schema, epsilon=1)
    with pytest.raises(ValueError, match="column 'pay': noise on finer bins would be above 2\\^40"):
        smalldb.plan(schema=SCHEMA, n=2000, epsilon="1e-12", rows=2, queries="marginals:1")
    with pytest.raises(ValueError, match="measured of less than 2\\^53 rows"):
        smalldb.plan(schema=SCHEMA, n=1 << 53, epsilon=1, rows=2, queries="marginals:1")
    given = schema.pieces(people(2).assign(n=[str(1 << 61)] * 2), "n")
    with pytest.raises(DataError, match="counts add up to 2"):
        [*gather_finer(schema, "n", {}, given)]


def test_counts_are_shrunk_towards_the_shape_of_all_bins():
    """As James and Stein have it, bin by bin; beside the definition, in a loop."""
    kind = Cuts([10, 30], 0, 69)
    coarse = BinShape.of(kind, np.repeat([0, 1, 2], [300, 500, 100]))
    for variance in (1.0, 400.0, 1e9):
        rng = np.random.default_rng(4)
        counts = rng.integers(0, 200, 15).tolist()
        finer = FinerBins.of(kind, 5).released(counts, variance)
        found, times = finer.shape(coarse).shape.counts, sum(counts) / 900
        for code in range(3):
            measured, rows = counts[5 * code : 5 * code + 5], coarse.counts[code] * times
            smooth = [rows * (coarse.below(code, (i + 1) / 5) - coarse.below(code, i / 5)) for i in range(5)]
            apart = [m + (rows - sum(measured)) / 5 - s for m, s in zip(measured, smooth, strict=True)]
            far = sum(a * a for a in apart) / 4
            kept = 1 - variance / far if far > variance * (1 + 4 * (5 / 4) ** 0.5) else 0
            near = [max(0, s + kept * a) for s, a in zip(smooth, apart, strict=True)]
            expected = [coarse.counts[code] * each / sum(near) for each in near]
            assert found[5 * code : 5 * code + 5] == pytest.approx(expected, rel=1e-9)
    assert finer.shape(coarse).shape.counts.sum() == pytest.approx(900)


def test_values_follow_the_finer_counts_and_stay_in_their_bins():
    """A spike in one of ten parts of a bin is there again; without counts, values are as before."""
    column = Column("pay", Cuts([100], 0, 1000), finer=FinerBins.of(Cuts([100], 0, 1000), 10))
    plain = Column("pay", Cuts([100], 0, 1000))
    codes = np.repeat([0, 1], [1000, 4000])
    assert column.decode(codes, SeededBits(1)).equals(plain.decode(codes, SeededBits(1)))
    counts = [0] * 20
    counts[1], counts[13], counts[19] = 1000, 3000, 1000
    known = Column("pay", column.kind, finer=column.finer.released(counts, 1.0))
    made = known.decode(codes, SeededBits(1))
    assert (known.codes(made) == codes).all()
    assert (made[:1000] // 10 == 1).mean() > 0.99
    parts = pd.Series([known.finer.kind.code(str(value)) for value in made[1000:]]).value_counts(
        normalize=True
    )
    assert parts[13] == pytest.approx(0.75, abs=0.03) and parts[19] == pytest.approx(0.25, abs=0.03)


@pytest.mark.slow
@RELATIONS
@pytest.mark.parametrize("more", [{}, {"delta": "1e-6"}, {"rows_per_person": 2}])
def test_all_parts_of_epsilon_add_up_and_are_stated(relation, more):
    public = {"neighbours": relation, "n_max": 2000} if relation == "add-remove" else {}
    more = more | {"means": 0}
    plan = smalldb.plan(schema=SCHEMA, epsilon=1, n=None if public else 2000, **public, **more)
    each = Fraction(1, more.get("rows_per_person", 1))
    assert [cost.epsilon for cost in plan.finer] == [each / 10, each / 50]
    assert plan.request.epsilon == each * Fraction(88, 100)
    assert (plan.epsilon, plan.privacy) == (1, 1)
    made = smalldb.release(people(), schema=SCHEMA, epsilon=1, rng=5, **public, **more)
    check_record(made.record)
    assert made.plan.finer == plan.finer and made.record["privacy"]["epsilon"] == "1"
    told = made.record["finer"]
    assert [one["column"] for one in told] == ["pay", "day"]
    rate = each / 10 / (2 if relation == "replace-one" else 1)
    assert told[0]["noise"] == {"name": "geometric", "rate": as_text(rate)}
    assert len(told[0]["values"]) == len(told[0]["cuts"]) + 1 == 20
    stated, steps = plan.chosen.guarantee.stated, 2 if relation == "replace-one" else 1
    laws = {RandomisedResponse(cost.epsilon / steps): steps for cost in plan.finer}
    if "rows_per_person" not in more:
        assert plan.loss.rho == stated.rho + sum(law.rho * times for law, times in laws.items())
        assert stated.laws is None or dict(plan.loss.laws) == dict(stated.laws) | laws


def test_means_of_columns_with_finer_bins_are_measured_for_their_own_part():
    """Finer bins are not read by `ask`."""
    frame = people()
    made = smalldb.release(frame, schema=SCHEMA, epsilon=1, rng=5)
    assert made.plan.means.columns == (0,) and made.plan.means.epsilon == Fraction(88, 100) / 25
    assert made.plan.request.epsilon == Fraction(88, 100) * Fraction(24, 25)
    assert (made.plan.epsilon, made.plan.privacy, made.record["privacy"]["epsilon"]) == (1, 1, "1")
    answer = made.ask("mean(pay)")
    truth = pd.to_numeric(frame["pay"], errors="coerce").mean()
    assert answer.low <= truth <= answer.high and answer.estimate is not None


def test_a_plan_is_of_its_schema():
    schema, frame = parse_schema(SCHEMA), people()
    plan = smalldb.plan(schema=schema, n=2000, epsilon=1)
    made = smalldb.release(plan, frame, schema=schema, rng=3)
    assert made.data.equals(smalldb.release(frame, schema=schema, epsilon=1, rng=3).data)
    for other in (parse_schema(PLAIN), parse_schema(SCHEMA.replace('"1/10"', '"1/20"')), None):
        with pytest.raises(ValueError, match="the plan was made for another schema"):
            smalldb.release(plan, frame, schema=other, rng=3)
    with pytest.raises(ValueError, match="the plan was made for another schema"):
        smalldb.release(smalldb.plan(schema.domain, n=2000, epsilon=1), frame, schema=schema)


def test_the_command_states_what_finer_bins_cost(workdir, capfd):
    frame = people(500)
    frame.to_csv("data.csv", index=False)
    (workdir / "s.toml").write_text(SCHEMA)
    given = ("--schema", "s.toml", "--epsilon", 1)
    said = "(of which 0.12 of epsilon is for finer bins of pay, day)"
    code, out, _ = called(capfd, "plan", *given, "--n", 500)
    assert code == 0 and said in out
    more = ("--ledger", "l", "--budget", 1, "--record", "r.json", "-o", "out.csv", "--report", "r.html")
    code, _, err = called(capfd, "generate", "data.csv", *given, *more)
    assert code == 0 and said in err
    record = json.loads((workdir / "r.json").read_text())
    assert record["privacy"]["epsilon"] == "1" and len(record["finer"]) == 2
    assert "pay, day" in (workdir / "r.html").read_text()
    assert called(capfd, "generate", "data.csv", *given, *more)[0] == 5  # nothing is left
