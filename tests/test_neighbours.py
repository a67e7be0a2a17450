"""What is public of a run depends on the data through the release alone.

Runs of the command line on neighbouring tables, with one seed: exit code, both streams, record and report.
A walk is a list of tables, each a neighbour of the one before.
"""

import json
import random
import re
from typing import NamedTuple

import pytest
from calling import way_options

from smalldb.cli import main
from smalldb.exact.bits import SeededBits
from smalldb.marginals.asks import Noisy, Order
from smalldb.marginals.curator import Curator
from smalldb.releasing import pipeline

pytestmark = pytest.mark.slow

STEPS = 6  # neighbours in a walk
SETTINGS = {  # what is run, how many walks, and queries and attributes that are quick
    "census": (12, ["marginals:2", "conjunctions:2", "predicates:a", "parities:2 + thresholds"], [2, 3]),
    "census --candidates tuples": (4, ["marginals:2", "predicates:a"], [2]),
    "contrasts": (12, ["marginals:2", "marginals:1", "predicates:a", "parities:3"], [3]),
    "auto": (4, ["marginals:2", "predicates:a"], [2]),
    "rejection": (5, ["marginals:1", "predicates:a", "predicates:a & b"], [2]),
    "rejection --candidates multisets": (3, ["marginals:2", "predicates:a"], [2]),
    "census --rows 1000000000": (1, ["marginals:2"], [2]),
    "rejection --valid a": (1, ["marginals:2"], [2]),
}


REFUSED = ("census --rows 1000000000", "rejection --valid a")


class Shown(NamedTuple):
    """What a run shows; the table is on stdout or in a file."""

    code: int
    out: str
    err: str
    table: str | None
    record: dict | None
    report: str | None

    def without_answers(self):
        """All of it but the integers that a run released, and what it computes from them: the error."""
        blank = re.compile("(bound:     at most )[^ ]+( \\(vacuous\\))?")
        record = self.record and self.record | {"bounds": None, "measurements": None, "pairs": None}
        return self._replace(err=blank.sub(r"\1", self.err), record=record, report=None)

    def without_table(self):
        """What is known before the draw."""
        return self.without_answers()._replace(out="", table=None)


def neighbour(rows, cells, relation, chance):
    """A table with one row exchanged, or with one row more or less."""
    rows = list(rows)
    if relation == "replace-one":
        position = chance.randrange(len(rows))
        rows[position] = chance.choice([cell for cell in cells if cell != rows[position]])
    elif rows and chance.random() < 0.5:
        del rows[chance.randrange(len(rows))]
    else:
        rows.insert(chance.randrange(len(rows) + 1), chance.choice(cells))
    return rows


def walk(setting, relation, number):
    """Tables, each a neighbour of the one before, and the arguments of all their runs."""
    chance = random.Random(f"{setting} {relation} {number}")
    _, queries, sizes = SETTINGS[setting]
    size = chance.choice(sizes)
    names = "abc"[:size]
    cells = [f"{cell:0{size}b}" for cell in range(2**size)]
    rows = chance.choices(cells, k=chance.randint(1, 5))
    tables = [rows]
    for _ in range(STEPS):
        tables.append(neighbour(tables[-1], cells, relation, chance))
    mechanism, *more = setting.split(" ", 1)
    epsilon, seed = chance.choice(["1/20", "1/5", "1"]), str(chance.randrange(10**6))
    arguments = [*way_options(mechanism), "--queries", queries[number % len(queries)], "--epsilon", epsilon]
    arguments += ["--seed", seed, "--neighbours", relation, *" ".join(more).split()]
    if "--rows" not in arguments:
        arguments += ["--rows", str(chance.randint(1, 3))]
    if relation == "add-remove":
        arguments += ["--n-max", "6"]
    if number % 2:
        arguments += ["-o", "out.csv"]
    if number % 4 == 1:
        arguments += ["--report", "out.html"]
    texts = ["".join(",".join(row) + "\n" for row in (names, *table)) for table in tables]
    return texts, arguments


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run `generate` on a table given as CSV; returns what it shows."""
    monkeypatch.chdir(tmp_path)

    def shown(text, arguments):
        (tmp_path / "data.csv").write_text(text)
        code = main(["generate", "data.csv", "--even-if-empty", "--record", "out.json", *arguments])
        written = {}
        for name in ("out.csv", "out.json", "out.html"):
            path = tmp_path / name
            written[name] = path.read_text() if path.exists() else None
            path.unlink(missing_ok=True)
        assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]
        out, err = capsys.readouterr()
        record = written["out.json"] and json.loads(written["out.json"])
        table = out if written["out.csv"] is None else written["out.csv"]
        return Shown(code, out, err, table, record, written["out.html"])

    return shown


@pytest.fixture
def measured(monkeypatch):
    """The integers that were released, run for run; what is forced takes their place."""
    real, released, forced = Curator.draw, [], []

    def draw(curator, ask, coins):
        if not isinstance(ask, Noisy):
            return real(curator, ask, coins)
        made = forced[len(released) % len(forced)] if forced else real(curator, ask, coins)
        released.append(made)
        return made

    monkeypatch.setattr(Curator, "draw", draw)
    return released, forced


def compared(run, released, texts, arguments):
    """Compare the runs on neighbours; returns how many pairs there were, and in how many all was the same."""
    pairs = same = 0
    before = None
    for text in texts:
        del released[:]
        shown = run(text, arguments)
        assert shown.code == (2 if "1000000000" in arguments or "--valid" in arguments else 0), shown.err
        integers = [made.tolist() for made in released]
        if before is not None:
            earlier, others = before
            assert shown.without_table() == earlier.without_table()
            if shown.table == earlier.table:
                assert shown.without_answers() == earlier.without_answers()
                if integers == others:
                    assert shown == earlier
                    same += 1
            pairs += 1
        before = shown, integers
    return pairs, same


def test_neighbours_that_release_the_same_table_show_the_same(run, measured):
    done = refused = alike = 0
    for setting, (walks, *_) in SETTINGS.items():
        for number in range(walks):
            relation = ("replace-one", "add-remove")[number % 3 == 2]
            pairs, same = compared(run, measured[0], *walk(setting, relation, number))
            if setting in REFUSED:
                refused += pairs
            else:
                done += pairs
                alike += same
    assert (done, refused) == (240, 12)
    assert alike >= 60


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("number", range(4))
def test_contrasts_show_nothing_but_what_follows_from_the_released_integers(
    run, measured, monkeypatch, relation, number
):
    released, forced = measured
    shuffled = Order.draw
    # bits of their own, as noise that differs takes other ones of the seed
    monkeypatch.setattr(Order, "draw", lambda self, exact, _: shuffled(self, exact, SeededBits(number)))
    texts, arguments = walk("contrasts", relation, number)
    first = run(texts[0], arguments)
    forced += [*released]
    for text in texts[1::3]:
        assert run(text, arguments) == first


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda made: made.record.update(n=made.confidential.census.n),
        lambda made: made.record.update(spread=len(made.confidential.census.levels)),
        lambda made: made.record.update(best=made.confidential.max_error),
    ],
)
def test_a_record_that_says_more_is_noticed(run, measured, monkeypatch, spoilt):
    real = pipeline.carried_out

    def telling(*arguments, **keywords):
        made = real(*arguments, **keywords)
        spoilt(made)
        return made

    monkeypatch.setattr(pipeline, "carried_out", telling)
    with pytest.raises(AssertionError):
        for number in range(3):
            compared(run, measured[0], *walk("census", "add-remove", number))
