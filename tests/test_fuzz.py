"""Texts of strangers, whatever they hold, are taken, or refused in one line without a value of the data."""

import pytest
from fuzz import FIXED, MARK, SCHEMA_TEXT, SEEDS, SPENT, TARGETS, check
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from queries import DataError
from smalldb.files.checkpoints import Checkpoint
from smalldb.releasing.budget_ledger import Ledger
from smalldb.releasing.ledger_account import Account

pytestmark = pytest.mark.slow

WORDS = {
    "csv": [*"\" , 0 1 true FALSE a b 7734 ''".split(), "\n", "\r", "\ufeff", "\x00", " ", "\udc80"],
    "table": [
        *SEEDS["table"][0].replace("\n", ",").split(","),
        *'" , NaN 1e999 -0 99999999999999999999'.split(),
        "\n",
    ],
    "schema": [*SCHEMA_TEXT.split(), "\n", *'[ ] { 1e400 -1 nan 2020-01-01 dtype "category" = \''.split()],
    "spec": "conjunctions marginals : = 2 + negations predicates ; ` a & 9999 \u0662".split(),
    "predicate": [*"a b ` & | ^ ~ ( ) \xe9 True __import__".split(), "`c d`", " ", "\x00"],
    "record": [
        *'{ } [ ] : , " epsilon privacy 1/2 1e9 null true bounded_range NaN -1 0 1e999 \\ud800'.split()
    ],
    "jsonl": [
        *SEEDS["jsonl"][1].replace("\n", " ").split(),
        *["\n", "{", "}", '"', ":", ",", "[", "null", "NaN", "-0", "1e999", "\ufeff", "\x00", "\udc80"],
        *["{}", '{"a": 7734}', '{"a": 1}', "\\ud800"],
    ],
    "ledger": [
        *["# ", "\n", " ", f"# {SPENT}\n", SPENT, '# {"budget": "1", "ledger": 1}\n', *'# { } " :'.split()],
        *[*"1/2 1e9 -1 0 null add-remove epsilon ledger 2 \xe9 \\ud800".split(), "\x00"],
    ],
    "rules": ["a", "`job=part`", "`age>=18`", "&", "|", "~", "(", ")", "\n", "`age<7`", "1"],
    "codebook": [*'column value , " { } [ ] : fields resources 1 -1'.split(), "\n", "\x00"],
    "shard": [MARK, "run", "0", "1", "\n", "#", "[", "]", ",", '"', "null", "NaN", "7734", "\r", "\x00", " "],
}


def mutated(name):
    """Texts of the words of a language, and its seeds with a piece replaced."""
    words = st.lists(st.sampled_from(WORDS[name]) | st.text(max_size=3), max_size=12).map("".join)

    def replaced(seed, at, length, piece):
        return seed[: at % (len(seed) + 1)] + piece + seed[at % (len(seed) + 1) + length :]

    seeds = st.builds(replaced, st.sampled_from(SEEDS[name]), st.integers(0, 999), st.integers(0, 9), words)
    return (words | seeds).map(lambda text: text.encode(errors="surrogatepass"))


EXAMPLES = {"csv": 60, "table": 60, "jsonl": 60, "schema": 60, "record": 30, "ledger": 100, "shard": 100}
EXAMPLES |= {"rules": 50, "codebook": 100, "spec": 200, "predicate": 200}
EXAMPLES |= {"frame": 75, "parquet": 30, "keys": 30, "compressed": 30}  # these are read byte by byte


@pytest.mark.parametrize("name", EXAMPLES)
def test_texts_and_tables_of_any_kind(name):
    if name == "parquet":
        pytest.importorskip("pyarrow")

    @settings(max_examples=EXAMPLES[name], suppress_health_check=[HealthCheck.too_slow])
    @given(mutated(name) | st.binary(max_size=60) if name in WORDS else st.binary(max_size=28))
    def run(raw):
        TARGETS[name](raw)

    run()


@pytest.mark.parametrize("name", SEEDS)
def test_seeds_reach_what_is_behind_the_parser(name):
    if name == "parquet":
        pytest.importorskip("pyarrow")
    assert TARGETS[name](SEEDS[name][0].encode())


