"""A first draft of a schema, from names, declared types and code books; never from a value of the data."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any

from queries.arrays import pd
from queries.frames import as_frame, without_index
from smalldb.schema.codebook import Described, declared_fields, read_table_schema
from smalldb.schema.file_format import USUAL, FileFormat
from smalldb.schema.kinds import SPECS, Spec
from smalldb.schema.kinds.bins import DIGITS, WHOLE

_HEAD = """\
# A draft: each column still needs what it can hold. Choose it from public knowledge (a code book, a form, the
# law), never from a look at the data: a category or a cut point that was read off the data gives it away.
KINDS
#   kind = "id"           fresh numbers: nothing of the data
# Each also takes missing = true (a category for gaps, or a list of texts that mean one), unknown = "missing"
# and dtype = "..."; numbers take decimal = "," and thousands = ".".
# A column that is not to be released: delete its table, and list it in ignore ("*" for all others).
ignore = []
"""


def _lines(spec: Spec) -> str:
    first = f"#   {f'kind = {toml(spec.name)}':22}{spec.line}"
    return f"{first}\n#{'':25}{spec.more}" if spec.more else first


_ID = re.compile(r"(?:.*[\W_])?(?:id|uuid|guid)|.*[a-z](?:Id|ID|UUID)|ID", re.DOTALL)
_ID_LABEL = re.compile(
    r"(?:.*\b)?(?:id|uuid|guid|identifier)(?: (?:number|code|no\.?))?"
    r"|.*\b(?:case|serial|record) (?:number|no\.?)",
    re.IGNORECASE | re.DOTALL,
)
_IDS_COMMENT = '# These are ids, by their names: they stay out. Or kind = "id", for fresh numbers.\n'
_SMALL = 40  # whole numbers of a range that are categories each


def draft_schema(
    columns: Iterable[str] | Mapping[str, object],
    codebook: Mapping[str, Described] | None = None,
    file: FileFormat = USUAL,
) -> str:
    """Draft a schema as TOML text.

    Parameters
    ----------
    columns
        Names; or names with the dtypes that pandas declares, of which only the kind is read: not the
        categories of a categorical column, for one, which hold the values that occur.
    codebook
        What a public file says of columns (`smalldb.schema.codebook.read_codebook`); it goes before dtypes.
    file
        How the table's file is written.

    Examples
    --------
    >>> print(draft_schema({"over 40": "bool"}).removeprefix(HEAD))
    <BLANKLINE>
    [columns."over 40"]
    kind = "bool"
    dtype = "bool"
    <BLANKLINE>
    """
    dtypes = columns if isinstance(columns, Mapping) else dict.fromkeys(columns)
    declared, described = {str(name).strip(): dtype for name, dtype in dtypes.items()}, codebook or {}
    listed = {name for name, each in described.items() if each.values or each.groups or each.low is not None}
    ids = [name for name in declared if _ID.fullmatch(name) and name not in listed]
    head = HEAD if not ids else HEAD.replace("ignore = []\n", f"{_IDS_COMMENT}ignore = {toml(ids)}\n")
    lines = {
        name: _described_lines(declared[name], described.get(name)) for name in declared if name not in ids
    }
    return head + file_line(file) + "".join(map(column_text, lines, lines.values()))


def draft(frame: object, codebook: Mapping[str, Described] | None = None) -> str:
    """Draft a schema as TOML text from a table in memory, a data class, or a file that describes a table.

    Of a table from its names, dtypes and declared categories.

    No value is read. The categories of a ``category`` column are public, like its dtype: they are taken, in
    their order. An index is ignored, and so is a first column that is one by its name.

    Parameters
    ----------
    frame
        Of pandas, or of a library whose tables have ``to_pandas()``; or a data class, whose fields are the
        columns; or the path of a Table Schema (``.json``), which `codebook.read_table_schema` reads.
    codebook
        As in `draft_schema`; it goes before the categories.

    Raises
    ------
    TypeError
        None of these.
    OSError, ValueError
        As `codebook.read_table_schema`.

    Examples
    --------
    >>> sizes = pd.Categorical(["S"], categories=["S", "M", "L"])
    >>> print(draft(pd.DataFrame({"size": sizes})).removeprefix(HEAD))
    <BLANKLINE>
    [columns.size]
    kind = "categories"
    values = ["S", "M", "L"]
    dtype = "category"
    missing = true  # delete this line if the column has no gaps
    <BLANKLINE>
    """
    if isinstance(frame, type) and is_dataclass(frame):
        described = declared_fields(frame)
    elif isinstance(frame, str | os.PathLike) and os.fspath(frame).lower().endswith(".json"):
        described = read_table_schema(os.fspath(frame))
    else:
        dtypes = without_index(as_frame(frame), None).dtypes
        columns = {str(name).strip(): dtype for name, dtype in dtypes.items()}
        listed = {name: _declared(dtype) for name, dtype in columns.items()}
        described = {name: Described(values=(*values,), gaps=()) for name, values in listed.items() if values}
        return draft_schema(columns, {**described, **(codebook or {})})
    return draft_schema([*described], {**described, **(codebook or {})})


def _declared(dtype: object) -> list[str | int]:
    """Return the categories of a dtype that a schema can list: texts or integers."""
    values = dtype.categories.tolist() if isinstance(dtype, pd.CategoricalDtype) else []
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return values
    texts = all(isinstance(value, str) and value and value == value.strip() for value in values)
    return values if texts else []


def file_line(file: FileFormat) -> str:
    """Write how the table's file is written, if that is not the usual way."""
    stated = file.stated()
    if not stated:
        return ""
    comment = "# How files are written: as stated, or as the first line says, which holds the names."
    return f"{comment}\nfile = {toml(stated)}\n"


