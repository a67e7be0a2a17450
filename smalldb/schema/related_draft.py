"""A first draft of a schema of two related tables, from names and declared types; never from a value."""

from collections.abc import Mapping

from smalldb.schema.drafting import HEAD, draft_schema, toml

COMMENT = """\
# Two related tables: a row of the unit is protected together with all its rows of the other table.
# key: the column that tells rows apart; it is written anew. parent: the table of the unit.
# link: the column that holds the parent's key, if it has another name there.
# most: numbers of children are told up to this one, which stands for more, too.
"""


def draft_related(tables: Mapping[str, Mapping[str, object]]) -> str:
    """
    Draft a schema of two related tables: the first is the unit, its key the first column that both have.

    Parameters
    ----------
    tables
        By name, the names of their columns with the dtypes that are declared, or None.

    Examples
    --------
    >>> text = draft_related({"homes": {"hid": None, "rent": None}, "persons": {"hid": None, "age": None}})
    >>> print(text[text.index("unit =") :])
    unit = "homes"
    <BLANKLINE>
    [tables.homes]
    key = "hid"
    <BLANKLINE>
    [tables.homes.columns.rent]
    kind = ""
    <BLANKLINE>
    [tables.persons]
    parent = "homes"
    most = 8
    <BLANKLINE>
    [tables.persons.columns.age]
    kind = ""
    <BLANKLINE>
    """
    (unit, parents), (child, children) = tables.items()
    shared = [name for name in parents if name in children]
    key = shared[0] if shared else ""
    own = [name for name in children if name != key and name.strip().lower().endswith("id")]
    lines = [
        HEAD.replace("ignore = []\n", COMMENT),
        f"\nunit = {toml(unit)}\n\n[tables.{_key(unit)}]\nkey = {toml(key)}\n",
        _columns(unit, parents, {key}),
        f"\n[tables.{_key(child)}]\nparent = {toml(unit)}\n",
        "" if key else 'link = ""\n',
        f"key = {toml(own[0])}\n" if own else "",
        "most = 8\n",
        _columns(child, children, {key, *own[:1]}),
    ]
    return "".join(lines)


def _columns(table: str, columns: Mapping[str, object], without: set[str]) -> str:
    """Draft the columns of a table, but for keys: one after another, as `draft_schema` does."""
    found = ""
    for name, dtype in columns.items():
        if name in without:
            continue
        # one at a time, under a name that is no id: none is left out
        text = draft_schema({"x": dtype}).removeprefix(HEAD)
        found += text.replace("[columns.x]", f"[tables.{_key(table)}.columns.{_key(name)}]")
    return found


def _key(name: str) -> str:
    """Write a key of TOML."""
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else toml(name)
