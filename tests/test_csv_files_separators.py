"""CSV files whose fields other signs than a comma separate: read as stated, or refused with a way on."""

import pytest

from queries import Domain
from smalldb.cli import main
from smalldb.schema import parse_schema
from smalldb.schema.file_format import FileFormat
from smalldb.schema.table_readers import (
    read_columns,
    read_csv,
    read_domain,
    read_form,
    read_table,
)

COLUMNS = "[columns.age]\nkind = 'cuts'\ncuts = [2]\nrange = [0, 9]\n[columns.b]\nkind = 'bool'\n"
SIGNS = {";": ";", "|": "|", "\t": "tab", " ": "space", ",": ","}


def put(tmp_path, text, name="data.csv"):
    path = tmp_path / name
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
    for given in (None, sign, SIGNS[sign]):
        assert read_table(path, stating, file=FileFormat(given)).histogram().tolist() == expected
    assert read_columns(path, file=FileFormat(option)) == {"age": None, "b": None}
    assert read_domain(path, ["b"], file=FileFormat(option)) == Domain(["b"])
    assert read_csv(path, Domain(["b"]), FileFormat(option)).histogram().tolist() == [1, 2]
    assert read_form(path, file=FileFormat(option)).separator == (None if sign == "," else sign)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "age|b\n0|1\n",
            r"1 field separated by commas, and 2 by bars: take separator '\|' \(--separator, or file",
        ),
        ("age\tb\n0\t1\n", "and 2 by tabs: take separator tab"),
        (
            "age;income, gross;b\n0;1;0\n",
            "2 fields separated by commas, and 3 by semicolons: take separator ';'",
        ),
        (
            "age b c\n0 0 1\n",
            "and 3 by spaces: take separator space .*, or ',' if it is right; delete a title above",
        ),
        ("Export of 2024\nage,b\n1,0\n", "delete a title above the names"),
        (
            "# export of 2024\nage,b\n1,0\n",
            "its first line is a comment .*: delete the lines above the column names",
        ),
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


@pytest.mark.parametrize(
    "text", ["date of birth,sex\n0,1\n", '"a;b","c|d"\n0,1\n', "age\n0\n", "a b,c\n0,1\n", "#,b\n0,1\n"]
)
def test_usual_names_are_names(tmp_path, text):
    assert read_columns(put(tmp_path, text))


def test_one_column_is_said_by_a_comma_or_by_a_schema(tmp_path):
    path = put(tmp_path, "over 40;or so\n1\n0\n")
    with pytest.raises(ValueError, match="take separator ';'"):
        read_columns(path)
    assert read_columns(path, file=FileFormat(",")) == {"over 40;or so": None}
    schema = parse_schema('[columns."over 40;or so"]\nkind = "bool"')
    assert read_table(path, schema).histogram().tolist() == [1, 1]
    assert read_domain(path, ["over 40;or so"]).names == ("over 40;or so",)
    with pytest.raises(ValueError, match="1 field separated by tabs, and 2 by semicolons"):
        read_columns(path, file=FileFormat("tab"))


def test_separators_that_disagree_are_refused(tmp_path):
    path, stating = put(tmp_path, "sep=;\nage;b\n1;0\n"), parse_schema(f"file.separator = '|'\n{COLUMNS}")
    with pytest.raises(ValueError, match=r"separator: the schema says '\|', not tab"):
        read_table(path, stating, file=FileFormat("tab"))
    with pytest.raises(ValueError, match=r"its first line says sep=;, not '\|'"):
        read_table(path, stating)
    with pytest.raises(ValueError, match=r"file: separator must be one sign .* \(line 1\)"):
        parse_schema(f"file.separator = 'x'\n{COLUMNS}")
    with pytest.raises(ValueError, match="separator must be a text"):
        parse_schema(f"file.separator = 1\n{COLUMNS}")
    with pytest.raises(ValueError, match="separator must be one sign"):
        read_domain(path, file=FileFormat("::"))


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
    put(workdir, "sep=\t\na\tb\n0\t1\n", "excel.csv")
    assert main(["schema", "init", "excel.csv"]) == 0
    assert '\nfile = { separator = "\\t" }\n' in capsys.readouterr().out