def column_text(name: str, lines: str, table: str = "") -> str:
    """Write the table of a column; `table`: what stands before it, of related tables."""
    return f"\n[{table}columns.{_key(name)}]\n{lines}\n"


def schema_text(document: Mapping[str, Any]) -> str:
    """Write what the TOML text of a schema holds, as such a text.

    >>> print(schema_text({"columns": {"b": {"kind": "bool"}}, "ignore": ["a"]}), end="")
    ignore = ["a"]
    <BLANKLINE>
    [columns.b]
    kind = "bool"
    """
    return "".join(_tables_of(document, ""))


def _tables_of(table: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yield the lines of a table, and those of the tables of columns, and related ones, in it."""
    groups = [key for key in ("columns", "tables") if table.get(key) and isinstance(table[key], Mapping)]
    groups = [key for key in groups if all(isinstance(each, Mapping) for each in table[key].values())]
    lines = [f"{_key(key)} = {toml(value)}\n" for key, value in table.items() if key not in groups]
    yield "".join([f"\n[{path}]\n" if path else "", *lines])
    for group in groups:
        for name, inner in table[group].items():
            yield from _tables_of(inner, f"{path}{'.' * bool(path)}{group}.{_key(name)}")


def _described_lines(dtype: object, described: Described | None) -> str:
    if described is None:
        return _of_dtype(dtype)
    label = f"\ndescription = {toml(' '.join(described.label.split()))}" if described.label else ""
    if described.fault:
        label += f"\n# {described.fault}: mend the labels, or list what there can be"
    lines = _of_codebook(described)
    if not lines and _ID_LABEL.fullmatch(described.label.strip()):
        return 'kind = "id"  # an identifier, by its label: fresh numbers'
    if lines and isinstance(dtype, pd.CategoricalDtype):
        lines += '\ndtype = "category"'
    lines = lines or _of_dtype(dtype)
    if described.gaps is not None:
        gaps = toml([*described.gaps]) if described.gaps else "true"
        lines += f"\nmissing = {gaps}  # delete this line if the column has no gaps"
    return lines + label


def _of_codebook(described: Described) -> str:
    """Write what a code book says of a column; empty: it says nothing of use."""
    single = "  # one value: list the column in ignore"
    single *= len(described.groups or described.values) == 1
    if described.groups:
        groups = {name: [*codes] for name, codes in described.groups.items()}
        return f'kind = "categories"\ngroups = {toml(groups)}{single}'
    if described.values:
        return f'kind = "categories"\nvalues = {toml([*described.values])}{single}'
    if described.kind is None:
        return ""
    ends = [described.low, described.high]
    form = "" if described.form is None else f"\nformat = {toml(described.form)}"
    if None in ends or described.kind not in ("cuts", "dates", "times"):
        return f'kind = "{described.kind}"\n{SPECS[described.kind].draft}'.rstrip() + form
    span = f"range = [{', '.join(map(toml, ends))}]"
    whole = all(isinstance(end, int) for end in ends)
    if described.kind == "cuts" and whole and int(str(ends[1])) - int(str(ends[0])) < _SMALL:
        return f'kind = "integers"\n{span}'
    digits = f"\n{WHOLE}" if described.kind == "cuts" and whole else ""
    return f'kind = "{described.kind}"\n{span}\nbins = 10  # or cuts = [...], where bins begin{digits}{form}'


def _of_dtype(dtype: object) -> str:
    if dtype is None:
        return 'kind = ""'
    types = pd.api.types
    chosen = types.pandas_dtype(dtype)
    if types.is_bool_dtype(chosen):
        return f'kind = "bool"\ndtype = "{chosen}"'
    if types.is_integer_dtype(chosen):
        return f'kind = "cuts"\n{SPECS["cuts"].draft}\ndtype = "{chosen}"'
    if types.is_float_dtype(chosen):  # perhaps whole numbers: whoever knows has to say
        return f'kind = "cuts"\n{SPECS["cuts"].draft.replace(WHOLE, DIGITS)}\ndtype = "{chosen}"'
    if types.is_datetime64_any_dtype(chosen):
        return f'kind = "dates"\n{SPECS["dates"].draft}\ndtype = "{chosen}"'
    if isinstance(chosen, pd.CategoricalDtype):
        return f'kind = "categories"\n{SPECS["categories"].draft}\ndtype = "category"'
    if isinstance(chosen, pd.StringDtype):
        return f'kind = "categories"\n{SPECS["categories"].draft}'
    return 'kind = ""'


def toml(value: object) -> str:
    """Write a value of TOML: a text of JSON is one of TOML, but for DEL."""
    match value:
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case bool():
            return str(value).lower()
        case list():
            return f"[{', '.join(map(toml, value))}]"
        case dict():
            return f"{{ {', '.join(f'{_key(name)} = {toml(inner)}' for name, inner in value.items())} }}"
        case _:
            return str(value)


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else toml(name)


HEAD = _HEAD.replace("KINDS", "\n".join(map(_lines, SPECS.values())))


_COMMENT = """\
# Two related tables: a row of the unit is protected together with all its rows of the other table.
# key: the column that tells rows apart; it is written anew. parent: the table of the unit.
# link: the column that holds the parent's key, if it has another name there.
# most: numbers of children are told up to this one, which stands for more, too.
"""


def draft_related(tables: Mapping[str, Mapping[str, object]]) -> str:
    """Draft a schema of two related tables: the unit first, its key the first column of both."""
    (unit, parents), (child, children) = tables.items()
    shared = [name for name in parents if name in children]
    key = shared[0] if shared else ""
    child_keys = [name for name in children if name != key and name.strip().lower().endswith("id")]

    def drafted(table: str, keys: set[str]) -> str:
        """Draft the columns of a table, but for its keys: none is left out as an id."""
        named = [name for name in tables[table] if name not in keys]
        path = f"tables.{_key(table)}."
        return "".join(column_text(name, _described_lines(tables[table][name], None), path) for name in named)

    lines = [
        HEAD.replace("ignore = []\n", _COMMENT),
        f"\nunit = {toml(unit)}\n\n[tables.{_key(unit)}]\nkey = {toml(key)}\n",
        drafted(unit, {key}),
        f"\n[tables.{_key(child)}]\nparent = {toml(unit)}\n",
        "" if key else 'link = ""\n',
        f"key = {toml(child_keys[0])}\n" if child_keys else "",
        "most = 8\n",
        drafted(child, {key, *child_keys[:1]}),
    ]
    return "".join(lines)
