"""Yes or no."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, final

from queries.expressions import Fault, TypeFault
from smalldb.schema.kinds.binned import listed
from smalldb.schema.kinds.kind import Kind, Spec, Value, without_zeros

USUAL = {"0": 0, "false": 0, "no": 0, "n": 0, "1": 1, "true": 1, "yes": 1, "y": 1}


@final
@dataclass(frozen=True, slots=True)
class Flag(Kind):
    """Yes or no: true/false, yes/no, y/n or 1/0 in any case, or spellings of one's own.

    Parameters
    ----------
    true, false
        What means yes and no, exactly as spelled; with them no other spelling is taken, but true/false.
        The first of each is what is written. Empty: the usual spellings, and truth is written.
    """

    codings: ClassVar[tuple[str, ...]] = ("thermometer",)
    spelling: ClassVar[str] = (
        "bool takes true/false, yes/no, y/n and 1/0, or what its lists true = [...] and false = [...] say"
    )
    size: ClassVar[int] = 2
    labels: ClassVar[Sequence[str]] = ("no", "yes")

    true: tuple[str | int, ...] = ()
    false: tuple[str | int, ...] = ()
    _codes: dict[str, int] = field(init=False, repr=False, compare=False)

    def __init__(self, true: Iterable[str | int] = (), false: Iterable[str | int] = ()) -> None:
        sides = [listed(false, "false"), listed(true, "true")]
        if any(isinstance(v, bool) or not isinstance(v, str | int) for v in sides[0] + sides[1]):
            raise TypeFault("true and false must be lists of texts or whole numbers", "true")
        if bool(sides[0]) != bool(sides[1]):
            raise Fault("give both lists, true = [...] and false = [...], or neither")
        codes: dict[str, int] = {}
        for code, side in enumerate(sides):
            for text in map(str, side):
                if not text or text != text.strip():
                    raise Fault(f"true and false: {text!r} is empty, or has spaces at its ends", "true")
                if codes.setdefault(text, code) != code:
                    raise Fault(f"true and false: {text!r} stands in both", "true")
        self._set(false=tuple(sides[0]), true=tuple(sides[1]), _codes=codes)

    @property
    def dtype(self) -> str:
        """Truth, or what the lists are of."""
        if not self.true:
            return "boolean"
        return "Int64" if all(isinstance(value, int) for value in self.values()) else "str"

    def code(self, text: str) -> int | None:
        """Find the code of a field."""
        if not self._codes:
            return USUAL.get(without_zeros(text).lower())
        code = self._codes.get(text, self._codes.get(without_zeros(text)))
        return {"false": 0, "true": 1}.get(text.lower()) if code is None else code

    def values(self) -> Sequence[Value]:
        """Return False and True, or the first spelling of each."""
        return [self.false[0], self.true[0]] if self.true else [False, True]

    @property
    def spelled(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What means no, and what means yes, as fields have it."""
        return tuple(map(str, self.false)), tuple(map(str, self.true))

    def ends(self) -> Sequence[tuple[float, float]]:
        """Return 0 and 1."""
        return (0.0, 0.0), (1.0, 1.0)


SPEC = Spec(
    "bool",
    lambda table: Flag(table.get("true", ()), table.get("false", ())),
    {"true": list, "false": list},
    'true/false, yes/no, y/n, 1/0; or true = ["J"], false = ["N"]',
)
