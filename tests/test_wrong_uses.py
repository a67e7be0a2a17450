"""Wrong uses, from the documentation and beyond: each is told in one line, with its cause and what to do.

No message shows a value of the data: `SECRETS` stand in the tables and nowhere else.
"""

import shlex

import pandas as pd
import pytest
from calling import called

import smalldb
from queries import Column, Domain
from smalldb.releasing.evaluation import evaluate
from smalldb.schema import parse_schema
from smalldb.schema.table_writers import NAMED

SECRETS = ("secret", "31337", "maybe")
TABLES = {
    "data.csv": "a,b\n0,1\n1,1\n1,0\n",
    "empty.csv": "",
    "header.csv": "a,b\n",
    "bare.csv": "0,1\n1,1\n",
    "semicolons.csv": "a;b\n0;1\n",
    "texts.csv": "a,b\n0,secret\n",
    "gaps.csv": "a,b\n0,\n",
    "ragged.csv": "a,b\n0,1,31337\n",
    "twice.csv": "a,a\n0,1\n",
    "unnamed.csv": "a,\n0,1\n",
    "nameless.csv": "a,,b\n0,0,1\n",
    "binary.csv": bytes(range(256)).decode("latin-1"),
    "data.jsonl": '{"a": 31337}\n',
    "lines.jsonl": '{"id": 1, "age": [31337], "job": "secret"}\n',
    "people.csv": "id,age,job\n1,17,secret\n2,,none\n3,31337,full\n",
    "words.csv": "id,age,job\n1,maybe,none\n",
    "counted.csv": "n,age,job\n31337.5,17,none\n",
}
AGE = 'columns.age = { kind = "cuts", cuts = [18], range = [0, 99], missing = true }\n'
JOB = 'columns.job = { kind = "categories", values = ["none", "full"], unknown = "other" }\n'
SCHEMAS = {
    "good.toml": 'ignore = ["id"]\n' + AGE + JOB,
    "bad.toml": '[columns.age]\nkind = "cutz"\n',
    "broken.toml": "[columns.age\n",
    "draft.toml": '[columns.age]\nkind = "cuts"\ncuts = []\nrange = []\n',
    "wrong.toml": '[columns.age]\nkind = "cuts"\ncuts = [40, 18]\nrange = [0, 99]\n'
    '[columns.job]\nkind = "bool"\nvalues = [1]\n',
    "other.toml": 'ignore = ["id"]\n' + AGE + JOB.replace("job", "jobs"),
    "fewer.toml": 'ignore = ["id"]\n' + AGE,
    "strict.toml": 'ignore = ["id"]\n' + AGE + JOB.replace(', unknown = "other"', ""),
    "nogaps.toml": 'ignore = ["id"]\n' + AGE.replace(", missing = true", "") + JOB,
    "ruled.toml": 'valid = "~`job=full`"\nignore = ["id"]\n' + AGE + JOB,
    "unruly.toml": 'valid = "jobb"\nignore = ["id"]\n' + AGE + JOB,
}

