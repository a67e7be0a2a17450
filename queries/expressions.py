"""A small boolean grammar over attribute names: ``& | ~ ^`` and parentheses. Nothing is evaluated as code."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from itertools import accumulate

import numpy as np

from queries.arrays import Booleans

MAX_LENGTH = 10_000  # characters of one expression
MAX_RULES = 1 << 14  # of a domain; an AND is several
MAX_RULE_LETTERS = 1 << 19  # of all of them together
MOST_TOLD = 1500  # letters of an error: faults beyond them are counted
LONGEST = 1200  # of one fault: the rest is cut
TOO_MANY = "valid: more than 2^14 rules (an AND counts as several): keep those that rule out the most rows"

_COMPARISON = r"(?P<compared>\s*(?:>=|<=|<|>|=)\s*[-\w.]+)?"  # `age >= 40` is the name `age>=40`
_TOKEN = re.compile(rf"(?P<name>[^\W\d]\w*){_COMPARISON}|`(?P<quoted>[^`]+)`|(?P<sign>[&|^~()])")
_BINDING = {"~": 4, "&": 3, "^": 2, "|": 1}
_WORDS = re.compile(r"\b(and|or|not)\b")
_COMBINE: dict[str, Callable[[Booleans, Booleans], Booleans]] = {
    "&": np.logical_and,
    "^": np.logical_xor,
    "|": np.logical_or,
}


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed predicate."""

    text: str  # the predicate as it was written
    # postfix order; a step is ``("name", attribute)`` or ``("sign", operator)``
    steps: tuple[tuple[str, str], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes that occur, each once, in order of first appearance."""
        return tuple(dict.fromkeys(word for kind, word in self.steps if kind == "name"))

    def evaluate(self, column: Callable[[str], Booleans]) -> Booleans:
        """Return the truth of the predicate, with ``column(name)`` the truth of an attribute.

        >>> parse("a & ~b").evaluate(lambda name: np.array([name == "a", True])).tolist()
        [True, False]
        """
        stack: list[Booleans] = []
        for kind, word in self.steps:
            if kind == "name":
                stack.append(column(word))
            elif word == "~":
                stack.append(np.logical_not(stack.pop()))
            else:
                right = stack.pop()
                stack.append(_COMBINE[word](stack.pop(), right))
        return stack.pop()

    @property
    def conjuncts(self) -> "tuple[Expression, ...]":
        """The predicates whose AND this one is, as far as its outermost signs tell.

        >>> [part.names for part in parse("a & (b | c) & ~(d | e)").conjuncts]
        [('a',), ('b', 'c'), ('d',), ('e',)]
        """
        found: list[Expression] = []
        steps, begins = self.steps, self._begins
        waiting = [(len(steps) - 1, False)]  # the last step of a part, and whether a ~ stands before it
        while waiting:
            at, negated = waiting.pop()
            last = steps[at][1] if steps[at][0] == "sign" else ""
            if last == ("|" if negated else "&"):  # of a negated one by De Morgan
                waiting += [(at - 1, negated), (begins[at - 1] - 1, negated)]
            elif last == "~" and not negated and steps[at - 1] == ("sign", "|"):
                waiting.append((at - 1, True))
            else:
                part = steps[begins[at] : at + 1]
                found.append(Expression(self.text, (*part, ("sign", "~")) if negated else part))
        return tuple(found)

    @property
    def _begins(self) -> list[int]:
        """The first step of the operand or the predicate that ends with each step."""
        begins, whole = list[int](), list[int]()  # of all; of those that no later step has joined
        for at, (kind, word) in enumerate(self.steps):
            if kind == "name":
                whole.append(at)
            elif word in _COMBINE:
                whole.pop()
            begins.append(whole[-1])
        return begins


def parse(text: str) -> Expression:
    """Parse a predicate; names that are not identifiers stand in backticks.

    A name may be compared with a value, as in ``age >= 40``: that is the name ``age>=40``.

    Binding, tightest first: ``~``, ``&``, ``^``, ``|`` (as in Python).
    """
    if not isinstance(text, str):
        raise TypeError(f"a predicate must be text, not {type(text).__name__}")
    if len(text) > MAX_LENGTH:
        raise ValueError(f"a predicate may have at most {MAX_LENGTH} characters")
    return _parsed(text)


@lru_cache(maxsize=MAX_RULES)
def _parsed(text: str) -> Expression:
    steps: list[tuple[str, str]] = []
    waiting: list[str] = []
    want_operand, at, end = True, 0, len(text.rstrip())

    def fail(expected: str) -> ValueError:
        hint = " (and, or, not are written &, |, ~)" if _WORDS.search(text) else ""
        said = f"expected {expected} at character {min(at, end) + 1}{hint}"
        return ValueError(f"predicate {shorten(text)!r}: {said}")

    while at < end:
        if text[at].isspace():
            at += 1
            continue
        token = _TOKEN.match(text, at)
        if token is None:
            raise fail("an attribute name (in backticks if it is no identifier), & | ^ ~ or parentheses")
        name, sign = token["name"] or token["quoted"], token["sign"]
        if token["compared"]:
            name += "".join(token["compared"].split())
        if want_operand:
            if name:
                steps.append(("name", name))
                want_operand = False
            elif sign in ("~", "("):
                waiting.append(sign)
            else:
                raise fail("an attribute name, ~ or (")
        elif sign == ")":
            while waiting and waiting[-1] != "(":
                steps.append(("sign", waiting.pop()))
            if not waiting:
                raise fail("no ) without its (")
            waiting.pop()
        elif sign in _COMBINE:
            while waiting and waiting[-1] != "(" and _BINDING[waiting[-1]] >= _BINDING[sign]:
                steps.append(("sign", waiting.pop()))
            waiting.append(sign)
            want_operand = True
        else:
            raise fail("& | ^ or )")
        at = token.end()
    if want_operand:
        raise fail("an attribute name, ~ or (")
    while waiting:
        if waiting[-1] == "(":
            raise fail(")")
        steps.append(("sign", waiting.pop()))
    return Expression(text, tuple(steps))


def too_many(texts: Sequence[str]) -> list[str]:
    """Tell why predicates are not read at all: there are too many, or they are too long together."""
    letters = sum(map(len, texts))
    wrong = [TOO_MANY] if len(texts) > MAX_RULES else []
    if letters > MAX_RULE_LETTERS:
        wrong.append(f"valid: rules of {letters} characters together, of which up to 2^19 are read")
    return wrong


def joined(faults: Sequence[str]) -> str:
    """Return the first faults, about as many as one reads at a time, and how many more there are."""
    told = [said if len(said) <= LONGEST else f"{said[: LONGEST - 3]}..." for said in faults]
    shown = max(1, sum(end <= MOST_TOLD for end in accumulate(map(len, told))))
    more = len(told) - shown
    return "; ".join([*told[:shown], *([f"and {more} more"] if more else [])])


def quote(name: str) -> str:
    """Write an attribute name as the grammar reads it.

    >>> quote("smoker"), quote("older than 40")
    ('smoker', '`older than 40`')
    """
    return name if re.fullmatch(r"[^\W\d]\w*", name) else f"`{name}`"


def count_told(number: int) -> str:
    """Write a count, which may be too large for its digits to tell anything."""
    return str(number) if number < 10**20 else "more than 10^20"


def shorten(text: str) -> str:
    """Cut a long text for an error line."""
    return text if len(text) <= 60 else text[:57] + "..."


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean ...?"`` where a known word is close, otherwise nothing."""
    close = get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
