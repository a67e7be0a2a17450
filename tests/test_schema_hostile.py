"""Schemas of hostile size: each works or is refused in one line, with a number, and none takes long."""

import tomllib

import pytest
from yardstick import within

from queries import Column as PlainColumn
from queries import Domain, Marginals
from smalldb.exact.numbers import sized
from smalldb.schema import Column, Flag, Schema, parse_schema, read_schema
from smalldb.schema.kinds import Categories, Cuts
from smalldb.schema.parsing import key_lines
from smalldb.schema.reading import OpenSchema

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


def test_objects_have_the_same_caps():
    flags = tuple(Column(f"c{i}", Flag()) for i in range(4))
    with pytest.raises(ValueError, match="up to 4096 columns, not 4100"):
        Schema(flags * 1025)
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
    wide = Domain([PlainColumn(f"c{i}", 3) for i in range(9999)])
    with pytest.raises(ValueError, match=r"at most 2\^20 cells, not more than 10\^20"):
        wide.cells()


def test_counts_that_stopped_are_not_told():
    with pytest.raises(
        ValueError, match=r"^marginals:2 states more than 262144 tables over 1000 attributes: use"
    ):
        Marginals(2).workload(Domain(1000))