GENERATE = [  # what follows `generate data.csv --epsilon 1`, the cause, what to do
    ("--delta 1e-9 --mechanism census --rows 3", "delta is for", "leave it out"),
    ("--rows 0", "argument --rows", "at least 1"),
    ("--rows 1_0", "argument --rows", "at least 1"),
    ("--candidates tuple", "invalid choice", "did you mean 'tuples'?"),
    ("--spelling yes/no", "invalid choice", "true/false"),
    ("--rows 3 --alpha 0.5", "--alpha: not allowed", "with argument --rows"),
    ("--neighbours add-remove", "n is private", "give rows or alpha"),
    ("--neighbours add_remove", "neighbours must be", "did you mean 'add-remove'"),
    ("--n-max 100", "n_max is for add-remove", "n itself is public"),
    ("--columns a,c", "data.csv has no column 'c'", "'c'"),
    ("--columns a,,b", "data.csv has no column ''", "''"),
    ("--columns a,a", "'a'", "occurs more than once"),
    ("--valid 'a &'", "predicate 'a &'", "expected an attribute name"),
    ("--valid 'a and b'", "expected & ^ | or )", "are written &, |, ~"),
    ("--valid c", "unknown attribute 'c'", "valid"),
    ("-o out.ods", "not 'out.ods'", f"written as {NAMED}"),
    ("-o data.csv", "replace an input", "name another file"),
    ("-o x --record ./x", "two outputs", "cannot go to one file"),
    ("-o x --record x", "two outputs", "cannot go to one place"),
    ("-o ''", "an output", "needs a file name"),
    ("-o .", ".", "is a directory"),
    ("--record no/such/r.json", "no/such/r.json", "no such folder: no/such"),
    ("--report page.pdf", "'page.pdf'", "must end in .html"),
    ("--confidential", "--confidential", "needs --report"),
    ("--middle", "--middle", "needs --schema"),
    ("--counts n", "--counts", "needs --schema"),
    ("--budget 2", "--budget", "needs --ledger"),
    ("--ledger l", "no ledger yet", "add --budget E"),
    ("--ledger l --budget 0.5", "0.5 of the budget", "needs 1"),
    ("--ledger l --budget 2 --delta 1e-9", "pure privacy", "leave out --delta"),
    ("--seed pi", "argument --seed", "expected a whole number"),
    ("--tables 2", "--tables needs", "-o DIR"),
    ("--tables 1 -o x", "--tables must be", "from 2 to 1000"),
    ("--tables 2 -o data.csv", "data.csv", "is a file: name a folder"),
    ("--tables 2 -o none/x", "none/x", "no such folder"),
    ("--table-rows 9 -o x.csv", "--table-rows", "needs --tables"),
    ("--query t", "a query is of a database, and this is none", "leave out --query"),
    ("--title x", "--title", "needs --report"),
    ("--column-share 0", "column_share must be", "above 0 and at most 1"),
    ("--column-share 1/2 --strategy pairs", "an earlier release and column_share", "leave out the other"),
    ("--mechanism marginal", "not 'marginal'", "did you mean 'marginals'?"),
    (
        "--mechanism answers",
        "mechanism 'answers' is a strategy of 'marginals' now",
        "write mechanism marginals, strategy contrasts",
    ),
    (
        "--mechanism rounds",
        "mechanism 'rounds' is a strategy of 'marginals' now",
        "write mechanism marginals, strategy adaptive",
    ),
    ("--strategy contrast", "strategy must be one of", "did you mean 'contrasts'?"),
    ("--mechanism census --strategy cells", "a strategy is for marginals", "leave it out"),
    ("--row 3", "unrecognized arguments: --row; ", "did you mean '--rows'?"),
    ("--loud", "unrecognized arguments: --loud (", "generate --help"),
]
PUBLIC = [  # commands that read no data, and the cause
    ("plan --attributes 4 --n 100 --epsilom 1", "did you mean '--epsilon'?"),
    ("plan --attributes -4 --n 100 --epsilon 1", "attributes must be a whole number"),
    ("plan --attributes 1e3 --n 100 --epsilon 1", "attributes must be a whole number"),
    ("plan --attributes 4 --n 1e9 --epsilon 1", "in up to 18 digits"),
    ("plan --attributes 4 --n 1000000000000000000 --epsilon 1", "in up to 18 digits"),
    ("plan --attributes 10 --n 9 --epsilon 1 --queries intervals", "more than 262144: use fewer attributes"),
    ("plan --attributes 11 --n 9 --epsilon 1 --queries thresholds", "use up to 10 attributes"),
    ("plan --attributes 8 --n 9 --epsilon 1 --queries intervals", "use up to 7 attributes"),
    ("plan --attributes 21 --n 9 --epsilon 1 --queries intervals", "use fewer attributes, or"),
    ("plan --attributes 9999 --n 9 --epsilon 1 --queries intervals", "states more than 10^20 queries"),
    ("bounds --attributes 3 --n 5 --epsilon 1 --against rows", "--against is for --plot"),
    ("audit --attributes 2 --n 6 --epsilon 1 --rows 2 --method noisy-max", "for mechanism 'select'"),
    ("audit --attributes 2 --n 6 --epsilon 1 --rows 2 --k 2", "for mechanism 'select'"),
    ("audit --attributes 20 --n 1000000000 --epsilon 1 --rows 1", "beyond the budget"),
    ("plan --attributes 0 --n 5 --epsilon 1", "attributes must be a whole number"),
    ("plan --attributes a,a --n 5 --epsilon 1", "name 'a' occurs more than once"),
    ("bounds --attributes 3 --n 5 --epsilon 1 --error 1", "error must lie strictly"),
    (
        "bounds --attributes 3 --n 5 --epsilon 1 --size 2 --queries parities:1",
        "not allowed with argument --size",
    ),
    ("bounds --attributes 3 --n 5 --epsilon 1 --candidates sets", "candidates must be 'multisets' or"),
    ("account --epsilon 1 --releases 2 --delta 1", "delta must be at least 0"),
    ("account --releases 3", "--epsilon --total --records is required"),
    ("account --total 1", "--total needs --releases"),
    ("account --total 1 --releases 2 --plot x.png", "needs one --epsilon"),
    ("account --epsilon 1 2 --plot x.png", "needs one --epsilon"),
    ("audit --attributes 1 --rows 2 --epsilon 1 --n 4 --mechanism select --error", "of the census"),
    ("plan --attributes 3 --n 500 --epsilon 1 --plot x.gif", "must be named .png"),
    (
        "plan --attributes 3 --neighbours add-remove --epsilon 1 --rows 2 --mechanism census --plot x.png",
        "needs an expected error",
    ),
    ("plan --schema good.toml --attributes 2 --epsilon 1", "not allowed with"),
    ("plan --n 2 --epsilon 1", "one of the arguments --attributes --schema is required"),
    ("account --records nowhere.json --releases 2", "do not go with --records"),
    ("audit --attributes 2 --epsilon 1 --n 100000 --rows 2", "the largest n that can be audited is 66"),
]
COMMANDS = [  # the command, the cause, what to do
    *((f"generate data.csv --epsilon 1 {more}", cause, step) for more, cause, step in GENERATE),
    *((command, cause, "") for command, cause in PUBLIC),
    ("generate data.csv", "required: --epsilon", "generate --help"),
    ("generate data.csv --epsilon 0", "epsilon must be", "above 0"),
    ("generate data.csv --epsilon one", "epsilon must be a finite number", "such as '1/2'"),
    (
        "audit --attributes 2 --n 3 --epsilon 1 --mechanism answers",
        "mechanism must be 'census', 'select'",
        "not 'answers'",
    ),
    ("genrate data.csv", "invalid choice: 'genrate'", "did you mean 'generate'?"),
    ("generate none.csv --epsilon 1", "none.csv", "no such file"),
    ("generate empty.csv --epsilon 1", "empty.csv is empty", "a first line with column names"),
    ("generate header.csv --epsilon 1", "no rows", "under add-remove it may be empty"),
    ("generate bare.csv --epsilon 1", "not data", "the first line must hold column names"),
    (
        "generate semicolons.csv --epsilon 1",
        "semicolons.csv",
        "1 field separated by commas, and 2 by semicolons: take separator ';'",
    ),
    ("generate texts.csv --epsilon 1", "column 'b' is not spelled 0/1", "smalldb schema init"),
    ("generate gaps.csv --epsilon 1", "column 'b' has missing values", "smalldb schema init"),
    ("generate ragged.csv --epsilon 1", "ragged.csv is not a CSV file", "as many fields in every line"),
    ("generate twice.csv --epsilon 1", "column name 'a'", "occurs more than once"),
    ("generate unnamed.csv --epsilon 1", "unnamed.csv", "a column name in the first line is empty"),
    ("generate nameless.csv --epsilon 1", "in the first line is empty", "choose the columns"),
    ("generate binary.csv --epsilon 1", "binary.csv", "is not a table with names"),
    ("generate . --epsilon 1", ".", "is a directory"),
    ("generate data.jsonl --epsilon 1", "data.jsonl", "need a schema (--schema)"),
    ("generate people.csv --epsilon 1 --schema none.toml", "none.toml", "no such file"),
    (
        "generate people.csv --epsilon 1 --schema bad.toml",
        "kind must be one of",
        "did you mean 'cuts'? (line 2)",
    ),
    ("generate people.csv --epsilon 1 --schema broken.toml", "not TOML", "smalldb schema init"),
    ("generate people.csv --epsilon 1 --schema draft.toml", "cuts is empty (line 3)", "fill in the draft"),
    (
        "generate people.csv --epsilon 1 --schema wrong.toml",
        "must ascend, each above the one before (line 3)",
        "(line 7)",
    ),
    (
        "generate people.csv --epsilon 1 --schema unruly.toml",
        "unknown attribute or category 'jobb'",
        "(line 1)",
    ),
    ("generate people.csv --epsilon 1 --schema other.toml", "no column 'jobs'", "did you mean 'job'?"),
    ("generate people.csv --epsilon 1 --schema fewer.toml", "the schema has no column 'job'", "under ignore"),
    ("generate people.csv --epsilon 1 --schema strict.toml", "column 'job' has values", 'unknown = "other"'),
    ("generate people.csv --epsilon 1 --schema nogaps.toml", "column 'age' has missing", "missing = true"),
    ("generate people.csv --epsilon 1 --schema ruled.toml", "valid", "rows break rule 1"),
    ("generate words.csv --epsilon 1 --schema good.toml", "column 'age' has values", "written plainly"),
    ("generate lines.jsonl --epsilon 1 --schema good.toml", "not JSON lines", "an object in each line"),
    ("generate counted.csv --epsilon 1 --schema good.toml --counts n", "column 'n'", "whole numbers"),
    ("generate people.csv --epsilon 1 --schema good.toml --columns age", "--columns", "the schema says it"),
    ("generate people.csv --epsilon 1 --schema good.toml --spelling 0/1", "--spelling", "the schema says it"),
    ("generate people.csv --epsilon 1 --schema good.toml --counts age", "column 'age'", "cannot hold counts"),
    (
        "generate people.csv --epsilon 1 --schema good.toml --schema-out s.toml",
        "--schema-out is for a schema that learns",
        'values = "learn"',
    ),
    ("generate people.csv --epsilon 1 --schema-out s.toml", "--schema-out is for", 'values = "learn"'),
    ("plan --attributes 6 --epsilon 1", "give --n", "or --neighbours add-remove with --n-max"),
    ("plan --attributes 1.5 --n 10 --epsilon 1", "attributes must be", "names separated by commas"),
    ("plan --attributes 6 --n 10 --epsilon 1 --neighbours add-remove", "n is private", "leave it out"),
    ("plan --schema good.toml --valid age --n 10 --epsilon 1", "--valid", "a schema says it"),
    ("bounds --n 10 --epsilon 1", "--attributes --schema", "is required"),
    ("bounds --attributes 4 --n 10 --epsilon 1 --against n", "--against", "is for --plot"),
    ("census data.csv", "required: --rows", "census --help"),
    ("census data.csv --rows 0", "argument --rows", "at least 1"),
    ("census data.csv --rows 99999", "beyond the budget", "the largest that"),
    ("census data.csv --rows 3 --plot law.png", "a picture", "needs --epsilon"),
    ("census data.csv --rows 3 --epsilon 1 --plot law.gif", "must be named", ".png, .svg, .pdf"),
    ("census data.csv --rows 3 --epsilon 1 --plot no/law.png", "no/law.png", "no such folder: no"),
    ("evaluate data.csv people.csv", "people.csv has no column 'a'", "'a'"),
    ("evaluate data.csv data.csv --columns a,d", "no column 'd'", "'d'"),
    ("evaluate data.csv data.csv --columns a --schema good.toml", "--schema: not allowed", "--columns"),
    ("evaluate data.csv data.csv --counts a", "--counts", "needs --schema"),
    ("evaluate data.csv data.csv --plot x.gif", "must be named", ".png"),
    ("schema", "required: ACTION", "schema --help"),
    ("schema init empty.csv", "empty.csv is empty", "a first line with column names"),
    ("schema init data.csv --query t", "a query is of a database, and this is none", "leave out --query"),
    ("schema init data.csv --table t", "a query is of a database, and this is none", "leave out --query"),
    ("schema init people.csv -o good.toml", "good.toml exists already", "name another file"),
    ("schema init people.csv --codebook good.toml --interactive", "--interactive asks", "leave one out"),
    ("schema check people.csv", "required: --schema", "schema check --help"),
    ("schema check data.csv --schema good.toml", "data.csv: the table has no column", "'age'"),
    ("account --epsilon 1 2 --releases 3", "releases must be the number of epsilons", "or left out"),
]

