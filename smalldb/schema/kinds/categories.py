"""One of a list of categories."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import ClassVar, final
from unicodedata import normalize

from queries.expressions import Fault, TypeFault
from smalldb.schema.kinds.binned import listed as as_list
from smalldb.schema.kinds.kind import MAX_CATEGORIES, Kind, Spec, Value, without_zeros


@final
@dataclass(frozen=True, slots=True)
class Categories(Kind):
    """One of a public list of texts or whole numbers, compared as a CSV file spells them.

    Parameters
    ----------
    listed
        At least two with ``other`` and `groups`, distinct.
    other
        Whether a value outside the list counts as the category "other" (appended, if it is not listed).
    groups
        Further categories by their names, each with the values that count as it, beside its name.
    """

    codings: ClassVar[tuple[str, ...]] = ("one-hot", "bits")

    listed: tuple[str | int, ...]
    other: bool = False
    groups: tuple[tuple[str, tuple[str | int, ...]], ...] = ()
    _codes: dict[str, int] = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        listed: Iterable[str | int],
        other: bool = False,
        groups: Mapping[str, Iterable[str | int]] | None = None,
    ) -> None:
        values = as_list(listed, "values")
        members = {name: as_list(of, f"the group {name!r}") for name, of in (groups or {}).items()}
        every = [*values, *(value for of in members.values() for value in of)]
        if any(isinstance(v, bool) or not isinstance(v, str | int) for v in every):
            raise TypeFault("values must be texts or whole numbers", "values")
        if members:
            values = [*map(str, values), *members]
        if other and "other" not in values:
            values = [*map(str, values), "other"]
        if len({type(v) for v in values}) > 1:
            raise TypeFault("values must be all texts or all whole numbers", "values")
        if not 2 <= len(values) <= MAX_CATEGORIES:
            raise Fault(
                f"values must be 2 to {MAX_CATEGORIES}, with 'other' (a column of one value: "
                "list it in ignore)",
                "values",
            )
        codes = {}
        spelled = [(str(value), code) for code, value in enumerate(values)]
        for name, of in members.items():
            spelled += [(str(value), values.index(name)) for value in of if str(value) != name]
        for text, code in spelled:
            if not text or text != text.strip():
                raise Fault(f"values: {text!r} is empty, or has spaces at its ends", "values")
            if text in codes:
                raise Fault(f"values: {text!r} occurs more than once", "values")
            codes[text] = code
        stated = tuple((name, tuple(of)) for name, of in members.items())
        self._set(listed=tuple(values), other=other, groups=stated, _codes=codes)

    @property
    def spelling(self) -> str:  # type: ignore[override]
        """As it is listed, sign by sign: what looks alike may be spelled in two ways."""
        rule = "a category is written exactly as its schema lists it"
        two = any(normalize("NFC", text) != normalize("NFD", text) for text in self._codes)
        return rule + ", and in the same Unicode form (NFC or NFD: é is one sign or two)" * two

    @property
    def size(self) -> int:
        """How many categories there are."""
        return len(self.listed)

    @property
    def dtype(self) -> str:
        """Int64 if the values are whole numbers."""
        return "Int64" if isinstance(self.listed[0], int) else "str"

    @property
    def labels(self) -> Sequence[str]:
        """The categories."""
        return [str(value) for value in self.listed]

    def code(self, text: str) -> int | None:
        """Find the code of a field; what is not listed may be a whole number with a fraction of zeros."""
        code = self._codes.get(text, self._codes.get(without_zeros(text)))
        return self._codes["other"] if code is None and self.other else code

    def values(self) -> Sequence[Value]:
        """Return the categories."""
        return self.listed


SPEC = Spec(
    "categories",
    lambda table: Categories(table.get("values", ()), table.get("unknown") == "other", table.get("groups")),
    {"values": (str, list), "groups": dict, "share": (str, int, Decimal), "coding": str},
    'values = ["north", "south"]; unknown = "other"; groups = { west = ["Bath"] }',
    needed=(("values", "groups"),),
    unknown=("missing", "other"),
    questions=(
        ("values", "all values, separated by commas"),
        ("unknown", "other values (empty: they are refused; other: they are one more category)"),
    ),
    draft="values = []  # all that there can be",
    learns="values",
)
