"""CSV files: separators are read as stated, or refused with a way on; both engines read the same."""

import csv
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queries import DataError, Domain
from smalldb.cli import main
from smalldb.schema import parse_schema
from smalldb.schema.file_format import SEPARATORS, USUAL, FileFormat
from smalldb.schema.readers import Wanted, csv_files
from smalldb.schema.table_readers import read_columns, read_csv, read_domain, read_form, read_table

CSV = csv_files.CsvFiles()
WORDS = [",", "\n", "\r\n", "\r", '"', "\x00", " ", "\ufeff", "\udcff", "17", "NA", "none", "é", "x" * 40]
RECORDS = ["17,none", "NA,é", " 70 ,", ",part", "8e0,x", "", "1,2,3", "5"]
QUOTED = ['"17","a\nb"', '"NA","""x"', '"a"b,1', 'a"b,1', '"","a,\r"', '"a"', '"",""""', '"\n","']
RECORD = st.sampled_from([*RECORDS, *QUOTED])
HEADERS = ["age,job\n", "job,id,age\r\n", "\n\ufeffage,job\n", '"age",job\n', "\ufeffage,job\n"]
END = st.sampled_from(["\n", "\n", "\r\n"])
LINES = st.lists(st.builds(str.__add__, RECORD, END), max_size=12).map("".join)


def texts(path, file=USUAL):
    """The fields of the columns job and age, or how the file is refused."""
    wanted = Wanted(
        ("job", "age"), lambda names: [[n.strip() for n in names].index(n) for n in ("job", "age")]
    )
    try:
        pieces = [columns for columns, _ in CSV.pieces(str(path), wanted, file, False)]
    except (DataError, ValueError) as error:
        assert error.__context__ is None or not isinstance(error, DataError)
        return type(error), str(error)
    return [[text for piece in pieces for text in piece[c]] for c in (0, 1)]


@contextmanager
def by_pyarrow(block=csv_files.BLOCK, least=0):
    """Large files are read in blocks by pyarrow: so is any, here."""
    pytest.importorskip("pyarrow")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_files, "LEAST", least)
        patch.setattr(csv_files, "BLOCK", block)
        yield patch


def test_engines_agree(tmp_path):
    @settings(max_examples=300)
    @given(
        header=st.sampled_from(
            [*HEADERS, '"age","jo""b"\n', '"x\ny","age",job\n', "age,job\r", '\ufeff"age","job"\n', "age,job"]
        ),
        body=LINES | st.lists(st.sampled_from(WORDS), max_size=12).map("".join),
        block=st.integers(1, 60),
        end=st.booleans(),
        sign=st.sampled_from([",", *SEPARATORS]),
        stated=st.booleans(),
        quote=st.sampled_from(['"', '"', "'", ""]),
        encoding=st.sampled_from([None, None, "cp1252", "cp437"]),
    )
    def agree(header, body, block, end, sign, stated, quote, encoding):
        whole = (header + body if end else (header + body).rstrip("\n")).replace(",", sign)
        whole = (f"sep={sign}\n" * stated + whole).replace('"', quote or '"')
        path, file = tmp_path / "data.csv", FileFormat(None if stated else sign, quote, encoding=encoding)
        path.write_bytes(whole.encode(errors="surrogateescape"))
        expected = texts(path, file)
        with by_pyarrow(block):
            assert texts(path, file) == expected

    agree()


def test_pyarrow_reads_all_that_is_quoted_as_it_should_be(tmp_path):
    """Also where the header alone is quoted, and across the ends of blocks."""
    path = tmp_path / "data.csv"
    for name in ("age,job", '"age","job"'):
        for row in ("17,none", '"17","none"', '17,"a ""b"",\n\r\nc"', '"","x"'):
            for end in ("\n", "\r\n"):
                path.write_text(end.join([name, *[row] * 50, ""]), newline="")
                expected = texts(path)
                with by_pyarrow(200) as patch:
                    patch.setattr(
                        csv_files, "_by_csv", lambda text, *_: iter([] if not text.read() else [None])
                    )
                    assert texts(path) == expected and len(expected[0]) == 50