SCHEMA = parse_schema(SCHEMAS["good.toml"])
FLAGS = pd.DataFrame({"a": [0, 1], "b": [1, 1]})
PEOPLE = pd.DataFrame({"id": [1, 2], "age": [17, 31337], "job": ["none", "secret"]})
STRICT = parse_schema(SCHEMAS["strict.toml"])
LEARNING = AGE.replace("[18]", '"learn", bins = 3, share = "1/20"') + 'ignore = "*"'
CALLS = [
    (lambda: smalldb.generate(FLAGS), "epsilon is missing", "such as epsilon=1"),
    (lambda: smalldb.release(PEOPLE, schema=LEARNING), "epsilon is missing", "such as epsilon=1"),
    (lambda: smalldb.generate(FLAGS, epsilom=1), "unknown argument 'epsilom'", "did you mean 'epsilon'?"),
    (
        lambda: smalldb.generate(FLAGS, epsilon=1, rng=__import__("random")),
        "rng must be None",
        "or a BitSource",
    ),
    (lambda: smalldb.generate([[0, 1]], epsilon=1), "not list", "expected a pandas DataFrame"),
    (lambda: smalldb.generate("data.csv", epsilon=1), "not str", "read the file first"),
    (lambda: smalldb.generate(PEOPLE, epsilon=1), "column 'id' has values that are none", "domain=Domain"),
    (
        lambda: smalldb.generate(PEOPLE, epsilon=1, domain=SCHEMA),
        "domain is a queries.Domain",
        "as schema=...",
    ),
    (lambda: smalldb.generate(PEOPLE, epsilon=1, schema=STRICT), "column 'job' has values", "unknown ="),
    (lambda: smalldb.generate(PEOPLE[["age"]], epsilon=1, schema=SCHEMA), "no column 'job'", "the table has"),
    (
        lambda: smalldb.generate(PEOPLE, epsilon=1, schema={"age": [18]}),
        "unknown key 'age'",
        "for example, [columns.age]",
    ),
    (lambda: smalldb.generate(FLAGS, epsilon=1, middle=True), "middle is for tables", "with a schema"),
    (lambda: smalldb.generate(FLAGS, schema={}, epsilon=1), "columns is missing", ""),
    (lambda: smalldb.generate(FLAGS, schema=7, epsilon=1), "schema must be a Schema", "the path"),
    (lambda: smalldb.generate(FLAGS, domain=Domain(2), schema=SCHEMA, epsilon=1), "schema", "not both"),
    (lambda: smalldb.plan(SCHEMA, n=5, epsilon=1), "domain is a queries.Domain", "as schema=..."),
    (lambda: smalldb.plan(n=5, epsilon=1), "domain must be a queries.Domain", "Domain(frame.columns)"),
    (lambda: smalldb.plan(6.5, n=10, epsilon=1), "not float", "such as Domain(frame.columns)"),
    (lambda: smalldb.plan(Domain(["a"]), "marginals:1", epsilon=1), "n must be a whole", "number of people"),
    (lambda: smalldb.census(FLAGS, "margins:1", rows=2), "unknown query class", "did you mean 'marginals'?"),
    (lambda: evaluate(PEOPLE, PEOPLE, schema=STRICT), "column 'job' has values", "unknown ="),
    (lambda: Domain({"a": 2}), "takes a list", "Domain([Column(name, categories), ...])"),
    (lambda: Column("age", cuts=[40, 18]), "cuts must ascend", "each above the one before"),
    (lambda: Domain([Column("job", ["none"])]), "'job'", "at least two categories"),
]


