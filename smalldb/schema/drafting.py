"""A first draft of a schema, from the names of columns and from declared types; never from a value."""

import json
from collections.abc import Iterable, Mapping

import pandas as pd
from pandas.api import types

HEAD = """\
# A draft: each column still needs what it can hold. Choose it from public knowledge (a code book, a form, the
# law), never from a look at the data: a category or a cut point that was read off the data gives it away.
#   kind = "bool"         0/1 or true/false
#   kind = "categories"   values = ["north", "south"]; unknown = "other"
#   kind = "cuts"         cuts = [18, 65], range = [0, 110]
#   kind = "dates"        cuts = [1960, 1990], range = [1920, 2030], in years
# Each also takes missing = true (a place for gaps), unknown = "missing" and dtype = "...".
# A column that is not to be released: delete its table, and list it in ignore.
ignore = []
"""
_ASKED = {
    "categories": "values = []  # all that there can be",
    "cuts": "cuts = []  # ascending\nrange = []  # lowest and highest",
    "dates": "cuts = []  # years, ascending\nrange = []  # first and last year",
}


def draft_schema(columns: Iterable[str] | Mapping[str, object]) -> str:
    """Draft a schema as TOML text.

    Parameters
    ----------
    columns
        Names; or names with the dtypes that pandas declares, of which only the kind is read: not the
        categories of a categorical column, for one, which hold the values that occur.

    Examples
    --------
    >>> print(draft_schema({"over 40": "bool"}).removeprefix(HEAD))
    <BLANKLINE>
    [columns."over 40"]
    kind = "bool"
    dtype = "bool"
    <BLANKLINE>
    """
    declared = columns if isinstance(columns, Mapping) else dict.fromkeys(columns)
    return HEAD + "".join(
        f"\n[columns.{_key(str(name).strip())}]\n{_described(dtype)}\n" for name, dtype in declared.items()
    )


def _described(dtype: object) -> str:
    if dtype is None:
        return 'kind = ""'
    found = pd.api.types.pandas_dtype(dtype)
    if types.is_bool_dtype(found):
        return f'kind = "bool"\ndtype = "{found}"'
    if types.is_integer_dtype(found) or types.is_float_dtype(found):
        return f'kind = "cuts"\n{_ASKED["cuts"]}\ndtype = "{found}"'
    if types.is_datetime64_any_dtype(found):
        return f'kind = "dates"\n{_ASKED["dates"]}\ndtype = "{found}"'
    if isinstance(found, pd.CategoricalDtype):
        return f'kind = "categories"\n{_ASKED["categories"]}\ndtype = "category"'
    if isinstance(found, pd.StringDtype):
        return f'kind = "categories"\n{_ASKED["categories"]}'
    return 'kind = ""'


def _key(name: str) -> str:
    """Write a key of TOML: a text of JSON is one of TOML, but for DEL."""
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")