def test_a_bar_says_that_pyarrow_would_be_faster(tmp_path, capsys, monkeypatch):
    path = tmp_path / "data.csv"
    path.write_text("a,b\n0,1\n1,1\n")
    schema = parse_schema("columns.a = { kind = 'bool' }\ncolumns.b = { kind = 'bool' }")
    for found, least, told in ((None, 0, True), (None, 1000, False), (object(), 0, False)):
        monkeypatch.setattr(csv_files, "find_spec", lambda _, found=found: found)
        monkeypatch.setattr(csv_files, "LEAST", least)
        assert read_table(str(path), schema, progress=True).n == 2
        assert (csv_files.SLOW in capsys.readouterr().err) is told


def test_a_quote_that_csv_refuses_is_refused_by_both(tmp_path):
    path = tmp_path / "data.csv"
    for row in ('"a"b,1', '"a" ,1', '"a,1', '"a""b,1', '1,"', '""a,"1"'):
        path.write_text(f"age,job\n1,none\n{row}\n2,part\n")
        for block in (10, 1 << 20):
            with by_pyarrow(block):
                kind, said = texts(path)
                assert kind is DataError and said.startswith(f"{path} {csv_files.NO_CSV}")


def test_a_field_longer_than_csv_allows_is_read_by_both(tmp_path):
    path, limit = tmp_path / "data.csv", csv.field_size_limit()
    long = "x" * (limit + 1)
    schema = parse_schema("ignore = '*'\n[columns.job]\nkind = 'categories'\nvalues = ['none', 'part']")
    for line in (f"{long},none", f'"{long}","none"', f'"{long}\n""\n{long}",part'):
        path.write_text(f"age,job\n1,none\n{line}\n2,part\n")
        slow = texts(path)
        assert len(slow[0]) == 3 and len(slow[1][1]) > limit
        for block in (1 << 22, 1 << 10, 1):
            with by_pyarrow(block):
                assert texts(path) == slow
    assert csv.field_size_limit() == limit
    for line in (f"1,{long}", f'1,"{long}"'):  # of a column that is described: no category, as other texts
        path.write_text(f"age,job\n{line}\n")
        with pytest.raises(DataError, match="column 'job' has values that its schema does not cover"):
            read_table(str(path), schema)
        with pytest.raises(DataError, match="'job' is not spelled 0/1"):
            read_csv(str(path), Domain(["job"]))


COLUMNS = "[columns.age]\nkind = 'cuts'\ncuts = [2]\nrange = [0, 9]\n[columns.b]\nkind = 'bool'\n"
SIGNS = {";": ";", "|": "|", "\t": "tab", " ": "space", ",": ","}


def put(tmp_path, text):
    path = tmp_path / "data.csv"
    path.write_text(text, newline="")
    return str(path)


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("head", ["", "sep={sign}\n", '\ufeff"sep={sign}"\r\n', "\nSEP={sign}\n"])
def test_tables_of_every_separator_are_read(tmp_path, sign, head):
    rows = "age,b\n0,0\n1,1\n3,1\n".replace(",", sign)
    path = put(tmp_path, head.format(sign=sign) + rows)
    option = None if head else SIGNS[sign]
    schema, stating = parse_schema(COLUMNS), parse_schema(f'file.separator = "{SIGNS[sign]}"\n{COLUMNS}')
    expected = [1, 1, 0, 1]
    assert read_table(path, schema, file=FileFormat(option)).histogram().tolist() == expected
    for stated in (None, sign, SIGNS[sign]):
        assert read_table(path, stating, file=FileFormat(stated)).histogram().tolist() == expected
    assert read_columns(path, file=FileFormat(option)) == {"age": None, "b": None}
    assert read_domain(path, ["b"], file=FileFormat(option)) == Domain(["b"])
    assert read_csv(path, Domain(["b"]), FileFormat(option)).histogram().tolist() == [1, 2]
    assert read_form(path, file=FileFormat(option)).separator == (None if sign == "," else sign)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("age|b\n0|1\n", r"1 field separated .* 2 by bars: take separator '\|' \(--separator, or file"),
        ("age\tb\n0\t1\n", "and 2 by tabs: take separator tab"),
        ("age;income, gross;b\n0;1;0\n", "2 fields separated .* and 3 by semicolons: take separator ';'"),
        ("age b c\n0 0 1\n", "3 by spaces: take separator space .*, or ',' if .*; delete a title above"),
        ("Export of 2024\nage,b\n1,0\n", "delete a title above the names"),
        ("# export of 2024\nage,b\n1,0\n", "its first line is a comment .*: delete the lines above"),
        ('"a;b";c\n0;1\n', "no fields separated by commas, and 2 by semicolons"),
        ("sep=x\nagexb\n", "states a separator that is a letter"),
    ],
)
def test_names_that_another_separator_takes_apart_are_refused_with_a_way_on(tmp_path, text, message):
    path = put(tmp_path, text)
    for read in (read_columns, read_domain, lambda path: read_table(path, parse_schema(COLUMNS))):
        with pytest.raises(ValueError, match=message) as caught:
            read(path)
        assert "\n" not in str(caught.value)