@pytest.mark.parametrize(
    ("error", "data"),
    [
        (KeyError("a"), ""),
        (UnicodeDecodeError("utf-8", b"a", 0, 1, "bad"), ""),
        (ValueError("two\nlines"), ""),
        (ValueError(""), ""),
        (DataError("column 'a' holds 7734"), "a\n7734\n"),
        (DataError("column 'a' holds 7734"), '{"a": 7734}\n'),
        (DataError("column 'a' holds 4.5: a number is written plainly, as 1234.5"), "a\n4.5\n"),
        (DataError("column 'a' holds 0/1"), "a\n0/1\n"),
        (ValueError("bad"), "a\n7734\n"),
    ],
    ids=str,
)
def test_the_check_sees_what_it_is_for(error, data):
    if str(error) == "bad":
        error.__context__ = KeyError("7734")
    with pytest.raises(AssertionError):
        check(error, data)


@pytest.mark.parametrize("text", FIXED)
def test_the_check_takes_what_is_said_of_any_data(text):
    check(DataError(f"bad: {text}"), "a\n" + "\n".join(text[i:] for i in range(len(text))))


@pytest.mark.parametrize("kept", [0, 1])
def test_a_ledger_that_says_less_than_was_spent_is_seen(kept, monkeypatch):
    plain = Ledger.read
    monkeypatch.setattr(
        Ledger, "read", lambda self: Account((made := plain(self)).budget, made.records[:kept], made.torn)
    )
    with pytest.raises(AssertionError):
        TARGETS["ledger"](SEEDS["ledger"][0].encode())


def test_a_part_that_is_read_though_it_is_damaged_is_seen(monkeypatch):
    damaged = SEEDS["shard"][0].replace("[1, 20]", "[1, 21]").replace("#", "0" * 64).encode()
    assert not TARGETS["shard"](damaged)
    monkeypatch.setattr(Checkpoint, "load", lambda *_: [[1, 21], 3.5])
    with pytest.raises(AssertionError):
        TARGETS["shard"](damaged)


DEEP = {
    "schema": ("x = " + "[" * 100_000, "x" + ".a" * 2000 + " = 1", "a = " + "9" * 5000),
    "spec": ("+".join(["parities:1"] * 9000), "predicates:" + "~" * 9000 + "a", "marginals:" + "9" * 99),
    "predicate": (
        "(" * 5000 + "a" + ")" * 4000,
        "~" * 9999 + "a",
        "a & " * 2499 + "a",
        "`" + "a" * 9000 + "`",
    ),
    "csv": ('"' * 100_001, "a" * 200_000 + "\n0\n", "a,b\n" * 3000, "a\n" + "0" * 200_000),
    "table": (
        "id,age,job,smoker,born\n" + "," * 200_000,
        "age,job,smoker,born\n" + "9" * 9999 + ",none,1,\n",
    ),
    "jsonl": ('{"a": ' + "[" * 100_000, '{"a": ' + "9" * 5000 + "}", '{"' + "a" * 200_000 + '": 0}\n'),
    "codebook": (
        "column,value\na",
        '{"a": ' + "[" * 100_000,
        '{"resources": []}',
        '{"a": [' + "9" * 5000 + "]}",
    ),
    "rules": ("~" * 9999 + "a", "a\n" * 3000, "`age>=" + "9" * 5000 + "`"),
    "record": (
        '{"a": ' * 100_000,
        '{"bounds": {"sharp": 1' + "0" * 400 + "}}",
        '{"epsilon": ' + "9" * 5000 + "}",
    ),
    "ledger": (
        "# " + '{"a": ' * 100_000 + "}",
        '# {"budget": "' + "9" * 5000 + '", "ledger": 1}',
        '# {"budget": "1", "ledger": ' + "9" * 5000 + "}",
        "#" * 100_000,
        "\n" * 100_000,
    ),
    "shard": (
        f"{MARK}\nrun\n0\n" + "[" * 100_000 + "\n#\n",
        f"{MARK}\nrun\n0\n" + "9" * 5000 + "\n#\n",
        f"{MARK}\nrun\n0\n\n#\n",
    ),
}


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name in DEEP for text in DEEP[name]], ids=lambda t: t[:9]
)
def test_long_and_deep_texts(name, text):
    TARGETS[name](text.encode())