def test_there_are_many():
    assert len({command for command, _, _ in COMMANDS}) == len(COMMANDS) >= 80


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    for name, text in (TABLES | SCHEMAS).items():
        (folder / name).write_text(text, encoding="latin-1")
    return folder


@pytest.mark.parametrize(("command", "cause", "step"), COMMANDS, ids=[command for command, _, _ in COMMANDS])
def test_a_wrong_command_is_told_in_one_line(tables, monkeypatch, capfd, command, cause, step):
    monkeypatch.chdir(tables)
    before = sorted(path.name for path in tables.iterdir())
    code, out, err = called(capfd, *shlex.split(command))
    (tables / "l").unlink(missing_ok=True)
    assert (code, out) == (5 if "of the budget" in cause else 2, "")
    assert err.count("\n") == 1 and err.startswith("smalldb")
    assert cause in err and (step or len(err) < 250)
    assert step in err
    assert not any(secret in err for secret in SECRETS)
    assert sorted(path.name for path in tables.iterdir()) == before


@pytest.mark.parametrize(("call", "cause", "step"), CALLS, ids=range(len(CALLS)))
def test_a_wrong_call_is_told_in_one_line(call, cause, step):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    said = str(caught.value)
    assert cause in said
    assert step in said
    assert "\n" not in said
    assert not any(secret in said for secret in SECRETS)