def test_one_column_is_said_by_a_comma_or_by_a_schema(tmp_path):
    path = put(tmp_path, "over 40;or so\n1\n0\n")
    with pytest.raises(ValueError, match="take separator ';'"):
        read_columns(path)
    assert read_columns(path, file=FileFormat(",")) == {"over 40;or so": None}
    with pytest.raises(ValueError, match="1 field separated by tabs, and 2 by semicolons"):
        read_columns(path, file=FileFormat("tab"))
    schema = parse_schema('[columns."over 40;or so"]\nkind = "bool"')
    assert read_table(path, schema).histogram().tolist() == [1, 1]
    assert read_domain(path, ["over 40;or so"]).names == ("over 40;or so",)
    for usual in ("date of birth,sex\n0,1\n", '"a;b","c|d"\n0,1\n', "age\n0\n", "a b,c\n0,1\n", "#,b\n0,1\n"):
        put(tmp_path, usual)
        assert read_columns(path)


def test_separators_that_disagree_are_refused(tmp_path):
    path, stating = put(tmp_path, "sep=;\nage;b\n1;0\n"), parse_schema(f"file.separator = '|'\n{COLUMNS}")
    with pytest.raises(ValueError, match=r"separator: the schema says '\|', not tab"):
        read_table(path, stating, file=FileFormat("tab"))
    with pytest.raises(ValueError, match=r"its first line says sep=;, not '\|'"):
        read_table(path, stating)
    with pytest.raises(ValueError, match="separator must be a text"):
        parse_schema(f"file.separator = 1\n{COLUMNS}")


def test_commands_take_a_separator(workdir, capsys):
    put(workdir, "a;b\n" + "0;1\n1;1\n" * 20)
    assert main(["generate", "data.csv", "--epsilon", "1", "--quiet"]) == 2
    assert "take separator ';' (--separator" in capsys.readouterr().err
    choices = ["--separator", ";", "--epsilon", "1", "--quiet", "--rows", "2", "-o", "out.jsonl"]
    assert main(["generate", "data.csv", *choices]) == 0
    assert main(["census", "data.csv", "--separator", ";", "--rows", "2"]) == 0
    assert main(["evaluate", "data.csv", "data.csv", "--separator", ";"]) == 0
    assert main(["schema", "init", "data.csv", "--separator", ";", "-o", "draft.toml"]) == 0
    draft = (workdir / "draft.toml").read_text()
    assert '\nfile = { separator = ";" }\n' in draft and "[columns.b]" in draft
    (workdir / "schema.toml").write_text(draft.replace('kind = ""', 'kind = "bool"'))
    capsys.readouterr()
    assert main(["schema", "check", "data.csv", "--schema", "schema.toml"]) == 0
    assert "the table fits" in capsys.readouterr().out
    assert main(["schema", "check", "data.csv", "--schema", "schema.toml", "--separator", "tab"]) == 2
    assert "the schema says ';', not tab" in capsys.readouterr().err
    assert main(["evaluate", "data.csv", "data.csv", "--schema", "schema.toml"]) == 0
