"""Schemas as TOML files: what is none, or of hostile size, is refused in a line; drafts know names alone."""

import re
import tomllib

import pytest
from yardstick import within

from smalldb.exact.numbers import sized
from smalldb.schema import Column, Flag, Schema, parse_schema, read_schema
from smalldb.schema.kinds import Categories, Cuts
from smalldb.schema.parsing import key_lines
from smalldb.schema.reading import OpenSchema

COLUMN = "[columns.x]\n"
KEYS = [  # of column x, and what is wrong with it
    ("kind = 'cutz'", "kind must be one of .*; did you mean 'cuts'"),
    ("kind = 'bool'\ncuts = [1]", "unknown key 'cuts'"),
    ("kind = 'bool'\nmissing = 1", "missing must be true, false or a list of texts"),
    ("kind = 'bool'\nmissing = [1]", "missing must be a list of texts"),
    ("kind = 'bool'\nmissing = ['True']", "a text for gaps cannot be a value"),
    ("kind = 'bool'\nunknown = 'other'", "unknown must be 'missing', or left out"),
    ("kind = 'bool'\nunknown = 'missing'", "unknown = .* needs missing = true"),
    ("kind = 'categories'", "values is missing"),
    ("kind = 'categories'\nvalues = 'a'", "values must be a list"),
    ("kind = 'categories'\nvalues = ['a']", "values must be 2 to 4096"),
    ("kind = 'categories'\nvalues = ['a', 1]", "values must be all texts or all"),
    ("kind = 'categories'\nvalues = ['a', 1.5]", "values must be texts or whole"),
    ("kind = 'categories'\nvalues = ['a', true]", "values must be texts or whole"),
    ("kind = 'categories'\nvalues = ['a', 'a']", "values: 'a' occurs more than"),
    ("kind = 'categories'\nvalues = ['a', ' b']", "values: ' b' is empty, or has"),
    ("kind = 'categories'\nvalues = ['a', '`']", "label '`' is empty or has backticks"),
    ("kind = 'categories'\nvalues = ['a', 'b']\ncoding = 'bins'", "coding must be"),
    (
        "kind = 'categories'\nvalues = ['a', 'b']\ncoding = 'onehot'",
        "coding must be .*; did you mean 'one-hot'",
    ),
    ("kind = 'categories'\nvalues = ['missing', 'b']\nmissing = true", "category 'missing' stands 2 times"),
    ("kind = 'cuts'\ncuts = [1]", "range is missing"),
    ("kind = 'cuts'\ncuts = []\nrange = [0, 9]", "fill in the draft: cuts is empty"),
    ("kind = 'categories'\nvalues = []", "fill in the draft: values is empty"),
    ("kind = ''", "fill in the draft: kind must be one of bool"),
    ("knd = 'bool'", "unknown key 'knd'; did you mean 'kind'"),
    ("kind = 'cuts'\ncuts = [2, 1]\nrange = [0, 9]", "cuts must ascend"),
    ("kind = 'cuts'\ncuts = [1, 1.0]\nrange = [0, 9]", "cuts must ascend"),
    ("kind = 'cuts'\ncuts = [nan]\nrange = [0, 9]", "cuts must be a finite number"),
    ("kind = 'cuts'\ncuts = ['1/3']\nrange = [0, 9]", "cuts must be decimal"),
    ("kind = 'cuts'\ncuts = [true]\nrange = [0, 9]", "cuts must be a finite number"),
    ("kind = 'cuts'\ncuts = [1]\nrange = [1, 9]", "range must begin below the first"),
    ("kind = 'cuts'\ncuts = [1, 9]\nrange = [0, 8]", "range must begin below"),
    ("kind = 'cuts'\ncuts = [1]\nrange = [1]", "range must be a list of two"),
    ("kind = 'dates'\ncuts = [1990.5]\nrange = [1, 3000]", "a year of cuts must be a whole"),
    ("kind = 'dates'\ncuts = [1990]\nrange = [1, 10000]", "range must end by the"),
]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a =", "not TOML"),
        ("", "columns is missing"),
        ("columns = 1", "columns must be a table"),
        ("[columns]", "at least one column"),
        ("colums = 1", "unknown key 'colums'; did you mean 'columns'"),
        ("columns.x = 1", "column 'x': expected a table"),
        (COLUMN, "column 'x': kind must be one of bool, categories, cuts, integers, dates, times"),
        ("ignore = [1]\n" + COLUMN + "kind = 'bool'", "ignore must be a list of texts"),
        ("ignore = ['x']\n" + COLUMN + "kind = 'bool'", "column 'x' is described and ignored"),
        ("valid = 'y'\n" + COLUMN + "kind = 'bool'", "valid names an unknown attribute 'y'"),
        ("valid = 'x) | (x'\n" + COLUMN + "kind = 'bool'", r"expected no \) without its \("),
        ("valid = [1]\n" + COLUMN + "kind = 'bool'", "valid must be a list of texts"),
        ("valid = 1\n" + COLUMN + "kind = 'bool'", "valid must be a text or a list of texts"),
        ("queries = 'margins:2'\n" + COLUMN + "kind = 'bool'", "unknown query class 'margins'"),
        ("[columns.' x']\nkind = 'bool'", "column ' x': expected a name without backticks"),
        *((COLUMN + keys, f"column 'x': {message}") for keys, message in KEYS),
    ],
)
def test_what_is_no_schema_is_refused_in_one_line(tmp_path, text, message):
    path = tmp_path / "schema.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        read_schema(str(path))
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
    if text not in ("a =", "", "[columns]"):  # as a dict, too
        with pytest.raises(ValueError, match=message):
            read_schema(tomllib.loads(text))


def test_all_errors_of_a_schema_are_told_at_once():
    text = """
valid = ["a &", "b"]
queries = "margins:2"
ignore = [1]
colums = 2
[columns.x]
kind = "cuts"
cuts = []
coding = 1
[columns.y]
kind = "cutz"
[columns.z]
kind = "bool"
cuts = [1]
unknown = "other"
[columns.w]
kind = "categories"
values = ["a", "a"]
"""
    with pytest.raises(ValueError) as caught:
        parse_schema(text)
    told = str(caught.value).split("; ")
    starts = [
        *("unknown key 'colums'", "did you mean 'columns'?: expected"),
        *("column 'x': coding must be a text", "column 'x': fill in the draft: cuts is empty"),
        *("column 'x': range is missing", "column 'y': kind must be one of", "did you mean 'cuts'?"),
        *("column 'z': unknown key 'cuts'", "column 'z': unknown must be 'missing'"),
        *("column 'w': values: 'a' occurs more than once", "ignore must be a list of texts"),
        *("unknown query class 'margins'", "did you mean 'marginals'?"),
    ]
    lines = [5, 9, 8, 6, 11, 14, 15, 18, 4, 3, 2]
    assert re.findall(r"\(line (\d+)\)", str(caught.value)) == [str(line) for line in lines]
    assert [part.startswith(start) for part, start in zip(told, starts, strict=False)] == [True] * len(starts)
    assert "predicate" in told[-1] or "expected" in told[-1]
    with pytest.raises(ValueError) as caught:
        parse_schema('columns.x = { kind = "bool", mising = true }')
    assert str(caught.value).count("unknown key") == 1
    plain = 'columns.x.kind = "bool"\ncolumns.y.kind = "bool"\n'
    with pytest.raises(ValueError, match=r"unknown attribute 'z'.*; valid names an unknown attribute 'v'"):
        parse_schema('valid = ["x | z", "v"]\n' + plain)
    with pytest.raises(ValueError, match="valid leaves no cell"):
        parse_schema('valid = ["x", "~x"]\n' + plain)
    told = r"'marginals:3': width 3 is more than the 2 columns \(line 2\); valid .* 'v' \(line 1\)$"
    with pytest.raises(ValueError, match=told):
        parse_schema('valid = ["v"]\nqueries = "parities:1 + marginals:3"\n' + plain)


def test_many_faults_are_told_in_part_and_counted():
    faulty = "".join(f'[columns.c{i}]\nkind = "bool"\nnonsense{i} = 1\n' for i in range(40))
    with pytest.raises(ValueError, match=r"^column 'c0': .*; and [0-9]+ more$") as caught:
        parse_schema(faulty)
    told = str(caught.value).split("; ")
    assert len(told) - 1 + int(re.findall(r"[0-9]+", told[-1])[0]) == 40
    assert 1000 < len(str(caught.value)) < 2000
    flag = 'columns.x.kind = "bool"\n'
    alike = "".join(f'[columns.c{i}]\nkind = "bool"\nnonsense = 1\n' for i in range(1000))
    unknown = "valid = [" + ", ".join(f'"a{i} | x"' for i in range(1000)) + "]\n" + flag
    unreadable = "valid = [" + ", ".join(f'"x | {i} )"' for i in range(1000)) + "]\n" + flag
    for text in (alike, unknown, unreadable, f'columns.{"x" * 5000}.kind = "none"'):
        with pytest.raises(ValueError) as caught:
            parse_schema(text)
        assert 100 < len(str(caught.value)) < 2000


def test_other_files_are_no_schemas(tmp_path):
    (tmp_path / "latin").write_bytes(b"\xff")
    with pytest.raises(ValueError, match="latin is not a text in UTF-8"):
        read_schema(str(tmp_path / "latin"))
    with pytest.raises(FileNotFoundError):
        read_schema(str(tmp_path / "none"))


FAULT = '[columns.x]\nkind = "cutz"\n'
MANY = 1 << 17
ABOVE = (1 << 16) + 1  # items that a list may have


def columns(count, text='kind = "bool"'):
    return "".join(f"[columns.c{i}]\n{text}\n" for i in range(count))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('valid = """\n' + "a |\n" * 4000 + 'b"""\n' + FAULT, r"kind must be one of .* \(line 4004\)"),
        ("ignore = [\n" + '"a"\n,' * 20_000 + "]\n" + FAULT, r"kind must be one of .* \(line 20004\)"),
        (columns(5000), "a schema may have up to 4096 columns, not 5000: list others under ignore"),
        (columns(15_000), "up to 4096 columns, not 15000"),
        (columns(3000, 'kind = "cutz"'), "columns from 'c201' on were not read$"),
        pytest.param(
            columns(17, 'kind = "integers"\nrange = [0, 4095]'),
            r'more than 2\^28 categories by attributes .*coding = "bits"',
            marks=pytest.mark.slow,
        ),
        ("x" * (1 << 21) + " = 1", r"more than 2\^21 characters: is this a schema"),
        (
            f"[columns.x]\nkind = 'cuts'\ncuts = [1]\nrange = [0, {'9' * 5000}]",
            "a number has more digits than are read",
        ),
        ("ignore = " + "[" * MANY + "]" * MANY, "nested too deeply"),
        ("[columns" + ".a" * MANY + "]\nkind = 'bool'", "nested too deeply"),
        ("columns.x = {a" + " . a" * MANY + " = 1}", "nested too deeply"),
        ('x = "' + 'a\\"' * 600_000, "Unterminated string|Illegal"),
        (FAULT + "".join(f"k{i} = 1\n" for i in range(5000)), "unknown key 'k0'.*; and [0-9]+ more$"),
        pytest.param(
            f"[columns.x]\nkind = 'categories'\nvalues = {[*map(str, range(ABOVE))]}",
            r"values must be a list of up to 2\^16",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            f"[columns.x]\nkind = 'cuts'\nrange = [0, {MANY}]\ncuts = {[*range(1, ABOVE + 1)]}",
            r"cuts must be a list of up to",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_hostile_schemas_are_refused_at_once(tmp_path, text, message):
    path = tmp_path / "s.toml"
    path.write_text(text)
    for read in (lambda: parse_schema(text), lambda: read_schema(str(path)), lambda: OpenSchema(text)):
        # some tenths of a second; quadratic work takes minutes
        with within(20), pytest.raises(ValueError, match=message) as caught:
            read()
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 2000


def test_objects_have_the_same_caps_and_a_column_stands_once():
    flags = tuple(Column(f"c{i}", Flag()) for i in range(4))
    with pytest.raises(ValueError, match="up to 4096 columns, not 4100"):
        Schema(flags * 1025)
    with pytest.raises(ValueError, match="column 'c0' occurs more than once"):
        Schema(flags * 2)
    with pytest.raises(ValueError, match=r"more than 2\^28 categories by attributes"):
        Schema((Column("x", Categories(range(4096))),) * 17)
    assert Schema((Column("x", Categories(range(4096)), coding="bits"), flags[0])).domain.sizes == (4096, 2)
    with pytest.raises(ValueError, match=r"values must be a list of up to 2\^16"):
        Categories(map(str, range(1 << 40)))
    with pytest.raises(ValueError, match=r"cuts must be a list of up to 2\^16"):
        Cuts(range(1, 1 << 40), 0, 1 << 41)


def test_a_column_and_points_in_texts_are_not_deep():
    schema = parse_schema(
        f"[columns.'{'a.' * 40}']\nkind = 'categories'\n"
        f"values = ['{'1.' * 40}', \"b{'.c' * 40}\"]  # {'.' * 40}\n"
        f"[columns.x]\nkind = 'cuts'\nrange = [0, 1]\ncuts = [{', '.join(f'0.{i}' for i in range(10, 99))}]"
    )
    assert schema.domain.sizes == (2, 90)


def test_lines_of_every_form_of_toml():
    text = (
        'a = 1  # ] [ "\n\'b c\' = [ # [\n 1,\n [2], # """\n]\r\nd = """\\"\n[x]\n"""""\n'
        "e = '''\n'[y]''\n'''\n[[f]]\ng = {h = [\"]\"], i = '}'}\n\n[\"j.[\".k]\nl = \"\\\"[\"\n"
    )
    assert tomllib.loads(text)["d"] == '"\n[x]\n""'
    assert key_lines(text) == {
        **{("a",): 1, ("b c",): 2, ("d",): 6, ("e",): 9, ("f",): 12, ("f", "g"): 13},
        **{("f", "g", "h"): 13, ("f", "g", "i"): 13, ("j.[", "k"): 15, ("j.[", "k", "l"): 16},
    }


def test_universes_of_any_size_are_told():
    assert [sized(10**k) for k in (15, 400, 5000)] == ["about 10^15", "about 10^400", "about 10^5000"]
    assert (sized(31 * 10**14), sized(32 * 10**14), sized(2**100_000)) == (
        *("about 10^15", "about 10^16", "about 10^30103"),
    )
